//! What the server fills in for built-in kinds, so that a client which writes an object
//! and reads it back sees what a real cluster would show.

use base64::Engine;
use serde_json::{Map, Value, json};

use super::{Kind, event, pod, service};
use schema::object::{map_at, meta_text, metadata_mut};

/// Brings an incoming built-in object into the form that is stored.
pub(super) fn complete(kind: &Kind, object: &mut Value) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Secret") => secret(object),
        ("", "Namespace") => namespace(object),
        ("", "Service") => service::complete(object),
        ("apps", "Deployment") => deployment(object),
        ("apps", "ReplicaSet") => {
            let spec = map_at(object, "spec");
            set_default(spec, "replicas", json!(1));
            let template = spec.entry("template").or_insert_with(|| json!({}));
            pod::spec(map_at(template, "spec"));
        }
        ("rbac.authorization.k8s.io", "ClusterRole" | "Role") => {
            set_default(map_of(object), "rules", Value::Null);
        }
        ("rbac.authorization.k8s.io", _) => binding(object),
        ("coordination.k8s.io", _) => {
            map_at(object, "spec");
        }
        ("", "Pod") => {
            pod::pod(object);
            pod::keep_addresses(map_at(object, "status"));
        }
        ("discovery.k8s.io", _) => {
            for list in ["endpoints", "ports"] {
                if object.get(list) == Some(&json!([])) {
                    object[list] = Value::Null;
                }
            }
            let ports = object.get_mut("ports").and_then(Value::as_array_mut);
            for port in ports.into_iter().flatten().map(map_of) {
                set_default(port, "name", json!(""));
                set_default(port, "protocol", json!("TCP"));
            }
        }
        ("" | event::GROUP, "Event") => event::complete(object, event::is_newer(kind)),
        ("admissionregistration.k8s.io", _) => webhooks(kind, object),
        _ => {}
    }
}

/// What is set once, when an object is made.
pub fn prepare(kind: &Kind, object: &mut Value) {
    if object.get("rules") == Some(&json!([])) {
        map_of(object).insert("rules".to_owned(), Value::Null);
    }
    if kind.group.is_empty() && kind.kind == "Pod" {
        pod::start(object);
    }
    if kind.group.is_empty() && kind.kind == "Namespace" {
        let spec = map_at(object, "spec");
        let finalizers = spec.entry("finalizers").or_insert_with(|| json!([]));
        if let Value::Array(list) = finalizers
            && !list.contains(&json!("kubernetes"))
        {
            list.push(json!("kubernetes"));
        }
        map_of(object).insert("status".to_owned(), json!({"phase": "Active"}));
    }
}

/// What a webhook does when its configuration does not say.
fn webhooks(kind: &Kind, object: &mut Value) {
    let Some(Value::Array(hooks)) = object.get_mut("webhooks") else { return };
    for hook in hooks.iter_mut().filter_map(Value::as_object_mut) {
        if let Some(Value::Object(service)) =
            hook.get_mut("clientConfig").and_then(|client| client.get_mut("service"))
        {
            set_default(service, "port", json!(443));
        }
        for rule in hook.get_mut("rules").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(rule) = rule {
                set_default(rule, "scope", json!("*"));
            }
        }
        for (field, value) in [
            ("failurePolicy", json!("Fail")),
            ("matchPolicy", json!("Equivalent")),
            ("namespaceSelector", json!({})),
            ("objectSelector", json!({})),
            ("timeoutSeconds", json!(10)),
        ] {
            set_default(hook, field, value);
        }
        if kind.kind == "MutatingWebhookConfiguration" {
            set_default(hook, "reinvocationPolicy", json!("Never"));
        }
    }
}

pub(super) fn map_of(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    match object {
        Value::Object(map) => map,
        _ => unreachable!("made an object above"),
    }
}

pub(super) fn set_default(map: &mut Map<String, Value>, field: &str, value: Value) {
    if map.get(field).is_none_or(Value::is_null) {
        map.insert(field.to_owned(), value);
    }
}

