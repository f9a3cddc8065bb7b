//! Random structural schemas: every kind of list and map, nested, in several versions.

use serde_json::{Map, Value, json};

use super::dice::Dice;

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
/// How deep a schema goes below `spec` and `status`.
const DEPTH_MAX: usize = 3;

pub(crate) const GROUP: &str = "ssa.example.org";

/// A custom kind made up for one seed.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    pub(crate) seed: u64,
    pub(crate) definition: Value,
    pub(crate) plural: String,
    pub(crate) kind: String,
    pub(crate) status: bool,
    /// Version and schema; the first one is stored.
    pub(crate) versions: Vec<(String, Value)>,
}

/// Makes up a kind; `number` keeps it apart from others of the same run.
pub(crate) fn made(seed: u64, number: usize) -> Made {
    let mut dice = Dice::new(seed);
    let (plural, kind) = (format!("fuzz{number}s"), format!("Fuzz{number}"));
    let status = dice.chance(70);
    let first = root(&mut dice);
    let mut versions = vec![("v1".to_owned(), first.clone())];
    if dice.chance(60) {
        let second = if dice.chance(50) { first } else { varied(&mut dice, &first) };
        versions.push(("v2".to_owned(), second));
    }
    let described: Vec<Value> = versions
        .iter()
        .enumerate()
        .map(|(at, (name, schema))| {
            let mut version = json!({
                "name": name, "served": true, "storage": at == 0,
                "schema": {"openAPIV3Schema": schema},
            });
            if status {
                version["subresources"] = json!({"status": {}});
            }
            version
        })
        .collect();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "versions": described,
            "names": {"plural": plural, "kind": kind},
        },
    });
    Made { seed, definition, plural, kind, status, versions }
}

fn root(dice: &mut Dice) -> Value {
    let mut properties = Map::new();
    properties.insert("spec".to_owned(), record(dice, 0));
    properties.insert("status".to_owned(), record(dice, 1));
    if dice.chance(30) {
        properties.insert("extra".to_owned(), node(dice, 1));
    }
    json!({"type": "object", "properties": properties})
}

/// Another version of a schema: properties gone, come, or of another kind.
fn varied(dice: &mut Dice, schema: &Value) -> Value {
    let mut schema = schema.clone();
    let part = if dice.chance(70) { "/properties/spec" } else { "/properties/status" };
    let Some(Value::Object(spec)) = schema.pointer_mut(part) else { return schema };
    let properties = spec.entry("properties").or_insert_with(|| json!({}));
    let Value::Object(properties) = properties else { return schema };
    for name in NAMES {
        if dice.chance(25) {
            let replaced = node(dice, 1);
            if properties.shift_remove(name).is_none() || dice.chance(40) {
                properties.insert(name.to_owned(), replaced);
            }
        }
    }
    schema
}

fn node(dice: &mut Dice, depth: usize) -> Value {
    if depth > DEPTH_MAX {
        return scalar(dice);
    }
    let mut node = match dice.below(13) {
        0..=3 => return scalar(dice),
        4 | 5 => record(dice, depth),
        6 => json!({"type": "object", "additionalProperties": node(dice, depth + 1)}),
        7 => json!({"type": "array", "items": node(dice, depth + 1)}),
        8 => set(dice, depth),
        9..=11 => keyed(dice, depth),
        _ => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    };
    if node["type"] == "object" && dice.chance(15) {
        let how = if dice.chance(80) { "atomic" } else { "granular" };
        node["x-kubernetes-map-type"] = json!(how);
    }
    if node["type"] == "array" && node.get("x-kubernetes-list-type").is_none() && dice.chance(50) {
        node["x-kubernetes-list-type"] = json!("atomic");
    }
    if dice.chance(10) {
        node["nullable"] = json!(true);
    }
    node
}

