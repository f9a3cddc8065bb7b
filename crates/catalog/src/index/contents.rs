//! What a package says, put into tables and taken out again.

use super::IndexError;
use crate::json::{compress, decompress};
use crate::read::field_names;
use crate::record::{Definition, Outcome, Package, Schema};
use crate::words;
use oci::{Repository, Rules};
use rusqlite::{OptionalExtension as _, Transaction, params};
use std::collections::BTreeMap;

/// What a package row is.
pub(super) const READ: &str = "read";
pub(super) const BROKEN: &str = "broken";
pub(super) const OTHER: &str = "other";

pub(super) fn find_package(
    transaction: &Transaction<'_>,
    digest: &str,
) -> Result<Option<i64>, IndexError> {
    let mut statement = transaction.prepare_cached("SELECT id FROM package WHERE digest = ?1")?;
    Ok(statement.query_row([digest], |row| row.get(0)).optional()?)
}

pub(super) fn insert_package(
    transaction: &Transaction<'_>,
    digest: &str,
    outcome: &Outcome,
) -> Result<i64, IndexError> {
    let insert = "INSERT INTO package
                      (digest, state, reason, facts, kinds, readme, icon, metadata, objects, brief)
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    let mut insert = transaction.prepare_cached(insert)?;
    let (state, reason) = match outcome {
        Outcome::Other => (OTHER, None),
        Outcome::Broken(reason) => (BROKEN, Some(reason)),
        Outcome::Package(_) => (READ, None),
    };
    let Outcome::Package(package) = outcome else {
        let (text, bytes) = (None::<&str>, None::<&[u8]>);
        insert.execute(params![digest, state, reason, text, 0, text, text, text, bytes, text])?;
        return Ok(transaction.last_insert_rowid());
    };
    let facts = serde_json::to_string(package)?;
    let brief = serde_json::to_string(&brief_package(package))?;
    let kinds = i64::try_from(package.definitions.len()).unwrap_or(i64::MAX);
    let Package { readme, icon, metadata, objects, .. } = &**package;
    let metadata = metadata.as_ref().map(ToString::to_string);
    let objects = compress(&serde_json::to_vec(objects)?)?;
    insert.execute(params![
        digest, state, reason, facts, kinds, readme, icon, metadata, objects, brief
    ])?;
    let id = transaction.last_insert_rowid();
    insert_definitions(transaction, id, package)?;
    for dependency in &package.dependencies {
        transaction
            .prepare_cached("INSERT OR IGNORE INTO needs VALUES (?1, ?2)")?
            .execute(params![path_of(&dependency.package), id])?;
    }
    insert_schemas(transaction, id, package)?;
    Ok(id)
}

/// What is read of a package for each kind that it is asked about.
fn brief_package(package: &Package) -> Package {
    let Package { kind, crossplane, capabilities, problem, .. } = package.clone();
    Package { kind, crossplane, capabilities, problem, ..Package::default() }
}

fn insert_schemas(
    transaction: &Transaction<'_>,
    id: i64,
    package: &Package,
) -> Result<(), IndexError> {
    let schemas: BTreeMap<&str, &Schema> =
        package.schemas.iter().map(|schema| (schema.digest.as_str(), schema)).collect();
    for schema in schemas.values() {
        transaction
            .prepare_cached("INSERT OR IGNORE INTO schema VALUES (?1, ?2)")?
            .execute(params![schema.digest, schema.compressed])?;
    }
    for definition in &package.definitions {
        let used = definition.versions.iter().filter_map(|version| version.schema.as_deref());
        for schema in used.filter_map(|digest| schemas.get(digest)) {
            insert_use(transaction, id, &definition.name, schema)?;
        }
    }
    Ok(())
}

/// Says that a kind of a package has a schema. The first package that says so brings its fields along.
fn insert_use(
    transaction: &Transaction<'_>,
    id: i64,
    name: &str,
    schema: &Schema,
) -> Result<(), IndexError> {
    let is_known = transaction
        .prepare_cached("SELECT 1 FROM schema_use WHERE digest = ?1 AND name = ?2")?
        .exists(params![schema.digest, name])?;
    transaction
        .prepare_cached("INSERT OR IGNORE INTO schema_use VALUES (?1, ?2, ?3)")?
        .execute(params![schema.digest, name, id])?;
    if is_known {
        return Ok(());
    }
    for field in &schema.fields {
        transaction
            .prepare_cached("INSERT OR IGNORE INTO field_name (name) VALUES (?1)")?
            .execute([field])?;
        transaction
            .prepare_cached(
                "INSERT INTO field SELECT id, ?2, 1 FROM field_name WHERE name = ?1
                 ON CONFLICT DO UPDATE SET uses = uses + 1",
            )?
            .execute(params![field, name])?;
    }
    Ok(())
}

