//! Bytes in memory.

use super::{Content, Source, Staged, Written};
use crate::error::Error;
use bytes::Bytes;
use oci::{Algorithm, Digest};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};

type Shared = Arc<RwLock<Vec<u8>>>;

/// Bytes that end with the process.
#[derive(Default)]
pub(crate) struct Memory {
    shelves: Mutex<Shelves>,
}

#[derive(Default)]
struct Shelves {
    blobs: BTreeMap<Digest, Shared>,
    uploads: BTreeMap<String, Shared>,
    damaged: BTreeMap<Digest, Shared>,
}

/// An upload in memory.
struct Upload {
    bytes: Shared,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Shelves> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Content for Memory {
    fn space(&self) -> Result<u64, Error> {
        let shelves = self.lock();
        let all = shelves.blobs.values().chain(shelves.uploads.values());
        let held = |bytes: &Shared| bytes.read().unwrap_or_else(PoisonError::into_inner).len();
        let held: usize = all.chain(shelves.damaged.values()).map(held).sum();
        Ok(u64::MAX.saturating_sub(u64::try_from(held).unwrap_or(u64::MAX)))
    }

    fn stage(&self, id: &str, offset: u64) -> Result<Arc<dyn Staged>, Error> {
        let bytes = self.lock().uploads.entry(id.to_owned()).or_default().clone();
        let size = size(offset)?;
        {
            let mut bytes = write(&bytes);
            if bytes.len() < size {
                return Err(Error::UploadUnknown);
            }
            bytes.truncate(size);
        }
        Ok(Arc::new(Upload { bytes }))
    }

    fn staged(&self) -> Result<Vec<String>, Error> {
        Ok(self.lock().uploads.keys().cloned().collect())
    }

    fn unstage(&self, id: &str) -> Result<(), Error> {
        self.lock().uploads.remove(id);
        Ok(())
    }

    fn adopt(&self, id: &str, digest: &Digest) -> Result<(), Error> {
        let mut shelves = self.lock();
        let bytes = shelves.uploads.remove(id).ok_or(Error::UploadUnknown)?;
        shelves.blobs.insert(digest.clone(), bytes);
        Ok(())
    }

    fn put(&self, _id: &str, digest: &Digest, bytes: &[u8]) -> Result<(), Error> {
        self.lock().blobs.insert(digest.clone(), Arc::new(RwLock::new(bytes.to_vec())));
        Ok(())
    }

    fn open(&self, digest: &Digest) -> Result<Option<Source>, Error> {
        Ok(self.lock().blobs.get(digest).cloned().map(Source::Memory))
    }

    fn remove(&self, digest: &Digest) -> Result<(), Error> {
        self.lock().blobs.remove(digest);
        Ok(())
    }

    fn quarantine(&self, digest: &Digest) -> Result<(), Error> {
        let mut shelves = self.lock();
        if let Some(bytes) = shelves.blobs.remove(digest) {
            shelves.damaged.insert(digest.clone(), bytes);
        }
        Ok(())
    }

    fn list(&self, algorithm: Algorithm) -> Result<Vec<Digest>, Error> {
        let shelves = self.lock();
        Ok(shelves.blobs.keys().filter(|it| it.algorithm() == algorithm).cloned().collect())
    }
}

impl Staged for Upload {
    fn write(&self, pieces: &[Bytes], offset: u64) -> Result<(), Error> {
        let mut bytes = write(&self.bytes);
        // What a body that was refused left behind does not count.
        bytes.truncate(size(offset)?);
        for piece in pieces {
            bytes.extend_from_slice(piece);
        }
        Ok(())
    }

    fn flush(&self, length: u64, _written: Written) -> Result<(), Error> {
        write(&self.bytes).truncate(size(length)?);
        Ok(())
    }

    fn flush_name(&self) -> Result<(), Error> {
        Ok(())
    }

    fn source(&self) -> Arc<Source> {
        Arc::new(Source::Memory(self.bytes.clone()))
    }
}

fn write(bytes: &Shared) -> RwLockWriteGuard<'_, Vec<u8>> {
    bytes.write().unwrap_or_else(PoisonError::into_inner)
}

fn size(size: u64) -> Result<usize, Error> {
    usize::try_from(size).map_err(|error| Error::Io(std::io::Error::other(error)))
}
