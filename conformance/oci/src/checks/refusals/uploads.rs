//! Uploads that must be refused.

use super::{BAD, existing};
use crate::check::{Entry, table};
use crate::context::Context;
use crate::digest::Algorithm::{Sha256, Sha512};
use crate::exchange::{Exchange, Verdict};
use crate::random::Random;

pub(super) fn entries() -> Vec<Entry> {
    table! {
        refusal "end-5" Must "refuse.upload.unknown-patch"
            [404] ["BLOB_UPLOAD_UNKNOWN", "BLOB_UPLOAD_INVALID"] => upload_unknown_patch,
            "Chunked: an upload that does not exist answers 404";
        refusal "end-6" Must "refuse.upload.unknown-put"
            [404] ["BLOB_UPLOAD_UNKNOWN", "BLOB_UPLOAD_INVALID"] => upload_unknown_put,
            "POST then PUT: an upload that does not exist answers 404";
        refusal "end-13" Must "refuse.upload.unknown-get"
            [404] ["BLOB_UPLOAD_UNKNOWN", "BLOB_UPLOAD_INVALID"] => upload_unknown_get,
            "Chunked: GET of an upload that does not exist answers 404";
        refusal "end-13" Must "refuse.upload.closed" [404] ["BLOB_UPLOAD_UNKNOWN"] => upload_closed,
            "Error codes: BLOB_UPLOAD_UNKNOWN: an upload that has become a blob is unknown: 404";
        refusal "end-14" Dev "refuse.upload.unknown-delete"
            [404] ["BLOB_UPLOAD_UNKNOWN", "BLOB_UPLOAD_INVALID"] => upload_unknown_delete,
            "Cancel: DELETE of an upload that does not exist answers 404";
        refusal "end-6" Must "refuse.upload.other-digest"
            [400] ["DIGEST_INVALID"] => upload_other_digest,
            "POST then PUT: content that does not have the digest of the URL is refused";
        refusal "end-6" Should "refuse.upload.other-digest-sha512"
            [400] ["DIGEST_INVALID"] => upload_other_sha512,
            "POST then PUT: content that does not have the sha512 digest of the URL is refused";
        refusal "end-6" Must "refuse.upload.bad-digest"
            [400] ["DIGEST_INVALID"] => upload_bad_digest,
            "POST then PUT: sha256:baddigeststring is refused with 400, never with 5xx";
        refusal "end-6" Must "refuse.upload.no-digest" [400] ["DIGEST_INVALID"] => upload_no_digest,
            "POST then PUT: PUT without a digest is refused with 400";
        refusal "end-6" Must "refuse.upload.unknown-algorithm"
            [400] ["DIGEST_INVALID", "UNSUPPORTED"] => upload_unknown_algorithm,
            "POST then PUT: a digest of an unknown algorithm is refused with 400";
        refusal "end-4b" Must "refuse.single-post.other-digest"
            [202, 400] ["DIGEST_INVALID"] => single_other_digest,
            "Single POST: content that does not have the digest is refused (202 where unsupported)";
        refusal "end-4b" Must "refuse.single-post.bad-digest"
            [202, 400] ["DIGEST_INVALID"] => single_bad_digest,
            "Single POST: sha256:baddigeststring is refused (202 where unsupported)";
        refusal "end-5" Must "refuse.upload.out-of-order"
            [416] ["BLOB_UPLOAD_INVALID", "SIZE_INVALID", "RANGE_INVALID"] => upload_out_of_order,
            "Chunked: a chunk out of order MUST be answered with 416";
    }
}

async fn upload_unknown(context: &Context, method: &'static str) -> Verdict<Exchange> {
    let repo = existing(context).await?;
    let session = context.with_random(Random::uuid);
    let query = if method == "PUT" {
        format!("?digest={}", context.unknown(Sha256))
    } else {
        String::new()
    };
    let request = repo.request(method, &format!("blobs/uploads/{session}{query}"));
    if matches!(method, "PUT" | "PATCH") {
        return request.header("content-type", "application/octet-stream").body("x").send().await;
    }
    request.send().await
}

async fn upload_unknown_patch(context: &Context) -> Verdict<Exchange> {
    upload_unknown(context, "PATCH").await
}

async fn upload_unknown_put(context: &Context) -> Verdict<Exchange> {
    upload_unknown(context, "PUT").await
}

async fn upload_unknown_get(context: &Context) -> Verdict<Exchange> {
    upload_unknown(context, "GET").await
}

async fn upload_unknown_delete(context: &Context) -> Verdict<Exchange> {
    upload_unknown(context, "DELETE").await
}

async fn upload_closed(context: &Context) -> Verdict<Exchange> {
    let (repo, blob) = (context.repo(), context.blob(50, Sha256));
    let upload = repo.start().await?;
    upload.put(&blob.digest, &blob.bytes, None).await?.expect(&[201])?;
    upload.request("GET").send().await
}

async fn upload(context: &Context, digest: &str) -> Verdict<Exchange> {
    context.repo().start().await?.put(digest, b"some other bytes", None).await
}

async fn upload_other_digest(context: &Context) -> Verdict<Exchange> {
    upload(context, &context.unknown(Sha256)).await
}

async fn upload_other_sha512(context: &Context) -> Verdict<Exchange> {
    upload(context, &context.unknown(Sha512)).await
}

async fn upload_bad_digest(context: &Context) -> Verdict<Exchange> {
    upload(context, BAD).await
}

async fn upload_no_digest(context: &Context) -> Verdict<Exchange> {
    let request = context.repo().start().await?.request("PUT").body("some bytes");
    request.header("content-type", "application/octet-stream").send().await
}

async fn upload_unknown_algorithm(context: &Context) -> Verdict<Exchange> {
    upload(context, &format!("md5:{}", "0123456789abcdef".repeat(2))).await
}

async fn single(context: &Context, digest: &str) -> Verdict<Exchange> {
    let request = context.repo().request("POST", &format!("blobs/uploads/?digest={digest}"));
    request.header("content-type", "application/octet-stream").body("other bytes").send().await
}

async fn single_other_digest(context: &Context) -> Verdict<Exchange> {
    single(context, &context.unknown(Sha256)).await
}

async fn single_bad_digest(context: &Context) -> Verdict<Exchange> {
    single(context, BAD).await
}

async fn upload_out_of_order(context: &Context) -> Verdict<Exchange> {
    let upload = context.repo().start().await?;
    upload.patch(&vec![7; upload.chunk()], Some(1000)).await
}
