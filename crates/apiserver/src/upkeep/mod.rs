//! # Upkeep: what follows from writes, after they are answered
//!
//! ```text
//!  log ──events──► graph (who owns whom) ──► duties ──► one at a time, through `rest`
//!                                             ▲   │
//!                                             └───┘ what failed is tried again later
//! ```
//!
//! Upstream does this in a program of its own that watches the server. Here it reads the
//! log directly, so it starts the moment a write is durable and never polls. Nothing it
//! knows needs to be stored: after a restart, or when it fell too far behind, it looks at
//! every object once and comes to the same conclusions. A crash between the removal of an
//! owner and that of its dependents therefore heals itself.
//!
//! Upkeep is a value that is driven from outside: [`Server::step`] does one thing and
//! [`Server::settle`] everything there is to do now; [`Server::attend`] is the task that
//! does so whenever something was written. The time comes from the world.

mod collect;
mod deployment;
mod equip;
mod graph;
#[cfg(test)]
mod hosting_tests;
mod namespace;
mod nodes;
mod pods;
#[cfg(test)]
mod refusal_tests;
mod rollout;
mod stored;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;

use crate::Server;
use crate::kind::{event, split_key};
use crate::log::{Event, Expect, Write};
pub(crate) use equip::settle as equip_namespace;
use graph::Graph;
pub(crate) use nodes::furnish_node;
use stored::Stored;

/// How many events are taken in at once.
const EVENTS_MAX: usize = 512;
/// The longest time between two tries of the same duty, in seconds.
const PAUSE_MAX: u64 = 64;
/// Where namespaces lie.
const NAMESPACES: &str = "namespaces.";
/// Where definitions lie.
const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";
/// How long events are kept after they were last written.
const EVENT_SECONDS: u64 = 3600;
/// Where Deployments lie.
const DEPLOYMENTS: &str = "deployments.apps";
/// Where replica sets lie.
const REPLICA_SETS: &str = "replicasets.apps";
/// Where Pods lie.
const PODS: &str = "pods.";
/// Where Nodes lie.
const NODES: &str = "nodes.";
/// Where Services lie.
const SERVICES: &str = "services.";
/// Objects nobody collects: they go by themselves.
const EVENTS: &str = "events./";

/// One thing to do. Keys are those of the log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Duty {
    /// Delete an object that has no owner left, or let one go that waited for its dependents.
    Collect(Arc<str>),
    /// Free the dependents of an object, then let it go.
    Orphan(Arc<str>),
    /// Empty the namespace of this name, then let it go.
    Namespace(String),
    /// Judge the definition of this name, or remove its objects and let it go.
    Definition(String),
    /// Make the status of this Deployment true.
    Deployment(Arc<str>),
    /// Give this replica set the pods it wishes for.
    ReplicaSet(Arc<str>),
    /// Give this pod a node.
    Schedule(Arc<str>),
    /// Look again at pods that no node was there for.
    Nodes,
    /// List the pods that the Services of this namespace lead to.
    Endpoints(String),
    /// Make what every namespace has in the one of this name.
    Equip(String),
    /// Forget this event, if nobody has heard of it for long enough.
    Expire(Arc<str>),
}

/// How a duty ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing is left to do.
    Done,
    /// It could not be done now.
    Later,
    /// It cannot be judged while a kind is unknown.
    Unknown,
}

/// What upkeep knows.
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    state: Mutex<State>,
    wake: Arc<tokio::sync::Notify>,
}

#[derive(Debug, Default)]
struct State {
    /// The version up to which the log was read; `None` before the first look.
    seen: Option<u64>,
    graph: Graph,
    queue: VecDeque<Duty>,
    queued: BTreeSet<Duty>,
    later: BTreeSet<(u64, Duty)>,
    failures: BTreeMap<Duty, u32>,
    /// The time, when it was last looked at.
    now: u64,
    /// When events are to be forgotten.
    expiries: BTreeMap<Arc<str>, u64>,
    /// Namespaces that are being deleted.
    ending: BTreeSet<String>,
    /// Definitions that are being deleted.
    closing: BTreeSet<String>,
    /// What waits for a definition to come.
    unknown: BTreeSet<Duty>,
    /// Whether Deployments become pods.
    is_hosting: bool,
}

