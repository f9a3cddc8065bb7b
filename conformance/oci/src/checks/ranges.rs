//! end-2: parts of blobs. "A registry SHOULD support the Range request header in accordance with
//! RFC 9110."

use crate::check::{Entry, table};
use crate::context::{Blob, Context, Repo};
use crate::digest::Algorithm;
use crate::exchange::{Exchange, Verdict};

/// The size of the blob that parts are asked of.
const SIZE: usize = 1000;

pub(super) fn entries() -> Vec<Entry> {
    table! {
        both "end-2" Should "blob.range.first-last" => first_last,
            "RFC 9110 14.1.2: bytes=a-b gives 206 with exactly these bytes and Content-Range";
        one "end-2" Should "blob.range.one-byte" => one_byte,
            "RFC 9110 14.1.2: bytes=0-0 and the last byte alone are ranges too";
        one "end-2" Should "blob.range.open" => open,
            "RFC 9110 14.1.2: bytes=a- gives everything from a";
        one "end-2" Should "blob.range.suffix" => suffix,
            "RFC 9110 14.1.2: bytes=-n gives the last n bytes";
        one "end-2" Should "blob.range.suffix-too-long" => suffix_too_long,
            "RFC 9110 14.1.2: a suffix longer than the content gives all of it";
        one "end-2" Should "blob.range.clamped" => clamped,
            "RFC 9110 14.1.2: a last position past the end means the end";
        one "end-2" Should "blob.range.whole" => whole,
            "RFC 9110 14.1.2: a range of everything is 206 with everything";
        one "end-2" Should "blob.range.beyond" => beyond,
            "RFC 9110 14.4, 15.5.17: a range past the end is 416 with Content-Range: bytes */size";
        one "end-2" Should "blob.range.backwards" => backwards,
            "RFC 9110 14.2: bytes=500-0 is invalid; it is refused with 416 rather than ignored";
        one "end-2" Must "blob.range.backwards-sound" => backwards_sound,
            "RFC 9110 14.2: bytes=500-0 is ignored or refused, and the answer is whole either way";
        one "end-2" Must "blob.range.other-unit" => other_unit,
            "RFC 9110 14.2: a Range of a unit that is not understood MUST be ignored";
        one "end-2" Should "blob.range.several" => several,
            "RFC 9110 14.2: several ranges give multipart/byteranges, or one range, or everything";
        one "end-2" Must "blob.range.if-range" => if_range,
            "RFC 9110 13.1.5: Range MUST be ignored if the If-Range condition is false";
        one "end-2" Must "blob.range.of-nothing" => of_nothing,
            "RFC 9110 14.1.2: no range of an empty content can be satisfied: 416, or 200 and nothing";
    }
}

async fn ask<'c>(
    context: &'c Context,
    algorithm: Algorithm,
    range: &str,
) -> Verdict<(Blob, Exchange)> {
    let blob = context.blob(SIZE, algorithm);
    let repo: Repo<'c> = context.repo();
    repo.push_blob(&blob).await?;
    let answer = repo.get_blob(&blob.digest).header("range", range).send().await?;
    Ok((blob, answer))
}

/// 206 with the bytes from first to last.
async fn part(context: &Context, range: &str, first: usize, last: usize) -> Verdict {
    part_of(context, Algorithm::Sha256, range, first, last).await
}

async fn part_of(
    context: &Context,
    algorithm: Algorithm,
    range: &str,
    first: usize,
    last: usize,
) -> Verdict {
    let (blob, answer) = ask(context, algorithm, range).await?;
    let answer = answer.expect(&[206])?;
    answer.need_value("content-range", &format!("bytes {first}-{last}/{SIZE}"))?;
    answer.need_body(&blob.bytes[first..=last])
}

async fn first_last(context: &Context, algorithm: Algorithm) -> Verdict {
    part_of(context, algorithm, "bytes=100-299", 100, 299).await
}

async fn one_byte(context: &Context) -> Verdict {
    part(context, "bytes=0-0", 0, 0).await?;
    part(context, "bytes=999-999", 999, 999).await
}

async fn open(context: &Context) -> Verdict {
    part(context, "bytes=400-", 400, 999).await
}

async fn suffix(context: &Context) -> Verdict {
    part(context, "bytes=-10", 990, 999).await
}

async fn suffix_too_long(context: &Context) -> Verdict {
    part(context, "bytes=-5000", 0, 999).await
}

async fn clamped(context: &Context) -> Verdict {
    part(context, "bytes=500-4999", 500, 999).await
}

async fn whole(context: &Context) -> Verdict {
    part(context, "bytes=0-999", 0, 999).await
}

async fn beyond(context: &Context) -> Verdict {
    let (_, answer) = ask(context, Algorithm::Sha256, "bytes=5000-10000").await?;
    let answer = answer.expect(&[416])?;
    answer.need_value_if_present("content-range", &format!("bytes */{SIZE}"))
}

async fn backwards(context: &Context) -> Verdict {
    let (_, answer) = ask(context, Algorithm::Sha256, "bytes=500-0").await?;
    answer.expect(&[416]).map(drop)
}

async fn backwards_sound(context: &Context) -> Verdict {
    let (blob, answer) = ask(context, Algorithm::Sha256, "bytes=500-0").await?;
    let answer = answer.expect(&[200, 416])?;
    if answer.status() == 200 { answer.need_body(&blob.bytes) } else { Ok(()) }
}

async fn other_unit(context: &Context) -> Verdict {
    let (blob, answer) = ask(context, Algorithm::Sha256, "lines=1-2").await?;
    answer.expect(&[200])?.need_body(&blob.bytes)
}

async fn several(context: &Context) -> Verdict {
    let (blob, answer) = ask(context, Algorithm::Sha256, "bytes=0-9,20-29").await?;
    let answer = answer.expect(&[200, 206])?;
    if answer.status() == 200 {
        return answer.need_body(&blob.bytes);
    }
    let multipart = answer.need("content-type")?.starts_with("multipart/byteranges; boundary=");
    if multipart {
        let holds = |part: &[u8]| answer.answer.body.windows(part.len()).any(|w| w == part);
        if holds(&blob.bytes[0..10]) && holds(&blob.bytes[20..30]) {
            return Ok(());
        }
        return Err(answer.fail("a multipart body with both ranges"));
    }
    match answer.need("content-range")? {
        "bytes 0-9/1000" => answer.need_body(&blob.bytes[0..10]),
        "bytes 0-29/1000" => answer.need_body(&blob.bytes[0..30]),
        _ => Err(answer.fail("a multipart body, or one range that begins at 0")),
    }
}

async fn if_range(context: &Context) -> Verdict {
    let blob = context.blob(SIZE, Algorithm::Sha256);
    let repo = context.repo();
    repo.push_blob(&blob).await?;
    let request = repo.get_blob(&blob.digest).header("range", "bytes=0-9");
    let answer = request.header("if-range", "\"another-tag\"").send().await?;
    answer.expect(&[200])?.need_body(&blob.bytes)
}

async fn of_nothing(context: &Context) -> Verdict {
    let blob = Blob::new("", Algorithm::Sha256);
    let repo = context.repo();
    repo.push_blob(&blob).await?;
    let answer = repo.get_blob(&blob.digest).header("range", "bytes=0-").send().await?;
    let answer = answer.expect(&[200, 416])?;
    if answer.status() == 200 { answer.need_body(b"") } else { Ok(()) }
}
