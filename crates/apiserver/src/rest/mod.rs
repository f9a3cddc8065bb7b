//! # Verbs: what can be done with objects of any kind
//!
//! ```text
//!  create ─┐                        ┌─ prepare (what clients may not set)
//!  update ─┼─► decode ─► change ────┼─ complete (defaults), check (422)
//!  patch  ─┘      ▲        │        └─ Keep | Put | Remove
//!  delete ────────┘        ▼
//!                    the log (compare and swap; try again when someone was faster)
//! ```

mod bounds;
#[cfg(test)]
mod converted;
mod create;
mod delete;
mod hosted;
#[cfg(test)]
mod ill_typed;
mod list;
mod own;
mod owner;
mod patch;
mod pod_log;
#[cfg(test)]
mod pod_writes;
mod present;
mod scale;
mod splice;
mod store;
#[cfg(test)]
mod survival;
mod update;
mod usage;
mod watch;

use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use bytes::Bytes;
use serde_json::Value;

pub(crate) use create::place;
pub(crate) use delete::Propagation;
pub(crate) use own::Own;
pub(crate) use owner::{track_new, track_own};
pub(crate) use store::{Change, close, open};
pub(crate) use update::{fill, settle};
pub(crate) use watch::Lines;

use crate::Server;
use crate::auth::{self, User};
use crate::crd;
use crate::http::negotiate::Form;
use crate::http::query::Query;
use crate::http::status::Failure;
use crate::http::target::Target;
use crate::kind::Kind;

/// A request for objects, understood as far as its URL and headers go.
#[derive(Debug, Clone)]
pub struct Request {
    /// The kind it is about.
    pub kind: Arc<Kind>,
    /// Who asks.
    pub user: Arc<User>,
    /// What of that kind.
    pub target: Target,
    /// Its options.
    pub query: Query,
    /// The form of the answer.
    pub form: Form,
    /// The client's name for itself.
    pub agent: String,
    /// The type of its body.
    pub media: String,
    /// Its body.
    pub body: Bytes,
    /// What the client is to be warned of.
    pub warnings: Warnings,
    /// What was needed in another version and not there.
    pub missing: Missing,
}

/// Objects that are needed in other versions, until they have been converted.
#[derive(Debug, Clone, Default)]
pub struct Missing(Arc<Mutex<Vec<(Value, String)>>>);

impl Missing {
    /// Notes that an object is needed in a version.
    pub(crate) fn add(&self, object: &Value, version: &str) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.push((object.clone(), version.to_owned()));
    }

    fn take(&self) -> Vec<(Value, String)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What a client is to be warned of, collected on the way; each thing once.
#[derive(Debug, Clone, Default)]
pub struct Warnings(Arc<Mutex<Vec<String>>>);

/// More warnings than these are not collected: no client is sent as many.
const WARNINGS_MAX: usize = 100;

impl Warnings {
    /// Adds a warning.
    pub fn add(&self, text: String) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if list.len() < WARNINGS_MAX && !list.contains(&text) {
            list.push(text);
        }
    }

    /// All of them.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Request {
    fn namespace(&self) -> Option<&str> {
        self.target.namespace.as_deref()
    }

    fn name(&self) -> &str {
        self.target.name.as_deref().unwrap_or_default()
    }

    fn subresource(&self) -> &str {
        self.target.subresource.as_deref().unwrap_or_default()
    }

    pub(crate) fn key(&self) -> String {
        self.kind.key(self.namespace(), self.name())
    }
}

/// What is sent back.
pub enum Answer {
    /// One object or list.
    Object {
        /// The HTTP code.
        code: u16,
        /// What.
        body: Value,
        /// `Warning` headers.
        warnings: Vec<String>,
    },
    /// The same, in words already.
    Text {
        /// JSON, with a line's end.
        body: Bytes,
        /// `Warning` headers.
        warnings: Vec<String>,
    },
    /// A stream of events.
    Stream(Body),
    /// What a program wrote.
    Log(Body),
    /// Nothing, for nothing is there to be told.
    Empty,
}

impl Answer {
    fn text(body: Vec<u8>) -> Self {
        Self::Text { body: Bytes::from(body), warnings: Vec::new() }
    }

    fn ok(body: Value) -> Self {
        Self::Object { code: 200, body, warnings: Vec::new() }
    }
}

