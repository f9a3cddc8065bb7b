//! Containers and pods brought to their end: asked first, then made to.

use super::Station;
use super::probe::perform_hook;
use super::running::told_in_time;
use super::worker::{MOMENT, PodNotice, PodWorker, later};
use crate::pod::record::{ContainerRecord, RunState, waiting};
use crate::pod::{find_container, init_containers, is_sidecar};
use crate::protocol::ContainerName;
use crate::sandbox::NodeHandle;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Api;
use kube::api::{DeleteParams, Preconditions};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long containers have to end, if their pod does not say.
const GRACE_SECONDS: i64 = 30;
/// The longest that a program is waited for, a year: a pod may say more than any clock can add.
const GRACE_SECONDS_MAX: i64 = 365 * 24 * 3_600;
/// How long they have when all of apron stops.
const STOP_SECONDS: i64 = 5;
/// A container that was killed is gone by then, or its namespaces are removed under it.
const KILL_TIME: SignedDuration = SignedDuration::from_secs(5);
/// What a hook leaves of the time to the program.
const HOOK_REST: Duration = Duration::from_secs(2);
/// After a deletion that was refused.
const RETRY: SignedDuration = SignedDuration::from_secs(1);
pub(super) const TERM: i32 = 15;
pub(super) const KILL: i32 = 9;

/// A pod that ends.
pub(crate) struct Ending {
    /// How long it has at most, in seconds.
    grace: i64,
    /// When what still runs is killed.
    deadline: Timestamp,
}

impl PodWorker {
    /// Asks a container to end, and kills it if it does not in time.
    pub(super) fn stop_container(&mut self, spec: &PodSpec, name: &str, grace: Option<i64>) {
        let Some((_, node)) = self.station.machine.present() else { return };
        let Some(container) = find_container(spec, name) else { return };
        let record = self.record.container(name);
        let Some(record) = record.filter(|record| record.is_running()) else { return };
        if !self.stopping.insert(name.to_owned()) {
            return;
        }
        let run = ContainerName {
            pod: self.pod.metadata.uid.clone().unwrap_or_default(),
            name: name.to_owned(),
            attempt: record.restarts,
        };
        if record.is_simulated() {
            // There is no program that could take its time.
            let (code, signal, out_of_memory) = (Some(0), None, false);
            let end = PodNotice::Exited { container: run, code, signal, out_of_memory };
            let _ = self.mailbox.send(end);
            return;
        }
        let grace = grace.or(spec.termination_grace_period_seconds).unwrap_or(GRACE_SECONDS);
        let stop = ContainerStop {
            node,
            run,
            signal: stop_signal(
                container,
                self.in_use.get(name).and_then(|it| it.defaults.stop_signal.as_deref()),
            ),
            container: container.clone(),
            address: self.address,
            grace: grace_duration(grace),
        };
        let (station, pod, is_first) =
            (self.station.clone(), self.pod.clone(), self.is_first(name));
        let task = tokio::spawn(stop.run(station, pod, is_first)).abort_handle();
        self.tasks.entry(name.to_owned()).or_default().push(task);
    }

