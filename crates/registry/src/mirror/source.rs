//! Where a prefix leads: `docker.io=https://registry-1.docker.io`.

use crate::name::Name;
use oci::reference::{DOCKER_HUB, canonical_registry};
use oci::{Repository, Rules};
use std::fmt;

/// Names under which Docker Hub goes; credentials are kept under one of them.
const DOCKER_HUB_NAMES: [&str; 2] = ["docker.io", "registry-1.docker.io"];

/// A prefix of repositories, and the registry they come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    prefix: Name,
    secure: bool,
    host: String,
    path: String,
}

/// Why a text says no such thing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// There is no `=`.
    #[error("`{0}` has no `=` between a prefix and an address")]
    Form(String),
    /// The prefix could not begin the name of a repository.
    #[error("`{0}` cannot begin the name of a repository")]
    Prefix(String),
    /// The address has a user or a password in it, where everybody could read them.
    #[error("the address of the registry for `{0}` has credentials in it")]
    Credentials(String),
    /// The address is not one of a registry.
    #[error("`{0}` is not the address of a registry")]
    Address(String),
}

impl Source {
    /// Reads `prefix=scheme://host[:port][/path]`.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        let form = || SourceError::Form(text.to_owned());
        let (prefix, address) = text.split_once('=').ok_or_else(form)?;
        let prefix = Name::parse(prefix).ok_or_else(|| SourceError::Prefix(prefix.to_owned()))?;
        if address.contains('@') {
            return Err(SourceError::Credentials(prefix.to_string()));
        }
        let unknown = || SourceError::Address(address.to_owned());
        let (secure, rest) = match address.split_once("://") {
            Some(("https", rest)) => (true, rest),
            Some(("http", rest)) => (false, rest),
            _ => return Err(unknown()),
        };
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let path = path.trim_end_matches('/');
        if !path.is_empty() && Name::parse(path).is_none() {
            return Err(unknown());
        }
        let host = canonical_registry(&full_host(host, secure)).map_err(|_| unknown())?;
        let source = Self { prefix, secure, host, path: path.to_owned() };
        source.at("x").ok_or_else(unknown)?;
        Ok(source)
    }

    /// What names of repositories begin with.
    pub fn prefix(&self) -> &Name {
        &self.prefix
    }

    /// Whether TLS is spoken; otherwise it is plain HTTP.
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// The registry's host, for messages.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Any repository of the registry, to look credentials up for.
    pub fn example(&self) -> Option<Repository> {
        self.at("x")
    }

    /// Whether a repository is one of these.
    pub(super) fn covers(&self, name: &Name) -> bool {
        self.rest(name).is_some()
    }

    /// Whether its repositories have names that begin with another's prefix.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        self.prefix != other.prefix && other.covers(&self.prefix)
    }

    /// Where a repository comes from; `None` if the prefix is all there is to its name.
    pub(super) fn repository(&self, name: &Name) -> Option<Repository> {
        self.at(self.rest(name)?)
    }

    /// What follows the prefix.
    fn rest<'name>(&self, name: &'name Name) -> Option<&'name str> {
        match name.as_str().strip_prefix(self.prefix.as_str())? {
            "" => Some(""),
            rest => rest.strip_prefix('/'),
        }
    }

    fn at(&self, rest: &str) -> Option<Repository> {
        let parts = [self.path.as_str(), rest].into_iter().filter(|part| !part.is_empty());
        let path = parts.collect::<Vec<_>>().join("/");
        let found = Repository::parse(&format!("{}/{path}", self.host), &Rules::weak()).ok()?;
        (found.registry() == self.host).then_some(found)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(formatter, "{scheme}://{}", self.host)?;
        if self.path.is_empty() { Ok(()) } else { write!(formatter, "/{}", self.path) }
    }
}

/// A host that nobody takes for the first part of a path.
fn full_host(host: &str, secure: bool) -> String {
    if DOCKER_HUB_NAMES.contains(&host) {
        return DOCKER_HUB.to_owned();
    }
    if host.contains(['.', ':']) || host.is_empty() || host == "localhost" {
        return host.to_owned();
    }
    format!("{host}:{}", if secure { 443 } else { 80 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_leads_to_a_registry_and_a_path_in_it() {
        let check = |text: &str, name: &str, expected: Option<&str>| {
            let source = Source::parse(text).unwrap();
            let found = source.repository(&Name::parse(name).unwrap());
            assert_eq!(found.map(|it| it.to_string()).as_deref(), expected, "{text} {name}");
        };
        let hub = "docker.io=https://registry-1.docker.io";
        check(hub, "docker.io/library/alpine", Some("index.docker.io/library/alpine"));
        check(hub, "docker.io/alpine", Some("index.docker.io/library/alpine"));
        check(hub, "docker.io", None);
        check(hub, "docker.iox/a", None);
        check("up=https://r.example.org/team/", "up/a/b", Some("r.example.org/team/a/b"));
        check("up=https://r.example.org/team", "up", Some("r.example.org/team"));
        check("a/b=http://127.0.0.1:5000", "a/b/c", Some("127.0.0.1:5000/c"));
        check("a=http://upstream", "a/c", Some("upstream:80/c"));
        check("a=https://R.example.org:443", "a/c", Some("r.example.org/c"));
        assert_eq!(Source::parse("a=http://up/x").unwrap().to_string(), "http://up:80/x");
    }

    #[test]
    fn what_leads_nowhere_is_refused() {
        for text in [
            "",
            "docker.io",
            "=https://r.io",
            "A=https://r.io",
            "../x=https://r.io",
            "a=r.io",
            "a=ftp://r.io",
            "a=https://",
            "a=https:///x",
            "a=https://r.io/X",
            "a=https://r.io/x?y",
            "a=https://r.io/../x",
            "a=https://r.io#x",
            "a=https://user:secret@r.io",
        ] {
            assert!(Source::parse(text).is_err(), "{text}");
        }
        let told = Source::parse("a=https://user:secret@r.io").unwrap_err().to_string();
        assert!(!told.contains("secret"), "{told}");
    }
}
