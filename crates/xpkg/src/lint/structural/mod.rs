//! Structural schemas: the form in which the API server accepts an `OpenAPI` schema.
//!
//! A structural schema says what every value *is* outside of any condition: each property, item
//! and additional property has a type. Conditions (`allOf`, `anyOf`, `oneOf`, `not`) may only
//! restrict values further, and only what was said outside; they are the business of [`nested`].
//!
//! The walk sees every node of every schema of a package, often tens of megabytes, so it reads
//! each mapping once into a [`Schema`] of borrowed parts, and keeps the path as a chain on the
//! stack that is only written out when there is something to report.

mod lists;
mod nested;
mod path;
#[cfg(test)]
mod tests;

use super::findings::Findings;
use super::rules::Rule;
use path::Path;
use yaml::{Entry, Node, Position, Value};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
/// Fields of the root that belong to Kubernetes.
const RESERVED: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Checks the schema of one version; findings carry the given rule.
pub(super) fn check(schema: &Node<'_>, rule: &Rule, findings: &mut Findings<'_>) {
    let mut walk = Walk { rule, findings };
    walk.schema(schema, Level::Root, &Path::root("openAPIV3Schema"));
}

/// Where in a schema a schema stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// The parts of one schema, read in a single pass over its mapping.
#[derive(Default)]
struct Schema<'n, 'a> {
    kind: Option<&'n Node<'a>>,
    items: Option<&'n Node<'a>>,
    properties: Option<&'n Node<'a>>,
    additional: Option<&'n Entry<'a>>,
    required: Option<&'n Node<'a>>,
    default: Option<&'n Entry<'a>>,
    nullable: bool,
    any_of: Option<&'n Node<'a>>,
    all_of: Option<&'n Node<'a>>,
    one_of: Option<&'n Node<'a>>,
    not: Option<&'n Node<'a>>,
    int_or_string: Option<&'n Entry<'a>>,
    preserve: Option<&'n Entry<'a>>,
    embedded: Option<&'n Entry<'a>>,
    list_type: Option<&'n Node<'a>>,
    list_keys: Option<&'n Node<'a>>,
    map_type: Option<&'n Node<'a>>,
    validations: Option<&'n Node<'a>>,
    /// Keywords that no schema may use. Rarely filled, so it rarely allocates.
    forbidden: Vec<&'n Entry<'a>>,
}

impl<'n, 'a> Schema<'n, 'a> {
    fn read(node: &'n Node<'a>) -> Self {
        let mut schema = Self::default();
        for entry in node.entries().iter().filter(|entry| !entry.value.is_null()) {
            schema.take(entry);
        }
        schema
    }

    fn take(&mut self, entry: &'n Entry<'a>) {
        let value = &entry.value;
        let set = value.as_bool() == Some(true);
        match entry.key.as_ref() {
            "type" => self.kind = Some(value),
            "items" => self.items = Some(value),
            "properties" => self.properties = Some(value),
            "additionalProperties" => self.additional = Some(entry),
            "required" => self.required = Some(value),
            "default" => self.default = Some(entry),
            "nullable" => self.nullable = set,
            "anyOf" => self.any_of = Some(value),
            "allOf" => self.all_of = Some(value),
            "oneOf" => self.one_of = Some(value),
            "not" => self.not = Some(value),
            "x-kubernetes-int-or-string" if set => self.int_or_string = Some(entry),
            "x-kubernetes-preserve-unknown-fields" => self.preserve = Some(entry),
            "x-kubernetes-embedded-resource" if set => self.embedded = Some(entry),
            "x-kubernetes-list-type" => self.list_type = Some(value),
            "x-kubernetes-list-map-keys" => self.list_keys = Some(value),
            "x-kubernetes-map-type" => self.map_type = Some(value),
            "x-kubernetes-validations" => self.validations = Some(value),
            "$ref" | "dependencies" | "additionalItems" => self.forbidden.push(entry),
            "definitions" | "patternProperties" if !value.entries().is_empty() => {
                self.forbidden.push(entry);
            }
            "id" | "$schema" if value.as_str() != Some("") => self.forbidden.push(entry),
            "uniqueItems" if set => self.forbidden.push(entry),
            _ => {}
        }
    }

