//! # Room `apiserver`: the Kubernetes API for any kind
//!
//! A Kubernetes API server in one process. It serves a table of built-in kinds and any
//! custom kind through one generic path; kubectl and every Kubernetes client can use it.
//! What a real kube-apiserver answers is its specification: `tests/it` asks both the same
//! questions and compares.
//!
//! ```text
//!            http ── who, what, in which form
//!             │
//!            rest ── create, get, list, watch, update, patch, delete, scale
//!             │  ╲
//!      object │   kind ◄── crd, wire  discovery
//!  (metadata, │   (what is served)    (what may be asked)
//!   selectors)│    ╲ schema ── cel
//!            log ── one writer, every version, durable before answered
//!             │  ╲
//!             │   upkeep ── what follows from a write: garbage, namespaces
//!             │
//!           Disk ── SQLite, or nothing (in memory)
//! ```
//!
//! The server is a value: [`router`] gives an `axum::Router`, which a shell may bind to a
//! socket with TLS, or a client in the same process may call directly.
//!
//! The room refuses to know what the objects are for. It imports no other room, opens no
//! socket, and takes the time and its randomness from a [`World`].
//!
//! Start reading at [`log`], then [`rest`].

pub mod apply;
mod cel;
pub mod crd;
pub mod discovery;
pub mod http;
pub mod kind;
pub mod log;
pub mod object;
pub mod openapi;
pub mod patch;
pub mod rest;
pub mod schema;
pub mod upkeep;
pub mod wire;
pub mod world;

use std::sync::Arc;

use serde_json::{Value, json};

use kind::Kinds;
use log::{Expect, Log, Write};
use world::{SystemWorld, World};

/// Who a client is, as shown by a certificate that the listener has verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The user's name.
    pub user: String,
    /// The groups the user is in.
    pub groups: Vec<String>,
}

/// How the server is to be.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What `/version` adds to Kubernetes' version.
    pub name: String,
    /// Whether clients must show who they are. Without, everybody may do everything:
    /// for use inside one process.
    pub authenticate: bool,
    /// Bearer tokens that may do everything.
    pub tokens: Vec<String>,
}

/// Everything a request needs.
pub struct Server {
    /// The objects.
    pub log: Log,
    /// What is served.
    pub kinds: Kinds,
    /// How the server is to be.
    pub options: Options,
    /// The time and the dice.
    pub world: Arc<dyn World>,
    pub(crate) upkeep: upkeep::Upkeep,
}

impl Server {
    /// A server on a log, in the world given.
    pub fn new(log: Log, options: Options, world: Arc<dyn World>) -> Arc<Self> {
        let server = Arc::new(Self {
            log,
            kinds: Kinds::new(),
            options,
            world,
            upkeep: upkeep::Upkeep::default(),
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
        Ok(())
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
    let server = Server::new(log, options, Arc::new(SystemWorld::default()));
    server.furnish().await?;
    server.attend();
    Ok(server.router())
}

/// A namespace as a new server makes it.
fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}