/// Takes back the fields of schemas that only this package uses.
fn remove_fields(transaction: &Transaction<'_>, package: i64) -> Result<(), IndexError> {
    let sql = "SELECT schema_use.name, schema.bytes FROM schema_use
               JOIN schema ON schema.digest = schema_use.digest
               WHERE schema_use.package = ?1
               AND NOT EXISTS (SELECT 1 FROM schema_use AS other
                               WHERE other.digest = schema_use.digest
                               AND other.name = schema_use.name AND other.package <> ?1)";
    let mut statement = transaction.prepare_cached(sql)?;
    let mut rows = statement.query([package])?;
    while let Some(row) = rows.next()? {
        let (name, bytes): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
        let schema = serde_json::from_slice(&decompress(&bytes)?)?;
        for field in field_names(&schema) {
            for sql in [
                "UPDATE field SET uses = uses - 1 WHERE name = ?2
                 AND field = (SELECT id FROM field_name WHERE name = ?1)",
                "DELETE FROM field WHERE uses <= 0 AND name = ?2
                 AND field = (SELECT id FROM field_name WHERE name = ?1)",
            ] {
                transaction.prepare_cached(sql)?.execute(params![field, name])?;
            }
        }
    }
    Ok(())
}

fn insert_definitions(
    transaction: &Transaction<'_>,
    id: i64,
    package: &Package,
) -> Result<(), IndexError> {
    for definition in &package.definitions {
        let facts = serde_json::to_string(definition)?;
        let document = package.documents.get(&definition.name);
        if let Some(document) = document {
            transaction
                .prepare_cached("INSERT OR IGNORE INTO document VALUES (?1, ?2)")?
                .execute(params![document.digest, document.compressed])?;
        }
        let digest = document.map(|document| &document.digest);
        transaction
            .prepare_cached("INSERT OR IGNORE INTO provides VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![definition.name, id, facts, digest])?;
        transaction
            .prepare_cached("INSERT OR IGNORE INTO kind VALUES (?1, ?2)")?
            .execute(params![definition.name, definition.group])?;
        for (word, rank) in words::of_definition(definition) {
            transaction
                .prepare_cached(
                    "INSERT INTO kind_word VALUES (?1, ?2, ?3, 1)
                     ON CONFLICT DO UPDATE SET uses = uses + 1",
                )?
                .execute(params![word, rank, definition.name])?;
        }
    }
    Ok(())
}

/// The path of a repository that a dependency names, without the registry.
pub(super) fn path_of(package: &str) -> String {
    let parsed = Repository::parse(package, &Rules::weak());
    parsed.map_or_else(|_| package.to_owned(), |repository| repository.path().to_owned())
}

/// Forgets a package that no repository has any more, and what only it led to.
pub(super) fn remove_unused(transaction: &Transaction<'_>, package: i64) -> Result<(), IndexError> {
    let mut statement = transaction.prepare_cached("SELECT 1 FROM version WHERE package = ?1")?;
    if statement.exists([package])? {
        return Ok(());
    }
    drop(statement);
    remove_words(transaction, package)?;
    remove_fields(transaction, package)?;
    for sql in [
        "DELETE FROM kind WHERE name IN (SELECT name FROM provides WHERE package = ?1)
         AND NOT EXISTS (SELECT 1 FROM provides AS other
                         WHERE other.name = kind.name AND other.package <> ?1)",
        "DELETE FROM document
         WHERE digest IN (SELECT document FROM provides WHERE package = ?1)
         AND NOT EXISTS (SELECT 1 FROM provides AS other
                         WHERE other.document = document.digest AND other.package <> ?1)",
        "DELETE FROM schema WHERE digest IN (SELECT digest FROM schema_use WHERE package = ?1)
         AND NOT EXISTS (SELECT 1 FROM schema_use AS other
                         WHERE other.digest = schema.digest AND other.package <> ?1)",
        "DELETE FROM schema_use WHERE package = ?1",
        "DELETE FROM provides WHERE package = ?1",
        "DELETE FROM needs WHERE package = ?1",
        "DELETE FROM package WHERE id = ?1",
    ] {
        transaction.prepare_cached(sql)?.execute([package])?;
    }
    Ok(())
}

/// Takes the words of a package's kinds back; those that no other package uses are gone.
fn remove_words(transaction: &Transaction<'_>, package: i64) -> Result<(), IndexError> {
    let sql = "SELECT facts FROM provides WHERE package = ?1";
    let mut statement = transaction.prepare_cached(sql)?;
    let mut rows = statement.query([package])?;
    while let Some(row) = rows.next()? {
        let definition: Definition = serde_json::from_str(&row.get::<_, String>(0)?)?;
        for (word, rank) in words::of_definition(&definition) {
            for sql in [
                "UPDATE kind_word SET uses = uses - 1 WHERE word = ?1 AND rank = ?2 AND name = ?3",
                "DELETE FROM kind_word
                 WHERE word = ?1 AND rank = ?2 AND name = ?3 AND uses <= 0",
            ] {
                transaction.prepare_cached(sql)?.execute(params![word, rank, definition.name])?;
            }
        }
    }
    Ok(())
}
