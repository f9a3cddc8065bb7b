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

/// The words of a package with their ranks: the parts of its names, and, of all ranks, those with what it
/// says of itself.
pub(crate) fn of_package(repository: &str, package: &Package) -> BTreeSet<(u8, String)> {
    let texts = [
        Some(package.kind.as_str()),
        package.description.as_deref(),
        package.category.as_deref(),
        package.readme.as_deref(),
    ];
    let names: BTreeSet<String> = split(repository).chain(split(&package.name)).collect();
    let mut words = names.clone();
    words.extend(package.keywords.iter().flat_map(|word| split(word)));
    for text in texts.into_iter().flatten() {
        words.extend(split(text).take(WORDS_MAX));
    }
    let names = names.into_iter().map(|word| (NAME, word));
    names.chain(words.into_iter().map(|word| (WORD, word))).collect()
}

/// How well a word fits that is the whole name of a kind.
pub(crate) const NAME: u8 = 0;
/// How well one fits that is the beginning of a name.
pub(crate) const PREFIX: u8 = 1;
/// How well any other fits.
pub(crate) const WORD: u8 = 2;

/// The words of a kind: its whole names, and what those and its group are made of.
pub(crate) fn of_definition(definition: &Definition) -> BTreeSet<(String, u8)> {
    let whole = names_of(definition).map(|name| (name, NAME));
    let parts = split_case(&definition.kind).into_iter().chain(split(&definition.group));
    let words = whole.chain(parts.map(|word| (word, WORD)));
    words.filter(|(word, _)| word.len() <= WORD_SIZE_MAX).collect()
}

/// Plural, singular, kind and short names in lower case.
fn names_of(definition: &Definition) -> impl Iterator<Item = String> {
    let Definition { kind, plural, singular, short_names, .. } = definition;
    [kind, plural, singular].into_iter().chain(short_names).map(|name| name.to_lowercase())
}

/// The words that a name in camel case is made of.
fn split_case(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut was_lower = false;
    for letter in name.chars() {
        let begins = letter.is_uppercase() && was_lower;
        was_lower = !letter.is_uppercase();
        match words.last_mut().filter(|_| !begins) {
            Some(word) => word.extend(letter.to_lowercase()),
            None => words.push(letter.to_lowercase().collect()),
        }
    }
    words
}

/// How well a kind answers a query, if it has all of its words.
pub(crate) fn rank_definition(definition: &Definition, query: &[String]) -> Option<u8> {
    let words = of_definition(definition);
    let fits = |wanted: &String| words.iter().any(|(word, _)| word.starts_with(wanted.as_str()));
    if !query.iter().all(fits) {
        return None;
    }
    let names: Vec<String> = names_of(definition).collect();
    let is_name = query.iter().any(|word| names.contains(word));
    let [only] = query else { return Some(if is_name { PREFIX } else { WORD }) };
    let begins = names.iter().any(|name| name.starts_with(only.as_str()));
    Some(match () {
        () if is_name => NAME,
        () if begins => PREFIX,
        () => WORD,
    })
}

/// How well a repository answers a query whose words it has.
pub(crate) fn rank_package(repository: &str, query: &[String]) -> u8 {
    let wanted = query.join("-");
    let last = repository.rsplit('/').next().unwrap_or(repository);
    let bare = last.split_once('-').map_or(last, |(_, rest)| rest);
    match () {
        () if last == wanted || bare == wanted => NAME,
        () if last.starts_with(&wanted) || bare.starts_with(&wanted) => PREFIX,
        () => WORD,
    }
}
