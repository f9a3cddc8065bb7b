//! Rebuilding the database from the views and the blobs, when it is lost.
//!
//! Views list tags and manifests; manifests are read again (their bytes must have their digest)
//! and say what they name. What no view lists is not brought back: at most the last second of
//! changes, and blobs that no manifest names.

use super::alone::Alone;
use super::content::Content;
use super::content::files::{Files, sync_directory};
use super::metadata::sqlite::Sqlite;
use super::metadata::{Counts, Metadata, Restored, Row};
use super::{Registry, now, views};
use crate::error::{Error, OpenError};
use crate::name::{Name, Tag};
use oci::{Algorithm, Descriptor, Digest, Index, Raw};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// What was brought back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rebuilt {
    /// Repositories.
    pub repositories: u64,
    /// Manifests.
    pub manifests: u64,
    /// Tags.
    pub tags: u64,
    /// Blobs.
    pub blobs: u64,
    /// Views or manifests that could not be read, and why.
    pub problems: Vec<String>,
}

/// Makes the database of a data directory anew. The old one, if there is one, is kept beside it
/// as `meta.db.old`.
pub fn rebuild(root: &Path) -> Result<Rebuilt, OpenError> {
    let files = Files::new(root);
    let alone = Alone::in_directory(&files)?;
    files.prepare()?;
    let (fresh, target) = (root.join("meta.db.new"), files.database());
    remove_database(&fresh)?;
    let database = Sqlite::open(&fresh)?;
    let result = fill(&files, &database)?;
    // Everything into the one file that is about to be renamed.
    database.close()?;
    // The old one's log belongs to the old one.
    set_aside(&target, root)?;
    fs_err::rename(&fresh, &target)?;
    sync_directory(root)?;
    drop(alone);
    Ok(result)
}

/// Whether there are blobs a database should know of.
pub(super) fn has_blobs(files: &Files) -> io::Result<bool> {
    for algorithm in [Algorithm::Sha256, Algorithm::Sha512] {
        let directory = files.blobs(algorithm);
        if directory.exists() && fs_err::read_dir(directory)?.next().is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn fill(files: &Files, metadata: &dyn Metadata) -> Result<Rebuilt, OpenError> {
    let mut problems = Vec::new();
    let mut views = Vec::new();
    find_views(&files.repositories(), "", &mut views)?;
    for (name, directory) in views {
        let restored = read(files, &name, &directory, &mut problems);
        if let Err(error) = restored.and_then(|it| metadata.restore(it)) {
            problems.push(format!("{name}: {}", chain(&error)));
        }
    }
    let Counts { repositories, manifests, tags, blobs } = metadata.counts()?;
    Ok(Rebuilt { repositories, manifests, tags, blobs, problems })
}

/// All views below a directory, with the names of their repositories.
pub(super) fn find_views(
    directory: &Path,
    prefix: &str,
    found: &mut Vec<(Name, PathBuf)>,
) -> io::Result<()> {
    for entry in fs_err::read_dir(directory)? {
        let entry = entry?;
        let Ok(part) = entry.file_name().into_string() else { continue };
        if !entry.file_type()?.is_dir() {
            continue;
        }
        if part == "_layout" {
            found.extend(Name::parse(prefix).map(|name| (name, entry.path())));
            continue;
        }
        let name = if prefix.is_empty() { part } else { format!("{prefix}/{part}") };
        find_views(&entry.path(), &name, found)?;
    }
    Ok(())
}

/// Reads what a view tells, as far as it can be read.
fn read(
    files: &Files,
    name: &Name,
    directory: &Path,
    problems: &mut Vec<String>,
) -> Result<Restored, Error> {
    let bytes = fs_err::read(directory.join("index.json"))?;
    let index: Index = serde_json::from_slice(&bytes).map_err(io::Error::other)?;
    let mut restored =
        Restored { repository: name.clone(), manifests: Vec::new(), blobs: Vec::new(), at: now() };
    let held = read_held(files, name)?;
    for descriptor in &index.manifests {
        if let Err(error) = read_manifest(files, descriptor, held.as_ref(), &mut restored) {
            problems.push(format!("{name}@{}: {}", descriptor.digest, chain(&error)));
        }
    }
    Ok(restored)
}

/// The blobs that the repository had; views of earlier versions do not tell.
fn read_held(files: &Files, name: &Name) -> io::Result<Option<BTreeSet<Digest>>> {
    match fs_err::read_to_string(files.held(name)) {
        Ok(text) => Ok(Some(text.lines().filter_map(|line| line.parse().ok()).collect())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a manifest, with its tag and those of its blobs that are there. The repository gets back
/// what it had, and not what manifests merely name: that may be somebody else's.
fn read_manifest(
    files: &Files,
    descriptor: &Descriptor,
    held: Option<&BTreeSet<Digest>>,
    restored: &mut Restored,
) -> Result<(), Error> {
    let digest = &descriptor.digest;
    let bytes = Registry::read_small(files, digest)?;
    let raw = Raw::parse(bytes, &descriptor.media_type).map_err(Error::ManifestInvalid)?;
    let row = Row::of(&raw, digest.clone())?;
    // What an index names are manifests, which have their own entries in the view.
    let had = |child: &&Digest| held.is_none_or(|held| held.contains(*child));
    for child in row.required.iter().filter(|_| raw.index().is_none()).filter(had) {
        match files.open(child)? {
            Some(found) => restored.blobs.push((child.clone(), Some(found.size()?))),
            // What was condemned heals when it comes back, as it would have without this.
            None if held.is_some() => restored.blobs.push((child.clone(), None)),
            None => {}
        }
    }
    let tag = descriptor.annotations.get(views::REF_NAME).and_then(|tag| Tag::parse(tag));
    restored.manifests.push((row, tag));
    Ok(())
}

fn remove_database(path: &Path) -> io::Result<()> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let path = with_suffix(path, suffix);
        if path.exists() {
            fs_err::remove_file(path)?;
        }
    }
    Ok(())
}

fn set_aside(database: &Path, root: &Path) -> io::Result<()> {
    let old = root.join("meta.db.old");
    remove_database(&old)?;
    for suffix in ["", "-wal", "-shm"] {
        let path = with_suffix(database, suffix);
        if path.exists() {
            fs_err::rename(path, with_suffix(&old, suffix))?;
        }
    }
    Ok(())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut text = path.as_os_str().to_owned();
    text.push(suffix);
    text.into()
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
