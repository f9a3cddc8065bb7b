//! Pods on their way: what is started when, and what their status says of it.

use super::actions::next_actions;
use super::record::{EndedRun, PodRecord, RunState, restarts, waiting};
use super::status::{is_ready, make_status};
use super::{find_container, init_containers};
use k8s_openapi::api::core::v1::{Pod, PodSpec, PodStatus};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::net::Ipv4Addr;

const HOST: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 1);

/// A pod on a node that has only a clock.
struct Life {
    pod: Pod,
    record: PodRecord,
    now: Timestamp,
}

impl Life {
    fn of(spec: &Value) -> Self {
        let pod = json!({"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": spec});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let now = Timestamp::from_second(1_000_000).unwrap();
        let mut record = PodRecord::resume(&pod, now);
        record.started = Some(now);
        record.address = Some(Ipv4Addr::new(10, 244, 0, 7));
        Self { pod, record, now }
    }

    fn spec(&self) -> PodSpec {
        self.pod.spec.clone().unwrap()
    }

    fn pass(&mut self, seconds: i64) {
        self.now = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
    }

    /// What is started now; it runs from now on.
    fn start_due(&mut self) -> Vec<String> {
        let spec = self.spec();
        let actions = next_actions(&spec, &mut self.record, self.now);
        for name in &actions.start {
            let container = find_container(&spec, name).unwrap();
            let record = self.record.containers.entry(name.clone()).or_default();
            if let RunState::Ended { run, .. } = record.state.clone() {
                record.pause.note_retry(run.finished, self.now);
                record.last = Some(run);
                record.state = waiting("ContainerCreating", None);
            }
            record.note_try(self.now);
            record.note_running(container, self.now);
        }
        actions.start
    }

    fn end(&mut self, name: &str, exit_code: i32) {
        let spec = self.spec();
        let container = find_container(&spec, name).unwrap();
        let is_first = init_containers(&spec).iter().any(|one| one.name == name);
        let record = self.record.containers.get_mut(name).unwrap();
        let RunState::Running { since } = record.state else { panic!("{name} does not run") };
        let reason = if exit_code == 0 { "Completed" } else { "Error" };
        let run = EndedRun {
            exit_code,
            reason: reason.to_owned(),
            message: None,
            started: Some(since),
            finished: self.now,
            id: format!("apron://u/{name}/{}", record.restarts),
        };
        record.note_end(run, restarts(&spec, container, is_first));
    }

    fn status(&self) -> PodStatus {
        make_status(&self.pod, &self.record, HOST, self.now)
    }

    fn phase(&self) -> String {
        self.status().phase.unwrap()
    }

    /// A condition, as `True` or its reason.
    fn condition(&self, kind: &str) -> String {
        let all = self.status().conditions.unwrap();
        let one = all.into_iter().find(|one| one.type_ == kind).unwrap();
        if one.status == "True" { one.status } else { one.reason.unwrap_or(one.status) }
    }

    /// A container in a word: `running`, or its reason.
    fn container(&self, name: &str) -> String {
        let status = self.status();
        let first = status.init_container_statuses.into_iter().flatten();
        let mut all = first.chain(status.container_statuses.into_iter().flatten());
        let state = all.find(|one| one.name == name).unwrap().state.unwrap();
        match (state.waiting, state.terminated) {
            (Some(waiting), _) => waiting.reason.unwrap(),
            (_, Some(ended)) => ended.reason.unwrap(),
            _ => "running".to_owned(),
        }
    }
}

