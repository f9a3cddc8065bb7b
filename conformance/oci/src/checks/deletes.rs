//! end-9, end-10: deleting tags, manifests and blobs, at once and nothing else.

use crate::check::{Entry, table};
use crate::checks::tags::ask;
use crate::content::{Manifest, image, index};
use crate::context::{Blob, Context, Repo};
use crate::digest::Algorithm;
use crate::exchange::Verdict;

pub(super) fn entries() -> Vec<Entry> {
    [manifests(), blobs()].concat()
}

fn manifests() -> Vec<Entry> {
    table! {
        one "end-9" Must "delete.tag" => tag,
            "Deleting tags: DELETE of a tag MUST answer 202, after which the tag is unknown (404)";
        one "end-9" Must "delete.tag.keeps-manifest" => tag_keeps_manifest,
            "Deleting tags: the manifest stays, by its digest and under its other tags";
        one "end-9" Must "delete.tag.unlisted" => tag_unlisted,
            "Deleting tags: the tag is gone from the list of tags at once";
        one "end-9" Must "delete.tag.again" => tag_again,
            "Deleting tags: a tag that was deleted can be pushed again";
        both "end-9" Must "delete.manifest" => manifest,
            "Deleting manifests: DELETE of a digest MUST answer 202, after which it is unknown (404)";
        one "end-9" Must "delete.manifest.drops-tags" => manifest_drops_tags,
            "Deleting manifests: no tag resolves to what was deleted, and none is listed";
        one "end-9" Must "delete.manifest.twice" => manifest_twice,
            "Deleting manifests: what is gone is unknown: 404";
        one "end-9" Must "delete.manifest.again" => manifest_again,
            "Deleting manifests: what was deleted can be pushed again";
        one "end-9" Must "delete.manifest.keeps-blobs" => manifest_keeps_blobs,
            "Deleting manifests: the blobs of the manifest stay until they are deleted";
        one "end-9" Must "delete.manifest.other-repository" => manifest_other_repository,
            "Deleting manifests: another repository keeps the same manifest";
        one "end-9" Must "delete.index.keeps-children" => index_keeps_children,
            "Deleting manifests: the children of an index stay";
        one "end-9" Should "delete.last-tag-list" => last_tag_list,
            "Listing tags: when the last tag is gone the list is empty: 200 with [] (or 404)";
    }
}

fn blobs() -> Vec<Entry> {
    table! {
        both "end-10" Must "delete.blob" => blob,
            "Deleting blobs: DELETE MUST answer 202, after which the blob is unknown (404)";
        one "end-10" Must "delete.blob.twice" => blob_twice,
            "Deleting blobs: a blob that is not found MUST answer 404";
        both "end-10" Must "delete.blob.empty-json" => blob_empty_json,
            "Deleting blobs: the blob {} is deleted like any other, at once";
        both "end-10" Must "delete.blob.zero-bytes" => blob_zero_bytes,
            "Deleting blobs: the blob of zero bytes is deleted like any other, at once";
        one "end-10" Must "delete.blob.again" => blob_again,
            "Deleting blobs: what was deleted can be pushed again";
        one "end-10" Must "delete.blob.other-repository" => blob_other_repository,
            "Deleting blobs: another repository keeps the same blob";
        one "end-10" Must "delete.blob.referenced" => blob_referenced,
            "Deleting blobs: one in use is deleted (202) and gone, or refused (4xx) and whole";
        one "end-10" Should "delete.blob.then-manifest" => blob_then_manifest,
            "Pushing manifests: one that needs a deleted blob is refused: MANIFEST_BLOB_UNKNOWN";
    }
}

async fn tagged<'c>(context: &'c Context, tags: &[&str]) -> Verdict<(Repo<'c>, Manifest)> {
    let (repo, item) = (context.repo(), image(context, Algorithm::Sha256));
    item.push_parts(&repo).await?;
    for tag in tags {
        repo.push(tag, &item.root).await?;
    }
    Ok((repo, item.root))
}

async fn delete_manifest(repo: &Repo<'_>, reference: &str) -> Verdict {
    repo.delete(&format!("manifests/{reference}")).send().await?.expect(&[202]).map(drop)
}

async fn delete_blob(repo: &Repo<'_>, digest: &str) -> Verdict {
    repo.delete(&format!("blobs/{digest}")).send().await?.expect(&[202]).map(drop)
}

async fn tag(context: &Context) -> Verdict {
    let (repo, _) = tagged(context, &["gone"]).await?;
    delete_manifest(&repo, "gone").await?;
    repo.need_no_manifest("gone").await
}

async fn tag_keeps_manifest(context: &Context) -> Verdict {
    let (repo, manifest) = tagged(context, &["gone", "kept"]).await?;
    delete_manifest(&repo, "gone").await?;
    repo.need_manifest(&manifest.digest, &manifest).await?;
    repo.need_manifest("kept", &manifest).await.map(drop)
}

async fn tag_unlisted(context: &Context) -> Verdict {
    let (repo, _) = tagged(context, &["gone", "kept"]).await?;
    delete_manifest(&repo, "gone").await?;
    let (answer, tags) = ask(&repo, "").await?;
    if tags == ["kept"] { Ok(()) } else { Err(answer.fail("the tags [\"kept\"]")) }
}

async fn tag_again(context: &Context) -> Verdict {
    let (repo, manifest) = tagged(context, &["gone"]).await?;
    delete_manifest(&repo, "gone").await?;
    repo.push("gone", &manifest).await?;
    repo.need_manifest("gone", &manifest).await.map(drop)
}

