//! Which version is newer.

use std::cmp::Reverse;
use xpkg::version::Version;

/// The place of a tag among others, read once for many comparisons: releases from the newest down, then
/// pre-releases, then what is no version, by name; what has no tag comes last.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TagOrder {
    Release(Reverse<Version>, String),
    Prerelease(Reverse<Version>, String),
    Name(String),
    Untagged,
}

impl TagOrder {
    pub(super) fn of_tag(tag: &str) -> Self {
        match Version::parse(tag) {
            Ok(version) if version.is_prerelease() => {
                Self::Prerelease(Reverse(version), tag.to_owned())
            }
            Ok(version) => Self::Release(Reverse(version), tag.to_owned()),
            Err(_) => Self::Name(tag.to_owned()),
        }
    }

    /// The place of a version by its best tag.
    pub(super) fn of_version(tags: &[String]) -> Self {
        tags.first().map_or(Self::Untagged, |tag| Self::of_tag(tag))
    }
}

/// Puts tags in the order in which people look for them.
pub(super) fn sort_tags(tags: &mut [String]) {
    if tags.len() > 1 {
        tags.sort_by_cached_key(|tag| TagOrder::of_tag(tag));
    }
}

/// Puts versions in order by their best tags; those without one come last, by their digests.
pub(super) fn sort_versions<T>(all: &mut [T], version: impl Fn(&T) -> (&[String], &str)) {
    all.sort_by_cached_key(|one| {
        let (tags, digest) = version(one);
        (TagOrder::of_version(tags), digest.to_owned())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_come_first_and_names_last() {
        let mut tags =
            ["latest", "v1.0.0", "main", "v1.10.0", "v2.0.0-rc.1", "1.2.0", "v1.9.0", "v1"]
                .map(str::to_owned);
        sort_tags(&mut tags);
        let sorted =
            ["v1.10.0", "v1.9.0", "1.2.0", "v1", "v1.0.0", "v2.0.0-rc.1", "latest", "main"];
        assert_eq!(tags, sorted);
    }
}
