//! ext: the catalog of repositories (Docker v2), and discovery of extensions.

use crate::check::{Entry, table};
use crate::checks::tags::next;
use crate::content::image;
use crate::context::{Context, Repo};
use crate::digest::Algorithm;
use crate::exchange::{Exchange, Verdict};
use serde_json::Value;

pub(super) fn entries() -> Vec<Entry> {
    table! {
        one "ext" Should "catalog.list" => list,
            "Docker v2: GET /v2/_catalog answers 200 with {\"repositories\":[…]}, which has ours";
        one "ext" Should "catalog.pages" => pages,
            "Docker v2: with n, following Link to the end gives every repository once, in order";
        one "ext" Should "catalog.last" => last,
            "Docker v2: with last=<name> the list begins after that repository";
        one "ext" Should "catalog.n-zero" => n_zero,
            "As with tags: n=0 is an empty list without Link, or refused with 400";
        one "ext" Should "discover" => discover,
            "Extensions: GET /v2/_oci/ext/discover answers 200 with {\"extensions\":[{name,url,…}]}";
        one "ext" Must "extension.unknown" => unknown,
            "Extensions: one that the registry does not have is refused with 404, no repository begins with _";
    }
}

fn repositories(answer: &Exchange) -> Verdict<Vec<String>> {
    let body = answer.json()?;
    let list = body.get("repositories").and_then(Value::as_array);
    let names = list.and_then(|list| {
        list.iter().map(|name| name.as_str().map(ToOwned::to_owned)).collect::<Option<Vec<_>>>()
    });
    names.ok_or_else(|| answer.fail("\"repositories\": a list of strings"))
}

async fn ask(context: &Context, query: &str) -> Verdict<Exchange> {
    let request = context.client.get(&format!("/v2/_catalog{query}"));
    request.scope("registry:catalog:*".to_owned()).send().await?.expect(&[200])
}

/// Every repository of every page, from this query on.
async fn walk(context: &Context, query: &str) -> Verdict<(Exchange, Vec<String>)> {
    let mut answer = ask(context, query).await?;
    let mut names = repositories(&answer)?;
    for _ in 0..10_000 {
        let Some(url) = next(&answer)? else { return Ok((answer, names)) };
        let request = context.client.request_url("GET", url);
        answer = request.scope("registry:catalog:*".to_owned()).send().await?.expect(&[200])?;
        names.extend(repositories(&answer)?);
    }
    Err(answer.fail("an end of the pages"))
}

async fn pushed(context: &Context) -> Verdict<Repo<'_>> {
    let (repo, item) = (context.repo(), image(context, Algorithm::Sha256));
    item.push_as(&repo, "latest").await?;
    Ok(repo)
}

async fn list(context: &Context) -> Verdict {
    let repo = pushed(context).await?;
    let (answer, names) = walk(context, "").await?;
    if !names.contains(&repo.name) {
        return Err(answer.fail(format!("\"{}\" on some page", repo.name)));
    }
    Ok(())
}

async fn pages(context: &Context) -> Verdict {
    let repos = [pushed(context).await?, pushed(context).await?, pushed(context).await?];
    let (answer, names) = walk(context, "?n=50").await?;
    let count = |repo: &Repo<'_>| names.iter().filter(|name| **name == repo.name).count();
    if repos.iter().any(|repo| count(repo) != 1) {
        return Err(answer.fail("each of the three repositories just pushed once, on some page"));
    }
    let ours: Vec<&String> =
        names.iter().filter(|name| repos.iter().any(|repo| **name == repo.name)).collect();
    if !ours.is_sorted() {
        return Err(answer.fail_because("the repositories in order", format!("{ours:?}")));
    }
    let answer = ask(context, "?n=2").await?;
    let first = repositories(&answer)?;
    if first.len() != 2 {
        return Err(answer.fail("two repositories for n=2"));
    }
    Ok(())
}

async fn last(context: &Context) -> Verdict {
    let repo = pushed(context).await?;
    let answer = ask(context, &format!("?n=5&last={}", repo.name)).await?;
    let names = repositories(&answer)?;
    if names.iter().any(|name| *name <= repo.name) {
        return Err(answer.fail(format!("only repositories after {}", repo.name)));
    }
    Ok(())
}

async fn n_zero(context: &Context) -> Verdict {
    pushed(context).await?;
    let request = context.client.get("/v2/_catalog?n=0");
    let answer =
        request.scope("registry:catalog:*".to_owned()).send().await?.expect(&[200, 400])?;
    if answer.status() == 200 {
        if answer.header("link").is_some() {
            return Err(answer.fail("no header 'link'"));
        }
        if !repositories(&answer)?.is_empty() {
            return Err(answer.fail("\"repositories\": []"));
        }
    }
    Ok(())
}

async fn discover(context: &Context) -> Verdict {
    let answer = context.client.get("/v2/_oci/ext/discover").send().await?.expect(&[200])?;
    let body = answer.json()?;
    let list = body.get("extensions").and_then(Value::as_array);
    let sound = |extension: &Value| {
        let name = extension["name"].as_str().is_some_and(|name| name.starts_with('_'));
        let url = extension["url"].as_str().is_some_and(|url| !url.is_empty());
        let endpoints = extension.get("endpoints").is_none_or(Value::is_array);
        name && url && endpoints
    };
    if !list.is_some_and(|list| list.iter().all(sound)) {
        let form = "{\"extensions\":[{\"name\":\"_…\",\"url\":\"…\",\"endpoints\":[…]}]}";
        return Err(answer.fail(form));
    }
    Ok(())
}

async fn unknown(context: &Context) -> Verdict {
    for path in ["/v2/_nothing", "/v2/_nothing/ext/discover", "/v2/_nothing/tags/list"] {
        context.client.get(path).send().await?.refused()?;
    }
    Ok(())
}
