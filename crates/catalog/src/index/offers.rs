//! Every version of a package that brings a kind.
//!
//! Three runs of rows are read: the packages that provide the kind, and the versions and tags of each
//! repository that is a home of it. What versions share is read once.

use super::IndexError;
use super::order::{TagOrder, sort_tags};
use crate::record::{Definition, Package};
use crate::resolve::KindOffer;
use rusqlite::Connection;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// A definition, and what is told of a package that brings it.
type Offered = (Arc<Definition>, Arc<Package>);

/// Every version of a package that brings a kind and that the asker may read: the newest first, and what
/// is installed before what is not.
pub(super) fn defining(database: &Connection, name: &str) -> Result<Vec<KindOffer>, IndexError> {
    let homes = homes_of(database, name)?;
    if homes.is_empty() {
        return Ok(Vec::new());
    }
    let offered = offered_by(database, name)?;
    let mut all = Vec::new();
    for (id, repository) in homes {
        let mut tags = tags_of(database, id)?;
        let sql = "SELECT digest, package FROM version WHERE repository = ?1";
        let mut statement = database.prepare_cached(sql)?;
        let mut rows = statement.query([id])?;
        while let Some(row) = rows.next()? {
            let package: Option<i64> = row.get(1)?;
            let found = package.and_then(|package| offered.get(&package));
            let Some((definition, package)) = found.cloned() else { continue };
            let digest: String = row.get(0)?;
            let mut tags = tags.remove(&digest).unwrap_or_default();
            sort_tags(&mut tags);
            all.push(KindOffer {
                repository: repository.clone(),
                digest,
                tags,
                package,
                definition,
            });
        }
    }
    all.sort_by_cached_key(|offer| {
        let installs = Reverse(offer.definition.origin.installs());
        let tag = TagOrder::of_version(&offer.tags);
        (installs, tag, offer.digest.clone(), offer.repository.clone())
    });
    Ok(all)
}

/// Repositories that have a kind, as far as the asker may read them.
fn homes_of(database: &Connection, name: &str) -> Result<Vec<(i64, String)>, IndexError> {
    let sql = "SELECT DISTINCT repository.id, repository.name FROM home
               JOIN repository ON repository.id = home.repository
               WHERE home.name = ?1 AND readable(repository.name)";
    let mut statement = database.prepare_cached(sql)?;
    let rows = statement.query_map([name], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// What each package with a kind says of it, by the package's number.
fn offered_by(database: &Connection, name: &str) -> Result<HashMap<i64, Offered>, IndexError> {
    let sql = "SELECT package, offer, brief FROM provides WHERE name = ?1";
    let mut statement = database.prepare_cached(sql)?;
    let mut rows = statement.query([name])?;
    let (mut definitions, mut briefs) = (HashMap::new(), HashMap::new());
    let mut all = HashMap::new();
    while let Some(row) = rows.next()? {
        let (package, offer, brief): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if let std::collections::hash_map::Entry::Vacant(place) = definitions.entry(offer) {
            let facts = read_facts(database, "SELECT facts FROM offer WHERE id = ?1", offer)?;
            place.insert(Arc::new(serde_json::from_str::<Definition>(&facts)?));
        }
        if let std::collections::hash_map::Entry::Vacant(place) = briefs.entry(brief) {
            let facts = read_facts(database, "SELECT facts FROM brief WHERE id = ?1", brief)?;
            place.insert(Arc::new(serde_json::from_str::<Package>(&facts)?));
        }
        all.insert(package, (definitions[&offer].clone(), briefs[&brief].clone()));
    }
    Ok(all)
}

fn read_facts(database: &Connection, sql: &str, id: i64) -> Result<String, IndexError> {
    Ok(database.prepare_cached(sql)?.query_row([id], |row| row.get(0))?)
}

/// The tags of a repository, by what they mean.
fn tags_of(database: &Connection, id: i64) -> Result<HashMap<String, Vec<String>>, IndexError> {
    let sql = "SELECT digest, name FROM tag WHERE repository = ?1";
    let mut statement = database.prepare_cached(sql)?;
    let mut rows = statement.query([id])?;
    let mut tags = HashMap::<String, Vec<String>>::new();
    while let Some(row) = rows.next()? {
        tags.entry(row.get(0)?).or_default().push(row.get(1)?);
    }
    Ok(tags)
}
