//! What is in the way of the pods that run a package, in words.

use crate::installed::Installed;
use api::condition::{self, types};
use api::meta::PackageKind;
use api::pkg::revision::Revision;
use controller::UNESTABLISHED;
use serde::Serialize;
use serde_json::Value as Json;

/// The container that runs a package. Runtime configurations may put others beside it.
pub const RUNTIME_CONTAINER: &str = "package-runtime";

/// Where a pod tells how its containers are.
pub(crate) const INIT_STATUSES: &str = "/status/initContainerStatuses";
pub(crate) const STATUSES: &str = "/status/containerStatuses";

/// How a pod or a container is that does not do its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PodPlight {
    /// The container waits to be started.
    Waiting,
    /// The container has ended.
    Terminated,
    /// The container runs, and is not ready.
    NotReady,
    /// The pod has no node.
    Unscheduled,
    /// The pod was given up.
    Failed,
}

/// Which run of a container a log is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogRun {
    /// The run that goes on, or the last one.
    Present,
    /// The run before that.
    Previous,
}

/// The end of a container's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogTail {
    /// Whether it is of the run that ended last, and another one goes on.
    pub of_previous_run: bool,
    /// The last lines.
    pub lines: Vec<String>,
}

/// What is in the way of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodTrouble {
    /// The pod's name.
    pub pod: String,
    /// The container's name; none if the pod as a whole is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// How it is.
    pub state: PodPlight,
    /// Why, in one word of the node's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why, in sentences.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How often the container was started again.
    pub restarts: i64,
    /// How the run ended that ended last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<RunEnd>,
    /// The end of the log that tells most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<LogTail>,
}

/// How a run of a container ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunEnd {
    /// The exit code.
    pub exit_code: i64,
    /// Why, in one word: `Error`, `OOMKilled`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What the program left behind, or the node says.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Installed {
    /// The revision whose program the manager does not call healthy, if it was started at all.
    pub fn failing_runtime(&self) -> Option<&Revision> {
        let revision = self.current().filter(|_| self.kind != PackageKind::Configuration)?;
        let said = condition::find(revision.conditions(), types::RUNTIME_HEALTHY)?;
        let is_started = said.message.as_deref() != Some(UNESTABLISHED);
        (said.status != "True" && is_started).then_some(revision)
    }
}

impl RunEnd {
    fn from_state(terminated: &Json) -> Option<Self> {
        let exit_code = terminated["exitCode"].as_i64()?;
        let [reason, message] = ["reason", "message"].map(|name| text_of(&terminated[name]));
        Some(Self { exit_code, reason, message })
    }

    fn describe(&self) -> String {
        let why = join_parts(&[&self.reason, &self.message]);
        let why = if why.is_empty() { why } else { format!(" ({why})") };
        format!("code {}{why}", self.exit_code)
    }
}

impl PodTrouble {
    /// What is in the way of a pod: of each container that does not do its work, or of the pod as a whole.
    /// A pod that is asked to end is in its own way only.
    pub fn of_pod(pod: &Json) -> Vec<Self> {
        if pod.pointer("/metadata/deletionTimestamp").is_some_and(Json::is_string) {
            return Vec::new();
        }
        if pod["status"]["phase"] == "Failed" {
            let [reason, message] = ["reason", "message"].map(|name| text_of(&pod["status"][name]));
            let failed = Self { reason, message, ..Self::of_whole(pod, PodPlight::Failed) };
            return vec![failed];
        }
        // The other containers wait for one that prepares the pod, and say no more than that.
        let mut first = statuses(pod, INIT_STATUSES).filter_map(|one| Self::of_init(pod, one));
        if let Some(first) = first.next() {
            return vec![first];
        }
        let all: Vec<&Json> = statuses(pod, STATUSES).collect();
        if all.is_empty() {
            return vec![Self::of_unstarted(pod)];
        }
        all.into_iter().filter_map(|one| Self::of_container(pod, one)).collect()
    }

    fn of_whole(pod: &Json, state: PodPlight) -> Self {
        Self {
            pod: text_of(&pod["metadata"]["name"]),
            container: None,
            state,
            reason: String::new(),
            message: String::new(),
            restarts: 0,
            ended: None,
            log: None,
        }
    }

