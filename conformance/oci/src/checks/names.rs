//! Names and tags: what the grammar allows works, what it does not is refused.

use crate::check::{Entry, table};
use crate::content::image;
use crate::context::{Context, Repo};
use crate::digest::Algorithm;
use crate::exchange::{Exchange, Verdict};

pub(super) fn entries() -> Vec<Entry> {
    table! {
        one "names" Must "name.allowed" => allowed,
            "Pulling manifests: <name> MUST match [a-z0-9]+((\\.|_|__|-+)[a-z0-9]+)*(/…)*; all such work";
        one "names" Must "name.deep" => deep,
            "Pulling manifests: a <name> may have many components";
        one "names" Should "name.words-of-the-protocol" => words,
            "Pulling manifests: blobs, manifests, tags, uploads and referrers are names like any other";
        one "names" Must "name.nested" => nested,
            "Pulling manifests: a and a/b are repositories of their own";
        one "names" Must "name.refused" => refused_names,
            "Error codes: NAME_INVALID: what does not match the grammar is refused with 4xx";
        refusal "names" Must "name.upper-case"
            [400, 404] ["NAME_INVALID", "NAME_UNKNOWN"] => upper_case,
            "Error codes: NAME_INVALID: upper case is refused";
        one "names" Should "name.too-long" => too_long,
            "Pulling manifests: clients limit names to 255 characters; far longer ones are refused, never 5xx";
        one "names" Must "tag.allowed" => allowed_tags,
            "Pulling manifests: a tag MUST match [a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}; all such work";
        one "names" Must "tag.refused" => refused_tags,
            "Pulling manifests: a tag that does not match the grammar is refused with 4xx";
        refusal "names" Must "tag.colon"
            [400, 404] ["MANIFEST_INVALID", "DIGEST_INVALID", "NAME_INVALID", "TAG_INVALID"] => colon_tag,
            "Pulling manifests: a:b is neither a tag nor a digest, and refused, never with 5xx";
        refusal "names" Must "tag.too-long"
            [400, 404] ["MANIFEST_INVALID", "NAME_INVALID", "TAG_INVALID", "MANIFEST_UNKNOWN"] => long_tag,
            "Pulling manifests: a tag has at most 128 characters";
        one "names" Must "tag.case" => tag_case,
            "Pulling manifests: tags that differ by case are different tags";
    }
}

/// Pushes an image and pulls it, by tag and by digest.
async fn works(context: &Context, repo: &Repo<'_>) -> Verdict {
    let item = image(context, Algorithm::Sha256);
    item.push_as(repo, "latest").await?;
    repo.need_manifest("latest", &item.root).await?;
    repo.need_manifest(&item.root.digest, &item.root).await?;
    repo.need_blob(&item.blobs[1]).await?;
    let (answer, tags) = super::tags::ask(repo, "").await?;
    if tags == ["latest"] { Ok(()) } else { Err(answer.fail("the tags [\"latest\"]")) }
}

async fn allowed(context: &Context) -> Verdict {
    for name in ["a", "0", "a.b", "a_b", "a__b", "a-b", "a---b", "a.b_c__d-e--f/0.1_2"] {
        works(context, &context.repo().below(name)).await?;
    }
    Ok(())
}

async fn deep(context: &Context) -> Verdict {
    works(context, &context.repo().below("a/b/c/d/e/f/g/h/i/j")).await
}

async fn words(context: &Context) -> Verdict {
    for name in [
        "blobs",
        "manifests",
        "tags",
        "tags/list",
        "referrers",
        "blobs/uploads",
        "manifests/latest",
    ] {
        works(context, &context.repo().below(name)).await?;
    }
    Ok(())
}

async fn nested(context: &Context) -> Verdict {
    let outer = context.repo();
    works(context, &outer).await?;
    works(context, &outer.below("inner")).await?;
    works(context, &outer.below("inner/most")).await
}

async fn refused_names(context: &Context) -> Verdict {
    for name in [
        "-a", "a-", ".a", "a.", "_a", "a_", "a..b", "a___b", "a.-b", "a_.b", "a+b", "a~b", "a%20b",
        "%C3%BC", "a%00b", "a:b", "a@b",
    ] {
        let repo = context.repo().below(name);
        repo.request("POST", "blobs/uploads/").send().await?.refused()?;
    }
    Ok(())
}

async fn upper_case(context: &Context) -> Verdict<Exchange> {
    context.repo().below("UPPER").request("POST", "blobs/uploads/").send().await
}

async fn too_long(context: &Context) -> Verdict {
    for name in ["a".repeat(1000), "a/".repeat(500) + "a"] {
        let repo = context.repo().below(&name);
        repo.request("POST", "blobs/uploads/").send().await?.refused()?;
    }
    Ok(())
}

async fn allowed_tags(context: &Context) -> Verdict {
    let (repo, item) = (context.repo(), image(context, Algorithm::Sha256));
    item.push_parts(&repo).await?;
    let long = "x".repeat(128);
    for tag in ["_", "A", "0", "a.b-c_d", "a..b", "a--", "sha256", &long] {
        repo.push(tag, &item.root).await?;
        repo.need_manifest(tag, &item.root).await?;
    }
    Ok(())
}

async fn refused_tags(context: &Context) -> Verdict {
    let (repo, item) = (context.repo(), image(context, Algorithm::Sha256));
    item.push_parts(&repo).await?;
    for tag in [".a", "-a", "a+b", "a%20b", "a~b", "%C3%BC", "a%00b", "a@b"] {
        repo.put_manifest(tag, &item.root).send().await?.refused()?;
    }
    Ok(())
}

async fn colon_tag(context: &Context) -> Verdict<Exchange> {
    let (repo, item) = (context.repo(), image(context, Algorithm::Sha256));
    item.push_parts(&repo).await?;
    repo.put_manifest("a:b", &item.root).send().await
}

async fn long_tag(context: &Context) -> Verdict<Exchange> {
    let (repo, item) = (context.repo(), image(context, Algorithm::Sha256));
    item.push_parts(&repo).await?;
    repo.put_manifest(&"x".repeat(129), &item.root).send().await
}

async fn tag_case(context: &Context) -> Verdict {
    let repo = context.repo();
    let (lower, upper) = (image(context, Algorithm::Sha256), image(context, Algorithm::Sha256));
    lower.push_as(&repo, "case").await?;
    upper.push_as(&repo, "CASE").await?;
    repo.need_manifest("case", &lower.root).await?;
    repo.need_manifest("CASE", &upper.root).await.map(drop)
}
