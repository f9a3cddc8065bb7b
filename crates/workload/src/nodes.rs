//! Nodes: which of them a pod is given to.

use schema::object::{is_deleting, meta_text};
use serde_json::{Map, Value, json};

use crate::reading::{count_at, find_condition, is_pod_over, text_at};

/// The scheduler whose work this is.
const SCHEDULER: &str = "default-scheduler";
/// How many pods a node takes that does not say.
const PODS_DEFAULT: i64 = 110;

/// Whether a pod waits for a node of ours.
pub fn is_waiting(pod: &Value) -> bool {
    let gates = pod.pointer("/spec/schedulingGates").and_then(Value::as_array);
    let is_gated = gates.is_some_and(|gates| !gates.is_empty());
    let is_ours = ["", SCHEDULER].contains(&text_at(pod, "/spec/schedulerName"));
    text_at(pod, "/spec/nodeName").is_empty()
        && is_ours
        && !is_gated
        && !is_deleting(pod)
        && !is_pod_over(pod)
}

/// The node with the fewest pods of those that take this one, or why there is none.
pub fn choose_node(nodes: &[Value], pods: &[Value], pod: &Value) -> Result<String, String> {
    let load = |node: &Value| {
        let is_there = |one: &&Value| {
            text_at(one, "/spec/nodeName") == meta_text(node, "name") && !is_pod_over(one)
        };
        i64::try_from(pods.iter().filter(is_there).count()).unwrap_or(i64::MAX)
    };
    let takes = |node: &&Value| {
        let is_ready = find_condition(node, "Ready").is_some_and(|one| one["status"] == "True");
        let is_closed = node.pointer("/spec/unschedulable") == Some(&json!(true));
        let room = match text_at(node, "/status/allocatable/pods").parse::<i64>() {
            Ok(number) => number,
            Err(_) => match count_at(node, "/status/allocatable/pods") {
                0 => PODS_DEFAULT,
                number => number,
            },
        };
        is_ready && !is_closed && !is_deleting(node) && fits_labels(node, pod) && load(node) < room
    };
    let fewest =
        nodes.iter().filter(takes).min_by_key(|node| (load(node), meta_text(node, "name")));
    fewest
        .map(|node| meta_text(node, "name").to_owned())
        .ok_or_else(|| format!("0/{} nodes are available", nodes.len()))
}

fn fits_labels(node: &Value, pod: &Value) -> bool {
    let wished = pod.pointer("/spec/nodeSelector").and_then(Value::as_object);
    let labels = node.pointer("/metadata/labels");
    let mut wished = wished.into_iter().flatten();
    wished.all(|(name, value)| labels.and_then(|all| all.get(name)) == Some(value))
}

/// Says in a pod's status that it has a node, or why it has none.
pub fn note_schedule(status: &mut Map<String, Value>, refusal: Option<&String>, now: &str) {
    let list = status.entry("conditions").or_insert_with(|| json!([]));
    let Value::Array(list) = list else { return };
    let mut said = json!({
        "type": "PodScheduled", "status": if refusal.is_some() { "False" } else { "True" },
        "lastProbeTime": null, "lastTransitionTime": now,
    });
    if let Some(why) = refusal {
        said["reason"] = json!("Unschedulable");
        said["message"] = json!(why);
    }
    match list.iter_mut().find(|one| one["type"] == "PodScheduled") {
        Some(old) if old["status"] == said["status"] && old["message"] == said["message"] => {}
        Some(old) => *old = said,
        None => list.push(said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, ready: &str) -> Value {
        json!({
            "metadata": {"name": name, "labels": {"disk": name}},
            "status": {"conditions": [{"type": "Ready", "status": ready}], "allocatable": {"pods": "2"}},
        })
    }

    #[test]
    fn a_pod_goes_where_there_is_room_and_its_labels_allow_it() {
        let nodes = [node("a", "True"), node("b", "True"), node("c", "Unknown")];
        let on = |name: &str| json!({"spec": {"nodeName": name}});
        let pod = json!({});
        assert_eq!(choose_node(&nodes, &[], &pod).as_deref(), Ok("a"));
        assert_eq!(choose_node(&nodes, &[on("a")], &pod).as_deref(), Ok("b"));
        let picky = json!({"spec": {"nodeSelector": {"disk": "a"}}});
        assert_eq!(choose_node(&nodes, &[on("a")], &picky).as_deref(), Ok("a"));
        let full = choose_node(&nodes, &[on("a"), on("a")], &picky);
        assert_eq!(full.unwrap_err(), "0/3 nodes are available");
        assert!(choose_node(&[node("c", "Unknown")], &[], &pod).is_err());
    }

    #[test]
    fn only_pods_that_ask_for_the_usual_scheduler_wait() {
        assert!(is_waiting(&json!({"spec": {"schedulerName": "default-scheduler"}})));
        assert!(!is_waiting(&json!({"spec": {"schedulerName": "other"}})));
        assert!(!is_waiting(&json!({"spec": {"nodeName": "a"}})));
        assert!(!is_waiting(&json!({"spec": {"schedulingGates": [{"name": "g"}]}})));
    }
}