    /// A pod of which no node has said anything.
    fn of_unstarted(pod: &Json) -> Self {
        let conditions = pod["status"]["conditions"].as_array().map(Vec::as_slice);
        let mut conditions = conditions.unwrap_or_default().iter();
        let said = conditions.find(|one| one["type"] == "PodScheduled" && one["status"] == "False");
        let Some(said) = said else { return Self::of_whole(pod, PodPlight::Waiting) };
        let [reason, message] = ["reason", "message"].map(|name| text_of(&said[name]));
        Self { reason, message, ..Self::of_whole(pod, PodPlight::Unscheduled) }
    }

    /// A container that prepares the pod is in the way if it did not end well, or cannot be started.
    fn of_init(pod: &Json, status: &Json) -> Option<Self> {
        let found = Self::of_container(pod, status)?;
        let is_in_the_way = match found.state {
            PodPlight::Waiting => found.reason != "PodInitializing",
            PodPlight::Terminated => found.ended.as_ref().is_some_and(|end| end.exit_code != 0),
            _ => false,
        };
        is_in_the_way.then_some(found)
    }

    fn of_container(pod: &Json, status: &Json) -> Option<Self> {
        let state = &status["state"];
        let plight = if state["waiting"].is_object() {
            PodPlight::Waiting
        } else if state["terminated"].is_object() {
            PodPlight::Terminated
        } else if !state["running"].is_object() {
            PodPlight::Waiting
        } else if status["ready"] == true {
            return None;
        } else {
            PodPlight::NotReady
        };
        let ended = match plight {
            PodPlight::Terminated => RunEnd::from_state(&state["terminated"]),
            _ => RunEnd::from_state(&status["lastState"]["terminated"]),
        };
        Some(Self {
            container: Some(text_of(&status["name"])),
            reason: text_of(&state["waiting"]["reason"]),
            message: text_of(&state["waiting"]["message"]),
            restarts: status["restartCount"].as_i64().unwrap_or_default(),
            ended,
            ..Self::of_whole(pod, plight)
        })
    }

    /// The number of the run that ended last, if one has: its log tells why.
    pub fn ended_run(&self) -> Option<i64> {
        let goes_on = self.state == PodPlight::NotReady;
        self.ended.as_ref().map(|_| self.restarts.saturating_sub(i64::from(goes_on)))
    }

    /// The runs with logs that may tell why, the best first.
    pub fn log_runs(&self) -> &'static [LogRun] {
        let ended_badly = self.ended.as_ref().is_some_and(|end| end.exit_code != 0);
        match (self.state, &self.ended) {
            (PodPlight::Terminated, _) | (PodPlight::NotReady, None) => &[LogRun::Present],
            (PodPlight::Waiting, Some(_)) => &[LogRun::Previous],
            (PodPlight::NotReady, Some(_)) if ended_badly => &[LogRun::Previous, LogRun::Present],
            (PodPlight::NotReady, Some(_)) => &[LogRun::Present, LogRun::Previous],
            _ => &[],
        }
    }

    /// Adds the last warning of the API server's events about the pod, where its status does not say why.
    pub fn add_warning(&mut self, events: &[Json]) {
        let is_about = |event: &&Json| {
            let about = &event["involvedObject"];
            event["type"] == "Warning" && about["kind"] == "Pod" && about["name"] == *self.pod
        };
        let last = events.iter().filter(is_about).max_by_key(|event| event_time(event));
        if let Some(event) = last.filter(|_| self.message.is_empty()) {
            let [reason, message] = ["reason", "message"].map(|name| text_of(&event[name]));
            self.message = join_parts(&[&reason, message.trim()]);
        }
    }

    /// The same in one sentence, without the log.
    pub fn sentence(&self) -> String {
        let pod = &self.pod;
        let subject = match &self.container {
            Some(container) if container != RUNTIME_CONTAINER => {
                format!("container {container} of pod {pod}")
            }
            _ => format!("pod {pod}"),
        };
        let why = join_parts(&[&self.reason, &self.message]);
        let why = if why.is_empty() { why } else { format!(": {why}") };
        let end = self.ended.as_ref().map(RunEnd::describe);
        let mut told = match (self.state, &end) {
            (PodPlight::Waiting, _) => format!("{subject} waits{why}"),
            (PodPlight::Terminated, Some(end)) => format!("{subject} has ended with {end}"),
            (PodPlight::Terminated, None) => format!("{subject} has ended"),
            (PodPlight::NotReady, _) => format!("{subject} runs and is not ready{why}"),
            (PodPlight::Unscheduled, _) => format!("{subject} has no node{why}"),
            (PodPlight::Failed, _) => format!("{subject} has failed{why}"),
        };
        if let Some(end) = end.filter(|_| self.state != PodPlight::Terminated) {
            told = format!("{told}; its last run ended with {end}");
        }
        match self.restarts {
            0 => told,
            1 => format!("{told}; restarted once"),
            count => format!("{told}; restarted {count} times"),
        }
    }

    /// The same with the last line of the log, where one line has to do.
    pub fn sentence_with_log(&self) -> String {
        let last = self.log.as_ref().and_then(|log| log.lines.last());
        match last {
            Some(line) => format!("{}; its log ends with: {line}", self.sentence()),
            None => self.sentence(),
        }
    }
}

