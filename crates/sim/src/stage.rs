//! The stage: a place, a manager that may die and be started again, and a user.

use crate::fault::{Fault, Schedule};
use crate::gate::{Bend, Call, Gate, Probe};
use crate::life::{Diary, Life};
use crate::node::NodeLife;
use crate::node::machine::{NodeMachine, SharedMachine};
use crate::pack::{Failure, Package};
use crate::place::{BEGINNING, Clock, Place, empty_registry};
use crate::turnstile::Turnstile;
use apiserver::log::Log;
use apiserver::runtime::Hosting;
use axum::Router;
use http::{Method, Request};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tower::ServiceExt;

/// How often to look whether anything happens.
const LOOK: Duration = Duration::from_secs(10);
/// As long as this nobody writes: longer than any pause the manager makes, and long enough for it
/// to look at everything once more.
const QUIET: Duration = Duration::from_secs(200);
/// A watch that tells nothing is given up after this long.
const DEAF: Duration = Duration::from_secs(600);
/// What a node writes to say that it is there.
const HEARTBEATS: [&str; 2] = ["leases.coordination.k8s.io/kube-node-lease", "nodes./"];
/// After this long it never will be quiet.
const PATIENCE: Duration = Duration::from_secs(7200);
/// After this many calls it never will be, either.
const CALLS_MAX: usize = 6_000;
/// Nothing is asked for this long by a manager that is up.
const UP: Duration = Duration::from_secs(8);

/// A cluster, a registry and a cache at rest, from which simulations begin.
#[derive(Clone)]
pub struct Snapshot {
    /// The objects.
    pub log: Log,
    time: u64,
    registry: Router,
    pushed: Vec<(Package, String)>,
    cache: Arc<TempDir>,
    machine: NodeMachine,
}

impl Snapshot {
    /// Nothing at all.
    pub fn empty() -> Result<Self, Failure> {
        let cache = Arc::new(directory()?);
        let (log, registry) = (Log::in_memory(), empty_registry());
        let machine = NodeMachine::default();
        Ok(Self { log, time: BEGINNING, registry, pushed: Vec::new(), cache, machine })
    }
}

/// Which kinds a manager looks after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ManagedKinds {
    /// Packages, revisions and what runs them.
    #[default]
    Packages,
    /// Those, and install objects of the first package system.
    InstallObjects,
}

/// How a manager is to be started, and what is to happen to it.
#[derive(Clone, Default)]
pub struct Setting {
    /// Whether it makes its kinds known.
    pub installs_definitions: bool,
    /// Whether packages are pushed, so that the registry cannot be shared.
    pub pushes: bool,
    /// Whether there is a node, and Deployments become pods; otherwise they are available at once.
    pub is_hosted: bool,
    /// Which kinds the manager looks after.
    pub kinds: ManagedKinds,
    /// What happens to its calls in its first life, or to those of the node.
    pub schedule: Option<Schedule>,
    /// What is done to its calls in all of its lives.
    pub bend: Option<Bend>,
}

/// A place with a manager and a user.
pub struct Stage {
    place: Place,
    pushed: Vec<(Package, String)>,
    cache: TempDir,
    life: Life,
    node: Option<NodeLife>,
    turnstile: Turnstile,
    keeper: JoinHandle<()>,
    setting: Setting,
    /// The first life's gate, which faults happen at.
    first: Gate,
    diary: Diary,
    /// Of what was put into the registry, by reference.
    digests: BTreeMap<String, String>,
}

impl Stage {
    /// A cluster with a manager that has just been started.
    pub async fn open(from: &Snapshot, setting: Setting) -> Result<Self, Failure> {
        let mut registry = from.registry.clone();
        let mut digests = BTreeMap::new();
        if setting.pushes {
            registry = empty_registry();
            for (package, reference) in &from.pushed {
                let digest = package.push(&registry, reference).await?;
                digests.insert(reference.clone(), digest.to_string());
            }
        }
        let hosting = if setting.is_hosted { Hosting::Pods } else { Hosting::simulated() };
        let clock = Clock::start(from.time);
        let place = Place::new(from.log.fork(), registry, clock, hosting).await?;
        let turnstile = Turnstile::default();
        let keeper = tokio::spawn(turnstile.clone().keep_passing());
        let cache = directory()?;
        copy(from.cache.path(), cache.path())?;
        let probe = probe(&place.log, cache.path());
        let (of_node, of_manager) = match setting.schedule {
            Some(schedule) if schedule.at.is_of_node() => (Some(schedule), None),
            other => (None, other),
        };
        let (server, bend) = (place.server.clone(), setting.bend.clone());
        let gate = Gate::new(server, &turnstile, of_manager, bend, probe);
        let (first, diary) = (gate.clone(), Diary::default());
        let path = PathBuf::from(cache.path());
        let work = (setting.installs_definitions, setting.kinds);
        let life = Life::begin(&place, gate, path, work, &diary)?;
        let pushed = from.pushed.clone();
        let node = setting.is_hosted.then(|| {
            let machine = SharedMachine::new(from.machine.clone().without_notes(), clock);
            NodeLife::begin(&place, &turnstile, machine, of_node)
        });
        let stage = Self {
            place,
            pushed,
            cache,
            life,
            node,
            turnstile,
            keeper,
            setting,
            first,
            diary,
            digests,
        };
        Ok(stage)
    }

