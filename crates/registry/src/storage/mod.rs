//! A data directory: blobs in files, everything else in a database, views for other tools.
//!
//! Behind two seams: bytes ([`content`]) and what is known of them ([`metadata`]). What is here
//! speaks of whole changes and whole questions, and not of how they are kept.

mod alone;
mod blobs;
mod cache;
mod collect;
mod content;
mod heads;
mod lists;
mod manifests;
mod metadata;
mod rebuild;
mod scrub;
mod uploads;
mod views;

pub use crate::name::Selector;
pub(crate) use blobs::OpenBlob;
pub use collect::{Collect, Collected};
pub(crate) use content::{Source, private};
pub use heads::{Changed, Head};
pub use lists::{Page, Referrer};
pub use manifests::{Manifest, Push, Pushed};
pub use rebuild::{Rebuilt, rebuild};
pub use scrub::Scrubbed;
pub(crate) use uploads::{BodyStream, Holder, Upload};

use crate::error::{Error, OpenError};
use crate::limits::{BLOB_SIZE_MAX, EVENTS_WAITING_MAX, READERS_MAX};
use crate::name::Name;
use crate::observe::Event;
use alone::Alone;
use content::Content;
use content::files::{Files, sync_directory};
use metadata::Metadata;
use metadata::memory::Memory;
use metadata::sqlite::Sqlite;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::{Semaphore, broadcast};

/// Tells what time it is, in milliseconds since 1970.
type Clock = Box<dyn Fn() -> i64 + Send + Sync>;

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
    content: Arc<dyn Content>,
    metadata: Arc<dyn Metadata>,
    /// For questions to the metadata: more at once would only wait for each other.
    readers: Semaphore,
    clock: Clock,
    settings: Settings,
    cache: cache::Cache<Manifest>,
    /// Whole lists of tags.
    tags: cache::Cache<lists::Tags>,
    uploads: uploads::Uploads,
    /// Where there is a directory to draw them in.
    views: Option<views::Views>,
    events: broadcast::Sender<Event>,
    /// Held as long as anybody uses the directory.
    _alone: Option<Arc<Alone>>,
}

impl Registry {
    /// Opens a data directory, making it if it is not there, and finishes what a crash left.
    pub fn open(root: &Path, settings: Settings) -> Result<Self, OpenError> {
        Self::open_with(root, settings, Box::new(now))
    }

    /// The same for tests and simulations: it tells the time that it is told.
    pub fn open_telling(
        root: &Path,
        settings: Settings,
        clock: impl Fn() -> SystemTime + Send + Sync + 'static,
    ) -> Result<Self, OpenError> {
        Self::open_with(root, settings, Box::new(move || since_1970(clock())))
    }

    fn open_with(root: &Path, settings: Settings, clock: Clock) -> Result<Self, OpenError> {
        private::make_directory(root)?;
        let files = Files::new(root);
        let alone = Alone::in_directory(&files)?;
        let fresh = !files.database().exists();
        if fresh && rebuild::has_blobs(&files)? {
            return Err(OpenError::DatabaseMissing(root.to_owned()));
        }
        files.prepare()?;
        let metadata = Sqlite::open(&files.database())?;
        sync_directory(root)?;
        Self::in_directory(files, alone, Arc::new(metadata), settings, clock)
    }

    /// A registry that keeps everything in memory and ends with the process, for tests and
    /// simulations. It tells the time that it is told.
    pub fn in_memory(
        settings: Settings,
        clock: impl Fn() -> SystemTime + Send + Sync + 'static,
    ) -> Self {
        let (content, metadata) = (content::memory::Memory::default(), Memory::default());
        let clock = Box::new(move || since_1970(clock()));
        let storage = (Arc::new(content) as Arc<dyn Content>, Arc::new(metadata) as _);
        Self::assemble(storage, uploads::Uploads::default(), settings, clock, None)
    }

