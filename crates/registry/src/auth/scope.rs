//! Scopes: what a token is asked for, and what it is good for.

use super::rules::Actions;
use crate::name::Name;
use serde::{Deserialize, Serialize};

/// The most scopes one token is asked for; more are not looked at.
const SCOPES_MAX: usize = 64;

/// One entry of a token: something, and what may be done to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// `repository` or `registry`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The repository's name, or `catalog`.
    pub name: String,
    /// What may be done.
    pub actions: Vec<String>,
}

/// A scope as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// `repository:<name>:<actions>`
    Repository(Name, Actions),
    /// `registry:catalog:*`
    Catalog,
}

impl Scope {
    /// Reads one. A name may hold a colon (`host:port/name`), so the actions are what follows the
    /// last one. Actions we do not know are passed over, and so is everything we cannot grant.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        let (name, actions) = rest.rsplit_once(':')?;
        match kind {
            "registry" => (name == "catalog").then_some(Self::Catalog),
            "repository" => {
                let words = actions.split(',').filter_map(Actions::word);
                let actions = words.fold(Actions::NONE, Actions::and);
                Some(Self::Repository(Name::parse(name)?, actions))
            }
            _ => None,
        }
    }

    /// Reads all of them, as parameters that are repeated or hold several.
    pub(super) fn parse_all<'text>(texts: impl Iterator<Item = &'text str>) -> Vec<Self> {
        texts.flat_map(|text| text.split(' ')).take(SCOPES_MAX).filter_map(Self::parse).collect()
    }
}

/// What a list of grants is worth for a repository.
pub(super) fn held(grants: &[Grant], repository: &str) -> Actions {
    let fitting = grants.iter().filter(|it| it.kind == "repository" && it.name == repository);
    let words = fitting.flat_map(|it| &it.actions).filter_map(|word| match word.as_str() {
        "*" => None,
        word => Actions::word(word),
    });
    words.fold(Actions::NONE, Actions::and)
}

/// Whether a list of grants lets the repositories be listed.
pub(super) fn lists(grants: &[Grant]) -> bool {
    grants.iter().any(|it| it.kind == "registry" && it.name == "catalog")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_read_from_the_right() {
        let repository = |name: &str, actions: &str| {
            Some(Scope::Repository(Name::parse(name)?, Actions::parse(actions)?))
        };
        assert_eq!(Scope::parse("repository:a/b:pull,push"), repository("a/b", "pull,push"));
        assert_eq!(Scope::parse("repository:a:*"), repository("a", "*"));
        assert_eq!(Scope::parse("repository:a:pull,fly"), repository("a", "pull"));
        assert_eq!(Scope::parse("registry:catalog:*"), Some(Scope::Catalog));
        // The host's colon belongs to the name, which then is not one of ours.
        assert_eq!(Scope::parse("repository:host:5000/a:pull"), None);
        for text in ["", "repository", "repository:a", "repository:../a:pull", "plugin:a:pull"] {
            assert_eq!(Scope::parse(text), None, "{text}");
        }
        let all = Scope::parse_all(["repository:a:pull repository:b:push", "x"].into_iter());
        assert_eq!(all.len(), 2);
    }
}