impl Upkeep {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Upkeep {
    /// Looks again at what waited for a kind to be known.
    pub(crate) fn defined(&self) {
        let mut state = self.lock();
        for duty in std::mem::take(&mut state.unknown) {
            state.add(duty);
        }
        self.wake.notify_one();
    }
}

impl Upkeep {
    /// Judges definitions again whose names may have become free.
    pub(crate) fn again(&self, names: Vec<String>) {
        let mut state = self.lock();
        for name in names {
            state.add(Duty::Definition(name));
        }
        self.wake.notify_one();
    }
}

/// Whether a definition's names were accepted or refused before the last stop.
fn is_judged(value: &[u8]) -> bool {
    const MARK: &[u8] = b"\"NamesAccepted\"";
    value.windows(MARK.len()).any(|window| window == MARK)
}

impl State {
    fn add(&mut self, duty: Duty) {
        if self.queued.insert(duty.clone()) {
            self.queue.push_back(duty);
        }
    }

    /// Reads the log up to its end, or everything when that is no longer possible.
    fn catch_up(&mut self, server: &Server) {
        while let Some(seen) = self.seen {
            let Ok((events, upto)) = server.log.after(seen, "", EVENTS_MAX) else {
                self.seen = None;
                break;
            };
            for event in &events {
                // What cannot be read is left to the next look at everything: the events after
                // it must not wait for it.
                let _ = catch_unwind(AssertUnwindSafe(|| self.notice(event)));
            }
            self.seen = Some(upto);
            if events.len() < EVENTS_MAX {
                return;
            }
        }
        self.graph = Graph::default();
        let Ok(snapshot) = server.log.list("", None) else { return };
        let now = self.now;
        for (key, entry) in &snapshot.entries {
            let _ = catch_unwind(AssertUnwindSafe(|| self.find(key, &entry.value, now)));
            self.now = now;
        }
        self.seen = Some(snapshot.version);
    }

    /// Takes in an object that is there, whenever it came.
    fn find(&mut self, key: &Arc<str>, value: &bytes::Bytes, now: u64) {
        if key.starts_with(EVENTS) {
            // Its while began when it was last heard of.
            let event = serde_json::from_slice(value).unwrap_or_default();
            self.now = event::last_heard(&event).unwrap_or(now).min(now);
        }
        self.happened(key, None, Some(value));
        if key.starts_with(DEFINITIONS) && !is_judged(value) {
            self.add(Duty::Definition(split_key(key).2.to_owned()));
        }
    }

    fn notice(&mut self, event: &Event) {
        let before = event.previous.as_ref().map(|entry| &entry.value);
        self.happened(&event.key, before, event.value.as_ref());
    }

    fn happened(
        &mut self,
        key: &Arc<str>,
        before: Option<&bytes::Bytes>,
        after: Option<&bytes::Bytes>,
    ) {
        if self.is_hosting && split_key(key).0 == PODS {
            let takes_room =
                |pod: Option<&bytes::Bytes>| pod.is_some_and(|it| stored::takes_room(it));
            if takes_room(before) && !takes_room(after) {
                // Another pod may have waited for its place.
                self.add(Duty::Nodes);
            }
        }
        let (before, after) =
            (before.map(|value| Stored::read(value)), after.map(|value| Stored::read(value)));
        self.lifecycle(key, after.as_ref());
        if self.is_hosting {
            self.wake_workloads(key, [before.as_ref(), after.as_ref()]);
        }
        if key.starts_with(EVENTS) {
            self.remember(key, after.is_some());
            return;
        }
        for duty in self.graph.notice(key, before.as_ref(), after.as_ref()) {
            self.add(duty);
        }
    }