    /// Waits until the manager has nothing more to ask. It has been here before, so it must not
    /// write anything.
    pub async fn wake(&mut self) -> Result<(), Failure> {
        let mut seen = self.place.log.version();
        let writes = self.first_writes().await;
        if writes.is_empty() && !self.has_news(&mut seen) {
            return Ok(());
        }
        let said = self.diary().join("; ");
        Err(format!("a manager that is started again writes: {writes:?}: {said}").into())
    }

    /// What the manager writes until it has nothing more to ask.
    pub async fn first_writes(&self) -> Vec<String> {
        let mut asked = 0;
        loop {
            tokio::time::sleep(UP).await;
            let now = self.life.gate().count();
            if now == asked {
                return self.life.gate().written();
            }
            asked = now;
        }
    }

    /// From now on calls are numbered and may meet faults.
    pub fn arm(&self) {
        if let Some(node) = &self.node {
            node.gate().arm(None);
        }
        let is_past = self.setting.schedule.is_some_and(|one| one.fault == Fault::Past);
        self.first.arm(is_past.then(|| self.place.frozen()));
    }

    /// Puts a package into the registry.
    pub async fn push(&mut self, package: &Package, reference: &str) -> Result<(), Failure> {
        self.pushed.push((package.clone(), reference.to_owned()));
        let digest = package.push(&self.place.registry, reference).await?;
        self.digests.insert(reference.to_owned(), digest.to_string());
        Ok(())
    }

    /// The digest of what was last put into the registry there, as names of revisions have it.
    pub fn digest(&self, reference: &str) -> Option<String> {
        let digest = self.digests.get(reference)?;
        digest.split_once(':').map(|(_, digits)| digits.chars().take(12).collect())
    }

