//! end-12 with `?artifactType=`.

use super::{digest, list, need, with_subject};
use crate::check::{Entry, table};
use crate::content::Content;
use crate::context::{Context, Repo};
use crate::digest::Algorithm;
use crate::exchange::Verdict;
use crate::kind::referrer;
use crate::target::encode;
use serde_json::{Value, json};

const SIGNATURE: &str = "application/vnd.example.signature.v1+json";
const SBOM: &str = "application/vnd.example.sbom";

pub(super) fn entries() -> Vec<Entry> {
    table! {
        one "end-12" Must "referrers.filter" => filter,
            "Listing referrers: the registry MUST support filtering by artifactType";
        one "end-12" Must "referrers.filter.header" => header,
            "Listing referrers: a filtered answer MUST have OCI-Filters-Applied: artifactType";
        one "end-12" Must "referrers.filter.none" => none,
            "Listing referrers: a type that no referrer has gives an empty list: 200";
        one "end-12" Must "referrers.filter.fallback" => fallback,
            "Listing referrers: the filter also sees the type that comes from the config";
        one "end-12" Should "referrers.filter.unfiltered-header" => unfiltered_header,
            "Listing referrers: without a filter there is no OCI-Filters-Applied";
    }
}

struct Filtered<'c> {
    repo: Repo<'c>,
    subject: Value,
    signature: Content,
}

/// An image with a signature and an SBOM.
async fn prepare(context: &Context) -> Verdict<Filtered<'_>> {
    let (repo, subject) = with_subject(context, Algorithm::Sha256).await?;
    let made = |kind: &str| {
        referrer(context, Algorithm::Sha256, &subject, |document| {
            document["artifactType"] = json!(kind);
        })
    };
    let (signature, sbom) = (made(SIGNATURE), made(SBOM));
    signature.push(&repo).await?;
    sbom.push(&repo).await?;
    Ok(Filtered { repo, subject, signature })
}

fn query(kind: &str) -> String {
    format!("?artifactType={}", encode(kind))
}

async fn filter(context: &Context) -> Verdict {
    let made = prepare(context).await?;
    let wanted = [&made.signature.root];
    need(&made.repo, digest(&made.subject), &query(SIGNATURE), &wanted).await.map(drop)
}

async fn header(context: &Context) -> Verdict {
    let made = prepare(context).await?;
    let (answer, _) = list(&made.repo, digest(&made.subject), &query(SIGNATURE)).await?;
    let applied = answer.need("oci-filters-applied")?;
    if applied.split(',').all(|name| name.trim() != "artifactType") {
        return Err(answer.fail("the header 'oci-filters-applied: artifactType'"));
    }
    Ok(())
}

async fn none(context: &Context) -> Verdict {
    let made = prepare(context).await?;
    let query = query("application/vnd.example.nobody");
    need(&made.repo, digest(&made.subject), &query, &[]).await.map(drop)
}

async fn fallback(context: &Context) -> Verdict {
    let made = prepare(context).await?;
    let item = referrer(context, Algorithm::Sha256, &made.subject, |document| {
        document["config"]["mediaType"] = json!("application/vnd.example.config");
        if let Some(fields) = document.as_object_mut() {
            fields.remove("artifactType");
        }
    });
    item.push(&made.repo).await?;
    let query = query("application/vnd.example.config");
    need(&made.repo, digest(&made.subject), &query, &[&item.root]).await.map(drop)
}

async fn unfiltered_header(context: &Context) -> Verdict {
    let made = prepare(context).await?;
    let (answer, _) = list(&made.repo, digest(&made.subject), "").await?;
    if answer.header("oci-filters-applied").is_some() {
        return Err(answer.fail("no header 'oci-filters-applied'"));
    }
    Ok(())
}
