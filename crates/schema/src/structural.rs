//! What makes a schema structural
//!
//! Every value must have one type, said in one place, so that pruning and defaulting have an
//! answer; the branches of `allOf`, `anyOf`, `oneOf` and `not` may only restrict values. The
//! faults are those of the server, sorted by text as it sorts them.

use serde_json::{Map, Value};

use super::error::{ERRORS_MAX, FieldError, Path};
use super::pattern;

/// Where in a schema a node is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Everything that keeps a schema from being structural.
pub(crate) fn check(schema: &Value, path: &Path) -> Vec<FieldError> {
    let mut checker = Checker { errors: Vec::new() };
    checker.invariants(schema, Level::Root, path);
    checker.completeness(schema, Some(schema), path, path);
    let mut errors = checker.errors;
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

struct Checker {
    errors: Vec<FieldError>,
}

pub(crate) fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or(false)
}

pub(crate) fn list<'a>(schema: &'a Value, key: &str) -> &'a [Value] {
    schema.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The properties of a schema, sorted by name.
pub(crate) fn properties(schema: &Value) -> Vec<(&String, &Value)> {
    let map = schema.get("properties").and_then(Value::as_object);
    let mut properties: Vec<(&String, &Value)> = map.into_iter().flatten().collect();
    properties.sort_by_key(|(name, _)| *name);
    properties
}

/// A subschema, where there is one.
pub(crate) fn below<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    schema.get(key).filter(|value| value.is_object())
}

impl Checker {
    fn forbid(&mut self, path: &Path, detail: &str) {
        self.push(|| FieldError::forbidden(path, detail));
    }

    fn require(&mut self, path: &Path, detail: &str) {
        self.push(|| FieldError::required(path, detail));
    }

    fn invalidate(&mut self, path: &Path, value: impl Into<Value>, detail: &str) {
        self.push(|| FieldError::invalid(path, value, detail));
    }

