//! What a definition must be like.

use serde_json::{Value, json};

use crate::Server;
use crate::object::field_error::FieldError;
use crate::object::meta_text;

/// What is wrong with a definition.
pub fn check(_server: &Server, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
    let name = meta_text(object, "name");
    if name != format!("{plural}.{group}") {
        let why = "must be spec.names.plural+\".\"+spec.group";
        wrong.push(FieldError::invalid("metadata.name", &json!(name), why));
    }
    for (field, pointer) in [
        ("spec.group", "/spec/group"),
        ("spec.names.plural", "/spec/names/plural"),
        ("spec.names.singular", "/spec/names/singular"),
        ("spec.names.kind", "/spec/names/kind"),
        ("spec.names.listKind", "/spec/names/listKind"),
    ] {
        if text(pointer).is_empty() {
            wrong.push(FieldError::required(field, ""));
        }
    }
    let scope = text("/spec/scope");
    match scope {
        "Cluster" | "Namespaced" => {}
        "" => wrong.push(FieldError::required("spec.scope", "")),
        other => {
            let allowed = ["Cluster", "Namespaced"];
            wrong.push(FieldError::not_supported("spec.scope", other, &allowed));
        }
    }
    versions(object, &mut wrong);
    if let Some(old) = old {
        stored(object, &mut wrong);
        if old.pointer("/spec/scope") != object.pointer("/spec/scope") {
            wrong.push(FieldError::invalid("spec.scope", &json!(scope), "field is immutable"));
        }
    }
    wrong
}

fn versions(object: &Value, wrong: &mut Vec<FieldError>) {
    let empty = Vec::new();
    let versions = object.pointer("/spec/versions").and_then(Value::as_array).unwrap_or(&empty);
    let storage = versions.iter().filter(|one| one.get("storage") == Some(&json!(true))).count();
    if storage != 1 {
        let value = object.pointer("/spec/versions").cloned().unwrap_or(json!([]));
        let why = "must have exactly one version marked as storage version";
        wrong.push(FieldError::invalid("spec.versions", &value, why));
    }
    for (at, version) in versions.iter().enumerate() {
        if version.pointer("/schema/openAPIV3Schema").is_none() {
            let path = format!("spec.versions[{at}].schema.openAPIV3Schema");
            wrong.push(FieldError::required(&path, ""));
        }
    }
}

/// A version in which objects may be stored cannot simply vanish.
fn stored(object: &Value, wrong: &mut Vec<FieldError>) {
    let names: Vec<&str> = object
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|version| version.get("name")?.as_str())
        .collect();
    let stored = object.pointer("/status/storedVersions").and_then(Value::as_array);
    for (at, version) in stored.into_iter().flatten().enumerate() {
        let version = version.as_str().unwrap_or_default();
        if !names.contains(&version) {
            let path = format!("status.storedVersions[{at}]");
            let why = "missing from spec.versions; v1 was previously a storage version, and must \
                       remain in spec.versions until a storage migration ensures no data remains \
                       persisted in v1 and removes v1 from status.storedVersions"
                .replace("v1", version);
            wrong.push(FieldError::invalid(&path, &json!(version), &why));
        }
    }
}
