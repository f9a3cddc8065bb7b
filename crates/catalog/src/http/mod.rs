//! The catalog over HTTP, below `/api/v1`.
//!
//! ```text
//!   request ─► Gate (the asker, and what they may read) ─► path ─► one question ─► JSON
//! ```
//!
//! Names of repositories have slashes in them: what belongs to one follows `/-/`. Answers carry an
//! `ETag` that depends on nothing but their content; refusals are problems as RFC 9457 writes
//! them. What the asker may not read is answered as what is not there.

mod answers;
mod problem;
mod query;
mod resolve;

pub use problem::Problem;

use crate::index::{Index, IndexError, Rights};
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
use query::Query;
use std::sync::Arc;

/// Where all of it is.
pub const PREFIX: &str = "/api/v1";

/// Knows askers, and what they may read.
#[async_trait]
pub trait Gate: Send + Sync {
    /// Lets an asker in, or does not.
    async fn admit(&self, request: &Parts) -> Result<Admitted, Problem>;
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
}

/// The catalog as a service; to be merged with what else is served.
pub fn router(index: Arc<Index>, gate: Arc<dyn Gate>) -> Router {
    let server = Arc::new(Server { index, gate });
    let below = format!("{PREFIX}/{{*path}}");
    Router::new().route(PREFIX, any(handle)).route(&below, any(handle)).with_state(server)
}

/// An answer as JSON, and where the next page is.
pub(crate) struct Answer {
    body: Vec<u8>,
    next: Option<String>,
}

async fn handle(State(server): State<Arc<Server>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let mut response = match server.answer(&parts).await {
        Ok(answer) => respond(answer, &parts.headers),
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
    async fn answer(&self, parts: &Parts) -> Result<Answer, Problem> {
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            return Err(Problem::method().header(ALLOW, "GET, HEAD"));
        }
        let Admitted { rights, otherwise } = self.gate.admit(parts).await?;
        let path = parts.uri.path().strip_prefix(PREFIX).unwrap_or_default().to_owned();
        let query = Query::parse(parts.uri.query());
        let index = self.index.clone();
        let work = move || match otherwise {
            // The same answer, whether there is nothing or nothing for them.
            Some(problem) if !index.has_readable(&rights)? => Err(problem),
            _ => answers::answer(&index, &path, &query, &rights),
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|_| Err(Problem::failed()))
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
        set(&mut response, CONTENT_TYPE, "application/json");
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
