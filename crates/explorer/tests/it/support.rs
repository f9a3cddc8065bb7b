//! A catalog with some packages, and its explorer.

use async_trait::async_trait;
use axum::body::Body;
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Request, StatusCode};
use catalog::http::{Admitted, Gate, Problem};
use catalog::{
    Definition, Dependency, Head, Index, Origin, Outcome, Package, Permission, Rights,
    ServedVersion,
};
use explorer::http::Exhibition;
use http_body_util::BodyExt as _;
use std::io::Write as _;
use std::sync::Arc;
use tempfile::TempDir;
use tower::ServiceExt as _;

/// A catalog in a directory that goes with it, and its pages.
pub(crate) struct Site {
    pub(crate) index: Arc<Index>,
    _directory: TempDir,
}

/// What was answered.
pub(crate) struct Shown {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) html: String,
}

/// Askers say who they are by a header; `secret/**` is for ada alone.
struct NameGate;

#[async_trait]
impl Gate for NameGate {
    async fn admit(&self, request: &Parts) -> Result<Admitted, Problem> {
        let is_ada = request.headers.get("authorization").is_some_and(|it| it == "ada");
        let is_strict = request.headers.contains_key("x-strict");
        let rights =
            Rights::when(move |name| is_ada || (!is_strict && !name.starts_with("secret/")));
        let problem = || {
            let problem =
                Problem::new(StatusCode::UNAUTHORIZED, "who asks is not known", "sign in");
            problem.header(WWW_AUTHENTICATE, "Bearer realm=\"x\"")
        };
        Ok(Admitted { rights, otherwise: (!is_ada).then(problem) })
    }
}

impl Site {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let index = Arc::new(Index::open(&directory.path().join("catalog.db")).unwrap());
        Self { index, _directory: directory }
    }

    /// Adds versions of a package, each by its tag.
    pub(crate) fn add(&self, repository: &str, versions: &[(&str, Package)]) {
        let digest = |tag: &str| format!("sha256:{repository}-{tag}");
        let heads: Vec<Head> = versions
            .iter()
            .map(|(tag, _)| Head {
                digest: digest(tag),
                tags: vec![(*tag).to_owned()],
                is_damaged: false,
            })
            .collect();
        self.index.settle(repository, &heads).unwrap();
        for (tag, package) in versions {
            let outcome = Outcome::Package(Box::new(package.clone()));
            self.index.learn(&digest(tag), &outcome).unwrap();
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Shown {
        self.ask(Request::get(path)).await
    }

    /// The page at an address that has to be there.
    pub(crate) async fn page(&self, path: &str) -> String {
        let shown = self.get(path).await;
        assert_eq!(shown.status, StatusCode::OK, "{path}: {}", shown.html);
        shown.html
    }

    pub(crate) async fn ask(&self, request: axum::http::request::Builder) -> Shown {
        let request = request.header("host", "registry.example.org").body(Body::empty()).unwrap();
        let shown = Exhibition {
            index: Some(self.index.clone()),
            gate: Arc::new(NameGate),
            pass: None,
            plane: None,
        };
        let response = explorer::http::router(shown).oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let html = String::from_utf8(bytes.to_vec()).unwrap();
        Shown { status: parts.status, headers: parts.headers, html }
    }
}

/// Bytes in a zlib stream, as the catalog keeps them.
pub(crate) fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn definition(plural: &str, kind: &str, group: &str) -> Definition {
    let version = |name: &str, storage: bool| ServedVersion {
        name: name.to_owned(),
        served: true,
        storage,
        deprecated: !storage,
        schema: None,
    };
    Definition {
        name: format!("{plural}.{group}"),
        group: group.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        short_names: Vec::new(),
        scope: "Cluster".to_owned(),
        origin: Origin::Crd,
        versions: vec![version("v1beta1", false), version("v1", true)],
    }
}

/// A provider with everything a page can show.
pub(crate) fn harbour() -> Package {
    Package {
        kind: "Provider".to_owned(),
        name: "provider-harbour".to_owned(),
        description: Some("Buckets, records and moorings.".to_owned()),
        license: Some("Apache-2.0".to_owned()),
        source: Some("https://example.org/harbour".to_owned()),
        category: Some("storage".to_owned()),
        keywords: vec!["harbour".to_owned(), "sea".to_owned()],
        readme: Some("# Harbour\n\nText with a [link](https://example.org).".to_owned()),
        platforms: vec!["linux/amd64".to_owned()],
        size: 9_700_000,
        dependencies: vec![Dependency {
            kind: "Function".to_owned(),
            package: "registry.example.org/team/function-moor".to_owned(),
            version: ">=v0.1.0".to_owned(),
        }],
        permissions: vec![Permission {
            api_groups: vec![String::new()],
            resources: vec!["secrets".to_owned()],
            verbs: vec!["*".to_owned()],
            ..Permission::default()
        }],
        definitions: vec![
            definition("buckets", "Bucket", "storage.example.org"),
            definition("records", "Record", "dns.example.org"),
        ],
        ..Package::default()
    }
}

pub(crate) fn moor() -> Package {
    Package { kind: "Function".to_owned(), name: "function-moor".to_owned(), ..Package::default() }
}
