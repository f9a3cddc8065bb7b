//! A pod's namespaces and volumes made, its containers started, and what becomes of them noted.

use super::probe::{ProbeTask, perform_hook};
use super::pull::{PullFailure, chain, fetch_image};
use super::source::gather_sources;
use super::worker::{FetchedNotice, MOMENT, PodNotice, PodWorker, later, until};
use crate::image::{PulledImage, find_home, resolve_user};
use crate::pod::find_container;
use crate::pod::identity::volume_group;
use crate::pod::pod_title;
use crate::pod::probing::{ProbeKind, ProbeSchedule};
use crate::pod::record::{ContainerRecord, EndedRun, Restarts, RunState, restarts, waiting};
use crate::pod::start::{
    NO_PROGRAM, RunnableImage, StartContext, StartRefusal, plan_sandbox, plan_start,
};
use crate::pod::status::{PROGRAMLESS, run_id};
use crate::pod::volume::renew_volumes;
use crate::protocol::{ContainerName, ContainerStart};
use crate::sandbox::{NodeError, NodeHandle};
use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// The pause before a pod's configuration is looked at again that could not be used.
const CONFIG_PAUSE: SignedDuration = SignedDuration::from_secs(5);
/// The pauses before volumes are tried again: the first, and how often it is doubled.
const MOUNT_PAUSE: SignedDuration = SignedDuration::from_millis(500);
const MOUNT_DOUBLED_MAX: u32 = 5;
/// What volumes are made of is looked at so often.
const SOURCES_AGE_MAX: Duration = Duration::from_secs(30);
/// The pause before a node that ended is asked for again.
const NODE_PAUSE: SignedDuration = SignedDuration::from_millis(500);
/// The exit code of a program that could not be executed.
const START_ERROR_CODE: i32 = 128;

impl PodWorker {
    /// Makes the pod's namespaces and volumes, if they are not there yet; the error is when to try again.
    pub(super) async fn prepare_sandbox(
        &mut self,
        spec: &PodSpec,
        node: &NodeHandle,
    ) -> Result<(), Timestamp> {
        if self.node_number.is_none() {
            // What is left of a try that failed or came too late would be in the way of the next.
            if self.was_asked && !self.close_sandbox(Some(node)).await {
                return Err(later(CONFIG_PAUSE));
            }
            let Some(address) = self.address.or_else(|| self.station.addresses.take_address())
            else {
                let why = "Failed to create pod sandbox: no address is free".to_owned();
                self.warn(None, "FailedCreatePodSandBox", why);
                return Err(later(CONFIG_PAUSE));
            };
            self.address = Some(address);
            let number = self.station.machine.present().map(|(number, _)| number);
            let sandbox = plan_sandbox(&self.pod, address);
            self.was_asked = true;
            let made = tokio::time::timeout(MOMENT, node.create_pod(sandbox)).await;
            if let Err(why) = told_in_time(made) {
                let why = format!("Failed to create pod sandbox: {why}");
                self.warn(None, "FailedCreatePodSandBox", why);
                // The node may still be at it. If this fails, too, the next try begins with it.
                self.close_sandbox(Some(node)).await;
                return Err(later(CONFIG_PAUSE));
            }
            self.node_number = number;
            self.record.address = Some(address);
        }
        let is_old = self.refreshed.is_none_or(|at| at.elapsed() >= SOURCES_AGE_MAX);
        let waits = self.record.containers.values().any(|one| {
            matches!(&one.state, RunState::Waiting { reason, .. } if reason == "CreateContainerConfigError")
        });
        if is_old || waits {
            if let Err((volume, why)) = self.refresh_volumes(spec, node).await {
                // What runs goes on with what it has.
                if self.refreshed.is_some() {
                    self.refreshed = Some(Instant::now());
                    return Ok(());
                }
                let why = format!("MountVolume.SetUp failed for volume {volume:?} : {why}");
                self.warn(None, "FailedMount", why);
                let doubled = self.mount_failures.min(MOUNT_DOUBLED_MAX);
                self.mount_failures = self.mount_failures.saturating_add(1);
                return Err(later(MOUNT_PAUSE.saturating_mul(1 << doubled)));
            }
            self.refreshed = Some(Instant::now());
            self.mount_failures = 0;
        }
        Ok(())
    }

