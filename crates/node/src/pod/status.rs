//! What a Pod's status says of what happened, in the kubelet's words.

use super::actions::has_failed_to_begin;
use super::record::{ContainerRecord, EndedRun, PodRecord, RunState};
use super::{all_containers, init_containers, is_sidecar, pod_title};
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated,
    ContainerStateWaiting, ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodSpec, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use std::net::Ipv4Addr;

/// The condition of a pod of which a container is called running although it has no program.
pub const SIMULATED: &str = "Simulated";
/// Its reason, and that of the event.
pub const PROGRAMLESS: &str = "NoProgram";
/// Its message if no container has a program.
const NOTHING_RUNS: &str = "nothing runs here: the image has no program";

/// The status of a pod. What others said of it, in conditions of their own, stays.
pub fn make_status(pod: &Pod, record: &PodRecord, host: Ipv4Addr, now: Timestamp) -> PodStatus {
    let Some(spec) = &pod.spec else { return PodStatus::default() };
    let before = pod.status.clone().unwrap_or_default();
    let statuses = |containers: &[Container], are_first: bool| -> Vec<ContainerStatus> {
        let all = containers.iter();
        all.map(|one| container_status(pod, spec, one, record, are_first, now)).collect()
    };
    let first = statuses(init_containers(spec), true);
    let others = statuses(&spec.containers, false);
    let phase = choose_phase(spec, record, &others);
    let is_over = phase == "Succeeded" || phase == "Failed";
    let (reason, message) = match &record.failure {
        Some((reason, message)) if is_over => (Some(reason.clone()), Some(message.clone())),
        _ => (None, None),
    };
    let address = record.address.map(|address| address.to_string());
    // A pod that is over keeps the address it had.
    let address = address.or_else(|| before.pod_ip.clone().filter(|_| is_over));
    PodStatus {
        conditions: Some(conditions(pod, spec, record, phase, &others, now)),
        container_statuses: Some(others),
        init_container_statuses: (!first.is_empty()).then_some(first),
        host_ip: Some(host.to_string()),
        host_ips: Some(vec![HostIP { ip: host.to_string() }]),
        pod_ips: address.clone().map(|ip| vec![PodIP { ip }]),
        pod_ip: address,
        phase: Some(phase.to_owned()),
        qos_class: before.qos_class.clone().or_else(|| Some(quality(spec).to_owned())),
        observed_generation: pod.metadata.generation,
        reason,
        message,
        start_time: record.started.map(Time),
        ..before
    }
}

/// Whether a status says that Services may lead to its pod.
pub fn is_ready(status: &PodStatus) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    conditions.any(|one| one.type_ == "Ready" && one.status == "True")
}

/// How a pod is served when there is too little of something.
fn quality(spec: &PodSpec) -> &'static str {
    let all: Vec<_> = all_containers(spec).map(|one| one.resources.clone()).collect();
    let mut is_bound = true;
    let mut says_something = false;
    for resources in all {
        let resources = resources.unwrap_or_default();
        let limits = resources.limits.unwrap_or_default();
        let requests = resources.requests.unwrap_or_default();
        for name in ["cpu", "memory"] {
            let limit = limits.get(name);
            says_something |= limit.is_some() || requests.contains_key(name);
            is_bound &= limit.is_some() && requests.get(name).is_none_or(|it| Some(it) == limit);
        }
    }
    match (says_something, is_bound) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn container_status(
    pod: &Pod,
    spec: &PodSpec,
    container: &Container,
    record: &PodRecord,
    is_first: bool,
    now: Timestamp,
) -> ContainerStatus {
    let unknown = ContainerRecord::default();
    let known = record.container(&container.name).unwrap_or(&unknown);
    let (state, last) = container_states(pod, spec, container, known, record, is_first, now);
    let is_running = known.is_running();
    let ready = if is_first && !is_sidecar(container) {
        known.has_succeeded()
    } else {
        is_running && known.is_up && known.is_ready
    };
    let id = match (&state.running, &state.terminated, &last) {
        (Some(_), _, _) => Some(run_id(pod, container, known.restarts)),
        (_, Some(ended), _) => ended.container_id.clone(),
        (_, _, last) => last.as_ref().map(|run| run.id.clone()).filter(|id| !id.is_empty()),
    };
    ContainerStatus {
        container_id: id,
        image: container.image.clone().unwrap_or_default(),
        image_id: known.image_id.clone(),
        last_state: Some(last.as_ref().map(ended_state).unwrap_or_default()),
        name: container.name.clone(),
        ready,
        restart_count: i32::try_from(known.restarts).unwrap_or(i32::MAX),
        started: Some(is_running && known.is_up),
        state: Some(state),
        ..ContainerStatus::default()
    }
}

