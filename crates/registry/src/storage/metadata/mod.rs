//! What a registry knows about its bytes: repositories, tags, leases, uploads.
//!
//! A seam. Everything above says whole changes and whole questions, in values; what keeps them
//! is `SQLite` here ([`sqlite`]), could be a server for many replicas, and is a few maps in
//! memory for tests and simulations ([`memory`]). One suite holds all of them to the same laws.
//!
//! - **A method is a transaction.** It happens entirely or not at all, between other changes, and
//!   is durable when it returns. Whatever must be decided again at that moment (children that
//!   must be there, a quota, a lease that may have been renewed) is decided inside.
//! - **One that fails with its storage is in doubt**: nobody sees it happen, and after a crash it
//!   may have happened. Bytes it would have needed stay until that is decided ([`Garbage::is_orphan`]).
//! - **Methods wait**, for a disk or for a server: they are called on threads that may.
//! - **Times are given**, in milliseconds since 1970: nothing here has a clock.
//! - Lists are in ASCII order, after `last`, and at most `limit` long.

pub(crate) mod memory;
mod row;
pub(crate) mod sqlite;
#[cfg(test)]
mod suite;

pub(crate) use row::Row;

use super::{Missing, Versions};
use crate::error::Error;
use crate::name::{Name, Selector, Tag};
use oci::{Descriptor, Digest, Hasher};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// All of it.
pub(crate) trait Metadata:
    Uploads + Blobs + Manifests + Lists + Garbage + Pictures + Send + Sync
{
    /// Whether questions are answered.
    fn check(&self) -> Result<(), Error>;

    /// Keeps everybody else, on every replica, from giving this digest its bytes or taking them
    /// away: bytes are no part of a transaction. Whoever holds one waits for storage and for
    /// nothing else.
    fn hold(&self, digest: &Digest) -> Result<Held<'_>, Error>;
}

/// A digest that is held, until dropped.
pub(crate) type Held<'a> = Box<dyn Guard + 'a>;

/// Something that lets go when it is dropped.
pub(crate) trait Guard {}

impl<T> Guard for MutexGuard<'_, T> {}

/// An upload whose bytes up to the offset are durable.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) id: String,
    pub(crate) repository: Name,
    pub(crate) principal: String,
    pub(crate) offset: u64,
    /// The hash of the bytes so far.
    pub(crate) hasher: Hasher,
    pub(crate) updated: i64,
}

/// A blob whose bytes are durable, and the repository that shall have it.
pub(crate) struct Arrived {
    pub(crate) repository: Name,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    /// Until when it is safe from collection.
    pub(crate) lease: i64,
    pub(crate) quota: Option<u64>,
    /// The kept upload that it was, which is over.
    pub(crate) upload: Option<String>,
}

/// Uploads, from the first bytes kept to the blob.
pub(crate) trait Uploads {
    /// Keeps how far an upload is.
    fn keep_upload(&self, upload: Kept) -> Result<(), Error>;
    /// How far an upload is.
    fn kept_upload(&self, id: &str) -> Result<Option<Kept>, Error>;
    /// Uploads not kept again since some time.
    fn uploads_before(&self, limit: i64) -> Result<Vec<String>, Error>;
    /// Forgets an upload; that it is unknown is fine.
    fn forget_upload(&self, id: &str) -> Result<(), Error>;
    /// Makes a blob of an upload, unless that breaks the quota. Gives the repositories with a manifest
    /// that has been without it until now: this one, or all that had it before it was condemned.
    fn finish_upload(&self, arrived: Arrived) -> Result<Vec<Name>, Error>;
}

/// A blob in a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) size: u64,
    pub(crate) lease: i64,
    /// Whether a manifest there names it.
    pub(crate) used: bool,
}

/// A blob to be shared by two repositories.
pub(crate) struct Mount {
    pub(crate) from: Name,
    pub(crate) to: Name,
    pub(crate) digest: Digest,
    pub(crate) lease: i64,
    pub(crate) quota: Option<u64>,
}

