//! What a namespace is told of an installed package: a Package, and a `StackDefinition` if it fills in
//! templates.

use super::InstallWorld;
use super::image::from_source;
use super::parties::parent_labels;
use super::runtime::harden_pods;
use api::stacks::{RECORD, STACKS_VERSION, TEMPLATE_RECORD};
use oci::Reference;
use serde_json::{Value as Json, json};

/// The records of a package, as an install object changes them.
pub(super) fn records(world: &InstallWorld, image: &Reference, contents: &Json) -> Vec<Json> {
    let is_template = contents["kind"] == TEMPLATE_RECORD;
    let mut spec = changed_spec(world, image, contents);
    let mut all = Vec::new();
    if is_template {
        all.push(record(world, TEMPLATE_RECORD, spec.clone()));
        if let Some(fields) = spec.as_object_mut() {
            fields.shift_remove("behavior");
        }
        if let Some(rules) = spec.pointer_mut("/permissions/rules").and_then(Json::as_array_mut) {
            rules.push(json!({
                "apiGroups": [world.settings.stacks_group],
                "resources": ["stackdefinitions"],
                "resourceNames": [world.install.metadata.name],
                "verbs": ["get", "list", "watch"],
            }));
        }
    }
    all.push(record(world, RECORD, spec));
    all
}

fn record(world: &InstallWorld, kind: &str, spec: Json) -> Json {
    let target = world.record_target();
    let owner = json!({
        "apiVersion": world.install.api_version, "kind": world.install.kind,
        "name": world.install.metadata.name, "uid": world.install.metadata.uid,
        "controller": true, "blockOwnerDeletion": true,
    });
    json!({
        "apiVersion": format!("{}/{STACKS_VERSION}", world.settings.stacks_group),
        "kind": kind,
        "metadata": {
            "name": target.name, "namespace": target.namespace,
            "labels": parent_labels(&world.install, &world.settings),
            "ownerReferences": [owner],
        },
        "spec": spec,
    })
}

/// The spec of the record: images from the source, pull options, the account, the version.
fn changed_spec(world: &InstallWorld, image: &Reference, contents: &Json) -> Json {
    let mut spec = contents["spec"].clone();
    let asked = &world.install.spec;
    let has_version = spec["version"].as_str().is_some_and(|it| !it.is_empty());
    if let Some(tag) = image.identifier().as_tag().filter(|_| !has_version) {
        spec["version"] = json!(tag);
    }
    if !spec["controller"]["deployment"]["spec"].is_null() {
        let deployment = &mut spec["controller"]["deployment"]["spec"];
        harden_pods(deployment, &world.install, image);
        let secrets = asked.image_pull_secrets.iter().flatten().map(|one| json!(one));
        let secrets: Vec<Json> = secrets.collect();
        if let (Some(pod), false) = (deployment.pointer_mut("/template/spec"), secrets.is_empty()) {
            let mut all = pod["imagePullSecrets"].as_array().cloned().unwrap_or_default();
            all.extend(secrets);
            pod["imagePullSecrets"] = json!(all);
        }
    }
    if let Some(account) = &asked.service_account {
        spec["serviceAccount"] = json!(account);
        spec["controller"]["serviceAccount"] = json!(account);
    }
    if let Some(source) = spec.pointer_mut("/behavior/source") {
        let named = source["image"].as_str().unwrap_or_default();
        source["image"] = match named {
            "" => json!(image.as_written()),
            named => json!(from_source(asked.source.as_deref(), named)),
        };
    }
    spec
}
