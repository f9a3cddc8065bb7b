//! Credentials: where `docker login` and `podman login` leave them, and how to leave them there.
//!
//! A [`Keychain`] is a list of config files (or Kubernetes pull secrets, which have the same
//! form), asked in order. Within a file the longest key that is a prefix of the repository wins,
//! as Podman does; credential helpers named by a file are run for hosts they are named for.
//!
//! ```text
//! {"auths":       {"r.io/team": {"auth": "dXNlcjpwYXNz"},  user:password in base64
//!                  "r.io":      {"identitytoken": "…"}},   a refresh token
//!  "credHelpers": {"gcr.io": "gcloud"},                    docker-credential-gcloud
//!  "credsStore":  "secretservice"}                         for all other hosts
//! ```

mod edit;
mod file;
mod helper;

pub use edit::{login, logout};
pub use file::ConfigFile;
pub use helper::Helpers;

use crate::Error;
use crate::error::Cause;
use oci::Repository;
use std::fmt;
use std::path::PathBuf;

/// What to show a registry.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// Nothing.
    Anonymous,
    /// A user and a password.
    Basic {
        /// The user.
        user: String,
        /// The password.
        password: String,
    },
    /// A refresh token, exchanged for access tokens by OAuth 2.
    IdentityToken(String),
    /// An access token, shown as it is.
    Bearer(String),
}

/// Secrets stay out of logs.
impl fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anonymous => formatter.write_str("Anonymous"),
            Self::Basic { user, .. } => write!(formatter, "Basic({user})"),
            Self::IdentityToken(_) => formatter.write_str("IdentityToken"),
            Self::Bearer(_) => formatter.write_str("Bearer"),
        }
    }
}

/// Where credentials are looked up.
#[derive(Debug, Clone, Default)]
pub struct Keychain {
    fixed: Option<Credential>,
    files: Vec<ConfigFile>,
    helpers: Helpers,
}

impl Keychain {
    /// No credentials for anyone.
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// The same credential for everyone; only for a client that talks to one registry.
    pub fn fixed(credential: Credential) -> Self {
        Self { fixed: Some(credential), ..Self::default() }
    }

    /// Config files in the order they are asked; files that do not exist are skipped.
    pub async fn from_files(paths: &[PathBuf]) -> Result<Self, Error> {
        let mut files = Vec::new();
        for path in paths {
            files.extend(ConfigFile::read(path).await?);
        }
        Ok(Self { files, ..Self::default() })
    }

    /// One config at hand, such as the `.dockerconfigjson` of a Kubernetes secret.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Error> {
        Ok(Self { files: vec![ConfigFile::parse(bytes, "a secret")?], ..Self::default() })
    }

    /// This keychain, and then another.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        self.fixed = self.fixed.or(other.fixed);
        self.files.extend(other.files);
        self
    }

    /// Credential helpers are run this way.
    #[must_use]
    pub fn with_helpers(mut self, helpers: Helpers) -> Self {
        self.helpers = helpers;
        self
    }

    /// What to show for this repository.
    pub async fn credential(&self, repository: &Repository) -> Result<Credential, Error> {
        if let Some(credential) = &self.fixed {
            return Ok(credential.clone());
        }
        let failed =
            |cause: Cause| Error::Credentials { registry: repository.registry().to_owned(), cause };
        for file in &self.files {
            if let Some(found) = file.find(repository, &self.helpers).await.map_err(failed)? {
                return Ok(found);
            }
        }
        Ok(Credential::Anonymous)
    }
}
