//! end-4a, 4b, 4c, 6, 13, 14: blobs pushed in one piece, streamed, asked about, cancelled.

use crate::check::{Entry, table};
use crate::context::{Context, Upload, location};
use crate::digest::Algorithm;
use crate::exchange::Verdict;

pub(super) fn entries() -> Vec<Entry> {
    [in_pieces_of_one(), streamed(), sessions()].concat()
}

fn in_pieces_of_one() -> Vec<Entry> {
    table! {
        one "end-4a" Must "upload.post" => post,
            "POST then PUT: POST MUST answer 202 and MUST have a Location";
        one "end-4a" Should "upload.post.range" => post_range,
            "Docker v2: POST answers with Range: 0-0; docker and others read it";
        one "end-4a" Should "upload.post.uuid" => post_uuid,
            "Docker v2: POST answers with Docker-Upload-UUID";
        one "end-4a" Must "upload.post.chunk-min-length" => chunk_min_length,
            "Chunked: OCI-Chunk-Min-Length, if present, is a number of bytes";
        one "end-4a" Must "upload.post.distinct" => distinct,
            "POST then PUT: each upload is a session of its own, with its own Location";
        both "end-6" Must "upload.put" => put,
            "POST then PUT: PUT with the digest MUST answer 201 once the blob is there";
        both "end-6" Must "upload.put.location" => put_location,
            "POST then PUT: 201 MUST have a Location, a pullable blob URL";
        both "end-6" Should "upload.put.digest-header" => put_digest_header,
            "POST then PUT: 201 carries Docker-Content-Digest with the digest asked for";
        both "end-4b" Must "upload.single-post" => single_post,
            "Single POST: 201 with a Location, or 202 to go on as in POST then PUT";
        both "end-4b" Should "upload.single-post.supported" => single_post_supported,
            "Single POST: a registry MAY support it; clients save a round trip with it";
        one "end-6" Must "upload.put.refused-leaves-nothing" => refused_leaves_nothing,
            "POST then PUT: content that does not match its digest is not stored, under either";
    }
}

fn streamed() -> Vec<Entry> {
    table! {
        both "end-5" Should "upload.stream" => stream,
            "Docker v2: PATCH without Content-Range appends; docker and crane push this way";
        one "end-5" Should "upload.stream.chunked-encoding" => stream_chunked,
            "RFC 9112 7.1: PATCH with Transfer-Encoding: chunked, as docker sends it";
        one "end-5" Should "upload.stream.twice" => stream_twice,
            "Docker v2: a second PATCH without Content-Range appends to the first";
        one "end-5" Should "upload.stream.put-rest" => stream_put_rest,
            "POST then PUT: the closing PUT may carry the rest of the bytes after a PATCH";
        one "end-4c" Dev "upload.digest-algorithm" => digest_algorithm,
            "end-4c: POST ?digest-algorithm=sha512 MUST answer 202, and the upload ends with sha512";
        one "end-4c" Dev "upload.digest-algorithm.unknown" => digest_algorithm_unknown,
            "end-4c: an algorithm that is not supported MUST be refused with 400";
    }
}

fn sessions() -> Vec<Entry> {
    table! {
        one "end-13" Must "upload.status.fresh" => status_fresh,
            "Chunked: GET of the upload MUST answer 204 with a Location";
        one "end-14" Dev "upload.cancel" => cancel,
            "Cancel: DELETE of the upload MUST answer 204, after which the session is unknown (404)";
        one "end-14" Dev "upload.cancel.twice" => cancel_twice,
            "Cancel: a session that was cancelled is unknown: DELETE answers 404";
        one "end-14" Dev "upload.cancel.no-append" => cancel_no_append,
            "Cancel: a session that was cancelled takes no more bytes: PATCH and PUT answer 404";
        one "end-6" Must "upload.at-once" => at_once,
            "Pushing blobs: two uploads of the same blob at the same time both end with 201";
        one "end-6" Must "upload.closed" => closed,
            "POST then PUT: a session ends with its blob; it cannot be used again (404)";
        one "end-5" Should "upload.other-repository" => other_repository,
            "A session belongs to the repository it was begun in: 4xx under another name";
    }
}

async fn post(context: &Context) -> Verdict {
    let answer = context.repo().request("POST", "blobs/uploads/").send().await?.expect(&[202])?;
    location(&answer).map(drop)
}

async fn post_range(context: &Context) -> Verdict {
    context.repo().start().await?.begun.need_value("range", "0-0")
}

