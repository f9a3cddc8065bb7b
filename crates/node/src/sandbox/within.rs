//! Paths inside of a file system that strangers filled: links are followed in it, and never out of it.

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

/// A root, below which everything stays.
#[derive(Debug)]
pub(super) struct InsideRoot {
    root: OwnedFd,
}

impl InsideRoot {
    /// Takes a directory of our own as the root.
    pub(super) fn open(root: &Path) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(Self { root: rustix::fs::open(root, flags, Mode::empty())? })
    }

    /// What is at a path, links followed.
    pub(super) fn find(&self, path: &Path) -> Result<OwnedFd, Errno> {
        self.look_up(path, ResolveFlags::IN_ROOT)
    }

    /// What is at a path, where a link that leads out is an error.
    pub(super) fn find_beneath(&self, path: &Path) -> Result<OwnedFd, Errno> {
        self.look_up(path, ResolveFlags::BENEATH)
    }

    fn look_up(&self, path: &Path, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
        let path = relative(path)?;
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path.as_path() };
        let resolve = resolve | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(
            &self.root,
            path,
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
            resolve,
        )
    }

    /// A directory, made with its parents if it is not there.
    pub(super) fn make_directory(
        &self,
        path: &Path,
        made: MadeDirectory,
    ) -> Result<OwnedFd, Errno> {
        let mut done = PathBuf::new();
        let mut parent = self.find(&done)?;
        for component in relative(path)?.components() {
            done.push(component);
            let directory = match self.find(&done) {
                Err(Errno::NOENT) => {
                    match rustix::fs::mkdirat(&parent, component.as_os_str(), Mode::RWXU) {
                        Ok(()) => made.mark_directory(&parent, component.as_os_str())?,
                        // Another container of the pod may make the same one.
                        Err(Errno::EXIST) => {}
                        Err(error) => return Err(error),
                    }
                    self.find(&done)?
                }
                found => found?,
            };
            parent = directory;
        }
        Ok(parent)
    }

    /// A file to mount over, made if it is not there. A link that leads nowhere becomes a file.
    pub(super) fn make_file(&self, path: &Path, made: MadeDirectory) -> Result<OwnedFd, Errno> {
        match self.find(path) {
            Err(Errno::NOENT) => {}
            found => return found,
        }
        let path = relative(path)?;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::INVAL);
        };
        let parent = self.make_directory(parent, made)?;
        match rustix::fs::unlinkat(&parent, name, rustix::fs::AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&parent, name, flags, Mode::from_raw_mode(0o644))?;
        let (owner, group) = made.owners();
        rustix::fs::fchown(&file, Some(owner), Some(group))?;
        self.find(&path)
    }
}

/// How a directory that was not there is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct MadeDirectory {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) mode: u32,
}

impl MadeDirectory {
    fn owners(self) -> (Uid, Gid) {
        (Uid::from_raw(self.uid), Gid::from_raw(self.gid))
    }

    /// Programs may put a link where the directory was made a moment ago; it is not followed.
    fn mark_directory(self, parent: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(parent, name, flags, Mode::empty())?;
        let (owner, group) = self.owners();
        rustix::fs::fchown(&directory, Some(owner), Some(group))?;
        rustix::fs::fchmod(&directory, Mode::from_raw_mode(self.mode))
    }
}

/// The same path from the root on, without `.`; `..` has no place in what is mounted.
fn relative(path: &Path) -> Result<PathBuf, Errno> {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => return Err(Errno::INVAL),
        }
    }
    Ok(clean)
}

/// A path that leads to what is open, for calls that take paths.
pub(super) fn descriptor_path(descriptor: &impl AsFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_fd().as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn mine() -> MadeDirectory {
        MadeDirectory {
            uid: nix::unistd::getuid().as_raw(),
            gid: nix::unistd::getgid().as_raw(),
            mode: 0o755,
        }
    }

    #[test]
    fn links_do_not_lead_out() {
        let outside = tempfile::tempdir().unwrap();
        fs_err::write(outside.path().join("secret"), "s").unwrap();
        let inside = outside.path().join("root");
        fs_err::create_dir(&inside).unwrap();
        symlink("../secret", inside.join("up")).unwrap();
        symlink(outside.path().join("secret"), inside.join("absolute")).unwrap();
        symlink("/", inside.join("top")).unwrap();
        let root = InsideRoot::open(&inside).unwrap();
        for name in ["up", "absolute", "top/secret", "../secret"] {
            assert!(root.find(Path::new(name)).is_err(), "{name}");
            assert!(root.find_beneath(Path::new(name)).is_err(), "{name}");
        }
        assert!(root.make_directory(Path::new("/up/x"), mine()).is_err());
        root.make_file(Path::new("/top/new/file"), mine()).unwrap();
        root.make_file(Path::new("/up"), mine()).unwrap();
        assert!(inside.join("new/file").is_file());
        assert!(inside.join("up").symlink_metadata().unwrap().is_file());
        assert_eq!(fs_err::read_to_string(outside.path().join("secret")).unwrap(), "s");
    }
}