/// What names a run of a container.
pub fn run_id(pod: &Pod, container: &Container, attempt: u32) -> String {
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    format!("apron://{uid}/{}/{attempt}", container.name)
}

fn container_states(
    pod: &Pod,
    spec: &PodSpec,
    container: &Container,
    known: &ContainerRecord,
    record: &PodRecord,
    is_first: bool,
    now: Timestamp,
) -> (ContainerState, Option<EndedRun>) {
    let waits = |reason: &str, message: Option<String>| ContainerState {
        waiting: Some(ContainerStateWaiting { message, reason: Some(reason.to_owned()) }),
        ..ContainerState::default()
    };
    match &known.state {
        RunState::Waiting { reason, message, .. } => {
            let waits_for_others = !is_first
                && !record.is_initialized
                && !init_containers(spec).is_empty()
                && reason == "ContainerCreating";
            let reason = if waits_for_others || (is_first && reason == "ContainerCreating") {
                "PodInitializing"
            } else {
                reason
            };
            (waits(reason, message.clone()), known.last.clone())
        }
        RunState::Pulling => (waits("ContainerCreating", None), known.last.clone()),
        RunState::Running { since } => {
            let running = Some(ContainerStateRunning { started_at: Some(Time(*since)) });
            (ContainerState { running, ..ContainerState::default() }, known.last.clone())
        }
        RunState::Ended { run, restart_at: Some(at) } if *at > run.finished && *at > now => {
            let pause = known.pause.pause_after(run.finished).as_secs();
            let pause = match (pause.checked_div(60), pause.checked_rem(60)) {
                (Some(minutes @ 1..), Some(seconds)) => format!("{minutes}m{seconds}s"),
                _ => format!("{pause}s"),
            };
            let (name, title) = (&container.name, pod_title(pod));
            let why = format!("back-off {pause} restarting failed container={name} pod={title}");
            (waits("CrashLoopBackOff", Some(why)), Some(run.clone()))
        }
        RunState::Ended { run, .. } => (ended_state(run), known.last.clone()),
    }
}

fn ended_state(run: &EndedRun) -> ContainerState {
    let terminated = ContainerStateTerminated {
        container_id: Some(run.id.clone()).filter(|id| !id.is_empty()),
        exit_code: run.exit_code,
        finished_at: Some(Time(run.finished)),
        message: run.message.clone(),
        reason: Some(run.reason.clone()),
        signal: None,
        started_at: run.started.map(Time),
    };
    ContainerState { terminated: Some(terminated), ..ContainerState::default() }
}

fn choose_phase(spec: &PodSpec, record: &PodRecord, others: &[ContainerStatus]) -> &'static str {
    // As long as a program of it runs, a pod is not over for those that start another in its place.
    let end = find_end(spec, record, others).filter(|_| !record.has_running());
    end.unwrap_or_else(|| {
        // A container that ran once has begun, even if it waits to be started again.
        let known = |one: &ContainerStatus| record.container(&one.name);
        let has_begun = |one: &ContainerStatus| known(one).is_some_and(|known| known.was_started);
        if others.iter().all(has_begun) { "Running" } else { "Pending" }
    })
}

/// How a pod ends of which nothing is started again; nothing, if something is.
fn find_end(
    spec: &PodSpec,
    record: &PodRecord,
    others: &[ContainerStatus],
) -> Option<&'static str> {
    if record.failure.is_some() || has_failed_to_begin(spec, record) {
        return Some("Failed");
    }
    let known = |one: &ContainerStatus| record.container(&one.name);
    let are_over = others.iter().all(|one| known(one).is_some_and(ContainerRecord::is_over));
    are_over.then(|| {
        let all = others.iter();
        let good = all.filter(|one| known(one).is_some_and(ContainerRecord::has_succeeded)).count();
        if good == others.len() { "Succeeded" } else { "Failed" }
    })
}