    fn push(&mut self, error: impl FnOnce() -> FieldError) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(error());
        }
    }

    fn invariants(&mut self, schema: &Value, level: Level, path: &Path) {
        if level != Level::Root && is_plain_leaf(schema) {
            return;
        }
        if text(schema, "type") == "array" && below(schema, "items").is_none() {
            self.require(&path.child("items"), "must be specified");
        }
        if let Some(items) = below(schema, "items") {
            self.invariants(items, Level::Item, &path.child("items"));
        }
        for (name, property) in properties(schema) {
            self.invariants(property, Level::Field, &path.child("properties").key(name));
        }
        let additional = schema.get("additionalProperties").filter(|value| !value.is_null());
        if additional.is_some() {
            let path = path.child("additionalProperties");
            if level == Level::Root {
                self.forbid(&path, "must not be used at the root");
            }
            if let Some(schema) = below(schema, "additionalProperties") {
                self.invariants(schema, Level::Field, &path);
            }
            if flag(schema, "x-kubernetes-embedded-resource") {
                self.forbid(&path, "must not be used if x-kubernetes-embedded-resource is set");
            }
        }
        self.extensions(schema, path);
        let skip_any_of = is_int_or_string(list(schema, "anyOf"));
        let skip_all_of = list(schema, "allOf")
            .first()
            .is_some_and(|first| is_int_or_string(list(first, "anyOf")));
        self.value_validation(schema, skip_any_of, skip_all_of, level, path);
        self.types(schema, level, path);
        self.metadata(schema, level, path);
    }

    fn extensions(&mut self, schema: &Value, path: &Path) {
        if !flag(schema, "x-kubernetes-int-or-string") {
            return;
        }
        for name in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if flag(schema, name) {
                let detail = "must be false if x-kubernetes-int-or-string is true";
                self.invalidate(&path.child(name), true, detail);
            }
        }
    }

    fn types(&mut self, schema: &Value, level: Level, path: &Path) {
        let kind = text(schema, "type");
        let path = path.child("type");
        let untyped = kind.is_empty()
            && !flag(schema, "x-kubernetes-int-or-string")
            && !flag(schema, "x-kubernetes-preserve-unknown-fields");
        if flag(schema, "x-kubernetes-embedded-resource") && kind != "object" {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            if kind.is_empty() {
                self.require(&path, detail);
            } else {
                self.invalidate(&path, kind, detail);
            }
        } else if untyped {
            let detail = match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            };
            self.require(&path, detail);
        }
        if level == Level::Root && !kind.is_empty() && kind != "object" {
            self.invalidate(&path, kind, "must be object at the root");
        }
    }

    fn metadata(&mut self, schema: &Value, level: Level, path: &Path) {
        let embedded = flag(schema, "x-kubernetes-embedded-resource");
        let resource = level == Level::Root || embedded;
        let properties = schema.get("properties").and_then(Value::as_object);
        let property = |name: &str| properties.and_then(|properties| properties.get(name));
        let path_of = |name: &str| path.child("properties").key(name);
        for name in ["kind", "apiVersion"] {
            if let Some(property) =
                property(name).filter(|p| resource && text(p, "type") != "string")
            {
                let kind = text(property, "type");
                self.invalidate(&path_of(name).child("type"), kind, "must be string");
            }
        }
        if let Some(metadata) = property("metadata") {
            let path = path_of("metadata");
            if resource && text(metadata, "type") != "object" {
                self.invalidate(&path.child("type"), text(metadata, "type"), "must be object");
            }
            if level == Level::Root && !says_only_names(metadata) {
                let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
                self.forbid(&path, detail);
            }
        }
        let empty = properties.is_none_or(Map::is_empty);
        if embedded && empty && !flag(schema, "x-kubernetes-preserve-unknown-fields") {
            let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
            self.require(&path.child("properties"), detail);
        }
    }

    fn value_validation(
        &mut self,
        schema: &Value,
        skip_any_of: bool,
        skip_all_of: bool,
        level: Level,
        path: &Path,
    ) {
        for junctor in ["anyOf", "allOf", "oneOf"] {
            if junctor == "anyOf" && skip_any_of {
                continue;
            }
            for (i, branch) in list(schema, junctor).iter().enumerate() {
                let skip = junctor == "allOf" && skip_all_of && i == 0;
                self.nested(branch, skip, level, &path.child(junctor).index(i));
            }
        }
        if let Some(not) = below(schema, "not") {
            self.nested(not, false, level, &path.child("not"));
        }
        let source = text(schema, "pattern");
        if !source.is_empty()
            && let Err(error) = pattern::check(source)
        {
            let detail = format!("must be a valid regular expression, but isn't: {error}");
            self.invalidate(&path.child("pattern"), source, &detail);
        }
    }

    fn nested(&mut self, branch: &Value, skip_any_of: bool, level: Level, path: &Path) {
        self.value_validation(branch, skip_any_of, false, level, path);
        if let Some(items) = below(branch, "items") {
            self.nested(items, false, level, &path.child("items"));
        }
        for (name, property) in properties(branch) {
            let path = path.child("properties").key(name);
            self.nested(property, false, Level::Field, &path);
        }
        let additional = branch.get("additionalProperties");
        if additional.is_some_and(|value| value.is_object() || *value == true) {
            self.forbid(&path.child("additionalProperties"), "must be undefined to be structural");
        }
        for (name, detail) in NESTED {
            if branch.get(name).is_some_and(|value| !is_zero(value)) {
                self.forbid(&path.child(name), detail);
            }
        }
        let properties = branch.get("properties");
        if properties.and_then(|properties| properties.get("metadata")).is_some() {
            let path = path.child("properties").key("metadata");
            self.forbid(&path, "must not be specified in a nested context");
        }
    }

    /// Whatever a branch restricts must be specified outside of it.
    fn completeness(&mut self, v: &Value, s: Option<&Value>, s_path: &Path, v_path: &Path) {
        if let Some(not) = below(v, "not") {
            self.nested_completeness(not, s, s_path, &v_path.child("not"));
        }
        for junctor in ["anyOf", "allOf", "oneOf"] {
            for (i, branch) in list(v, junctor).iter().enumerate() {
                self.nested_completeness(branch, s, s_path, &v_path.child(junctor).index(i));
            }
        }
    }

    fn nested_completeness(&mut self, v: &Value, s: Option<&Value>, s_path: &Path, v_path: &Path) {
        let Some(s) = s else {
            return self.require(s_path, &format!("because it is defined in {v_path}"));
        };
        self.completeness(v, Some(s), s_path, v_path);
        if let Some(items) = below(v, "items") {
            let (s_path, v_path) = (s_path.child("items"), v_path.child("items"));
            self.nested_completeness(items, below(s, "items"), &s_path, &v_path);
        }
        for (name, property) in properties(v) {
            let s_path = s_path.child("properties").key(name);
            let v_path = v_path.child("properties").key(name);
            let known = s.get("properties").and_then(|properties| properties.get(name));
            self.nested_completeness(property, known, &s_path, &v_path);
        }
    }
}

/// Whether a schema says its type, what it is for and which values it allows, and nothing else.
/// Most do, and nothing keeps these from being structural.
fn is_plain_leaf(schema: &Value) -> bool {
    let Some(map) = schema.as_object() else { return false };
    let is_plain = |(key, value): (&String, &Value)| match key.as_str() {
        "type" => matches!(value.as_str(), Some("boolean" | "integer" | "number" | "string")),
        "description" | "title" | "format" | "enum" | "nullable" | "default" | "minimum"
        | "maximum" | "minLength" | "maxLength" => true,
        _ => false,
    };
    map.contains_key("type") && map.iter().all(is_plain)
}

/// What branches must not say.
const NESTED: [(&str, &str); 12] = [
    ("type", "must be empty to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
];

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(_) | Value::Bool(true) | Value::Number(_) => false,
    }
}

/// `[{type: integer}, {type: string}]`, the one place where branches have types.
pub(crate) fn is_int_or_string(any_of: &[Value]) -> bool {
    let only = |branch: &Value, kind: &str| {
        text(branch, "type") == kind
            && branch
                .as_object()
                .is_some_and(|map| map.iter().all(|(k, v)| k == "type" || is_zero(v)))
    };
    matches!(any_of, [first, second] if only(first, "integer") && only(second, "string"))
}

/// Whether the schema of an object's metadata restricts nothing but the names.
fn says_only_names(metadata: &Value) -> bool {
    let names = |properties: &Value| {
        properties
            .as_object()
            .is_some_and(|map| map.keys().all(|k| k == "name" || k == "generateName"))
    };
    metadata.as_object().is_some_and(|map| {
        map.iter().all(|(key, value)| match key.as_str() {
            "type" | "default" => true,
            "properties" => names(value),
            "additionalProperties" => value.is_null(),
            _ => is_zero(value),
        })
    })
}
