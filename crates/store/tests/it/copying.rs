//! Copies: order, what is skipped, what is mounted, what is refused.

use crate::registry::{Kind, Registry, client};
use crate::{chain, hold, tag};
use async_trait::async_trait;
use oci::{Descriptor, Digest, Identifier, Index, Manifest, MediaType, Platform, Raw};
use std::sync::{Arc, Mutex};
use store::auth::Keychain;
use store::{
    Advice, Blob, CopyOptions, Error, How, Layout, Memory, Progress, Source, Store, suite,
};

async fn transfer(source: &dyn Store, from: &str, sink: &dyn Store, to: &str) -> store::Copied {
    let options = CopyOptions::new();
    store::copy(source, &tag(from), sink, &tag(to), &options, Arc::new(())).await.unwrap()
}

/// A memory store with an index of two platforms under `multi`.
async fn multi() -> (Memory, Raw) {
    let memory = Memory::new();
    let mut children = Vec::new();
    for architecture in ["amd64", "arm64"] {
        let raw = suite::image(&memory, architecture).await.unwrap();
        memory.put_manifest(&Identifier::Digest(raw.digest.clone()), &raw).await.unwrap();
        let mut descriptor = raw.descriptor();
        descriptor.platform = Some(Platform::new("linux", architecture));
        children.push(descriptor);
    }
    let index = Raw::from_index(&Index::oci(children)).unwrap();
    memory.put_manifest(&tag("multi"), &index).await.unwrap();
    (memory, index)
}

/// Writes down what is put, in order.
#[derive(Default)]
struct Diary {
    inner: Memory,
    lines: Mutex<Vec<String>>,
}

impl Diary {
    fn note(&self, line: String) {
        self.lines.lock().unwrap().push(line);
    }
}

#[async_trait]
impl Store for Diary {
    fn place(&self) -> String {
        "diary".to_owned()
    }
    async fn manifest(&self, id: &Identifier) -> Result<Option<Raw>, Error> {
        self.inner.manifest(id).await
    }
    async fn blob(&self, descriptor: &Descriptor) -> Result<Option<Blob>, Error> {
        self.inner.blob(descriptor).await
    }
    async fn has_blob(&self, digest: &Digest) -> Result<bool, Error> {
        self.inner.has_blob(digest).await
    }
    async fn put_blob(&self, descriptor: &Descriptor, source: &dyn Source) -> Result<(), Error> {
        self.note(format!("blob {}", descriptor.media_type));
        self.inner.put_blob(descriptor, source).await
    }
    async fn put_manifest(&self, id: &Identifier, raw: &Raw) -> Result<(), Error> {
        self.note(format!("manifest {id}"));
        self.inner.put_manifest(id, raw).await
    }
    async fn tags(&self) -> Result<Vec<String>, Error> {
        self.inner.tags().await
    }
    async fn referrers(
        &self,
        digest: &Digest,
        kind: Option<&str>,
    ) -> Result<Vec<Descriptor>, Error> {
        self.inner.referrers(digest, kind).await
    }
}

#[tokio::test]
async fn everything_is_there_before_it_is_named() {
    let (memory, index) = multi().await;
    let diary = Diary::default();
    let copied = transfer(&memory, "multi", &diary, "v1").await;
    assert_eq!((copied.digest, copied.blobs_copied), (index.digest.clone(), 4));
    let children: Vec<String> = index
        .index()
        .unwrap()
        .manifests
        .iter()
        .map(|it| format!("manifest {}", it.digest))
        .collect();
    let (layer, config) = (MediaType::DOCKER_LAYER, MediaType::DOCKER_CONFIG);
    let expected = [
        format!("blob {layer}"),
        format!("blob {config}"),
        children[0].clone(),
        format!("blob {layer}"),
        format!("blob {config}"),
        children[1].clone(),
        "manifest v1".to_owned(),
    ];
    assert_eq!(*diary.lines.lock().unwrap(), expected);
}

#[tokio::test]
async fn what_is_there_is_skipped() {
    let (memory, _) = multi().await;
    let directory = tempfile::tempdir().unwrap();
    let layout = Layout::create(directory.path()).await.unwrap();
    assert_eq!(transfer(&memory, "multi", &layout, "v1").await.blobs_copied, 4);
    let again = transfer(&memory, "multi", &layout, "v2").await;
    assert_eq!((again.blobs_copied, again.blobs_skipped, again.bytes), (0, 4, 0));
    // The index reaches its children, so index.json names only the index.
    assert_eq!(layout.manifests().await.unwrap().len(), 2);
}

#[tokio::test]
async fn what_is_missing_is_said() {
    let options = CopyOptions::new();
    let (source, sink) = (Memory::new(), Memory::new());
    let id = tag("v1");
    let error = store::copy(&source, &id, &sink, &id, &options, Arc::new(())).await.unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.advice()),
        ("manifest `v1` is not in memory", Advice::NotFound)
    );
    let lost = Descriptor::of(MediaType::DOCKER_CONFIG, b"lost");
    let raw = Raw::from_manifest(&Manifest::docker(lost, Vec::new())).unwrap();
    source.put_manifest(&id, &raw).await.unwrap();
    let error = store::copy(&source, &id, &sink, &id, &options, Arc::new(())).await.unwrap_err();
    assert!(error.to_string().starts_with("blob sha256:"), "{error}");
    assert!(sink.tags().await.unwrap().is_empty());
}

