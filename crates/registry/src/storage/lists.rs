//! Lists, page by page: tags, repositories, referrers. All of them in ASCII order.

use super::Registry;
use super::cache::Size;
use crate::error::Error;
use crate::limits::{PAGE_LENGTH_MAX, REFERRERS_PAGE_SIZE};
use crate::name::Name;
use oci::{Descriptor, Digest};
use std::sync::Arc;

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// What is on this page.
    pub items: Vec<T>,
    /// Whether there is more behind it.
    pub more: bool,
}

/// A manifest that refers to another.
pub type Referrer = Descriptor;

/// A whole list of tags, as the cache keeps it.
pub(super) struct Tags(Arc<Page<String>>);

/// The key of a whole list of tags.
const WHOLE: &str = "tags";

impl Size for Tags {
    fn size(&self) -> usize {
        let sizes = self.0.items.iter().map(|tag| tag.len().saturating_add(size_of::<String>()));
        sizes.fold(0, usize::saturating_add)
    }
}

impl<T> Page<T> {
    /// A page of at most `length`, of a list of which one more was asked for.
    fn cut(mut items: Vec<T>, length: usize) -> Self {
        let more = items.len() > length;
        items.truncate(length);
        Self { items, more }
    }
}

impl Registry {
    /// Tags after `last`, at most `length`.
    pub async fn tags(
        &self,
        name: &Name,
        last: &str,
        length: usize,
    ) -> Result<Arc<Page<String>>, Error> {
        // Most clients want all of them; that answer is kept in memory until a tag changes.
        let whole = last.is_empty() && length == PAGE_LENGTH_MAX;
        let epoch = match self.inner.tags.get(name, WHOLE) {
            Ok(found) if whole => return Ok(found.0.clone()),
            Ok(_) => None,
            Err(epoch) => Some(epoch).filter(|_| whole),
        };
        let page = Arc::new(self.read_tags(name, last, length).await?);
        if let Some(epoch) = epoch {
            self.inner.tags.fill(name, WHOLE, &Arc::new(Tags(page.clone())), epoch);
        }
        Ok(page)
    }

    /// Forgets the list of a repository's tags.
    pub(super) fn forget_tags(&self, name: &Name) {
        self.inner.tags.forget(name, WHOLE);
    }

    async fn read_tags(
        &self,
        name: &Name,
        last: &str,
        length: usize,
    ) -> Result<Page<String>, Error> {
        let (name, last) = (name.clone(), last.to_owned());
        let limit = length.saturating_add(1);
        let found = self.ask(move |inner| inner.metadata.tags(&name, &last, limit)).await?;
        Ok(Page::cut(found, length))
    }

    /// Repositories that have manifests, after `last`, at most `length`, of those `visible`.
    pub async fn repositories(
        &self,
        last: &str,
        length: usize,
        visible: impl Fn(&Name) -> bool,
    ) -> Result<Page<Name>, Error> {
        let (mut last, mut items) = (last.to_owned(), Vec::new());
        loop {
            let batch = self.some_repositories(&last, length).await?;
            let end = batch.len() <= length;
            let next = batch.last().map(ToString::to_string);
            items.extend(batch.into_iter().filter(&visible));
            match next {
                Some(next) if !end && items.len() <= length => last = next,
                _ => return Ok(Page::cut(items, length)),
            }
        }
    }

    /// Addresses of all manifests of a repository after `last`, tagged or not, at most `length`:
    /// what an observer that missed something looks at again.
    pub async fn manifests(
        &self,
        name: &Name,
        last: &str,
        length: usize,
    ) -> Result<Page<Digest>, Error> {
        let (name, last) = (name.clone(), last.to_owned());
        let limit = length.saturating_add(1);
        let found = self.ask(move |inner| inner.metadata.manifests(&name, &last, limit)).await?;
        Ok(Page::cut(found, length))
    }

    async fn some_repositories(&self, last: &str, length: usize) -> Result<Vec<Name>, Error> {
        let last = last.to_owned();
        let limit = length.saturating_add(1);
        self.ask(move |inner| inner.metadata.repositories(&last, limit)).await
    }

    /// Manifests that refer to `subject`, after the digest `last`, at most `length`; of one
    /// artifact type only, if asked.
    pub async fn referrers(
        &self,
        name: &Name,
        subject: &Digest,
        artifact_type: Option<&str>,
        last: &str,
        length: usize,
    ) -> Result<Page<Referrer>, Error> {
        let (name, subject, last) = (name.clone(), subject.clone(), last.to_owned());
        let artifact_type = artifact_type.map(str::to_owned);
        let limit = length.saturating_add(1);
        let found = self.ask(move |inner| {
            inner.metadata.referrers(&name, &subject, artifact_type.as_deref(), &last, limit)
        });
        Ok(cut_by_size(Page::cut(found.await?, length)))
    }
}

/// Annotations may be large: a page ends where it would become larger than clients take.
fn cut_by_size(mut page: Page<Referrer>) -> Page<Referrer> {
    let mut size = 0_usize;
    let weigh = |it: &Referrer| {
        let texts = it.annotations.iter().flat_map(|(key, value)| [key.len(), value.len()]);
        texts.fold(0, usize::saturating_add).saturating_mul(2).saturating_add(512)
    };
    let fits = page.items.iter().take_while(|it| {
        size = size.saturating_add(weigh(it));
        size <= REFERRERS_PAGE_SIZE
    });
    let count = fits.count().max(1);
    if count < page.items.len() {
        page.items.truncate(count);
        page.more = true;
    }
    page
}
