//! Directories that programs wrote, removed whatever is in them.
//!
//! A program may nest directories deeper than a stack or the number of open files reaches, and take every right
//! from them. So nothing here recurses or holds a file for each level: each directory that is found is moved up to
//! the top, and the top is emptied until nothing is left.

use fs_err as fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// How many directories are held in memory at once; the others are found by the next look.
const DIRECTORIES_AT_ONCE: usize = 4096;

/// Removes a directory and all in it, if it is there. Nothing may write to it meanwhile.
pub(crate) fn remove_tree(top: &Path) -> io::Result<()> {
    match fs::symlink_metadata(top) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    let mut moved = 0_u64;
    loop {
        let directories = remove_files(top)?;
        if directories.is_empty() {
            return fs::remove_dir(top);
        }
        for directory in directories {
            move_directories_up(&directory, top, &mut moved)?;
            fs::remove_dir(&directory)?;
        }
    }
}

/// Leaves nothing in a directory: what is in its directories is the top's then.
fn move_directories_up(directory: &Path, top: &Path, moved: &mut u64) -> io::Result<()> {
    loop {
        let found = remove_files(directory)?;
        if found.is_empty() {
            return Ok(());
        }
        for below in found {
            fs::rename(below, free_place(top, moved))?;
        }
    }
}

/// Removes files from a directory, and answers with some of its directories, which can be moved then; with none
/// only if it is empty.
fn remove_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    allow_changes(directory)?;
    let mut directories = Vec::new();
    for entry in fs::read_dir(directory)? {
        if directories.len() == DIRECTORIES_AT_ONCE {
            break;
        }
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            allow_changes(&entry.path())?;
            directories.push(entry.path());
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(directories)
}

/// A directory's owner may read and change it, whatever its program allowed.
fn allow_changes(directory: &Path) -> io::Result<()> {
    const ALL: u32 = 0o700;
    let mode = fs::symlink_metadata(directory)?.permissions().mode();
    if mode & ALL == ALL {
        return Ok(());
    }
    fs::set_permissions(directory, PermissionsExt::from_mode(ALL))
}

/// A name in the top directory that nothing has.
fn free_place(top: &Path, moved: &mut u64) -> PathBuf {
    loop {
        *moved = moved.saturating_add(1);
        let place = top.join(format!("{moved}.removed"));
        if fs::symlink_metadata(&place).is_err() {
            return place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags, mkdirat, openat};
    use std::os::fd::OwnedFd;

    /// As a program makes it: no path leads to the end of it.
    fn nest_directories(top: &Path, depth: usize) {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut current: OwnedFd = rustix::fs::open(top, flags, Mode::empty()).unwrap();
        for _ in 0..depth {
            mkdirat(&current, "d", Mode::RWXU).unwrap();
            current = openat(&current, "d", flags, Mode::empty()).unwrap();
        }
    }

    #[test]
    fn directories_nested_deeper_than_paths_and_stacks_go() {
        let scratch = tempfile::tempdir().unwrap();
        let top = scratch.path().join("top");
        fs::create_dir(&top).unwrap();
        nest_directories(&top, 20_000);
        remove_tree(&top).unwrap();
        assert!(!top.exists());
    }

    #[test]
    fn more_directories_than_are_held_at_once_go() {
        let scratch = tempfile::tempdir().unwrap();
        let top = scratch.path().join("top");
        fs::create_dir_all(top.join("wide")).unwrap();
        for number in 0..DIRECTORIES_AT_ONCE + 10 {
            fs::create_dir(top.join("wide").join(number.to_string())).unwrap();
        }
        remove_tree(&top).unwrap();
        assert!(!top.exists());
    }

    #[test]
    fn what_links_lead_to_stays_and_rights_are_in_nobodys_way() {
        let scratch = tempfile::tempdir().unwrap();
        let (top, kept) = (scratch.path().join("top"), scratch.path().join("kept"));
        fs::create_dir_all(top.join("a/b")).unwrap();
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "kept").unwrap();
        std::os::unix::fs::symlink(&kept, top.join("a/link")).unwrap();
        std::os::unix::fs::symlink(&kept, top.join("1.removed")).unwrap();
        fs::write(top.join("a/b/file"), "gone").unwrap();
        fs::write(top.join("2.removed"), "gone").unwrap();
        fs::set_permissions(top.join("a/b"), PermissionsExt::from_mode(0o000)).unwrap();
        fs::set_permissions(top.join("a"), PermissionsExt::from_mode(0o000)).unwrap();
        remove_tree(&top).unwrap();
        assert!(!top.exists());
        assert_eq!(fs::read_to_string(kept.join("file")).unwrap(), "kept");
        remove_tree(&top).unwrap();
    }
}
