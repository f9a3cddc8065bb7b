//! end-3, end-7a: manifests pushed and pulled; tags moved; types negotiated.

use crate::check::{Entry, table};
use crate::content::{DOCKER_IMAGE, IMAGE, INDEX, Manifest, image, image_document, index};
use crate::context::{Context, Repo, Upload};
use crate::digest::Algorithm;
use crate::exchange::{Exchange, Verdict};
use serde_json::json;

pub(super) fn entries() -> Vec<Entry> {
    [pushing(), pulling()].concat()
}

fn pushing() -> Vec<Entry> {
    table! {
        one "end-7a" Must "manifest.put.tag" => put_tag,
            "Pushing manifests: PUT under a tag MUST answer 201, after which tag and digest resolve";
        both "end-7a" Must "manifest.put.digest" => put_digest,
            "Pushing manifests: PUT under its digest MUST answer 201, after which the digest resolves";
        both "end-7a" Must "manifest.put.location" => put_location,
            "Pushing manifests: 201 MUST have a Location, a pullable manifest URL";
        both "end-7a" Must "manifest.put.digest-header" => put_digest_header,
            "Pushing manifests: 201 carries Docker-Content-Digest, and it is the digest of the body";
        one "end-7a" Must "manifest.put.twice" => put_twice,
            "Pushing manifests: pushing what is there already answers 201 again";
        one "end-7a" Must "manifest.retag" => retag,
            "Pushing manifests: a tag moves to the manifest pushed last; the other stays by digest";
        one "end-7a" Must "manifest.two-tags" => two_tags,
            "Pushing manifests: one manifest under two tags is one manifest";
        one "end-7a" Must "manifest.bytes-verbatim" => bytes_verbatim,
            "Pushing manifests: the registry MUST store the exact bytes, odd white space included";
        one "end-7a" Should "manifest.too-large" => too_large,
            "Pushing manifests: one above the registry's limit SHOULD be refused with 413";
        one "end-7a" Must "manifest.no-content-type" => no_content_type,
            "Pushing manifests: without Content-Type it is taken by its mediaType or refused, never 5xx";
    }
}

fn pulling() -> Vec<Entry> {
    table! {
        both "end-3" Must "manifest.head" => head,
            "Checking if content exists: HEAD of an existing manifest MUST answer 200 (and no body)";
        both "end-3" Should "manifest.head.equals-get" => head_equals_get,
            "RFC 9110 9.3.2: HEAD SHOULD send the header fields that GET would send";
        one "end-3" Must "manifest.tag.digest-header" => tag_digest_header,
            "Pulling manifests: Docker-Content-Digest, if present, MUST be the digest of the body";
        both "end-3" Should "manifest.digest-header.algorithm" => digest_header_algorithm,
            "Pulling manifests: Docker-Content-Digest is in the algorithm that was asked for";
        one "end-3" Must "manifest.content-type" => content_type,
            "Pulling manifests: Content-Type MUST be the type that was pushed, without parameters";
        one "end-3" Should "manifest.accept.none" => accept_none,
            "Pulling manifests: without Accept the stored manifest comes, as bare curl expects";
        one "end-3" Should "manifest.accept.any" => accept_any,
            "RFC 9110 12.5.1: Accept: */* accepts the stored manifest";
        one "end-3" Should "manifest.accept.other" => accept_other,
            "Pulling manifests: the stored type comes, whatever Accept says; bytes have one type only";
        one "end-3" Should "manifest.accept.digest" => accept_by_digest,
            "Pulling manifests: a digest names one document: it is never another type's";
        one "end-3" Must "manifest.accept.lines" => accept_lines,
            "RFC 9110 5.3: several Accept lines are one list; parameters (q=) do no harm";
        one "end-3" Should "manifest.accept.index-not-resolved" => accept_index,
            "Pulling manifests: an index comes as an index, also where only images are accepted";
        one "end-3" Should "manifest.if-none-match" => if_none_match,
            "RFC 9110 13.1.2: where a manifest has an ETag, If-None-Match with it answers 304";
        one "end-3" Dev "manifest.namespace" => namespace,
            "Proxying: ?ns= MAY name an upstream; what is stored here comes unchanged, or 404";
    }
}

/// HEAD says what GET says.
pub(super) fn same_headers(get: &Exchange, head: &Exchange) -> Verdict {
    for name in ["content-length", "content-type", "docker-content-digest", "etag", "accept-ranges"]
    {
        if get.header(name) != head.header(name) {
            let wanted = get.header(name).map_or_else(
                || format!("no header '{name}', as GET has none"),
                |value| format!("the header '{name}: {value}', as GET has it"),
            );
            return Err(head.fail(wanted));
        }
    }
    head.need_no_body()
}

