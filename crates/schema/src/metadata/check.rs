//! Whether metadata holds what it may

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{OWNER_REFERENCE, read_meta};
use crate::error::{FieldError, Path};
use crate::names;
use crate::node::{Flags, Node};
use crate::text;

/// Checks embedded resources at or below a value.
pub(crate) fn check_embedded(
    node: &Node,
    value: &Value,
    path: &Path,
    root: bool,
    errors: &mut Vec<FieldError>,
) {
    if !root && !node.has(Flags::HOLDS_EMBEDDED) {
        return;
    }
    match value {
        Value::Object(map) => {
            if root || node.has(Flags::EMBEDDED) {
                check_resource(map, path, errors);
            }
            let mut names: Vec<&String> = map.keys().collect();
            names.sort();
            for name in names {
                if let Some(schema) = node.property(name) {
                    check_embedded(schema, &map[name], &path.child(name), false, errors);
                } else if let Some(schema) = node.additional_schema() {
                    check_embedded(schema, &map[name], &path.key(name), false, errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = node.items.as_deref() else { return };
            for (i, item) in items.iter().enumerate() {
                check_embedded(schema, item, &path.index(i), false, errors);
            }
        }
        _ => {}
    }
}

fn check_resource(map: &Map<String, Value>, path: &Path, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let path = path.child(name);
        match map.get(name) {
            None => errors.push(FieldError::required(&path, "")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(&path, "", "must not be empty"));
            }
            Some(Value::String(text)) => check_type_meta(name, text, &path, errors),
            Some(other) => {
                errors.push(FieldError::invalid(&path, other.clone(), "must be a string"));
            }
        }
    }
    let Some(metadata) = map.get("metadata") else { return };
    let path = path.child("metadata");
    match read_meta(metadata) {
        Err(error) => errors.push(FieldError::invalid(&path, metadata.clone(), error)),
        Ok((mut read, _)) => {
            read.entry("name").or_insert_with(|| Value::from("fakename"));
            let scope =
                if read.contains_key("namespace") { Scope::Namespaced } else { Scope::Cluster };
            let rule = |name: &str, prefix| NameRule::PathSegment.faults(name, prefix);
            check_meta(&read, scope, &rule, &path, errors);
        }
    }
}

fn check_type_meta(name: &str, text: &str, path: &Path, errors: &mut Vec<FieldError>) {
    if name == "apiVersion" {
        if text.matches('/').count() > 1 {
            let detail = format!("unexpected GroupVersion string: {text}");
            errors.push(FieldError::invalid(path, text, detail));
        }
        return;
    }
    let faults = names::label_1035(&text.to_lowercase());
    if !faults.is_empty() {
        let detail =
            format!("may have mixed case, but should otherwise match: {}", faults.join(","));
        errors.push(FieldError::invalid(path, text, detail));
    }
}

/// Where objects of a kind live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// In the cluster as a whole.
    Cluster,
}

/// What names of a kind look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// Anything that can be part of a path.
    PathSegment,
    /// A DNS subdomain, as for custom resources.
    Subdomain,
    /// A DNS label, as for namespaces.
    Label,
}

impl NameRule {
    /// What is wrong with a name, or with the beginning of one.
    pub(crate) fn faults(self, name: &str, prefix: bool) -> Vec<String> {
        // A generated suffix may follow a prefix: a trailing dash is judged as if it did.
        let masked = match name.strip_suffix('-').filter(|_| prefix && name.len() > 1) {
            Some(stem) => format!("{stem}a"),
            None => name.to_owned(),
        };
        match (self, prefix) {
            (Self::PathSegment, true) => names::path_segment_prefix(name),
            (Self::PathSegment, false) => names::path_segment(name),
            (Self::Subdomain, _) => names::subdomain(&masked),
            (Self::Label, _) => names::label(&masked),
        }
    }
}

/// Validates metadata that has been read.
pub(crate) fn check_meta(
    meta: &Map<String, Value>,
    scope: Scope,
    rule: &dyn Fn(&str, bool) -> Vec<String>,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    let text = |name: &str| meta.get(name).and_then(Value::as_str).unwrap_or_default();
    let (name, generate_name, namespace) = (text("name"), text("generateName"), text("namespace"));
    if !generate_name.is_empty() {
        push_all(errors, &path.child("generateName"), generate_name, rule(generate_name, true));
    }
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), "name or generateName is required"));
    } else {
        push_all(errors, &path.child("name"), name, rule(name, false));
    }
    let below = path.child("namespace");
    match (scope, namespace) {
        (Scope::Namespaced, "") => errors.push(FieldError::required(&below, "")),
        (Scope::Namespaced, _) => push_all(errors, &below, namespace, names::label(namespace)),
        (Scope::Cluster, "") => {}
        (Scope::Cluster, _) => {
            errors.push(FieldError::forbidden(&below, "not allowed on this type"));
        }
    }
    if let Some(generation) = meta.get("generation").and_then(Value::as_i64).filter(|g| *g < 0) {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&path.child("generation"), generation, detail));
    }
    check_labels(meta, path, errors);
    check_owners(meta, &path.child("ownerReferences"), errors);
    check_finalizers(meta, &path.child("finalizers"), errors);
    check_managed_fields(meta, &path.child("managedFields"), errors);
}

fn push_all(errors: &mut Vec<FieldError>, path: &Path, value: &str, faults: Vec<String>) {
    errors.extend(faults.into_iter().map(|fault| FieldError::invalid(path, value, fault)));
}

