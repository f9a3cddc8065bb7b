//! Defaults, on the way in and on the way out
//!
//! A default fills a missing field, and a `null` that the schema does not allow; what it fills
//! in is filled in further. First the `null`s go that are neither allowed nor defaulted.
//! The same is done to what is read from storage, so that a default added to a definition shows
//! without a write.

use serde_json::Value;

use super::node::{Additional, Flags, Node};

/// Removes `null`s of fields that are neither nullable nor have a default.
pub(crate) fn drop_nulls(node: Option<&Node>, value: &mut Value) {
    let Some(node) = node else { return };
    match value {
        Value::Object(map) => map.retain(|name, value| {
            let schema = node.field(name).map(AsRef::as_ref);
            let stray = |schema: &Node| schema.default.is_none() && !schema.has(Flags::NULLABLE);
            if value.is_null() && schema.is_some_and(stray) {
                return false;
            }
            drop_nulls(schema, value);
            true
        }),
        Value::Array(items) => {
            for item in items {
                drop_nulls(node.items.as_deref(), item);
            }
        }
        _ => {}
    }
}

/// Fills in defaults, and defaults of defaults.
pub(crate) fn fill(node: Option<&Node>, value: &mut Value) {
    let Some(node) = node else { return };
    match value {
        Value::Object(map) => {
            for (name, schema) in &node.properties {
                let Some(default) = schema.default.as_deref() else { continue };
                match map.get_mut(name.as_ref()) {
                    None => _ = map.insert(name.as_ref().to_owned(), default.clone()),
                    Some(value) => fill_null(schema, value),
                }
            }
            for (name, value) in map.iter_mut() {
                match (node.property(name), &node.additional) {
                    (Some(schema), _) => fill(Some(schema), value),
                    (None, Additional::Schema(schema)) => {
                        fill_null(schema, value);
                        fill(Some(schema), value);
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = node.items.as_deref() else { return };
            for item in items {
                fill_null(schema, item);
                fill(Some(schema), item);
            }
        }
        _ => {}
    }
}

/// Puts the default in place of a `null` that is not allowed.
fn fill_null(schema: &Node, value: &mut Value) {
    if let Some(default) =
        schema.default.as_deref().filter(|_| value.is_null() && !schema.has(Flags::NULLABLE))
    {
        value.clone_from(default);
    }
}
