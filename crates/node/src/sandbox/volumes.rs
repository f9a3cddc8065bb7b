//! Volumes of files, kept in memory and replaced in one step, as kubelets do it: names are links into `..data`, which
//! is a link to the directory of the day.

use super::because;
use crate::protocol::VolumeFile;
use base64::Engine;
use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt;
use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

const DATA: &str = "..data";

/// Makes the volume in `directory` be these files. Its owners are `user` and `group`.
pub(super) fn write_files(
    directory: &Path,
    owner: (u32, u32),
    files: &[VolumeFile],
) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|error| error.to_string())?;
    own_directory(directory, owner)?;
    let last = fs::read_link(directory.join(DATA)).ok();
    let next = next_name(last.as_deref());
    let fresh = directory.join(&next);
    let names =
        fill_directory(&fresh, owner, files).inspect_err(|_| drop(fs::remove_dir_all(&fresh)))?;
    let link = directory.join("..data_tmp");
    let _ = fs::remove_file(&link);
    symlink(&next, &link).map_err(because("link the files"))?;
    fs::rename(&link, directory.join(DATA)).map_err(|error| error.to_string())?;
    link_names(directory, &names)?;
    match last {
        Some(last) => fs::remove_dir_all(directory.join(last)).map_err(|error| error.to_string()),
        None => Ok(()),
    }
}

fn own_directory(directory: &Path, (user, group): (u32, u32)) -> Result<(), String> {
    std::os::unix::fs::chown(directory, Some(user), Some(group))
        .map_err(because("own the volume"))?;
    fs::set_permissions(directory, PermissionsExt::from_mode(0o755))
        .map_err(|error| error.to_string())
}

fn next_name(last: Option<&Path>) -> PathBuf {
    let number = last
        .and_then(|last| last.to_str()?.strip_prefix("..")?.parse::<u64>().ok())
        .map_or(1, |number| number.wrapping_add(1));
    PathBuf::from(format!("..{number}"))
}

/// Writes the files, and answers with the names that lead to them from the volume.
fn fill_directory(
    fresh: &Path,
    owner: (u32, u32),
    files: &[VolumeFile],
) -> Result<BTreeSet<PathBuf>, String> {
    fs::create_dir(fresh).map_err(|error| error.to_string())?;
    own_directory(fresh, owner)?;
    let mut names = BTreeSet::new();
    for file in files {
        let path = Path::new(&file.path);
        let mut components = path.components();
        let first = match components.next() {
            Some(Component::Normal(first)) if !first.as_encoded_bytes().starts_with(b"..") => first,
            _ => return Err(format!("{:?} cannot be a file of a volume", file.path)),
        };
        if components.any(|component| !matches!(component, Component::Normal(_))) {
            return Err(format!("{:?} cannot be a file of a volume", file.path));
        }
        names.insert(PathBuf::from(first));
        make_parents(fresh, path, owner)?;
        write_file(&fresh.join(path), owner, file)?;
    }
    Ok(names)
}

fn make_parents(fresh: &Path, path: &Path, owner: (u32, u32)) -> Result<(), String> {
    let parents: Vec<&Path> =
        path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()).collect();
    for parent in parents.into_iter().rev() {
        let directory = fresh.join(parent);
        if !directory.is_dir() {
            fs::create_dir(&directory).map_err(|error| error.to_string())?;
            own_directory(&directory, owner)?;
        }
    }
    Ok(())
}

fn write_file(path: &Path, (user, group): (u32, u32), file: &VolumeFile) -> Result<(), String> {
    let contents = base64::engine::general_purpose::STANDARD
        .decode(&file.contents)
        .map_err(because(format!("read the contents of {:?}", file.path)))?;
    let mut opened = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| error.to_string())?;
    opened.write_all(&contents).map_err(|error| error.to_string())?;
    std::os::unix::fs::fchown(opened.file(), Some(user), Some(group))
        .map_err(because("own a file of a volume"))?;
    opened
        .set_permissions(PermissionsExt::from_mode(file.mode & 0o777))
        .map_err(|error| error.to_string())
}

/// Names that are new are linked, and those that lead nowhere now are removed.
fn link_names(directory: &Path, names: &BTreeSet<PathBuf>) -> Result<(), String> {
    for entry in fs::read_dir(directory).map_err(|error| error.to_string())? {
        let name = PathBuf::from(entry.map_err(|error| error.to_string())?.file_name());
        if !name.as_os_str().as_encoded_bytes().starts_with(b"..") && !names.contains(&name) {
            fs::remove_file(directory.join(name)).map_err(|error| error.to_string())?;
        }
    }
    for name in names {
        let link = directory.join(name);
        if link.symlink_metadata().is_err() {
            symlink(Path::new(DATA).join(name), link)
                .map_err(because("link a file of a volume"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> VolumeFile {
        let contents = base64::engine::general_purpose::STANDARD.encode(text);
        VolumeFile { path: path.to_owned(), mode: 0o440, contents }
    }

    fn mine() -> (u32, u32) {
        (nix::unistd::getuid().as_raw(), nix::unistd::getgid().as_raw())
    }

    #[test]
    fn a_volume_becomes_other_files_and_keeps_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let volume = directory.path().join("v");
        write_files(&volume, mine(), &[file("a", "1"), file("d/e/f", "2")]).unwrap();
        assert_eq!(fs::read_to_string(volume.join("a")).unwrap(), "1");
        assert_eq!(fs::read_to_string(volume.join("d/e/f")).unwrap(), "2");
        assert_eq!(fs::metadata(volume.join("a")).unwrap().permissions().mode() & 0o777, 0o440);
        write_files(&volume, mine(), &[file("a", "3"), file("b", "4")]).unwrap();
        let mut names: Vec<_> =
            fs::read_dir(&volume).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["..2", "..data", "a", "b"]);
        assert_eq!(fs::read_to_string(volume.join("a")).unwrap(), "3");
    }

    #[test]
    fn a_file_cannot_be_outside_of_its_volume() {
        let directory = tempfile::tempdir().unwrap();
        let volume = directory.path().join("v");
        write_files(&volume, mine(), &[file("a", "1")]).unwrap();
        for path in ["../x", "/x", "d/../../x", "..data", "", "."] {
            assert!(write_files(&volume, mine(), &[file(path, "x")]).is_err(), "{path}");
        }
        assert_eq!(fs::read_to_string(volume.join("a")).unwrap(), "1");
        assert_eq!(fs::read_dir(&volume).unwrap().count(), 3);
    }
}
