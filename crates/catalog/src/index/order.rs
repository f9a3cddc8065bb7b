//! Which version is newer.

use std::cmp::Ordering;
use xpkg::version::Version;

/// Tags in the order in which people look for them: releases from the newest down, then
/// pre-releases, then what is no version, by name.
pub(super) fn compare_tags(one: &str, other: &str) -> Ordering {
    let read = |tag: &str| Version::parse(tag).ok();
    match (read(one), read(other)) {
        (Some(a), Some(b)) => (a.is_prerelease().cmp(&b.is_prerelease()))
            .then_with(|| b.cmp(&a))
            .then_with(|| one.cmp(other)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => one.cmp(other),
    }
}

/// Versions by their best tags; those without one come last, by their digests.
pub(super) fn compare_versions(
    (one, one_digest): (&[String], &str),
    (other, other_digest): (&[String], &str),
) -> Ordering {
    let by_tag = match (one.first(), other.first()) {
        (Some(a), Some(b)) => compare_tags(a, b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    };
    by_tag.then_with(|| one_digest.cmp(other_digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_come_first_and_names_last() {
        let mut tags =
            ["latest", "v1.0.0", "main", "v1.10.0", "v2.0.0-rc.1", "1.2.0", "v1.9.0", "v1"];
        tags.sort_by(|one, other| compare_tags(one, other));
        let sorted =
            ["v1.10.0", "v1.9.0", "1.2.0", "v1", "v1.0.0", "v2.0.0-rc.1", "latest", "main"];
        assert_eq!(tags, sorted);
    }
}