#[test]
fn a_pod_that_comes_up_says_so() {
    let mut life = Life::of(&json!({"containers": [{"name": "c", "image": "i"}]}));
    assert_eq!((life.phase(), life.container("c")), ("Pending".into(), "ContainerCreating".into()));
    assert_eq!(life.condition("Ready"), "ContainersNotReady");
    assert_eq!(life.start_due(), ["c"]);
    assert_eq!((life.phase(), life.container("c")), ("Running".into(), "running".into()));
    for kind in
        ["PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"]
    {
        assert_eq!(life.condition(kind), "True", "{kind}");
    }
    let status = life.status();
    assert_eq!(status.pod_ip.as_deref(), Some("10.244.0.7"));
    assert_eq!(status.host_ip.as_deref(), Some("10.244.0.1"));
    assert_eq!(status.qos_class.as_deref(), Some("BestEffort"));
    let container = &status.container_statuses.unwrap()[0];
    assert_eq!(
        (container.ready, container.restart_count, container.started),
        (true, 0, Some(true))
    );
    assert_eq!(container.container_id.as_deref(), Some("apron://u/c/0"));
}

#[test]
fn a_container_that_fails_is_started_again_later_and_later() {
    let mut life = Life::of(&json!({"containers": [{"name": "c", "image": "i"}]}));
    life.start_due();
    life.end("c", 1);
    // The first time at once.
    assert_eq!(life.container("c"), "Error");
    assert_eq!(life.start_due(), ["c"]);
    life.end("c", 2);
    assert_eq!(life.start_due(), [""; 0]);
    assert_eq!((life.phase(), life.container("c")), ("Running".into(), "CrashLoopBackOff".into()));
    let status = &life.status().container_statuses.unwrap()[0];
    let waiting = status.state.clone().unwrap().waiting.unwrap();
    assert_eq!(
        waiting.message.as_deref(),
        Some("back-off 10s restarting failed container=c pod=p_n(u)")
    );
    assert_eq!(status.last_state.clone().unwrap().terminated.unwrap().exit_code, 2);
    assert_eq!(status.restart_count, 1);
    life.pass(9);
    assert_eq!(life.start_due(), [""; 0]);
    life.pass(1);
    assert_eq!(life.start_due(), ["c"]);
    assert_eq!(life.status().container_statuses.unwrap()[0].restart_count, 2);
    life.pass(601);
    life.end("c", 0);
    assert_eq!(life.start_due(), ["c"], "after ten minutes it begins anew");
}

#[test]
fn what_comes_first_is_done_before_the_others_begin() {
    let mut life = Life::of(&json!({
        "initContainers": [{"name": "a"}, {"name": "side", "restartPolicy": "Always",
            "startupProbe": {"tcpSocket": {"port": 1}}}, {"name": "b"}],
        "containers": [{"name": "c"}],
    }));
    assert_eq!(life.start_due(), ["a"]);
    assert_eq!(life.container("c"), "PodInitializing");
    assert_eq!(life.condition("Initialized"), "ContainersNotInitialized");
    life.end("a", 1);
    assert_eq!(life.start_due(), ["a"]);
    life.end("a", 0);
    assert_eq!(life.start_due(), ["side"]);
    assert_eq!(life.start_due(), [""; 0], "it has not come up yet");
    life.record.containers.get_mut("side").unwrap().is_up = true;
    assert_eq!(life.start_due(), ["b"]);
    life.end("b", 0);
    assert_eq!(life.start_due(), ["c"]);
    assert_eq!((life.phase(), life.condition("Ready")), ("Running".into(), "True".into()));
    // A companion that fails is started again, whatever else runs.
    life.end("side", 1);
    assert_eq!(life.start_due(), ["side"]);
    assert_eq!(life.condition("Initialized"), "True");
}

