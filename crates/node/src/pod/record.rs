//! What happened to a pod so far, kept by its worker; its status is made from this.

use super::delay::RetryPause;
use super::{all_containers, init_containers, is_sidecar};
use k8s_openapi::api::core::v1::{Container, ContainerState, ContainerStatus, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// A run of a container that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedRun {
    /// As status says it.
    pub exit_code: i32,
    /// `Completed`, `Error`, `OOMKilled`, …
    pub reason: String,
    /// More, if there is more to say.
    pub message: Option<String>,
    /// When it began.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub finished: Timestamp,
    /// What names this run.
    pub id: String,
}

/// How a container is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It has not been started, or not again.
    Waiting {
        /// Why.
        reason: String,
        /// In a sentence.
        message: Option<String>,
        /// Since when.
        since: Option<Timestamp>,
        /// When it is tried again; at once, if nothing is said.
        retry_at: Option<Timestamp>,
    },
    /// Its image is being fetched.
    Pulling,
    /// Its program runs.
    Running {
        /// Since when.
        since: Timestamp,
    },
    /// Its program ended.
    Ended {
        /// How.
        run: EndedRun,
        /// When it is started again; never, if nothing is said.
        restart_at: Option<Timestamp>,
    },
}

/// What stands behind a run of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunSubstance {
    /// The processes of its program.
    Program,
    /// Nothing: the image has no program.
    Nothing,
}

/// What is known of a container.
#[derive(Clone, Debug)]
pub struct ContainerRecord {
    /// How often it was started again.
    pub restarts: u32,
    /// Whether it was started at all.
    pub was_started: bool,
    /// How it is.
    pub state: RunState,
    /// The run before.
    pub last: Option<EndedRun>,
    /// What was run, by digest.
    pub image_id: String,
    /// The pause before it is started again.
    pub pause: RetryPause,
    /// The pause before its image is asked for again.
    pub pull_pause: RetryPause,
    /// Whether its startup probe succeeded in this run, or it has none.
    pub is_up: bool,
    /// Whether its readiness probe succeeds, or it has none.
    pub is_ready: bool,
    /// What stands behind this run.
    pub substance: RunSubstance,
}

impl Default for ContainerRecord {
    fn default() -> Self {
        Self {
            restarts: 0,
            was_started: false,
            state: waiting("ContainerCreating", None),
            last: None,
            image_id: String::new(),
            pause: RetryPause::default(),
            pull_pause: RetryPause::default(),
            is_up: false,
            is_ready: false,
            substance: RunSubstance::Program,
        }
    }
}

/// A container that waits, and may be started at once.
pub fn waiting(reason: &str, message: Option<String>) -> RunState {
    RunState::Waiting { reason: reason.to_owned(), message, since: None, retry_at: None }
}

/// What is known of a pod.
#[derive(Clone, Debug, Default)]
pub struct PodRecord {
    /// When this node took it.
    pub started: Option<Timestamp>,
    /// Its address, once it has namespaces.
    pub address: Option<Ipv4Addr>,
    /// Whether the containers that come first are done.
    pub is_initialized: bool,
    /// Its containers by name.
    pub containers: BTreeMap<String, ContainerRecord>,
    /// Why the pod as a whole failed: reason and message.
    pub failure: Option<(String, String)>,
    /// Whether it is being deleted.
    pub is_ending: bool,
}

/// How a run is called whose end was not seen.
const UNSEEN: &str = "ContainerStatusUnknown";
/// Its exit code.
const UNSEEN_CODE: i32 = 137;

impl PodRecord {
    /// What is known of a pod from its status alone, after a restart of this node. Programs that
    /// ran ended with the node, and are started again if the pod says so.
    pub fn resume(pod: &Pod, now: Timestamp) -> Self {
        let Some(spec) = &pod.spec else { return Self::default() };
        let status = pod.status.clone().unwrap_or_default();
        let mut record = Self { started: status.start_time.map(|time| time.0), ..Self::default() };
        let (of_init, others) = (status.init_container_statuses, status.container_statuses);
        let known: Vec<ContainerStatus> =
            of_init.into_iter().flatten().chain(others.into_iter().flatten()).collect();
        let is_init = |name: &str| init_containers(spec).iter().any(|one| one.name == name);
        for container in all_containers(spec) {
            let status = known.iter().find(|one| one.name == container.name);
            let resumed = status.map(|status| {
                resume_container(spec, container, status, is_init(&container.name), now)
            });
            record.containers.insert(container.name.clone(), resumed.unwrap_or_default());
        }
        record
    }

    /// What is known of a container.
    pub fn container(&self, name: &str) -> Option<&ContainerRecord> {
        self.containers.get(name)
    }

    /// Whether a program of the pod runs.
    pub fn has_running(&self) -> bool {
        self.containers.values().any(ContainerRecord::is_running)
    }

    /// Notes that the pod's namespaces ended, alone or with the machine's node, and everything in them.
    pub fn lose_sandbox(&mut self, spec: &PodSpec, now: Timestamp) {
        self.address = None;
        self.is_initialized = false;
        for container in all_containers(spec) {
            let is_init = init_containers(spec).iter().any(|one| one.name == container.name);
            let Some(record) = self.containers.get_mut(&container.name) else { continue };
            match record.state.clone() {
                RunState::Running { since } => {
                    let run = unseen_end(Some(since), now);
                    // That its namespaces ended is not the program's fault: it is not made to wait for it.
                    record.pause = RetryPause::default();
                    record.note_end(run, restarts(spec, container, is_init));
                }
                // Containers that come first come first in new namespaces, too.
                RunState::Ended { run, .. }
                    if is_init && restarts(spec, container, is_init) != Restarts::Never =>
                {
                    record.state = RunState::Ended { restart_at: Some(run.finished), run };
                }
                _ => {}
            }
        }
    }
}

