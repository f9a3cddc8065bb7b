//! The protocol: requests in, answers out. One handler reads the path, asks who this is and
//! whether they may, and hands over to the chapter that answers.

mod blobs;
mod body;
mod lists;
mod manifests;
mod mirrored;
mod range;
mod uploads;

use crate::access::{Access, Action, Decision, NotAdmitted, Peer, Principal, Record};
use crate::budget::{Budgets, Kind};
use crate::hosts::Hosts;
use crate::metrics::Metrics;
use crate::mirror::Mirrors;
use crate::name::Name;
use crate::query::Query;
use crate::route::Route;
use crate::storage::Registry;
use crate::wire::{self, Refusal};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use futures::FutureExt as _;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName};
use http::request::Parts;
use http::{Method, StatusCode};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// How the protocol is served.
#[derive(Clone)]
pub struct Options {
    /// Who may do what.
    pub access: Arc<dyn Access>,
    /// Repositories that come from elsewhere.
    pub mirrors: Mirrors,
    /// How much one client may do.
    pub budgets: Budgets,
    /// What it may be called.
    pub hosts: Hosts,
    /// What is served beside the protocol, for clients that ask.
    pub extensions: Vec<ServedExtension>,
}

/// Something that is served beside the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedExtension {
    /// Its name, with an underscore before it.
    pub name: &'static str,
    /// What it is, in a few words.
    pub description: &'static str,
    /// Where it is documented: a path on the same address.
    pub url: &'static str,
    /// The paths it is served at.
    pub endpoints: &'static [&'static str],
}

impl Options {
    /// Everybody may do everything: for loopback addresses only.
    pub fn open() -> Self {
        Self::guarded(Arc::new(crate::access::Open))
    }

    /// Somebody decides who may do what.
    pub fn guarded(access: Arc<dyn Access>) -> Self {
        let (mirrors, budgets) = (Mirrors::default(), Budgets::default());
        let (hosts, extensions) = (Hosts::any(), Vec::new());
        Self { access, mirrors, budgets, hosts, extensions }
    }

    /// Who makes a request to something that is served beside the protocol: the same names count,
    /// the same credentials, and the same budget.
    pub async fn admit(&self, request: &Parts) -> Result<Principal, NotAdmitted> {
        if !self.hosts.admit(request, || self.access.is_open()) {
            return Err(NotAdmitted::Host);
        }
        let who = self.access.principal(request).await.map_err(NotAdmitted::Refused)?;
        let taken = self.budgets.take(Kind::Pull, who.as_str(), Peer::of(request));
        taken.map_err(NotAdmitted::TooOften)?;
        Ok(who)
    }
}

/// The registry as a service; whoever calls this binds it to an address.
pub fn router(registry: Registry, options: Options) -> Router {
    let Options { access, mirrors, budgets, hosts, extensions } = options;
    let metrics = Arc::default();
    let server = Server { registry, access, mirrors, budgets, hosts, extensions, metrics };
    Router::new().fallback(handle).with_state(Arc::new(server))
}

struct Server {
    registry: Registry,
    access: Arc<dyn Access>,
    mirrors: Mirrors,
    budgets: Budgets,
    hosts: Hosts,
    extensions: Vec<ServedExtension>,
    metrics: Arc<Metrics>,
}

/// A request whose sender is known and whose path is read.
struct Call {
    who: Principal,
    parts: Parts,
    query: Query,
}

type Answer = Result<Response, Refusal>;

