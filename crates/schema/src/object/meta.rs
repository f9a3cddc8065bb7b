//! The rules of `metadata`: what the server sets, what clients may, what must be valid.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::field_error::FieldError;
use super::findings::Findings;
use super::name::{self, NameRule};
use super::{is_deleting, meta_list, meta_text, metadata, metadata_mut};

/// The fields a client may write; everything else in `metadata` is unknown.
pub const FIELDS: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// The most bytes all annotations of an object may have together.
const ANNOTATIONS_MAX: usize = 256 << 10;

/// Drops what clients may not say and what says nothing, and names unknown keys.
pub fn tidy(object: &mut Value) -> Vec<String> {
    let metadata = metadata_mut(object);
    let mut unknown = Findings::default();
    for key in metadata.keys().filter(|key| !FIELDS.contains(&key.as_str())) {
        unknown.add(&format_args!("metadata.{key}"));
    }
    metadata.retain(|key, value| {
        let empty = match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Object(map) => map.is_empty(),
            Value::Array(list) => list.is_empty(),
            _ => false,
        };
        FIELDS.contains(&key.as_str()) && key != "selfLink" && !empty
    });
    unknown.into_paths()
}

/// What is wrong with the metadata of an object of a built-in kind that is to be made.
pub fn check(object: &Value, rule: NameRule) -> Vec<FieldError> {
    let mut wrong = check_custom(object, rule);
    for (at, finalizer) in meta_list(object, "finalizers").into_iter().enumerate() {
        check_standard(&format!("metadata.finalizers[{at}]"), finalizer, &mut wrong);
    }
    wrong
}

/// The same for a custom resource, whose finalizers may be anybody's.
pub fn check_custom(object: &Value, rule: NameRule) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    let generate = meta_text(object, "generateName");
    if !generate.is_empty() {
        // The generated part makes a trailing dash legal.
        let base =
            generate.strip_suffix('-').map_or(generate.to_owned(), |base| format!("{base}a"));
        for fault in name::check(rule, &base) {
            wrong.push(FieldError::invalid("metadata.generateName", &generate.into(), &fault));
        }
    }
    let name = meta_text(object, "name");
    if name.is_empty() {
        wrong.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        for fault in name::check(rule, name) {
            wrong.push(FieldError::invalid("metadata.name", &name.into(), &fault));
        }
    }
    check_owners(object, &mut wrong);
    check_finalizers(object, &mut wrong);
    let field = |name: &str| metadata(object).get(name);
    check_labels("metadata.labels", field("labels"), &mut wrong);
    check_annotations("metadata.annotations", field("annotations"), &mut wrong);
    wrong
}

/// What is wrong with an update's metadata, beyond what [`check`] says.
pub fn check_update(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    if is_deleting(old) {
        let before: HashSet<&str> = meta_list(old, "finalizers").into_iter().collect();
        let added: Vec<String> = meta_list(object, "finalizers")
            .into_iter()
            .filter(|one| !before.contains(*one))
            .map(|one| format!("{one:?}"))
            .collect();
        if !added.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{{{}}}",
                added.join(", ")
            );
            wrong.push(FieldError::forbidden("metadata.finalizers", &detail));
        }
    }
    for field in ["name", "namespace", "uid", "deletionTimestamp"] {
        let (old, new) = (metadata(old).get(field), metadata(object).get(field));
        if old != new {
            let path = format!("metadata.{field}");
            let value = new.cloned().unwrap_or(Value::Null);
            wrong.push(FieldError::invalid(&path, &value, "field is immutable"));
        }
    }
    wrong
}

