//! Where a control plane keeps what it has.

use super::Request;
use crate::failure::{Failure, Outcome};
use crate::private;
use crate::settings::Settings;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// One directory for everything.
pub(super) struct Home {
    directory: PathBuf,
    /// Gone when the process is, if nothing is to be kept.
    _passing: Option<TempDir>,
}

impl Home {
    /// The directory that is meant, made if it is not there.
    pub(super) fn open(request: &Request, settings: &Settings) -> Outcome<Self> {
        if request.in_memory && request.data_dir.is_none() {
            let passing = tempfile::Builder::new().prefix("apron-").tempdir_in(&settings.temporary);
            let passing = passing.map_err(|error| Failure::file(&error))?;
            return Ok(Self { directory: passing.path().to_owned(), _passing: Some(passing) });
        }
        let usual = settings.data_home.as_ref().map(|home| home.join("apron"));
        let directory = request.data_dir.clone().or(usual).ok_or_else(|| {
            Failure::new(
                "there is no place for data: neither XDG_DATA_HOME nor HOME is set",
                "name a directory with --data-dir, or keep nothing with --in-memory",
            )
        })?;
        private::make_directory(&directory)?;
        Ok(Self { directory, _passing: None })
    }

    pub(super) fn path(&self) -> &Path {
        &self.directory
    }

    pub(super) fn join(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}
