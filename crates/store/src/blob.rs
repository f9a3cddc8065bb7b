//! Blobs as streams, and sources that can be opened again.

use crate::files::{blocking, open_regular};
use crate::{Cause, Error};
use async_trait::async_trait;
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use tokio_util::io::ReaderStream;

/// Bytes that arrive in pieces.
pub type ByteStream = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

const FILE_CHUNK_SIZE: usize = 128 << 10;

/// A blob on its way: how long it will be, and its bytes.
pub struct Blob {
    /// How many bytes there will be.
    pub size: u64,
    /// The bytes, in pieces.
    pub stream: ByteStream,
}

impl Blob {
    /// A blob of bytes at hand.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self {
            size: bytes.len() as u64,
            stream: stream::iter((!bytes.is_empty()).then_some(Ok(bytes))).boxed(),
        }
    }

    /// All bytes at once, if there are not more than `limit`.
    pub async fn bytes(self, limit: u64) -> Result<Bytes, Cause> {
        let too_large = || Cause::TooLarge { what: "the blob".to_owned(), limit };
        if self.size > limit {
            return Err(too_large());
        }
        let mut all = Vec::new();
        let mut stream = self.stream;
        while let Some(chunk) = stream.try_next().await? {
            if all.len() as u64 + chunk.len() as u64 > limit {
                return Err(too_large());
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all.into())
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Blob").field("size", &self.size).finish_non_exhaustive()
    }
}

/// Something a blob can be read from, again if need be: an upload that broke starts over.
#[async_trait]
pub trait Source: Send + Sync {
    /// The blob from its first byte.
    async fn open(&self) -> Result<Blob, Error>;
}

#[async_trait]
impl Source for Bytes {
    async fn open(&self) -> Result<Blob, Error> {
        Ok(Blob::from_bytes(self.clone()))
    }
}

/// A file as the source of a blob.
#[derive(Debug, Clone)]
pub struct FileSource(pub PathBuf);

#[async_trait]
impl Source for FileSource {
    async fn open(&self) -> Result<Blob, Error> {
        let failed = |cause| Error::Open { path: self.0.clone(), cause };
        let path = self.0.clone();
        let opened = blocking(move || {
            let file = open_regular(&path)?;
            let size = file.metadata()?.len();
            Ok((file, size))
        });
        let (file, size) = opened.await.map_err(failed)?;
        let file = tokio::fs::File::from_std(file.into_parts().0);
        let stream = ReaderStream::with_capacity(file, FILE_CHUNK_SIZE).boxed();
        Ok(Blob { size, stream })
    }
}
