//! Looking for packages and kinds by words: the very name first, then what begins with it, then
//! what has all words. Words are looked for by their beginnings.
//!
//! Names are found first and read last: candidates are cheap, are put in order by how well their names
//! fit, and only those on the page are read. What is shown of a kind is what counts: a candidate that
//! fits by a word that only other users may read is put back to where it belongs, or left out.

use super::contents::{path_of, path_of_kind};
use super::fields::find_fields;
use super::kinds::{VISIBLE, find_name, similar, summary};
use super::packages::package_summary;
use super::{Index, IndexError, Question, Rights};
use crate::answer::{Found, KindSummary, PackageSummary, Page};
use crate::grammar::KindReference;
use crate::words::{self, NAME, PREFIX, WORD};
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};
use std::collections::BTreeSet;
use xpkg::lint::edits_between;

/// Names that are ranked for one answer.
const CANDIDATES_MAX: i64 = 5000;
/// Rows of words that are looked through for one answer, of what may be read.
const ROWS_MAX: i64 = 10_000;
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

    /// Packages, kinds and fields by words.
    pub fn search(&self, text: &str, rights: &Rights) -> Result<Found, IndexError> {
        let question = Question { limit: FOUND_MAX, ..Question::about(text) };
        self.ask(rights, |database| {
            let packages = find_packages(database, &question)?.items;
            let crds = find_kinds(database, &question)?.items;
            let fields = find_fields(database, text, FOUND_MAX)?;
            let is_nothing = packages.is_empty() && crds.is_empty() && fields.is_empty();
            let suggestions = if is_nothing { suggest(database, text)? } else { Vec::new() };
            Ok(Found { packages, crds, fields, suggestions })
        })
    }
}

/// Where a page ended: the rank and name of its last.
fn cursor(question: &Question) -> Option<(u8, String)> {
    let (rank, name) = question.cursor.as_deref()?.split_once(':')?;
    Some((rank.parse().ok()?, name.to_owned()))
}

/// A page while it is filled.
struct Filling<T> {
    items: Vec<(u8, String, T)>,
    length: usize,
}

impl<T> Filling<T> {
    fn new(question: &Question) -> Self {
        Self { items: Vec::new(), length: question.length() }
    }

    /// Whether there is one more than fits, so that it is known that another page follows.
    fn is_full(&self) -> bool {
        self.items.len() > self.length
    }

    fn into_page(mut self) -> Page<T> {
        let has_more = self.is_full();
        self.items.truncate(self.length);
        let last = self.items.last().filter(|_| has_more);
        let next = last.map(|(rank, name, _)| format!("{rank}:{name}"));
        Page { items: self.items.into_iter().map(|(_, _, item)| item).collect(), next }
    }
}

fn find_kinds(database: &Connection, question: &Question) -> Result<Page<KindSummary>, IndexError> {
    let wanted = words::query(&question.words);
    let (mut queue, after) = (BTreeSet::new(), cursor(question));
    if wanted.is_empty() {
        queue.extend(all_kinds(database, question)?.into_iter().map(|name| (WORD, name)));
    } else {
        queue = kinds_with(database, &wanted)?;
    }
    let is_meant = |name: &str| {
        let group = name.split_once('.').map_or("", |(_, group)| group);
        question.group.as_ref().is_none_or(|wanted| wanted == group)
    };
    let mut page = Filling::new(question);
    while let Some((rank, name)) = queue.pop_first() {
        let is_behind =
            |rank| after.as_ref().is_some_and(|last| (rank, &name) <= (last.0, &last.1));
        if is_behind(WORD) || !is_meant(&name) {
            continue;
        }
        let Some(summary) = summary(database, &name)? else { continue };
        let found = words::rank_definition(&summary.definition, &wanted);
        match found.map(|found| if wanted.is_empty() { WORD } else { found }) {
            Some(found) if found > rank => {
                queue.insert((found, name));
            }
            Some(found) if !is_behind(found) => page.items.push((found, name, summary)),
            _ => {}
        }
        if page.is_full() {
            break;
        }
    }
    Ok(page.into_page())
}

