//! # Room `controller`: the hands of the package manager
//!
//! It watches a cluster, gathers what decides about an object, asks `plan`, and carries out the
//! answer. It makes no choices.
//!
//! ```text
//!             watch                      plan::…::step
//!   cluster ────────► queue ─► key ─► gather ─► World ─► Need ─► learn ─┐
//!      ▲                ▲                         ▲                     │
//!      │                │ when to look again      └─────────────────────┘
//!      └──── act ◄──────┴──────────────────────── Do(Plan)
//! ```
//!
//! There is one loop ([`run`](mod@run)) for every kind. A kind is a value that implements [`Kind`]:
//! which objects concern it, how its World is gathered, which step decides, and how what the step
//! needs is found out. To add one, implement [`Kind`] beside [`package`] and start it in
//! [`Manager::run`].
//!
//! What kinds find here:
//!
//! - [`Hands::cluster`]: objects by kind and name, whole or only their metadata.
//! - [`Hands::fetch`] and [`Hands::cache`]: packages by digest; what is in them
//!   ([`cache::Contents`]) without their bytes; single documents.
//! - [`Hands::verdicts`]: what the lock says about revisions, and news of it.
//! - [`access::access`]: the credentials that Secrets have for registries.
//! - [`Hands::sought`]: which Secrets were asked for; news of those wakes whoever asks.
//! - [`act::try_out`]: what the API server would say to actions, without carrying them out.
//! - [`Hands::now`]: the time, as conditions write it. There is no other clock than this and
//!   tokio's, so that all of it can be run on a clock that is turned by hand.
//!
//! What becomes of trouble: an action decided on an old state, a busy server and a lost connection
//! lead to another look, after a while, and are never written anywhere but into the log. What the
//! server refuses is told to the step ([`Kind::refuse`]), which puts it into a condition. What
//! cannot be found out is part of the world, for the step to say.
//!
//! The same hands on a cluster that is only imagined say what would happen ([`rehearsal`]).
//!
//! The room refuses to know sockets, the environment and the terminal: the client, the transport
//! to registries, the cache's directory and the voice come in as values.

pub mod access;
pub mod act;
pub mod cache;
mod certificate;
pub mod cluster;
mod families;
pub mod fetch;
mod forbidden;
mod heard;
mod held;
mod install;
pub mod kind;
mod kinds;
mod learnt;
pub mod lease;
pub mod lock;
pub mod metrics;
pub mod package;
mod published;
pub mod queue;
pub mod rehearsal;
mod render;
pub mod retention;
pub mod revision;
pub mod roles;
pub mod run;
pub mod runtime;
pub mod secrets;
mod signature;
pub mod stacks;
mod tidy;
pub mod verdicts;
mod watch;
pub mod written;

pub use kind::Kind;
pub use kinds::CatalogAddress;
pub use plan::authority;
pub use plan::runtime::{AUTHORITY, Lifetimes, STARTING, UNESTABLISHED};
pub use published::{published_settings, target as published_target};
pub use render::render;

use api::meta::{PackageKind, PermissionRequest};
use api::stacks::{CLUSTER_INSTALL, NAMESPACE_INSTALL};
use cache::Cache;
use cluster::{Cluster, Error};
use fetch::Fetcher;
use futures::FutureExt as _;
use metrics::Metrics;
pub use plan::lock::{Movement, Pinning, Rendered, is_automatic};
pub use plan::revision::Unsupported;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch::Receiver;
use tokio::task::JoinSet;
use verdicts::Verdicts;
use watch::Watches;
use written::Written;

/// The release of Crossplane whose package manager this one follows.
pub const CROSSPLANE_VERSION: &str = "v2.3.4";

