//! # Room `journal`: one writer, every version, nothing acknowledged before it is durable
//!
//! The log that the API server's objects lie in, from which it serves watches and reads of the past.
//!
//! ```text
//!  write(key, expect, change) ──► writer ──► Disk::commit (one sync for the whole batch)
//!                                   │              │
//!                                   │  refused: Conflict(what is there)
//!                                   ▼              ▼
//!                        State: key → entry   ring of events ──► after(version): watches
//! ```
//!
//! Every accepted write gets the next *version*, a number that only grows and is never
//! used twice. Readers see the state after the last durable batch; nobody, not even the
//! client that sent it, sees a write that could still be lost. While one batch is being
//! synced the next one collects, so many clients share one sync (group commit).
//!
//! The past is kept for a window ([`Limits`]): reads at an older version are answered by
//! undoing the events since, watches start from any version inside the window, and what
//! lies before it is [`Expired`].
//!
//! A [`Disk`] is where batches become durable: [`Sqlite`], with a record of what was acknowledged beside it
//! (`acknowledged`), or [`Memory`]. Start with [`Log::write`], then `writer` and `state`.
//!
//! The room refuses to know what keys and texts mean, who writes, and the time.

#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
mod acknowledged;
#[cfg(test)]
mod damage;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
mod disk;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
mod memory;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
mod reserve;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
mod sqlite;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
mod state;
#[cfg(test)]
mod tests;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
mod writer;

use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;

pub use disk::{Damage, Disk, DiskError, Record, Recovered};
pub use memory::Memory;
pub use sqlite::Sqlite;
use state::State;
use writer::Writer;

/// How much of the past is kept.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The most events kept for watches and for reads at older versions.
    pub events_max: usize,
    /// The most bytes of object text these events may hold.
    pub bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { events_max: 100_000, bytes_max: 128 << 20 }
    }
}

/// One object as stored: the version of its last write and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The version that wrote it.
    pub version: u64,
    /// Its text.
    pub value: Bytes,
}

/// Something that happened to one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When, in versions.
    pub version: u64,
    /// To which key.
    pub key: Arc<str>,
    /// The text afterwards; `None` says it was removed.
    pub value: Option<Bytes>,
    /// What was there before.
    pub previous: Option<Entry>,
}

/// What a write expects to find; anything else refuses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing under this key.
    Absent,
    /// The object at exactly this version.
    Version(u64),
}

/// One write: if `key` is as expected, make it `value` (or remove it).
#[derive(Debug, Clone)]
pub struct Write {
    /// The key.
    pub key: String,
    /// The condition.
    pub expect: Expect,
    /// The new text, or `None` to remove.
    pub value: Option<Bytes>,
}

/// Why a write did not happen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The key is not as expected; this is what is there now.
    #[error("the object is not as expected")]
    Conflict(Option<Entry>),
    /// The disk failed, the log was closed, or the writer panicked over this.
    #[error("the log cannot be written: {0}")]
    Broken(Arc<str>),
}

/// The version asked for lies before the window the log keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("version {asked} is older than the oldest kept, {oldest}")]
pub struct Expired {
    /// What was asked for.
    pub asked: u64,
    /// The oldest version that can be read.
    pub oldest: u64,
}

/// Some keys and their entries, all as of one version.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The version this is the state of.
    pub version: u64,
    /// Keys in order.
    pub entries: Vec<(Arc<str>, Entry)>,
}

/// The log: cheap to clone, shared by every request.
#[derive(Clone)]
pub struct Log {
    shared: Arc<Shared>,
    writer: Arc<Writer>,
}

pub(crate) struct Shared {
    state: RwLock<State>,
    committed: tokio::sync::watch::Sender<u64>,
    trouble: tokio::sync::watch::Sender<Option<Arc<str>>>,
}

impl Log {
    /// A log on `disk`: reads back what it holds, then starts the writer thread.
    pub fn open(mut disk: Box<dyn Disk>, limits: Limits) -> Result<Self, DiskError> {
        let shared = Arc::new(Shared::new(State::recover(disk.recover()?, limits)?));
        let writer = Writer::thread(disk, Arc::clone(&shared))?;
        Ok(Self { shared, writer: Arc::new(writer) })
    }

