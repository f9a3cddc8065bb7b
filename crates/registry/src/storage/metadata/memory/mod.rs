//! Metadata in a few maps: what the traits mean, said as plainly as can be. The suite holds it and
//! the database to the same laws, so that neither means something else.

mod changes;
mod lists;

use super::{Found, Held, Kept, Metadata, Row, Stripes};
use crate::error::Error;
use crate::name::{Name, Tag};
use crate::storage::Versions;
use oci::Digest;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Metadata that ends with the process.
#[derive(Default)]
pub(crate) struct Memory {
    tables: Mutex<Tables>,
    stripes: Stripes,
}

#[derive(Clone, Default)]
struct Tables {
    repositories: BTreeMap<Name, Repository>,
    /// Bytes that may be served, with their sizes.
    blobs: BTreeMap<Digest, u64>,
    uploads: BTreeMap<String, Kept>,
}

#[derive(Clone)]
struct Repository {
    generation: i64,
    viewed: i64,
    /// Blobs that may be pulled here, with their leases.
    leases: BTreeMap<Digest, i64>,
    /// Manifests, with the time of their last push.
    manifests: BTreeMap<Digest, (Row, i64)>,
    tags: BTreeMap<String, Digest>,
}

impl Default for Repository {
    fn default() -> Self {
        let (leases, manifests, tags) = Default::default();
        Self { generation: 1, viewed: 1, leases, manifests, tags }
    }
}

impl Memory {
    fn read<T>(&self, question: impl FnOnce(&Tables) -> T) -> T {
        question(&self.tables.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes a change entirely or not at all.
    fn write<T>(&self, change: impl FnOnce(&mut Tables) -> Result<T, Error>) -> Result<T, Error> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = tables.clone();
        let result = change(&mut next)?;
        *tables = next;
        Ok(result)
    }
}

impl Metadata for Memory {
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    fn hold(&self, digest: &Digest) -> Result<Held<'_>, Error> {
        Ok(self.stripes.hold(digest))
    }
}

impl Tables {
    fn known(&self, name: &Name) -> Result<&Repository, Error> {
        self.repositories.get(name).ok_or_else(|| Error::NameUnknown(name.clone()))
    }

    fn known_mut(&mut self, name: &Name) -> Result<&mut Repository, Error> {
        self.repositories.get_mut(name).ok_or_else(|| Error::NameUnknown(name.clone()))
    }

    fn ensure(&mut self, name: &Name) -> &mut Repository {
        self.repositories.entry(name.clone()).or_default()
    }

    /// Notes a change in each repository with a manifest that is this or names it; gives them.
    fn touch_owners(&mut self, digest: &Digest) -> Vec<Name> {
        let mut owners = Vec::new();
        for (name, it) in &mut self.repositories {
            let is_held = it.leases.contains_key(digest) && it.names(digest);
            if is_held || it.manifests.contains_key(digest) {
                it.generation = it.generation.saturating_add(1);
                owners.push(name.clone());
            }
        }
        owners
    }

    /// Records bytes; gives the repositories that have them back, if they were condemned.
    fn record(&mut self, digest: &Digest, size: u64) -> Vec<Name> {
        let known = self.blobs.insert(digest.clone(), size);
        if known.is_none() { self.touch_owners(digest) } else { Vec::new() }
    }

    fn look(&self, name: &Name, digest: &Digest) -> Result<Found, Error> {
        let repository = self.known(name)?;
        let found = repository.leases.get(digest).zip(self.blobs.get(digest));
        let (lease, size) = found.ok_or_else(|| Error::BlobUnknown(digest.clone()))?;
        Ok(Found { size: *size, lease: *lease, used: repository.names(digest) })
    }

    fn used(&self, name: &Name) -> u64 {
        let Some(repository) = self.repositories.get(name) else { return 0 };
        let blobs = repository.leases.keys().filter_map(|digest| self.blobs.get(digest)).copied();
        let manifests = repository.manifests.values().map(|(row, _)| row.size);
        blobs.chain(manifests).fold(0, u64::saturating_add)
    }

    /// Whether a repository may have one more blob or manifest.
    fn check_quota(
        &self,
        name: &Name,
        digest: &Digest,
        size: u64,
        quota: Option<u64>,
    ) -> Result<(), Error> {
        let has =
            |it: &Repository| it.leases.contains_key(digest) || it.manifests.contains_key(digest);
        let held = self.repositories.get(name).is_some_and(has);
        match quota {
            Some(limit) if !held && self.used(name).saturating_add(size) > limit => {
                Err(Error::QuotaExceeded { limit })
            }
            _ => Ok(()),
        }
    }

    fn is_unused(&self, digest: &Digest) -> bool {
        let has =
            |it: &Repository| it.leases.contains_key(digest) || it.manifests.contains_key(digest);
        !self.repositories.values().any(has)
    }
}

impl Repository {
    fn link(&mut self, digest: &Digest, lease: i64) {
        let held = self.leases.entry(digest.clone()).or_insert(lease);
        *held = lease.max(*held);
    }

    /// Lets it have a blob that comes; tells whether a manifest has been without it.
    fn take(&mut self, digest: &Digest, lease: i64) -> bool {
        let awaited = self.names(digest) && !self.leases.contains_key(digest);
        self.generation = self.generation.saturating_add(i64::from(awaited));
        self.link(digest, lease);
        awaited
    }

    /// Whether a manifest names this.
    fn names(&self, digest: &Digest) -> bool {
        self.manifests.values().any(|(row, _)| row.children.contains(digest))
    }

    /// Whether a manifest was pushed before `limit` and nothing leads to it.
    fn is_untagged(&self, row: &Row, pushed: i64, limit: i64) -> bool {
        let subject = row.subject.as_ref();
        pushed < limit
            && !self.tags.values().any(|digest| *digest == row.digest)
            && !self.names(&row.digest)
            && !subject.is_some_and(|digest| self.manifests.contains_key(digest))
    }

    /// Blobs here that nothing names and whose lease is over.
    fn is_loose(&self, digest: &Digest, at: i64) -> bool {
        self.leases.get(digest).is_some_and(|lease| *lease < at) && !self.names(digest)
    }

    fn set_tag(
        &mut self,
        tag: &Tag,
        digest: &Digest,
        versions: Versions,
    ) -> Result<Option<Digest>, Error> {
        let before = self.tags.insert(tag.to_string(), digest.clone());
        match &before {
            Some(before) if before != digest && versions == Versions::Stay && tag.is_version() => {
                Err(Error::TagImmutable { tag: tag.clone(), digest: before.clone() })
            }
            _ => Ok(before),
        }
    }

    fn delete(&mut self, digest: &Digest, lease: i64) -> Result<(), Error> {
        let deleted = self.manifests.remove(digest);
        let (row, _) = deleted.ok_or_else(|| Error::ManifestUnknown(digest.to_string()))?;
        for child in &row.children {
            if let Some(held) = self.leases.get_mut(child) {
                *held = lease.max(*held);
            }
        }
        self.tags.retain(|_, meant| meant != digest);
        self.generation = self.generation.saturating_add(1);
        Ok(())
    }
}
