//! Lists: tags, repositories, referrers, extensions.

use super::{Action, Answer, Call, ServedExtension, Server, json};
use crate::limits::{CATALOG_PAGE_LENGTH, PAGE_LENGTH_MAX, REFERRERS_PAGE_LENGTH};
use crate::name::Name;
use crate::query::encode;
use crate::storage::{Page, Referrer};
use crate::wire::{self, Refusal};
use axum::response::Response;
use http::header::{CONTENT_TYPE, LINK};
use oci::{Digest, Index, MediaType};
use serde::Serialize;
use serde_json::json as value;

/// What is said about tags.
#[derive(Serialize)]
struct TagList<'page> {
    name: &'page str,
    tags: &'page [String],
}

impl Server {
    pub(super) async fn tags(&self, call: &Call, name: &Name) -> Answer {
        let (last, length) = tags_asked(call)?;
        let page = self.registry.tags(name, last, length).await?;
        Ok(tag_list(name, &page, length))
    }

    pub(super) async fn catalog(&self, call: &Call) -> Answer {
        let length = length(call)?.unwrap_or(CATALOG_PAGE_LENGTH).min(PAGE_LENGTH_MAX);
        let last = call.query.get("last").unwrap_or_default();
        let visible = |name: &Name| self.may(&call.who, name, Action::List);
        let page = self.registry.repositories(last, length, visible).await?;
        let names: Vec<&str> = page.items.iter().map(Name::as_str).collect();
        let mut response = json(value!({ "repositories": names }).to_string().into_bytes());
        if let (true, Some(last)) = (page.more, names.last()) {
            next(&mut response, &format!("/v2/_catalog?n={length}&last={}", encode(last)));
        }
        Ok(response)
    }

    pub(super) async fn referrers(&self, call: &Call, name: &Name, subject: &Digest) -> Answer {
        let (kind, last, length) = referrers_asked(call)?;
        let page = self.registry.referrers(name, subject, kind, last, length).await?;
        Ok(referrer_list(name, subject, page, kind, length))
    }
}

/// Which tags are asked for: those after one, and how many.
pub(super) fn tags_asked(call: &Call) -> Result<(&str, usize), Refusal> {
    let asked = length(call)?.unwrap_or(PAGE_LENGTH_MAX);
    Ok((call.query.get("last").unwrap_or_default(), asked.min(PAGE_LENGTH_MAX)))
}

/// Which referrers are asked for: of what kind, after which one, and how many.
pub(super) fn referrers_asked(call: &Call) -> Result<(Option<&str>, &str, usize), Refusal> {
    let asked = length(call)?.unwrap_or(REFERRERS_PAGE_LENGTH);
    let kind = call.query.get("artifactType").filter(|kind| !kind.is_empty());
    let last = call.query.get("last").unwrap_or_default();
    Ok((kind, last, asked.min(REFERRERS_PAGE_LENGTH)))
}

/// A page of tags as an answer.
pub(super) fn tag_list(name: &Name, page: &Page<String>, length: usize) -> Response {
    let body = TagList { name: name.as_str(), tags: &page.items };
    let mut response = json(serde_json::to_vec(&body).unwrap_or_default());
    if let (true, Some(last)) = (page.more, page.items.last()) {
        next(&mut response, &format!("/v2/{name}/tags/list?n={length}&last={}", encode(last)));
    }
    response
}

/// A page of referrers as an answer.
pub(super) fn referrer_list(
    name: &Name,
    subject: &Digest,
    page: Page<Referrer>,
    kind: Option<&str>,
    length: usize,
) -> Response {
    let last = page.items.last().map(|it| it.digest.to_string());
    let body = serde_json::to_vec(&Index::oci(page.items)).unwrap_or_default();
    let mut response = json(body);
    wire::set(&mut response, CONTENT_TYPE, MediaType::OCI_INDEX.as_str());
    if kind.is_some() {
        wire::set(&mut response, wire::FILTERS, "artifactType");
    }
    if let (true, Some(last)) = (page.more, last) {
        let filter = kind.map(|kind| format!("&artifactType={}", encode(kind)));
        let filter = filter.unwrap_or_default();
        let address = format!("/v2/{name}/referrers/{subject}?n={length}&last={last}{filter}");
        next(&mut response, &address);
    }
    response
}

/// The extensions there are: finding that out, and what is served beside the protocol.
pub(super) fn discover(extensions: &[ServedExtension]) -> Response {
    let discover = value!({
        "name": "_oci",
        "url": "https://github.com/opencontainers/distribution-spec/blob/main/extensions/_oci.md",
        "description": "finding out which extensions there are",
        "endpoints": ["_oci/ext/discover"],
    });
    let beside = extensions.iter().map(|it| {
        value!({
            "name": it.name,
            "url": it.url,
            "description": it.description,
            "endpoints": it.endpoints,
        })
    });
    let all: Vec<_> = [discover].into_iter().chain(beside).collect();
    json(value!({ "extensions": all }).to_string().into_bytes())
}

fn length(call: &Call) -> Result<Option<usize>, Refusal> {
    let Some(text) = call.query.get("n") else { return Ok(None) };
    let invalid = || Refusal::bad("UNSUPPORTED", format!("n=`{text}` is not a number of entries"));
    Ok(Some(text.parse().map_err(|_| invalid())?))
}

fn next(response: &mut Response, address: &str) {
    wire::set(response, LINK, &format!("<{address}>; rel=\"next\""));
}
