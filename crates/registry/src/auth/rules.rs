//! Rules: who may do what to which repositories.
//!
//! A rule grants; nothing takes away. A repository that some rule's pattern covers is governed
//! by rules alone, whoever they are for; every other one by the [`Default`] of the registry. So
//! `alice team/secret/** pull,push` also hides `team/secret` from everybody else.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A set of things that can be done to a repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "Vec<&'static str>", try_from = "Vec<String>")]
pub struct Actions(u8);

const WORDS: [(&str, Actions); 4] = [
    ("pull", Actions::PULL),
    ("push", Actions::PUSH),
    ("delete", Actions::DELETE),
    ("admin", Actions::ADMIN),
];

impl Actions {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Read.
    pub const PULL: Self = Self(1);
    /// Add.
    pub const PUSH: Self = Self(2);
    /// Remove.
    pub const DELETE: Self = Self(4);
    /// Decide for the repository; whoever may do that may do the rest.
    pub const ADMIN: Self = Self(8);
    /// Everything.
    pub const ALL: Self = Self(15);

    /// One action by its word; `*` is all of them.
    pub fn word(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::ALL);
        }
        WORDS.iter().find(|(word, _)| *word == text).map(|(_, actions)| *actions)
    }

    /// Words separated by commas; `None` if one of them is none of ours.
    pub fn parse(text: &str) -> Option<Self> {
        text.split(',').try_fold(Self::NONE, |all, word| Some(all.and(Self::word(word.trim())?)))
    }

    /// These and others.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those of these that are also among the others.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether all of the others are among these.
    pub fn allow(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The words, in a fixed order.
    pub fn words(self) -> Vec<&'static str> {
        let held = WORDS.iter().filter(|(_, one)| self.allow(*one));
        held.map(|(word, _)| *word).collect()
    }

    /// With what follows from them.
    fn complete(self) -> Self {
        if self.allow(Self::ADMIN) { Self::ALL } else { self }
    }
}

impl From<Actions> for Vec<&'static str> {
    fn from(actions: Actions) -> Self {
        actions.words()
    }
}

impl TryFrom<Vec<String>> for Actions {
    type Error = String;

    fn try_from(words: Vec<String>) -> Result<Self, String> {
        words.iter().try_fold(Self::NONE, |all, word| {
            Self::word(word).map(|one| all.and(one)).ok_or_else(|| format!("`{word}` is no action"))
        })
    }
}

impl fmt::Display for Actions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.words().join(","))
    }
}

/// Who a rule is for, as it is written when it is nobody in particular.
pub const ANONYMOUS: &str = "anonymous";
/// Everybody who says who they are.
pub const EVERYBODY: &str = "*";

/// Somebody may do something to some repositories.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// A user, [`EVERYBODY`] or [`ANONYMOUS`] (which is everybody else, too).
    pub who: String,
    /// A pattern: `*` within a component of the name, `**` for any number of components.
    pub repositories: String,
    /// What they may do.
    pub actions: Actions,
}

impl Rule {
    fn covers(&self, repository: &str) -> bool {
        covers(&self.repositories, repository)
    }

    fn is_for(&self, user: Option<&str>) -> bool {
        match (self.who.as_str(), user) {
            (ANONYMOUS, _) | (EVERYBODY, Some(_)) => true,
            (who, Some(user)) => who == user,
            (_, None) => false,
        }
    }
}

/// What somebody without a name may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Pull, where no rule says otherwise.
    #[default]
    Public,
    /// Nothing anywhere, whatever rules say.
    Private,
}

/// What a user (`None`: somebody without a name) may do to a repository.
pub fn granted(rules: &[Rule], mode: Mode, user: Option<&str>, repository: &str) -> Actions {
    if user.is_none() && mode == Mode::Private {
        return Actions::NONE;
    }
    let mut governed = false;
    let mut held = Actions::NONE;
    for rule in rules.iter().filter(|rule| rule.covers(repository)) {
        governed = true;
        if rule.is_for(user) {
            held = held.and(rule.actions);
        }
    }
    match (governed, user) {
        (true, _) => held.complete(),
        (false, Some(_)) => Actions::PULL.and(Actions::PUSH).and(Actions::DELETE),
        (false, None) => Actions::PULL,
    }
}

