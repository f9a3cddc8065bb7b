//! Semantic versions.

use std::cmp::Ordering;
use std::rc::Rc;

use super::super::value::{Result, Trouble, Val};
use crate::quote;

/// A version by <https://semver.org>.
#[derive(Clone, Debug)]
pub(crate) struct Semver {
    numbers: [u64; 3],
    before: Vec<String>,
}

impl Semver {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let (main, build) = match text.split_once('+') {
            Some((main, build)) => (main, Some(build)),
            None => (text, None),
        };
        let (core, before) = match main.split_once('-') {
            Some((core, before)) => (core, Some(before)),
            None => (main, None),
        };
        let parts: Vec<&str> = core.split('.').collect();
        let [major, minor, patch] = parts.as_slice() else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let numbers = [number(major, "major")?, number(minor, "minor")?, number(patch, "patch")?];
        let before: Vec<String> =
            before.map(|text| text.split('.').map(str::to_owned).collect()).unwrap_or_default();
        for part in &before {
            let digits = part.bytes().all(|b| b.is_ascii_digit());
            if part.is_empty() {
                return Err("Prerelease is empty".to_owned());
            }
            if digits && part.len() > 1 && part.starts_with('0') {
                return Err(format!(
                    "Numeric PreRelease version must not contain leading zeroes {}",
                    quote(part)
                ));
            }
            if !part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
                return Err(format!("Invalid character(s) found in prerelease {}", quote(part)));
            }
        }
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
                return Err(format!(
                    "Invalid character(s) found in build meta data {}",
                    quote(part)
                ));
            }
        }
        Ok(Self { numbers, before })
    }

    /// How long it is.
    pub(crate) fn bytes(&self) -> usize {
        self.before.iter().map(String::len).sum()
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| {
            match (self.before.is_empty(), other.before.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => before(&self.before, &other.before),
            }
        })
    }
}

fn before(a: &[String], b: &[String]) -> Ordering {
    for (a, b) in a.iter().zip(b) {
        let order = match (a.parse::<u64>(), b.parse::<u64>()) {
            (Ok(a), Ok(b)) => a.cmp(&b),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => a.cmp(b),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

fn number(text: &str, what: &str) -> std::result::Result<u64, String> {
    let quoted = quote(text);
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in {what} number {quoted}"));
    }
    if text.len() > 1 && text.starts_with('0') {
        let what = format!("{}{}", what[..1].to_uppercase(), &what[1..]);
        return Err(format!("{what} number must not contain leading zeroes {quoted}"));
    }
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing {quoted}: value out of range"))
}

/// Without a leading `v`, with all three numbers, none with leading zeros.
fn normal(text: &str) -> String {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text
        .splitn(3, '.')
        .map(|part| {
            if part.len() <= 1 {
                return part.to_owned();
            }
            let bare = part.trim_start_matches('0');
            let digit = bare.starts_with(|c: char| c.is_ascii_digit());
            if digit { bare.to_owned() } else { format!("0{bare}") }
        })
        .collect();
    if parts.len() < 3 {
        let last = parts.last().cloned().unwrap_or_default();
        if last.contains(['+', '-']) {
            return text.to_owned();
        }
        parts.resize(3, "0".to_owned());
    }
    parts.join(".")
}

pub(super) fn read<'a>(name: &str, text: &str, args: &[Val<'a>]) -> Result<Val<'a>> {
    let read = match args.get(1) {
        Some(Val::Bool(true)) => Semver::parse(&normal(text)),
        _ => Semver::parse(text),
    };
    match (name, read) {
        ("isSemver", read) => Ok(Val::Bool(read.is_ok())),
        (_, read) => read.map(|version| Val::Semver(Rc::new(version))).map_err(Trouble::new),
    }
}

pub(super) fn call<'a>(name: &str, args: &[Val<'a>]) -> Result<Val<'a>> {
    let int = |number: u64| Val::Int(i64::try_from(number).unwrap_or(i64::MAX));
    match (name, args) {
        ("major", [Val::Semver(version)]) => Ok(int(version.numbers[0])),
        ("minor", [Val::Semver(version)]) => Ok(int(version.numbers[1])),
        ("patch", [Val::Semver(version)]) => Ok(int(version.numbers[2])),
        ("isGreaterThan", [Val::Semver(a), Val::Semver(b)]) => {
            Ok(Val::Bool(a.compare(b) == Ordering::Greater))
        }
        ("isLessThan", [Val::Semver(a), Val::Semver(b)]) => {
            Ok(Val::Bool(a.compare(b) == Ordering::Less))
        }
        ("compareTo", [Val::Semver(a), Val::Semver(b)]) => Ok(Val::Int(a.compare(b) as i64)),
        _ => Err(Trouble::overload()),
    }
}
