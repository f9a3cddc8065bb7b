//! Who is to be looked at next, and when.
//!
//! A key is looked at by one at a time. Being woken again meanwhile is remembered, so nothing is
//! missed; being woken ten times before its turn comes is one turn. What failed waits, twice as
//! long each time, from [`BACKOFF`] to [`BACKOFF_MAX`]; news about it ends the wait, but where the
//! failure was told for the first second of it: that is news, too, and if each failure has words
//! of its own, there would be no end to it.
//!
//! All waiting is done on tokio's clock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The wait after the first failure.
pub const BACKOFF: Duration = Duration::from_secs(1);
/// The longest wait after a failure.
pub const BACKOFF_MAX: Duration = Duration::from_secs(60);

/// How looking at a key ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Well: it is looked at again when something changes, and after this long, if given.
    Well(Option<Duration>),
    /// Not well: it is looked at again after a while.
    Badly {
        /// No later than after this long.
        at_most: Option<Duration>,
        /// Whether news does not count for a moment, because it may be of this failure.
        rests: bool,
    },
}

/// The keys of one kind.
#[derive(Debug, Default)]
pub struct Queue {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    /// Whose turn it is.
    ready: VecDeque<String>,
    /// Who waits for a time. A key has one entry at most.
    due: BTreeSet<(Instant, String)>,
    keys: BTreeMap<String, Slot>,
    /// Every object of the kind itself, for news that concerns all of them.
    known: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Slot {
    is_ready: bool,
    is_running: bool,
    /// Woken while it was being looked at.
    is_stale: bool,
    due: Option<Instant>,
    failures: u32,
    /// News does not count before this.
    rest: Option<Instant>,
}

impl Queue {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something happened that concerns a key.
    pub fn wake(&self, key: &str) {
        self.inner().wake(key);
        self.changed.notify_one();
    }

    /// Something happened that concerns everyone.
    pub fn wake_everyone(&self) {
        let mut inner = self.inner();
        for key in inner.known.clone() {
            inner.wake(&key);
        }
        drop(inner);
        self.changed.notify_one();
    }

    /// An object of the kind itself is there, or is gone.
    pub fn know(&self, key: &str, is_there: bool) {
        let mut inner = self.inner();
        if is_there {
            inner.known.insert(key.to_owned());
        } else {
            inner.known.remove(key);
        }
    }

    /// How many wait for their turn.
    pub fn depth(&self) -> usize {
        self.inner().ready.len()
    }

    /// The next key whose turn it is; whoever takes it says how it [`ended`](Self::ended).
    pub async fn next(&self) -> String {
        loop {
            let changed = self.changed.notified();
            let (key, due) = self.inner().take(Instant::now());
            if let Some(key) = key {
                // Others may be ready too, and a notification wakes only one.
                self.changed.notify_one();
                return key;
            }
            match due {
                None => changed.await,
                Some(due) => tokio::select! {
                    () = changed => {}
                    () = sleep_until(due) => {}
                },
            }
        }
    }

    /// A key has been looked at.
    pub fn ended(&self, key: &str, how: Ended) {
        self.inner().ended(key, how, Instant::now());
        self.changed.notify_one();
    }
}

impl Inner {
    fn wake(&mut self, key: &str) {
        let slot = self.keys.entry(key.to_owned()).or_default();
        if slot.is_running {
            slot.is_stale = true;
            return;
        }
        let rest = slot.rest.filter(|rest| *rest > Instant::now());
        if let Some(due) = slot.due.take() {
            self.due.remove(&(due, key.to_owned()));
        }
        if let Some(rest) = rest {
            slot.due = Some(rest);
            self.due.insert((rest, key.to_owned()));
            return;
        }
        if !slot.is_ready {
            slot.is_ready = true;
            self.ready.push_back(key.to_owned());
        }
    }

    /// The next key, or when there will be one.
    fn take(&mut self, now: Instant) -> (Option<String>, Option<Instant>) {
        while let Some((due, key)) = self.due.first().cloned().filter(|(due, _)| *due <= now) {
            self.due.remove(&(due, key.clone()));
            self.wake(&key);
        }
        let Some(key) = self.ready.pop_front() else {
            return (None, self.due.first().map(|(due, _)| *due));
        };
        if let Some(slot) = self.keys.get_mut(&key) {
            (slot.is_ready, slot.is_running, slot.due) = (false, true, None);
        }
        (Some(key), None)
    }

