//! Manifests, lists of tags and of referrers of a mirrored repository.

use super::{Halt, Mirror, Trouble, landed};
use crate::error::Error;
use crate::name::{Name, Tag};
use crate::storage::{Manifest, Page, Push, Selector};
use oci::{Descriptor, Digest, Identifier, Raw};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::Store;

/// An answer, and what should be said beside it.
pub(crate) struct Stated<T> {
    pub(crate) value: T,
    pub(crate) warning: Option<String>,
}

impl<T> Stated<T> {
    fn plain(value: T) -> Self {
        Self { value, warning: None }
    }
}

impl Mirror {
    /// The manifest that is meant, from here if that will do.
    pub(crate) async fn manifest(
        self: &Arc<Self>,
        name: &Name,
        selector: &Selector,
    ) -> Result<Stated<Arc<Manifest>>, Error> {
        let here = self.manifest_here(name, selector).await?;
        if let Some(manifest) = here.as_ref().filter(|_| self.will_do(name, selector)) {
            return Ok(Stated::plain(manifest.clone()));
        }
        match (self.renew(name, selector).await, here) {
            (Ok(manifest), _) => Ok(Stated::plain(manifest)),
            // That it is gone is an answer; everything else is a reason to serve what we have.
            (Err(Halt::Trouble(trouble)), Some(value)) if trouble != Trouble::Missing => {
                let warning = Some(self.warning(&trouble));
                Ok(Stated { value, warning })
            }
            (Err(halt), _) => Err(self.error(halt, Error::ManifestUnknown(selector.to_string()))),
        }
    }

    /// Whether what is here needs no look at the other registry.
    fn will_do(&self, name: &Name, selector: &Selector) -> bool {
        match selector {
            Selector::Digest(_) => true,
            Selector::Tag(tag) => self.memory.is_fresh(name, tag.as_str(), self.upstream.fresh),
        }
    }

