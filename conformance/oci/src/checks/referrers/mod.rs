//! end-12: what refers to a manifest.

use crate::check::{Entry, table};
use crate::content::{CONFIG, Content, INDEX, Manifest, descriptor, image, index_of};
use crate::context::{Blob, Context, Repo};
use crate::digest::Algorithm;
use crate::exchange::{Exchange, Verdict};
use crate::kind::{Kind, referrer, referring_index};
use serde_json::{Value, json};

mod filter;
mod subject;

pub(super) fn entries() -> Vec<Entry> {
    [subject::entries(), listing(), filter::entries()].concat()
}

fn listing() -> Vec<Entry> {
    table! {
        both "end-12" Must "referrers.none" => none,
            "Listing referrers: a manifest without referrers has an empty list: 200, never 404";
        both "end-12" Must "referrers.unknown-subject" => unknown_subject,
            "Listing referrers: a digest that is not there has an empty list: 200, never 404";
        both "end-12" Must "referrers.unknown-repository" => unknown_repository,
            "Listing referrers: a registry that has the API MUST NOT answer 404, in any repository";
        one "end-12" Must "referrers.form" => form,
            "Listing referrers: the answer MUST be an image index: schemaVersion, mediaType, Content-Type";
        both "end-12" Must "referrers.image" => image_listed,
            "Listing referrers: an image is listed with mediaType, digest and size";
        both "end-12" Must "referrers.index" => index_listed,
            "Listing referrers: an index with subject is listed like an image";
        one "end-12" Must "referrers.before-subject" => before_subject,
            "Listing referrers: a referrer pushed before its subject is listed, before and after";
        one "end-12" Must "referrers.artifact-type" => artifact_type,
            "Listing referrers: artifactType MUST be the manifest's artifactType";
        one "end-12" Must "referrers.artifact-type.config" => artifact_type_config,
            "Listing referrers: without artifactType, an image's is the mediaType of its config";
        one "end-12" Must "referrers.artifact-type.index" => artifact_type_index,
            "Listing referrers: an index without artifactType is listed without one; with one, with it";
        one "end-12" Must "referrers.annotations" => annotations,
            "Listing referrers: annotations MUST be those of the manifest";
        one "end-12" Must "referrers.no-annotations" => no_annotations,
            "Listing referrers: without annotations none are made up";
        one "end-12" Must "referrers.several" => several,
            "Listing referrers: every referrer is listed once, with Link followed to the end";
        one "end-12" Must "referrers.once" => once,
            "Listing referrers: pushed twice, or under two tags, it is one referrer";
        one "end-12" Must "referrers.deleted" => deleted,
            "Deleting manifests: a referrer that was deleted is not listed any more";
        one "end-12" Must "referrers.other-repository" => other_repository,
            "Listing referrers: those of the same digest in another repository are not listed";
        one "end-12" Should "referrers.mixed-algorithms" => mixed_algorithms,
            "Listing referrers: a sha256 manifest may have a sha512 subject";
        one "end-12" Must "referrers.fallback-tag" => fallback_tag,
            "Referrers tag schema: an index under the tag <algorithm>-<hex> is an index like any other";
        one "end-12" Must "referrers.fallback-tag.beside" => fallback_beside,
            "Referrers tag schema: such a tag beside the API does not list a referrer twice";
    }
}

/// A repository with an image, and the descriptor of that.
async fn with_subject(context: &Context, algorithm: Algorithm) -> Verdict<(Repo<'_>, Value)> {
    let (repo, item) = (context.repo(), image(context, algorithm));
    item.push(&repo).await?;
    Ok((repo, item.root.descriptor()))
}

fn digest(subject: &Value) -> &str {
    subject["digest"].as_str().unwrap_or_default()
}

/// All pages of the referrers of a digest, and the last answer.
async fn list(repo: &Repo<'_>, subject: &str, query: &str) -> Verdict<(Exchange, Vec<Value>)> {
    let request = repo.get(&format!("referrers/{subject}{query}"));
    let mut answer = request.send().await?.expect(&[200])?;
    let mut entries = Vec::new();
    for _ in 0..100 {
        let body = answer.json()?;
        let page = body.get("manifests").and_then(Value::as_array);
        entries.extend(page.ok_or_else(|| answer.fail("an index with \"manifests\""))?.clone());
        let Some(url) = super::tags::next(&answer)? else { return Ok((answer, entries)) };
        let request = repo.client.request_url("GET", url);
        let request = request.scope(format!("repository:{}:pull,push,delete", repo.name));
        answer = request.send().await?.expect(&[200])?;
    }
    Err(answer.fail("an end of the pages"))
}

