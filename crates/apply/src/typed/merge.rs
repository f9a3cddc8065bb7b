//! Puts a configuration over an object.
//!
//! Leaves of the configuration win, maps are united, and lists whose items have identities are
//! merged item by item. Nothing is removed here. Both sides fit the schema, and the
//! configuration repeats no item, so merging cannot fail.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use super::{Shape, identify, narrow, shape};
use crate::fieldpath::PathElement;
use crate::types::{List, Map, Schema, TypeRef};
use crate::value;

static NULL: Value = Value::Null;

/// The object with the configuration merged in.
pub(crate) fn merge(schema: &Schema, live: &Value, config: &Value) -> Value {
    node(schema, schema.root(), Some(live), Some(config)).unwrap_or(Value::Null)
}

fn node(
    schema: &Schema,
    of: TypeRef,
    live: Option<&Value>,
    config: Option<&Value>,
) -> Option<Value> {
    // A branch that only one side has is copied as it is.
    let (Some(live), Some(applied)) = (live, config) else { return config.or(live).cloned() };
    let Some(atom) = schema.resolve(of) else { return Some(applied.clone()) };
    match shape(atom, narrow(atom, config)) {
        Shape::Map(map) => Some(merge_maps(schema, map, live, applied)),
        Shape::List(list) => merge_lists(schema, list, live, applied),
        Shape::Scalar(_) | Shape::Nothing => Some(applied.clone()),
    }
}

fn merge_maps(schema: &Schema, map: &Map, live: &Value, config: &Value) -> Value {
    let (old, new) = (live.as_object(), config.as_object());
    let empty = old.is_none_or(serde_json::Map::is_empty);
    if map.atomic || (empty && new.is_none_or(serde_json::Map::is_empty)) {
        return config.clone();
    }
    let most = old.map_or(0, serde_json::Map::len).max(new.map_or(0, serde_json::Map::len));
    let mut out = serde_json::Map::with_capacity(most);
    for (name, held) in old.into_iter().flatten() {
        let applied = new.and_then(|new| new.get(name));
        let merged = node(schema, map.type_of(name), Some(held), applied);
        out.extend(merged.map(|merged| (name.clone(), merged)));
    }
    for (name, applied) in new.into_iter().flatten() {
        if old.is_some_and(|old| old.contains_key(name)) {
            continue;
        }
        let merged = node(schema, map.type_of(name), None, Some(applied));
        out.extend(merged.map(|merged| (name.clone(), merged)));
    }
    Value::Object(out)
}

fn merge_lists(schema: &Schema, list: &List, live: &Value, config: &Value) -> Option<Value> {
    let (old, new) = (live.as_array(), config.as_array());
    let empty = old.is_none_or(Vec::is_empty) && new.is_none_or(Vec::is_empty);
    if !list.associative || empty || value::equal(live, config) {
        return Some(config.clone());
    }
    let out = Zip::new(schema, list, old, new).run();
    (!out.is_empty()).then_some(Value::Array(out))
}

/// Merges two lists by identity, keeping the configuration's order among the items it mentions
/// and leaving the others where they were.
struct Zip<'a> {
    schema: &'a Schema,
    list: &'a List,
    old: Vec<(PathElement, &'a Value)>,
    new: Vec<(PathElement, &'a Value)>,
    old_values: BTreeMap<PathElement, &'a Value>,
    new_values: BTreeMap<PathElement, &'a Value>,
    merged: BTreeSet<PathElement>,
    /// The items of both lists, in the configuration's order, not yet passed.
    shared: VecDeque<PathElement>,
    out: Vec<Value>,
}

impl<'a> Zip<'a> {
    fn new(
        schema: &'a Schema,
        list: &'a List,
        old: Option<&'a Vec<Value>>,
        new: Option<&'a Vec<Value>>,
    ) -> Self {
        let identified = |items: Option<&'a Vec<Value>>| -> Vec<(PathElement, &'a Value)> {
            let identity = |item| Some((identify(schema, list, item).ok()?, item));
            items.into_iter().flatten().filter_map(identity).collect()
        };
        let (old, new) = (identified(old), identified(new));
        let mut old_values: BTreeMap<PathElement, &'a Value> = BTreeMap::new();
        for (element, item) in &old {
            // Items that share an identity are not merged with the new value, but replaced.
            old_values.entry(element.clone()).and_modify(|item| *item = &NULL).or_insert(item);
        }
        let shared = new.iter().map(|(element, _)| element);
        let shared = shared.filter(|element| old_values.contains_key(element)).cloned().collect();
        let new_values = new.iter().cloned().collect();
        let out = Vec::with_capacity(old.len().max(new.len()));
        let merged = BTreeSet::new();
        Self { schema, list, old, new, old_values, new_values, merged, shared, out }
    }

    fn run(mut self) -> Vec<Value> {
        let (mut i, mut j) = (0, 0);
        while i < self.old.len() || j < self.new.len() {
            if let (Some((old, _)), Some((new, _))) = (self.old.get(i), self.new.get(j)) {
                if old == new {
                    let element = old.clone();
                    self.take_new(&element);
                    self.shared.pop_front();
                    i += 1;
                    j += 1;
                    continue;
                }
                let wanted = self.shared.front();
                if self.new_values.contains_key(old) && wanted.is_some_and(|next| next != old) {
                    // Mentioned by the configuration, but its turn comes later.
                    i += 1;
                    continue;
                }
            }
            if let Some((element, item)) = self.old.get(i) {
                if !self.new_values.contains_key(element) {
                    self.out.push((*item).clone());
                    i += 1;
                    continue;
                } else if self.merged.contains(element) {
                    i += 1;
                }
            }
            if let Some((element, _)) = self.new.get(j) {
                let element = element.clone();
                self.take_new(&element);
                j += 1;
                if self.shared.front() == Some(&element) {
                    self.shared.pop_front();
                }
            }
        }
        self.out
    }

    /// Takes an item of the configuration, merged with its old twin if there is one.
    fn take_new(&mut self, element: &PathElement) {
        let old = self.old_values.get(element).copied();
        let new = self.new_values.get(element).copied();
        self.out.extend(node(self.schema, self.list.element, old, new));
        self.merged.insert(element.clone());
    }
}
