//! The files of a data directory, and the order in which they reach the disk.
//!
//! ```text
//!   <root>/oci-layout  lock  meta.db
//!          blobs/sha256/<hex>  blobs/sha512/<hex>     the only copy of every byte served
//!          uploads/<id>                               what is on its way in
//!          repos/<name…>/_layout/{oci-layout,index.json,blobs → …}
//!          repos/<name…>/_held                        blobs that the repository has
//!          quarantine/                                what scrubbing found damaged
//! ```
//!
//! A blob gets its name in four steps: written, flushed, renamed, directory flushed. Only then
//! may the database know of it.

use super::direct::Way;
use super::{Content, Source, Staged, Written, private};
use crate::error::Error;
use crate::name::Name;
use bytes::Bytes;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use oci::{Algorithm, Digest};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

const LAYOUT_MARK: &[u8] = b"{\"imageLayoutVersion\":\"1.0.0\"}";

/// Where everything lies.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    root: PathBuf,
}

impl Files {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Makes the directories that must be there.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        for algorithm in [Algorithm::Sha256, Algorithm::Sha512] {
            private::make_directory(&self.blobs(algorithm))?;
        }
        for directory in [self.uploads(), self.repositories(), self.root.join("quarantine")] {
            private::make_directory(&directory)?;
        }
        private::narrow(&self.root)?;
        let mark = self.root.join("oci-layout");
        if !mark.exists() {
            Self::replace(&mark, LAYOUT_MARK)?;
        }
        sync_directory(&self.root.join("blobs"))?;
        sync_directory(&self.root)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.root.join("meta.db")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    pub(crate) fn blobs(&self, algorithm: Algorithm) -> PathBuf {
        self.root.join("blobs").join(algorithm.as_str())
    }

    pub(crate) fn blob(&self, digest: &Digest) -> PathBuf {
        self.blobs(digest.algorithm()).join(digest.hex())
    }

    pub(crate) fn uploads(&self) -> PathBuf {
        self.root.join("uploads")
    }

    pub(crate) fn upload(&self, id: &str) -> PathBuf {
        self.uploads().join(id)
    }

    pub(crate) fn repositories(&self) -> PathBuf {
        self.root.join("repos")
    }

    /// A repository's view. `_` cannot begin a component of a name, so views never collide with
    /// repositories below.
    pub(crate) fn view(&self, name: &Name) -> PathBuf {
        self.repositories().join(name.as_str()).join("_layout")
    }

    /// The list of the blobs that a repository has.
    pub(crate) fn held(&self, name: &Name) -> PathBuf {
        self.repositories().join(name.as_str()).join("_held")
    }

    /// Replaces a file so that it is there entirely, old or new.
    pub(crate) fn replace(target: &Path, bytes: &[u8]) -> io::Result<()> {
        let temporary = target.with_extension("new");
        let mut file = private::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs_err::rename(&temporary, target)?;
        target.parent().map_or(Ok(()), sync_directory)
    }

    /// Moves a finished file to its address and makes the name durable.
    fn name(&self, temporary: &Path, digest: &Digest) -> io::Result<()> {
        fs_err::rename(temporary, self.blob(digest))?;
        sync_directory(&self.blobs(digest.algorithm()))
    }
}