fn check_labels(meta: &Map<String, Value>, path: &Path, errors: &mut Vec<FieldError>) {
    let entries = |name: &str| meta.get(name).and_then(Value::as_object).into_iter().flatten();
    let labels = path.child("labels");
    for (key, value) in entries("labels") {
        push_all(errors, &labels, key, names::label_key(key));
        let value = value.as_str().unwrap_or_default();
        push_all(errors, &labels, value, names::label_value(value));
    }
    let annotations = path.child("annotations");
    let mut size = 0;
    for (key, value) in entries("annotations") {
        push_all(errors, &annotations, key, names::label_key(&key.to_lowercase()));
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > 256 << 10 {
        errors.push(FieldError::too_long(&annotations, 256 << 10));
    }
}

fn check_owners(meta: &Map<String, Value>, path: &Path, errors: &mut Vec<FieldError>) {
    let Some(owners) = meta.get("ownerReferences") else { return };
    let mut controller: Option<String> = None;
    for owner in owners.as_array().into_iter().flatten() {
        let text = |name: &str| owner.get(name).and_then(Value::as_str).unwrap_or_default();
        let version = match text("apiVersion").split('/').collect::<Vec<_>>().as_slice() {
            [version] | [_, version] => *version,
            _ => "",
        };
        if version.is_empty() {
            let detail = "version must not be empty";
            errors.push(FieldError::invalid(&path.child("apiVersion"), text("apiVersion"), detail));
        }
        for name in ["kind", "name", "uid"] {
            if text(name).is_empty() {
                errors.push(FieldError::invalid(&path.child(name), "", "must not be empty"));
            }
        }
        if text("apiVersion") == "v1" && text("kind") == "Event" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(FieldError::invalid(path, in_order(owner), detail).with_field_order());
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            let current = format!("{}/{}", text("kind"), text("name"));
            match &controller {
                None => controller = Some(current),
                Some(first) => {
                    let owners = owners.as_array().into_iter().flatten().map(in_order).collect();
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {current}"
                    );
                    errors.push(
                        FieldError::invalid(path, Value::Array(owners), detail).with_field_order(),
                    );
                }
            }
        }
    }
}

/// An owner reference with its fields in the order of the struct.
fn in_order(owner: &Value) -> Value {
    let fields = OWNER_REFERENCE.fields.iter();
    fields.filter_map(|(name, _)| Some(((*name).to_owned(), owner.get(name)?.clone()))).collect()
}

fn check_finalizers(meta: &Map<String, Value>, path: &Path, errors: &mut Vec<FieldError>) {
    let Some(list) = meta.get("finalizers") else { return };
    let finalizers: Vec<&str> =
        list.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for finalizer in &finalizers {
        push_all(errors, path, finalizer, names::label_key(finalizer));
    }
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(path, list.clone(), detail));
    }
}

fn check_managed_fields(meta: &Map<String, Value>, path: &Path, errors: &mut Vec<FieldError>) {
    let entries = meta.get("managedFields").and_then(Value::as_array).into_iter().flatten();
    for (i, entry) in entries.enumerate() {
        let path = path.index(i);
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        if !matches!(text("operation"), "Apply" | "Update") {
            let detail = "must be `Apply` or `Update`";
            errors.push(FieldError::invalid(&path.child("operation"), text("operation"), detail));
        }
        if !matches!(text("fieldsType"), "" | "FieldsV1") {
            let detail = "must be `FieldsV1`";
            errors.push(FieldError::invalid(&path.child("fieldsType"), text("fieldsType"), detail));
        }
        if text("manager").len() > 128 {
            errors.push(FieldError::too_long(&path.child("manager"), 128));
        }
        if text("subresource").len() > 256 {
            errors.push(FieldError::too_long(&path.child("subresource"), 256));
        }
    }
}

/// Validates metadata on update: what must stay, and what it holds. Finalizers are not looked
/// at, except that none may come to an object that is being deleted.
pub(crate) fn check_meta_update(
    new: &Map<String, Value>,
    old: &Map<String, Value>,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    let finalizers = |meta: &Map<String, Value>| -> BTreeSet<String> {
        let list = meta.get("finalizers").and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    if old.contains_key("deletionTimestamp") {
        let extra: Vec<String> =
            finalizers(new).difference(&finalizers(old)).map(|name| text::quote(name)).collect();
        if !extra.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                extra.join(", ")
            );
            errors.push(FieldError::forbidden(&path.child("finalizers"), detail));
        }
    }
    if !new.contains_key("resourceVersion") {
        let detail = "must be specified for an update";
        errors.push(FieldError::invalid(&path.child("resourceVersion"), "", detail));
    }
    let generation =
        |meta: &Map<String, Value>| meta.get("generation").and_then(Value::as_i64).unwrap_or(0);
    if generation(new) < generation(old) {
        let detail = "must not be decremented";
        errors.push(FieldError::invalid(&path.child("generation"), generation(new), detail));
    }
    for (name, text) in IMMUTABLE {
        if new.get(name) != old.get(name) {
            let missing = if text { Value::from("") } else { Value::Null };
            let value = new.get(name).cloned().unwrap_or(missing);
            errors.push(FieldError::invalid(&path.child(name), value, "field is immutable"));
        }
    }
    check_labels(new, path, errors);
    check_owners(new, &path.child("ownerReferences"), errors);
    check_managed_fields(new, &path.child("managedFields"), errors);
}

/// Fields that never change, and whether they are text.
const IMMUTABLE: [(&str, bool); 6] = [
    ("name", true),
    ("namespace", true),
    ("uid", true),
    ("creationTimestamp", false),
    ("deletionTimestamp", false),
    ("deletionGracePeriodSeconds", false),
];