    /// The type's name; empty when there is none.
    fn type_name(&self) -> &'n str {
        self.kind.and_then(Node::as_str).unwrap_or_default()
    }

    fn fields(&self) -> &'n [Entry<'a>] {
        self.properties.map(Node::entries).unwrap_or_default()
    }
}

/// A walk through one schema.
struct Walk<'w, 'f> {
    rule: &'w Rule,
    findings: &'w mut Findings<'f>,
}

impl Walk<'_, '_> {
    fn say(&mut self, at: Position, path: &Path<'_>, what: &str) {
        self.findings.say(self.rule, at, format!("{path} {what}"));
    }

    fn advise(&mut self, at: Position, path: &Path<'_>, what: &str, hint: &str) {
        self.findings.advise(self.rule, at, format!("{path} {what}"), hint);
    }

    fn schema(&mut self, node: &Node<'_>, level: Level, path: &Path<'_>) {
        if !matches!(node.value, Value::Mapping(_)) {
            self.say(node.position, path, "is not a schema");
            return;
        }
        let schema = Schema::read(node);
        self.keywords(&schema, path);
        self.kind(node, &schema, level, path);
        self.extensions(&schema, path);
        self.lists(node, &schema, path);
        self.validations(&schema, path);
        if level == Level::Root && schema.nullable {
            self.say(node.position, path, "must not be nullable at the root");
        }
        if level == Level::Root || schema.embedded.is_some() {
            self.reserved(&schema, level, path);
        }
        self.children(&schema, level, path);
        // The server asks what conditions restrict only where they stand at the root.
        let shape = Some(node).filter(|_| level == Level::Root);
        self.conditions(shape, &schema, path);
    }

    /// Reports keywords that no schema may use.
    fn keywords(&mut self, schema: &Schema<'_, '_>, path: &Path<'_>) {
        for entry in &schema.forbidden {
            let at = entry.position;
            match entry.key.as_ref() {
                "uniqueItems" => {
                    let hint = "use x-kubernetes-list-type: set";
                    self.advise(at, path, "must not set uniqueItems", hint);
                }
                "$ref" => self.advise(at, path, "must not use $ref", "write the schema in place"),
                key => self.say(at, path, &format!("must not use {key}")),
            }
        }
        if let Some(preserve) = schema.preserve.filter(|entry| entry.value.as_bool() != Some(true))
        {
            let what = "may only set x-kubernetes-preserve-unknown-fields to true";
            self.say(preserve.position, path, what);
        }
    }

    /// Checks the type: its presence, its name, and what it demands.
    fn kind(&mut self, node: &Node<'_>, schema: &Schema<'_, '_>, level: Level, path: &Path<'_>) {
        let Some(kind) = schema.kind.filter(|kind| kind.as_str() != Some("")) else {
            let open = schema.int_or_string.is_some() || schema.preserve.is_some();
            if !open || schema.embedded.is_some() {
                let hint = "every property and item of a structural schema has a type";
                self.advise(node.position, path, "has no type", hint);
            }
            return;
        };
        match kind.as_str() {
            Some("array") if schema.items.is_none() => {
                self.say(node.position, path, "is an array without items");
            }
            Some(name) if TYPES.contains(&name) => {}
            _ => {
                let hint = format!("write one of {}; nullable: true allows null", TYPES.join(", "));
                self.advise(kind.position, path, "has an unknown type", &hint);
            }
        }
        let object = kind.as_str() == Some("object");
        if level == Level::Root && !object {
            self.say(kind.position, path, "must be of type object at the root");
        } else if schema.embedded.is_some() && !object {
            self.say(kind.position, path, "must be of type object to embed a resource");
        }
    }

    fn extensions(&mut self, schema: &Schema<'_, '_>, path: &Path<'_>) {
        if let Some(entry) = schema.int_or_string {
            let others = [schema.preserve, schema.embedded];
            for other in others.into_iter().flatten() {
                let what = format!("must not combine {} with {}", other.key, entry.key);
                self.say(other.position, path, &what);
            }
        }
        if let Some(map_type) = schema.map_type {
            if !matches!(map_type.as_str(), Some("atomic" | "granular")) {
                let hint = "write atomic or granular";
                self.advise(map_type.position, path, "has an unknown x-kubernetes-map-type", hint);
            }
            if schema.type_name() != "object" {
                let what = "has x-kubernetes-map-type but is not an object";
                self.say(map_type.position, path, what);
            }
        }
        if let Some(entry) = schema.embedded.filter(|_| schema.preserve.is_none())
            && schema.fields().is_empty()
        {
            let what = "embeds a resource but says nothing about its fields";
            let hint = "set x-kubernetes-preserve-unknown-fields: true";
            self.advise(entry.position, path, what, hint);
        }
    }

