//! Manifests: stored, tagged, read and deleted.

use super::cache::Size;
use super::metadata::{NewManifest, Recorded, Row};
use super::{Inner, Missing, Registry, Versions, blocking, uploads};
use crate::error::Error;
use crate::name::{Name, Selector, Tag};
use crate::observe::Event;
use bytes::Bytes;
use oci::{Digest, MediaType, Raw};
use std::sync::Arc;

/// A manifest as it was pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Its address.
    pub digest: Digest,
    /// What it is.
    pub media_type: String,
    /// Its bytes.
    pub bytes: Bytes,
}

impl Size for Manifest {
    fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// A manifest to be stored.
#[derive(Debug, Clone)]
pub struct Push {
    /// Where.
    pub repository: Name,
    /// The address it must have, if the client said.
    pub digest: Option<Digest>,
    /// The tags it shall have.
    pub tags: Vec<Tag>,
    /// What the client says it is; empty if it does not say.
    pub media_type: String,
    /// Its bytes.
    pub bytes: Bytes,
}

/// What a push is held to.
#[derive(Clone, Copy)]
struct Policy {
    missing: Missing,
    versions: Versions,
}

/// What was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// The manifest's address.
    pub digest: Digest,
    /// The manifest it refers to.
    pub subject: Option<Digest>,
}

impl Registry {
    /// The manifest that is meant.
    pub async fn manifest(&self, name: &Name, selector: &Selector) -> Result<Arc<Manifest>, Error> {
        let reference = selector.to_string();
        let epoch = match self.inner.cache.get(name, &reference) {
            Ok(found) => return Ok(found),
            Err(epoch) => epoch,
        };
        let (repository, wanted) = (name.clone(), selector.clone());
        let found = Arc::new(self.ask(move |inner| load(inner, &repository, &wanted)).await?);
        self.inner.cache.fill(name, &reference, &found, epoch);
        Ok(found)
    }

    /// Stores a manifest; when this returns, it and its tags are on the disk. Once begun it goes
    /// on to its end, even if whoever asked for it goes away.
    pub async fn push(&self, push: Push) -> Result<Pushed, Error> {
        let settings = &self.inner.settings;
        self.store(push, Policy { missing: settings.missing, versions: settings.versions }).await
    }

    /// Stores a manifest of another registry: what it names may come later, and what its tags
    /// mean is decided there.
    pub(crate) async fn push_mirrored(&self, push: Push) -> Result<Pushed, Error> {
        self.store(push, Policy { missing: Missing::Accept, versions: Versions::Move }).await
    }

    async fn store(&self, push: Push, policy: Policy) -> Result<Pushed, Error> {
        self.check_space(push.bytes.len() as u64)?;
        let registry = self.clone();
        blocking(move || registry.push_here(push, policy)).await
    }

    fn push_here(&self, push: Push, policy: Policy) -> Result<Pushed, Error> {
        let row = read(&push)?;
        let pushed = Pushed { digest: row.digest.clone(), subject: row.subject.clone() };
        let held = self.inner.metadata.hold(&pushed.digest)?;
        let stored = self
            .write_manifest(&pushed.digest, &push)
            .and_then(|()| self.record_manifest(row, &push, policy));
        let Recorded { before, healed } = match stored {
            Ok(recorded) => recorded,
            Err(error) => {
                self.drop_unknown_file(&pushed.digest);
                return Err(error);
            }
        };
        drop(held);
        self.announce(push, &pushed.digest, before);
        self.tell_waiting(healed, &pushed.digest);
        Ok(pushed)
    }

    /// Brings the bytes to their address, unless they are there.
    fn write_manifest(&self, digest: &Digest, push: &Push) -> Result<(), Error> {
        if self.inner.metadata.is_known(digest)? {
            return Ok(());
        }
        let temporary = uploads::unguessable()?;
        self.inner.content.put(&temporary, digest, &push.bytes)
    }

    /// Records a manifest and its tags.
    fn record_manifest(&self, row: Row, push: &Push, policy: Policy) -> Result<Recorded, Error> {
        self.inner.metadata.push(NewManifest {
            repository: push.repository.clone(),
            row,
            tags: push.tags.clone(),
            missing: policy.missing,
            versions: policy.versions,
            quota: self.inner.settings.quota,
            at: self.now(),
        })
    }

    fn announce(&self, push: Push, digest: &Digest, before: Vec<Option<Digest>>) {
        let name = push.repository;
        self.inner.cache.forget(&name, &digest.to_string());
        for tag in &push.tags {
            self.inner.cache.forget(&name, tag.as_str());
        }
        self.forget_tags(&name);
        self.view_later();
        self.tell(Event::Pushed { repository: name.clone(), digest: digest.clone() });
        for (tag, before) in push.tags.into_iter().zip(before) {
            if before.as_ref() != Some(digest) {
                let (repository, digest) = (name.clone(), digest.clone());
                self.tell(Event::Tagged { repository, tag, before, digest });
            }
        }
    }

    /// Deletes a tag, or a manifest with all its tags.
    pub async fn delete_manifest(&self, name: &Name, selector: &Selector) -> Result<(), Error> {
        let (repository, wanted, lease) = (name.clone(), selector.clone(), self.lease());
        let change = self.change(move |metadata| match &wanted {
            Selector::Tag(tag) => metadata.delete_tag(&repository, tag),
            Selector::Digest(digest) => metadata.delete_manifest(&repository, digest, lease),
        });
        change.await?;
        let repository = name.clone();
        match selector.clone() {
            Selector::Tag(tag) => {
                self.inner.cache.forget(name, tag.as_str());
                self.tell(Event::Untagged { repository, tag });
            }
            Selector::Digest(digest) => {
                // Its tags are gone too, and the cache does not know which those were.
                self.inner.cache.clear();
                self.tell(Event::Deleted { repository, digest });
            }
        }
        self.forget_tags(name);
        self.view_later();
        Ok(())
    }

    pub(super) fn forget_manifests(&self) {
        self.inner.cache.clear();
    }
}

/// Parses a push and checks its digest.
fn read(push: &Push) -> Result<Row, Error> {
    let media_type = MediaType::new(&push.media_type);
    let raw = Raw::parse(push.bytes.to_vec(), &media_type).map_err(Error::ManifestInvalid)?;
    let digest = match &push.digest {
        None => raw.digest.clone(),
        Some(expected) => {
            let mut hasher = expected.hasher();
            hasher.update(&raw.bytes);
            let actual = hasher.finish();
            if actual != *expected {
                return Err(Error::DigestMismatch { expected: expected.clone(), actual });
            }
            actual
        }
    };
    Row::of(&raw, digest)
}

fn load(inner: &Inner, name: &Name, selector: &Selector) -> Result<Manifest, Error> {
    let (digest, media_type) = inner.metadata.manifest(name, selector)?;
    let bytes = Registry::read_small(&*inner.content, &digest).map_err(|error| match error {
        Error::BlobUnknown(_) => Error::ManifestUnknown(selector.to_string()),
        other => other,
    })?;
    Ok(Manifest { digest, media_type, bytes: bytes.into() })
}
