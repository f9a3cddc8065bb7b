//! Bodies in protobuf, which typed clients send for built-in kinds.
//!
//! They become JSON at the door, so that nothing behind it needs to know.

use http::Method;
use serde_json::{Value, json};

use super::status::Failure;
use super::syntax;
use crate::kind::Kind;
use wire::protobuf;

/// The media type.
pub const MEDIA: &str = "application/vnd.kubernetes.protobuf";

/// Whether a request's body may be protobuf: custom kinds are JSON only, patches have types of
/// their own, and a removal need not say anything.
pub fn may_carry(kind: &Kind, method: &Method, bytes: &[u8]) -> bool {
    match *method {
        Method::POST | Method::PUT => !kind.custom,
        Method::DELETE => !bytes.is_empty(),
        _ => false,
    }
}

/// The object in a body as JSON.
pub fn read(kind: &Kind, method: &Method, bytes: &[u8]) -> Result<Value, Failure> {
    let options = *method == Method::DELETE;
    let unreadable = |why: &str| {
        let shown = if bytes.is_empty() { "<empty>".to_owned() } else { syntax::excerpt(bytes) };
        Failure::bad_request(if options {
            why.to_owned()
        } else {
            let kind = &kind.kind;
            format!("the object provided is unrecognized (must be of type {kind}): {why} ({shown})")
        })
    };
    if bytes.is_empty() {
        return Err(unreadable("empty data"));
    }
    let mut envelope = protobuf::open(bytes).map_err(|error| unreadable(&error.to_string()))?;
    // What the envelope does not say, the address does.
    if envelope.kind.is_empty() {
        envelope.kind = if options { "DeleteOptions".to_owned() } else { kind.kind.clone() };
    }
    if envelope.api_version.is_empty() {
        envelope.api_version = kind.api_version();
    }
    if options && envelope.kind != "DeleteOptions" {
        return Err(Failure::bad_request(format!(
            "no kind {:?} is registered for version {:?} in scheme \"pkg/runtime/scheme.go:111\"",
            envelope.kind, envelope.api_version
        )));
    }
    let object = protobuf::object(&envelope).map_err(|error| {
        let version = envelope.api_version.rsplit('/').next().unwrap_or_default();
        Failure::bad_request(if options {
            error.to_string()
        } else {
            format!(
                "{} in version {version:?} cannot be handled as a {}: {error}",
                envelope.kind, kind.kind
            )
        })
    })?;
    // A kind without a type is refused by name, like JSON's.
    Ok(object.unwrap_or_else(|| json!({"apiVersion": envelope.api_version, "kind": envelope.kind})))
}
