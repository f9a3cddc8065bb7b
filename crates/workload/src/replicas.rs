//! replica sets: which pods there should be.

use schema::object::selector::Labels;
use schema::object::{is_deleting, meta_text, metadata, time};
use serde_json::{Map, Value, json};

use crate::condition::{drop_condition, put_condition};
use crate::reading::{
    annotation, controller_uid, count_at, is_pod_over, is_pod_ready, optional_count, ready_since,
    text_at,
};

/// The most pods that are made or deleted in one go.
const BURST: usize = 500;
/// The most pods that one replica set gets: more than one machine runs.
const PODS_MAX: i64 = 1_000;

/// The annotation that says what it costs to delete a pod, compared to others.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// The condition of a set that cannot have the pods it wishes for.
const FAILURE: &str = "ReplicaFailure";

/// A pod that is to be changed or deleted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodName {
    /// Its name.
    pub name: String,
    /// The pod that was looked at.
    pub uid: String,
}

/// What is to be done for a replica set.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplicasPlan {
    /// Pods without a controller that are to belong to it.
    pub adopt: Vec<PodName>,
    /// Its pods that its selector does not name any more.
    pub release: Vec<PodName>,
    /// Pods to delete.
    pub delete: Vec<PodName>,
    /// Pods to make: so many of these.
    pub make: usize,
    /// A pod as it is to be made.
    pub pod: Value,
    /// Its status.
    pub status: Value,
    /// When to look again although nothing has changed.
    pub again_at: Option<u64>,
}

/// Decides what is to be done for a replica set, given all pods of its namespace.
pub fn plan_replicas(set: &Value, pods: &[Value], now: u64) -> ReplicasPlan {
    let uid = meta_text(set, "uid");
    let selector = set.pointer("/spec/selector").and_then(Labels::of_selector);
    let selects = |pod: &Value| {
        let labels = metadata(pod).get("labels").and_then(Value::as_object);
        selector.as_ref().is_some_and(|it| !it.is_empty() && it.matches(labels))
    };
    let is_alive = |pod: &&Value| !is_pod_over(pod) && !is_deleting(pod);
    let is_ending = |pod: &&Value| !is_pod_over(pod) && is_deleting(pod);
    let is_own = |pod: &&Value| controller_uid(pod) == Some(uid);
    let is_going = is_deleting(set);
    let orphans = pods.iter().filter(|pod| controller_uid(pod).is_none() && selects(pod));
    let orphans: Vec<&Value> = orphans.filter(is_alive).filter(|_| !is_going).collect();
    let strays = pods.iter().filter(is_own).filter(|pod| !selects(pod));
    let strays = strays.filter(|_| !is_going).map(name_of).collect();
    let mut active: Vec<&Value> =
        pods.iter().filter(is_own).filter(|pod| selects(pod)).filter(is_alive).collect();
    active.extend(&orphans);
    let ending = pods.iter().filter(is_own).filter(|pod| selects(pod)).filter(is_ending).count();
    let wished = optional_count(set, "/spec/replicas").unwrap_or(1);
    let (size, present) = (wished.min(PODS_MAX), i64::try_from(active.len()).unwrap_or(i64::MAX));
    let burst = |number: i64| usize::try_from(number).unwrap_or(0).min(BURST);
    let pod = new_pod(set);
    // A pod that its set does not select would be no pod of it, and another would be made, without end.
    let is_fit = selects(&pod);
    let is_kept = is_fit && !is_going;
    let (missing, excess) =
        if is_kept { (burst(size - present), burst(present - size)) } else { (0, 0) };
    let refusal = refusal(wished, is_fit);
    let (status, again_at) = status(set, &active, ending, refusal.as_deref(), now);
    active.sort_by_key(|pod| standing(pod));
    ReplicasPlan {
        adopt: orphans.into_iter().map(name_of).collect(),
        release: strays,
        delete: active.iter().take(excess).map(|pod| name_of(pod)).collect(),
        make: missing,
        pod,
        status,
        again_at,
    }
}

