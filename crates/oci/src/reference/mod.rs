//! Image references: `registry/path:tag` and `registry/path@digest`.
//!
//! The grammar is the one container tools share. A first path component is a registry only if it
//! is `localhost` or contains `.` or `:`; without one, the default registry is meant, Docker Hub
//! unless told otherwise. How much may be left out is said by [`Rules`].
//!
//! A [`Repository`] has one spelling, whatever was written: names are compared as text.

mod canonical;
mod git;

pub use git::{GitReferenceError, GitSource, is_commit};

use crate::digest::Algorithm;
use crate::{Digest, DigestError};
use canonical::{bare_host, is_path, is_plain_host, is_registry};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// Docker Hub, as it is called on the wire.
pub const DOCKER_HUB: &str = "index.docker.io";
/// Docker Hub, as people write it.
const DOCKER_HUB_ALIAS: &str = "docker.io";
const REPOSITORY_LENGTH_MAX: usize = 255;
const TAG_LENGTH_MAX: usize = 128;

/// How much a reference may leave unsaid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    registry_default: String,
    strict: bool,
    sha512: bool,
    git: bool,
}

impl Rules {
    /// Registry and tag may be missing: Docker Hub and `latest` are meant.
    pub fn weak() -> Self {
        Self { registry_default: DOCKER_HUB.to_owned(), strict: false, sha512: false, git: false }
    }

    /// Registry and tag (or digest) must be written.
    pub fn strict() -> Self {
        Self { strict: true, ..Self::weak() }
    }

    /// Another registry is meant when none is written; empty means none.
    #[must_use]
    pub fn default_registry(mut self, registry: &str) -> Self {
        registry.clone_into(&mut self.registry_default);
        self
    }

    /// Digests may be SHA-512 too, which upstream's tools refuse.
    #[must_use]
    pub fn any_digest(mut self) -> Self {
        self.sha512 = true;
        self
    }

    /// What packages are built from may be named, too: `git+https://…`.
    #[must_use]
    pub fn git_sources(mut self) -> Self {
        self.git = true;
        self
    }
}

/// Why a text is not a reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// Nothing was given.
    #[error("a reference needs a repository name")]
    Empty,
    /// The registry is not a host with an optional port.
    #[error("registry `{0}` is not a host name or address with an optional port")]
    Registry(String),
    /// Strict rules, and no registry.
    #[error("reference `{0}` does not name its registry")]
    RegistryMissing(String),
    /// Strict rules, and no tag or digest.
    #[error("reference `{0}` has neither a tag nor a digest")]
    TagMissing(String),
    /// A colon with nothing behind it.
    #[error("reference `{0}` ends in a colon without a tag")]
    TagEmpty(String),
    /// Strict rules, and a Docker Hub repository without its namespace.
    #[error("reference `{0}` does not name its Docker Hub namespace (for example `library/`)")]
    NamespaceMissing(String),
    /// Not a path by OCI's grammar.
    #[error(
        "repository `{0}` may only have lower-case letters and digits with `_` `-` `.` `/` between them, at most 255 in all"
    )]
    Repository(String),
    /// Letters a tag may not have.
    #[error(
        "tag `{0}` may only have letters, digits and `_` `-` `.`, at most 128 of them, and begins with neither `-` nor `.`"
    )]
    Tag(String),
    /// More than one `@`.
    #[error("reference `{0}` has more than one `@`")]
    TwoDigests(String),
    /// What stands behind the `@` is not a digest.
    #[error("reference `{text}` has a digest that cannot be used")]
    Digest {
        /// The whole reference.
        text: String,
        /// What is wrong with the digest.
        #[source]
        source: DigestError,
    },
    /// It begins like a Git source, and is none.
    #[error("`{text}` is not a Git source")]
    Git {
        /// The whole text.
        text: String,
        /// What is wrong with it.
        #[source]
        source: GitReferenceError,
    },
}

/// A repository: a registry and a path in it. There is one spelling of each, so that equal texts
/// and equal places are the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Repository {
    registry: String,
    path: String,
}

/// What of a repository is meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identifier {
    /// A name that may move.
    Tag(String),
    /// An address that may not.
    Digest(Digest),
}

/// A reference to an image in a registry.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Reference {
    repository: Repository,
    identifier: Identifier,
    original: String,
}

