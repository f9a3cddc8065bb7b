//! Packages that the manager builds from Git: from repositories that it was told to trust, a few at a
//! time, and beside everything else it does.

use super::{GitSettings, fetch_source};
use crate::command::build::{self, Examples, File, Report};
use crate::directory::Selecting;
use crate::failure::{Failure, Outcome};
use controller::fetch::GitBuilder;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use oci::{Reference, Repository, Rules};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Builds that go on at once.
const BUILDS_MAX: usize = 2;

/// How the addresses of repositories begin that packages may come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AllowedPlace(String);

impl AllowedPlace {
    /// Reads `https://HOST[/PATH]`; the last part is a whole one.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let place = text.trim_end_matches('/');
        let rules = Rules::weak().git_sources();
        // A host alone is as good as a path: any repository on it begins so.
        let probe = format!("git+{place}/any");
        let parsed = Repository::parse(&probe, &rules).map_err(|error| error.to_string())?;
        let address = parsed.git_source().map(|source| source.address).unwrap_or_default();
        let start = address.strip_suffix("any").filter(|_| !place.contains("//any"));
        start.map(|start| Self(start.to_owned())).ok_or_else(|| format!("`{text}` is no address"))
    }

    fn covers(&self, reference: &Reference) -> bool {
        let source = reference.repository().git_source();
        source.is_some_and(|source| format!("{}/", source.address).starts_with(&self.0))
    }
}

/// Builds packages for the manager.
pub(crate) struct GitPackages {
    settings: GitSettings,
    allowed: Vec<AllowedPlace>,
    turns: Arc<Semaphore>,
}

impl GitPackages {
    /// Builds from these places, and no others.
    pub(crate) fn new(settings: GitSettings, allowed: Vec<AllowedPlace>) -> Self {
        Self { settings, allowed, turns: Arc::new(Semaphore::new(BUILDS_MAX)) }
    }
}

impl GitBuilder for GitPackages {
    fn build(&self, reference: Reference, to: PathBuf) -> BoxFuture<'static, Result<(), String>> {
        if !self.allowed.iter().any(|place| place.covers(&reference)) {
            let why = "its repository is none that --allow-git-source allows".to_owned();
            return async { Err(why) }.boxed();
        }
        let (settings, turns) = (self.settings.clone(), Arc::clone(&self.turns));
        let built = async move {
            let _turn = turns.acquire_owned().await.map_err(|error| error.to_string())?;
            let work = move || build_source(&reference, &settings, to);
            let built = tokio::task::spawn_blocking(work).await;
            let built = built.map_err(|error| error.to_string())?;
            built.map(drop).map_err(|failure| in_one_line(&failure))
        };
        built.boxed()
    }
}

/// Fetches a source and builds its package into a file, without a word.
pub(crate) fn build_source(
    reference: &Reference,
    settings: &GitSettings,
    to: PathBuf,
) -> Outcome<String> {
    let checkout = fetch_source(reference, settings)?;
    let request = build::Request {
        root: checkout.root(),
        examples: Examples::Below,
        selecting: Selecting::default(),
        file: File::At(to),
        runtime: None,
        layers: Vec::new(),
        kind: None,
        strict: false,
        report: Report::Silent,
        ca_file: None,
    };
    build::build(&request, &settings.environment)?;
    Ok(checkout.commit)
}

fn in_one_line(failure: &Failure) -> String {
    let parts = std::iter::once(&failure.message).chain(&failure.causes);
    parts.map(|part| part.trim().replace('\n', " ")).collect::<Vec<_>>().join(": ")
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
