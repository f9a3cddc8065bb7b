//! Files and directories for their owner's eyes only.

use crate::failure::{Failure, Outcome};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

/// What only the owner may read and write.
const OWNER_ONLY: u32 = 0o600;
/// What others may do with a file.
const OTHERS: u32 = 0o077;

/// Makes a directory, and those above it that are missing; one that is there stays as it is.
pub fn make_directory(path: &Path) -> Outcome {
    let mut builder = std::fs::DirBuilder::new();
    builder.mode(0o700).recursive(true).create(path).map_err(|error| {
        let error = std::io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        Failure::file(&error)
    })
}

/// Writes a file that only its owner can read, at no moment otherwise; a killed process leaves the
/// old one.
pub fn write_file(path: &Path, text: &str) -> Outcome {
    let write = || -> std::io::Result<()> {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new()
            .permissions(std::fs::Permissions::from_mode(OWNER_ONLY))
            .tempfile_in(directory)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|error| Failure::file(&error))
}

/// Takes a file away from everybody but its owner, if it is there and others may use it.
pub fn narrow_file(path: &Path) -> Outcome {
    let narrow = || match fs_err::metadata(path) {
        Ok(found) if found.permissions().mode() & OTHERS != 0 => {
            fs_err::set_permissions(path, std::fs::Permissions::from_mode(OWNER_ONLY))
        }
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    narrow().map_err(|error| Failure::file(&error))
}
