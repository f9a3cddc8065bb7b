//! Records in `SQLite`: one append-only table, one sync per batch.
//!
//! A row is a write. The newest row of a key is its present; a row without a value is a
//! removal. `previous` names the row that a write replaced, which both proves at start-up
//! that no row is missing and says what compaction may drop. A file beside the database says
//! what was acknowledged: see `acknowledged`.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OptionalExtension, params};

use super::acknowledged::{self, Acknowledged, Tally};
use super::reserve::Reserve;
use super::{Damage, Disk, DiskError, Record, Recovered};

/// The layout this code reads and writes.
const FORMAT: i64 = 1;
/// The length of the shortest database there is.
const SMALLEST: u64 = 512;

/// A log's disk in a directory of its own.
#[derive(Debug)]
pub struct Sqlite {
    connection: Connection,
    path: PathBuf,
    acknowledged: Acknowledged,
    /// What the rows add up to, once they have been read.
    tally: Option<Tally>,
    reserve: Reserve,
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
        let mut acknowledged = Acknowledged::open(directory).map_err(DiskError::Directory)?;
        let used = acknowledged.read()?.is_some_and(|tally| tally.version > 0);
        refuse_emptied(directory, &path, used)?;
        make_private(directory).map_err(DiskError::Directory)?;
        let connection = Connection::open(&path).map_err(|error| translate(error, &path))?;
        let reserve = Reserve::at(directory);
        let mut disk = Self { connection, path, acknowledged, tally: None, reserve };
        disk.prepare(used).map_err(|error| translate(error, &disk.path))?;
        Ok(disk)
    }

    /// Takes the database for this process, and makes its tables unless it was used before: then
    /// they are there, or were lost.
    fn prepare(&mut self, used: bool) -> rusqlite::Result<()> {
        // Exclusive: a second process is refused at once, and the lock ends with us.
        self.connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        self.connection.pragma_update(None, "journal_mode", "WAL")?;
        // FULL: a commit returns only after the write-ahead log is synced.
        self.connection.pragma_update(None, "synchronous", "FULL")?;
        self.connection.busy_timeout(std::time::Duration::ZERO)?;
        // Until the data is known to be whole, closing must not clear the write-ahead log away.
        self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        let transaction =
            self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Exclusive)?;
        if used {
            return transaction.commit();
        }
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

    /// All rows, and what those add up to that are not newer than `upto`.
    fn records(&self, upto: u64) -> Result<(Vec<Record>, Tally, Tally), DiskError> {
        let broken = |error| translate(error, &self.path);
        let mut statement = self
            .connection
            .prepare("SELECT version, key, value, previous, checksum FROM log ORDER BY version")
            .map_err(broken)?;
        let mut rows = statement.query([]).map_err(broken)?;
        let (mut records, mut all, mut known) = (Vec::new(), Tally::default(), Tally::default());
        while let Some(row) = rows.next().map_err(broken)? {
            let (record, sum) = read(row).map_err(broken)?;
            if checksum(&record) != sum {
                return Err(DiskError::Damaged(Damage::Checksum(record.version)));
            }
            all.add_row(sum);
            if record.version <= upto {
                known.add_row(sum);
            }
            records.push(record);
        }
        Ok((records, all, known))
    }

    /// Reads and verifies everything; the tally is that of what was found.
    fn read_verified(&mut self) -> Result<(Recovered, Tally), DiskError> {
        let format = self.mark("format")?;
        if format != FORMAT {
            return Err(DiskError::Damaged(Damage::Format(format)));
        }
        let compacted = self.mark("compacted")?.cast_unsigned();
        let promised = self.acknowledged.read()?;
        let upto = promised.map_or(0, |tally| tally.version);
        let (records, mut all, mut known) = self.records(upto)?;
        let last = records.last().map_or(0, |record| record.version);
        (all.version, all.compacted) = (last.max(compacted), compacted);
        (known.version, known.compacted) = (upto, compacted);
        verify_contiguous(&records, compacted)?;
        if let Some(promised) = promised {
            verify_promise(&promised, &known, last, all.version)?;
        }
        // Compaction since, or a home from before there was a tally: the rows must be vouched
        // for by the database itself.
        if promised.is_none_or(|promised| promised.compacted != compacted) {
            self.check_integrity()?;
        }
        Ok((Recovered { records, compacted, version: all.version }, all))
    }

    /// Lets `SQLite` compare its table with its index, page by page.
    fn check_integrity(&self) -> Result<(), DiskError> {
        let found: String = self
            .connection
            .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
            .map_err(|error| translate(error, &self.path))?;
        if found == "ok" { Ok(()) } else { Err(DiskError::Damaged(Damage::File(found))) }
    }

    /// Brings everything from the write-ahead log into the database and empties the log.
    fn checkpoint(&self) -> Result<(), DiskError> {
        let done = |_: &rusqlite::Row<'_>| Ok(());
        self.connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], done)
            .map_err(|error| translate(error, &self.path))
    }

    /// Tells the file beside the database what is acknowledged from now on. If it cannot be told,
    /// it says less than is true, and is told the next time.
    fn acknowledge(&mut self, tally: Tally) {
        self.tally = Some(tally);
        let _ = self.acknowledged.note(&tally);
    }

    fn tally(&mut self) -> Result<Tally, DiskError> {
        if let Some(tally) = self.tally {
            return Ok(tally);
        }
        self.recover()?;
        Ok(self.tally.unwrap_or_default())
    }
}

