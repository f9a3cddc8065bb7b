//! The one trait: a repository of blobs, manifests and tags.

use crate::{Blob, Error, Source};
use async_trait::async_trait;
use oci::{Descriptor, Digest, Identifier, Raw, Repository};

/// One repository of OCI content, wherever it lies.
///
/// Absence is an answer. Every blob stream is verified: it ends in an error if its bytes are not
/// those the descriptor promised.
#[async_trait]
pub trait Store: Send + Sync {
    /// A short name of the place, for messages.
    fn place(&self) -> String;

    /// The repository, if this store is one in a registry.
    fn repository(&self) -> Option<&Repository> {
        None
    }

    /// The manifest or index a tag or digest stands for.
    async fn manifest(&self, id: &Identifier) -> Result<Option<Raw>, Error>;

    /// What a tag or digest stands for, without its bytes.
    async fn head(&self, id: &Identifier) -> Result<Option<Descriptor>, Error> {
        Ok(self.manifest(id).await?.map(|raw| raw.descriptor()))
    }

    /// A blob as a verified stream.
    async fn blob(&self, descriptor: &Descriptor) -> Result<Option<Blob>, Error>;

    /// Whether a blob is there.
    async fn has_blob(&self, digest: &Digest) -> Result<bool, Error>;

    /// Stores a blob; afterwards it is there entirely, or not at all.
    async fn put_blob(&self, descriptor: &Descriptor, source: &dyn Source) -> Result<(), Error>;

    /// Takes a blob over from a neighbouring repository of the same registry; `false` if that
    /// cannot be done and the blob has to be put.
    async fn mount_blob(&self, _digest: &Digest, _from: &Repository) -> Result<bool, Error> {
        Ok(false)
    }

    /// Stores a manifest or index under a tag or under its digest. Its blobs and children should
    /// be there already.
    async fn put_manifest(&self, id: &Identifier, raw: &Raw) -> Result<(), Error>;

    /// All tags, sorted.
    async fn tags(&self) -> Result<Vec<String>, Error>;

    /// Manifests whose subject is this digest, optionally of one artifact type only.
    async fn referrers(
        &self,
        digest: &Digest,
        artifact_type: Option<&str>,
    ) -> Result<Vec<Descriptor>, Error>;
}