    /// What the body of a request is.
    pub fn media_type(method: &Method) -> &'static str {
        match *method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        }
    }

    /// What the user does to the API server; faults are not for users.
    pub async fn ask(&self, method: Method, path: &str, body: &Json) -> Result<Json, Failure> {
        let kind = Self::media_type(&method);
        let request = Request::builder().method(method.clone()).uri(path);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = request.header("content-type", kind).body(axum::body::Body::from(body))?;
        let answer = self.place.server.clone().oneshot(request).await?;
        let status = answer.status();
        let bytes = axum::body::to_bytes(answer.into_body(), usize::MAX).await?;
        if !status.is_success() {
            let said = String::from_utf8_lossy(&bytes);
            return Err(format!("{method} {path}: {status} {said}").into());
        }
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// Waits until nobody writes any more; a manager that ended is started again.
    pub async fn settle(&mut self) -> Result<(), Failure> {
        let start = Instant::now();
        let is_silent = self.setting.schedule.is_some_and(|one| {
            matches!(one.fault, Fault::Deaf | Fault::Unreachable | Fault::PowerLoss)
        });
        let least = if is_silent { DEAF } else { Duration::ZERO };
        let (mut seen, mut asked) = (self.place.log.version(), self.life.gate().writes());
        let mut since = Instant::now();
        let before = self.life.gate().count();
        while start.elapsed() < PATIENCE && self.life.gate().count() < before + CALLS_MAX {
            self.pass_until(Instant::now() + LOOK, true).await?;
            let now = self.life.gate().writes();
            if self.has_news(&mut seen) || now != asked {
                (asked, since) = (now, Instant::now());
            }
            if since.elapsed() >= QUIET && start.elapsed() >= least {
                return Ok(());
            }
        }
        Err("it never comes to rest".into())
    }

    /// Lets time pass; a manager that ended is started again.
    pub async fn pass(&mut self, time: Duration) -> Result<(), Failure> {
        self.pass_until(Instant::now() + time, false).await
    }

    /// Lets time pass until then, or until a manager or a node that ended was started again.
    async fn pass_until(&mut self, until: Instant, is_until_end: bool) -> Result<(), Failure> {
        loop {
            let gate = self.life.gate().clone();
            let of_node = self.node.as_ref().map(|node| node.gate().clone());
            let node_ended = async {
                match &of_node {
                    Some(gate) => gate.ended().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = gate.ended() => self.restart()?,
                () = node_ended => self.restart_kubelet(),
                () = tokio::time::sleep_until(until) => return Ok(()),
            }
            if is_until_end {
                return Ok(());
            }
        }
    }

    /// Ends the kubelet, and starts another.
    pub fn restart_kubelet(&mut self) {
        if let Some(node) = &mut self.node {
            node.restart_kubelet(&self.place);
        }
    }

    /// For so long the node reaches nobody; its programs go on.
    pub fn cut_node_off(&self, time: Duration) {
        if let Some(node) = &self.node {
            node.gate().lose_reach(time);
        }
    }

    /// The machine of the node, if there is one.
    pub fn machine(&self) -> Option<NodeMachine> {
        self.node.as_ref().map(|node| node.machine().copy_now())
    }

    /// Something happens to a call, counted from now on.
    pub fn expect(&self, schedule: Schedule) {
        self.life.gate().expect(schedule);
    }

    /// Whether anything was written since the version that was seen, but for events: what goes
    /// wrong again is told again.
    fn has_news(&self, seen: &mut u64) -> bool {
        let Ok((events, version)) = self.place.log.after(*seen, "", usize::MAX) else {
            return true;
        };
        *seen = version;
        let is_news = |key: &str| {
            !key.starts_with("events.") && !HEARTBEATS.iter().any(|beat| key.starts_with(beat))
        };
        events.iter().any(|event| is_news(&event.key))
    }

    /// Ends the manager, if it has not ended, and starts another that meets no faults.
    pub fn restart(&mut self) -> Result<(), Failure> {
        self.life.end();
        let probe = probe(&self.place.log, self.cache.path());
        let (server, bend) = (self.place.server.clone(), self.setting.bend.clone());
        let gate = Gate::new(server, &self.turnstile, None, bend, probe);
        let path = PathBuf::from(self.cache.path());
        let work = (self.setting.installs_definitions, self.setting.kinds);
        self.life = Life::begin(&self.place, gate, path, work, &self.diary)?;
        Ok(())
    }

    /// The place itself.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// What the manager asked for since it was armed, in its first life.
    pub fn calls(&self) -> Vec<Call> {
        self.first.calls()
    }

    /// The watches of its first life.
    pub fn watches(&self) -> Vec<Call> {
        self.first.watches()
    }

    /// What the node asked for since it was armed, in its first life.
    pub fn node_calls(&self) -> Vec<Call> {
        self.node.as_ref().map(|node| node.first_gate().calls()).unwrap_or_default()
    }

    /// The watches of the node's first life.
    pub fn node_watches(&self) -> Vec<Call> {
        self.node.as_ref().map(|node| node.first_gate().watches()).unwrap_or_default()
    }

    /// The call that met its fault.
    pub fn met(&self) -> Option<Call> {
        self.first.met().or_else(|| self.node.as_ref()?.first_gate().met())
    }

    /// What the managers said.
    pub fn diary(&self) -> Vec<String> {
        self.diary.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends everything; others may begin from here.
    pub fn close(self) -> Snapshot {
        self.life.end();
        self.keeper.abort();
        if let Some(node) = &self.node {
            node.end();
        }
        let machine = self.machine().unwrap_or_default();
        let (log, time) = (self.place.log.fork(), self.place.clock.seconds() + 1);
        let (registry, cache) = (self.place.registry.clone(), Arc::new(self.cache));
        Snapshot { log, time, registry, pushed: self.pushed, cache, machine }
    }
}

/// What there is in the cluster and in the cache.
fn probe(log: &Log, cache: &Path) -> Probe {
    let (log, cache) = (log.clone(), cache.to_owned());
    Arc::new(move || (log.version(), fs_err::read_dir(&cache).map_or(0, Iterator::count)))
}

/// A directory for a cache, in memory if there is such a thing: nothing in it has to last.
fn directory() -> Result<TempDir, Failure> {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    Ok(made?)
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    for entry in fs_err::read_dir(from)? {
        let entry = entry?;
        fs_err::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}