fn check_owners(object: &Value, wrong: &mut Vec<FieldError>) {
    let owners = metadata(object).get("ownerReferences").and_then(Value::as_array);
    for owner in owners.into_iter().flatten() {
        let path = "metadata.ownerReferences";
        for field in ["apiVersion", "kind", "name", "uid"] {
            let value = owner.get(field).and_then(Value::as_str).unwrap_or_default();
            if value.is_empty() {
                let value = Value::String(String::new());
                let detail = if field == "apiVersion" {
                    "version must not be empty".to_owned()
                } else {
                    "must not be empty".to_owned()
                };
                wrong.push(FieldError::invalid(&format!("{path}.{field}"), &value, &detail));
            }
        }
        if is_event(owner) {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            wrong.push(FieldError::invalid(path, &in_order(owner), detail));
        }
    }
    let controls = |owner: &&Value| owner.get("controller") == Some(&Value::Bool(true));
    if owners.into_iter().flatten().filter(controls).count() > 1 {
        wrong.push(FieldError::invalid(
            "metadata.ownerReferences",
            &Value::Null,
            "Only one reference can have Controller set to true. Found \"true\" in references",
        ));
    }
}

/// Whether an owner reference names an event, which goes by itself and would take others along.
fn is_event(owner: &Value) -> bool {
    let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
    text("apiVersion") == "v1" && text("kind") == "Event"
}

/// An owner reference with its fields in the order of the struct.
fn in_order(owner: &Value) -> Value {
    let fields = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    fields.iter().filter_map(|name| Some(((*name).to_owned(), owner.get(name)?.clone()))).collect()
}

fn check_finalizers(object: &Value, wrong: &mut Vec<FieldError>) {
    let all = meta_list(object, "finalizers");
    if all.contains(&"orphan") && all.contains(&"foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        wrong.push(FieldError::invalid("metadata.finalizers", &all.into(), detail));
    }
    for finalizer in meta_list(object, "finalizers") {
        check_form("metadata.finalizers", finalizer, wrong);
    }
}

/// What is wrong with one finalizer: with its form, or with not being anybody's.
pub fn check_finalizer(path: &str, finalizer: &str, wrong: &mut Vec<FieldError>) {
    check_form(path, finalizer, wrong);
    check_standard(path, finalizer, wrong);
}

fn check_form(path: &str, finalizer: &str, wrong: &mut Vec<FieldError>) {
    for fault in name::check_qualified(finalizer) {
        wrong.push(FieldError::invalid(path, &finalizer.into(), &fault));
    }
}

fn check_standard(path: &str, finalizer: &str, wrong: &mut Vec<FieldError>) {
    let known = ["orphan", "foregroundDeletion", "kubernetes"].contains(&finalizer);
    if !known && !finalizer.contains('/') && name::check_qualified(finalizer).is_empty() {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        wrong.push(FieldError::invalid(path, &finalizer.into(), detail));
    }
}

/// What is wrong with the labels at this path, if there are any.
pub fn check_labels(path: &str, labels: Option<&Value>, wrong: &mut Vec<FieldError>) {
    for (key, value) in pairs(labels) {
        for fault in name::check_qualified(key) {
            wrong.push(FieldError::invalid(path, &key.as_str().into(), &fault));
        }
        for fault in name::check_label_value(value.as_str().unwrap_or_default()) {
            wrong.push(FieldError::invalid(path, value, &fault));
        }
    }
}

/// What is wrong with the annotations at this path, if there are any.
pub fn check_annotations(path: &str, annotations: Option<&Value>, wrong: &mut Vec<FieldError>) {
    let mut size = 0_usize;
    for (key, value) in pairs(annotations) {
        let own = key.len().saturating_add(value.as_str().unwrap_or_default().len());
        size = size.saturating_add(own);
        for fault in name::check_qualified(&key.to_lowercase()) {
            wrong.push(FieldError::invalid(path, &key.as_str().into(), &fault));
        }
    }
    if size > ANNOTATIONS_MAX {
        wrong.push(FieldError {
            reason: "FieldValueTooLong",
            field: path.to_owned(),
            message: format!("Too long: may not be more than {ANNOTATIONS_MAX} bytes"),
        });
    }
}

fn pairs(map: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    map.and_then(Value::as_object).into_iter().flat_map(Map::iter)
}