#[test]
fn a_pod_that_is_done_lets_its_companions_go() {
    let mut life = Life::of(&json!({
        "restartPolicy": "Never",
        "initContainers": [{"name": "one", "restartPolicy": "Always"}, {"name": "two", "restartPolicy": "Always"}],
        "containers": [{"name": "c"}],
    }));
    assert_eq!([life.start_due(), life.start_due(), life.start_due()], [["one"], ["two"], ["c"]]);
    life.end("c", 0);
    let spec = life.spec();
    let actions = next_actions(&spec, &mut life.record, life.now);
    assert_eq!((actions.stop, actions.is_over), (vec!["two".to_owned()], false));
    assert_eq!(life.phase(), "Running");
    life.end("two", 0);
    let actions = next_actions(&spec, &mut life.record, life.now);
    assert_eq!((actions.stop, actions.is_over), (vec!["one".to_owned()], false));
    life.end("one", 0);
    let actions = next_actions(&spec, &mut life.record, life.now);
    assert!(actions.is_over && actions.start.is_empty());
    assert_eq!(
        (life.phase(), life.condition("Ready")),
        ("Succeeded".into(), "PodCompleted".into())
    );
}

#[test]
fn a_pod_is_ready_once_its_companions_are_and_what_others_say_of_it_holds() {
    let mut life = Life::of(&json!({
        "readinessGates": [{"conditionType": "example.org/open"}],
        "initContainers": [{"name": "side", "restartPolicy": "Always",
            "readinessProbe": {"tcpSocket": {"port": 1}}}],
        "containers": [{"name": "c"}],
    }));
    assert_eq!([life.start_due(), life.start_due()], [["side"], ["c"]]);
    assert!(!is_ready(&life.status()), "the companion is not");
    life.record.containers.get_mut("side").unwrap().is_ready = true;
    assert!(!is_ready(&life.status()), "the gate is closed");
    let open = json!({"conditions": [{"type": "example.org/open", "status": "True"}]});
    life.pod.status = Some(serde_json::from_value(open).unwrap());
    assert!(is_ready(&life.status()));
}

#[test]
fn pods_that_are_not_to_be_started_again_end_as_they_did() {
    let ended = |policy: &str, code: i32| {
        let mut life = Life::of(&json!({"restartPolicy": policy, "containers": [{"name": "c"}]}));
        life.start_due();
        life.end("c", code);
        let again = life.start_due();
        (life.phase(), !again.is_empty())
    };
    assert_eq!(ended("Never", 0), ("Succeeded".to_owned(), false));
    assert_eq!(ended("Never", 3), ("Failed".to_owned(), false));
    assert_eq!(ended("OnFailure", 0), ("Succeeded".to_owned(), false));
    assert_eq!(ended("OnFailure", 3), ("Running".to_owned(), true));
    assert_eq!(ended("Always", 0), ("Running".to_owned(), true));
    let mut life = Life::of(&json!({
        "restartPolicy": "Never", "initContainers": [{"name": "i"}], "containers": [{"name": "c"}],
    }));
    life.start_due();
    life.end("i", 1);
    assert_eq!((life.start_due(), life.phase()), (Vec::new(), "Failed".to_owned()));
    let mut life = Life::of(&json!({"activeDeadlineSeconds": 60, "containers": [{"name": "c"}]}));
    life.start_due();
    life.pass(60);
    let spec = life.spec();
    assert_eq!(next_actions(&spec, &mut life.record, life.now).stop, ["c"]);
    assert_eq!((life.phase(), life.status().reason), ("Running".into(), None), "it still runs");
    life.end("c", 143);
    assert_eq!(
        (life.phase(), life.status().reason),
        ("Failed".into(), Some("DeadlineExceeded".into()))
    );
}

#[test]
fn a_program_that_cannot_be_executed_is_tried_again_only_if_the_pod_wishes_it() {
    let fail = |policy: &str| {
        let mut life = Life::of(&json!({"restartPolicy": policy, "containers": [{"name": "c"}]}));
        let spec = life.spec();
        assert_eq!(next_actions(&spec, &mut life.record, life.now).start, ["c"]);
        let record = life.record.containers.get_mut("c").unwrap();
        record.note_try(life.now);
        let run = EndedRun {
            exit_code: 128,
            reason: "StartError".to_owned(),
            message: Some("exec: \"x\": no such file".to_owned()),
            started: None,
            finished: life.now,
            id: "apron://u/c/0".to_owned(),
        };
        record.note_start_failure(run, restarts(&spec, &spec.containers[0], false));
        life.pass(10);
        let again = next_actions(&spec, &mut life.record, life.now);
        (life.phase(), life.container("c"), again.start.len(), again.is_over)
    };
    assert_eq!(fail("Never"), ("Failed".to_owned(), "StartError".to_owned(), 0, true));
    for policy in ["Always", "OnFailure"] {
        assert_eq!(
            fail(policy),
            ("Running".to_owned(), "RunContainerError".to_owned(), 1, false),
            "{policy}"
        );
    }
}

