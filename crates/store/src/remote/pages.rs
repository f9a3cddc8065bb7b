//! Lists: tags page by page, and referrers with or without the registry's help.

use super::lead::next_page;
use super::request::{Call, shown};
use super::send::Fetched;
use super::{HttpError, Remote, text};
use crate::error::Cause;
use crate::names;
use http::header::{CONTENT_TYPE, HeaderMap, LINK};
use http::{Method, StatusCode};
use oci::{Descriptor, Digest, Document, Identifier, Index, MediaType, Raw};
use reqwest::Url;
use serde::Deserialize;
use std::collections::{BTreeSet, HashSet};

const PAGES_MAX: usize = 1000;
const PAGE_SIZE_MAX: u64 = 16 << 20;
/// All pages of one list together.
const LIST_SIZE_MAX: u64 = 64 << 20;
/// Asked for; many registries give at most 100 or 1000 whatever one asks for.
const TAGS_PER_PAGE: &str = "1000";

#[derive(Deserialize)]
struct TagList {
    #[serde(default)]
    tags: Option<Vec<String>>,
}

impl Remote {
    /// All tags, sorted. A repository nobody has pushed to has none.
    pub(crate) async fn read_tags(&self) -> Result<Vec<String>, Cause> {
        let mut call = self.pull(Method::GET, "tags/list").await?;
        call.url.query_pairs_mut().append_pair("n", TAGS_PER_PAGE);
        let mut tags = BTreeSet::new();
        let mut turner = Turner::new(&call);
        let mut size = 0;
        loop {
            let (headers, bytes) = match self.whole(&call, "a page of tags", PAGE_SIZE_MAX).await? {
                Fetched::Found(headers, bytes) => (headers, bytes),
                Fetched::Refused(response) if response.status() == StatusCode::NOT_FOUND => {
                    return Ok(tags.into_iter().collect());
                }
                Fetched::Refused(response) => return self.refuse(&call, response).await,
            };
            size += bytes.len() as u64;
            check_list(size, "the list of tags")?;
            let next = turner.turn(&call, &headers)?;
            let page: TagList = serde_json::from_slice(&bytes)
                .map_err(|source| Cause::Json { what: "the list of tags".to_owned(), source })?;
            tags.extend(page.tags.unwrap_or_default());
            match next {
                Some(url) => call.url = url,
                None => return Ok(tags.into_iter().collect()),
            }
        }
    }

    /// What refers to a digest: asked from the registry, or read from the tag that stands in
    /// where a registry cannot be asked.
    pub(crate) async fn read_referrers(
        &self,
        digest: &Digest,
        artifact_type: Option<&str>,
    ) -> Result<Vec<Descriptor>, Cause> {
        let listed = match self.ask_referrers(digest, artifact_type).await? {
            Some(listed) => listed,
            None => self.fallback(digest).await?.map_or_else(Vec::new, |index| index.manifests),
        };
        // A registry may ignore the filter.
        Ok(listed.into_iter().filter(|each| names::is_of_type(each, artifact_type)).collect())
    }

    async fn ask_referrers(
        &self,
        digest: &Digest,
        artifact_type: Option<&str>,
    ) -> Result<Option<Vec<Descriptor>>, Cause> {
        let mut call = self.pull(Method::GET, &format!("referrers/{digest}")).await?;
        if let Some(artifact_type) = artifact_type {
            call.url.query_pairs_mut().append_pair("artifactType", artifact_type);
        }
        let mut found = Vec::new();
        let mut turner = Turner::new(&call);
        let mut size = 0;
        loop {
            let (headers, bytes) =
                match self.whole(&call, "a page of referrers", PAGE_SIZE_MAX).await? {
                    Fetched::Found(headers, bytes) => (headers, bytes),
                    Fetched::Refused(response) => match response.status().as_u16() {
                        400 | 404 | 405 | 501 => return Ok(None),
                        _ => return self.refuse(&call, response).await,
                    },
                };
            // An answer that is no index comes from a server that does not know the question.
            if MediaType::new(text(&headers, CONTENT_TYPE.as_str())) != MediaType::OCI_INDEX {
                return Ok(None);
            }
            size += bytes.len() as u64;
            check_list(size, "the list of referrers")?;
            let next = turner.turn(&call, &headers)?;
            let page: Index = serde_json::from_slice(&bytes).map_err(|source| Cause::Json {
                what: "the list of referrers".to_owned(),
                source,
            })?;
            found.extend(page.manifests);
            match next {
                Some(url) => call.url = url,
                None => return Ok(Some(found)),
            }
        }
    }

