//! The Service and the `ServiceAccount` of a package's runtime, and whose they are.

use super::config::{Chosen, Names};
use super::{World, package_name};
use api::pkg::revision::Revision;
use api::pkg::runtime_config::TemplateMeta;
use api::pkg::{ANNOTATION_BROUGHT_BY, LABEL_FUNCTION, LABEL_PROVIDER, LABEL_REVISION};
use serde_json::{Map, Value as Json, json};

/// The port that webhooks and functions are served at.
pub(super) const PORT: u16 = 9443;

/// The revision as the owner that controls an object.
pub(super) fn controller(revision: &Revision) -> Json {
    json!({
        "apiVersion": revision.api_version, "kind": revision.kind,
        "name": revision.metadata.name, "uid": revision.metadata.uid.clone().unwrap_or_default(),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// Labels by which the pods of a revision are known.
pub(super) fn pod_labels(world: &World) -> Map<String, Json> {
    let package = if world.is_function() { LABEL_FUNCTION } else { LABEL_PROVIDER };
    let mut labels = Map::new();
    labels.insert(LABEL_REVISION.to_owned(), json!(world.revision.metadata.name));
    labels.insert(package.to_owned(), json!(package_name(&world.revision)));
    labels
}

/// What a template says about metadata, with what every object of a runtime has.
pub(super) fn metadata(world: &World, name: &str, template: Option<&TemplateMeta>) -> Json {
    let mut metadata = json!({"name": name, "namespace": world.settings.namespace});
    for (key, values) in [
        ("labels", template.and_then(|meta| meta.labels.as_ref())),
        ("annotations", template.and_then(|meta| meta.annotations.as_ref())),
    ] {
        if let Some(values) = values.filter(|values| !values.is_empty()) {
            metadata[key] = json!(values);
        }
    }
    metadata["ownerReferences"] = json!([controller(&world.revision)]);
    mark(world, &mut metadata);
    metadata
}

/// Says whose an object is, also when its owners are lost.
pub(super) fn mark(world: &World, metadata: &mut Json) {
    metadata["annotations"][ANNOTATION_BROUGHT_BY] = json!(world.mark());
}

/// The Service, which follows the active revision because it selects its pods.
pub(super) fn service(world: &World, chosen: &Chosen<'_>, names: &Names) -> Json {
    let spec = chosen.runtime.and_then(|config| config.spec.as_ref());
    let template = spec.and_then(|spec| spec.service_template.as_ref());
    let metadata = metadata(world, &names.service, template.and_then(|one| one.metadata.as_ref()));
    let port = if world.is_function() { "grpc" } else { "webhook" };
    let mut port = json!({"name": port, "protocol": "TCP", "port": PORT, "targetPort": port});
    let mut spec = json!({"selector": pod_labels(world)});
    if world.is_function() {
        // Without an address of its own, callers see every pod and can spread calls over them.
        spec["clusterIP"] = json!("None");
        port["appProtocol"] = json!("tls");
    }
    spec["ports"] = json!([port]);
    json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
}

/// The Service while the pods of another revision's Deployment answer. They are known as that has it:
/// a revision may have been another package's when its pods were made.
pub(super) fn lend_service(mut service: Json, sibling: &Revision, deployment: &Json) -> Json {
    service["metadata"]["ownerReferences"] = json!([controller(sibling)]);
    let labels = &deployment["spec"]["selector"]["matchLabels"];
    if labels[LABEL_REVISION] == sibling.metadata.name.as_str() {
        service["spec"]["selector"] = labels.clone();
    } else {
        service["spec"]["selector"][LABEL_REVISION] = json!(sibling.metadata.name);
    }
    service
}

/// The account that the pods run as. Secrets that it has already stay: somebody else may have
/// given it those, and the list is one value to the API server.
pub(super) fn account(
    world: &World,
    chosen: &Chosen<'_>,
    names: &Names,
    live: Option<&Json>,
) -> Json {
    let spec = chosen.runtime.and_then(|config| config.spec.as_ref());
    let template = spec.and_then(|spec| spec.service_account_template.as_ref());
    let template = template.and_then(|one| one.metadata.as_ref());
    let mut metadata = metadata(world, &names.account, template);
    if let Some(controller) = chosen.controller {
        replace(&mut metadata, "labels", &controller.metadata.labels);
        replace(&mut metadata, "annotations", &controller.metadata.annotations);
    }
    let options = world.revision.spec.service_account.iter();
    for (key, value) in options.flat_map(|options| options.annotations.iter().flatten()) {
        metadata["annotations"][key] = json!(value);
    }
    mark(world, &mut metadata);
    let mut account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
    let own = world.revision.spec.package_pull_secrets.iter().flatten();
    let own = own.filter_map(|secret| secret.name.as_deref());
    let there = live.and_then(|live| live["imagePullSecrets"].as_array()).into_iter().flatten();
    let there = there.filter_map(|secret| secret["name"].as_str());
    let ours = own.chain(world.account_secrets.iter().map(String::as_str));
    let secrets = references(there.chain(ours));
    if !secrets.is_empty() {
        account["imagePullSecrets"] = json!(secrets);
    }
    account
}

/// References to objects by name, each once.
pub(super) fn references<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Json> {
    let mut seen: Vec<&str> = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen.into_iter().map(|name| json!({"name": name})).collect()
}

/// Puts a map of texts in the place of another, or nothing if it is empty.
pub(super) fn replace(
    object: &mut Json,
    key: &str,
    values: &std::collections::BTreeMap<String, String>,
) {
    if let Some(object) = object.as_object_mut() {
        object.shift_remove(key);
        if !values.is_empty() {
            object.insert(key.to_owned(), json!(values));
        }
    }
}
