//! What may go wrong, by operation, and what a person could do about it.
//!
//! [`Error`] says what was being done and where; its [`Cause`] says why that failed. The two are
//! apart so that a message never repeats itself when a shell prints the chain.

use crate::remote::HttpError;
use oci::{Digest, ManifestError};
use std::io;
use std::path::PathBuf;

/// What was being done when it failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading a manifest.
    #[error("cannot read manifest `{id}` from {place}")]
    Manifest {
        /// Where it should lie.
        place: String,
        /// The tag or digest asked for.
        id: String,
        /// Why it failed.
        #[source]
        cause: Cause,
    },
    /// Reading a blob.
    #[error("cannot read blob {digest} from {place}")]
    Blob {
        /// Where it should lie.
        place: String,
        /// Its address.
        digest: Digest,
        /// Why it failed.
        #[source]
        cause: Cause,
    },
    /// Looking a blob up.
    #[error("cannot look up blob {digest} in {place}")]
    HasBlob {
        /// Where it may lie.
        place: String,
        /// Its address.
        digest: Digest,
        /// Why it failed.
        #[source]
        cause: Cause,
    },
    /// Writing a blob.
    #[error("cannot write blob {digest} to {place}")]
    PutBlob {
        /// Where it should go.
        place: String,
        /// Its address.
        digest: Digest,
        /// Why it failed.
        #[source]
        cause: Cause,
    },
    /// Writing a manifest.
    #[error("cannot write manifest `{id}` to {place}")]
    PutManifest {
        /// Where it should go.
        place: String,
        /// The tag or digest it should have.
        id: String,
        /// Why it failed.
        #[source]
        cause: Cause,
    },
    /// Listing tags.
    #[error("cannot list the tags of {place}")]
    Tags {
        /// Which repository.
        place: String,
        /// Why it failed.
        #[source]
        cause: Cause,
    },
    /// Listing referrers.
    #[error("cannot list what refers to {digest} in {place}")]
    Referrers {
        /// Which repository.
        place: String,
        /// The subject.
        digest: Digest,
        /// Why it failed.
        #[source]
        cause: Cause,
    },
    /// Asking a registry for something beside the protocol.
    #[error("cannot ask {place}")]
    Ask {
        /// Which registry.
        place: String,
        /// Why it failed.
        #[source]
        cause: Cause,
    },
    /// Opening a directory, an archive or a file of credentials.
    #[error("cannot open {}", path.display())]
    Open {
        /// Which file.
        path: PathBuf,
        /// Why it failed.
        #[source]
        cause: Cause,
    },
    /// Writing a whole archive.
    #[error("cannot write {}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why it failed.
        #[source]
        cause: Cause,
    },
    /// Reading or changing stored credentials.
    #[error("cannot use the credentials for {registry}")]
    Credentials {
        /// Which registry they are for.
        registry: String,
        /// Why it failed.
        #[source]
        cause: Cause,
    },
    /// Setting up the HTTP client.
    #[error("cannot set up the HTTP client")]
    Client {
        /// Why it failed.
        #[source]
        cause: Cause,
    },
    /// Something that was asked for by name is not there.
    #[error("{what} is not in {place}")]
    Missing {
        /// Where it should lie.
        place: String,
        /// What it is.
        what: String,
    },
}

