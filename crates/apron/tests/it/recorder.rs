//! A way to an API server that writes down what its only user asks for.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test, as it should")]

use crate::control_plane::runtime;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// More than any body has.
const BODY_MAX: usize = 64 << 20;

/// What somebody asked for, as authorizers see it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Deed {
    pub(crate) verb: &'static str,
    pub(crate) group: String,
    /// With its subresource, if it is about that.
    pub(crate) resource: String,
    /// Empty where it is about all of them, or one that is to be.
    pub(crate) name: String,
}

/// A server on a port of its own that hands on what it is asked.
pub(crate) struct Recorder {
    pub(crate) address: String,
    asked: Arc<Mutex<BTreeSet<Deed>>>,
    _runtime: tokio::runtime::Runtime,
}

impl Recorder {
    /// Stands before the server of this kubeconfig, and is its user.
    pub(crate) fn start(kubeconfig: Kubeconfig) -> Self {
        let runtime = runtime();
        let asked = Arc::default();
        let address = runtime.block_on(async {
            let mut config =
                Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
                    .await
                    .unwrap();
            // A watch may tell nothing for long.
            config.read_timeout = None;
            let client = Client::try_from(config).unwrap();
            let state = (client, Arc::clone(&asked));
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap().to_string();
            let router = Router::new().fallback(hand_on).with_state(state);
            tokio::spawn(async move { axum::serve(listener, router).await });
            address
        });
        Self { address, asked, _runtime: runtime }
    }

    /// Everything that was asked for, once.
    pub(crate) fn deeds(&self) -> BTreeSet<Deed> {
        self.asked.lock().unwrap().clone()
    }
}

async fn hand_on(
    State((client, asked)): State<(Client, Arc<Mutex<BTreeSet<Deed>>>)>,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    let query = head.uri.query().unwrap_or_default();
    if let Some(deed) = Deed::of(head.method.as_str(), head.uri.path(), query) {
        asked.lock().unwrap().insert(deed);
    }
    let body = to_bytes(body, BODY_MAX).await.unwrap().to_vec();
    let mut onward = axum::http::Request::builder()
        .method(head.method)
        .uri(head.uri.path_and_query().unwrap().as_str());
    for name in ["accept", "content-type"] {
        if let Some(value) = head.headers.get(name) {
            onward = onward.header(name, value);
        }
    }
    let answer = client.send(onward.body(kube::client::Body::from(body)).unwrap()).await;
    let Ok(answer) = answer else {
        return axum::http::StatusCode::BAD_GATEWAY.into_response();
    };
    let (head, body) = answer.into_parts();
    let mut response = Response::new(Body::new(body));
    *response.status_mut() = head.status;
    for name in ["content-type", "retry-after"] {
        if let Some(value) = head.headers.get(name) {
            let name = axum::http::HeaderName::from_static(name);
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}

impl Deed {
    /// What a request asks for; nothing if it is not about objects, which everybody may.
    fn of(method: &str, path: &str, query: &str) -> Option<Self> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, rest) = match parts.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return None,
        };
        let rest = match rest {
            ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
            rest => rest,
        };
        let (resource, rest) = rest.split_first()?;
        let (name, below) = match rest {
            [] => ("", None),
            [name] => (*name, None),
            [name, below @ ..] => (*name, Some(below.join("/"))),
        };
        let is_watch = query.split('&').any(|one| matches!(one, "watch=1" | "watch=true"));
        let verb = match (method, name.is_empty()) {
            ("GET", _) if is_watch => "watch",
            ("GET", true) => "list",
            ("GET", false) => "get",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", false) => "delete",
            _ => "deletecollection",
        };
        Some(Self {
            verb,
            group: group.to_owned(),
            resource: below.map_or_else(|| (*resource).to_owned(), |it| format!("{resource}/{it}")),
            name: name.replace("%3A", ":"),
        })
    }

    /// Whether a rule of a role lets somebody do it, as RBAC has it.
    pub(crate) fn is_allowed_by(&self, rule: &Json) -> bool {
        let has = |field: &str, value: &str| {
            let list = rule[field].as_array().into_iter().flatten();
            list.into_iter().any(|one| one == "*" || one == value)
        };
        let names = rule["resourceNames"].as_array();
        let is_named = names.is_none_or(|names| names.iter().any(|one| *one == *self.name));
        has("verbs", self.verb)
            && has("apiGroups", &self.group)
            && has("resources", &self.resource)
            && is_named
    }
}

#[test]
fn requests_are_told_as_authorizers_see_them() {
    for (method, path, query, expected) in [
        ("GET", "/api/v1/secrets", "watch=1&x=y", Some(["watch", "", "secrets", ""])),
        ("GET", "/api/v1/namespaces/a", "", Some(["get", "", "namespaces", "a"])),
        ("POST", "/api/v1/namespaces", "", Some(["create", "", "namespaces", ""])),
        ("GET", "/api/v1/namespaces/a/secrets", "limit=1", Some(["list", "", "secrets", ""])),
        (
            "PUT",
            "/apis/apps/v1/namespaces/a/deployments/b/status",
            "",
            Some(["update", "apps", "deployments/status", "b"]),
        ),
        ("DELETE", "/apis/x.org/v1/things/b", "", Some(["delete", "x.org", "things", "b"])),
        ("DELETE", "/apis/x.org/v1/things", "", Some(["deletecollection", "x.org", "things", ""])),
        ("GET", "/apis/x.org/v1", "", None),
        ("GET", "/version", "", None),
    ] {
        let deed = Deed::of(method, path, query);
        let told = deed.map(|one| [one.verb.to_owned(), one.group, one.resource, one.name]);
        assert_eq!(told, expected.map(|one| one.map(str::to_owned)), "{method} {path}");
    }
}
