//! Versions as Crossplane reads them: semantic versions, loosely written.
//!
//! The rules are those of Masterminds/semver v3, because every package in the world was tagged
//! with them in mind: a leading `v` is optional, missing parts are zero, leading zeros of the
//! three numbers are forgiven, and build metadata never decides an order. Leading zeros inside
//! a pre-release are *not* forgiven.
//!
//! A [`Version`] keeps the text it came from, because a tag is fetched by its exact spelling:
//! `v1.2.3` and `1.2.3` are equal versions and different tags. Equality and order here are those
//! of precedence; compare [`Version::original`] when the spelling matters.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

/// A version, with the text it was read from.
#[derive(Clone, Debug)]
pub struct Version {
    major: u64,
    minor: u64,
    patch: u64,
    pre: String,
    metadata: String,
    original: String,
}

/// Why a text is not a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// The text does not have the shape of a version.
    #[error("not a semantic version")]
    Shape,
    /// One of the three numbers does not fit 64 bits.
    #[error("a version number is larger than 18446744073709551615")]
    TooLarge,
    /// A numeric pre-release identifier starts with a zero.
    #[error("a numeric pre-release identifier starts with 0")]
    LeadingZero,
}

impl Version {
    /// Reads a version; missing parts are zero.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        let spelling = Spelling::prefix(text, |byte| byte.is_ascii_digit());
        let spelling = spelling.filter(|found| found.length == text.len());
        let Some(found) = spelling else {
            return Err(VersionError::Shape);
        };
        if found.pre.split('.').any(has_leading_zero) {
            return Err(VersionError::LeadingZero);
        }
        Ok(Self {
            major: number(found.major)?,
            minor: number(found.minor)?,
            patch: number(found.patch)?,
            pre: found.pre.to_owned(),
            metadata: found.metadata.to_owned(),
            original: text.to_owned(),
        })
    }

    /// The first number.
    pub fn major(&self) -> u64 {
        self.major
    }

    /// The second number.
    pub fn minor(&self) -> u64 {
        self.minor
    }

    /// The third number.
    pub fn patch(&self) -> u64 {
        self.patch
    }

    /// The pre-release, without its dash; empty for a release.
    pub fn prerelease(&self) -> &str {
        &self.pre
    }

    /// The build metadata, without its plus sign; empty when there is none.
    pub fn metadata(&self) -> &str {
        &self.metadata
    }

    /// Whether this is a pre-release.
    pub fn is_prerelease(&self) -> bool {
        !self.pre.is_empty()
    }

    /// The text this version was read from, which is also the tag to fetch.
    pub fn original(&self) -> &str {
        &self.original
    }

    /// Whether a tag spelled like this may be chosen when a dependency is first installed.
    ///
    /// Only complete versions may: `v1` and `1.2` are moving tags, and `01.2.3` is not how the
    /// version is written. A leading `v` does not matter.
    pub fn is_installable(&self) -> bool {
        let bare = self.original.strip_prefix('v').unwrap_or(&self.original);
        self.to_string() == bare
    }

    /// Precedence of the pre-release parts alone; an empty part sorts before every other.
    pub(crate) fn compare_prerelease(&self, other: &Self) -> Ordering {
        let mut ours = self.pre.split('.');
        let mut theirs = other.pre.split('.');
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => return Ordering::Equal,
                (None, Some(_)) => return Ordering::Less,
                (Some(_), None) => return Ordering::Greater,
                (Some(a), Some(b)) if a != b => return compare_identifier(a, b),
                (Some(_), Some(_)) => {}
            }
        }
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let ours = (self.major, self.minor, self.patch);
        let theirs = (other.major, other.minor, other.patch);
        ours.cmp(&theirs).then_with(|| match (self.is_prerelease(), other.is_prerelease()) {
            (false, false) => Ordering::Equal,
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (true, true) => self.compare_prerelease(other),
        })
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Version {}

// Agrees with `Eq`: two versions of equal precedence have the same numbers and pre-release.
impl Hash for Version {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.major, self.minor, self.patch, &self.pre).hash(state);
    }
}

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        Self::parse(text)
    }
}

/// Writes the version in full, without a leading `v`.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.pre.is_empty() {
            write!(f, "-{}", self.pre)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

/// How a version is spelled, before its parts are given a meaning.
///
/// Versions and constraints share this grammar; constraints merely allow more characters in the
/// three leading parts (`x`, `X`, `*` and, by an accident worth keeping, `|`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spelling<'a> {
    /// First part, never empty.
    pub(crate) major: &'a str,
    /// Second part without its dot; empty when missing.
    pub(crate) minor: &'a str,
    /// Third part without its dot; empty when missing.
    pub(crate) patch: &'a str,
    /// Pre-release without its dash; empty when missing.
    pub(crate) pre: &'a str,
    /// Metadata without its plus sign; empty when missing.
    pub(crate) metadata: &'a str,
    /// Bytes taken from the start of the text.
    pub(crate) length: usize,
}

impl<'a> Spelling<'a> {
    /// The longest version spelled at the start of `text`, with `core` deciding which characters
    /// the three leading parts may have.
    pub(crate) fn prefix(text: &'a str, core: impl Fn(u8) -> bool) -> Option<Self> {
        let bare = text.strip_prefix('v').unwrap_or(text);
        let (major, rest) = take(bare, &core);
        if major.is_empty() {
            return None;
        }
        let (minor, rest) = after('.', rest, |rest| take(rest, &core));
        // A version without a second part has no third: the text ends or goes on with `-`, `+`.
        let (patch, rest) = after('.', rest, |rest| take(rest, &core));
        let (pre, rest) = after('-', rest, take_identifiers);
        let (metadata, rest) = after('+', rest, take_identifiers);
        Some(Self { major, minor, patch, pre, metadata, length: text.len() - rest.len() })
    }
}

