//! What is said at the start of nodes and pods, before a node has said anything itself.

use std::sync::Arc;

use serde_json::{Value, json};

use super::rollout::{named, read_everywhere};
use super::{NODES, PODS, REPLICA_SETS};
use crate::Server;
use crate::rest::{Own, Propagation};
use crate::runtime::Hosting;
use schema::object::{map_at, meta_text, metadata, time};

/// The node of a control plane that runs pods itself.
const OWN_NODE: &str = "apron";

/// Says what is known of this machine's node and of the pods on it: with nodes, nothing until one reports;
/// where pods are only simulated, that nothing runs.
pub(crate) async fn furnish_node(server: &Arc<Server>) {
    match &server.options.runtime {
        Hosting::Unattended => {}
        Hosting::Pods => {
            make_node(server).await;
            let why = "Kubelet stopped posting node status.";
            note_readiness(server, ["Unknown", "NodeStatusUnknown", why]).await;
            doubt_pods(server).await;
        }
        Hosting::Counted(runtime) => {
            let own = Own::at(server, &format!("{NODES}//{OWN_NODE}"));
            if own.is_none_or(|own| own.get(server).is_none()) {
                // The node of this machine has run no pods: all of them are of controllers outside.
                return;
            }
            if let Some(remark) = runtime.remark() {
                note_readiness(server, ["False", "Simulated", remark]).await;
            }
            forget_pods(server).await;
        }
    }
}

/// Registers the node, as one does itself in a cluster: what it can do it says when it starts.
async fn make_node(server: &Arc<Server>) {
    let Some(own) = Own::at(server, &format!("{NODES}//{OWN_NODE}")) else { return };
    let object = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": OWN_NODE, "labels": {"kubernetes.io/hostname": OWN_NODE}},
    });
    // A Node that cannot be written holds up nothing: pods wait for one, and say so.
    let _ = own.by("apron").found(server, object).await;
}

/// Puts a condition `Ready` on the node, if there is one: its status, reason and message.
async fn note_readiness(server: &Arc<Server>, [status, reason, message]: [&str; 3]) {
    let Some(own) = Own::at(server, &format!("{NODES}//{OWN_NODE}")) else { return };
    let Some(node) = own.get(server) else { return };
    let now = time::format(server.world.now());
    let part = own.sub("status").by("apron");
    let written = part.amend(server, meta_text(&node, "uid"), |node| {
        let said = json!({
            "type": "Ready", "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        });
        put_condition(node, said);
    });
    let _ = written.await;
}

/// Says of the node's pods that they are not ready: their programs ended with the last run, and
/// what became of them since is for the node to say.
async fn doubt_pods(server: &Arc<Server>) {
    for pod in read_everywhere(server, PODS) {
        let is_here = pod.pointer("/spec/nodeName") == Some(&json!(OWN_NODE));
        if !is_here || !workload::is_pod_ready(&pod) {
            continue;
        }
        let Some(own) = named(server, PODS, &pod) else { continue };
        let now = time::format(server.world.now());
        let part = own.sub("status").by("apron");
        let written = part.amend(server, meta_text(&pod, "uid"), |pod| {
            put_condition(
                pod,
                json!({
                    "type": "Ready", "status": "False", "reason": "NodeStatusUnknown",
                    "lastProbeTime": null, "lastTransitionTime": now,
                }),
            );
        });
        let _ = written.await;
    }
}

fn put_condition(object: &mut Value, said: Value) {
    let list = map_at(object, "status").entry("conditions").or_insert_with(|| json!([]));
    let Value::Array(list) = list else { return };
    match list.iter_mut().find(|one| one["type"] == said["type"]) {
        Some(old) => *old = said,
        None => list.push(said),
    }
}

/// Removes the pods of replica sets that an earlier run made for nodes: nothing tells any more
/// whether they run. The sets of Deployments stay, for the way back, and say that they have none.
/// What other controllers made is theirs.
async fn forget_pods(server: &Arc<Server>) {
    for pod in read_everywhere(server, PODS) {
        let node = pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
        if is_controlled_by(&pod, "ReplicaSet")
            && ["", OWN_NODE].contains(&node)
            && let Some(own) = named(server, PODS, &pod)
        {
            let uid = meta_text(&pod, "uid");
            let _ = own.remove(server, uid, Propagation::Background).await;
        }
    }
    for set in read_everywhere(server, REPLICA_SETS) {
        if !is_controlled_by(&set, "Deployment") {
            continue;
        }
        let Some(own) = named(server, REPLICA_SETS, &set) else { continue };
        let uid = meta_text(&set, "uid").to_owned();
        let part = own.sub("status");
        let written = part.amend(server, &uid, |set| {
            let generation = metadata(set).get("generation").cloned().unwrap_or(json!(0));
            set["status"] = json!({"replicas": 0, "observedGeneration": generation});
        });
        let _ = written.await;
    }
}

/// Whether the controller of an object is of this kind of the group `apps`.
fn is_controlled_by(object: &Value, kind: &str) -> bool {
    let owners = metadata(object).get("ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().any(|owner| {
        let version = owner["apiVersion"].as_str().unwrap_or_default();
        let is_of_apps = version.split_once('/').is_some_and(|(group, _)| group == "apps");
        is_of_apps && owner["kind"] == kind && owner["controller"] == true
    })
}
