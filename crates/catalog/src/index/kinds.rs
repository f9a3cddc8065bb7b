//! Questions about kinds: which packages define one, what it looks like.

use super::offers::defining;
use super::order::sort_tags;
use super::{Index, IndexError, PAGE_LENGTH_MAX, Rights};
use crate::answer::{Definer, Definers, DefiningVersion, KindSummary};
use crate::grammar::KindReference;
use crate::json::decompress;
use crate::record::Definition;
use crate::resolve::KindOffer;
use crate::words::NAME;
use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use xpkg::lint::edits_between;

/// Suggestions in one answer.
const SUGGESTIONS_MAX: usize = 5;
/// Names with one beginning that are compared for a suggestion.
const COMPARED_MAX: i64 = 500;

impl Index {
    /// Which packages bring a kind, and in which versions; `after` is the repository the last page
    /// ended with.
    pub fn definers(
        &self,
        kind: &KindReference,
        after: Option<&str>,
        rights: &Rights,
    ) -> Result<Definers, IndexError> {
        self.ask(rights, |database| {
            let Some(name) = find_name(database, kind)? else {
                return Ok(undefined(kind, suggest(database, kind)?));
            };
            let rows = defining(database, &name)?;
            let shown = rows.first().map(|row| row.definition.clone());
            let version = kind.version.clone();
            let has = |row: &KindOffer| {
                version.as_deref().is_none_or(|name| row.definition.version(name).is_some())
            };
            let mut packages = by_repository(rows.into_iter().filter(has).collect());
            let would = |definer: &&Definer| {
                let serves = |it: &DefiningVersion| {
                    it.versions.iter().any(|one| {
                        one.served && version.as_ref().is_none_or(|name| one.name == *name)
                    })
                };
                definer.installs && definer.versions.iter().any(serves)
            };
            let ambiguous = packages.iter().filter(would).count() > 1;
            packages.retain(|definer| after.is_none_or(|last| definer.repository.as_str() > last));
            let next = (packages.len() > PAGE_LENGTH_MAX)
                .then(|| packages[PAGE_LENGTH_MAX - 1].repository.clone());
            packages.truncate(PAGE_LENGTH_MAX);
            Ok(Definers {
                crd: name,
                group: kind.group.clone(),
                kind: shown.as_ref().map(|it| it.kind.clone()),
                scope: shown.map(|it| it.scope.clone()),
                version,
                packages,
                ambiguous,
                suggestions: Vec::new(),
                next,
            })
        })
    }

    /// What a kind looks like, by the newest package that brings it; none if no package does.
    pub fn kind(
        &self,
        kind: &KindReference,
        rights: &Rights,
    ) -> Result<Option<KindSummary>, IndexError> {
        self.ask(rights, |database| {
            let Some(name) = find_name(database, kind)? else { return Ok(None) };
            summary(database, &name)
        })
    }

    /// The schema of a version of a kind as JSON, from the newest package that has one, or from
    /// one of a repository.
    pub fn schema(
        &self,
        kind: &KindReference,
        version: &str,
        repository: Option<&str>,
        rights: &Rights,
    ) -> Result<Option<Vec<u8>>, IndexError> {
        self.ask(rights, |database| {
            let Some(name) = find_name(database, kind)? else { return Ok(None) };
            let mut rows = defining(database, &name)?;
            rows.retain(|row| repository.is_none_or(|wanted| row.repository == wanted));
            let schema =
                |row: KindOffer| row.definition.version(version).and_then(|it| it.schema.clone());
            let Some(digest) = rows.into_iter().find_map(schema) else { return Ok(None) };
            find_schema(database, &digest)
        })
    }
}

/// A schema as JSON, by its digest.
pub(super) fn find_schema(
    database: &Connection,
    digest: &str,
) -> Result<Option<Vec<u8>>, IndexError> {
    let sql = "SELECT bytes FROM schema WHERE digest = ?1";
    let mut statement = database.prepare_cached(sql)?;
    let bytes: Option<Vec<u8>> = statement.query_row([digest], |row| row.get(0)).optional()?;
    Ok(bytes.map(|bytes| decompress(&bytes)).transpose()?)
}

/// A kind by the newest package that the asker may read.
pub(super) fn newest_definition(
    database: &Connection,
    name: &str,
) -> Result<Option<Arc<Definition>>, IndexError> {
    Ok(defining(database, name)?.into_iter().next().map(|row| row.definition))
}

/// A kind as lists show it; none if no package that may be read defines it.
pub(super) fn summary(
    database: &Connection,
    name: &str,
) -> Result<Option<KindSummary>, IndexError> {
    let rows = defining(database, name)?;
    let packages: BTreeSet<String> = rows.iter().map(|row| row.repository.clone()).collect();
    let installs = rows.iter().any(|row| row.definition.origin.installs());
    let newest = rows.into_iter().next();
    Ok(newest.map(|KindOffer { definition, .. }| KindSummary {
        definition: Arc::unwrap_or_clone(definition),
        installs,
        packages: packages.into_iter().collect(),
    }))
}

/// Tags as the database joins them: none has a space in it.
pub(super) fn split_tags(joined: Option<String>) -> Vec<String> {
    let joined = joined.unwrap_or_default();
    let mut tags: Vec<String> = joined.split_whitespace().map(str::to_owned).collect();
    sort_tags(&mut tags);
    tags
}