    fn ended(&mut self, key: &str, how: Ended, now: Instant) {
        let Some(slot) = self.keys.get_mut(key) else { return };
        slot.is_running = false;
        slot.rest = None;
        let wait = match how {
            Ended::Well(after) => {
                slot.failures = 0;
                after
            }
            Ended::Badly { at_most, rests } => {
                let wait = backoff(slot.failures);
                slot.failures = slot.failures.saturating_add(1);
                let wait = at_most.map_or(wait, |at_most| wait.min(at_most));
                slot.rest = rests.then(|| now + wait.min(BACKOFF));
                Some(wait)
            }
        };
        if std::mem::take(&mut slot.is_stale) {
            return self.wake(key);
        }
        match wait {
            Some(wait) => {
                slot.due = Some(now + wait);
                self.due.insert((now + wait, key.to_owned()));
            }
            None if slot.failures == 0 => {
                self.keys.remove(key);
            }
            None => {}
        }
    }
}

fn backoff(failures: u32) -> Duration {
    BACKOFF.saturating_mul(1 << failures.min(16)).min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BADLY: Ended = Ended::Badly { at_most: None, rests: true };

    async fn waited(queue: &Queue) -> Duration {
        let start = Instant::now();
        queue.next().await;
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_looked_at_by_one_at_a_time_and_no_news_is_missed() {
        let queue = Queue::default();
        queue.wake("a");
        queue.wake("a");
        queue.wake("b");
        assert_eq!((queue.next().await, queue.next().await), ("a".to_owned(), "b".to_owned()));
        queue.wake("a");
        assert_eq!(queue.depth(), 0, "a is being looked at");
        queue.ended("b", Ended::Well(None));
        queue.ended("a", Ended::Well(None));
        assert_eq!(queue.next().await, "a", "it was woken meanwhile");
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_waits_twice_as_long_each_time_up_to_a_minute() {
        let queue = Queue::default();
        queue.wake("a");
        queue.next().await;
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            queue.ended("a", BADLY);
            assert_eq!(waited(&queue).await.as_secs(), seconds);
        }
        queue.ended("a", Ended::Badly { at_most: Some(Duration::from_secs(5)), rests: true });
        assert_eq!(waited(&queue).await.as_secs(), 5);
        queue.ended("a", Ended::Well(None));
        queue.wake("a");
        queue.next().await;
        queue.ended("a", BADLY);
        assert_eq!(waited(&queue).await.as_secs(), 1, "what went well is forgiven");
    }

    #[tokio::test(start_paused = true)]
    async fn news_ends_a_wait() {
        let queue = Queue::default();
        queue.wake("a");
        queue.next().await;
        queue.ended("a", Ended::Well(Some(Duration::from_secs(60))));
        queue.wake("a");
        assert_eq!(waited(&queue).await.as_secs(), 0);
        queue.ended("a", Ended::Well(None));
        let late = tokio::time::timeout(Duration::from_secs(3600), queue.next()).await;
        assert!(late.is_err(), "the old wait is gone");
    }

    #[tokio::test(start_paused = true)]
    async fn news_of_a_failure_does_not_come_at_once_however_often_it_comes() {
        let queue = Queue::default();
        queue.wake("a");
        queue.next().await;
        for is_told_meanwhile in [true, false, true, false] {
            if is_told_meanwhile {
                queue.wake("a");
            }
            queue.ended("a", BADLY);
            queue.wake("a");
            queue.wake("a");
            assert_eq!(waited(&queue).await.as_secs(), 1);
        }
        queue.ended("a", Ended::Badly { at_most: None, rests: false });
        queue.wake("a");
        assert_eq!(waited(&queue).await.as_secs(), 0, "it was not told of");
        queue.ended("a", BADLY);
        tokio::time::sleep(Duration::from_secs(2)).await;
        queue.wake("a");
        assert_eq!(waited(&queue).await.as_secs(), 0, "news ends a longer wait");
    }

    #[tokio::test(start_paused = true)]
    async fn everyone_is_who_was_seen_and_is_not_gone() {
        let queue = Queue::default();
        for key in ["a", "b", "c"] {
            queue.know(key, true);
        }
        queue.know("b", false);
        queue.wake_everyone();
        assert_eq!((queue.next().await, queue.next().await), ("a".to_owned(), "c".to_owned()));
        assert_eq!(queue.depth(), 0);
    }
}
