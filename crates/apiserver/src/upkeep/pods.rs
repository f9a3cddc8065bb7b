//! The hands of replica sets and Services: pods are made, given a node, and listed.

use std::sync::Arc;

use serde_json::{Value, json};
use workload::replicas::{PodName, ReplicasPlan, plan_replicas, set_reference};

use super::rollout::{add_owner, named, read_all, read_everywhere};
use super::{Duty, NODES, Outcome, PODS, SERVICES};
use crate::Server;
use crate::http::status::Failure;
use crate::kind::split_key;
use crate::rest::{Own, Propagation};
use schema::object::{is_deleting, map_at, meta_text, metadata, metadata_mut, time};

/// Where Endpoints lie.
const ENDPOINTS: &str = "endpoints.";

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
                note_failure(&mut object["status"], why, server.world.now());
            }
        }
    });
    match carried.and(written.await) {
        Err(failure) if failure.code != 404 => Outcome::Later,
        _ => Outcome::Done,
    }
}

/// Says in a condition why pods could not be made.
fn note_failure(status: &mut Value, why: &str, now: u64) {
    let list = status.get("conditions").and_then(Value::as_array);
    let mut list = list.cloned().unwrap_or_default();
    let said = ("ReplicaFailure", "True", "FailedCreate", why.to_owned());
    workload::put_condition(&mut list, &said, &time::format(now));
    status["conditions"] = json!(list);
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
    if let Ok(node) = &chosen {
        let bound = own.amend(server, &uid, |pod| {
            map_at(pod, "spec").insert("nodeName".to_owned(), json!(node));
        });
        if let Err(failure) = bound.await {
            return if failure.code == 404 { Outcome::Done } else { Outcome::Later };
        }
    }
    let now = time::format(server.world.now());
    let Some(own) = Own::at(server, key) else { return Outcome::Done };
    let part = own.sub("status");
    let written = part.amend(server, &uid, |pod| {
        workload::nodes::note_schedule(map_at(pod, "status"), chosen.as_ref().err(), &now);
    });
    match written.await {
        Err(failure) if failure.code != 404 => Outcome::Later,
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
    for service in read_all(server, SERVICES, namespace) {
        let selector = service.pointer("/spec/selector").and_then(Value::as_object);
        if selector.is_none_or(serde_json::Map::is_empty) || is_deleting(&service) {
            continue;
        }
        let wished = workload::endpoints::list_endpoints(&service, &pods);
        if write_endpoints(server, &service, wished).await.is_err() {
            return Outcome::Later;
        }
    }
    let services = read_all(server, SERVICES, namespace);
    for endpoints in read_all(server, ENDPOINTS, namespace) {
        let is_made = meta_text(&endpoints, "namespace") == namespace
            && metadata(&endpoints).get("annotations").is_some_and(|all| all.get(MADE).is_some());
        let name = meta_text(&endpoints, "name");
        if is_made && !services.iter().any(|one| meta_text(one, "name") == name) {
            let Some(own) = named(server, ENDPOINTS, &endpoints) else { continue };
            let uid = meta_text(&endpoints, "uid");
            let _ = own.remove(server, uid, Propagation::Background).await;
        }
    }
    Outcome::Done
}

/// Marks Endpoints that follow a Service, and go with it.
const MADE: &str = "endpoints.kubernetes.io/last-change-trigger-time";

async fn write_endpoints(
    server: &Arc<Server>,
    service: &Value,
    mut wished: Value,
) -> Result<(), Failure> {
    let Some(own) = named(server, ENDPOINTS, service) else { return Ok(()) };
    let now = time::format(server.world.now());
    metadata_mut(&mut wished).insert("annotations".to_owned(), json!({MADE: now}));
    let Some(there) = own.get(server) else { return own.found(server, wished).await };
    if there.get("subsets").unwrap_or(&json!([])) == &wished["subsets"] {
        return Ok(());
    }
    let uid = meta_text(&there, "uid").to_owned();
    own.amend(server, &uid, |object| {
        object["subsets"] = wished["subsets"].clone();
        let annotations = wished["metadata"]["annotations"].clone();
        metadata_mut(object).insert("annotations".to_owned(), annotations);
    })
    .await
}
