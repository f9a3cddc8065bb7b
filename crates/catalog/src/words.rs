//! The words by which packages and kinds are found.

use crate::record::{Definition, Package};
use std::collections::BTreeSet;

/// The longest word that is kept.
const WORD_SIZE_MAX: usize = 64;
/// The most words of one text: a text that repeats a dictionary is about nothing.
const WORDS_MAX: usize = 400;

/// The words of a text, in lower case.
pub(crate) fn split(text: &str) -> impl Iterator<Item = String> + '_ {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty() && word.len() <= WORD_SIZE_MAX);
    words.map(str::to_lowercase)
}

/// The words of a search: words that all have to be there.
pub(crate) fn query(text: &str) -> Vec<String> {
    let mut words: Vec<String> = split(text).take(8).collect();
    words.dedup();
    words
}

/// The words of a package: the parts of its repository's name, and what it says of itself.
pub(crate) fn of_package(repository: &str, package: &Package) -> BTreeSet<String> {
    let texts = [
        Some(package.name.as_str()),
        Some(package.kind.as_str()),
        package.description.as_deref(),
        package.category.as_deref(),
        package.readme.as_deref(),
    ];
    let mut words: BTreeSet<String> = split(repository).collect();
    words.extend(package.keywords.iter().flat_map(|word| split(word)));
    for text in texts.into_iter().flatten() {
        words.extend(split(text).take(WORDS_MAX));
    }
    words
}

/// The words of a kind: its names, and the parts of its group.
pub(crate) fn of_definition(definition: &Definition) -> BTreeSet<String> {
    let Definition { group, kind, plural, singular, short_names, .. } = definition;
    let names = [kind, plural, singular].into_iter().chain(short_names);
    let mut words: BTreeSet<String> = names.flat_map(|name| split(name)).collect();
    words.extend(split(group));
    words
}

/// How well a kind answers a query: 0 is its very name, 1 begins with it, 2 has all words.
pub(crate) fn rank_definition(definition: &Definition, query: &[String]) -> Option<u8> {
    let words = of_definition(definition);
    let fits = |wanted: &String| words.iter().any(|word| word.starts_with(wanted.as_str()));
    if !query.iter().all(fits) {
        return None;
    }
    let [only] = query else { return Some(2) };
    let Definition { kind, plural, singular, short_names, .. } = definition;
    let mut names = [kind, plural, singular].into_iter().chain(short_names);
    if names.clone().any(|name| name.to_lowercase() == *only) {
        return Some(0);
    }
    let begins = names.any(|name| name.to_lowercase().starts_with(only.as_str()));
    Some(if begins { 1 } else { 2 })
}

/// How well a repository answers a query whose words it has.
pub(crate) fn rank_package(repository: &str, query: &[String]) -> u8 {
    let wanted = query.join("-");
    let last = repository.rsplit('/').next().unwrap_or(repository);
    let bare = last.split_once('-').map_or(last, |(_, rest)| rest);
    match () {
        () if last == wanted || bare == wanted => 0,
        () if last.starts_with(&wanted) || bare.starts_with(&wanted) => 1,
        () => 2,
    }
}
