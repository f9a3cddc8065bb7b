//! The status of a Deployment: what its runtime says, in the words of upstream's controller.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::Outcome;
use crate::Server;
use crate::kind::split_key;
use crate::rest::Own;
use crate::runtime::Pods;
use schema::object::{map_at, meta_text, metadata, time};

/// The condition of a Deployment whose pods are only said to be there.
const SIMULATED: &str = "Simulated";

/// Makes a Deployment's status say what its pods are.
pub(super) async fn settle(server: &Arc<Server>, key: &str) -> Outcome {
    let Some(runtime) = server.options.runtime.counter() else { return Outcome::Done };
    let Some(own) = Own::at(server, key) else { return Outcome::Done };
    let Some(object) = own.get(server) else {
        let (_, namespace, name) = split_key(key);
        runtime.stop(namespace, name);
        return Outcome::Done;
    };
    let pods = runtime.run(&object);
    let now = time::format(server.world.now());
    let seen = metadata(&object).get("generation").cloned();
    let uid = meta_text(&object, "uid").to_owned();
    let written = own
        .sub("status")
        .amend(server, &uid, |object| {
            // A later wish is judged when we come back for it.
            if metadata(object).get("generation") == seen.as_ref() {
                tell(object, pods, runtime.remark(), &now);
            }
        })
        .await;
    match written {
        Err(failure) if failure.code != 404 => Outcome::Later,
        _ => Outcome::Done,
    }
}

fn tell(object: &mut Value, pods: Pods, remark: Option<&str>, now: &str) {
    let mut conditions = vec![available(object, pods, remark), progressing(object, pods)];
    conditions.extend(remark.map(|it| (SIMULATED, ("True", "NothingRuns", it.to_owned()))));
    let generation = metadata(object).get("generation").cloned();
    let status = map_at(object, "status");
    status.insert("observedGeneration".to_owned(), generation.unwrap_or(json!(0)));
    for (field, count) in [
        ("replicas", pods.total),
        ("updatedReplicas", pods.updated),
        ("readyReplicas", pods.ready),
        ("availableReplicas", pods.available),
        ("unavailableReplicas", pods.total.saturating_sub(pods.available)),
    ] {
        // As upstream writes it: zero is nothing.
        match count {
            0 => status.shift_remove(field),
            count => status.insert(field.to_owned(), json!(count)),
        };
    }
    // What an earlier run told of pods that end: nothing here counts them.
    status.shift_remove("terminatingReplicas");
    for (kind, said) in conditions {
        condition(status, kind, &said, now);
    }
    if remark.is_none() {
        withdraw_condition(status, SIMULATED);
    }
}

/// What a condition says: status, reason, message.
type Said = (&'static str, &'static str, String);

fn available(object: &Value, pods: Pods, remark: Option<&str>) -> (&'static str, Said) {
    let wished = wished(object);
    let (status, reason, message) =
        if pods.available >= wished.saturating_sub(unavailable_max(object, wished)) {
            ("True", "MinimumReplicasAvailable", "Deployment has minimum availability")
        } else {
            ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability")
        };
    let remark = remark.map(|it| format!("; {it}")).unwrap_or_default();
    ("Available", (status, reason, format!("{message}{remark}.")))
}

fn progressing(object: &Value, pods: Pods) -> (&'static str, Said) {
    let name = meta_text(object, "name");
    let wished = wished(object);
    let complete = pods.updated == wished && pods.total == wished && pods.available == wished;
    let said = match () {
        () if object.pointer("/spec/paused") == Some(&json!(true)) => {
            ("Unknown", "DeploymentPaused", "Deployment is paused".to_owned())
        }
        () if complete => {
            let message = format!("Deployment {name:?} has successfully progressed.");
            ("True", "NewReplicaSetAvailable", message)
        }
        () => ("True", "ReplicaSetUpdated", format!("Deployment {name:?} is progressing.")),
    };
    ("Progressing", said)
}

fn wished(object: &Value) -> u64 {
    object.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1)
}

/// How many pods a rollout may lack: a number, or a part rounded down.
fn unavailable_max(object: &Value, wished: u64) -> u64 {
    match object.pointer("/spec/strategy/rollingUpdate/maxUnavailable") {
        Some(Value::Number(count)) => count.as_u64().unwrap_or_default().min(wished),
        Some(Value::String(part)) => {
            let percent = part.strip_suffix('%').and_then(|text| text.parse::<u64>().ok());
            wished.saturating_mul(percent.unwrap_or_default().min(100)) / 100
        }
        _ => 0,
    }
}

/// Times change with what is said; the transition only with the status.
fn condition(status: &mut Map<String, Value>, kind: &str, said: &Said, now: &str) {
    let slot = status.entry("conditions").or_insert_with(|| json!([]));
    let Value::Array(list) = slot else { return };
    let mut new = json!({
        "type": kind, "status": said.0, "lastUpdateTime": now, "lastTransitionTime": now,
        "reason": said.1, "message": said.2,
    });
    let Some(old) = list.iter_mut().find(|one| one.get("type") == Some(&json!(kind))) else {
        list.push(new);
        return;
    };
    if old.get("status") == new.get("status") {
        if old.get("reason") == new.get("reason") && old.get("message") == new.get("message") {
            return;
        }
        new["lastTransitionTime"] = old["lastTransitionTime"].clone();
    }
    *old = new;
}

/// Takes back what an earlier runtime said.
fn withdraw_condition(status: &mut Map<String, Value>, kind: &str) {
    if let Some(Value::Array(list)) = status.get_mut("conditions") {
        list.retain(|one| one.get("type") != Some(&json!(kind)));
    }
}
