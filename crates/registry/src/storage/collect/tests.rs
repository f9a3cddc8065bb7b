//! Every order in which the steps of a client and of a collection can happen, against the real
//! storage and over each kind of metadata. A collection decides on what it read a moment ago; whatever a client was told in
//! between must stay true.

use super::*;
use crate::storage::alone::Alone;
use crate::storage::content::files::Files;
use crate::storage::metadata::Metadata;
use crate::storage::metadata::memory::Memory;
use crate::storage::metadata::sqlite::Sqlite;
use crate::storage::{Holder, Push, Selector, Settings, now};
use crate::{Error, Name, Tag};
use bytes::Bytes;
use oci::{Descriptor, Manifest, MediaType, Raw};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

const OLD: Duration = Duration::from_secs(60);

/// A collection that stops after each of its steps.
#[derive(Default)]
struct Collector {
    step: usize,
    manifests: Vec<Entry>,
    links: Vec<Entry>,
    blobs: Vec<(Digest, u64)>,
    files: Vec<Digest>,
}

/// The steps of a collection: look and act, four times.
const STEPS: usize = 8;

impl Collector {
    async fn go_on(&mut self, registry: &Registry) {
        let limit = registry.now() - millis(OLD);
        match self.step {
            0 => self.manifests = registry.untagged(limit).await.unwrap(),
            1 => {
                for it in std::mem::take(&mut self.manifests) {
                    registry.collect_manifest(&it, limit).await.unwrap();
                }
            }
            2 => self.links = registry.loose_links(registry.now()).await.unwrap(),
            3 => drop(
                registry.unlink(std::mem::take(&mut self.links), registry.now()).await.unwrap(),
            ),
            4 => self.blobs = registry.inner.metadata.unused().unwrap(),
            5 => {
                for (digest, _) in std::mem::take(&mut self.blobs) {
                    registry.collect_blob(digest).await.unwrap();
                }
            }
            6 => self.files = registry.inner.content.list(Algorithm::Sha256).unwrap(),
            _ => {
                for digest in registry.unknown(std::mem::take(&mut self.files)).await.unwrap() {
                    registry.collect_orphan(digest).await.unwrap();
                }
            }
        }
        self.step += 1;
    }
}

/// What a client does, in two steps: what it learns in the first it relies on in the second.
#[derive(Clone, Copy, Debug)]
enum Client {
    /// Uploads the blob, pushes a manifest with it.
    Upload,
    /// Sees that the blob is there, pushes a manifest with it.
    Head,
    /// Mounts the blob into another repository, pushes a manifest with it there.
    Mount,
    /// Sees the old manifest, gives it a tag.
    Tag,
    /// Pushes the old manifest again, by its digest, and pulls it.
    PushAgain,
    /// Deletes the old manifest, pushes it again.
    Delete,
    /// Sees the old manifest, pushes an index of it.
    Index,
}

const CLIENTS: [Client; 7] = [
    Client::Upload,
    Client::Head,
    Client::Mount,
    Client::Tag,
    Client::PushAgain,
    Client::Delete,
    Client::Index,
];

/// Makes metadata of one kind, in a file if it needs one.
type Kind = fn(&Path) -> Arc<dyn Metadata>;

const KINDS: [Kind; 2] =
    [|path| Arc::new(Sqlite::open(path).unwrap()), |_| Arc::new(Memory::default())];

const CONTENT: &[u8] = b"a blob nothing refers to";

struct World {
    _directory: tempfile::TempDir,
    registry: Registry,
    old: Raw,
    /// What must be there in the end.
    kept: Vec<(Name, Digest)>,
    /// What the first step found.
    found: bool,
}

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn manifest(content: &[u8]) -> Raw {
    let config = Descriptor::of(MediaType::OCI_CONFIG, content);
    let mut manifest = Manifest::docker(config, Vec::new());
    manifest.media_type = MediaType::OCI_MANIFEST;
    Raw::from_manifest(&manifest).unwrap()
}

async fn upload(registry: &Registry, content: &'static [u8]) {
    let begun =
        registry.begin_upload(&name("a"), &Holder::new("", None), Algorithm::Sha256).await.unwrap();
    let body = Box::pin(stream::iter([Ok(Bytes::from_static(content))]));
    registry.complete(begun, body, None, &Digest::of(content)).await.unwrap();
}

