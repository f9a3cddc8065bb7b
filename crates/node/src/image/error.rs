//! Why an image cannot be had, in sentences for users.

use oci::Digest;
use oci::layer::LayerError;
use std::io;
use std::path::{Path, PathBuf};

/// Why an image is not there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PullError {
    /// The registry or its like did not give it.
    #[error("{}", with_causes(.0.as_ref()))]
    Store(Box<store::Error>),
    /// There is no such tag or digest.
    #[error("{identifier} is not in {place}")]
    Missing {
        /// Where it was looked for.
        place: String,
        /// The tag or digest.
        identifier: String,
    },
    /// The image is for machines of another kind.
    #[error("exec format error: the image is {image}, this machine {machine}")]
    Platform {
        /// What the image is for.
        image: String,
        /// What this machine is.
        machine: String,
    },
    /// Manifest or config say what cannot be.
    #[error("the image is malformed: {0}")]
    Malformed(String),
    /// More than one of [`super::ImageLimits`] allows.
    #[error("the image exceeds the limit of {limit} {unit} ({name})")]
    Limit {
        /// The limit's name.
        name: &'static str,
        /// Its value.
        limit: u64,
        /// What is counted.
        unit: &'static str,
    },
    /// A layer that cannot be laid down.
    #[error("layer {digest}: {}", with_causes(.cause.as_ref()))]
    Layer {
        /// Which layer.
        digest: Digest,
        /// Why.
        cause: Box<EntryError>,
    },
    /// The files of this machine.
    #[error("cannot use {}: {cause}", .path.display())]
    Directory {
        /// Which file or directory.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The cache is in use.
    #[error("{} is used by another apron", .0.display())]
    InUse(PathBuf),
}

/// Why a layer cannot be laid down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EntryError {
    /// It cannot be read, is hostile or exceeds a limit.
    #[error("{}", with_causes(.0))]
    Layer(LayerError),
    /// Its bytes are not what the config promised.
    #[error("its content has the digest {actual}, the image's config says {expected} (diff_ids)")]
    DiffId {
        /// What the config says.
        expected: Digest,
        /// What was read.
        actual: Digest,
    },
    /// A whiteout that would remove the directory it stands in, or what is above it.
    #[error("the whiteout `{0}` names no file")]
    Whiteout(String),
    /// The path to an entry goes round in circles.
    #[error("the path of the entry `{0}` leads through too many symbolic links")]
    Loop(String),
    /// A hard link that cannot be.
    #[error("the entry `{path}` is a link to `{target}`, which is {what}")]
    HardLink {
        /// The entry.
        path: String,
        /// What it should be another name of.
        target: String,
        /// What that is instead.
        what: &'static str,
    },
    /// The root of the file system, as something else than a directory.
    #[error("the root of the file system is a {0}")]
    Root(&'static str),
    /// The operating system refuses.
    #[error("cannot write the entry `{path}`: {cause}")]
    Write {
        /// The entry.
        path: String,
        /// Why.
        cause: io::Error,
    },
}

impl PullError {
    /// The word for it in a container's state, as the kubelet has it.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Platform { .. } => "RunContainerError",
            _ => "ErrImagePull",
        }
    }

    /// Whether this machine has no room for the image: with fewer others it might have.
    pub fn is_disk_full(&self) -> bool {
        let top: &(dyn std::error::Error + 'static) = match self {
            Self::Directory { cause, .. } => cause,
            Self::Store(error) => error.as_ref(),
            Self::Layer { cause, .. } => match cause.as_ref() {
                EntryError::Write { cause, .. } => cause,
                _ => return false,
            },
            _ => return false,
        };
        let mut chain = std::iter::successors(Some(top), |error| error.source());
        let is_full =
            |kind| matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        chain.any(|error| {
            error.downcast_ref::<io::Error>().is_some_and(|error| is_full(error.kind()))
        })
    }

    pub(super) fn directory(path: &Path, cause: io::Error) -> Self {
        Self::Directory { path: path.to_owned(), cause }
    }
}

// What caused an error is in its own words here, and so is no source besides.
impl From<store::Error> for PullError {
    fn from(error: store::Error) -> Self {
        Self::Store(Box::new(error))
    }
}

impl From<LayerError> for EntryError {
    fn from(error: LayerError) -> Self {
        Self::Layer(error)
    }
}

/// An error and what caused it, in one line, for an Event has only one.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_without_room_is_told_from_other_reasons() {
        let directory = |number: i32| {
            PullError::directory(Path::new("/x"), io::Error::from_raw_os_error(number))
        };
        let layer = |cause: EntryError| PullError::Layer {
            digest: Digest::of(b""),
            cause: Box::new(cause),
        };
        let write = |number: i32| EntryError::Write {
            path: "bin/program".to_owned(),
            cause: io::Error::from_raw_os_error(number),
        };
        let (full, quota, denied) = (28, 122, 13);
        assert!(directory(full).is_disk_full() && directory(quota).is_disk_full());
        assert!(layer(write(full)).is_disk_full());
        assert!(!directory(denied).is_disk_full() && !layer(write(denied)).is_disk_full());
        assert!(!layer(EntryError::Root("file")).is_disk_full());
        assert!(!PullError::Malformed(String::new()).is_disk_full());
    }
}
