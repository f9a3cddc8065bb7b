//! What goes over the wire: headers, the table of errors, answers.
//!
//! The outward message says what the client can know and use; what went wrong inside (paths,
//! the database) stays inside.

use crate::budget::Kind;
use crate::error::Error;
use crate::mirror::Trouble;
use crate::route::Misroute;
use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use serde::Serialize;

pub(crate) const API_VERSION: HeaderName =
    HeaderName::from_static("docker-distribution-api-version");
pub(crate) const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");
pub(crate) const UPLOAD_UUID: HeaderName = HeaderName::from_static("docker-upload-uuid");
pub(crate) const SUBJECT: HeaderName = HeaderName::from_static("oci-subject");
pub(crate) const TAGS: HeaderName = HeaderName::from_static("oci-tag");
pub(crate) const NAMESPACE: HeaderName = HeaderName::from_static("oci-namespace");
pub(crate) const FILTERS: HeaderName = HeaderName::from_static("oci-filters-applied");
pub(crate) const JSON: &str = "application/json";
/// How long a client should wait when there is too much going on, in seconds.
const RETRY_AFTER: &str = "10";

/// An error of the specification's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    code: &'static str,
    message: String,
    headers: Vec<(HeaderName, String)>,
    /// The limit that was met, for those who count.
    pub(crate) limit: Option<Kind>,
}

#[derive(Serialize)]
struct Envelope<'refusal> {
    errors: [Entry<'refusal>; 1],
}

#[derive(Serialize)]
struct Entry<'refusal> {
    code: &'refusal str,
    message: &'refusal str,
    detail: Option<()>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), headers: Vec::new(), limit: None }
    }

    /// The same with one more header.
    pub(crate) fn header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn bad(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub(crate) fn digest(text: &str) -> Self {
        Self::bad("DIGEST_INVALID", format!("`{text}` is not a sha256 or sha512 digest"))
    }

    pub(crate) fn unauthorized(challenge: String) -> Self {
        let message = "authentication is needed";
        Self::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", message)
            .header(http::header::WWW_AUTHENTICATE, challenge)
    }

    pub(crate) fn refused(refused: crate::access::Refused) -> Self {
        use crate::access::Refused;
        match refused {
            Refused::Challenge(challenge) => Self::unauthorized(challenge),
            Refused::Wait(seconds) => {
                let message = "too many failed attempts to sign in; wait a little";
                Self::new(StatusCode::TOO_MANY_REQUESTS, "TOOMANYREQUESTS", message)
                    .header(http::header::RETRY_AFTER, seconds.to_string())
            }
        }
    }

    /// Too much in too short a time.
    pub(crate) fn too_often(seconds: u64) -> Self {
        let plural = if seconds == 1 { "" } else { "s" };
        let message = format!("too many requests; try again in {seconds} second{plural}");
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TOOMANYREQUESTS", message)
            .header(http::header::RETRY_AFTER, seconds.to_string())
    }

    /// Too much at the same time.
    pub(crate) fn too_many_uploads() -> Self {
        let message = "too many uploads at once; wait until one is over";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TOOMANYREQUESTS", message)
            .header(http::header::RETRY_AFTER, RETRY_AFTER)
    }

    /// Something broke here while the request was answered.
    pub(crate) fn panicked() -> Self {
        let message = "the registry broke down while it answered this; its log says where";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "UNSUPPORTED", message)
    }

    pub(crate) fn denied() -> Self {
        Self::new(StatusCode::FORBIDDEN, "DENIED", "you may not do this here")
    }

    /// It is called by a name that it was not told.
    pub(crate) fn host() -> Self {
        let message = "this registry does not answer to that name: use its address, or allow the \
                       name where it is served (--allowed-host)";
        Self::new(StatusCode::MISDIRECTED_REQUEST, "DENIED", message)
    }

    /// What is mirrored is pushed to where it comes from.
    pub(crate) fn mirrored(name: &crate::Name, source: &crate::mirror::Source) -> Self {
        let message = format!("{name} is a mirror of {source}; push there instead");
        Self::new(StatusCode::FORBIDDEN, "DENIED", message)
    }

    pub(crate) fn hidden(name: &crate::Name) -> Self {
        Self::from(Error::NameUnknown(name.clone()))
    }

    pub(crate) fn method(allowed: &'static str) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "UNSUPPORTED", "this cannot be done here")
            .header(http::header::ALLOW, allowed)
    }

    pub(crate) fn misroute(misroute: Misroute, method: &Method) -> Self {
        let reading = method == Method::GET || method == Method::HEAD;
        match misroute {
            Misroute::NotFound => {
                Self::new(StatusCode::NOT_FOUND, "UNSUPPORTED", "there is nothing at this address")
            }
            Misroute::Name(name) => {
                Self::bad("NAME_INVALID", format!("`{name}` is not the name of a repository"))
            }
            Misroute::Digest(digest) => Self::digest(&digest),
            Misroute::Tag(tag) if reading => Self::from(Error::ManifestUnknown(tag)),
            Misroute::Tag(tag) => {
                Self::bad("MANIFEST_INVALID", format!("`{tag}` is neither a tag nor a digest"))
            }
        }
    }

    /// The answer a client gets.
    pub(crate) fn into_response(self) -> Response {
        let entry = Entry { code: self.code, message: &self.message, detail: None };
        let body = serde_json::to_vec(&Envelope { errors: [entry] }).unwrap_or_default();
        let mut response = answer(self.status, body);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        }
        response
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let error = match error {
            Error::Shared(error) => return Self::shared(&error),
            error => error,
        };
        Self::shared(&error)
    }
}

