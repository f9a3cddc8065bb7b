//! What there is, for observers that keep a picture of it elsewhere.
//!
//! Events say that something happened, and can be missed. These are levels: every repository has
//! the number of its last change, and a list of what it has. An observer that compares both
//! with what it knows is right again, however much it missed.

use super::Registry;
use crate::error::Error;
use crate::name::Name;
use oci::Digest;

/// A repository and its last change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The repository.
    pub repository: Name,
    /// A number that grows with each change as long as the database is the same one.
    pub number: i64,
}

/// A manifest that is there for itself: a tag leads to it, or neither a tag nor an index does and
/// it refers to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its address.
    pub digest: Digest,
    /// Its tags, in ASCII order.
    pub tags: Vec<String>,
    /// Whether it, or something that it leads to, was found damaged and did not come back.
    pub is_damaged: bool,
}

impl Registry {
    /// Repositories that have manifests, after `last`, at most `length`, with their last changes.
    pub async fn changes(&self, last: &str, length: usize) -> Result<Vec<Changed>, Error> {
        let last = last.to_owned();
        let found = self.ask(move |inner| inner.metadata.changes(&last, length)).await?;
        let tell = |(repository, number)| Changed { repository, number };
        Ok(found.into_iter().map(tell).collect())
    }

    /// What a repository has; nothing if there is no such repository.
    pub async fn heads(&self, name: &Name) -> Result<Vec<Head>, Error> {
        let name = name.clone();
        let found = self.ask(move |inner| match inner.metadata.heads(&name) {
            Err(Error::NameUnknown(_)) => Ok((Vec::new(), Vec::new())),
            heads => Ok((heads?, inner.metadata.damaged(&name)?)),
        });
        let (found, damaged) = found.await?;
        let mut heads: Vec<Head> = Vec::new();
        for (digest, tag) in found {
            if let Some(head) = heads.last_mut().filter(|head| head.digest == digest) {
                head.tags.extend(tag);
                continue;
            }
            let is_damaged = damaged.contains(&digest);
            heads.push(Head { digest, tags: tag.into_iter().collect(), is_damaged });
        }
        Ok(heads)
    }
}
