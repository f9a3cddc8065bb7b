//! The shapes of built-in kinds are the real server's own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::peers::{ControlPlane, TOKEN};

/// Documents that describe what we serve.
const DOCUMENTS: [&str; 10] = [
    "api/v1",
    "apis/apps/v1",
    "apis/events.k8s.io/v1",
    "apis/authentication.k8s.io/v1",
    "apis/authorization.k8s.io/v1",
    "apis/rbac.authorization.k8s.io/v1",
    "apis/admissionregistration.k8s.io/v1",
    "apis/apiextensions.k8s.io/v1",
    "apis/coordination.k8s.io/v1",
    "apis/discovery.k8s.io/v1",
];

/// Kinds whose shapes are kept.
const KINDS: [&str; 27] = [
    "ConfigMap",
    "Endpoints",
    "EndpointSlice",
    "Event",
    "Namespace",
    "Node",
    "Pod",
    "Secret",
    "ServiceAccount",
    "Service",
    "Deployment",
    "ReplicaSet",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "CustomResourceDefinition",
    "Lease",
    "SelfSubjectReview",
    "TokenReview",
    "TokenRequest",
    "LocalSubjectAccessReview",
    "SelfSubjectAccessReview",
    "SelfSubjectRulesReview",
    "SubjectAccessReview",
];

/// Compares `data/openapi.json` with what the real server says; writes it anew when it differs.
pub(crate) async fn check(client: &reqwest::Client, plane: &ControlPlane) {
    let mut schemas: BTreeMap<String, Value> = BTreeMap::new();
    for document in DOCUMENTS {
        let url = format!("{}/openapi/v3/{document}", plane.url);
        let answer = loop {
            let answer = client.get(&url).bearer_auth(TOKEN).send().await.expect("a document");
            // A busy server puts people off.
            if ![429, 503].contains(&answer.status().as_u16()) {
                break answer;
            }
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        };
        assert_eq!(answer.status().as_u16(), 200, "{url}");
        let text = answer.text().await.expect("a text");
        let parsed: Value = serde_json::from_str(&text).expect("JSON");
        let found = parsed.pointer("/components/schemas").and_then(Value::as_object);
        schemas.extend(found.into_iter().flatten().map(|(name, one)| (name.clone(), one.clone())));
    }
    let text = reduce(&schemas);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/openapi.json");
    if fs_err::read_to_string(&path).unwrap_or_default() != text {
        fs_err::write(&path, text).expect("the file is written");
        panic!("data/openapi.json was out of date and is written anew: look at it and commit it");
    }
}

/// Only what our kinds need, without the prose.
fn reduce(schemas: &BTreeMap<String, Value>) -> String {
    let mut kinds: BTreeMap<String, String> = BTreeMap::new();
    for (name, schema) in schemas {
        let marks = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
        let Some(mark) = marks.and_then(|marks| marks.first()) else { continue };
        let text = |field: &str| mark.get(field).and_then(Value::as_str).unwrap_or_default();
        if KINDS.contains(&text("kind")) {
            let version = match text("group") {
                "" => text("version").to_owned(),
                group => format!("{group}/{}", text("version")),
            };
            kinds.insert(format!("{version}/{}", text("kind")), name.clone());
        }
    }
    let mut kept: BTreeMap<String, Value> = BTreeMap::new();
    let mut wanted: BTreeSet<String> = kinds.values().cloned().collect();
    while let Some(name) = wanted.pop_first() {
        let mut schema = schemas.get(&name).cloned().unwrap_or(json!({}));
        strip(&mut schema, &mut wanted);
        kept.insert(name, schema);
        wanted.retain(|name| !kept.contains_key(name));
    }
    let schemas: Vec<String> =
        kept.iter().map(|(name, schema)| format!("{}:{schema}", json!(name))).collect();
    format!("{{\"kinds\":{},\n\"schemas\":{{\n{}\n}}}}\n", json!(kinds), schemas.join(",\n"))
}

/// Drops prose and names what is referred to.
fn strip(value: &mut Value, wanted: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            map.retain(|key, value| !(key == "description" && value.is_string()));
            map.remove("x-kubernetes-group-version-kind");
            if let Some(Value::String(reference)) = map.get("$ref") {
                wanted.extend(reference.rsplit('/').next().map(str::to_owned));
            }
            map.values_mut().for_each(|value| strip(value, wanted));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| strip(item, wanted)),
        _ => {}
    }
}
