//! # The door: HTTP in, HTTP out
//!
//! One fallback handler takes every path, because what paths there are changes while the
//! server runs. Nothing below this module knows about HTTP beyond codes and media types.

pub mod body;
mod contain;
mod encode;
pub mod negotiate;
pub mod protobuf;
pub mod query;
pub mod share;
pub mod status;
pub mod syntax;
pub mod target;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use http::{HeaderMap, HeaderValue, Response, header};
use serde_json::{Value, json};

use self::negotiate::Form;
use self::query::Query;
use self::status::Failure;
use self::target::Target;
use crate::auth::{self, User};
use crate::rest::{self, Answer};
use crate::{Server, discovery, openapi};

const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

const OPENAPI_V2: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Answers every request.
pub async fn handle(
    State(server): State<Arc<Server>>,
    request: http::Request<Body>,
) -> Response<Body> {
    let answered = async {
        let wish = encode::Wish::read(request.uri(), request.headers());
        encode::write(Box::pin(respond(server, request)).await, wish).await
    };
    contain::contain(answered).await
}

async fn respond(server: Arc<Server>, request: http::Request<Body>) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let user = match auth::admit(&server, &parts) {
        Ok(user) => user,
        Err(failure) => return refuse_entry(&failure),
    };
    let host = header_text(&parts.headers, &header::HOST);
    let accept = header_text(&parts.headers, &header::ACCEPT);
    if ["/healthz", "/readyz"].contains(&path.as_str()) {
        server.log.probe().await;
    }
    if let Some(answer) = about_itself(&server, &path, host) {
        return as_is(answer, accept);
    }
    let _share = match server.shares.take(&user, parts.extensions.get()).await {
        Ok(share) => share,
        Err(failure) => return refuse_entry(&failure),
    };
    if parts.method == http::Method::GET
        && let Some(answer) = discover(&server, &path, &parts.headers)
    {
        return answer;
    }
    let warnings = rest::Warnings::default();
    parts.extensions.insert(warnings.clone());
    let mut response = match objects(&server, user, &parts, body).await {
        Ok(Some(answer)) => send(answer),
        Ok(None) if has_builtin_group(&server, &path) => {
            let message = "the server could not find the requested resource";
            let mut failure = Failure::new(404, "NotFound", message);
            failure.details = Some(Box::new(json!({})));
            refuse(&failure)
        }
        Ok(None) => not_a_page(),
        Err(failure) => refuse(&failure),
    };
    warn(&mut response, &warnings.take());
    response
}

/// Health, version, and how its tokens can be checked.
fn about_itself(server: &Server, path: &str, host: &str) -> Option<Response<Body>> {
    match path {
        "/.well-known/openid-configuration" => {
            Some(json_answer(200, &auth::openid::configuration(server, host)))
        }
        "/openid/v1/jwks" => {
            let keys = auth::openid::keys(server)?;
            Some(answer(200, "application/jwk-set+json", Body::from(keys.to_string())))
        }
        // Restarting it does not help who has no space: it lives, and is not ready.
        "/livez" => Some(text(200, "ok")),
        "/healthz" | "/readyz" => Some(readiness(server)),
        "/version" | "/version/" => Some(json_answer(200, &server.version())),
        _ => None,
    }
}

/// Whether writes are taken, and if not, why.
fn readiness(server: &Server) -> Response<Body> {
    match &*server.log.trouble().borrow() {
        None => text(200, "ok"),
        Some(why) => text(500, format!("[-]log failed: nothing can be written: {why}\n")),
    }
}

/// An answer that has one form only, for those who take it.
fn as_is(mut answer: Response<Body>, accept: &str) -> Response<Body> {
    let media = answer.headers().get(header::CONTENT_TYPE).and_then(|media| media.to_str().ok());
    let json = media.filter(|media| media.contains("json"));
    let takes = |media: &str| {
        accept.trim().is_empty()
            || accept
                .split(',')
                .map(body::media)
                .any(|one| [media, "*/*", "application/*"].contains(&one))
    };
    if let Some(media) = json.filter(|media| !takes(media)) {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {media}");
        return refuse(&Failure::new(406, "NotAcceptable", message).with(json!({})));
    }
    answer.extensions_mut().insert(encode::AsIs);
    answer
}

/// Whether a path lies in a group that is always there: then what is missing is a thing,
/// not a page.
fn has_builtin_group(server: &Server, path: &str) -> bool {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts.as_slice() {
        ["api", ..] => true,
        ["apis", group, _, ..] => server.kinds.has_builtin_group(group),
        _ => false,
    }
}