/// Does what a request asks, and what follows from it for definitions.
pub async fn serve(
    server: &Arc<Server>,
    method: &str,
    request: Request,
) -> Result<Answer, Failure> {
    let kind = Arc::clone(&request.kind);
    let name = request.target.name.clone();
    let mut answer = answer(server, method, request).await?;
    if let Answer::Object { warnings, .. } | Answer::Text { warnings, .. } = &mut answer {
        warnings.extend(kind.deprecation.clone());
    }
    if method != "GET" {
        let made = match &answer {
            Answer::Object { body, .. } => schema::object::meta_text(body, "name").to_owned(),
            _ => String::new(),
        };
        follow(server, &kind, &name.unwrap_or(made)).await;
    }
    Ok(answer)
}

/// A client that has made a definition can use it at once. What else follows from a write
/// is upkeep's.
async fn follow(server: &Arc<Server>, kind: &Kind, name: &str) {
    if kind.group == crd::GROUP && kind.kind == crd::KIND {
        crd::settle(server, name).await;
    }
    auth::aggregate::settle(server).await;
}

/// Deletes every object of a kind, in one namespace or in all; says what went wrong.
pub(crate) async fn delete_all(
    server: &Arc<Server>,
    kind: &Arc<Kind>,
    namespace: Option<&str>,
) -> Vec<Failure> {
    delete::delete_all(server, kind, namespace).await
}

/// A namespace as a new server makes it, with all that the server adds.
pub(crate) fn furnished(server: &Server, kind: &Arc<Kind>, name: &str) -> Value {
    prepared(server, kind, name, crate::namespace(name))
}

/// An object that the server makes itself, with all that it adds.
pub(crate) fn prepared(server: &Server, kind: &Arc<Kind>, name: &str, mut object: Value) -> Value {
    let namespace = schema::object::meta_text(&object, "namespace").to_owned();
    let namespace = (!namespace.is_empty()).then_some(namespace.as_str());
    update::fill(kind, &mut object);
    let (request, options) = (own::request(kind, namespace, name), own::options("kube-apiserver"));
    object = owner::track(server, &request, &options, None, object);
    create::prepare(server, kind, &mut object);
    object
}

async fn read(server: &Arc<Server>, request: &Request) -> Result<Answer, Failure> {
    let collection = request.target.name.is_none();
    match request.subresource() {
        "" if collection && request.query.flag("watch") => watch::watch(server, request),
        "" if collection => list::list(server, request).await,
        "" | "status" => store::get(server, request).await,
        "scale" => scale::get(server, request).await,
        "log" => pod_log::read(server, request).await,
        _ => Err(Failure::method_not_allowed()),
    }
}

async fn answer(server: &Arc<Server>, method: &str, request: Request) -> Result<Answer, Failure> {
    let kind = &request.kind;
    let collection = request.target.name.is_none();
    if kind.fleeting {
        return match method {
            "POST" => auth::review::create(server, &request),
            _ => Err(Failure::method_not_allowed()),
        };
    }
    let everywhere = kind.namespaced && request.target.namespace.is_none();
    if everywhere && !(collection && method == "GET") {
        return Err(Failure::method_not_allowed());
    }
    match (request.subresource(), method) {
        ("exec" | "attach" | "portforward", "GET" | "POST") => {
            Err(hosted::refuse_connection(server, &request))
        }
        (_, "GET") if kind.counted => usage::read_usage(server, &request),
        (_, "GET") => read(server, &request).await,
        _ if kind.counted => Err(Failure::method_not_allowed()),
        ("", "POST") if collection => create::create(server, &request).await,
        ("", "DELETE") if collection && kind.is_removed_in_bulk() => {
            delete::delete_collection(server, &request).await
        }
        ("", "DELETE") if !collection => delete::delete(server, &request).await,
        ("" | "status" | "finalize", "PUT") if !collection => {
            update::update(server, &request).await
        }
        ("" | "status", "PATCH") if !collection => patch::patch(server, &request).await,
        ("binding", "POST") if !collection => hosted::bind(server, &request).await,
        ("token", "POST") if !collection => auth::grant::create(server, &request),
        ("scale", "PUT") => scale::put(server, &request).await,
        ("scale", "PATCH") => scale::patch(server, &request).await,
        _ => Err(Failure::method_not_allowed()),
    }
}
