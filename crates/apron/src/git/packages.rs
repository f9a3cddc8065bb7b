//! Packages that the manager builds from Git: from repositories that it was told to trust, a few at a
//! time, and beside everything else it does.

use super::{GitSettings, fetch_source};
use crate::command::build::{self, Examples, File, Report};
use crate::directory::Selecting;
use crate::failure::{Failure, Outcome};
use ::git::AllowedPlace;
use controller::fetch::GitBuilder;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use oci::Reference;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Builds that go on at once.
const BUILDS_MAX: usize = 2;

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
