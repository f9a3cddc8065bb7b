//! Refusals in Kubernetes' words: the `Status` object and its reasons.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::kind::Kind;
use schema::object::field_error::FieldError;

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// The HTTP code.
    pub code: u16,
    /// The word clients branch on; empty where upstream leaves it out.
    pub reason: Cow<'static, str>,
    /// The sentence for people.
    pub message: String,
    /// `details`, where there are any.
    pub details: Option<Box<Value>>,
    /// `Warning` headers.
    pub warnings: Vec<String>,
}

impl Failure {
    /// A refusal without details.
    pub fn new(
        code: u16,
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        let (reason, message) = (reason.into(), message.into());
        Self { code, reason, message, details: None, warnings: Vec::new() }
    }

    /// The same, after these warnings.
    #[must_use]
    pub fn warned(mut self, warnings: &[String]) -> Self {
        self.warnings.extend_from_slice(warnings);
        self
    }

    pub(crate) fn with(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// 400: the request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 404 for one object.
    pub fn not_found(kind: &Kind, name: &str) -> Self {
        Self::named(404, "NotFound", kind, name, "not found")
    }

    /// 409: the name is taken.
    pub fn already_exists(kind: &Kind, name: &str) -> Self {
        Self::named(409, "AlreadyExists", kind, name, "already exists")
    }

    fn named(code: u16, reason: &'static str, kind: &Kind, name: &str, what: &str) -> Self {
        let message = format!("{} {name:?} {what}", kind.resource());
        Self::new(code, reason, message).with(details(name, &kind.group, &kind.plural))
    }

    /// 409: someone else was first, or a precondition does not hold.
    pub fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} {name:?}: {why}", kind.resource());
        Self::new(409, "Conflict", message).with(details(name, &kind.group, &kind.plural))
    }

    /// 409: the version in the request is not the present one.
    pub fn stale(kind: &Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        Self::conflict(kind, name, why)
    }

    /// 403, with the sentence after "is forbidden:".
    pub fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let what = match name {
            "" => kind.resource(),
            _ => format!("{} {name:?}", kind.resource()),
        };
        Self::new(403, "Forbidden", format!("{what} is forbidden: {why}")).with(details(
            name,
            &kind.group,
            &kind.plural,
        ))
    }

    /// 422: the object (of `kind` in `group`) is not valid.
    pub fn invalid(kind: &str, group: &str, name: &str, errors: &[FieldError]) -> Self {
        let mut seen = HashSet::new();
        let sentences = errors.iter().map(FieldError::sentence);
        let sentences: Vec<String> = sentences.filter(|one| seen.insert(one.clone())).collect();
        let what = match sentences.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let mut details = details(name, group, kind);
        details["causes"] = errors.iter().map(FieldError::cause).collect();
        Self::new(422, "Invalid", format!("{qualified} {name:?} is invalid: {what}")).with(details)
    }

    /// 422 about an object of this kind.
    pub fn invalid_object(kind: &Kind, name: &str, errors: &[FieldError]) -> Self {
        // Events of both APIs are checked as those of the core.
        let newer = crate::kind::event::is_newer(kind);
        Self::invalid(&kind.kind, if newer { "" } else { &kind.group }, name, errors)
    }

    /// 422 about the options of a request, such as `ListOptions`.
    pub fn invalid_options(options: &str, errors: &[FieldError]) -> Self {
        Self::invalid(options, "meta.k8s.io", "", errors)
    }

    /// 405.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message).with(json!({}))
    }

    /// 406, for built-in kinds and for custom ones.
    pub fn not_acceptable(custom: bool) -> Self {
        if custom {
            let message = "only the following media types are accepted: application/json, \
                           application/yaml, application/vnd.kubernetes.protobuf, \
                           application/json;stream=watch, \
                           application/vnd.kubernetes.protobuf;stream=watch";
            return Self::new(406, "NotAcceptable", message).with(json!({}));
        }
        let message = "406: Not Acceptable\n\nAvailable representations: application/json, \
                       application/yaml, application/vnd.kubernetes.protobuf, \
                       application/json;stream=watch, \
                       application/vnd.kubernetes.protobuf;stream=watch";
        Self::new(406, "NotAcceptable", message).with(json!({}))
    }

    /// 406 for a watch in a format that has no end of its own.
    pub fn no_stream() -> Self {
        let message = "only the following media types are accepted: application/json;stream=watch, \
                       application/vnd.kubernetes.protobuf;stream=watch";
        Self::new(406, "NotAcceptable", message)
    }

    /// 415 from the outer door.
    pub fn unsupported_media() -> Self {
        Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type").with(json!({}))
    }

    /// 415 from the decoder, which says what it would take.
    pub fn unknown_format(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 410: the version lies before what is kept.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 504: the version lies in the future.
    pub fn too_large(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        Self::new(504, "Timeout", message).with(json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        }))
    }

    /// 422 without saying why, as upstream answers a JSON patch that does not apply.
    pub fn patch_rejected() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::new(422, "Invalid", message).with(json!({}))
    }

    /// 500 with upstream's shape: no reason.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// The object.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = (**details).clone();
        }
        status["code"] = json!(self.code);
        status
    }

    /// How long a client should wait, if it should.
    pub fn retry_after(&self) -> Option<u64> {
        self.details.as_ref()?.get("retryAfterSeconds")?.as_u64()
    }
}

/// The answer to a removal that happened.
pub fn removed(kind: &Kind, name: &str, uid: &str) -> Value {
    let mut details = details(name, &kind.group, &kind.plural);
    details["uid"] = json!(uid);
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": details,
    })
}

pub(crate) fn details(name: &str, group: &str, kind: &str) -> Value {
    let mut map = Map::new();
    for (field, value) in [("name", name), ("group", group), ("kind", kind)] {
        if !value.is_empty() {
            map.insert(field.to_owned(), json!(value));
        }
    }
    Value::Object(map)
}