    /// Brings the pod to its end, and says when to look again.
    pub(super) async fn step_ending(
        &mut self,
        spec: &PodSpec,
        node: Option<&NodeHandle>,
    ) -> Option<Timestamp> {
        let is_deleted = self.pod.metadata.deletion_timestamp.is_some();
        let wished = self.pod.metadata.deletion_grace_period_seconds;
        let wished = wished.or(spec.termination_grace_period_seconds).unwrap_or(GRACE_SECONDS);
        let wished = wished.min(GRACE_SECONDS_MAX);
        let wished = if is_deleted { wished } else { wished.min(STOP_SECONDS) };
        self.record.is_ending = true;
        self.forget_pulls();
        let now = Timestamp::now();
        let is_sooner = self.ending.as_ref().is_none_or(|ending| wished < ending.grace);
        if is_sooner {
            self.stopping.clear();
            let deadline = later(SignedDuration::from_secs(wished));
            self.ending = Some(Ending { grace: wished, deadline });
        }
        let deadline = self.ending.as_ref().map_or(now, |ending| ending.deadline);
        let rest = whole_seconds(deadline.duration_since(now));
        let is_running = |worker: &Self, one: &Container| {
            worker.record.container(&one.name).is_some_and(ContainerRecord::is_running)
        };
        let sidecars = init_containers(spec).iter().rev().filter(|one| is_sidecar(one));
        let others = spec
            .containers
            .iter()
            .chain(init_containers(spec).iter().filter(|one| !is_sidecar(one)));
        let first: Vec<&Container> = others.filter(|one| is_running(self, one)).collect();
        let last: Vec<&Container> = sidecars.filter(|one| is_running(self, one)).collect();
        if first.is_empty() && last.is_empty() {
            return self.finish_ending(is_deleted, node).await;
        }
        // Each sidecar stays as long as those that were started after it, until the time is up.
        let due: Vec<&Container> = match (first.is_empty(), rest) {
            (_, 0) => first.into_iter().chain(last).collect(),
            (true, _) => last.into_iter().take(1).collect(),
            (false, _) => first,
        };
        for container in due {
            if !self.stopping.contains(&container.name) {
                let said = format!("Stopping container {}", container.name);
                self.say_of(&container.name, "Killing", said);
            }
            self.stop_container(spec, &container.name, Some(rest));
        }
        let killed_by = deadline.checked_add(KILL_TIME).unwrap_or(deadline);
        if killed_by <= now {
            // What does not end when it is killed ends with its namespaces.
            if self.close_sandbox(node).await {
                self.record.lose_sandbox(spec, now);
            }
            return Some(later(RETRY));
        }
        if is_deleted {
            self.report().await;
        }
        Some(if now < deadline { deadline } else { killed_by })
    }

    async fn finish_ending(
        &mut self,
        is_deleted: bool,
        node: Option<&NodeHandle>,
    ) -> Option<Timestamp> {
        if !self.close_sandbox(node).await {
            return Some(later(RETRY));
        }
        if !is_deleted {
            // apron stops: the pod stays, and is started again with it.
            self.is_gone = true;
            return None;
        }
        self.report().await;
        if self.delete_object().await {
            self.is_gone = true;
            return None;
        }
        Some(later(RETRY))
    }

    /// Removes the object of a pod of which nothing runs any more; says whether it is gone.
    async fn delete_object(&self) -> bool {
        let meta = &self.pod.metadata;
        let namespace = meta.namespace.clone().unwrap_or_default();
        let pods: Api<Pod> = Api::namespaced(self.station.client.clone(), &namespace);
        let name = meta.name.clone().unwrap_or_default();
        let parameters = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions { uid: meta.uid.clone(), resource_version: None }),
            ..DeleteParams::default()
        };
        match pods.delete(&name, &parameters).await {
            // With finalizers it stays until they are done; the watch tells.
            Ok(_) => meta.finalizers.as_ref().is_none_or(Vec::is_empty),
            Err(kube::Error::Api(refusal)) => refusal.code == 404 || refusal.code == 409,
            Err(_) => false,
        }
    }

    /// Removes the pod's namespaces, those that are being made included, and what is left in them; says whether they
    /// are gone.
    pub(super) async fn close_sandbox(&mut self, node: Option<&NodeHandle>) -> bool {
        let uid = self.pod.metadata.uid.clone().unwrap_or_default();
        if self.was_asked
            && let Some(node) = node
        {
            let removed = told_in_time(tokio::time::timeout(MOMENT, node.remove_pod(&uid)).await);
            if removed.is_err() {
                return false;
            }
        }
        self.end_tasks();
        self.node_number = None;
        self.was_asked = false;
        self.record.address = None;
        self.volumes.clear();
        self.refreshed = None;
        if let Some(address) = self.address.take() {
            self.station.addresses.give_back(address);
        }
        true
    }

    /// Pulls are not waited for any more.
    fn forget_pulls(&mut self) {
        for task in std::mem::take(&mut self.pulls) {
            task.abort();
        }
        for record in self.record.containers.values_mut() {
            if record.state == RunState::Pulling {
                record.state = waiting("ContainerCreating", None);
            }
        }
    }

    /// What is done last: nothing of the pod is left, or it is left to a later life of this node.
    pub(super) async fn leave(&mut self) {
        let uid = self.pod.metadata.uid.clone().unwrap_or_default();
        self.station.services.set_pod(&uid, None);
        loop {
            let node = self.station.machine.present().map(|(_, node)| node);
            if self.close_sandbox(node.as_ref()).await || node.is_none() {
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        if !self.station.is_stopping() {
            // What a pod printed goes with it.
            let _ = fs_err::remove_dir_all(self.log_directory());
        }
        self.station.forget_pod(&uid);
    }
}

/// A time in whole seconds, none only if nothing is left of it: what is asked to end has a moment, and is not killed at once.
fn whole_seconds(time: SignedDuration) -> i64 {
    let begun = i64::from(time.subsec_nanos() > 0);
    time.as_secs().saturating_add(begun).max(0)
}

/// How long a program has to end; not at all, if that is less than nothing.
fn grace_duration(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds.min(GRACE_SECONDS_MAX)).unwrap_or_default())
}

