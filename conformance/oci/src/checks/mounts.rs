//! end-11: a blob of one repository taken over into another.

use crate::check::{Entry, table};
use crate::context::{Blob, Context, Repo, Upload};
use crate::digest::Algorithm;
use crate::exchange::{Exchange, Verdict};

pub(super) fn entries() -> Vec<Entry> {
    table! {
        both "end-11" Must "mount.from" => from,
            "Mounting: 201 with a Location and the blob in place, or 202 to upload it instead";
        both "end-11" Should "mount.from.mounts" => from_mounts,
            "Mounting: a blob that is there in a repository one may read is mounted: 201";
        both "end-11" Should "mount.from.digest-header" => from_digest_header,
            "Mounting: 201 carries Docker-Content-Digest, as after an upload";
        one "end-11" Must "mount.source-remains" => source_remains,
            "Mounting: the source keeps the blob, also when the target deletes it";
        one "end-11" Must "mount.unknown-blob" => unknown_blob,
            "Mounting: a blob that cannot be mounted is answered 202 with an upload, never 404";
        one "end-11" Must "mount.unknown-repository" => unknown_repository,
            "Mounting: a source that does not exist is answered 202 with an upload, never 404";
        one "end-11" Must "mount.wrong-repository" => wrong_repository,
            "Mounting: a source that does not hold the blob gives 202, or 201 if it was found elsewhere";
        both "end-11" Must "mount.anonymous" => anonymous,
            "Mounting: `from` MAY be left out: 201 with the blob in place, or 202 to upload it";
        one "end-11" Should "mount.anonymous.mounts" => anonymous_mounts,
            "Mounting: without `from` the registry MAY mount from any repository one may read";
        one "end-11" Must "mount.anonymous.unknown" => anonymous_unknown,
            "Mounting: without `from`, a blob that nobody has is answered 202 with an upload";
        one "end-11" Must "mount.bad-digest" => bad_digest,
            "Mounting: a malformed digest is refused with 400, or answered 202 with an upload";
        one "end-11" Must "mount.same-repository" => same_repository,
            "Mounting: a blob that is here already: 201, or 202 to upload it";
    }
}

async fn mount(into: &Repo<'_>, digest: &str, from: Option<&Repo<'_>>) -> Verdict<Exchange> {
    let rest = match from {
        Some(from) => format!("blobs/uploads/?mount={digest}&from={}", from.name),
        None => format!("blobs/uploads/?mount={digest}"),
    };
    let request = into.request("POST", &rest);
    match from {
        Some(from) => request.scope(format!("repository:{}:pull", from.name)).send().await,
        None => request.send().await,
    }
}

/// The blob is in place after 201; after 202 it can be uploaded.
async fn settle(repo: &Repo<'_>, blob: &Blob, answer: Exchange) -> Verdict {
    let answer = answer.expect(&[201, 202])?;
    let upload = Upload::of(repo, answer)?;
    if upload.begun.status() == 202 {
        upload.put(&blob.digest, &blob.bytes, None).await?.expect(&[201])?;
    } else {
        upload.request("GET").send().await?.expect(&[200])?.need_body(&blob.bytes)?;
    }
    repo.need_blob(blob).await.map(drop)
}

async fn source(context: &Context, algorithm: Algorithm) -> Verdict<(Repo<'_>, Blob)> {
    let (repo, blob) = (context.repo(), context.blob(100, algorithm));
    repo.push_blob(&blob).await?;
    Ok((repo, blob))
}

async fn from(context: &Context, algorithm: Algorithm) -> Verdict {
    let (source, blob) = source(context, algorithm).await?;
    let target = context.repo();
    let answer = mount(&target, &blob.digest, Some(&source)).await?;
    settle(&target, &blob, answer).await
}

async fn from_mounts(context: &Context, algorithm: Algorithm) -> Verdict {
    let (source, blob) = source(context, algorithm).await?;
    let target = context.repo();
    let answer = mount(&target, &blob.digest, Some(&source)).await?.expect(&[201])?;
    settle(&target, &blob, answer).await
}

async fn from_digest_header(context: &Context, algorithm: Algorithm) -> Verdict {
    let (source, blob) = source(context, algorithm).await?;
    let answer = mount(&context.repo(), &blob.digest, Some(&source)).await?.expect(&[201])?;
    answer.need_value("docker-content-digest", &blob.digest)
}

async fn source_remains(context: &Context) -> Verdict {
    let (source, blob) = source(context, Algorithm::Sha256).await?;
    let target = context.repo();
    let answer = mount(&target, &blob.digest, Some(&source)).await?;
    settle(&target, &blob, answer).await?;
    target.delete(&format!("blobs/{}", blob.digest)).send().await?.expect(&[202])?;
    source.need_blob(&blob).await.map(drop)
}

async fn unknown_blob(context: &Context) -> Verdict {
    let (source, _) = source(context, Algorithm::Sha256).await?;
    let (target, blob) = (context.repo(), context.blob(100, Algorithm::Sha256));
    let answer = mount(&target, &blob.digest, Some(&source)).await?.expect(&[202])?;
    settle(&target, &blob, answer).await
}

async fn unknown_repository(context: &Context) -> Verdict {
    let (target, blob) = (context.repo(), context.blob(100, Algorithm::Sha256));
    let answer = mount(&target, &blob.digest, Some(&context.repo())).await?.expect(&[202])?;
    settle(&target, &blob, answer).await
}

async fn wrong_repository(context: &Context) -> Verdict {
    let (_, blob) = source(context, Algorithm::Sha256).await?;
    let (other, _) = source(context, Algorithm::Sha256).await?;
    let target = context.repo();
    let answer = mount(&target, &blob.digest, Some(&other)).await?;
    settle(&target, &blob, answer).await
}

async fn anonymous(context: &Context, algorithm: Algorithm) -> Verdict {
    let (_, blob) = source(context, algorithm).await?;
    let target = context.repo();
    let answer = mount(&target, &blob.digest, None).await?;
    settle(&target, &blob, answer).await
}

async fn anonymous_mounts(context: &Context) -> Verdict {
    let (source, blob) = source(context, Algorithm::Sha256).await?;
    let target = context.repo();
    let request = target.request("POST", &format!("blobs/uploads/?mount={}", blob.digest));
    // A token is for named repositories: let it allow to read the source.
    let request = request.scope(format!("repository:{}:pull", source.name));
    let answer = request.send().await?.expect(&[201])?;
    settle(&target, &blob, answer).await
}

async fn anonymous_unknown(context: &Context) -> Verdict {
    let (target, blob) = (context.repo(), context.blob(100, Algorithm::Sha256));
    let answer = mount(&target, &blob.digest, None).await?.expect(&[202])?;
    settle(&target, &blob, answer).await
}

async fn bad_digest(context: &Context) -> Verdict {
    let (source, _) = source(context, Algorithm::Sha256).await?;
    let answer = mount(&context.repo(), "sha256:baddigeststring", Some(&source)).await?;
    answer.expect(&[202, 400]).map(drop)
}

async fn same_repository(context: &Context) -> Verdict {
    let (source, blob) = source(context, Algorithm::Sha256).await?;
    let answer = mount(&source, &blob.digest, Some(&source)).await?;
    settle(&source, &blob, answer).await
}