async fn post_uuid(context: &Context) -> Verdict {
    let upload = context.repo().start().await?;
    if upload.begun.need("docker-upload-uuid")?.is_empty() {
        return Err(upload.begun.fail("a value in 'docker-upload-uuid'"));
    }
    Ok(())
}

async fn chunk_min_length(context: &Context) -> Verdict {
    let upload = context.repo().start().await?;
    match upload.begun.header("oci-chunk-min-length") {
        Some(text) if text.parse::<u64>().is_err() => {
            Err(upload.begun.fail("a number in 'oci-chunk-min-length', or no such header"))
        }
        _ => Ok(()),
    }
}

async fn distinct(context: &Context) -> Verdict {
    let repo = context.repo();
    let (first, second) = (repo.start().await?, repo.start().await?);
    if first.url == second.url {
        return Err(second.begun.fail("another 'location' than that of the upload before"));
    }
    let (a, b) = (context.blob(50, Algorithm::Sha256), context.blob(60, Algorithm::Sha256));
    second.put(&b.digest, &b.bytes, None).await?.expect(&[201])?;
    first.put(&a.digest, &a.bytes, None).await?.expect(&[201])?;
    repo.need_blob(&a).await?;
    repo.need_blob(&b).await.map(drop)
}

async fn put(context: &Context, algorithm: Algorithm) -> Verdict {
    let (repo, blob) = (context.repo(), context.blob(100, algorithm));
    repo.push_blob(&blob).await?;
    repo.need_blob(&blob).await.map(drop)
}

async fn put_location(context: &Context, algorithm: Algorithm) -> Verdict {
    let (repo, blob) = (context.repo(), context.blob(100, algorithm));
    let done = repo.push_blob(&blob).await?;
    let upload = Upload::of(&repo, done)?;
    upload.request("GET").send().await?.expect(&[200])?.need_body(&blob.bytes)
}

async fn put_digest_header(context: &Context, algorithm: Algorithm) -> Verdict {
    let blob = context.blob(100, algorithm);
    let done = context.repo().push_blob(&blob).await?;
    done.need_value("docker-content-digest", &blob.digest)
}

async fn single_post(context: &Context, algorithm: Algorithm) -> Verdict {
    let (repo, blob) = (context.repo(), context.blob(100, algorithm));
    let rest = format!("blobs/uploads/?digest={}", blob.digest);
    let request = repo.request("POST", &rest).body(blob.bytes.clone());
    let answer = request.header("content-type", "application/octet-stream").send().await?;
    let answer = answer.expect(&[201, 202])?;
    let upload = Upload::of(&repo, answer)?;
    if upload.begun.status() == 202 {
        upload.put(&blob.digest, &blob.bytes, None).await?.expect(&[201])?;
    } else {
        upload.request("GET").send().await?.expect(&[200])?.need_body(&blob.bytes)?;
    }
    repo.need_blob(&blob).await.map(drop)
}

async fn single_post_supported(context: &Context, algorithm: Algorithm) -> Verdict {
    let (repo, blob) = (context.repo(), context.blob(100, algorithm));
    let rest = format!("blobs/uploads/?digest={}", blob.digest);
    let request = repo.request("POST", &rest).body(blob.bytes.clone());
    let request = request.header("content-type", "application/octet-stream");
    request.send().await?.expect(&[201])?;
    repo.need_blob(&blob).await.map(drop)
}

async fn refused_leaves_nothing(context: &Context) -> Verdict {
    let repo = context.repo();
    let (blob, other) = (context.blob(50, Algorithm::Sha256), context.blob(50, Algorithm::Sha256));
    repo.push_blob(&context.blob(10, Algorithm::Sha256)).await?;
    repo.start().await?.put(&other.digest, &blob.bytes, None).await?.refused()?;
    repo.need_no_blob(&other.digest).await?;
    repo.need_no_blob(&blob.digest).await
}

async fn stream(context: &Context, algorithm: Algorithm) -> Verdict {
    let (repo, blob) = (context.repo(), context.blob(100_000, algorithm));
    let mut upload = repo.start().await?;
    let taken = upload.append(&blob.bytes, None).await?;
    taken.need_value("range", "0-99999")?;
    upload.put(&blob.digest, b"", None).await?.expect(&[201])?;
    repo.need_blob(&blob).await.map(drop)
}

