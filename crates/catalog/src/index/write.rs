//! Changes: what a repository has, and what a manifest is.

use super::order::{compare_tags, compare_versions};
use super::{Head, Index, IndexError};
use crate::record::{Definition, Outcome, Package};
use crate::words;
use oci::{Repository, Rules};
use rusqlite::{OptionalExtension as _, Transaction, params};
use std::collections::{BTreeMap, BTreeSet};

/// What a package row is.
pub(super) const READ: &str = "read";
pub(super) const BROKEN: &str = "broken";
pub(super) const OTHER: &str = "other";

impl Index {
    /// Says all that a repository has; tells which of it is not known yet. What is not said is
    /// gone, and a repository that has nothing is.
    pub fn settle(&self, repository: &str, heads: &[Head]) -> Result<Vec<String>, IndexError> {
        let mut writer = self.writer();
        let transaction = writer.transaction()?;
        let unread = settle_repository(&transaction, repository, heads)?;
        transaction.commit()?;
        Ok(unread)
    }

    /// Says which repositories there are; all others are forgotten.
    pub fn retain(&self, repositories: &BTreeSet<String>) -> Result<(), IndexError> {
        let mut writer = self.writer();
        let known: Vec<String> = {
            let mut statement = writer.prepare_cached("SELECT name FROM repository")?;
            let rows = statement.query_map([], |row| row.get(0))?;
            rows.collect::<rusqlite::Result<_>>()?
        };
        for name in known.iter().filter(|name| !repositories.contains(*name)) {
            let transaction = writer.transaction()?;
            settle_repository(&transaction, name, &[])?;
            transaction.commit()?;
        }
        Ok(())
    }

    /// Says what a manifest is. One that no repository has any more is not kept.
    pub fn learn(&self, digest: &str, outcome: &Outcome) -> Result<(), IndexError> {
        let mut writer = self.writer();
        let transaction = writer.transaction()?;
        let holders: Vec<i64> = {
            let sql = "SELECT repository FROM version WHERE digest = ?1 AND package IS NULL";
            let mut statement = transaction.prepare_cached(sql)?;
            let rows = statement.query_map([digest], |row| row.get(0))?;
            rows.collect::<rusqlite::Result<_>>()?
        };
        if holders.is_empty() {
            return Ok(());
        }
        let package = match find_package(&transaction, digest)? {
            Some(package) => package,
            None => insert_package(&transaction, digest, outcome)?,
        };
        transaction
            .prepare_cached(
                "UPDATE version SET package = ?2, reason = NULL
                 WHERE digest = ?1 AND package IS NULL",
            )?
            .execute(params![digest, package])?;
        for repository in holders {
            refresh(&transaction, repository)?;
        }
        transaction.commit()?;
        Ok(())
    }

    /// Says why it cannot be told yet what a manifest of a repository is.
    pub fn postpone(&self, repository: &str, digest: &str, reason: &str) -> Result<(), IndexError> {
        let writer = self.writer();
        writer
            .prepare_cached(
                "UPDATE version SET reason = ?3 WHERE digest = ?2 AND package IS NULL
                 AND repository = (SELECT id FROM repository WHERE name = ?1)",
            )?
            .execute(params![repository, digest, reason])?;
        Ok(())
    }
}

fn settle_repository(
    transaction: &Transaction<'_>,
    name: &str,
    heads: &[Head],
) -> Result<Vec<String>, IndexError> {
    let Some(repository) = ensure(transaction, name, heads.is_empty())? else {
        return Ok(Vec::new());
    };
    let before = versions(transaction, repository)?;
    let wanted: BTreeSet<&str> = heads.iter().map(|head| head.digest.as_str()).collect();
    let gone: Vec<&String> = before.keys().filter(|it| !wanted.contains(it.as_str())).collect();
    for digest in &gone {
        transaction
            .prepare_cached("DELETE FROM version WHERE repository = ?1 AND digest = ?2")?
            .execute(params![repository, digest])?;
    }
    let mut has_changed = !gone.is_empty();
    for head in heads.iter().filter(|head| !before.contains_key(&head.digest)) {
        let package = find_package(transaction, &head.digest)?;
        transaction
            .prepare_cached("INSERT OR IGNORE INTO version VALUES (?1, ?2, ?3, NULL)")?
            .execute(params![repository, head.digest, package])?;
        has_changed = true;
    }
    has_changed |= settle_tags(transaction, repository, heads)?;
    for digest in gone {
        if let Some(package) = before.get(digest).copied().flatten() {
            remove_unused(transaction, package)?;
        }
    }
    if has_changed {
        refresh(transaction, repository)?;
    }
    if heads.is_empty() {
        transaction.execute("DELETE FROM repository WHERE id = ?1", [repository])?;
        return Ok(Vec::new());
    }
    let unread = versions(transaction, repository)?.into_iter();
    Ok(unread.filter(|(_, package)| package.is_none()).map(|(digest, _)| digest).collect())
}