#[test]
fn a_failed_pull_becomes_a_pause() {
    let mut life = Life::of(&json!({"containers": [{"name": "c", "image": "i"}]}));
    let spec = life.spec();
    let record = life.record.containers.get_mut("c").unwrap();
    let retry_at = record.pull_pause.note_failure(life.now);
    record.state = RunState::Waiting {
        reason: "ErrImagePull".to_owned(),
        message: Some("no route".to_owned()),
        since: Some(life.now),
        retry_at: Some(retry_at),
    };
    assert_eq!((life.phase(), life.container("c")), ("Pending".into(), "ErrImagePull".into()));
    life.pass(2);
    assert_eq!(life.start_due(), [""; 0]);
    assert_eq!(life.container("c"), "ImagePullBackOff");
    let actions = next_actions(&spec, &mut life.record, life.now);
    assert_eq!(actions.wake, Some(retry_at));
    life.pass(8);
    assert_eq!(life.start_due(), ["c"]);
}

#[test]
fn after_a_restart_of_the_node_everything_is_started_anew_in_the_same_pod() {
    let spec = json!({
        "initContainers": [{"name": "i"}],
        "containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}],
    });
    let mut life = Life::of(&spec);
    life.start_due();
    life.end("i", 0);
    life.start_due();
    life.end("d", 1);
    life.start_due();
    let status = life.status();
    life.pod.status = Some(status);
    life.pass(5);
    life.record = PodRecord::resume(&life.pod, life.now);
    life.record.started = Some(life.now);
    assert_eq!(life.condition("Ready"), "ContainersNotReady");
    assert_eq!(life.start_due(), ["i"]);
    life.end("i", 0);
    assert_eq!(life.start_due(), ["c", "d"]);
    let counts: Vec<i32> =
        life.status().container_statuses.unwrap().iter().map(|one| one.restart_count).collect();
    assert_eq!(counts, [1, 2]);
    let status = life.status();
    let last = status.container_statuses.unwrap()[0].last_state.clone().unwrap();
    assert_eq!(last.terminated.unwrap().reason.as_deref(), Some("ContainerStatusUnknown"));
}

#[test]
fn a_node_that_ended_takes_what_ran_with_it() {
    let mut life = Life::of(&json!({"containers": [{"name": "c", "image": "i"}]}));
    life.start_due();
    let spec = life.spec();
    life.record.lose_sandbox(&spec, life.now);
    assert_eq!(life.status().pod_ip, None);
    assert_eq!(life.start_due(), ["c"]);
    assert_eq!(life.status().container_statuses.unwrap()[0].restart_count, 1);
    // However often: that is not the program's fault.
    life.record.lose_sandbox(&spec, life.now);
    assert_eq!(life.start_due(), ["c"]);
    life.end("c", 1);
    assert_eq!(life.start_due(), [""; 0], "this is");
    let mut once = Life::of(&json!({"restartPolicy": "Never", "containers": [{"name": "c"}]}));
    once.start_due();
    let spec = once.spec();
    once.record.lose_sandbox(&spec, once.now);
    assert_eq!((once.start_due(), once.phase()), (Vec::new(), "Failed".to_owned()));
}