    /// Checks that CEL rules have a text; what the text means is for the API server.
    fn validations(&mut self, schema: &Schema<'_, '_>, path: &Path<'_>) {
        for rule in schema.validations.map(Node::items).unwrap_or_default() {
            let text = rule.get("rule").and_then(Node::as_str).unwrap_or_default().trim();
            let message = rule.get("message").and_then(Node::as_str).unwrap_or_default().trim();
            if text.is_empty() {
                self.say(rule.position, path, "has an x-kubernetes-validations item without rule");
            } else if text.contains('\n') && message.is_empty() {
                let what = "has a validation rule of several lines, which needs a message";
                self.say(rule.position, path, what);
            } else if message.contains('\n') {
                self.say(rule.position, path, "has a validation message of several lines");
            }
        }
    }

    /// Checks the fields that Kubernetes itself defines.
    fn reserved(&mut self, schema: &Schema<'_, '_>, level: Level, path: &Path<'_>) {
        for field in schema.fields().iter().filter(|one| RESERVED.contains(&one.key.as_ref())) {
            let wanted = if field.key == "metadata" { "object" } else { "string" };
            let at = field.value.get("type").unwrap_or(&field.value);
            let path = path.properties(&field.key);
            if at.as_str() != Some(wanted) {
                self.say(at.position, &path, &format!("must be of type {wanted}"));
            }
            if level != Level::Root {
                continue;
            }
            if let Some(default) = field.value.entry("default") {
                self.say(default.position, &path, "must not have a default");
            }
            if field.key == "metadata" {
                self.metadata(&field.value, &path);
            }
        }
    }

    /// At the root, metadata may only restrict the name.
    fn metadata(&mut self, node: &Node<'_>, path: &Path<'_>) {
        let named = |key: &str| matches!(key, "name" | "generateName");
        let blank = |entry: &Entry<'_>| entry.value.as_str() == Some("");
        for entry in node.entries() {
            let fine = match entry.key.as_ref() {
                "type" | "default" => true,
                "properties" => entry.value.entries().iter().all(|field| named(&field.key)),
                // An empty or false value says nothing.
                _ => matches!(entry.value.value, Value::Null | Value::Bool(false)) || blank(entry),
            };
            if !fine {
                let what = "may only restrict name and generateName";
                let hint = "Kubernetes defines the rest of metadata";
                self.advise(entry.position, path, what, hint);
            }
        }
    }

    fn children(&mut self, schema: &Schema<'_, '_>, level: Level, path: &Path<'_>) {
        match schema.items {
            Some(items) if matches!(items.value, Value::Sequence(_)) => {
                self.say(items.position, path, "has a list of items; only one schema is allowed");
            }
            Some(items) => self.schema(items, Level::Item, &path.child("items")),
            None => {}
        }
        for field in schema.fields() {
            self.schema(&field.value, Level::Field, &path.properties(&field.key));
        }
        let Some(additional) = schema.additional else {
            return;
        };
        let at = additional.position;
        if level == Level::Root {
            self.say(at, path, "must not use additionalProperties at the root");
        }
        if schema.embedded.is_some() {
            self.say(at, path, "must not use additionalProperties where a resource is embedded");
        }
        self.mixed(schema, path);
        if additional.value.as_bool().is_none() {
            self.schema(&additional.value, Level::Field, &path.child("additionalProperties"));
        }
    }

    /// Reports an object with both known fields and others.
    fn mixed(&mut self, schema: &Schema<'_, '_>, path: &Path<'_>) {
        let additional = schema.additional.filter(|entry| entry.value.as_bool() != Some(true));
        if let Some(entry) = additional.filter(|_| !schema.fields().is_empty()) {
            let hint = "an object has either known fields or keys of its user's choice";
            let what = "has both properties and additionalProperties";
            self.advise(entry.position, path, what, hint);
        }
    }
}
