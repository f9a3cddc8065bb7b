//! What is known of a repository by its versions: its newest package, the words and facets it is found
//! by, and the kinds it is home to.

use super::IndexError;
use super::contents::{OTHER, READ};
use super::order::{TagOrder, sort_tags};
use crate::record::{Definition, Package};
use crate::words;
use rusqlite::{Transaction, params};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Finds the newest package of a repository, by which it is listed and found; tells the repository's
/// name.
pub(super) fn refresh(
    transaction: &Transaction<'_>,
    repository: i64,
) -> Result<String, IndexError> {
    let sql = "SELECT name, newest FROM repository WHERE id = ?1";
    let (name, before): (String, Option<String>) = transaction
        .prepare_cached(sql)?
        .query_row([repository], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let sql = "UPDATE repository SET versions =
                   (SELECT count(*) FROM version LEFT JOIN package ON package.id = version.package
                    WHERE version.repository = ?1 AND package.state IS NOT ?2)
               WHERE id = ?1";
    transaction.prepare_cached(sql)?.execute(params![repository, OTHER])?;
    let newest = newest_version(transaction, repository)?;
    // The bytes behind a digest say the same each time.
    if newest == before {
        return Ok(name);
    }
    for sql in ["DELETE FROM word WHERE repository = ?1", "DELETE FROM facet WHERE repository = ?1"]
    {
        transaction.prepare_cached(sql)?.execute([repository])?;
    }
    let package = newest.as_deref().map(|digest| read_package(transaction, digest)).transpose()?;
    let kind = package.as_ref().map(|package| &package.kind);
    let category = package.as_ref().and_then(|package| package.category.as_ref());
    let sql = "UPDATE repository SET newest = ?2, type = ?3, category = ?4 WHERE id = ?1";
    transaction.prepare_cached(sql)?.execute(params![repository, newest, kind, category])?;
    let Some(package) = package else { return Ok(name) };
    for (rank, word) in words::of_package(&name, &package) {
        transaction
            .prepare_cached("INSERT OR IGNORE INTO word VALUES (?1, ?2, ?3)")?
            .execute(params![rank, word, repository])?;
    }
    insert_facets(transaction, repository, &package)?;
    let groups = "INSERT OR IGNORE INTO facet SELECT DISTINCT 'group', family, ?2 FROM package
                  JOIN provides ON provides.package = package.id
                  JOIN kind ON kind.name = provides.name WHERE package.digest = ?1";
    transaction.prepare_cached(groups)?.execute(params![newest, repository])?;
    Ok(name)
}

fn insert_facets(
    transaction: &Transaction<'_>,
    repository: i64,
    package: &Package,
) -> Result<(), IndexError> {
    let Package { kind, category, license, keywords, capabilities, .. } = package;
    let one =
        [("type", Some(kind)), ("category", category.as_ref()), ("license", license.as_ref())];
    let one = one.into_iter().filter_map(|(facet, value)| Some((facet, value?)));
    let keywords = keywords.iter().map(|value| ("keyword", value));
    let capabilities = capabilities.iter().map(|value| ("capability", value));
    for (facet, value) in one.chain(keywords).chain(capabilities) {
        if value.is_empty() {
            continue;
        }
        transaction
            .prepare_cached("INSERT OR IGNORE INTO facet VALUES (?1, ?2, ?3)")?
            .execute(params![facet, value, repository])?;
    }
    Ok(())
}

/// Says that a repository has a version of a package, whose kinds are found there from now on.
pub(super) fn add_home(
    transaction: &Transaction<'_>,
    repository: i64,
    package: i64,
) -> Result<(), IndexError> {
    let sql = "INSERT INTO home SELECT name, ?1, offer, 1 FROM provides WHERE package = ?2
               ON CONFLICT DO UPDATE SET uses = uses + 1";
    transaction.prepare_cached(sql)?.execute(params![repository, package])?;
    for definition in used_once(transaction, repository, package)? {
        for (word, rank) in words::of_definition(&definition) {
            let sql = "INSERT INTO kind_word VALUES (?1, ?2, ?3, ?4, 1)
                       ON CONFLICT DO UPDATE SET uses = uses + 1";
            let values = params![word, rank, definition.name, repository];
            transaction.prepare_cached(sql)?.execute(values)?;
        }
    }
    Ok(())
}

/// Says that a version of a package is gone from a repository.
pub(super) fn remove_home(
    transaction: &Transaction<'_>,
    repository: i64,
    package: i64,
) -> Result<(), IndexError> {
    for definition in used_once(transaction, repository, package)? {
        for (word, rank) in words::of_definition(&definition) {
            for sql in [
                "UPDATE kind_word SET uses = uses - 1
                 WHERE word = ?1 AND rank = ?2 AND name = ?3 AND repository = ?4",
                "DELETE FROM kind_word WHERE uses <= 0
                 AND word = ?1 AND rank = ?2 AND name = ?3 AND repository = ?4",
            ] {
                let values = params![word, rank, definition.name, repository];
                transaction.prepare_cached(sql)?.execute(values)?;
            }
        }
    }
    for sql in [
        "UPDATE home SET uses = uses - 1 WHERE repository = ?1
         AND (name, offer) IN (SELECT name, offer FROM provides WHERE package = ?2)",
        "DELETE FROM home WHERE uses <= 0 AND repository = ?1
         AND name IN (SELECT name FROM provides WHERE package = ?2)",
    ] {
        transaction.prepare_cached(sql)?.execute(params![repository, package])?;
    }
    Ok(())
}

/// Definitions of a package that a repository has by one version only.
fn used_once(
    transaction: &Transaction<'_>,
    repository: i64,
    package: i64,
) -> Result<Vec<Definition>, IndexError> {
    let sql = "SELECT offer.facts FROM provides
               JOIN home ON home.name = provides.name AND home.repository = ?1
                        AND home.offer = provides.offer
               JOIN offer ON offer.id = provides.offer
               WHERE provides.package = ?2 AND home.uses = 1";
    let mut statement = transaction.prepare_cached(sql)?;
    let mut rows = statement.query(params![repository, package])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(serde_json::from_str(&row.get::<_, String>(0)?)?);
    }
    Ok(all)
}

/// The newest version of a repository that is a package, readable before broken.
fn newest_version(
    transaction: &Transaction<'_>,
    repository: i64,
) -> Result<Option<String>, IndexError> {
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
    let newest = versions.into_iter().min_by_key(|(digest, (is_read, tags))| {
        let mut tags = tags.clone();
        sort_tags(&mut tags);
        (Reverse(*is_read), TagOrder::of_version(&tags), digest.clone())
    });
    Ok(newest.map(|(digest, _)| digest))
}

fn read_package(transaction: &Transaction<'_>, digest: &str) -> Result<Package, IndexError> {
    let sql = "SELECT facts, readme FROM package WHERE digest = ?1";
    let (facts, readme): (Option<String>, Option<String>) = transaction
        .prepare_cached(sql)?
        .query_row([digest], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let facts = facts.map(|facts| serde_json::from_str::<Package>(&facts)).transpose()?;
    Ok(Package { readme, ..facts.unwrap_or_default() })
}
