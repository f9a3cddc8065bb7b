//! What built-in kinds demand of their objects beyond their metadata.

use serde_json::{Value, json};

use super::Kind;
use crate::object::field_error::FieldError;
use crate::object::meta;

/// What is wrong with a built-in object.
pub fn check(kind: &Kind, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut wrong = super::required::check(kind, object, old);
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("" | super::event::GROUP, "Event") => wrong.extend(super::event::check(kind, object, old)),
        ("coordination.k8s.io", "Lease") => {
            at_least("spec.leaseDurationSeconds", 1, object, &mut wrong);
            at_least("spec.leaseTransitions", 0, object, &mut wrong);
        }
        ("", "Namespace") => {
            let finalizers = object.pointer("/spec/finalizers").and_then(Value::as_array);
            for finalizer in finalizers.into_iter().flatten().filter_map(Value::as_str) {
                meta::check_finalizer("spec.finalizers", finalizer, &mut wrong);
            }
        }
        ("", "ConfigMap" | "Secret") => {
            keys(object, &mut wrong);
            frozen(kind, object, old, &mut wrong);
        }
        ("admissionregistration.k8s.io", name) if name.ends_with("WebhookConfiguration") => {
            wrong.extend(crate::admission::validate::check(kind, object));
        }
        ("rbac.authorization.k8s.io", _) => {
            wrong.extend(crate::auth::validate::check(kind, object, old));
        }
        _ => {}
    }
    wrong
}

/// A number, if there is one, must not be less.
fn at_least(path: &str, least: i64, object: &Value, wrong: &mut Vec<FieldError>) {
    let value = object.pointer(&format!("/{}", path.replace('.', "/")));
    let Some(value) = value.filter(|value| value.as_i64().is_some_and(|n| n < least)) else {
        return;
    };
    let why =
        if least == 1 { "must be greater than 0" } else { "must be greater than or equal to 0" };
    wrong.push(FieldError::invalid(path, value, why));
}

fn keys(object: &Value, wrong: &mut Vec<FieldError>) {
    const RULE: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' \
        (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
        '[-._a-zA-Z0-9]+')";
    for field in ["data", "binaryData"] {
        for key in object.get(field).and_then(Value::as_object).into_iter().flat_map(|m| m.keys()) {
            let fine = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            if key.is_empty() || !key.chars().all(fine) {
                let path = format!("{field}[{key}]");
                wrong.push(FieldError::invalid(&path, &json!(key), RULE));
            }
        }
    }
}

/// Immutable content stays, and so does a secret's type.
fn frozen(kind: &Kind, object: &Value, old: Option<&Value>, wrong: &mut Vec<FieldError>) {
    let Some(old) = old else { return };
    if kind.kind == "Secret" && old.get("type") != object.get("type") {
        let value = object.get("type").cloned().unwrap_or(Value::Null);
        wrong.push(FieldError::invalid("type", &value, "field is immutable"));
    }
    if old.get("immutable") != Some(&json!(true)) {
        return;
    }
    let why = "field is immutable when `immutable` is set";
    if object.get("immutable") != Some(&json!(true)) {
        wrong.push(FieldError::forbidden("immutable", why));
    }
    for field in ["data", "binaryData"] {
        if old.get(field) != object.get(field) {
            wrong.push(FieldError::forbidden(field, why));
        }
    }
}