/// Names of all kinds behind the last page, one more than a page has.
fn all_kinds(database: &Connection, question: &Question) -> Result<Vec<String>, IndexError> {
    let last = cursor(question).map(|(_, name)| name).unwrap_or_default();
    let wanted = if question.group.is_some() {
        "SELECT name FROM kind AS kind_word WHERE family = ?2 AND name > ?1"
    } else {
        "SELECT name FROM kind AS kind_word WHERE name > ?1 AND ?2 IS NULL"
    };
    let sql = format!("{wanted} AND {VISIBLE} ORDER BY name LIMIT ?3");
    let limit = i64::try_from(question.length() + 1).unwrap_or(i64::MAX);
    let mut statement = database.prepare_cached(&sql)?;
    let rows = statement.query_map(params![last, question.group, limit], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Names of kinds that have all words, with the best rank that their names allow.
fn kinds_with(
    database: &Connection,
    wanted: &[String],
) -> Result<BTreeSet<(u8, String)>, IndexError> {
    let count = "SELECT count(*) FROM (SELECT 1 FROM kind_word WHERE word >= ?1 AND word < ?2
                 LIMIT ?3)";
    let (rarest, others) = rarest_first(database, count, wanted)?;
    let has_other = "AND EXISTS (SELECT 1 FROM kind_word AS other
                     WHERE other.name = kind_word.name AND other.word >= ? AND other.word < ?)";
    let others_sql = vec![has_other; others.len()].join(" ");
    // The best come first, so that they are there if there are too many.
    let exact = (NAME, "word = ? AND rank = 0 AND ? IS NOT NULL");
    let prefix = (PREFIX, "word > ? AND word < ? AND rank = 0");
    let word = (WORD, "word >= ? AND word < ? AND rank > 0");
    let mut found = BTreeSet::new();
    let mut names = BTreeSet::new();
    for (rank, range) in [exact, prefix, word] {
        let sql = format!(
            "SELECT DISTINCT kind_word.name FROM kind_word
             JOIN repository ON repository.id = kind_word.repository
             WHERE {range} AND readable(repository.name) {others_sql} LIMIT ?"
        );
        let rank = if wanted.len() == 1 { rank } else { PREFIX };
        let left = CANDIDATES_MAX - i64::try_from(names.len()).unwrap_or(CANDIDATES_MAX);
        for name in with_words(database, &sql, &rarest, &others, left)? {
            if names.insert(name.clone()) {
                found.insert((rank, name));
            }
        }
    }
    Ok(found)
}

/// The word that fewest have, and the others: what has the rarest is looked through for the rest.
fn rarest_first(
    database: &Connection,
    count: &str,
    wanted: &[String],
) -> Result<(String, Vec<String>), IndexError> {
    let mut statement = database.prepare_cached(count)?;
    let mut counted = Vec::new();
    for word in wanted {
        let limit = if wanted.len() == 1 { 0 } else { CANDIDATES_MAX };
        let found: i64 =
            statement.query_row(params![word, end_of(word), limit], |row| row.get(0))?;
        counted.push((found, word.clone()));
    }
    counted.sort();
    let mut words = counted.into_iter().map(|(_, word)| word);
    let rarest = words.next().unwrap_or_default();
    Ok((rarest, words.collect()))
}

/// Behind everything that begins with a word.
fn end_of(word: &str) -> String {
    format!("{word}{}", char::MAX)
}