/// An image pushed under the tag `latest`.
async fn tagged(context: &Context) -> Verdict<(Repo<'_>, Manifest)> {
    let (repo, item) = (context.repo(), image(context, Algorithm::Sha256));
    item.push_as(&repo, "latest").await?;
    Ok((repo, item.root))
}

async fn by_digest(context: &Context, algorithm: Algorithm) -> Verdict<(Repo<'_>, Manifest)> {
    let (repo, item) = (context.repo(), image(context, algorithm));
    item.push(&repo).await?;
    Ok((repo, item.root))
}

async fn put_tag(context: &Context) -> Verdict {
    let (repo, manifest) = tagged(context).await?;
    repo.need_manifest("latest", &manifest).await?;
    repo.need_manifest(&manifest.digest, &manifest).await.map(drop)
}

async fn put_digest(context: &Context, algorithm: Algorithm) -> Verdict {
    let (repo, manifest) = by_digest(context, algorithm).await?;
    repo.need_manifest(&manifest.digest, &manifest).await.map(drop)
}

async fn put_location(context: &Context, algorithm: Algorithm) -> Verdict {
    let (repo, item) = (context.repo(), image(context, algorithm));
    item.push_parts(&repo).await?;
    let done = repo.push(&item.root.digest, &item.root).await?;
    let request = Upload::of(&repo, done)?.request("GET").header("accept", IMAGE);
    request.send().await?.expect(&[200])?.need_body(&item.root.bytes)
}

async fn put_digest_header(context: &Context, algorithm: Algorithm) -> Verdict {
    let (repo, item) = (context.repo(), image(context, algorithm));
    item.push_parts(&repo).await?;
    let done = repo.push(&item.root.digest, &item.root).await?;
    done.need_value("docker-content-digest", &item.root.digest)
}

async fn put_twice(context: &Context) -> Verdict {
    let (repo, manifest) = tagged(context).await?;
    repo.push("latest", &manifest).await?;
    repo.push(&manifest.digest, &manifest).await?;
    repo.need_manifest("latest", &manifest).await.map(drop)
}

async fn retag(context: &Context) -> Verdict {
    let (repo, first) = tagged(context).await?;
    let second = image(context, Algorithm::Sha256);
    second.push_as(&repo, "latest").await?;
    repo.need_manifest("latest", &second.root).await?;
    repo.need_manifest(&first.digest, &first).await.map(drop)
}

async fn two_tags(context: &Context) -> Verdict {
    let (repo, manifest) = tagged(context).await?;
    repo.push("other", &manifest).await?;
    repo.need_manifest("latest", &manifest).await?;
    repo.need_manifest("other", &manifest).await.map(drop)
}

async fn bytes_verbatim(context: &Context) -> Verdict {
    let (document, blobs) = image_document(context, Algorithm::Sha256);
    let repo = context.repo();
    for blob in &blobs {
        repo.push_blob(blob).await?;
    }
    let odd = format!("\n{document:#}\t\n \n").replace(": ", " :  ").replace("IMAGE", "\\u0049");
    let manifest = Manifest {
        media_type: IMAGE.to_owned(),
        digest: Algorithm::Sha256.digest(odd.as_bytes()),
        bytes: odd.into_bytes(),
    };
    repo.push("latest", &manifest).await?;
    repo.need_manifest("latest", &manifest).await?;
    repo.need_manifest(&manifest.digest, &manifest).await.map(drop)
}

async fn too_large(context: &Context) -> Verdict {
    let (mut document, blobs) = image_document(context, Algorithm::Sha256);
    let repo = context.repo();
    for blob in &blobs {
        repo.push_blob(blob).await?;
    }
    document["annotations"] = json!({"org.example.pad": "x".repeat(5 << 20)});
    let manifest = Manifest::of(&document, Algorithm::Sha256);
    let answer = repo.put_manifest("latest", &manifest).send().await?.expect(&[201, 413])?;
    if answer.status() == 413 {
        return repo.need_no_manifest("latest").await;
    }
    repo.need_manifest("latest", &manifest).await.map(drop)
}

