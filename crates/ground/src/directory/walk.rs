//! Walking a directory: regular files, and everything else that could have been one.

use super::{Links, Selecting};
use crate::failure::{Failure, Outcome};
use crate::interrupt;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use xpkg::source::{self, SkipReason, SkippedFile};

/// How deep directories are walked; a bind mount into itself should not hang a build.
const DEPTH_MAX: usize = 64;

/// What a walk met.
#[derive(Default)]
pub(super) struct Found {
    /// Regular files, with their sizes.
    pub(super) files: Vec<(String, u64)>,
    /// What may have been meant to be part of it.
    pub(super) skipped: Vec<SkippedFile>,
}

impl Found {
    fn skip(&mut self, path: String, why: SkipReason) {
        self.skipped.push(SkippedFile { path, why });
    }
}

/// Walks directories of a package.
pub(super) struct Walk {
    /// Where links may lead, without links in it; none are followed if there is none.
    links_into: Option<Vec<PathBuf>>,
    /// Whether all files are meant, and not only YAML.
    everything: bool,
}

/// A directory to be read.
struct Level {
    directory: PathBuf,
    prefix: String,
    depth: usize,
}

impl Walk {
    pub(super) fn new(root: &Path, selecting: &Selecting) -> Self {
        let links_into = match &selecting.links {
            Links::None => None,
            Links::Into(others) => {
                let places = std::iter::once(root).chain(others.iter().map(PathBuf::as_path));
                Some(places.filter_map(|place| place.canonicalize().ok()).collect())
            }
        };
        Self { links_into, everything: false }
    }

    /// Walks a directory all of whose files are meant.
    pub(super) fn of_everything() -> Self {
        Self { links_into: None, everything: true }
    }

    fn is_meant(&self, path: &str) -> bool {
        self.everything || source::is_yaml(path)
    }

    /// All files below a directory, and what is not one.
    pub(super) fn list(&self, root: &Path) -> Outcome<Found> {
        let mut found = Found::default();
        let first = Level { directory: root.to_owned(), prefix: String::new(), depth: 0 };
        let mut open = vec![first];
        while let Some(level) = open.pop() {
            interrupt::check().map_err(|error| Failure::file(&error))?;
            for entry in
                fs_err::read_dir(&level.directory).map_err(|error| Failure::file(&error))?
            {
                let entry = entry.map_err(|error| Failure::file(&error))?;
                open.extend(self.take(&entry, &level, &mut found)?);
            }
        }
        Ok(found)
    }

    /// Takes one entry of a directory: a file, or another directory to be read.
    fn take(
        &self,
        entry: &fs_err::DirEntry,
        level: &Level,
        found: &mut Found,
    ) -> Outcome<Option<Level>> {
        let name = entry.file_name();
        let path = format!("{}{}", level.prefix, name.to_string_lossy());
        let kind = entry.file_type().map_err(|error| Failure::file(&error))?;
        if name == OsStr::new(".git") {
            return Ok(None);
        }
        if name.to_str().is_none() {
            let is_meant = kind.is_dir() || self.is_meant(&path);
            if is_meant {
                found.skip(path, SkipReason::NotUtf8);
            }
            return Ok(None);
        }
        if kind.is_dir() {
            if level.depth < DEPTH_MAX {
                let (directory, prefix) = (entry.path(), format!("{path}/"));
                return Ok(Some(Level { directory, prefix, depth: level.depth + 1 }));
            }
            found.skip(path, SkipReason::TooDeep);
        } else if kind.is_file() {
            let size = entry.metadata().map_err(|error| Failure::file(&error))?.len();
            found.files.push((path, size));
        } else if kind.is_symlink() {
            self.take_link(&entry.path(), path, found);
        } else if self.is_meant(&path) {
            found.skip(path, SkipReason::NotRegular);
        }
        Ok(None)
    }

    /// A link to a file counts as that file, if it is followed. Links that would bring no YAML are no
    /// part of any package.
    fn take_link(&self, link: &Path, path: String, found: &mut Found) {
        let target = link.canonicalize();
        let metadata = target.as_ref().ok().and_then(|target| fs_err::metadata(target).ok());
        let (Ok(target), Some(metadata)) = (target, metadata) else {
            if self.is_meant(&path) {
                found.skip(path, SkipReason::LinkBroken);
            }
            return;
        };
        if metadata.is_dir() {
            return found.skip(path, SkipReason::LinkToDirectory);
        }
        if !self.is_meant(&path) {
            return;
        }
        match &self.links_into {
            _ if !metadata.is_file() => found.skip(path, SkipReason::LinkBroken),
            None => found.skip(path, SkipReason::Link),
            Some(places) if places.iter().any(|place| target.starts_with(place)) => {
                found.files.push((path, metadata.len()));
            }
            Some(_) => found.skip(path, SkipReason::LinkOutside),
        }
    }
}
