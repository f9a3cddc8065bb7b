//! What Deployments became, in a picture: names of replica sets and pods come from keys that are new in
//! each run, so a Deployment tells of its pods, and a Service of how many pods it leads to.

use super::{Picture, name, text};
use crate::laws::{condition, is_going, owners};
use serde_json::{Value as Json, json};

/// Kinds that are told by what they belong to.
pub(super) const KINDS: [&str; 5] = ["ReplicaSet", "Pod", "EndpointSlice", "Endpoints", "Node"];

/// The name of the owner of a kind.
fn owner_of<'a>(object: &'a Json, kind: &str) -> Option<&'a str> {
    let mut all = owners(object).iter().filter(|owner| owner["kind"] == kind);
    all.find_map(|owner| owner["name"].as_str())
}

/// Puts in what there is of these kinds.
pub(super) fn condense(objects: &[Json], picture: &mut Picture) {
    let of_kind = |kind: &'static str| objects.iter().filter(move |one| one["kind"] == kind);
    for pod in of_kind("Pod") {
        let set = owner_of(pod, "ReplicaSet").unwrap_or_default();
        let mut sets = of_kind("ReplicaSet").filter(|one| text(&one["metadata"], "name") == set);
        let deployment = sets.find_map(|one| owner_of(one, "Deployment")).unwrap_or("nobody");
        let told = json!({
            "image": pod["spec"]["containers"][0]["image"],
            "account": pod["spec"]["serviceAccountName"],
            "node": pod["spec"]["nodeName"],
            "phase": pod["status"]["phase"],
            "ready": condition(pod, "Ready").0,
            "ends": is_going(pod),
        });
        let slot = picture.entry(format!("pods of {deployment}")).or_insert_with(|| json!([]));
        slot.as_array_mut().into_iter().for_each(|all| all.push(told.clone()));
    }
    for slice in of_kind("EndpointSlice") {
        let service = &slice["metadata"]["labels"]["kubernetes.io/service-name"];
        let endpoints = slice["endpoints"].as_array().into_iter().flatten();
        let count = endpoints.filter(|one| one["conditions"]["ready"] != false).count();
        let key = format!("addresses of {}", service.as_str().unwrap_or_default());
        let before = picture.get(&key).and_then(Json::as_u64).unwrap_or_default();
        picture.insert(key, json!(before + count as u64));
    }
    for node in of_kind("Node") {
        picture.insert(name(node), json!(condition(node, "Ready").0));
    }
    for deployment in of_kind("Deployment").filter(|_| of_kind("Node").next().is_some()) {
        let Some(kept) = picture.get_mut(&name(deployment)) else { continue };
        forget_rollout(kept);
    }
}

/// Takes out what says how a rollout went, and by which replica sets.
fn forget_rollout(deployment: &mut Json) {
    let conditions = deployment.pointer_mut("/status/conditions").and_then(Json::as_array_mut);
    for one in conditions.into_iter().flatten().filter(|one| one["type"] == "Progressing") {
        *one = json!({"type": "Progressing"});
    }
    let annotations = deployment.pointer_mut("/metadata/annotations");
    if let Some(annotations) = annotations.and_then(Json::as_object_mut) {
        annotations.remove("deployment.kubernetes.io/revision");
    }
}
