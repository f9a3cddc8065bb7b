//! An API server for tests that keeps objects under their paths, and hands that reach it.

use crate::cache::Cache;
use crate::fetch::Fetcher;
use crate::{Hands, Settings};
use http::{Method, Request, Response};
use kube::client::Body;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use store::auth::Keychain;
use store::remote;
use tempfile::TempDir;

/// The kinds it serves: version of the API, kind, plural, and whether objects have a namespace.
const KINDS: [(&str, &str, &str, bool); 5] = [
    ("coordination.k8s.io/v1", "Lease", "leases", true),
    ("events.k8s.io/v1", "Event", "events", true),
    ("pkg.crossplane.io/v1", "Provider", "providers", false),
    ("pkg.crossplane.io/v1", "ProviderRevision", "providerrevisions", false),
    ("pkg.crossplane.io/v1beta1", "ImageConfig", "imageconfigs", false),
];
/// The longest value of a label.
const LABEL_SIZE_MAX: usize = 63;

/// An answer: its code, and what it says.
type Answer = (u16, Json);

/// Objects by path, and how many were written.
#[derive(Default)]
struct Objects {
    by_path: BTreeMap<String, Json>,
    writes: u64,
}

/// The API server.
#[derive(Clone)]
pub(crate) struct Shelf {
    objects: Arc<Mutex<Objects>>,
    directory: Arc<TempDir>,
}

impl Shelf {
    /// One that has nothing.
    pub(crate) fn empty() -> Self {
        Self { objects: Arc::default(), directory: Arc::new(tempfile::tempdir().unwrap()) }
    }

    /// The hands of a manager of that name, who leads if it holds the lease.
    pub(crate) fn hands(&self, identity: &str) -> Hands {
        let shelf = self.clone();
        let server = tower::service_fn(move |request| {
            let shelf = shelf.clone();
            async move { shelf.serve(request).await }
        });
        let nobody = tower::service_fn(async |_: Request<remote::Body>| {
            Err::<Response<remote::Body>, _>(io::Error::other("there is no registry"))
        });
        let cache = Cache::open(self.directory.path().join(identity)).unwrap();
        let (way, how) = (remote::transport(nobody), remote::Settings::default());
        let fetch = Fetcher::new(way, how, Keychain::anonymous(), cache.clone());
        let settings = Settings { elects_leader: true, ..Settings::alone(identity) };
        let (clock, voice) = (|| "2026-01-01T00:00:00Z".to_owned(), |_: &crate::Entry<'_>| {});
        let client = kube::Client::new(server, "default");
        Hands::new(client, fetch, cache, settings, Arc::new(clock), Arc::new(voice))
    }

    /// What is under a path.
    pub(crate) fn get(&self, path: &str) -> Option<Json> {
        self.objects.lock().unwrap().by_path.get(path).cloned()
    }

    /// Everything whose path begins like that.
    pub(crate) fn under(&self, path: &str) -> Vec<Json> {
        self.objects.lock().unwrap().under(path)
    }

    /// Puts an object under a path, whatever was there.
    pub(crate) fn put(&self, path: &str, object: Json) {
        self.objects.lock().unwrap().put(path, object);
    }

    /// Takes away what is under a path.
    pub(crate) fn remove(&self, path: &str) {
        assert!(self.objects.lock().unwrap().by_path.remove(path).is_some(), "{path} is not there");
    }

    async fn serve(&self, request: Request<Body>) -> Result<Response<Body>, kube::Error> {
        let (head, body) = request.into_parts();
        let body: Json = serde_json::from_slice(&body.collect_bytes().await?).unwrap_or_default();
        let path = head.uri.path();
        let (code, said) = {
            let mut objects = self.objects.lock().unwrap();
            match head.method {
                Method::GET if is_list(path) => objects.list(path, head.uri.query()),
                Method::GET => objects.read(path),
                Method::POST => objects.create(path, body),
                Method::PUT => objects.replace(path, body),
                other => failure(405, &format!("{other} is not served")),
            }
        };
        let body = Body::from(said.to_string().into_bytes());
        Ok(Response::builder().status(code).body(body).unwrap())
    }
}

impl Objects {
    fn put(&mut self, path: &str, mut object: Json) -> Answer {
        self.writes += 1;
        object["metadata"]["resourceVersion"] = json!(self.writes.to_string());
        self.by_path.insert(path.to_owned(), object.clone());
        (200, object)
    }

    fn read(&self, path: &str) -> Answer {
        if let Some(kinds) = kinds(path) {
            return (200, kinds);
        }
        self.by_path.get(path).map_or_else(|| missing(path), |found| (200, found.clone()))
    }

    /// Everything of a kind; asked for a label that cannot be, it refuses as real ones do.
    fn list(&self, path: &str, query: Option<&str>) -> Answer {
        let selector =
            query.unwrap_or_default().split('&').find(|it| it.starts_with("labelSelector"));
        let value = selector.and_then(|it| it.rsplit("%3D").next()).unwrap_or_default();
        if value.len() > LABEL_SIZE_MAX {
            return failure(400, &format!("{value}: must be no more than 63 characters"));
        }
        (200, json!({"metadata": {}, "items": self.under(&format!("{path}/"))}))
    }

    fn under(&self, path: &str) -> Vec<Json> {
        let found = self.by_path.iter().filter(|(at, _)| at.starts_with(path));
        found.map(|(_, object)| object.clone()).collect()
    }

    fn create(&mut self, path: &str, object: Json) -> Answer {
        let path = format!("{path}/{}", object["metadata"]["name"].as_str().unwrap());
        if self.by_path.contains_key(&path) {
            return failure(409, &format!("{path} exists"));
        }
        self.put(&path, object)
    }

    fn replace(&mut self, path: &str, mut object: Json) -> Answer {
        let whole = path.strip_suffix("/status");
        let path = whole.unwrap_or(path);
        let Some(live) = self.by_path.get(path) else { return missing(path) };
        if live["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
            return failure(409, &format!("{path} has changed"));
        }
        if whole.is_some() {
            let status = object["status"].take();
            object = live.clone();
            object["status"] = status;
        }
        self.put(path, object)
    }
}

fn is_list(path: &str) -> bool {
    KINDS.iter().any(|(_, _, plural, _)| path.ends_with(&format!("/{plural}")))
}

/// The kinds of an API, if the path is that of one.
fn kinds(path: &str) -> Option<Json> {
    let api = path.strip_prefix("/apis/")?;
    let kinds = KINDS.iter().filter(|one| one.0 == api);
    let kinds = kinds.map(|(_, kind, plural, is_namespaced)| {
        json!({"name": plural, "singularName": "", "namespaced": is_namespaced, "kind": kind,
               "verbs": []})
    });
    let kinds: Vec<Json> = kinds.collect();
    let list = json!({"kind": "APIResourceList", "groupVersion": api, "resources": kinds});
    (!kinds.is_empty()).then_some(list)
}

fn missing(path: &str) -> Answer {
    failure(404, &format!("{path} is not there"))
}

fn failure(code: u16, message: &str) -> Answer {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "message": message,
        "reason": "", "code": code,
    });
    (code, status)
}
