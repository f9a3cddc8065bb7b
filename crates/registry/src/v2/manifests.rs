//! Manifests: pulled, pushed, deleted, by tag and by digest.

use super::body::{Incoming, Terms};
use super::{Answer, Call, Server, header, is_unchanged};
use crate::error::Error;
use crate::limits::{MANIFEST_SIZE_MAX, TAGS_PER_PUSH_MAX, UPLOAD_RATE_MIN};
use crate::name::{Name, Tag};
use crate::storage::{Manifest, Push, Selector};
use crate::wire::{self, Refusal};
use axum::body::Body;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, LOCATION};
use http::{Method, StatusCode};

impl Server {
    pub(super) async fn get_manifest(&self, call: &Call, name: &Name, it: &Selector) -> Answer {
        let manifest = self.registry.manifest(name, it).await?;
        Ok(found(call, &manifest))
    }

    pub(super) async fn put_manifest(
        &self,
        call: &Call,
        name: &Name,
        it: Selector,
        body: Body,
    ) -> Answer {
        let (digest, tags) = match it {
            Selector::Tag(tag) => (None, vec![tag]),
            Selector::Digest(digest) => (Some(digest), extra_tags(call)?),
        };
        let named = tags.first().filter(|_| digest.is_none()).cloned();
        let push = Push {
            repository: name.clone(),
            digest,
            tags: tags.clone(),
            media_type: header(&call.parts.headers, CONTENT_TYPE).to_owned(),
            bytes: read(body).await?,
        };
        let pushed = self.registry.push(push).await?;
        let digest = pushed.digest.to_string();
        let mut response = wire::answer(StatusCode::CREATED, Bytes::new());
        wire::set(&mut response, LOCATION, &format!("/v2/{name}/manifests/{digest}"));
        wire::set(&mut response, wire::CONTENT_DIGEST, &digest);
        if let Some(subject) = pushed.subject {
            wire::set(&mut response, wire::SUBJECT, &subject.to_string());
        }
        if named.is_none() && !tags.is_empty() {
            let list: Vec<&str> = tags.iter().map(Tag::as_str).collect();
            wire::set(&mut response, wire::TAGS, &list.join(", "));
        }
        Ok(response)
    }

    pub(super) async fn delete_manifest(&self, name: &Name, it: &Selector) -> Answer {
        self.registry.delete_manifest(name, it).await?;
        Ok(wire::answer(StatusCode::ACCEPTED, Bytes::new()))
    }
}

/// An answer with a manifest, or without one that the client has already.
pub(super) fn found(call: &Call, manifest: &Manifest) -> Response {
    let digest = manifest.digest.to_string();
    let tag = format!("\"{digest}\"");
    let unchanged = is_unchanged(&call.parts.headers, &tag);
    let bare = call.parts.method == Method::HEAD || unchanged;
    let body = if bare { Bytes::new() } else { manifest.bytes.clone() };
    let mut response = wire::answer(StatusCode::OK, body);
    wire::set(&mut response, CONTENT_LENGTH, &manifest.bytes.len().to_string());
    wire::set(&mut response, CONTENT_TYPE, &manifest.media_type);
    wire::set(&mut response, wire::CONTENT_DIGEST, &digest);
    wire::set(&mut response, ETAG, &tag);
    if unchanged {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    response
}

/// The tags a push by digest asks for.
fn extra_tags(call: &Call) -> Result<Vec<Tag>, Refusal> {
    let mut tags = Vec::new();
    for text in call.query.all("tag") {
        let invalid = || Refusal::bad("MANIFEST_INVALID", format!("`{text}` is not a tag"));
        let tag = Tag::parse(text).ok_or_else(invalid)?;
        if !tags.contains(&tag) {
            tags.push(tag);
        }
        if tags.len() > TAGS_PER_PUSH_MAX {
            let message = format!("at most {TAGS_PER_PUSH_MAX} tags can be set at once");
            return Err(Refusal::new(StatusCode::URI_TOO_LONG, "MANIFEST_INVALID", message));
        }
    }
    Ok(tags)
}

/// A manifest's bytes; more than it may have are not even read.
async fn read(body: Body) -> Result<Bytes, Refusal> {
    let terms = Terms {
        rate_min: UPLOAD_RATE_MIN,
        size_max: MANIFEST_SIZE_MAX as u64,
        limit: MANIFEST_SIZE_MAX as u64,
        too_large: |limit| Error::ManifestTooLarge { limit },
    };
    let (mut incoming, mut bytes) = (Incoming::new(body, terms), BytesMut::new());
    let broken = |error| match error {
        Error::BodyBroken => {
            Refusal::bad("MANIFEST_INVALID", "the request's body broke off or stalled")
        }
        other => other.into(),
    };
    while let Some(piece) = incoming.next().await.map_err(broken)? {
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes.freeze())
}
