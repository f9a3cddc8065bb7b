//! Lists that are sets or maps
//!
//! Elements of a set, and keys of a map, must not repeat. The first repetition of each is
//! reported; a missing key is a key like any other.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::error::{ERRORS_MAX, FieldError, Path};
use super::node::{Flags, ListType, Node};
use super::text;

/// Checks every list at or below a value.
pub(crate) fn check(node: &Node, value: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    if !node.has(Flags::HOLDS_LISTS) || errors.len() >= ERRORS_MAX {
        return;
    }
    match value {
        Value::Object(map) => {
            if let Some(schema) = node.additional_schema() {
                for (name, value) in map {
                    check(schema, value, &path.key(name), errors);
                }
            }
            for (name, schema) in &node.properties {
                if let Some(value) = map.get(name.as_ref()) {
                    check(schema, value, &path.child(name), errors);
                }
            }
        }
        Value::Array(items) => {
            match node.list.as_deref() {
                Some(ListType::Set) => {
                    let keys = items.iter().map(Key::of);
                    for i in repeated(keys).into_iter().take(ERRORS_MAX) {
                        errors.push(FieldError::duplicate(&path.index(i), items[i].clone()));
                    }
                }
                Some(ListType::Map(keys)) => check_map(keys, items, path, errors),
                _ => {}
            }
            if let Some(schema) = &node.items {
                for (i, item) in items.iter().enumerate() {
                    check(schema, item, &path.index(i), errors);
                }
            }
        }
        _ => {}
    }
}

fn check_map(keys: &[Arc<str>], items: &[Value], path: &Path, errors: &mut Vec<FieldError>) {
    if let Some(i) = items.iter().position(|item| !(item.is_null() || item.is_object())) {
        let detail = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(&path.index(i), items[i].clone(), detail));
        return;
    }
    if items.len() <= 1 {
        return;
    }
    let key_of = |item: &Value| -> Map<String, Value> {
        let pick = |key: &Arc<str>| Some((key.to_string(), item.get(key.as_ref())?.clone()));
        keys.iter().filter_map(pick).collect()
    };
    let own: Vec<Value> = items.iter().map(|item| Value::Object(key_of(item))).collect();
    let single = keys.first().filter(|_| keys.len() == 1);
    let compared = own.iter().map(|key| match single {
        Some(name) => key.get(name.as_ref()).map_or(Key::Missing, Key::of),
        None => Key::of(key),
    });
    for i in repeated(compared).into_iter().take(ERRORS_MAX) {
        errors.push(FieldError::duplicate(&path.index(i), own[i].clone()));
    }
}

/// A value as far as repetition is concerned.
#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    Missing,
    Scalar(&'a Value),
    Compound(String),
}

impl<'a> Key<'a> {
    fn of(value: &'a Value) -> Self {
        match value {
            Value::Object(_) | Value::Array(_) => Self::Compound(text::json(value)),
            scalar => Self::Scalar(scalar),
        }
    }
}

/// The positions where a key occurs for the second time.
fn repeated<'a>(keys: impl Iterator<Item = Key<'a>>) -> Vec<usize> {
    let mut seen: HashMap<Key<'a>, usize> = HashMap::new();
    let mut positions = Vec::new();
    for (i, key) in keys.enumerate() {
        let times = seen.entry(key).or_insert(0);
        *times += 1;
        if *times == 2 {
            positions.push(i);
        }
    }
    positions
}
