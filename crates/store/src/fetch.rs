//! Blobs that must be whole before anyone reads them.
//!
//! A parser that reads a layer while it downloads has seen bytes nobody has vouched for yet.
//! [`fetch_to_file`] spools the blob into a file without a name, verifies it, and only then hands
//! it out; the file is gone when the value is dropped, or when the process dies.

use crate::files::{blocking, spool};
use crate::{Cause, Error, Store};
use bytes::Bytes;
use oci::Descriptor;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A blob on the disk whose digest and size were checked.
#[derive(Debug, Clone)]
pub struct VerifiedBlob {
    descriptor: Descriptor,
    file: Arc<Mutex<std::fs::File>>,
}

impl VerifiedBlob {
    /// What it is.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Its bytes from the first on. Several readers may read at once; each has its own position.
    pub fn open(&self) -> impl Read + Seek + Send + use<> {
        let reader =
            Shared { file: Arc::clone(&self.file), position: 0, size: self.descriptor.size };
        BufReader::with_capacity(64 << 10, reader)
    }
}

/// Spools a blob into an unlinked temporary file in `directory`. Blobs of more than `limit`
/// bytes are refused before a byte is read.
pub async fn fetch_to_file(
    store: &dyn Store,
    descriptor: &Descriptor,
    limit: u64,
    directory: &Path,
) -> Result<VerifiedBlob, Error> {
    let failed =
        |cause| Error::Blob { place: store.place(), digest: descriptor.digest.clone(), cause };
    let blob = open(store, descriptor, limit).await?;
    let directory = directory.to_owned();
    let file = blocking(move || Ok(tempfile::tempfile_in(directory)?)).await.map_err(failed)?;
    let file = spool(blob, file).await.map_err(failed)?;
    Ok(VerifiedBlob { descriptor: descriptor.clone(), file: Arc::new(Mutex::new(file)) })
}

/// All bytes of a small blob, verified.
pub async fn fetch_bytes(
    store: &dyn Store,
    descriptor: &Descriptor,
    limit: u64,
) -> Result<Bytes, Error> {
    let blob = open(store, descriptor, limit).await?;
    blob.bytes(limit).await.map_err(|cause| Error::Blob {
        place: store.place(),
        digest: descriptor.digest.clone(),
        cause,
    })
}

async fn open(
    store: &dyn Store,
    descriptor: &Descriptor,
    limit: u64,
) -> Result<crate::Blob, Error> {
    if descriptor.size > limit {
        return Err(Error::Blob {
            place: store.place(),
            digest: descriptor.digest.clone(),
            cause: Cause::TooLarge { what: "the blob".to_owned(), limit },
        });
    }
    let found = store.blob(descriptor).await?;
    found.ok_or_else(|| Error::Missing {
        place: store.place(),
        what: format!("blob {}", descriptor.digest),
    })
}

/// A reader with its own position in a file that others read too.
struct Shared {
    file: Arc<Mutex<std::fs::File>>,
    position: u64,
    size: u64,
}

impl Read for Shared {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.position))?;
        let count = file.read(buffer)?;
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for Shared {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(offset) => self.size.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}
