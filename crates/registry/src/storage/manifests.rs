//! Manifests: stored, tagged, read and deleted.

use super::cache::Size;
use super::files::Files;
use super::rows::{self, Row};
use super::{
    Missing, Registry, Versions, blobs, blocking, ensure, find, known, quota, stored_digest,
    uploads,
};
use crate::error::Error;
use crate::name::{Name, Selector, Tag};
use crate::observe::Event;
use bytes::Bytes;
use oci::{Digest, MediaType, Raw};
use rusqlite::{Connection, OptionalExtension, params};
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
        let files = self.inner.files.clone();
        let read =
            self.inner.database.read(move |database| load(database, &files, &repository, &wanted));
        let found = Arc::new(read.await?);
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
        let held = self.hold(&pushed.digest);
        let stored = self
            .write_manifest(&pushed.digest, &push)
            .and_then(|()| self.record_manifest(row, &push, policy));
        let before = match stored {
            Ok(before) => before,
            Err(error) => {
                self.drop_unknown_file(&pushed.digest);
                return Err(error);
            }
        };
        drop(held);
        self.announce(push, &pushed.digest, before);
        Ok(pushed)
    }

    /// Brings the bytes to their address, unless they are there.
    fn write_manifest(&self, digest: &Digest, push: &Push) -> Result<(), Error> {
        if self.inner.database.read_here(|database| blobs::is_known(database, digest))? {
            return Ok(());
        }
        let temporary = uploads::unguessable()?;
        Ok(self.inner.files.write_blob(&temporary, digest, &push.bytes)?)
    }

    /// Records a manifest and its tags; gives what the tags meant before.
    fn record_manifest(
        &self,
        row: Row,
        push: &Push,
        policy: Policy,
    ) -> Result<Vec<Option<Digest>>, Error> {
        let (name, tags) = (push.repository.clone(), push.tags.clone());
        let Policy { missing, versions } = policy;
        let quota = self.inner.settings.quota;
        self.inner.database.write_here(move |transaction| {
            let repository = ensure(transaction, &name)?;
            if missing == Missing::Refuse {
                rows::check_children(transaction, repository, &row)?;
            }
            quota::check(transaction, repository, &row.digest, row.size, quota)?;
            blobs::record(transaction, &row.digest, row.size)?;
            row.insert(transaction, repository)?;
            let mut before = Vec::with_capacity(tags.len());
            for tag in &tags {
                before.push(rows::set_tag(transaction, repository, tag, &row.digest, versions)?);
            }
            rows::touch(transaction, repository)?;
            Ok(before)
        })
    }

    fn announce(&self, push: Push, digest: &Digest, before: Vec<Option<Digest>>) {
        let name = push.repository;
        self.inner.cache.forget(&name, &digest.to_string());
        for tag in &push.tags {
            self.inner.cache.forget(&name, tag.as_str());
        }
        self.forget_tags(&name);
        self.inner.views.changed();
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
        let write = self.inner.database.write(move |transaction| {
            let repository = known(transaction, &repository)?;
            match &wanted {
                Selector::Tag(tag) => rows::delete_tag(transaction, repository, tag)?,
                Selector::Digest(digest) => rows::delete(transaction, repository, digest, lease)?,
            }
            rows::touch(transaction, repository)
        });
        write.await?;
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
        self.inner.views.changed();
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

fn load(
    database: &Connection,
    files: &Files,
    name: &Name,
    selector: &Selector,
) -> Result<Manifest, Error> {
    let unknown = || Error::ManifestUnknown(selector.to_string());
    let repository = find(database, name)?.ok_or_else(|| Error::NameUnknown(name.clone()))?;
    let columns = "SELECT digest, media_type FROM manifest JOIN blob USING (digest)";
    let mut statement = match selector {
        Selector::Digest(_) => {
            database.prepare_cached(&format!("{columns} WHERE repository = ?1 AND digest = ?2"))?
        }
        Selector::Tag(_) => database.prepare_cached(&format!(
            "{columns} WHERE repository = ?1
             AND digest = (SELECT digest FROM tag WHERE repository = ?1 AND name = ?2)"
        ))?,
    };
    let found = statement.query_row(params![repository, selector.to_string()], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    });
    let (digest, media_type) = found.optional()?.ok_or_else(unknown)?;
    let digest = stored_digest(&digest)?;
    let bytes = Registry::read_small(files, &digest).map_err(|error| match error {
        Error::BlobUnknown(_) => unknown(),
        other => other,
    })?;
    Ok(Manifest { digest, media_type, bytes: bytes.into() })
}
