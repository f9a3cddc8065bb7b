//! The catalog follows the registry: woken by what happens there, it compares what both have, and
//! reads what is new, one package after the other.
//!
//! An event only says where to look. One that was missed, a process that was killed, a database
//! that was made anew: the next comparison finds the difference, and there is one at every start
//! and every few seconds. Pushes are acknowledged before anything of this happens.

use super::failed;
use crate::output;
use crate::panics::contain;
use ::catalog::{Head, Incomplete, Index, IndexError, Outcome as Found};
use ::registry::{Changed, Event, Name, Options, Registry};
use oci::{Digest, Repository, Rules};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use store::auth::Keychain;
use store::remote::{Client, Settings, transport};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

/// The pause between two comparisons with everything: blobs that a manifest has been without come
/// without an event.
const COMPARE_INTERVAL: Duration = Duration::from_secs(5);
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

/// Keeps the catalog true until there is a reason to stop. Layers are spooled in `temporary`.
pub(crate) async fn follow(
    registry: Registry,
    index: Arc<Index>,
    temporary: PathBuf,
    stop: impl Future<Output = ()>,
) {
    let mut stop = std::pin::pin!(stop);
    // Before the first comparison: what happens during it is looked at again.
    let mut events = registry.observe();
    let mut follower = Follower::new(registry, index, temporary);
    let mut look = Look::All;
    loop {
        tokio::select! {
            done = contain(follower.compare(&look)) => {
                follower.tell(done.unwrap_or(Ok(())));
            }
            () = &mut stop => return,
        }
        look = tokio::select! {
            look = next(&mut events) => look,
            () = tokio::time::sleep(COMPARE_INTERVAL) => Look::All,
            () = &mut stop => return,
        };
    }
}

/// Where something happened; what happened meanwhile is looked at together.
async fn next(events: &mut Receiver<Event>) -> Look {
    let mut names = BTreeSet::new();
    match events.recv().await {
        Ok(event) => names.insert(place(event)),
        Err(RecvError::Lagged(_)) => return Look::All,
        // The registry is gone, and with it the process in a moment.
        Err(RecvError::Closed) => return std::future::pending().await,
    };
    loop {
        match events.try_recv() {
            Ok(event) => names.insert(place(event)),
            Err(TryRecvError::Lagged(_)) => return Look::All,
            Err(TryRecvError::Empty | TryRecvError::Closed) => return Look::At(names),
        };
    }
}

fn place(event: Event) -> Name {
    match event {
        Event::Pushed { repository, .. }
        | Event::Tagged { repository, .. }
        | Event::Untagged { repository, .. }
        | Event::Deleted { repository, .. } => repository,
    }
}

/// Why a comparison did not come to its end; the next one begins again.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("the registry does not answer")]
    Registry(#[source] ::registry::Error),
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
    /// What went wrong last; it is told once.
    told: Option<String>,
}

impl Follower {
    fn new(registry: Registry, index: Arc<Index>, temporary: PathBuf) -> Self {
        let router = ::registry::router(registry.clone(), Options::open());
        let packages = Client::new(transport(router), Keychain::anonymous(), Settings::default());
        Self { registry, index, packages, temporary, shown: BTreeMap::new(), told: None }
    }

    async fn compare(&mut self, look: &Look) -> Result<(), Trouble> {
        match look {
            Look::All => self.compare_all().await,
            Look::At(names) => {
                for name in names {
                    self.compare_repository(name).await?;
                }
                Ok(())
            }
        }
    }

    /// Compares every repository that has changed since it was looked at.
    async fn compare_all(&mut self) -> Result<(), Trouble> {
        let (mut there, mut last) = (BTreeSet::new(), String::new());
        loop {
            let page =
                self.registry.changes(&last, PAGE_LENGTH).await.map_err(Trouble::Registry)?;
            let Some(end) = page.last() else { break };
            end.repository.as_str().clone_into(&mut last);
            for Changed { repository, number } in page {
                there.insert(repository.to_string());
                if self.shown.get(&repository) != Some(&number)
                    && self.compare_repository(&repository).await?
                {
                    self.shown.insert(repository, number);
                }
            }
        }
        self.shown.retain(|name, _| there.contains(name.as_str()));
        self.change(move |index| index.retain(&there)).await
    }

    /// Lets the catalog have what a repository has; tells whether it is to be looked at again only
    /// after a change.
    async fn compare_repository(&self, name: &Name) -> Result<bool, Trouble> {
        let heads = self.registry.heads(name).await.map_err(Trouble::Registry)?;
        let told = |head: ::registry::Head| {
            let digest = head.digest.to_string();
            Head { digest, tags: head.tags }
        };
        let heads: Vec<Head> = heads.into_iter().map(told).collect();
        let repository = name.to_string();
        let unread = self.change(move |index| index.settle(&repository, &heads)).await?;
        let mut is_shown = true;
        for digest in unread {
            is_shown &= self.read_package(name, digest).await?;
        }
        Ok(is_shown)
    }

    /// Reads a package and tells the catalog; `false` if it is worth another try.
    async fn read_package(&self, name: &Name, digest: String) -> Result<bool, Trouble> {
        let found = match contain(self.find(name, &digest)).await {
            Some(found) => found,
            None => Ok(Found::Broken("apron broke while it read this".to_owned())),
        };
        match found {
            Ok(outcome) => {
                self.change(move |index| index.learn(&digest, &outcome)).await?;
                Ok(true)
            }
            Err(incomplete) => {
                let is_missing = matches!(incomplete, Incomplete::Missing(_));
                let (repository, reason) = (name.to_string(), incomplete.to_string());
                self.change(move |index| index.postpone(&repository, &digest, &reason)).await?;
                Ok(is_missing)
            }
        }
    }

    async fn find(&self, name: &Name, digest: &str) -> Result<Found, Incomplete> {
        let broken = |error: &dyn std::fmt::Display| Ok(Found::Broken(error.to_string()));
        let place = match Repository::parse(&format!("{HERE}/{name}"), &Rules::weak()) {
            Ok(place) => place,
            Err(error) => return broken(&error),
        };
        let digest: Digest = match digest.parse() {
            Ok(digest) => digest,
            Err(error) => return broken(&error),
        };
        ::catalog::read(&self.packages.repository(place), &digest, &self.temporary).await
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

    /// Tells what went wrong, once.
    fn tell(&mut self, done: Result<(), Trouble>) {
        let Err(trouble) = done else {
            self.told = None;
            return;
        };
        // What was shown may be gone with a damaged file.
        self.shown.clear();
        let text = trouble.to_string();
        if self.told.as_ref() == Some(&text) {
            return;
        }
        match trouble {
            Trouble::Index(error) => output::fail(&failed("the catalog falls behind", &error)),
            Trouble::Registry(error) => {
                output::fail(&super::super::failed("the catalog falls behind", &error));
            }
        }
        self.told = Some(text);
    }
}
