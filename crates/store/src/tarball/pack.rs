//! Writing OCI archives: a layout directory, collected out of sight and packed at the end.
//!
//! Unlike a docker-save archive it loses nothing: indexes of several platforms, OCI media types
//! and annotations stay, and so do all digests.

use super::write::{END, WRITE_BUFFER, entry};
use crate::error::Cause;
use crate::files::{self, Durability, MODE_ORDINARY, blocking};
use crate::{Error, Layout, names};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Collects images and writes them as an OCI archive at the end.
#[derive(Debug)]
pub struct OciArchive {
    target: PathBuf,
    // Held for its removal when the archive is dropped.
    _directory: tempfile::TempDir,
    collected: Layout,
}

impl OciArchive {
    /// Starts collecting, in a temporary directory beside the target.
    pub async fn create(target: impl Into<PathBuf>) -> Result<Self, Error> {
        let target = target.into();
        let (directory, collected) = files::collect_beside(&target).await?;
        Ok(Self { target, _directory: directory, collected })
    }

    /// Where to put what the archive shall hold.
    pub fn layout(&self) -> &Layout {
        &self.collected
    }

    /// Writes the archive.
    pub async fn finish(self) -> Result<(), Error> {
        let (target, root) = (self.target.clone(), self.collected.path().to_owned());
        let failed = |cause| Error::Write { path: self.target.clone(), cause };
        blocking(move || write(&target, &root)).await.map_err(failed)
    }
}

fn write(target: &Path, root: &Path) -> Result<(), Cause> {
    let mut file = files::temporary(files::parent(target), MODE_ORDINARY)?;
    let mut writer = BufWriter::with_capacity(WRITE_BUFFER, file.as_file_mut());
    for name in names(root)? {
        let mut content = fs_err::File::open(root.join(&name))?;
        let size = content.metadata()?.len();
        entry(&mut writer, &name, size, &mut content, None)?;
    }
    writer.write_all(&END)?;
    writer.flush()?;
    drop(writer);
    Ok(files::persist(file, target, Durability::Synced)?)
}

/// The files of a layout, in an order that depends on nothing but their names.
fn names(root: &Path) -> Result<Vec<String>, Cause> {
    let mut found = vec![names::LAYOUT_FILE.to_owned(), names::INDEX_FILE.to_owned()];
    for algorithm in ["sha256", "sha512"] {
        let directory = root.join("blobs").join(algorithm);
        if !directory.exists() {
            continue;
        }
        let mut blobs = Vec::new();
        for entry in fs_err::read_dir(directory)? {
            blobs.push(format!("blobs/{algorithm}/{}", entry?.file_name().display()));
        }
        blobs.sort();
        found.append(&mut blobs);
    }
    Ok(found)
}
