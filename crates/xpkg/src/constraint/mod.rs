//! Version constraints as Crossplane reads them: the language of Masterminds/semver v3.
//!
//! ```text
//! constraint = group *( "||" group )          any group may hold
//! group      = term *( ( spaces / "," ) term ) every term must hold
//! term       = [ operator ] version           = != > < >= => <= =< ~ ~> ^, or none
//! version    = [ "v" ] part [ "." part ] [ "." part ] [ "-" pre ] [ "+" metadata ]
//! part       = digits / "x" / "X" / "*"
//! ```
//!
//! `a - b` is sugar for `>= a, <= b`. A version with a wildcard or missing part is *partial*;
//! operators read a partial version as the span it covers, so `1.2` is every `1.2.z`, `>1` starts
//! at 2 and `<=1.2` ends with the last `1.2.z`.
//!
//! Pre-releases are shy: a pre-release version satisfies a group only if some term of that same
//! group names a pre-release; then all terms of the group compare by plain precedence.
//!
//! A few corners look like mistakes (`~0.0.0` accepts everything, the range rewrite happens before
//! `||` is split). They are kept on purpose: a package must resolve here as it does upstream. The
//! table in `testdata/semver` holds them in place.

use crate::version::{Spelling, Version, VersionError};
use std::fmt;
use std::str::FromStr;

#[cfg(test)]
mod tests;

/// Longest constraint text read; real ones are a few dozen characters, and finding ranges costs
/// the square of the length.
const TEXT_SIZE_MAX: usize = 4096;

/// A parsed constraint.
#[derive(Clone, Debug)]
pub struct Constraint {
    groups: Vec<Group>,
    original: String,
}

/// Why a text is not a constraint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintError {
    /// The text, or one side of a `||`, is empty.
    #[error("a constraint must not be empty")]
    Empty,
    /// The text is longer than any sensible constraint.
    #[error("a constraint must not be longer than 4096 bytes")]
    TooLong,
    /// A group of terms does not follow the grammar.
    #[error("improper constraint {text:?}")]
    Improper {
        /// The group that could not be read.
        text: String,
    },
    /// A term's version cannot be read.
    #[error("improper version {text:?} in a constraint")]
    Version {
        /// The version as written.
        text: String,
        /// What is wrong with it.
        #[source]
        source: VersionError,
    },
}

/// Terms that must hold together.
#[derive(Clone, Debug)]
struct Group {
    terms: Vec<Term>,
    prereleases: bool,
}

/// One operator with its version.
#[derive(Clone, Debug)]
struct Term {
    operator: Operator,
    written: String,
    version: Version,
    precision: Precision,
}

/// How much of a term's version was written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Precision {
    /// `*`: nothing.
    Any,
    /// `1`, `1.x`: the major number.
    Major,
    /// `1.2`, `1.2.x`: major and minor.
    Minor,
    /// All three numbers.
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Bare,
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterEqual,
    LessEqual,
    Tilde,
    Caret,
}

/// Spellings of the operators, longer ones before their own prefixes.
const OPERATORS: [(&str, Operator); 11] = [
    ("!=", Operator::NotEqual),
    (">=", Operator::GreaterEqual),
    ("=>", Operator::GreaterEqual),
    ("<=", Operator::LessEqual),
    ("=<", Operator::LessEqual),
    ("~>", Operator::Tilde),
    ("=", Operator::Equal),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
];

impl Constraint {
    /// Reads a constraint; an empty text is not one.
    pub fn parse(text: &str) -> Result<Self, ConstraintError> {
        if text.len() > TEXT_SIZE_MAX {
            return Err(ConstraintError::TooLong);
        }
        let rewritten = rewrite_ranges(text);
        let groups = rewritten.split("||").map(parse_group).collect::<Result<_, _>>()?;
        Ok(Self { groups, original: text.to_owned() })
    }

    /// Whether a version satisfies the constraint.
    pub fn matches(&self, version: &Version) -> bool {
        self.groups.iter().any(|group| group.matches(version))
    }

    /// The text the constraint was read from.
    pub fn original(&self) -> &str {
        &self.original
    }

    /// Whether some group of terms admits pre-releases at all.
    pub fn admits_prereleases(&self) -> bool {
        self.groups.iter().any(|group| group.prereleases)
    }

    /// The one version this constraint pins, when it is a single complete `=` term.
    pub fn exact(&self) -> Option<&Version> {
        match self.single()? {
            term if term.is_equality() && term.precision == Precision::Full => Some(&term.version),
            _ => None,
        }
    }

