//! end-2: pulling blobs, and asking whether they are there.

use crate::check::{Entry, table};
use crate::context::{Blob, Context, Repo};
use crate::digest::Algorithm;
use crate::exchange::Verdict;

pub(super) fn entries() -> Vec<Entry> {
    table! {
        both "end-2" Must "blob.get" => get,
            "Pulling blobs: GET of an existing blob MUST give the blob, with status 200";
        both "end-2" Must "blob.head" => head,
            "Checking if content exists: HEAD of an existing blob MUST answer 200 (and no body)";
        both "end-2" Should "blob.head.length" => head_length,
            "Checking if content exists: HEAD SHOULD give the size in Content-Length";
        both "end-2" Should "blob.head.equals-get" => head_equals_get,
            "RFC 9110 9.3.2: HEAD SHOULD send the header fields that GET would send";
        both "end-2" Must "blob.digest-header.matches" => digest_matches,
            "Pulling blobs: Docker-Content-Digest, if present, MUST be the digest of the body";
        both "end-2" Should "blob.digest-header.present" => digest_present,
            "Pulling blobs: the answer SHOULD carry Docker-Content-Digest (HEAD of the spec: MUST)";
        one "end-2" Should "blob.content-type" => content_type,
            "Pulling blobs: a blob has no type of its own: Content-Type: application/octet-stream";
        one "end-2" Should "blob.accept-ranges" => accept_ranges,
            "RFC 9110 14.3: a registry that supports Range says so: Accept-Ranges: bytes";
        one "end-2" Should "blob.etag" => etag,
            "RFC 9110 8.8.3: content that never changes has an ETag, well-formed and the same twice";
        one "end-2" Should "blob.if-none-match" => if_none_match,
            "RFC 9110 13.1.2: If-None-Match with the current ETag answers 304 without a body";
        both "end-2" Must "blob.head.unknown" => head_unknown,
            "Checking if content exists: a blob that is not found MUST answer 404";
        both "end-2" Must "blob.other-repository" => other_repository,
            "Pulling blobs: a blob not found in the repository MUST answer 404, wherever else it is";
        both "end-2" Must "blob.zero-bytes" => zero_bytes,
            "Pushing blobs: the blob of zero bytes is a blob like any other";
        both "end-2" Must "blob.empty-json" => empty_json,
            "Image specification, guidance for an empty descriptor: the blob {} is a blob like any other";
        both "end-2" Must "blob.five-mebibytes" => five_mebibytes,
            "Pulling blobs: a blob larger than any buffer comes back byte for byte";
        both "end-2" Must "blob.twice" => twice,
            "Pushing blobs: pushing what is there already answers 201 again";
    }
}

async fn pushed<'c>(context: &'c Context, blob: &Blob) -> Verdict<Repo<'c>> {
    let repo = context.repo();
    repo.push_blob(blob).await?;
    Ok(repo)
}

async fn get(context: &Context, algorithm: Algorithm) -> Verdict {
    let blob = context.blob(1000, algorithm);
    pushed(context, &blob).await?.need_blob(&blob).await.map(drop)
}

async fn head(context: &Context, algorithm: Algorithm) -> Verdict {
    let blob = context.blob(1000, algorithm);
    let repo = pushed(context, &blob).await?;
    let answer = repo.head(&format!("blobs/{}", blob.digest)).send().await?.expect(&[200])?;
    answer.need_no_body()
}

async fn head_length(context: &Context, algorithm: Algorithm) -> Verdict {
    let blob = context.blob(1001, algorithm);
    let repo = pushed(context, &blob).await?;
    let answer = repo.head(&format!("blobs/{}", blob.digest)).send().await?.expect(&[200])?;
    answer.need_value("content-length", "1001")
}

async fn head_equals_get(context: &Context, algorithm: Algorithm) -> Verdict {
    let blob = context.blob(100, algorithm);
    let repo = pushed(context, &blob).await?;
    let get = repo.get_blob(&blob.digest).send().await?.expect(&[200])?;
    let head = repo.head(&format!("blobs/{}", blob.digest)).send().await?.expect(&[200])?;
    super::manifests::same_headers(&get, &head)
}

