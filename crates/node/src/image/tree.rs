//! A file system being laid down, entry by entry.
//!
//! Paths are followed here, one name at a time from the root, and each name is opened so that the kernel follows
//! nothing: a link is read and its target begins again at the root or goes on where the link stands. So no path
//! leads out, whatever the links say, and a program that has this root would have gone the same way.

use super::error::EntryError;
use super::{FileOwners, ImageOptions};
use oci::layer::{Entry, EntryAttributes, EntryKind, LayerError};
use rustix::fs::{
    AtFlags, Dir, Gid, Mode, OFlags, ResolveFlags, Timespec, Timestamps, Uid, chmodat, chownat,
    linkat, mkdirat, openat2, readlinkat, renameat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

/// The file system within the image's directory.
const ROOT_NAME: &str = "fs";
/// Where a hard link stands before it has its name.
const LINK_NAME: &str = "link";
/// The numbers of users and groups that a shifted image has; larger ones are the last but one of them, nobody.
const IDS_MAX: u64 = 65_536;
const NOBODY: u32 = 65_534;
/// Names on the way to one entry, those of links' targets included.
const STEPS_MAX: usize = 1024;
/// Links on the way to one entry, as the kernel has it.
const LINKS_MAX: usize = 40;
/// The latest time that all file systems can keep.
const MODIFIED_MAX: u64 = u32::MAX as u64;
const COPY_BYTES: usize = 64 << 10;

/// A file system being laid down.
pub(super) struct FileTree {
    /// The directory that the root is in.
    image: OwnedFd,
    root: Arc<OwnedFd>,
    /// A directory beside the root, out of reach for entries.
    staging: OwnedFd,
    owners: FileOwners,
    depth_max: u64,
    /// Directories that may still be made because an entry stands in them.
    parents_left: u64,
    entries_max: u64,
    /// The directory of the last entry, and how entries call it.
    last_parent: Option<(String, Arc<OwnedFd>)>,
    buffer: Vec<u8>,
}

/// What a name stands for.
enum NameStep {
    Directory(OwnedFd),
    Link(String),
    Other,
    Missing,
}

impl FileTree {
    /// An empty file system in a directory of the image's own. `staging` is on the same disk.
    pub(super) fn create(image: &Path, staging: &Path, options: &ImageOptions) -> io::Result<Self> {
        let (image, staging) =
            (super::fence::open_directory(image)?, super::fence::open_directory(staging)?);
        mkdirat(&image, ROOT_NAME, Mode::from_raw_mode(0o755))?;
        let NameStep::Directory(root) = look_up(&image, ROOT_NAME)? else {
            return Err(io::ErrorKind::NotADirectory.into());
        };
        let entries_max = options.limits.layers.entries_max;
        let tree = Self {
            image,
            root: Arc::new(root),
            staging,
            owners: options.owners,
            depth_max: options.limits.depth_max,
            parents_left: entries_max,
            entries_max,
            last_parent: None,
            buffer: vec![0; COPY_BYTES],
        };
        tree.set_directory_attributes(&tree.image, ROOT_NAME, IMPLIED)?;
        Ok(tree)
    }

    /// Removes a name that lower layers left in a directory, and everything below it. `entry` is what asks for it.
    pub(super) fn remove_path(
        &mut self,
        directory: &str,
        name: &str,
        entry: &str,
    ) -> Result<(), EntryError> {
        match self.walk(directory, entry, OnMissing::Stop)? {
            Some(parent) => self.remove_name(&parent, name).map_err(|error| failed(entry, error)),
            None => Ok(()),
        }
    }

    /// Removes everything in a directory that lower layers left.
    pub(super) fn clear_directory(
        &mut self,
        directory: &str,
        entry: &str,
    ) -> Result<(), EntryError> {
        match self.walk(directory, entry, OnMissing::Stop)? {
            Some(found) => {
                self.last_parent = None;
                remove_content(&found).map_err(|error| failed(entry, error))
            }
            None => Ok(()),
        }
    }

    /// Removes what stands in the way of a directory, such as a link to one.
    pub(super) fn clear_way(&mut self, path: &str) -> Result<(), EntryError> {
        let (directory, name) = split_path(path);
        let Some(parent) = self.walk(directory, path, OnMissing::Stop)? else {
            return Ok(());
        };
        match look_up(&parent, name).map_err(|error| failed(path, error))? {
            NameStep::Directory(_) | NameStep::Missing => Ok(()),
            NameStep::Link(_) | NameStep::Other => {
                self.remove_name(&parent, name).map_err(|error| failed(path, error))
            }
        }
    }

    /// Puts an entry where its name says, in place of what is there.
    pub(super) fn place_entry(
        &mut self,
        entry: &Entry,
        content: &mut dyn Read,
    ) -> Result<(), EntryError> {
        let path = entry.path.as_str();
        if path.is_empty() {
            return self.place_root(entry);
        }
        if let EntryKind::HardLink(target) = &entry.kind {
            return self.place_hard_link(path, target);
        }
        let (directory, name) = split_path(path);
        let Some(parent) = self.walk(directory, path, OnMissing::Make)? else {
            return Ok(());
        };
        match &entry.kind {
            EntryKind::Directory => self.place_directory(&parent, name, entry.attributes),
            EntryKind::File => return self.place_file(&parent, name, entry, content),
            EntryKind::Symlink(target) => self.place_link(&parent, name, target, entry.attributes),
            // What it replaces is gone, too. A pod's devices are the node's business.
            EntryKind::Special | EntryKind::HardLink(_) => self.remove_name(&parent, name),
        }
        .map_err(|error| failed(path, error))
    }

    fn place_root(&self, entry: &Entry) -> Result<(), EntryError> {
        if entry.kind != EntryKind::Directory {
            return Err(EntryError::Root(entry.kind.name()));
        }
        self.set_directory_attributes(&self.image, ROOT_NAME, entry.attributes)
            .map_err(|error| failed("/", error))
    }

    fn place_directory(
        &mut self,
        parent: &OwnedFd,
        name: &str,
        attributes: EntryAttributes,
    ) -> Result<(), Errno> {
        if !matches!(look_up(parent, name)?, NameStep::Directory(_)) {
            self.remove_name(parent, name)?;
            mkdirat(parent, name, Mode::RWXU)?;
        }
        self.set_directory_attributes(parent, name, attributes)
    }

    fn place_file(
        &mut self,
        parent: &OwnedFd,
        name: &str,
        entry: &Entry,
        content: &mut dyn Read,
    ) -> Result<(), EntryError> {
        let failed = |error| failed(&entry.path, error);
        self.remove_name(parent, name).map_err(failed)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        let file =
            openat2(parent, name, flags | OFlags::CLOEXEC, mode, ONE_NAME).map_err(failed)?;
        let mut file = File::from(file);
        loop {
            // The archive's own errors say what is wrong with it; the disk's are another matter.
            let count = match content.read(&mut self.buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(EntryError::Layer(LayerError::from_io(error))),
            };
            let read = self.buffer.get(..count).unwrap_or_default();
            file.write_all(read)
                .map_err(|cause| EntryError::Write { path: entry.path.clone(), cause })?;
        }
        self.set_owner(parent, name, entry.attributes).map_err(failed)?;
        rustix::fs::fchmod(&file, permissions(entry.attributes, 0o777)).map_err(failed)?;
        set_modified(parent, name, entry.attributes).map_err(failed)
    }

    fn place_link(
        &mut self,
        parent: &OwnedFd,
        name: &str,
        target: &str,
        attributes: EntryAttributes,
    ) -> Result<(), Errno> {
        self.remove_name(parent, name)?;
        symlinkat(target, parent, name)?;
        self.set_owner(parent, name, attributes)?;
        set_modified(parent, name, attributes)
    }

    /// The link is made beside the file system first, for what it replaces may be what it leads to.
    fn place_hard_link(&mut self, path: &str, target: &str) -> Result<(), EntryError> {
        let broken = || {
            let (path, target) = (path.to_owned(), target.to_owned());
            EntryError::Layer(LayerError::LinkBroken { path, target })
        };
        let (target_directory, target_name) = split_path(target);
        let from = self.walk(target_directory, path, OnMissing::Stop)?.ok_or_else(broken)?;
        let is_directory = target_name.is_empty()
            || matches!(look_up(&from, target_name), Ok(NameStep::Directory(_)));
        if is_directory {
            let (path, target) = (path.to_owned(), target.to_owned());
            return Err(EntryError::HardLink { path, target, what: "a directory" });
        }
        match linkat(&from, target_name, &self.staging, LINK_NAME, AtFlags::empty()) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(broken()),
            Err(error) => return Err(failed(path, error)),
        }
        let (directory, name) = split_path(path);
        let Some(parent) = self.walk(directory, path, OnMissing::Make)? else {
            return Ok(());
        };
        self.remove_name(&parent, name).map_err(|error| failed(path, error))?;
        renameat(&self.staging, LINK_NAME, &parent, name).map_err(|error| failed(path, error))
    }

    /// The directory that a path leads to. `entry` is what messages name.
    fn walk(
        &mut self,
        path: &str,
        entry: &str,
        on_missing: OnMissing,
    ) -> Result<Option<Arc<OwnedFd>>, EntryError> {
        if let Some((last, directory)) = &self.last_parent
            && last == path
        {
            return Ok(Some(Arc::clone(directory)));
        }
        let mut way = vec![Arc::clone(&self.root)];
        let mut names: Vec<String> = path.rsplit('/').map(str::to_owned).collect();
        let (mut steps, mut links) = (0_usize, 0_usize);
        while let Some(name) = names.pop() {
            steps = steps.saturating_add(1);
            if steps > STEPS_MAX || links > LINKS_MAX {
                return Err(EntryError::Loop(entry.to_owned()));
            }
            let directory = Arc::clone(way.last().unwrap_or(&self.root));
            match name.as_str() {
                "" | "." => continue,
                ".." => {
                    way.truncate(way.len().saturating_sub(1).max(1));
                    continue;
                }
                _ => {}
            }
            let step = look_up(&directory, &name).map_err(|error| failed(entry, error))?;
            let next = match (step, on_missing) {
                (NameStep::Directory(next), _) => next,
                (NameStep::Link(target), _) => {
                    links = links.saturating_add(1);
                    if target.starts_with('/') {
                        way.truncate(1);
                    }
                    names.extend(target.rsplit('/').map(str::to_owned));
                    continue;
                }
                (_, OnMissing::Stop) => return Ok(None),
                (_, OnMissing::Make) => self.make_parent(&directory, &name, entry)?,
            };
            way.push(Arc::new(next));
            self.check_depth(way.len().saturating_sub(1))?;
        }
        let found = way.pop();
        self.last_parent = found.clone().map(|directory| (path.to_owned(), directory));
        Ok(found)
    }

    fn check_depth(&self, depth: usize) -> Result<(), EntryError> {
        let limit = self.depth_max;
        if depth as u64 > limit {
            let (name, unit) = ("depth_max", "directories in each other");
            return Err(EntryError::Layer(LayerError::Limit { name, limit, unit }));
        }
        Ok(())
    }

    /// A directory for an entry, in place of a file if there is one.
    fn make_parent(
        &mut self,
        directory: &OwnedFd,
        name: &str,
        entry: &str,
    ) -> Result<OwnedFd, EntryError> {
        let too_many =
            LayerError::Limit { name: "entries_max", limit: self.entries_max, unit: "entries" };
        self.parents_left = self.parents_left.checked_sub(1).ok_or(EntryError::Layer(too_many))?;
        let made = self.place_directory(directory, name, IMPLIED).and_then(|()| {
            match look_up(directory, name)? {
                NameStep::Directory(made) => Ok(made),
                _ => Err(Errno::NOTDIR),
            }
        });
        made.map_err(|error| failed(entry, error))
    }

    fn remove_name(&mut self, parent: &OwnedFd, name: &str) -> Result<(), Errno> {
        match unlinkat(parent, name, AtFlags::empty()) {
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::ISDIR) => remove_directory(parent, name)?,
            other => other?,
        }
        // It may have been on the way there.
        self.last_parent = None;
        Ok(())
    }

    fn set_directory_attributes(
        &self,
        parent: &OwnedFd,
        name: &str,
        attributes: EntryAttributes,
    ) -> Result<(), Errno> {
        self.set_owner(parent, name, attributes)?;
        let mut mode = permissions(attributes, 0o1777);
        if self.owners == FileOwners::Ignored {
            mode |= Mode::RWXU;
        }
        chmodat(parent, name, mode, AtFlags::empty())
    }

    fn set_owner(
        &self,
        parent: &OwnedFd,
        name: &str,
        attributes: EntryAttributes,
    ) -> Result<(), Errno> {
        let FileOwners::Shifted { base } = self.owners else {
            return Ok(());
        };
        let shift = |id: u64| {
            let id = if id < IDS_MAX { u32::try_from(id).unwrap_or(NOBODY) } else { NOBODY };
            base.checked_add(id).ok_or(Errno::OVERFLOW)
        };
        let (uid, gid) = (shift(attributes.uid)?, shift(attributes.gid)?);
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        chownat(parent, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
    }
}

