//! What a package says, put into tables and taken out again.

use super::IndexError;
use crate::json::{compress, decompress};
use crate::read::field_names;
use crate::record::{Definition, Dependency, Outcome, Package, Schema};
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
    let (state, reason) = match outcome {
        Outcome::Other => (OTHER, None),
        Outcome::Broken(reason) => (BROKEN, Some(reason)),
        Outcome::Package(_) => (READ, None),
    };
    let Outcome::Package(package) = outcome else {
        transaction
            .prepare_cached("INSERT INTO package (digest, state, reason) VALUES (?1, ?2, ?3)")?
            .execute(params![digest, state, reason])?;
        return Ok(transaction.last_insert_rowid());
    };
    let brief = insert_brief(transaction, package)?;
    let facts = serde_json::to_string(package)?;
    let kinds = i64::try_from(package.definitions.len()).unwrap_or(i64::MAX);
    let Package { readme, icon, metadata, objects, .. } = &**package;
    let metadata = metadata.as_ref().map(ToString::to_string);
    let objects = compress(&serde_json::to_vec(objects)?)?;
    let insert = "INSERT INTO package
                      (digest, state, kinds, brief, facts, metadata, objects, readme, icon)
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    transaction
        .prepare_cached(insert)?
        .execute(params![digest, state, kinds, brief, facts, metadata, objects, readme, icon])?;
    let id = transaction.last_insert_rowid();
    insert_definitions(transaction, id, brief, package)?;
    for dependency in &package.dependencies {
        transaction
            .prepare_cached("INSERT OR IGNORE INTO needs VALUES (?1, ?2)")?
            .execute(params![path_of_need(dependency), id])?;
    }
    Ok(id)
}

/// What is read of a package for each kind that it is asked about; most versions share it.
fn insert_brief(transaction: &Transaction<'_>, package: &Package) -> Result<i64, IndexError> {
    let Package { kind, dialect, crossplane, capabilities, permission_scope, problem, .. } =
        package.clone();
    let brief = Package {
        kind,
        dialect,
        crossplane,
        capabilities,
        permission_scope,
        problem,
        ..Package::default()
    };
    let facts = serde_json::to_string(&brief)?;
    transaction
        .prepare_cached("INSERT OR IGNORE INTO brief (facts) VALUES (?1)")?
        .execute([&facts])?;
    let sql = "SELECT id FROM brief WHERE facts = ?1";
    Ok(transaction.prepare_cached(sql)?.query_row([&facts], |row| row.get(0))?)
}

