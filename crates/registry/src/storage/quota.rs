//! How much one repository may hold.

use super::{Registry, find, stored_size};
use crate::error::Error;
use crate::name::Name;
use oci::Digest;
use rusqlite::{Connection, params};

impl Registry {
    /// Refuses early what would not fit; [`check`] decides when it is there.
    pub(crate) async fn check_quota(&self, name: &Name, more: u64) -> Result<(), Error> {
        let Some(limit) = self.inner.settings.quota else { return Ok(()) };
        let name = name.clone();
        let read = self.inner.database.read(move |database| {
            find(database, &name)?.map_or(Ok(0), |repository| used(database, repository))
        });
        if read.await?.saturating_add(more) > limit {
            return Err(Error::QuotaExceeded { limit });
        }
        Ok(())
    }
}

/// Whether a repository may have one more blob or manifest, in the transaction that gives it.
pub(super) fn check(
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
