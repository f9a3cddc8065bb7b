//! What built-in kinds cannot do without: the rules whose breach clients meet most.

use serde_json::{Map, Value, json};

use super::Kind;
use schema::object::field_error::FieldError;
use workload::pod_spec::check_spec;

/// What is missing in an object, or contradicts itself. What was there before is not
/// judged again.
pub(super) fn check(kind: &Kind, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    let same = |field: &str| old.is_some_and(|old| old.get(field) == object.get(field));
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment") if !same("spec") => {
            let empty = json!({});
            deployment(object.get("spec").unwrap_or(&empty), &mut wrong);
            let selector = object.pointer("/spec/selector");
            if old.is_some_and(|old| old.pointer("/spec/selector") != selector) {
                let value = selector.cloned().unwrap_or_default();
                wrong.push(FieldError::invalid("spec.selector", &value, "field is immutable"));
            }
        }
        ("apps", "ReplicaSet") if !same("spec") => {
            let empty = json!({});
            let pod = object.pointer("/spec/template/spec").unwrap_or(&empty);
            check_spec("spec.template.spec", pod, &mut wrong);
        }
        ("discovery.k8s.io", _) => match text(object, "addressType") {
            "" => wrong.push(FieldError::required("addressType", "")),
            "FQDN" | "IPv4" | "IPv6" => {}
            other => {
                let allowed = ["FQDN", "IPv4", "IPv6"];
                wrong.push(FieldError::not_supported("addressType", other, &allowed));
            }
        },
        _ => {}
    }
    wrong
}

fn list<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn deployment(spec: &Value, wrong: &mut Vec<FieldError>) {
    if let Some(replicas) = spec.get("replicas").filter(|n| n.as_i64().is_some_and(|n| n < 0)) {
        let why = "must be greater than or equal to 0";
        wrong.push(FieldError::invalid("spec.replicas", replicas, why));
    }
    let selector = spec.get("selector").filter(|selector| !selector.is_null());
    match selector {
        None => wrong.push(FieldError::required("spec.selector", "")),
        Some(selector) if is_empty(selector) => {
            let why = "empty selector is invalid for deployment";
            wrong.push(FieldError::invalid("spec.selector", &json!({}), why));
        }
        Some(_) => {}
    }
    let labels = spec.pointer("/template/metadata/labels");
    let none = Map::new();
    let map = labels.and_then(Value::as_object).unwrap_or(&none);
    if !selector.is_some_and(|selector| selects(selector, map)) {
        let why = "`selector` does not match template `labels`";
        let value = labels.cloned().unwrap_or_default();
        wrong.push(FieldError::invalid("spec.template.metadata.labels", &value, why));
    }
    let empty = json!({});
    let pod = spec.pointer("/template/spec").unwrap_or(&empty);
    check_spec("spec.template.spec", pod, wrong);
    let restart = text(pod, "restartPolicy");
    if !["", "Always"].contains(&restart) {
        let path = "spec.template.spec.restartPolicy";
        wrong.push(FieldError::not_supported(path, restart, &["Always"]));
    }
    let strategy = spec.pointer("/strategy/type").and_then(Value::as_str).unwrap_or_default();
    if !["", "Recreate", "RollingUpdate"].contains(&strategy) {
        wrong.push(FieldError {
            reason: "FieldValueNotSupported",
            field: "spec.strategy".to_owned(),
            message: format!(
                "Unsupported value: {{\"Type\":{strategy:?},\"RollingUpdate\":null}}: supported \
                 values: \"Recreate\", \"RollingUpdate\""
            ),
        });
    }
}

fn is_empty(selector: &Value) -> bool {
    let none = |field: &str| {
        selector.get(field).is_none_or(|value| [json!({}), json!([]), Value::Null].contains(value))
    };
    none("matchLabels") && none("matchExpressions")
}

/// Whether a label selector selects these labels.
fn selects(selector: &Value, labels: &Map<String, Value>) -> bool {
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    let mut wanted = wanted.into_iter().flatten();
    wanted.all(|(key, value)| labels.get(key) == Some(value))
        && list(selector, "matchExpressions").iter().all(|one| {
            let found = labels.get(text(one, "key"));
            let among = found.is_some_and(|value| list(one, "values").contains(value));
            match text(one, "operator") {
                "In" => among,
                "NotIn" => !among,
                "Exists" => found.is_some(),
                _ => found.is_none(),
            }
        })
}
