//! A registry in a scratch directory, and requests that never leave the process.

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use oci::{Descriptor, Digest, Index, Manifest, MediaType, Raw};
use registry::{Options, Registry, Settings};
use std::time::{Duration, SystemTime};
use tower::ServiceExt;

pub(crate) struct World {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) registry: Registry,
    pub(crate) router: axum::Router,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", String::from_utf8_lossy(&self.body));
        self
    }

    /// An error of the table.
    #[track_caller]
    pub(crate) fn refuses(self, status: u16, code: &str) -> Self {
        let answer = self.is(status);
        assert_eq!(answer.json()["errors"][0]["code"], code);
        answer
    }

    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> &str {
        let value =
            self.headers.get(name).unwrap_or_else(|| panic!("no {name}: {:?}", self.headers));
        value.to_str().unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Settings under which nothing is safe for longer than a push takes.
pub(crate) fn hasty() -> Settings {
    Settings { lease: Duration::ZERO, ..Settings::default() }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let registry = Registry::open(directory.path(), settings).unwrap();
        let router = registry::router(registry.clone(), Options::open());
        Self { directory, registry, router }
    }

    /// A registry that tells the time that it is told.
    pub(crate) fn telling(
        settings: Settings,
        clock: impl Fn() -> SystemTime + Send + Sync + 'static,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let registry = Registry::open_telling(directory.path(), settings, clock).unwrap();
        let router = registry::router(registry.clone(), Options::open());
        Self { directory, registry, router }
    }

    /// A registry without a directory; that of this world stays empty.
    pub(crate) fn in_memory(
        settings: Settings,
        clock: impl Fn() -> SystemTime + Send + Sync + 'static,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let registry = Registry::in_memory(settings, clock);
        let router = registry::router(registry.clone(), Options::open());
        Self { directory, registry, router }
    }

    /// The same directory after a crash: nothing is closed, a copy of the files is opened.
    pub(crate) fn after_crash(&self) -> Self {
        let from = format!("{}/.", self.directory.path().display());
        let copy = || {
            let directory = tempfile::tempdir().unwrap();
            let mut copy = std::process::Command::new("cp");
            let copied = copy.arg("-a").arg(&from).arg(directory.path()).status();
            copied.unwrap().success().then_some(directory)
        };
        // The registry lives on, and may just be giving a view its name.
        let directory = (0..100).find_map(|_| copy()).unwrap();
        let registry = Registry::open(directory.path(), Settings::default()).unwrap();
        let router = registry::router(registry.clone(), Options::open());
        Self { directory, registry, router }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    /// A request with headers and a body.
    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answer {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(body.into()).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, &[], Body::empty()).await
    }

    pub(crate) async fn head(&self, path: &str) -> Answer {
        self.call("HEAD", path, &[], Body::empty()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, &[], Body::empty()).await
    }

    /// Pushes a blob in one request.
    pub(crate) async fn blob(&self, name: &str, content: &[u8]) -> Descriptor {
        let descriptor = Descriptor::of(MediaType::OCTET_STREAM, content);
        let path = format!("/v2/{name}/blobs/uploads/?digest={}", descriptor.digest);
        self.call("POST", &path, &[], content.to_vec()).await.is(201);
        descriptor
    }

    /// Pushes the blobs of a small image; gives its manifest.
    pub(crate) async fn image(&self, name: &str, text: &str) -> Raw {
        let mut config = self.blob(name, format!("{{\"text\":\"{text}\"}}").as_bytes()).await;
        config.media_type = MediaType::OCI_CONFIG;
        let mut layer = self.blob(name, format!("layer of {text}").as_bytes()).await;
        layer.media_type = MediaType::OCI_LAYER;
        let mut manifest = Manifest::docker(config, vec![layer]);
        manifest.media_type = MediaType::OCI_MANIFEST;
        Raw::from_manifest(&manifest).unwrap()
    }

    pub(crate) async fn put(&self, name: &str, reference: &str, raw: &Raw) -> Answer {
        let path = format!("/v2/{name}/manifests/{reference}");
        let headers = [("content-type", raw.media_type.as_str())];
        self.call("PUT", &path, &headers, raw.bytes.clone()).await
    }

    /// Pushes a small image under a tag.
    pub(crate) async fn push(&self, name: &str, tag: &str, text: &str) -> Raw {
        let raw = self.image(name, text).await;
        self.put(name, tag, &raw).await.is(201);
        raw
    }

    /// Starts an upload; gives its address.
    pub(crate) async fn upload(&self, name: &str) -> String {
        let begun =
            self.call("POST", &format!("/v2/{name}/blobs/uploads/"), &[], Body::empty()).await;
        begun.is(202).header("location").to_owned()
    }

    /// Whether a blob's file is on the disk.
    pub(crate) fn has_file(&self, digest: &Digest) -> bool {
        let directory = self.directory.path().join("blobs").join(digest.algorithm().as_str());
        directory.join(digest.hex()).exists()
    }
}

pub(crate) fn index(children: &[&Raw]) -> Raw {
    Raw::from_index(&Index::oci(children.iter().map(|it| it.descriptor()).collect())).unwrap()
}

/// An artifact that refers to another manifest.
pub(crate) fn artifact(config: Descriptor, subject: &Raw, kind: &str, note: &str) -> Raw {
    let mut manifest = Manifest::docker(config, Vec::new());
    manifest.media_type = MediaType::OCI_MANIFEST;
    manifest.artifact_type = Some(kind.to_owned());
    manifest.subject = Some(subject.descriptor());
    manifest.annotations.insert("note".to_owned(), note.to_owned());
    Raw::from_manifest(&manifest).unwrap()
}
