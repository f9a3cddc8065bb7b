//! What roles and bindings must look like.

use serde_json::{Value, json};

use super::policy::GROUP;
use crate::kind::Kind;
use schema::object::field_error::FieldError;
use schema::object::name::{NameRule, check as check_name, check_label_value, check_qualified};

/// What is wrong with a role or a binding.
pub fn check(kind: &Kind, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    if kind.kind.ends_with("Binding") {
        binding(kind, object, &mut wrong);
    } else {
        role(kind, object, &mut wrong);
    }
    let moved = old.is_some_and(|old| old.get("roleRef") != object.get("roleRef"));
    if kind.kind.ends_with("Binding") && moved {
        let part = |field: &str| object.pointer(&format!("/roleRef/{field}")).cloned();
        let value = json!({
            "APIGroup": part("apiGroup"), "Kind": part("kind"), "Name": part("name"),
        });
        wrong.push(FieldError::invalid("roleRef", &value, "cannot change roleRef"));
    }
    wrong
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn role(kind: &Kind, object: &Value, wrong: &mut Vec<FieldError>) {
    for (at, one) in list(object, "rules").iter().enumerate() {
        rule(one, kind.namespaced, &format!("rules[{at}]"), wrong);
    }
    let Some(gathers) = object.get("aggregationRule").filter(|it| !it.is_null()) else { return };
    let path = "aggregationRule.clusterRoleSelectors";
    let selectors = list(gathers, "clusterRoleSelectors");
    if selectors.is_empty() {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        wrong.push(FieldError::required(path, why));
    }
    for (at, one) in selectors.iter().enumerate() {
        let (path, before) = (format!("{path}[{at}]"), wrong.len());
        selector(one, &path, wrong);
        if wrong.len() > before {
            wrong.push(FieldError::invalid(&path, &Value::Null, "invalid label selector."));
        }
    }
}

fn rule(rule: &Value, namespaced: bool, path: &str, wrong: &mut Vec<FieldError>) {
    let empty = |field: &str| list(rule, field).is_empty();
    if empty("verbs") {
        let why = "verbs must contain at least one value";
        wrong.push(FieldError::required(&format!("{path}.verbs"), why));
    }
    if !empty("nonResourceURLs") {
        let urls = format!("{path}.nonResourceURLs");
        let mut refuse =
            |why: &str| wrong.push(FieldError::invalid(&urls, &rule["nonResourceURLs"], why));
        if namespaced {
            refuse("namespaced rules cannot apply to non-resource URLs");
        }
        if !empty("apiGroups") || !empty("resources") || !empty("resourceNames") {
            refuse("rules cannot apply to both regular resources and non-resource URLs");
        }
        return;
    }
    for (field, why) in [
        ("apiGroups", "resource rules must supply at least one api group"),
        ("resources", "resource rules must supply at least one resource"),
    ] {
        if empty(field) {
            wrong.push(FieldError::required(&format!("{path}.{field}"), why));
        }
    }
}

fn selector(selector: &Value, path: &str, wrong: &mut Vec<FieldError>) {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let field = format!("{path}.matchLabels");
    for (key, value) in labels.into_iter().flatten() {
        let faults = check_qualified(key);
        wrong.extend(faults.iter().map(|why| FieldError::invalid(&field, &json!(key), why)));
        let faults = check_label_value(value.as_str().unwrap_or_default());
        wrong.extend(faults.iter().map(|why| FieldError::invalid(&field, value, why)));
    }
    for (at, one) in list(selector, "matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{at}]");
        let values = list(one, "values");
        match text(one, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                wrong.push(FieldError::required(&format!("{path}.values"), why));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                wrong.push(FieldError::forbidden(&format!("{path}.values"), why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                let why = "not a valid selector operator";
                wrong.push(FieldError::invalid(&format!("{path}.operator"), &json!(other), why));
            }
        }
        let key = text(one, "key");
        let faults = check_qualified(key);
        let field = format!("{path}.key");
        wrong.extend(faults.iter().map(|why| FieldError::invalid(&field, &json!(key), why)));
    }
}

fn binding(kind: &Kind, object: &Value, wrong: &mut Vec<FieldError>) {
    let reference = object.get("roleRef").unwrap_or(&Value::Null);
    let group = text(reference, "apiGroup");
    if group != GROUP {
        wrong.push(FieldError::not_supported("roleRef.apiGroup", group, &[GROUP]));
    }
    let allowed: &[&str] =
        if kind.namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    let said = text(reference, "kind");
    if !allowed.contains(&said) {
        wrong.push(FieldError::not_supported("roleRef.kind", said, allowed));
    }
    let name = text(reference, "name");
    if name.is_empty() {
        wrong.push(FieldError::required("roleRef.name", ""));
    }
    for why in check_name(NameRule::Segment, name) {
        wrong.push(FieldError::invalid("roleRef.name", &json!(name), &why));
    }
    for (at, one) in list(object, "subjects").iter().enumerate() {
        subject(one, kind.namespaced, &format!("subjects[{at}]"), wrong);
    }
}

fn subject(subject: &Value, namespaced: bool, path: &str, wrong: &mut Vec<FieldError>) {
    let (name, group) = (text(subject, "name"), text(subject, "apiGroup"));
    if name.is_empty() {
        wrong.push(FieldError::required(&format!("{path}.name"), ""));
    }
    let field = format!("{path}.apiGroup");
    match text(subject, "kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                for why in check_name(NameRule::Subdomain, name) {
                    let field = format!("{path}.name");
                    wrong.push(FieldError::invalid(&field, &json!(name), &why));
                }
            }
            if !group.is_empty() {
                wrong.push(FieldError::not_supported(&field, group, &[""]));
            }
            if !namespaced && text(subject, "namespace").is_empty() {
                wrong.push(FieldError::required(&format!("{path}.namespace"), ""));
            }
        }
        "User" | "Group" => {
            if group != GROUP {
                wrong.push(FieldError::not_supported(&field, group, &[GROUP]));
            }
        }
        other => {
            let allowed = ["ServiceAccount", "User", "Group"];
            wrong.push(FieldError::not_supported(&format!("{path}.kind"), other, &allowed));
        }
    }
}
