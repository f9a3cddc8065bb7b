//! Whole requests as text, for the targets that call servers in this process.
//!
//! An input is a conversation: requests behind each other, each a line `METHOD TARGET`, lines
//! `Name: value`, an empty line and a body; `---` on a line of its own ends one. So seeds are
//! readable, and a mutated one is still a conversation.

pub mod mutate;

use axum::Router;
use axum::body::{Body, Bytes};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use std::time::Duration;
use tower::ServiceExt as _;

/// What the API server has when a conversation begins.
pub const SETTING: &[u8] = include_bytes!("setting.http");

/// What the API server's node says of itself, where pods are made.
pub const NODE: &[u8] = include_bytes!("node.http");

/// Requests of one conversation; what comes after is left out.
const REQUESTS_MAX: usize = 24;
/// Bytes of an answer that are looked at: watches and lists end by themselves or here.
const ANSWER_MAX: usize = 8 << 20;
/// As long as this an answer may stay away, on a clock that jumps when nothing happens.
const PATIENCE: Duration = Duration::from_secs(120);

/// The requests of a conversation that HTTP can say at all.
pub fn requests(input: &[u8]) -> Vec<Request<Bytes>> {
    split(input, b"\n---\n").into_iter().filter_map(request).take(REQUESTS_MAX).collect()
}

fn split<'a>(bytes: &'a [u8], mark: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(mark.len()).position(|window| window == mark) {
        parts.push(&rest[..at]);
        rest = &rest[at + mark.len()..];
    }
    parts.push(rest);
    parts
}

fn request(text: &[u8]) -> Option<Request<Bytes>> {
    let parts = split(text, b"\n\n");
    let head = parts.first()?;
    let body = text.get(head.len() + 2..).unwrap_or_default();
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = std::str::from_utf8(lines.next()?).ok()?;
    let (method, target) = first.split_once(' ')?;
    let mut request = Request::builder().method(method).uri(target);
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let value = line[colon + 1..].trim_ascii();
        request = request.header(&line[..colon], value);
    }
    request.body(Bytes::copy_from_slice(body)).ok()
}

/// Calls a server and reads its answer, as far as anybody would.
pub async fn call(server: &Router, request: Request<Bytes>) -> Option<(StatusCode, Vec<u8>)> {
    let answer = server.clone().oneshot(request.map(Body::from));
    let Ok(Ok(answer)) = tokio::time::timeout(PATIENCE, answer).await else {
        return None;
    };
    Some((answer.status(), read(answer).await))
}

async fn read(answer: Response<Body>) -> Vec<u8> {
    let mut body = answer.into_body();
    let mut bytes = Vec::new();
    while bytes.len() < ANSWER_MAX {
        let Ok(Some(Ok(frame))) = tokio::time::timeout(PATIENCE, body.frame()).await else {
            break;
        };
        if let Some(data) = frame.data_ref() {
            bytes.extend_from_slice(data);
        }
    }
    bytes
}

/// Plays a conversation in a runtime of its own, whose clock jumps when everybody waits.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime of one thread needs nothing");
    runtime.block_on(future)
}