fn header_text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn discover(server: &Server, path: &str, headers: &HeaderMap) -> Option<Response<Body>> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let accept = header_text(headers, &header::ACCEPT);
    let all = negotiate::accept(accept, true).is_some_and(|it| it.form == Form::Discovery);
    let host = header_text(headers, &header::HOST);
    match parts.as_slice() {
        ["api"] if all => Some(aggregated(server, true, headers)),
        ["apis"] if all => Some(aggregated(server, false, headers)),
        ["api"] => Some(json_answer(200, &discovery::versions(host))),
        ["apis"] => Some(json_answer(200, &discovery::group_list(&server.kinds))),
        ["apis", group] => {
            discovery::group(&server.kinds, group).map(|answer| json_answer(200, &answer))
        }
        ["api", version] => {
            discovery::resources(&server.kinds, "", version).map(|answer| json_answer(200, &answer))
        }
        ["apis", group, version] => discovery::resources(&server.kinds, group, version)
            .map(|answer| json_answer(200, &answer)),
        ["openapi", "v2"] if accept.contains("proto-openapi.spec.v2") => {
            // A document without fields, in protobuf, has no bytes.
            Some(self::answer(200, OPENAPI_V2, Body::empty()))
        }
        ["openapi", "v2"] => Some(described(&openapi::old())),
        ["openapi", "v3"] => Some(described(&openapi::root(&server.kinds))),
        ["openapi", "v3", ..] => {
            let path = path.trim_matches('/').trim_start_matches("openapi/v3/");
            openapi::document(&server.kinds, path).map(|answer| described(&answer))
        }
        _ => None,
    }
}

/// A description of the API, which is JSON whatever was asked for.
fn described(document: &Value) -> Response<Body> {
    let mut response = json_answer(200, document);
    response.extensions_mut().insert(encode::AsIs);
    response
}

/// Aggregated discovery, with a tag by which a client can ask whether it changed.
fn aggregated(server: &Server, core: bool, headers: &HeaderMap) -> Response<Body> {
    let text = discovery::aggregated(&server.kinds, core).to_string();
    let tag = format!("\"{:016X}\"", fingerprint(text.as_bytes()));
    let known = header_text(headers, &header::IF_NONE_MATCH) == tag;
    let mut response = if known {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = http::StatusCode::NOT_MODIFIED;
        response
    } else {
        answer(200, DISCOVERY, Body::from(text + "\n"))
    };
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

/// A number that changes when the bytes do.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Requests for objects; `None` when the path names nothing.
async fn objects(
    server: &Arc<Server>,
    user: Arc<User>,
    parts: &http::request::Parts,
    body: Body,
) -> Result<Option<Answer>, Failure> {
    let Some(target) = Target::parse(parts.uri.path()) else { return Ok(None) };
    let Some(kind) = server.kinds.find(&target.group, &target.version, &target.resource) else {
        return Ok(None);
    };
    let part = match target.subresource.as_deref() {
        None => true,
        Some("status") => kind.status,
        Some("scale") => kind.scale.is_some(),
        Some("token") => kind.kind == "ServiceAccount" && kind.group.is_empty(),
        Some("binding" | "log" | "exec" | "attach" | "portforward") => {
            kind.kind == "Pod" && kind.group.is_empty()
        }
        Some("finalize") => kind.kind == "Namespace" && kind.group.is_empty(),
        Some(_) => false,
    };
    let question =
        kind.fleeting && (target.name.is_some() || kind.namespaced != target.namespace.is_some());
    if !part || question || (target.namespace.is_some() && !kind.namespaced) {
        return Ok(None);
    }
    let accepted = negotiate::accept(header_text(&parts.headers, &header::ACCEPT), false)
        .ok_or_else(|| Failure::not_acceptable(kind.custom))?;
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    if accepted.yaml && parts.method == http::Method::GET && query.flag("watch") {
        return Err(Failure::no_stream());
    }
    let mut media = body::media(header_text(&parts.headers, &header::CONTENT_TYPE)).to_owned();
    let mut body = body::read(body).await?;
    let is_binding = target.subresource.as_deref() == Some("binding");
    if media == protobuf::MEDIA && !is_binding && protobuf::may_carry(&kind, &parts.method, &body) {
        let read = || protobuf::read(&kind, &parts.method, &body).map(|object| object.to_string());
        body = crate::heavy::do_aside(body.len(), read)?.into();
        "application/json".clone_into(&mut media);
    }
    if media == negotiate::YAML && parts.method == http::Method::DELETE && !body.is_empty() {
        let (options, _) = schema::object::lines::parse(&body).map_err(Failure::bad_request)?;
        body = schema::object::text(&options).into();
    }
    let request = rest::Request {
        kind,
        user,
        target,
        query,
        form: accepted.form,
        agent: header_text(&parts.headers, &header::USER_AGENT).to_owned(),
        media,
        body,
        warnings: parts.extensions.get().cloned().unwrap_or_default(),
        missing: rest::Missing::default(),
    };
    let weight = weight(server, parts, &request);
    let answer = rest::serve(server, parts.method.as_str(), request);
    crate::heavy::wait_aside(weight, answer).await.map(Some)
}

/// How many bytes a write has to do with: its own, and those of the object it changes.
fn weight(server: &Server, parts: &http::request::Parts, request: &rest::Request) -> usize {
    let changed = match parts.method {
        http::Method::GET => return 0,
        http::Method::PUT | http::Method::PATCH => server.log.get(&request.key()),
        _ => None,
    };
    request.body.len().saturating_add(changed.map_or(0, |entry| entry.value.len()))
}

fn send(answer: Answer) -> Response<Body> {
    match answer {
        Answer::Object { code, body, warnings } => {
            let mut response = json_answer(code, &body);
            warn(&mut response, &warnings);
            response
        }
        Answer::Text { body, warnings } => {
            let mut response = self::answer(200, "application/json", Body::from(body));
            warn(&mut response, &warnings);
            response
        }
        Answer::Stream(body) => self::answer(200, "application/json", body),
        Answer::Log(body) => self::answer(200, "text/plain", body),
        Answer::Empty => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = http::StatusCode::NO_CONTENT;
            response
        }
    }
}