fn conditions(
    pod: &Pod,
    spec: &PodSpec,
    record: &PodRecord,
    phase: &str,
    others: &[ContainerStatus],
    now: Timestamp,
) -> Vec<PodCondition> {
    let before = pod.status.as_ref().and_then(|status| status.conditions.clone());
    let mut list = ConditionList { list: before.unwrap_or_default(), pod, now };
    if list.find("PodScheduled").is_none() {
        list.say("PodScheduled", None);
    }
    let has_sandbox = record.address.is_some();
    list.say("PodReadyToStartContainers", (!has_sandbox).then_some((None, None)));
    list.say("Initialized", lack_of_init(spec, record, phase));
    let lack = lack_of_ready(spec, record, phase, others);
    list.say("ContainersReady", lack.clone());
    let gates = spec.readiness_gates.iter().flatten();
    let closed: Vec<&str> = gates
        .map(|gate| gate.condition_type.as_str())
        .filter(|gate| list.find(gate).is_none_or(|one| one.status != "True"))
        .collect();
    let lack = lack.or_else(|| {
        let said = closed.iter().map(|gate| {
            format!("the status of pod readiness gate {gate:?} is not \"True\", but False")
        });
        let said = said.collect::<Vec<_>>().join(", ");
        (!closed.is_empty()).then(|| (Some("ReadinessGatesNotReady".to_owned()), Some(said)))
    });
    list.say("Ready", lack);
    list.say_simulated(spec, record);
    list.list
}

/// Reason and message of a condition that is not met.
type Lack = (Option<String>, Option<String>);

fn lack_of_init(spec: &PodSpec, record: &PodRecord, phase: &str) -> Option<Lack> {
    if record.is_initialized || init_containers(spec).is_empty() || phase == "Succeeded" {
        return None;
    }
    let is_done = |one: &&Container| {
        let known = record.container(&one.name);
        known.is_some_and(|known| {
            if is_sidecar(one) { known.is_running() && known.is_up } else { known.has_succeeded() }
        })
    };
    let waiting = init_containers(spec).iter().filter(|one| !is_done(one));
    let names = waiting.map(|one| one.name.as_str()).collect::<Vec<_>>().join(" ");
    let message = format!("containers with incomplete status: [{names}]");
    Some((Some("ContainersNotInitialized".to_owned()), Some(message)))
}

fn lack_of_ready(
    spec: &PodSpec,
    record: &PodRecord,
    phase: &str,
    others: &[ContainerStatus],
) -> Option<Lack> {
    if phase == "Succeeded" {
        return Some((Some("PodCompleted".to_owned()), None));
    }
    if phase == "Failed" {
        return Some((Some("PodFailed".to_owned()), None));
    }
    let sidecars = init_containers(spec).iter().filter(|one| is_sidecar(one));
    let is_unready = |name: &str| {
        record.container(name).is_none_or(|one| !(one.is_running() && one.is_up && one.is_ready))
    };
    let names = sidecars.map(|one| &one.name).chain(others.iter().map(|one| &one.name));
    let unready: Vec<&str> = names.map(String::as_str).filter(|name| is_unready(name)).collect();
    if unready.is_empty() {
        return None;
    }
    let message = format!("containers with unready status: [{}]", unready.join(" "));
    Some((Some("ContainersNotReady".to_owned()), Some(message)))
}

struct ConditionList<'a> {
    list: Vec<PodCondition>,
    pod: &'a Pod,
    now: Timestamp,
}

impl ConditionList<'_> {
    fn find(&self, kind: &str) -> Option<&PodCondition> {
        self.list.iter().find(|one| one.type_ == kind)
    }

    /// Says that a condition is met, or what it lacks.
    fn say(&mut self, kind: &str, lack: Option<Lack>) {
        let status = if lack.is_none() { "True" } else { "False" };
        self.put(kind, status, lack.unwrap_or_default());
    }

    /// Says of which containers nothing runs, if there are any or were.
    fn say_simulated(&mut self, spec: &PodSpec, record: &PodRecord) {
        let is_simulated = |one: &&Container| {
            record.container(&one.name).is_some_and(ContainerRecord::is_simulated)
        };
        let all = || all_containers(spec);
        let names: Vec<&str> = all().filter(is_simulated).map(|one| one.name.as_str()).collect();
        if !names.is_empty() {
            let message = if names.len() == all().count() {
                NOTHING_RUNS.to_owned()
            } else {
                format!("not run here, because their images have no program: {}", names.join(", "))
            };
            self.put(SIMULATED, "True", (Some(PROGRAMLESS.to_owned()), Some(message)));
        } else if self.find(SIMULATED).is_some() && record.has_running() {
            self.put(SIMULATED, "False", (Some("ProgramsRun".to_owned()), None));
        }
    }

    fn put(&mut self, kind: &str, status: &str, (reason, message): Lack) {
        let since = self.find(kind).filter(|one| one.status == status);
        let since = since.and_then(|one| one.last_transition_time.clone());
        let said = PodCondition {
            last_probe_time: None,
            last_transition_time: since.or(Some(Time(self.now))),
            message,
            observed_generation: self.pod.metadata.generation,
            reason,
            status: status.to_owned(),
            type_: kind.to_owned(),
        };
        match self.list.iter_mut().find(|one| one.type_ == kind) {
            Some(old) => *old = said,
            None => self.list.push(said),
        }
    }
}
