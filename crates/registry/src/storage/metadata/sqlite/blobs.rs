//! Blobs, and how much of them a repository may hold.

use super::{Sqlite, ensure, find, known, stored_limit, stored_name, stored_size};
use crate::error::Error;
use crate::name::Name;
use crate::storage::metadata::{Blobs, Found, Mount};
use oci::Digest;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

impl Blobs for Sqlite {
    fn blob(&self, name: &Name, digest: &Digest) -> Result<Found, Error> {
        self.database.read(|database| look(database, name, digest))
    }

    fn is_known(&self, digest: &Digest) -> Result<bool, Error> {
        self.database.read(|database| is_known(database, digest))
    }

    fn renew_lease(&self, name: &Name, digest: &Digest, lease: i64) -> Result<(), Error> {
        let (name, digest) = (name.clone(), digest.clone());
        self.database.write(move |transaction| {
            look(transaction, &name, &digest)?;
            let repository = known(transaction, &name)?;
            link(transaction, repository, &digest, lease)
        })
    }

    fn mount(&self, mount: Mount) -> Result<bool, Error> {
        self.database.write(move |transaction| {
            let Mount { from, to, digest, lease, quota } = &mount;
            let size = match look(transaction, from, digest) {
                Ok(found) => found.size,
                Err(Error::NameUnknown(_) | Error::BlobUnknown(_)) => return Ok(false),
                Err(error) => return Err(error),
            };
            let repository = ensure(transaction, to)?;
            check_quota(transaction, repository, digest, size, *quota)?;
            touch_awaiting(transaction, repository, digest)?;
            link(transaction, repository, digest, *lease)?;
            Ok(true)
        })
    }

    fn delete_blob(&self, name: &Name, digest: &Digest) -> Result<(), Error> {
        let (name, digest) = (name.clone(), digest.clone());
        self.database.write(move |transaction| {
            let repository = known(transaction, &name)?;
            if look(transaction, &name, &digest)?.used {
                return Err(Error::BlobInUse(digest));
            }
            transaction
                .prepare_cached(
                    "DELETE FROM repository_blob WHERE repository = ?1 AND digest = ?2",
                )?
                .execute(params![repository, digest.to_string()])?;
            Ok(())
        })
    }

    fn holders(&self, digest: &Digest, limit: usize) -> Result<Vec<Name>, Error> {
        self.database.read(|database| {
            let mut statement = database.prepare_cached(
                "SELECT name FROM repository JOIN repository_blob ON id = repository
                 WHERE digest = ?1 LIMIT ?2",
            )?;
            let rows: rusqlite::Result<Vec<String>> = statement
                .query_map(params![digest.to_string(), stored_limit(limit)], |row| row.get(0))?
                .collect();
            rows?.iter().map(|name| stored_name(name)).collect()
        })
    }

    fn used(&self, name: &Name) -> Result<u64, Error> {
        self.database.read(|database| {
            find(database, name)?.map_or(Ok(0), |repository| used(database, repository))
        })
    }
}

/// Whether a blob's file is there to be served.
pub(super) fn is_known(database: &Connection, digest: &Digest) -> Result<bool, Error> {
    let mut statement = database.prepare_cached("SELECT 1 FROM blob WHERE digest = ?1")?;
    Ok(statement.exists([digest.to_string()])?)
}

/// Records that a blob's file is there; gives the repositories that have it back, if it was condemned.
pub(super) fn record(
    transaction: &Transaction<'_>,
    digest: &Digest,
    size: u64,
) -> Result<Vec<Name>, Error> {
    let was_known = is_known(transaction, digest)?;
    transaction
        .prepare_cached(
            "INSERT INTO blob (digest, size) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET size = ?2",
        )?
        .execute(params![digest.to_string(), stored_size(size)])?;
    if was_known { Ok(Vec::new()) } else { touch_owners(transaction, digest) }
}

