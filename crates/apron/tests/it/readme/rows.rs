//! The page on how apron reads its specifications has a line for each sentence where something was to
//! be said, and what a line names is there.

use super::repository;
use std::path::{Path, PathBuf};

/// The sentences, by the text they are of.
const ROWS: [&str; 50] = [
    "X13", "X20", "X32", "X35", "X37", "X40", "X42", "X43", "X45", "F09", "F10", "F12", "F13",
    "F15", "F16", "F17", "F24", "F29", "F31", "F33", "F37", "F39", "F40", "G08", "G30", "G44",
    "G55", "G64", "D01", "D02", "D13", "D20", "D26", "D28", "D29", "D32", "D38", "D39", "D45",
    "D61", "D65", "D67", "D71", "D73", "D75", "D81", "D83", "V08", "V11", "V14",
];

fn sources(directory: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs_err::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push((path.clone(), fs_err::read_to_string(&path).unwrap()));
        }
    }
}

/// Whether there is a test `module::…::name`: a function in a file of that path, or in a module of it.
fn is_there(all: &[(PathBuf, String)], test: &str) -> bool {
    let (module, name) = test.rsplit_once("::").unwrap();
    let last = module.rsplit("::").next().unwrap();
    let file = format!("{}.rs", module.replace("::", "/"));
    let inside = format!("{}/mod.rs", module.replace("::", "/"));
    all.iter().any(|(path, text)| {
        let is_place = path.ends_with(&file) || path.ends_with(&inside);
        let is_module = text.contains(&format!("mod {last} {{"));
        (is_place || is_module) && text.contains(&format!("fn {name}("))
    })
}

#[test]
fn every_sentence_has_its_test_or_its_reason() {
    let page = fs_err::read_to_string(repository().join("docs/specifications.md")).unwrap();
    let mut all = Vec::new();
    sources(&repository().join("crates"), &mut all);
    for row in ROWS {
        let start = format!("| {row} | ");
        let line = page.lines().find(|line| line.starts_with(&start));
        let line = line.unwrap_or_else(|| panic!("the page has no line for {row}"));
        let shown = line.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let tests: Vec<&str> = shown.split('`').filter(|it| it.contains("::")).collect();
        for test in &tests {
            assert!(is_there(&all, test), "{row}: there is no test {test}");
        }
        // Words in italics are those that a paragraph of the page begins with.
        let reasons: Vec<&str> = shown.split('*').skip(1).step_by(2).collect();
        for reason in &reasons {
            assert!(
                page.contains(&format!("**{reason}")),
                "{row}: the page does not say {reason:?}"
            );
        }
        assert!(!tests.is_empty() || !reasons.is_empty(), "{row} has neither a test nor a reason");
    }
}