async fn stream_chunked(context: &Context) -> Verdict {
    let (repo, blob) = (context.repo(), context.blob(100_000, Algorithm::Sha256));
    let upload = repo.start().await?;
    let request = upload.request("PATCH").body(blob.bytes.clone()).chunked();
    let request = request.header("content-type", "application/octet-stream");
    let taken = request.send().await?.expect(&[202])?;
    let upload = Upload::of(&repo, taken)?;
    upload.put(&blob.digest, b"", None).await?.expect(&[201])?;
    repo.need_blob(&blob).await.map(drop)
}

async fn stream_twice(context: &Context) -> Verdict {
    let repo = context.repo();
    let mut upload = repo.start().await?;
    let chunk = upload.chunk();
    let blob = context.blob(2 * chunk, Algorithm::Sha256);
    upload.append(&blob.bytes[..chunk], None).await?;
    let taken = upload.append(&blob.bytes[chunk..], None).await?;
    taken.need_value("range", &format!("0-{}", 2 * chunk - 1))?;
    upload.put(&blob.digest, b"", None).await?.expect(&[201])?;
    repo.need_blob(&blob).await.map(drop)
}

async fn stream_put_rest(context: &Context) -> Verdict {
    let repo = context.repo();
    let mut upload = repo.start().await?;
    let chunk = upload.chunk();
    let blob = context.blob(chunk + 5, Algorithm::Sha256);
    upload.append(&blob.bytes[..chunk], None).await?;
    upload.put(&blob.digest, &blob.bytes[chunk..], None).await?.expect(&[201])?;
    repo.need_blob(&blob).await.map(drop)
}

async fn digest_algorithm(context: &Context) -> Verdict {
    let (repo, blob) = (context.repo(), context.blob(1000, Algorithm::Sha512));
    let mut upload = repo.start_with("blobs/uploads/?digest-algorithm=sha512").await?;
    upload.append(&blob.bytes, None).await?;
    upload.put(&blob.digest, b"", None).await?.expect(&[201])?;
    repo.need_blob(&blob).await.map(drop)
}

async fn digest_algorithm_unknown(context: &Context) -> Verdict {
    let rest = "blobs/uploads/?digest-algorithm=crc32x";
    context.repo().request("POST", rest).send().await?.expect(&[400]).map(drop)
}

async fn status_fresh(context: &Context) -> Verdict {
    let mut upload = context.repo().start().await?;
    location(&upload.ask().await?).map(drop)
}

async fn cancel(context: &Context) -> Verdict {
    let upload = context.repo().start().await?;
    upload.request("DELETE").send().await?.expect(&[204])?.need_no_body()?;
    upload.request("GET").send().await?.expect(&[404]).map(drop)
}

async fn cancel_twice(context: &Context) -> Verdict {
    let upload = context.repo().start().await?;
    upload.request("DELETE").send().await?.expect(&[204])?;
    upload.request("DELETE").send().await?.expect(&[404]).map(drop)
}

async fn cancel_no_append(context: &Context) -> Verdict {
    let (repo, blob) = (context.repo(), context.blob(50, Algorithm::Sha256));
    let mut upload = repo.start().await?;
    upload.append(&blob.bytes, None).await?;
    upload.request("DELETE").send().await?.expect(&[204])?;
    upload.patch(&blob.bytes, None).await?.expect(&[404])?;
    upload.put(&blob.digest, b"", None).await?.expect(&[404]).map(drop)
}

async fn at_once(context: &Context) -> Verdict {
    let (repo, blob) = (context.repo(), context.blob(200_000, Algorithm::Sha256));
    let (first, second) = tokio::join!(repo.push_blob(&blob), repo.push_blob(&blob));
    first?;
    second?;
    repo.need_blob(&blob).await.map(drop)
}

async fn closed(context: &Context) -> Verdict {
    let (repo, blob) = (context.repo(), context.blob(50, Algorithm::Sha256));
    let upload = repo.start().await?;
    upload.put(&blob.digest, &blob.bytes, None).await?.expect(&[201])?;
    upload.request("GET").send().await?.expect(&[404])?;
    upload.patch(&blob.bytes, None).await?.expect(&[404]).map(drop)
}

async fn other_repository(context: &Context) -> Verdict {
    let (repo, other) = (context.repo(), context.repo());
    let mut upload = repo.start().await?;
    other.start().await?;
    let moved = upload.url.target.replace(&repo.name, &other.name);
    if moved == upload.url.target {
        return Ok(()); // the location does not name the repository at all
    }
    upload.url.target = moved;
    let answer =
        upload.request("PATCH").body("bytes").scope(format!("repository:{}:pull,push", other.name));
    answer.send().await?.refused().map(drop)
}
