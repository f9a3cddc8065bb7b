//! What must be refused: with which status, and with which error code.

use crate::check::{Entry, refusal};
use crate::content::{INDEX, Manifest, image, image_document, index};
use crate::context::{Context, Repo};
use crate::digest::Algorithm::{Sha256, Sha512};
use crate::exchange::{Exchange, Verdict};
use crate::random::Random;
use serde_json::{Value, json};

/// A digest that is none.
const BAD: &str = "sha256:baddigeststring";

pub(super) fn entries() -> Vec<Entry> {
    [pulling(), pushing(), uploading(), deleting()].concat()
}

fn pulling() -> Vec<Entry> {
    [
        refusal!(
            "end-2",
            Must,
            "refuse.blob.unknown",
            [404],
            ["BLOB_UNKNOWN"],
            blob_unknown,
            "Pulling blobs: a blob not found in the repository MUST answer 404"
        ),
        refusal!(
            "end-2",
            Should,
            "refuse.blob.unknown-sha512",
            [404],
            ["BLOB_UNKNOWN"],
            blob_unknown_sha512,
            "Pulling blobs: a sha512 blob not found in the repository MUST answer 404"
        ),
        refusal!(
            "end-2",
            Must,
            "refuse.blob.unknown-repository",
            [404],
            ["BLOB_UNKNOWN", "NAME_UNKNOWN"],
            blob_unknown_repository,
            "Pulling blobs: a repository that does not exist answers 404"
        ),
        refusal!(
            "end-2",
            Must,
            "refuse.blob.bad-digest",
            [400, 404],
            ["DIGEST_INVALID", "BLOB_UNKNOWN"],
            blob_bad_digest,
            "Pulling blobs: sha256:baddigeststring is no digest: 400 (or 404), never 5xx"
        ),
        refusal!(
            "end-2",
            Should,
            "refuse.blob.bad-digest-exactly",
            [400],
            ["DIGEST_INVALID"],
            blob_bad_digest,
            "Error codes: DIGEST_INVALID is what a malformed digest gets: 400"
        ),
        refusal!(
            "end-2",
            Should,
            "refuse.blob.short-digest",
            [400, 404],
            ["DIGEST_INVALID", "BLOB_UNKNOWN"],
            blob_short_digest,
            "Image specification: sha256 has 64 hexadecimal digits, not 63"
        ),
        refusal!(
            "end-2",
            Should,
            "refuse.blob.upper-case-digest",
            [400, 404],
            ["DIGEST_INVALID", "BLOB_UNKNOWN"],
            blob_upper_case,
            "Image specification: the hexadecimal digits are in lower case; others name nothing"
        ),
        refusal!(
            "end-2",
            Should,
            "refuse.blob.unknown-algorithm",
            [400, 404],
            ["DIGEST_INVALID", "BLOB_UNKNOWN", "UNSUPPORTED"],
            blob_unknown_algorithm,
            "Image specification: an algorithm that is not registered names nothing"
        ),
        refusal!(
            "end-3",
            Must,
            "refuse.manifest.unknown-tag",
            [404],
            ["MANIFEST_UNKNOWN"],
            manifest_unknown_tag,
            "Pulling manifests: a tag not found in the repository MUST answer 404"
        ),
        refusal!(
            "end-3",
            Must,
            "refuse.manifest.unknown-digest",
            [404],
            ["MANIFEST_UNKNOWN"],
            manifest_unknown,
            "Pulling manifests: a digest not found in the repository MUST answer 404"
        ),
        refusal!(
            "end-3",
            Should,
            "refuse.manifest.unknown-sha512",
            [404],
            ["MANIFEST_UNKNOWN"],
            manifest_unknown_sha512,
            "Pulling manifests: a sha512 digest not found in the repository MUST answer 404"
        ),
        refusal!(
            "end-3",
            Must,
            "refuse.manifest.unknown-repository",
            [404],
            ["NAME_UNKNOWN", "MANIFEST_UNKNOWN"],
            manifest_unknown_repository,
            "Pulling manifests: a repository that does not exist answers 404"
        ),
        refusal!(
            "end-3",
            Must,
            "refuse.manifest.bad-digest",
            [400, 404],
            ["DIGEST_INVALID", "MANIFEST_UNKNOWN", "MANIFEST_INVALID"],
            manifest_bad_digest,
            "Pulling manifests: sha256:baddigeststring is no digest: 400 or 404, never 5xx"
        ),
        refusal!(
            "end-8",
            Must,
            "refuse.tags.unknown-repository",
            [404],
            ["NAME_UNKNOWN"],
            tags_unknown_repository,
            "Listing tags: a repository that does not exist answers 404"
        ),
        refusal!(
            "end-12",
            Must,
            "refuse.referrers.bad-digest",
            [400],
            ["DIGEST_INVALID"],
            referrers_bad_digest,
            "Listing referrers: a digest with an invalid syntax MUST be answered with 400"
        ),
    ]
    .concat()
}

