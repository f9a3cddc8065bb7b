//! Containers of a pod: which one is meant, and whether it has written anything yet.

use serde_json::Value;

use crate::reading::text_at;
use schema::object::meta_text;

/// Where a pod's containers are declared, and where their states are told.
const PARTS: [(&str, &str); 3] = [
    ("/spec/initContainers", "/status/initContainerStatuses"),
    ("/spec/containers", "/status/containerStatuses"),
    ("/spec/ephemeralContainers", "/status/ephemeralContainerStatuses"),
];

fn list_at<'a>(pod: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    pod.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn names_at(pod: &Value, pointer: &str) -> Vec<String> {
    let names = list_at(pod, pointer).filter_map(|one| one["name"].as_str());
    names.map(str::to_owned).collect()
}

/// The container that a name, or none, means; or why none does, in upstream's words.
pub fn choose_container(pod: &Value, wished: &str) -> Result<String, String> {
    let name = meta_text(pod, "name");
    let mut all = PARTS.iter().flat_map(|(declared, _)| names_at(pod, declared));
    if !wished.is_empty() {
        let refusal = || format!("container {wished} is not valid for pod {name}");
        return all.find(|one| one == wished).ok_or_else(refusal);
    }
    let must = format!("a container name must be specified for pod {name}");
    match names_at(pod, "/spec/containers").as_slice() {
        [] => Err(must),
        [only] => Ok(only.clone()),
        _ => Err(format!("{must}, choose one of: [{}]", all.collect::<Vec<_>>().join(" "))),
    }
}

/// Why a container has no log yet, or none of an earlier run, in the words of kubelet.
pub fn explain_missing_log(pod: &Value, container: &str, previous: bool) -> Option<String> {
    let named = format!("container {container:?} in pod {:?}", meta_text(pod, "name"));
    let mut told = PARTS.iter().flat_map(|(_, states)| list_at(pod, states));
    let Some(found) = told.find(|one| one["name"] == container) else {
        return Some(format!("{named} is not available"));
    };
    let has_ended = found.pointer("/lastState/terminated").is_some_and(Value::is_object);
    if previous {
        return (!has_ended).then(|| format!("previous terminated {named} not found"));
    }
    let is_in = |state: &str| found.pointer(state).is_some_and(Value::is_object);
    if is_in("/state/running") || is_in("/state/terminated") || has_ended {
        return None;
    }
    if !is_in("/state/waiting") {
        return Some(format!("{named} is waiting to start - no logs yet"));
    }
    let why = match text_at(found, "/state/waiting/reason") {
        "ErrImagePull" => "image can't be pulled",
        "ImagePullBackOff" => "trying and failing to pull image",
        reason => reason,
    };
    Some(format!("{named} is waiting to start: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(status: &Value) -> Value {
        json!({
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "a"}], "initContainers": [{"name": "i"}]},
            "status": {"containerStatuses": [status]},
        })
    }

    #[test]
    fn the_only_container_is_meant_and_of_several_one_must_be_named() {
        let mut pod = pod(&json!({}));
        assert_eq!(choose_container(&pod, "").as_deref(), Ok("a"));
        assert_eq!(choose_container(&pod, "i").as_deref(), Ok("i"));
        let refused = choose_container(&pod, "x").unwrap_err();
        assert_eq!(refused, "container x is not valid for pod p");
        pod["spec"]["containers"] = json!([{"name": "a"}, {"name": "b"}]);
        assert_eq!(
            choose_container(&pod, "").unwrap_err(),
            "a container name must be specified for pod p, choose one of: [i a b]"
        );
    }

    #[test]
    fn a_container_that_has_not_run_says_what_it_waits_for() {
        let said = |status: Value, previous| explain_missing_log(&pod(&status), "a", previous);
        let waiting = |reason: &str| json!({"name": "a", "state": {"waiting": {"reason": reason}}});
        let of = |what: &str| Some(format!("container \"a\" in pod \"p\" {what}"));
        assert_eq!(said(json!({}), false), of("is not available"));
        assert_eq!(
            said(waiting("ContainerCreating"), false),
            of("is waiting to start: ContainerCreating")
        );
        assert_eq!(
            said(waiting("ErrImagePull"), false),
            of("is waiting to start: image can't be pulled")
        );
        assert_eq!(
            said(waiting("ImagePullBackOff"), false),
            of("is waiting to start: trying and failing to pull image")
        );
        assert_eq!(said(json!({"name": "a"}), false), of("is waiting to start - no logs yet"));
        let running = json!({"name": "a", "state": {"running": {"startedAt": "x"}}});
        assert_eq!(said(running.clone(), false), None);
        assert_eq!(
            said(running, true).as_deref(),
            Some("previous terminated container \"a\" in pod \"p\" not found")
        );
        let mut crashing = waiting("CrashLoopBackOff");
        crashing["lastState"] = json!({"terminated": {"exitCode": 1}});
        assert_eq!((said(crashing.clone(), false), said(crashing, true)), (None, None));
    }
}
