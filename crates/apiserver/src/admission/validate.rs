//! Which configurations of webhooks make sense.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use crate::kind::Kind;
use schema::cel::{Object, Program, Type};
use schema::object::field_error;
use schema::{self, FieldError, Path, names};

/// The most conditions of one webhook.
const CONDITIONS_MAX: usize = 64;

/// What is wrong with a configuration.
pub(crate) fn check(kind: &Kind, object: &Value) -> Vec<field_error::FieldError> {
    let mut errors = Vec::new();
    let mutating = kind.kind.starts_with("Mutating");
    let hooks = list(object, "webhooks");
    let mut seen = HashSet::new();
    for (at, hook) in hooks.iter().enumerate() {
        let path = Path::new("webhooks").index(at);
        check_hook(hook, mutating, &path, &mut errors);
        let (field, versions) =
            (path.child("admissionReviewVersions"), list(hook, "admissionReviewVersions"));
        if versions.is_empty() {
            let detail = "must specify one of v1, v1beta1";
            errors.push(FieldError::required(&field, detail));
        } else {
            schema::check_review_versions(versions, true, &field, &mut errors);
        }
        let name = text(hook, "name");
        if !seen.insert(name) && !name.is_empty() {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
    }
    errors.iter().map(field_error::FieldError::of).collect()
}

fn list<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn check_hook(hook: &Value, mutating: bool, path: &Path, errors: &mut Vec<FieldError>) {
    check_name(text(hook, "name"), &path.child("name"), errors);
    for (at, rule) in list(hook, "rules").iter().enumerate() {
        check_rule(rule, &path.child("rules").index(at), errors);
    }
    let mut among = |field: &str, supported: &[&str]| {
        let said = text(hook, field);
        if !said.is_empty() && !supported.contains(&said) {
            errors.push(FieldError::not_supported(&path.child(field), said, supported));
        }
    };
    among("failurePolicy", &["Fail", "Ignore"]);
    among("matchPolicy", &["Equivalent", "Exact"]);
    among("sideEffects", &["None", "NoneOnDryRun"]);
    if text(hook, "sideEffects").is_empty() {
        let detail = "must specify one of None, NoneOnDryRun";
        errors.push(FieldError::required(&path.child("sideEffects"), detail));
    }
    let seconds = hook.get("timeoutSeconds").and_then(Value::as_i64);
    if let Some(seconds) = seconds.filter(|seconds| !(1..=30).contains(seconds)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(&path.child("timeoutSeconds"), seconds, detail));
    }
    for field in ["namespaceSelector", "objectSelector"] {
        check_selector(hook.get(field).unwrap_or(&Value::Null), &path.child(field), errors);
    }
    if mutating {
        let said = text(hook, "reinvocationPolicy");
        if !["", "IfNeeded", "Never"].contains(&said) {
            let field = path.child("reinvocationPolicy");
            errors.push(FieldError::not_supported(&field, said, ["IfNeeded", "Never"]));
        }
    }
    let client = hook.get("clientConfig").unwrap_or(&Value::Null);
    schema::check_client(client, &path.child("clientConfig"), errors);
    check_conditions(list(hook, "matchConditions"), &path.child("matchConditions"), errors);
}

fn check_name(name: &str, path: &Path, errors: &mut Vec<FieldError>) {
    if name.is_empty() {
        return errors.push(FieldError::required(path, ""));
    }
    let faults = names::subdomain(name);
    if faults.is_empty() && name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        errors.push(FieldError::invalid(path, name, detail));
    }
    errors.extend(faults.into_iter().map(|fault| FieldError::invalid(path, name, fault)));
}

fn check_rule(rule: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
    check_list(rule, "operations", "operations", path, errors);
    for (at, operation) in list(rule, "operations").iter().enumerate() {
        let operation = operation.as_str().unwrap_or_default();
        if !OPERATIONS.contains(&operation) {
            let field = path.child("operations").index(at);
            errors.push(FieldError::not_supported(&field, operation, OPERATIONS));
        }
    }
    check_list(rule, "apiGroups", "API groups", path, errors);
    check_list(rule, "apiVersions", "API versions", path, errors);
    for (at, version) in list(rule, "apiVersions").iter().enumerate() {
        if version == "" {
            errors.push(FieldError::required(&path.child("apiVersions").index(at), ""));
        }
    }
    check_resources(list(rule, "resources"), &path.child("resources"), errors);
    let scope = text(rule, "scope");
    if !["", "*", "Cluster", "Namespaced"].contains(&scope) {
        let supported = ["*", "Cluster", "Namespaced"];
        errors.push(FieldError::not_supported(&path.child("scope"), scope, supported));
    }
}

/// Something must be said, and nothing beside everything.
fn check_list(rule: &Value, field: &str, what: &str, path: &Path, errors: &mut Vec<FieldError>) {
    let (said, path) = (list(rule, field), path.child(field));
    if said.is_empty() {
        errors.push(FieldError::required(&path, ""));
    } else if said.len() > 1 && said.iter().any(|one| one == "*") {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.push(FieldError::invalid(&path, Value::from(said), detail));
    }
}

