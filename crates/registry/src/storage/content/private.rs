//! Files that only their owner reads.
//!
//! A registry's directory holds private repositories, so that nobody else on the machine has
//! business there. What an earlier version left open is closed when the directory is opened next.

use fs_err::os::unix::fs::OpenOptionsExt as _;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// What a file may have.
pub(crate) const FILE: u32 = 0o600;
/// What a directory may have.
const DIRECTORY: u32 = 0o700;

/// Makes a directory, and those above it, for its owner only.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    let made = builder.recursive(true).mode(DIRECTORY).create(path);
    made.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// Makes a file for its owner only, or empties the one that is there.
pub(super) fn create(path: &Path) -> io::Result<fs_err::File> {
    fs_err::OpenOptions::new().write(true).create(true).truncate(true).mode(FILE).open(path)
}

/// Makes a file for its owner only, if it is not there.
pub(crate) fn ensure(path: &Path) -> io::Result<fs_err::File> {
    fs_err::OpenOptions::new().create(true).append(true).mode(FILE).open(path)
}

/// Takes from everybody but the owner what they may do in a data directory.
pub(super) fn narrow(root: &Path) -> io::Result<()> {
    let blobs = ["blobs/sha256", "blobs/sha512"].map(|name| root.join(name));
    // Each blob is looked at once: the next time its directory is closed already.
    for directory in &blobs {
        if is_wide(directory)? {
            for file in files_in(directory)? {
                close(&file, FILE)?;
            }
        }
    }
    for name in ["uploads", "quarantine"] {
        for file in files_in(&root.join(name))? {
            close(&file, FILE)?;
        }
    }
    for name in ["meta.db", "meta.db-wal", "meta.db-shm", "meta.db.old", "lock", "oci-layout"] {
        close(&root.join(name), FILE)?;
    }
    for name in ["uploads", "quarantine", "repos", "blobs"] {
        close(&root.join(name), DIRECTORY)?;
    }
    blobs.iter().try_for_each(|directory| close(directory, DIRECTORY))?;
    close(root, DIRECTORY)
}

fn files_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    fs_err::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect()
}

fn is_wide(path: &Path) -> io::Result<bool> {
    Ok(fs_err::symlink_metadata(path)?.permissions().mode() & 0o077 != 0)
}

/// Leaves something no more than this. What is not there is fine, and so is what is somebody
/// else's (a volume that was mounted for us): what is in it is ours.
fn close(path: &Path, most: u32) -> io::Result<()> {
    let closed = fs_err::symlink_metadata(path).and_then(|found| {
        let mode = found.permissions().mode() & 0o7777;
        if found.is_symlink() || mode & !most == 0 {
            return Ok(());
        }
        fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode & most))
    });
    match closed {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
            ) =>
        {
            Ok(())
        }
        other => other,
    }
}
