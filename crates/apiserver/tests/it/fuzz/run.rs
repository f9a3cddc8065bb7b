//! Histories on both servers, side by side.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use apiserver::log::Log;
use axum::body::Body;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::schema::{GROUP, Made};
use super::shrink;
use super::step::{Step, Wire, sort_owners};
use crate::normal::{self, Answer};
use crate::peers::{ControlPlane, TOKEN};

/// How often a difference is looked at again: where upstream walks a Go map, it is not always
/// of the same mind, and ours must have one of its minds.
const LOOKS: usize = 12;

/// Both servers.
pub(crate) struct Both {
    plane: ControlPlane,
    client: reqwest::Client,
    ours: axum::Router,
    names: AtomicUsize,
}

/// What became of a history.
pub(crate) enum Outcome {
    Alike { accepted: usize },
    Different { at: usize, lines: Vec<String> },
}

/// What became of many.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) writes: usize,
    pub(crate) accepted: usize,
    pub(crate) undecided: usize,
    pub(crate) failures: Vec<String>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Self) {
        self.writes += other.writes;
        self.accepted += other.accepted;
        self.undecided += other.undecided;
        self.failures.extend(other.failures);
    }
}

/// One server's view of one object.
#[derive(Default)]
struct View {
    live: Option<Value>,
}

impl Both {
    pub(crate) async fn start() -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let client = reqwest::Client::builder()
            .tls_danger_accept_invalid_certs(true)
            .timeout(Duration::from_secs(60))
            .build()
            .expect("a client");
        let plane = ControlPlane::start(&client).await;
        let ours = apiserver::router(Log::in_memory(), apiserver::Options::default());
        let ours = ours.await.expect("our server");
        Self { plane, client, ours, names: AtomicUsize::new(0) }
    }

    /// Defines a kind on both and waits until it is served.
    pub(crate) async fn define(&self, made: &Made) {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let wire = |method, path: &str, body| Wire {
            method,
            path: path.to_owned(),
            media: "application/json",
            body,
        };
        let post = wire("POST", path, made.definition.clone());
        let (real, ours) = tokio::join!(self.real(&post), self.ours(&post));
        assert_eq!((real.code, ours.code), (201, 201), "{real:?}\n{ours:?}");
        let (version, plural) = (&made.versions[made.versions.len() - 1].0, &made.plural);
        let list = format!("/apis/{GROUP}/{version}/namespaces/default/{plural}");
        for _ in 0..1800 {
            let wire = wire("GET", &list, Value::Null);
            let (real, ours) = tokio::join!(self.real(&wire), self.ours(&wire));
            if (real.code, ours.code) == (200, 200) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{plural} is not served");
    }

    /// Runs a history; what differs is narrowed down and described.
    pub(crate) async fn judge(&self, made: &Made, object: usize, steps: Vec<Step>) -> Tally {
        let writes = steps.len();
        let mut tally = Tally { writes, ..Tally::default() };
        let (at, lines) = match self.run(made, &steps).await {
            Outcome::Alike { accepted } => {
                tally.accepted = accepted;
                return tally;
            }
            Outcome::Different { at, lines } => (at, lines),
        };
        tally.writes = at + 1;
        for _ in 0..LOOKS {
            if let Outcome::Alike { accepted } = self.run(made, &steps).await {
                tally.undecided = 1;
                tally.accepted = accepted;
                tally.writes = writes;
                return tally;
            }
        }
        let steps = shrink::shrink(self, made, steps[..=at].to_vec()).await;
        let lines = match self.run(made, &steps).await {
            Outcome::Different { lines, .. } => lines,
            Outcome::Alike { .. } => lines,
        };
        let schemas: Vec<String> =
            made.versions.iter().map(|(name, schema)| format!("  {name}: {schema}")).collect();
        let steps: Vec<String> = steps.iter().map(|step| format!("  {}", step.print())).collect();
        tally.failures.push(format!(
            "seed {} object {object} (APRON_SSA_SEED={} APRON_SSA_SEEDS=1), real / ours:\n    \
             {}\n{}\n{}",
            made.seed,
            made.seed,
            lines.join("\n    "),
            schemas.join("\n"),
            steps.join("\n")
        ));
        tally
    }

    /// Runs a history on a new object until the servers differ.
    pub(crate) async fn run(&self, made: &Made, steps: &[Step]) -> Outcome {
        let name = format!("o{}", self.names.fetch_add(1, Ordering::Relaxed));
        let (mut real, mut ours) = (View::default(), View::default());
        let mut accepted = 0;
        for (at, step) in steps.iter().enumerate() {
            let one = step.wire(made, &name, real.live.as_ref());
            let other = step.wire(made, &name, ours.live.as_ref());
            let (one, other) = tokio::join!(self.real(&one), self.ours(&other));
            accepted += usize::from(one.code < 300);
            let (one, other) = (real.take(one), ours.take(other));
            let lines = normal::differences(&one, &other);
            if !lines.is_empty() {
                return Outcome::Different { at, lines };
            }
        }
        Outcome::Alike { accepted }
    }

    async fn real(&self, wire: &Wire) -> Answer {
        let method = wire.method.parse().expect("a method");
        let mut request = self
            .client
            .request(method, format!("{}{}", self.plane.url, wire.path))
            .bearer_auth(TOKEN)
            .header("Accept", "application/json")
            .header("User-Agent", "probe/1");
        if !wire.body.is_null() {
            request = request.header("Content-Type", wire.media).body(wire.body.to_string());
        }
        let response = request.send().await.expect("an answer");
        let (code, headers) = (response.status().as_u16(), response.headers().clone());
        answer(code, &headers, &response.bytes().await.expect("a body"))
    }

    async fn ours(&self, wire: &Wire) -> Answer {
        let request = http::Request::builder()
            .method(wire.method)
            .uri(&wire.path)
            .header("Accept", "application/json")
            .header("User-Agent", "probe/1")
            .header("Content-Type", wire.media);
        let body = if wire.body.is_null() { String::new() } else { wire.body.to_string() };
        let request = request.body(Body::from(body)).expect("a request");
        let response = self.ours.clone().oneshot(request).await.expect("an answer");
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("a body").to_bytes();
        answer(parts.status.as_u16(), &parts.headers, &bytes)
    }
}

