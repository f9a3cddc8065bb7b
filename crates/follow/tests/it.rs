//! A registry and the catalog that follows it, in one process.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test, as it should")]

use bytes::Bytes;
use catalog::answer::{State, VersionSummary};
use catalog::{Index, Rights};
use oci::layer::LayerWriter;
use oci::{Descriptor, Identifier, Manifest, MediaType, Raw, Repository, Rules};
use registry::{Missing, Options, Registry, Settings};
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;
use store::auth::Keychain;
use store::remote::{Client, transport};
use store::{Remote, Store as _};
use tempfile::TempDir;

/// How long a condition is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

const PACKAGE: &str = "apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata: {name: provider-late}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: plums.fruit.example.org}
spec:
  group: fruit.example.org
  names: {kind: Plum, plural: plums, singular: plum}
  scope: Cluster
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object}}
";

/// A registry that keeps manifests whose blobs come later, as mirrors do, and its catalog.
struct Followed {
    index: Arc<Index>,
    remote: Remote,
    _directory: TempDir,
}

impl Followed {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let settings = Settings { missing: Missing::Accept, ..Settings::default() };
        let registry = Registry::open(&directory.path().join("data"), settings).unwrap();
        let index = Arc::new(Index::open(&directory.path().join("catalog.db")).unwrap());
        let router = registry::router(registry.clone(), Options::open());
        let client = Client::new(
            transport(router),
            Keychain::anonymous(),
            store::remote::Settings::default(),
        );
        let place = Repository::parse("127.0.0.1:1/team/late", &Rules::weak()).unwrap();
        let temporary = directory.path().to_owned();
        let following = index.clone();
        tokio::spawn(async move {
            Box::pin(follow::follow(
                registry,
                following,
                temporary,
                std::future::pending(),
                |_| {},
            ))
            .await;
        });
        Self { index, remote: client.repository(place), _directory: directory }
    }

    /// Waits until the one version of the package is so.
    async fn comes_to(&self, wanted: State) -> VersionSummary {
        let waiting = async {
            loop {
                let versions = self.index.versions("team/late", &Rights::all()).unwrap();
                let found = versions.into_iter().flatten().find(|it| it.state == wanted);
                if let Some(version) = found {
                    return version;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_whose_layer_comes_late_is_read_when_it_does() {
    let followed = Followed::start();
    let mut writer = LayerWriter::new(Vec::new()).unwrap();
    writer.start_file("package.yaml", PACKAGE.len() as u64).unwrap();
    writer.write_all(PACKAGE.as_bytes()).unwrap();
    let (bytes, written) = writer.finish().unwrap();
    let mut layer = written.descriptor.clone();
    layer.annotations.insert("io.crossplane.xpkg".to_owned(), "base".to_owned());
    let config = Bytes::from_static(b"{}");
    let described = Descriptor::of(MediaType::DOCKER_CONFIG, &config);
    followed.remote.put_blob(&described, &config).await.unwrap();
    let raw = Raw::from_manifest(&Manifest::docker(described, vec![layer])).unwrap();
    followed.remote.put_manifest(&Identifier::Tag("v1.0.0".to_owned()), &raw).await.unwrap();
    let version = followed.comes_to(State::Incomplete).await;
    assert!(version.reason.is_some_and(|reason| reason.contains("not here yet")));
    followed.remote.put_blob(&written.descriptor, &Bytes::from(bytes)).await.unwrap();
    assert_eq!(followed.comes_to(State::Read).await.kinds, 1);
}