/// The number of a repository, which is made unless nothing is in it.
fn ensure(
    transaction: &Transaction<'_>,
    name: &str,
    is_empty: bool,
) -> Result<Option<i64>, IndexError> {
    let found = transaction
        .prepare_cached("SELECT id FROM repository WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()?;
    if found.is_some() || is_empty {
        return Ok(found);
    }
    transaction.prepare_cached("INSERT INTO repository (name) VALUES (?1)")?.execute([name])?;
    Ok(Some(transaction.last_insert_rowid()))
}

/// Versions of a repository, with what they are.
fn versions(
    transaction: &Transaction<'_>,
    repository: i64,
) -> Result<BTreeMap<String, Option<i64>>, IndexError> {
    let sql = "SELECT digest, package FROM version WHERE repository = ?1";
    let mut statement = transaction.prepare_cached(sql)?;
    let rows = statement.query_map([repository], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Lets tags mean what they should; tells whether one did not.
fn settle_tags(
    transaction: &Transaction<'_>,
    repository: i64,
    heads: &[Head],
) -> Result<bool, IndexError> {
    let sql = "SELECT name, digest FROM tag WHERE repository = ?1";
    let before: BTreeMap<String, String> = {
        let mut statement = transaction.prepare_cached(sql)?;
        let rows = statement.query_map([repository], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    let tags = |head: &'_ Head| -> Vec<(String, String)> {
        head.tags.iter().map(|tag| (tag.clone(), head.digest.clone())).collect()
    };
    let wanted: BTreeMap<String, String> = heads.iter().flat_map(tags).collect();
    for name in before.keys().filter(|name| !wanted.contains_key(*name)) {
        transaction
            .prepare_cached("DELETE FROM tag WHERE repository = ?1 AND name = ?2")?
            .execute(params![repository, name])?;
    }
    for (name, digest) in wanted.iter().filter(|(name, it)| before.get(*name) != Some(*it)) {
        transaction
            .prepare_cached("REPLACE INTO tag VALUES (?1, ?2, ?3)")?
            .execute(params![repository, name, digest])?;
    }
    Ok(before != wanted)
}

fn find_package(transaction: &Transaction<'_>, digest: &str) -> Result<Option<i64>, IndexError> {
    let mut statement = transaction.prepare_cached("SELECT id FROM package WHERE digest = ?1")?;
    Ok(statement.query_row([digest], |row| row.get(0)).optional()?)
}

fn insert_package(
    transaction: &Transaction<'_>,
    digest: &str,
    outcome: &Outcome,
) -> Result<i64, IndexError> {
    let insert = "INSERT INTO package (digest, state, reason, facts, kinds, readme, icon)
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let mut insert = transaction.prepare_cached(insert)?;
    let nothing: Option<&str> = None;
    let package = match outcome {
        Outcome::Other => {
            insert.execute(params![digest, OTHER, nothing, nothing, 0, nothing, nothing])?;
            return Ok(transaction.last_insert_rowid());
        }
        Outcome::Broken(reason) => {
            insert.execute(params![digest, BROKEN, reason, nothing, 0, nothing, nothing])?;
            return Ok(transaction.last_insert_rowid());
        }
        Outcome::Package(package) => package,
    };
    let facts = serde_json::to_string(package)?;
    let kinds = i64::try_from(package.definitions.len()).unwrap_or(i64::MAX);
    let Package { readme, icon, .. } = &**package;
    insert.execute(params![digest, READ, nothing, facts, kinds, readme, icon])?;
    let id = transaction.last_insert_rowid();
    insert_definitions(transaction, id, package)?;
    for dependency in &package.dependencies {
        transaction
            .prepare_cached("INSERT OR IGNORE INTO needs VALUES (?1, ?2)")?
            .execute(params![path_of(&dependency.package), id])?;
    }
    for schema in &package.schemas {
        transaction
            .prepare_cached("INSERT OR IGNORE INTO schema VALUES (?1, ?2)")?
            .execute(params![schema.digest, schema.compressed])?;
        transaction
            .prepare_cached("INSERT OR IGNORE INTO schema_use VALUES (?1, ?2)")?
            .execute(params![schema.digest, id])?;
    }
    Ok(id)
}

fn insert_definitions(
    transaction: &Transaction<'_>,
    id: i64,
    package: &Package,
) -> Result<(), IndexError> {
    for definition in &package.definitions {
        let facts = serde_json::to_string(definition)?;
        transaction
            .prepare_cached("INSERT OR IGNORE INTO provides VALUES (?1, ?2, ?3)")?
            .execute(params![definition.name, id, facts])?;
        transaction
            .prepare_cached("INSERT OR IGNORE INTO kind VALUES (?1, ?2)")?
            .execute(params![definition.name, definition.group])?;
        for word in words::of_definition(definition) {
            transaction
                .prepare_cached(
                    "INSERT INTO kind_word VALUES (?1, ?2, 1)
                     ON CONFLICT DO UPDATE SET uses = uses + 1",
                )?
                .execute(params![word, definition.name])?;
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
fn remove_unused(transaction: &Transaction<'_>, package: i64) -> Result<(), IndexError> {
    let mut statement = transaction.prepare_cached("SELECT 1 FROM version WHERE package = ?1")?;
    if statement.exists([package])? {
        return Ok(());
    }
    drop(statement);
    remove_words(transaction, package)?;
    for sql in [
        "DELETE FROM kind WHERE name IN (SELECT name FROM provides WHERE package = ?1)
         AND NOT EXISTS (SELECT 1 FROM provides AS other
                         WHERE other.name = kind.name AND other.package <> ?1)",
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
        for word in words::of_definition(&definition) {
            for sql in [
                "UPDATE kind_word SET uses = uses - 1 WHERE word = ?1 AND name = ?2",
                "DELETE FROM kind_word WHERE word = ?1 AND name = ?2 AND uses <= 0",
            ] {
                transaction.prepare_cached(sql)?.execute(params![word, definition.name])?;
            }
        }
    }
    Ok(())
}

/// Finds the newest package of a repository, by which it is listed and found.
fn refresh(transaction: &Transaction<'_>, repository: i64) -> Result<(), IndexError> {
    transaction.prepare_cached("DELETE FROM word WHERE repository = ?1")?.execute([repository])?;
    let newest = newest_package(transaction, repository)?;
    let digest = newest.as_ref().map(|(digest, _)| digest);
    transaction
        .prepare_cached("UPDATE repository SET newest = ?2 WHERE id = ?1")?
        .execute(params![repository, digest])?;
    let Some((_, package)) = newest else { return Ok(()) };
    let name: String = transaction
        .prepare_cached("SELECT name FROM repository WHERE id = ?1")?
        .query_row([repository], |row| row.get(0))?;
    for word in words::of_package(&name, &package) {
        transaction
            .prepare_cached("INSERT OR IGNORE INTO word VALUES (?1, ?2)")?
            .execute(params![word, repository])?;
    }
    Ok(())
}

/// The newest version of a repository that is a package, readable before broken.
fn newest_package(
    transaction: &Transaction<'_>,
    repository: i64,
) -> Result<Option<(String, Package)>, IndexError> {
    let sql = "SELECT version.digest, state = ?2, tag.name FROM version
               JOIN package ON package.id = version.package
               LEFT JOIN tag ON tag.repository = version.repository AND tag.digest = version.digest
               WHERE version.repository = ?1 AND state <> ?3";
    let mut versions = BTreeMap::<String, (bool, Vec<String>)>::new();
    let mut statement = transaction.prepare_cached(sql)?;
    let mut rows = statement.query(params![repository, READ, OTHER])?;
    while let Some(row) = rows.next()? {
        let (digest, is_read, tag): (String, bool, Option<String>) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        let entry = versions.entry(digest).or_insert((is_read, Vec::new()));
        entry.1.extend(tag);
    }
    for (_, tags) in versions.values_mut() {
        tags.sort_by(|one, other| compare_tags(one, other));
    }
    let newest =
        versions.iter().min_by(|(one, (read, tags)), (other, (other_read, other_tags))| {
            (other_read.cmp(read)).then_with(|| compare_versions((tags, one), (other_tags, other)))
        });
    let Some((digest, _)) = newest else { return Ok(None) };
    let sql = "SELECT facts, readme FROM package WHERE digest = ?1";
    let (facts, readme): (Option<String>, Option<String>) = transaction
        .prepare_cached(sql)?
        .query_row([digest], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let facts = facts.map(|facts| serde_json::from_str::<Package>(&facts)).transpose()?;
    let package = Package { readme, ..facts.unwrap_or_default() };
    Ok(Some((digest.clone(), package)))
}