/// Blobs, once they are there.
pub(crate) trait Blobs {
    /// A blob of a repository.
    fn blob(&self, name: &Name, digest: &Digest) -> Result<Found, Error>;
    /// Whether bytes with this digest may be served, to whomever.
    fn is_known(&self, digest: &Digest) -> Result<bool, Error>;
    /// Keeps a blob safe for longer.
    fn renew_lease(&self, name: &Name, digest: &Digest, lease: i64) -> Result<(), Error>;
    /// Lets a repository have a blob of another; `false` if that does not have it.
    fn mount(&self, mount: Mount) -> Result<bool, Error>;
    /// Takes a blob out of a repository, unless a manifest names it.
    fn delete_blob(&self, name: &Name, digest: &Digest) -> Result<(), Error>;
    /// Some repositories that have a blob.
    fn holders(&self, digest: &Digest, limit: usize) -> Result<Vec<Name>, Error>;
    /// Bytes of a repository's blobs and manifests; none if there is no such repository.
    fn used(&self, name: &Name) -> Result<u64, Error>;
}

/// A manifest whose bytes are durable, with its tags and what it is held to.
#[derive(Clone)]
pub(crate) struct NewManifest {
    pub(crate) repository: Name,
    pub(crate) row: Row,
    pub(crate) tags: Vec<Tag>,
    pub(crate) missing: Missing,
    pub(crate) versions: Versions,
    pub(crate) quota: Option<u64>,
    pub(crate) at: i64,
}

/// What recording a manifest changed.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// What each tag meant before.
    pub(crate) before: Vec<Option<Digest>>,
    /// Other repositories that have the manifest back, which was condemned.
    pub(crate) healed: Vec<Name>,
}

/// Manifests and their tags.
pub(crate) trait Manifests {
    /// Records a manifest, what it names and its tags.
    fn push(&self, manifest: NewManifest) -> Result<Recorded, Error>;
    /// The manifest that is meant.
    fn manifest(&self, name: &Name, selector: &Selector) -> Result<(Digest, String), Error>;
    /// Takes a tag away.
    fn delete_tag(&self, name: &Name, tag: &Tag) -> Result<(), Error>;
    /// Deletes a manifest with its tags. What it named gets a new lease: a client may have seen
    /// it a moment ago.
    fn delete_manifest(&self, name: &Name, digest: &Digest, lease: i64) -> Result<(), Error>;
}

/// Lists.
pub(crate) trait Lists {
    /// Tags of a repository.
    fn tags(&self, name: &Name, last: &str, limit: usize) -> Result<Vec<String>, Error>;
    /// Manifests of a repository.
    fn manifests(&self, name: &Name, last: &str, limit: usize) -> Result<Vec<Digest>, Error>;
    /// Repositories that have manifests.
    fn repositories(&self, last: &str, limit: usize) -> Result<Vec<Name>, Error>;
    /// Manifests of a repository that refer to another, perhaps of one artifact type only.
    fn referrers(
        &self,
        name: &Name,
        subject: &Digest,
        artifact_type: Option<&str>,
        last: &str,
        limit: usize,
    ) -> Result<Vec<Descriptor>, Error>;
    /// Repositories that have manifests, with the numbers of their last changes.
    fn changes(&self, last: &str, limit: usize) -> Result<Vec<(Name, i64)>, Error>;
    /// Manifests that a tag leads to, and those that nothing leads to and that refer to nothing;
    /// with several tags, several times.
    fn heads(&self, name: &Name) -> Result<Vec<(Digest, Option<String>)>, Error>;
    /// Manifests of a repository whose bytes were condemned, and those that lead to condemned bytes
    /// which the repository had.
    fn damaged(&self, name: &Name) -> Result<Vec<Digest>, Error>;
}

/// Something of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) repository: Name,
    pub(crate) digest: Digest,
}