fn secret(object: &mut Value) {
    let map = map_of(object);
    set_default(map, "type", json!("Opaque"));
    if let Some(Value::Object(plain)) = map.remove("stringData") {
        let data = map_at(object, "data");
        for (key, value) in plain {
            let text = value.as_str().unwrap_or_default();
            let coded = base64::engine::general_purpose::STANDARD.encode(text);
            data.insert(key, Value::String(coded));
        }
    }
}

fn namespace(object: &mut Value) {
    let name = meta_text(object, "name").to_owned();
    if !name.is_empty() {
        let labels = metadata_mut(object).entry("labels").or_insert_with(|| json!({}));
        if let Value::Object(labels) = labels {
            labels.insert("kubernetes.io/metadata.name".to_owned(), Value::String(name));
        }
    }
    let spec = map_at(object, "spec");
    if spec.get("finalizers") == Some(&json!([])) {
        spec.shift_remove("finalizers");
    }
    let status = map_at(object, "status");
    for condition in
        status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten()
    {
        set_default(map_of(condition), "lastTransitionTime", Value::Null);
    }
}

fn binding(object: &mut Value) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let reference = map_at(object, "roleRef");
    if reference.get("apiGroup").is_none_or(|group| group.is_null() || *group == json!("")) {
        reference.insert("apiGroup".to_owned(), json!(GROUP));
    }
    if object.get("subjects") == Some(&json!([])) {
        map_of(object).shift_remove("subjects");
    }
    let subjects = object.get_mut("subjects").and_then(Value::as_array_mut);
    for subject in subjects.into_iter().flatten().filter_map(Value::as_object_mut) {
        if subject.get("kind").and_then(Value::as_str) != Some("ServiceAccount") {
            set_default(subject, "apiGroup", json!(GROUP));
        }
    }
}

fn deployment(object: &mut Value) {
    let spec = map_at(object, "spec");
    set_default(spec, "replicas", json!(1));
    set_default(spec, "revisionHistoryLimit", json!(10));
    set_default(spec, "progressDeadlineSeconds", json!(600));
    let strategy = spec.entry("strategy").or_insert_with(|| json!({}));
    let strategy = map_of(strategy);
    set_default(strategy, "type", json!("RollingUpdate"));
    if strategy.get("type") == Some(&json!("RollingUpdate")) {
        let rolling = map_of(strategy.entry("rollingUpdate").or_insert_with(|| json!({})));
        set_default(rolling, "maxUnavailable", json!("25%"));
        set_default(rolling, "maxSurge", json!("25%"));
    }
    let template = spec.entry("template").or_insert_with(|| json!({}));
    map_at(template, "metadata");
    pod::spec(map_at(template, "spec"));
    map_at(object, "status");
}

/// An object of a built-in kind in which nobody has said anything: what its typed form
/// always shows is nobody's field.
pub fn blank(kind: &Kind) -> Option<Value> {
    let mut blank = match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Namespace") => json!({"spec": {}, "status": {}}),
        ("", "Pod") => json!({"spec": {"containers": null}, "status": {}}),
        ("", "Service") => json!({"spec": {}, "status": {"loadBalancer": {}}}),
        ("" | event::GROUP, "Event") => event::blank(event::is_newer(kind)),
        ("apps", "Deployment") => json!({
            "spec": {
                "selector": null, "strategy": {},
                "template": {"metadata": {}, "spec": {"containers": null}},
            },
            "status": {},
        }),
        ("authentication.k8s.io", "TokenRequest") => {
            json!({"spec": {"audiences": null, "boundObjectRef": null}})
        }
        ("authentication.k8s.io" | "authorization.k8s.io" | "coordination.k8s.io", _) => {
            json!({"spec": {}})
        }
        ("rbac.authorization.k8s.io", "ClusterRole" | "Role") => json!({"rules": null}),
        ("apiextensions.k8s.io", _) => json!({
            "spec": {
                "group": "", "names": {"plural": "", "kind": ""}, "scope": "", "versions": null,
            },
            "status": {
                "conditions": null, "acceptedNames": {"plural": "", "kind": ""},
                "storedVersions": null,
            },
        }),
        _ => return None,
    };
    blank["apiVersion"] = json!(kind.api_version());
    blank["kind"] = json!(kind.kind);
    Some(blank)
}
