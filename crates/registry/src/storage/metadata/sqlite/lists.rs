//! Lists.

use super::{Sqlite, find, known, stored_digest, stored_limit, stored_name};
use crate::error::Error;
use crate::name::Name;
use crate::storage::metadata::Lists;
use oci::manifest::Annotations;
use oci::{Descriptor, Digest, MediaType};
use rusqlite::{Row, params};

impl Lists for Sqlite {
    fn tags(&self, name: &Name, last: &str, limit: usize) -> Result<Vec<String>, Error> {
        self.database.read(|database| {
            let repository = known(database, name)?;
            let mut statement = database.prepare_cached(
                "SELECT name FROM tag WHERE repository = ?1 AND name > ?2 ORDER BY name LIMIT ?3",
            )?;
            let rows: rusqlite::Result<Vec<String>> = statement
                .query_map(params![repository, last, stored_limit(limit)], |row| row.get(0))?
                .collect();
            Ok(rows?)
        })
    }

    fn manifests(&self, name: &Name, last: &str, limit: usize) -> Result<Vec<Digest>, Error> {
        self.database.read(|database| {
            let repository = known(database, name)?;
            let mut statement = database.prepare_cached(
                "SELECT digest FROM manifest WHERE repository = ?1 AND digest > ?2
                 ORDER BY digest LIMIT ?3",
            )?;
            let rows: rusqlite::Result<Vec<String>> = statement
                .query_map(params![repository, last, stored_limit(limit)], |row| row.get(0))?
                .collect();
            rows?.iter().map(|text| stored_digest(text)).collect()
        })
    }

    fn repositories(&self, last: &str, limit: usize) -> Result<Vec<Name>, Error> {
        self.database.read(|database| {
            let mut statement = database.prepare_cached(
                "SELECT name FROM repository WHERE name > ?1
                 AND EXISTS (SELECT 1 FROM manifest WHERE repository = id) ORDER BY name LIMIT ?2",
            )?;
            let rows: rusqlite::Result<Vec<String>> = statement
                .query_map(params![last, stored_limit(limit)], |row| row.get(0))?
                .collect();
            rows?.iter().map(|name| stored_name(name)).collect()
        })
    }

    fn referrers(
        &self,
        name: &Name,
        subject: &Digest,
        artifact_type: Option<&str>,
        last: &str,
        limit: usize,
    ) -> Result<Vec<Descriptor>, Error> {
        let (subject, limit) = (subject.to_string(), stored_limit(limit));
        self.database.read(|database| {
            let Some(repository) = find(database, name)? else { return Ok(Vec::new()) };
            let mut statement = database.prepare_cached(
                "SELECT digest, media_type, size, artifact_type, annotations FROM manifest
                 WHERE repository = ?1 AND subject = ?2 AND digest > ?3
                 AND (?4 IS NULL OR artifact_type = ?4) ORDER BY digest LIMIT ?5",
            )?;
            let mut rows =
                statement.query(params![repository, subject, last, artifact_type, limit])?;
            let mut all = Vec::new();
            while let Some(row) = rows.next()? {
                all.push(referrer(row)?);
            }
            Ok(all)
        })
    }

    fn changes(&self, last: &str, limit: usize) -> Result<Vec<(Name, i64)>, Error> {
        self.database.read(|database| {
            let mut statement = database.prepare_cached(
                "SELECT name, generation FROM repository WHERE name > ?1
                 AND EXISTS (SELECT 1 FROM manifest WHERE repository = id) ORDER BY name LIMIT ?2",
            )?;
            let mut rows = statement.query(params![last, stored_limit(limit)])?;
            let mut all = Vec::new();
            while let Some(row) = rows.next()? {
                all.push((stored_name(&row.get::<_, String>(0)?)?, row.get(1)?));
            }
            Ok(all)
        })
    }

    fn heads(&self, name: &Name) -> Result<Vec<(Digest, Option<String>)>, Error> {
        self.database.read(|database| {
            let repository = known(database, name)?;
            let mut statement = database.prepare_cached(
                "SELECT it.digest, name FROM manifest AS it LEFT JOIN tag
                 ON tag.repository = it.repository AND tag.digest = it.digest
                 WHERE it.repository = ?1 AND (name IS NOT NULL OR (subject IS NULL
                     AND NOT EXISTS (SELECT 1 FROM manifest_child
                                     WHERE repository = ?1 AND child = it.digest)))
                 ORDER BY it.digest, name",
            )?;
            let mut rows = statement.query([repository])?;
            let mut all = Vec::new();
            while let Some(row) = rows.next()? {
                all.push((stored_digest(&row.get::<_, String>(0)?)?, row.get(1)?));
            }
            Ok(all)
        })
    }

    fn damaged(&self, name: &Name) -> Result<Vec<Digest>, Error> {
        self.database.read(|database| {
            let repository = known(database, name)?;
            let mut statement = database.prepare_cached(
                "WITH RECURSIVE lost (digest) AS (
                     SELECT digest FROM repository_blob AS it WHERE repository = ?1
                     AND NOT EXISTS (SELECT 1 FROM blob WHERE digest = it.digest)
                     UNION SELECT digest FROM manifest AS it WHERE repository = ?1
                     AND NOT EXISTS (SELECT 1 FROM blob WHERE digest = it.digest)
                     UNION SELECT parent FROM lost
                     JOIN manifest_child ON repository = ?1 AND child = lost.digest)
                 SELECT digest FROM manifest WHERE repository = ?1 AND digest IN (SELECT digest FROM lost)
                 ORDER BY digest",
            )?;
            let rows: rusqlite::Result<Vec<String>> =
                statement.query_map([repository], |row| row.get(0))?.collect();
            rows?.iter().map(|text| stored_digest(text)).collect()
        })
    }
}

fn referrer(row: &Row<'_>) -> Result<Descriptor, Error> {
    let digest = stored_digest(&row.get::<_, String>(0)?)?;
    let size: i64 = row.get(2)?;
    let media_type = MediaType::new(&row.get::<_, String>(1)?);
    let mut descriptor = Descriptor::new(media_type, digest, size.unsigned_abs());
    descriptor.artifact_type = row.get(3)?;
    let annotations: Option<String> = row.get(4)?;
    let parsed = annotations.and_then(|text| serde_json::from_str::<Annotations>(&text).ok());
    descriptor.annotations = parsed.unwrap_or_default();
    Ok(descriptor)
}
