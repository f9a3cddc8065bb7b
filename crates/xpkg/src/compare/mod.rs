//! What changed between two packages, and what of it breaks those who use them.
//!
//! ```text
//!   old package ─► Contents ─┐
//!                            ├─► compare ─► Comparison: changes, breaking ones first
//!   new package ─► Contents ─┘
//! ```
//!
//! [`Contents`] keeps little of a package: its metadata, a digest of every object, and definitions
//! without their descriptions. Objects with equal digests are equal; of the others, definitions
//! of resources are compared version by version and field by field (`definition`, `schema`), the
//! metadata by what it asks of a cluster (`metadata`), and the rest is only told to differ.
//!
//! A change is *breaking* if an object or a client that works with the old package may not work
//! with the new one: a field that goes, a value that is refused from now on, a version that is no
//! longer served. It is a *warning* if people should know before they upgrade: another default,
//! another dependency, more permissions. Everything else is a *note*. Descriptions never count.
//!
//! Nothing here evaluates CEL or looks at live objects: a rule that was added counts as breaking,
//! whatever it says.

mod contents;
mod definition;
mod metadata;
mod schema;
#[cfg(test)]
mod tests;

pub use contents::{Contents, ObjectKey};

use rayon::prelude::*;
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt;

/// Changes that are kept of one comparison; further ones are only counted.
const CHANGES_MAX: usize = 100_000;
/// Characters that are shown of a value.
const VALUE_CHARACTERS_MAX: usize = 60;

/// How much a change matters to those who use the package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// What works with the old package may not work with the new one.
    Breaking,
    /// To be known before an upgrade.
    Warning,
    /// Everything else.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Breaking => "breaking",
            Self::Warning => "warning",
            Self::Note => "note",
        })
    }
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// How much it matters.
    pub severity: Severity,
    /// The object it is about; the package itself if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectKey>,
    /// The version of a definition it is about.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// What kind of change it is; a stable name.
    pub rule: &'static str,
    /// What is so now, in words: `removed`, `type integer becomes string`.
    pub message: String,
    /// The field, or whatever else of the object: `spec.size`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
}

/// Everything that is different between two packages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The changes, breaking ones first, then by object, version and field.
    pub changes: Vec<Change>,
    counts: BTreeMap<Severity, usize>,
}

impl Comparison {
    /// How many changes of a severity there are, kept or not.
    pub fn count(&self, severity: Severity) -> usize {
        self.counts.get(&severity).copied().unwrap_or_default()
    }

    /// How many changes were counted only.
    pub fn left_out(&self) -> usize {
        self.counts.values().sum::<usize>().saturating_sub(self.changes.len())
    }
}

/// Compares two packages.
pub fn compare(old: &Contents, new: &Contents) -> Comparison {
    let mut changes = metadata::compare_metadata(old.meta.as_ref(), new.meta.as_ref());
    let keys: Vec<&ObjectKey> = contents::all_keys(old, new).collect();
    let of_objects: Vec<Vec<Change>> =
        keys.par_iter().map(|key| compare_object(key, old, new)).collect();
    changes.extend(of_objects.into_iter().flatten());
    changes.sort_unstable();
    let mut counts = BTreeMap::new();
    for change in &changes {
        *counts.entry(change.severity).or_default() += 1;
    }
    changes.truncate(CHANGES_MAX);
    Comparison { changes, counts }
}

/// Compares two states of one definition.
pub fn compare_definition(old: &Json, new: &Json) -> Vec<Change> {
    if old["spec"] == new["spec"] {
        return Vec::new();
    }
    let mut found = Changes::of(&ObjectKey::of_json(new));
    let (old, new) = (contents::as_compared(old.clone()), contents::as_compared(new.clone()));
    definition::compare_definitions(&old, &new, &mut found);
    found.list.sort_unstable();
    found.list
}

/// What changed about one object in sentences, by severity. What is said of several fields is said
/// once, and `most` of them are named.
pub fn change_sentences(changes: &[&Change], most: usize) -> Vec<(Severity, String)> {
    let mut said: BTreeMap<(Severity, &str, &str), Vec<&str>> = BTreeMap::new();
    for change in changes {
        let sentence = (change.severity, change.version.as_str(), change.message.as_str());
        said.entry(sentence).or_default().push(&change.path);
    }
    let sentence = |((severity, version, message), paths): ((_, &str, &str), Vec<&str>)| {
        let paths: Vec<&str> = paths.into_iter().filter(|path| !path.is_empty()).collect();
        let shown = paths.get(..most).unwrap_or(&paths).join(", ");
        let more = match paths.len().saturating_sub(most) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let place = [version, &shown].into_iter().filter(|part| !part.is_empty());
        let place = place.collect::<Vec<_>>().join(" ");
        let colon = if place.is_empty() { "" } else { ": " };
        (severity, format!("{place}{more}{colon}{message}"))
    };
    said.into_iter().map(sentence).collect()
}

fn compare_object(key: &ObjectKey, old: &Contents, new: &Contents) -> Vec<Change> {
    let mut found = Changes::of(key);
    match (old.objects.get(key), new.objects.get(key)) {
        (Some(_), None) => found.add(removal(key), "object-removed", "", "removed"),
        (None, Some(_)) => found.add(Severity::Note, "object-added", "", "added"),
        (Some(before), Some(after)) if before.digest != after.digest => {
            match (before.definition(), after.definition()) {
                (Some(before), Some(after)) => {
                    definition::compare_definitions(&before, &after, &mut found);
                    if found.list.is_empty() {
                        found.add(Severity::Note, "description", "", "described otherwise");
                    }
                }
                _ => found.add(Severity::Note, "object-changed", "", "changed"),
            }
        }
        _ => {}
    }
    found.list
}

/// How much it matters that an object goes: definitions take kinds along, compositions are chosen
/// by name.
fn removal(key: &ObjectKey) -> Severity {
    match key.kind.as_str() {
        _ if key.is_definition() => Severity::Breaking,
        "Composition" => Severity::Warning,
        _ => Severity::Note,
    }
}

/// The changes of one object, or of the package itself, while they are found.
struct Changes {
    object: Option<ObjectKey>,
    version: String,
    list: Vec<Change>,
}

impl Changes {
    fn of(object: &ObjectKey) -> Self {
        Self { object: Some(object.clone()), version: String::new(), list: Vec::new() }
    }

    fn of_package() -> Self {
        Self { object: None, version: String::new(), list: Vec::new() }
    }

    fn add(
        &mut self,
        severity: Severity,
        rule: &'static str,
        path: &str,
        message: impl Into<String>,
    ) {
        self.list.push(Change {
            severity,
            object: self.object.clone(),
            version: self.version.clone(),
            rule,
            path: path.to_owned(),
            message: message.into(),
        });
    }
}

/// A value as it is shown: JSON, cut where it gets long.
fn shown(value: &Json) -> String {
    shortened(&value.to_string())
}

fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(VALUE_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