    /// Whether this is a lone partial version such as `v1.2`, which reads like a tag and is a span.
    pub fn is_partial_version(&self) -> bool {
        self.single().is_some_and(|term| {
            let partial = matches!(term.precision, Precision::Major | Precision::Minor);
            let wild = term.written.contains(['x', 'X', '*']);
            term.is_equality() && partial && !wild
        })
    }

    /// Whether every version from some point on satisfies it, so that a new major release would.
    pub fn is_open_ended(&self) -> bool {
        let distant = format!("{}.{}.{}", u64::MAX, u64::MAX, u64::MAX);
        Version::parse(&distant).is_ok_and(|version| self.matches(&version))
    }

    /// The upper bound that pre-releases slip past: in `>=1.0.0-0 <2.0.0` it is `2.0.0`, because
    /// the group admits pre-releases and `2.0.0-rc.1` comes before `2.0.0`.
    pub fn leaky_upper_bound(&self) -> Option<&str> {
        let groups = self.groups.iter().filter(|group| group.prereleases);
        let mut terms = groups.flat_map(|group| &group.terms);
        let leaky =
            |term: &&Term| matches!(term.operator, Operator::Less) && !term.version.is_prerelease();
        terms.find(leaky).map(|term| term.written.as_str())
    }

    fn single(&self) -> Option<&Term> {
        match self.groups.as_slice() {
            [group] if group.terms.len() == 1 => group.terms.first(),
            _ => None,
        }
    }
}

impl FromStr for Constraint {
    type Err = ConstraintError;

    fn from_str(text: &str) -> Result<Self, ConstraintError> {
        Self::parse(text)
    }
}

/// Writes the terms in normal form: one space between terms, ` || ` between groups.
impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, group) in self.groups.iter().enumerate() {
            if index > 0 {
                f.write_str(" || ")?;
            }
            for (index, term) in group.terms.iter().enumerate() {
                let space = if index > 0 { " " } else { "" };
                write!(f, "{space}{}{}", term.operator, term.written)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bare => "",
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Greater => ">",
            Self::Less => "<",
            Self::GreaterEqual => ">=",
            Self::LessEqual => "<=",
            Self::Tilde => "~",
            Self::Caret => "^",
        })
    }
}

impl Group {
    fn matches(&self, version: &Version) -> bool {
        (self.prereleases || !version.is_prerelease())
            && self.terms.iter().all(|term| term.matches(version))
    }
}

impl Term {
    fn matches(&self, version: &Version) -> bool {
        match self.operator {
            Operator::Bare | Operator::Equal if self.precision == Precision::Full => {
                *version == self.version
            }
            Operator::Bare | Operator::Equal | Operator::Tilde => self.matches_tilde(version),
            Operator::NotEqual => self.matches_not_equal(version),
            Operator::Greater => self.matches_greater(version),
            Operator::Less => *version < self.version,
            Operator::GreaterEqual => *version >= self.version,
            Operator::LessEqual => self.matches_less_equal(version),
            Operator::Caret => self.matches_caret(version),
        }
    }

    fn is_equality(&self) -> bool {
        matches!(self.operator, Operator::Bare | Operator::Equal)
    }

    fn same_major(&self, version: &Version) -> bool {
        version.major() == self.version.major()
    }

    fn same_minor(&self, version: &Version) -> bool {
        self.same_major(version) && version.minor() == self.version.minor()
    }

    fn matches_tilde(&self, version: &Version) -> bool {
        let base = &self.version;
        let zero = base.major() == 0 && base.minor() == 0 && base.patch() == 0;
        if *version < *base {
            return false;
        }
        match self.precision {
            Precision::Any | Precision::Full if zero => true,
            Precision::Major => self.same_major(version),
            Precision::Any | Precision::Minor | Precision::Full => self.same_minor(version),
        }
    }

    fn matches_not_equal(&self, version: &Version) -> bool {
        match self.precision {
            Precision::Major => !self.same_major(version),
            // The only place where a partial version's pre-release is compared on its own.
            Precision::Minor if self.same_minor(version) => {
                let either = version.is_prerelease() || self.version.is_prerelease();
                either && version.compare_prerelease(&self.version).is_ne()
            }
            Precision::Minor => true,
            Precision::Any | Precision::Full => *version != self.version,
        }
    }

    fn matches_greater(&self, version: &Version) -> bool {
        let base = &self.version;
        match self.precision {
            Precision::Major => version.major() > base.major(),
            Precision::Minor => (version.major(), version.minor()) > (base.major(), base.minor()),
            Precision::Any | Precision::Full => *version > *base,
        }
    }