/// Warnings that are told whole have at most so many characters together; more of them are told
/// by their beginnings, and only until these have as many. As upstream.
const WARNINGS_MAX: usize = 4096;
const WARNING_MAX: usize = 256;

fn warn(response: &mut Response<Body>, warnings: &[String]) {
    let length = |text: &String| text.chars().count();
    let mut total = 0_usize;
    let whole = warnings.iter().all(|warning| {
        total = total.saturating_add(length(warning));
        total <= WARNINGS_MAX
    });
    let mut told = 0_usize;
    for warning in warnings.iter().filter(|warning| !warning.is_empty()) {
        if !whole && told >= WARNINGS_MAX {
            break;
        }
        let end = warning.char_indices().nth(WARNING_MAX).filter(|_| !whole);
        let text = end.map_or(warning.as_str(), |(end, _)| &warning[..end]);
        told = told.saturating_add(text.chars().count());
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
}

fn refuse(failure: &Failure) -> Response<Body> {
    let mut response = json_answer(failure.code, &failure.status());
    warn(&mut response, &failure.warnings);
    if let Some(seconds) = failure.retry_after() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// A refusal before anything was looked at.
fn refuse_entry(failure: &Failure) -> Response<Body> {
    let mut response = refuse(failure);
    let nosniff = HeaderValue::from_static("nosniff");
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

fn not_a_page() -> Response<Body> {
    let mut response = text(404, "404 page not found\n");
    let nosniff = HeaderValue::from_static("nosniff");
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

fn text(code: u16, what: impl Into<Body>) -> Response<Body> {
    answer(code, "text/plain; charset=utf-8", what.into())
}

fn json_answer(code: u16, value: &Value) -> Response<Body> {
    let mut text = schema::object::text(value);
    text.push(b'\n');
    answer(code, "application/json", Body::from(text))
}

fn answer(code: u16, media: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let broken = http::StatusCode::INTERNAL_SERVER_ERROR;
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or(broken);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// What `/version` says.
pub fn version(name: &str) -> Value {
    json!({
        "major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
        "gitVersion": format!("v1.36.4+{name}"), "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, platform()),
    })
}

fn platform() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H5: each odd field of a body made a header of its own.
    #[test]
    fn h5_warnings_are_no_longer_than_upstream_lets_them_be() {
        let told = |warnings: &[String]| {
            let mut response = Response::new(Body::empty());
            warn(&mut response, warnings);
            let values = response.headers().get_all(header::WARNING).into_iter();
            values.map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(told(&["a \"b\"".to_owned()]), ["299 - \"a \\\"b\\\"\""]);
        assert_eq!(told(&["x".repeat(4096)])[0].len(), 4096 + 8);
        assert_eq!(told(&["x".repeat(4097)])[0].len(), 256 + 8);
        assert_eq!(told(&vec!["x".repeat(300); 1000]).len(), 16);
        assert_eq!(told(&vec!["x".to_owned(); 10_000]).len(), 4096);
    }
}
