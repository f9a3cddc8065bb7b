//! What tests of several chapters need: a world that stands still, a server in it, and somebody
//! who asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::log::Log;
use crate::world::World;
use crate::{Options, Server};

/// A world whose time is set by hand, and whose dice are never the same twice.
#[derive(Debug, Default)]
pub(crate) struct Still {
    pub(crate) now: AtomicU64,
    dice: AtomicU64,
}

impl Still {
    /// A world that stands still at this second.
    pub(crate) fn at(now: u64) -> Self {
        Self { now: AtomicU64::new(now), ..Self::default() }
    }
}

impl World for Still {
    fn now(&self) -> u64 {
        self.now.load(Ordering::SeqCst)
    }

    fn random(&self) -> u64 {
        self.dice.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst)
    }
}

/// A furnished server on a log.
pub(crate) async fn server(log: Log) -> Arc<Server> {
    server_with(log, Options::default()).await
}

/// The same with options.
pub(crate) async fn server_with(log: Log, options: Options) -> Arc<Server> {
    let server = Server::new(log, options, Arc::new(Still::default()));
    server.furnish().await.unwrap();
    server
}

/// A server with a custom kind, `widgets.example.org`, whose objects have these fields.
pub(crate) async fn server_with_widgets(fields: Value) -> Arc<Server> {
    let server = server(Log::in_memory()).await;
    let schema = json!({"type": "object", "properties": fields});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced", "versions": [version],
            "names": {"plural": "widgets", "kind": "Widget", "listKind": "WidgetList"}},
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let made = ask(&server, "POST", definitions, definition).await;
    assert_eq!(made["kind"], "CustomResourceDefinition", "{made}");
    server
}

/// The answer as it comes.
pub(crate) async fn send(server: &Arc<Server>, method: &str, path: &str, body: Value) -> Body {
    let is_patch = method == "PATCH";
    let media = if is_patch { "application/merge-patch+json" } else { "application/json" };
    answer_as(server, method, path, media, body).await.into_body()
}

/// The answer to a body of some type, with its headers.
pub(crate) async fn answer_as(
    server: &Arc<Server>,
    method: &str,
    path: &str,
    media: &str,
    body: Value,
) -> http::Response<Body> {
    let request = http::Request::builder().method(method).uri(path).header("Content-Type", media);
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    server.router().oneshot(request.body(body).unwrap()).await.unwrap()
}

/// The whole answer to a body of some type.
pub(crate) async fn ask_as(
    server: &Arc<Server>,
    method: &str,
    path: &str,
    media: &str,
    body: Value,
) -> Value {
    let answer = answer_as(server, method, path, media, body).await;
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&bytes).unwrap()
}

/// The whole answer.
pub(crate) async fn ask(server: &Arc<Server>, method: &str, path: &str, body: Value) -> Value {
    let answer = send(server, method, path, body).await;
    let bytes = answer.collect().await.unwrap().to_bytes();
    serde_json::from_slice(&bytes).unwrap()
}
