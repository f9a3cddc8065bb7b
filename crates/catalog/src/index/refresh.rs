//! What is known of a repository by its versions: its newest package, the words and facets it is found
//! by, and the kinds it is home to.

use super::IndexError;
use super::contents::{OTHER, READ};
use super::order::{compare_tags, compare_versions};
use crate::record::Package;
use crate::words;
use rusqlite::{Transaction, params};
use std::collections::BTreeMap;

/// Finds the newest package of a repository, by which it is listed and found; tells the repository's
/// name.
pub(super) fn refresh(
    transaction: &Transaction<'_>,
    repository: i64,
) -> Result<String, IndexError> {
    for sql in ["DELETE FROM word WHERE repository = ?1", "DELETE FROM facet WHERE repository = ?1"]
    {
        transaction.prepare_cached(sql)?.execute([repository])?;
    }
    let newest = newest_package(transaction, repository)?;
    let digest = newest.as_ref().map(|(digest, _)| digest.clone());
    transaction
        .prepare_cached("UPDATE repository SET newest = ?2 WHERE id = ?1")?
        .execute(params![repository, digest])?;
    let name: String = transaction
        .prepare_cached("SELECT name FROM repository WHERE id = ?1")?
        .query_row([repository], |row| row.get(0))?;
    let Some((digest, package)) = newest else { return Ok(name) };
    for word in words::of_package(&name, &package) {
        transaction
            .prepare_cached("INSERT OR IGNORE INTO word VALUES (?1, ?2)")?
            .execute(params![word, repository])?;
    }
    insert_facets(transaction, repository, &package)?;
    let groups = "INSERT OR IGNORE INTO facet SELECT DISTINCT 'group', family, ?2 FROM package
                  JOIN provides ON provides.package = package.id
                  JOIN kind ON kind.name = provides.name WHERE package.digest = ?1";
    transaction.prepare_cached(groups)?.execute(params![digest, repository])?;
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
    let sql = "INSERT INTO home SELECT name, ?1, 1 FROM provides WHERE package = ?2
               ON CONFLICT DO UPDATE SET uses = uses + 1";
    transaction.prepare_cached(sql)?.execute(params![repository, package])?;
    Ok(())
}

/// Says that a version of a package is gone from a repository.
pub(super) fn remove_home(
    transaction: &Transaction<'_>,
    repository: i64,
    package: i64,
) -> Result<(), IndexError> {
    for sql in [
        "UPDATE home SET uses = uses - 1
         WHERE repository = ?1 AND name IN (SELECT name FROM provides WHERE package = ?2)",
        "DELETE FROM home WHERE uses <= 0
         AND repository = ?1 AND name IN (SELECT name FROM provides WHERE package = ?2)",
    ] {
        transaction.prepare_cached(sql)?.execute(params![repository, package])?;
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
