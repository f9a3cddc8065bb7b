//! Lists that merge: sets, and maps in the form of lists.

use super::path::Path;
use super::{Schema, Walk};
use std::collections::HashSet;
use yaml::Node;

impl Walk<'_, '_> {
    /// Checks `x-kubernetes-list-type` and what it demands of the items.
    pub(super) fn lists(&mut self, node: &Node<'_>, schema: &Schema<'_, '_>, path: &Path<'_>) {
        let keys = schema.list_keys.map(Node::items).unwrap_or_default();
        let Some(list_type) = schema.list_type else {
            if !keys.is_empty() {
                let what = "has x-kubernetes-list-map-keys without x-kubernetes-list-type: map";
                self.say(node.position, path, what);
            }
            return;
        };
        if schema.type_name() != "array" {
            let what = "has x-kubernetes-list-type but is not an array";
            self.say(list_type.position, path, what);
        }
        if list_type.as_str() != Some("map") && !keys.is_empty() {
            let what = "has x-kubernetes-list-map-keys but is not a list of type map";
            self.say(list_type.position, path, what);
        }
        let items = schema.items.map(Schema::read);
        match (list_type.as_str(), items) {
            (Some("atomic"), _) | (Some("set" | "map"), None) => {}
            (Some("set"), Some(items)) => self.set(schema, &items, path),
            (Some("map"), Some(items)) => self.map(list_type, keys, &items, path),
            _ => {
                let hint = "write atomic, set or map";
                let what = "has an unknown x-kubernetes-list-type";
                self.advise(list_type.position, path, what, hint);
            }
        }
    }

    /// The items of a set must be comparable as a whole.
    fn set(&mut self, schema: &Schema<'_, '_>, items: &Schema<'_, '_>, path: &Path<'_>) {
        let Some(at) = schema.items.map(|node| node.position) else {
            return;
        };
        let text =
            |node: Option<&Node<'_>>| node.and_then(Node::as_str).unwrap_or_default().to_owned();
        let whole = match items.type_name() {
            "array" => matches!(text(items.list_type).as_str(), "" | "atomic"),
            "object" => text(items.map_type) == "atomic",
            _ => true,
        };
        if !whole {
            self.say(at, &path.child("items"), "must be atomic to be in a set");
        }
        if items.nullable {
            self.say(at, &path.child("items"), "must not be nullable to be in a set");
        }
    }

    /// The items of a map must be objects that always have their keys.
    fn map(
        &mut self,
        list_type: &Node<'_>,
        keys: &[Node<'_>],
        items: &Schema<'_, '_>,
        path: &Path<'_>,
    ) {
        let at = list_type.position;
        if keys.is_empty() {
            self.say(at, path, "is a list of type map without x-kubernetes-list-map-keys");
        }
        if items.type_name() != "object" {
            self.say(at, &path.child("items"), "must be of type object in a list of type map");
            return;
        }
        if items.nullable {
            self.say(at, &path.child("items"), "must not be nullable in a list of type map");
        }
        // A key that is named twice is looked at once, which also bounds the work.
        let mut seen = HashSet::new();
        for key in keys {
            if seen.insert(key.as_str()) {
                self.map_key(key, items, path);
            } else {
                self.say(key.position, path, "names a list map key twice");
            }
        }
    }

    fn map_key(&mut self, key: &Node<'_>, items: &Schema<'_, '_>, path: &Path<'_>) {
        let name = key.as_str().unwrap_or_default();
        let Some(field) = items.fields().iter().find(|field| field.key == name) else {
            let what = format!("has list map key {name:?}, which its items do not have");
            self.say(key.position, path, &what);
            return;
        };
        let schema = Schema::read(&field.value);
        let listed = items.required.map(Node::items).unwrap_or_default().iter();
        let required = listed.filter_map(Node::as_str).any(|one| one == name);
        if matches!(schema.type_name(), "array" | "object") {
            let what = format!("has list map key {name:?}, which is not a scalar");
            self.say(key.position, path, &what);
        }
        if !required && schema.default.is_none() {
            let what =
                format!("has list map key {name:?}, which is neither required nor defaulted");
            self.say(key.position, path, &what);
        }
        if schema.nullable {
            let what = format!("has list map key {name:?}, which is nullable");
            self.say(key.position, path, &what);
        }
    }
}
