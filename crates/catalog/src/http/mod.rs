//! The catalog over HTTP, below `/api/v1`.
//!
//! ```text
//!   request ─► Gate (the asker, and what they may read) ─► routes ─► one question ─► JSON
//! ```
//!
//! Names of repositories have slashes in them: what belongs to one follows `/-/`. Answers carry an
//! `ETag` that depends on nothing but their content; refusals are problems as RFC 9457 writes
//! them. What the asker may not read is answered as what is not there.

mod answers;
mod compared;
mod local;
mod openapi;
mod problem;
mod query;
mod resolve;
mod routes;
mod streams;

pub use local::LocalCatalog;
pub use openapi::describe_routes;
pub use problem::Problem;
pub use query::{Query, decode, encode};

use crate::index::{Index, IndexError, Rights};
use answers::Call;
use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, HeaderValue};
use http::header::{IF_NONE_MATCH, LINK, VARY};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use oci::Digest;
use routes::{Responder, find_route};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Files and lists of news that are sent at the same time.
const STREAMS_MAX: usize = 64;

/// Where all of it is.
pub const PREFIX: &str = "/api/v1";

/// Knows askers, and what they may read.
#[async_trait]
pub trait Gate: Send + Sync {
    /// Lets an asker in, or does not.
    async fn admit(&self, request: &Parts) -> Result<Admitted, Problem>;

    /// Whether it tells askers apart: signing in would show more.
    fn knows_users(&self) -> bool {
        true
    }
}

/// An asker who was let in.
pub struct Admitted {
    /// What they may read.
    pub rights: Rights,
    /// What they are told if that is nothing: to sign in, perhaps.
    pub otherwise: Option<Problem>,
}

struct Server {
    index: Arc<Index>,
    gate: Arc<dyn Gate>,
    /// Answers that take their time, and hold a thread or a connection meanwhile.
    streams: Arc<Semaphore>,
}

/// The catalog as a service; to be merged with what else is served.
pub fn router(index: Arc<Index>, gate: Arc<dyn Gate>) -> Router {
    let server = Arc::new(Server::new(index, gate));
    let below = format!("{PREFIX}/{{*path}}");
    Router::new().route(PREFIX, any(handle)).route(&below, any(handle)).with_state(server)
}

/// An answer, and where the next page is.
pub(crate) struct Answer {
    body: Vec<u8>,
    media: &'static str,
    next: Option<String>,
}

impl Answer {
    fn json(body: Vec<u8>) -> Self {
        Self { body, media: "application/json", next: None }
    }
}

async fn handle(State(server): State<Arc<Server>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let mut response = match server.clone().answer(&parts).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(VARY, HeaderValue::from_static("authorization"));
    headers.insert(http::header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if parts.method == Method::HEAD {
        *response.body_mut() = Body::empty();
    }
    response
}

impl Server {
    fn new(index: Arc<Index>, gate: Arc<dyn Gate>) -> Self {
        Self { index, gate, streams: Arc::new(Semaphore::new(STREAMS_MAX)) }
    }

    async fn answer(self: Arc<Self>, parts: &Parts) -> Result<Response, Problem> {
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            return Err(Problem::method().header(ALLOW, "GET, HEAD"));
        }
        let Admitted { rights, otherwise } = self.gate.admit(parts).await?;
        if let Some(problem) = otherwise {
            self.check_readable(&rights, problem).await?;
        }
        let path = parts.uri.path().strip_prefix(PREFIX).unwrap_or_default().to_owned();
        let names: Vec<String> = path.split('/').filter(|it| !it.is_empty()).map(decode).collect();
        let (route, captured) = find_route(&names).ok_or_else(Problem::path)?;
        let respond_to = match route.responder {
            Responder::Question(respond_to) => respond_to,
            Responder::Export => {
                let permit = self.take_permit()?;
                return Ok(streams::send_export(self, rights, permit));
            }
            Responder::Events => {
                let permit = self.take_permit()?;
                return Ok(streams::send_events(&self, rights, permit));
            }
        };
        let query = Query::parse(parts.uri.query());
        let call = Call { index: self.index.clone(), path, captured, query, rights };
        let done = tokio::task::spawn_blocking(move || respond_to(&call)).await;
        let answer = done.unwrap_or_else(|_| Err(Problem::failed()))?;
        Ok(respond(answer, &parts.headers))
    }

    /// The same answer, whether there is nothing or nothing for the asker.
    async fn check_readable(&self, rights: &Rights, problem: Problem) -> Result<(), Problem> {
        let (index, rights) = (self.index.clone(), rights.clone());
        let asked = tokio::task::spawn_blocking(move || index.has_readable(&rights)).await;
        if asked.map_err(|_| Problem::failed())?? { Ok(()) } else { Err(problem) }
    }

    fn take_permit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let permit = self.streams.clone().try_acquire_owned();
        permit.map_err(|_| {
            let problem = Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many readers take their time",
                "try again in a minute",
            );
            problem.header(http::header::RETRY_AFTER, "60")
        })
    }
}

impl From<IndexError> for Problem {
    fn from(_: IndexError) -> Self {
        Self::failed()
    }
}

fn respond(answer: Answer, asked: &HeaderMap) -> Response {
    let tag = format!("\"{}\"", Digest::of(&answer.body).hex());
    let known = asked.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_known = known.split(',').map(str::trim).any(|it| it == tag || it == "*");
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let mut response = Response::new(Body::from(answer.body));
        set(&mut response, CONTENT_TYPE, answer.media);
        response
    };
    set(&mut response, ETAG, &tag);
    if let Some(next) = answer.next {
        set(&mut response, LINK, &format!("<{next}>; rel=\"next\""));
    }
    response
}

fn set(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
