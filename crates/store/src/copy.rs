//! From one store to another: blobs, config, manifest, and the tag last.
//!
//! The order is what makes a copy safe to interrupt: a manifest is put only when everything it
//! names is there, an index only after its children, a tag only at the very end. Copying again
//! skips what arrived the first time.

use crate::error::Unsupported;
use crate::{Blob, Cause, Error, Source, Store};
use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use oci::{Descriptor, Digest, Document, Identifier, Index, Manifest, Raw};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Manifests one copy may touch.
const MANIFESTS_MAX: usize = 1000;
/// Indexes within indexes.
const DEPTH_MAX: usize = 4;

/// What cosign keeps under tags like `sha256-HEX.sig`: signatures, attestations, bills of materials.
const COSIGN_SUFFIXES: [&str; 3] = ["sig", "att", "sbom"];

/// How to copy.
#[derive(Debug, Clone)]
pub struct CopyOptions {
    /// How many blobs may be on their way at once.
    pub parallel: usize,
    /// Also copy what is attached to the image and to its children: signatures and the like, whether
    /// they refer to it or cosign keeps them under tags.
    pub referrers: bool,
}

impl CopyOptions {
    /// Everything the tag stands for, four blobs at a time, without referrers.
    pub fn new() -> Self {
        Self { parallel: 4, referrers: false }
    }
}

impl Default for CopyOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// How a blob came to be in the sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Its bytes were sent.
    Copied,
    /// It was there already.
    Skipped,
    /// The registry took it over from another repository.
    Mounted,
}

/// Someone who watches a copy. All methods may be called from several tasks at once.
pub trait Progress: Send + Sync {
    /// A blob's bytes start to move (again, if an upload broke).
    fn started(&self, _blob: &Descriptor) {}
    /// So many more bytes of a blob have moved.
    fn advanced(&self, _blob: &Descriptor, _bytes: u64) {}
    /// A blob is in the sink.
    fn finished(&self, _blob: &Descriptor, _how: How) {}
}

/// Nobody watches.
impl Progress for () {}

/// What a copy did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// What the sink's tag or digest now stands for.
    pub digest: Digest,
    /// Blobs sent.
    pub blobs_copied: usize,
    /// Blobs that were there.
    pub blobs_skipped: usize,
    /// Blobs the registry took over from another repository.
    pub blobs_mounted: usize,
    /// Bytes of blobs sent.
    pub bytes: u64,
}

/// Copies what `id` stands for in `source` to `to` in `sink`.
pub async fn copy(
    source: &dyn Store,
    id: &Identifier,
    sink: &dyn Store,
    to: &Identifier,
    options: &CopyOptions,
    progress: Arc<dyn Progress>,
) -> Result<Copied, Error> {
    let job = Job::new(source, sink, options, progress);
    let raw = job.read(id).await?;
    job.run(raw, to).await
}

/// Puts a manifest at hand to `to` in `sink`, after what it names was copied from `source`.
pub async fn copy_as(
    source: &dyn Store,
    raw: &Raw,
    sink: &dyn Store,
    to: &Identifier,
    options: &CopyOptions,
    progress: Arc<dyn Progress>,
) -> Result<Copied, Error> {
    Job::new(source, sink, options, progress).run(raw.clone(), to).await
}

#[derive(Debug, Default)]
struct Tally {
    copied: usize,
    skipped: usize,
    mounted: usize,
    bytes: u64,
}

struct Job<'job> {
    source: &'job dyn Store,
    sink: &'job dyn Store,
    options: &'job CopyOptions,
    progress: Arc<dyn Progress>,
    manifests: AtomicUsize,
    /// Manifests that are in the sink by now, in the order they came.
    copied: Mutex<Vec<Digest>>,
    tally: Mutex<Tally>,
}

impl<'s> Job<'s> {
    fn new(
        source: &'s dyn Store,
        sink: &'s dyn Store,
        options: &'s CopyOptions,
        progress: Arc<dyn Progress>,
    ) -> Self {
        let (manifests, copied, tally) = (AtomicUsize::new(0), Mutex::default(), Mutex::default());
        Self { source, sink, options, progress, manifests, copied, tally }
    }