/// The steps of a collection, and of scrubbing: each looks, or acts on what is still so.
pub(crate) trait Garbage {
    /// Manifests pushed before `limit` that no tag, no index and no subject leads to.
    fn untagged(&self, limit: i64) -> Result<Vec<Entry>, Error>;
    /// Deletes such a manifest, if it still is one; what it named gets a new lease.
    fn collect_manifest(&self, it: &Entry, limit: i64, lease: i64) -> Result<bool, Error>;
    /// Blobs that no manifest of their repository names and whose lease is over.
    fn loose(&self, at: i64) -> Result<Vec<Entry>, Error>;
    /// Takes those that still are so out of their repositories; gives their number.
    fn unlink(&self, loose: Vec<Entry>, at: i64) -> Result<u64, Error>;
    /// Blobs that no repository has and that are no manifest, with their sizes.
    fn unused(&self) -> Result<Vec<(Digest, u64)>, Error>;
    /// Forgets a blob, if it is still unused; then its bytes may go.
    fn collect_blob(&self, digest: &Digest) -> Result<bool, Error>;
    /// Whether a digest is unknown for good: no change in doubt can make it known any more. Only
    /// then may its bytes go.
    fn is_orphan(&self, digest: &Digest) -> Result<bool, Error>;
    /// Those of some digests that are not known.
    fn unknown(&self, digests: Vec<Digest>) -> Result<Vec<Digest>, Error>;
    /// All blobs, with their sizes.
    fn blobs(&self, last: &str, limit: usize) -> Result<Vec<(Digest, u64)>, Error>;
    /// Forgets a blob whose bytes are damaged, in all repositories; pushing it again heals them. Gives the
    /// repositories with a manifest that is it or names it; nothing if the blob was not known.
    fn condemn(&self, digest: &Digest) -> Result<Option<Vec<Name>>, Error>;
}

/// A repository that has changed since its view was drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Behind {
    pub(crate) repository: Name,
    pub(crate) generation: i64,
}

/// A manifest as a view shows it; with several tags, several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) descriptor: Descriptor,
    pub(crate) tag: Option<String>,
}

/// A repository as a view and its manifests tell.
#[derive(Clone)]
pub(crate) struct Restored {
    pub(crate) repository: Name,
    pub(crate) manifests: Vec<(Row, Option<Tag>)>,
    /// What those name and the repository had, with sizes as far as the bytes are there.
    pub(crate) blobs: Vec<(Digest, Option<u64>)>,
    pub(crate) at: i64,
}

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) repositories: u64,
    pub(crate) manifests: u64,
    pub(crate) tags: u64,
    pub(crate) blobs: u64,
}

/// Repositories as pictures for other tools, and back.
pub(crate) trait Pictures {
    /// Repositories whose views are behind.
    fn behind(&self) -> Result<Vec<Behind>, Error>;
    /// What a view shows: tags first, each its own entry; then manifests without one.
    fn shown(&self, name: &Name) -> Result<Vec<Shown>, Error>;
    /// Blobs of a repository that its manifests name.
    fn held(&self, name: &Name) -> Result<Vec<Digest>, Error>;
    /// Notes which change a view shows.
    fn note_view(&self, view: &Behind) -> Result<(), Error>;
    /// Brings a repository back from its view.
    fn restore(&self, restored: Restored) -> Result<(), Error>;
    /// How much there is.
    fn counts(&self) -> Result<Counts, Error>;
}

/// Mutexes that digests share; more than there are pushes at once.
const STRIPES: usize = 256;

/// Digests held within one process.
pub(crate) struct Stripes {
    all: Vec<Mutex<()>>,
}

impl Default for Stripes {
    fn default() -> Self {
        Self { all: (0..STRIPES).map(|_| Mutex::default()).collect() }
    }
}

impl Stripes {
    pub(crate) fn hold(&self, digest: &Digest) -> Held<'_> {
        let hash = BuildHasherDefault::<DefaultHasher>::new().hash_one(digest);
        let index = usize::try_from(hash).unwrap_or(usize::MAX);
        let index = index.checked_rem(self.all.len()).unwrap_or_default();
        Box::new(self.all[index].lock().unwrap_or_else(PoisonError::into_inner))
    }
}