fn record(dice: &mut Dice, depth: usize) -> Value {
    let mut properties = Map::new();
    for _ in 0..=dice.below(4) + usize::from(depth == 0) * 2 {
        let name = (*dice.pick(&NAMES)).to_owned();
        properties.insert(name, node(dice, depth + 1));
    }
    let mut record = json!({"type": "object", "properties": properties});
    if dice.chance(8) {
        record["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
    if depth > 0 && dice.chance(8) {
        record["default"] = json!({});
    }
    record
}

fn scalar(dice: &mut Dice) -> Value {
    let (mut node, default) = match dice.below(12) {
        0..=4 => (json!({"type": "string"}), json!("d")),
        5 | 6 => (json!({"type": "integer"}), json!(7)),
        7 => (json!({"type": "number"}), json!(1.5)),
        8 | 9 => (json!({"type": "boolean"}), json!(true)),
        10 => (json!({"x-kubernetes-int-or-string": true}), json!("50%")),
        _ => (json!({"type": "string", "format": "date-time"}), json!("2026-01-02T03:04:05Z")),
    };
    if dice.chance(15) {
        node["default"] = default;
    } else if dice.chance(10) {
        node["nullable"] = json!(true);
    }
    node
}

/// A list in which every value is there once.
fn set(dice: &mut Dice, depth: usize) -> Value {
    let items = match dice.below(8) {
        0..=3 => json!({"type": "string"}),
        4 => json!({"type": "integer"}),
        5 => json!({"type": "boolean"}),
        6 => {
            json!({"type": "array", "x-kubernetes-list-type": "atomic", "items": scalar_plain(dice)})
        }
        _ => {
            let mut items = record(dice, depth + 1);
            items["x-kubernetes-map-type"] = json!("atomic");
            if let Value::Object(map) = &mut items {
                map.shift_remove("default");
            }
            items
        }
    };
    json!({"type": "array", "x-kubernetes-list-type": "set", "items": items})
}

fn scalar_plain(dice: &mut Dice) -> Value {
    json!({"type": dice.pick(&["string", "integer", "boolean"])})
}

/// A list whose items have keys.
fn keyed(dice: &mut Dice, depth: usize) -> Value {
    let mut items = record(dice, depth + 1);
    if let Value::Object(map) = &mut items {
        map.shift_remove("default");
    }
    items["properties"]["k"] = scalar_plain(dice);
    let (mut keys, mut required) = (vec!["k"], vec!["k"]);
    if dice.chance(40) {
        keys.push("p");
        items["properties"]["p"] = json!({"type": "string"});
        if dice.chance(70) {
            items["properties"]["p"]["default"] = json!("TCP");
        } else {
            required.push("p");
        }
    }
    items["required"] = json!(required);
    json!({
        "type": "array", "items": items,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
    })
}

/// A random value that fits a schema, mostly.
pub(crate) fn value(dice: &mut Dice, schema: &Value) -> Value {
    if dice.chance(1) {
        return stray(dice);
    }
    if dice.chance(if schema["nullable"] == true { 15 } else { 1 }) {
        return Value::Null;
    }
    if schema.get("x-kubernetes-int-or-string").is_some() {
        return dice.pick(&[json!(1), json!("10%"), json!("x")]).clone();
    }
    match schema["type"].as_str().unwrap_or_default() {
        "string" if schema["format"] == "date-time" => {
            dice.pick(&[json!("2026-01-02T03:04:05Z"), json!("2027-01-02T03:04:05Z")]).clone()
        }
        "string" => dice.pick(&[json!("x"), json!("y"), json!("z"), json!("TCP")]).clone(),
        "integer" => dice.pick(&[json!(0), json!(1), json!(2), json!(70_000)]).clone(),
        // Not 2.0: where a 2 is stored, upstream takes it for a change, being of another Go type.
        "number" => dice.pick(&[json!(1), json!(1.5), json!(-2.25)]).clone(),
        "boolean" => json!(dice.chance(50)),
        "array" => list(dice, schema),
        "object" => map(dice, schema),
        _ => stray(dice),
    }
}

fn list(dice: &mut Dice, schema: &Value) -> Value {
    let mut items: Vec<Value> = (0..dice.below(4)).map(|_| value(dice, &schema["items"])).collect();
    let keyed = schema.get("x-kubernetes-list-map-keys").is_some();
    let set = schema["x-kubernetes-list-type"] == "set";
    if (keyed || set) && !dice.chance(10) {
        // Mostly as it should be: each value or key once.
        let identity = |item: &Value| {
            if !keyed {
                return item.to_string();
            }
            let protocol = item.get("p").cloned().unwrap_or(json!("TCP"));
            format!("{}{protocol}", item["k"])
        };
        let mut seen = Vec::new();
        items.retain(|item| {
            let new = !seen.contains(&identity(item));
            seen.push(identity(item));
            new
        });
    }
    Value::Array(items)
}

fn map(dice: &mut Dice, schema: &Value) -> Value {
    let mut out = Map::new();
    if let Some(declared) = schema["properties"].as_object() {
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        for (name, schema) in declared {
            let needed = required.iter().any(|one| one == name);
            if dice.chance(if needed { 98 } else { 55 }) {
                let value = value(dice, schema);
                // A key that is a map is printed in the order of a Go map.
                let odd = needed && (value.is_object() || value.is_array());
                out.insert(name.clone(), if odd { Value::Null } else { value });
            }
        }
    }
    if schema.get("additionalProperties").is_some() {
        for _ in 0..dice.below(4) {
            let name = (*dice.pick(&["m", "n", "o"])).to_owned();
            out.insert(name, value(dice, &schema["additionalProperties"]));
        }
    }
    let open = schema.get("x-kubernetes-preserve-unknown-fields").is_some();
    if open || dice.chance(1) {
        for _ in 0..dice.below(3) {
            out.insert((*dice.pick(&["u", "v"])).to_owned(), stray(dice));
        }
    }
    Value::Object(out)
}

/// Anything.
fn stray(dice: &mut Dice) -> Value {
    let some = [
        json!("x"),
        json!(1),
        json!(2.5),
        json!(true),
        json!({}),
        json!([]),
        json!(null),
        json!({"g": 1, "h": {"i": "x"}}),
        json!({"g": [1, 2]}),
        json!([{"g": 1}]),
        json!(["x", "y"]),
    ];
    dice.pick(&some).clone()
}
