//! The files of a data directory, and the order in which they reach the disk.
//!
//! ```text
//!   <root>/oci-layout  lock  meta.db
//!          blobs/sha256/<hex>  blobs/sha512/<hex>     the only copy of every byte served
//!          uploads/<id>                               what is on its way in
//!          repos/<name…>/_layout/{oci-layout,index.json,blobs → …}
//!          quarantine/                                what scrubbing found damaged
//! ```
//!
//! A blob gets its name in four steps: written, flushed, renamed, directory flushed. Only then
//! may the database know of it.

use crate::name::Name;
use oci::{Algorithm, Digest, Hasher};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

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
            fs_err::create_dir_all(self.blobs(algorithm))?;
        }
        for directory in [self.uploads(), self.repositories(), self.root.join("quarantine")] {
            fs_err::create_dir_all(directory)?;
        }
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

    /// Moves a finished file to its address and makes the name durable.
    pub(crate) fn adopt(&self, temporary: &Path, digest: &Digest) -> io::Result<()> {
        fs_err::rename(temporary, self.blob(digest))?;
        sync_directory(&self.blobs(digest.algorithm()))
    }

    /// Puts bytes at hand to their address, durably.
    pub(crate) fn write_blob(
        &self,
        temporary: &str,
        digest: &Digest,
        bytes: &[u8],
    ) -> io::Result<()> {
        let path = self.upload(temporary);
        let mut file = fs_err::File::create(&path)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_data());
        if let Err(error) = written {
            let _ = fs_err::remove_file(&path);
            return Err(error);
        }
        self.adopt(&path, digest)
    }

    /// Removes a blob's file; that it is gone already is fine.
    pub(crate) fn remove_blob(&self, digest: &Digest) -> io::Result<()> {
        gone(fs_err::remove_file(self.blob(digest)))
    }

    pub(crate) fn remove_upload(&self, id: &str) -> io::Result<()> {
        gone(fs_err::remove_file(self.upload(id)))
    }

    /// Takes a damaged blob out of service, keeping its bytes for whoever wants to look.
    pub(crate) fn quarantine(&self, digest: &Digest) -> io::Result<()> {
        let target = self.root.join("quarantine").join(format!(
            "{}-{}",
            digest.algorithm().as_str(),
            digest.hex()
        ));
        gone(fs_err::rename(self.blob(digest), target))
    }

    /// Replaces a file so that it is there entirely, old or new.
    pub(crate) fn replace(target: &Path, bytes: &[u8]) -> io::Result<()> {
        let temporary = target.with_extension("new");
        let mut file = fs_err::File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs_err::rename(&temporary, target)?;
        target.parent().map_or(Ok(()), sync_directory)
    }

    /// Bytes an ordinary process may still write to this file system.
    pub(crate) fn space(&self) -> io::Result<u64> {
        let found = rustix::fs::statvfs(&self.root)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }
}

pub(crate) const fn layout_mark() -> &'static [u8] {
    LAYOUT_MARK
}

/// A rename is on the disk only when its directory is.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    fs_err::File::open(path)?.sync_all()
}

/// Hashes what a file has from here on; gives the digest and the length.
pub(crate) fn hash_file(file: &mut impl Read, algorithm: Algorithm) -> io::Result<(Digest, u64)> {
    const PIECE: usize = 256 << 10;
    let mut hasher = Hasher::new(algorithm);
    let mut buffer = vec![0; PIECE];
    let mut size = 0;
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok((hasher.finish(), size));
        }
        hasher.update(&buffer[..count]);
        size += count as u64;
    }
}

fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
