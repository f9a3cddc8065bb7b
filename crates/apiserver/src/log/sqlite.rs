//! Records in `SQLite`: one append-only table, one sync per batch.
//!
//! A row is a write. The newest row of a key is its present; a row without a value is a
//! removal. `previous` names the row that a write replaced, which both proves at start-up
//! that no row is missing and says what compaction may drop.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use rusqlite::{Connection, ErrorCode, OptionalExtension, params};

use super::{Damage, Disk, DiskError, Record, Recovered};

/// The layout this code reads and writes.
const FORMAT: i64 = 1;

/// A log's disk in a directory of its own.
#[derive(Debug)]
pub struct Sqlite {
    connection: Connection,
    path: PathBuf,
}

impl Sqlite {
    /// Opens (or makes) the database in `directory` and takes it for this process alone.
    pub fn open(directory: &Path) -> Result<Self, DiskError> {
        // Objects hold secrets: what we make is for its owner only.
        std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700)
            .recursive(true)
            .create(directory)
            .map_err(DiskError::Directory)?;
        let path = directory.join("log.sqlite");
        let connection = Connection::open(&path).map_err(|error| translate(error, &path))?;
        let mut disk = Self { connection, path };
        disk.prepare().map_err(|error| translate(error, &disk.path))?;
        Ok(disk)
    }

    fn prepare(&mut self) -> rusqlite::Result<()> {
        // Exclusive: a second process is refused at once, and the lock ends with us.
        self.connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        self.connection.pragma_update(None, "journal_mode", "WAL")?;
        // FULL: a commit returns only after the write-ahead log is synced.
        self.connection.pragma_update(None, "synchronous", "FULL")?;
        self.connection.busy_timeout(std::time::Duration::ZERO)?;
        let transaction =
            self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Exclusive)?;
        transaction.execute_batch(
            "CREATE TABLE IF NOT EXISTS log (
                 version INTEGER PRIMARY KEY, key TEXT NOT NULL, value BLOB,
                 previous INTEGER NOT NULL, checksum INTEGER NOT NULL);
             CREATE INDEX IF NOT EXISTS log_previous ON log (previous);
             CREATE TABLE IF NOT EXISTS mark (name TEXT PRIMARY KEY, value INTEGER NOT NULL);",
        )?;
        transaction.execute("INSERT OR IGNORE INTO mark VALUES ('format', ?1)", params![FORMAT])?;
        transaction.commit()
    }

    fn mark(&self, name: &str) -> Result<i64, DiskError> {
        self.connection
            .query_row("SELECT value FROM mark WHERE name = ?1", [name], |row| row.get(0))
            .optional()
            .map(Option::unwrap_or_default)
            .map_err(|error| translate(error, &self.path))
    }

    fn records(&self) -> Result<Vec<Record>, DiskError> {
        let broken = |error| translate(error, &self.path);
        let mut statement = self
            .connection
            .prepare("SELECT version, key, value, previous, checksum FROM log ORDER BY version")
            .map_err(broken)?;
        let mut rows = statement.query([]).map_err(broken)?;
        let mut records = Vec::new();
        while let Some(row) = rows.next().map_err(broken)? {
            let (record, sum) = read(row).map_err(broken)?;
            if checksum(&record) != sum {
                return Err(DiskError::Damaged(Damage::Checksum(record.version)));
            }
            records.push(record);
        }
        Ok(records)
    }
}

impl Disk for Sqlite {
    fn recover(&mut self) -> Result<Recovered, DiskError> {
        let format = self.mark("format")?;
        if format != FORMAT {
            return Err(DiskError::Damaged(Damage::Format(format)));
        }
        let compacted = self.mark("compacted")?.cast_unsigned();
        let records = self.records()?;
        let last = records.last().map_or(0, |record| record.version);
        Ok(Recovered { records, compacted, version: last.max(compacted) })
    }

    fn commit(&mut self, batch: &[Record]) -> Result<(), DiskError> {
        let path = &self.path;
        let broken = |error| translate(error, path);
        let transaction = self.connection.transaction().map_err(broken)?;
        {
            let mut insert = transaction
                .prepare_cached("INSERT INTO log VALUES (?1, ?2, ?3, ?4, ?5)")
                .map_err(broken)?;
            for record in batch {
                insert
                    .execute(params![
                        record.version.cast_signed(),
                        record.key,
                        record.value.as_deref(),
                        record.previous.cast_signed(),
                        checksum(record),
                    ])
                    .map_err(broken)?;
            }
        }
        transaction.commit().map_err(broken)
    }

    fn compact(&mut self, version: u64) -> Result<(), DiskError> {
        let path = &self.path;
        let broken = |error| translate(error, path);
        let version = version.cast_signed();
        let transaction = self.connection.transaction().map_err(broken)?;
        transaction
            .execute(
                "DELETE FROM log WHERE version IN (SELECT previous FROM log WHERE version <= ?1)",
                [version],
            )
            .map_err(broken)?;
        transaction
            .execute("DELETE FROM log WHERE version <= ?1 AND value IS NULL", [version])
            .map_err(broken)?;
        transaction
            .execute("INSERT OR REPLACE INTO mark VALUES ('compacted', ?1)", [version])
            .map_err(broken)?;
        transaction.commit().map_err(broken)
    }
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<(Record, i64)> {
    let value: Option<Vec<u8>> = row.get(2)?;
    let record = Record {
        version: row.get::<_, i64>(0)?.cast_unsigned(),
        key: row.get(1)?,
        value: value.map(Bytes::from),
        previous: row.get::<_, i64>(3)?.cast_unsigned(),
    };
    Ok((record, row.get(4)?))
}

/// FNV-1a over everything a record says: not against malice, against a bad disk.
fn checksum(record: &Record) -> i64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut eat = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    eat(&record.version.to_le_bytes());
    eat(&record.previous.to_le_bytes());
    eat(record.key.as_bytes());
    eat(&[u8::from(record.value.is_some())]);
    eat(record.value.as_deref().unwrap_or_default());
    hash.cast_signed()
}

fn translate(error: rusqlite::Error, path: &Path) -> DiskError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            DiskError::InUse(path.display().to_string())
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            DiskError::Damaged(Damage::File(error.to_string()))
        }
        _ => DiskError::Sqlite(error),
    }
}
