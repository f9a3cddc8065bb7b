//! end-8: listing tags, whole and in pages.

use crate::check::{Entry, table};
use crate::content::image;
use crate::context::{Context, Repo};
use crate::digest::Algorithm;
use crate::exchange::{Exchange, Verdict};
use serde_json::Value;

/// In order, whether one counts by bytes or ignores case.
const TAGS: [&str; 7] = ["0.1-rc", "a", "b", "b-1", "c", "latest", "z_9"];

pub(super) fn entries() -> Vec<Entry> {
    table! {
        one "end-8" Must "tags.list" => list,
            "Listing tags: 200 with {\"name\":<name>,\"tags\":[…]}, all tags in lexical order";
        one "end-8" Must "tags.n" => first_page,
            "Listing tags: with n=<int> the answer MUST have the first n tags and not more";
        one "end-8" Should "tags.link" => link,
            "Listing tags: where more follow, Link: <url>; rel=\"next\" leads to them";
        one "end-8" Must "tags.pages" => pages,
            "Listing tags: following Link to the end gives every tag once, for every page size";
        one "end-8" Must "tags.last" => last,
            "Listing tags: with last=<tag> the list MUST begin after that tag, which is not in it";
        one "end-8" Must "tags.last-and-n" => last_and_n,
            "Listing tags: n and last together page through the list without Link";
        one "end-8" Should "tags.last-absent" => last_absent,
            "Listing tags: last need not exist; the list begins where it would stand";
        one "end-8" Must "tags.last-is-last" => last_is_last,
            "Listing tags: nothing follows the last tag: an empty list";
        one "end-8" Must "tags.n-zero" => n_zero,
            "Listing tags: when n is zero the list MUST be empty and there MUST NOT be a Link";
        one "end-8" Should "tags.n-large" => n_large,
            "Listing tags: with n above the number of tags all come, and no Link";
        one "end-8" Should "tags.n-exact" => n_exact,
            "Listing tags: with n equal to the number of tags all come, and Link leads nowhere new";
        one "end-8" Should "tags.n-malformed" => n_malformed,
            "Listing tags: n that is no number is refused with 400 or ignored, never 5xx";
        one "end-8" Should "tags.content-type" => content_type,
            "Listing tags: the list is JSON and says so: Content-Type: application/json";
        one "end-8" Must "tags.mixed-case" => mixed_case,
            "Listing tags: lexical order, by bytes or ignoring case; tags differ by case";
        one "end-8" Should "tags.none" => none,
            "Listing tags: a repository with manifests and no tags has an empty list, not null";
        one "end-8" Must "tags.separate" => separate,
            "Listing tags: a/b and a/b/c are repositories of their own, with tags of their own";
        one "end-8" Must "tags.retagged" => retagged,
            "Listing tags: a tag that was moved is listed once";
    }
}

async fn tagged<'c>(context: &'c Context, tags: &[&str]) -> Verdict<Repo<'c>> {
    let (repo, item) = (context.repo(), image(context, Algorithm::Sha256));
    item.push_parts(&repo).await?;
    // Neither in order nor against it, so that order is the registry's doing and not that of
    // some directory.
    let (even, odd) = (tags.iter().step_by(2), tags.iter().skip(1).step_by(2));
    for tag in even.rev().chain(odd) {
        repo.push(tag, &item.root).await?;
    }
    Ok(repo)
}