    fn matches_less_equal(&self, version: &Version) -> bool {
        let base = &self.version;
        match self.precision {
            Precision::Major => version.major() <= base.major(),
            Precision::Any | Precision::Minor => {
                (version.major(), version.minor()) <= (base.major(), base.minor())
            }
            Precision::Full => *version <= *base,
        }
    }

    fn matches_caret(&self, version: &Version) -> bool {
        let base = &self.version;
        if *version < *base {
            return false;
        }
        if base.major() > 0 || self.precision == Precision::Major {
            return self.same_major(version);
        }
        if base.minor() > 0 || self.precision == Precision::Minor {
            return self.same_minor(version);
        }
        self.same_minor(version) && version.patch() == base.patch()
    }
}

/// Turns every `a - b` into `>= a, <= b`.
///
/// Each range is replaced at its first occurrence in the text so far, as the original does.
fn rewrite_ranges(text: &str) -> String {
    let mut rewritten = text.to_owned();
    let mut rest = text;
    while let Some(range) = find_range(rest) {
        let terms = format!(">= {}, <= {} ", range.from, range.to);
        rewritten = rewritten.replacen(range.whole, &terms, 1);
        rest = range.rest;
    }
    rewritten
}

/// One `a - b` found in a text.
struct Range<'a> {
    whole: &'a str,
    from: &'a str,
    to: &'a str,
    rest: &'a str,
}

fn find_range(text: &str) -> Option<Range<'_>> {
    text.char_indices().find_map(|(start, _)| range_at(&text[start..]))
}

fn range_at(text: &str) -> Option<Range<'_>> {
    let (from, rest) = split_version(skip_spaces(text))?;
    let rest = skip_some_spaces(rest)?.strip_prefix('-')?;
    let (to, rest) = split_version(skip_some_spaces(rest)?)?;
    let rest = skip_spaces(rest);
    Some(Range { whole: &text[..text.len() - rest.len()], from, to, rest })
}

fn split_version(text: &str) -> Option<(&str, &str)> {
    let spelling = Spelling::prefix(text, is_part)?;
    Some(text.split_at(spelling.length))
}

fn parse_group(text: &str) -> Result<Group, ConstraintError> {
    let improper = || {
        if text.trim().is_empty() {
            return ConstraintError::Empty;
        }
        ConstraintError::Improper { text: text.to_owned() }
    };
    let mut terms = Vec::new();
    let mut rest = skip_spaces(text);
    loop {
        let (operator, after) = split_operator(rest);
        let after = skip_spaces(after);
        let spelling = Spelling::prefix(after, is_part).ok_or_else(improper)?;
        let (written, after) = after.split_at(spelling.length);
        terms.push(term(operator, written, &spelling)?);
        let next = skip_spaces(after);
        rest = match next.strip_prefix(',') {
            Some(next) => skip_spaces(next),
            None if next.is_empty() => break,
            None if next.len() < after.len() => next,
            None => return Err(improper()),
        };
    }
    let prereleases = terms.iter().any(|term| term.version.is_prerelease());
    Ok(Group { terms, prereleases })
}

fn term(op: Operator, written: &str, found: &Spelling<'_>) -> Result<Term, ConstraintError> {
    let dash = if found.pre.is_empty() { "" } else { "-" };
    let (precision, text) = if is_wild(found.major) {
        (Precision::Any, format!("0.0.0{dash}{}", found.pre))
    } else if is_wild(found.minor) {
        (Precision::Major, format!("{}.0.0{dash}{}", found.major, found.pre))
    } else if is_wild(found.patch) {
        (Precision::Minor, format!("{}.{}.0{dash}{}", found.major, found.minor, found.pre))
    } else {
        (Precision::Full, written.to_owned())
    };
    let version = Version::parse(&text)
        .map_err(|source| ConstraintError::Version { text: written.to_owned(), source })?;
    Ok(Term { operator: op, written: written.to_owned(), version, precision })
}

fn split_operator(text: &str) -> (Operator, &str) {
    let found = OPERATORS
        .iter()
        .find_map(|(spelling, operator)| text.strip_prefix(spelling).map(|rest| (*operator, rest)));
    found.unwrap_or((Operator::Bare, text))
}

/// Characters of a version's three leading parts. The `|` is never part of a valid number, but
/// accepting it decides where a range begins.
fn is_part(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'x' | b'X' | b'*' | b'|')
}

fn is_wild(part: &str) -> bool {
    matches!(part, "" | "x" | "X" | "*")
}

/// The original's idea of a space; other Unicode spaces are not one.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}

fn skip_spaces(text: &str) -> &str {
    text.trim_start_matches(is_space)
}

fn skip_some_spaces(text: &str) -> Option<&str> {
    let rest = skip_spaces(text);
    (rest.len() < text.len()).then_some(rest)
}