    async fn run(self, raw: Raw, to: &Identifier) -> Result<Copied, Error> {
        self.tree(&raw, to, 0).await?;
        if self.options.referrers {
            self.attachments().await?;
        }
        let tally = self.tally.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Copied {
            digest: raw.digest,
            blobs_copied: tally.copied,
            blobs_skipped: tally.skipped,
            blobs_mounted: tally.mounted,
            bytes: tally.bytes,
        })
    }

    async fn read(&self, id: &Identifier) -> Result<Raw, Error> {
        let found = self.source.manifest(id).await?;
        found.ok_or_else(|| Error::Missing {
            place: self.source.place(),
            what: format!("manifest `{id}`"),
        })
    }

    fn refused(&self, id: &Identifier, what: Unsupported) -> Error {
        Error::Manifest { place: self.source.place(), id: id.to_string(), cause: Cause::from(what) }
    }

    /// Copies a manifest with everything below it, and then itself.
    fn tree<'a>(
        &'a self,
        raw: &'a Raw,
        to: &'a Identifier,
        depth: usize,
    ) -> BoxFuture<'a, Result<(), Error>> {
        async move {
            let count = self.manifests.fetch_add(1, Ordering::Relaxed);
            if depth > DEPTH_MAX || count >= MANIFESTS_MAX {
                return Err(self.refused(to, Unsupported::Nesting(MANIFESTS_MAX)));
            }
            match &raw.document {
                Document::Manifest(manifest) => self.blobs(manifest).await?,
                Document::Index(index) => self.children(index, to, depth).await?,
            }
            self.sink.put_manifest(to, raw).await?;
            self.note_copied(&raw.digest);
            Ok(())
        }
        .boxed()
    }

    async fn children(&self, index: &Index, to: &Identifier, depth: usize) -> Result<(), Error> {
        if self.manifests.load(Ordering::Relaxed) + index.manifests.len() > MANIFESTS_MAX {
            return Err(self.refused(to, Unsupported::Nesting(MANIFESTS_MAX)));
        }
        for child in &index.manifests {
            let id = Identifier::Digest(child.digest.clone());
            let raw = self.read(&id).await?;
            self.tree(&raw, &id, depth + 1).await?;
        }
        Ok(())
    }

    /// Copies what is attached to any manifest that was copied: those that refer to it, and those
    /// that cosign keeps under tags made of its digest. What was copied so has attachments, too.
    async fn attachments(&self) -> Result<(), Error> {
        let mut looked_at = 0;
        while let Some(digest) = self.copied_manifest(looked_at) {
            looked_at += 1;
            for referrer in self.source.referrers(&digest, None).await? {
                self.attachment(&Identifier::Digest(referrer.digest)).await?;
            }
            for suffix in COSIGN_SUFFIXES {
                let tag = format!("{}-{}.{suffix}", digest.algorithm().as_str(), digest.hex());
                self.attachment(&Identifier::Tag(tag)).await?;
            }
        }
        Ok(())
    }

    /// Copies one attachment, if it is there and was not copied yet.
    async fn attachment(&self, id: &Identifier) -> Result<(), Error> {
        let raw = match id {
            Identifier::Digest(_) => Some(self.read(id).await?),
            Identifier::Tag(_) => self.source.manifest(id).await?,
        };
        match raw {
            // Under its tag it is put again, or the tag would be missing.
            Some(raw) if id.as_tag().is_some() || !self.is_copied(&raw.digest) => {
                self.tree(&raw, id, 1).await
            }
            _ => Ok(()),
        }
    }

    fn copied_manifest(&self, position: usize) -> Option<Digest> {
        let copied = self.copied.lock().unwrap_or_else(PoisonError::into_inner);
        copied.get(position).cloned()
    }

    fn is_copied(&self, digest: &Digest) -> bool {
        self.copied.lock().unwrap_or_else(PoisonError::into_inner).contains(digest)
    }

    fn note_copied(&self, digest: &Digest) {
        let mut copied = self.copied.lock().unwrap_or_else(PoisonError::into_inner);
        if !copied.contains(digest) {
            copied.push(digest.clone());
        }
    }

    /// Layers side by side, the config after them.
    async fn blobs(&self, manifest: &Manifest) -> Result<(), Error> {
        let mut layers: Vec<&Descriptor> = Vec::new();
        for layer in &manifest.layers {
            // An image may have the same layer twice; two uploads of it would race.
            if !layers.iter().any(|each| each.digest == layer.digest) {
                layers.push(layer);
            }
        }
        let mut transfers: Vec<BoxFuture<'_, Result<(), Error>>> = Vec::new();
        for layer in layers {
            transfers.push(self.blob(layer).boxed());
        }
        stream::iter(transfers)
            .buffer_unordered(self.options.parallel.max(1))
            .try_collect::<Vec<()>>()
            .await?;
        self.blob(&manifest.config).await
    }

    async fn blob(&self, descriptor: &Descriptor) -> Result<(), Error> {
        let how = self.move_blob(descriptor).await?;
        if let Ok(mut tally) = self.tally.lock() {
            match how {
                How::Copied => tally.copied += 1,
                How::Skipped => tally.skipped += 1,
                How::Mounted => tally.mounted += 1,
            }
            if how == How::Copied {
                tally.bytes += descriptor.size;
            }
        }
        self.progress.finished(descriptor, how);
        Ok(())
    }

    async fn move_blob(&self, descriptor: &Descriptor) -> Result<How, Error> {
        if self.sink.has_blob(&descriptor.digest).await? {
            return Ok(How::Skipped);
        }
        // Layers with URLs are meant to be had from there; registries need not have them.
        if !descriptor.urls.is_empty() && !self.source.has_blob(&descriptor.digest).await? {
            return Ok(How::Skipped);
        }
        if let Some(from) = self.neighbour()
            && self.sink.mount_blob(&descriptor.digest, from).await?
        {
            return Ok(How::Mounted);
        }
        let origin = Origin { job: self, descriptor };
        self.sink.put_blob(descriptor, &origin).await?;
        Ok(How::Copied)
    }

    /// The source repository, if it lies in the same registry as the sink.
    fn neighbour(&self) -> Option<&oci::Repository> {
        let (from, to) = (self.source.repository()?, self.sink.repository()?);
        (from.registry() == to.registry() && from.path() != to.path()).then_some(from)
    }
}

/// A blob of the source store, watched while it is read.
struct Origin<'origin> {
    job: &'origin Job<'origin>,
    descriptor: &'origin Descriptor,
}

#[async_trait]
impl Source for Origin<'_> {
    async fn open(&self) -> Result<Blob, Error> {
        let source = self.job.source;
        let blob = source.blob(self.descriptor).await?.ok_or_else(|| Error::Missing {
            place: source.place(),
            what: format!("blob {}", self.descriptor.digest),
        })?;
        self.job.progress.started(self.descriptor);
        let (progress, descriptor) = (Arc::clone(&self.job.progress), self.descriptor.clone());
        let watched = blob.stream.inspect_ok(move |chunk| {
            progress.advanced(&descriptor, chunk.len() as u64);
        });
        Ok(Blob { size: blob.size, stream: watched.boxed() })
    }
}
