//! The same packages under upstream's core and under apron's manager: both clusters come to the
//! same objects, but for what is named here.

use super::make_available;
use crate::control_plane::Asked;
use crate::support::patiently;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

const NAMESPACE: &str = "/api/v1/namespaces/crossplane-system";

/// Waits until both clusters have the same, and says what differs if they never do.
pub(super) fn come_to_the_same(theirs: &Asked, ours: &Asked) {
    let all = patiently(|| {
        for one in [theirs, ours] {
            make_available(one);
        }
        let (upstream, apron) = (objects(theirs), objects(ours));
        let differ = differences(&upstream, &apron);
        if differ.is_empty() { Ok(upstream) } else { Err(differ.join("\n")) }
    });
    assert!(all.len() > 20, "{:#?}", all.keys());
}

/// What package managers make, by kind and name, without what differs from cluster to cluster.
fn objects(asked: &Asked) -> BTreeMap<String, Json> {
    let packages = ["providers", "configurations", "functions"];
    let revisions = packages.map(|kind| format!("{}revisions", kind.trim_end_matches('s')));
    let packages = packages.into_iter().chain(revisions.iter().map(String::as_str));
    let packages = packages.map(|kind| format!("/apis/pkg.crossplane.io/v1/{kind}"));
    let run = ["services", "serviceaccounts", "secrets"].map(|kind| format!("{NAMESPACE}/{kind}"));
    let others = [
        "/apis/pkg.crossplane.io/v1beta1/locks",
        "/apis/apps/v1/namespaces/crossplane-system/deployments",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "/apis/apiextensions.crossplane.io/v1/compositions",
        "/apis/apiextensions.crossplane.io/v2/compositeresourcedefinitions",
    ];
    let others = others.map(str::to_owned);
    let mut found = BTreeMap::new();
    for path in packages.chain(run).chain(others) {
        let list = asked.get(&path).unwrap_or_default();
        let kind = list["kind"].as_str().unwrap_or_default().trim_end_matches("List").to_owned();
        for object in list["items"].as_array().into_iter().flatten() {
            let name = object["metadata"]["name"].as_str().unwrap();
            if !is_of_the_cluster(&kind, name) {
                found.insert(format!("{kind} {name}"), essence(&kind, object.clone()));
            }
        }
    }
    found
}

/// Whether an object is there without packages, or is upstream's own.
fn is_of_the_cluster(kind: &str, name: &str) -> bool {
    match kind {
        "ClusterRole" | "ClusterRoleBinding" => {
            !["crossplane:provider:", "crossplane:composite:"].iter().any(|it| name.starts_with(it))
        }
        "ServiceAccount" => ["default", "crossplane"].contains(&name),
        "Secret" => name.starts_with("crossplane-"),
        _ => false,
    }
}

/// What of an object both must agree on.
fn essence(kind: &str, mut object: Json) -> Json {
    let mut metadata = object["metadata"].take();
    // Only apron says whose an object is besides its owners, and that a package came because
    // another one needs it.
    let annotations = metadata["annotations"].as_object_mut();
    let is_empty = annotations.is_some_and(|all| {
        all.remove("pkg.crossplane.io/brought-by");
        all.remove("pkg.crossplane.io/automatic");
        all.is_empty()
    });
    if is_empty {
        metadata["annotations"].take();
    }
    let mut owners = metadata["ownerReferences"].as_array().cloned().unwrap_or_default();
    for owner in &mut owners {
        owner["uid"].take();
    }
    owners.sort_by_key(ToString::to_string);
    let mut kept = json!({
        "labels": metadata["labels"], "annotations": metadata["annotations"],
        "finalizers": metadata["finalizers"], "owners": owners,
    });
    let status = object["status"].clone();
    match kind {
        // Upstream's other controllers fill these in, and serve them.
        "CompositeResourceDefinition" => return json!({"labels": kept["labels"], "owners": owners}),
        // apron's Secrets are the package's, so that they outlive its revisions.
        "Secret" => {
            let keys: Vec<&String> =
                object["data"].as_object().into_iter().flatten().map(|it| it.0).collect();
            return json!({"labels": kept["labels"], "type": object["type"], "keys": keys});
        }
        "Deployment" => run_alike(&mut object),
        "Lock" => {
            let mut packages = object["packages"].as_array().cloned().unwrap_or_default();
            for one in &mut packages {
                // apron remembers which bytes, and who owns what.
                one.as_object_mut().unwrap().remove("digest");
            }
            packages.sort_by_key(|one| one["name"].to_string());
            return json!({"finalizers": kept["finalizers"], "packages": packages});
        }
        _ => {
            kept["conditions"] = conditions(&status);
            for field in [
                "currentRevision",
                "currentIdentifier",
                "resolvedPackage",
                "resolvedImage",
                "endpoint",
                "capabilities",
                "foundDependencies",
                "installedDependencies",
            ] {
                kept[field] = status[field].clone();
            }
        }
    }
    for field in ["spec", "rules", "subjects", "roleRef", "aggregationRule"] {
        kept[field] = object[field].clone();
    }
    if kind == "Service" {
        // Whoever is first gets the first address.
        for field in ["clusterIP", "clusterIPs"] {
            if kept["spec"][field] != "None" && kept["spec"][field] != json!(["None"]) {
                kept["spec"][field].take();
            }
        }
    }
    kept
}

/// A Deployment without what apron does otherwise: bytes are pinned, and pods are replaced with
/// their certificates.
fn run_alike(deployment: &mut Json) {
    let template = &mut deployment["spec"]["template"];
    let metadata = template["metadata"].as_object_mut().unwrap();
    let mut annotations = metadata.remove("annotations").unwrap_or_default();
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.remove("pkg.crossplane.io/certificates");
    }
    if annotations.as_object().is_some_and(|all| !all.is_empty()) {
        metadata.insert("annotations".to_owned(), annotations);
    }
    let container = &mut template["spec"]["containers"][0];
    let image = container["image"].as_str().unwrap();
    container["image"] = json!(image.split_once('@').map_or(image, |(name, _)| name));
    for one in container["env"].as_array_mut().unwrap() {
        if one["name"] == "REVISION_UID" {
            one["value"].take();
        }
    }
}

/// Conditions without their times. Whether a runtime is active is told by younger cores than this.
fn conditions(status: &Json) -> Json {
    let all = status["conditions"].as_array().into_iter().flatten();
    let all = all.filter(|one| one["type"] != "RuntimeActive");
    let mut all: Vec<String> =
        all.map(|one| format!("{}={}/{}", one["type"], one["status"], one["reason"])).collect();
    all.sort();
    json!(all)
}

fn differences(theirs: &BTreeMap<String, Json>, ours: &BTreeMap<String, Json>) -> Vec<String> {
    let mut found = Vec::new();
    for name in theirs.keys().chain(ours.keys()) {
        match (theirs.get(name), ours.get(name)) {
            (Some(theirs), Some(ours)) if theirs == ours => {}
            (theirs, ours) => {
                let text = |one: Option<&Json>| one.map_or("nothing".to_owned(), Json::to_string);
                found.push(format!(
                    "{name}\n  upstream {}\n  apron    {}",
                    text(theirs),
                    text(ours)
                ));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}