/// `pods`, `pods/status`, `pods/*`, `*`, `*/scale` or `*/*`, none of which another covers.
fn check_resources(said: &[Value], path: &Path, errors: &mut Vec<FieldError>) {
    if said.is_empty() {
        return errors.push(FieldError::required(path, ""));
    }
    let (mut resources, mut parts) = (Vec::new(), Vec::new());
    let mut bare = false;
    for (at, one) in said.iter().enumerate() {
        let one = one.as_str().unwrap_or_default();
        let path = path.index(at);
        let (resource, part) = match one.split_once('/') {
            None if one.is_empty() => {
                errors.push(FieldError::required(&path, ""));
                continue;
            }
            None => {
                bare = one != "*";
                continue;
            }
            Some(pair) => pair,
        };
        let mut covered = |by: String| {
            let detail = format!("if '{by}' is present, must not specify {one}");
            errors.push(FieldError::invalid(&path, one, detail));
        };
        if resources.contains(&resource) {
            covered(format!("{resource}/*"));
        }
        if parts.contains(&part) {
            covered(format!("*/{part}"));
        }
        if part == "*" {
            resources.push(resource);
        }
        if resource == "*" {
            parts.push(part);
        }
    }
    let has = |wanted: &str| said.iter().any(|one| one == wanted);
    if said.len() > 1 && has("*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.push(FieldError::invalid(path, Value::from(said), detail));
    }
    if has("*") && bare {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(FieldError::invalid(path, Value::from(said), detail));
    }
}

fn check_selector(selector: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let path_of_labels = path.child("matchLabels");
    for (key, value) in labels.into_iter().flatten() {
        for fault in names::label_key(key) {
            errors.push(FieldError::invalid(&path_of_labels, key.as_str(), fault));
        }
        let value = value.as_str().unwrap_or_default();
        for fault in names::label_value(value) {
            errors.push(FieldError::invalid(&path_of_labels, value, fault));
        }
    }
    for (at, one) in list(selector, "matchExpressions").iter().enumerate() {
        check_expression(one, &path.child("matchExpressions").index(at), errors);
    }
}

fn check_expression(one: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let values = list(one, "values");
    match text(one, "operator") {
        "In" | "NotIn" if values.is_empty() => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(&path.child("values"), detail));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(&path.child("values"), detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => {
            let detail = "not a valid selector operator";
            errors.push(FieldError::invalid(&path.child("operator"), other, detail));
        }
    }
    let key = text(one, "key");
    for fault in names::label_key(key) {
        errors.push(FieldError::invalid(&path.child("key"), key, fault));
    }
    for (at, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        for fault in names::label_value(value) {
            errors.push(FieldError::invalid(&path.child("values").index(at), value, fault));
        }
    }
}

fn check_conditions(conditions: &[Value], path: &Path, errors: &mut Vec<FieldError>) {
    if conditions.len() > CONDITIONS_MAX {
        errors.push(FieldError::too_many(path, conditions.len(), 64));
    }
    let mut seen = HashSet::new();
    for (at, condition) in conditions.iter().enumerate() {
        let path = path.index(at);
        let expression = text(condition, "expression");
        if expression.trim().is_empty() {
            errors.push(FieldError::required(&path.child("expression"), ""));
        } else if let Some(fault) = fault(expression) {
            errors.push(FieldError::invalid(&path.child("expression"), expression, fault));
        }
        let name = text(condition, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
            continue;
        }
        for fault in names::label_key(name) {
            errors.push(FieldError::invalid(&path.child("name"), name, fault));
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
    }
}

/// Why an expression is no condition.
fn fault(expression: &str) -> Option<String> {
    let names = [("object", Type::Dyn), ("oldObject", Type::Dyn), ("request", asked())];
    let failed = |issues: String| Some(format!("compilation failed: {issues}"));
    match Program::read(expression) {
        Err(issues) => return failed(issues),
        // What it can do is not known here; what cannot be evaluated fails later.
        Ok(program) if program.mentions("authorizer") => return None,
        Ok(_) => {}
    }
    match Program::checked(expression, &names) {
        Err(issues) => failed(issues),
        Ok((_, Type::Bool | Type::Dyn)) => None,
        Ok((_, other)) => Some(format!("must evaluate to bool but got {other}")),
    }
}

/// What conditions know of the request.
fn asked() -> Type {
    let object = |name: &str, fields: &[(&str, Type)]| {
        let fields = fields.iter().map(|(field, of)| ((*field).to_owned(), of.clone())).collect();
        let name = format!("kubernetes.{name}");
        Type::Object(Arc::new(Object { name, fields }))
    };
    let texts = |names: [&'static str; 3]| names.map(|name| (name, Type::String));
    let kind = object("GroupVersionKind", &texts(["group", "version", "kind"]));
    let resource = object("GroupVersionResource", &texts(["group", "version", "resource"]));
    let groups = Type::list(Type::String);
    let user = [
        ("username", Type::String),
        ("uid", Type::String),
        ("groups", groups.clone()),
        ("extra", Type::map(Type::String, groups)),
    ];
    let fields = [
        ("kind", kind.clone()),
        ("resource", resource.clone()),
        ("subResource", Type::String),
        ("requestKind", kind),
        ("requestResource", resource),
        ("requestSubResource", Type::String),
        ("name", Type::String),
        ("namespace", Type::String),
        ("operation", Type::String),
        ("userInfo", object("UserInfo", &user)),
        ("dryRun", Type::Bool),
        ("options", Type::Dyn),
    ];
    object("AdmissionRequest", &fields)
}
