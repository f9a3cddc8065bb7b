//! Git repositories as places of packages: `git+https://HOST/REPOSITORY[//DIRECTORY][@REF]`.
//!
//! The text ends up as arguments of `git`, so what may be written is little: one protocol, no
//! credentials, no options, no steps upwards. Plain HTTP is for this machine only.

use super::canonical::{self, bare_host};
use std::net::IpAddr;

/// How Git sources begin.
pub(super) const PREFIX: &str = "git+";
/// The longest path of a repository with its directory.
const PATH_LENGTH_MAX: usize = 255;
/// The longest branch, tag or commit.
const REF_LENGTH_MAX: usize = 128;
/// Digits of a commit, by SHA-1 and by SHA-256.
const COMMIT_LENGTHS: [usize; 2] = [40, 64];

/// What a package is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitSource {
    /// The address of the repository, as `git fetch` takes it.
    pub address: String,
    /// The directory of the package in it; empty for the root.
    pub directory: String,
}

/// Why a text names no Git source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GitReferenceError {
    /// Another protocol.
    #[error("packages come from Git by https only (by http from this machine)")]
    Protocol,
    /// A user or password.
    #[error("an address with a user name or password is written where everybody can read it")]
    Credentials,
    /// The host.
    #[error("the host is not a name or address with an optional port")]
    Host,
    /// The path of the repository or the directory.
    #[error(
        "paths have letters, digits and `_` `-` `.` `~` between slashes, begin with neither `-` nor `.`, and have at most 255 of them"
    )]
    Path,
    /// The branch, tag or commit.
    #[error(
        "a branch, tag or commit has letters, digits and `_` `-` `.` `/`, begins with neither `-` nor `.`, and has at most 128 of them"
    )]
    Ref,
}

/// Splits what stands behind `git+` into the place of a repository and a ref.
pub(super) fn split_ref(text: &str) -> Result<(&str, Option<&str>), GitReferenceError> {
    let (place, reference) = match text.split_once('@') {
        Some((place, reference)) => (place, Some(reference)),
        None => (text, None),
    };
    // `https://user@host/…`: the address goes on behind the sign.
    match reference {
        Some(after) if after.contains('@') || !place_is_whole(place) => {
            Err(GitReferenceError::Credentials)
        }
        _ => Ok((place, reference)),
    }
}

fn place_is_whole(place: &str) -> bool {
    place.split_once("://").is_none_or(|(_, rest)| rest.contains('/'))
}

/// Reads `https://HOST/REPOSITORY[//DIRECTORY]` into what stands for a registry, and a path.
pub(super) fn parse_place(text: &str) -> Result<(String, String), GitReferenceError> {
    let (scheme, rest) = text.split_once("://").ok_or(GitReferenceError::Protocol)?;
    let (host, path) = rest.split_once('/').ok_or(GitReferenceError::Path)?;
    let host = parse_host(scheme, host)?;
    let (repository, directory) = path.split_once("//").unwrap_or((path, ""));
    let directory = directory.trim_end_matches('/');
    let is_sound = is_git_path(repository) && (directory.is_empty() || is_git_path(directory));
    if !is_sound || path.len() > PATH_LENGTH_MAX {
        return Err(GitReferenceError::Path);
    }
    let path = match directory {
        "" => repository.to_owned(),
        directory => format!("{repository}//{directory}"),
    };
    Ok((format!("{PREFIX}{scheme}://{host}"), path))
}

fn parse_host(scheme: &str, written: &str) -> Result<String, GitReferenceError> {
    let other_port = match scheme {
        "https" => ":80",
        "http" => ":443",
        _ => return Err(GitReferenceError::Protocol),
    };
    // A registry's port that goes without saying depends on nothing but its host.
    if written.is_empty() || written.ends_with(other_port) {
        return Err(GitReferenceError::Host);
    }
    let host = canonical::registry(written).ok_or(GitReferenceError::Host)?;
    let name = bare_host(&host);
    let is_here = name == "localhost" || name.parse::<IpAddr>().is_ok_and(|it| it.is_loopback());
    if scheme == "http" && !is_here {
        return Err(GitReferenceError::Protocol);
    }
    Ok(host)
}

fn is_git_path(text: &str) -> bool {
    let allowed =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'~');
    let is_name =
        |name: &str| !name.is_empty() && !name.starts_with(['-', '.']) && name.bytes().all(allowed);
    text.split('/').all(is_name)
}

