//! What packages have in common, and how many have it.

use super::search::{all_packages, packages_with};
use super::{Index, IndexError, Question, Rights};
use crate::answer::{Facet, FacetValue};
use crate::words;
use rusqlite::Connection;

/// Values of one facet that are told, those of most packages first.
const VALUES_MAX: usize = 50;
/// Packages that are counted.
const COUNTED_MAX: i64 = 100_000;

impl Index {
    /// The facets of all packages that a question finds, by name.
    pub fn facets(&self, question: &Question, rights: &Rights) -> Result<Vec<Facet>, IndexError> {
        self.ask(rights, |database| {
            let wanted = words::query(&question.words);
            let names = if wanted.is_empty() {
                all_packages(database, question, "", COUNTED_MAX)?
            } else {
                packages_with(database, question, &wanted)?
            };
            count_facets(database, &names)
        })
    }
}

fn count_facets(database: &Connection, names: &[String]) -> Result<Vec<Facet>, IndexError> {
    let sql = "SELECT facet, facet.value, count(*) FROM json_each(?1) AS wanted
               JOIN repository ON repository.name = wanted.value
               JOIN facet ON facet.repository = repository.id
               GROUP BY facet, facet.value ORDER BY facet, count(*) DESC, facet.value";
    let mut statement = database.prepare_cached(sql)?;
    let mut rows = statement.query([serde_json::to_string(names)?])?;
    let mut facets: Vec<Facet> = Vec::new();
    while let Some(row) = rows.next()? {
        let (name, value, count): (String, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if facets.last().is_none_or(|last| last.name != name) {
            facets.push(Facet { name, values: Vec::new() });
        }
        let packages = usize::try_from(count).unwrap_or_default();
        if let Some(last) = facets.last_mut().filter(|last| last.values.len() < VALUES_MAX) {
            last.values.push(FacetValue { value, packages });
        }
    }
    Ok(facets)
}
