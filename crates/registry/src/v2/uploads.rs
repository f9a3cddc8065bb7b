//! Uploads: started, continued in chunks or in one stream, finished, asked about, cancelled.

use super::body::{Incoming, Terms};
use super::range::chunk;
use super::{Action, Answer, Call, Server, header};
use crate::access::Peer;
use crate::error::Error;
use crate::name::Name;
use crate::storage::{BodyStream, Holder, Upload};
use crate::wire::{self, Refusal};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use http::StatusCode;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, LOCATION, RANGE};
use oci::{Algorithm, Digest};

impl Server {
    /// Starts an upload, or takes a whole blob, or mounts one from another repository.
    pub(super) async fn post_upload(&self, call: &Call, name: &Name, body: Body) -> Answer {
        if let Some(mount) = call.query.get("mount")
            && let Some(response) = self.mount(call, name, mount).await?
        {
            return Ok(response);
        }
        let digest = call.query.get("digest").map(parse_digest).transpose()?;
        let algorithm = match (&digest, call.query.get("digest-algorithm")) {
            (Some(digest), _) => digest.algorithm(),
            (None, Some(text)) => Algorithm::parse(text).ok_or_else(|| {
                Refusal::bad("DIGEST_INVALID", format!("`{text}` is neither sha256 nor sha512"))
            })?,
            (None, None) => Algorithm::Sha256,
        };
        let holder = Holder::new(call.who.as_str(), Peer::of(&call.parts));
        let upload = self.registry.begin_upload(name, &holder, algorithm).await?;
        match digest {
            None => Ok(progress(StatusCode::ACCEPTED, name, &upload)),
            Some(digest) => {
                let id = upload.id().to_owned();
                let outcome = self.take_all(call, name, upload, body, &digest).await;
                if outcome.is_err() {
                    self.give_up(call, name, &id).await;
                }
                outcome
            }
        }
    }

    /// Appends a chunk, or a stream of unknown length.
    pub(super) async fn patch_upload(
        &self,
        call: &Call,
        name: &Name,
        id: &str,
        body: Body,
    ) -> Answer {
        let upload = self.registry.upload(name, call.who.as_str(), id).await?;
        let expected = check_chunk(call, name, &upload)?;
        let body = self.stream(call, &upload, None, body).await?;
        let upload = self.registry.append(upload, body, expected).await?;
        let upload = self.registry.keep(upload).await?;
        Ok(progress(StatusCode::ACCEPTED, name, &upload))
    }

    /// Finishes an upload, with a last chunk if there is a body.
    pub(super) async fn put_upload(
        &self,
        call: &Call,
        name: &Name,
        id: &str,
        body: Body,
    ) -> Answer {
        let digest = call.query.get("digest").map(parse_digest).transpose()?;
        let missing = || Refusal::bad("DIGEST_INVALID", "the parameter `digest` is missing");
        let digest = digest.ok_or_else(missing)?;
        let upload = self.registry.upload(name, call.who.as_str(), id).await?;
        self.take_all(call, name, upload, body, &digest).await
    }

    /// Tells how far an upload has come.
    pub(super) async fn get_upload(&self, call: &Call, name: &Name, id: &str) -> Answer {
        let upload = self.registry.upload(name, call.who.as_str(), id).await?;
        Ok(progress(StatusCode::NO_CONTENT, name, &upload))
    }

    /// Cancels an upload.
    pub(super) async fn delete_upload(&self, call: &Call, name: &Name, id: &str) -> Answer {
        let upload = self.registry.upload(name, call.who.as_str(), id).await?;
        self.registry.cancel(upload).await?;
        Ok(wire::answer(StatusCode::NO_CONTENT, Bytes::new()))
    }

    /// Appends what comes and makes a blob of it all.
    async fn take_all(
        &self,
        call: &Call,
        name: &Name,
        upload: Upload,
        body: Body,
        digest: &Digest,
    ) -> Answer {
        let expected = check_chunk(call, name, &upload)?;
        if header(&call.parts.headers, CONTENT_LENGTH) == "0" {
            self.registry.finish(upload, digest).await?;
        } else {
            let body = self.stream(call, &upload, Some(digest), body).await?;
            self.registry.complete(upload, body, expected, digest).await?;
        }
        Ok(created(name, digest))
    }

    /// Nobody was told of this upload, so nobody will continue it.
    async fn give_up(&self, call: &Call, name: &Name, id: &str) {
        if let Ok(upload) = self.registry.upload(name, call.who.as_str(), id).await {
            let _ = self.registry.cancel(upload).await;
        }
    }

