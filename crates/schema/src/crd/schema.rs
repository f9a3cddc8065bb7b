//! The schema of a version, rule by rule

use std::collections::HashSet;

use serde_json::{Value, json};

use super::super::error::{ERRORS_MAX, FieldError, Path};
use super::super::structural::{self, below, flag, list, properties, text};
use super::field_path::field_path;
use super::{Options, defaulted, expressions, internal};

/// One run over a schema.
pub(super) struct Check<'a> {
    pub(super) options: &'a Options,
    pub(super) structural: bool,
    /// The version has a status subresource.
    pub(super) status: bool,
}

/// What is different in some part of a schema.
#[derive(Clone, Default)]
struct Place {
    forbidden_defaults: Option<String>,
    inside_meta: bool,
}

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// What may stand at the root when the status has a subresource of its own.
const AT_ROOT: [&str; 22] = [
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

impl Check<'_> {
    /// Checks a schema below the path of its holder.
    pub(super) fn run(&self, schema: &Value, holder: &Path, errors: &mut Vec<FieldError>) {
        // Paths cost more than the checks, and most schemas are sound.
        let mut untold = Vec::new();
        self.check_schema(schema, &Path::UNTOLD, &mut untold);
        if !untold.is_empty() {
            self.check_schema(schema, holder, errors);
        }
    }

    fn check_schema(&self, schema: &Value, holder: &Path, errors: &mut Vec<FieldError>) {
        let path = holder.child("openAPIV3Schema");
        let before = errors.len();
        if self.status {
            check_root(schema, holder, errors);
        }
        if flag(schema, "nullable") {
            let path = holder.child("openAPIV3Schema.nullable");
            errors.push(FieldError::forbidden(&path, "nullable cannot be true at the root"));
        }
        let unsupported = self.structural && is_unsupported(schema);
        let rules = self.structural && !unsupported;
        if self.structural && !unsupported {
            let faults = structural::check(schema, &path);
            if faults.is_empty() {
                defaulted::check(schema, &path, self.options.pruned_defaults, errors);
            }
            errors.extend(faults);
        }
        self.walk(schema, &path, &Place::default(), true, errors);
        if rules && errors.len() == before {
            expressions::check(schema, &path, errors);
        }
        if unsupported && errors.len() == before {
            // Every other unsupported field has been reported by name.
            let detail = "OpenAPIV3Schema 'schema' is not supported";
            errors.push(FieldError::invalid(&path, "", detail));
        }
    }

    fn walk(
        &self,
        schema: &Value,
        path: &Path,
        place: &Place,
        root: bool,
        errors: &mut Vec<FieldError>,
    ) {
        match Plainness::of(schema) {
            _ if errors.len() >= ERRORS_MAX => return,
            Plainness::Leaf => return,
            Plainness::Parent => {
                self.walk_fields(schema, path, place, root, errors);
                if let Some(items) = below(schema, "items") {
                    self.walk(items, &path.child("items"), place, false, errors);
                }
                return;
            }
            Plainness::Not => {}
        }
        self.check_standard(schema, path, place, errors);
        if flag(schema, "uniqueItems") {
            let detail =
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            errors.push(FieldError::forbidden(&path.child("uniqueItems"), detail));
        }
        self.walk_fields(schema, path, place, root, errors);
        if let Some(not) = below(schema, "not") {
            self.walk(not, &path.child("not"), place, false, errors);
        }
        for junctor in ["allOf", "oneOf", "anyOf"] {
            for (i, branch) in list(schema, junctor).iter().enumerate() {
                self.walk(branch, &path.child(junctor).index(i), place, false, errors);
            }
        }
        for (name, definition) in entries(schema, "definitions") {
            self.walk(definition, &path.child("definitions").key(name), place, false, errors);
        }
        if let Some(items) = below(schema, "items") {
            self.walk(items, &path.child("items"), place, false, errors);
        }
        for (i, items) in list(schema, "items").iter().enumerate() {
            self.walk(items, &path.child("items").index(i), place, false, errors);
        }
        for (name, dependency) in entries(schema, "dependencies").filter(|(_, d)| d.is_object()) {
            self.walk(dependency, &path.child("dependencies").key(name), place, false, errors);
        }
        self.check_topology(schema, path, errors);
        let rules = list(schema, "x-kubernetes-validations");
        let compiles = !rules.is_empty() && !is_unsupported(schema);
        for (i, rule) in rules.iter().enumerate() {
            let path = path.child("x-kubernetes-validations").index(i);
            check_rule(rule, Some(schema).filter(|_| compiles), &path, errors);
        }
    }

    fn walk_fields(
        &self,
        schema: &Value,
        path: &Path,
        place: &Place,
        root: bool,
        errors: &mut Vec<FieldError>,
    ) {
        let additional = schema.get("additionalProperties").filter(|value| !value.is_null());
        if let Some(additional) = additional {
            let path = path.child("additionalProperties");
            if *additional != true && !properties(schema).is_empty() {
                let detail = "additionalProperties and properties are mutual exclusive";
                errors.push(FieldError::forbidden(&path, detail));
            }
            if additional.is_object() {
                let mut place = place.clone();
                if place.inside_meta {
                    let reason = "inside additionalProperties applying to object metadata";
                    place.forbidden_defaults = Some(reason.to_owned());
                }
                self.walk(additional, &path, &place, false, errors);
            }
        }
        let resource = root || flag(schema, "x-kubernetes-embedded-resource");
        for (name, property) in properties(schema) {
            let mut place = place.clone();
            if resource && matches!(name.as_str(), "metadata" | "kind" | "apiVersion") {
                place.inside_meta = true;
                if root {
                    place.forbidden_defaults = Some(format!("in top-level {name}"));
                }
            }
            self.walk(property, &path.child("properties").key(name), &place, false, errors);
        }
    }

    fn check_standard(
        &self,
        schema: &Value,
        path: &Path,
        place: &Place,
        errors: &mut Vec<FieldError>,
    ) {
        let kind = text(schema, "type");
        if self.options.valid_types && has_invalid_type(schema) {
            errors.push(FieldError::not_supported(&path.child("type"), kind, TYPES));
        }
        let mut forbid = |name: &str, detail: &str| {
            errors.push(FieldError::forbidden(&path.child(name), detail));
        };
        if let Some(reason) = place.forbidden_defaults.as_ref().filter(|_| has_default(schema)) {
            forbid("default", &format!("must not be set {reason}"));
        }
        let present = |name: &str| schema.get(name).is_some_and(|value| !value.is_null());
        let filled = |name: &str| entries(schema, name).next().is_some();
        for (name, found) in [
            ("id", !text(schema, "id").is_empty()),
            ("additionalItems", present("additionalItems")),
            ("patternProperties", filled("patternProperties")),
            ("definitions", filled("definitions")),
            ("dependencies", present("dependencies")),
            ("$ref", present("$ref")),
        ] {
            if found {
                forbid(name, &format!("{name} is not supported"));
            }
        }
        if kind == "null" {
            forbid("type", "type cannot be set to null, use nullable as an alternative");
        }
        if !list(schema, "items").is_empty() {
            forbid("items", "items must be a schema object and not an array");
        }
        if place.inside_meta && flag(schema, "x-kubernetes-embedded-resource") {
            forbid("x-kubernetes-embedded-resource", "must not be used inside of resource meta");
        }
    }

    /// Preserved fields, map types and list types.
    fn check_topology(&self, schema: &Value, path: &Path, errors: &mut Vec<FieldError>) {
        const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
        if schema.get(PRESERVE) == Some(&json!(false)) {
            errors.push(FieldError::invalid(
                &path.child(PRESERVE),
                false,
                "must be true or undefined",
            ));
        }
        let kind = text(schema, "type");
        let wrong_kind = |wanted: &str, name: &str| {
            let detail = format!("must be {wanted} if {name} is specified");
            match kind {
                "" => FieldError::required(&path.child("type"), detail),
                kind => FieldError::invalid(&path.child("type"), kind, detail),
            }
        };
        if let Some(map_type) = schema.get("x-kubernetes-map-type").and_then(Value::as_str) {
            let name = "x-kubernetes-map-type";
            if kind != "object" {
                errors.push(wrong_kind("object", name));
            }
            if !matches!(map_type, "atomic" | "granular") {
                let supported = ["atomic", "granular"];
                errors.push(FieldError::not_supported(&path.child(name), map_type, supported));
            }
        }
        let list_type = schema.get("x-kubernetes-list-type").and_then(Value::as_str);
        if list_type.is_some() && kind != "array" {
            errors.push(wrong_kind("array", "x-kubernetes-list-type"));
        } else if let Some(name) = non_atomic_set(schema).filter(|_| self.options.atomic_sets) {
            // The server shows the list type whichever is wrong.
            let items = schema.get("items").and_then(|items| items.get("x-kubernetes-list-type"));
            let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
            let shown = items.cloned().unwrap_or(Value::Null);
            let error = FieldError::invalid(&path.child("items").child(name), shown, detail);
            errors.push(error.with_field_order());
        }
        check_list_type(schema, list_type, path, errors);
        if self.options.map_keys {
            check_map_keys(schema, path, errors);
        }
    }
}