/// Notes a change in each repository with a manifest that is this or names it; gives them.
pub(super) fn touch_owners(
    transaction: &Transaction<'_>,
    digest: &Digest,
) -> Result<Vec<Name>, Error> {
    let mut statement = transaction.prepare_cached(
        "UPDATE repository SET generation = generation + 1 WHERE id IN (
             SELECT repository FROM manifest WHERE digest = ?1
             UNION SELECT repository FROM repository_blob AS it WHERE digest = ?1
             AND EXISTS (SELECT 1 FROM manifest_child
                         WHERE repository = it.repository AND child = ?1))
         RETURNING name",
    )?;
    let rows = statement.query_map([digest.to_string()], |row| row.get::<_, String>(0))?;
    let mut names = rows.collect::<rusqlite::Result<Vec<String>>>()?;
    names.sort_unstable();
    names.iter().map(|name| stored_name(name)).collect()
}

/// Notes that a repository's view has to be drawn again, if a manifest there names a blob that is
/// only about to come; tells whether one does.
pub(super) fn touch_awaiting(
    transaction: &Transaction<'_>,
    repository: i64,
    digest: &Digest,
) -> Result<bool, Error> {
    let count = transaction
        .prepare_cached(
            "UPDATE repository SET generation = generation + 1 WHERE id = ?1
             AND EXISTS (SELECT 1 FROM manifest_child WHERE repository = ?1 AND child = ?2)
             AND NOT EXISTS (SELECT 1 FROM repository_blob WHERE repository = ?1 AND digest = ?2)",
        )?
        .execute(params![repository, digest.to_string()])?;
    Ok(count > 0)
}

/// Lets a repository have a blob, safe from collection until `lease`.
pub(super) fn link(
    transaction: &Transaction<'_>,
    repository: i64,
    digest: &Digest,
    lease: i64,
) -> Result<(), Error> {
    transaction
        .prepare_cached(
            "INSERT INTO repository_blob (repository, digest, lease) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET lease = max(lease, ?3)",
        )?
        .execute(params![repository, digest.to_string(), lease])?;
    Ok(())
}

fn look(database: &Connection, name: &Name, digest: &Digest) -> Result<Found, Error> {
    let repository = known(database, name)?;
    let mut statement = database.prepare_cached(
        "SELECT size, lease,
                EXISTS (SELECT 1 FROM manifest_child WHERE repository = ?1 AND child = ?2)
         FROM repository_blob JOIN blob USING (digest) WHERE repository = ?1 AND digest = ?2",
    )?;
    let found = statement.query_row(params![repository, digest.to_string()], |row| {
        let size: i64 = row.get(0)?;
        Ok(Found { size: size.unsigned_abs(), lease: row.get(1)?, used: row.get(2)? })
    });
    found.optional()?.ok_or_else(|| Error::BlobUnknown(digest.clone()))
}

/// Whether a repository may have one more blob or manifest, in the transaction that gives it.
pub(super) fn check_quota(
    database: &Connection,
    repository: i64,
    digest: &Digest,
    size: u64,
    quota: Option<u64>,
) -> Result<(), Error> {
    let Some(limit) = quota else { return Ok(()) };
    let held: bool = database
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM repository_blob WHERE repository = ?1 AND digest = ?2)
                 OR EXISTS (SELECT 1 FROM manifest WHERE repository = ?1 AND digest = ?2)",
        )?
        .query_row(params![repository, digest.to_string()], |row| row.get(0))?;
    if held || used(database, repository)?.saturating_add(size) <= limit {
        return Ok(());
    }
    Err(Error::QuotaExceeded { limit })
}

/// Bytes of a repository's blobs and manifests.
fn used(database: &Connection, repository: i64) -> Result<u64, Error> {
    let mut statement = database.prepare_cached(
        "SELECT (SELECT coalesce(sum(size), ?2) FROM repository_blob JOIN blob USING (digest)
                 WHERE repository = ?1)
              + (SELECT coalesce(sum(size), ?2) FROM manifest WHERE repository = ?1)",
    )?;
    let sum: i64 = statement.query_row(params![repository, stored_size(0)], |row| row.get(0))?;
    Ok(sum.unsigned_abs())
}