impl Repository {
    /// Parses `registry/path`.
    pub fn parse(text: &str, rules: &Rules) -> Result<Self, ReferenceError> {
        if text.is_empty() {
            return Err(ReferenceError::Empty);
        }
        if let Some(place) = text.strip_prefix(git::PREFIX).filter(|_| rules.git) {
            let failed = |source| ReferenceError::Git { text: text.to_owned(), source };
            let (registry, path) = git::parse_place(place).map_err(failed)?;
            return Ok(Self { registry, path });
        }
        let (registry, path) = match text.split_once('/') {
            Some((first, rest)) if is_registry(first) => (first, rest),
            _ => ("", text),
        };
        check_repository(path)?;
        if rules.strict && registry.is_empty() {
            return Err(ReferenceError::RegistryMissing(text.to_owned()));
        }
        let registry = match registry {
            "" => rules.registry_default.as_str(),
            other => other,
        };
        let registry = canonical_registry(registry)?;
        let implicit = registry == DOCKER_HUB && !path.contains('/');
        if implicit && rules.strict {
            return Err(ReferenceError::NamespaceMissing(text.to_owned()));
        }
        let path = if implicit { format!("library/{path}") } else { path.to_owned() };
        Ok(Self { registry, path })
    }

    /// The registry's host and port; empty if none was written and there is no default.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The path in the registry.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// A tag in this repository.
    pub fn tag(&self, tag: &str) -> Result<Reference, ReferenceError> {
        match self.git_source() {
            Some(_) => git::check_ref(tag)
                .map_err(|source| ReferenceError::Git { text: tag.to_owned(), source })?,
            None => check_tag(tag)?,
        }
        Ok(self.reference(Identifier::Tag(tag.to_owned())))
    }

    /// A digest in this repository.
    pub fn digest(&self, digest: Digest) -> Reference {
        self.reference(Identifier::Digest(digest))
    }

    /// What a package is built from, if this is no repository of a registry.
    pub fn git_source(&self) -> Option<GitSource> {
        git::source(&self.registry, &self.path)
    }

    /// Plain HTTP is spoken to this machine and to private networks, as container tools do.
    pub fn scheme(&self) -> &'static str {
        if is_plain(&self.registry) { "http" } else { "https" }
    }

    /// Whether the registry is on this machine.
    pub fn is_loopback(&self) -> bool {
        let host = bare_host(&self.registry);
        let loopback = host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        loopback || host == "localhost" || host.ends_with(".localhost")
    }

    fn reference(&self, identifier: Identifier) -> Reference {
        let mut reference =
            Reference { repository: self.clone(), identifier, original: String::new() };
        reference.original = reference.name();
        reference
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.registry.is_empty() {
            return formatter.write_str(&self.path);
        }
        write!(formatter, "{}/{}", self.registry, self.path)
    }
}

impl Identifier {
    /// The tag, if it is one.
    pub fn as_tag(&self) -> Option<&str> {
        match self {
            Self::Tag(tag) => Some(tag),
            Self::Digest(_) => None,
        }
    }

    /// The digest, if it is one.
    pub fn as_digest(&self) -> Option<&Digest> {
        match self {
            Self::Digest(digest) => Some(digest),
            Self::Tag(_) => None,
        }
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => formatter.write_str(tag),
            Self::Digest(digest) => write!(formatter, "{digest}"),
        }
    }
}

impl Reference {
    /// Parses a reference by these rules.
    pub fn parse(text: &str, rules: &Rules) -> Result<Self, ReferenceError> {
        if rules.git && text.starts_with(git::PREFIX) {
            return Self::parse_git(text, rules);
        }
        match text.split_once('@') {
            None => Self::parse_tag(text, rules),
            Some((base, digest)) => Self::parse_digest(text, base, digest, rules),
        }
    }

    /// The repository.
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// The tag or digest. A reference with both means the digest.
    pub fn identifier(&self) -> &Identifier {
        &self.identifier
    }

    /// The text as it was written.
    pub fn as_written(&self) -> &str {
        &self.original
    }

    /// The full name, nothing left unsaid.
    pub fn name(&self) -> String {
        match &self.identifier {
            Identifier::Tag(reference) if self.repository.git_source().is_some() => {
                format!("{}@{reference}", self.repository)
            }
            Identifier::Tag(tag) => format!("{}:{tag}", self.repository),
            Identifier::Digest(digest) => format!("{}@{digest}", self.repository),
        }
    }

