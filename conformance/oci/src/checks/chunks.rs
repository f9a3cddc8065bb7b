//! end-5, end-6, end-13: blobs pushed in chunks, in order and out of it.

use crate::check::{Entry, table};
use crate::context::{Blob, Context, Repo, Upload, location};
use crate::digest::Algorithm;
use crate::exchange::Verdict;

pub(super) fn entries() -> Vec<Entry> {
    [in_order(), out_of_order()].concat()
}

fn in_order() -> Vec<Entry> {
    table! {
        both "end-5" Must "chunks.in-order" => in_order_put_empty,
            "Chunked: chunks in order, each answered 202, then PUT without a body: 201";
        both "end-6" Must "chunks.last-in-put" => last_in_put,
            "Chunked: the last chunk MAY come with the closing PUT, with its Content-Range";
        one "end-5" Must "chunks.location" => patch_location,
            "Chunked: each 202 MUST have a Location, to which the next chunk goes";
        one "end-5" Must "chunks.range" => patch_range,
            "Chunked: each 202 MUST have Range: 0-<last byte>, both ends included";
        one "end-13" Must "chunks.status" => status,
            "Chunked: GET of the upload MUST answer 204 with Location and Range: 0-<last byte>";
        one "end-13" Must "chunks.resume" => resume,
            "Chunked: an upload goes on from where GET says it is";
        one "end-5" Must "chunks.many" => many,
            "Chunked: twenty chunks of different sizes make one blob";
        one "end-6" Must "chunks.bad-digest" => bad_digest,
            "Chunked: chunks whose sum does not match the digest are refused with 400";
        one "end-5" Should "chunks.wrong-length" => wrong_length,
            "Chunked: a Content-Range that does not have the length of the body is refused";
        one "end-5" Should "chunks.malformed-range" => malformed_range,
            "Chunked: Content-Range MUST match ^[0-9]+-[0-9]+$; anything else is refused";
    }
}

fn out_of_order() -> Vec<Entry> {
    table! {
        both "end-5" Must "chunks.first-missing" => first_missing,
            "Chunked: a chunk out of order MUST be answered with 416; here the second comes first";
        one "end-5" Must "chunks.gap" => gap,
            "Chunked: a chunk out of order MUST be answered with 416; here one byte is left out";
        one "end-5" Must "chunks.replay" => replay,
            "Chunked: a chunk out of order MUST be answered with 416; here the first comes twice";
        one "end-5" Must "chunks.overlap" => overlap,
            "Chunked: a chunk out of order MUST be answered with 416; here two overlap";
        one "end-5" Must "chunks.usable-after-416" => usable_after_416,
            "Chunked: after 416 the session is as it was: GET tells, and the right chunk is taken";
        one "end-5" Should "chunks.416-headers" => headers_of_416,
            "Chunked: 416 carries Location and Range, so that the client can go on";
        one "end-6" Must "chunks.put-out-of-order" => put_out_of_order,
            "Chunked: a last chunk out of order MUST be answered with 416 too";
        one "end-6" Must "chunks.usable-after-put-416" => usable_after_put_416,
            "Chunked: after a refused closing PUT the session is as it was, and can be closed";
    }
}

/// An upload and a blob of three chunks for it.
struct Three<'c> {
    repo: Repo<'c>,
    upload: Upload<'c>,
    blob: Blob,
    size: usize,
}

impl<'c> Three<'c> {
    async fn begin(context: &'c Context, algorithm: Algorithm) -> Verdict<Self> {
        let repo = context.repo();
        let upload = repo.start().await?;
        let size = upload.chunk();
        let blob = context.blob(3 * size, algorithm);
        Ok(Self { repo, upload, blob, size })
    }

    fn chunk(&self, number: usize) -> Vec<u8> {
        self.blob.bytes[number * self.size..(number + 1) * self.size].to_vec()
    }

    async fn append(&mut self, number: usize) -> Verdict<crate::exchange::Exchange> {
        let bytes = self.chunk(number);
        self.upload.append(&bytes, Some(number * self.size)).await
    }

    async fn close(&self) -> Verdict {
        self.upload.put(&self.blob.digest, b"", None).await?.expect(&[201])?;
        self.repo.need_blob(&self.blob).await.map(drop)
    }
}

async fn in_order_put_empty(context: &Context, algorithm: Algorithm) -> Verdict {
    let mut three = Three::begin(context, algorithm).await?;
    for number in 0..3 {
        three.append(number).await?;
    }
    three.close().await
}

async fn last_in_put(context: &Context, algorithm: Algorithm) -> Verdict {
    let mut three = Three::begin(context, algorithm).await?;
    three.append(0).await?;
    three.append(1).await?;
    let last = three.chunk(2);
    let done = three.upload.put(&three.blob.digest, &last, Some(2 * three.size)).await?;
    done.expect(&[201])?;
    three.repo.need_blob(&three.blob).await.map(drop)
}

async fn patch_location(context: &Context) -> Verdict {
    let mut three = Three::begin(context, Algorithm::Sha256).await?;
    location(&three.append(0).await?)?;
    location(&three.append(1).await?).map(drop)
}

async fn patch_range(context: &Context) -> Verdict {
    let mut three = Three::begin(context, Algorithm::Sha256).await?;
    for number in 0..3 {
        let taken = three.append(number).await?;
        taken.need_value("range", &format!("0-{}", (number + 1) * three.size - 1))?;
    }
    Ok(())
}