fn pushing() -> Vec<Entry> {
    [
        refusal!(
            "end-7a",
            Must,
            "refuse.put.bad-digest",
            [400, 404],
            ["DIGEST_INVALID", "MANIFEST_INVALID"],
            put_bad_digest,
            "Pushing manifests: the reference sha256:baddigeststring is refused, never with 5xx"
        ),
        refusal!(
            "end-7a",
            Must,
            "refuse.put.other-digest",
            [400],
            ["DIGEST_INVALID", "MANIFEST_INVALID"],
            put_other_digest,
            "Pushing manifests: a body that does not have the digest of its URL is refused"
        ),
        refusal!(
            "end-7a",
            Should,
            "refuse.put.other-digest-sha512",
            [400],
            ["DIGEST_INVALID", "MANIFEST_INVALID"],
            put_other_sha512,
            "Pushing manifests: a body that does not have the sha512 digest of its URL is refused"
        ),
        refusal!(
            "end-7a",
            Must,
            "refuse.put.not-json",
            [400],
            ["MANIFEST_INVALID"],
            put_not_json,
            "Error codes: MANIFEST_INVALID: a manifest that is no JSON is refused"
        ),
        refusal!(
            "end-7a",
            Must,
            "refuse.put.empty",
            [400],
            ["MANIFEST_INVALID", "SIZE_INVALID"],
            put_empty,
            "Error codes: MANIFEST_INVALID: an empty manifest is refused"
        ),
        refusal!(
            "end-7a",
            Must,
            "refuse.put.list",
            [400],
            ["MANIFEST_INVALID"],
            put_list,
            "Error codes: MANIFEST_INVALID: a manifest that is a JSON list is refused"
        ),
        refusal!(
            "end-7a",
            Must,
            "refuse.put.bad-descriptor",
            [400, 404],
            ["MANIFEST_INVALID", "DIGEST_INVALID", "MANIFEST_BLOB_UNKNOWN"],
            put_bad_descriptor,
            "Image specification: a descriptor whose digest is none makes the manifest invalid"
        ),
        refusal!(
            "end-7a",
            Should,
            "refuse.put.other-type",
            [400, 415],
            ["MANIFEST_INVALID", "UNSUPPORTED"],
            put_other_type,
            "Pushing manifests: Content-Type and the mediaType within MUST agree"
        ),
        refusal!(
            "end-7a",
            Should,
            "refuse.put.index-as-image",
            [400, 415],
            ["MANIFEST_INVALID", "UNSUPPORTED"],
            put_index_as_image,
            "Image specification: an index that calls itself an image is confusion, and refused"
        ),
        refusal!(
            "end-7a",
            Should,
            "refuse.put.missing-layer",
            [400, 404],
            ["MANIFEST_BLOB_UNKNOWN"],
            put_missing_layer,
            "Error codes: MANIFEST_BLOB_UNKNOWN: a manifest that references an unknown blob"
        ),
        refusal!(
            "end-7a",
            Should,
            "refuse.put.missing-config",
            [400, 404],
            ["MANIFEST_BLOB_UNKNOWN"],
            put_missing_config,
            "Error codes: MANIFEST_BLOB_UNKNOWN: a manifest whose config is unknown"
        ),
        refusal!(
            "end-7a",
            Should,
            "refuse.put.missing-child",
            [400, 404],
            ["MANIFEST_BLOB_UNKNOWN"],
            put_missing_child,
            "Error codes: MANIFEST_BLOB_UNKNOWN: an index that references an unknown manifest"
        ),
    ]
    .concat()
}

fn uploading() -> Vec<Entry> {
    [
        refusal!(
            "end-5",
            Must,
            "refuse.upload.unknown-patch",
            [404],
            ["BLOB_UPLOAD_UNKNOWN"],
            upload_unknown_patch,
            "Chunked: an upload that does not exist answers 404"
        ),
        refusal!(
            "end-6",
            Must,
            "refuse.upload.unknown-put",
            [404],
            ["BLOB_UPLOAD_UNKNOWN"],
            upload_unknown_put,
            "POST then PUT: an upload that does not exist answers 404"
        ),
        refusal!(
            "end-13",
            Must,
            "refuse.upload.unknown-get",
            [404],
            ["BLOB_UPLOAD_UNKNOWN"],
            upload_unknown_get,
            "Chunked: GET of an upload that does not exist answers 404"
        ),
        refusal!(
            "end-14",
            Dev,
            "refuse.upload.unknown-delete",
            [404],
            ["BLOB_UPLOAD_UNKNOWN"],
            upload_unknown_delete,
            "Cancel: DELETE of an upload that does not exist answers 404"
        ),
        refusal!(
            "end-6",
            Must,
            "refuse.upload.other-digest",
            [400],
            ["DIGEST_INVALID"],
            upload_other_digest,
            "POST then PUT: content that does not have the digest of the URL is refused"
        ),
        refusal!(
            "end-6",
            Should,
            "refuse.upload.other-digest-sha512",
            [400],
            ["DIGEST_INVALID"],
            upload_other_sha512,
            "POST then PUT: content that does not have the sha512 digest of the URL is refused"
        ),
        refusal!(
            "end-6",
            Must,
            "refuse.upload.bad-digest",
            [400],
            ["DIGEST_INVALID"],
            upload_bad_digest,
            "POST then PUT: sha256:baddigeststring is refused with 400, never with 5xx"
        ),
        refusal!(
            "end-6",
            Must,
            "refuse.upload.no-digest",
            [400],
            ["DIGEST_INVALID"],
            upload_no_digest,
            "POST then PUT: PUT without a digest is refused with 400"
        ),
        refusal!(
            "end-6",
            Must,
            "refuse.upload.unknown-algorithm",
            [400],
            ["DIGEST_INVALID", "UNSUPPORTED"],
            upload_unknown_algorithm,
            "POST then PUT: a digest of an unknown algorithm is refused with 400"
        ),
        refusal!(
            "end-4b",
            Must,
            "refuse.single-post.other-digest",
            [202, 400],
            ["DIGEST_INVALID"],
            single_other_digest,
            "Single POST: content that does not have the digest is refused (202 where unsupported)"
        ),
        refusal!(
            "end-4b",
            Must,
            "refuse.single-post.bad-digest",
            [202, 400],
            ["DIGEST_INVALID"],
            single_bad_digest,
            "Single POST: sha256:baddigeststring is refused (202 where unsupported)"
        ),
        refusal!(
            "end-5",
            Must,
            "refuse.upload.out-of-order",
            [416],
            ["BLOB_UPLOAD_INVALID", "SIZE_INVALID", "RANGE_INVALID"],
            upload_out_of_order,
            "Chunked: a chunk out of order MUST be answered with 416"
        ),
    ]
    .concat()
}

