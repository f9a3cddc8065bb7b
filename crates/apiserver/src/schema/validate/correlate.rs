//! What a value was before
//!
//! A fault at a place that did not change is not the writer's doing, and since Kubernetes 1.30
//! it does not stop a write. A place can be compared when the way to it is the same in both
//! objects: by field, and by key in lists of type map. Other lists are one value.
//!
//! "Unchanged" has the server's quirks: an object with a field the schema does not know never
//! counts as unchanged, and a map-list does when its elements only moved.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::schema::node::{ListType, Node};

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

    /// An element, if its former self can be told by key.
    pub(crate) fn index(self, index: usize) -> Option<Self> {
        let (Value::Array(new), Value::Array(old)) = (self.new, self.old) else { return None };
        let Some(ListType::Map(keys)) = self.node.list.as_deref() else { return None };
        let new = new.get(index)?;
        Some(Self { new, old: find(keys, new.as_object()?, old)?, node: self.node.items.as_ref()? })
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
                (0..new.len()).all(|i| self.index(i).is_some_and(Self::unchanged))
            }
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len()
                    && new.keys().all(|name| self.key(name).is_some_and(Self::unchanged))
            }
            (new, old) => new == old,
        }
    }
}

/// The element with the same keys, all of them present and scalar.
pub(crate) fn find<'a>(
    keys: &[Arc<str>],
    wanted: &Map<String, Value>,
    items: &'a [Value],
) -> Option<&'a Value> {
    let scalar = |value: &Value| !(value.is_null() || value.is_array() || value.is_object());
    if keys.is_empty() || !keys.iter().all(|key| wanted.get(key.as_ref()).is_some_and(scalar)) {
        return None;
    }
    let same = |item: &Map<String, Value>| {
        keys.iter().all(|key| item.get(key.as_ref()) == wanted.get(key.as_ref()))
    };
    items.iter().find(|item| item.as_object().is_some_and(same))
}