async fn handle(State(server): State<Arc<Server>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let method = parts.method.clone();
    // A panic costs the request it happened in. Locks of this room are taken whether or not
    // somebody panicked while holding them; the panic hook says where it happened.
    let answer = AssertUnwindSafe(server.answer(parts, body)).catch_unwind().await;
    let answer = answer.unwrap_or_else(|_| Err(Refusal::panicked()));
    if let Err(Refusal { limit: Some(limit), .. }) = &answer {
        server.budgets.refused(*limit);
    }
    let mut response = answer.unwrap_or_else(Refusal::into_response);
    wire::set(&mut response, wire::API_VERSION, "registry/2.0");
    wire::set(&mut response, http::header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    server.metrics.count(&method, response.status());
    response
}

impl Server {
    async fn answer(&self, parts: Parts, body: Body) -> Answer {
        let method = parts.method.clone();
        let route = Route::parse(parts.uri.path())
            .map_err(|misroute| Refusal::misroute(misroute, &method))?;
        match route {
            Route::Health => return Ok(text("ok\n".to_owned())),
            Route::Ready => return self.ready().await,
            _ if !self.hosts.admit(&parts, || self.access.is_open()) => return Err(Refusal::host()),
            Route::Metrics => return Ok(text(self.metrics_text())),
            _ => {}
        }
        let (route, namespace) = self.within_namespace(route, &parts)?;
        let answer = self.answer_route(route, parts, body).await;
        match namespace {
            None => answer,
            Some(namespace) => answer.map(|mut response| {
                wire::set(&mut response, wire::NAMESPACE, &namespace);
                response
            }),
        }
    }

    async fn answer_route(&self, route: Route, parts: Parts, body: Body) -> Answer {
        let who = self.access.principal(&parts).await.map_err(Refusal::refused)?;
        let note = Note::new(&who, &parts, &route);
        let kind = if note.changes() { Kind::Push } else { Kind::Pull };
        self.budgets.take(kind, who.as_str(), note.peer).map_err(Refusal::too_often)?;
        let answer = match self.allow(&who, route.repository(), note.action) {
            Ok(()) => {
                let query = Query::parse(parts.uri.query());
                self.dispatch(route, Call { who, parts, query }, body).await
            }
            Err(refusal) => {
                self.record(&note, refusal.status, None);
                return Err(refusal);
            }
        };
        if note.changes() {
            match &answer {
                // Of uploads under way only the end is worth a line.
                Ok(response) if response.status() == StatusCode::ACCEPTED && note.is_push() => {}
                Ok(response) => {
                    let digest = header(response.headers(), wire::CONTENT_DIGEST);
                    self.record(&note, response.status(), Some(digest));
                }
                Err(refusal) => self.record(&note, refusal.status, None),
            }
        }
        answer
    }

    fn record(&self, note: &Note, status: StatusCode, digest: Option<&str>) {
        let repository = note.repository.as_ref();
        self.access.record(&Record {
            who: note.who.as_str(),
            peer: note.peer,
            what: note.what(),
            repository: repository.map(Name::as_str),
            reference: note.reference.as_deref(),
            digest: digest.filter(|digest| !digest.is_empty()),
            status: status.as_u16(),
        });
    }

    async fn dispatch(&self, route: Route, call: Call, body: Body) -> Answer {
        let mirror = route.repository().and_then(|name| self.mirrors.of(name));
        if let Some(mirror) = mirror.cloned() {
            return self.dispatch_mirrored(&mirror, route, call, body).await;
        }
        self.dispatch_here(route, call, body).await
    }

    async fn dispatch_here(&self, route: Route, call: Call, body: Body) -> Answer {
        let method = call.parts.method.clone();
        match (route, method.as_str()) {
            (Route::Base, "GET" | "HEAD") => Ok(json(b"{}".to_vec())),
            (Route::Catalog, "GET" | "HEAD") => self.catalog(&call).await,
            (Route::Discover, "GET" | "HEAD") => Ok(lists::discover(&self.extensions)),
            (Route::Blob(name, digest), "GET") => self.get_blob(&call, &name, &digest).await,
            (Route::Blob(name, digest), "HEAD") => self.head_blob(&name, &digest).await,
            (Route::Blob(name, digest), "DELETE") => self.delete_blob(&name, &digest).await,
            (Route::Uploads(name), "POST") => self.post_upload(&call, &name, body).await,
            (Route::Upload(name, id), "PATCH") => self.patch_upload(&call, &name, &id, body).await,
            (Route::Upload(name, id), "PUT") => self.put_upload(&call, &name, &id, body).await,
            (Route::Upload(name, id), "GET" | "HEAD") => self.get_upload(&call, &name, &id).await,
            (Route::Upload(name, id), "DELETE") => self.delete_upload(&call, &name, &id).await,
            (Route::Manifest(name, it), "GET" | "HEAD") => {
                self.get_manifest(&call, &name, &it).await
            }
            (Route::Manifest(name, it), "PUT") => self.put_manifest(&call, &name, it, body).await,
            (Route::Manifest(name, it), "DELETE") => self.delete_manifest(&name, &it).await,
            (Route::Tags(name), "GET" | "HEAD") => self.tags(&call, &name).await,
            (Route::Referrers(name, it), "GET" | "HEAD") => self.referrers(&call, &name, &it).await,
            (route, _) => Err(Refusal::method(allowed(&route))),
        }
    }

    fn allow(&self, who: &Principal, name: Option<&Name>, action: Action) -> Result<(), Refusal> {
        match (self.access.decide(who, name, action), name) {
            (Decision::Allow, _) => Ok(()),
            (Decision::Challenge(challenge), _) => Err(Refusal::unauthorized(challenge)),
            (Decision::Hide, Some(name)) => Err(Refusal::hidden(name)),
            (Decision::Hide, None) | (Decision::Deny, _) => Err(Refusal::denied()),
        }
    }

    fn may(&self, who: &Principal, name: &Name, action: Action) -> bool {
        self.access.decide(who, Some(name), action) == Decision::Allow
    }

    fn metrics_text(&self) -> String {
        let mut text = self.metrics.text();
        self.budgets.metrics(&mut text);
        self.mirrors.metrics(&mut text);
        text
    }

    async fn ready(&self) -> Answer {
        match self.registry.check().await {
            Ok(()) => Ok(text("ok\n".to_owned())),
            Err(error) => Ok(wire::answer(StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n"))),
        }
    }
}

/// What is remembered of a request for the record.
struct Note {
    who: Principal,
    peer: Option<std::net::IpAddr>,
    action: Action,
    repository: Option<Name>,
    reference: Option<String>,
}

impl Note {
    fn new(who: &Principal, parts: &Parts, route: &Route) -> Self {
        let action = action(route, &parts.method);
        // The address of an upload is for its owner only.
        let named = matches!(route, Route::Blob(..) | Route::Manifest(..));
        let kept = named && matches!(action, Action::Push | Action::Delete);
        let last = || parts.uri.path().rsplit('/').next().unwrap_or_default().to_owned();
        Self {
            who: who.clone(),
            peer: Peer::of(parts),
            action,
            repository: route.repository().cloned(),
            reference: kept.then(last),
        }
    }

    fn changes(&self) -> bool {
        matches!(self.action, Action::Push | Action::Delete)
    }

    fn is_push(&self) -> bool {
        self.action == Action::Push
    }

    fn what(&self) -> &'static str {
        match self.action {
            Action::Pull => "pull",
            Action::Push => "push",
            Action::Delete => "delete",
            Action::List | Action::Look => "look",
        }
    }
}

/// What a request needs permission for.
fn action(route: &Route, method: &Method) -> Action {
    match (route, method.as_str()) {
        (Route::Blob(..) | Route::Manifest(..), "DELETE") => Action::Delete,
        (Route::Uploads(_) | Route::Upload(..), _) | (Route::Manifest(..), "PUT") => Action::Push,
        (route, _) if route.repository().is_some() => Action::Pull,
        _ => Action::Look,
    }
}

fn allowed(route: &Route) -> &'static str {
    match route {
        Route::Blob(..) => "GET, HEAD, DELETE",
        Route::Uploads(_) => "POST",
        Route::Upload(..) => "GET, HEAD, PATCH, PUT, DELETE",
        Route::Manifest(..) => "GET, HEAD, PUT, DELETE",
        _ => "GET, HEAD",
    }
}

/// A header's text; empty if it is missing or not text.
fn header(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn json(body: Vec<u8>) -> Response {
    let mut response = wire::answer(StatusCode::OK, body);
    wire::set(&mut response, CONTENT_TYPE, wire::JSON);
    response
}

fn text(body: String) -> Response {
    let mut response = wire::answer(StatusCode::OK, body);
    wire::set(&mut response, CONTENT_TYPE, "text/plain; charset=utf-8");
    response
}

/// Whether a client has this content already.
fn is_unchanged(headers: &HeaderMap, tag: &str) -> bool {
    let known = header(headers, http::header::IF_NONE_MATCH);
    known.split(',').map(str::trim).any(|it| it == tag || it == "*")
}
