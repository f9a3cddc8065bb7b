//! What packages say, in a database that can be made again at any time.
//!
//! One connection writes, a few read; each question is one read transaction, so that it sees a
//! state before a change or after it. All methods wait for a disk: call them on threads that may.

mod contents;
mod documents;
mod export;
mod facets;
mod fields;
mod graph;
mod groups;
mod import;
mod kinds;
mod offers;
mod order;
mod packages;
mod refresh;
mod resolve;
mod rights;
mod seals;
mod search;
mod shelf;
mod tables;
mod write;

pub use documents::VersionComparison;
pub use import::ImportError;
pub use rights::Rights;
pub use shelf::{Shelf, ShelfQuestion};

use rights::Reader;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::broadcast;

/// The longest list in one answer.
pub const PAGE_LENGTH_MAX: usize = 1000;
/// News that an observer may fall behind before it misses some.
const NEWS_MAX: usize = 1024;
/// Connections that are kept for the next questions.
const READERS_IDLE: usize = 4;

/// Why the index cannot answer or change.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The database failed.
    #[error("the catalog's database failed")]
    Database(#[from] rusqlite::Error),
    /// Its file failed.
    #[error("the catalog's file cannot be used")]
    Io(#[from] std::io::Error),
    /// What was written by us cannot be read.
    #[error("the catalog's database holds what cannot be read")]
    Facts(#[from] serde_json::Error),
    /// It is a file of something else, and stays as it is.
    #[error("the file is not a catalog")]
    Foreign,
    /// A later version of the program wrote it.
    #[error("it has format {0}, which this version does not know")]
    Later(i64),
    /// An earlier version of the program wrote it.
    #[error("it has format {0}, which this version no longer reads")]
    Earlier(i64),
    /// It cannot be made.
    #[error("the catalog's database cannot be made")]
    Format,
}

/// A manifest of a repository that is listed for itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Head {
    /// Its address.
    pub digest: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// Whether some of its bytes were found damaged: it cannot be pulled until they are back.
    pub is_damaged: bool,
}

/// Which part of which list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Words to look for; empty is everything.
    pub words: String,
    /// Only kinds of this group.
    pub group: Option<String>,
    /// Only packages of this type.
    pub kind: Option<String>,
    /// Only packages that have all of these: the name of a facet and its value.
    pub facets: Vec<(String, String)>,
    /// Only packages whose newest version needs this repository, or this kind.
    pub requires: Option<String>,
    /// Where the last page ended.
    pub cursor: Option<String>,
    /// How long the page may be.
    pub limit: usize,
}

impl Question {
    /// The first page about some words.
    pub fn about(words: &str) -> Self {
        Self { words: words.to_owned(), limit: 100, ..Self::default() }
    }

    fn length(&self) -> usize {
        self.limit.clamp(1, PAGE_LENGTH_MAX)
    }
}

/// The catalog.
pub struct Index {
    path: PathBuf,
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Reader>>,
    /// Nothing once there is no more news.
    news: Mutex<Option<broadcast::Sender<String>>>,
}

impl Index {
    /// Opens the index in a file. One that is not there, is damaged or has another format is made
    /// anew, and is empty.
    pub fn open(path: &Path) -> Result<Self, IndexError> {
        Ok(Self::with_writer(path, tables::open_writer(path)?))
    }

    /// Opens the index in a file that a user names, to be asked: a file of anything else is left alone, and one of
    /// another format is refused.
    pub fn open_named(path: &Path) -> Result<Self, IndexError> {
        match Self::named_format(path)? {
            Some(found) if found < tables::FORMAT => Err(IndexError::Earlier(found)),
            _ => Self::open(path),
        }
    }

    /// Opens the index in a file that a user names, to be filled: one that an earlier version of the program wrote
    /// is made anew, and is empty.
    pub fn renew_named(path: &Path) -> Result<Self, IndexError> {
        Self::named_format(path)?;
        Self::open(path)
    }

    /// The format of a file that a user names, if it is a catalog of this format or an earlier one.
    fn named_format(path: &Path) -> Result<Option<i64>, IndexError> {
        match tables::is_catalog(path) {
            Ok(false) => return Err(IndexError::Foreign),
            Ok(true) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        match tables::stored_format(path) {
            Some(found) if found > tables::FORMAT => Err(IndexError::Later(found)),
            found => Ok(found),
        }
    }

    fn with_writer(path: &Path, writer: Connection) -> Self {
        let (news, _) = broadcast::channel(NEWS_MAX);
        let (path, writer) = (path.to_owned(), Mutex::new(writer));
        Self { path, writer, readers: Mutex::default(), news: Mutex::new(Some(news)) }
    }

    /// Tells the names of repositories whose packages change from now on.
    pub fn observe(&self) -> broadcast::Receiver<String> {
        let news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        news.as_ref().map_or_else(|| broadcast::channel(1).1, broadcast::Sender::subscribe)
    }

    /// Lets observers know that nothing more will be told: a server that stops need not wait for them.
    pub fn end_news(&self) {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Tells observers of a repository; without any there is nothing to do.
    fn tell_news(&self, repository: &str) {
        if let Some(news) = &*self.news.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = news.send(repository.to_owned());
        }
    }

    /// Makes a new index in a file, in place of any that is there.
    pub fn create(path: &Path) -> Result<Self, IndexError> {
        tables::remove(path)?;
        Self::open(path)
    }

    /// Throws everything away, if a failure says that the file is damaged; tells whether it did.
    pub fn start_over_after(&self, error: &IndexError) -> Result<bool, IndexError> {
        let IndexError::Database(cause) = error else { return Ok(false) };
        if !tables::is_damage(cause) {
            return Ok(false);
        }
        let mut writer = self.writer();
        self.readers().clear();
        tables::remove(&self.path)?;
        *writer = tables::open_writer(&self.path)?;
        Ok(true)
    }

    fn writer(&self) -> MutexGuard<'_, Connection> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn readers(&self) -> MutexGuard<'_, Vec<Reader>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a question with what the asker may read.
    fn ask<T>(
        &self,
        rights: &Rights,
        question: impl FnOnce(&Connection) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        let idle = self.readers().pop();
        let mut reader = match idle {
            Some(reader) => reader,
            None => Reader::new(tables::open_reader(&self.path)?)?,
        };
        let answer = reader.answer(rights, question);
        let mut readers = self.readers();
        if readers.len() < READERS_IDLE {
            readers.push(reader);
        }
        answer
    }
}
