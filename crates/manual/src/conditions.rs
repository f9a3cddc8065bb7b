//! Conditions, reasons and events, one by one: rows of the tables on the manual's page about them.

use crate::text::{plain_text, row_cells};

const PAGE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/conditions.md"));

/// A row: what it is about, and what each column says of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The name, as objects have it.
    pub name: String,
    /// What it is the name of: `condition`, `reason` or `event`.
    pub what: String,
    /// What is said of it: a column's heading and its text.
    pub told: Vec<(String, String)>,
}

/// Everything that has this name, whatever the case of its letters. A few names are both a reason's and an
/// event's.
pub fn explain_name(name: &str) -> Vec<Explanation> {
    let mut all = all_explanations();
    all.retain(|one| one.name.eq_ignore_ascii_case(name));
    all
}

/// Names that have these letters in them, whatever their case.
pub fn similar_names(letters: &str) -> Vec<String> {
    let letters = letters.to_ascii_lowercase();
    let names = all_explanations().into_iter().map(|one| one.name);
    names.filter(|name| name.to_ascii_lowercase().contains(&letters)).collect()
}

/// Every row of the page.
pub fn all_explanations() -> Vec<Explanation> {
    let (mut all, mut columns) = (Vec::new(), Vec::new());
    for line in PAGE.lines() {
        let Some(cells) = row_cells(line) else {
            columns.clear();
            continue;
        };
        let cells: Vec<String> = cells.iter().map(|cell| plain_text(cell)).collect();
        if columns.is_empty() {
            columns = cells;
        } else if !is_rule(&cells) {
            all.extend(read_row(&columns, cells));
        }
    }
    all
}

/// The line below a table's heading.
fn is_rule(cells: &[String]) -> bool {
    cells.iter().all(|cell| !cell.is_empty() && cell.bytes().all(|byte| byte == b'-'))
}

fn read_row(columns: &[String], cells: Vec<String>) -> Option<Explanation> {
    let mut cells = cells.into_iter();
    let name = cells.next()?.trim_matches('`').to_owned();
    let told = columns.iter().skip(1).cloned().zip(cells).collect();
    Some(Explanation { name, what: columns.first()?.clone(), told })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_explained_with_its_cause_and_what_to_do() {
        let found = explain_name("awaitingactivation");
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].name.as_str(), found[0].what.as_str()),
            ("AwaitingActivation", "reason")
        );
        let columns: Vec<&str> = found[0].told.iter().map(|(column, _)| column.as_str()).collect();
        assert_eq!(columns, ["condition", "cause", "what to do"]);
        assert!(found[0].told[1].1.starts_with("nothing uses the provider yet"));
    }

    #[test]
    fn every_row_has_a_name_and_something_to_say() {
        let all = all_explanations();
        for what in ["condition", "reason", "event"] {
            assert!(all.iter().any(|one| one.what == what), "{what}");
        }
        for one in &all {
            assert!(one.name.bytes().all(|byte| byte.is_ascii_alphabetic()), "{one:?}");
            assert!(
                one.told.len() >= 2 && one.told.iter().all(|(_, text)| !text.is_empty()),
                "{one:?}"
            );
        }
    }

    #[test]
    fn a_name_that_is_none_leads_to_those_that_are_like_it() {
        assert_eq!(explain_name("Activation"), []);
        assert_eq!(similar_names("activation"), ["AwaitingActivation"]);
    }
}