    async fn manifest_here(
        &self,
        name: &Name,
        selector: &Selector,
    ) -> Result<Option<Arc<Manifest>>, Error> {
        match self.registry.manifest(name, selector).await {
            Ok(manifest) => Ok(Some(manifest)),
            Err(Error::NameUnknown(_) | Error::ManifestUnknown(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Asks the other registry, once for all who want to know, unless that was done a moment ago.
    async fn renew(
        self: &Arc<Self>,
        name: &Name,
        selector: &Selector,
    ) -> Result<Arc<Manifest>, Halt> {
        self.check(name, &selector.to_string())?;
        let key = format!("{name} {selector}");
        let (mirror, name, selector) = (self.clone(), name.clone(), selector.clone());
        let errand = self.manifests.join(key, || async move {
            let here = mirror.manifest_here(&name, &selector).await?;
            if let Some(manifest) = here.as_ref().filter(|_| mirror.will_do(&name, &selector)) {
                return Ok(manifest.clone());
            }
            let renewed = mirror.renew_now(&name, &selector, here).await?;
            if let Selector::Tag(tag) = &selector {
                mirror.memory.checked(&name, tag.as_str(), mirror.upstream.fresh);
            }
            Ok(renewed)
        });
        landed(errand.await)
    }

    async fn renew_now(
        &self,
        name: &Name,
        selector: &Selector,
        here: Option<Arc<Manifest>>,
    ) -> Result<Arc<Manifest>, Halt> {
        let remote = self.remote(name)?;
        let reference = selector.to_string();
        let failed = |error: store::Error| self.halt(name, &reference, &error);
        let gone = || self.note(name, &reference, Trouble::Missing);
        let (id, tag) = match selector {
            Selector::Digest(digest) => (Identifier::Digest(digest.clone()), None),
            Selector::Tag(tag) => (Identifier::Tag(tag.to_string()), Some(tag)),
        };
        let mut id = id;
        if let Some(here) = here {
            let there = remote.head(&id).await.map_err(failed)?.ok_or_else(gone)?;
            if there.digest == here.digest {
                return Ok(here);
            }
            // By digest, so that what comes is what was announced.
            id = Identifier::Digest(there.digest);
        }
        let raw = remote.manifest(&id).await.map_err(failed)?.ok_or_else(gone)?;
        self.counters.manifests.fetch_add(1, Ordering::Relaxed);
        self.keep(name, id.as_digest().cloned(), tag, raw).await.map_err(|halt| match halt {
            // What we would not take from anybody, we do not take from there.
            Halt::Here(error) if is_unfit(&error) => self.note(name, &reference, Trouble::Wrong),
            other => other,
        })
    }

    /// Records a manifest, durably.
    async fn keep(
        &self,
        name: &Name,
        digest: Option<Digest>,
        tag: Option<&Tag>,
        raw: Raw,
    ) -> Result<Arc<Manifest>, Halt> {
        let push = Push {
            repository: name.clone(),
            digest,
            tags: tag.cloned().into_iter().collect(),
            media_type: raw.media_type.to_string(),
            bytes: raw.bytes.into(),
        };
        let pushed = self.registry.push_mirrored(push).await?;
        Ok(self.registry.manifest(name, &Selector::Digest(pushed.digest)).await?)
    }

    /// All tags there are in the other registry; those that are here if it does not answer.
    pub(crate) async fn tags(
        self: &Arc<Self>,
        name: &Name,
        last: &str,
        length: usize,
    ) -> Result<Stated<Page<String>>, Error> {
        match self.tags_there(name).await {
            Ok(tags) => Ok(Stated::plain(page(&tags, last, length))),
            Err(Halt::Trouble(trouble)) if trouble != Trouble::Missing => {
                match self.registry.tags(name, last, length).await {
                    Ok(page) => {
                        let warning = Some(self.warning(&trouble));
                        Ok(Stated { value: Page::clone(&page), warning })
                    }
                    Err(error @ Error::NameUnknown(_)) => {
                        Err(self.error(Halt::Trouble(trouble), error))
                    }
                    Err(error) => Err(error),
                }
            }
            Err(halt) => Err(self.error(halt, Error::NameUnknown(name.clone()))),
        }
    }

    async fn tags_there(self: &Arc<Self>, name: &Name) -> Result<Arc<Vec<String>>, Halt> {
        // No tag is called like this.
        const LIST: &str = "/tags";
        if let Some(tags) = self.memory.tags(name, self.upstream.fresh) {
            return Ok(tags);
        }
        self.check(name, LIST)?;
        let (mirror, name) = (self.clone(), name.clone());
        let errand = self.lists.join(name.to_string(), || async move {
            let failed = |error: store::Error| mirror.halt(&name, LIST, &error);
            let mut tags = mirror.remote(&name)?.tags().await.map_err(failed)?;
            tags.retain(|tag| Tag::parse(tag).is_some());
            tags.sort_unstable();
            let tags = Arc::new(tags);
            mirror.memory.keep_tags(&name, &tags, mirror.upstream.fresh);
            Ok(tags)
        });
        landed(errand.await)
    }

    /// What refers to a manifest in the other registry; what is here if it does not answer.
    pub(crate) async fn referrers(
        &self,
        name: &Name,
        subject: &Digest,
        artifact_type: Option<&str>,
        last: &str,
        length: usize,
    ) -> Result<Stated<Page<Descriptor>>, Error> {
        match self.referrers_there(name, subject, artifact_type).await {
            Ok(mut all) => {
                all.sort_by_key(|it| it.digest.to_string());
                all.dedup_by(|one, other| one.digest == other.digest);
                all.retain(|it| it.digest.to_string().as_str() > last);
                let more = all.len() > length;
                all.truncate(length);
                Ok(Stated::plain(Page { items: all, more }))
            }
            Err(Halt::Here(error)) => Err(Error::Shared(error)),
            Err(Halt::Trouble(trouble)) => {
                let page =
                    self.registry.referrers(name, subject, artifact_type, last, length).await?;
                let warning = (trouble != Trouble::Missing).then(|| self.warning(&trouble));
                Ok(Stated { value: page, warning })
            }
        }
    }

    async fn referrers_there(
        &self,
        name: &Name,
        subject: &Digest,
        artifact_type: Option<&str>,
    ) -> Result<Vec<Descriptor>, Halt> {
        let key = format!("/referrers/{subject}");
        self.check(name, &key)?;
        let found = self.remote(name)?.referrers(subject, artifact_type).await;
        found.map_err(|error| self.halt(name, &key, &error))
    }
}

fn page(tags: &[String], last: &str, length: usize) -> Page<String> {
    let from = tags.partition_point(|tag| tag.as_str() <= last);
    let rest = if last.is_empty() { tags } else { &tags[from..] };
    Page { items: rest.iter().take(length).cloned().collect(), more: rest.len() > length }
}

fn is_unfit(error: &Error) -> bool {
    matches!(
        error,
        Error::ManifestInvalid(_) | Error::ManifestTooMany | Error::DigestMismatch { .. }
    )
}