impl Content for Files {
    fn space(&self) -> Result<u64, Error> {
        let found = rustix::fs::statvfs(&self.root).map_err(io::Error::from)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    fn stage(&self, id: &str, offset: u64) -> Result<Arc<dyn Staged>, Error> {
        let path = self.upload(id);
        let mut options = fs_err::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(private::FILE);
        let file = options.open(&path)?;
        let length = file.metadata()?.len();
        if length < offset {
            return Err(Error::UploadUnknown);
        }
        if length > offset {
            file.set_len(offset)?;
        }
        let file = Arc::new(file.into_parts().0);
        Ok(Arc::new(Upload { path, file, way: Mutex::new(Way::Unknown) }))
    }

    fn staged(&self) -> Result<Vec<String>, Error> {
        let mut all = Vec::new();
        for entry in fs_err::read_dir(self.uploads())? {
            all.extend(entry?.file_name().into_string());
        }
        Ok(all)
    }

    fn unstage(&self, id: &str) -> Result<(), Error> {
        Ok(gone(fs_err::remove_file(self.upload(id)))?)
    }

    fn adopt(&self, id: &str, digest: &Digest) -> Result<(), Error> {
        Ok(self.name(&self.upload(id), digest)?)
    }

    fn put(&self, id: &str, digest: &Digest, bytes: &[u8]) -> Result<(), Error> {
        let path = self.upload(id);
        let mut file = private::create(&path)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_data());
        if let Err(error) = written {
            let _ = fs_err::remove_file(&path);
            return Err(error.into());
        }
        Ok(self.name(&path, digest)?)
    }

    fn open(&self, digest: &Digest) -> Result<Option<Source>, Error> {
        match fs_err::File::open(self.blob(digest)) {
            Ok(file) => Ok(Some(Source::File(Arc::new(file.into_parts().0)))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn remove(&self, digest: &Digest) -> Result<(), Error> {
        Ok(gone(fs_err::remove_file(self.blob(digest)))?)
    }

    fn quarantine(&self, digest: &Digest) -> Result<(), Error> {
        let name = format!("{}-{}", digest.algorithm().as_str(), digest.hex());
        let target = self.root.join("quarantine").join(name);
        Ok(gone(fs_err::rename(self.blob(digest), target))?)
    }

    fn list(&self, algorithm: Algorithm) -> Result<Vec<Digest>, Error> {
        let mut all = Vec::new();
        for entry in fs_err::read_dir(self.blobs(algorithm))? {
            let name = entry?.file_name();
            let digest =
                name.to_str().and_then(|hex| format!("{}:{hex}", algorithm.as_str()).parse().ok());
            all.extend(digest);
        }
        Ok(all)
    }
}

/// An upload's file.
struct Upload {
    path: PathBuf,
    file: Arc<File>,
    way: Mutex<Way>,
}

impl Staged for Upload {
    fn write(&self, pieces: &[Bytes], mut offset: u64) -> Result<(), Error> {
        let mut way = self.way.lock().unwrap_or_else(PoisonError::into_inner);
        let mut written = way.write(&self.path, pieces, offset)?;
        for piece in pieces {
            let skip = written.min(piece.len());
            written = written.saturating_sub(skip);
            self.file.write_all_at(&piece[skip..], offset.saturating_add(skip as u64))?;
            offset = offset.saturating_add(piece.len() as u64);
        }
        Ok(())
    }

    fn flush(&self, size: u64, written: Written) -> Result<(), Error> {
        if self.file.metadata()?.len() != size {
            self.file.set_len(size)?;
        }
        if written == Written::Something {
            self.file.sync_data()?;
        }
        Ok(())
    }

    fn flush_name(&self) -> Result<(), Error> {
        Ok(self.path.parent().map_or(Ok(()), sync_directory)?)
    }

    fn source(&self) -> Arc<Source> {
        Arc::new(Source::File(self.file.clone()))
    }
}

/// Reads what the system has in memory.
#[cfg(target_os = "linux")]
pub(super) fn read_ready(file: &File, buffer: &mut [u8], offset: u64) -> usize {
    use rustix::io::{ReadWriteFlags, preadv2};
    let mut buffers = [io::IoSliceMut::new(buffer)];
    preadv2(file, &mut buffers, offset, ReadWriteFlags::NOWAIT).unwrap_or(0)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn read_ready(_file: &File, _buffer: &mut [u8], _offset: u64) -> usize {
    0
}

pub(crate) const fn layout_mark() -> &'static [u8] {
    LAYOUT_MARK
}

/// A rename is on the disk only when its directory is.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    fs_err::File::open(path)?.sync_all()
}

fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
