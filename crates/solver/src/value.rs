//! What packages are called, what can be installed of one, and what is asked of it.

use oci::digest::Digest;
use std::cmp::Ordering;
use std::fmt;
use xpkg::constraint::{Constraint, ConstraintError};
use xpkg::version::Version;

/// What makes a package *that* package: its repository, in the caller's canonical spelling.
///
/// Mirrors, rewrites and registry aliases are resolved before a source is made; here two sources
/// are the same package exactly when their texts are equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source(String);

impl Source {
    /// A source by its canonical name.
    pub fn new(canonical: impl Into<String>) -> Self {
        Self(canonical.into())
    }

    /// The canonical name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// One exact thing that can be installed of a source: what stands behind the `:` or `@`.
///
/// Pins are equal when they are spelt alike: `v1.2.3` and `1.2.3` are one version and two tags.
#[derive(Clone, Debug)]
pub enum Pin {
    /// A tag that is a version.
    Version(Version),
    /// Bytes, whatever they are called.
    Digest(Digest),
    /// Any other tag: `latest`, `stable`, `main`.
    Channel(String),
}

impl Pin {
    /// Reads a tag or a digest.
    pub fn parse(text: &str) -> Self {
        if let Ok(digest) = text.parse() {
            return Self::Digest(digest);
        }
        Version::parse(text).map_or_else(|_| Self::Channel(text.to_owned()), Self::Version)
    }

    /// The version, of pins that have one.
    pub fn version(&self) -> Option<&Version> {
        match self {
            Self::Version(version) => Some(version),
            Self::Digest(_) | Self::Channel(_) => None,
        }
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => formatter.write_str(version.original()),
            Self::Digest(digest) => digest.fmt(formatter),
            Self::Channel(tag) => formatter.write_str(tag),
        }
    }
}

impl PartialEq for Pin {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pin {}

/// Versions by precedence and then spelling, before everything that has none.
impl Ord for Pin {
    fn cmp(&self, other: &Self) -> Ordering {
        let rank = |pin: &Self| match pin {
            Self::Version(_) => 0,
            Self::Digest(_) => 1,
            Self::Channel(_) => 2,
        };
        match (self, other) {
            (Self::Version(one), Self::Version(two)) => {
                one.cmp(two).then_with(|| one.original().cmp(two.original()))
            }
            (Self::Digest(one), Self::Digest(two)) => one.to_string().cmp(&two.to_string()),
            (Self::Channel(one), Self::Channel(two)) => one.cmp(two),
            _ => rank(self).cmp(&rank(other)),
        }
    }
}

impl PartialOrd for Pin {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What tells ranges of one package apart; not for people.
pub(crate) type RangeKey<'r> = (u8, &'r str);

/// Which pins a dependency accepts.
#[derive(Clone, Debug)]
pub enum Range {
    /// Versions that satisfy a constraint.
    Constraint(Constraint),
    /// Exactly these bytes.
    Digest(Digest),
    /// What has this tag, which need not be a version.
    Tag(String),
}

impl Range {
    /// Reads what stands in a dependency's `version`.
    pub fn parse(text: &str) -> Result<Self, ConstraintError> {
        text.parse().map_or_else(
            |_| Constraint::parse(text).map(Self::Constraint),
            |digest| Ok(Self::Digest(digest)),
        )
    }

    /// What must be there for this, if it is one thing: it can be had whether or not it is listed.
    pub(crate) fn pin(&self) -> Option<Pin> {
        match self {
            Self::Constraint(_) => None,
            Self::Digest(digest) => Some(Pin::Digest(digest.clone())),
            Self::Tag(tag) => Some(Pin::parse(tag)),
        }
    }

    /// What tells it from other ranges.
    pub(crate) fn key(&self) -> RangeKey<'_> {
        match self {
            Self::Constraint(constraint) => (0, constraint.original()),
            Self::Digest(digest) => (1, digest.hex()),
            Self::Tag(tag) => (2, tag),
        }
    }

    /// Whether a pin is accepted for what it says of itself.
    pub fn accepts(&self, pin: &Pin) -> bool {
        match (self, pin) {
            (Self::Constraint(constraint), Pin::Version(version)) => constraint.matches(version),
            (Self::Digest(wanted), Pin::Digest(digest)) => wanted == digest,
            (Self::Tag(tag), Pin::Version(version)) => tag == version.original(),
            (Self::Tag(wanted), Pin::Channel(tag)) => wanted == tag,
            _ => false,
        }
    }
}

/// Ranges are equal when they are spelt alike.
impl PartialEq for Range {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Digest(one), Self::Digest(two)) => one == two,
            (one, two) => one.key() == two.key(),
        }
    }
}

impl Eq for Range {}

impl fmt::Display for Range {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constraint(constraint) => constraint.fmt(formatter),
            Self::Digest(digest) => digest.fmt(formatter),
            Self::Tag(tag) => formatter.write_str(tag),
        }
    }
}
