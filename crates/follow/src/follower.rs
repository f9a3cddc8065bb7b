//! The catalog follows the registry: woken by what happens there, it compares what both have, and
//! reads what is new, one package after the other.

use catalog::{Head, Incomplete, Index, IndexError, Outcome as Found};
use futures::FutureExt as _;
use oci::{Digest, Repository, Rules};
use registry::{Changed, Event, Name, Options, Registry};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use store::auth::Keychain;
use store::remote::{Client, Settings, transport};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

/// How long something that could not be read is left alone.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Repositories that are listed at once.
const PAGE_LENGTH: usize = 1000;
/// The registry's name for readers in the same process.
const HERE: &str = "127.0.0.1:1";

/// What to compare.
#[derive(Debug, PartialEq, Eq)]
enum Look {
    All,
    At(BTreeSet<Name>),
}

/// Keeps the catalog true until there is a reason to stop; then there is no more news of it. Layers are
/// spooled in `temporary`; what goes wrong is told once.
pub async fn follow(
    registry: Registry,
    index: Arc<Index>,
    temporary: PathBuf,
    stop: impl Future<Output = ()>,
    tell: impl FnMut(&Trouble),
) {
    tokio::select! {
        () = keep_true(registry, index.clone(), temporary, tell) => {}
        () = stop => {}
    }
    index.end_news();
}

/// Compares the catalog with the registry, again and again.
async fn keep_true(
    registry: Registry,
    index: Arc<Index>,
    temporary: PathBuf,
    mut tell: impl FnMut(&Trouble),
) {
    // Before the first comparison: what happens during it is looked at again.
    let mut events = registry.observe();
    let mut follower = Follower::new(registry, index, temporary);
    let mut look = Look::All;
    loop {
        let done = contain_panic(Box::pin(follower.compare(&look))).await;
        if let Some(trouble) = follower.note_end(done.unwrap_or(Ok(()))) {
            tell(&trouble);
        }
        let is_behind = follower.is_behind;
        look = tokio::select! {
            look = next_look(&mut events, &follower.awaiting) => look,
            () = tokio::time::sleep(RETRY_INTERVAL), if is_behind => Look::All,
        };
    }
}

/// Does one piece of work that is done again and again; none if it panicked, which the hook told.
async fn contain_panic<T>(work: impl Future<Output = T>) -> Option<T> {
    AssertUnwindSafe(work).catch_unwind().await.ok()
}

