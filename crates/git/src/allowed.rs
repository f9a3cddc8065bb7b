//! Which repositories packages may come from.

use oci::{Reference, Repository, Rules};

/// How the addresses of repositories begin that packages may come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedPlace(String);

impl AllowedPlace {
    /// Reads `https://HOST[/PATH]`; the last part is a whole one.
    pub fn parse(text: &str) -> Result<Self, String> {
        let place = text.trim_end_matches('/');
        let rules = Rules::weak().git_sources();
        // A host alone is as good as a path: any repository on it begins so.
        let probe = format!("git+{place}/any");
        let parsed = Repository::parse(&probe, &rules).map_err(|error| error.to_string())?;
        let address = parsed.git_source().map(|source| source.address).unwrap_or_default();
        let start = address.strip_suffix("any").filter(|_| !place.contains("//any"));
        start.map(|start| Self(start.to_owned())).ok_or_else(|| format!("`{text}` is no address"))
    }

    /// Whether a source is one of these.
    pub fn covers(&self, reference: &Reference) -> bool {
        let source = reference.repository().git_source();
        source.is_some_and(|source| format!("{}/", source.address).starts_with(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_covers_what_lies_below_it_and_nothing_that_only_begins_alike() {
        let covers = |place: &str, source: &str| {
            let rules = Rules::weak().git_sources();
            let reference = Reference::parse(&format!("git+{source}@main"), &rules).unwrap();
            AllowedPlace::parse(place).unwrap().covers(&reference)
        };
        assert!(covers("https://e.org/team/", "https://e.org/team/a"));
        assert!(covers("https://e.org/team/a", "https://E.org/team/a//deep"));
        assert!(covers("https://e.org", "https://e.org/team/a"));
        assert!(!covers("https://e.org/team", "https://e.org/teams/a"));
        assert!(!covers("https://e.org/team", "https://e.org/other/a"));
        assert!(!covers("https://e.org/team", "https://evil.org/team/a"));
        for wrong in ["", "e.org/team", "ssh://e.org/a", "https://", "https://e.org/../a"] {
            assert!(AllowedPlace::parse(wrong).is_err(), "{wrong}");
        }
    }
}
