//! Manifests that must be refused.

use super::{BAD, existing};
use crate::check::{Entry, table};
use crate::content::{IMAGE, INDEX, Manifest, image, image_document, index};
use crate::context::Context;
use crate::digest::Algorithm::{Sha256, Sha512};
use crate::exchange::{Exchange, Verdict};
use serde_json::{Value, json};

pub(super) fn entries() -> Vec<Entry> {
    table! {
        refusal "end-7a" Must "refuse.put.bad-digest"
            [400, 404] ["DIGEST_INVALID", "MANIFEST_INVALID"] => put_bad_digest,
            "Pushing manifests: the reference sha256:baddigeststring is refused, never with 5xx";
        refusal "end-7a" Must "refuse.put.other-digest"
            [400] ["DIGEST_INVALID", "MANIFEST_INVALID"] => put_other_digest,
            "Pushing manifests: a body that does not have the digest of its URL is refused";
        refusal "end-7a" Should "refuse.put.other-digest-sha512"
            [400] ["DIGEST_INVALID", "MANIFEST_INVALID"] => put_other_sha512,
            "Pushing manifests: a body that does not have the sha512 digest of its URL is refused";
        refusal "end-7a" Must "refuse.put.not-json" [400] ["MANIFEST_INVALID"] => put_not_json,
            "Error codes: MANIFEST_INVALID: a manifest that is no JSON is refused";
        refusal "end-7a" Must "refuse.put.empty"
            [400] ["MANIFEST_INVALID", "SIZE_INVALID"] => put_empty,
            "Error codes: MANIFEST_INVALID: an empty manifest is refused";
        refusal "end-7a" Must "refuse.put.list" [400] ["MANIFEST_INVALID"] => put_list,
            "Error codes: MANIFEST_INVALID: a manifest that is a JSON list is refused";
        refusal "end-7a" Must "refuse.put.bad-descriptor"
            [400, 404] ["MANIFEST_INVALID", "DIGEST_INVALID", "MANIFEST_BLOB_UNKNOWN"] => put_bad_descriptor,
            "Image specification: a descriptor whose digest is none makes the manifest invalid";
        refusal "end-7a" Should "refuse.put.other-type"
            [400, 415] ["MANIFEST_INVALID", "UNSUPPORTED"] => put_other_type,
            "Pushing manifests: Content-Type and the mediaType within MUST agree";
        refusal "end-7a" Should "refuse.put.index-as-image"
            [400, 415] ["MANIFEST_INVALID", "UNSUPPORTED"] => put_index_as_image,
            "Image specification: an index that calls itself an image is confusion, and refused";
        refusal "end-7a" Should "refuse.put.missing-layer"
            [400, 404] ["MANIFEST_BLOB_UNKNOWN"] => put_missing_layer,
            "Error codes: MANIFEST_BLOB_UNKNOWN: a manifest that references an unknown blob";
        refusal "end-7a" Should "refuse.put.missing-config"
            [400, 404] ["MANIFEST_BLOB_UNKNOWN"] => put_missing_config,
            "Error codes: MANIFEST_BLOB_UNKNOWN: a manifest whose config is unknown";
        refusal "end-7a" Should "refuse.put.missing-child"
            [400, 404] ["MANIFEST_BLOB_UNKNOWN"] => put_missing_child,
            "Error codes: MANIFEST_BLOB_UNKNOWN: an index that references an unknown manifest";
    }
}

async fn put(context: &Context, reference: &str) -> Verdict<Exchange> {
    let (repo, item) = (context.repo(), image(context, Sha256));
    item.push_parts(&repo).await?;
    repo.put_manifest(reference, &item.root).send().await
}

async fn put_bad_digest(context: &Context) -> Verdict<Exchange> {
    put(context, BAD).await
}

async fn put_other_digest(context: &Context) -> Verdict<Exchange> {
    put(context, &context.unknown(Sha256)).await
}

async fn put_other_sha512(context: &Context) -> Verdict<Exchange> {
    put(context, &context.unknown(Sha512)).await
}

async fn put_text(context: &Context, text: &str) -> Verdict<Exchange> {
    let mut manifest = image(context, Sha256).root;
    manifest.bytes = text.into();
    existing(context).await?.put_manifest("other", &manifest).send().await
}

async fn put_not_json(context: &Context) -> Verdict<Exchange> {
    put_text(context, "this is {no manifest").await
}

async fn put_empty(context: &Context) -> Verdict<Exchange> {
    put_text(context, "").await
}

async fn put_list(context: &Context) -> Verdict<Exchange> {
    put_text(context, "[1, 2, 3]").await
}

/// An image whose blobs are pushed, but whose document is changed.
async fn put_changed(context: &Context, change: impl FnOnce(&mut Value)) -> Verdict<Exchange> {
    let repo = context.repo();
    let (mut document, blobs) = image_document(context, Sha256);
    for blob in &blobs {
        repo.push_blob(blob).await?;
    }
    change(&mut document);
    repo.put_manifest("latest", &Manifest::of(&document, Sha256)).send().await
}

async fn put_bad_descriptor(context: &Context) -> Verdict<Exchange> {
    put_changed(context, |document| document["layers"][0]["digest"] = json!(BAD)).await
}

async fn put_other_type(context: &Context) -> Verdict<Exchange> {
    let (repo, item) = (context.repo(), image(context, Sha256));
    item.push_parts(&repo).await?;
    let root = Manifest { media_type: INDEX.to_owned(), ..item.root };
    repo.put_manifest("latest", &root).send().await
}

async fn put_index_as_image(context: &Context) -> Verdict<Exchange> {
    let (repo, item) = (context.repo(), index(context, Sha256));
    item.push_parts(&repo).await?;
    let text = String::from_utf8_lossy(&item.root.bytes).replacen(INDEX, IMAGE, 1);
    let root = Manifest {
        media_type: IMAGE.to_owned(),
        digest: Sha256.digest(text.as_bytes()),
        bytes: text.into_bytes(),
    };
    repo.put_manifest("latest", &root).send().await
}

async fn put_missing_layer(context: &Context) -> Verdict<Exchange> {
    let missing = context.unknown(Sha256);
    put_changed(context, |document| document["layers"][0]["digest"] = json!(missing)).await
}

async fn put_missing_config(context: &Context) -> Verdict<Exchange> {
    let missing = context.unknown(Sha256);
    put_changed(context, |document| document["config"]["digest"] = json!(missing)).await
}

async fn put_missing_child(context: &Context) -> Verdict<Exchange> {
    let mut item = index(context, Sha256);
    item.children.pop();
    let repo = context.repo();
    item.push_parts(&repo).await?;
    repo.put_manifest("latest", &item.root).send().await
}