    /// A ref stands where images have a tag; what was built of one has a digest, as images do.
    fn parse_git(text: &str, rules: &Rules) -> Result<Self, ReferenceError> {
        let failed = |source| ReferenceError::Git { text: text.to_owned(), source };
        let (_, reference) = git::split_ref(text).map_err(failed)?;
        let place = text.split_once('@').map_or(text, |(place, _)| place);
        let repository = Repository::parse(place, rules)?;
        let identifier = match reference.map(|it| (it, it.parse::<Digest>())) {
            None => Identifier::Tag("HEAD".to_owned()),
            Some((_, Ok(digest))) => Identifier::Digest(digest),
            Some((name, Err(_))) => {
                git::check_ref(name).map_err(failed)?;
                Identifier::Tag(name.to_owned())
            }
        };
        Ok(Self { repository, identifier, original: text.to_owned() })
    }

    fn parse_tag(text: &str, rules: &Rules) -> Result<Self, ReferenceError> {
        let (base, tag) = split_tag(text)?;
        let tag = match tag {
            Some(tag) => tag,
            None if rules.strict => return Err(ReferenceError::TagMissing(text.to_owned())),
            None => "latest",
        };
        check_tag(tag)?;
        let repository = Repository::parse(base, rules)?;
        let identifier = Identifier::Tag(tag.to_owned());
        Ok(Self { repository, identifier, original: text.to_owned() })
    }

    fn parse_digest(
        text: &str,
        base: &str,
        digest: &str,
        rules: &Rules,
    ) -> Result<Self, ReferenceError> {
        if digest.contains('@') {
            return Err(ReferenceError::TwoDigests(text.to_owned()));
        }
        let failed = |source| ReferenceError::Digest { text: text.to_owned(), source };
        let digest: Digest = digest.parse().map_err(failed)?;
        if digest.algorithm() == Algorithm::Sha512 && !rules.sha512 {
            return Err(failed(DigestError::Algorithm("sha512".to_owned())));
        }
        // A tag before the digest is a comment for people: it must be well-formed, and is not used.
        let (base, tag) = split_tag(base)?;
        tag.map_or(Ok(()), check_tag)?;
        let repository = Repository::parse(base, rules)?;
        let identifier = Identifier::Digest(digest);
        Ok(Self { repository, identifier, original: text.to_owned() })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name())
    }
}

impl TryFrom<String> for Reference {
    type Error = ReferenceError;

    fn try_from(text: String) -> Result<Self, ReferenceError> {
        Self::parse(&text, &Rules::weak().any_digest().git_sources())
    }
}

impl From<Reference> for String {
    fn from(reference: Reference) -> Self {
        reference.original
    }
}

/// Splits a trailing `:tag` off, without taking a port for a tag.
fn split_tag(text: &str) -> Result<(&str, Option<&str>), ReferenceError> {
    match text.rsplit_once(':') {
        Some((_, tag)) if tag.contains('/') => Ok((text, None)),
        Some((_, "")) => Err(ReferenceError::TagEmpty(text.to_owned())),
        Some((base, tag)) => Ok((base, Some(tag))),
        None => Ok((text, None)),
    }
}

/// How names begin that begin as somebody wrote: the registry in its one spelling, letters after
/// it as they are. A beginning without a slash may be a registry or the first letters of one.
pub fn canonical_prefixes(written: &str) -> Vec<String> {
    match written.split_once('/') {
        Some((first, rest)) if is_registry(first) => {
            let first = canonical_registry(first).unwrap_or_else(|_| first.to_ascii_lowercase());
            vec![format!("{first}/{rest}")]
        }
        Some(_) => vec![written.to_owned()],
        None => {
            let letters = written.to_ascii_lowercase();
            let whole = canonical_registry(written).ok().filter(|whole| *whole != letters);
            [letters].into_iter().chain(whole.filter(|_| is_registry(written))).collect()
        }
    }
}

/// The one spelling of a registry. None is spelled as nothing.
pub fn canonical_registry(written: &str) -> Result<String, ReferenceError> {
    if written.is_empty() {
        return Ok(String::new());
    }
    let registry = canonical::registry(written);
    let registry = registry.ok_or_else(|| ReferenceError::Registry(written.to_owned()))?;
    Ok(if registry == DOCKER_HUB_ALIAS { DOCKER_HUB.to_owned() } else { registry })
}

