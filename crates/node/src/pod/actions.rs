//! What is to be done for a pod now, and when to look again.

use super::record::{ContainerRecord, PodRecord, Restarts, RunState, restarts, waiting};
use super::{init_containers, is_sidecar};
use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// How long a failed pull is called a failure before it is called a pause.
const PULL_FAILURE_SHOWN: SignedDuration = SignedDuration::from_secs(2);

/// What is to be done for a pod now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodActions {
    /// Containers to start, in this order.
    pub start: Vec<String>,
    /// Containers to stop: of those that stay as long as others run, one at a time, once no other does.
    pub stop: Vec<String>,
    /// When to look again.
    pub wake: Option<Timestamp>,
    /// Whether all is done that will ever be done.
    pub is_over: bool,
}

impl PodActions {
    fn wake_at(&mut self, at: Timestamp) {
        self.wake = Some(self.wake.map_or(at, |before| before.min(at)));
    }

    /// Starts a container that may be started now, or looks again when it may be.
    fn start_if_due(&mut self, name: &str, record: &ContainerRecord, now: Timestamp) {
        let due = match &record.state {
            RunState::Waiting { retry_at, .. } => retry_at.unwrap_or(now),
            RunState::Ended { restart_at: Some(at), .. } => *at,
            RunState::Ended { .. } | RunState::Pulling | RunState::Running { .. } => return,
        };
        if due <= now {
            self.start.push(name.to_owned());
        } else {
            self.wake_at(due);
        }
    }
}

/// Says what is to be done for a pod that is not being deleted.
pub fn next_actions(spec: &PodSpec, record: &mut PodRecord, now: Timestamp) -> PodActions {
    let mut actions = PodActions::default();
    if let Some(seconds) = spec.active_deadline_seconds
        && let Some(deadline) = record
            .started
            .and_then(|started| started.checked_add(SignedDuration::from_secs(seconds)).ok())
        && record.failure.is_none()
    {
        if deadline <= now {
            let why = "Pod was active on the node longer than the specified deadline";
            record.failure = Some(("DeadlineExceeded".to_owned(), why.to_owned()));
        } else {
            actions.wake_at(deadline);
        }
    }
    age_pull_failures(spec, record, now, &mut actions);
    let others_are_over = spec.containers.iter().all(|one| is_over(record, one));
    if record.failure.is_some() || others_are_over || has_failed_to_begin(spec, record) {
        finish_pod(spec, record, &mut actions);
        return actions;
    }
    let is_ready_for_others = begin_init(spec, record, now, &mut actions);
    if is_ready_for_others {
        record.is_initialized = true;
        for container in &spec.containers {
            let known = record.containers.entry(container.name.clone()).or_default();
            actions.start_if_due(&container.name, known, now);
        }
    }
    actions
}

fn is_over(record: &PodRecord, container: &Container) -> bool {
    record.container(&container.name).is_some_and(ContainerRecord::is_over)
}

/// Whether a container that comes first failed for good.
pub fn has_failed_to_begin(spec: &PodSpec, record: &PodRecord) -> bool {
    init_containers(spec).iter().any(|one| {
        let known = record.container(&one.name);
        let is_final = restarts(spec, one, true) == Restarts::Never;
        is_final && known.is_some_and(|known| known.is_over() && !known.has_succeeded())
    })
}

fn finish_pod(spec: &PodSpec, record: &PodRecord, actions: &mut PodActions) {
    let running =
        |one: &Container| record.container(&one.name).is_some_and(ContainerRecord::is_running);
    let (sidecars, first): (Vec<_>, Vec<_>) =
        init_containers(spec).iter().rev().partition(|one| is_sidecar(one));
    let others = first.into_iter().chain(&spec.containers);
    actions.stop = others.filter(|one| running(one)).map(|one| one.name.clone()).collect();
    if actions.stop.is_empty() {
        // The last that was started is the first to go, and those before it are there until then.
        let last = sidecars.into_iter().find(|one| running(one));
        actions.stop.extend(last.map(|one| one.name.clone()));
    }
    actions.is_over = actions.stop.is_empty();
    actions.wake = None;
}

/// Starts what comes first, one after the other; says whether the others may be started.
fn begin_init(
    spec: &PodSpec,
    record: &mut PodRecord,
    now: Timestamp,
    actions: &mut PodActions,
) -> bool {
    for container in init_containers(spec) {
        let known = record.containers.entry(container.name.clone()).or_default();
        if is_sidecar(container) {
            actions.start_if_due(&container.name, known, now);
            let is_up = known.is_running() && known.is_up;
            if !is_up && !record.is_initialized {
                return false;
            }
        } else if !record.is_initialized && !known.has_succeeded() {
            actions.start_if_due(&container.name, known, now);
            return false;
        }
    }
    true
}

/// A pull that failed is called a pause after a moment.
fn age_pull_failures(
    spec: &PodSpec,
    record: &mut PodRecord,
    now: Timestamp,
    actions: &mut PodActions,
) {
    for (name, known) in &mut record.containers {
        let RunState::Waiting { reason, message, since: Some(since), retry_at } = &known.state
        else {
            continue;
        };
        if reason != "ErrImagePull" {
            continue;
        }
        let shown_until = since.checked_add(PULL_FAILURE_SHOWN).unwrap_or(now);
        if shown_until > now {
            actions.wake_at(shown_until);
            continue;
        }
        let image = super::find_container(spec, name).and_then(|one| one.image.clone());
        let why = message.clone().unwrap_or_default();
        let said =
            format!("Back-off pulling image {:?}: ErrImagePull: {why}", image.unwrap_or_default());
        let retry_at = *retry_at;
        known.state = match waiting("ImagePullBackOff", Some(said)) {
            RunState::Waiting { reason, message, .. } => {
                RunState::Waiting { reason, message, since: Some(now), retry_at }
            }
            other => other,
        };
    }
}
