//! A data directory: blobs in files, everything else in a database, views for other tools.

mod blobs;
mod cache;
mod collect;
mod database;
mod files;
mod lists;
mod manifests;
mod quota;
mod rebuild;
mod rows;
mod schema;
mod scrub;
mod uploads;
mod views;

pub use crate::name::Selector;
pub(crate) use blobs::OpenBlob;
pub use collect::{Collect, Collected};
pub(crate) use database::blocking;
pub use lists::{Page, Referrer};
pub use manifests::{Manifest, Push, Pushed};
pub use rebuild::{Rebuilt, rebuild};
pub use scrub::Scrubbed;
pub(crate) use uploads::{BodyStream, Upload};

use crate::error::{Error, OpenError};
use crate::limits::{BLOB_SIZE_MAX, EVENTS_WAITING_MAX};
use crate::name::Name;
use crate::observe::Event;
use database::Database;
use files::Files;
use oci::Digest;
use rusqlite::{Connection, OptionalExtension, Transaction};
use std::fs::File;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::broadcast;

/// Mutexes that digests share; more than there are pushes at once.
const STRIPES: usize = 256;

/// Whether tags that are versions may move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Versions {
    /// `v1.2.3` means one manifest for ever, unless it is deleted.
    Stay,
    /// All tags may move.
    Move,
}

/// Whether a manifest may name what is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// It is refused.
    Refuse,
    /// It is kept, as mirrors want it.
    Accept,
}

/// How a data directory is kept.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a blob that nothing refers to is safe after a client has seen it.
    pub lease: Duration,
    /// Bytes of the disk that pushes must leave free.
    pub space_reserve: u64,
    /// Whether version tags may move.
    pub versions: Versions,
    /// Whether manifests may name what is not there.
    pub missing: Missing,
    /// The most bytes of one blob.
    pub blob_size_max: u64,
    /// The most bytes of one repository, counting what it shares with others.
    pub quota: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(3600),
            space_reserve: 256 << 20,
            versions: Versions::Stay,
            missing: Missing::Refuse,
            blob_size_max: BLOB_SIZE_MAX,
            quota: None,
        }
    }
}

/// A registry's content: a handle on one data directory, cheap to clone.
#[derive(Clone)]
pub struct Registry {
    inner: Arc<Inner>,
}

struct Inner {
    files: Files,
    database: Database,
    settings: Settings,
    cache: cache::Cache<Manifest>,
    /// Whole lists of tags.
    tags: cache::Cache<lists::Tags>,
    uploads: uploads::Uploads,
    views: views::Views,
    events: broadcast::Sender<Event>,
    stripes: Vec<Mutex<()>>,
    /// Held as long as the registry is open; no second process gets it.
    _lock: File,
}

impl Registry {
    /// Opens a data directory, making it if it is not there, and finishes what a crash left.
    pub fn open(root: &Path, settings: Settings) -> Result<Self, OpenError> {
        fs_err::create_dir_all(root)?;
        let files = Files::new(root);
        let lock = lock(&files)?;
        let fresh = !files.database().exists();
        if fresh && rebuild::has_blobs(&files)? {
            return Err(OpenError::DatabaseMissing(root.to_owned()));
        }
        files.prepare()?;
        let database = Database::open(&files.database())?;
        files::sync_directory(root)?;
        uploads::sweep_at_start(&files)?;
        let views = views::Views::start(&files, &database)?;
        let inner = Inner {
            files,
            database,
            settings,
            cache: cache::Cache::default(),
            tags: cache::Cache::default(),
            uploads: uploads::Uploads::default(),
            views,
            events: broadcast::Sender::new(EVENTS_WAITING_MAX),
            stripes: (0..STRIPES).map(|_| Mutex::default()).collect(),
            _lock: lock,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What happens to manifests from now on.
    pub fn observe(&self) -> broadcast::Receiver<Event> {
        self.inner.events.subscribe()
    }

    /// Whether the database answers and the disk has room for pushes.
    pub async fn check(&self) -> Result<(), Error> {
        self.check_space(0)?;
        self.inner
            .database
            .read(|database| Ok(database.query_row("SELECT 1", [], |_| Ok(()))?))
            .await
    }

    /// How it is kept.
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// Waits until the views show everything acknowledged so far.
    pub async fn flush_views(&self) {
        self.inner.views.flush().await;
    }

    fn tell(&self, event: Event) {
        // An error only says that nobody listens.
        let _ = self.inner.events.send(event);
    }

    pub(crate) fn check_space(&self, more: u64) -> Result<(), Error> {
        let reserve = self.inner.settings.space_reserve.saturating_add(more);
        if self.inner.files.space()? < reserve { Err(Error::SpaceLow) } else { Ok(()) }
    }

    /// When a lease given now ends.
    fn lease(&self) -> i64 {
        now().saturating_add(millis(self.inner.settings.lease))
    }

    /// Keeps everybody else from giving this digest a file or taking it away. Whoever holds one
    /// waits for the disk and for nothing else.
    fn hold(&self, digest: &Digest) -> MutexGuard<'_, ()> {
        let hash = BuildHasherDefault::<DefaultHasher>::new().hash_one(digest);
        let index = usize::try_from(hash % STRIPES as u64).unwrap_or_default();
        self.inner.stripes[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lock(files: &Files) -> Result<File, OpenError> {
    let file = fs_err::OpenOptions::new().create(true).append(true).open(files.lock())?;
    let file = file.into_parts().0;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(OpenError::InUse(files.root().to_owned())),
        Err(std::fs::TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Milliseconds since 1970.
fn now() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, millis)
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// The number of a repository.
fn find(database: &Connection, name: &Name) -> Result<Option<i64>, Error> {
    let mut statement = database.prepare_cached("SELECT id FROM repository WHERE name = ?1")?;
    Ok(statement.query_row([name.as_str()], |row| row.get(0)).optional()?)
}

/// The number of a repository that must be there.
fn known(database: &Connection, name: &Name) -> Result<i64, Error> {
    find(database, name)?.ok_or_else(|| Error::NameUnknown(name.clone()))
}

/// The number of a repository, which is made if need be.
fn ensure(transaction: &Transaction<'_>, name: &Name) -> Result<i64, Error> {
    if let Some(id) = find(transaction, name)? {
        return Ok(id);
    }
    transaction
        .prepare_cached("INSERT INTO repository (name, viewed) VALUES (?1, 1)")?
        .execute([name.as_str()])?;
    Ok(transaction.last_insert_rowid())
}

/// A digest that we wrote into the database ourselves.
fn stored_digest(text: &str) -> Result<Digest, Error> {
    text.parse().map_err(|error| Error::Io(std::io::Error::other(error)))
}

/// A size as the database keeps it.
fn stored_size(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}
