//! The hands of rollouts: Deployments become replica sets.

use std::sync::Arc;

use serde_json::{Value, json};
use workload::rollout::{
    RolloutPlan, RolloutView, SetAction, is_collision, note_refused_set, plan_rollout,
};

use super::{Duty, Outcome, PODS, REPLICA_SETS};
use crate::Server;
use crate::http::status::Failure;
use crate::kind::split_key;
use crate::rest::{Own, Propagation};
use schema::object::selector::Labels;
use schema::object::{is_deleting, map_at, meta_text, metadata, metadata_mut};

/// Takes one step of a Deployment's rollout.
pub(super) async fn roll_out(server: &Arc<Server>, key: &Arc<str>) -> Outcome {
    let Some(own) = Own::at(server, key) else { return Outcome::Done };
    let Some(deployment) = own.get(server) else { return Outcome::Done };
    let (_, namespace, _) = split_key(key);
    let all = read_all(server, REPLICA_SETS, namespace);
    match adopt_sets(server, &deployment, &all).await {
        Ok(0) => {}
        // The news of what has an owner now leads back here.
        Ok(_) => return Outcome::Done,
        Err(_) => return Outcome::Later,
    }
    let uid = meta_text(&deployment, "uid").to_owned();
    let sets: Vec<Value> =
        all.into_iter().filter(|set| workload::controller_uid(set) == Some(&*uid)).collect();
    let is_own = |pod: &Value| {
        let owner = workload::controller_uid(pod);
        sets.iter().any(|set| owner == Some(meta_text(set, "uid")))
    };
    let pods: Vec<Value> = read_all(server, PODS, namespace).into_iter().filter(is_own).collect();
    let now = server.world.now();
    let view = RolloutView { deployment: &deployment, sets: &sets, pods: &pods, now };
    let plan = plan_rollout(&view);
    server.remind(plan.again_at, || Duty::Deployment(Arc::clone(key)));
    match carry_out(server, &own, &view, plan).await {
        Err(failure) if failure.code != 404 => Outcome::Later,
        _ => Outcome::Done,
    }
}

/// Every object of a kind in a namespace, as it is now.
pub(super) fn read_all(server: &Server, resource: &str, namespace: &str) -> Vec<Value> {
    read_below(server, resource, Some(namespace))
}

/// Every object of a kind, as it is now.
pub(super) fn read_everywhere(server: &Server, resource: &str) -> Vec<Value> {
    read_below(server, resource, None)
}

fn read_below(server: &Server, resource: &str, namespace: Option<&str>) -> Vec<Value> {
    let Some(kind) = server.kinds.stored_under(resource) else { return Vec::new() };
    let Ok(snapshot) = server.log.list(&kind.prefix(namespace), None) else {
        return Vec::new();
    };
    let entries = snapshot.entries.iter();
    entries.filter_map(|(_, entry)| crate::rest::open(&kind, entry).ok()).collect()
}

/// Takes over sets that the Deployment selects and that no controller has, as after a deletion
/// that left them behind.
async fn adopt_sets(
    server: &Arc<Server>,
    deployment: &Value,
    sets: &[Value],
) -> Result<usize, Failure> {
    let selector = deployment.pointer("/spec/selector").and_then(Labels::of_selector);
    let Some(selector) = selector.filter(|it| !it.is_empty() && !is_deleting(deployment)) else {
        return Ok(0);
    };
    let fits = |set: &&Value| {
        let labels = metadata(set).get("labels").and_then(Value::as_object);
        workload::controller_uid(set).is_none() && selector.matches(labels) && !is_deleting(set)
    };
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "name": meta_text(deployment, "name"),
        "uid": meta_text(deployment, "uid"), "controller": true, "blockOwnerDeletion": true,
    });
    let orphans: Vec<&Value> = sets.iter().filter(fits).collect();
    for set in &orphans {
        let Some(own) = named(server, REPLICA_SETS, set) else { continue };
        own.amend(server, meta_text(set, "uid"), |set| add_owner(set, &owner)).await?;
    }
    Ok(orphans.len())
}

/// The object of this name beside another.
pub(super) fn named(server: &Server, resource: &str, object: &Value) -> Option<Own> {
    let (namespace, name) = (meta_text(object, "namespace"), meta_text(object, "name"));
    Own::at(server, &format!("{resource}/{namespace}/{name}"))
}

