//! Conditions inside a schema: `allOf`, `anyOf`, `oneOf`, `not`.
//!
//! A condition may restrict values but not describe them: no types, defaults or descriptions,
//! and, at the root, nothing about fields that the schema outside does not have. There is one exception, the
//! idiom for values that are an integer or a string, which spells out both types.

use super::path::Path;
use super::{Schema, Walk};
use std::collections::HashMap;
use yaml::{Entry, Node, Value};

impl Walk<'_, '_> {
    /// Checks the conditions of a schema; `shape` is the schema that describes the values, or
    /// nothing where it does not matter what the conditions restrict.
    pub(super) fn conditions(
        &mut self,
        shape: Option<&Node<'_>>,
        schema: &Schema<'_, '_>,
        path: &Path<'_>,
    ) {
        // Most schemas have none.
        let lists = [("anyOf", schema.any_of), ("allOf", schema.all_of), ("oneOf", schema.one_of)];
        for (keyword, list) in lists {
            let Some(list) = list else { continue };
            if keyword == "anyOf" && is_int_or_string(list) {
                continue;
            }
            for (index, one) in list.items().iter().enumerate() {
                let idiom = keyword == "allOf" && index == 0;
                self.condition(one, shape, idiom, &path.item(keyword, index));
            }
        }
        if let Some(not) = schema.not {
            self.condition(not, shape, false, &path.child("not"));
        }
    }

    /// Checks one condition, and against the schema outside if there is one.
    fn condition(
        &mut self,
        node: &Node<'_>,
        shape: Option<&Node<'_>>,
        idiom: bool,
        path: &Path<'_>,
    ) {
        if !matches!(node.value, Value::Mapping(_)) {
            self.say(node.position, path, "is not a schema");
            return;
        }
        let mut schema = Schema::read(node);
        self.keywords(&schema, path);
        self.mixed(&schema, path);
        for entry in node.entries().iter().filter(|entry| describes(entry)) {
            let what = format!("must not have {} inside a condition", entry.key);
            let hint = "describe values outside of allOf, anyOf, oneOf and not";
            self.advise(entry.position, path, &what, hint);
        }
        self.described_fields(&schema, shape, path);
        if idiom && schema.any_of.is_some_and(is_int_or_string) {
            schema.any_of = None;
        }
        self.conditions(shape, &schema, path);
    }

    /// Checks that what a condition restricts exists outside.
    fn described_fields(
        &mut self,
        schema: &Schema<'_, '_>,
        shape: Option<&Node<'_>>,
        path: &Path<'_>,
    ) {
        // Looked up by name, so that a hostile schema cannot make this quadratic.
        let described = match schema.fields() {
            [] => HashMap::new(),
            _ => by_name(shape.and_then(|shape| shape.get("properties"))),
        };
        for field in schema.fields() {
            let path = path.properties(&field.key);
            if field.key == "metadata" {
                let what = "must not be restricted inside a condition";
                self.say(field.position, &path, what);
            }
            let outside = described.get(field.key.as_ref()).copied();
            if shape.is_some() && outside.is_none() {
                let hint = "add it to the properties of the schema that has the condition";
                let what = "is restricted by a condition but not described outside";
                self.advise(field.position, &path, what, hint);
            }
            self.condition(&field.value, outside, false, &path);
        }
        if let Some(items) = schema.items {
            let outside = shape.and_then(|shape| shape.get("items"));
            if shape.is_some() && outside.is_none() {
                let what = "is restricted by a condition but not described outside";
                self.say(items.position, &path.child("items"), what);
            }
            self.condition(items, outside, false, &path.child("items"));
        }
    }
}

fn by_name<'n, 'a>(properties: Option<&'n Node<'a>>) -> HashMap<&'n str, &'n Node<'a>> {
    let entries = properties.map(Node::entries).unwrap_or_default().iter();
    entries.map(|entry| (entry.key.as_ref(), &entry.value)).collect()
}

/// Whether an entry describes values instead of restricting them.
fn describes(entry: &Entry<'_>) -> bool {
    let set = entry.value.as_bool() == Some(true);
    let filled = !entry.value.is_null() && entry.value.as_str() != Some("");
    match entry.key.as_ref() {
        "type"
        | "title"
        | "description"
        | "default"
        | "x-kubernetes-list-type"
        | "x-kubernetes-map-type" => filled,
        "additionalProperties" => filled && entry.value.as_bool() != Some(false),
        "x-kubernetes-list-map-keys" | "x-kubernetes-validations" => {
            !entry.value.items().is_empty()
        }
        "nullable"
        | "x-kubernetes-preserve-unknown-fields"
        | "x-kubernetes-embedded-resource"
        | "x-kubernetes-int-or-string" => set,
        _ => false,
    }
}

/// Whether an `anyOf` is exactly `[{type: integer}, {type: string}]`.
fn is_int_or_string(any_of: &Node<'_>) -> bool {
    let only = |node: &Node<'_>, name: &str| matches!(node.entries(), [entry] if entry.key == "type" && entry.value.as_str() == Some(name));
    matches!(any_of.items(), [first, second] if only(first, "integer") && only(second, "string"))
}
