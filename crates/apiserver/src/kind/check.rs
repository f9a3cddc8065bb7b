//! What built-in kinds demand of their objects beyond their metadata.

use serde_json::{Map, Value, json};

use super::Kind;
use schema::object::field_error::FieldError;
use schema::object::meta;

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
            volume(kind, object, &mut wrong);
            frozen(kind, object, old, &mut wrong);
        }
        ("admissionregistration.k8s.io", name) if name.ends_with("WebhookConfiguration") => {
            wrong.extend(crate::admission::validate::check(kind, object));
        }
        ("", "Pod") => check_pod(kind, object, old, &mut wrong),
        ("rbac.authorization.k8s.io", _) => {
            wrong.extend(crate::auth::validate::check(kind, object, old));
        }
        _ => {}
    }
    wrong
}

/// What is wrong with a pod. What was there before is not judged again.
fn check_pod(kind: &Kind, object: &Value, old: Option<&Value>, wrong: &mut Vec<FieldError>) {
    let is_same = |old: &Value| old.get("spec") == object.get("spec");
    if old.is_some_and(is_same) {
        return;
    }
    let empty = json!({});
    let spec = object.get("spec").unwrap_or(&empty);
    workload::pod_spec::check_spec("spec", spec, wrong);
    workload::pod_spec::check_images("spec", spec, wrong);
    if let Some(old) = old {
        // It may be from a time when less was filled in.
        let mut old = old.clone();
        super::complete(kind, &mut old);
        workload::pod_update::check_change(old.get("spec").unwrap_or(&empty), spec, wrong);
    }
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

/// The most bytes that the values of a config map or a secret have together.
const CONTENT_MAX: usize = 1 << 20;

/// What is kept in config maps and secrets is small.
fn volume(kind: &Kind, object: &Value, wrong: &mut Vec<FieldError>) {
    let secret = kind.kind == "Secret";
    let values = |field: &str| {
        let map = object.get(field).and_then(Value::as_object);
        map.into_iter().flat_map(Map::values).filter_map(Value::as_str)
    };
    let plain: usize =
        values("data").map(|text| if secret { decoded(text) } else { text.len() }).sum();
    let binary: usize = values("binaryData").map(decoded).sum();
    if plain.saturating_add(binary) > CONTENT_MAX {
        wrong.push(FieldError {
            reason: "FieldValueTooLong",
            field: if secret { "data" } else { "[]" }.to_owned(),
            message: format!("Too long: may not be more than {CONTENT_MAX} bytes"),
        });
    }
}

/// How many bytes a text in base64 stands for.
fn decoded(text: &str) -> usize {
    let letters = text.bytes().filter(|byte| !b"=\r\n".contains(byte)).count();
    letters.saturating_mul(3) / 4
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

#[cfg(test)]
mod tests {
    use base64::Engine as _;

    use super::*;

    fn faults(plural: &str, object: &Value) -> Vec<String> {
        let kinds = crate::kind::Kinds::new();
        let kind = kinds.find("", "v1", plural).unwrap();
        check(&kind, object, None).iter().map(FieldError::sentence).collect()
    }

    #[test]
    fn a_pod_from_before_pods_were_checked_is_judged_when_its_specification_changes() {
        let kinds = crate::kind::Kinds::new();
        let kind = kinds.find("", "v1", "pods").unwrap();
        let old = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "one"}});
        let labelled =
            json!({"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {"nodeName": "one"}});
        let faults = |new: &Value, old: Option<&Value>| check(&kind, new, old).len();
        assert_eq!(faults(&labelled, Some(&old)), 0);
        assert_eq!(faults(&json!({"spec": {"nodeName": "two"}}), Some(&old)), 2);
        assert_eq!(faults(&old, None), 1);
    }

    #[test]
    fn m8_config_maps_and_secrets_hold_a_mebibyte_as_upstream() {
        let base64 =
            |bytes: usize| base64::engine::general_purpose::STANDARD.encode(vec![7; bytes]);
        let half = CONTENT_MAX / 2;
        let map = |more: usize| json!({"data": {"a": "x".repeat(half)}, "binaryData": {"b": base64(half + more)}});
        assert_eq!(faults("configmaps", &map(0)), [""; 0]);
        let why = "Too long: may not be more than 1048576 bytes";
        assert_eq!(faults("configmaps", &map(1)), [format!("[]: {why}")]);
        let secret = |more: usize| json!({"type": "Opaque", "data": {"a": base64(half), "b": base64(half + more)}});
        assert_eq!(faults("secrets", &secret(0)), [""; 0]);
        assert_eq!(faults("secrets", &secret(1)), [format!("data: {why}")]);
    }
}