/// Whether a schema says only what no rule of this module is about. Nearly all do, and one pass
/// over what they say is much cheaper than asking for all that they might say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plainness {
    /// Nothing to check, here or below.
    Leaf,
    /// Nothing to check here; it has fields or items.
    Parent,
    Not,
}

impl Plainness {
    fn of(schema: &Value) -> Self {
        let Some(map) = schema.as_object() else { return Self::Not };
        let mut found = Self::Leaf;
        for (key, value) in map {
            match key.as_str() {
                "type" if value.as_str().is_some_and(|kind| TYPES.contains(&kind)) => {}
                "description" | "title" | "format" | "enum" | "required" | "nullable"
                | "pattern" | "minimum" | "maximum" | "minLength" | "maxLength" | "minItems"
                | "maxItems" => {}
                "properties" => found = Self::Parent,
                "items" if value.is_object() => found = Self::Parent,
                _ => return Self::Not,
            }
        }
        found
    }
}

fn entries<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    schema.get(key).and_then(Value::as_object).into_iter().flatten()
}

fn check_root(schema: &Value, holder: &Path, errors: &mut Vec<FieldError>) {
    let zero = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    for (name, inner, shape) in internal::FIELDS {
        let pointer = matches!(
            shape,
            internal::Shape::Raw | internal::Shape::Float | internal::Shape::SchemaOrFlag
        );
        let set = |value: &Value| if pointer { !value.is_null() } else { !zero(value) };
        if !schema.get(name).is_some_and(set) {
            continue;
        }
        if name == "type" && text(schema, "type") != "object" {
            let path = holder.child("openAPIV3Schema.type");
            let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
            return errors.push(FieldError::invalid(&path, text(schema, "type"), detail));
        }
        if !AT_ROOT.contains(&inner) {
            let detail = format!(
                "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
                AT_ROOT.join(" ")
            );
            let path = holder.child("openAPIV3Schema");
            let error = FieldError::invalid(&path, internal::schema(schema), detail);
            return errors.push(error.with_field_order());
        }
    }
}