fn answer(code: u16, headers: &http::HeaderMap, bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes);
    let body = serde_json::from_str(&text).unwrap_or_else(|_| Value::from(text.into_owned()));
    let all = |name: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut warnings = all("warning");
    warnings.sort();
    Answer { code, media: all("content-type").join(", "), warnings, bodies: vec![body] }
}

impl View {
    /// Remembers the object if the write was taken, and makes the answer comparable.
    fn take(&mut self, mut answer: Answer) -> Answer {
        let Some(body) = answer.bodies.first_mut() else { return answer };
        if answer.code < 300 {
            let version = |object: &Value| object.pointer("/metadata/resourceVersion").cloned();
            let kept = self.live.as_ref().is_some_and(|live| version(live) == version(body));
            self.live = Some(body.clone());
            body["written"] = json!(!kept);
        }
        if let Some(Value::Array(owners)) = body.pointer_mut("/metadata/managedFields") {
            sort_owners(owners);
        }
        sort_complaints(body);
        normal::normal(answer)
    }
}

/// Upstream reports several faults in no particular order.
fn sort_complaints(body: &mut Value) {
    if let Some(Value::Array(causes)) = body.pointer_mut("/details/causes") {
        causes.sort_by_cached_key(Value::to_string);
    }
    if let Some(Value::String(message)) = body.get_mut("message") {
        // The first of several unknown fields is named, in the order of a Go map.
        if message.contains("field not declared in schema") {
            let end = message.find(": .").into_iter().chain(message.find(": errors:")).min();
            message.truncate(end.unwrap_or_default());
        }
        // What is wrong is in the causes, sorted above.
        if let Some(end) = message.find("is invalid: [") {
            message.truncate(end);
        }
        let mut lines: Vec<&str> = message.lines().collect();
        lines.sort_unstable();
        *message = lines.join("\n");
    }
}
