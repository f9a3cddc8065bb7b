//! Paths of an image's file system, opened so that no link in it leads out of it.

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, open, openat2};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// How often an open is tried again because something was renamed meanwhile.
const TRIES: usize = 16;

/// Opens a directory of this machine, whose path is trusted.
pub(super) fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    Ok(open(path, OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

/// Opens a path below a root as a program would that has this root.
pub(super) fn open_inside(
    root: impl AsFd,
    path: &str,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let path = if path.is_empty() { "." } else { path };
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..TRIES {
        match openat2(root.as_fd(), path, flags | OFlags::CLOEXEC, mode, resolve) {
            // The kernel says so when it cannot be sure; it can be, next time.
            Err(Errno::AGAIN | Errno::INTR) => {}
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

/// A small regular file of an image, all of it. Pipes and the like are not waited for.
pub(super) fn read_inside(rootfs: &Path, path: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
    let root = open_directory(rootfs)?;
    let file = open_inside(&root, path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::from(file).take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let message = format!("it has more than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(bytes)
}