/// Why it failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The operating system said no.
    #[error(transparent)]
    Io(io::Error),
    /// Bytes that should be a manifest are not.
    #[error(transparent)]
    Manifest(ManifestError),
    /// Bytes that should be JSON of some form are not.
    #[error("{what} is not valid JSON of the form it should have")]
    Json {
        /// What was read.
        what: String,
        /// Where it broke.
        #[source]
        source: serde_json::Error,
    },
    /// The bytes do not have the digest they should have.
    #[error("the content has digest {actual} instead of {expected}")]
    Digest {
        /// What was promised.
        expected: Digest,
        /// What came.
        actual: Digest,
    },
    /// The content does not have the size it should have.
    #[error("the content has {actual} bytes instead of {expected}")]
    Size {
        /// What was promised.
        expected: u64,
        /// What came, as far as it was read.
        actual: u64,
    },
    /// More than we are willing to take.
    #[error("{what} has more than the {limit} bytes allowed")]
    TooLarge {
        /// What was read.
        what: String,
        /// The limit.
        limit: u64,
    },
    /// An archive is not of a form we read.
    #[error("the archive cannot be used: {0}")]
    Archive(ArchiveFault),
    /// A registry, or the way to it, failed us.
    #[error(transparent)]
    Http(Box<HttpError>),
    /// A credential helper failed.
    #[error("credential helper `{helper}` failed: {message}")]
    Helper {
        /// Its program name.
        helper: String,
        /// What it said, or what happened to it.
        message: String,
    },
    /// An entry of a credentials file cannot be read.
    #[error("the entry for `{0}` in the credentials file is not `user:password` in base64")]
    Entry(String),
    /// Something the sink cannot hold.
    #[error("{0}")]
    Unsupported(Unsupported),
}

/// What is wrong with an archive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveFault {
    /// The whole archive is compressed.
    #[error("it is compressed with {0}; decompress it first")]
    Compressed(&'static str),
    /// Not an archive at all.
    #[error("it is not a tar archive")]
    NotTar,
    /// Neither manifest.json nor index.json.
    #[error("it has neither manifest.json nor index.json, so it is not a package or image archive")]
    Unknown,
    /// It ends too early.
    #[error("it is truncated: entry `{0}` ends behind the end of the file")]
    Truncated(String),
    /// It has too many entries.
    #[error("it has more than {0} entries")]
    Entries(usize),
    /// It has too many images.
    #[error("it has more than {0} images")]
    Images(usize),
    /// An entry it names is not in it.
    #[error("it names the file `{0}` but does not have it")]
    Entry(String),
    /// Config and archive disagree on the number of layers.
    #[error("its config describes {config} layers but it has {archive}")]
    Layers {
        /// Number of `diff_ids`.
        config: usize,
        /// Number of layer files.
        archive: usize,
    },
    /// Several images and none was chosen.
    #[error("it has several images; choose one of: {}", .0.join(", "))]
    Several(Vec<String>),
    /// No image at all.
    #[error("it has no image")]
    Empty,
}

/// What a sink cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// An index in a docker-save archive.
    #[error(
        "a docker-save archive holds one image, not an index of several; write an OCI archive (oci-archive:FILE) or a layout directory instead"
    )]
    Index,
    /// A second image in a docker-save archive.
    #[error("a docker-save archive written here holds one image, and it already has {0}")]
    Second(Digest),
    /// Layer annotations a docker-save archive cannot carry.
    #[error(
        "layer {0} has an `io.crossplane.xpkg` annotation that a docker-save archive would lose, because the image config has no label for it; write an OCI archive (oci-archive:FILE) or a layout directory instead"
    )]
    Annotation(Digest),
    /// A file too large for the archive's headers.
    #[error("`{0}` has 8 GiB or more, which the archive's headers cannot say")]
    Huge(String),
    /// A name too long for the archive's headers.
    #[error("the name `{0}` is longer than the archive's headers can say")]
    Name(String),
    /// The sink cannot be written.
    #[error("the archive can only be read")]
    ReadOnly,
    /// Nested too deeply, or too many manifests.
    #[error("the index has more than {0} manifests, or is nested too deeply")]
    Nesting(usize),
}

/// What kind of trouble it is, so that a shell can say what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advice {
    /// The registry wants (other) credentials.
    Unauthorized {
        /// Which registry.
        registry: String,
    },
    /// The credentials do not allow it.
    Forbidden,
    /// It is not there.
    NotFound,
    /// The host cannot be reached.
    Unreachable {
        /// Which host.
        host: String,
    },
    /// The certificate is not trusted, or TLS failed otherwise.
    Tls,
    /// Too many requests.
    RateLimited,
    /// Bytes are not what they should be.
    Corrupt,
    /// It took too long.
    Timeout,
    /// More than we are willing to take.
    TooLarge,
    /// Anything else.
    Other,
}

