//! From paths to routes, read from the right.
//!
//! Names of repositories hold slashes and may hold words of the protocol (`a/blobs` is a fine
//! name), so the end of a path says what is wanted and the rest is the name. Nothing is decoded
//! but the colon of a digest: a path with any other escape names nothing we could have.

use crate::limits::TARGET_LENGTH_MAX;
use crate::name::{Name, Selector, Tag};
use oci::Digest;

/// What a path asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/v2/`
    Base,
    /// `/v2/_catalog`
    Catalog,
    /// `/v2/_oci/ext/discover`
    Discover,
    /// `/v2/<name>/blobs/<digest>`
    Blob(Name, Digest),
    /// `/v2/<name>/blobs/uploads/`
    Uploads(Name),
    /// `/v2/<name>/blobs/uploads/<id>`
    Upload(Name, String),
    /// `/v2/<name>/manifests/<tag or digest>`
    Manifest(Name, Selector),
    /// `/v2/<name>/tags/list`
    Tags(Name),
    /// `/v2/<name>/referrers/<digest>`
    Referrers(Name, Digest),
    /// `/healthz`
    Health,
    /// `/readyz`
    Ready,
    /// `/metrics`
    Metrics,
}

/// Why a path asks for nothing we have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Misroute {
    /// No address of ours.
    NotFound,
    /// The name of a repository is not one.
    Name(String),
    /// A digest is not one.
    Digest(String),
    /// A tag is not one.
    Tag(String),
}

impl Route {
    /// Reads a path.
    pub(crate) fn parse(path: &str) -> Result<Self, Misroute> {
        if path.len() > TARGET_LENGTH_MAX {
            return Err(Misroute::NotFound);
        }
        match path {
            "/healthz" => return Ok(Self::Health),
            "/readyz" => return Ok(Self::Ready),
            "/metrics" => return Ok(Self::Metrics),
            _ => {}
        }
        let rest = match path.strip_prefix("/v2") {
            Some("" | "/") => return Ok(Self::Base),
            Some("/_catalog") => return Ok(Self::Catalog),
            Some("/_oci/ext/discover") => return Ok(Self::Discover),
            Some(rest) => rest.strip_prefix('/').ok_or(Misroute::NotFound)?,
            None => return Err(Misroute::NotFound),
        };
        Self::of_repository(rest)
    }

    fn of_repository(rest: &str) -> Result<Self, Misroute> {
        let (front, last) = rest.rsplit_once('/').ok_or(Misroute::NotFound)?;
        if let Some(front) = strip_word(front, "uploads")
            && let Some(name) = strip_word(front, "blobs")
        {
            let name = parse_name(name)?;
            return Ok(match last {
                "" => Self::Uploads(name),
                id => Self::Upload(name, id.to_owned()),
            });
        }
        let (name, word) = front.rsplit_once('/').ok_or(Misroute::NotFound)?;
        match (word, last) {
            ("blobs", "uploads") => Ok(Self::Uploads(parse_name(name)?)),
            ("blobs", digest) => Ok(Self::Blob(parse_name(name)?, parse_digest(digest)?)),
            ("manifests", reference) => {
                Ok(Self::Manifest(parse_name(name)?, parse_selector(reference)?))
            }
            ("referrers", digest) => Ok(Self::Referrers(parse_name(name)?, parse_digest(digest)?)),
            ("tags", "list") => Ok(Self::Tags(parse_name(name)?)),
            _ => Err(Misroute::NotFound),
        }
    }

    /// The same for another repository, if the route is about one.
    pub(crate) fn renamed(self, name: Name) -> Self {
        match self {
            Self::Blob(_, digest) => Self::Blob(name, digest),
            Self::Uploads(_) => Self::Uploads(name),
            Self::Upload(_, id) => Self::Upload(name, id),
            Self::Manifest(_, selector) => Self::Manifest(name, selector),
            Self::Tags(_) => Self::Tags(name),
            Self::Referrers(_, digest) => Self::Referrers(name, digest),
            other => other,
        }
    }

    /// The repository, if the route is about one.
    pub(crate) fn repository(&self) -> Option<&Name> {
        match self {
            Self::Blob(name, _)
            | Self::Uploads(name)
            | Self::Upload(name, _)
            | Self::Manifest(name, _)
            | Self::Tags(name)
            | Self::Referrers(name, _) => Some(name),
            Self::Base
            | Self::Catalog
            | Self::Discover
            | Self::Health
            | Self::Ready
            | Self::Metrics => None,
        }
    }
}

fn strip_word<'path>(path: &'path str, word: &str) -> Option<&'path str> {
    path.strip_suffix(word)?.strip_suffix('/')
}

fn parse_name(text: &str) -> Result<Name, Misroute> {
    Name::parse(text).ok_or_else(|| Misroute::Name(text.to_owned()))
}

fn parse_digest(text: &str) -> Result<Digest, Misroute> {
    let text = text.replace("%3A", ":").replace("%3a", ":");
    text.parse().map_err(|_| Misroute::Digest(text))
}

fn parse_selector(text: &str) -> Result<Selector, Misroute> {
    if text.contains([':', '%']) {
        return Ok(Selector::Digest(parse_digest(text)?));
    }
    Tag::parse(text).map(Selector::Tag).ok_or_else(|| Misroute::Tag(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    #[test]
    fn paths_are_read_from_the_right() {
        let digest: Digest = format!("sha256:{HEX}").parse().unwrap();
        let tag = Selector::Tag(Tag::parse("v1").unwrap());
        let check =
            |path: &str, expected: Route| assert_eq!(Route::parse(path), Ok(expected), "{path}");
        check("/v2", Route::Base);
        check("/v2/", Route::Base);
        check("/v2/_catalog", Route::Catalog);
        check("/v2/_oci/ext/discover", Route::Discover);
        check("/v2/a/manifests/v1", Route::Manifest(name("a"), tag.clone()));
        check("/v2/a/blobs/uploads/manifests/v1", Route::Manifest(name("a/blobs/uploads"), tag));
        check(&format!("/v2/a/b/blobs/sha256:{HEX}"), Route::Blob(name("a/b"), digest.clone()));
        check(&format!("/v2/a/b/blobs/sha256%3A{HEX}"), Route::Blob(name("a/b"), digest.clone()));
        check("/v2/a/blobs/uploads/", Route::Uploads(name("a")));
        check("/v2/a/blobs/uploads", Route::Uploads(name("a")));
        check("/v2/a/blobs/blobs/uploads/x", Route::Upload(name("a/blobs"), "x".to_owned()));
        check("/v2/tags/list/tags/list", Route::Tags(name("tags/list")));
        check(&format!("/v2/a/referrers/sha256:{HEX}"), Route::Referrers(name("a"), digest));
    }

    #[test]
    fn paths_that_climb_or_hide_lead_nowhere() {
        for path in [
            "",
            "/",
            "/v1/",
            "/v2x/a/tags/list",
            "/v2/a",
            "/v2//tags/list",
            "/v2/../tags/list",
            "/v2/a/../../b/tags/list",
            "/v2/a%2fb/tags/list",
            "/v2/a/manifests/",
            "/v2/a/manifests/..",
            "/v2/a/manifests/v1%00",
            "/v2/A/tags/list",
            "/v2/a/blobs/sha256:../../../../etc/passwd",
            "/v2/a/blobs/md5:00",
            "/v2/_catalog/tags/list",
            "/v2/a\\b/tags/list",
        ] {
            assert!(Route::parse(path).is_err(), "{path}");
        }
        assert!(Route::parse(&format!("/v2/{}/tags/list", "a/".repeat(1 << 16))).is_err());
    }
}
