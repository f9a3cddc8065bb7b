//! Names with a grammar, parsed at the door: repositories, tags, and which manifest is meant.
//!
//! Only these (and [`oci::Digest`]) reach the storage, so that a path on the disk is always made
//! of parts that cannot climb out of their directory.

use oci::Digest;
use std::fmt;
use std::sync::Arc;

/// The longest name of a repository.
pub const NAME_LENGTH_MAX: usize = 255;
/// The longest tag.
pub const TAG_LENGTH_MAX: usize = 128;

/// The name of a repository: components of lower-case letters and digits, joined by `/`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

/// A name for a manifest that may be moved to another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(Arc<str>);

/// Which manifest of a repository is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// The one a tag stands for.
    Tag(Tag),
    /// The one with this address.
    Digest(Digest),
}

impl fmt::Display for Selector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => tag.fmt(formatter),
            Self::Digest(digest) => digest.fmt(formatter),
        }
    }
}

impl Name {
    /// Parses a name; `None` if the grammar does not allow it.
    pub fn parse(text: &str) -> Option<Self> {
        let sized = (1..=NAME_LENGTH_MAX).contains(&text.len());
        (sized && text.split('/').all(is_component)).then(|| Self(text.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Tag {
    /// Parses a tag; `None` if the grammar does not allow it.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = text.bytes();
        let first = bytes.next()?;
        let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let valid = text.len() <= TAG_LENGTH_MAX
            && word(first)
            && bytes.all(|byte| word(byte) || byte == b'.' || byte == b'-');
        valid.then(|| Self(text.into()))
    }

    /// The tag as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it names a release by semantic version (`v1.2.3`, `1.2.3-rc.1`), which promises
    /// never to mean anything else.
    pub fn is_version(&self) -> bool {
        let text = self.0.strip_prefix('v').unwrap_or(&self.0);
        let (core, pre) =
            text.split_once('-').map_or((text, None), |(core, pre)| (core, Some(pre)));
        let number = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_digit())
                && (part == "0" || !part.starts_with('0'))
        };
        let mut parts = core.split('.');
        let three = parts.by_ref().take(3).filter(|part| number(part)).count() == 3;
        three
            && parts.next().is_none()
            && pre.is_none_or(|pre| pre.split('.').all(|it| !it.is_empty()))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`
fn is_component(text: &str) -> bool {
    let mut rest = text.as_bytes();
    loop {
        let word = rest.iter().take_while(|byte| is_word(**byte)).count();
        if word == 0 {
            return false;
        }
        rest = &rest[word..];
        match rest {
            [] => return true,
            [b'_', b'_', after @ ..] | [b'.' | b'_', after @ ..] => rest = after,
            [b'-', ..] => {
                let dashes = rest.iter().take_while(|byte| **byte == b'-').count();
                rest = &rest[dashes..];
            }
            _ => return false,
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_grammar() {
        for good in ["a", "a/b", "a0/b__c/d--e.f_g", "library/x-y", "a/blobs", "0"] {
            assert!(Name::parse(good).is_some(), "{good}");
        }
        for bad in [
            "", "/", "a/", "/a", "a//b", "A", "a..b", "a___b", "-a", "a-", "..", "a/../b",
            "_layout", "a\\b", "a%2fb", "ä",
        ] {
            assert!(Name::parse(bad).is_none(), "{bad}");
        }
        assert!(Name::parse(&"a".repeat(255)).is_some());
        assert!(Name::parse(&"a".repeat(256)).is_none());
    }

    #[test]
    fn tags_follow_the_grammar() {
        for good in ["latest", "v1.0.0", "_x", "A-b.c", "sha256-abc.sig"] {
            assert!(Tag::parse(good).is_some(), "{good}");
        }
        for bad in ["", ".a", "-a", "a/b", "a b", "a:b", "ä"] {
            assert!(Tag::parse(bad).is_none(), "{bad}");
        }
        assert!(Tag::parse(&"a".repeat(129)).is_none());
    }

    #[test]
    fn versions_are_told_from_other_tags() {
        for version in ["v1.2.3", "1.2.3", "v0.0.0", "v1.2.3-rc.1", "v1.2.3-0.2026"] {
            assert!(Tag::parse(version).unwrap().is_version(), "{version}");
        }
        for other in ["v1", "v1.2", "latest", "v1.2.3.4", "v01.2.3", "v1.2.x", "v1.2.3-"] {
            assert!(!Tag::parse(other).unwrap().is_version(), "{other}");
        }
    }
}
