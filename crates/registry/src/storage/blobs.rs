//! Blobs: looking them up, reading, mounting, deleting.

use super::files::Files;
use super::{Registry, ensure, find, known, now, quota, stored_size};
use crate::error::Error;
use crate::name::Name;
use oci::Digest;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use std::fs::File;
use std::io;

/// Repositories an anonymous mount looks at.
const MOUNT_CANDIDATES_MAX: i64 = 100;

/// A blob's file, open for reading.
pub(crate) struct OpenBlob {
    pub(crate) file: File,
    pub(crate) size: u64,
}

/// What the database knows of a blob in a repository.
struct Found {
    size: u64,
    lease: i64,
    used: bool,
}

impl Registry {
    /// The size of a blob. A client that is told of a blob has a lease's time to push a manifest
    /// that names it.
    pub async fn blob_size(&self, name: &Name, digest: &Digest) -> Result<u64, Error> {
        let (repository, wanted) = (name.clone(), digest.clone());
        let found = self.inner.database.read(move |it| look(it, &repository, &wanted)).await?;
        let half = super::millis(self.inner.settings.lease) / 2;
        if !found.used && found.lease < now().saturating_add(half) {
            self.extend_lease(name, digest).await?;
        }
        Ok(found.size)
    }

    /// Opens a blob.
    pub(crate) async fn open_blob(&self, name: &Name, digest: &Digest) -> Result<OpenBlob, Error> {
        let (name, digest, files) = (name.clone(), digest.clone(), self.inner.files.clone());
        self.inner
            .database
            .read(move |database| {
                look(database, &name, &digest)?;
                open(&files, &digest)
            })
            .await
    }

    /// Lets a repository have a blob of another one that `readable` allows to look at; without
    /// `from`, of any. `false` if there is none.
    pub(crate) async fn mount(
        &self,
        name: &Name,
        digest: &Digest,
        from: Option<&Name>,
        readable: impl Fn(&Name) -> bool,
    ) -> Result<bool, Error> {
        let candidates = match from {
            Some(from) => vec![from.clone()],
            None => self.holders(digest).await?,
        };
        let Some(from) = candidates.into_iter().find(readable) else { return Ok(false) };
        let (name, digest, lease) = (name.clone(), digest.clone(), self.lease());
        let quota = self.inner.settings.quota;
        self.inner
            .database
            .write(move |transaction| {
                let size = match look(transaction, &from, &digest) {
                    Ok(found) => found.size,
                    Err(Error::NameUnknown(_) | Error::BlobUnknown(_)) => return Ok(false),
                    Err(error) => return Err(error),
                };
                let repository = ensure(transaction, &name)?;
                quota::check(transaction, repository, &digest, size, quota)?;
                link(transaction, repository, &digest, lease)?;
                Ok(true)
            })
            .await
    }

    /// Takes a blob out of a repository; its bytes are collected later.
    pub async fn delete_blob(&self, name: &Name, digest: &Digest) -> Result<(), Error> {
        let (name, digest) = (name.clone(), digest.clone());
        self.inner
            .database
            .write(move |transaction| {
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
            .await
    }

    async fn extend_lease(&self, name: &Name, digest: &Digest) -> Result<(), Error> {
        let (name, digest, lease) = (name.clone(), digest.clone(), self.lease());
        self.inner
            .database
            .write(move |transaction| {
                look(transaction, &name, &digest)?;
                let repository = known(transaction, &name)?;
                link(transaction, repository, &digest, lease)
            })
            .await
    }

    /// Repositories that have a blob.
    pub(crate) async fn holders(&self, digest: &Digest) -> Result<Vec<Name>, Error> {
        let digest = digest.to_string();
        self.inner
            .database
            .read(move |database| {
                let mut statement = database.prepare_cached(
                    "SELECT name FROM repository JOIN repository_blob ON id = repository
                     WHERE digest = ?1 LIMIT ?2",
                )?;
                let rows = statement.query_map(params![digest, MOUNT_CANDIDATES_MAX], |row| {
                    row.get::<_, String>(0)
                })?;
                let names: rusqlite::Result<Vec<String>> = rows.collect();
                Ok(names?.iter().filter_map(|name| Name::parse(name)).collect())
            })
            .await
    }

    /// Reads a blob's bytes entirely; for manifests, which are small.
    pub(super) fn read_small(files: &Files, digest: &Digest) -> Result<Vec<u8>, Error> {
        match fs_err::read(files.blob(digest)) {
            Ok(bytes) if digest.matches(&bytes) => Ok(bytes),
            Ok(_) => Err(Error::BlobUnknown(digest.clone())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Error::BlobUnknown(digest.clone()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a file that got its name but no row, because the change was refused. The caller
    /// holds the digest.
    pub(super) fn drop_unknown_file(&self, digest: &Digest) {
        let known = self.inner.database.read_here(|database| is_known(database, digest));
        if matches!(known, Ok(false)) {
            // What cannot be removed now is collected later.
            let _ = self.inner.files.remove_blob(digest);
        }
    }
}

/// Whether a blob's file is there to be served.
pub(super) fn is_known(database: &Connection, digest: &Digest) -> Result<bool, Error> {
    let mut statement = database.prepare_cached("SELECT 1 FROM blob WHERE digest = ?1")?;
    Ok(statement.exists([digest.to_string()])?)
}

/// Records that a blob's file is there.
pub(super) fn record(
    transaction: &Transaction<'_>,
    digest: &Digest,
    size: u64,
) -> Result<(), Error> {
    transaction
        .prepare_cached(
            "INSERT INTO blob (digest, size) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET size = ?2",
        )?
        .execute(params![digest.to_string(), stored_size(size)])?;
    Ok(())
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
    let repository = find(database, name)?.ok_or_else(|| Error::NameUnknown(name.clone()))?;
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

fn open(files: &Files, digest: &Digest) -> Result<OpenBlob, Error> {
    match fs_err::File::open(files.blob(digest)) {
        Ok(file) => {
            let size = file.metadata()?.len();
            Ok(OpenBlob { file: file.into_parts().0, size })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::BlobUnknown(digest.clone()))
        }
        Err(error) => Err(error.into()),
    }
}
