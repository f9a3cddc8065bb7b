//! The gate every blob passes: no stream ends well with wrong bytes.
//!
//! The last piece is held back until the digest is known to be right, so that a reader who
//! counts bytes and never looks for the end of the stream cannot be fooled either. As soon as
//! more bytes arrive than were promised, the stream ends in an error.

use crate::{Blob, ByteStream, Cause};
use bytes::Bytes;
use futures::{Stream, StreamExt};
use oci::{Descriptor, Digest, Hasher};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A stream that delivers exactly the promised bytes, or an error.
pub struct Verified {
    inner: ByteStream,
    hasher: Option<Hasher>,
    digest: Digest,
    size: u64,
    seen: u64,
}

/// Guards a stream that should carry what the descriptor says.
pub fn verify(inner: ByteStream, descriptor: &Descriptor) -> Blob {
    let verified = Verified {
        inner,
        hasher: Some(descriptor.digest.hasher()),
        digest: descriptor.digest.clone(),
        size: descriptor.size,
        seen: 0,
    };
    Blob { size: descriptor.size, stream: verified.boxed() }
}

/// Whether bytes at hand are what the descriptor says.
pub fn check(bytes: &[u8], descriptor: &Descriptor) -> Result<(), Cause> {
    let actual = bytes.len() as u64;
    if actual != descriptor.size {
        return Err(Cause::Size { expected: descriptor.size, actual });
    }
    check_digest(bytes, &descriptor.digest)
}

/// Whether bytes at hand have this digest.
pub fn check_digest(bytes: &[u8], expected: &Digest) -> Result<(), Cause> {
    let mut hasher = expected.hasher();
    hasher.update(bytes);
    compare(hasher, expected)
}

fn compare(hasher: Hasher, expected: &Digest) -> Result<(), Cause> {
    let actual = hasher.finish();
    if actual == *expected {
        Ok(())
    } else {
        Err(Cause::Digest { expected: expected.clone(), actual })
    }
}

impl Verified {
    /// Judges the next piece before anyone sees it.
    fn admit(&mut self, chunk: Bytes) -> Result<Bytes, Cause> {
        self.seen += chunk.len() as u64;
        if self.seen > self.size {
            return Err(Cause::Size { expected: self.size, actual: self.seen });
        }
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&chunk);
        }
        if self.seen == self.size {
            self.judge()?;
        }
        Ok(chunk)
    }

    fn judge(&mut self) -> Result<(), Cause> {
        // The hasher is gone once the verdict was given; what follows may only be empty.
        self.hasher.take().map_or(Ok(()), |hasher| compare(hasher, &self.digest))
    }

    fn end(&mut self) -> Result<(), Cause> {
        if self.seen < self.size {
            return Err(Cause::Size { expected: self.size, actual: self.seen });
        }
        self.judge()
    }

    /// After an error there is nothing more to say.
    fn fail(&mut self, error: io::Error) -> Poll<Option<io::Result<Bytes>>> {
        self.inner = futures::stream::empty().boxed();
        self.hasher = None;
        self.size = 0;
        self.seen = 0;
        Poll::Ready(Some(Err(error)))
    }
}

impl Stream for Verified {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match futures::ready!(self.inner.poll_next_unpin(context)) {
            Some(Ok(chunk)) => match self.admit(chunk) {
                Ok(chunk) => Poll::Ready(Some(Ok(chunk))),
                Err(cause) => self.fail(cause.into_io()),
            },
            Some(Err(error)) => self.fail(error),
            None => match self.end() {
                Ok(()) => Poll::Ready(None),
                Err(cause) => self.fail(cause.into_io()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::{TryStreamExt, stream};
    use oci::MediaType;

    async fn read(promised: &[u8], sent: &'static [&'static [u8]]) -> Result<Vec<u8>, Cause> {
        let descriptor = Descriptor::of(MediaType::OCTET_STREAM, promised);
        let chunks = stream::iter(sent.iter().map(|chunk| Ok(Bytes::from_static(chunk))));
        let mut stream = verify(chunks.boxed(), &descriptor).stream;
        let mut all = Vec::new();
        while let Some(chunk) = stream.try_next().await? {
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }

    #[tokio::test]
    async fn right_bytes_pass() {
        assert_eq!(read(b"hello", &[b"he", b"", b"llo", b""]).await.unwrap(), b"hello");
        assert_eq!(read(b"", &[]).await.unwrap(), b"");
    }

    #[tokio::test]
    async fn wrong_bytes_do_not() {
        let short = read(b"hello", &[b"hell"]).await.unwrap_err();
        assert!(matches!(short, Cause::Size { expected: 5, actual: 4 }), "{short}");
        let long = read(b"hello", &[b"hello", b"!"]).await.unwrap_err();
        assert!(matches!(long, Cause::Size { expected: 5, actual: 6 }), "{long}");
        let other = read(b"hello", &[b"hullo"]).await.unwrap_err();
        assert!(matches!(other, Cause::Digest { .. }), "{other}");
    }

    #[tokio::test]
    async fn the_last_piece_of_wrong_bytes_is_never_delivered() {
        let descriptor = Descriptor::of(MediaType::OCTET_STREAM, b"hello");
        let chunks = stream::iter([Ok(Bytes::from_static(b"hullo"))]);
        let mut stream = verify(chunks.boxed(), &descriptor).stream;
        assert!(stream.try_next().await.is_err());
        assert!(stream.try_next().await.unwrap().is_none_or(|chunk| chunk.is_empty()));
    }
}