/// The list is exactly these manifests, in any order; gives the entries.
async fn need(
    repo: &Repo<'_>,
    subject: &str,
    query: &str,
    wanted: &[&Manifest],
) -> Verdict<Vec<Value>> {
    let (answer, entries) = list(repo, subject, query).await?;
    let mut found: Vec<&str> = entries.iter().map(digest).collect();
    let mut expected: Vec<&str> = wanted.iter().map(|manifest| manifest.digest.as_str()).collect();
    found.sort_unstable();
    expected.sort_unstable();
    if found != expected {
        return Err(answer.fail(format!("the referrers {expected:?}")));
    }
    for manifest in wanted {
        let entry = entries.iter().find(|entry| digest(entry) == manifest.digest);
        let entry = entry.cloned().unwrap_or_default();
        if entry["mediaType"] != json!(manifest.media_type)
            || entry["size"] != json!(manifest.bytes.len())
        {
            let wanted = manifest.descriptor();
            return Err(answer.fail(format!("an entry with the fields of {wanted}")));
        }
    }
    Ok(entries)
}

/// The one entry has this value in this field.
async fn need_field(repo: &Repo<'_>, item: &Content, field: &str, value: Value) -> Verdict {
    let subject = item.subject.as_deref().unwrap_or_default();
    let entries = need(repo, subject, "", &[&item.root]).await?;
    let found = entries.first().map(|entry| entry[field].clone()).unwrap_or_default();
    let nothing = value.is_null() && (found == json!({}) || found == json!(""));
    if found != value && !nothing {
        let (answer, _) = list(repo, subject, "").await?;
        return Err(answer.fail(format!("an entry with \"{field}\": {value}")));
    }
    Ok(())
}

async fn none(context: &Context, algorithm: Algorithm) -> Verdict {
    let (repo, subject) = with_subject(context, algorithm).await?;
    need(&repo, digest(&subject), "", &[]).await.map(drop)
}

async fn unknown_subject(context: &Context, algorithm: Algorithm) -> Verdict {
    let (repo, _) = with_subject(context, Algorithm::Sha256).await?;
    need(&repo, &context.unknown(algorithm), "", &[]).await.map(drop)
}

async fn unknown_repository(context: &Context, algorithm: Algorithm) -> Verdict {
    need(&context.repo(), &context.unknown(algorithm), "", &[]).await.map(drop)
}

async fn form(context: &Context) -> Verdict {
    let (repo, subject) = with_subject(context, Algorithm::Sha256).await?;
    let (answer, _) = list(&repo, digest(&subject), "").await?;
    answer.need_value("content-type", INDEX)?;
    let body = answer.json()?;
    if body["schemaVersion"] != json!(2) || body["mediaType"] != json!(INDEX) {
        return Err(answer.fail(format!("\"schemaVersion\": 2, \"mediaType\": \"{INDEX}\"")));
    }
    Ok(())
}

async fn image_listed(context: &Context, algorithm: Algorithm) -> Verdict {
    let (repo, subject) = with_subject(context, algorithm).await?;
    let item = referrer(context, algorithm, &subject, |_| {});
    item.push(&repo).await?;
    need(&repo, digest(&subject), "", &[&item.root]).await.map(drop)
}

async fn index_listed(context: &Context, algorithm: Algorithm) -> Verdict {
    let (repo, item) = (context.repo(), Kind::IndexWithSubject.make(context, algorithm));
    item.push(&repo).await?;
    let subject = item.subject.as_deref().unwrap_or_default();
    need(&repo, subject, "", &[&item.root]).await.map(drop)
}

async fn before_subject(context: &Context) -> Verdict {
    let (repo, subject) = (context.repo(), image(context, Algorithm::Sha256));
    let item = referrer(context, Algorithm::Sha256, &subject.root.descriptor(), |_| {});
    item.push(&repo).await?;
    need(&repo, &subject.root.digest, "", &[&item.root]).await?;
    subject.push(&repo).await?;
    need(&repo, &subject.root.digest, "", &[&item.root]).await.map(drop)
}

async fn artifact_type(context: &Context) -> Verdict {
    let (repo, subject) = with_subject(context, Algorithm::Sha256).await?;
    let item = referrer(context, Algorithm::Sha256, &subject, |document| {
        document["artifactType"] = json!("application/vnd.example.sbom+json");
    });
    item.push(&repo).await?;
    need_field(&repo, &item, "artifactType", json!("application/vnd.example.sbom+json")).await
}

async fn artifact_type_config(context: &Context) -> Verdict {
    let (repo, subject) = with_subject(context, Algorithm::Sha256).await?;
    let config = Blob::new("{\"os\":\"linux\"}", Algorithm::Sha256);
    let mut item = referrer(context, Algorithm::Sha256, &subject, |document| {
        document["config"] = descriptor(CONFIG, &config);
        if let Some(fields) = document.as_object_mut() {
            fields.remove("artifactType");
        }
    });
    item.blobs.push(config);
    item.push(&repo).await?;
    need_field(&repo, &item, "artifactType", json!(CONFIG)).await
}

