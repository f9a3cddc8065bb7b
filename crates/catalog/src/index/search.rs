//! Looking for packages and kinds by words: the very name first, then what begins with it, then
//! what has all words. Words are looked for by their beginnings.

use super::kinds::{similar, summary};
use super::packages::package_summary;
use super::{Index, IndexError, Question, Rights};
use crate::answer::{Found, KindSummary, PackageSummary, Page};
use crate::distance::near;
use crate::words;
use rusqlite::{Connection, params};
use std::collections::BTreeSet;

/// Names that are ranked for one answer.
const CANDIDATES_MAX: usize = 5000;
/// Results of each sort in an answer about everything.
const FOUND_MAX: usize = 20;

impl Index {
    /// Kinds by words, or all of them by name.
    pub fn kinds(
        &self,
        question: &Question,
        rights: &Rights,
    ) -> Result<Page<KindSummary>, IndexError> {
        self.ask(rights, |database| find_kinds(database, question))
    }

    /// Packages by words, or all of them by repository.
    pub fn packages(
        &self,
        question: &Question,
        rights: &Rights,
    ) -> Result<Page<PackageSummary>, IndexError> {
        self.ask(rights, |database| find_packages(database, question))
    }

    /// Whether there is anything that the asker may read.
    pub fn has_readable(&self, rights: &Rights) -> Result<bool, IndexError> {
        self.ask(rights, |database| {
            let sql = "SELECT 1 FROM repository WHERE readable(name) LIMIT 1";
            Ok(database.prepare_cached(sql)?.exists([])?)
        })
    }

    /// Packages and kinds by words.
    pub fn search(&self, text: &str, rights: &Rights) -> Result<Found, IndexError> {
        let question = Question { limit: FOUND_MAX, ..Question::about(text) };
        self.ask(rights, |database| {
            let packages = find_packages(database, &question)?.items;
            let crds = find_kinds(database, &question)?.items;
            let is_nothing = packages.is_empty() && crds.is_empty();
            let suggestions = if is_nothing { suggest(database, text)? } else { Vec::new() };
            Ok(Found { packages, crds, suggestions })
        })
    }
}

/// Where a page ended: the rank and name of its last.
fn cursor(question: &Question) -> Option<(u8, String)> {
    let (rank, name) = question.cursor.as_deref()?.split_once(':')?;
    Some((rank.parse().ok()?, name.to_owned()))
}

fn find_kinds(database: &Connection, question: &Question) -> Result<Page<KindSummary>, IndexError> {
    let wanted = words::query(&question.words);
    let is_meant = |it: &KindSummary| {
        question.group.as_ref().is_none_or(|group| it.definition.group == *group)
    };
    let candidates = if wanted.is_empty() {
        all_kinds(database, question)?
    } else {
        kinds_with(database, &wanted)?
    };
    let mut ranked = Vec::new();
    for name in candidates {
        // What is shown of a kind is what counts: a word that only others may read finds nothing.
        let Some(summary) = summary(database, &name)?.filter(is_meant) else { continue };
        if let Some(rank) = words::rank_definition(&summary.definition, &wanted) {
            ranked.push((rank, name, summary));
        }
    }
    Ok(cut(ranked, question))
}

/// A page of what was ranked, in order of rank and name.
fn cut<T>(mut ranked: Vec<(u8, String, T)>, question: &Question) -> Page<T> {
    ranked.sort_by(|(one, a, _), (other, b, _)| (one, a).cmp(&(other, b)));
    if let Some(last) = cursor(question) {
        ranked.retain(|(rank, name, _)| (*rank, name) > (last.0, &last.1));
    }
    let length = question.length();
    let next = (ranked.len() > length).then(|| {
        let (rank, name, _) = &ranked[length - 1];
        format!("{rank}:{name}")
    });
    ranked.truncate(length);
    Page { items: ranked.into_iter().map(|(_, _, it)| it).collect(), next }
}

