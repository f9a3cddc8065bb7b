//! # Export: everything as objects that `kubectl apply` takes
//!
//! For moving to another cluster. What belongs to this server alone is left out: identities,
//! versions, owners of fields, and what every cluster makes for itself. The order is that in
//! which another server can take them: definitions, namespaces, roles, then the rest, and last
//! what could refuse the others.

use serde_json::{Map, Value};

use crate::log::{Expired, Log};
use schema::object::{meta_text, metadata, metadata_mut};

/// Metadata that means something to this server only.
const OWN: [&str; 9] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// What was exported, and what was not.
#[derive(Debug, Default)]
pub struct Export {
    /// The objects, in the order in which to apply them.
    pub objects: Vec<Value>,
    /// How many of them are secrets.
    pub secrets: usize,
    /// How many lost references to their owners, whose identities will be others.
    pub orphans: usize,
    /// How many were left out because they are being deleted.
    pub deleting: usize,
}

/// Everything a log holds; `status` says whether objects keep theirs.
pub fn export(log: &Log, status: bool) -> Result<Export, Expired> {
    let mut export = Export::default();
    for (_, entry) in log.list("", None)?.entries {
        // What is no object is not for clients.
        let Ok(object) = serde_json::from_slice::<Value>(&entry.value) else { continue };
        if !object.is_object() || is_furniture(&object) {
            continue;
        }
        if schema::object::is_deleting(&object) {
            export.deleting += 1;
            continue;
        }
        export.secrets += usize::from(is(&object, "v1", "Secret"));
        export.orphans += usize::from(metadata(&object).contains_key("ownerReferences"));
        export.objects.push(portable(object, status));
    }
    // The sort is stable: within a rank the order of the log stays.
    export.objects.sort_by_key(rank);
    Ok(export)
}

fn is(object: &Value, version: &str, kind: &str) -> bool {
    object["apiVersion"] == version && object["kind"] == kind
}

/// What every cluster makes for itself, or forgets by itself.
fn is_furniture(object: &Value) -> bool {
    let name = meta_text(object, "name");
    let bootstrap = object.pointer("/metadata/labels/kubernetes.io~1bootstrapping").is_some();
    match object["kind"].as_str().unwrap_or_default() {
        "Namespace" => ["default", "kube-node-lease", "kube-public", "kube-system"].contains(&name),
        "Event" => true,
        "ConfigMap" => name == "kube-root-ca.crt",
        "ServiceAccount" => name == "default",
        "Service" => name == "kubernetes" && meta_text(object, "namespace") == "default",
        _ => bootstrap,
    }
}

/// An object without what means nothing elsewhere.
fn portable(mut object: Value, status: bool) -> Value {
    let definition = object["kind"] == "CustomResourceDefinition";
    let (namespace, service) = (is(&object, "v1", "Namespace"), is(&object, "v1", "Service"));
    metadata_mut(&mut object).retain(|field, _| !OWN.contains(&field.as_str()));
    let Value::Object(map) = &mut object else { return object };
    if !status || definition {
        map.shift_remove("status");
    }
    if let Some(Value::Object(spec)) = map.get_mut("spec") {
        if namespace {
            spec.shift_remove("finalizers");
        }
        if service {
            without_addresses(spec);
        }
    }
    if map.get("spec").and_then(Value::as_object).is_some_and(Map::is_empty) && namespace {
        map.shift_remove("spec");
    }
    object
}

/// Addresses are given out by each cluster; only having none is a wish.
fn without_addresses(spec: &mut Map<String, Value>) {
    if spec.get("clusterIP").is_some_and(|address| address != "None") {
        spec.shift_remove("clusterIP");
        spec.shift_remove("clusterIPs");
    }
}

/// When an object can be applied, counted from the first.
fn rank(object: &Value) -> usize {
    const ORDER: [&str; 7] = [
        "CustomResourceDefinition",
        "Namespace",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
    ];
    let kind = object["kind"].as_str().unwrap_or_default();
    if kind.ends_with("WebhookConfiguration") {
        return ORDER.len() + 1;
    }
    ORDER.iter().position(|first| *first == kind).unwrap_or(ORDER.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_belongs_to_one_server_is_left_out() {
        let object = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "s", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"}},
            "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "type": "ClusterIP"},
            "status": {"loadBalancer": {}},
        });
        let plain = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "s", "labels": {"a": "b"}}, "spec": {"type": "ClusterIP"},
        });
        assert_eq!(portable(object, false), plain);
    }

    #[test]
    fn definitions_come_first_and_webhooks_last() {
        let kinds = [
            "ValidatingWebhookConfiguration",
            "Widget",
            "Role",
            "Namespace",
            "CustomResourceDefinition",
        ];
        let mut objects: Vec<Value> = kinds.iter().map(|kind| json!({"kind": kind})).collect();
        objects.sort_by_key(rank);
        let sorted: Vec<&str> =
            objects.iter().filter_map(|object| object["kind"].as_str()).collect();
        let mut expected = kinds;
        expected.reverse();
        assert_eq!(sorted, expected);
    }
}
