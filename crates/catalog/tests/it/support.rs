//! Packages as values and as images.

use bytes::Bytes;
use catalog::{Definition, Dependency, Head, Index, Origin, Outcome, Package, ServedVersion};
use oci::layer::LayerWriter;
use oci::{Descriptor, Digest, Identifier, Index as Children, Manifest, MediaType, Platform, Raw};
use std::io::Write as _;
use store::{Memory, Store};
use tempfile::TempDir;

/// An index in a directory that goes with it.
pub(crate) struct Kept {
    pub(crate) index: Index,
    pub(crate) directory: TempDir,
}

impl Kept {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let index = Index::open(&directory.path().join("catalog.db")).unwrap();
        Self { index, directory }
    }

    /// Lets a repository have these, and reads what is not known.
    pub(crate) fn follow(&self, repository: &str, heads: &[Head], known: impl Fn(&str) -> Outcome) {
        for digest in self.index.settle(repository, heads).unwrap() {
            self.index.learn(&digest, &known(&digest)).unwrap();
        }
    }
}

pub(crate) fn head(digest: &str, tags: &[&str]) -> Head {
    let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    Head { digest: digest.to_owned(), tags, is_damaged: false }
}

pub(crate) fn definition(plural: &str, kind: &str, group: &str, versions: &[&str]) -> Definition {
    let version = |name: &&str| ServedVersion {
        name: (*name).to_owned(),
        served: true,
        storage: *name == versions[0],
        deprecated: false,
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
        versions: versions.iter().map(version).collect(),
    }
}

pub(crate) fn provider(name: &str, definitions: Vec<Definition>) -> Package {
    Package {
        kind: "Provider".to_owned(),
        dialect: "meta.pkg.crossplane.io/v1".to_owned(),
        name: name.to_owned(),
        definitions,
        ..Package::default()
    }
}

pub(crate) fn needing(package: Package, needs: &str, version: &str) -> Package {
    let dependency = Dependency {
        kind: "Provider".to_owned(),
        package: needs.to_owned(),
        version: version.to_owned(),
    };
    Package { dependencies: vec![dependency], ..package }
}

pub(crate) fn read(package: Package) -> Outcome {
    Outcome::Package(Box::new(package))
}

/// A repository in memory with an image whose layer has this file.
pub(crate) async fn image(file: &str, text: &[u8], is_marked: bool) -> (Memory, Raw) {
    image_of(&[(file, text)], is_marked).await
}

/// The same with several files.
pub(crate) async fn image_of(files: &[(&str, &[u8])], is_marked: bool) -> (Memory, Raw) {
    let memory = Memory::new();
    let mut writer = LayerWriter::new(Vec::new()).unwrap();
    for (file, text) in files {
        writer.start_file(file, text.len() as u64).unwrap();
        writer.write_all(text).unwrap();
    }
    let (bytes, written) = writer.finish().unwrap();
    let mut layer = written.descriptor;
    memory.put_blob(&layer, &Bytes::from(bytes)).await.unwrap();
    if is_marked {
        layer.annotations.insert("io.crossplane.xpkg".to_owned(), "base".to_owned());
    }
    let raw = manifest(&memory, vec![layer]).await;
    (memory, raw)
}

pub(crate) async fn manifest(memory: &Memory, layers: Vec<Descriptor>) -> Raw {
    let config = Bytes::from_static(
        br#"{"os":"linux","architecture":"arm64","created":"2026-01-02T03:04:05Z"}"#,
    );
    let described = Descriptor::of(MediaType::DOCKER_CONFIG, &config);
    memory.put_blob(&described, &config).await.unwrap();
    let raw = Raw::from_manifest(&Manifest::docker(described, layers)).unwrap();
    put(memory, &raw).await;
    raw
}

pub(crate) async fn index_of(memory: &Memory, image: &Raw) -> Raw {
    let child = |arch: &str| {
        let platform = Platform {
            os: "linux".to_owned(),
            architecture: arch.to_owned(),
            ..Platform::linux_amd64()
        };
        Descriptor { platform: Some(platform), ..image.descriptor() }
    };
    let raw = Raw::from_index(&Children::oci(vec![child("arm64"), child("amd64")])).unwrap();
    put(memory, &raw).await;
    raw
}

async fn put(memory: &Memory, raw: &Raw) {
    memory.put_manifest(&Identifier::Digest(raw.digest.clone()), raw).await.unwrap();
}

pub(crate) async fn look(
    store: &dyn Store,
    digest: &Digest,
) -> Result<Outcome, catalog::Incomplete> {
    let temporary = tempfile::tempdir().unwrap();
    catalog::read(store, digest, temporary.path()).await
}
