//! Calls the server makes to others: webhooks.
//!
//! The room opens no socket; whoever runs the server lends it a hand, an [`Outbound`]. Where
//! a webhook is behind a service, the same hand knows where that service is.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use serde_json::Value;

/// A POST of JSON to someone else.
#[derive(Debug, Clone)]
pub struct Call {
    /// Where to; HTTPS.
    pub url: String,
    /// Where that really is, if the URL names a service.
    pub address: Option<SocketAddr>,
    /// The certificates to trust, as PEM; empty for those the system trusts.
    pub authorities: Vec<u8>,
    /// What to say.
    pub body: Bytes,
    /// How long to wait for the answer.
    pub timeout: Duration,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The HTTP code.
    pub code: u16,
    /// The type of what was said.
    pub media: String,
    /// What was said.
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Nobody listens there.
    #[error("dial tcp {0}: connect: connection refused")]
    Refused(String),
    /// It took too long.
    #[error("context deadline exceeded")]
    TimedOut,
    /// The answer is longer than [`REPLY_MAX`].
    #[error("the answer is longer than {REPLY_MAX} bytes")]
    TooLong,
    /// The certificate is not to be trusted.
    #[error("tls: failed to verify certificate: {0}")]
    Untrusted(String),
    /// Something else.
    #[error("{0}")]
    Other(String),
}

/// A hand that calls others.
pub trait Outbound: Send + Sync {
    /// Makes a call.
    fn post(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallError>>;

    /// Where a service is, if it is anywhere.
    fn service(&self, namespace: &str, name: &str, port: u16) -> Option<SocketAddr> {
        let _ = (namespace, name, port);
        None
    }
}

/// The most an answer may hold; whoever reads it stops there.
pub const REPLY_MAX: usize = 8 << 20;
/// The most of a failed call's text that its client is told; upstream cuts there, too.
const TEXT_MAX: usize = 2048;

/// Sends a review to the webhook of a `clientConfig`; what came back, or why nothing did, in
/// the words of upstream's client.
pub(crate) async fn review(
    outbound: Option<&dyn Outbound>,
    client: &Value,
    review: &Value,
    timeout: Duration,
    query: &str,
) -> Result<Value, String> {
    let Some(outbound) = outbound else {
        return Err("this server makes no calls to webhooks".to_owned());
    };
    let (base, address) = place(outbound, client)?;
    let separator = if query.is_empty() { "" } else { "?" };
    let url = format!("{base}{separator}{query}");
    let call = Call {
        url: url.clone(),
        address,
        authorities: authorities(client),
        body: Bytes::from(review.to_string()),
        timeout,
    };
    let reply = outbound.post(call).await.map_err(|error| format!("Post {url:?}: {error}"))?;
    if reply.body.len() > REPLY_MAX {
        return Err(CallError::TooLong.to_string());
    }
    answered(&reply)
}

/// What an answer says. Upstream follows redirects (CVE-2020-8561), which lets a webhook send this
/// server, and the objects it is asked about, to addresses only this server can reach.
fn answered(reply: &Reply) -> Result<Value, String> {
    match reply.code {
        200..=299 => read(&reply.body),
        300..=399 => Err(format!("the webhook answered with a redirect ({})", reply.code)),
        404 => Err("the server could not find the requested resource".to_owned()),
        400..=499 => Err("the server rejected our request for an unknown reason".to_owned()),
        _ => {
            let text = &reply.body[..reply.body.len().min(TEXT_MAX)];
            let text = String::from_utf8_lossy(text);
            let text = if reply.media.starts_with("text/") { text.trim_end() } else { "unknown" };
            Err(format!(
                "an error on the server ({text:?}) has prevented the request from succeeding"
            ))
        }
    }
}

/// An answer as an object, or what upstream's decoder says about it.
fn read(body: &[u8]) -> Result<Value, String> {
    const WANTED: &str = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    let broken = |why: String| format!("couldn't get version/kind; json parse error: {why}");
    let value: Value = serde_json::from_slice(body).map_err(|error| {
        broken(crate::http::syntax::complaint(body).unwrap_or_else(|| error.to_string()))
    })?;
    let found = match &value {
        Value::Object(_) => return Ok(value),
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
    };
    Err(broken(format!("json: cannot unmarshal {found} into Go value of type {WANTED}")))
}

/// The address a `clientConfig` names.
fn place(outbound: &dyn Outbound, client: &Value) -> Result<(String, Option<SocketAddr>), String> {
    if let Some(url) = client.get("url").and_then(Value::as_str) {
        return Ok((url.to_owned(), None));
    }
    let text = |field: &str| {
        client.pointer(&format!("/service/{field}")).and_then(Value::as_str).unwrap_or_default()
    };
    let (namespace, name) = (text("namespace"), text("name"));
    let port = client.pointer("/service/port").and_then(Value::as_u64).unwrap_or(443);
    let port = u16::try_from(port).unwrap_or(443);
    let path = text("path").trim_start_matches('/');
    let url = format!("https://{name}.{namespace}.svc:{port}/{path}");
    match outbound.service(namespace, name, port) {
        Some(address) => Ok((url, Some(address))),
        None => Err(format!("Post {url:?}: service {name:?} not found")),
    }
}

fn authorities(client: &Value) -> Vec<u8> {
    use base64::Engine as _;
    let text = client.get("caBundle").and_then(Value::as_str).unwrap_or_default();
    base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(code: u16, media: &str, body: String) -> String {
        answered(&Reply { code, media: media.to_owned(), body: body.into() }).unwrap_err()
    }

    /// M6: whoever writes an object is told no more of what a webhook says than upstream tells.
    #[test]
    fn m6_the_text_of_a_failed_call_is_cut_and_nothing_else_is_told() {
        let long = told(500, "text/plain", "x".repeat(1 << 20));
        assert_eq!(long.matches('x').count(), TEXT_MAX);
        for (code, media) in [
            (500, "application/json"),
            (400, "text/plain"),
            (404, "text/plain"),
            (302, "text/html"),
        ] {
            let told = told(code, media, "db_password=hunter2".to_owned());
            assert!(!told.contains("hunter2"), "{told}");
        }
        let redirect = told(307, "", String::new());
        assert_eq!(redirect, "the webhook answered with a redirect (307)");
    }
}