/// Rows that are in order, by repository, where they stay in order.
fn by_repository(rows: Vec<KindOffer>) -> Vec<Definer> {
    let mut groups = BTreeMap::<String, Vec<KindOffer>>::new();
    for row in rows {
        groups.entry(row.repository.clone()).or_default().push(row);
    }
    let definer = |(repository, rows): (String, Vec<KindOffer>)| {
        let first = rows.first()?;
        Some(Definer {
            repository,
            kind: first.package.kind.clone(),
            dialect: first.package.dialect.clone(),
            permission_scope: first.package.permission_scope.clone(),
            origin: first.definition.origin,
            installs: first.definition.origin.installs(),
            versions: rows.into_iter().map(defining_version).collect(),
        })
    };
    groups.into_iter().filter_map(definer).collect()
}

fn defining_version(row: KindOffer) -> DefiningVersion {
    let needs_activation = row.needs_activation();
    let KindOffer { digest, tags, definition, .. } = row;
    DefiningVersion { tags, digest, versions: definition.versions.clone(), needs_activation }
}

/// The name of the CRD that is meant: by its plural, else by its singular or kind.
pub(super) fn find_name(
    database: &Connection,
    kind: &KindReference,
) -> Result<Option<String>, IndexError> {
    let Some(wanted) = &kind.name else { return Ok(None) };
    let exact = kind.bare();
    if is_visible(database, &exact)? {
        return Ok(Some(exact));
    }
    let suffix = format!(".{}", kind.group);
    let sql = "SELECT DISTINCT kind_word.name FROM kind_word
               JOIN repository ON repository.id = kind_word.repository
               WHERE word = ?1 AND rank = ?2 AND substr(kind_word.name, -length(?3)) = ?3
               AND readable(repository.name) ORDER BY kind_word.name";
    let mut statement = database.prepare_cached(sql)?;
    let rows = statement.query_map(params![wanted, NAME, suffix], |row| row.get::<_, String>(0))?;
    let names = rows.collect::<rusqlite::Result<Vec<String>>>()?;
    let mut by_kind = None;
    for name in names {
        let rows = defining(database, &name)?;
        if rows.iter().any(|row| row.definition.singular == *wanted) {
            return Ok(Some(name));
        }
        let is_kind = |row: &KindOffer| row.definition.kind.to_lowercase() == *wanted;
        if rows.iter().any(is_kind) {
            by_kind.get_or_insert(name);
        }
    }
    Ok(by_kind)
}

/// Holds of a table with the `name` of a kind if it is in a repository that the asker may read.
pub(super) const VISIBLE: &str = "EXISTS (
    SELECT 1 FROM home JOIN repository ON repository.id = home.repository
    WHERE home.name = kind_word.name AND readable(repository.name))";

fn is_visible(database: &Connection, name: &str) -> Result<bool, IndexError> {
    let sql = "SELECT 1 FROM home JOIN repository ON repository.id = home.repository
               WHERE home.name = ?1 AND readable(repository.name) LIMIT 1";
    Ok(database.prepare_cached(sql)?.exists([name])?)
}

pub(super) fn names_of_group(
    database: &Connection,
    group: &str,
) -> Result<Vec<String>, IndexError> {
    let sql = "SELECT name FROM kind WHERE family = ?1 ORDER BY name";
    let mut statement = database.prepare_cached(sql)?;
    let rows = statement.query_map([group], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn undefined(kind: &KindReference, suggestions: Vec<String>) -> Definers {
    Definers {
        crd: kind.bare(),
        group: kind.group.clone(),
        kind: None,
        scope: None,
        version: kind.version.clone(),
        packages: Vec::new(),
        ambiguous: false,
        suggestions,
        next: None,
    }
}

/// Kinds that may be meant: the same name in another group, or one that is spelled alike.
pub(super) fn suggest(
    database: &Connection,
    kind: &KindReference,
) -> Result<Vec<String>, IndexError> {
    let wanted = kind.name.clone().unwrap_or_default();
    let same = similar(database, &wanted, |name| {
        let (plural, group) = name.split_once('.').unwrap_or((name, ""));
        let by_name = edits_between(&wanted, plural)?;
        let by_group =
            if group == kind.group { 0 } else { edits_between(&kind.group, group).unwrap_or(3) };
        Some(by_name + by_group)
    })?;
    Ok(same)
}

/// Kinds in order of a score, the best few of those that may be read.
pub(super) fn similar(
    database: &Connection,
    wanted: &str,
    score: impl Fn(&str) -> Option<usize>,
) -> Result<Vec<String>, IndexError> {
    // People seldom mistake the first letters; the group they do.
    let beginning = |length: usize| wanted.chars().take(length).collect::<String>();
    let beginnings = [format!("{wanted}."), beginning(3), beginning(2), beginning(1)];
    let sql = "SELECT name FROM kind WHERE name >= ?1 AND name < ?1 || char(1114111) LIMIT ?2";
    let mut statement = database.prepare_cached(sql)?;
    let mut names = BTreeSet::<String>::new();
    for beginning in beginnings {
        let rows = statement.query_map(params![beginning, COMPARED_MAX], |row| row.get(0))?;
        for name in rows {
            names.insert(name?);
        }
    }
    let mut scored: Vec<(usize, String)> =
        names.into_iter().filter_map(|name| Some((score(&name)?, name))).collect();
    scored.sort();
    let mut best = Vec::new();
    for (_, name) in scored {
        if is_visible(database, &name)? {
            best.push(name);
        }
        if best.len() == SUGGESTIONS_MAX {
            break;
        }
    }
    Ok(best)
}