/// Names of all kinds behind the last page, some more than a page has.
fn all_kinds(database: &Connection, question: &Question) -> Result<BTreeSet<String>, IndexError> {
    let last = cursor(question).map(|(_, name)| name).unwrap_or_default();
    let sql = "SELECT name FROM kind WHERE name > ?1 AND (?2 IS NULL OR family = ?2)
               AND EXISTS (SELECT 1 FROM provides
                           JOIN version ON version.package = provides.package
                           JOIN repository ON repository.id = version.repository
                           WHERE provides.name = kind.name AND readable(repository.name))
               ORDER BY name LIMIT ?3";
    let limit = i64::try_from(question.length() + 1).unwrap_or(i64::MAX);
    let mut statement = database.prepare_cached(sql)?;
    let rows = statement.query_map(params![last, question.group, limit], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Names of kinds that have all words; those that are words themselves come first.
fn kinds_with(database: &Connection, wanted: &[String]) -> Result<BTreeSet<String>, IndexError> {
    let sql = "SELECT DISTINCT name FROM kind_word WHERE word >= ?1 AND word < ?2
               AND EXISTS (SELECT 1 FROM provides
                           JOIN version ON version.package = provides.package
                           JOIN repository ON repository.id = version.repository
                           WHERE provides.name = kind_word.name AND readable(repository.name))
               ORDER BY word, name LIMIT ?3";
    with_all(database, sql, wanted)
}

/// What a statement finds for the beginnings of all words.
fn with_all(
    database: &Connection,
    sql: &str,
    wanted: &[String],
) -> Result<BTreeSet<String>, IndexError> {
    let limit = i64::try_from(CANDIDATES_MAX).unwrap_or(i64::MAX);
    let mut all: Option<BTreeSet<String>> = None;
    let mut statement = database.prepare_cached(sql)?;
    for word in wanted {
        let end = format!("{word}{}", char::MAX);
        let rows = statement.query_map(params![word, end, limit], |row| row.get(0))?;
        let found = rows.collect::<rusqlite::Result<BTreeSet<String>>>()?;
        all = Some(match all {
            None => found,
            Some(all) => all.intersection(&found).cloned().collect(),
        });
    }
    Ok(all.unwrap_or_default())
}

fn find_packages(
    database: &Connection,
    question: &Question,
) -> Result<Page<PackageSummary>, IndexError> {
    let wanted = words::query(&question.words);
    let is_meant = |it: &PackageSummary| {
        let kind = &it.newest.package.kind;
        question.kind.as_ref().is_none_or(|wanted| kind.eq_ignore_ascii_case(wanted))
    };
    let candidates = if wanted.is_empty() {
        all_packages(database)?
    } else {
        let sql = "SELECT DISTINCT name FROM word JOIN repository ON id = repository
                   WHERE word >= ?1 AND word < ?2 AND readable(name) ORDER BY name LIMIT ?3";
        with_all(database, sql, &wanted)?
    };
    let mut ranked = Vec::new();
    for name in candidates {
        let Some(summary) = package_summary(database, &name)?.filter(is_meant) else { continue };
        let rank = if wanted.is_empty() { 2 } else { words::rank_package(&name, &wanted) };
        ranked.push((rank, name, summary));
    }
    Ok(cut(ranked, question))
}

fn all_packages(database: &Connection) -> Result<BTreeSet<String>, IndexError> {
    let sql = "SELECT name FROM repository WHERE newest IS NOT NULL AND readable(name)";
    let mut statement = database.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Kinds whose plural is spelled like a word.
fn suggest(database: &Connection, text: &str) -> Result<Vec<String>, IndexError> {
    let text = text.trim().to_lowercase();
    similar(database, &text, |name| {
        let plural = name.split_once('.').map_or(name, |(plural, _)| plural);
        near(&text, plural).or_else(|| near(&text, name))
    })
}
