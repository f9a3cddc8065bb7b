//! The machine: programs of pods, whether a kubelet looks after them or not.
//!
//! Time passes when the machine is looked at: what was due until then happens in the order in which it was
//! due. So it does not matter who looks, and when.

use crate::picture::text;
use crate::place::Clock;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// A program is ready so many seconds after its start.
const READY_AFTER: u64 = 5;
/// A program that is asked to end takes so many seconds.
const END_TIME: u64 = 10;
/// A program that ended by itself is started again after so many seconds, and then after twice as many.
const CRASH_PAUSE: u64 = 10;
/// The longest pause before a start.
const CRASH_PAUSE_MAX: u64 = 300;
/// A container with this argument never becomes ready.
pub(crate) const NEVER_READY: &str = "--never-ready";

/// What a pod's program does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramState {
    /// Since when.
    Running(u64),
    /// Ended by itself; since when, and when it may be started again.
    Crashed(u64, u64),
    /// Ended because it was asked to.
    Ended(u64),
}

/// The program of a pod.
#[derive(Clone, Debug)]
pub(crate) struct PodProgram {
    /// Namespace and name of its pod.
    pub(crate) pod: String,
    /// Name and image of its container.
    pub(crate) container: (String, String),
    provider: String,
    revision: String,
    is_never_ready: bool,
    pub(crate) state: ProgramState,
    /// When the pod was started first.
    pub(crate) begun: u64,
    /// Since when it has been ready, or not.
    pub(crate) turned: u64,
    pub(crate) is_ready: bool,
    pub(crate) restarts: u64,
    /// When it will have ended, once it was asked to.
    ends_at: Option<u64>,
    /// The last number of its address.
    pub(crate) number: usize,
}

impl PodProgram {
    /// Whether there is a process.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.state, ProgramState::Running(_))
    }

    /// When something happens next by itself.
    fn next_due(&self) -> Option<u64> {
        let ready = match self.state {
            ProgramState::Running(since) if !self.is_ready && !self.is_never_ready => {
                Some(since + READY_AFTER)
            }
            ProgramState::Crashed(_, again) => Some(again),
            _ => None,
        };
        let end = self.ends_at.filter(|_| self.is_running());
        ready.into_iter().chain(end).min()
    }
}

/// A machine and what runs on it.
#[derive(Clone, Debug, Default)]
pub struct NodeMachine {
    programs: BTreeMap<String, PodProgram>,
    is_off: bool,
    started: usize,
    /// Since when nothing runs of providers of which something ran.
    idle: BTreeMap<String, u64>,
    longest_idle: u64,
    wrongs: Vec<String>,
}

impl NodeMachine {
    /// What ran side by side and must not.
    pub fn wrongs(&self) -> &[String] {
        &self.wrongs
    }

    /// The most seconds in which nothing ran of a provider that ran before and after.
    pub fn longest_idle(&self) -> u64 {
        self.longest_idle
    }

    /// The same machine, without what was noted so far.
    pub(crate) fn without_notes(self) -> Self {
        Self { idle: BTreeMap::new(), longest_idle: 0, wrongs: Vec::new(), ..self }
    }

    /// What does not fit the Pods and Deployments there are, once everything has come to rest.
    pub fn misfits(&self, objects: &[Json]) -> Vec<String> {
        let mut lines = Vec::new();
        let of_kind = |kind: &'static str| objects.iter().filter(move |one| one["kind"] == kind);
        let pods: Vec<&Json> = of_kind("Pod").collect();
        for pod in &pods {
            let uid = text(&pod["metadata"], "uid");
            if !self.programs.get(uid).is_some_and(PodProgram::is_running) {
                lines.push(format!("nothing runs of {}", crate::picture::name(pod)));
            }
        }
        for (uid, program) in &self.programs {
            if !pods.iter().any(|pod| text(&pod["metadata"], "uid") == uid) {
                lines.push(format!("a program of {} is left behind", program.pod));
            }
        }
        for deployment in of_kind("Deployment") {
            let labels = &deployment["spec"]["template"]["metadata"]["labels"];
            let wished = deployment["spec"]["replicas"].as_u64().unwrap_or(1);
            let revision = text(labels, api::pkg::LABEL_REVISION);
            let of_it = |one: &&PodProgram| one.is_running() && one.revision == revision;
            let count = self.programs.values().filter(of_it).count();
            if count as u64 != wished {
                let name = crate::picture::name(deployment);
                lines.push(format!("{count} programs of {name} run, and {wished} should"));
            }
        }
        lines
    }