/// How the manager is set up.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says one thing of its own, and they are given by name"
)]
pub struct Settings {
    /// Who this manager is among others.
    pub identity: String,
    /// Where it runs, and where secrets and runtimes of packages are.
    pub namespace: String,
    /// The service account it runs as, whose pull secrets it uses.
    pub service_account: String,
    /// What the API group of packages ends with, after `pkg.`
    pub group_suffix: String,
    /// The registry of references that name none.
    pub default_registry: String,
    /// Catalogs that are asked which package brings a kind, in this order.
    pub catalogs: Vec<CatalogAddress>,
    /// How far installed packages may be moved for the sake of others.
    pub movement: Movement,
    /// Whether that goes for packages whose image other field managers keep, too.
    pub moves_kept: bool,
    /// Kinds of packages whose runtime is this manager's business.
    pub runs: Vec<PackageKind>,
    /// What packages wait for of those that they need.
    pub awaits: Awaits,
    /// The Secret of the authority that signs the certificates of packages.
    pub authority: String,
    /// How long certificates are good for.
    pub lifetimes: Lifetimes,
    /// What packages may ask for beyond their own kinds.
    pub allowed: Vec<PermissionRequest>,
    /// The `ClusterRole` whose rules they may ask for, too.
    pub allowed_role: Option<String>,
    /// Groups of Kubernetes' community, or of other API servers, that packages may define kinds in.
    pub allowed_groups: Vec<String>,
    /// Whether other API servers may serve groups through this one.
    pub is_aggregated: bool,
    /// Whether roles for the kinds of packages are this manager's business.
    pub manages_roles: bool,
    /// Objects of one kind that are looked at at once.
    pub concurrency_max: usize,
    /// How often everything is looked at though nothing happened.
    pub sync_interval: Duration,
    /// The version of Crossplane that packages are told this is.
    pub crossplane_version: String,
    /// Whether definitions of resources are handed to Crossplane, which makes them when they are
    /// activated.
    pub defers_definitions: bool,
    /// Whether others may be there: only the one that holds the lease works.
    pub elects_leader: bool,
    /// How long the lease is good for, and who waits how long for it.
    pub lease: lease::Timing,
    /// Whether to write down in the cluster how it is set up, for those who plan.
    pub publishes_settings: bool,
    /// Whether to install the definitions of its kinds at the start.
    pub installs_definitions: bool,
    /// Whether the kinds of the first package system are this manager's business.
    pub manages_stacks: bool,
    /// Whether packages take over whatever is there already, as upstream's do.
    pub adopts_existing: bool,
    /// What becomes of packages with objects that their kind may not bring.
    pub unsupported: Unsupported,
}

impl Settings {
    /// Of a manager that has an API server to itself: as commands have it if nobody says otherwise,
    /// and without a lease.
    pub fn alone(identity: &str) -> Self {
        Self {
            identity: identity.to_owned(),
            namespace: "crossplane-system".to_owned(),
            service_account: "crossplane".to_owned(),
            group_suffix: api::crd::SUFFIX.to_owned(),
            default_registry: oci::reference::DOCKER_HUB.to_owned(),
            catalogs: Vec::new(),
            movement: Movement::Upgrades,
            moves_kept: false,
            runs: vec![PackageKind::Provider, PackageKind::Function],
            awaits: Awaits::default(),
            authority: AUTHORITY.to_owned(),
            lifetimes: Lifetimes::default(),
            allowed: Vec::new(),
            allowed_role: Some(authority::ALLOWED_ROLE.to_owned()),
            allowed_groups: Vec::new(),
            is_aggregated: true,
            manages_roles: true,
            concurrency_max: 10,
            sync_interval: Duration::from_secs(3600),
            crossplane_version: CROSSPLANE_VERSION.to_owned(),
            defers_definitions: false,
            elects_leader: false,
            lease: lease::Timing::default(),
            publishes_settings: false,
            installs_definitions: true,
            manages_stacks: true,
            adopts_existing: false,
            unsupported: Unsupported::default(),
        }
    }

    /// The API group of packages.
    pub fn group(&self) -> String {
        format!("pkg.{}", self.group_suffix)
    }

    /// The API group of the first package system.
    pub fn stacks_group(&self) -> String {
        api::stacks::stacks_group(&self.group_suffix)
    }

    /// Whether the runtime of packages of a kind is this manager's business.
    pub fn runs(&self, kind: PackageKind) -> bool {
        self.runs.contains(&kind)
    }

    /// Kinds of packages that must run before those that need them are installed.
    fn awaited(&self) -> Vec<PackageKind> {
        match self.awaits {
            Awaits::Installed => Vec::new(),
            Awaits::Running => self.runs.clone(),
        }
    }
}

/// What packages wait for of those that they need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Awaits {
    /// That their objects are there.
    Installed,
    /// That they run, too, where that is this manager's business.
    #[default]
    Running,
}

/// Says what time it is, as conditions write it: `2026-01-31T12:00:00Z`.
pub type Clock = Arc<dyn Fn() -> String + Send + Sync>;
/// Tells people what the manager does.
pub type Voice = Arc<dyn Fn(&Entry<'_>) + Send + Sync>;

/// Something the manager has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Whether it is trouble.
    pub is_trouble: bool,
    /// Which kind of object it is about.
    pub controller: &'a str,
    /// Which object; empty if none.
    pub object: &'a str,
    /// In a sentence.
    pub message: &'a str,
}

impl<'a> Entry<'a> {
    /// Something was done, for this reason.
    pub fn news(controller: &'a str, object: &'a str, message: &'a str) -> Self {
        Self { is_trouble: false, controller, object, message }
    }

    /// Something did not work.
    pub fn trouble(controller: &'a str, object: &'a str, message: &'a str) -> Self {
        Self { is_trouble: true, controller, object, message }
    }
}

