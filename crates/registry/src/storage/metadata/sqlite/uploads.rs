//! Uploads.

use super::{Sqlite, blobs, ensure, stored_size};
use crate::error::Error;
use crate::name::Name;
use crate::storage::metadata::{Arrived, Kept, Uploads};
use oci::{Algorithm, Hasher};
use rusqlite::{OptionalExtension, Transaction, params};

impl Uploads for Sqlite {
    fn keep_upload(&self, upload: Kept) -> Result<(), Error> {
        self.database.write(move |transaction| {
            transaction
                .prepare_cached("REPLACE INTO upload VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?
                .execute(params![
                    upload.id,
                    upload.repository.as_str(),
                    upload.principal,
                    stored_size(upload.offset),
                    upload.hasher.algorithm().as_str(),
                    upload.hasher.state(),
                    upload.updated
                ])?;
            Ok(())
        })
    }

    fn kept_upload(&self, id: &str) -> Result<Option<Kept>, Error> {
        let row = self.database.read(|database| {
            let mut statement = database.prepare_cached(
                "SELECT repository, principal, offset, algorithm, state, updated
                 FROM upload WHERE id = ?1",
            )?;
            let row = statement.query_row([id], |row| {
                let (repository, principal): (String, String) = (row.get(0)?, row.get(1)?);
                let (offset, updated): (i64, i64) = (row.get(2)?, row.get(5)?);
                let (algorithm, state): (String, Vec<u8>) = (row.get(3)?, row.get(4)?);
                let hasher = Algorithm::parse(&algorithm).and_then(|it| Hasher::resume(it, &state));
                let repository = Name::parse(&repository);
                Ok(repository.zip(hasher).map(|(repository, hasher)| Kept {
                    id: id.to_owned(),
                    repository,
                    principal,
                    offset: offset.unsigned_abs(),
                    hasher,
                    updated,
                }))
            });
            Ok(row.optional()?)
        });
        Ok(row?.flatten())
    }

    fn uploads_before(&self, limit: i64) -> Result<Vec<String>, Error> {
        self.database.read(|database| {
            let mut statement = database.prepare("SELECT id FROM upload WHERE updated < ?1")?;
            let rows: rusqlite::Result<Vec<String>> =
                statement.query_map([limit], |row| row.get(0))?.collect();
            Ok(rows?)
        })
    }

    fn forget_upload(&self, id: &str) -> Result<(), Error> {
        let id = id.to_owned();
        self.database.write(move |transaction| forget(transaction, &id))
    }

    fn finish_upload(&self, arrived: Arrived) -> Result<Vec<Name>, Error> {
        self.database.write(move |transaction| {
            let Arrived { repository: name, digest, size, lease, quota, upload } = &arrived;
            let repository = ensure(transaction, name)?;
            blobs::check_quota(transaction, repository, digest, *size, *quota)?;
            let mut waiting = blobs::record(transaction, digest, *size)?;
            if blobs::touch_awaiting(transaction, repository, digest)? {
                waiting.push(name.clone());
            }
            blobs::link(transaction, repository, digest, *lease)?;
            if let Some(id) = upload {
                forget(transaction, id)?;
            }
            Ok(waiting)
        })
    }
}

fn forget(transaction: &Transaction<'_>, id: &str) -> Result<(), Error> {
    transaction.prepare_cached("DELETE FROM upload WHERE id = ?1")?.execute([id])?;
    Ok(())
}
