//! Where batches of records become durable: the seam between the log and the world.

use bytes::Bytes;

/// One write as it lies on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The version it got.
    pub version: u64,
    /// The key it changed.
    pub key: String,
    /// The new text, or `None` for a removal.
    pub value: Option<Bytes>,
    /// The version it replaced; zero when nothing was there.
    pub previous: u64,
}

/// What a disk holds when it is opened.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Records in order of version: everything live, and the past that is still kept.
    pub records: Vec<Record>,
    /// Versions up to and including this one are not all there any more.
    pub compacted: u64,
    /// The highest version ever given out.
    pub version: u64,
}

/// A place for records. Called by the one writer only.
pub trait Disk: Send {
    /// Reads everything back, verifying it.
    fn recover(&mut self) -> Result<Recovered, DiskError>;

    /// Makes a batch durable, all of it or nothing. After an error the log never calls
    /// again: whether the batch is there is decided when the disk is next opened.
    fn commit(&mut self, batch: &[Record]) -> Result<(), DiskError>;

    /// Drops what was replaced or removed at or before `version`.
    fn compact(&mut self, version: u64) -> Result<(), DiskError>;
}

/// What is wrong with the data found on a disk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// A record's checksum does not fit its content.
    #[error("the record of version {0} does not match its checksum")]
    Checksum(u64),
    /// A record names a predecessor that is not there.
    #[error("the record of version {version} replaces version {previous}, which is not there")]
    Chain {
        /// The record.
        version: u64,
        /// What it says it replaced.
        previous: u64,
    },
    /// The database file itself is broken.
    #[error("the database file is damaged: {0}")]
    File(String),
    /// The file was written by another, newer kind of log.
    #[error("the data has format {0}, which this version of the program does not know")]
    Format(i64),
}

/// Why a disk could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// Another process has the data open.
    #[error("another process is using {0}")]
    InUse(String),
    /// The data is damaged; nothing was changed.
    #[error("the stored data is damaged")]
    Damaged(#[source] Damage),
    /// Reading or writing failed.
    #[error("the database could not be read or written")]
    Sqlite(#[source] rusqlite::Error),
    /// The directory could not be prepared.
    #[error("the data directory could not be prepared")]
    Directory(#[source] std::io::Error),
    /// The writer's thread could not be started.
    #[error("the log's writer could not be started")]
    Thread(#[source] std::io::Error),
}