    /// A log that lives and dies with the process. Writes happen in the calling task, so
    /// that a simulation with a paused clock stays deterministic.
    pub fn in_memory() -> Self {
        Self::inline(Box::new(Memory), Limits::default())
    }

    /// A log whose writes happen in the calling task, on an empty `disk`.
    pub fn inline(disk: Box<dyn Disk>, limits: Limits) -> Self {
        let shared = Arc::new(Shared::new(State::empty(limits)));
        let writer = Writer::inline(disk, Arc::clone(&shared));
        Self { shared, writer: Arc::new(writer) }
    }

    /// Another log that begins with everything this one has, past and present, and lives in
    /// memory; what is written to one is not in the other. Texts are shared, so it costs little.
    #[must_use]
    pub fn fork(&self) -> Self {
        let shared = Arc::new(Shared::new(self.read(State::clone)));
        let writer = Writer::inline(Box::new(Memory), Arc::clone(&shared));
        Self { shared, writer: Arc::new(writer) }
    }

    /// The version of the last durable write.
    pub fn version(&self) -> u64 {
        self.read(State::version)
    }

    /// What is under `key` now.
    pub fn get(&self, key: &str) -> Option<Entry> {
        self.read(|state| state.get(key))
    }

    /// All entries whose key starts with `prefix`, now or `at` an older version.
    pub fn list(&self, prefix: &str, at: Option<u64>) -> Result<Snapshot, Expired> {
        self.read(|state| state.list(prefix, at))
    }

    /// Up to `limit` events after `version` on keys that start with `prefix`, and the
    /// version up to which there is nothing more to tell.
    pub fn after(
        &self,
        version: u64,
        prefix: &str,
        limit: usize,
    ) -> Result<(Vec<Arc<Event>>, u64), Expired> {
        self.read(|state| state.after(version, prefix, limit))
    }

    /// The oldest version that can still be read or watched from.
    pub fn oldest(&self) -> u64 {
        self.read(State::oldest)
    }

    /// A receiver that wakes whenever a batch becomes durable.
    pub fn committed(&self) -> tokio::sync::watch::Receiver<u64> {
        self.shared.committed.subscribe()
    }

    /// Why nothing can be written, as long as that is so. It is found out, and found to be over,
    /// by writing or by [`Self::probe`].
    pub fn trouble(&self) -> tokio::sync::watch::Receiver<Option<Arc<str>>> {
        self.shared.trouble.subscribe()
    }

    /// Finds out whether trouble is over, if there is any.
    pub async fn probe(&self) {
        if self.shared.trouble.borrow().is_some() {
            self.writer.probe().await;
        }
    }

    /// Writes, and answers with the version once it is durable.
    pub async fn write(&self, write: Write) -> Result<u64, WriteError> {
        self.writer.write(write).await
    }

    /// Ends the log: what was written lies in one file afterwards, and nothing is written any more.
    pub async fn close(&self) -> Result<(), WriteError> {
        self.writer.close().await
    }

    /// Forgets events up to `version`, as if the window had moved on. For tests and
    /// operators; the window moves by itself.
    pub fn forget(&self, version: u64) {
        self.shared.with(|state| state.forget(version));
    }

    fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.shared.state.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shared {
    fn new(state: State) -> Self {
        let committed = tokio::sync::watch::Sender::new(state.version());
        let trouble = tokio::sync::watch::Sender::new(None);
        Self { state: RwLock::new(state), committed, trouble }
    }

    /// Says whether anything can be written; whoever listens hears of changes only.
    fn report(&self, why: Option<&Arc<str>>) {
        self.trouble.send_if_modified(|trouble| {
            let changed = trouble.is_some() != why.is_some();
            *trouble = why.cloned();
            changed
        });
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn announce(&self, version: u64) {
        self.committed.send_replace(version);
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("version", &self.version()).finish_non_exhaustive()
    }
}