/// What a pod tells of its containers.
pub(crate) fn statuses<'a>(
    pod: &'a Json,
    pointer: &str,
) -> impl Iterator<Item = &'a Json> + use<'a> {
    pod.pointer(pointer).and_then(Json::as_array).into_iter().flatten()
}

pub(crate) fn text_of(value: &Json) -> String {
    value.as_str().unwrap_or_default().trim().to_owned()
}

fn join_parts(parts: &[&str]) -> String {
    let told: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    told.join(": ")
}

/// When an event happened last, in a form that sorts.
fn event_time(event: &Json) -> String {
    let times = [
        &event["lastTimestamp"],
        &event["series"]["lastObservedTime"],
        &event["eventTime"],
        &event["metadata"]["creationTimestamp"],
    ];
    times.into_iter().find_map(Json::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(status: &Json) -> Json {
        json!({"metadata": {"name": "p-1"}, "status": status})
    }

    fn running(state: &Json, last: &Json, restarts: i64) -> Json {
        pod(&json!({"phase": "Running", "containerStatuses": [{
            "name": "package-runtime", "ready": false, "restartCount": restarts,
            "state": state, "lastState": last,
        }]}))
    }

    fn sentences(pod: &Json) -> Vec<String> {
        PodTrouble::of_pod(pod).iter().map(PodTrouble::sentence).collect()
    }

    #[test]
    fn what_is_in_the_way_of_a_pod_is_told_in_the_words_of_its_node() {
        let ended = json!({"terminated": {"exitCode": 3, "reason": "Error"}});
        let killed =
            json!({"terminated": {"exitCode": 137, "reason": "OOMKilled", "message": "m"}});
        let waiting = |reason: &str| json!({"waiting": {"reason": reason, "message": "so it is"}});
        for (pod, expected) in [
            (
                running(&waiting("ErrImagePull"), &json!({}), 0),
                "pod p-1 waits: ErrImagePull: so it is",
            ),
            (
                running(&waiting("CrashLoopBackOff"), &ended, 4),
                "pod p-1 waits: CrashLoopBackOff: so it is; its last run ended with code 3 (Error); \
                 restarted 4 times",
            ),
            (running(&ended, &json!({}), 0), "pod p-1 has ended with code 3 (Error)"),
            (running(&json!({"running": {}}), &json!({}), 0), "pod p-1 runs and is not ready"),
            (
                running(&json!({"running": {}}), &killed, 1),
                "pod p-1 runs and is not ready; its last run ended with code 137 (OOMKilled: m); \
                 restarted once",
            ),
            (running(&json!({}), &json!({}), 0), "pod p-1 waits"),
            (pod(&json!({"phase": "Pending"})), "pod p-1 waits"),
            (
                pod(&json!({"phase": "Failed", "reason": "Evicted", "message": "no disk"})),
                "pod p-1 has failed: Evicted: no disk",
            ),
            (
                pod(&json!({"conditions": [{"type": "PodScheduled", "status": "False",
                    "reason": "Unschedulable", "message": "0/3 nodes are available"}]})),
                "pod p-1 has no node: Unschedulable: 0/3 nodes are available",
            ),
        ] {
            assert_eq!(sentences(&pod), [expected], "{pod:#}");
        }
    }

    #[test]
    fn what_does_its_work_or_is_about_to_end_is_not_in_the_way() {
        let mut pod = running(&json!({"running": {}}), &json!({}), 0);
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-31T12:00:00Z");
        assert!(sentences(&pod).is_empty());
        let mut pod = running(&json!({"running": {}}), &json!({}), 2);
        pod["status"]["containerStatuses"][0]["ready"] = json!(true);
        assert!(sentences(&pod).is_empty());
    }

    #[test]
    fn a_container_that_prepares_the_pod_is_told_alone() {
        let init = |state: Json| {
            let mut pod =
                running(&json!({"waiting": {"reason": "PodInitializing"}}), &json!({}), 0);
            pod["status"]["initContainerStatuses"] = json!([
                {"name": "first", "state": state},
                {"name": "second", "state": {"waiting": {"reason": "PodInitializing"}}},
            ]);
            sentences(&pod)
        };
        assert_eq!(
            init(json!({"terminated": {"exitCode": 1}})),
            ["container first of pod p-1 has ended with code 1"]
        );
        let waits = ["pod p-1 waits: PodInitializing"];
        assert_eq!(init(json!({"terminated": {"exitCode": 0}})), waits);
        assert_eq!(init(json!({"running": {}})), waits);
    }

    #[test]
    fn the_log_that_is_read_is_that_of_the_run_that_ended() {
        let runs = |state: Json, last: Json| {
            let found = PodTrouble::of_pod(&running(&state, &last, 1));
            (found[0].log_runs().to_vec(), found[0].ended_run())
        };
        let ended = |code: i64| json!({"terminated": {"exitCode": code}});
        let (waiting, running) = (json!({"waiting": {}}), json!({"running": {}}));
        assert_eq!(runs(waiting.clone(), json!({})), (vec![], None));
        assert_eq!(runs(waiting, ended(1)), (vec![LogRun::Previous], Some(1)));
        assert_eq!(runs(ended(1), ended(1)), (vec![LogRun::Present], Some(1)));
        assert_eq!(runs(running.clone(), json!({})), (vec![LogRun::Present], None));
        let both = vec![LogRun::Previous, LogRun::Present];
        assert_eq!(runs(running.clone(), ended(1)), (both, Some(0)));
        let both = vec![LogRun::Present, LogRun::Previous];
        assert_eq!(runs(running, ended(0)), (both, Some(0)));
    }

    #[test]
    fn the_last_warning_says_what_a_status_does_not() {
        let event = |name: &str, kind: &str, time: &str, message: &str| {
            json!({"type": kind, "reason": "FailedMount", "message": message,
                "lastTimestamp": time, "involvedObject": {"kind": "Pod", "name": name}})
        };
        let events = [
            event("p-1", "Warning", "2026-01-02T00:00:00Z", "no such Secret"),
            event("p-1", "Warning", "2026-01-01T00:00:00Z", "older"),
            event("p-1", "Normal", "2026-01-03T00:00:00Z", "no warning"),
            event("p-2", "Warning", "2026-01-03T00:00:00Z", "of another one"),
        ];
        let told = |state: Json| {
            let mut found = PodTrouble::of_pod(&running(&state, &json!({}), 0)).remove(0);
            found.add_warning(&events);
            found.sentence()
        };
        assert_eq!(
            told(json!({"waiting": {"reason": "ContainerCreating"}})),
            "pod p-1 waits: ContainerCreating: FailedMount: no such Secret"
        );
        let own = json!({"waiting": {"reason": "ErrImagePull", "message": "own"}});
        assert_eq!(told(own), "pod p-1 waits: ErrImagePull: own");
    }

    #[test]
    fn a_program_reads_what_people_do() {
        let ended = json!({"terminated": {"exitCode": 1}});
        let pod = running(&json!({"waiting": {"reason": "CrashLoopBackOff"}}), &ended, 2);
        let mut found = PodTrouble::of_pod(&pod).remove(0);
        let lines = vec!["a".to_owned(), "b".to_owned()];
        found.log = Some(LogTail { of_previous_run: true, lines });
        assert_eq!(
            serde_json::to_value(&found).unwrap(),
            json!({
                "pod": "p-1", "container": "package-runtime", "state": "waiting",
                "reason": "CrashLoopBackOff", "restarts": 2, "ended": {"exitCode": 1},
                "log": {"ofPreviousRun": true, "lines": ["a", "b"]},
            })
        );
        assert!(found.sentence_with_log().ends_with("restarted 2 times; its log ends with: b"));
    }
}
