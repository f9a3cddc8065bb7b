//! Documents as packages brought them, and what changed between two versions of a package.

use super::kinds::{find_name, find_schema};
use super::offers::defining;
use super::packages::choose;
use super::{Index, IndexError, Rights};
use crate::answer::{State, VersionSummary};
use crate::grammar::KindReference;
use crate::json::decompress;
use crate::record::PlainObject;
use crate::stored::unpack_document;
use api::meta::Meta;
use oci::Digest;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use xpkg::compare::{Comparison, Contents, ObjectKey, compare};

/// Two versions of a package, and what is different in the second.
#[derive(Clone, Debug)]
pub struct VersionComparison {
    /// The old version.
    pub from: VersionSummary,
    /// The new one.
    pub to: VersionSummary,
    /// What changed.
    pub comparison: Comparison,
}

impl Index {
    /// The document that defines a kind: of the newest package that has it, or of one repository's.
    pub fn document(
        &self,
        kind: &KindReference,
        repository: Option<&str>,
        rights: &Rights,
    ) -> Result<Option<Json>, IndexError> {
        self.ask(rights, |database| {
            let Some(name) = find_name(database, kind)? else { return Ok(None) };
            let mut rows = defining(database, &name)?;
            let version = kind.version.as_deref();
            rows.retain(|row| repository.is_none_or(|wanted| row.repository == wanted));
            rows.retain(|row| version.is_none_or(|it| row.definition.version(it).is_some()));
            let Some(newest) = rows.first() else { return Ok(None) };
            let sql = "SELECT document FROM package
                       JOIN provides ON provides.package = package.id AND provides.name = ?1
                       JOIN offer ON offer.id = provides.offer WHERE package.digest = ?2";
            let mut statement = database.prepare_cached(sql)?;
            let found = statement
                .query_row(params![name, newest.digest], |row| row.get::<_, Option<String>>(0));
            let digest = found.optional()?.flatten();
            digest.map_or(Ok(None), |digest| find_document(database, &digest))
        })
    }

    /// Compares two versions of a package; none if one is not there or was not read.
    pub fn compare(
        &self,
        repository: &str,
        from: &str,
        to: &str,
        rights: &Rights,
    ) -> Result<Option<VersionComparison>, IndexError> {
        self.ask(rights, |database| {
            let version = |reference: &str| {
                let found = choose(database, repository, reference)?;
                Ok::<_, IndexError>(found.filter(|version| version.state == State::Read))
            };
            let (Some(from), Some(to)) = (version(from)?, version(to)?) else { return Ok(None) };
            let (old, new) = (documents_of(database, &from)?, documents_of(database, &to)?);
            let only = |one: &BTreeSet<String>, other: &BTreeSet<String>| -> Vec<String> {
                one.difference(other).cloned().collect()
            };
            let (before, after) = (only(&old, &new), only(&new, &old));
            let before = gather_contents(database, &from, &before)?;
            let after = gather_contents(database, &to, &after)?;
            Ok(Some(VersionComparison { from, to, comparison: compare(&before, &after) }))
        })
    }
}

/// A document by its digest, with its schemas.
pub(super) fn find_document(
    database: &Connection,
    digest: &str,
) -> Result<Option<Json>, IndexError> {
    let sql = "SELECT bytes FROM document WHERE digest = ?1";
    let mut statement = database.prepare_cached(sql)?;
    let bytes: Option<Vec<u8>> = statement.query_row([digest], |row| row.get(0)).optional()?;
    let Some(bytes) = bytes else { return Ok(None) };
    let schema = |digest: &str| -> Result<Option<Json>, IndexError> {
        let bytes = find_schema(database, digest)?;
        Ok(bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose()?)
    };
    unpack_document::<IndexError>(&bytes, schema).map(Some)
}

/// Digests of the documents that define the kinds of a version.
fn documents_of(
    database: &Connection,
    version: &VersionSummary,
) -> Result<BTreeSet<String>, IndexError> {
    let sql = "SELECT document FROM package JOIN provides ON provides.package = package.id
               JOIN offer ON offer.id = provides.offer
               WHERE package.digest = ?1 AND document IS NOT NULL";
    let mut statement = database.prepare_cached(sql)?;
    let rows = statement.query_map([&version.digest], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// What is compared of a version: the definitions that only it has, and everything else.
fn gather_contents(
    database: &Connection,
    version: &VersionSummary,
    documents: &[String],
) -> Result<Contents, IndexError> {
    let mut definitions = Vec::new();
    for digest in documents {
        definitions.extend(find_document(database, digest)?);
    }
    let (metadata, objects) = find_objects(database, &version.digest)?;
    let meta = metadata.and_then(|json| Meta::from_json(&json).ok());
    let others: BTreeMap<ObjectKey, Digest> = objects
        .into_iter()
        .filter_map(|PlainObject { group, kind, name, digest }| {
            Some((ObjectKey { group, kind, name }, digest.parse().ok()?))
        })
        .collect();
    Ok(Contents::assemble(meta, definitions, others))
}

/// The metadata of a package, and its objects that define nothing.
pub(super) fn find_objects(
    database: &Connection,
    digest: &str,
) -> Result<(Option<Json>, Vec<PlainObject>), IndexError> {
    type Columns = (Option<String>, Option<Vec<u8>>);
    let sql = "SELECT metadata, objects FROM package WHERE digest = ?1";
    let mut statement = database.prepare_cached(sql)?;
    let found: Option<Columns> =
        statement.query_row([digest], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let (metadata, objects) = found.unwrap_or_default();
    let metadata = metadata.map(|text| serde_json::from_str(&text)).transpose()?;
    let objects = objects.map(|bytes| decompress(&bytes)).transpose()?;
    let objects = objects.map(|bytes| serde_json::from_slice(&bytes)).transpose()?;
    Ok((metadata, objects.unwrap_or_default()))
}