/// The part behind `mark`; nothing is taken when the mark or what it announces is missing.
fn after(mark: char, text: &str, part: impl Fn(&str) -> (&str, &str)) -> (&str, &str) {
    match text.strip_prefix(mark).map(part) {
        Some((found, rest)) if !found.is_empty() => (found, rest),
        _ => ("", text),
    }
}

/// Splits off the leading bytes that `wanted` accepts; all of them are ASCII.
fn take(text: &str, wanted: impl Fn(u8) -> bool) -> (&str, &str) {
    let end = text.bytes().position(|byte| !wanted(byte)).unwrap_or(text.len());
    text.split_at(end)
}

/// Splits off identifiers separated by single dots.
fn take_identifiers(text: &str) -> (&str, &str) {
    let mut end = take(text, is_identifier).0.len();
    while end > 0 {
        let (next, _) = after('.', &text[end..], |rest| take(rest, is_identifier));
        if next.is_empty() {
            break;
        }
        end += 1 + next.len();
    }
    text.split_at(end)
}

fn is_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

fn has_leading_zero(identifier: &str) -> bool {
    identifier.len() > 1
        && identifier.starts_with('0')
        && identifier.bytes().all(|byte| byte.is_ascii_digit())
}

fn number(part: &str) -> Result<u64, VersionError> {
    if part.is_empty() { Ok(0) } else { part.parse().map_err(|_| VersionError::TooLarge) }
}

/// Order of two different identifiers: numbers before words, numbers by value, words by bytes.
///
/// A number past 64 bits counts as a word, as in the original.
fn compare_identifier(a: &str, b: &str) -> Ordering {
    match (a.parse::<u64>(), b.parse::<u64>()) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => a.cmp(b),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Upstream's behaviour, as it was observed.
    pub(crate) fn vectors(name: &str) -> serde_json::Value {
        let text = match name {
            "names.json" => include_str!("../testdata/upstream/names.json"),
            "references.json" => include_str!("../testdata/upstream/references.json"),
            "semver.json" => include_str!("../testdata/upstream/semver.json"),
            other => panic!("there are no vectors called {other}"),
        };
        serde_json::from_str(text).unwrap()
    }

    fn strings(value: &serde_json::Value) -> Vec<&str> {
        value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
    }

    #[test]
    fn every_upstream_version_is_read_alike() {
        let vectors = vectors("semver.json");
        for row in vectors["parse"].as_array().unwrap() {
            let version = Version::parse(row["input"].as_str().unwrap());
            assert_eq!(version.is_ok(), row["ok"], "{row}");
            let installable = version.as_ref().is_ok_and(Version::is_installable);
            assert_eq!(installable, row["installable"], "{row}");
            if let Ok(version) = version {
                assert_eq!(version.to_string(), row["string"], "{row}");
                let pre = row["prerelease"].as_str().unwrap_or_default();
                assert_eq!(version.prerelease(), pre, "{row}");
            }
        }
    }

    #[test]
    fn versions_sort_as_upstream_sorts_them() {
        let vectors = vectors("semver.json");
        let parse = |text| Version::parse(text).unwrap();
        let mut versions: Vec<_> = strings(&vectors["versions"]).into_iter().map(parse).collect();
        versions.sort();
        let sorted: Vec<_> = versions.iter().map(Version::original).collect();
        assert_eq!(sorted, strings(&vectors["sorted_ascending_stable"]));
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        let check = |text: &str, expect| assert_eq!(Version::parse(text).unwrap_err(), expect);
        check("", VersionError::Shape);
        check("V1.0.0", VersionError::Shape);
        check("1.2.3.4", VersionError::Shape);
        check("1..3", VersionError::Shape);
        check("1.2.3-a..b", VersionError::Shape);
        check("1.2.3-01", VersionError::LeadingZero);
        check("18446744073709551616", VersionError::TooLarge);
    }

    prop_compose! {
        /// A version as people write them, loose spellings and hostile identifiers included.
        pub(crate) fn spelled()(
            v in "v?",
            core in "(0|00|[1-9]|10|18446744073709551615)(\\.(0|[1-3])){0,2}",
            pre in "(-(0|1|2|10|a|b|-|0a|99999999999999999999)(\\.(0|1|a|-1)){0,2})?",
            metadata in "(\\+[0-9a-z-]{1,3})?",
        ) -> String {
            format!("{v}{core}{pre}{metadata}")
        }
    }

    proptest! {
        #[test]
        fn printing_and_reading_is_a_round_trip(text in spelled()) {
            let version = Version::parse(&text).unwrap();
            prop_assert_eq!(version.original(), &text);
            let again = Version::parse(&version.to_string()).unwrap();
            prop_assert_eq!(again.to_string(), version.to_string());
            prop_assert!(again == version && again.is_installable());
        }

        #[test]
        fn precedence_is_a_total_order(a in spelled(), b in spelled(), c in spelled()) {
            let parse = |text: &str| Version::parse(text).unwrap();
            let (a, b, c) = (parse(&a), parse(&b), parse(&c));
            prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
            if a <= b && b <= c {
                prop_assert!(a <= c);
            }
            if a == b {
                prop_assert_eq!(a.cmp(&c), b.cmp(&c));
            }
        }

        #[test]
        fn no_text_makes_reading_panic(text in "\\PC{0,24}") {
            let _ = Version::parse(&text);
        }
    }
}