fn check_repository(path: &str) -> Result<(), ReferenceError> {
    if path.len() <= REPOSITORY_LENGTH_MAX && is_path(path) {
        Ok(())
    } else {
        Err(ReferenceError::Repository(path.to_owned()))
    }
}

fn check_tag(tag: &str) -> Result<(), ReferenceError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let length = (1..=TAG_LENGTH_MAX).contains(&tag.len());
    // `.` and `..` would be steps in the address of a manifest.
    if length && tag.bytes().all(allowed) && !tag.starts_with(['-', '.']) {
        Ok(())
    } else {
        Err(ReferenceError::Tag(tag.to_owned()))
    }
}

fn is_plain(registry: &str) -> bool {
    registry.starts_with("localhost:") || is_plain_host(bare_host(registry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn weak(text: &str) -> Result<Reference, ReferenceError> {
        Reference::parse(text, &Rules::weak())
    }

    #[test]
    fn what_is_left_out_is_filled_in() {
        let check = |text: &str, name: &str| assert_eq!(weak(text).unwrap().name(), name);
        check("nginx", "index.docker.io/library/nginx:latest");
        check(
            "docker.io/crossplane/provider-gcp:v0.14.0",
            "index.docker.io/crossplane/provider-gcp:v0.14.0",
        );
        check("localhost/a", "localhost/a:latest");
        check("localhost:5000/a/b", "localhost:5000/a/b:latest");
        check("[::1]:5000/a:v1", "[::1]:5000/a:v1");
    }

    #[test]
    fn the_default_registry_can_be_another() {
        let rules = Rules::weak().default_registry("xpkg.example.org");
        let reference = Reference::parse("acme/provider:v1", &rules).unwrap();
        assert_eq!(reference.name(), "xpkg.example.org/acme/provider:v1");
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let check = |text: &str, rules: &Rules, expected: &str| {
            assert_eq!(Reference::parse(text, rules).unwrap_err().to_string(), expected);
        };
        check("", &Rules::weak(), "a reference needs a repository name");
        check("a/b:", &Rules::weak(), "reference `a/b:` ends in a colon without a tag");
        check("a/b", &Rules::strict(), "reference `a/b` has neither a tag nor a digest");
        check("a/b:v1", &Rules::strict(), "reference `a/b` does not name its registry");
        check(
            "r.io/a b:v1",
            &Rules::weak(),
            "repository `a b` may only have lower-case letters and digits with `_` `-` `.` `/` between them, at most 255 in all",
        );
        check(
            "docker.io/a:v1",
            &Rules::strict(),
            "reference `docker.io/a` does not name its Docker Hub namespace (for example `library/`)",
        );
        check(
            "r.io:x/a:v1",
            &Rules::weak(),
            "registry `r.io:x` is not a host name or address with an optional port",
        );
    }

    #[test]
    fn sha512_is_accepted_only_when_asked_for() {
        let text = format!("r.io/a@sha512:{}", "0".repeat(128));
        assert!(weak(&text).is_err());
        assert!(Reference::parse(&text, &Rules::weak().any_digest()).is_ok());
    }

    #[test]
    fn plain_http_is_for_this_machine_and_private_networks() {
        let check = |text: &str, scheme: &str| {
            assert_eq!(weak(text).unwrap().repository().scheme(), scheme, "{text}");
        };
        check("localhost:5000/a", "http");
        check("localhost/a", "https");
        check("10.1.2.3/a", "http");
        check("192.168.1.1:80/a", "http");
        check("127.0.0.1:5000/a", "http");
        check("127.0.0.2:5000/a", "https");
        check("registry.localhost:5000/a", "http");
        check("r.io/a", "https");
    }

    proptest! {
        #[test]
        fn the_full_name_parses_to_itself(
            path in "[a-z0-9]{1,8}([/._-][a-z0-9]{1,8}){0,3}",
            tag in "[A-Za-z0-9_][A-Za-z0-9_.-]{0,19}",
        ) {
            let reference = weak(&format!("r.example.org/{path}:{tag}")).unwrap();
            prop_assert_eq!(Reference::parse(&reference.name(), &Rules::strict()).unwrap().name(), reference.name());
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,300}") {
            let _ = weak(&text);
        }
    }
}
