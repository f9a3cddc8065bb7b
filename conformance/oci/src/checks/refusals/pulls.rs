//! What must be refused when pulling.

use super::{BAD, existing};
use crate::check::{Entry, table};
use crate::context::Context;
use crate::digest::Algorithm::{Sha256, Sha512};
use crate::exchange::{Exchange, Verdict};

pub(super) fn entries() -> Vec<Entry> {
    table! {
        refusal "end-2" Must "refuse.blob.unknown" [404] ["BLOB_UNKNOWN"] => blob_unknown,
            "Pulling blobs: a blob not found in the repository MUST answer 404";
        refusal "end-2" Should "refuse.blob.unknown-sha512"
            [404] ["BLOB_UNKNOWN"] => blob_unknown_sha512,
            "Pulling blobs: a sha512 blob not found in the repository MUST answer 404";
        refusal "end-2" Must "refuse.blob.unknown-repository"
            [404] ["BLOB_UNKNOWN", "NAME_UNKNOWN"] => blob_unknown_repository,
            "Pulling blobs: a repository that does not exist answers 404";
        refusal "end-2" Must "refuse.blob.bad-digest"
            [400, 404] ["DIGEST_INVALID", "BLOB_UNKNOWN"] => blob_bad_digest,
            "Pulling blobs: sha256:baddigeststring is no digest: 400 (or 404), never 5xx";
        refusal "end-2" Should "refuse.blob.bad-digest-exactly"
            [400] ["DIGEST_INVALID"] => blob_bad_digest,
            "Error codes: DIGEST_INVALID is what a malformed digest gets: 400";
        refusal "end-2" Should "refuse.blob.short-digest"
            [400, 404] ["DIGEST_INVALID", "BLOB_UNKNOWN"] => blob_short_digest,
            "Image specification: sha256 has 64 hexadecimal digits, not 63";
        refusal "end-2" Should "refuse.blob.upper-case-digest"
            [400, 404] ["DIGEST_INVALID", "BLOB_UNKNOWN"] => blob_upper_case,
            "Image specification: the hexadecimal digits are in lower case; others name nothing";
        refusal "end-2" Should "refuse.blob.unknown-algorithm"
            [400, 404] ["DIGEST_INVALID", "BLOB_UNKNOWN", "UNSUPPORTED"] => blob_unknown_algorithm,
            "Image specification: an algorithm that is not registered names nothing";
        refusal "end-3" Must "refuse.manifest.unknown-tag"
            [404] ["MANIFEST_UNKNOWN"] => manifest_unknown_tag,
            "Pulling manifests: a tag not found in the repository MUST answer 404";
        refusal "end-3" Must "refuse.manifest.unknown-digest"
            [404] ["MANIFEST_UNKNOWN"] => manifest_unknown,
            "Pulling manifests: a digest not found in the repository MUST answer 404";
        refusal "end-3" Should "refuse.manifest.unknown-sha512"
            [404] ["MANIFEST_UNKNOWN"] => manifest_unknown_sha512,
            "Pulling manifests: a sha512 digest not found in the repository MUST answer 404";
        refusal "end-3" Must "refuse.manifest.unknown-repository"
            [404] ["NAME_UNKNOWN", "MANIFEST_UNKNOWN"] => manifest_unknown_repository,
            "Pulling manifests: a repository that does not exist answers 404";
        refusal "end-3" Must "refuse.manifest.bad-digest"
            [400, 404] ["DIGEST_INVALID", "MANIFEST_UNKNOWN", "MANIFEST_INVALID"] => manifest_bad_digest,
            "Pulling manifests: sha256:baddigeststring is no digest: 400 or 404, never 5xx";
        refusal "end-8" Must "refuse.tags.unknown-repository"
            [404] ["NAME_UNKNOWN"] => tags_unknown_repository,
            "Listing tags: a repository that does not exist answers 404";
        refusal "end-12" Must "refuse.referrers.bad-digest"
            [400] ["DIGEST_INVALID"] => referrers_bad_digest,
            "Listing referrers: a digest with an invalid syntax MUST be answered with 400";
    }
}

async fn get(context: &Context, rest: String) -> Verdict<Exchange> {
    existing(context).await?.get(&rest).send().await
}

async fn blob_unknown(context: &Context) -> Verdict<Exchange> {
    get(context, format!("blobs/{}", context.unknown(Sha256))).await
}

async fn blob_unknown_sha512(context: &Context) -> Verdict<Exchange> {
    get(context, format!("blobs/{}", context.unknown(Sha512))).await
}

async fn blob_unknown_repository(context: &Context) -> Verdict<Exchange> {
    context.repo().get_blob(&context.unknown(Sha256)).send().await
}

async fn blob_bad_digest(context: &Context) -> Verdict<Exchange> {
    get(context, format!("blobs/{BAD}")).await
}

async fn blob_short_digest(context: &Context) -> Verdict<Exchange> {
    let digest = context.unknown(Sha256);
    get(context, format!("blobs/{}", &digest[..digest.len() - 1])).await
}

async fn blob_upper_case(context: &Context) -> Verdict<Exchange> {
    let (repo, blob) = (existing(context).await?, context.blob(100, Sha256));
    repo.push_blob(&blob).await?;
    let encoded = blob.digest.trim_start_matches("sha256:").to_uppercase();
    repo.get(&format!("blobs/sha256:{encoded}")).send().await
}

async fn blob_unknown_algorithm(context: &Context) -> Verdict<Exchange> {
    get(context, format!("blobs/md5:{}", "0123456789abcdef".repeat(2))).await
}

async fn manifest_unknown_tag(context: &Context) -> Verdict<Exchange> {
    existing(context).await?.get_manifest("nothing").send().await
}

async fn manifest_unknown(context: &Context) -> Verdict<Exchange> {
    existing(context).await?.get_manifest(&context.unknown(Sha256)).send().await
}

async fn manifest_unknown_sha512(context: &Context) -> Verdict<Exchange> {
    existing(context).await?.get_manifest(&context.unknown(Sha512)).send().await
}

async fn manifest_unknown_repository(context: &Context) -> Verdict<Exchange> {
    context.repo().get_manifest("latest").send().await
}

async fn manifest_bad_digest(context: &Context) -> Verdict<Exchange> {
    existing(context).await?.get_manifest(BAD).send().await
}

async fn tags_unknown_repository(context: &Context) -> Verdict<Exchange> {
    context.repo().get("tags/list").send().await
}

async fn referrers_bad_digest(context: &Context) -> Verdict<Exchange> {
    get(context, format!("referrers/{BAD}")).await
}