/// Where something happened that matters; what happened meanwhile is looked at together.
async fn next_look(events: &mut Receiver<Event>, awaiting: &BTreeSet<Name>) -> Look {
    let mut names = BTreeSet::new();
    loop {
        match events.recv().await {
            Ok(event) => names.extend(changed_place(event, awaiting)),
            Err(RecvError::Lagged(_)) => return Look::All,
            // The registry is gone, and with it the process in a moment.
            Err(RecvError::Closed) => return std::future::pending().await,
        }
        loop {
            match events.try_recv() {
                Ok(event) => names.extend(changed_place(event, awaiting)),
                Err(TryRecvError::Lagged(_)) => return Look::All,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        if !names.is_empty() {
            return Look::At(names);
        }
    }
}

/// The repository to look at. Blobs matter where a manifest has been without one.
fn changed_place(event: Event, awaiting: &BTreeSet<Name>) -> Option<Name> {
    match event {
        Event::Pushed { repository, .. }
        | Event::Tagged { repository, .. }
        | Event::Untagged { repository, .. }
        | Event::Damaged { repository, .. }
        | Event::Deleted { repository, .. } => Some(repository),
        Event::Completed { repository, .. } => Some(repository).filter(|it| awaiting.contains(it)),
    }
}

/// Why a comparison did not come to its end; the next one begins again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    /// The registry failed.
    #[error("the registry does not answer")]
    Registry(#[source] registry::Error),
    /// The catalog failed.
    #[error(transparent)]
    Index(#[from] IndexError),
}

struct Follower {
    registry: Registry,
    index: Arc<Index>,
    packages: Client,
    temporary: PathBuf,
    /// The last change of each repository that the catalog shows entirely.
    shown: BTreeMap<Name, i64>,
    /// Repositories with a manifest some part of which is not there yet.
    awaiting: BTreeSet<Name>,
    /// Whether something could not be read that was there.
    is_behind: bool,
    /// What went wrong last; it is told once.
    told: Option<String>,
}

/// What became of a version that was not read before.
enum VersionReading {
    Done,
    /// A part of it is not there: an event tells when it is.
    Awaited,
    /// It is worth another try.
    Failed,
}

impl Follower {
    fn new(registry: Registry, index: Arc<Index>, temporary: PathBuf) -> Self {
        let router = registry::router(registry.clone(), Options::open());
        let packages = Client::new(transport(router), Keychain::anonymous(), Settings::default());
        Self {
            registry,
            index,
            packages,
            temporary,
            shown: BTreeMap::new(),
            awaiting: BTreeSet::new(),
            is_behind: false,
            told: None,
        }
    }

    async fn compare(&mut self, look: &Look) -> Result<(), Trouble> {
        // Until this comparison has come to its end.
        let was_behind = std::mem::replace(&mut self.is_behind, true);
        let is_behind = match look {
            Look::All => self.compare_all().await?,
            Look::At(names) => {
                let mut is_behind = was_behind;
                for name in names {
                    is_behind |= !self.compare_repository(name).await?;
                }
                is_behind
            }
        };
        self.is_behind = is_behind;
        Ok(())
    }

    /// Compares every repository that has changed since it was looked at; tells whether one is worth
    /// another try.
    async fn compare_all(&mut self) -> Result<bool, Trouble> {
        let (mut there, mut last, mut is_behind) = (BTreeSet::new(), String::new(), false);
        loop {
            let page =
                self.registry.changes(&last, PAGE_LENGTH).await.map_err(Trouble::Registry)?;
            let Some(end) = page.last() else { break };
            end.repository.as_str().clone_into(&mut last);
            for Changed { repository, number } in page {
                there.insert(repository.to_string());
                let is_awaiting = self.awaiting.contains(&repository);
                if self.shown.get(&repository) == Some(&number) && !is_awaiting {
                    continue;
                }
                if self.compare_repository(&repository).await? {
                    self.shown.insert(repository, number);
                } else {
                    is_behind = true;
                }
            }
        }
        self.shown.retain(|name, _| there.contains(name.as_str()));
        self.awaiting.retain(|name| there.contains(name.as_str()));
        self.change(move |index| index.retain(&there)).await?;
        Ok(is_behind)
    }

    /// Lets the catalog have what a repository has; tells whether it is to be looked at again only
    /// after a change.
    async fn compare_repository(&mut self, name: &Name) -> Result<bool, Trouble> {
        let heads = self.registry.heads(name).await.map_err(Trouble::Registry)?;
        let told = |registry::Head { digest, tags, is_damaged }: registry::Head| Head {
            digest: digest.to_string(),
            tags,
            is_damaged,
        };
        let heads: Vec<Head> = heads.into_iter().map(told).collect();
        let repository = name.to_string();
        // What is damaged comes back with a blob, as what was never there comes with one.
        let (mut is_shown, mut is_awaiting) = (true, heads.iter().any(|head| head.is_damaged));
        let unread = self.change(move |index| index.settle(&repository, &heads)).await?;
        for digest in unread {
            match self.read_package(name, digest).await? {
                VersionReading::Done => {}
                VersionReading::Awaited => is_awaiting = true,
                VersionReading::Failed => is_shown = false,
            }
        }
        if is_awaiting {
            self.awaiting.insert(name.clone());
        } else {
            self.awaiting.remove(name);
        }
        Ok(is_shown)
    }

    /// Reads a package and tells the catalog.
    async fn read_package(&self, name: &Name, digest: String) -> Result<VersionReading, Trouble> {
        let found = match contain_panic(self.find(name, &digest)).await {
            Some(found) => found,
            None => Ok(Found::Broken("apron broke while it read this".to_owned())),
        };
        match found {
            Ok(outcome) => {
                self.change(move |index| index.learn(&digest, &outcome)).await?;
                Ok(VersionReading::Done)
            }
            Err(incomplete) => {
                let is_missing = !matches!(incomplete, Incomplete::Store(_));
                let (repository, reason) = (name.to_string(), incomplete.to_string());
                self.change(move |index| index.postpone(&repository, &digest, &reason)).await?;
                Ok(if is_missing { VersionReading::Awaited } else { VersionReading::Failed })
            }
        }
    }

    async fn find(&self, name: &Name, digest: &str) -> Result<Found, Incomplete> {
        let place = Repository::parse(&format!("{HERE}/{name}"), &Rules::weak()).ok();
        let Some((place, digest)) = place.zip(digest.parse::<Digest>().ok()) else {
            return Ok(Found::Broken(format!("{name}@{digest} is no name of a package")));
        };
        catalog::read(&self.packages.repository(place), &digest, &self.temporary).await
    }

    /// Changes the catalog, off the async threads; a damaged one is begun again.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Index) -> Result<T, IndexError> + Send + 'static,
    ) -> Result<T, Trouble> {
        let index = self.index.clone();
        let work = move || {
            let result = change(&index);
            if let Err(error) = &result {
                index.start_over_after(error)?;
            }
            result
        };
        let done = tokio::task::spawn_blocking(work).await;
        let done = done.map_err(|error| IndexError::Io(std::io::Error::other(error)))?;
        Ok(done?)
    }

    /// What went wrong, unless that was told before.
    fn note_end(&mut self, done: Result<(), Trouble>) -> Option<Trouble> {
        let Err(trouble) = done else {
            self.told = None;
            return None;
        };
        // What was shown may be gone with a damaged file.
        self.shown.clear();
        let text = trouble.to_string();
        if self.told.as_ref() == Some(&text) {
            return None;
        }
        self.told = Some(text);
        Some(trouble)
    }
}
