//! When to ask the registry: the table of the guide.
//!
//! |              | `IfNotPresent`              | Always                        | Never           |
//! |--------------|-----------------------------|-------------------------------|-----------------|
//! | version tag  | asked until it is cached    | asked every minute            | cache only      |
//! | channel tag  | asked until it is cached    | asked every minute            | cache only      |
//! | digest       | asked until it is cached: it is the same bytes for ever     | cache only      |
//!
//! What is cached counts for the packages that it was fetched for: another one asks the registry, with
//! credentials of its own ([`may_use_cached`](super::may_use_cached)).
//!
//! Whoever asks fetches. Bytes that a revision was made of are not asked for on behalf of the
//! package: that they can be had is the revision's business from then on.
//!
//! A registry that cannot be asked takes away no package: under `IfNotPresent` what was installed of an
//! image is what it means until there is an answer.
//!
//! Tags are read here and nowhere else; everything after speaks of digests.

use oci::{Digest, Identifier, Reference, ReferenceError, Rules};
use std::time::Duration;

/// How long what a registry said about a tag is believed under `Always`.
pub const RECHECK: Duration = Duration::from_secs(60);

/// When to ask the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Only for what is not in the cache.
    IfNotPresent,
    /// Every minute.
    Always,
    /// Not at all.
    Never,
}

impl Policy {
    /// Reads the field; anything unknown is the careful default.
    pub fn parse(text: Option<&str>) -> Self {
        text.and_then(Self::known).unwrap_or(Self::IfNotPresent)
    }

    /// The policy of a name, if there is one.
    pub fn known(name: &str) -> Option<Self> {
        match name {
            "IfNotPresent" => Some(Self::IfNotPresent),
            "Always" => Some(Self::Always),
            "Never" => Some(Self::Never),
            _ => None,
        }
    }
}

/// What is known about the image that a package object asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// What the cache holds for it: for a tag, the digest it had when it was cached.
    pub cached: Option<Digest>,
    /// What the registry said, if it was asked in this round or less than a minute ago.
    pub asked: Option<Result<Digest, Unavailable>>,
    /// Whether the cache was asked for a file of that name.
    pub searched: bool,
}

/// Why an image cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// In a sentence.
    pub why: String,
    /// What to do about it, if whoever found out knows better than that the image should be there.
    pub advice: Option<String>,
}

impl From<String> for Unavailable {
    fn from(why: String) -> Self {
        Self { why, advice: None }
    }
}

impl Unavailable {
    /// What to do about it.
    pub fn advice(&self, image: &str) -> String {
        let otherwise = || format!("make sure that {image} exists and may be pulled");
        self.advice.clone().unwrap_or_else(otherwise)
    }
}

/// What to install, or what to do to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pull {
    /// These bytes.
    Use(Digest),
    /// Ask the registry.
    Ask(Reference),
    /// Look for a file in the cache.
    Search(String),
    /// It cannot be known, for this reason, with this advice.
    Fail(String, String),
}

/// Exactly these bytes of an image, or why it is none and what to do about it.
pub fn pinned(image: &str, registry: &str, digest: Digest) -> Result<Reference, (String, String)> {
    let reference = Reference::parse(image, &rules(registry));
    let reference = reference.map_err(|error| unreadable(image, &error))?;
    Ok(reference.repository().digest(digest))
}

/// How packages of a cluster are named.
fn rules(registry: &str) -> Rules {
    Rules::weak().default_registry(registry).git_sources()
}

fn unreadable(image: &str, error: &ReferenceError) -> (String, String) {
    let advice = "write it as registry.example.org/repository:tag".to_owned();
    (format!("{image:?} is not an image reference: {error}"), advice)
}

/// Decides what an image means now. A digest is what it is, but only once it was fetched is it sure
/// that it can be had; `is_known` tells of which bytes that is somebody else's business.
pub fn decide(
    policy: Policy,
    package: &str,
    registry: &str,
    image: &Image,
    is_known: impl Fn(&Digest) -> bool,
) -> Pull {
    let reference = match Reference::parse(package, &rules(registry)) {
        Ok(reference) => reference,
        Err(error) => {
            let (why, advice) = unreadable(package, &error);
            return Pull::Fail(why, advice);
        }
    };
    if let (Policy::Never, Some(cached)) = (policy, &image.cached) {
        return Pull::Use(cached.clone());
    }
    match (policy, reference.identifier(), &image.cached) {
        (Policy::Never, _, _) if !image.searched => Pull::Search(package.to_owned()),
        (Policy::Never, _, _) => {
            let why =
                format!("{package} is not in the package cache, and its pull policy is Never");
            Pull::Fail(
                why,
                "load the package into the cache, or use another pull policy".to_owned(),
            )
        }
        (_, Identifier::Digest(digest), cached) if cached.is_some() || is_known(digest) => {
            Pull::Use(digest.clone())
        }
        (Policy::IfNotPresent, _, Some(cached)) => Pull::Use(cached.clone()),
        _ => match &image.asked {
            Some(Ok(digest)) => Pull::Use(digest.clone()),
            Some(Err(error)) => {
                let why = format!("cannot resolve {package}: {}", error.why);
                Pull::Fail(why, error.advice(package))
            }
            None => Pull::Ask(reference),
        },
    }
}
