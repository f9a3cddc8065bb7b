//! Takes paths out of a value.

use serde_json::Value;

use super::{Shape, identify, shape_of};
use crate::fieldpath::{PathElement, Set};
use crate::types::{List, Map, Schema, TypeRef};

/// The value without the members of a set.
///
/// A container that loses everything becomes null rather than empty: that is what the server
/// stores, and the difference shows.
pub(crate) fn remove_items(schema: &Schema, value: Value, items: &Set) -> Value {
    node(schema, schema.root(), value, items)
}

fn node(schema: &Schema, of: TypeRef, value: Value, items: &Set) -> Value {
    match (shape_of(schema.resolve(of), Some(&value)), value) {
        (Shape::Scalar(_), value) => value,
        (Shape::Map(map), Value::Object(fields)) if !map.atomic => {
            without_fields(schema, map, fields, items)
        }
        (Shape::List(list), Value::Array(list_items)) if list.associative => {
            without_items(schema, list, list_items, items)
        }
        // Something below an atomic value was to be removed: it goes as a whole.
        _ => Value::Null,
    }
}

fn without_fields(
    schema: &Schema,
    map: &Map,
    mut fields: serde_json::Map<String, Value>,
    items: &Set,
) -> Value {
    for member in items.members() {
        if let PathElement::Field(name) = member {
            fields.shift_remove(&**name);
        }
    }
    for (element, below) in items.children() {
        if let PathElement::Field(name) = element
            && !below.is_empty()
            && let Some(value) = fields.get_mut(&**name)
        {
            *value = node(schema, map.type_of(name), value.take(), below);
        }
    }
    if fields.is_empty() { Value::Null } else { Value::Object(fields) }
}

fn without_items(schema: &Schema, list: &List, list_items: Vec<Value>, items: &Set) -> Value {
    let mut out = Vec::with_capacity(list_items.len());
    for item in list_items {
        let element = identify(schema, list, &item).unwrap_or(PathElement::Unidentified);
        if items.has_member(&element) {
            continue;
        }
        out.push(match items.child(&element) {
            Some(below) if !below.is_empty() => node(schema, list.element, item, below),
            _ => item,
        });
    }
    if out.is_empty() { Value::Null } else { Value::Array(out) }
}
