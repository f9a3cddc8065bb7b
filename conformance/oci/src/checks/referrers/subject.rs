//! end-7a: `OCI-Subject`, by which a registry tells that it counts referrers.

use super::{digest, with_subject};
use crate::check::{Entry, table};
use crate::content::image;
use crate::context::Context;
use crate::digest::Algorithm;
use crate::exchange::Verdict;
use crate::kind::{Kind, referrer};

pub(super) fn entries() -> Vec<Entry> {
    table! {
        both "end-7a" Must "subject.header.image" => subject_image,
            "Pushing manifests with subject: 201 MUST have OCI-Subject: <subject digest>";
        both "end-7a" Must "subject.header.index" => subject_index,
            "Pushing manifests with subject: an index with subject MUST be answered with OCI-Subject too";
        both "end-7a" Must "subject.header.missing" => subject_missing,
            "Pushing manifests with subject: OCI-Subject also where the subject is not there";
        one "end-7a" Must "subject.header.tag" => subject_tag,
            "Pushing manifests with subject: OCI-Subject also after a push under a tag";
        one "end-7a" Must "subject.header.absent" => subject_absent,
            "Pushing manifests: no OCI-Subject where there is no subject";
    }
}

async fn pushed_subject(context: &Context, algorithm: Algorithm, kind: Kind) -> Verdict {
    let (repo, item) = (context.repo(), kind.make(context, algorithm));
    item.push_parts(&repo).await?;
    let done = repo.push(&item.root.digest, &item.root).await?;
    done.need_value("oci-subject", item.subject.as_deref().unwrap_or_default())
}

async fn subject_image(context: &Context, algorithm: Algorithm) -> Verdict {
    pushed_subject(context, algorithm, Kind::ImageWithSubject).await
}

async fn subject_index(context: &Context, algorithm: Algorithm) -> Verdict {
    pushed_subject(context, algorithm, Kind::IndexWithSubject).await
}

async fn subject_missing(context: &Context, algorithm: Algorithm) -> Verdict {
    pushed_subject(context, algorithm, Kind::MissingSubject).await
}

async fn subject_tag(context: &Context) -> Verdict {
    let (repo, subject) = with_subject(context, Algorithm::Sha256).await?;
    let item = referrer(context, Algorithm::Sha256, &subject, |_| {});
    item.push_parts(&repo).await?;
    let done = repo.push("signature", &item.root).await?;
    done.need_value("oci-subject", digest(&subject))
}

async fn subject_absent(context: &Context) -> Verdict {
    let (repo, item) = (context.repo(), image(context, Algorithm::Sha256));
    item.push_parts(&repo).await?;
    let done = repo.push("latest", &item.root).await?;
    if done.header("oci-subject").is_some() {
        return Err(done.fail("no header 'oci-subject'"));
    }
    Ok(())
}
