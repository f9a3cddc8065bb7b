//! What happened to manifests, for whoever wants to know.
//!
//! Observers are told after the fact over a bounded channel. One that is slow misses events (its
//! receiver says so) and has to look at the repositories again; it can neither slow nor fail a
//! push.

use crate::name::{Name, Tag};
use oci::Digest;

/// A change that is durable and was, or is about to be, acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A manifest was pushed, perhaps one that was there.
    Pushed {
        /// The repository.
        repository: Name,
        /// The manifest.
        digest: Digest,
    },
    /// A tag means something else now, or something at all.
    Tagged {
        /// The repository.
        repository: Name,
        /// The tag.
        tag: Tag,
        /// What it meant before.
        before: Option<Digest>,
        /// What it means now.
        digest: Digest,
    },
    /// A tag is gone.
    Untagged {
        /// The repository.
        repository: Name,
        /// The tag.
        tag: Tag,
    },
    /// A blob came, perhaps one that a manifest had been without.
    Completed {
        /// The repository.
        repository: Name,
        /// The blob.
        digest: Digest,
    },
    /// A manifest, or a blob that one names, was found damaged and is out of service.
    Damaged {
        /// The repository.
        repository: Name,
        /// What was damaged.
        digest: Digest,
    },
    /// A manifest is gone, and all tags that meant it.
    Deleted {
        /// The repository.
        repository: Name,
        /// The manifest.
        digest: Digest,
    },
}