#[tokio::test]
async fn foreign_layers_stay_where_they_are() {
    let source = Memory::new();
    let raw = suite::image(&source, "text").await.unwrap();
    let mut manifest = raw.manifest().unwrap().clone();
    let mut foreign = Descriptor::of(MediaType::DOCKER_LAYER, b"somewhere else");
    foreign.urls.push("https://example.org/layer".to_owned());
    manifest.layers.push(foreign);
    let raw = Raw::from_manifest(&manifest).unwrap();
    source.put_manifest(&tag("v1"), &raw).await.unwrap();
    let copied = transfer(&source, "v1", &Memory::new(), "v1").await;
    assert_eq!((copied.blobs_copied, copied.blobs_skipped), (2, 1));
}

#[tokio::test]
async fn an_index_that_is_its_own_great_grandchild_ends() {
    let source = Memory::new();
    let mut raw = suite::image(&source, "leaf").await.unwrap();
    source.put_manifest(&Identifier::Digest(raw.digest.clone()), &raw).await.unwrap();
    for _ in 0..6 {
        raw = Raw::from_index(&Index::oci(vec![raw.descriptor()])).unwrap();
        source.put_manifest(&tag("deep"), &raw).await.unwrap();
    }
    let (options, id) = (CopyOptions::new(), tag("deep"));
    let outcome = store::copy(&source, &id, &Memory::new(), &id, &options, Arc::new(())).await;
    assert!(chain(&outcome.unwrap_err()).contains("nested too deeply"));
}

#[tokio::test]
async fn referrers_come_along_when_asked() {
    let (source, sink) = (Memory::new(), Memory::new());
    hold(suite::referrers_are_listed(&source).await);
    let (mut options, id) = (CopyOptions::new(), tag("subject"));
    options.referrers = true;
    let copied = store::copy(&source, &id, &sink, &id, &options, Arc::new(())).await.unwrap();
    assert_eq!(sink.referrers(&copied.digest, None).await.unwrap().len(), 2);
}

#[derive(Default)]
struct Watch(Mutex<Vec<(How, u64)>>, Mutex<u64>);

impl Progress for Watch {
    fn advanced(&self, _blob: &Descriptor, bytes: u64) {
        *self.1.lock().unwrap() += bytes;
    }
    fn finished(&self, blob: &Descriptor, how: How) {
        self.0.lock().unwrap().push((how, blob.size));
    }
}

#[tokio::test]
async fn neighbours_in_a_registry_hand_blobs_over() {
    let registry = Registry::start(Kind::Plain).await;
    let client = client(Keychain::anonymous());
    let (one, two) = (
        client.repository(registry.repository("one")),
        client.repository(registry.repository("two")),
    );
    let (memory, index) = multi().await;
    let watch = Arc::new(Watch::default());
    let (options, id) = (CopyOptions::new(), tag("multi"));
    let first = store::copy(&memory, &id, &one, &id, &options, watch.clone()).await.unwrap();
    assert_eq!((first.blobs_copied, *watch.1.lock().unwrap()), (4, first.bytes));
    let second = transfer(&one, "multi", &two, "v1").await;
    assert_eq!((second.blobs_mounted, second.blobs_copied, second.bytes), (4, 0, 0));
    assert_eq!(two.head(&tag("v1")).await.unwrap().unwrap().digest, index.digest);
    // And to another registry they are sent.
    let other = Registry::start(Kind::Plain).await;
    let third = transfer(&one, "multi", &client.repository(other.repository("x")), "v1").await;
    assert_eq!(third.blobs_copied, 4);
}

#[tokio::test]
async fn a_copy_may_run_in_a_task_of_its_own() {
    let (memory, index) = multi().await;
    let copied =
        tokio::spawn(async move { transfer(&memory, "multi", &Memory::new(), "v1").await });
    assert_eq!(copied.await.unwrap().digest, index.digest);
}

/// Puts an image that refers to another.
async fn refer(memory: &Memory, text: &str, subject: &Raw) -> Raw {
    let mut manifest = suite::image(memory, text).await.unwrap().manifest().unwrap().clone();
    manifest.subject = Some(subject.descriptor());
    let raw = Raw::from_manifest(&manifest).unwrap();
    memory.put_manifest(&Identifier::Digest(raw.digest.clone()), &raw).await.unwrap();
    raw
}

/// Puts an image under the tag where cosign looks for it.
async fn attach(memory: &Memory, subject: &Digest, suffix: &str) -> String {
    let raw = suite::image(memory, &format!("{suffix} of {subject}")).await.unwrap();
    let name = format!("sha256-{}.{suffix}", subject.hex());
    memory.put_manifest(&tag(&name), &raw).await.unwrap();
    name
}

#[tokio::test]
async fn signatures_under_tags_and_of_children_come_along_when_asked() {
    let (memory, index) = multi().await;
    let child = index.index().unwrap().manifests[1].digest.clone();
    let child_raw = memory.manifest(&Identifier::Digest(child.clone())).await.unwrap().unwrap();
    let of_child = refer(&memory, "bill of materials", &child_raw).await;
    let mut expected = vec!["v1".to_owned()];
    for suffix in ["sig", "att", "sbom"] {
        expected.push(attach(&memory, &index.digest, suffix).await);
    }
    expected.push(attach(&memory, &child, "sig").await);
    // What is attached may be signed itself.
    expected.push(attach(&memory, &of_child.digest, "sig").await);
    attach(&memory, &Digest::of(b"somebody else"), "sig").await;
    expected.sort();
    let (sink, mut options) = (Memory::new(), CopyOptions::new());
    options.referrers = true;
    let (from, to) = (tag("multi"), tag("v1"));
    store::copy(&memory, &from, &sink, &to, &options, Arc::new(())).await.unwrap();
    assert_eq!(sink.tags().await.unwrap(), expected);
    let found = sink.referrers(&child, None).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].digest, of_child.digest);
    // Otherwise they stay.
    let sink = Memory::new();
    transfer(&memory, "multi", &sink, "v1").await;
    assert_eq!(sink.tags().await.unwrap(), ["v1"]);
}