/// Whether a text is a branch, tag or commit that no `git` takes for anything else.
pub(super) fn check_ref(text: &str) -> Result<(), GitReferenceError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let is_name = |name: &str| {
        let is_odd = name.is_empty() || name.starts_with(['-', '.']) || name.ends_with('.');
        !is_odd
            && name.strip_suffix(".lock").is_none()
            && !name.contains("..")
            && name.bytes().all(allowed)
    };
    let is_sound = text.len() <= REF_LENGTH_MAX && text.split('/').all(is_name);
    if is_sound { Ok(()) } else { Err(GitReferenceError::Ref) }
}

/// Whether a ref is a commit, which never moves.
pub fn is_commit(text: &str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    COMMIT_LENGTHS.contains(&text.len()) && text.bytes().all(is_hex)
}

/// What a registry and path stand for, if that is a Git source.
pub(super) fn source(registry: &str, path: &str) -> Option<GitSource> {
    let base = registry.strip_prefix(PREFIX)?;
    let (repository, directory) = path.split_once("//").unwrap_or((path, ""));
    Some(GitSource { address: format!("{base}/{repository}"), directory: directory.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Identifier, Reference, Repository, Rules};

    fn git(text: &str) -> Result<Reference, crate::ReferenceError> {
        Reference::parse(text, &Rules::weak().git_sources())
    }

    #[test]
    fn a_git_source_names_a_repository_a_directory_and_a_ref() {
        let check = |text: &str, address: &str, directory: &str, reference: &str| {
            let found = git(text).unwrap();
            let source = found.repository().git_source().unwrap();
            assert_eq!((source.address.as_str(), source.directory.as_str()), (address, directory));
            assert_eq!(found.identifier(), &Identifier::Tag(reference.to_owned()));
            assert_eq!(git(&found.name()).unwrap().name(), found.name(), "one spelling");
        };
        check("git+https://e.org/a/B.git", "https://e.org/a/B.git", "", "HEAD");
        check("git+https://E.org:443/a@v1.2", "https://e.org/a", "", "v1.2");
        check("git+https://e.org/a//p/Q/@feature/x", "https://e.org/a", "p/Q", "feature/x");
        check("git+http://127.0.0.1:8080/a@main", "http://127.0.0.1:8080/a", "", "main");
        let commit = "0123456789abcdef0123456789abcdef01234567";
        check(&format!("git+https://e.org/a@{commit}"), "https://e.org/a", "", commit);
        assert!(is_commit(commit) && !is_commit("main") && !is_commit(&commit[1..]));
    }

    #[test]
    fn what_was_built_of_a_git_source_is_named_by_its_digest() {
        let repository = git("git+https://e.org/a//b@main").unwrap().repository().clone();
        let digest = crate::Digest::of(b"x");
        let name = repository.digest(digest.clone()).name();
        assert_eq!(name, format!("git+https://e.org/a//b@{digest}"));
        assert_eq!(git(&name).unwrap().identifier(), &Identifier::Digest(digest));
        assert_eq!(repository.tag("feature/x").unwrap().name(), "git+https://e.org/a//b@feature/x");
        assert!(repository.tag("--x").is_err());
        assert!(Reference::try_from("git+https://e.org/a//b@main".to_owned()).is_ok());
        let rules = Rules::weak().git_sources();
        assert_eq!(Repository::parse(&repository.to_string(), &rules).unwrap(), repository);
    }

    #[test]
    fn what_git_could_take_for_something_else_is_refused() {
        for text in [
            "git+ext::sh -c id",
            "git+ext://e.org/a",
            "git+ssh://e.org/a",
            "git+file:///etc",
            "git+http://e.org/a",
            "git+http://10.0.0.1/a",
            "git+https://e.org",
            "git+https://e.org/",
            "git+https:///a",
            "git+https://u:p@e.org/a",
            "git+https://u@e.org/a@main",
            "git+https://-e.org:x/a",
            "git+https://e.org/-a",
            "git+https://e.org/a/../b",
            "git+https://e.org/.git",
            "git+https://e.org/a b",
            "git+https://e.org/a?x=y",
            "git+https://e.org/a#b",
            "git+https://e.org/a%2e",
            "git+https://e.org/a//../b",
            "git+https://e.org/a//b//c",
            "git+https://e.org/a@",
            "git+https://e.org/a@--upload-pack=id",
            "git+https://e.org/a@a..b",
            "git+https://e.org/a@a:b",
            "git+https://e.org/a@^a",
            "git+https://e.org/a@a.lock",
            "git+https://e.org/a@a//b",
            "git+https://e.org:80/a",
            "git+https://e.org/a\n",
            "git+",
        ] {
            assert!(git(text).is_err(), "{text}");
        }
        // Names of images are never Git sources unless that is said.
        assert!(Reference::parse("git+https://e.org/a@main", &Rules::weak()).is_err());
    }
}