    /// Every write keeps an event for another while.
    fn remember(&mut self, key: &Arc<str>, there: bool) {
        if there {
            let due = self.now.saturating_add(EVENT_SECONDS);
            self.expiries.insert(Arc::clone(key), due);
            self.later.insert((due, Duty::Expire(Arc::clone(key))));
        } else {
            self.expiries.remove(key);
        }
    }

    /// Namespaces and definitions that go take their objects with them, and every object
    /// that goes may be the last.
    fn lifecycle(&mut self, key: &str, after: Option<&Stored>) {
        let (resource, namespace, name) = split_key(key);
        let leaving = after.is_some_and(|one| one.deleting);
        let (set, duty) = match resource {
            NAMESPACES => (&mut self.ending, Duty::Namespace(name.to_owned())),
            DEFINITIONS => (&mut self.closing, Duty::Definition(name.to_owned())),
            _ => {
                if resource == DEPLOYMENTS {
                    self.add(Duty::Deployment(key.into()));
                } else if equip::is_part(resource, name) {
                    self.add(Duty::Equip(namespace.to_owned()));
                }
                if self.ending.contains(namespace) {
                    self.add(Duty::Namespace(namespace.to_owned()));
                }
                if self.closing.contains(resource) {
                    self.add(Duty::Definition(resource.to_owned()));
                }
                return;
            }
        };
        if leaving {
            set.insert(name.to_owned());
            self.add(duty);
        } else {
            set.remove(name);
            if resource == NAMESPACES && after.is_some() {
                self.add(Duty::Equip(name.to_owned()));
            }
        }
    }

    /// News of a replica set concerns its Deployment, news of a pod its replica set and the Services
    /// of its namespace.
    fn wake_workloads(&mut self, key: &Arc<str>, versions: [Option<&Stored>; 2]) {
        let (resource, namespace, _) = split_key(key);
        let owners = versions.into_iter().flatten().flat_map(|one| &one.owners);
        let of_kind = |kind: &'static str| owners.clone().filter(move |owner| owner.kind == kind);
        match resource {
            REPLICA_SETS => {
                self.add(Duty::ReplicaSet(Arc::clone(key)));
                for owner in of_kind("Deployment") {
                    let owner = format!("{DEPLOYMENTS}/{namespace}/{}", owner.name);
                    self.add(Duty::Deployment(owner.into()));
                }
            }
            PODS => {
                self.add(Duty::Schedule(Arc::clone(key)));
                for owner in of_kind("ReplicaSet") {
                    let owner = format!("{REPLICA_SETS}/{namespace}/{}", owner.name);
                    self.add(Duty::ReplicaSet(owner.into()));
                }
                self.add(Duty::Endpoints(namespace.to_owned()));
            }
            // Also slices and Endpoints that a client deleted or changed are put right.
            SERVICES | pods::ENDPOINTS | pods::ENDPOINT_SLICES => {
                self.add(Duty::Endpoints(namespace.to_owned()));
            }
            NODES => self.add(Duty::Nodes),
            _ => {}
        }
    }

    fn next(&mut self, now: u64) -> Option<Duty> {
        while let Some((due, _)) = self.later.first()
            && *due <= now
            && let Some((_, duty)) = self.later.pop_first()
        {
            self.add(duty);
        }
        let duty = self.queue.pop_front()?;
        self.queued.remove(&duty);
        Some(duty)
    }

    fn close(&mut self, duty: Duty, outcome: Outcome, now: u64) {
        match outcome {
            Outcome::Done => {
                self.failures.remove(&duty);
            }
            Outcome::Unknown => {
                self.unknown.insert(duty);
            }
            Outcome::Later => {
                let failures = self.failures.entry(duty.clone()).or_default();
                let pause = PAUSE_MAX.min(1 << (*failures).min(6));
                *failures = failures.saturating_add(1);
                self.later.insert((now.saturating_add(pause), duty));
            }
        }
    }
}

impl Server {
    /// Does one thing that follows from what was written; `false` says that there is
    /// nothing to do now.
    pub async fn step(self: &Arc<Self>) -> bool {
        let duty = {
            let mut state = self.upkeep.lock();
            state.now = self.world.now();
            state.is_hosting = self.options.runtime.makes_pods();
            state.catch_up(self);
            state.next(self.world.now())
        };
        let Some(duty) = duty else { return false };
        // A duty that panics is tried again like any other that failed, and keeps none from
        // being done.
        let outcome = AssertUnwindSafe(self.discharge(&duty)).catch_unwind().await;
        let outcome = outcome.unwrap_or(Outcome::Later);
        self.upkeep.lock().close(duty, outcome, self.world.now());
        true
    }

