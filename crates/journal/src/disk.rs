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

    /// Makes a batch durable, all of it or nothing. After an error the log asks with
    /// [`Self::holds`] which of both it was before it commits again.
    fn commit(&mut self, batch: &[Record]) -> Result<(), DiskError>;

    /// Drops what was replaced or removed at or before `version`.
    fn compact(&mut self, version: u64) -> Result<(), DiskError>;

    /// Whether the newest record is of this version.
    fn holds(&mut self, _version: u64) -> Result<bool, DiskError> {
        Ok(true)
    }

    /// Writes something that changes nothing, to see whether that can be done.
    fn probe(&mut self) -> Result<(), DiskError> {
        Ok(())
    }

    /// Gives space back that is not needed, as far as that is possible.
    fn make_room(&mut self) {}

    /// Brings everything into one file: called once, after the last commit.
    fn close(&mut self) -> Result<(), DiskError> {
        Ok(())
    }
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
    /// Less is there than was acknowledged.
    #[error(
        "it ends with version {found}, though version {acknowledged} was acknowledged: the \
         write-ahead log is damaged, cut off or gone, or the database is an older copy"
    )]
    Lost {
        /// The last version that is there.
        found: u64,
        /// The last version that a client was told of.
        acknowledged: u64,
    },
    /// A version that must be there is not.
    #[error("the record of version {0} is missing")]
    Gap(u64),
    /// Records up to a version are not those that were acknowledged.
    #[error("records up to version {0} are missing, or are not those that were acknowledged")]
    Rows(u64),
    /// The database is empty or gone, though other files show that it was used.
    #[error("log.sqlite is empty or gone, though {0} shows that it was in use")]
    Emptied(String),
    /// The file that says what was acknowledged says nothing.
    #[error("the file log.acknowledged cannot be understood")]
    Acknowledged,
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