async fn status(context: &Context) -> Verdict {
    let mut three = Three::begin(context, Algorithm::Sha256).await?;
    for number in 0..2 {
        three.append(number).await?;
        let told = three.upload.ask().await?;
        location(&told)?;
        told.need_value("range", &format!("0-{}", (number + 1) * three.size - 1))?;
    }
    Ok(())
}

async fn resume(context: &Context) -> Verdict {
    let mut three = Three::begin(context, Algorithm::Sha256).await?;
    three.append(0).await?;
    let told = three.upload.ask().await?;
    let range = told.need("range")?;
    let last: usize = range
        .strip_prefix("0-")
        .and_then(|last| last.parse().ok())
        .ok_or_else(|| told.fail("the header 'range: 0-<last byte>'"))?;
    let rest = three.blob.bytes.get(last + 1..).unwrap_or_default().to_vec();
    three.upload.append(&rest, Some(last + 1)).await?;
    three.close().await
}

async fn many(context: &Context) -> Verdict {
    let repo = context.repo();
    let mut upload = repo.start().await?;
    let least = upload.chunk();
    let total: usize = (0..20).map(|number| least + number * 7).sum();
    let blob = context.blob(total, Algorithm::Sha256);
    let mut at = 0;
    for number in 0..20 {
        let end = at + least + number * 7;
        upload.append(&blob.bytes[at..end], Some(at)).await?;
        at = end;
    }
    upload.put(&blob.digest, b"", None).await?.expect(&[201])?;
    repo.need_blob(&blob).await.map(drop)
}

async fn bad_digest(context: &Context) -> Verdict {
    let mut three = Three::begin(context, Algorithm::Sha256).await?;
    three.append(0).await?;
    three.upload.put(&three.blob.digest, b"", None).await?.expect(&[400])?;
    three.repo.need_no_blob(&three.blob.digest).await
}

async fn wrong_length(context: &Context) -> Verdict {
    let three = Three::begin(context, Algorithm::Sha256).await?;
    let range = format!("0-{}", 2 * three.size - 1);
    let request = three.upload.request("PATCH").header("content-range", &range);
    let request = request.header("content-type", "application/octet-stream");
    request.body(three.chunk(0)).send().await?.expect(&[400, 416]).map(drop)
}

async fn malformed_range(context: &Context) -> Verdict {
    for range in ["abc", "16", "15-0", "-15", "0-"] {
        let three = Three::begin(context, Algorithm::Sha256).await?;
        let request = three.upload.request("PATCH").header("content-range", range);
        let request = request.header("content-type", "application/octet-stream");
        request.body(three.chunk(0)).send().await?.expect(&[400, 416])?;
    }
    Ok(())
}

async fn first_missing(context: &Context, algorithm: Algorithm) -> Verdict {
    let mut three = Three::begin(context, algorithm).await?;
    let second = three.chunk(1);
    three.upload.patch(&second, Some(three.size)).await?.expect(&[416])?;
    for number in 0..3 {
        three.append(number).await?;
    }
    three.close().await
}

async fn gap(context: &Context) -> Verdict {
    let mut three = Three::begin(context, Algorithm::Sha256).await?;
    three.append(0).await?;
    let second = three.chunk(1);
    three.upload.patch(&second, Some(three.size + 1)).await?.expect(&[416]).map(drop)
}

async fn replay(context: &Context) -> Verdict {
    let mut three = Three::begin(context, Algorithm::Sha256).await?;
    three.append(0).await?;
    let first = three.chunk(0);
    three.upload.patch(&first, Some(0)).await?.expect(&[416]).map(drop)
}

async fn overlap(context: &Context) -> Verdict {
    let mut three = Three::begin(context, Algorithm::Sha256).await?;
    three.append(0).await?;
    let second = three.chunk(1);
    three.upload.patch(&second, Some(three.size - 1)).await?.expect(&[416]).map(drop)
}

async fn usable_after_416(context: &Context) -> Verdict {
    let mut three = Three::begin(context, Algorithm::Sha256).await?;
    three.append(0).await?;
    let last = three.chunk(2);
    three.upload.patch(&last, Some(2 * three.size)).await?.expect(&[416])?;
    let told = three.upload.ask().await?;
    told.need_value("range", &format!("0-{}", three.size - 1))?;
    three.append(1).await?;
    three.append(2).await?;
    three.close().await
}

async fn headers_of_416(context: &Context) -> Verdict {
    let mut three = Three::begin(context, Algorithm::Sha256).await?;
    three.append(0).await?;
    let last = three.chunk(2);
    let refused = three.upload.patch(&last, Some(2 * three.size)).await?.expect(&[416])?;
    location(&refused)?;
    refused.need_value("range", &format!("0-{}", three.size - 1))
}

async fn put_out_of_order(context: &Context) -> Verdict {
    let mut three = Three::begin(context, Algorithm::Sha256).await?;
    three.append(0).await?;
    let last = three.chunk(2);
    let answer = three.upload.put(&three.blob.digest, &last, Some(2 * three.size)).await?;
    answer.expect(&[416]).map(drop)
}

async fn usable_after_put_416(context: &Context) -> Verdict {
    let mut three = Three::begin(context, Algorithm::Sha256).await?;
    three.append(0).await?;
    let last = three.chunk(2);
    let answer = three.upload.put(&three.blob.digest, &last, Some(2 * three.size)).await?;
    answer.expect(&[416])?;
    three.upload.ask().await?;
    three.append(1).await?;
    let done = three.upload.put(&three.blob.digest, &last, Some(2 * three.size)).await?;
    done.expect(&[201])?;
    three.repo.need_blob(&three.blob).await.map(drop)
}
