//! Blobs: looking them up, reading, mounting, deleting.

use super::content::{Content, Source};
use super::metadata::Mount;
use super::{Registry, millis};
use crate::error::Error;
use crate::name::Name;
use crate::observe::Event;
use oci::Digest;

/// Repositories an anonymous mount looks at.
const MOUNT_CANDIDATES_MAX: usize = 100;

/// A blob, open for reading.
pub(crate) struct OpenBlob {
    pub(crate) source: Source,
    pub(crate) size: u64,
}

impl Registry {
    /// The size of a blob. A client that is told of a blob has a lease's time to push a manifest
    /// that names it.
    pub async fn blob_size(&self, name: &Name, digest: &Digest) -> Result<u64, Error> {
        let (repository, wanted) = (name.clone(), digest.clone());
        let found = self.ask(move |inner| inner.metadata.blob(&repository, &wanted)).await?;
        let half = millis(self.inner.settings.lease) / 2;
        if !found.used && found.lease < self.now().saturating_add(half) {
            self.extend_lease(name, digest).await?;
        }
        Ok(found.size)
    }

    /// Opens a blob.
    pub(crate) async fn open_blob(&self, name: &Name, digest: &Digest) -> Result<OpenBlob, Error> {
        let (name, digest) = (name.clone(), digest.clone());
        self.ask(move |inner| {
            inner.metadata.blob(&name, &digest)?;
            let source = inner.content.open(&digest)?.ok_or(Error::BlobUnknown(digest))?;
            Ok(OpenBlob { size: source.size()?, source })
        })
        .await
    }

    /// Lets a repository have a blob of another one that `readable` allows to look at; without
    /// `from`, of any. `false` if there is none.
    pub(crate) async fn mount(
        &self,
        name: &Name,
        digest: &Digest,
        from: Option<&Name>,
        readable: impl Fn(&Name) -> bool,
    ) -> Result<bool, Error> {
        let candidates = match from {
            Some(from) => vec![from.clone()],
            None => self.holders(digest).await?,
        };
        let Some(from) = candidates.into_iter().find(readable) else { return Ok(false) };
        let (to, blob, lease) = (name.clone(), digest.clone(), self.lease());
        let mount = Mount { from, to, digest: blob, lease, quota: self.inner.settings.quota };
        let mounted = self.change(move |metadata| metadata.mount(mount)).await?;
        self.view_later();
        if mounted {
            let (repository, digest) = (name.clone(), digest.clone());
            self.tell(Event::Completed { repository, digest });
        }
        Ok(mounted)
    }

    /// Takes a blob out of a repository; its bytes are collected later.
    pub async fn delete_blob(&self, name: &Name, digest: &Digest) -> Result<(), Error> {
        let (name, digest) = (name.clone(), digest.clone());
        self.change(move |metadata| metadata.delete_blob(&name, &digest)).await
    }

    async fn extend_lease(&self, name: &Name, digest: &Digest) -> Result<(), Error> {
        let (name, digest, lease) = (name.clone(), digest.clone(), self.lease());
        self.change(move |metadata| metadata.renew_lease(&name, &digest, lease)).await
    }

    /// Repositories that have a blob.
    pub(crate) async fn holders(&self, digest: &Digest) -> Result<Vec<Name>, Error> {
        let digest = digest.clone();
        self.ask(move |inner| inner.metadata.holders(&digest, MOUNT_CANDIDATES_MAX)).await
    }

    /// Reads a blob's bytes entirely; for manifests, which are small.
    pub(super) fn read_small(content: &dyn Content, digest: &Digest) -> Result<Vec<u8>, Error> {
        let unknown = || Error::BlobUnknown(digest.clone());
        let bytes = content.open(digest)?.ok_or_else(unknown)?.read_all()?;
        if digest.matches(&bytes) { Ok(bytes) } else { Err(unknown()) }
    }

    /// Removes a file that got its name but no row, because the change was refused, and for good.
    /// The caller holds the digest.
    pub(super) fn drop_unknown_file(&self, digest: &Digest) {
        if matches!(self.inner.metadata.is_orphan(digest), Ok(true)) {
            // What cannot be removed now is collected later.
            let _ = self.inner.content.remove(digest);
        }
    }
}
