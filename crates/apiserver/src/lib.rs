//! # Room `apiserver`: the Kubernetes API for any kind
//!
//! A Kubernetes API server in one process. It serves a table of built-in kinds and any
//! custom kind through one generic path; kubectl and every Kubernetes client can use it.
//! What a real kube-apiserver answers is its specification: `tests/it` asks both the same
//! questions and compares.
//!
//! ```text
//!            http ── what, in which form ──► auth: who, and whether they may
//!             │
//!            rest ── create, get, list, watch, update, patch, delete, scale
//!             │  ╲ admission ── webhooks, through outbound
//!             │  ╲
//!             │   kind ◄── crd, wire  discovery
//!             │   (what is served)    (what may be asked)
//!             │
//!            log ── one writer, every version, durable before answered
//!             │  ╲
//!             │   upkeep ── what follows from a write: garbage, namespaces, Deployments and
//!             │             (with room `workload`) their ReplicaSets, Pods and Endpoints
//!             │
//!           Disk ── SQLite, or nothing (in memory)
//! ```
//!
//! The server is a value: [`router`] gives an `axum::Router`, which a shell may bind to a
//! socket with TLS, or a client in the same process may call directly.
//!
//! What an object may look like is told by room `schema`, how writers share one by room `apply`.
//!
//! The room refuses to know what the objects are for. It opens no socket, and takes the time and its randomness from a [`World`].
//!
//! Start reading at [`log`] (room `journal`), then [`rest`]. Every change of an object (PUT, PATCH,
//! apply, scale) goes through `rest::store` (`change`, the loop), `admission` (`update`, the order of webhooks
//! and checks) and `rest::update` (`settle`: what is carried over, rights, schema).
//!
//! Chapters that calculate with numbers of strangers do so with checked or saturating operations
//! only, which clippy holds: a length, a time or an index at the limit of its type is one request's
//! problem.

#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
mod admission;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod auth;
#[cfg(test)]
mod cost;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod crd;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod discovery;
pub mod export;
#[cfg(test)]
mod full;
mod heavy;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod http;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod kind;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod openapi;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod outbound;
#[cfg(test)]
mod pod_tests;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod rest;
pub mod runtime;
#[cfg(test)]
mod testing;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod upkeep;
pub mod world;

use std::sync::{Arc, Mutex};

pub use journal as log;
use serde_json::{Value, json};

use auth::{Access, Signer, Token};
use kind::Kinds;
use log::{Expect, Log, Write};
use runtime::Hosting;
use world::{SystemWorld, World};

/// Who a client is, as shown by a certificate that the listener has verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The user's name.
    pub user: String,
    /// The groups the user is in.
    pub groups: Vec<String>,
    /// What tells this certificate from others.
    pub credential: Option<String>,
}

impl Identity {
    fn to_user(&self) -> auth::User {
        let mut user = auth::User {
            name: self.user.clone(),
            groups: self.groups.clone(),
            ..auth::User::default()
        };
        if let Some(credential) = &self.credential {
            let key = "authentication.kubernetes.io/credential-id".to_owned();
            user.extra.insert(key, vec![credential.clone()]);
        }
        user
    }
}

/// How the server is to be.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What `/version` adds to Kubernetes' version.
    pub name: String,
    /// Whether those who do not show who they are are anonymous, and may next to nothing.
    /// Without, they may do everything: for use inside one process.
    pub authenticate: bool,
    /// Bearer tokens, and who they are for.
    pub tokens: Vec<Token>,
    /// The key that service accounts' tokens are signed with; without, a new one at each
    /// start.
    pub signer: Option<Arc<Signer>>,
    /// Who issues these tokens, and whom they are meant for if nobody says otherwise;
    /// empty means the name a cluster has for itself.
    pub issuer: String,
    /// How the pods of Deployments come about.
    pub runtime: Hosting,
    /// What has the logs of containers.
    pub logs: Option<Arc<dyn runtime::PodLogs>>,
    /// What counts how much pods and nodes use. Without, the group `metrics.k8s.io` does not exist.
    pub usage: Option<Arc<dyn runtime::UsageMeter>>,
    /// The certificates by which clients know the server, as PEM. With them each namespace
    /// gets a config map that holds them, and a service account called `default`.
    pub root_ca: Option<String>,
}

/// The name a cluster has for itself.
const ISSUER: &str = "https://kubernetes.default.svc";