fn deleting() -> Vec<Entry> {
    [
        refusal!(
            "end-9",
            Must,
            "refuse.delete.unknown-tag",
            [404],
            ["MANIFEST_UNKNOWN"],
            delete_unknown_tag,
            "Deleting tags: a tag that does not exist MUST answer 404"
        ),
        refusal!(
            "end-9",
            Must,
            "refuse.delete.unknown-manifest",
            [404],
            ["MANIFEST_UNKNOWN"],
            delete_unknown_manifest,
            "Deleting manifests: a manifest that does not exist MUST answer 404"
        ),
        refusal!(
            "end-9",
            Must,
            "refuse.delete.manifest-unknown-repository",
            [404],
            ["NAME_UNKNOWN", "MANIFEST_UNKNOWN"],
            delete_manifest_unknown_repository,
            "Deleting manifests: a repository that does not exist MUST answer 404"
        ),
        refusal!(
            "end-9",
            Must,
            "refuse.delete.manifest-bad-digest",
            [400, 404],
            ["DIGEST_INVALID", "MANIFEST_UNKNOWN", "MANIFEST_INVALID"],
            delete_manifest_bad_digest,
            "Deleting manifests: sha256:baddigeststring is refused, never with 5xx"
        ),
        refusal!(
            "end-10",
            Must,
            "refuse.delete.unknown-blob",
            [404],
            ["BLOB_UNKNOWN"],
            delete_unknown_blob,
            "Deleting blobs: a blob that does not exist MUST answer 404"
        ),
        refusal!(
            "end-10",
            Must,
            "refuse.delete.blob-bad-digest",
            [400, 404],
            ["DIGEST_INVALID", "BLOB_UNKNOWN"],
            delete_blob_bad_digest,
            "Deleting blobs: sha256:baddigeststring is refused, never with 5xx"
        ),
    ]
    .concat()
}

/// A repository that exists: it holds a tagged image.
async fn existing(context: &Context) -> Verdict<Repo<'_>> {
    let (repo, content) = (context.repo(), image(context, Sha256));
    content.push_as(&repo, "latest").await?;
    Ok(repo)
}

async fn get(context: &Context, rest: String) -> Verdict<Exchange> {
    existing(context).await?.get(&rest).send().await
}

async fn delete(context: &Context, rest: String) -> Verdict<Exchange> {
    existing(context).await?.delete(&rest).send().await
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

async fn put(context: &Context, reference: &str) -> Verdict<Exchange> {
    let (repo, content) = (context.repo(), image(context, Sha256));
    content.push_parts(&repo).await?;
    repo.put_manifest(reference, &content.root).send().await
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
    let (repo, content) = (context.repo(), image(context, Sha256));
    content.push_parts(&repo).await?;
    let root = Manifest { media_type: INDEX.to_owned(), ..content.root };
    repo.put_manifest("latest", &root).send().await
}

async fn put_index_as_image(context: &Context) -> Verdict<Exchange> {
    let (repo, content) = (context.repo(), index(context, Sha256));
    content.push_parts(&repo).await?;
    let text =
        String::from_utf8_lossy(&content.root.bytes).replacen(INDEX, crate::content::IMAGE, 1);
    let root = Manifest {
        media_type: crate::content::IMAGE.to_owned(),
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
    let mut content = index(context, Sha256);
    content.children.pop();
    let repo = context.repo();
    content.push_parts(&repo).await?;
    repo.put_manifest("latest", &content.root).send().await
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