/// Why a set does not get the pods it wishes for, whatever its server says to them.
fn refusal(wished: i64, is_fit: bool) -> Option<String> {
    if wished > PODS_MAX {
        let why = format!("{wished} pods are wished for; a ReplicaSet gets {PODS_MAX} at most");
        return Some(why);
    }
    let is_odd = wished > 0 && !is_fit;
    is_odd.then(|| "the selector does not match the labels of the template".to_owned())
}

/// Says in a status why pods could not be made or deleted. What it said before, as told in the set's
/// present status, stays with its time: a new one would be news of the set, and its next look at once.
pub fn note_failure(status: &mut Value, set: &Value, reason: &str, why: &str, now: u64) {
    let told = set.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = told.cloned().unwrap_or_default();
    put_failure(&mut conditions, reason, why, now);
    status["conditions"] = json!(conditions);
}

fn put_failure(conditions: &mut Vec<Value>, reason: &str, why: &str, now: u64) {
    put_condition(conditions, &(FAILURE, "True", reason, why.to_owned()), &time::format(now));
    for one in conditions.iter_mut().filter_map(Value::as_object_mut) {
        // Conditions of Deployments have it, those of replica sets do not.
        one.shift_remove("lastUpdateTime");
    }
}

fn name_of(pod: &Value) -> PodName {
    PodName { name: meta_text(pod, "name").to_owned(), uid: meta_text(pod, "uid").to_owned() }
}

/// What is compared to choose the pods that go: those that serve least are first.
fn standing(pod: &Value) -> impl Ord + use<> {
    let phase = match text_at(pod, "/status/phase") {
        "Pending" => 0,
        "Running" => 2,
        _ => 1,
    };
    let restarts = pod.pointer("/status/containerStatuses").and_then(Value::as_array);
    let restarts = restarts.into_iter().flatten().map(|one| count_at(one, "/restartCount"));
    (
        !text_at(pod, "/spec/nodeName").is_empty(),
        phase,
        is_pod_ready(pod),
        deletion_cost(pod),
        std::cmp::Reverse(ready_since(pod).unwrap_or_default()),
        std::cmp::Reverse(restarts.max().unwrap_or_default()),
        std::cmp::Reverse(meta_text(pod, "creationTimestamp").to_owned()),
    )
}

/// What it costs to delete a pod. A number that is written in another way than usual counts as none.
fn deletion_cost(pod: &Value) -> i32 {
    let text = annotation(pod, DELETION_COST);
    let is_usual =
        text == "0" || text.starts_with(['-', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    text.parse().ok().filter(|_| is_usual).unwrap_or_default()
}

/// A reference that makes the replica set the controller of a pod.
pub fn set_reference(set: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": meta_text(set, "name"),
        "uid": meta_text(set, "uid"), "controller": true, "blockOwnerDeletion": true,
    })
}

fn new_pod(set: &Value) -> Value {
    let template = set.pointer("/spec/template").cloned().unwrap_or_default();
    let mut metadata = json!({
        "generateName": format!("{}-", meta_text(set, "name")),
        "namespace": meta_text(set, "namespace"), "ownerReferences": [set_reference(set)],
    });
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(said) = template.pointer(&format!("/metadata/{field}")) {
            metadata[field] = said.clone();
        }
    }
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": template.get("spec").cloned().unwrap_or_default(),
    })
}

