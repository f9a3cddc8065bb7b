//! Scrubbing: reading every blob again, to find what the disk has lost.
//!
//! A damaged blob is moved to `quarantine/` and answered with 404 from then on: no bytes are
//! better than wrong ones. Pushing it again heals every repository that had it.

use super::{Registry, blocking, files, stored_digest};
use crate::error::Error;
use crate::limits::COLLECT_BATCH;
use oci::Digest;
use rusqlite::params;
use std::io;

/// What scrubbing found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// Blobs read.
    pub blobs: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Blobs that are damaged or missing, now out of service.
    pub damaged: Vec<Digest>,
}

impl Registry {
    /// Reads every blob and takes damaged ones out of service.
    pub async fn scrub(&self) -> Result<Scrubbed, Error> {
        let mut result = Scrubbed::default();
        let mut last = String::new();
        loop {
            let batch = self.some_blobs(&last).await?;
            let Some((end, _)) = batch.last() else { return Ok(result) };
            last.clone_from(end);
            for (digest, size) in batch {
                let digest = stored_digest(&digest)?;
                result.blobs += 1;
                result.bytes += size.unsigned_abs();
                if !self.is_whole(&digest, size).await? && self.condemn(&digest, size).await? {
                    result.damaged.push(digest);
                }
            }
        }
    }

    async fn some_blobs(&self, last: &str) -> Result<Vec<(String, i64)>, Error> {
        let last = last.to_owned();
        self.inner
            .database
            .read(move |database| {
                let mut statement = database.prepare_cached(
                    "SELECT digest, size FROM blob WHERE digest > ?1 ORDER BY digest LIMIT ?2",
                )?;
                let limit = i64::try_from(COLLECT_BATCH).unwrap_or(i64::MAX);
                let rows: rusqlite::Result<Vec<(String, i64)>> = statement
                    .query_map(params![last, limit], |row| Ok((row.get(0)?, row.get(1)?)))?
                    .collect();
                Ok(rows?)
            })
            .await
    }

    async fn is_whole(&self, digest: &Digest, size: i64) -> Result<bool, Error> {
        let (registry, digest) = (self.clone(), digest.clone());
        blocking(move || registry.is_whole_here(&digest, size)).await
    }

    fn is_whole_here(&self, digest: &Digest, size: i64) -> Result<bool, Error> {
        let mut file = match fs_err::File::open(self.inner.files.blob(digest)) {
            Ok(file) => file.into_parts().0,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let (actual, length) = files::hash_file(&mut file, digest.algorithm())?;
        Ok(actual == *digest && length == size.unsigned_abs())
    }

    /// Takes a blob out of service, unless it was healed or collected meanwhile.
    async fn condemn(&self, digest: &Digest, size: i64) -> Result<bool, Error> {
        let (registry, digest) = (self.clone(), digest.clone());
        blocking(move || {
            let held = registry.hold(&digest);
            if registry.is_whole_here(&digest, size)? {
                return Ok(false);
            }
            let text = digest.to_string();
            let known = registry.inner.database.write_here(move |transaction| {
                let sql = "DELETE FROM blob WHERE digest = ?1";
                Ok(transaction.prepare_cached(sql)?.execute([text])? == 1)
            })?;
            registry.forget_manifests();
            registry.inner.files.quarantine(&digest)?;
            drop(held);
            Ok(known)
        })
        .await
    }
}