    async fn discharge(self: &Arc<Self>, duty: &Duty) -> Outcome {
        match duty {
            Duty::Collect(key) => collect::collect(self, key).await,
            Duty::Orphan(key) => collect::orphan(self, key).await,
            Duty::Namespace(name) => namespace::settle(self, name).await,
            Duty::Definition(name) => {
                crate::crd::finish(self, name).await;
                Outcome::Done
            }
            Duty::Deployment(key) if self.options.runtime.makes_pods() => {
                rollout::roll_out(self, key).await
            }
            Duty::Deployment(key) => deployment::settle(self, key).await,
            Duty::ReplicaSet(key) => pods::keep_replicas(self, key).await,
            Duty::Schedule(key) => pods::schedule_pod(self, key).await,
            Duty::Nodes => pods::schedule_waiting(self),
            Duty::Endpoints(namespace) => pods::list_addresses(self, namespace).await,
            Duty::Equip(name) => equip::settle(self, name).await,
            Duty::Expire(key) => self.expire(key).await,
        }
    }

    /// Removes an event whose time has come. Finalizers do not hold it: upstream's storage
    /// forgets without asking.
    async fn expire(&self, key: &Arc<str>) -> Outcome {
        let due = self.upkeep.lock().expiries.get(key).copied();
        if due.is_none_or(|due| due > self.world.now()) {
            return Outcome::Done;
        }
        let Some(entry) = self.log.get(key) else { return Outcome::Done };
        let expect = Expect::Version(entry.version);
        let write = Write { key: key.to_string(), expect, value: None };
        // Someone who wrote it meanwhile has given it another while.
        let _ = self.log.write(write).await;
        Outcome::Done
    }

    /// Does everything that follows from what was written, as far as it can be done now.
    pub async fn settle(self: &Arc<Self>) {
        while self.step().await {}
    }

    /// Does something at a time of its own.
    fn remind(&self, at: Option<u64>, duty: impl FnOnce() -> Duty) {
        if let Some(at) = at {
            self.upkeep.lock().later.insert((at, duty()));
        }
    }

    /// Looks again at a Deployment whose pods have changed. For runtimes.
    pub fn look_again(&self, namespace: &str, name: &str) {
        let key = format!("{DEPLOYMENTS}/{namespace}/{name}");
        self.upkeep.lock().add(Duty::Deployment(key.into()));
        self.upkeep.wake.notify_one();
    }

    /// When something that failed is to be tried again, in seconds since 1970.
    pub fn due(&self) -> Option<u64> {
        self.upkeep.lock().later.first().map(|(due, _)| *due)
    }

    /// Settles now and after every write, until the server is gone.
    pub fn attend(self: &Arc<Self>) {
        let mut committed = self.log.committed();
        let server = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                committed.borrow_and_update();
                let Some(strong) = server.upgrade() else { return };
                // What panicked outside of a duty is tried again after the next write.
                let _ = AssertUnwindSafe(strong.settle()).catch_unwind().await;
                let pause = strong.due().map(|due| due.saturating_sub(strong.world.now()).max(1));
                let woken = Arc::clone(&strong.upkeep.wake);
                drop(strong);
                let late = async {
                    match pause {
                        Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    changed = committed.changed() => if changed.is_err() { return },
                    () = woken.notified() => {}
                    () = late => {}
                }
            }
        });
    }
}