/// Puts a reference among the owners of an object.
pub(super) fn add_owner(object: &mut Value, owner: &Value) {
    let owners = metadata_mut(object).entry("ownerReferences").or_insert_with(|| json!([]));
    if let Value::Array(owners) = owners
        && !owners.iter().any(|one| one["uid"] == owner["uid"])
    {
        owners.push(owner.clone());
    }
}

async fn carry_out(
    server: &Arc<Server>,
    own: &Own,
    view: &RolloutView<'_>,
    mut plan: RolloutPlan,
) -> Result<(), Failure> {
    let deployment = view.deployment;
    let mut collisions = 0_u64;
    let mut carried = Ok(());
    for action in plan.actions {
        let made = match &action {
            SetAction::Make(set) => Some(meta_text(set, "name").to_owned()),
            _ => None,
        };
        match act_on_set(server, own, deployment, action).await {
            Ok(SetOutcome::AsPlanned) => {}
            Ok(SetOutcome::Collided) => collisions = collisions.saturating_add(1),
            Err(failure) => {
                let Some(name) = made.filter(|_| !is_namespace_ending(&failure)) else {
                    return Err(failure);
                };
                note_refused_set(&mut plan.status, view, &name, &failure.message);
                plan.revision = None;
                carried = Err(failure);
                break;
            }
        }
    }
    let uid = meta_text(deployment, "uid").to_owned();
    let Some(kept) = Own::at(server, &key_of(own)) else { return Ok(()) };
    let part = kept.sub("status");
    let written = part.amend(server, &uid, |object| {
        if let Some(revision) = &plan.revision {
            // With the status, as upstream's controller: it is no new wish of the user's.
            note_revision(object, revision);
        }
        // Later news is looked at when we come back for it.
        let same = |field: &str| metadata(object).get(field) == metadata(deployment).get(field);
        if same("generation") && object.get("status") == deployment.get("status") {
            map_at(object, "status");
            object["status"] = plan.status.clone();
            if collisions > 0 {
                let before = object.pointer("/status/collisionCount").and_then(Value::as_u64);
                let count = before.unwrap_or_default().saturating_add(collisions);
                object["status"]["collisionCount"] = json!(count);
            }
        }
    });
    carried.and(written.await)
}

/// Whether nothing can be made any more in a namespace: what is there is about to go.
fn is_namespace_ending(failure: &Failure) -> bool {
    let causes = failure.details.as_ref().and_then(|details| details["causes"].as_array());
    causes.into_iter().flatten().any(|cause| cause["reason"] == "NamespaceTerminating")
}

fn note_revision(deployment: &mut Value, revision: &str) {
    let slot = metadata_mut(deployment).entry("annotations").or_insert_with(|| json!({}));
    if let Value::Object(annotations) = slot {
        annotations.insert("deployment.kubernetes.io/revision".to_owned(), json!(revision));
    }
}

fn key_of(own: &Own) -> String {
    own.kind().key(own.namespace(), own.name())
}

/// Whether the name of a new set was free.
enum SetOutcome {
    AsPlanned,
    Collided,
}

async fn act_on_set(
    server: &Arc<Server>,
    own: &Own,
    deployment: &Value,
    action: SetAction,
) -> Result<SetOutcome, Failure> {
    let namespace = own.namespace().unwrap_or_default();
    let of = |name: &str| {
        let found = Own::at(server, &format!("{REPLICA_SETS}/{namespace}/{name}"));
        found.ok_or_else(|| Failure::not_found(own.kind(), name))
    };
    match action {
        SetAction::Make(set) => {
            let made = of(meta_text(&set, "name"))?;
            match made.make(server, set).await {
                Err(failure) if failure.code == 409 => {
                    let there = made.get(server);
                    let collides = there.is_some_and(|there| is_collision(&there, deployment));
                    return Ok(if collides { SetOutcome::Collided } else { SetOutcome::AsPlanned });
                }
                made => made?,
            }
        }
        SetAction::Amend { name, uid, replicas, annotations, min_ready } => {
            let amend = |set: &mut Value| {
                let spec = map_at(set, "spec");
                spec.insert("replicas".to_owned(), json!(replicas));
                if min_ready > 0 || spec.contains_key("minReadySeconds") {
                    spec.insert("minReadySeconds".to_owned(), json!(min_ready));
                }
                metadata_mut(set).insert("annotations".to_owned(), json!(annotations));
            };
            of(&name)?.amend(server, &uid, amend).await?;
        }
        SetAction::Delete { name, uid } => {
            of(&name)?.remove(server, &uid, Propagation::Background).await?;
        }
    }
    Ok(SetOutcome::AsPlanned)
}
