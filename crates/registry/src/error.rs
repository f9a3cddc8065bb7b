//! What may go wrong, told apart by what a client is told.

use crate::mirror::Trouble;
use crate::name::{Name, Tag};
use oci::{Digest, ManifestError};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Why a request to the registry cannot be answered as hoped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such repository.
    #[error("repository `{0}` is not known to this registry")]
    NameUnknown(Name),
    /// No such manifest in the repository.
    #[error("manifest `{0}` is not known in this repository")]
    ManifestUnknown(String),
    /// No such blob in the repository.
    #[error("blob {0} is not known in this repository")]
    BlobUnknown(Digest),
    /// The blob is part of a manifest.
    #[error("blob {0} is used by a manifest of this repository; delete that first")]
    BlobInUse(Digest),
    /// A manifest names what is not there.
    #[error("the manifest names {} that this repository does not have", list(.0))]
    ManifestBlobUnknown(Vec<Digest>),
    /// The bytes are no manifest we can keep.
    #[error("the manifest cannot be accepted")]
    ManifestInvalid(#[source] ManifestError),
    /// The manifest names more than anybody needs.
    #[error("the manifest has more than {} descriptors", crate::limits::DESCRIPTORS_MAX)]
    ManifestTooMany,
    /// The bytes have another digest than promised.
    #[error("the content has digest {actual}, not {expected}")]
    DigestMismatch {
        /// What was promised.
        expected: Digest,
        /// What came.
        actual: Digest,
    },
    /// A version tag stays what it is.
    #[error("tag `{tag}` is a version and already means {digest}; push a new version instead")]
    TagImmutable {
        /// The tag.
        tag: Tag,
        /// What it means.
        digest: Digest,
    },
    /// No such upload.
    #[error("this upload is not known; start a new one")]
    UploadUnknown,
    /// The chunk does not start where the upload stands.
    #[error("the upload stands at byte {offset}; the next chunk must start there")]
    UploadOffset {
        /// How many bytes are there.
        offset: u64,
    },
    /// The body is not as long as it was said to be.
    #[error("the body has {actual} bytes where {expected} were announced")]
    SizeMismatch {
        /// What was announced.
        expected: u64,
        /// What came.
        actual: u64,
    },
    /// More bytes than one blob may have.
    #[error("the blob is larger than the {limit} bytes this registry takes")]
    BlobTooLarge {
        /// How many it takes.
        limit: u64,
    },
    /// More bytes than one manifest may have.
    #[error("a manifest may have at most {limit} bytes")]
    ManifestTooLarge {
        /// How many it may have.
        limit: u64,
    },
    /// More bytes than one repository may hold.
    #[error("a repository may hold {limit} bytes here, and this one is full; delete something")]
    QuotaExceeded {
        /// How many it may hold.
        limit: u64,
    },
    /// Too many uploads at once.
    #[error("too many uploads are under way")]
    UploadsTooMany,
    /// The body broke off.
    #[error("the request's body broke off or stalled")]
    BodyBroken,
    /// The disk is nearly full.
    #[error("the registry's disk is nearly full; free some space or collect garbage")]
    SpaceLow,
    /// The disk or the operating system failed.
    #[error("the registry's storage failed")]
    Io(#[source] io::Error),
    /// The database failed.
    #[error("the registry's database failed")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Another registry, whose repository this is, does not deliver.
    #[error("{host}, where this repository comes from, {trouble}")]
    Upstream {
        /// Where it is.
        host: String,
        /// What is wrong.
        trouble: Trouble,
    },
    /// An error that several requests met together.
    #[error(transparent)]
    Shared(Arc<Self>),
    /// The registry is shutting down.
    #[error("the registry is shutting down")]
    Closed,
}

/// Why a data directory cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has it.
    #[error("another process uses {}", .0.display())]
    InUse(PathBuf),
    /// There are blobs, but the database is gone.
    #[error("{} has blobs but no database", .0.display())]
    DatabaseMissing(PathBuf),
    /// The database was made by a later version.
    #[error("the database has format {found}, and this version knows {known}")]
    Format {
        /// What it has.
        found: i64,
        /// What we know.
        known: i64,
    },
    /// The disk or the operating system failed.
    #[error("cannot use the data directory")]
    Io(#[source] io::Error),
    /// The database failed.
    #[error("cannot use the database")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::SpaceLow,
            _ => Self::Io(error),
        }
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        match error {
            Error::Io(error) => Self::Io(error),
            Error::Database(error) => Self::Database(error),
            other => Self::Database(Box::new(other)),
        }
    }
}

fn list(digests: &[Digest]) -> String {
    let names: Vec<String> = digests.iter().take(3).map(ToString::to_string).collect();
    let more = if digests.len() > names.len() { " and others" } else { "" };
    format!("{}{more}", names.join(", "))
}