    /// `None` if there is nothing to mount, and an ordinary upload has to do.
    async fn mount(
        &self,
        call: &Call,
        name: &Name,
        digest: &str,
    ) -> Result<Option<Response>, Refusal> {
        let digest = parse_digest(digest)?;
        let from = match call.query.get("from") {
            None | Some("") => None,
            Some(from) => match Name::parse(from) {
                Some(from) => Some(from),
                None => return Ok(None),
            },
        };
        let readable = |name: &Name| self.may(&call.who, name, Action::Pull);
        let mounted = self.registry.mount(name, &digest, from.as_ref(), readable).await?;
        Ok(mounted.then(|| created(name, &digest)))
    }

    /// A place for a body, and the body as a stream that ends in an error when the client falls
    /// silent, trickles, or sends more than one blob may have. What is known to be too large is
    /// refused before a byte of it is read.
    async fn stream(
        &self,
        call: &Call,
        upload: &Upload,
        digest: Option<&Digest>,
        body: Body,
    ) -> Result<BodyStream, Refusal> {
        let peer = Peer::of(&call.parts);
        let place = self.budgets.upload(call.who.as_str(), peer);
        let place = place.ok_or_else(Refusal::too_many_uploads)?;
        let announced = header(&call.parts.headers, CONTENT_LENGTH).parse::<u64>().unwrap_or(0);
        let limit = self.registry.settings().blob_size_max;
        let size_max = limit.saturating_sub(upload.offset());
        if announced > size_max {
            return Err(Error::BlobTooLarge { limit }.into());
        }
        self.registry.check_room(upload, digest, announced).await?;
        let too_large = |limit| Error::BlobTooLarge { limit };
        let rate_min = self.budgets.upload_rate_min();
        let terms = Terms { rate_min, size_max, limit, too_large };
        let (incoming, metrics) = (Incoming::new(body, terms), self.metrics.clone());
        Ok(Box::pin(stream::try_unfold(
            (incoming, metrics, place),
            |(mut incoming, metrics, place)| async move {
                let Some(piece) = incoming.next().await? else { return Ok(None) };
                metrics.received(piece.len() as u64);
                Ok(Some((piece, (incoming, metrics, place))))
            },
        )))
    }
}

fn parse_digest(text: &str) -> Result<Digest, Refusal> {
    text.parse().map_err(|_| Refusal::digest(text))
}

/// A chunk that says where it belongs must begin where the upload stands; gives its length. The
/// upload stays as it is when it does not.
fn check_chunk(call: &Call, name: &Name, upload: &Upload) -> Result<Option<u64>, Refusal> {
    let Some(value) = call.parts.headers.get(CONTENT_RANGE) else { return Ok(None) };
    let invalid = || Refusal::bad("BLOB_UPLOAD_INVALID", "the Content-Range cannot be read");
    let (first, length) = value.to_str().ok().and_then(chunk).ok_or_else(invalid)?;
    let announced = header(&call.parts.headers, CONTENT_LENGTH).parse::<u64>().ok();
    if first != upload.offset() {
        let error = Error::UploadOffset { offset: upload.offset() };
        return Err(Refusal::from(error)
            .header(LOCATION, location(name, upload))
            .header(RANGE, range(upload))
            .header(wire::UPLOAD_UUID, upload.id()));
    }
    match announced {
        Some(actual) if actual != length => {
            Err(Error::SizeMismatch { expected: length, actual }.into())
        }
        _ => Ok(Some(length)),
    }
}

fn location(name: &Name, upload: &Upload) -> String {
    format!("/v2/{name}/blobs/uploads/{}", upload.id())
}

/// What is there, as the protocol writes it: nothing at all looks like one byte.
fn range(upload: &Upload) -> String {
    format!("0-{}", upload.offset().saturating_sub(1))
}

fn progress(status: StatusCode, name: &Name, upload: &Upload) -> Response {
    let mut response = wire::answer(status, Bytes::new());
    wire::set(&mut response, LOCATION, &location(name, upload));
    wire::set(&mut response, RANGE, &range(upload));
    wire::set(&mut response, wire::UPLOAD_UUID, upload.id());
    response
}

fn created(name: &Name, digest: &Digest) -> Response {
    let mut response = wire::answer(StatusCode::CREATED, Bytes::new());
    wire::set(&mut response, LOCATION, &format!("/v2/{name}/blobs/{digest}"));
    wire::set(&mut response, wire::CONTENT_DIGEST, &digest.to_string());
    response
}
