//! Writing an upload's file: at the offset, hashed on the way, flushed when asked.

use super::Upload;
use crate::error::Error;
use crate::storage::{blocking, files};
use bytes::Bytes;
use oci::{Algorithm, Digest, Hasher};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// An upload being written; until [`Writing::accept`], the session does not know.
pub(super) struct Writing {
    upload: Upload,
    file: Arc<File>,
    hasher: Hasher,
    offset: u64,
    pub(super) count: u64,
}

impl Writing {
    /// An upload about to be written.
    pub(super) fn new(upload: Upload, file: Arc<File>) -> Self {
        let (hasher, offset) = (upload.hasher.clone(), upload.offset);
        Self { upload, file, hasher, offset, count: 0 }
    }

    /// Hashes and writes some pieces on a thread that may wait for the disk. The guard goes
    /// along, so that the upload stays taken until the write is over.
    pub(super) async fn write(mut self, pieces: Vec<Bytes>) -> Result<Self, Error> {
        blocking(move || {
            for piece in pieces {
                self.hasher.update(&piece);
                self.file.write_all_at(&piece, self.offset)?;
                self.offset += piece.len() as u64;
                self.count += piece.len() as u64;
            }
            Ok(self)
        })
        .await
    }

    pub(super) fn check(&self, expected: Option<u64>) -> Result<(), Error> {
        match expected {
            Some(expected) if self.count > expected => {
                Err(Error::SizeMismatch { expected, actual: self.count })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn accept(mut self) -> Upload {
        self.upload.flushed = self.upload.flushed && self.count == 0;
        self.upload.hasher = self.hasher;
        self.upload.offset = self.offset;
        self.upload
    }
}

/// Opens an upload's file and cuts off what was never acknowledged.
pub(super) fn open(path: &Path, offset: u64) -> Result<Arc<File>, Error> {
    let file = fs_err::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    if file.metadata()?.len() < offset {
        return Err(Error::UploadUnknown);
    }
    if file.metadata()?.len() > offset {
        file.set_len(offset)?;
    }
    Ok(Arc::new(file.into_parts().0))
}

/// Brings an upload's bytes to the disk, and cuts off those that do not count.
pub(super) async fn flush(mut upload: Upload) -> Result<Upload, Error> {
    let Some(file) = upload.file.clone() else { return Ok(upload) };
    blocking(move || {
        if file.metadata()?.len() != upload.offset {
            file.set_len(upload.offset)?;
        }
        if !upload.flushed {
            file.sync_data()?;
            upload.flushed = true;
        }
        Ok(upload)
    })
    .await
}

/// The digest of what was uploaded. An algorithm other than the one hashed on the way means
/// reading the file once more.
pub(super) async fn hash(upload: Upload, algorithm: Algorithm) -> Result<(Upload, Digest), Error> {
    if upload.hasher.algorithm() == algorithm {
        let digest = upload.hasher.clone().finish();
        return Ok((upload, digest));
    }
    let Some(file) = upload.file.clone() else { return Err(Error::UploadUnknown) };
    blocking(move || {
        let mut file = file.try_clone()?;
        io::Seek::rewind(&mut file)?;
        let (digest, _) = files::hash_file(&mut file, algorithm)?;
        Ok((upload, digest))
    })
    .await
}