    /// Lets everything happen that is due.
    fn pass_time(&mut self, now: u64) {
        loop {
            let due = self.programs.iter().filter_map(|(uid, one)| {
                let at = one.next_due().filter(|at| *at <= now)?;
                // Starting again is for the kubelet.
                (!matches!(one.state, ProgramState::Crashed(..))).then(|| (at, uid.clone()))
            });
            let Some((at, uid)) = due.min() else { return };
            let Some(program) = self.programs.get_mut(&uid) else { return };
            if program.ends_at.is_some_and(|end| end <= at) {
                program.state = ProgramState::Ended(at);
                (program.is_ready, program.turned) = (false, at);
                self.note_end(&uid, at);
            } else {
                (program.is_ready, program.turned) = (true, at);
            }
        }
    }

    /// Notes since when nothing runs of a provider, if that was its last program.
    fn note_end(&mut self, uid: &str, at: u64) {
        let Some(provider) = self.programs.get(uid).map(|one| one.provider.clone()) else { return };
        let runs = |one: &PodProgram| one.is_running() && one.provider == provider;
        if !self.programs.values().any(runs) {
            self.idle.entry(provider).or_insert(at);
        }
    }

    /// Notes that a program runs from now on: not beside one of another revision.
    fn note_start(&mut self, uid: &str, now: u64) {
        let Some(new) = self.programs.get(uid) else { return };
        if let Some(since) = self.idle.remove(&new.provider) {
            self.longest_idle = self.longest_idle.max(now.saturating_sub(since));
        }
        let is_other = |one: &&PodProgram| {
            one.is_running() && one.provider == new.provider && one.revision != new.revision
        };
        let wrong = self.programs.values().find(is_other).filter(|_| !new.provider.is_empty());
        let wrong = wrong.map(|other| format!("{} was started beside {}", new.pod, other.pod));
        self.wrongs.extend(wrong);
    }

    /// Starts the program of a pod, for the first time.
    fn start_program(&mut self, uid: &str, pod: &Json, now: u64) {
        let (labels, spec) = (&pod["metadata"]["labels"], &pod["spec"]);
        let container = &spec["containers"][0];
        let arguments = container["args"].as_array().into_iter().flatten();
        let owned = |value: &str| value.to_owned();
        self.started += 1;
        let program = PodProgram {
            pod: crate::picture::name(pod),
            container: (owned(text(container, "name")), owned(text(container, "image"))),
            provider: owned(text(labels, api::pkg::LABEL_PROVIDER)),
            revision: owned(text(labels, api::pkg::LABEL_REVISION)),
            is_never_ready: arguments.into_iter().any(|one| one == NEVER_READY),
            state: ProgramState::Running(now),
            begun: now,
            turned: now,
            is_ready: false,
            restarts: 0,
            ends_at: None,
            number: self.started,
        };
        self.programs.insert(uid.to_owned(), program);
        self.note_start(uid, now);
    }

    fn crash_at(&mut self, uid: &str, now: u64) {
        let Some(program) = self.programs.get_mut(uid).filter(|one| one.is_running()) else {
            return;
        };
        let doubled = CRASH_PAUSE << program.restarts.min(5);
        program.state = ProgramState::Crashed(now, now + doubled.min(CRASH_PAUSE_MAX));
        (program.is_ready, program.turned) = (false, now);
        self.note_end(uid, now);
    }
}

/// A machine that kubelets share, one after the other.
#[derive(Clone)]
pub(crate) struct SharedMachine {
    machine: Arc<Mutex<NodeMachine>>,
    clock: Clock,
    changed: Arc<Notify>,
}

impl SharedMachine {
    /// A machine in a place.
    pub(crate) fn new(machine: NodeMachine, clock: Clock) -> Self {
        Self { machine: Arc::new(Mutex::new(machine)), clock, changed: Arc::new(Notify::new()) }
    }

    fn with<T>(&self, look: impl FnOnce(&mut NodeMachine, u64) -> T) -> T {
        let now = self.clock.seconds();
        let mut machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        machine.pass_time(now);
        look(&mut machine, now)
    }

    /// The machine as it is now.
    pub(crate) fn copy_now(&self) -> NodeMachine {
        self.with(|machine, _| machine.clone())
    }

    /// Whether it lost its power.
    pub(crate) fn is_off(&self) -> bool {
        self.with(|machine, _| machine.is_off)
    }

    /// Ends all programs at once.
    pub(crate) fn lose_power(&self) {
        self.with(|machine, now| {
            machine.is_off = true;
            let all: Vec<String> = machine.programs.keys().cloned().collect();
            for uid in all {
                if let Some(program) = machine.programs.get_mut(&uid)
                    && program.is_running()
                {
                    program.state = ProgramState::Ended(now);
                    machine.note_end(&uid, now);
                }
            }
            machine.programs.clear();
        });
    }