/// What happens on the way to an entry where there is no directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnMissing {
    Stop,
    Make,
}

/// What a directory has that no entry describes.
const IMPLIED: EntryAttributes = EntryAttributes { mode: 0o755, uid: 0, gid: 0, modified: 0 };

/// One name in an open directory, and nothing that it leads to.
const ONE_NAME: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

fn look_up(directory: &OwnedFd, name: &str) -> Result<NameStep, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat2(directory, name, flags, Mode::empty(), ONE_NAME) {
        Ok(found) => return Ok(NameStep::Directory(found)),
        Err(Errno::NOENT) => return Ok(NameStep::Missing),
        Err(Errno::NOTDIR | Errno::LOOP) => {}
        Err(error) => return Err(error),
    }
    match readlinkat(directory, name, Vec::new()) {
        Ok(target) => Ok(NameStep::Link(target.to_string_lossy().into_owned())),
        Err(Errno::INVAL) => Ok(NameStep::Other),
        Err(error) => Err(error),
    }
}

fn remove_directory(parent: impl AsFd, name: &str) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = openat2(&parent, name, flags, Mode::empty(), ONE_NAME)?;
    remove_content(&directory)?;
    unlinkat(&parent, name, AtFlags::REMOVEDIR)
}

/// As deep as directories may be in each other, which [`FileTree::walk`] holds to.
fn remove_content(directory: &OwnedFd) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let readable = openat2(directory, ".", flags, Mode::empty(), ONE_NAME)?;
    let mut names = Vec::new();
    for entry in Dir::new(readable)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    for name in names {
        match unlinkat(directory, name.as_str(), AtFlags::empty()) {
            Err(Errno::ISDIR) => remove_directory(directory, &name)?,
            other => other?,
        }
    }
    Ok(())
}

fn permissions(attributes: EntryAttributes, kept: u32) -> Mode {
    Mode::from_raw_mode(attributes.mode & kept)
}

fn set_modified(parent: &OwnedFd, name: &str, attributes: EntryAttributes) -> Result<(), Errno> {
    let seconds = i64::try_from(attributes.modified.min(MODIFIED_MAX)).unwrap_or_default();
    let time = Timespec { tv_sec: seconds, tv_nsec: 0 };
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(parent, name, &times, AtFlags::SYMLINK_NOFOLLOW)
}

fn failed(path: &str, error: Errno) -> EntryError {
    EntryError::Write { path: path.to_owned(), cause: error.into() }
}

/// The directory of a path, and its name there.
pub(super) fn split_path(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}