    fn in_directory(
        files: Files,
        alone: Alone,
        metadata: Arc<dyn Metadata>,
        settings: Settings,
        clock: Clock,
    ) -> Result<Self, OpenError> {
        uploads::sweep_at_start(&files, &*metadata)?;
        let restored = uploads::Uploads::restored(&*metadata)?;
        let alone = Arc::new(alone);
        let views = views::Views::start(&files, &metadata, &alone)?;
        let place = Some((alone, views));
        let storage = (Arc::new(files) as Arc<dyn Content>, metadata);
        Ok(Self::assemble(storage, restored, settings, clock, place))
    }

    /// Puts a registry together from its parts.
    fn assemble(
        (content, metadata): (Arc<dyn Content>, Arc<dyn Metadata>),
        uploads: uploads::Uploads,
        settings: Settings,
        clock: Clock,
        place: Option<(Arc<Alone>, views::Views)>,
    ) -> Self {
        let (alone, views) = place.unzip();
        let inner = Inner {
            content,
            metadata,
            readers: Semaphore::new(READERS_MAX),
            clock,
            settings,
            cache: cache::Cache::default(),
            tags: cache::Cache::default(),
            uploads,
            views,
            events: broadcast::Sender::new(EVENTS_WAITING_MAX),
            _alone: alone,
        };
        Self { inner: Arc::new(inner) }
    }

    /// What happens to manifests from now on.
    pub fn observe(&self) -> broadcast::Receiver<Event> {
        self.inner.events.subscribe()
    }

    /// Whether the database answers and the disk has room for pushes.
    pub async fn check(&self) -> Result<(), Error> {
        self.check_space(0)?;
        self.ask(|inner| inner.metadata.check()).await
    }

    /// How it is kept.
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// Waits until the views show everything acknowledged so far.
    pub async fn flush_views(&self) {
        if let Some(views) = &self.inner.views {
            views.flush().await;
        }
    }

    /// Some view is behind.
    fn view_later(&self) {
        if let Some(views) = &self.inner.views {
            views.changed();
        }
    }

    fn tell(&self, event: Event) {
        // An error only says that nobody listens.
        let _ = self.inner.events.send(event);
    }

    pub(crate) fn check_space(&self, more: u64) -> Result<(), Error> {
        let reserve = self.inner.settings.space_reserve.saturating_add(more);
        if self.inner.content.space()? < reserve { Err(Error::SpaceLow) } else { Ok(()) }
    }

    /// Refuses early what would not fit a repository, with what is on its way there; the change
    /// that brings it decides.
    pub(crate) async fn check_quota(&self, name: &Name, more: u64) -> Result<(), Error> {
        let Some(limit) = self.inner.settings.quota else { return Ok(()) };
        let (staged, name) = (self.staged(name), name.clone());
        let used = self.ask(move |inner| inner.metadata.used(&name)).await?;
        let used = used.saturating_add(staged);
        if used.saturating_add(more) > limit { Err(Error::QuotaExceeded { limit }) } else { Ok(()) }
    }

    /// What time it is.
    fn now(&self) -> i64 {
        (self.inner.clock)()
    }

    /// When a lease given now ends.
    fn lease(&self) -> i64 {
        self.now().saturating_add(millis(self.inner.settings.lease))
    }

    /// Asks a question, off the async threads.
    async fn ask<T, F>(&self, question: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Inner) -> Result<T, Error> + Send + 'static,
    {
        let inner = self.inner.clone();
        let _permit = self.inner.readers.acquire().await.map_err(|_| Error::Closed)?;
        blocking(move || question(&inner)).await
    }

    /// Makes a change, off the async threads. Once begun it goes on to its end, even if whoever
    /// asked for it goes away.
    async fn change<T, F>(&self, change: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&dyn Metadata) -> Result<T, Error> + Send + 'static,
    {
        let metadata = self.inner.metadata.clone();
        blocking(move || change(&*metadata)).await
    }
}

/// Runs blocking work off the async threads.
pub(crate) async fn blocking<T, F>(work: F) -> Result<T, Error>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, Error> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Error::Io(std::io::Error::other(error))),
    }
}

/// Milliseconds since 1970.
fn now() -> i64 {
    since_1970(SystemTime::now())
}

fn since_1970(time: SystemTime) -> i64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, millis)
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
