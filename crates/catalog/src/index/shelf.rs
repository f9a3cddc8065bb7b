//! All packages as people browse them: a page of them, how many there are of which type and
//! category, and how large the catalog is.

use super::contents::READ;
use super::packages::package_summary;
use super::search::all_packages;
use super::{Index, IndexError, Question, Rights};
use crate::answer::PackageSummary;
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};

/// Which packages of the shelf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShelfQuestion {
    /// Only packages of this type.
    pub kind: Option<String>,
    /// Only packages of this category.
    pub category: Option<String>,
    /// Only packages that bring kinds of this group.
    pub group: Option<String>,
    /// Only packages with this keyword.
    pub keyword: Option<String>,
    /// How many packages come before the first.
    pub offset: usize,
    /// How many packages at most.
    pub limit: usize,
}

/// A part of all packages, with the size of the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shelf {
    /// Packages of this page, by repository.
    pub packages: Vec<PackageSummary>,
    /// How many packages fit the question.
    pub fitting: usize,
    /// How many packages there are.
    pub package_count: usize,
    /// How many versions they have.
    pub version_count: usize,
    /// How many kinds their newest versions bring.
    pub kind_count: usize,
    /// Types, each with its number of packages.
    pub types: Vec<(String, usize)>,
    /// Categories, the largest first.
    pub categories: Vec<(String, usize)>,
}

/// What decides whether a package fits.
struct ShelfRow {
    repository: String,
    kind: String,
    category: Option<String>,
}

impl Index {
    /// Packages as people browse them.
    pub fn shelf(&self, question: &ShelfQuestion, rights: &Rights) -> Result<Shelf, IndexError> {
        self.ask(rights, |database| read_shelf(database, question))
    }
}

fn read_shelf(database: &Connection, question: &ShelfQuestion) -> Result<Shelf, IndexError> {
    let mut rows = list_rows(database)?;
    let (package_count, narrowed) = (rows.len(), list_narrowed(database, question)?);
    rows.retain(|row| narrowed.as_ref().is_none_or(|fitting| fitting.contains(&row.repository)));
    let fits_kind = |row: &&ShelfRow| {
        question.kind.as_ref().is_none_or(|kind| row.kind.eq_ignore_ascii_case(kind))
    };
    let fits_category = |row: &&ShelfRow| {
        question.category.as_ref().is_none_or(|it| row.category.as_ref() == Some(it))
    };
    let fitting: Vec<&ShelfRow> = rows.iter().filter(fits_kind).filter(fits_category).collect();
    let mut packages = Vec::new();
    for row in fitting.iter().skip(question.offset).take(question.limit) {
        packages.extend(package_summary(database, &row.repository)?);
    }
    let kinds = rows.iter().filter(fits_category).map(|row| row.kind.clone());
    let categories = rows.iter().filter(fits_kind).filter_map(|row| row.category.clone());
    Ok(Shelf {
        packages,
        fitting: fitting.len(),
        package_count,
        version_count: count_versions(database)?,
        kind_count: count_kinds(database)?,
        types: count_values(kinds),
        categories: count_values(categories),
    })
}

/// Every package that may be read, by repository.
fn list_rows(database: &Connection) -> Result<Vec<ShelfRow>, IndexError> {
    let sql = "SELECT name, type, category FROM repository
               WHERE newest IS NOT NULL AND readable(name) ORDER BY name";
    let mut statement = database.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        let kind: Option<String> = row.get(1)?;
        let (repository, category) = (row.get(0)?, row.get(2)?);
        Ok(ShelfRow { repository, kind: kind.unwrap_or_default(), category })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Repositories of the group and with the keyword that are asked for; nothing if neither is.
fn list_narrowed(
    database: &Connection,
    question: &ShelfQuestion,
) -> Result<Option<BTreeSet<String>>, IndexError> {
    let ShelfQuestion { group, keyword, .. } = question;
    if group.is_none() && keyword.is_none() {
        return Ok(None);
    }
    let keyword = keyword.iter().map(|keyword| ("keyword".to_owned(), keyword.clone()));
    let question =
        Question { group: group.clone(), facets: keyword.collect(), ..Question::default() };
    let names = all_packages(database, &question, "", i64::MAX)?;
    Ok(Some(names.into_iter().collect()))
}

fn count_versions(database: &Connection) -> Result<usize, IndexError> {
    let sql = "SELECT coalesce(sum(versions), 0) FROM repository WHERE readable(name)";
    let count: i64 = database.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// A kind that several packages bring counts once.
fn count_kinds(database: &Connection) -> Result<usize, IndexError> {
    let sql = "SELECT count(DISTINCT provides.name) FROM repository
               JOIN package ON package.digest = repository.newest AND package.state = ?1
               JOIN provides ON provides.package = package.id
               WHERE readable(repository.name)";
    let count: i64 = database.prepare_cached(sql)?.query_row([READ], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// Values with their numbers, the most frequent first.
fn count_values(values: impl Iterator<Item = String>) -> Vec<(String, usize)> {
    let mut counts = BTreeMap::<String, usize>::new();
    for value in values.filter(|value| !value.is_empty()) {
        *counts.entry(value).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by(|(one, few), (other, many)| many.cmp(few).then_with(|| one.cmp(other)));
    counts
}
