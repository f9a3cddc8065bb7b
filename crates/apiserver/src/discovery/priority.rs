//! Which of two versions comes first: `v2`, `v1`, `v2beta1`, `v1alpha1`, then the rest.

use std::cmp::Ordering;

/// Stable before beta before alpha, higher numbers first, strange names last.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    match (rank(a), rank(b)) {
        (Some(a), Some(b)) => b.cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

fn rank(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let split = |word: &str| {
        let (major, minor) = rest.split_once(word)?;
        Some((major.parse::<u64>().ok()?, minor.parse::<u64>().ok()?))
    };
    if let Ok(major) = rest.parse() {
        Some((2, major, 0))
    } else if let Some((major, minor)) = split("beta") {
        Some((1, major, minor))
    } else {
        split("alpha").map(|(major, minor)| (0, major, minor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_in_kubernetes_order() {
        let mut versions = ["foo", "v1alpha1", "v1", "v11beta2", "v10", "v2beta1", "bar", "v12"];
        versions.sort_by(|a, b| compare(a, b));
        let expect = ["v12", "v10", "v1", "v11beta2", "v2beta1", "v1alpha1", "bar", "foo"];
        assert_eq!(versions, expect);
    }
}
