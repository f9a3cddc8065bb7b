//! Blobs: pulled whole or in part, and deleted.

use super::range::{Wanted, wanted};
use super::{Answer, Call, Server, header, is_unchanged};
use crate::error::Error;
use crate::limits::{READ_BUFFERS_IDLE, READ_SIZE};
use crate::name::Name;
use crate::storage::{OpenBlob, Source, blocking};
use crate::wire::{self, Refusal};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::{Stream, stream};
use http::StatusCode;
use http::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_RANGE, RANGE,
};
use oci::Digest;
use std::sync::{Mutex, PoisonError};

impl Server {
    pub(super) async fn head_blob(&self, name: &Name, digest: &Digest) -> Answer {
        let size = self.registry.blob_size(name, digest).await?;
        Ok(described(digest, size, Body::empty()))
    }

    pub(super) async fn get_blob(&self, call: &Call, name: &Name, digest: &Digest) -> Answer {
        let OpenBlob { source, size } = self.registry.open_blob(name, digest).await?;
        found(call, digest, size, |first, length| Body::from_stream(read(source, first, length)))
    }

    pub(super) async fn delete_blob(&self, name: &Name, digest: &Digest) -> Answer {
        self.registry.delete_blob(name, digest).await?;
        Ok(wire::answer(StatusCode::ACCEPTED, Bytes::new()))
    }
}

/// An answer with a blob, a part of it, or nothing that the client has already.
pub(super) fn found(
    call: &Call,
    digest: &Digest,
    size: u64,
    body: impl FnOnce(u64, u64) -> Body,
) -> Answer {
    let mut response = described(digest, size, Body::empty());
    if is_unchanged(&call.parts.headers, &entity_tag(digest)) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response.headers_mut().remove(CONTENT_LENGTH);
        return Ok(response);
    }
    let (first, length) =
        if is_range_meant(call, digest) { part(&mut response, call, size)? } else { (0, size) };
    *response.body_mut() = body(first, length);
    Ok(response)
}

/// An answer that describes a whole blob.
pub(super) fn described(digest: &Digest, size: u64, body: Body) -> Response {
    let mut response = Response::new(body);
    wire::set(&mut response, CONTENT_TYPE, "application/octet-stream");
    wire::set(&mut response, CONTENT_LENGTH, &size.to_string());
    wire::set(&mut response, wire::CONTENT_DIGEST, &digest.to_string());
    wire::set(&mut response, ACCEPT_RANGES, "bytes");
    wire::set(&mut response, ETAG, &entity_tag(digest));
    response
}

/// Makes an answer one of a part, if that is wanted; gives the first byte and the length.
fn part(response: &mut Response, call: &Call, size: u64) -> Result<(u64, u64), Refusal> {
    match wanted(header(&call.parts.headers, RANGE), size) {
        Wanted::Whole => Ok((0, size)),
        Wanted::Part(first, last) => {
            let length = last.saturating_sub(first).saturating_add(1);
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            wire::set(response, CONTENT_RANGE, &format!("bytes {first}-{last}/{size}"));
            wire::set(response, CONTENT_LENGTH, &length.to_string());
            Ok((first, length))
        }
        Wanted::Unsatisfiable => {
            let message = format!("the blob has {size} bytes, and none of those asked for");
            let status = StatusCode::RANGE_NOT_SATISFIABLE;
            let refusal = Refusal::new(status, "SIZE_INVALID", message);
            Err(refusal.header(CONTENT_RANGE, format!("bytes */{size}")))
        }
    }
}

/// A client may want a part only of content it knows, and all of any other.
fn is_range_meant(call: &Call, digest: &Digest) -> bool {
    let condition = call.parts.headers.get(IF_RANGE);
    condition.is_none_or(|tag| tag.as_bytes() == entity_tag(digest).as_bytes())
}

fn entity_tag(digest: &Digest) -> String {
    format!("\"{digest}\"")
}

/// A blob's bytes in large pieces. What the system has in memory is taken at once; only what it
/// has to wait for is read off the async threads.
fn read(source: Source, first: u64, length: u64) -> impl Stream<Item = Result<Bytes, Error>> {
    stream::try_unfold((source, first, length), |(source, offset, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(READ_SIZE);
        let mut buffer = Buffer::take(count);
        let ready = source.read_ready(&mut buffer.memory[..count], offset);
        let (source, buffer) = if ready == count {
            (source, buffer)
        } else {
            let read = blocking(move || {
                let rest = &mut buffer.memory[ready..count];
                source.read_exact_at(rest, offset.saturating_add(ready as u64))?;
                Ok((source, buffer))
            });
            read.await?
        };
        let count = count as u64;
        let (offset, left) = (offset.saturating_add(count), left.saturating_sub(count));
        Ok(Some((Bytes::from_owner(buffer), (source, offset, left))))
    })
}

/// Memory to read into. Asking the system for fresh memory every time costs about as much as
/// reading into it, so a few are kept.
struct Buffer {
    memory: Vec<u8>,
    used: usize,
}

static IDLE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

impl Buffer {
    /// A buffer of which this much will be used.
    fn take(used: usize) -> Self {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut memory = idle.unwrap_or_default();
        if memory.len() < used {
            memory.resize(used, 0);
        }
        Self { memory, used }
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.memory[..self.used]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < READ_BUFFERS_IDLE {
            idle.push(std::mem::take(&mut self.memory));
        }
    }
}
