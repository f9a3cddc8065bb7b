//! Scrubbing: reading every blob again, to find what the disk has lost.
//!
//! A damaged blob is moved to `quarantine/` and answered with 404 from then on: no bytes are
//! better than wrong ones. Pushing it again heals every repository that had it.

use super::{Registry, blocking};
use crate::error::Error;
use crate::limits::COLLECT_BATCH;
use crate::observe::Event;
use oci::Digest;

/// What scrubbing found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// Blobs read.
    pub blobs: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Blobs that are damaged or missing, now out of service.
    pub damaged: Vec<Digest>,
}

impl Registry {
    /// Reads every blob and takes damaged ones out of service.
    pub async fn scrub(&self) -> Result<Scrubbed, Error> {
        let mut result = Scrubbed::default();
        let mut last = String::new();
        loop {
            let after = last.clone();
            let batch = self.ask(move |inner| inner.metadata.blobs(&after, COLLECT_BATCH)).await?;
            let Some((end, _)) = batch.last() else { return Ok(result) };
            last = end.to_string();
            for (digest, size) in batch {
                result.blobs = result.blobs.saturating_add(1);
                result.bytes = result.bytes.saturating_add(size);
                if !self.is_whole(&digest, size).await? && self.condemn(&digest, size).await? {
                    result.damaged.push(digest);
                }
            }
        }
    }

    async fn is_whole(&self, digest: &Digest, size: u64) -> Result<bool, Error> {
        let (registry, digest) = (self.clone(), digest.clone());
        blocking(move || registry.is_whole_here(&digest, size)).await
    }

    fn is_whole_here(&self, digest: &Digest, size: u64) -> Result<bool, Error> {
        let Some(source) = self.inner.content.open(digest)? else { return Ok(false) };
        Ok(source.size()? == size && source.hash(digest.algorithm(), size)? == *digest)
    }

    /// Takes a blob out of service, unless it was healed or collected meanwhile.
    async fn condemn(&self, digest: &Digest, size: u64) -> Result<bool, Error> {
        let (registry, digest) = (self.clone(), digest.clone());
        blocking(move || {
            let held = registry.inner.metadata.hold(&digest)?;
            if registry.is_whole_here(&digest, size)? {
                return Ok(false);
            }
            let condemned = registry.inner.metadata.condemn(&digest)?;
            registry.forget_manifests();
            registry.inner.content.quarantine(&digest)?;
            drop(held);
            registry.view_later();
            let is_known = condemned.is_some();
            for repository in condemned.into_iter().flatten() {
                registry.tell(Event::Damaged { repository, digest: digest.clone() });
            }
            Ok(is_known)
        })
        .await
    }
}