impl Disk for Sqlite {
    fn recover(&mut self) -> Result<Recovered, DiskError> {
        let (recovered, tally) = self.read_verified()?;
        self.connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)
            .map_err(|error| translate(error, &self.path))?;
        self.acknowledged.begin(&tally).map_err(DiskError::Directory)?;
        self.tally = Some(tally);
        Ok(recovered)
    }

    fn commit(&mut self, batch: &[Record]) -> Result<(), DiskError> {
        let mut tally = self.tally()?;
        let path = &self.path;
        let broken = |error| translate(error, path);
        let transaction = self.connection.transaction().map_err(broken)?;
        {
            let mut insert = transaction
                .prepare_cached("INSERT INTO log VALUES (?1, ?2, ?3, ?4, ?5)")
                .map_err(broken)?;
            for record in batch {
                let sum = checksum(record);
                tally.add_row(sum);
                tally.version = record.version;
                insert
                    .execute(params![
                        record.version.cast_signed(),
                        record.key,
                        record.value.as_deref(),
                        record.previous.cast_signed(),
                        sum,
                    ])
                    .map_err(broken)?;
            }
        }
        transaction.commit().map_err(broken)?;
        self.acknowledge(tally);
        self.reserve.keep_filled();
        Ok(())
    }

    fn holds(&mut self, version: u64) -> Result<bool, DiskError> {
        let newest: Option<i64> = self
            .connection
            .query_row("SELECT max(version) FROM log", [], |row| row.get(0))
            .map_err(|error| translate(error, &self.path))?;
        let newest = newest.unwrap_or_default().max(self.mark("compacted")?);
        Ok(newest.cast_unsigned().max(1) == version)
    }

    fn probe(&mut self) -> Result<(), DiskError> {
        let probed = "INSERT OR REPLACE INTO mark VALUES ('probed', 1)";
        self.connection.execute(probed, []).map_err(|error| translate(error, &self.path))?;
        Ok(())
    }

    /// What the write-ahead log holds may need space in the database before it can be cleared
    /// away; for that, some is kept in reserve.
    fn make_room(&mut self) {
        if self.checkpoint().is_err() {
            self.reserve.release();
            let _ = self.checkpoint();
        }
    }

    fn compact(&mut self, version: u64) -> Result<(), DiskError> {
        let mut tally = self.tally()?;
        let path = &self.path;
        let broken = |error| translate(error, path);
        let transaction = self.connection.transaction().map_err(broken)?;
        for dropped in [
            "DELETE FROM log WHERE version IN (SELECT previous FROM log WHERE version <= ?1)
             RETURNING checksum",
            "DELETE FROM log WHERE version <= ?1 AND value IS NULL RETURNING checksum",
        ] {
            let mut statement = transaction.prepare_cached(dropped).map_err(broken)?;
            let mut rows = statement.query([version.cast_signed()]).map_err(broken)?;
            while let Some(row) = rows.next().map_err(broken)? {
                tally.drop_row(row.get(0).map_err(broken)?);
            }
        }
        let mark = "INSERT OR REPLACE INTO mark VALUES ('compacted', ?1)";
        transaction.execute(mark, [version.cast_signed()]).map_err(broken)?;
        transaction.commit().map_err(broken)?;
        tally.compacted = version;
        self.acknowledge(tally);
        Ok(())
    }

    fn close(&mut self) -> Result<(), DiskError> {
        self.checkpoint()?;
        self.acknowledged.sync().map_err(DiskError::Directory)
    }
}

