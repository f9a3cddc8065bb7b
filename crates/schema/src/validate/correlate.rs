//! What a value was before
//!
//! A fault at a place that did not change is not the writer's doing, and since Kubernetes 1.30
//! it does not stop a write. A place can be compared when the way to it is the same in both
//! objects: by field, and by key in lists of type map. Other lists are one value.
//!
//! "Unchanged" has the server's quirks: an object with a field the schema does not know never
//! counts as unchanged, and a map-list does when its elements only moved.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use crate::node::{ListType, Node};

/// A value, its former self and the schema that relates them.
#[derive(Clone, Copy)]
pub(crate) struct Correlated<'a> {
    new: &'a Value,
    old: &'a Value,
    node: &'a Node,
}

impl<'a> Correlated<'a> {
    pub(crate) fn new(node: &'a Node, new: &'a Value, old: &'a Value) -> Self {
        Self { new, old, node }
    }

    /// A field, if both have it and the schema knows it.
    pub(crate) fn key(self, name: &str) -> Option<Self> {
        let (Value::Object(new), Value::Object(old)) = (self.new, self.old) else { return None };
        Some(Self { new: new.get(name)?, old: old.get(name)?, node: self.node.field(name)? })
    }

    /// The former selves of elements, if they can be told by key.
    pub(crate) fn twins(self) -> Option<Twins<'a>> {
        let (Value::Array(new), Value::Array(old)) = (self.new, self.old) else { return None };
        let node = self.node.items.as_deref()?;
        Some(Twins { new, past: Past::of(self.node, old)?, node })
    }

    /// Where the value is: no two places have one address.
    pub(crate) fn address(self) -> usize {
        std::ptr::from_ref(self.new).addr()
    }

    /// Whether nothing changed at or below this place.
    pub(crate) fn unchanged(self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => {
                if new.len() != old.len() {
                    return false;
                }
                if !matches!(self.node.list.as_deref(), Some(ListType::Map(_))) {
                    return new == old;
                }
                let twins = self.twins();
                let unchanged = |i| twins.as_ref().and_then(|twins| twins.get(i));
                (0..new.len()).all(|i| unchanged(i).is_some_and(Self::unchanged))
            }
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len()
                    && new.keys().all(|name| self.key(name).is_some_and(Self::unchanged))
            }
            (new, old) => new == old,
        }
    }
}

/// The elements of a list and what they were before.
pub(crate) struct Twins<'a> {
    new: &'a [Value],
    past: Past<'a>,
    node: &'a Node,
}

impl<'a> Twins<'a> {
    /// An element, if it was there before.
    pub(crate) fn get(&self, index: usize) -> Option<Correlated<'a>> {
        let new = self.new.get(index)?;
        Some(Correlated { new, old: self.past.find(new)?, node: self.node })
    }
}

/// The elements of a list of type map as they were, by their keys. Made once for all elements:
/// looking through the whole list for each would take time quadratic in its length.
pub(crate) struct Past<'a> {
    keys: &'a [Arc<str>],
    items: HashMap<Vec<&'a Value>, &'a Value>,
}

impl<'a> Past<'a> {
    /// The elements of `old`, if it is a list of type map.
    pub(crate) fn of(node: &'a Node, old: &'a [Value]) -> Option<Self> {
        let Some(ListType::Map(keys)) = node.list.as_deref() else { return None };
        let mut items = HashMap::with_capacity(old.len());
        for item in old {
            if let Some(identity) = identity(keys, item) {
                items.entry(identity).or_insert(item);
            }
        }
        Some(Self { keys, items })
    }

    /// The element with the same keys, all of them present and scalar.
    pub(crate) fn find(&self, wanted: &Value) -> Option<&'a Value> {
        self.items.get(&identity(self.keys, wanted)?).copied()
    }
}

fn identity<'v>(keys: &[Arc<str>], item: &'v Value) -> Option<Vec<&'v Value>> {
    let scalar = |value: &&Value| !(value.is_null() || value.is_array() || value.is_object());
    let values = keys.iter().map(|key| item.as_object()?.get(key.as_ref()).filter(scalar));
    values.collect::<Option<Vec<_>>>().filter(|values| !values.is_empty())
}
