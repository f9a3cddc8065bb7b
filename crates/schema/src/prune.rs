//! Fields the schema does not know
//!
//! A server drops what it cannot describe, unless the schema says to preserve it, and tells the
//! writer which paths it dropped when asked to warn or to be strict. Type and object metadata
//! are not the schema's business: they are left alone at the root and in embedded resources.

use std::fmt::Write as _;

use serde_json::Value;

use super::node::{Additional, Flags, Node};
use crate::object::findings::Findings;

/// What kind of object is being pruned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Root {
    /// A whole object: `apiVersion`, `kind` and `metadata` are kept.
    #[default]
    Resource,
    /// Some value inside one.
    Value,
}

/// Removes unknown fields and returns their paths, sorted; all are removed, but not all told.
pub(crate) fn prune(node: &Node, value: &mut Value, root: Root) -> Vec<String> {
    let mut pruner = Pruner { path: String::new(), unknown: Findings::default() };
    let embedded = root == Root::Resource || node.has(Flags::EMBEDDED);
    pruner.prune_as(value, Some(node), embedded);
    let mut unknown = pruner.unknown.into_paths();
    unknown.sort();
    unknown
}

/// Prunes a default as it would be pruned below a list that preserves unknown fields.
pub(crate) fn prune_below(node: &Node, value: &mut Value, preserved: bool) {
    let mut pruner = Pruner { path: String::new(), unknown: Findings::default() };
    if preserved {
        pruner.preserve(value, node, node.has(Flags::EMBEDDED));
    } else {
        pruner.prune_as(value, Some(node), node.has(Flags::EMBEDDED));
    }
}

struct Pruner {
    path: String,
    unknown: Findings,
}

pub(crate) fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

/// What the schema says about a field.
#[derive(Clone, Copy)]
enum Known<'a> {
    Nothing,
    Allowed,
    As(&'a Node),
}

fn known<'a>(node: &'a Node, name: &str) -> Known<'a> {
    match (node.property(name), &node.additional) {
        (Some(schema), _) | (None, Additional::Schema(schema)) => Known::As(schema),
        (None, Additional::Allowed | Additional::Denied) => Known::Allowed,
        (None, Additional::Absent) => Known::Nothing,
    }
}

impl Pruner {
    fn prune(&mut self, value: &mut Value, node: Option<&Node>) {
        self.prune_as(value, node, node.is_some_and(|node| node.has(Flags::EMBEDDED)));
    }

    fn prune_as(&mut self, value: &mut Value, node: Option<&Node>, embedded: bool) {
        if let Some(node) = node.filter(|node| node.has(Flags::PRESERVE)) {
            return self.preserve(value, node, embedded);
        }
        match value {
            Value::Object(map) => {
                let length = self.path.len();
                map.retain(|name, value| {
                    if node.is_some() && embedded && is_meta(name) {
                        return true;
                    }
                    let known = node.map_or(Known::Nothing, |node| known(node, name));
                    self.enter(name);
                    match known {
                        Known::As(schema) => self.prune(value, Some(schema)),
                        Known::Allowed => self.prune(value, None),
                        Known::Nothing if length == 0 && node.is_some() && is_meta(name) => {}
                        Known::Nothing => self.unknown.add(&self.path),
                    }
                    self.path.truncate(length);
                    !matches!(known, Known::Nothing)
                });
            }
            Value::Array(items) => {
                let schema = node.and_then(|node| node.items.as_deref());
                self.each(items, |pruner, item| pruner.prune(item, schema));
            }
            _ => {}
        }
    }

    /// Keeps unknown fields here, and prunes below the known ones.
    fn preserve(&mut self, value: &mut Value, node: &Node, embedded: bool) {
        match value {
            Value::Object(map) => {
                let length = self.path.len();
                for (name, value) in map.iter_mut() {
                    if embedded && is_meta(name) {
                        continue;
                    }
                    self.enter(name);
                    match known(node, name) {
                        Known::As(schema) => self.prune(value, Some(schema)),
                        Known::Allowed => self.prune(value, None),
                        Known::Nothing => {}
                    }
                    self.path.truncate(length);
                }
            }
            Value::Array(items) => {
                let Some(schema) = node.items.as_deref() else { return };
                let embedded = schema.has(Flags::EMBEDDED);
                self.each(items, |pruner, item| pruner.preserve(item, schema, embedded));
            }
            _ => {}
        }
    }

    fn each(&mut self, items: &mut [Value], mut visit: impl FnMut(&mut Self, &mut Value)) {
        let length = self.path.len();
        for (i, item) in items.iter_mut().enumerate() {
            _ = write!(self.path, "[{i}]");
            visit(self, item);
            self.path.truncate(length);
        }
    }

    fn enter(&mut self, name: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
    }
}