impl Refusal {
    fn shared(error: &Error) -> Self {
        let (status, code) = table(error);
        let message = match (error, std::error::Error::source(error)) {
            // What is wrong with a manifest is the client's business; what is wrong with our disk
            // is not.
            (Error::ManifestInvalid(_), Some(cause)) => with_causes(error, cause),
            _ => error.to_string(),
        };
        let mut refusal = Self::new(status, code, message);
        refusal.limit = match error {
            Error::BlobTooLarge { .. } => Some(Kind::BlobSize),
            Error::QuotaExceeded { .. } => Some(Kind::Quota),
            Error::SpaceLow => Some(Kind::Space),
            Error::UploadsTooMany => Some(Kind::Uploads),
            _ => None,
        };
        match (error, status) {
            (Error::Upstream { trouble: Trouble::Busy(Some(wait)), .. }, _) => {
                refusal.header(http::header::RETRY_AFTER, wait.as_secs().max(1).to_string())
            }
            (_, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) => {
                refusal.header(http::header::RETRY_AFTER, RETRY_AFTER)
            }
            _ => refusal,
        }
    }
}

fn table(error: &Error) -> (StatusCode, &'static str) {
    match error {
        Error::NameUnknown(_) => (StatusCode::NOT_FOUND, "NAME_UNKNOWN"),
        Error::ManifestUnknown(_) => (StatusCode::NOT_FOUND, "MANIFEST_UNKNOWN"),
        Error::BlobUnknown(_) => (StatusCode::NOT_FOUND, "BLOB_UNKNOWN"),
        Error::BlobInUse(_) => (StatusCode::METHOD_NOT_ALLOWED, "UNSUPPORTED"),
        Error::ManifestBlobUnknown(_) => (StatusCode::NOT_FOUND, "MANIFEST_BLOB_UNKNOWN"),
        Error::ManifestInvalid(oci::ManifestError::TooLarge { .. }) => {
            (StatusCode::PAYLOAD_TOO_LARGE, "MANIFEST_INVALID")
        }
        Error::ManifestInvalid(_) | Error::ManifestTooMany => {
            (StatusCode::BAD_REQUEST, "MANIFEST_INVALID")
        }
        Error::DigestMismatch { .. } => (StatusCode::BAD_REQUEST, "DIGEST_INVALID"),
        Error::TagImmutable { .. } => (StatusCode::CONFLICT, "DENIED"),
        Error::UploadUnknown => (StatusCode::NOT_FOUND, "BLOB_UPLOAD_UNKNOWN"),
        Error::UploadOffset { .. } => (StatusCode::RANGE_NOT_SATISFIABLE, "BLOB_UPLOAD_INVALID"),
        Error::SizeMismatch { .. } => (StatusCode::BAD_REQUEST, "SIZE_INVALID"),
        Error::ManifestTooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "MANIFEST_INVALID"),
        Error::BlobTooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "SIZE_INVALID"),
        Error::UploadsTooMany => (StatusCode::TOO_MANY_REQUESTS, "TOOMANYREQUESTS"),
        Error::BodyBroken => (StatusCode::BAD_REQUEST, "BLOB_UPLOAD_INVALID"),
        Error::SpaceLow | Error::QuotaExceeded { .. } => {
            (StatusCode::INSUFFICIENT_STORAGE, "DENIED")
        }
        Error::Closed => (StatusCode::SERVICE_UNAVAILABLE, "UNSUPPORTED"),
        Error::Upstream { trouble, .. } => match trouble {
            Trouble::Missing => (StatusCode::NOT_FOUND, "NAME_UNKNOWN"),
            Trouble::Denied => (StatusCode::FORBIDDEN, "DENIED"),
            Trouble::Busy(_) => (StatusCode::TOO_MANY_REQUESTS, "TOOMANYREQUESTS"),
            Trouble::Away => (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE"),
            Trouble::Failing(_) | Trouble::Wrong | Trouble::TooLarge => {
                (StatusCode::BAD_GATEWAY, "UNAVAILABLE")
            }
        },
        Error::Shared(error) => table(error),
        Error::Io(_) | Error::Database(_) => (StatusCode::INTERNAL_SERVER_ERROR, "UNSUPPORTED"),
    }
}

fn with_causes(error: &Error, cause: &dyn std::error::Error) -> String {
    let mut text = format!("{error}: {cause}");
    let mut next = cause.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

/// An answer with a body at hand.
pub(crate) fn answer(status: StatusCode, body: impl Into<bytes::Bytes>) -> Response {
    let body = body.into();
    let length = HeaderValue::from(body.len());
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    if status != StatusCode::NO_CONTENT {
        response.headers_mut().insert(CONTENT_LENGTH, length);
    }
    response
}

/// Sets a header; a value that cannot be one is left out (none of ours are).
pub(crate) fn set(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