/// Whether a schema says something the compiled form cannot hold.
pub(super) fn is_unsupported(schema: &Value) -> bool {
    let is_refused = |(key, value): (&String, &Value)| match key.as_str() {
        "id" | "$schema" | "$ref" => value.as_str().is_some_and(|text| !text.is_empty()),
        "patternProperties" | "dependencies" | "definitions" => {
            value.as_object().is_some_and(|map| !map.is_empty())
        }
        "additionalItems" => !value.is_null(),
        "items" => value.as_array().is_some_and(|items| !items.is_empty()),
        "x-kubernetes-preserve-unknown-fields" => *value == false,
        _ => false,
    };
    any(schema, &|schema| schema.as_object().is_some_and(|map| map.iter().any(is_refused)))
}

/// Whether a schema or any below it has a property.
pub(super) fn any(schema: &Value, test: &dyn Fn(&Value) -> bool) -> bool {
    let below = |(key, value): (&String, &Value)| match (key.as_str(), value) {
        ("items" | "not" | "additionalProperties" | "additionalItems", Value::Object(_)) => {
            any(value, test)
        }
        ("items" | "allOf" | "anyOf" | "oneOf", Value::Array(all)) => {
            all.iter().any(|schema| any(schema, test))
        }
        (
            "properties" | "patternProperties" | "definitions" | "dependencies",
            Value::Object(all),
        ) => all.values().any(|schema| any(schema, test)),
        _ => false,
    };
    test(schema) || schema.as_object().is_some_and(|map| map.iter().any(below))
}

