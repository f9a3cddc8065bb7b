//! Fields of a definition, grown until their YAML has the wanted size.

use crate::dice::Dice;
use crate::{measured, words};
use std::fmt::Write as _;

/// YAML that grows line by line, and knows how deep it is.
#[derive(Debug, Default)]
pub struct Yaml {
    text: String,
}

impl Yaml {
    /// A line at a depth of indentation.
    pub fn line(&mut self, indent: usize, line: impl AsRef<str>) {
        let _ = writeln!(self.text, "{:indent$}{}", "", line.as_ref());
    }

    /// A description: on its own line if it is short, as a block if not.
    pub fn description(&mut self, indent: usize, lines: &[String]) {
        match lines {
            [line] => self.line(indent, format!("description: {line}")),
            lines => {
                self.line(indent, "description: |-");
                for line in lines {
                    self.line(indent + 2, line);
                }
            }
        }
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// Where fields may grow: how deep, and up to which size of the whole text.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Levels that may be below.
    pub depth: usize,
    /// Bytes of the text at which no more fields are added.
    pub end: usize,
}

/// Writes `properties:` with fields until there is no room; there is always one field.
pub fn write_properties(yaml: &mut Yaml, indent: usize, dice: &mut Dice, room: Room) {
    yaml.line(indent, "properties:");
    let mut names = std::collections::BTreeSet::new();
    loop {
        let name = words::field_name(dice);
        if names.insert(name.clone()) {
            write_field(yaml, indent + 2, &name, dice, room);
        }
        if yaml.len() >= room.end {
            return;
        }
    }
}

fn write_field(yaml: &mut Yaml, indent: usize, name: &str, dice: &mut Dice, room: Room) {
    yaml.line(indent, format!("{name}:"));
    let length = dice.measured(&measured::DESCRIPTIONS);
    let description = words::description(dice, length);
    yaml.description(indent + 2, &description);
    write_type(yaml, indent + 2, dice, room);
}

fn write_type(yaml: &mut Yaml, indent: usize, dice: &mut Dice, room: Room) {
    let at = dice.below(1000);
    let mut sum = 0;
    let chosen = measured::TYPES.iter().find(|(_, share)| {
        sum += share;
        at < sum
    });
    let name = chosen.map_or("string", |(name, _)| *name);
    match name {
        "object" if room.depth > 1 => write_object(yaml, indent, dice, room),
        "array" if room.depth > 1 => {
            yaml.line(indent, "items:");
            let inner = Room { depth: room.depth - 1, ..room };
            if dice.happens(1, 2) {
                write_object(yaml, indent + 2, dice, inner);
            } else {
                yaml.line(indent + 2, "type: string");
            }
            yaml.line(indent, "type: array");
        }
        "object" | "array" | "string" => yaml.line(indent, "type: string"),
        other => yaml.line(indent, format!("type: {other}")),
    }
}

fn write_object(yaml: &mut Yaml, indent: usize, dice: &mut Dice, room: Room) {
    if dice.happens(1, 8) {
        yaml.line(indent, "additionalProperties:");
        yaml.line(indent + 2, "type: string");
        yaml.line(indent, "type: object");
        yaml.line(indent, "x-kubernetes-map-type: granular");
        return;
    }
    yaml.line(indent, "properties:");
    let count = dice.measured(&measured::FIELDS);
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..count {
        let name = words::field_name(dice);
        if names.insert(name.clone()) {
            let inner = Room { depth: room.depth - 1, ..room };
            write_field(yaml, indent + 2, &name, dice, inner);
        }
        if yaml.len() >= room.end {
            break;
        }
    }
    yaml.line(indent, "type: object");
}