async fn artifact_type_index(context: &Context) -> Verdict {
    for (artifact_type, wanted) in
        [(None, Value::Null), (Some("application/x.a"), json!("application/x.a"))]
    {
        let (repo, subject) = with_subject(context, Algorithm::Sha256).await?;
        let mut document = referring_index(context, &subject);
        if let Some(artifact_type) = artifact_type {
            document["artifactType"] = json!(artifact_type);
        }
        let item = Content {
            blobs: Vec::new(),
            children: Vec::new(),
            root: Manifest::of(&document, Algorithm::Sha256),
            subject: Some(digest(&subject).to_owned()),
        };
        item.push(&repo).await?;
        need_field(&repo, &item, "artifactType", wanted).await?;
    }
    Ok(())
}

async fn annotations(context: &Context) -> Verdict {
    let (repo, subject) = with_subject(context, Algorithm::Sha256).await?;
    let wanted = json!({"org.example.a": "1", "org.example.b": "zwei", "c": ""});
    let item = referrer(context, Algorithm::Sha256, &subject, |document| {
        document["annotations"] = wanted.clone();
    });
    item.push(&repo).await?;
    need_field(&repo, &item, "annotations", wanted).await
}

async fn no_annotations(context: &Context) -> Verdict {
    let (repo, subject) = with_subject(context, Algorithm::Sha256).await?;
    let item = referrer(context, Algorithm::Sha256, &subject, |document| {
        if let Some(fields) = document.as_object_mut() {
            fields.remove("annotations");
        }
    });
    item.push(&repo).await?;
    need_field(&repo, &item, "annotations", Value::Null).await
}

async fn several(context: &Context) -> Verdict {
    let (repo, subject) = with_subject(context, Algorithm::Sha256).await?;
    let made: Vec<Content> =
        (0..25).map(|_| referrer(context, Algorithm::Sha256, &subject, |_| {})).collect();
    made[0].push_parts(&repo).await?;
    for item in &made {
        repo.push(&item.root.digest, &item.root).await?;
    }
    let roots: Vec<&Manifest> = made.iter().map(|item| &item.root).collect();
    need(&repo, digest(&subject), "", &roots).await?;
    need(&repo, digest(&subject), "?n=10", &roots).await.map(drop)
}

async fn once(context: &Context) -> Verdict {
    let (repo, subject) = with_subject(context, Algorithm::Sha256).await?;
    let item = referrer(context, Algorithm::Sha256, &subject, |_| {});
    item.push(&repo).await?;
    for reference in [item.root.digest.as_str(), "a", "b"] {
        repo.push(reference, &item.root).await?;
    }
    need(&repo, digest(&subject), "", &[&item.root]).await.map(drop)
}

async fn deleted(context: &Context) -> Verdict {
    let (repo, subject) = with_subject(context, Algorithm::Sha256).await?;
    let kept = referrer(context, Algorithm::Sha256, &subject, |_| {});
    let gone = referrer(context, Algorithm::Sha256, &subject, |_| {});
    kept.push(&repo).await?;
    gone.push(&repo).await?;
    let rest = format!("manifests/{}", gone.root.digest);
    repo.delete(&rest).send().await?.expect(&[202])?;
    need(&repo, digest(&subject), "", &[&kept.root]).await.map(drop)
}

async fn other_repository(context: &Context) -> Verdict {
    let (repo, other) = (context.repo(), context.repo());
    let subject = image(context, Algorithm::Sha256);
    let item = referrer(context, Algorithm::Sha256, &subject.root.descriptor(), |_| {});
    subject.push(&repo).await?;
    subject.push(&other).await?;
    item.push(&repo).await?;
    need(&repo, &subject.root.digest, "", &[&item.root]).await?;
    need(&other, &subject.root.digest, "", &[]).await.map(drop)
}

async fn mixed_algorithms(context: &Context) -> Verdict {
    let (repo, subject) = with_subject(context, Algorithm::Sha512).await?;
    let item = referrer(context, Algorithm::Sha256, &subject, |_| {});
    item.push(&repo).await?;
    need(&repo, digest(&subject), "", &[&item.root]).await.map(drop)
}

/// A subject, a referrer of it, and the index that a client without the API would tag.
async fn fallback(context: &Context) -> Verdict<(Repo<'_>, String, Content, Manifest)> {
    let (repo, subject) = with_subject(context, Algorithm::Sha256).await?;
    let item = referrer(context, Algorithm::Sha256, &subject, |_| {});
    item.push(&repo).await?;
    let index = index_of(std::slice::from_ref(&item.root));
    let index = Manifest::of(&index, Algorithm::Sha256);
    repo.push(&digest(&subject).replace(':', "-"), &index).await?;
    Ok((repo, digest(&subject).to_owned(), item, index))
}

async fn fallback_tag(context: &Context) -> Verdict {
    let (repo, subject, _, index) = fallback(context).await?;
    repo.need_manifest(&subject.replace(':', "-"), &index).await.map(drop)
}

async fn fallback_beside(context: &Context) -> Verdict {
    let (repo, subject, item, _) = fallback(context).await?;
    need(&repo, &subject, "", &[&item.root]).await.map(drop)
}
