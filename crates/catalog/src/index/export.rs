//! The catalog in one file: a line of JSON for each repository, package and kind.
//!
//! ```text
//!   {"format": "apron-catalog/1"}
//!   {"repository": "team/aws", "versions": [{"digest": "sha256:…", "tags": ["v1.0.0"]}]}
//!   {"package": {"digest": "sha256:…", "facts": {…}}}
//!   {"kind": {"definition": {…}, "document": {…}}}       of the package before it
//! ```
//!
//! What is not known yet, and what is no package, is left out.

use super::contents::{BROKEN, READ};
use super::documents::{find_document, find_objects};
use super::{Index, IndexError, Rights};
use crate::record::{Definition, Package, PlainObject};
use flate2::Compression;
use flate2::write::GzEncoder;
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::io::Write;

/// The first line.
pub(super) const FORMAT: &str = "apron-catalog/1";

/// A repository in the file.
#[derive(Serialize, Deserialize)]
pub(super) struct RepositoryLine {
    pub(super) repository: String,
    pub(super) versions: Vec<VersionLine>,
}

/// A version of a package in the file.
#[derive(Serialize, Deserialize)]
pub(super) struct VersionLine {
    pub(super) digest: String,
    pub(super) tags: Vec<String>,
}

/// A package in the file, without its kinds.
#[derive(Serialize, Deserialize)]
pub(super) struct PackageLine {
    pub(super) digest: String,
    /// Why it cannot be read, if it cannot.
    pub(super) reason: Option<String>,
    pub(super) facts: Package,
    pub(super) readme: Option<String>,
    pub(super) icon: Option<String>,
    pub(super) metadata: Option<Json>,
    pub(super) objects: Vec<PlainObject>,
}

/// A kind in the file, of the package before it.
#[derive(Serialize, Deserialize)]
pub(super) struct KindLine {
    pub(super) definition: Definition,
    pub(super) document: Option<Json>,
}

impl Index {
    /// Writes the file as it is sent, compressed.
    pub fn export_compressed(&self, rights: &Rights, to: impl Write) -> Result<(), IndexError> {
        let mut encoder = GzEncoder::new(to, Compression::default());
        self.export(rights, &mut encoder)?;
        encoder.finish()?.flush()?;
        Ok(())
    }

    /// Writes everything that the asker may read, in an order that depends on nothing else.
    pub fn export(&self, rights: &Rights, to: &mut dyn Write) -> Result<(), IndexError> {
        self.ask(rights, |database| {
            write_line(to, &json!({ "format": FORMAT }))?;
            for (id, repository) in repositories(database)? {
                let versions = versions_of(database, id)?;
                write_line(to, &RepositoryLine { repository, versions })?;
            }
            for (id, digest) in packages(database)? {
                write_line(to, &json!({ "package": read_package(database, id, digest)? }))?;
                write_kinds(database, id, to)?;
            }
            Ok(())
        })
    }
}

fn write_line(to: &mut dyn Write, line: &impl Serialize) -> Result<(), IndexError> {
    to.write_all(&serde_json::to_vec(line)?)?;
    Ok(to.write_all(b"\n")?)
}

fn repositories(database: &Connection) -> Result<Vec<(i64, String)>, IndexError> {
    let sql = "SELECT id, name FROM repository WHERE newest IS NOT NULL AND readable(name)
               ORDER BY name";
    let mut statement = database.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn versions_of(database: &Connection, repository: i64) -> Result<Vec<VersionLine>, IndexError> {
    let sql = "SELECT version.digest,
                   (SELECT json_group_array(name) FROM
                        (SELECT tag.name FROM tag WHERE tag.repository = version.repository
                         AND tag.digest = version.digest ORDER BY tag.name))
               FROM version JOIN package ON package.id = version.package
               WHERE version.repository = ?1 AND state IN (?2, ?3) ORDER BY version.digest";
    let mut statement = database.prepare_cached(sql)?;
    let mut rows = statement.query(params![repository, READ, BROKEN])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let tags = serde_json::from_str(&row.get::<_, String>(1)?)?;
        all.push(VersionLine { digest: row.get(0)?, tags });
    }
    Ok(all)
}

fn packages(database: &Connection) -> Result<Vec<(i64, String)>, IndexError> {
    let sql = "SELECT id, digest FROM package WHERE state IN (?1, ?2)
               AND EXISTS (SELECT 1 FROM version
                           JOIN repository ON repository.id = version.repository
                           WHERE version.package = package.id AND readable(repository.name))
               ORDER BY digest";
    let mut statement = database.prepare_cached(sql)?;
    let rows = statement.query_map([READ, BROKEN], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn read_package(database: &Connection, id: i64, digest: String) -> Result<PackageLine, IndexError> {
    let (metadata, objects) = find_objects(database, &digest)?;
    let sql = "SELECT reason, facts, readme, icon FROM package WHERE id = ?1";
    let mut statement = database.prepare_cached(sql)?;
    let mut rows = statement.query([id])?;
    let Some(row) = rows.next()? else { return Err(IndexError::Format) };
    let facts: Option<String> = row.get(1)?;
    let facts = facts.map(|facts| serde_json::from_str(&facts)).transpose()?.unwrap_or_default();
    let (reason, readme, icon) = (row.get(0)?, row.get(2)?, row.get(3)?);
    Ok(PackageLine { digest, reason, facts, readme, icon, metadata, objects })
}

fn write_kinds(database: &Connection, package: i64, to: &mut dyn Write) -> Result<(), IndexError> {
    let sql = "SELECT facts, document FROM provides JOIN offer ON offer.id = provides.offer
               WHERE package = ?1 ORDER BY provides.name";
    let mut statement = database.prepare_cached(sql)?;
    let mut rows = statement.query([package])?;
    while let Some(row) = rows.next()? {
        let definition = serde_json::from_str(&row.get::<_, String>(0)?)?;
        let digest: Option<String> = row.get(1)?;
        let document = digest.map_or(Ok(None), |digest| find_document(database, &digest))?;
        write_line(to, &json!({ "kind": KindLine { definition, document } }))?;
    }
    Ok(())
}