    /// The index under the tag that stands in for the referrers list.
    async fn fallback(&self, digest: &Digest) -> Result<Option<Index>, Cause> {
        let raw = self.read_manifest(&fallback_tag(digest)).await?;
        Ok(raw.and_then(|raw| match raw.document {
            Document::Index(index) => Some(index),
            Document::Manifest(_) => None,
        }))
    }

    /// Enters a manifest into the stand-in list of its subject. Two writers at once may lose one
    /// entry; the specification has no remedy for that.
    pub(crate) async fn note_referrer(&self, raw: &Raw) -> Result<(), Cause> {
        let Some(subject) = names::subject(raw) else {
            return Ok(());
        };
        let tag = fallback_tag(&subject.digest);
        let mut index = self.fallback(&subject.digest).await?.unwrap_or_else(names::empty);
        if index.manifests.iter().any(|each| each.digest == raw.digest) {
            return Ok(());
        }
        index.manifests.push(names::describe(raw));
        let list = Raw::from_index(&index)?;
        // The list has no subject of its own, so this does not go on for ever.
        Box::pin(self.write_manifest(&tag, &list)).await
    }
}

fn check_list(size: u64, what: &str) -> Result<(), Cause> {
    if size <= LIST_SIZE_MAX {
        return Ok(());
    }
    Err(Cause::TooLarge { what: what.to_owned(), limit: LIST_SIZE_MAX })
}

fn fallback_tag(digest: &Digest) -> Identifier {
    Identifier::Tag(format!("{}-{}", digest.algorithm().as_str(), digest.hex()))
}

/// Turns pages, and notices when they go in a circle or never end.
struct Turner {
    first: Url,
    seen: HashSet<Url>,
}

impl Turner {
    fn new(call: &Call<'_>) -> Self {
        Self { first: call.url.clone(), seen: HashSet::from([call.url.clone()]) }
    }

    fn turn(&mut self, call: &Call<'_>, headers: &HeaderMap) -> Result<Option<Url>, HttpError> {
        let Some(target) = next_link(headers) else {
            return Ok(None);
        };
        let next = call.url.join(&target).map_err(|_| HttpError::Url(target))?;
        let next = next_page(&call.url, next)?;
        let circle = !self.seen.insert(next.clone());
        if circle || self.seen.len() > PAGES_MAX {
            return Err(HttpError::Pages { url: shown(&self.first), limit: PAGES_MAX });
        }
        Ok(Some(next))
    }
}

/// The target of `Link: <…>; rel="next"`.
fn next_link(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(LINK).iter().filter_map(|value| value.to_str().ok());
    let find = |value: &str| {
        let mut rest = value;
        while let Some((target, tail)) = rest.split_once('<').and_then(|(_, it)| it.split_once('>'))
        {
            let parameters = tail.split_once('<').map_or(tail, |(own, _)| own);
            let parameters = parameters.to_ascii_lowercase().replace([' ', '"'], "");
            if parameters.contains("rel=next") {
                return Some(target.to_owned());
            }
            rest = tail;
        }
        None
    };
    values.into_iter().find_map(find)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found_in_the_link_header() {
        let check = |header: &str, expected: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(LINK, header.parse().unwrap());
            assert_eq!(next_link(&headers).as_deref(), expected, "{header}");
        };
        check(r#"</v2/a/tags/list?last=x&n=2>; rel="next""#, Some("/v2/a/tags/list?last=x&n=2"));
        check("<b>;rel=next", Some("b"));
        check(r#"<a>; rel="prev", <b>; rel="next""#, Some("b"));
        check("<a>; rel=prev", None);
        check("nonsense", None);
    }
}