/// `ready` without a word is for what runs.
#[test]
fn what_has_no_program_is_ready_with_a_word_until_a_program_runs() {
    let mut life = Life::of(&json!({"containers": [{"name": "c", "image": "i"}, {"name": "d"}]}));
    let told = |life: &Life| {
        let all = life.status().conditions.unwrap();
        let one = all.into_iter().find(|one| one.type_ == "Simulated");
        one.map(|one| (one.status, one.reason.unwrap(), one.message))
    };
    assert_eq!(told(&life), None);
    life.start_due();
    let simulate = |life: &mut Life, name: &str| {
        let (record, now) = (life.record.containers.get_mut(name).unwrap(), life.now);
        record.note_try(now);
        record.note_simulated(now);
    };
    simulate(&mut life, "d");
    assert_eq!((life.phase(), life.condition("Ready")), ("Running".into(), "True".into()));
    let why = |why: &str| Some(("True".to_owned(), "NoProgram".to_owned(), Some(why.to_owned())));
    let some = "not run here, because their images have no program: d";
    assert_eq!(told(&life), why(some));
    simulate(&mut life, "c");
    assert_eq!(told(&life), why("nothing runs here: the image has no program"));
    life.pod.status = Some(life.status());
    life.end("c", 0);
    life.end("d", 0);
    life.pass(600);
    assert_eq!(life.start_due(), ["c", "d"]);
    assert_eq!(told(&life), Some(("False".to_owned(), "ProgramsRun".to_owned(), None)));
}

#[test]
fn conditions_of_others_stay_and_times_change_only_with_what_they_tell() {
    let mut life = Life::of(&json!({
        "readinessGates": [{"conditionType": "example.org/gate"}],
        "containers": [{"name": "c", "image": "i"}],
    }));
    life.start_due();
    assert_eq!(life.condition("Ready"), "ReadinessGatesNotReady");
    let mut status = life.status();
    let before = status.conditions.clone().unwrap();
    let gate = json!({"type": "example.org/gate", "status": "True"});
    status.conditions.as_mut().unwrap().push(serde_json::from_value(gate).unwrap());
    life.pod.status = Some(status);
    life.pass(10);
    assert_eq!(life.condition("Ready"), "True");
    let after = life.status().conditions.unwrap();
    let since = |list: &[k8s_openapi::api::core::v1::PodCondition], kind: &str| {
        list.iter().find(|one| one.type_ == kind).unwrap().last_transition_time.clone()
    };
    assert_eq!(since(&after, "ContainersReady"), since(&before, "ContainersReady"));
    assert_ne!(since(&after, "Ready"), since(&before, "Ready"));
}

proptest! {
    /// Whatever happens: no container is started that runs, the others not before those that come
    /// first, and a pod that is over stays so.
    #[test]
    fn no_history_starts_a_container_twice(
        policy in 0_usize..3,
        deeds in proptest::collection::vec((0_usize..4, 0_i32..2, 0_i64..400), 1..60),
    ) {
        let policy = ["Always", "OnFailure", "Never"][policy];
        let mut life = Life::of(&json!({
            "restartPolicy": policy,
            "initContainers": [{"name": "i"}, {"name": "side", "restartPolicy": "Always"}],
            "containers": [{"name": "c"}, {"name": "d"}],
        }));
        let mut over = None;
        for (which, code, seconds) in deeds {
            let running: Vec<String> = life.record.containers.iter()
                .filter(|(_, one)| one.is_running()).map(|(name, _)| name.clone()).collect();
            let started = life.start_due();
            for name in &started {
                prop_assert!(!running.contains(name));
                if name == "c" || name == "d" {
                    prop_assert!(life.record.container("i").unwrap().has_succeeded());
                }
            }
            let phase = life.phase();
            if let Some(before) = &over {
                prop_assert_eq!(before, &phase);
                prop_assert!(started.is_empty());
            }
            if phase == "Succeeded" || phase == "Failed" {
                over = Some(phase);
            }
            let name = ["i", "side", "c", "d"][which];
            if life.record.container(name).unwrap().is_running() {
                life.end(name, code);
            }
            life.pass(seconds);
        }
    }
}
