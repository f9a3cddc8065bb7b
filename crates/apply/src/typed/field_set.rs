//! Which fields does a value mention?

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Shape, identify, shape_of};
use crate::fieldpath::{PathElement, Set};
use crate::types::{List, Map, Schema, TypeRef};
use crate::value;

/// The paths of every leaf, of every list item, and of every key of a free-form map.
///
/// Declared structures are not members: whoever applies a field inside one does not claim the
/// structure.
pub(crate) fn field_set(schema: &Schema, value: &Value) -> Set {
    let mut set = Set::default();
    node(schema, schema.root(), value, &mut set);
    set
}

/// Collects what is below a node; answers whether the node itself is a leaf.
fn node(schema: &Schema, of: TypeRef, value: &Value, below: &mut Set) -> bool {
    match shape_of(schema.resolve(of), Some(value)) {
        Shape::Scalar(_) => true,
        Shape::Map(map) => {
            if let (false, Value::Object(fields)) = (map.atomic, value) {
                collect_fields(schema, map, fields, below);
            }
            map.atomic
        }
        Shape::List(list) => {
            if let (true, Value::Array(items)) = (list.associative, value) {
                items_of(schema, list, items, below);
            }
            !list.associative
        }
        Shape::Nothing => false,
    }
}

fn collect_fields(
    schema: &Schema,
    map: &Map,
    fields: &serde_json::Map<String, Value>,
    set: &mut Set,
) {
    for (name, value) in value::entries(fields) {
        let mut below = Set::default();
        let declared = map.field(name);
        let of = declared.map_or(map.element, |field| field.of);
        let leaf = node(schema, of, value, &mut below);
        let empty = match value {
            Value::Null => true,
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        };
        let element = PathElement::field(name);
        if leaf || empty || declared.is_none() {
            set.insert_member(element.clone());
        }
        set.insert_child(element, below);
    }
}

fn items_of(schema: &Schema, list: &List, items: &[Value], set: &mut Set) {
    let mut groups: BTreeMap<PathElement, (&Value, bool)> = BTreeMap::new();
    for item in items {
        let element = identify(schema, list, item).unwrap_or(PathElement::Unidentified);
        groups.entry(element).and_modify(|(_, repeated)| *repeated = true).or_insert((item, false));
    }
    for (element, (item, repeated)) in groups {
        let mut below = Set::default();
        // Items that share an identity are owned together, whole.
        if !repeated {
            node(schema, list.element, item, &mut below);
        }
        set.insert_member(element.clone());
        set.insert_child(element, below);
    }
}
