//! Blobs from a registry, taken up again where a connection broke.

use super::pace::Pace;
use super::request::Call;
use super::send::host;
use super::{Body, HttpError, Remote, text};
use crate::error::Cause;
use crate::verify::verify;
use crate::{Blob, ByteStream, Error, Store};
use bytes::{Buf, Bytes};
use futures::{StreamExt, stream};
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, RANGE};
use http::{Method, Response, StatusCode};
use oci::{Descriptor, Digest, MediaType};
use std::io;
use tokio::time::Instant;

/// How often one download is taken up again in all, however far it gets each time.
const RESUMES_MAX: u32 = 64;

struct Download {
    remote: Remote,
    call: Call<'static>,
    body: Body,
    size: u64,
    offset: u64,
    /// Bytes to pass over, because the registry began from the start again.
    skip: u64,
    /// Failures since the last byte.
    failures: u32,
    resumes: u32,
    pace: Pace,
}

impl Remote {
    /// A blob of which only the digest is known: the registry says how long it is. More than
    /// `limit` bytes are refused before one is read.
    pub async fn blob_by_digest(&self, digest: &Digest, limit: u64) -> Result<Option<Blob>, Error> {
        self.download_unsized(digest, limit).await.map_err(|cause| self.unreadable(digest, cause))
    }

    /// How long a blob is, without its bytes.
    pub async fn blob_size(&self, digest: &Digest) -> Result<Option<u64>, Error> {
        self.read_blob_size(digest).await.map_err(|cause| self.unreadable(digest, cause))
    }

    fn unreadable(&self, digest: &Digest, cause: Cause) -> Error {
        Error::Blob { place: self.place(), digest: digest.clone(), cause }
    }

    async fn read_blob_size(&self, digest: &Digest) -> Result<Option<u64>, Cause> {
        let call = self.pull(Method::HEAD, &format!("blobs/{digest}")).await?;
        let response = self.send(&call).await?;
        match response.status() {
            StatusCode::NOT_FOUND => Ok(None),
            status if status.is_success() => length(&call, &response).map(Some),
            _ => self.refuse(&call, response).await,
        }
    }

    async fn download_unsized(&self, digest: &Digest, limit: u64) -> Result<Option<Blob>, Cause> {
        let Some((call, response)) = self.open(digest).await? else { return Ok(None) };
        let size = length(&call, &response)?;
        if size > limit {
            return Err(Cause::TooLarge { what: "the blob".to_owned(), limit });
        }
        let descriptor = Descriptor::new(MediaType::OCTET_STREAM, digest.clone(), size);
        Ok(Some(self.guarded(call, response, &descriptor)))
    }

    pub(crate) async fn download(&self, descriptor: &Descriptor) -> Result<Option<Blob>, Cause> {
        let opened = self.open(&descriptor.digest).await?;
        Ok(opened.map(|(call, response)| self.guarded(call, response, descriptor)))
    }

    async fn open(
        &self,
        digest: &Digest,
    ) -> Result<Option<(Call<'static>, Response<Body>)>, Cause> {
        let call = self.pull(Method::GET, &format!("blobs/{digest}")).await?;
        let response = self.send(&call).await?;
        match response.status() {
            StatusCode::NOT_FOUND => Ok(None),
            StatusCode::OK => Ok(Some((call, response))),
            _ => self.refuse(&call, response).await,
        }
    }

    fn guarded(
        &self,
        call: Call<'static>,
        response: Response<Body>,
        descriptor: &Descriptor,
    ) -> Blob {
        let download = Download {
            remote: self.clone(),
            call,
            body: response.into_body(),
            size: descriptor.size,
            offset: 0,
            skip: 0,
            failures: 0,
            resumes: 0,
            pace: Pace::new(self.client.inner.settings.idle_timeout),
        };
        verify(download.into_stream(), descriptor)
    }
}

/// How long an answer's body is.
fn length(call: &Call<'_>, response: &Response<Body>) -> Result<u64, Cause> {
    let parsed = text(response.headers(), CONTENT_LENGTH.as_str()).parse().ok();
    let url = || super::request::shown(&call.url);
    Ok(parsed.ok_or_else(|| HttpError::Answer { url: url(), what: "Content-Length" })?)
}

impl Download {
    fn into_stream(self) -> ByteStream {
        let pieces = stream::try_unfold(self, |mut download| async move {
            match download.next().await {
                Ok(Some(chunk)) => Ok(Some((chunk, download))),
                Ok(None) => Ok(None),
                Err(cause) => Err::<_, io::Error>(cause.into_io()),
            }
        });
        pieces.boxed()
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Cause> {
        loop {
            // Time that the reader takes for what it was given is not the registry's.
            let start = Instant::now();
            match self.remote.client.next(&self.call.url, &mut self.body).await {
                Ok(Some(chunk)) => {
                    self.pace.advance(&host(&self.call.url), chunk.len(), start.elapsed())?;
                    if let Some(chunk) = self.advance(chunk) {
                        return Ok(Some(chunk));
                    }
                }
                // All there is has been read; how the connection ends does not matter.
                Ok(None) | Err(_) if self.offset >= self.size => return Ok(None),
                // Too short a body and a broken one are the same to us.
                Ok(None) => {
                    let cause = Cause::Size { expected: self.size, actual: self.offset };
                    self.resume(cause).await?;
                }
                Err(error) => self.resume(error.into()).await?,
            }
        }
    }

    fn advance(&mut self, mut chunk: Bytes) -> Option<Bytes> {
        let passed = self.skip.min(chunk.len() as u64);
        chunk.advance(usize::try_from(passed).unwrap_or(chunk.len()));
        self.skip -= passed;
        if chunk.is_empty() {
            return None;
        }
        self.offset += chunk.len() as u64;
        self.failures = 0;
        Some(chunk)
    }

    /// Asks for the rest. `cause` is what broke, and the error if nothing helps.
    async fn resume(&mut self, cause: Cause) -> Result<(), Cause> {
        let client = self.remote.client.clone();
        self.failures += 1;
        self.resumes += 1;
        if self.failures >= client.inner.settings.tries || self.resumes > RESUMES_MAX {
            return Err(cause);
        }
        let registry = self.remote.repository.registry();
        client.wait_to_retry(registry, self.failures, None, &cause.to_string()).await;
        self.call.header(RANGE, &format!("bytes={}-", self.offset))?;
        let response = self.remote.send(&self.call).await?;
        self.skip = match response.status() {
            StatusCode::OK => self.offset,
            StatusCode::PARTIAL_CONTENT => {
                let range = text(response.headers(), CONTENT_RANGE.as_str());
                if !range.starts_with(&format!("bytes {}-", self.offset)) {
                    let url = super::request::shown(&self.call.url);
                    return Err(HttpError::Answer { url, what: "Content-Range" }.into());
                }
                0
            }
            _ => return self.remote.refuse(&self.call, response).await,
        };
        self.body = response.into_body();
        Ok(())
    }
}