pub(super) fn has_default(schema: &Value) -> bool {
    schema.get("default").is_some_and(|default| !default.is_null())
}

pub(super) fn has_default_or_extension(schema: &Value) -> bool {
    let present = |name: &str| schema.get(name).is_some_and(|value| !value.is_null());
    has_default(schema)
        || flag(schema, "x-kubernetes-embedded-resource")
        || flag(schema, "x-kubernetes-int-or-string")
        || present("x-kubernetes-preserve-unknown-fields")
        || present("x-kubernetes-list-type")
        || !list(schema, "x-kubernetes-list-map-keys").is_empty()
        || !list(schema, "x-kubernetes-validations").is_empty()
}

pub(super) fn has_invalid_type(schema: &Value) -> bool {
    let kind = text(schema, "type");
    !kind.is_empty() && !TYPES.contains(&kind)
}

/// Which field of a set's items should say that they are atomic, and does not.
pub(super) fn non_atomic_set(schema: &Value) -> Option<&'static str> {
    let items =
        below(schema, "items").filter(|_| text(schema, "x-kubernetes-list-type") == "set")?;
    match text(items, "type") {
        "array" => {
            let wrong = !matches!(text(items, "x-kubernetes-list-type"), "" | "atomic");
            wrong.then_some("x-kubernetes-list-type")
        }
        "object" if text(items, "x-kubernetes-map-type") != "atomic" => {
            Some("x-kubernetes-map-type")
        }
        _ => None,
    }
}

pub(super) fn has_invalid_map_keys(schema: &Value) -> bool {
    let mut errors = Vec::new();
    check_map_keys(schema, &Path::NIL, &mut errors);
    !errors.is_empty()
}

/// So many keys of a list are shown by the errors about them: each error shows all.
const KEYS_SHOWN_MAX: usize = 100;

