//! Packages out of Git: which of a commit's files are a package's, and how a user is told of them.

mod packages;

pub(crate) use packages::{AllowedPlace, GitPackages, build_source};

use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::output;
use crate::settings::Settings;
use ::git::{Checkout, GitAccess, GitError, WantedFiles, fetch_files};
use oci::{Reference, Rules};
use std::path::PathBuf;

/// How Git is reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct GitSettings {
    /// Where programs are looked for, proxies, and where temporary files may be put.
    pub(crate) environment: Settings,
    /// Certificate authorities to trust instead of the system's.
    pub(crate) ca_file: Option<PathBuf>,
}

impl GitSettings {
    fn access(&self) -> GitAccess {
        let proxies = &self.environment.proxies;
        let proxies = [
            ("http_proxy", &proxies.http),
            ("https_proxy", &proxies.https),
            ("all_proxy", &proxies.all),
            ("no_proxy", &proxies.none),
        ];
        let named = proxies.into_iter().filter_map(|(name, it)| Some((name, it.clone()?)));
        GitAccess {
            path: self.environment.path.clone(),
            proxies: named.collect(),
            temporary: self.environment.temporary.clone(),
            ca_file: self.ca_file.clone(),
            interruption: || interrupt::check().err().map(|error| error.to_string()),
        }
    }
}

/// Tells of what is not part of the package though the repository names it.
pub(crate) fn warn_of_submodules(checkout: &Checkout) {
    for path in &checkout.submodules {
        output::warn(format_args!("the submodule {path} is not followed"));
    }
}

/// Reads a text as a Git source; nothing if it does not begin like one.
pub(crate) fn parse_source(text: &str) -> Outcome<Option<Reference>> {
    if !text.starts_with("git+") {
        return Ok(None);
    }
    let rules = Rules::weak().git_sources();
    let parsed = Reference::parse(text, &rules).map_err(|error| {
        Failure::new(
            format!("`{text}` is not a package in Git"),
            "a package in Git looks like git+https://example.org/team/platform//packages/app@v1.0.0",
        )
        .because(&error)
    })?;
    Ok(Some(parsed))
}

/// Fetches the files of a package that a Git source names now.
pub(crate) fn fetch_source(reference: &Reference, settings: &GitSettings) -> Outcome<Checkout> {
    let bytes_max = xpkg::Limits::default().package_bytes_max;
    let wanted = WantedFiles { is_wanted: xpkg::source::is_yaml, bytes_max };
    fetch_files(reference, wanted, &settings.access()).map_err(tell_failure)
}

fn tell_failure(error: GitError) -> Failure {
    let mut failure = Failure::new(error.message, error.hint);
    failure.causes.extend(error.why);
    failure
}
