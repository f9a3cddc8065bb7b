//! Files of the cache's directory.

use oci::Digest;
use serde_json::Value as Json;
use std::io::{self, Write as _};
use std::path::Path;

/// How files end that hold the documents of a package as they are written there.
pub(super) const TEXTS: &str = "gz";
/// How files end that hold what the documents of a package say.
pub(super) const OBJECTS: &str = "objects.gz";
/// How files end that vouch for both.
pub(super) const RECORD: &str = "json";
/// How files begin that are not whole yet.
pub(super) const PARTIAL: &str = ".partial-";
/// How files begin that say what a tag meant.
pub(super) const TAG: &str = "tag-";
/// How files begin that hold the signatures of a package.
pub(super) const SIGNATURES: &str = "signatures-";

/// Removes what a killed process left: half written files, and whole ones that nothing vouches for.
pub(super) fn sweep(directory: &Path) -> io::Result<()> {
    let kept = packages(directory)?;
    for entry in fs_err::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_lost = package(&name, TEXTS).or_else(|| package(&name, OBJECTS));
        let is_lost = is_lost.is_some_and(|package| !kept.contains(&package));
        if is_lost || name.starts_with(PARTIAL) {
            fs_err::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// The package that a file with this end belongs to, by its name.
fn package(name: &str, end: &str) -> Option<Digest> {
    let digits = name.strip_suffix(end)?.strip_suffix('.')?;
    format!("sha256:{digits}").parse().ok()
}

/// A file that has no name yet and is gone if it gets none.
pub(super) fn partial(directory: &Path) -> io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new().prefix(PARTIAL).tempfile_in(directory)
}

/// Writes a whole file, or nothing.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = partial(directory)?;
    file.write_all(bytes)?;
    adopt(file, path)
}

/// Gives a file its name, once its bytes are on the disk.
pub(super) fn adopt(file: tempfile::NamedTempFile, path: &Path) -> io::Result<()> {
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    let directory = path.parent().unwrap_or(Path::new("."));
    fs_err::File::open(directory)?.sync_all()
}

/// Every package of the cache.
pub(super) fn packages(directory: &Path) -> io::Result<Vec<Digest>> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir(directory)? {
        found.extend(package(&entry?.file_name().to_string_lossy(), RECORD));
    }
    found.sort();
    Ok(found)
}

/// Removes what is known of packages that are not there any more: which tags meant them, and who
/// signed them.
pub(super) fn drop_notes(directory: &Path, packages: &[Digest]) -> io::Result<()> {
    for entry in fs_err::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with(TAG) && !name.starts_with(SIGNATURES) {
            continue;
        }
        let record: Option<Json> =
            fs_err::read(entry.path()).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let digest = record.and_then(|record| record["digest"].as_str()?.parse::<Digest>().ok());
        if !digest.is_some_and(|digest| packages.contains(&digest)) {
            fs_err::remove_file(entry.path())?;
        }
    }
    Ok(())
}
