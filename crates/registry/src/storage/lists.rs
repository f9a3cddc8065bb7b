//! Lists, page by page: tags, repositories, referrers. All of them in ASCII order.

use super::cache::Size;
use super::{Registry, find, known, stored_digest};
use crate::error::Error;
use crate::limits::{PAGE_LENGTH_MAX, REFERRERS_PAGE_SIZE};
use crate::name::Name;
use oci::manifest::Annotations;
use oci::{Descriptor, Digest, MediaType};
use rusqlite::{Row, params};
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
        self.0.items.iter().map(|tag| tag.len() + size_of::<String>()).sum()
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
        let limit = one_more(length);
        let read = self.inner.database.read(move |database| {
            let repository = known(database, &name)?;
            let mut statement = database.prepare_cached(
                "SELECT name FROM tag WHERE repository = ?1 AND name > ?2 ORDER BY name LIMIT ?3",
            )?;
            let rows: rusqlite::Result<Vec<String>> =
                statement.query_map(params![repository, last, limit], |row| row.get(0))?.collect();
            Ok(rows?)
        });
        Ok(Page::cut(read.await?, length))
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
        let limit = one_more(length);
        let read = self.inner.database.read(move |database| {
            let repository = known(database, &name)?;
            let mut statement = database.prepare_cached(
                "SELECT digest FROM manifest WHERE repository = ?1 AND digest > ?2
                 ORDER BY digest LIMIT ?3",
            )?;
            let rows: rusqlite::Result<Vec<String>> =
                statement.query_map(params![repository, last, limit], |row| row.get(0))?.collect();
            rows?.iter().map(|text| stored_digest(text)).collect()
        });
        Ok(Page::cut(read.await?, length))
    }

    async fn some_repositories(&self, last: &str, length: usize) -> Result<Vec<Name>, Error> {
        let last = last.to_owned();
        let limit = one_more(length);
        let read = self.inner.database.read(move |database| {
            let mut statement = database.prepare_cached(
                "SELECT name FROM repository WHERE name > ?1
                 AND EXISTS (SELECT 1 FROM manifest WHERE repository = id) ORDER BY name LIMIT ?2",
            )?;
            let rows: rusqlite::Result<Vec<String>> =
                statement.query_map(params![last, limit], |row| row.get(0))?.collect();
            Ok(rows?)
        });
        Ok(read.await?.iter().filter_map(|name| Name::parse(name)).collect())
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
        let (name, subject, last) = (name.clone(), subject.to_string(), last.to_owned());
        let artifact_type = artifact_type.map(str::to_owned);
        let limit = one_more(length);
        let read = self.inner.database.read(move |database| {
            let Some(repository) = find(database, &name)? else { return Ok(Vec::new()) };
            let mut statement = database.prepare_cached(
                "SELECT digest, media_type, size, artifact_type, annotations FROM manifest
                 WHERE repository = ?1 AND subject = ?2 AND digest > ?3
                 AND (?4 IS NULL OR artifact_type = ?4) ORDER BY digest LIMIT ?5",
            )?;
            let mut rows =
                statement.query(params![repository, subject, last, artifact_type, limit])?;
            let mut all = Vec::new();
            while let Some(row) = rows.next()? {
                all.push(referrer(row)?);
            }
            Ok(all)
        });
        Ok(cut_by_size(Page::cut(read.await?, length)))
    }
}

fn one_more(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX).saturating_add(1)
}

fn referrer(row: &Row<'_>) -> Result<Referrer, Error> {
    let digest = stored_digest(&row.get::<_, String>(0)?)?;
    let size: i64 = row.get(2)?;
    let media_type = MediaType::new(&row.get::<_, String>(1)?);
    let mut descriptor = Descriptor::new(media_type, digest, size.unsigned_abs());
    descriptor.artifact_type = row.get(3)?;
    let annotations: Option<String> = row.get(4)?;
    let parsed = annotations.and_then(|text| serde_json::from_str::<Annotations>(&text).ok());
    descriptor.annotations = parsed.unwrap_or_default();
    Ok(descriptor)
}

/// Annotations may be large: a page ends where it would become larger than clients take.
fn cut_by_size(mut page: Page<Referrer>) -> Page<Referrer> {
    let mut size = 0;
    let weigh = |it: &Referrer| {
        let notes: usize = it.annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
        notes * 2 + 512
    };
    let fits = page.items.iter().take_while(|it| {
        size += weigh(it);
        size <= REFERRERS_PAGE_SIZE
    });
    let count = fits.count().max(1);
    if count < page.items.len() {
        page.items.truncate(count);
        page.more = true;
    }
    page
}
