//! end-7b (dev): one push, several tags.

use crate::check::{Entry, table};
use crate::content::image;
use crate::context::{Context, Repo};
use crate::digest::Algorithm;
use crate::exchange::{Exchange, Verdict};

pub(super) fn entries() -> Vec<Entry> {
    table! {
        both "end-7b" Dev "multitag.two" => two,
            "end-7b: PUT <digest>?tag=a&tag=b MUST answer 201, and both tags resolve to that digest";
        both "end-7b" Dev "multitag.header" => header,
            "end-7b: 201 MUST have OCI-Tag, which names the tags that were made";
        both "end-7b" Dev "multitag.digest-header" => digest_header,
            "end-7b: a tag made so resolves in the algorithm of the digest that was pushed";
        one "end-7b" Dev "multitag.ten" => ten,
            "end-7b: at least 10 tags are taken";
        one "end-7b" Dev "multitag.moves" => moves,
            "end-7b: a tag that exists moves to the digest";
        one "end-7b" Dev "multitag.many" => many,
            "end-7b: more tags than the registry takes are refused (414 or another 4xx), never 5xx";
        one "end-7b" Dev "multitag.bad-tag" => bad_tag,
            "end-7b: a tag that is none is refused with 400, and no tag is made";
    }
}

async fn push<'c>(
    context: &'c Context,
    algorithm: Algorithm,
    tags: &[&str],
) -> Verdict<(Repo<'c>, crate::content::Manifest, Exchange)> {
    let (repo, item) = (context.repo(), image(context, algorithm));
    item.push_parts(&repo).await?;
    let query: Vec<String> = tags.iter().map(|tag| format!("tag={tag}")).collect();
    let reference = format!("{}?{}", item.root.digest, query.join("&"));
    let done = repo.put_manifest(&reference, &item.root).send().await?;
    Ok((repo, item.root, done))
}

async fn two(context: &Context, algorithm: Algorithm) -> Verdict {
    let (repo, manifest, done) = push(context, algorithm, &["alpha", "beta"]).await?;
    done.expect(&[201])?;
    for reference in ["alpha", "beta", &manifest.digest] {
        repo.need_manifest(reference, &manifest).await?;
    }
    Ok(())
}

/// The tags that `OCI-Tag` names, over all its lines.
fn named(done: &Exchange) -> Vec<String> {
    let lines = done.answer.headers.iter().filter(|(name, _)| name == "oci-tag");
    let values = lines.flat_map(|(_, value)| value.split(','));
    let mut tags: Vec<String> = values.map(|tag| tag.trim().to_owned()).collect();
    tags.sort();
    tags
}

async fn header(context: &Context, algorithm: Algorithm) -> Verdict {
    let (_, _, done) = push(context, algorithm, &["alpha", "beta"]).await?;
    let done = done.expect(&[201])?;
    if named(&done) != ["alpha", "beta"] {
        return Err(done.fail("the header 'oci-tag: alpha, beta'"));
    }
    Ok(())
}

async fn digest_header(context: &Context, algorithm: Algorithm) -> Verdict {
    let (repo, manifest, done) = push(context, algorithm, &["alpha"]).await?;
    done.expect(&[201])?;
    let found = repo.need_manifest("alpha", &manifest).await?;
    found.need_value("docker-content-digest", &manifest.digest)
}

async fn ten(context: &Context) -> Verdict {
    let tags = ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"];
    let (repo, manifest, done) = push(context, Algorithm::Sha256, &tags).await?;
    let done = done.expect(&[201])?;
    if named(&done) != tags {
        return Err(done.fail("all ten tags in 'oci-tag'"));
    }
    for tag in tags {
        repo.need_manifest(tag, &manifest).await?;
    }
    Ok(())
}

async fn many(context: &Context) -> Verdict {
    let tags: Vec<String> = (0..500).map(|number| format!("t{number:03}")).collect();
    let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
    let (repo, manifest, done) = push(context, Algorithm::Sha256, &tags).await?;
    if done.status() != 201 {
        return done.refused().map(drop);
    }
    if named(&done) != tags {
        return Err(done.fail("all 500 tags in 'oci-tag', or a refusal (4xx)"));
    }
    repo.need_manifest("t499", &manifest).await.map(drop)
}

async fn moves(context: &Context) -> Verdict {
    let (repo, item) = (context.repo(), image(context, Algorithm::Sha256));
    let before = image(context, Algorithm::Sha256);
    before.push_as(&repo, "alpha").await?;
    item.push_parts(&repo).await?;
    let reference = format!("{}?tag=alpha", item.root.digest);
    repo.put_manifest(&reference, &item.root).send().await?.expect(&[201])?;
    repo.need_manifest("alpha", &item.root).await.map(drop)
}

async fn bad_tag(context: &Context) -> Verdict {
    let (repo, _, done) = push(context, Algorithm::Sha256, &["alpha", "-bad"]).await?;
    done.expect(&[400])?;
    repo.need_no_manifest("alpha").await
}