fn unseen_end(started: Option<Timestamp>, now: Timestamp) -> EndedRun {
    EndedRun {
        exit_code: UNSEEN_CODE,
        reason: UNSEEN.to_owned(),
        message: Some("the node was started again while this ran".to_owned()),
        started,
        finished: now,
        id: String::new(),
    }
}

fn resume_container(
    spec: &PodSpec,
    container: &Container,
    status: &ContainerStatus,
    is_init: bool,
    now: Timestamp,
) -> ContainerRecord {
    let state = status.state.clone().unwrap_or_default();
    let last = status.last_state.as_ref().and_then(read_end);
    let mut record = ContainerRecord {
        restarts: u32::try_from(status.restart_count).unwrap_or_default(),
        last: last.clone(),
        image_id: status.image_id.clone(),
        ..ContainerRecord::default()
    };
    let policy = restarts(spec, container, is_init);
    if let Some(running) = &state.running {
        record.was_started = true;
        let run = unseen_end(running.started_at.as_ref().map(|time| time.0), now);
        record.note_end(run, policy);
    } else if let Some(run) = read_end(&state) {
        record.was_started = true;
        let again = match policy {
            Restarts::Never => None,
            Restarts::OnFailure if run.exit_code == 0 && !is_init => None,
            _ => Some(now),
        };
        record.state = RunState::Ended { run, restart_at: again };
    } else if let Some(run) = last {
        record.was_started = true;
        record.state = RunState::Ended { run, restart_at: Some(now) };
    }
    record
}

fn read_end(state: &ContainerState) -> Option<EndedRun> {
    let ended = state.terminated.as_ref()?;
    let moment = |time: &Option<Time>| time.as_ref().map(|time| time.0);
    Some(EndedRun {
        exit_code: ended.exit_code,
        reason: ended.reason.clone().unwrap_or_default(),
        message: ended.message.clone(),
        started: moment(&ended.started_at),
        finished: moment(&ended.finished_at).unwrap_or(Timestamp::UNIX_EPOCH),
        id: ended.container_id.clone().unwrap_or_default(),
    })
}

/// When a container is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restarts {
    /// However it ended.
    Always,
    /// If it failed.
    OnFailure,
    /// Not at all.
    Never,
}

/// When this container of a pod is started again.
pub fn restarts(spec: &PodSpec, container: &Container, is_init: bool) -> Restarts {
    let policy = container.restart_policy.as_deref().or(spec.restart_policy.as_deref());
    match policy {
        Some("Never") => Restarts::Never,
        Some("OnFailure") => Restarts::OnFailure,
        _ if is_init && !is_sidecar(container) => Restarts::OnFailure,
        _ => Restarts::Always,
    }
}

impl ContainerRecord {
    /// Whether its program runs.
    pub fn is_running(&self) -> bool {
        matches!(self.state, RunState::Running { .. })
    }

    /// Whether it is called running although its image has no program.
    pub fn is_simulated(&self) -> bool {
        self.substance == RunSubstance::Nothing
    }

    /// Whether it ended, and stays so.
    pub fn is_over(&self) -> bool {
        matches!(self.state, RunState::Ended { restart_at: None, .. })
    }

    /// Whether it ended well, and stays so.
    pub fn has_succeeded(&self) -> bool {
        matches!(&self.state, RunState::Ended { run, restart_at: None } if run.exit_code == 0)
    }

    /// The number of the next run: programs and logs of different runs are told apart by it.
    pub fn next_attempt(&self) -> u32 {
        if self.was_started { self.restarts.saturating_add(1) } else { 0 }
    }

    /// Notes that a run is tried now, however it turns out; what ended before is the last one.
    pub fn note_try(&mut self, now: Timestamp) {
        if let RunState::Ended { run, .. } = &self.state {
            self.pause.note_retry(run.finished, now);
            self.last = Some(run.clone());
        }
        self.restarts = self.next_attempt();
        self.was_started = true;
        self.state = waiting("ContainerCreating", None);
        (self.is_up, self.is_ready, self.substance) = (false, false, RunSubstance::Program);
    }

    /// Notes that its program runs.
    pub fn note_running(&mut self, container: &Container, now: Timestamp) {
        self.state = RunState::Running { since: now };
        self.is_up = container.startup_probe.is_none();
        self.is_ready = container.readiness_probe.is_none();
    }

    /// Notes that it is called running although there is no program: nothing can be asked whether it is ready.
    pub fn note_simulated(&mut self, now: Timestamp) {
        self.state = RunState::Running { since: now };
        (self.is_up, self.is_ready, self.substance) = (true, true, RunSubstance::Nothing);
    }

    /// Notes that a try came to nothing, and when the next one is. A container that is not to be started again has ended.
    pub fn note_start_failure(&mut self, run: EndedRun, policy: Restarts) {
        if policy == Restarts::Never {
            self.note_end(run, policy);
            return;
        }
        let now = run.finished;
        self.state = RunState::Waiting {
            reason: "RunContainerError".to_owned(),
            message: run.message.clone(),
            since: Some(now),
            retry_at: Some(self.pause.note_failure(now)),
        };
        self.last = Some(run);
    }

    /// Notes that its program ended, and when it is started again.
    pub fn note_end(&mut self, run: EndedRun, policy: Restarts) {
        let again = match policy {
            Restarts::Always => true,
            Restarts::OnFailure => run.exit_code != 0,
            Restarts::Never => false,
        };
        let restart_at = again.then(|| self.pause.retry_at(run.finished));
        (self.is_up, self.is_ready, self.substance) = (false, false, RunSubstance::Program);
        self.state = RunState::Ended { run, restart_at };
    }
}
