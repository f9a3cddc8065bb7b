//! Metadata in a `SQLite` database, for one machine.

mod blobs;
mod database;
mod garbage;
mod lists;
mod manifests;
mod pictures;
mod schema;
mod uploads;

use super::{Held, Metadata, Stripes};
use crate::error::{Error, OpenError};
use crate::name::Name;
use database::Database;
use oci::Digest;
use rusqlite::{Connection, OptionalExtension, Transaction};
use std::path::Path;

/// The database of a data directory.
pub(crate) struct Sqlite {
    database: Database,
    /// No second process has this database; see the data directory's lock.
    stripes: Stripes,
}

impl Sqlite {
    /// Opens a database, making it if it is not there.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        Ok(Self { database: Database::open(path)?, stripes: Stripes::default() })
    }

    /// Closes it so that all of it is in its one file.
    pub(crate) fn close(self) -> Result<(), OpenError> {
        self.database.close()
    }
}

impl Metadata for Sqlite {
    fn check(&self) -> Result<(), Error> {
        self.database.read(|database| Ok(database.query_row("SELECT 1", [], |_| Ok(()))?))
    }

    fn hold(&self, digest: &Digest) -> Result<Held<'_>, Error> {
        Ok(self.stripes.hold(digest))
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::SpaceLow,
            _ => Self::Database(Box::new(error)),
        }
    }
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(Box::new(error))
    }
}

/// The number of a repository.
fn find(database: &Connection, name: &Name) -> Result<Option<i64>, Error> {
    let mut statement = database.prepare_cached("SELECT id FROM repository WHERE name = ?1")?;
    Ok(statement.query_row([name.as_str()], |row| row.get(0)).optional()?)
}

/// The number of a repository that must be there.
fn known(database: &Connection, name: &Name) -> Result<i64, Error> {
    find(database, name)?.ok_or_else(|| Error::NameUnknown(name.clone()))
}

/// The number of a repository, which is made if need be.
fn ensure(transaction: &Transaction<'_>, name: &Name) -> Result<i64, Error> {
    if let Some(id) = find(transaction, name)? {
        return Ok(id);
    }
    transaction
        .prepare_cached("INSERT INTO repository (name, viewed) VALUES (?1, 1)")?
        .execute([name.as_str()])?;
    Ok(transaction.last_insert_rowid())
}

/// A digest that we wrote into the database ourselves.
fn stored_digest(text: &str) -> Result<Digest, Error> {
    text.parse().map_err(|error| Error::Io(std::io::Error::other(error)))
}

/// A name that we wrote into the database ourselves.
fn stored_name(text: &str) -> Result<Name, Error> {
    let broken = || Error::Io(std::io::Error::other(format!("{text:?} is not a name")));
    Name::parse(text).ok_or_else(broken)
}

/// A size as the database keeps it.
fn stored_size(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// A limit as the database takes it.
fn stored_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
