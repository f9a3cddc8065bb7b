//! Places in an image that every container has something mounted over.
//!
//! A container with a layer of its own gets them there. One whose image is mounted for reading only, because this machine
//! has no overlays for it, could not: they are made when the image is laid down.

use super::FileOwners;
use super::fence::{open_directory, open_inside};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid, chmodat, chownat, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Directories of the kernel, and that of the files below.
const DIRECTORIES: [&str; 4] = ["proc", "sys", "dev", "etc"];
/// Files of `/etc` that tell of the pod.
const FILES: [&str; 3] = ["hosts", "hostname", "resolv.conf"];

/// Makes what is not there. What an image has stays, but for links of those files that lead nowhere.
pub(super) fn make_mount_places(rootfs: &Path, owners: FileOwners) -> io::Result<()> {
    let root = open_directory(rootfs)?;
    for name in DIRECTORIES {
        match mkdirat(&root, name, Mode::RWXU) {
            Ok(()) => set_attributes(&root, name, owners, 0o755)?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    // Without a directory there, the container is refused as it begins, which says why.
    let Ok(directory) = open_inside(&root, "etc", flags, Mode::empty()) else { return Ok(()) };
    for name in FILES {
        let path = format!("etc/{name}");
        if open_inside(&root, &path, OFlags::PATH, Mode::empty()).is_ok() {
            continue;
        }
        match unlinkat(&directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW;
        drop(openat(&directory, name, flags | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)?);
        set_attributes(&directory, name, owners, 0o644)?;
    }
    Ok(())
}

/// As the image's root has them. The name was made here a moment ago, and is no link.
fn set_attributes(
    parent: &OwnedFd,
    name: &str,
    owners: FileOwners,
    mode: u32,
) -> Result<(), Errno> {
    if let FileOwners::Shifted { base } = owners {
        let (uid, gid) = (Uid::from_raw(base), Gid::from_raw(base));
        chownat(parent, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    chmodat(parent, name, Mode::from_raw_mode(mode), AtFlags::empty())
}