fn insert_definitions(
    transaction: &Transaction<'_>,
    id: i64,
    brief: i64,
    package: &Package,
) -> Result<(), IndexError> {
    let schemas: BTreeMap<&str, &Schema> =
        package.schemas.iter().map(|schema| (schema.digest.as_str(), schema)).collect();
    for definition in &package.definitions {
        let facts = serde_json::to_string(definition)?;
        let document = package.documents.get(&definition.name);
        let digest = document.map(|document| &document.digest);
        let sql = "SELECT id FROM offer WHERE name = ?1 AND facts = ?2 AND document IS ?3";
        let known: Option<i64> = transaction
            .prepare_cached(sql)?
            .query_row(params![definition.name, facts, digest], |row| row.get(0))
            .optional()?;
        let offer = if let Some(offer) = known {
            offer
        } else {
            if let Some(document) = document {
                transaction
                    .prepare_cached("INSERT OR IGNORE INTO document VALUES (?1, ?2)")?
                    .execute(params![document.digest, document.compressed])?;
            }
            transaction
                .prepare_cached("INSERT INTO offer (name, facts, document) VALUES (?1, ?2, ?3)")?
                .execute(params![definition.name, facts, digest])?;
            let offer = transaction.last_insert_rowid();
            insert_schemas(transaction, offer, definition, &schemas)?;
            offer
        };
        transaction
            .prepare_cached("INSERT OR IGNORE INTO provides VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![definition.name, id, offer, brief])?;
        transaction
            .prepare_cached("INSERT OR IGNORE INTO kind VALUES (?1, ?2)")?
            .execute(params![definition.name, definition.group])?;
    }
    Ok(())
}

/// Keeps the schemas of an offer that is new, and the names of their fields.
fn insert_schemas(
    transaction: &Transaction<'_>,
    offer: i64,
    definition: &Definition,
    schemas: &BTreeMap<&str, &Schema>,
) -> Result<(), IndexError> {
    let used = definition.versions.iter().filter_map(|version| version.schema.as_deref());
    for schema in used.filter_map(|digest| schemas.get(digest)) {
        transaction
            .prepare_cached("INSERT OR IGNORE INTO schema VALUES (?1, ?2)")?
            .execute(params![schema.digest, schema.compressed])?;
        let inserted = transaction
            .prepare_cached("INSERT OR IGNORE INTO schema_use VALUES (?1, ?2)")?
            .execute(params![schema.digest, offer])?;
        // Two versions of a kind with one schema.
        if inserted == 0 {
            continue;
        }
        for field in &schema.fields {
            insert_field(transaction, field, &definition.name)?;
        }
    }
    Ok(())
}

/// Says that a kind has a field, by one more schema.
fn insert_field(transaction: &Transaction<'_>, field: &str, name: &str) -> Result<(), IndexError> {
    let sql = "SELECT id FROM field_name WHERE name = ?1";
    let known: Option<i64> =
        transaction.prepare_cached(sql)?.query_row([field], |row| row.get(0)).optional()?;
    let number = if let Some(number) = known {
        number
    } else {
        transaction
            .prepare_cached("INSERT INTO field_name (name) VALUES (?1)")?
            .execute([field])?;
        transaction.last_insert_rowid()
    };
    transaction
        .prepare_cached(
            "INSERT INTO field VALUES (?1, ?2, 1) ON CONFLICT DO UPDATE SET uses = uses + 1",
        )?
        .execute(params![number, name])?;
    Ok(())
}

/// The path of a repository that a dependency names, without the registry.
pub(super) fn path_of(package: &str) -> String {
    let parsed = Repository::parse(package, &Rules::weak());
    parsed.map_or_else(|_| package.to_owned(), |repository| repository.path().to_owned())
}

/// Where a dependency is looked up: by the path of a repository, or by a kind in any version.
fn path_of_need(dependency: &Dependency) -> String {
    let kind = dependency.needed_kind();
    kind.map_or_else(|| path_of(&dependency.package), |kind| path_of_kind(&kind.bare()))
}

/// Where dependencies on a kind are looked up. No repository has a colon in its path.
pub(super) fn path_of_kind(name: &str) -> String {
    format!("crd:{name}")
}

/// Whether a dependency leads to a repository, which has its registry in its name or not.
pub(super) fn leads_to(dependency: &Dependency, repository: &str) -> bool {
    let package = &dependency.package;
    if dependency.needed_kind().is_some() {
        return false;
    }
    let parsed = Repository::parse(package, &Rules::weak());
    path_of(package) == repository || parsed.is_ok_and(|it| it.to_string() == repository)
}

/// Forgets a package that no repository has any more, and what only it led to.
pub(super) fn remove_unused(transaction: &Transaction<'_>, package: i64) -> Result<(), IndexError> {
    let mut statement = transaction.prepare_cached("SELECT 1 FROM version WHERE package = ?1")?;
    if statement.exists([package])? {
        return Ok(());
    }
    drop(statement);
    let sql = "SELECT offer, name FROM provides WHERE package = ?1";
    let offers: Vec<(i64, String)> = {
        let mut statement = transaction.prepare_cached(sql)?;
        let rows = statement.query_map([package], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    transaction.prepare_cached("DELETE FROM provides WHERE package = ?1")?.execute([package])?;
    for (offer, name) in &offers {
        remove_offer(transaction, *offer, name)?;
    }
    let sql = "SELECT brief FROM package WHERE id = ?1";
    let brief: Option<i64> =
        transaction.prepare_cached(sql)?.query_row([package], |row| row.get(0))?;
    for sql in ["DELETE FROM needs WHERE package = ?1", "DELETE FROM package WHERE id = ?1"] {
        transaction.prepare_cached(sql)?.execute([package])?;
    }
    let sql = "DELETE FROM brief WHERE id = ?1
               AND NOT EXISTS (SELECT 1 FROM package WHERE package.brief = ?1)";
    transaction.prepare_cached(sql)?.execute([brief])?;
    Ok(())
}

/// Forgets a definition of a kind that no package has any more.
fn remove_offer(transaction: &Transaction<'_>, offer: i64, name: &str) -> Result<(), IndexError> {
    let sql = "SELECT 1 FROM provides WHERE name = ?1 AND offer = ?2";
    if transaction.prepare_cached(sql)?.exists(params![name, offer])? {
        return Ok(());
    }
    remove_fields(transaction, offer, name)?;
    for sql in [
        "DELETE FROM schema WHERE digest IN (SELECT digest FROM schema_use WHERE offer = ?1)
         AND NOT EXISTS (SELECT 1 FROM schema_use AS other
                         WHERE other.digest = schema.digest AND other.offer <> ?1)",
        "DELETE FROM schema_use WHERE offer = ?1",
        "DELETE FROM document WHERE digest = (SELECT document FROM offer WHERE id = ?1)
         AND NOT EXISTS (SELECT 1 FROM offer AS other
                         WHERE other.document = document.digest AND other.id <> ?1)",
        "DELETE FROM offer WHERE id = ?1",
    ] {
        transaction.prepare_cached(sql)?.execute([offer])?;
    }
    let sql = "DELETE FROM kind WHERE name = ?1
               AND NOT EXISTS (SELECT 1 FROM offer WHERE offer.name = ?1)";
    transaction.prepare_cached(sql)?.execute([name])?;
    Ok(())
}

/// Takes back the fields of the schemas of an offer.
fn remove_fields(transaction: &Transaction<'_>, offer: i64, name: &str) -> Result<(), IndexError> {
    let sql = "SELECT schema.bytes FROM schema_use
               JOIN schema ON schema.digest = schema_use.digest WHERE schema_use.offer = ?1";
    let mut statement = transaction.prepare_cached(sql)?;
    let mut rows = statement.query([offer])?;
    while let Some(row) = rows.next()? {
        let bytes: Vec<u8> = row.get(0)?;
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
