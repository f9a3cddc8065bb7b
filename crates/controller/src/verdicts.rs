//! What the lock says about revisions, for those who look after them.
//!
//! The lock is looked at as a whole, and what comes of it concerns single revisions. It is kept
//! here; whoever asks for [`news`](Verdicts::news) hears of those, and only those, of which
//! something else is said than before.

use plan::lock::Verdict;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use tokio::sync::broadcast;

/// News that may wait to be heard; who is further behind looks at everyone.
const NEWS_MAX: usize = 1024;

/// What the lock says about each revision.
#[derive(Debug)]
pub struct Verdicts {
    known: Mutex<BTreeMap<(String, String), Verdict>>,
    news: broadcast::Sender<String>,
}

impl Default for Verdicts {
    fn default() -> Self {
        Self { known: Mutex::default(), news: broadcast::Sender::new(NEWS_MAX) }
    }
}

impl Verdicts {
    /// What the lock says about a revision; nothing while it has not been asked.
    pub fn of(&self, kind: &str, name: &str) -> Option<Verdict> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(kind.to_owned(), name.to_owned())).cloned()
    }

    /// The names of revisions of which something new is said from now on.
    pub fn news(&self) -> broadcast::Receiver<String> {
        self.news.subscribe()
    }

    /// The lock says this now.
    pub(crate) fn publish(&self, now: BTreeMap<(String, String), Verdict>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *known, now);
        for (revision, verdict) in &*known {
            if before.get(revision) != Some(verdict) {
                // That nobody listens is no trouble.
                let _ = self.news.send(revision.1.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::lock::Counts;

    #[test]
    fn only_news_is_told() {
        let verdicts = Verdicts::default();
        let mut news = verdicts.news();
        let waiting = || Verdict::Waiting(Counts::default(), "for b".to_owned());
        let named = |all: Vec<(&str, Verdict)>| {
            let of = |name: &str| ("ProviderRevision".to_owned(), name.to_owned());
            all.into_iter().map(|(name, one)| (of(name), one)).collect()
        };
        verdicts.publish(named(vec![("a", waiting()), ("b", Verdict::Skipped)]));
        verdicts.publish(named(vec![("a", waiting()), ("b", Verdict::Skipped)]));
        verdicts.publish(named(vec![("a", Verdict::Skipped)]));
        let heard: Vec<String> = std::iter::from_fn(|| news.try_recv().ok()).collect();
        assert_eq!(heard, ["a", "b", "a"]);
        let of = |kind: &str, name: &str| verdicts.of(kind, name);
        assert_eq!(of("ProviderRevision", "a"), Some(Verdict::Skipped));
        assert_eq!((of("ProviderRevision", "b"), of("FunctionRevision", "a")), (None, None));
    }
}
