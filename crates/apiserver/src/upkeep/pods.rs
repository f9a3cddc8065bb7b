//! The hands of replica sets and Services: pods are made, given a node, and listed.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::{Value, json};
use workload::replicas::{PodName, ReplicasPlan, note_failure, plan_replicas, set_reference};
use workload::slices::{SliceAction, followed_service, plan_slices};

use super::rollout::{add_owner, named, read_all, read_everywhere};
use super::{Duty, NODES, Outcome, PODS, SERVICES};
use crate::Server;
use crate::http::status::Failure;
use crate::kind::split_key;
use crate::rest::{Own, Propagation};
use schema::object::{is_deleting, map_at, meta_text, metadata, metadata_mut, time};

/// Where Endpoints lie.
pub(super) const ENDPOINTS: &str = "endpoints.";
/// Where endpoint slices lie.
pub(super) const ENDPOINT_SLICES: &str = "endpointslices.discovery.k8s.io";

/// Gives a replica set the pods it wishes for, and says how many it has.
pub(super) async fn keep_replicas(server: &Arc<Server>, key: &Arc<str>) -> Outcome {
    let Some(own) = Own::at(server, key) else { return Outcome::Done };
    let Some(set) = own.get(server) else { return Outcome::Done };
    let (_, namespace, _) = split_key(key);
    let pods = read_all(server, PODS, namespace);
    let plan = plan_replicas(&set, &pods, server.world.now());
    server.remind(plan.again_at, || Duty::ReplicaSet(Arc::clone(key)));
    let uid = meta_text(&set, "uid").to_owned();
    let carried = carry_out(server, namespace, &set, &plan).await;
    let failed = carried.as_ref().err().map(|failure| failure.message.clone());
    let part = own.sub("status");
    let written = part.amend(server, &uid, |object| {
        let same = |field: &str| metadata(object).get(field) == metadata(&set).get(field);
        if same("generation") && object.get("status") == set.get("status") {
            map_at(object, "status");
            object["status"] = plan.status.clone();
            if let Some(why) = &failed {
                let reason = if plan.delete.is_empty() { "FailedCreate" } else { "FailedDelete" };
                note_failure(&mut object["status"], &set, reason, why, server.world.now());
            }
        }
    });
    match carried.and(written.await) {
        Err(failure) if failure.code != 404 => Outcome::Later,
        _ => Outcome::Done,
    }
}

async fn carry_out(
    server: &Arc<Server>,
    namespace: &str,
    set: &Value,
    plan: &ReplicasPlan,
) -> Result<(), Failure> {
    let of = |pod: &PodName| Own::at(server, &format!("{PODS}/{namespace}/{}", pod.name));
    let owner = set_reference(set);
    for pod in &plan.adopt {
        if let Some(own) = of(pod) {
            own.amend(server, &pod.uid, |object| add_owner(object, &owner)).await?;
        }
    }
    for pod in &plan.release {
        if let Some(own) = of(pod) {
            own.amend(server, &pod.uid, |object| drop_owner(object, &owner)).await?;
        }
    }
    for pod in &plan.delete {
        if let Some(own) = of(pod) {
            match own.remove(server, &pod.uid, Propagation::Background).await {
                Err(failure) if failure.code != 404 && failure.code != 409 => return Err(failure),
                _ => {}
            }
        }
    }
    let Some(kind) = server.kinds.stored_under(PODS) else { return Ok(()) };
    for _ in 0..plan.make {
        Own::new(&kind, Some(namespace), "").make(server, plan.pod.clone()).await?;
    }
    Ok(())
}

fn drop_owner(object: &mut Value, owner: &Value) {
    if let Some(Value::Array(owners)) = metadata_mut(object).get_mut("ownerReferences") {
        owners.retain(|one| one["uid"] != owner["uid"]);
    }
}

/// Gives a pod a node, unless another scheduler is asked for.
pub(super) async fn schedule_pod(server: &Arc<Server>, key: &Arc<str>) -> Outcome {
    let Some(own) = Own::at(server, key) else { return Outcome::Done };
    let Some(pod) = own.get(server) else { return Outcome::Done };
    if !workload::nodes::is_waiting(&pod) {
        return Outcome::Done;
    }
    let nodes = read_all(server, NODES, "");
    let chosen = workload::nodes::choose_node(&nodes, &read_everywhere(server, PODS), &pod);
    let uid = meta_text(&pod, "uid").to_owned();
    let written = match chosen {
        Ok(node) => own.give_node(server, &uid, &node).await,
        Err(why) => {
            let now = time::format(server.world.now());
            let note = |pod: &mut Value| {
                workload::nodes::note_schedule(map_at(pod, "status"), Some(&why), &now);
            };
            own.sub("status").amend(server, &uid, note).await
        }
    };
    match written {
        // Another scheduler was faster, or a user deleted the pod: the news of it leads back here.
        Err(failure) if failure.code != 404 && failure.code != 409 => Outcome::Later,
        _ => Outcome::Done,
    }
}