/// Everything a request needs.
pub struct Server {
    /// The objects.
    pub log: Log,
    /// What is served.
    pub kinds: Kinds,
    /// How the server is to be.
    pub options: Options,
    /// Who may do what.
    pub access: Access,
    /// The time and the dice.
    pub world: Arc<dyn World>,
    pub(crate) upkeep: upkeep::Upkeep,
    pub(crate) lines: rest::Lines,
    pub(crate) shares: http::share::Shares,
    pub(crate) log_seats: http::share::Shares,
    pub(crate) signer: Option<Arc<Signer>>,
    audiences: Vec<String>,
    pub(crate) hooks: admission::Hooks,
    /// Held while what is served is brought in line with a definition.
    pub(crate) following: Mutex<()>,
}

impl Server {
    /// A server on a log, in the world given.
    pub fn new(log: Log, options: Options, world: Arc<dyn World>) -> Arc<Self> {
        let access = Access::new(&options.tokens);
        let signer = options.signer.clone().or_else(|| Signer::generate().ok().map(Arc::new));
        let issuer = if options.issuer.is_empty() { ISSUER } else { &options.issuer };
        let audiences = vec![issuer.to_owned()];
        let kinds = if options.usage.is_some() { Kinds::with_usage() } else { Kinds::new() };
        let upkeep = upkeep::Upkeep::default();
        let lines = rest::Lines::default();
        let hooks = admission::Hooks::default();
        let server = Arc::new(Self {
            log,
            kinds,
            options,
            access,
            world,
            upkeep,
            lines,
            shares: http::share::Shares::default(),
            log_seats: http::share::Shares::for_logs(),
            signer,
            audiences,
            hooks,
            following: Mutex::default(),
        });
        crd::load(&server);
        server
    }

    /// Makes the objects that every cluster has, where they are missing.
    pub async fn furnish(self: &Arc<Self>) -> Result<(), log::WriteError> {
        let Some(namespaces) = self.kinds.find("", "v1", "namespaces") else { return Ok(()) };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let object = rest::furnished(self, &namespaces, name);
            let value = Some(rest::close(&namespaces, &object));
            let key = namespaces.key(None, name);
            match self.log.write(Write { key, expect: Expect::Absent, value }).await {
                Ok(_) | Err(log::WriteError::Conflict(_)) => {}
                Err(broken) => return Err(broken),
            }
        }
        self.furnish_service().await?;
        let made = auth::bootstrap::furnish(self).await;
        made.map_err(|failure| log::WriteError::Broken(failure.message.into()))?;
        auth::aggregate::settle(self).await;
        upkeep::furnish_node(self).await;
        Ok(())
    }

    /// Who issues tokens.
    pub(crate) fn issuer(&self) -> &str {
        self.audiences.first().map_or(ISSUER, String::as_str)
    }

    /// Whom tokens are meant for if nobody says otherwise.
    pub(crate) fn audiences(&self) -> &[String] {
        &self.audiences
    }

    /// The service by which a cluster reaches its own API.
    async fn furnish_service(self: &Arc<Self>) -> Result<(), log::WriteError> {
        let Some(services) = self.kinds.find("", "v1", "services") else { return Ok(()) };
        let object = rest::prepared(self, &services, "kubernetes", kind::service::own());
        let value = Some(rest::close(&services, &object));
        let key = services.key(Some("default"), "kubernetes");
        match self.log.write(Write { key, expect: Expect::Absent, value }).await {
            Ok(_) | Err(log::WriteError::Conflict(_)) => Ok(()),
            Err(broken) => Err(broken),
        }
    }

    /// The service.
    pub fn router(self: &Arc<Self>) -> axum::Router {
        axum::Router::new().fallback(http::handle).with_state(Arc::clone(self))
    }

    fn version(&self) -> Value {
        let name = if self.options.name.is_empty() { "apron" } else { &self.options.name };
        http::version(name)
    }
}

/// The API server on a log: a service, ready to be called or bound. What follows from
/// writes is done by a task of its own.
pub async fn router(log: Log, options: Options) -> Result<axum::Router, log::WriteError> {
    router_in(log, options, Arc::new(SystemWorld::default())).await
}

/// The same in a given world: one that can call webhooks, say.
pub async fn router_in(
    log: Log,
    options: Options,
    world: Arc<dyn World>,
) -> Result<axum::Router, log::WriteError> {
    let server = Server::new(log, options, world);
    server.furnish().await?;
    server.attend();
    Ok(server.router())
}

/// A namespace as a new server makes it.
fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}