async fn manifest(context: &Context, algorithm: Algorithm) -> Verdict {
    let (repo, item) = (context.repo(), image(context, algorithm));
    item.push(&repo).await?;
    delete_manifest(&repo, &item.root.digest).await?;
    repo.need_no_manifest(&item.root.digest).await
}

async fn manifest_drops_tags(context: &Context) -> Verdict {
    let (repo, manifest) = tagged(context, &["a", "b"]).await?;
    image(context, Algorithm::Sha256).push_as(&repo, "kept").await?;
    delete_manifest(&repo, &manifest.digest).await?;
    repo.need_no_manifest("a").await?;
    repo.need_no_manifest("b").await?;
    let (answer, tags) = ask(&repo, "").await?;
    if tags == ["kept"] { Ok(()) } else { Err(answer.fail("the tags [\"kept\"]")) }
}

async fn manifest_twice(context: &Context) -> Verdict {
    let (repo, manifest) = tagged(context, &["a"]).await?;
    delete_manifest(&repo, &manifest.digest).await?;
    let rest = format!("manifests/{}", manifest.digest);
    repo.delete(&rest).send().await?.expect(&[404]).map(drop)
}

async fn manifest_again(context: &Context) -> Verdict {
    let (repo, manifest) = tagged(context, &["a"]).await?;
    delete_manifest(&repo, &manifest.digest).await?;
    repo.push("a", &manifest).await?;
    repo.need_manifest("a", &manifest).await?;
    repo.need_manifest(&manifest.digest, &manifest).await.map(drop)
}

async fn manifest_keeps_blobs(context: &Context) -> Verdict {
    let (repo, item) = (context.repo(), image(context, Algorithm::Sha256));
    item.push(&repo).await?;
    delete_manifest(&repo, &item.root.digest).await?;
    for blob in &item.blobs {
        repo.need_blob(blob).await?;
    }
    Ok(())
}

async fn manifest_other_repository(context: &Context) -> Verdict {
    let (repo, other) = (context.repo(), context.repo());
    let item = image(context, Algorithm::Sha256);
    item.push_as(&repo, "a").await?;
    item.push_as(&other, "a").await?;
    delete_manifest(&repo, &item.root.digest).await?;
    repo.need_no_manifest("a").await?;
    other.need_manifest("a", &item.root).await.map(drop)
}

async fn index_keeps_children(context: &Context) -> Verdict {
    let (repo, item) = (context.repo(), index(context, Algorithm::Sha256));
    item.push_as(&repo, "a").await?;
    delete_manifest(&repo, &item.root.digest).await?;
    for child in &item.children {
        repo.need_manifest(&child.digest, child).await?;
    }
    Ok(())
}

async fn last_tag_list(context: &Context) -> Verdict {
    let (repo, manifest) = tagged(context, &["only"]).await?;
    delete_manifest(&repo, &manifest.digest).await?;
    let answer = repo.get("tags/list").send().await?.expect(&[200, 404])?;
    if answer.status() == 200 && answer.json()?.get("tags") != Some(&serde_json::json!([])) {
        return Err(answer.fail("\"tags\": []"));
    }
    Ok(())
}

async fn gone(context: &Context, blob: Blob) -> Verdict {
    let repo = context.repo();
    repo.push_blob(&blob).await?;
    delete_blob(&repo, &blob.digest).await?;
    repo.need_no_blob(&blob.digest).await
}

async fn blob(context: &Context, algorithm: Algorithm) -> Verdict {
    gone(context, context.blob(100, algorithm)).await
}

async fn blob_empty_json(context: &Context, algorithm: Algorithm) -> Verdict {
    gone(context, Blob::new("{}", algorithm)).await
}

async fn blob_zero_bytes(context: &Context, algorithm: Algorithm) -> Verdict {
    gone(context, Blob::new("", algorithm)).await
}

async fn blob_twice(context: &Context) -> Verdict {
    let (repo, blob) = (context.repo(), context.blob(100, Algorithm::Sha256));
    repo.push_blob(&blob).await?;
    delete_blob(&repo, &blob.digest).await?;
    repo.delete(&format!("blobs/{}", blob.digest)).send().await?.expect(&[404]).map(drop)
}

async fn blob_again(context: &Context) -> Verdict {
    let (repo, blob) = (context.repo(), context.blob(100, Algorithm::Sha256));
    repo.push_blob(&blob).await?;
    delete_blob(&repo, &blob.digest).await?;
    repo.push_blob(&blob).await?;
    repo.need_blob(&blob).await.map(drop)
}

async fn blob_other_repository(context: &Context) -> Verdict {
    let (repo, other) = (context.repo(), context.repo());
    let blob = context.blob(100, Algorithm::Sha256);
    repo.push_blob(&blob).await?;
    other.push_blob(&blob).await?;
    delete_blob(&repo, &blob.digest).await?;
    other.need_blob(&blob).await.map(drop)
}

async fn blob_referenced(context: &Context) -> Verdict {
    let (repo, item) = (context.repo(), image(context, Algorithm::Sha256));
    item.push(&repo).await?;
    let blob = &item.blobs[1];
    let answer = repo.delete(&format!("blobs/{}", blob.digest)).send().await?;
    if answer.status() == 202 {
        return repo.need_no_blob(&blob.digest).await;
    }
    answer.refused()?;
    repo.need_blob(blob).await.map(drop)
}

async fn blob_then_manifest(context: &Context) -> Verdict {
    let (repo, item) = (context.repo(), image(context, Algorithm::Sha256));
    item.push_parts(&repo).await?;
    delete_blob(&repo, &item.blobs[1].digest).await?;
    let answer = repo.put_manifest("latest", &item.root).send().await?.expect(&[400, 404])?;
    answer.need_code(&["MANIFEST_BLOB_UNKNOWN"])
}
