//! What answers: the catalog of a registry, or one in a file.

use crate::args::registry::RegistryArguments;
use crate::cluster::kubeconfig::{self, Choice};
use crate::failure::{Failure, Outcome};
use crate::registry;
use crate::settings::Settings;
use ::catalog::http::LocalCatalog;
use ::catalog::{ImportError, Index, IndexError};
use oci::{Repository, Rules};
use serde::de::DeserializeOwned;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::remote::Client;
use tempfile::TempDir;

/// The largest answer that is read.
const ANSWER_SIZE_MAX: usize = 64 << 20;
/// What to do if there is no catalog.
const NO_CATALOG: &str = "ask a registry that `apron registry serve` or `apron up` serves";
/// What a compressed file begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Whom to ask.
pub(crate) struct CatalogChoice {
    /// A registry, by its host.
    pub(crate) host: Option<String>,
    /// A catalog in a file.
    pub(crate) file: Option<PathBuf>,
    pub(crate) registry: RegistryArguments,
}

/// A catalog that answers.
pub(super) enum Catalog {
    /// That of a registry; the repository may be any in it.
    Remote(Client, Repository),
    /// One in a file. What was exported is read into a directory that goes with it.
    File { index: Arc<Index>, path: PathBuf, _unpacked: Option<TempDir> },
}

impl Catalog {
    /// The one that was named, else that of the control plane that was brought up here, else the
    /// user's own.
    pub(super) async fn connect(asked: &CatalogChoice, settings: &Settings) -> Outcome<Self> {
        let own_host = || {
            let choice = Choice { kubeconfig: None, context: None, impersonation: None };
            kubeconfig::own_registry(choice, settings)
                .ok()
                .flatten()
                .map(|it| it.address.to_string())
        };
        let own_file = || own_path(settings).filter(|path| path.exists());
        let host = asked.host.clone().or_else(|| own_host().filter(|_| asked.file.is_none()));
        if let Some(host) = host {
            let place = Repository::parse(&format!("{host}/catalog"), &Rules::strict());
            let place = place.map_err(|error| {
                let hint = "name a host, such as registry.example.org or 127.0.0.1:5000";
                Failure::new(format!("`{host}` is not a registry"), hint).because(&error)
            })?;
            return Ok(Self::Remote(registry::client(&asked.registry, settings).await?, place));
        }
        match asked.file.clone().or_else(own_file) {
            Some(path) => Self::open(&path),
            None => Err(Failure::new(
                "it is not said which catalog to ask",
                "name a registry with --registry HOST or a file with --catalog FILE, make a catalog with \
                 `apron catalog add`, or bring up a control plane with `apron up` and use its kubeconfig",
            )),
        }
    }

    /// A catalog in a file, as it is kept or as it was exported.
    pub(super) fn open(path: &Path) -> Outcome<Self> {
        let mut file = fs_err::File::open(path).map_err(|error| Failure::file(&error))?;
        let mut magic = [0; 2];
        if file.read_exact(&mut magic).is_err() || magic != GZIP {
            let index = Index::open_named(path).map_err(|error| unusable_catalog(path, &error))?;
            let index = Arc::new(index);
            return Ok(Self::File { index, path: path.to_owned(), _unpacked: None });
        }
        let directory = tempfile::tempdir().map_err(|error| Failure::file(&error))?;
        let index = Index::create(&directory.path().join("catalog.db"));
        let index = Arc::new(index.map_err(|error| unusable_catalog(path, &error))?);
        file.rewind().map_err(|error| Failure::file(&error))?;
        index.import(&mut file).map_err(|error| not_exported(path, &error))?;
        Ok(Self::File { index, path: path.to_owned(), _unpacked: Some(directory) })
    }

    /// A repository with the registry it is in: catalogs in files have that in their names.
    pub(super) fn full_name(&self, repository: &str) -> String {
        match self {
            Self::Remote(_, place) => format!("{}/{repository}", place.registry()),
            Self::File { .. } => repository.to_owned(),
        }
    }

    /// The registry that answers, if it is one.
    pub(super) fn host(&self) -> Option<&str> {
        match self {
            Self::Remote(_, place) => Some(place.registry()),
            Self::File { .. } => None,
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Remote(_, place) => place.registry().to_owned(),
            Self::File { path, .. } => path.display().to_string(),
        }
    }

    /// The answer to a question; none if what it is about is not there.
    pub(super) async fn ask<T: DeserializeOwned>(&self, address: &str) -> Outcome<Option<T>> {
        let Some(bytes) = self.read(address, ANSWER_SIZE_MAX).await? else { return Ok(None) };
        let cannot = format!("cannot ask {} about its packages", self.name());
        let parsed = serde_json::from_slice(&bytes);
        parsed.map(Some).map_err(|error| Failure::new(cannot, NO_CATALOG).because(&error))
    }

    /// The bytes of an answer; none if what it is about is not there.
    pub(super) async fn read(&self, address: &str, limit: usize) -> Outcome<Option<Vec<u8>>> {
        let cannot = || format!("cannot ask {} about its packages", self.name());
        match self {
            Self::Remote(client, place) => {
                let read = client.read_beside(place, address, limit as u64).await;
                read.map_err(|error| registry::failed(cannot(), &error))
            }
            Self::File { index, .. } => {
                let read = LocalCatalog::new(index.clone()).read(address, limit).await;
                read.map_err(|problem| {
                    Failure::new(format!("{}: {}", cannot(), problem.detail()), problem.hint())
                })
            }
        }
    }

    /// The same about something that every catalog answers.
    pub(super) async fn ask_all<T: DeserializeOwned>(&self, address: &str) -> Outcome<T> {
        self.ask(address).await?.ok_or_else(|| {
            Failure::new(format!("{} has no catalog of its packages", self.name()), NO_CATALOG)
        })
    }
}

/// What helps with a file of a format that this version does not know.
const LATER: &str = "use the version of apron that wrote it, or a later one";

/// Where the user's own catalog is.
pub(super) fn own_path(settings: &Settings) -> Option<PathBuf> {
    Some(settings.data_home.as_ref()?.join("apron").join("catalog.db"))
}

/// A catalog to be filled, which is made if it is not there, and anew if its format is an earlier one.
pub(super) fn open_kept(path: &Path) -> Outcome<Index> {
    Index::renew_named(path).map_err(|error| unusable_catalog(path, &error))
}

pub(super) fn unusable_catalog(path: &Path, error: &IndexError) -> Failure {
    let hint = match error {
        IndexError::Later(_) => LATER,
        IndexError::Earlier(_) => {
            "`apron catalog sync` reads its packages again; import again what was imported"
        }
        _ => "check the disk and the path; `apron catalog add` makes a new one",
    };
    Failure::new(format!("cannot use the catalog {}", path.display()), hint).because(error)
}

pub(super) fn not_exported(path: &Path, error: &ImportError) -> Failure {
    let hint = match error {
        ImportError::Format(_) => LATER,
        _ => "name a file that `apron catalog export` wrote",
    };
    Failure::new(format!("cannot read {}", path.display()), hint).because(error)
}