/// The tags of an answer; `null` is read as none, as clients do.
pub(super) fn tags_of(answer: &Exchange, repo: &Repo<'_>) -> Verdict<Vec<String>> {
    let body = answer.json()?;
    if body.get("name").and_then(Value::as_str) != Some(&repo.name) {
        return Err(answer.fail(format!("\"name\": \"{}\"", repo.name)));
    }
    match body.get("tags") {
        Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(tags)) => tags
            .iter()
            .map(|tag| tag.as_str().map(ToOwned::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(|| answer.fail("\"tags\": a list of strings")),
        _ => Err(answer.fail("\"tags\": a list of strings")),
    }
}

pub(super) async fn ask(repo: &Repo<'_>, query: &str) -> Verdict<(Exchange, Vec<String>)> {
    let answer = repo.get(&format!("tags/list{query}")).send().await?.expect(&[200])?;
    let tags = tags_of(&answer, repo)?;
    Ok((answer, tags))
}

/// The list for this query is this one.
async fn need(repo: &Repo<'_>, query: &str, wanted: &[&str]) -> Verdict<Exchange> {
    let (answer, tags) = ask(repo, query).await?;
    if tags != wanted {
        return Err(answer.fail(format!("the tags {wanted:?}")));
    }
    Ok(answer)
}

/// The target of `Link: <…>; rel="next"`, if there is one.
pub(super) fn next(answer: &Exchange) -> Verdict<Option<crate::target::Url>> {
    let Some(link) = answer.header("link") else { return Ok(None) };
    let form = "Link: <url>; rel=\"next\" (RFC 8288)";
    let parts = link.strip_prefix('<').and_then(|rest| rest.split_once('>'));
    let (url, parameters) = parts.ok_or_else(|| answer.fail(form))?;
    let relation = parameters.replace(' ', "").to_ascii_lowercase();
    if !relation.contains(";rel=\"next\"") && !relation.contains(";rel=next") {
        return Err(answer.fail(form));
    }
    let joined = answer.message.url.join(url);
    joined.map(Some).map_err(|wrong| answer.fail_because(form, wrong))
}

async fn list(context: &Context) -> Verdict {
    need(&tagged(context, &TAGS).await?, "", &TAGS).await.map(drop)
}

async fn first_page(context: &Context) -> Verdict {
    let repo = tagged(context, &TAGS).await?;
    need(&repo, "?n=1", &TAGS[..1]).await?;
    need(&repo, "?n=4", &TAGS[..4]).await.map(drop)
}

async fn link(context: &Context) -> Verdict {
    let repo = tagged(context, &TAGS).await?;
    let answer = need(&repo, "?n=3", &TAGS[..3]).await?;
    answer.need("link")?;
    next(&answer).map(drop)
}

async fn pages(context: &Context) -> Verdict {
    let repo = tagged(context, &TAGS).await?;
    for size in [1, 2, 3, 6] {
        let (mut answer, mut seen) = ask(&repo, &format!("?n={size}")).await?;
        while let Some(url) = next(&answer)? {
            if seen.len() > TAGS.len() {
                return Err(answer.fail("an end of the pages"));
            }
            let request = repo.client.request_url("GET", url);
            let request = request.scope(format!("repository:{}:pull,push,delete", repo.name));
            answer = request.send().await?.expect(&[200])?;
            let page = tags_of(&answer, &repo)?;
            if page.len() > size {
                return Err(answer.fail(format!("not more than {size} tags in a page")));
            }
            seen.extend(page);
        }
        if seen != TAGS {
            let wrong = format!("all pages of {size} together give {seen:?}");
            return Err(answer.fail_because(format!("all pages together: {TAGS:?}"), wrong));
        }
    }
    Ok(())
}

async fn last(context: &Context) -> Verdict {
    let repo = tagged(context, &TAGS).await?;
    need(&repo, "?last=b", &TAGS[3..]).await.map(drop)
}

async fn last_and_n(context: &Context) -> Verdict {
    let repo = tagged(context, &TAGS).await?;
    need(&repo, "?n=2&last=a", &TAGS[2..4]).await?;
    need(&repo, "?last=b-1&n=2", &TAGS[4..6]).await?;
    need(&repo, "?n=2&last=latest", &TAGS[6..]).await.map(drop)
}

async fn last_absent(context: &Context) -> Verdict {
    let repo = tagged(context, &TAGS).await?;
    need(&repo, "?n=10&last=b0", &TAGS[4..]).await.map(drop)
}

async fn last_is_last(context: &Context) -> Verdict {
    let repo = tagged(context, &TAGS).await?;
    need(&repo, "?n=10&last=z_9", &[]).await.map(drop)
}

async fn n_zero(context: &Context) -> Verdict {
    let repo = tagged(context, &TAGS).await?;
    let answer = need(&repo, "?n=0", &[]).await?;
    if answer.header("link").is_some() {
        return Err(answer.fail("no header 'link'"));
    }
    Ok(())
}

async fn n_large(context: &Context) -> Verdict {
    let repo = tagged(context, &TAGS).await?;
    let answer = need(&repo, "?n=100", &TAGS).await?;
    if answer.header("link").is_some() {
        return Err(answer.fail("no header 'link': nothing follows"));
    }
    Ok(())
}

async fn n_exact(context: &Context) -> Verdict {
    let repo = tagged(context, &TAGS).await?;
    let answer = need(&repo, "?n=7", &TAGS).await?;
    let Some(url) = next(&answer)? else { return Ok(()) };
    let request = repo.client.request_url("GET", url);
    let request = request.scope(format!("repository:{}:pull,push,delete", repo.name));
    let after = request.send().await?.expect(&[200])?;
    if !tags_of(&after, &repo)?.is_empty() {
        return Err(after.fail("nothing after the last tag"));
    }
    Ok(())
}

async fn n_malformed(context: &Context) -> Verdict {
    let repo = tagged(context, &TAGS).await?;
    for query in ["?n=abc", "?n=-1", "?n=1.5", "?n=99999999999999999999999"] {
        repo.get(&format!("tags/list{query}")).send().await?.expect(&[200, 400])?;
    }
    Ok(())
}

async fn content_type(context: &Context) -> Verdict {
    let (answer, _) = ask(&tagged(context, &TAGS).await?, "").await?;
    let value = answer.need("content-type")?;
    if value.split(';').next() != Some("application/json") {
        return Err(answer.fail("the header 'content-type: application/json'"));
    }
    Ok(())
}

async fn mixed_case(context: &Context) -> Verdict {
    let repo = tagged(context, &["a", "B", "b", "C", "d", "E", "f", "G"]).await?;
    let (answer, tags) = ask(&repo, "").await?;
    let orders = [
        ["B", "C", "E", "G", "a", "b", "d", "f"],
        ["a", "B", "b", "C", "d", "E", "f", "G"],
        ["a", "b", "B", "C", "d", "E", "f", "G"],
    ];
    if !orders.iter().any(|order| tags == order) {
        return Err(answer.fail("the tags in order: B C E G a b d f, or a B b C d E f G"));
    }
    Ok(())
}

async fn none(context: &Context) -> Verdict {
    let (repo, item) = (context.repo(), image(context, Algorithm::Sha256));
    item.push(&repo).await?;
    let (answer, _) = ask(&repo, "").await?;
    if answer.json()?.get("tags") != Some(&Value::Array(Vec::new())) {
        return Err(answer.fail("\"tags\": []"));
    }
    Ok(())
}

async fn separate(context: &Context) -> Verdict {
    let repo = tagged(context, &["outer"]).await?;
    let below = repo.below("inner");
    let item = image(context, Algorithm::Sha256);
    item.push_as(&below, "inner").await?;
    need(&repo, "", &["outer"]).await?;
    need(&below, "", &["inner"]).await.map(drop)
}

async fn retagged(context: &Context) -> Verdict {
    let repo = tagged(context, &["a", "b"]).await?;
    image(context, Algorithm::Sha256).push_as(&repo, "a").await?;
    let (answer, mut tags) = ask(&repo, "").await?;
    tags.sort();
    if tags != ["a", "b"] {
        return Err(answer.fail("the tags [\"a\", \"b\"], each once"));
    }
    Ok(())
}