impl Error {
    /// What kind of trouble it is.
    pub fn advice(&self) -> Advice {
        match self.cause() {
            None => Advice::NotFound,
            Some(cause) => cause.advice(),
        }
    }

    /// Why it failed, if there is more to say than that something is missing.
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Manifest { cause, .. }
            | Self::Blob { cause, .. }
            | Self::HasBlob { cause, .. }
            | Self::PutBlob { cause, .. }
            | Self::PutManifest { cause, .. }
            | Self::Tags { cause, .. }
            | Self::Referrers { cause, .. }
            | Self::Ask { cause, .. }
            | Self::Open { cause, .. }
            | Self::Write { cause, .. }
            | Self::Credentials { cause, .. }
            | Self::Client { cause } => Some(cause),
            Self::Missing { .. } => None,
        }
    }

    /// The cause alone, for an operation that is a step of another.
    pub(crate) fn into_cause(self) -> Cause {
        match self {
            Self::Manifest { cause, .. }
            | Self::Blob { cause, .. }
            | Self::HasBlob { cause, .. }
            | Self::PutBlob { cause, .. }
            | Self::PutManifest { cause, .. }
            | Self::Tags { cause, .. }
            | Self::Referrers { cause, .. }
            | Self::Ask { cause, .. }
            | Self::Open { cause, .. }
            | Self::Write { cause, .. }
            | Self::Credentials { cause, .. }
            | Self::Client { cause } => cause,
            missing @ Self::Missing { .. } => {
                Cause::Io(io::Error::new(io::ErrorKind::NotFound, missing))
            }
        }
    }
}

impl Cause {
    fn advice(&self) -> Advice {
        match self {
            Self::Manifest(ManifestError::TooLarge { .. }) | Self::TooLarge { .. } => {
                Advice::TooLarge
            }
            Self::Digest { .. } | Self::Size { .. } | Self::Manifest(_) | Self::Json { .. } => {
                Advice::Corrupt
            }
            Self::Http(error) => error.advice(),
            Self::Io(error) if error.kind() == io::ErrorKind::NotFound => Advice::NotFound,
            Self::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => Advice::Forbidden,
            Self::Archive(ArchiveFault::Truncated(_) | ArchiveFault::Entry(_)) => Advice::Corrupt,
            _ => Advice::Other,
        }
    }

    /// The cause as an input error, so that it can travel through a byte stream.
    pub(crate) fn into_io(self) -> io::Error {
        match self {
            Self::Io(error) => error,
            cause => io::Error::other(cause),
        }
    }
}

/// Takes a cause out of an input error again, if one travelled in it.
impl From<io::Error> for Cause {
    fn from(error: io::Error) -> Self {
        let carries =
            error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<Self>);
        if !carries {
            return Self::Io(error);
        }
        match error.into_inner().map(<dyn std::error::Error + Send + Sync>::downcast::<Self>) {
            Some(Ok(cause)) => *cause,
            Some(Err(inner)) => Self::Io(io::Error::other(inner)),
            None => Self::Io(io::Error::other("lost error")),
        }
    }
}

impl From<ManifestError> for Cause {
    fn from(error: ManifestError) -> Self {
        Self::Manifest(error)
    }
}

impl From<ArchiveFault> for Cause {
    fn from(fault: ArchiveFault) -> Self {
        Self::Archive(fault)
    }
}

impl From<Unsupported> for Cause {
    fn from(what: Unsupported) -> Self {
        Self::Unsupported(what)
    }
}

impl From<HttpError> for Cause {
    fn from(error: HttpError) -> Self {
        Self::Http(Box::new(error))
    }
}