/// Everything a kind can reach.
#[derive(Clone)]
pub struct Hands {
    /// The API server.
    pub cluster: Cluster,
    /// Registries.
    pub fetch: Fetcher,
    /// What was fetched.
    pub cache: Cache,
    /// What the lock says about revisions.
    pub verdicts: Arc<Verdicts>,
    /// What objects were made to say.
    pub written: Written,
    /// Which Secrets were asked for.
    pub sought: secrets::Sought,
    /// Which groups other API servers serve.
    pub(crate) aggregated: access::AggregatedGroups,
    /// How the manager is set up.
    pub settings: Settings,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// The time.
    pub clock: Clock,
    /// Where news go.
    pub voice: Voice,
}

impl Hands {
    /// Hands that have touched nothing yet.
    pub fn new(
        client: kube::Client,
        fetch: Fetcher,
        cache: Cache,
        settings: Settings,
        clock: Clock,
        voice: Voice,
    ) -> Self {
        let metrics = Arc::new(Metrics::default());
        Self {
            cluster: Cluster::new(client, Arc::clone(&metrics)),
            fetch,
            cache,
            verdicts: Arc::default(),
            written: Written::default(),
            sought: secrets::Sought::default(),
            aggregated: access::AggregatedGroups::default(),
            settings,
            metrics,
            clock,
            voice,
        }
    }

    /// The time, as conditions write it.
    pub fn now(&self) -> String {
        (self.clock)()
    }

    /// The time with the digits that events and leases have.
    pub(crate) fn now_precisely(&self) -> String {
        let now = self.now();
        match now.strip_suffix('Z') {
            Some(time) if !time.contains('.') => format!("{time}.000000Z"),
            _ => now,
        }
    }

    /// Says something.
    pub fn say(&self, entry: Entry<'_>) {
        (self.voice)(&entry);
    }
}

/// The package manager.
pub struct Manager {
    hands: Arc<Hands>,
}

impl Manager {
    /// A manager with these hands.
    pub fn new(hands: Hands) -> Self {
        Self { hands: Arc::new(hands) }
    }

    /// Works until told to stop, and then finishes what is under way.
    pub async fn run(self, mut stop: Receiver<bool>) -> Result<(), Error> {
        tokio::select! {
            prepared = self.prepare() => prepared?,
            _ = stop.wait_for(|stop| *stop) => return Ok(()),
        }
        self.hands.metrics.is_prepared();
        if self.hands.settings.elects_leader {
            return lease::lead(&self.hands, stop, |told| self.work(told)).await;
        }
        self.hands.metrics.leads(true);
        self.work(stop).await;
        Ok(())
    }

    /// Looks after every kind until told to stop, and then finishes what is under way.
    async fn work(&self, stop: Receiver<bool>) {
        let (hands, mut kinds, mut watches) = (&self.hands, JoinSet::new(), Watches::default());
        for kind in [PackageKind::Provider, PackageKind::Configuration, PackageKind::Function] {
            kinds.spawn(run::run(package::Packages(kind), hands, &mut watches, &stop));
            kinds.spawn(run::run(revision::Revisions::new(kind), hands, &mut watches, &stop));
        }
        kinds.spawn(run::run(lock::Locks::new(hands), hands, &mut watches, &stop));
        for kind in &hands.settings.runs {
            kinds.spawn(run::run(runtime::Runtimes(*kind), hands, &mut watches, &stop));
        }
        if hands.settings.manages_roles {
            kinds.spawn(run::run(roles::ProviderRoles, hands, &mut watches, &stop));
            kinds.spawn(run::run(roles::DefinitionRoles::default(), hands, &mut watches, &stop));
        }
        if hands.settings.manages_stacks {
            for kind in [CLUSTER_INSTALL, NAMESPACE_INSTALL] {
                kinds.spawn(run::run(stacks::Installs(kind), hands, &mut watches, &stop));
            }
        }
        if hands.settings.publishes_settings {
            let (publisher, told) = (Arc::clone(hands), stop.clone());
            kinds.spawn(async move { published::run(&publisher, told).await });
        }
        let tidier = Arc::clone(hands);
        kinds.spawn(async move {
            let tidy = || tidy::run(&tidier, stop.clone());
            run::again_after_panic(&tidier, "cache", tidy).await;
        });
        let _watching = watches.begin(hands);
        while kinds.join_next().await.is_some() {}
    }

    /// Waits for the API server, and makes it know the kinds.
    async fn prepare(&self) -> Result<(), Error> {
        let mut pause = queue::BACKOFF;
        loop {
            let installed = async {
                if self.hands.settings.installs_definitions {
                    install::install(&self.hands).await?;
                    install::namespace(&self.hands).await?;
                }
                install::lock(&self.hands).await
            };
            let installed = AssertUnwindSafe(installed).catch_unwind().await;
            match installed.unwrap_or_else(|_| Err(Error::Busy("preparing panicked".to_owned()))) {
                Err(error @ (Error::Busy(_) | Error::Stale(_) | Error::Missing(_))) => {
                    self.hands.say(Entry::trouble("manager", "", &error.to_string()));
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(queue::BACKOFF_MAX);
                }
                other => return other,
            }
        }
    }
}