impl World {
    /// A blob nothing refers to and a manifest without a tag, both past their time.
    async fn new(kind: Kind) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::new(directory.path());
        files.prepare().unwrap();
        let lock = Alone::in_directory(&files).unwrap();
        let metadata = kind(&files.database());
        // Everything here happens long ago, until it is there.
        let ago = Arc::new(AtomicI64::new(millis(Settings::default().lease) * 2));
        let past = ago.clone();
        let clock = Box::new(move || now() - past.load(Ordering::Relaxed));
        let registry = Registry::in_directory(files, lock, metadata, Settings::default(), clock);
        let registry = registry.unwrap();
        upload(&registry, CONTENT).await;
        upload(&registry, b"{}").await;
        let old = manifest(b"{}");
        let mut world =
            Self { _directory: directory, registry, old, kept: Vec::new(), found: false };
        let raw = world.old.clone();
        world.push("a", &raw, None).await.unwrap();
        world.kept.clear();
        ago.store(0, Ordering::Relaxed);
        world
    }

    async fn push(&mut self, repository: &str, raw: &Raw, tag: Option<&str>) -> Result<(), Error> {
        let push = Push {
            repository: name(repository),
            digest: Some(raw.digest.clone()),
            tags: tag.into_iter().map(|tag| Tag::parse(tag).unwrap()).collect(),
            media_type: raw.media_type.to_string(),
            bytes: raw.bytes.clone().into(),
        };
        let pushed = self.registry.push(push).await?;
        self.kept.push((name(repository), pushed.digest));
        Ok(())
    }

    async fn first(&mut self, client: Client) {
        let (blob, old) = (Digest::of(CONTENT), self.old.clone());
        let seen = Selector::Digest(old.digest.clone());
        match client {
            Client::Upload => {
                upload(&self.registry, CONTENT).await;
                self.found = true;
            }
            Client::Head => self.found = self.registry.blob_size(&name("a"), &blob).await.is_ok(),
            Client::Mount => {
                let (there, here) = (name("b"), name("a"));
                let mount = self.registry.mount(&there, &blob, Some(&here), |_| true);
                self.found = mount.await.unwrap();
            }
            Client::Tag | Client::Index => {
                self.found = self.registry.manifest(&name("a"), &seen).await.is_ok();
            }
            // The blob of the old manifest may be gone already; then there is nothing to rely on.
            Client::PushAgain => self.found = self.push("a", &old, None).await.is_ok(),
            Client::Delete => {
                self.found = self.registry.delete_manifest(&name("a"), &seen).await.is_ok();
            }
        }
    }

    async fn second(&mut self, client: Client) {
        if !self.found {
            return;
        }
        let (fresh, old) = (manifest(CONTENT), self.old.clone());
        match client {
            Client::Upload | Client::Head => self.push("a", &fresh, Some("t")).await.unwrap(),
            Client::Mount => self.push("b", &fresh, Some("t")).await.unwrap(),
            // A manifest that was seen may be collected; its blobs have a lease, so that pushing
            // it again cannot fail for want of them.
            Client::Tag | Client::Delete => self.push("a", &old, Some("t")).await.unwrap(),
            Client::Index => {
                let index = Raw::from_index(&oci::Index::oci(vec![old.descriptor()])).unwrap();
                match self.push("a", &index, Some("t")).await {
                    Ok(()) => self.kept.push((name("a"), old.digest)),
                    Err(Error::ManifestBlobUnknown(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            Client::PushAgain => {
                let seen = Selector::Digest(old.digest.clone());
                self.registry.manifest(&name("a"), &seen).await.unwrap();
            }
        }
    }

    /// Everything the client was told is there, with all it names; nothing is left over.
    async fn check(&self, when: &str) {
        self.registry.collect(&Collect::default()).await.unwrap();
        for (repository, digest) in &self.kept {
            let selector = Selector::Digest(digest.clone());
            let found = self.registry.manifest(repository, &selector).await;
            let found = found.unwrap_or_else(|error| panic!("{when}: {error}"));
            let raw = Raw::parse(found.bytes.to_vec(), &MediaType::new(&found.media_type)).unwrap();
            for child in raw.manifest().iter().map(|it| &it.config) {
                let size = self.registry.blob_size(repository, &child.digest).await;
                assert_eq!(size.ok(), Some(child.size), "{when}: {}", child.digest);
            }
        }
        assert_eq!(self.registry.scrub().await.unwrap().damaged, [], "{when}");
        let files = self.registry.inner.content.list(Algorithm::Sha256).unwrap();
        assert_eq!(self.registry.unknown(files).await.unwrap(), [], "{when}");
        let lists = self.registry.tags(&name("a"), "", 1).await;
        assert!(lists.is_ok(), "{when}: {lists:?}");
    }
}

/// Every way to put a client's two steps before, between and after those of a collection.
async fn all_orders(client: Client, kind: Kind) -> usize {
    let mut orders = 0;
    for first in 0..=STEPS {
        for second in first..=STEPS {
            let (mut world, mut collector) = (World::new(kind).await, Collector::default());
            let registry = world.registry.clone();
            for step in 0..=STEPS {
                if step == first {
                    world.first(client).await;
                }
                if step == second {
                    world.second(client).await;
                }
                if step < STEPS {
                    collector.go_on(&registry).await;
                }
            }
            world.check(&format!("{client:?} before {first} and {second}")).await;
            orders += 1;
        }
    }
    orders
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_order_of_steps_takes_away_what_a_client_was_told() {
    let mut orders = 0;
    for kind in KINDS {
        for client in CLIENTS.map(|client| tokio::spawn(all_orders(client, kind))) {
            orders += client.await.unwrap();
        }
    }
    println!("{orders} orders of steps");
    assert_eq!(orders, KINDS.len() * CLIENTS.len() * 45);
}
