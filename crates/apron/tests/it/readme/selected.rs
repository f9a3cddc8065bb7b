//! Tests that SECURITY.md promises by name are there: a filter that selects nothing passes, too.

use super::repository;
use std::path::{Path, PathBuf};

/// The full names of the tests in a file, as `cargo test` filters them.
fn tests_in(text: &str, module: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
            continue;
        }
        let Some((before, rest)) = line.split_once("fn ") else { continue };
        let is_function = ["", "async ", "pub ", "pub(crate) ", "pub(super) "].contains(&before);
        let name = rest.split(['(', '<']).next().unwrap_or_default();
        // Scenarios are functions that a test calls, and are named in the page as such.
        if is_function && (is_test || module.starts_with("manager")) {
            names.push(format!("{module}::{name}"));
        }
        is_test = false;
    }
    names
}

fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs_err::read_dir(directory) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            walk(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push(path);
        }
    }
}

/// The tests of a room: those in its sources, those beside them, or all.
fn tests_of(room: &Path, place: &str) -> Vec<String> {
    let places: &[&str] = match place {
        "" => &["src", "tests/it"],
        "it" => &["tests/it"],
        _ => &["src"],
    };
    let mut names = Vec::new();
    for root in places.iter().map(|place| room.join(place)) {
        let mut files = Vec::new();
        walk(&root, &mut files);
        for file in files {
            let relative = file.strip_prefix(&root).unwrap().with_extension("");
            let parts = relative.iter().map(|part| part.to_str().unwrap());
            let parts: Vec<&str> = parts.filter(|part| *part != "mod").collect();
            names.extend(tests_in(&fs_err::read_to_string(&file).unwrap(), &parts.join("::")));
        }
    }
    names
}

/// What stands between backticks, on one line each.
fn spans(page: &str) -> Vec<String> {
    let text = page.split_whitespace().collect::<Vec<_>>().join(" ");
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// What a command selects: the room, which of its tests, and by which part of their names.
fn selection(span: &str) -> Option<(String, String, String)> {
    let words: Vec<&str> = span.strip_prefix("cargo test ")?.split(' ').collect();
    let after = |word: &str| {
        let at = words.iter().position(|one| *one == word)?;
        words.get(at + 1).map(|it| (*it).to_owned())
    };
    let package = after("-p")?;
    let room = package.strip_prefix("apron-").unwrap_or("apron").to_owned();
    let place = match (after("--test"), words.iter().any(|word| ["--lib", "--bin"].contains(word)))
    {
        (Some(test), _) => test,
        (None, true) => "src".to_owned(),
        (None, false) => String::new(),
    };
    let named = [after("-p"), after("--test"), after("--bin")];
    let is_filter = |word: &&&str| {
        !word.starts_with('-') && !named.iter().any(|one| one.as_deref() == Some(**word))
    };
    let filter = words.iter().find(is_filter).copied().unwrap_or_default();
    Some((room, place, filter.to_owned()))
}

/// A group of tests that is named by the number of a finding alone: `m4_`.
fn is_finding(span: &str) -> bool {
    let number =
        span.strip_suffix('_').and_then(|it| it.strip_prefix(|one: char| one.is_ascii_lowercase()));
    number.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What a page promises by tests that are not there.
fn unheld(page: &str) -> Vec<String> {
    let crates = repository().join("crates");
    let all: Vec<String> = fs_err::read_dir(&crates)
        .unwrap()
        .flat_map(|room| tests_of(&room.unwrap().path(), ""))
        .collect();
    let is_held = |span: &String| match selection(span) {
        Some((room, place, filter)) => {
            tests_of(&crates.join(room), &place).iter().any(|test| test.contains(&filter))
        }
        None if is_finding(span) => all.iter().any(|test| test.contains(&format!("::{span}"))),
        None => true,
    };
    spans(page).into_iter().filter(|span| !is_held(span)).collect()
}

#[test]
fn every_test_that_the_page_about_security_names_is_there() {
    let page = fs_err::read_to_string(repository().join("SECURITY.md")).unwrap();
    let commands = spans(&page).iter().filter(|span| selection(span).is_some()).count();
    assert!(commands > 10, "only {commands} commands are named");
    assert_eq!(unheld(&page), Vec::<String>::new());
}

#[test]
fn a_test_that_is_not_there_is_noticed() {
    let page = "`cargo test -p apron --bin apron zz_gone_`, `cargo test -p apron-plan c2_`, `z9_`, `h1_`, \
                `cargo test -p apron-nowhere`, `cargo test -p apron --test it readme::selected`";
    let expected =
        ["cargo test -p apron --bin apron zz_gone_", "z9_", "cargo test -p apron-nowhere"];
    assert_eq!(unheld(page), expected);
    let named = tests_in("    #[tokio::test]\n    async fn one() {\nfn two() {\n", "a::b");
    assert_eq!(named, ["a::b::one"]);
}
