//! Under which licences others' work comes in.

use super::{packages, strings_of, text};

/// What we accept; each is needed by some crate. `deny.toml` repeats the list.
const ALLOWED: [&str; 7] =
    ["Apache-2.0", "BSD-3-Clause", "CDLA-Permissive-2.0", "ISC", "MIT", "Unicode-3.0", "Zlib"];

/// Whether an expression can be met with some of these licences: one side of an `OR`, both sides
/// of an `AND`. `/` is how `OR` was once written. None if it is not an expression.
fn satisfied(expression: &str, allowed: &[&str]) -> Option<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = spaced.split_whitespace().collect::<Vec<_>>();
    words.reverse();
    let answer = either(&mut words, allowed)?;
    words.is_empty().then_some(answer)
}

/// `both *( "OR" both )`; the words are taken from the end.
fn either(words: &mut Vec<&str>, allowed: &[&str]) -> Option<bool> {
    let mut answer = both(words, allowed)?;
    while words.pop_if(|word| *word == "OR").is_some() {
        answer |= both(words, allowed)?;
    }
    Some(answer)
}

/// `one *( "AND" one )`
fn both(words: &mut Vec<&str>, allowed: &[&str]) -> Option<bool> {
    let mut answer = one(words, allowed)?;
    while words.pop_if(|word| *word == "AND").is_some() {
        answer &= one(words, allowed)?;
    }
    Some(answer)
}

/// `"(" either ")"` or `licence [ "WITH" exception ]`. An exception makes another licence.
fn one(words: &mut Vec<&str>, allowed: &[&str]) -> Option<bool> {
    match words.pop()? {
        "(" => {
            let answer = either(words, allowed)?;
            words.pop_if(|word| *word == ")").map(|_| answer)
        }
        ")" | "AND" | "OR" | "WITH" => None,
        licence if words.pop_if(|word| *word == "WITH").is_some() => {
            let licence = format!("{licence} WITH {}", words.pop()?);
            Some(allowed.contains(&licence.as_str()))
        }
        licence => Some(allowed.contains(&licence)),
    }
}

#[test]
fn every_crate_comes_under_a_licence_we_accept() {
    for package in packages() {
        let (name, version) = (&package["name"], &package["version"]);
        let licence = package["license"].as_str().unwrap_or_default();
        let answer = satisfied(licence, &ALLOWED);
        assert_eq!(answer, Some(true), "{name} {version} has the licence `{licence}`");
    }
}

#[test]
fn every_accepted_licence_is_needed() {
    for licence in ALLOWED {
        let others: Vec<_> = ALLOWED.into_iter().filter(|other| *other != licence).collect();
        let needs = |package: &serde_json::Value| {
            satisfied(package["license"].as_str().unwrap_or_default(), &others) == Some(false)
        };
        assert!(packages().iter().any(needs), "no crate needs `{licence}`: take it off the list");
    }
}

#[test]
fn people_with_cargo_deny_see_the_same_licences() {
    assert_eq!(strings_of(&text("deny.toml"), "allow"), ALLOWED);
}

#[test]
fn expressions_mean_what_they_say() {
    let check = |expression, expected| {
        assert_eq!(satisfied(expression, &["MIT", "ISC"]), expected, "{expression}");
    };
    check("MIT", Some(true));
    check("GPL-3.0-only", Some(false));
    check("GPL-3.0-only OR MIT", Some(true));
    check("GPL-3.0-only/MIT", Some(true));
    check("GPL-3.0-only AND MIT", Some(false));
    check("MIT OR ISC AND GPL-3.0-only", Some(true));
    check("(MIT OR ISC) AND GPL-3.0-only", Some(false));
    check("ISC AND (GPL-3.0-only OR MIT)", Some(true));
    check("MIT WITH some-exception", Some(false));
    check("MIT WITH some-exception OR ISC", Some(true));
    for broken in ["", "MIT ISC", "MIT OR", "(MIT", "MIT)", "AND MIT", "MIT WITH"] {
        check(broken, None);
    }
}