    /// The kubelet is there again.
    pub(crate) fn power_on(&self) {
        self.with(|machine, _| machine.is_off = false);
    }

    /// The program that was started last ends by itself.
    pub(crate) fn crash_program(&self) {
        self.with(|machine, now| {
            let running = machine.programs.iter().filter(|(_, one)| one.is_running());
            let last = running.max_by_key(|(_, one)| one.number).map(|(uid, _)| uid.clone());
            if let Some(uid) = last {
                machine.crash_at(&uid, now);
            }
        });
        self.changed.notify_one();
    }

    /// Waits until something happened that nobody asked for.
    pub(crate) async fn hear_change(&self) {
        self.changed.notified().await;
    }

    /// Seconds until something happens by itself.
    pub(crate) fn next_change(&self) -> Option<u64> {
        self.with(|machine, now| {
            let due = machine.programs.values().filter_map(PodProgram::next_due).min();
            due.map(|due| due.saturating_sub(now).max(1))
        })
    }

    /// Runs the program of a pod, if it does not run and may be started.
    pub(crate) fn run_program(&self, uid: &str, pod: &Json) {
        self.with(|machine, now| match machine.programs.get_mut(uid) {
            None => machine.start_program(uid, pod, now),
            Some(program) => {
                if let ProgramState::Crashed(_, again) = program.state
                    && again <= now
                {
                    program.state = ProgramState::Running(now);
                    program.restarts += 1;
                    machine.note_start(uid, now);
                }
            }
        });
    }

    /// Asks a program to end within so many seconds. Says whether it has ended.
    pub(crate) fn end_program(&self, uid: &str, grace: u64) -> bool {
        self.with(|machine, now| {
            let Some(program) = machine.programs.get_mut(uid) else { return true };
            if let ProgramState::Crashed(since, _) = program.state {
                program.state = ProgramState::Ended(since);
            }
            let end = now + END_TIME.min(grace);
            program.ends_at = Some(program.ends_at.map_or(end, |before| before.min(end)));
            machine.pass_time(now);
            machine.programs.get(uid).is_none_or(|one| !one.is_running())
        })
    }

    /// Kills what runs of pods that are not among these, and forgets it.
    pub(crate) fn keep_only(&self, is_known: impl Fn(&str) -> bool) {
        self.with(|machine, now| {
            let gone = machine.programs.keys().filter(|uid| !is_known(uid)).cloned();
            for uid in gone.collect::<Vec<String>>() {
                machine.crash_at(&uid, now);
                machine.programs.remove(&uid);
            }
        });
    }

    /// The program of a pod.
    pub(crate) fn program_of(&self, uid: &str) -> Option<PodProgram> {
        self.with(|machine, _| machine.programs.get(uid).cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(revision: &str) -> Json {
        let mut labels = json!({});
        labels[api::pkg::LABEL_PROVIDER] = json!("p");
        labels[api::pkg::LABEL_REVISION] = json!(revision);
        json!({
            "kind": "Pod", "metadata": {"name": revision, "uid": revision, "labels": labels},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        })
    }

    #[test]
    fn two_revisions_that_run_at_once_are_noted_and_so_is_a_time_without_any() {
        let mut machine = NodeMachine::default();
        machine.start_program("a", &pod("p-1"), 100);
        machine.crash_at("a", 110);
        machine.start_program("b", &pod("p-2"), 130);
        assert_eq!((machine.wrongs.len(), machine.longest_idle), (0, 20));
        machine.start_program("c", &pod("p-1"), 140);
        assert_eq!(machine.wrongs, ["Pod/p-1 was started beside Pod/p-2"]);
    }

    #[test]
    fn what_is_due_happens_whenever_the_machine_is_looked_at() {
        let mut machine = NodeMachine::default();
        machine.start_program("a", &pod("p-1"), 100);
        machine.programs.values_mut().for_each(|one| one.ends_at = Some(110));
        machine.pass_time(500);
        assert_eq!(machine.programs["a"].state, ProgramState::Ended(110));
        machine.start_program("b", &pod("p-2"), 115);
        assert_eq!((machine.wrongs.len(), machine.longest_idle), (0, 5));
        let mut there = pod("p-1");
        there["metadata"]["uid"] = json!("a");
        let told = machine.misfits(&[there]);
        assert_eq!(told, ["nothing runs of Pod/p-1", "a program of Pod/p-2 is left behind"]);
    }
}