fn check_list_type(
    schema: &Value,
    list_type: Option<&str>,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    const TYPE: &str = "x-kubernetes-list-type";
    const KEYS: &str = "x-kubernetes-list-map-keys";
    if let Some(list_type) = list_type.filter(|t| !matches!(*t, "atomic" | "set" | "map")) {
        let supported = ["atomic", "set", "map"];
        errors.push(FieldError::not_supported(&path.child(TYPE), list_type, supported));
    }
    let keys = list(schema, KEYS);
    if !keys.is_empty() && list_type != Some("map") {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            None => FieldError::required(&path.child(TYPE), detail),
            Some(other) => FieldError::invalid(&path.child(TYPE), other, detail),
        });
    }
    if list_type != Some("map") {
        return;
    }
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(&path.child(KEYS), detail));
    }
    let items_path = path.child("items");
    let Some(items) = below(schema, "items") else {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        return errors.push(FieldError::required(&items_path, detail));
    };
    let kind = text(items, "type");
    if kind != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        return errors.push(FieldError::invalid(&items_path.child("type"), kind, detail));
    }
    let mut seen = HashSet::new();
    let shown = Value::from(keys.get(..KEYS_SHOWN_MAX).unwrap_or(keys));
    for key in keys {
        if errors.len() >= ERRORS_MAX {
            return;
        }
        let name = key.as_str().unwrap_or_default();
        let mut refuse = |detail: &str| {
            errors.push(FieldError::invalid(&path.child(KEYS), shown.clone(), detail));
        };
        match items.get("properties").and_then(|properties| properties.get(name)) {
            None => refuse("entries must all be names of item properties"),
            Some(key) if matches!(text(key, "type"), "array" | "object") => {
                let path = items_path.child("properties").key(name).child("type");
                let detail =
                    "must be a scalar type if parent array's x-kubernetes-list-type is map";
                errors.push(FieldError::invalid(&path, kind, detail));
            }
            Some(_) => {}
        }
        if !seen.insert(name) {
            let detail = "must not contain duplicate entries";
            errors.push(FieldError::invalid(&path.child(KEYS), shown.clone(), detail));
        }
    }
}

/// Elements of sets and maps are there, and keys of maps too.
fn check_map_keys(schema: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let list_type = text(schema, "x-kubernetes-list-type");
    let Some(items) = below(schema, "items").filter(|_| matches!(list_type, "set" | "map")) else {
        return;
    };
    let path = path.child("items");
    if flag(items, "nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(&path.child("nullable"), detail));
    }
    for key in list(schema, "x-kubernetes-list-map-keys").iter().filter(|_| list_type == "map") {
        let name = key.as_str().unwrap_or_default();
        let Some(property) = items.get("properties").and_then(|p| p.get(name)) else { continue };
        let path = path.child("properties").key(name);
        if !list(items, "required").contains(key) && !has_default(property) {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(&path.child("default"), detail));
        }
        if flag(property, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(&path.child("nullable"), detail));
        }
    }
}

/// Reasons a rule may give.
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// The form of a rule; and whether it leads to a field, if the schema can be compiled.
fn check_rule(rule: &Value, schema: Option<&Value>, path: &Path, errors: &mut Vec<FieldError>) {
    let breaks = |text: &str| text.contains(['\n', '\r']);
    let (message, trimmed) = (text(rule, "message"), text(rule, "message").trim());
    let expression = text(rule, "rule").trim();
    let message_path = path.child("message");
    if expression.is_empty() {
        errors.push(FieldError::required(&path.child("rule"), "rule is not specified"));
    } else if !message.is_empty() && trimmed.is_empty() {
        errors.push(FieldError::invalid(&message_path, message, "must be non-empty if specified"));
    } else if breaks(trimmed) {
        errors.push(FieldError::invalid(&message_path, message, "must not contain line breaks"));
    } else if breaks(expression) && trimmed.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(&message_path, detail));
    }
    let message_expression = text(rule, "messageExpression");
    if !message_expression.is_empty() && message_expression.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(&path.child("messageExpression"), detail));
    }
    if let Some(reason) =
        rule.get("reason").and_then(Value::as_str).filter(|r| !REASONS.contains(r))
    {
        errors.push(FieldError::not_supported(&path.child("reason"), reason, REASONS));
    }
    let field = text(rule, "fieldPath");
    let mut refuse = |detail: &str| {
        errors.push(FieldError::invalid(&path.child("fieldPath"), field, detail));
    };
    if !field.is_empty() && field.trim().is_empty() {
        refuse("must be non-empty if specified");
    }
    if breaks(field) {
        refuse("must not contain line breaks");
    }
    if let Some(schema) = schema.filter(|_| !field.is_empty())
        && field_path(field, schema, true).is_err()
    {
        refuse("must be a valid path");
    }
}
