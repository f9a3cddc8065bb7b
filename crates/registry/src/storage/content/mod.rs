//! The bytes of a registry: blobs by their digest, and uploads on their way.
//!
//! The other seam, beside [`super::metadata`]: files here ([`files`]), memory for tests and
//! simulations ([`memory`]), and room for an object store, which has no appending. Bytes come in
//! blocks at offsets that follow one another and are flushed as a whole, which the parts of a
//! multipart upload and a short tail beside them can do. What such an upload needs to be taken up
//! again, and where a blob lies in the end, is found by id and digest alone.
//!
//! - **Durable when it returns**: [`Content::put`], [`Content::adopt`] and, for what was written
//!   before, [`Staged::flush`].
//! - **Methods wait**, for a disk or for a server: they are called on threads that may.
//! - Nothing here decides what may go; whoever calls holds the digest.

mod direct;
pub(crate) mod files;
pub(crate) mod memory;
pub(crate) mod private;
#[cfg(test)]
mod suite;

use crate::error::Error;
use bytes::Bytes;
use oci::{Algorithm, Digest, Hasher};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, PoisonError, RwLock};

/// All of it.
pub(crate) trait Content: Send + Sync {
    /// Bytes that may still be written.
    fn space(&self) -> Result<u64, Error>;
    /// Takes up an upload at an offset, or begins it; what lies behind the offset is cut off.
    fn stage(&self, id: &str, offset: u64) -> Result<Arc<dyn Staged>, Error>;
    /// Uploads that have bytes here.
    fn staged(&self) -> Result<Vec<String>, Error>;
    /// Throws an upload's bytes away; that there are none is fine.
    fn unstage(&self, id: &str) -> Result<(), Error>;
    /// Makes a flushed upload the bytes of its digest, replacing those that are there.
    fn adopt(&self, id: &str, digest: &Digest) -> Result<(), Error>;
    /// Puts bytes at hand to their digest, by way of an upload's id.
    fn put(&self, id: &str, digest: &Digest, bytes: &[u8]) -> Result<(), Error>;
    /// Opens the bytes of a digest; they can be read to their end even if removed meanwhile.
    fn open(&self, digest: &Digest) -> Result<Option<Source>, Error>;
    /// Removes the bytes of a digest; that there are none is fine.
    fn remove(&self, digest: &Digest) -> Result<(), Error>;
    /// Takes damaged bytes out of service, keeping them for whoever wants to look.
    fn quarantine(&self, digest: &Digest) -> Result<(), Error>;
    /// All digests of one algorithm that have bytes.
    fn list(&self, algorithm: Algorithm) -> Result<Vec<Digest>, Error>;
}

/// An upload's bytes.
pub(crate) trait Staged: Send + Sync {
    /// Writes some pieces, one after the other, from an offset on.
    fn write(&self, pieces: &[Bytes], offset: u64) -> Result<(), Error>;
    /// Cuts off what lies behind `size`, and makes what was written durable.
    fn flush(&self, size: u64, written: Written) -> Result<(), Error>;
    /// Makes it durable that the upload is there at all.
    fn flush_name(&self) -> Result<(), Error>;
    /// The bytes so far, for whoever reads along.
    fn source(&self) -> Arc<Source>;
}

/// Whether anything was written since the last flush.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Nothing,
    Something,
}

/// Bytes that can be read from anywhere. No trait: pulls read through it, piece by piece.
pub(crate) enum Source {
    File(Arc<File>),
    Memory(Arc<RwLock<Vec<u8>>>),
}

impl Source {
    /// How many there are.
    pub(crate) fn size(&self) -> io::Result<u64> {
        match self {
            Self::File(file) => Ok(file.metadata()?.len()),
            Self::Memory(bytes) => {
                Ok(bytes.read().unwrap_or_else(PoisonError::into_inner).len() as u64)
            }
        }
    }

    /// Fills a buffer from an offset on, waiting if need be.
    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Self::File(file) => file.read_exact_at(buffer, offset),
            Self::Memory(_) if self.read_ready(buffer, offset) == buffer.len() => Ok(()),
            Self::Memory(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Reads what can be had without waiting, perhaps nothing; gives how much that was.
    pub(crate) fn read_ready(&self, buffer: &mut [u8], offset: u64) -> usize {
        match self {
            Self::File(file) => files::read_ready(file, buffer, offset),
            Self::Memory(bytes) => {
                let bytes = bytes.read().unwrap_or_else(PoisonError::into_inner);
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let ready = &bytes[start..];
                let count = buffer.len().min(ready.len());
                buffer[..count].copy_from_slice(&ready[..count]);
                count
            }
        }
    }

    /// All of it; for manifests, which are small.
    pub(crate) fn read_all(&self) -> io::Result<Vec<u8>> {
        let size = usize::try_from(self.size()?).map_err(io::Error::other)?;
        let mut bytes = vec![0; size];
        self.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    /// The digest of the first `size` bytes.
    pub(crate) fn hash(&self, algorithm: Algorithm, size: u64) -> io::Result<Digest> {
        const PIECE: usize = 256 << 10;
        let (mut hasher, mut buffer) = (Hasher::new(algorithm), vec![0; PIECE]);
        let mut offset = 0_u64;
        while offset < size {
            let count = usize::try_from(size.saturating_sub(offset)).unwrap_or(PIECE).min(PIECE);
            self.read_exact_at(&mut buffer[..count], offset)?;
            hasher.update(&buffer[..count]);
            offset = offset.saturating_add(count as u64);
        }
        Ok(hasher.finish())
    }
}