fn status(
    set: &Value,
    active: &[&Value],
    ending: usize,
    refusal: Option<&str>,
    now: u64,
) -> (Value, Option<u64>) {
    let wait = u64::try_from(count_at(set, "/spec/minReadySeconds")).unwrap_or_default();
    let template = set.pointer("/spec/template/metadata/labels").and_then(Value::as_object);
    let is_labelled = |pod: &&&Value| {
        let labels = metadata(pod).get("labels");
        let mut said = template.into_iter().flatten();
        said.all(|(name, value)| labels.and_then(|all| all.get(name)) == Some(value))
    };
    let ready: Vec<&&Value> = active.iter().filter(|pod| is_pod_ready(pod)).collect();
    let due = |pod: &Value| ready_since(pod).unwrap_or(now).saturating_add(wait);
    let available = ready.iter().filter(|pod| wait == 0 || due(pod) <= now).count();
    let again_at = ready.iter().map(|pod| due(pod)).filter(|due| wait > 0 && *due > now).min();
    let before = set.get("status").and_then(Value::as_object);
    let mut status: Map<String, Value> = before.cloned().unwrap_or_default();
    status.insert("replicas".to_owned(), json!(active.len()));
    // Zero is told, too: nothing said means that pods which end are not counted.
    status.insert("terminatingReplicas".to_owned(), json!(ending));
    for (field, count) in [
        ("fullyLabeledReplicas", active.iter().filter(is_labelled).count()),
        ("readyReplicas", ready.len()),
        ("availableReplicas", available),
    ] {
        if count > 0 {
            status.insert(field.to_owned(), json!(count));
        } else {
            status.shift_remove(field);
        }
    }
    let generation = metadata(set).get("generation").cloned();
    status.insert("observedGeneration".to_owned(), generation.unwrap_or(json!(0)));
    let conditions = status.get("conditions").and_then(Value::as_array);
    let mut conditions = conditions.cloned().unwrap_or_default();
    match refusal {
        Some(why) => put_failure(&mut conditions, "FailedCreate", why, now),
        None => drop_condition(&mut conditions, FAILURE),
    }
    if conditions.is_empty() {
        status.shift_remove("conditions");
    } else {
        status.insert("conditions".to_owned(), json!(conditions));
    }
    (Value::Object(status), again_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(replicas: i64) -> Value {
        json!({
            "metadata": {"name": "d-x", "namespace": "n", "uid": "s", "generation": 2},
            "spec": {
                "replicas": replicas, "minReadySeconds": 5,
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}},
            },
        })
    }

    fn pod(name: &str, ready: bool) -> Value {
        json!({
            "metadata": {"name": name, "uid": name, "labels": {"a": "b"},
                "ownerReferences": [{"uid": "s", "controller": true}]},
            "spec": {"nodeName": "apron"},
            "status": {"phase": "Running", "conditions": [{
                "type": "Ready", "status": if ready { "True" } else { "False" },
                "lastTransitionTime": "1970-01-01T00:00:10Z",
            }]},
        })
    }

    #[test]
    fn missing_pods_are_made_and_the_least_useful_of_too_many_go() {
        let plan = plan_replicas(&set(3), &[pod("p", true)], 100);
        assert_eq!((plan.make, plan.delete.len()), (2, 0));
        assert_eq!(plan.pod["metadata"]["generateName"], "d-x-");
        assert_eq!(plan.pod["metadata"]["ownerReferences"][0]["uid"], "s");
        let plan = plan_replicas(&set(1), &[pod("p", true), pod("q", false)], 100);
        assert_eq!(plan.delete, [PodName { name: "q".to_owned(), uid: "q".to_owned() }]);
    }

    #[test]
    fn a_pod_is_available_after_it_was_ready_for_long_enough() {
        let plan = plan_replicas(&set(1), &[pod("p", true)], 12);
        assert_eq!(plan.status["readyReplicas"], 1);
        assert_eq!(plan.status.get("availableReplicas"), None);
        assert_eq!(plan.again_at, Some(15));
        let plan = plan_replicas(&set(1), &[pod("p", true)], 15);
        assert_eq!((plan.again_at, &plan.status["availableReplicas"]), (None, &json!(1)));
    }

    #[test]
    fn pods_that_end_do_not_count_and_those_without_a_controller_are_adopted() {
        let mut ended = pod("p", true);
        ended["status"]["phase"] = json!("Failed");
        let mut orphan = pod("q", true);
        orphan["metadata"]["ownerReferences"] = json!([]);
        let mut stray = pod("r", true);
        stray["metadata"]["labels"]["a"] = json!("c");
        let plan = plan_replicas(&set(2), &[ended, orphan, stray], 100);
        assert_eq!((plan.make, plan.status["replicas"].as_i64()), (1, Some(1)));
        assert_eq!((plan.adopt[0].name.as_str(), plan.release[0].name.as_str()), ("q", "r"));
    }

    #[test]
    fn pods_that_are_deleted_count_as_ending_until_they_are_over() {
        let marked = |name: &str, phase: &str| {
            let mut pod = pod(name, true);
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            pod["status"]["phase"] = json!(phase);
            pod
        };
        let mut of_another = marked("x", "Running");
        of_another["metadata"]["ownerReferences"][0]["uid"] = json!("t");
        let mut stray = marked("y", "Running");
        stray["metadata"]["labels"]["a"] = json!("c");
        let counts = |pods: &[Value]| {
            let status = plan_replicas(&set(0), pods, 100).status;
            (status["replicas"].as_u64(), status["terminatingReplicas"].as_u64())
        };
        let pods = [marked("p", "Running"), marked("q", "Pending"), of_another, stray];
        assert_eq!(counts(&pods), (Some(0), Some(2)));
        let over = [marked("p", "Failed"), marked("q", "Succeeded")];
        assert_eq!(counts(&over), (Some(0), Some(0)), "zero is told");
        assert_eq!(counts(&[pod("p", true)]), (Some(1), Some(0)));
    }

    #[test]
    fn what_no_machine_could_run_is_not_made() {
        let pods: Vec<Value> = (0..1000).map(|n| pod(&format!("p{n}"), true)).collect();
        let plan = plan_replicas(&set(i64::MAX), &pods, 100);
        assert_eq!(plan.make, 0);
        assert_eq!(plan.status["conditions"][0]["reason"], "FailedCreate");
        assert_eq!(plan_replicas(&set(i64::MAX), &[], 100).make, BURST);
    }

    /// A set that is written past what is checked now made 500 pods at each look.
    #[test]
    fn a_set_that_does_not_select_its_own_pods_makes_none_and_says_so() {
        let selectors = [
            Value::Null,
            json!({}),
            json!({"matchLabels": {"a": "c"}}),
            json!({"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}),
        ];
        for selector in selectors {
            let mut odd = set(2);
            odd["spec"]["selector"] = selector.clone();
            let plan = plan_replicas(&odd, &[], 100);
            assert_eq!(plan.make, 0, "{selector}");
            let said = &plan.status["conditions"][0];
            assert_eq!(said["message"], "the selector does not match the labels of the template");
            odd["spec"]["replicas"] = json!(0);
            assert_eq!(plan_replicas(&odd, &[], 100).status.get("conditions"), None);
        }
    }

    #[test]
    fn of_pods_that_are_ready_those_that_cost_least_go_first() {
        let priced = |name: &str, ready: bool, cost: &str| {
            let mut pod = pod(name, ready);
            pod["metadata"]["annotations"] = json!({DELETION_COST: cost});
            pod
        };
        let pods = [
            priced("dear", true, "10"),
            priced("odd", true, "+20"),
            priced("cheap", true, "-1"),
            priced("unready", false, "100"),
        ];
        let plan = plan_replicas(&set(1), &pods, 100);
        let going: Vec<&str> = plan.delete.iter().map(|pod| pod.name.as_str()).collect();
        assert_eq!(going, ["unready", "cheap", "odd"]);
    }

    #[test]
    fn a_failure_that_goes_on_is_no_news() {
        let mut failing = set(1);
        let mut status = plan_replicas(&failing, &[], 100).status;
        note_failure(&mut status, &failing, "FailedCreate", "no account", 100);
        assert_eq!(
            status["conditions"],
            json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
                "message": "no account", "lastTransitionTime": "1970-01-01T00:01:40Z"}])
        );
        failing["status"] = status.clone();
        let mut again = plan_replicas(&failing, &[], 200).status;
        note_failure(&mut again, &failing, "FailedCreate", "no account", 200);
        assert_eq!(again, status);
    }

    #[test]
    fn a_set_that_goes_makes_and_deletes_nothing() {
        let mut going = set(3);
        going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(plan_replicas(&going, &[], 100).make, 0);
    }
}
