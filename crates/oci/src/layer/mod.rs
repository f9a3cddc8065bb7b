//! Layers: archives of files that change a file system, within limits.
//!
//! Reading is a pipe of small readers, each refusing more than it was told to accept:
//!
//! ```text
//!   blob ─► decompress (gzip | zstd | plain) ─► expanded ≤ max ─► archive entries ≤ max
//!                                                                  │
//!                                     one layer: read a file ◄─────┤
//!                                     many: flatten, then read ◄───┘
//! ```
//!
//! Nothing is ever extracted to a disk from here: entries are looked at and one file is read, so
//! a hostile name can at worst be refused. Writing lays down one-file layers whose bytes depend
//! on nothing but their content.

mod archive;
mod decompress;
mod flatten;
mod gzip;
mod write;

pub use archive::{Archive, Entry, EntryAttributes, EntryKind, LayerUse};
pub use decompress::decompress;
pub use flatten::{Flat, LayerSource, Location, flatten, open_file};
pub use gzip::{Effort, GzipWriter, gzip};
pub use write::{LayerWriter, WrittenLayer};

/// How much of a layer is read before it is called hostile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one compressed layer.
    pub compressed_bytes_max: u64,
    /// Bytes of all layers looked at, decompressed.
    pub expanded_bytes_max: u64,
    /// Entries of all layers looked at.
    pub entries_max: u64,
    /// Bytes of one entry's name or link target.
    pub path_bytes_max: u64,
    /// Bytes of all names and link targets of all layers looked at.
    pub names_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            compressed_bytes_max: 1 << 30,
            expanded_bytes_max: 4 << 30,
            entries_max: 250_000,
            path_bytes_max: 4096,
            names_bytes_max: 64 << 20,
        }
    }
}

impl Limits {
    /// What is left for further layers of the same image.
    #[must_use]
    pub fn without(&self, used: LayerUse) -> Self {
        Self {
            entries_max: self.entries_max.saturating_sub(used.entries),
            expanded_bytes_max: self.expanded_bytes_max.saturating_sub(used.bytes),
            names_bytes_max: self.names_bytes_max.saturating_sub(used.names),
            ..self.clone()
        }
    }
}

/// Why a layer cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// The bytes could not be had or decompressed.
    #[error("cannot read the layer")]
    Read(#[source] std::io::Error),
    /// The bytes end before the archive does.
    #[error("the layer's archive is truncated")]
    Truncated,
    /// The bytes are not an archive.
    #[error("the layer is not a tar archive: {0}")]
    Malformed(&'static str),
    /// More than was allowed.
    #[error("the layer exceeds the limit of {limit} {unit} ({name})")]
    Limit {
        /// The limit's name in [`Limits`].
        name: &'static str,
        /// Its value.
        limit: u64,
        /// What is counted.
        unit: &'static str,
    },
    /// A name that leaves the archive.
    #[error("the layer has an entry named `{0}`, which points outside of it")]
    Traversal(String),
    /// A hard link that leaves the archive.
    #[error("the layer's entry `{path}` is a link to `{target}`, outside of it")]
    LinkOutside {
        /// The entry.
        path: String,
        /// Where it points.
        target: String,
    },
    /// A hard link to nothing.
    #[error("the layer's entry `{path}` is a link to `{target}`, which does not exist")]
    LinkBroken {
        /// The entry.
        path: String,
        /// Where it points.
        target: String,
    },
    /// The file wanted is something else.
    #[error("`{path}` is a {what}, not a regular file")]
    NotAFile {
        /// The entry.
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// Two entries of one name in one layer: readers disagree on which one counts.
    #[error("the layer has two entries named `{0}`")]
    Duplicate(String),
}

impl LayerError {
    /// Unwraps one of ours that travelled inside an [`std::io::Error`].
    pub fn from_io(error: std::io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(ours) => ours,
            Err(other) if other.kind() == std::io::ErrorKind::UnexpectedEof => Self::Truncated,
            Err(other) => Self::Read(other),
        }
    }
}

impl LayerError {
    /// What is left of a limit is nobody's limit; messages name the one that was set.
    #[must_use]
    pub fn of_the_whole(self, limits: &Limits) -> Self {
        let Self::Limit { name, limit, unit } = self else {
            return self;
        };
        let limit = match name {
            "entries_max" => limits.entries_max,
            "expanded_bytes_max" => limits.expanded_bytes_max,
            "names_bytes_max" => limits.names_bytes_max,
            _ => limit,
        };
        Self::Limit { name, limit, unit }
    }
}

impl From<LayerError> for std::io::Error {
    fn from(error: LayerError) -> Self {
        Self::other(error)
    }
}

#[cfg(test)]
mod tests;