/// Whether a pattern can cover anything: components are not empty and hold no odd characters.
pub fn is_pattern(text: &str) -> bool {
    let fits =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-*".contains(&byte);
    let part = |part: &str| !part.is_empty() && part.bytes().all(fits);
    text.len() <= 255 && text.matches('*').count() <= 16 && text.split('/').all(part)
}

/// Whether a pattern covers a repository.
pub(super) fn covers(pattern: &str, repository: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('/').collect();
    let name: Vec<&str> = repository.split('/').collect();
    matches_components(&pattern, &name)
}

/// Whether a text fits a pattern in which `*` stands for anything.
pub(super) fn matches_text(pattern: &str, text: &str) -> bool {
    matches_component(pattern.as_bytes(), text.as_bytes())
}

fn matches_components(pattern: &[&str], name: &[&str]) -> bool {
    match pattern {
        [] => name.is_empty(),
        ["**", rest @ ..] => (0..=name.len()).any(|at| matches_components(rest, &name[at..])),
        [first, rest @ ..] => match name {
            [] => false,
            [head, tail @ ..] => {
                matches_component(first.as_bytes(), head.as_bytes())
                    && matches_components(rest, tail)
            }
        },
    }
}

/// Matches one component, going back to the last star only: time is bounded by the product.
fn matches_component(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut seen, mut star) = (0_usize, 0_usize, None);
    while seen < text.len() {
        match (pattern.get(at), star) {
            (Some(b'*'), _) => {
                star = Some((at, seen));
                at = at.saturating_add(1);
            }
            (Some(byte), _) if *byte == text[seen] => {
                at = at.saturating_add(1);
                seen = seen.saturating_add(1);
            }
            (_, Some((place, from))) => {
                at = place.saturating_add(1);
                seen = from.saturating_add(1);
                star = Some((place, seen));
            }
            (_, None) => return false,
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(who: &str, repositories: &str, actions: &str) -> Rule {
        let actions = Actions::parse(actions).unwrap();
        Rule { who: who.to_owned(), repositories: repositories.to_owned(), actions }
    }

    #[test]
    fn patterns_cover_what_they_say() {
        let check = |pattern: &str, name: &str, expected: bool| {
            assert_eq!(rule("*", pattern, "pull").covers(name), expected, "{pattern} {name}");
        };
        check("**", "a/b/c", true);
        check("*", "a", true);
        check("*", "a/b", false);
        check("team/*", "team/a", true);
        check("team/*", "team/a/b", false);
        check("team/*", "teams/a", false);
        check("team/**", "team", true);
        check("team/**", "team/a/b", true);
        check("team/**", "teams", false);
        check("**/x", "a/b/x", true);
        check("**/x", "x", true);
        check("a*c/d", "abbc/d", true);
        check("a*c/d", "abbd/d", false);
        check("a*b*c", "axbxbxc", true);
        check("a", "a/b", false);
        assert!(is_pattern("team/*-x/**") && !is_pattern("team//x") && !is_pattern("Team"));
    }

    #[test]
    fn defaults_hold_where_no_rule_does() {
        let rules = [rule("alice", "secret/**", "pull,push"), rule("*", "shared/*", "pull")];
        let check = |user: Option<&str>, name: &str, expected: &str| {
            let held = granted(&rules, Mode::Public, user, name);
            assert_eq!(held.to_string(), expected, "{user:?} {name}");
        };
        check(None, "a", "pull");
        check(Some("bob"), "a", "pull,push,delete");
        check(Some("alice"), "secret/x", "pull,push");
        check(Some("bob"), "secret/x", "");
        check(None, "secret/x", "");
        check(Some("bob"), "shared/x", "pull");
        check(None, "shared/x", "");
        assert_eq!(granted(&rules, Mode::Private, None, "a"), Actions::NONE);
    }

    #[test]
    fn nobody_gets_anything_in_private_and_admin_is_everything() {
        let rules = [rule("anonymous", "open/*", "pull"), rule("root", "open/*", "admin")];
        assert_eq!(granted(&rules, Mode::Private, None, "open/x"), Actions::NONE);
        assert_eq!(granted(&rules, Mode::Public, None, "open/x"), Actions::PULL);
        assert_eq!(granted(&rules, Mode::Public, Some("bob"), "open/x"), Actions::PULL);
        assert_eq!(granted(&rules, Mode::Public, Some("root"), "open/x"), Actions::ALL);
    }
}