/// Every version that was not compacted must be there.
fn verify_contiguous(records: &[Record], compacted: u64) -> Result<(), DiskError> {
    // Versions start at 1, which nothing is written at.
    let mut next = compacted.max(1).saturating_add(1);
    for record in records.iter().filter(|record| record.version > compacted) {
        if record.version != next {
            return Err(DiskError::Damaged(Damage::Gap(next)));
        }
        next = next.saturating_add(1);
    }
    Ok(())
}

/// Holds what was found, up to the version that was acknowledged, against what was acknowledged.
fn verify_promise(
    promised: &Tally,
    known: &Tally,
    last: u64,
    version: u64,
) -> Result<(), DiskError> {
    if version < promised.version {
        let (found, acknowledged) = (version, promised.version);
        return Err(DiskError::Damaged(Damage::Lost { found, acknowledged }));
    }
    // A version beyond what was promised has a row, as no compaction takes the newest rows.
    let invented = version > promised.version.max(last);
    if invented || (promised.compacted == known.compacted && promised != known) {
        return Err(DiskError::Damaged(Damage::Rows(promised.version)));
    }
    Ok(())
}

/// An empty database is where a first start ended early, unless something shows that it was used.
/// `SQLite` would clear the write-ahead log beside it away.
fn refuse_emptied(directory: &Path, path: &Path, used: bool) -> Result<(), DiskError> {
    let length = |path: &Path| fs_err::metadata(path).map_or(0, |found| found.len());
    if length(path) >= SMALLEST {
        return Ok(());
    }
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    let sign = if used {
        acknowledged::NAME
    } else if length(Path::new(&wal)) > 0 {
        "log.sqlite-wal"
    } else if fs_err::metadata(path).is_ok() && directory.join("pki").exists() {
        "the directory pki"
    } else {
        return Ok(());
    };
    Err(DiskError::Damaged(Damage::Emptied(sign.to_owned())))
}

/// Makes the files of a database their owner's, whoever may look into the directory. Those that
/// `SQLite` makes beside the first get its mode.
fn make_private(directory: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    let path = directory.join("log.sqlite");
    std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    let database = ["", "-wal", "-shm", "-journal"].map(|suffix| format!("log.sqlite{suffix}"));
    for name in database.iter().map(String::as_str).chain([acknowledged::NAME]) {
        let file = directory.join(name);
        match fs_err::metadata(&file) {
            Ok(found) if found.permissions().mode() & 0o077 != 0 => {
                fs_err::set_permissions(&file, std::fs::Permissions::from_mode(0o600))?;
            }
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
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

/// A hash over everything a record says.
fn checksum(record: &Record) -> i64 {
    acknowledged::hash(&[
        &record.version.to_le_bytes(),
        &record.previous.to_le_bytes(),
        record.key.as_bytes(),
        &[u8::from(record.value.is_some())],
        record.value.as_deref().unwrap_or_default(),
    ])
    .cast_signed()
}

fn translate(error: rusqlite::Error, path: &Path) -> DiskError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            DiskError::InUse(path.display().to_string())
        }
        // What is asked for is always the same: if it makes no sense, a table is missing.
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown) => {
            DiskError::Damaged(Damage::File(error.to_string()))
        }
        _ => DiskError::Sqlite(error),
    }
}
