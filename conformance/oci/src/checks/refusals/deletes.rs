//! What must be refused when deleting.

use super::{BAD, existing};
use crate::check::{Entry, table};
use crate::context::Context;
use crate::digest::Algorithm::Sha256;
use crate::exchange::{Exchange, Verdict};

pub(super) fn entries() -> Vec<Entry> {
    table! {
        refusal "end-9" Must "refuse.delete.unknown-tag"
            [404] ["MANIFEST_UNKNOWN"] => delete_unknown_tag,
            "Deleting tags: a tag that does not exist MUST answer 404";
        refusal "end-9" Must "refuse.delete.unknown-manifest"
            [404] ["MANIFEST_UNKNOWN"] => delete_unknown_manifest,
            "Deleting manifests: a manifest that does not exist MUST answer 404";
        refusal "end-9" Must "refuse.delete.manifest-unknown-repository"
            [404] ["NAME_UNKNOWN", "MANIFEST_UNKNOWN"] => delete_manifest_unknown_repository,
            "Deleting manifests: a repository that does not exist MUST answer 404";
        refusal "end-9" Must "refuse.delete.manifest-bad-digest"
            [400, 404] ["DIGEST_INVALID", "MANIFEST_UNKNOWN", "MANIFEST_INVALID"] => delete_manifest_bad_digest,
            "Deleting manifests: sha256:baddigeststring is refused, never with 5xx";
        refusal "end-10" Must "refuse.delete.unknown-blob"
            [404] ["BLOB_UNKNOWN"] => delete_unknown_blob,
            "Deleting blobs: a blob that does not exist MUST answer 404";
        refusal "end-10" Must "refuse.delete.blob-bad-digest"
            [400, 404] ["DIGEST_INVALID", "BLOB_UNKNOWN"] => delete_blob_bad_digest,
            "Deleting blobs: sha256:baddigeststring is refused, never with 5xx";
    }
}

async fn delete(context: &Context, rest: String) -> Verdict<Exchange> {
    existing(context).await?.delete(&rest).send().await
}

async fn delete_unknown_tag(context: &Context) -> Verdict<Exchange> {
    delete(context, "manifests/nothing".to_owned()).await
}

async fn delete_unknown_manifest(context: &Context) -> Verdict<Exchange> {
    delete(context, format!("manifests/{}", context.unknown(Sha256))).await
}

async fn delete_manifest_unknown_repository(context: &Context) -> Verdict<Exchange> {
    context.repo().delete(&format!("manifests/{}", context.unknown(Sha256))).send().await
}

async fn delete_manifest_bad_digest(context: &Context) -> Verdict<Exchange> {
    delete(context, format!("manifests/{BAD}")).await
}

async fn delete_unknown_blob(context: &Context) -> Verdict<Exchange> {
    delete(context, format!("blobs/{}", context.unknown(Sha256))).await
}

async fn delete_blob_bad_digest(context: &Context) -> Verdict<Exchange> {
    delete(context, format!("blobs/{BAD}")).await
}