async fn digest_matches(context: &Context, algorithm: Algorithm) -> Verdict {
    let blob = context.blob(100, algorithm);
    let repo = pushed(context, &blob).await?;
    for request in [repo.get_blob(&blob.digest), repo.head(&format!("blobs/{}", blob.digest))] {
        let answer = request.send().await?.expect(&[200])?;
        answer.need_value_if_present("docker-content-digest", &blob.digest)?;
    }
    Ok(())
}

async fn digest_present(context: &Context, algorithm: Algorithm) -> Verdict {
    let blob = context.blob(100, algorithm);
    let repo = pushed(context, &blob).await?;
    for request in [repo.get_blob(&blob.digest), repo.head(&format!("blobs/{}", blob.digest))] {
        let answer = request.send().await?.expect(&[200])?;
        answer.need_value("docker-content-digest", &blob.digest)?;
    }
    Ok(())
}

async fn content_type(context: &Context) -> Verdict {
    let blob = context.blob(100, Algorithm::Sha256);
    let found = pushed(context, &blob).await?.need_blob(&blob).await?;
    found.need_value("content-type", "application/octet-stream")
}

async fn accept_ranges(context: &Context) -> Verdict {
    let blob = context.blob(100, Algorithm::Sha256);
    let found = pushed(context, &blob).await?.need_blob(&blob).await?;
    found.need_value("accept-ranges", "bytes")
}

async fn etag(context: &Context) -> Verdict {
    let blob = context.blob(100, Algorithm::Sha256);
    let repo = pushed(context, &blob).await?;
    let first = repo.need_blob(&blob).await?;
    let tag = first.need("etag")?;
    let inner = tag.strip_prefix("W/").unwrap_or(tag);
    if inner.len() < 3 || !inner.starts_with('"') || !inner.ends_with('"') {
        return Err(first.fail("an entity tag in quotes, such as etag: \"sha256:…\""));
    }
    repo.need_blob(&blob).await?.need_value("etag", tag)
}

async fn if_none_match(context: &Context) -> Verdict {
    let blob = context.blob(100, Algorithm::Sha256);
    let repo = pushed(context, &blob).await?;
    let first = repo.need_blob(&blob).await?;
    let tag = first.need("etag")?;
    let request = repo.get_blob(&blob.digest).header("if-none-match", tag);
    request.send().await?.expect(&[304])?.need_no_body()?;
    let request = repo.get_blob(&blob.digest).header("if-none-match", "\"another\"");
    request.send().await?.expect(&[200])?.need_body(&blob.bytes)
}

async fn head_unknown(context: &Context, algorithm: Algorithm) -> Verdict {
    let repo = pushed(context, &context.blob(100, Algorithm::Sha256)).await?;
    let rest = format!("blobs/{}", context.unknown(algorithm));
    repo.head(&rest).send().await?.expect(&[404])?.need_no_body()
}

async fn other_repository(context: &Context, algorithm: Algorithm) -> Verdict {
    let blob = context.blob(100, algorithm);
    pushed(context, &blob).await?;
    let other = pushed(context, &context.blob(10, Algorithm::Sha256)).await?;
    other.need_no_blob(&blob.digest).await
}

async fn zero_bytes(context: &Context, algorithm: Algorithm) -> Verdict {
    small(context, Blob::new("", algorithm)).await
}

async fn empty_json(context: &Context, algorithm: Algorithm) -> Verdict {
    small(context, Blob::new("{}", algorithm)).await
}

async fn small(context: &Context, blob: Blob) -> Verdict {
    let repo = pushed(context, &blob).await?;
    repo.need_blob(&blob).await?;
    let head = repo.head(&format!("blobs/{}", blob.digest)).send().await?.expect(&[200])?;
    head.need_value_if_present("content-length", &blob.bytes.len().to_string())
}

async fn five_mebibytes(context: &Context, algorithm: Algorithm) -> Verdict {
    let blob = context.blob(5 << 20, algorithm);
    pushed(context, &blob).await?.need_blob(&blob).await.map(drop)
}

async fn twice(context: &Context, algorithm: Algorithm) -> Verdict {
    let blob = context.blob(100, algorithm);
    let repo = pushed(context, &blob).await?;
    repo.push_blob(&blob).await?;
    repo.need_blob(&blob).await.map(drop)
}