    /// Makes the volumes what they are made of now; the error names the first that cannot be, and says why. The others are
    /// made all the same.
    async fn refresh_volumes(
        &mut self,
        spec: &PodSpec,
        node: &NodeHandle,
    ) -> Result<(), (String, String)> {
        let gathered = gather_sources(&self.station, &self.pod, spec, &mut self.tokens).await;
        self.sources = gathered.map_err(|why| ("all".to_owned(), why))?;
        let Some(address) = self.address else { return Ok(()) };
        let place = self.surroundings(address);
        let uid = self.pod.metadata.uid.clone().unwrap_or_default();
        let group = volume_group(&self.pod);
        let allowances = self.station.settings.allowances;
        let fresh = renew_volumes(&self.pod, spec, &self.sources, &place, allowances);
        let mut failure = fresh.failure;
        for (name, files) in fresh.files {
            if self.volumes.get(&name) == Some(&files) {
                continue;
            }
            let written = node.write_volume(&uid, &name, group, files.clone());
            match told_in_time(tokio::time::timeout(MOMENT, written).await) {
                Ok(()) => {
                    self.volumes.insert(name, files);
                }
                Err(why) => {
                    failure.get_or_insert((name, why));
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Fetches the image of a container or, if it is here, starts it.
    pub(super) async fn begin_container(&mut self, spec: &PodSpec, name: &str, node: &NodeHandle) {
        let Some(container) = find_container(spec, name) else { return };
        let now = Timestamp::now();
        let record = self.record.containers.entry(name.to_owned()).or_default();
        if let RunState::Ended { run, .. } = record.state.clone() {
            record.pause.note_retry(run.finished, now);
            record.last = Some(run);
            record.state = waiting("ContainerCreating", None);
        }
        match self.images.get(name).cloned() {
            Some(image) => self.start_container(container, &image, node).await,
            None => self.begin_pull(container),
        }
    }

    /// Pulls belong to no run of a container, but to the pod.
    fn begin_pull(&mut self, container: &Container) {
        self.pulls.retain(|task| !task.is_finished());
        let name = container.name.clone();
        if let Some(record) = self.record.containers.get_mut(&name) {
            record.state = RunState::Pulling;
        }
        let (station, pod, container) = (self.station.clone(), self.pod.clone(), container.clone());
        let mailbox = self.mailbox.clone();
        let is_first = self.is_first(&name);
        let task = tokio::spawn(async move {
            let began = Instant::now();
            let told = || {
                let image = container.image.as_deref().unwrap_or_default();
                let said = format!("Pulling image {image:?}");
                station.events.record(&pod, Some((&name, is_first)), ("Pulling", false), said);
            };
            let result = fetch_image(&station, &pod, &container, told).await;
            let result = result.map(|fetched| FetchedNotice { fetched, took: began.elapsed() });
            let _ = mailbox.send(PodNotice::Pulled { container: name.clone(), result });
        });
        self.pulls.push(task.abort_handle());
    }

    /// Notes what came of fetching an image.
    pub(super) fn note_pull(&mut self, name: &str, result: Result<FetchedNotice, PullFailure>) {
        let spec = self.pod.spec.as_ref();
        let image = spec.and_then(|spec| find_container(spec, name)?.image.clone());
        let image = image.unwrap_or_default();
        let now = Timestamp::now();
        let Some(record) = self.record.containers.get_mut(name) else { return };
        if record.state != RunState::Pulling {
            return;
        }
        match result {
            Ok(FetchedNotice { fetched, took }) => {
                record.state = waiting("ContainerCreating", None);
                let digest = fetched.image.digest.to_string();
                let bare = image.split('@').next().unwrap_or_default();
                record.image_id = format!("{bare}@{digest}");
                self.images.insert(name.to_owned(), fetched.image);
                let said = if fetched.was_here {
                    format!("Container image {image:?} already present on machine")
                } else {
                    let took = format!("{:.3}s", took.as_secs_f64());
                    format!(
                        "Successfully pulled image {image:?} in {took} ({took} including waiting)"
                    )
                };
                self.say_of(name, "Pulled", said);
            }
            Err((reason, why)) => {
                let retry_at = record.pull_pause.note_failure(now);
                record.state = RunState::Waiting {
                    reason: reason.clone(),
                    message: Some(why.clone()),
                    since: Some(now),
                    retry_at: Some(retry_at),
                };
                self.warn(Some(name), "Failed", format!("Failed to pull image {image:?}: {why}"));
                self.warn(Some(name), "Failed", format!("Error: {reason}"));
                let said = format!("Back-off pulling image {image:?}");
                self.say_of(name, "BackOff", said);
            }
        }
    }

    async fn start_container(
        &mut self,
        container: &Container,
        image: &PulledImage,
        node: &NodeHandle,
    ) {
        let name = &container.name;
        match self.plan_container(container, image) {
            Ok(start) => self.execute_container(container, image, start, node).await,
            Err(StartRefusal::NoProgram) if self.station.settings.simulates_programless => {
                self.simulate_container(container, image);
            }
            Err(refusal) => {
                let (reason, why) = match refusal {
                    StartRefusal::Config(why) => ("CreateContainerConfigError", why),
                    StartRefusal::NoProgram => ("CreateContainerError", NO_PROGRAM.to_owned()),
                };
                let Some(record) = self.record.containers.get_mut(name) else { return };
                record.state = RunState::Waiting {
                    reason: reason.to_owned(),
                    message: Some(why.clone()),
                    since: Some(Timestamp::now()),
                    retry_at: Some(later(CONFIG_PAUSE)),
                };
                self.warn(Some(name), "Failed", format!("Error: {why}"));
            }
        }
    }

    /// Calls a container running that has no program, such as that of a package of definitions alone.
    fn simulate_container(&mut self, container: &Container, image: &PulledImage) {
        let name = &container.name;
        self.images.remove(name);
        self.in_use.insert(name.clone(), image.clone());
        let now = Timestamp::now();
        let Some(record) = self.record.containers.get_mut(name) else { return };
        record.note_try(now);
        record.note_simulated(now);
        self.stopping.remove(name);
        self.say_of(name, PROGRAMLESS, format!("Container {name} is only simulated: {NO_PROGRAM}"));
    }

    fn plan_container(
        &self,
        container: &Container,
        image: &PulledImage,
    ) -> Result<ContainerStart, StartRefusal> {
        let address = self.address.unwrap_or(std::net::Ipv4Addr::UNSPECIFIED);
        let attempt =
            self.record.container(&container.name).map_or(0, ContainerRecord::next_attempt);
        let runnable = runnable_image(image);
        let resolve = |user: &str| resolve_user(&image.rootfs, user).map_err(|error| chain(&error));
        let context = StartContext {
            pod: &self.pod,
            sources: &self.sources,
            place: &self.surroundings(address),
            logs: &self.log_directory(),
            allowances: self.station.settings.allowances,
        };
        let mut start = plan_start(&context, container, attempt, &runnable, &resolve)?;
        // As container runtimes do it: many programs do not begin without.
        let home = start.process.environment.entry("HOME".to_owned()).or_default();
        if home.is_empty() {
            *home = find_home(&image.rootfs, start.process.user.uid);
        }
        Ok(start)
    }

    async fn execute_container(
        &mut self,
        container: &Container,
        image: &PulledImage,
        start: ContainerStart,
        node: &NodeHandle,
    ) {
        let name = &container.name;
        let run = start.container.clone();
        if let Err(error) = make_directory(&start.logs) {
            self.fail_start(container, &error);
            return;
        }
        let asked = tokio::time::timeout(MOMENT, node.start_container(start)).await;
        let began = match asked {
            Ok(Ok(())) => Ok(()),
            // Another node takes over: all of the pod is started there.
            Ok(Err(NodeError::Ended(_))) => {
                self.wait_for_node(name);
                return;
            }
            late_or_refused => told_in_time(late_or_refused),
        };
        if let Err(why) = began {
            self.fail_start(container, &why);
            return;
        }
        self.images.remove(name);
        self.in_use.insert(name.clone(), image.clone());
        let now = Timestamp::now();
        let Some(record) = self.record.containers.get_mut(name) else { return };
        record.note_try(now);
        record.note_running(container, now);
        self.say_of(name, "Created", format!("Container created: {name}"));
        self.say_of(name, "Started", format!("Container started: {name}"));
        self.stopping.remove(name);
        self.tallies.retain(|(of, _), _| of != name);
        let kinds = match container.startup_probe {
            Some(_) => vec![ProbeKind::Startup],
            None => vec![ProbeKind::Liveness, ProbeKind::Readiness],
        };
        self.begin_probes(container, &run, &kinds);
        self.begin_hook(container, run, node);
    }

    /// Has a container wait for the next node.
    fn wait_for_node(&mut self, name: &str) {
        let Some(record) = self.record.containers.get_mut(name) else { return };
        record.state = RunState::Waiting {
            reason: "ContainerCreating".to_owned(),
            message: None,
            since: None,
            retry_at: Some(later(NODE_PAUSE)),
        };
    }

    /// Notes that a program could not be executed.
    fn fail_start(&mut self, container: &Container, why: &str) {
        let name = &container.name;
        let now = Timestamp::now();
        let Some(spec) = &self.pod.spec else { return };
        let policy = restarts(spec, container, self.is_first(name));
        let Some(record) = self.record.containers.get_mut(name) else { return };
        record.note_try(now);
        let run = EndedRun {
            exit_code: START_ERROR_CODE,
            reason: "StartError".to_owned(),
            message: Some(why.to_owned()),
            started: None,
            finished: now,
            id: run_id(&self.pod, container, record.restarts),
        };
        record.note_start_failure(run, policy);
        self.images.remove(name);
        self.warn(Some(name), "Failed", format!("Error: {why}"));
    }

    fn begin_probes(&mut self, container: &Container, run: &ContainerName, kinds: &[ProbeKind]) {
        let Some(address) = self.address else { return };
        for kind in kinds {
            let Some(probe) = kind.of_container(container).cloned() else { continue };
            let task = ProbeTask {
                station: self.station.clone(),
                name: run.clone(),
                container: container.clone(),
                address,
                kind: *kind,
                probe,
                since: Instant::now(),
                tell: self.mailbox.clone(),
            };
            let handle = tokio::spawn(task.run()).abort_handle();
            self.tasks.entry(container.name.clone()).or_default().push(handle);
        }
    }

    /// Does what is to be done after a start; if that fails, the container is started again.
    fn begin_hook(&mut self, container: &Container, run: ContainerName, node: &NodeHandle) {
        let hook = container.lifecycle.as_ref().and_then(|all| all.post_start.clone());
        let (Some(hook), Some(address)) = (hook, self.address) else { return };
        let (station, pod, container, node) =
            (self.station.clone(), self.pod.clone(), container.clone(), node.clone());
        let key = container.name.clone();
        let is_first = self.is_first(&key);
        let task = tokio::spawn(async move {
            let done = perform_hook(&node, &run, &container, address, &hook, MOMENT).await;
            if let Err(why) = done {
                let of = Some((container.name.as_str(), is_first));
                let said = format!("PostStartHook failed: {why}");
                station.events.record(&pod, of, ("FailedPostStartHook", true), said);
                let _ = node.send_signal(&run, super::ending::KILL).await;
            }
        });
        self.tasks.entry(key).or_default().push(task.abort_handle());
    }

    /// Notes that a program ended.
    pub(super) fn note_exit(
        &mut self,
        run: &ContainerName,
        (code, signal): (Option<i32>, Option<i32>),
        out_of_memory: bool,
        message: Option<String>,
    ) {
        let Some(spec) = self.pod.spec.clone() else { return };
        let Some(container) = find_container(&spec, &run.name) else { return };
        let is_first = self.is_first(&run.name);
        let now = Timestamp::now();
        let id = run_id(&self.pod, container, run.attempt);
        let is_ending = self.record.is_ending;
        let Some(record) = self.record.containers.get_mut(&run.name) else { return };
        let RunState::Running { since } = record.state else { return };
        if record.restarts != run.attempt {
            return;
        }
        let exit_code =
            code.or_else(|| signal.and_then(|signal| signal.checked_add(128))).unwrap_or(137);
        let reason = match (out_of_memory, exit_code) {
            (true, _) => "OOMKilled",
            (false, 0) => "Completed",
            (false, _) => "Error",
        };
        let ended = EndedRun {
            exit_code,
            reason: reason.to_owned(),
            message,
            started: Some(since),
            finished: now,
            id,
        };
        let policy = restarts(&spec, container, is_first);
        record.note_end(ended, if is_ending { Restarts::Never } else { policy });
        let waits = matches!(&record.state, RunState::Ended { restart_at: Some(at), .. } if !until(*at).is_zero());
        self.stopping.remove(&run.name);
        for task in self.tasks.remove(&run.name).into_iter().flatten() {
            task.abort();
        }
        if waits && !self.record.is_ending {
            let (name, title) = (&run.name, pod_title(&self.pod));
            let said = format!("Back-off restarting failed container {name} in pod {title}");
            self.warn(Some(name), "BackOff", said);
        }
    }

    /// Notes the answer of a probe, and does what follows.
    pub(super) fn note_probe(
        &mut self,
        run: &ContainerName,
        kind: ProbeKind,
        failure: Option<&str>,
    ) {
        let Some(spec) = self.pod.spec.clone() else { return };
        let Some(container) = find_container(&spec, &run.name) else { return };
        let Some(probe) = kind.of_container(container) else { return };
        let Some(record) = self.record.containers.get(&run.name) else { return };
        if !record.is_running() || record.restarts != run.attempt || self.record.is_ending {
            return;
        }
        if let Some(why) = failure {
            let said = format!("{} probe failed: {why}", kind.title());
            self.warn(Some(&run.name), "Unhealthy", said);
        }
        let tally = self.tallies.entry((run.name.clone(), kind)).or_default();
        let schedule = ProbeSchedule::of_probe(probe);
        let Some(is_good) = tally.count_answer(failure.is_none(), &schedule) else { return };
        let Some(record) = self.record.containers.get_mut(&run.name) else { return };
        match (kind, is_good) {
            (ProbeKind::Readiness, _) => record.is_ready = is_good,
            (ProbeKind::Startup, true) if !record.is_up => {
                record.is_up = true;
                for task in self.tasks.remove(&run.name).into_iter().flatten() {
                    task.abort();
                }
                let kinds = [ProbeKind::Liveness, ProbeKind::Readiness];
                self.begin_probes(container, run, &kinds);
            }
            (ProbeKind::Startup | ProbeKind::Liveness, true) => {}
            (ProbeKind::Startup | ProbeKind::Liveness, false) => {
                let what = kind.title().to_lowercase();
                let said = format!("Container {} failed {what} probe, will be restarted", run.name);
                if !self.stopping.contains(&run.name) {
                    self.say_of(&run.name, "Killing", said);
                }
                let grace = probe.termination_grace_period_seconds;
                self.stop_container(&spec, &run.name, grace);
            }
        }
    }
}

fn runnable_image(image: &PulledImage) -> RunnableImage {
    RunnableImage {
        rootfs: image.rootfs.clone(),
        entrypoint: image.defaults.entrypoint.clone(),
        command: image.defaults.command.clone(),
        environment: image.defaults.environment.iter().cloned().collect(),
        directory: image.defaults.directory.clone(),
        user: image.defaults.user.clone(),
    }
}

fn make_directory(path: &Path) -> Result<(), String> {
    fs_err::create_dir_all(path).map_err(|error| error.to_string())
}

/// What a node said, or that it said nothing.
pub(super) fn told_in_time<T>(
    answer: Result<Result<T, NodeError>, tokio::time::error::Elapsed>,
) -> Result<T, String> {
    match answer {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err("the node did not answer in time".to_owned()),
    }
}
