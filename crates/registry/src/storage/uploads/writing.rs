//! Writing an upload's file: at the offset, hashed on the way, flushed when asked.

use super::Upload;
use super::direct::Way;
use crate::error::Error;
use crate::storage::{blocking, files};
use bytes::Bytes;
use oci::{Algorithm, Digest, Hasher};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An upload being written; until [`Writing::accept`], the session does not know.
pub(super) struct Writing {
    upload: Upload,
    path: PathBuf,
    way: Way,
    hasher: Hasher,
    offset: u64,
    expected: Option<u64>,
    pub(super) count: u64,
}

impl Writing {
    /// An upload about to be written to this file, perhaps with a body of known length.
    pub(super) fn new(upload: Upload, path: PathBuf, expected: Option<u64>) -> Self {
        let (hasher, offset) = (upload.hasher.clone(), upload.offset);
        Self { upload, path, way: Way::Unknown, hasher, offset, expected, count: 0 }
    }

    /// Hashes and writes some pieces on a thread that may wait for the disk. The guard goes
    /// along, so that the upload stays taken until the write is over.
    pub(super) async fn write(mut self, pieces: Vec<Bytes>) -> Result<Self, Error> {
        blocking(move || {
            self.write_here(&pieces)?;
            Ok(self)
        })
        .await
    }

    /// The same on this thread.
    pub(super) fn write_here(&mut self, pieces: &[Bytes]) -> Result<(), Error> {
        let file = match self.upload.file.clone() {
            Some(file) => file,
            None => open(&self.path, self.upload.offset)?,
        };
        self.upload.file = Some(file.clone());
        let mut written = self.way.write(&self.path, pieces, self.offset)?;
        for piece in pieces {
            self.hasher.update(piece);
            let skip = written.min(piece.len());
            written -= skip;
            file.write_all_at(&piece[skip..], self.offset + skip as u64)?;
            self.offset += piece.len() as u64;
            self.count += piece.len() as u64;
        }
        match self.expected {
            Some(expected) if self.count > expected => {
                Err(Error::SizeMismatch { expected, actual: self.count })
            }
            _ => Ok(()),
        }
    }

    /// The upload with all that was written, unless that is less than announced.
    pub(super) fn accept(self) -> Result<Upload, Error> {
        match self.expected {
            Some(expected) if expected != self.count => {
                Err(Error::SizeMismatch { expected, actual: self.count })
            }
            _ => Ok(self.accept_part()),
        }
    }

    /// The upload with what was written, for the client to go on from.
    pub(super) fn accept_part(mut self) -> Upload {
        self.upload.flushed = self.upload.flushed && self.count == 0;
        self.upload.hasher = self.hasher;
        self.upload.offset = self.offset;
        self.upload
    }
}

/// Opens an upload's file and cuts off what was never acknowledged.
fn open(path: &Path, offset: u64) -> Result<Arc<File>, Error> {
    let file = fs_err::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    let length = file.metadata()?.len();
    if length < offset {
        return Err(Error::UploadUnknown);
    }
    if length > offset {
        file.set_len(offset)?;
    }
    Ok(Arc::new(file.into_parts().0))
}

/// Brings an upload's bytes to the disk, and cuts off those that do not count.
pub(super) fn flush(upload: &mut Upload) -> Result<(), Error> {
    let Some(file) = upload.file.clone() else { return Ok(()) };
    if file.metadata()?.len() != upload.offset {
        file.set_len(upload.offset)?;
    }
    if !upload.flushed {
        file.sync_data()?;
        upload.flushed = true;
    }
    Ok(())
}

/// The digest of what was uploaded. An algorithm other than the one hashed on the way means
/// reading the file once more, as far as it counts.
pub(super) fn hash(upload: &Upload, algorithm: Algorithm) -> Result<Digest, Error> {
    if upload.hasher.algorithm() == algorithm {
        return Ok(upload.hasher.clone().finish());
    }
    let Some(file) = &upload.file else { return Err(Error::UploadUnknown) };
    let mut file = file.try_clone()?;
    io::Seek::rewind(&mut file)?;
    Ok(files::hash_file(&mut file.take(upload.offset), algorithm)?.0)
}
