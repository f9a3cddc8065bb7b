//! What every Kubernetes object has in common: its metadata, its names, its labels.
//!
//! Objects are `serde_json::Value`s throughout: the server serves kinds it has never
//! heard of, so there is no struct to put them in.

#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod depth;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod field_error;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod findings;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod lines;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod meta;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod name;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod path;
pub mod quantity;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod selector;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod strict;
pub mod time;

use std::borrow::Cow;

use serde_json::{Map, Value};

/// An object's text. Faster than printing it, which goes through the formatter piece by piece.
pub fn text(object: &Value) -> Vec<u8> {
    serde_json::to_vec(object).unwrap_or_default()
}

/// A text for people, cut where it becomes too long for them.
pub fn shortened(text: &str, characters: usize) -> Cow<'_, str> {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

/// An object's metadata; an empty map when it has none.
pub fn metadata(object: &Value) -> &Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    object.get("metadata").and_then(Value::as_object).unwrap_or(&EMPTY)
}

/// An object's metadata, made if need be.
pub fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    map_at(object, "metadata")
}

/// The map under `field`, made if it is missing or is something else.
pub fn map_at<'a>(object: &'a mut Value, field: &str) -> &'a mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Value::Object(map) = object else { unreachable!("made an object above") };
    let slot = map.entry(field).or_insert_with(|| Value::Object(Map::new()));
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    let Value::Object(inner) = slot else { unreachable!("made an object above") };
    inner
}

/// A text in the metadata, or nothing.
pub fn meta_text<'a>(object: &'a Value, field: &str) -> &'a str {
    metadata(object).get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The texts in a list in the metadata.
pub fn meta_list<'a>(object: &'a Value, field: &str) -> Vec<&'a str> {
    let list = metadata(object).get(field).and_then(Value::as_array);
    list.map(|items| items.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}

/// Whether the object is on its way out.
pub fn is_deleting(object: &Value) -> bool {
    !meta_text(object, "deletionTimestamp").is_empty()
}

/// What Go's JSON decoder calls the type of a value.
pub fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
