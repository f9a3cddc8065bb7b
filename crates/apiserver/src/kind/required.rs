//! What built-in kinds cannot do without: the rules whose breach clients meet most.

use serde_json::{Map, Value, json};

use super::Kind;
use schema::object::field_error::FieldError;
use schema::object::{meta, name};
use workload::pod_spec::check_spec;

/// What is missing in an object, or contradicts itself. What was there before is not
/// judged again.
pub(super) fn check(kind: &Kind, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    let same = |field: &str| old.is_some_and(|old| old.get(field) == object.get(field));
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment" | "ReplicaSet") if !same("spec") => {
            let empty = json!({});
            let spec = object.get("spec").unwrap_or(&empty);
            check_set(spec, &mut wrong);
            if kind.kind == "Deployment" {
                check_strategy(spec, &mut wrong);
            }
            let selector = object.pointer("/spec/selector");
            if old.is_some_and(|old| old.pointer("/spec/selector") != selector) {
                let value = selector.cloned().unwrap_or_default();
                wrong.push(FieldError::invalid("spec.selector", &value, "field is immutable"));
            }
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

/// What Deployments and replica sets cannot do without: a selector, and a template that it selects.
fn check_set(spec: &Value, wrong: &mut Vec<FieldError>) {
    for field in ["replicas", "minReadySeconds"] {
        if let Some(number) = spec.get(field).filter(|n| n.as_i64().is_some_and(|n| n < 0)) {
            let why = "must be greater than or equal to 0";
            wrong.push(FieldError::invalid(&format!("spec.{field}"), number, why));
        }
    }
    let selector = spec.get("selector").filter(|selector| !selector.is_null());
    if let Some(selector) = selector {
        let before = wrong.len();
        check_selector(selector, wrong);
        if wrong.len() > before {
            let value = ordered_selector(selector);
            wrong.push(FieldError::invalid("spec.selector", &value, "invalid label selector"));
            return;
        }
        if is_empty(selector) {
            let why = "empty selector is invalid for deployment";
            wrong.push(FieldError::invalid("spec.selector", &json!({}), why));
        }
    } else {
        wrong.push(FieldError::required("spec.selector", ""));
    }
    check_template(spec.get("template").unwrap_or(&Value::Null), selector, wrong);
}

/// What is wrong with the conditions of a label selector.
fn check_selector(selector: &Value, wrong: &mut Vec<FieldError>) {
    meta::check_labels("spec.selector.matchLabels", selector.get("matchLabels"), wrong);
    for (at, one) in list(selector, "matchExpressions").iter().enumerate() {
        let path = format!("spec.selector.matchExpressions[{at}]");
        let (operator, values) = (text(one, "operator"), list(one, "values"));
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                wrong.push(FieldError::required(&format!("{path}.values"), why));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                wrong.push(FieldError::forbidden(&format!("{path}.values"), why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => {
                let why = "not a valid selector operator";
                wrong.push(FieldError::invalid(&format!("{path}.operator"), &operator.into(), why));
            }
        }
        let key = text(one, "key");
        for fault in name::check_qualified(key) {
            wrong.push(FieldError::invalid(&format!("{path}.key"), &key.into(), &fault));
        }
        for (at, value) in values.iter().enumerate() {
            for fault in name::check_label_value(value.as_str().unwrap_or_default()) {
                wrong.push(FieldError::invalid(&format!("{path}.values[{at}]"), value, &fault));
            }
        }
    }
}

/// A selector with its fields in the order of the struct.
fn ordered_selector(selector: &Value) -> Value {
    let pick = |of: &Value, fields: &[&str]| -> Value {
        let is_said = |value: &&Value| ![json!({}), json!([]), Value::Null].contains(value);
        let pairs = fields.iter();
        let pair = |name: &&str| Some(((*name).to_owned(), of.get(name).filter(is_said)?.clone()));
        pairs.filter_map(pair).collect()
    };
    let mut ordered = pick(selector, &["matchLabels", "matchExpressions"]);
    let expressions = ordered.get_mut("matchExpressions").and_then(Value::as_array_mut);
    for one in expressions.into_iter().flatten() {
        *one = pick(one, &["key", "operator", "values"]);
    }
    ordered
}

/// What is wrong with a template whose pods a set keeps running.
fn check_template(template: &Value, selector: Option<&Value>, wrong: &mut Vec<FieldError>) {
    let (labels, annotations) =
        (template.pointer("/metadata/labels"), template.pointer("/metadata/annotations"));
    let none = Map::new();
    let map = labels.and_then(Value::as_object).unwrap_or(&none);
    if !selector.is_some_and(|selector| selects(selector, map)) {
        let why = "`selector` does not match template `labels`";
        let value = labels.cloned().unwrap_or_default();
        wrong.push(FieldError::invalid("spec.template.metadata.labels", &value, why));
    }
    meta::check_labels("spec.template.labels", labels, wrong);
    meta::check_annotations("spec.template.annotations", annotations, wrong);
    let empty = json!({});
    let pod = template.get("spec").unwrap_or(&empty);
    check_spec("spec.template.spec", pod, wrong);
    let restart = text(pod, "restartPolicy");
    if !["", "Always"].contains(&restart) {
        let path = "spec.template.spec.restartPolicy";
        wrong.push(FieldError::not_supported(path, restart, &["Always"]));
    }
    if pod.get("activeDeadlineSeconds").is_some_and(|said| !said.is_null()) {
        let path = "spec.template.spec.activeDeadlineSeconds";
        let why = "activeDeadlineSeconds in ReplicaSet is not Supported";
        wrong.push(FieldError::forbidden(path, why));
    }
}

fn check_strategy(spec: &Value, wrong: &mut Vec<FieldError>) {
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
                "DoesNotExist" => found.is_none(),
                // A selector that cannot be understood selects nothing.
                _ => false,
            }
        })
}
