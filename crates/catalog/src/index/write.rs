//! Changes: what a repository has, and what a manifest is.

use super::contents::{OTHER, find_package, insert_package, remove_unused};
use super::refresh::{add_home, refresh, remove_home};
use super::{Head, Index, IndexError};
use crate::record::Outcome;
use rusqlite::{OptionalExtension as _, Transaction, params};
use std::collections::{BTreeMap, BTreeSet};

/// What is said of a version whose bytes were found damaged.
const DAMAGED: &str = "a part of it was found damaged: push it again";

impl Index {
    /// Says all that a repository has; tells which of it is not known yet. What is not said is
    /// gone, and a repository that has nothing is.
    pub fn settle(&self, repository: &str, heads: &[Head]) -> Result<Vec<String>, IndexError> {
        let mut writer = self.writer();
        let transaction = writer.transaction()?;
        let Settled { unread, has_changed } = settle_repository(&transaction, repository, heads)?;
        transaction.commit()?;
        drop(writer);
        if has_changed {
            self.tell_news(repository);
        }
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
            self.tell_news(name);
        }
        Ok(())
    }

    /// Says what a manifest is. One that no repository has any more is not kept.
    pub fn learn(&self, digest: &str, outcome: &Outcome) -> Result<(), IndexError> {
        let mut writer = self.writer();
        let transaction = writer.transaction()?;
        let holders: Vec<i64> = {
            let sql = "SELECT repository FROM version
                       WHERE digest = ?1 AND package IS NULL AND reason IS NOT ?2";
            let mut statement = transaction.prepare_cached(sql)?;
            let rows = statement.query_map([digest, DAMAGED], |row| row.get(0))?;
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
                 WHERE digest = ?1 AND package IS NULL AND reason IS NOT ?3",
            )?
            .execute(params![digest, package, DAMAGED])?;
        let mut names = Vec::new();
        for repository in &holders {
            add_home(&transaction, *repository, package)?;
            names.push(refresh(&transaction, *repository)?);
        }
        transaction.commit()?;
        drop(writer);
        for name in &names {
            self.tell_news(name);
        }
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

/// What became of a repository.
#[derive(Default)]
struct Settled {
    unread: Vec<String>,
    has_changed: bool,
}

fn settle_repository(
    transaction: &Transaction<'_>,
    name: &str,
    heads: &[Head],
) -> Result<Settled, IndexError> {
    let Some(repository) = ensure(transaction, name, heads.is_empty())? else {
        return Ok(Settled::default());
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
        if let Some(package) = package {
            add_home(transaction, repository, package)?;
        }
        has_changed = true;
    }
    has_changed |= settle_tags(transaction, repository, heads)?;
    let damaged: BTreeSet<&str> =
        heads.iter().filter(|head| head.is_damaged).map(|head| head.digest.as_str()).collect();
    let lost = settle_damage(transaction, repository, &damaged)?;
    has_changed |= !lost.is_empty();
    let gone = gone.into_iter().map(|digest| before.get(digest).copied().flatten());
    for package in gone.chain(lost).flatten() {
        remove_home(transaction, repository, package)?;
        remove_unused(transaction, package)?;
    }
    if has_changed {
        refresh(transaction, repository)?;
    }
    if heads.is_empty() {
        transaction.execute("DELETE FROM repository WHERE id = ?1", [repository])?;
        return Ok(Settled { unread: Vec::new(), has_changed: true });
    }
    let all = versions(transaction, repository)?.into_iter();
    let unread =
        all.filter(|(digest, package)| package.is_none() && !damaged.contains(digest.as_str()));
    Ok(Settled { unread: unread.map(|(digest, _)| digest).collect(), has_changed })
}

/// Says of damaged versions that they are, and of others no more; gives what those were of which it is
/// new. An image that is no package is none of the catalog's business.
fn settle_damage(
    transaction: &Transaction<'_>,
    repository: i64,
    damaged: &BTreeSet<&str>,
) -> Result<Vec<Option<i64>>, IndexError> {
    let mut find = transaction.prepare_cached(
        "SELECT version.package FROM version LEFT JOIN package ON package.id = version.package
         WHERE repository = ?1 AND version.digest = ?2
         AND version.reason IS NOT ?3 AND package.state IS NOT ?4",
    )?;
    let mut mark = transaction.prepare_cached(
        "UPDATE version SET package = NULL, reason = ?3 WHERE repository = ?1 AND digest = ?2",
    )?;
    let mut heal = transaction.prepare_cached(
        "UPDATE version SET reason = NULL WHERE repository = ?1 AND digest = ?2 AND reason = ?3",
    )?;
    for digest in marked_versions(transaction, repository)? {
        if !damaged.contains(digest.as_str()) {
            heal.execute(params![repository, digest, DAMAGED])?;
        }
    }
    let mut lost = Vec::new();
    for digest in damaged {
        let was = find.query_row(params![repository, digest, DAMAGED, OTHER], |row| row.get(0));
        if let Some(package) = was.optional()? {
            mark.execute(params![repository, digest, DAMAGED])?;
            lost.push(package);
        }
    }
    Ok(lost)
}

/// The versions of a repository of which it is said that they are damaged.
fn marked_versions(
    transaction: &Transaction<'_>,
    repository: i64,
) -> Result<Vec<String>, IndexError> {
    let sql = "SELECT digest FROM version WHERE repository = ?1 AND reason = ?2";
    let mut statement = transaction.prepare_cached(sql)?;
    let rows = statement.query_map(params![repository, DAMAGED], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
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