fn stop_signal(container: &Container, of_image: Option<&str>) -> i32 {
    let said = container.lifecycle.as_ref().and_then(|all| all.stop_signal.as_deref());
    let name = said.or(of_image).unwrap_or("SIGTERM");
    let bare = name.strip_prefix("SIG").unwrap_or(name);
    match bare {
        "HUP" => 1,
        "INT" => 2,
        "QUIT" => 3,
        "KILL" => KILL,
        "USR1" => 10,
        "USR2" => 12,
        "WINCH" => 28,
        other => other.parse().ok().filter(|number| (1..=64).contains(number)).unwrap_or(TERM),
    }
}

/// A container that is to end.
struct ContainerStop {
    node: NodeHandle,
    run: ContainerName,
    container: Container,
    address: Option<std::net::Ipv4Addr>,
    signal: i32,
    grace: Duration,
}

impl ContainerStop {
    /// Ends the container; the task is ended with it.
    async fn run(self, station: Arc<Station>, pod: Pod, is_first: bool) {
        let deadline = Instant::now() + self.grace;
        let hook = self.container.lifecycle.as_ref().and_then(|all| all.pre_stop.clone());
        if let (Some(hook), Some(address)) = (hook, self.address)
            && !self.grace.is_zero()
        {
            let (run, container) = (&self.run, &self.container);
            let done = perform_hook(&self.node, run, container, address, &hook, self.grace).await;
            if let Err(why) = done {
                let of = Some((container.name.as_str(), is_first));
                let said = format!("PreStopHook failed: {why}");
                station.events.record(&pod, of, ("FailedPreStopHook", true), said);
            }
        }
        if !self.grace.is_zero() {
            let _ = self.node.send_signal(&self.run, self.signal).await;
            tokio::time::sleep_until(deadline.max(Instant::now() + HOOK_REST.min(self.grace)))
                .await;
        }
        let _ = self.node.send_signal(&self.run, KILL).await;
    }
}

/// Waits until no worker has anything that runs, for a while.
pub(super) async fn let_all_end(station: &Station) {
    let deadline = Instant::now() + Duration::from_secs(8);
    while !station.workers().is_empty() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_second_is_one() {
        let seconds = [2_000, 1_001, 1_000, 999, 1, 0, -1, -1_500]
            .map(|milliseconds| whole_seconds(SignedDuration::from_millis(milliseconds)));
        assert_eq!(seconds, [2, 2, 1, 1, 1, 0, 0, 0]);
    }

    #[test]
    fn a_time_to_end_that_no_clock_can_add_is_a_long_one() {
        for seconds in [i64::MAX, i64::MAX - 1, GRACE_SECONDS_MAX] {
            let grace = grace_duration(seconds);
            assert!(Instant::now() + grace > Instant::now() + Duration::from_secs(1), "{seconds}");
            let wished = SignedDuration::from_secs(seconds.min(GRACE_SECONDS_MAX));
            assert!(later(wished) > Timestamp::now(), "{seconds}");
        }
        assert_eq!(grace_duration(30), Duration::from_secs(30));
        assert_eq!((grace_duration(0), grace_duration(i64::MIN)), (Duration::ZERO, Duration::ZERO));
    }
}
