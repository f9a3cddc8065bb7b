//! Documents in the form in which an API server gets them.
//!
//! The package manager fills in where webhooks are; the server throws away the status, and
//! Crossplane makes a definition of custom resources from one of composite resources.

use serde_json::{Map, Value as Json, json};
use yaml::{Node, Value};

/// A definition as it reaches the server when its package is installed.
pub(in crate::lint) fn definition_as_installed(node: &Node<'_>) -> Json {
    let mut definition = to_json(node);
    if let Some(fields) = definition.as_object_mut() {
        fields.shift_remove("status");
    }
    if let Some(metadata) = definition.get_mut("metadata").and_then(Json::as_object_mut) {
        metadata.shift_remove("namespace");
    }
    let conversion = definition.pointer_mut("/spec/conversion").and_then(Json::as_object_mut);
    if let Some(conversion) = conversion.filter(|it| it.get("strategy") == Some(&json!("Webhook")))
    {
        let webhook = conversion.entry("webhook").or_insert(Json::Null);
        if webhook.is_null() {
            *webhook = json!({});
        }
        if let Some(webhook) = webhook.as_object_mut() {
            lead_to_runtime(webhook);
        }
    }
    definition
}

/// Fills in where a webhook is called, as the package manager does. The path stays the package's.
fn lead_to_runtime(webhook: &mut Map<String, Json>) {
    let mut service = json!({ "name": "runtime", "namespace": "packages" });
    let written = webhook.get("clientConfig").and_then(|client| client.get("service"));
    if let Some(path) = written.and_then(|service| service.get("path")) {
        service["path"] = path.clone();
    }
    webhook.insert("clientConfig".to_owned(), json!({ "service": service }));
}

/// Fields that Crossplane adds to every composite resource. Their types are not spelled out here:
/// an expression may do with them what it likes.
const SPEC_FIELDS: [&str; 13] = [
    "claimRef",
    "compositeDeletePolicy",
    "compositionRef",
    "compositionRevisionRef",
    "compositionRevisionSelector",
    "compositionSelector",
    "compositionUpdatePolicy",
    "crossplane",
    "environmentConfigRefs",
    "publishConnectionDetailsTo",
    "resourceRef",
    "resourceRefs",
    "writeConnectionSecretToRef",
];
const STATUS_FIELDS: [&str; 4] =
    ["claimConditionTypes", "conditions", "connectionDetails", "crossplane"];

/// The definition that Crossplane makes for the composite resource of a document.
pub(in crate::lint) fn composite_as_definition(spec: &Node<'_>) -> Json {
    let versions = spec.get("versions").map(Node::items).unwrap_or_default().iter();
    let versions = versions.enumerate().map(|(index, version)| served_version(index, version));
    let mut definition = blank_definition(spec, "names");
    definition["spec"]["versions"] = versions.collect();
    if let Some(conversion) = spec.get("conversion").filter(|it| !it.is_null()) {
        definition["spec"]["conversion"] = to_json(conversion);
    }
    definition
}

/// The definition that Crossplane makes for the claims of a document, without what it has in
/// common with that of the composite resource.
pub(in crate::lint) fn claim_as_definition(spec: &Node<'_>) -> Json {
    let mut definition = blank_definition(spec, "claimNames");
    let schema = json!({ "openAPIV3Schema": { "type": "object" } });
    definition["spec"]["versions"] =
        json!([{ "name": "v1", "served": true, "storage": true, "schema": schema }]);
    definition
}

fn blank_definition(spec: &Node<'_>, names: &str) -> Json {
    let read = |path: &[&str]| spec.at(path).map(to_json).unwrap_or_default();
    let text = |path: &[&str]| spec.at(path).and_then(Node::as_str).unwrap_or_default();
    let name = format!("{}.{}", text(&[names, "plural"]), text(&["group"]));
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": name },
        "spec": { "group": read(&["group"]), "names": read(&[names]), "scope": "Cluster" },
    })
}

fn served_version(index: usize, version: &Node<'_>) -> Json {
    let schema = version.at(&["schema", "openAPIV3Schema"]).filter(|schema| !schema.is_null());
    // A version without a schema is legal: only the fields every composite has remain.
    let mut schema = schema.map_or_else(|| json!({ "type": "object" }), to_json);
    add_fields(&mut schema, "/properties/spec/properties", &SPEC_FIELDS);
    add_fields(&mut schema, "/properties/status/properties", &STATUS_FIELDS);
    let mut served = json!({
        "served": true, "storage": index == 0, "schema": { "openAPIV3Schema": schema },
    });
    for field in ["name", "deprecated", "deprecationWarning", "additionalPrinterColumns"] {
        if let Some(value) = version.get(field) {
            served[field] = to_json(value);
        }
    }
    served
}

fn add_fields(schema: &mut Json, properties: &str, names: &[&str]) {
    let properties = schema.pointer_mut(properties).and_then(Json::as_object_mut);
    if let Some(properties) = properties {
        for name in names {
            let of_any_type = json!({ "x-kubernetes-int-or-string": true });
            properties.entry(*name).or_insert(of_any_type);
        }
    }
}

/// The same value as JSON, but for what descriptions say: they are most of a definition, and it only
/// matters whether there is one.
fn to_json(node: &Node<'_>) -> Json {
    let Value::Mapping(entries) = &node.value else {
        return match &node.value {
            Value::Sequence(items) => items.iter().map(to_json).collect(),
            _ => node.to_json(),
        };
    };
    let entries = entries.iter().map(|entry| {
        let value = match (entry.key.as_ref(), &entry.value.value) {
            ("description", Value::String(text)) if !text.is_empty() => Json::from("…"),
            ("default" | "enum" | "example", _) => entry.value.to_json(),
            _ => to_json(&entry.value),
        };
        (entry.key.clone().into_owned(), value)
    });
    Json::Object(entries.collect())
}
