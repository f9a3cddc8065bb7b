//! A store in memory: for tests, and for building images nobody has to see on a disk.

use crate::error::Cause;
use crate::verify::{check, check_digest};
use crate::{Blob, Error, Source, Store, names};
use async_trait::async_trait;
use bytes::Bytes;
use oci::{Descriptor, Digest, Identifier, Raw};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A repository in memory.
#[derive(Debug, Default)]
pub struct Memory {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    blobs: BTreeMap<Digest, Bytes>,
    manifests: BTreeMap<Digest, Raw>,
    tags: BTreeMap<String, Digest>,
}

impl Memory {
    /// An empty repository.
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one insertion, so a panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for Memory {
    fn place(&self) -> String {
        "memory".to_owned()
    }

    async fn manifest(&self, id: &Identifier) -> Result<Option<Raw>, Error> {
        let state = self.state();
        let digest = match id {
            Identifier::Digest(digest) => Some(digest),
            Identifier::Tag(tag) => state.tags.get(tag),
        };
        Ok(digest.and_then(|digest| state.manifests.get(digest)).cloned())
    }

    async fn blob(&self, descriptor: &Descriptor) -> Result<Option<Blob>, Error> {
        let bytes = self.state().blobs.get(&descriptor.digest).cloned();
        Ok(bytes.map(|bytes| crate::verify::verify(Blob::from_bytes(bytes).stream, descriptor)))
    }

    async fn has_blob(&self, digest: &Digest) -> Result<bool, Error> {
        Ok(self.state().blobs.contains_key(digest))
    }

    async fn put_blob(&self, descriptor: &Descriptor, source: &dyn Source) -> Result<(), Error> {
        let failed = |cause| Error::PutBlob {
            place: self.place(),
            digest: descriptor.digest.clone(),
            cause,
        };
        let blob = source.open().await?;
        let bytes = blob.bytes(descriptor.size).await.map_err(failed)?;
        check(&bytes, descriptor).map_err(failed)?;
        self.state().blobs.insert(descriptor.digest.clone(), bytes);
        Ok(())
    }

    async fn put_manifest(&self, id: &Identifier, raw: &Raw) -> Result<(), Error> {
        let mut state = self.state();
        match id {
            Identifier::Digest(digest) => {
                check_digest(&raw.bytes, digest).map_err(|cause: Cause| Error::PutManifest {
                    place: self.place(),
                    id: id.to_string(),
                    cause,
                })?;
                state.manifests.insert(digest.clone(), raw.clone());
            }
            Identifier::Tag(tag) => {
                state.tags.insert(tag.clone(), raw.digest.clone());
            }
        }
        state.manifests.insert(raw.digest.clone(), raw.clone());
        Ok(())
    }

    async fn tags(&self) -> Result<Vec<String>, Error> {
        Ok(self.state().tags.keys().cloned().collect())
    }

    async fn referrers(
        &self,
        digest: &Digest,
        artifact_type: Option<&str>,
    ) -> Result<Vec<Descriptor>, Error> {
        let refers = |raw: &&Raw| names::subject(raw).is_some_and(|each| each.digest == *digest);
        let state = self.state();
        let found = state.manifests.values().filter(refers).map(names::describe);
        Ok(found.filter(|each| names::is_of_type(each, artifact_type)).collect())
    }
}
