//! The steps of a collection. Every removal is decided again in the transaction that makes it.

use super::{Sqlite, blobs, known, manifests, stored_digest, stored_limit, stored_name};
use crate::error::Error;
use crate::name::Name;
use crate::storage::metadata::{Entry, Garbage};
use oci::Digest;
use rusqlite::{Params, Statement, params};

/// A manifest pushed before some time to which nothing leads.
const UNTAGGED: &str = "pushed < ?1
    AND NOT EXISTS (SELECT 1 FROM tag WHERE repository = it.repository AND digest = it.digest)
    AND NOT EXISTS (SELECT 1 FROM manifest_child
                    WHERE repository = it.repository AND child = it.digest)
    AND (subject IS NULL OR NOT EXISTS
        (SELECT 1 FROM manifest WHERE repository = it.repository AND digest = it.subject))";

impl Garbage for Sqlite {
    fn untagged(&self, limit: i64) -> Result<Vec<Entry>, Error> {
        self.database.read(|database| {
            let mut statement = database.prepare(&format!(
                "SELECT name, digest FROM manifest AS it
                 JOIN repository ON id = repository WHERE {UNTAGGED}"
            ))?;
            entries(&mut statement, [limit])
        })
    }

    fn collect_manifest(&self, it: &Entry, limit: i64, lease: i64) -> Result<bool, Error> {
        let Entry { repository, digest } = it.clone();
        self.database.write(move |transaction| {
            let repository = known(transaction, &repository)?;
            let still = transaction
                .prepare_cached(&format!(
                    "SELECT 1 FROM manifest AS it WHERE {UNTAGGED}
                     AND repository = ?2 AND digest = ?3"
                ))?
                .exists(params![limit, repository, digest.to_string()])?;
            if still {
                manifests::delete(transaction, repository, &digest, lease)?;
                manifests::touch(transaction, repository)?;
            }
            Ok(still)
        })
    }

    fn loose(&self, at: i64) -> Result<Vec<Entry>, Error> {
        self.database.read(|database| {
            let mut statement = database.prepare(
                "SELECT name, digest FROM repository_blob AS it JOIN repository ON id = repository
                 WHERE lease < ?1 AND NOT EXISTS (SELECT 1 FROM manifest_child
                     WHERE repository = it.repository AND child = it.digest)",
            )?;
            entries(&mut statement, [at])
        })
    }

    fn unlink(&self, loose: Vec<Entry>, at: i64) -> Result<u64, Error> {
        self.database.write(move |transaction| {
            let mut statement = transaction.prepare_cached(
                "DELETE FROM repository_blob WHERE repository = ?1 AND digest = ?2 AND lease < ?3
                 AND NOT EXISTS (SELECT 1 FROM manifest_child WHERE repository = ?1 AND child = ?2)",
            )?;
            let mut count = 0_u64;
            for Entry { repository, digest } in &loose {
                let repository = known(transaction, repository)?;
                let gone = statement.execute(params![repository, digest.to_string(), at])? as u64;
                count = count.saturating_add(gone);
            }
            Ok(count)
        })
    }

    fn unused(&self) -> Result<Vec<(Digest, u64)>, Error> {
        self.database.read(|database| {
            let mut statement = database.prepare(
                "SELECT digest, size FROM blob AS it
                 WHERE NOT EXISTS (SELECT 1 FROM repository_blob WHERE digest = it.digest)
                 AND NOT EXISTS (SELECT 1 FROM manifest WHERE digest = it.digest)",
            )?;
            sized(&mut statement, [])
        })
    }

    fn collect_blob(&self, digest: &Digest) -> Result<bool, Error> {
        let digest = digest.to_string();
        self.database.write(move |transaction| {
            let count = transaction
                .prepare_cached(
                    "DELETE FROM blob WHERE digest = ?1
                     AND NOT EXISTS (SELECT 1 FROM repository_blob WHERE digest = ?1)
                     AND NOT EXISTS (SELECT 1 FROM manifest WHERE digest = ?1)",
                )?
                .execute([digest])?;
            Ok(count == 1)
        })
    }

    fn is_orphan(&self, digest: &Digest) -> Result<bool, Error> {
        let digest = digest.clone();
        // A change that changes nothing: what was in doubt is decided before it runs.
        self.database.write(move |transaction| Ok(!blobs::is_known(transaction, &digest)?))
    }

    fn unknown(&self, digests: Vec<Digest>) -> Result<Vec<Digest>, Error> {
        self.database.read(|database| {
            let mut all = Vec::new();
            for digest in digests {
                if !blobs::is_known(database, &digest)? {
                    all.push(digest);
                }
            }
            Ok(all)
        })
    }

    fn blobs(&self, last: &str, limit: usize) -> Result<Vec<(Digest, u64)>, Error> {
        self.database.read(|database| {
            let mut statement = database.prepare_cached(
                "SELECT digest, size FROM blob WHERE digest > ?1 ORDER BY digest LIMIT ?2",
            )?;
            sized(&mut statement, params![last, stored_limit(limit)])
        })
    }

    fn condemn(&self, digest: &Digest) -> Result<Option<Vec<Name>>, Error> {
        let digest = digest.clone();
        self.database.write(move |transaction| {
            let sql = "DELETE FROM blob WHERE digest = ?1";
            let count = transaction.prepare_cached(sql)?.execute([digest.to_string()])?;
            (count == 1).then(|| blobs::touch_owners(transaction, &digest)).transpose()
        })
    }
}

fn entries(statement: &mut Statement<'_>, terms: impl Params) -> Result<Vec<Entry>, Error> {
    let mut rows = statement.query(terms)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let repository = stored_name(&row.get::<_, String>(0)?)?;
        all.push(Entry { repository, digest: stored_digest(&row.get::<_, String>(1)?)? });
    }
    Ok(all)
}

fn sized(statement: &mut Statement<'_>, terms: impl Params) -> Result<Vec<(Digest, u64)>, Error> {
    let mut rows = statement.query(terms)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let size: i64 = row.get(1)?;
        all.push((stored_digest(&row.get::<_, String>(0)?)?, size.unsigned_abs()));
    }
    Ok(all)
}