/// What a statement finds that takes the bounds of a word, those of others, and a limit.
fn with_words(
    database: &Connection,
    sql: &str,
    rarest: &str,
    others: &[String],
    limit: i64,
) -> Result<Vec<String>, IndexError> {
    let words = [rarest].into_iter().chain(others.iter().map(String::as_str));
    let bounds = words.flat_map(|word| [word.to_owned(), end_of(word)]).map(Value::Text);
    let values = params_from_iter(bounds.chain([Value::Integer(limit)]));
    let mut statement = database.prepare_cached(sql)?;
    let rows = statement.query_map(values, |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn find_packages(
    database: &Connection,
    question: &Question,
) -> Result<Page<PackageSummary>, IndexError> {
    let wanted = words::query(&question.words);
    let after = cursor(question);
    let names = if wanted.is_empty() {
        let last = after.as_ref().map(|(_, name)| name.as_str()).unwrap_or_default();
        let length = i64::try_from(question.length() + 1).unwrap_or(i64::MAX);
        all_packages(database, question, last, length)?
    } else {
        packages_with(database, question, &wanted)?
    };
    let rank =
        |name: &str| if wanted.is_empty() { WORD } else { words::rank_package(name, &wanted) };
    let ranked: BTreeSet<(u8, String)> =
        names.into_iter().map(|name| (rank(&name), name)).collect();
    let mut page = Filling::new(question);
    for (rank, name) in ranked {
        if after.as_ref().is_some_and(|last| (rank, &name) <= (last.0, &last.1)) {
            continue;
        }
        if let Some(summary) = package_summary(database, &name)? {
            page.items.push((rank, name, summary));
        }
        if page.is_full() {
            break;
        }
    }
    Ok(page.into_page())
}

/// Repositories that have all facets of a question, behind the last page, by name.
pub(super) fn all_packages(
    database: &Connection,
    question: &Question,
    last: &str,
    length: i64,
) -> Result<Vec<String>, IndexError> {
    let (facets, values) = facet_conditions(database, question, "repository.id")?;
    let sql = format!(
        "SELECT name FROM repository WHERE newest IS NOT NULL {facets} AND name > ?
         AND readable(name) ORDER BY name LIMIT ?"
    );
    let values = values.into_iter().chain([Value::Text(last.to_owned()), Value::Integer(length)]);
    let mut statement = database.prepare_cached(&sql)?;
    let rows = statement.query_map(params_from_iter(values), |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Repositories that have all words and facets of a question; those that have the rarest in their names
/// come first, so that they are there if there are too many.
pub(super) fn packages_with(
    database: &Connection,
    question: &Question,
    wanted: &[String],
) -> Result<Vec<String>, IndexError> {
    let count = format!(
        "SELECT count(*) FROM (SELECT 1 FROM word WHERE rank = {WORD} AND word >= ?1 AND word < ?2
         LIMIT ?3)"
    );
    let (rarest, others) = rarest_first(database, &count, wanted)?;
    let has_other = "AND EXISTS (SELECT 1 FROM word AS other
                     WHERE other.repository = found.id AND other.word >= ? AND other.word < ?)";
    let others_sql = vec![has_other; others.len()].join(" ");
    let (facets, values) = facet_conditions(database, question, "found.id")?;
    let words = [&rarest].into_iter().chain(&others);
    let bounds = words.flat_map(|word| [word.clone(), end_of(word)]).map(Value::Text);
    let values: Vec<Value> = bounds.chain(values).chain([Value::Integer(CANDIDATES_MAX)]).collect();
    let mut names = BTreeSet::<String>::new();
    for rank in [NAME, WORD] {
        let sql = format!(
            "SELECT DISTINCT found.name FROM
                 (SELECT repository.id, repository.name FROM word
                  JOIN repository ON repository.id = word.repository
                  WHERE rank = {rank} AND word >= ?1 AND word < ?2
                  AND readable(repository.name) LIMIT {ROWS_MAX}) AS found
             WHERE TRUE {others_sql} {facets} LIMIT ?"
        );
        let mut statement = database.prepare_cached(&sql)?;
        for name in statement.query_map(params_from_iter(&values), |row| row.get(0))? {
            names.insert(name?);
        }
    }
    Ok(names.into_iter().collect())
}

/// Conditions on a repository for each facet and need that is asked for, and their values.
fn facet_conditions(
    database: &Connection,
    question: &Question,
    id: &str,
) -> Result<(String, Vec<Value>), IndexError> {
    let kind = question.kind.iter().map(|value| ("type", value));
    let group = question.group.iter().map(|value| ("group", value));
    let facets = question.facets.iter().map(|(facet, value)| (facet.as_str(), value));
    let (mut sql, mut values) = (String::new(), Vec::new());
    for (facet, value) in kind.chain(group).chain(facets) {
        sql.extend([
            "AND EXISTS (SELECT 1 FROM facet WHERE facet.repository = ",
            id,
            " AND facet = ? AND value = ? COLLATE NOCASE) ",
        ]);
        values.extend([Value::Text(facet.to_owned()), Value::Text(value.clone())]);
    }
    if let Some(required) = &question.requires {
        let paths = paths_of_need(database, required)?;
        sql.extend([
            "AND EXISTS (SELECT 1 FROM repository AS home JOIN package ON package.digest = home.newest
             JOIN needs ON needs.package = package.id WHERE home.id = ",
            id,
            " AND needs.path IN (SELECT value FROM json_each(?))) ",
        ]);
        values.push(Value::Text(serde_json::to_string(&paths)?));
    }
    Ok((sql, values))
}

/// Where dependencies on a repository or on a kind are found. A kind may be needed by each of its names,
/// or with all others of its group.
fn paths_of_need(database: &Connection, required: &str) -> Result<Vec<String>, IndexError> {
    let mut paths = vec![path_of(required)];
    let Ok(kind) = KindReference::parse(required) else { return Ok(paths) };
    let mut names = vec![kind.bare(), format!("*.{}", kind.group)];
    if let Some(name) = find_name(database, &kind)? {
        let definition = summary(database, &name)?.map(|found| found.definition);
        let others = definition.iter().flat_map(|it| [&it.singular, &it.kind]);
        names.extend(others.map(|it| format!("{}.{}", it.to_lowercase(), kind.group)));
        names.push(name);
    }
    paths.extend(names.iter().map(|name| path_of_kind(name)));
    Ok(paths)
}

/// Kinds whose plural is spelled like a word.
fn suggest(database: &Connection, text: &str) -> Result<Vec<String>, IndexError> {
    let text = text.trim().to_lowercase();
    similar(database, &text, |name| {
        let plural = name.split_once('.').map_or(name, |(plural, _)| plural);
        edits_between(&text, plural).or_else(|| edits_between(&text, name))
    })
}
