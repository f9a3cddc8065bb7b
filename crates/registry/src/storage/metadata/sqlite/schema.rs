//! The tables, and opening a database that has them.
//!
//! ```text
//!   repository ─┬─ tag ──────────► manifest ──► manifest_child (blobs and manifests it names)
//!               ├─ manifest ─────► blob (the bytes, one file each)
//!               └─ repository_blob (may be pulled here; `lease` protects it from collection)
//!   upload: where a client left off, with the state of the hash
//! ```
//!
//! `blob` has a row for every file that may be served, whoever refers to it. A row is written
//! only after its file is durable, and removed before its file is.

use crate::error::OpenError;
use crate::storage::private;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// The format of the tables, kept in the database's `user_version`.
const FORMAT: i64 = 1;
/// How long a connection waits for another; only start-up and checkpoints can make one wait.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Pages a connection keeps, in KiB (negative, as `SQLite` wants it).
const PAGE_CACHE: i64 = -1024;

const TABLES: &str = "
CREATE TABLE repository (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    generation INTEGER NOT NULL DEFAULT 1,
    viewed INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE blob (digest TEXT PRIMARY KEY, size INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE repository_blob (
    repository INTEGER NOT NULL,
    digest TEXT NOT NULL,
    lease INTEGER NOT NULL,
    PRIMARY KEY (repository, digest)
) WITHOUT ROWID;
CREATE INDEX repository_blob_digest ON repository_blob (digest);
CREATE INDEX repository_blob_lease ON repository_blob (lease);
CREATE TABLE manifest (
    repository INTEGER NOT NULL,
    digest TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size INTEGER NOT NULL,
    pushed INTEGER NOT NULL,
    subject TEXT,
    artifact_type TEXT,
    annotations TEXT,
    PRIMARY KEY (repository, digest)
) WITHOUT ROWID;
CREATE INDEX manifest_digest ON manifest (digest);
CREATE INDEX manifest_subject ON manifest (repository, subject, digest) WHERE subject IS NOT NULL;
CREATE TABLE manifest_child (
    repository INTEGER NOT NULL,
    parent TEXT NOT NULL,
    child TEXT NOT NULL,
    PRIMARY KEY (repository, parent, child)
) WITHOUT ROWID;
CREATE INDEX manifest_child_child ON manifest_child (repository, child);
CREATE TABLE tag (
    repository INTEGER NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    updated INTEGER NOT NULL,
    PRIMARY KEY (repository, name)
) WITHOUT ROWID;
CREATE INDEX tag_digest ON tag (repository, digest);
CREATE TABLE upload (
    id TEXT PRIMARY KEY,
    repository TEXT NOT NULL,
    principal TEXT NOT NULL,
    offset INTEGER NOT NULL,
    algorithm TEXT NOT NULL,
    state BLOB NOT NULL,
    updated INTEGER NOT NULL
) WITHOUT ROWID;
";

/// Opens the one connection that writes, making the tables in a new database.
pub(super) fn open_writer(path: &Path) -> Result<Connection, OpenError> {
    // Its log gets the permissions that it has.
    private::ensure(path)?;
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // A commit is on the disk when it is answered; that is what the registry promises.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", PAGE_CACHE)?;
    connection.set_prepared_statement_cache_capacity(64);
    let transaction = connection.transaction()?;
    let found: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match found {
        0 => {
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "user_version", FORMAT)?;
        }
        FORMAT => {}
        found => return Err(OpenError::Format { found, known: FORMAT }),
    }
    transaction.commit()?;
    Ok(connection)
}

/// Commits something that changes nothing and is written all the same.
pub(super) fn write_something(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "user_version", FORMAT)
}

/// Opens a connection that only reads.
pub(super) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "cache_size", PAGE_CACHE)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}