async fn no_content_type(context: &Context) -> Verdict {
    let (repo, item) = (context.repo(), image(context, Algorithm::Sha256));
    item.push_parts(&repo).await?;
    let request = repo.request("PUT", "manifests/latest").body(item.root.bytes.clone());
    let answer = request.send().await?;
    if answer.status() == 201 {
        let found = repo.need_manifest("latest", &item.root).await?;
        return found.need_value("content-type", IMAGE);
    }
    answer.refused().map(drop)
}

async fn head(context: &Context, algorithm: Algorithm) -> Verdict {
    let (repo, manifest) = by_digest(context, algorithm).await?;
    let head = repo.head_manifest(&manifest.digest).send().await?.expect(&[200])?;
    head.need_value_if_present("content-length", &manifest.bytes.len().to_string())?;
    head.need_no_body()
}

async fn head_equals_get(context: &Context, algorithm: Algorithm) -> Verdict {
    let (repo, manifest) = by_digest(context, algorithm).await?;
    let get = repo.need_manifest(&manifest.digest, &manifest).await?;
    let head = repo.head_manifest(&manifest.digest).send().await?.expect(&[200])?;
    head.need_value("content-length", &manifest.bytes.len().to_string())?;
    same_headers(&get, &head)
}

async fn tag_digest_header(context: &Context) -> Verdict {
    let (repo, manifest) = tagged(context).await?;
    let found = repo.need_manifest("latest", &manifest).await?;
    found.need_value_if_present("docker-content-digest", &manifest.digest)
}

async fn digest_header_algorithm(context: &Context, algorithm: Algorithm) -> Verdict {
    let (repo, manifest) = by_digest(context, algorithm).await?;
    let found = repo.need_manifest(&manifest.digest, &manifest).await?;
    found.need_value("docker-content-digest", &manifest.digest)
}

async fn content_type(context: &Context) -> Verdict {
    let (repo, manifest) = tagged(context).await?;
    for reference in ["latest", &manifest.digest] {
        repo.need_manifest(reference, &manifest).await?.need_value("content-type", IMAGE)?;
        let head = repo.head_manifest(reference).send().await?.expect(&[200])?;
        head.need_value("content-type", IMAGE)?;
    }
    Ok(())
}

async fn accepting(context: &Context, lines: &[&str]) -> Verdict {
    let (repo, manifest) = tagged(context).await?;
    let request = repo.get("manifests/latest");
    let request = lines.iter().fold(request, |request, line| request.header("accept", line));
    let found = request.send().await?.expect(&[200])?;
    found.need_body(&manifest.bytes)?;
    found.need_value("content-type", IMAGE)
}

async fn accept_none(context: &Context) -> Verdict {
    accepting(context, &[]).await
}

async fn accept_any(context: &Context) -> Verdict {
    accepting(context, &["*/*"]).await
}

async fn accept_other(context: &Context) -> Verdict {
    accepting(context, &[DOCKER_IMAGE]).await
}

async fn accept_lines(context: &Context) -> Verdict {
    accepting(context, &[DOCKER_IMAGE, INDEX, &format!("{IMAGE};q=0.5, text/plain")]).await
}

async fn accept_by_digest(context: &Context) -> Verdict {
    let (repo, manifest) = tagged(context).await?;
    let rest = format!("manifests/{}", manifest.digest);
    let found = repo.get(&rest).header("accept", DOCKER_IMAGE).send().await?.expect(&[200])?;
    found.need_body(&manifest.bytes)
}

async fn accept_index(context: &Context) -> Verdict {
    let (repo, item) = (context.repo(), index(context, Algorithm::Sha256));
    item.push_as(&repo, "latest").await?;
    let found =
        repo.get("manifests/latest").header("accept", IMAGE).send().await?.expect(&[200])?;
    found.need_body(&item.root.bytes)?;
    found.need_value("content-type", INDEX)
}

async fn if_none_match(context: &Context) -> Verdict {
    let (repo, manifest) = tagged(context).await?;
    let found = repo.need_manifest("latest", &manifest).await?;
    let Some(tag) = found.header("etag") else { return Ok(()) };
    let request = repo.get_manifest("latest").header("if-none-match", tag);
    request.send().await?.expect(&[304])?.need_no_body()
}

async fn namespace(context: &Context) -> Verdict {
    let (repo, manifest) = tagged(context).await?;
    let found = repo.get_manifest("latest?ns=registry.example.org").send().await?;
    let found = found.expect(&[200, 404])?;
    if found.status() == 200 {
        found.need_value_if_present("oci-namespace", "registry.example.org")?;
        found.need_body(&manifest.bytes)?;
    }
    Ok(())
}
