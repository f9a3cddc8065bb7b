//! What could not be answered, as RFC 9457 writes it.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use serde_json::{Value as Json, json};

/// A refusal, with what to do about it.
#[derive(Clone, Debug)]
pub struct Problem {
    status: StatusCode,
    detail: String,
    hint: String,
    /// What sort of problem it is, if programs have to tell it from others of the same status.
    sort: Option<&'static str>,
    /// Further members, by name.
    members: Vec<(String, Json)>,
    headers: Vec<(HeaderName, String)>,
}

impl Problem {
    /// A problem of any sort.
    pub fn new(status: StatusCode, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        let (detail, hint) = (detail.into(), hint.into());
        Self { status, detail, hint, sort: None, members: Vec::new(), headers: Vec::new() }
    }

    /// The same with a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// The same with what may be meant.
    #[must_use]
    pub(super) fn suggesting(self, suggestions: Vec<String>) -> Self {
        if suggestions.is_empty() { self } else { self.with("suggestions", suggestions.into()) }
    }

    /// The same with a further member.
    #[must_use]
    pub(super) fn with(mut self, name: &str, value: Json) -> Self {
        self.members.push((name.to_owned(), value));
        self
    }

    /// The same as a sort of its own: `urn:apron:problem:SORT`.
    #[must_use]
    pub(super) fn sorted(self, sort: &'static str) -> Self {
        Self { sort: Some(sort), ..self }
    }

    pub(super) fn method() -> Self {
        let hint = "ask with GET; packages are pushed and deleted below /v2/";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "the catalog can only be asked", hint)
    }

    pub(super) fn failed() -> Self {
        let hint = "try again; the server's log says more";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the catalog cannot answer", hint)
    }

    pub(super) fn invalid(detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail, hint)
    }

    pub(super) fn path() -> Self {
        let hint = "/api/v1/openapi.json lists what there is";
        Self::new(StatusCode::NOT_FOUND, "there is no such address", hint)
    }

    pub(super) fn unknown(what: impl Into<String>) -> Self {
        let hint = "check the name, or sign in: what you may not read is not shown";
        Self::new(StatusCode::NOT_FOUND, what, hint)
    }
}

fn sort_name(sort: &'static str) -> String {
    format!("urn:apron:problem:{sort}")
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut body = json!({
            "type": self.sort.map_or_else(|| "about:blank".to_owned(), sort_name),
            "title": self.status.canonical_reason().unwrap_or_default(),
            "status": self.status.as_u16(),
            "detail": self.detail,
            "hint": self.hint,
        });
        for (name, value) in self.members {
            body[&name] = value;
        }
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        }
        response
    }
}
