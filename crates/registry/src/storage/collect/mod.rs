//! Collecting what nothing refers to, while pushes and pulls go on.
//!
//! The database decides, files follow. A blob of a repository goes when no manifest there names
//! it and its lease is over; a blob's file goes when no repository has it and it is no manifest.
//! Every removal is decided again inside the transaction that makes it, which happens between
//! other changes: a push that came first has renewed the lease, and a push that
//! comes later finds the blob gone and sends it again. Only a file and its row need more, the
//! digest's mutex, because a file is not part of a transaction.

#[cfg(test)]
mod tests;

use super::metadata::Entry;
use super::{Registry, blocking, millis};
use crate::error::Error;
use crate::limits::COLLECT_BATCH;
use crate::observe::Event;
use futures::{StreamExt, TryStreamExt, stream};
use oci::{Algorithm, Digest};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Removals under way at once; they share commits.
const PARALLEL: usize = 16;

/// What to collect.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Collect {
    /// Also manifests that have had no tag, no index that names them and no subject for this
    /// long; they are kept otherwise, for somebody may pin them by digest.
    pub untagged_after: Option<Duration>,
    /// Only count.
    pub dry_run: bool,
    /// Also blobs that a client has seen a moment ago: pushes under way may have to begin again.
    pub ignore_lease: bool,
}

/// What was collected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collected {
    /// Manifests without a tag.
    pub manifests: u64,
    /// Blobs that a repository no longer has.
    pub links: u64,
    /// Blobs whose bytes are gone.
    pub blobs: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Files that nothing knew of.
    pub orphans: u64,
    /// Uploads nobody continued.
    pub uploads: u64,
}

impl Registry {
    /// Collects garbage. Safe at any time; nothing waits for it for longer than one small step.
    pub async fn collect(&self, what: &Collect) -> Result<Collected, Error> {
        let mut done = Collected::default();
        if let Some(age) = what.untagged_after {
            done.manifests = self.collect_manifests(age, what.dry_run).await?;
        }
        // With time to spare all leases are over.
        let at = if what.ignore_lease { i64::MAX } else { self.now() };
        done.links = self.collect_links(at, what.dry_run).await?;
        (done.blobs, done.bytes) = self.collect_blobs(what.dry_run).await?;
        done.orphans = self.collect_orphans(what.dry_run).await?;
        if !what.dry_run {
            done.uploads = self.expire_uploads().await?;
        }
        Ok(done)
    }

    async fn collect_manifests(&self, age: Duration, dry: bool) -> Result<u64, Error> {
        let limit = self.now().saturating_sub(millis(age));
        let found = self.untagged(limit).await?;
        if dry {
            return Ok(found.len() as u64);
        }
        let mut count = 0_u64;
        for it in found {
            if self.collect_manifest(&it, limit).await? {
                count = count.saturating_add(1);
                self.forget_manifests();
                self.tell(Event::Deleted { repository: it.repository, digest: it.digest });
            }
        }
        self.view_later();
        Ok(count)
    }

    /// Manifests nothing leads to, pushed before `limit`.
    async fn untagged(&self, limit: i64) -> Result<Vec<Entry>, Error> {
        self.ask(move |inner| inner.metadata.untagged(limit)).await
    }

    /// Deletes a manifest unless something leads to it meanwhile, or it was pushed again.
    async fn collect_manifest(&self, it: &Entry, limit: i64) -> Result<bool, Error> {
        let (it, lease) = (it.clone(), self.lease());
        self.change(move |metadata| metadata.collect_manifest(&it, limit, lease)).await
    }

    async fn collect_links(&self, at: i64, dry: bool) -> Result<u64, Error> {
        let found = self.loose_links(at).await?;
        if dry {
            return Ok(found.len() as u64);
        }
        let mut count = 0_u64;
        for batch in found.chunks(COLLECT_BATCH) {
            count = count.saturating_add(self.unlink(batch.to_vec(), at).await?);
        }
        Ok(count)
    }

    /// Blobs that no manifest of their repository names and whose lease is over at that time.
    async fn loose_links(&self, at: i64) -> Result<Vec<Entry>, Error> {
        self.ask(move |inner| inner.metadata.loose(at)).await
    }

    async fn unlink(&self, batch: Vec<Entry>, at: i64) -> Result<u64, Error> {
        self.change(move |metadata| metadata.unlink(batch, at)).await
    }

    async fn collect_blobs(&self, dry: bool) -> Result<(u64, u64), Error> {
        let found = self.ask(|inner| inner.metadata.unused()).await?;
        if dry {
            let bytes = found.iter().map(|(_, size)| size).sum();
            return Ok((found.len() as u64, bytes));
        }
        let sizes: Vec<u64> = stream::iter(found)
            .map(|(digest, size)| async move {
                let removed = self.collect_blob(digest).await?;
                Ok::<_, Error>(removed.then_some(size))
            })
            .buffer_unordered(PARALLEL)
            .try_filter_map(|size| async move { Ok(size) })
            .try_collect()
            .await?;
        Ok((sizes.len() as u64, sizes.iter().sum()))
    }

    /// Removes a blob unless somebody took it up meanwhile: its row first, then its file.
    async fn collect_blob(&self, digest: Digest) -> Result<bool, Error> {
        let registry = self.clone();
        blocking(move || {
            let held = registry.inner.metadata.hold(&digest)?;
            let removed = registry.inner.metadata.collect_blob(&digest)?;
            if removed {
                registry.inner.content.remove(&digest)?;
            }
            drop(held);
            Ok(removed)
        })
        .await
    }

    /// Removes files a crash left without a row.
    async fn collect_orphans(&self, dry: bool) -> Result<u64, Error> {
        let mut count = 0_u64;
        for algorithm in [Algorithm::Sha256, Algorithm::Sha512] {
            let content = self.inner.content.clone();
            let all = blocking(move || content.list(algorithm)).await?;
            for batch in all.chunks(COLLECT_BATCH) {
                for digest in self.unknown(batch.to_vec()).await? {
                    let is_gone = dry || self.collect_orphan(digest).await?;
                    count = count.saturating_add(u64::from(is_gone));
                }
            }
        }
        Ok(count)
    }

    async fn collect_orphan(&self, digest: Digest) -> Result<bool, Error> {
        let registry = self.clone();
        blocking(move || {
            // Whoever gives a file its row holds the digest from before the file has its name.
            let held = registry.inner.metadata.hold(&digest)?;
            let orphan = registry.inner.metadata.is_orphan(&digest)?;
            if orphan {
                registry.inner.content.remove(&digest)?;
            }
            drop(held);
            Ok(orphan)
        })
        .await
    }

    /// Those of some digests that the database does not know.
    async fn unknown(&self, digests: Vec<Digest>) -> Result<Vec<Digest>, Error> {
        self.ask(move |inner| inner.metadata.unknown(digests)).await
    }
}