/// Looks again at every pod that no node was there for.
pub(super) fn schedule_waiting(server: &Server) -> Outcome {
    let pods = read_everywhere(server, PODS);
    let mut state = server.upkeep.lock();
    for pod in pods.iter().filter(|pod| workload::nodes::is_waiting(pod)) {
        let (namespace, name) = (meta_text(pod, "namespace"), meta_text(pod, "name"));
        state.add(Duty::Schedule(format!("{PODS}/{namespace}/{name}").into()));
    }
    Outcome::Done
}

/// Lists where each Service of a namespace leads to.
pub(super) async fn list_addresses(server: &Arc<Server>, namespace: &str) -> Outcome {
    let pods = read_all(server, PODS, namespace);
    let slices = group_slices(read_all(server, ENDPOINT_SLICES, namespace));
    for service in read_all(server, SERVICES, namespace) {
        let selector = service.pointer("/spec/selector").and_then(Value::as_object);
        if selector.is_none_or(serde_json::Map::is_empty) || is_deleting(&service) {
            continue;
        }
        let wished = workload::endpoints::list_endpoints(&service, &pods);
        let slices = slices.get(meta_text(&service, "name")).map(Vec::as_slice).unwrap_or_default();
        if write_endpoints(server, &service, wished).await.is_err()
            || write_slices(server, &service, &pods, slices).await.is_err()
        {
            return Outcome::Later;
        }
    }
    let services = read_all(server, SERVICES, namespace);
    let names: HashSet<&str> = services.iter().map(|one| meta_text(one, "name")).collect();
    for endpoints in read_all(server, ENDPOINTS, namespace) {
        let is_made = workload::endpoints::follows_service(&endpoints);
        let name = meta_text(&endpoints, "name");
        if is_made && !names.contains(name) {
            let Some(own) = named(server, ENDPOINTS, &endpoints) else { continue };
            let uid = meta_text(&endpoints, "uid");
            let _ = own.remove(server, uid, Propagation::Background).await;
        }
    }
    Outcome::Done
}

/// Slices by the Service that they follow.
fn group_slices(slices: Vec<Value>) -> BTreeMap<String, Vec<Value>> {
    let mut groups: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for slice in slices {
        if let Some(service) = followed_service(&slice).map(str::to_owned) {
            groups.entry(service).or_default().push(slice);
        }
    }
    groups
}

/// Makes the slices of a Service say where it leads to. They go with it, as all that it owns.
async fn write_slices(
    server: &Arc<Server>,
    service: &Value,
    pods: &[Value],
    slices: &[Value],
) -> Result<(), Failure> {
    let Some(kind) = server.kinds.stored_under(ENDPOINT_SLICES) else { return Ok(()) };
    let namespace = meta_text(service, "namespace");
    for action in plan_slices(service, pods, slices) {
        match action {
            SliceAction::Make(slice) => {
                Own::new(&kind, Some(namespace), "").make(server, slice).await?;
            }
            SliceAction::Amend { name, uid, wished } => {
                let amend = |slice: &mut Value| {
                    let labels = metadata(&wished).get("labels").cloned().unwrap_or_default();
                    metadata_mut(slice).insert("labels".to_owned(), labels);
                    for field in ["endpoints", "ports"] {
                        slice[field] = wished[field].clone();
                    }
                };
                Own::new(&kind, Some(namespace), &name).amend(server, &uid, amend).await?;
            }
            SliceAction::Delete { name, uid } => {
                let own = Own::new(&kind, Some(namespace), &name);
                own.remove(server, &uid, Propagation::Background).await?;
            }
        }
    }
    Ok(())
}

/// When Endpoints were last changed.
const CHANGE_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

async fn write_endpoints(
    server: &Arc<Server>,
    service: &Value,
    mut wished: Value,
) -> Result<(), Failure> {
    let Some(own) = named(server, ENDPOINTS, service) else { return Ok(()) };
    let now = time::format(server.world.now());
    metadata_mut(&mut wished).insert("annotations".to_owned(), json!({CHANGE_TIME: now}));
    let Some(there) = own.get(server) else { return own.found(server, wished).await };
    let labels = |object: &Value| metadata(object).get("labels").cloned();
    let subsets = |object: &Value| object.get("subsets").cloned().unwrap_or_else(|| json!([]));
    if subsets(&there) == subsets(&wished) && labels(&there) == labels(&wished) {
        return Ok(());
    }
    let uid = meta_text(&there, "uid").to_owned();
    own.amend(server, &uid, |object| {
        object["subsets"] = wished["subsets"].clone();
        for field in ["annotations", "labels"] {
            let said = wished["metadata"][field].clone();
            metadata_mut(object).insert(field.to_owned(), said);
        }
    })
    .await
}
