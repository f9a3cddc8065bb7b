//! What the lock says about revisions, for those who look after them.
//!
//! The lock is looked at as a whole, and what comes of it concerns single revisions. It is kept
//! here; whoever asks for [`news`](Verdicts::news) hears of those, and only those, of which
//! something else is said than before.

use plan::lock::{Verdict, Whose};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use tokio::sync::broadcast;

/// News that may wait to be heard; who is further behind looks at everyone.
const NEWS_MAX: usize = 1024;

/// What the lock says about each revision.
#[derive(Debug)]
pub struct Verdicts {
    known: Mutex<BTreeMap<Whose, Verdict>>,
    news: broadcast::Sender<String>,
}

impl Default for Verdicts {
    fn default() -> Self {
        Self { known: Mutex::default(), news: broadcast::Sender::new(NEWS_MAX) }
    }
}

impl Verdicts {
    /// What the lock says about a revision; nothing while it has not been asked.
    pub fn of(&self, whose: &Whose) -> Option<Verdict> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(whose).cloned()
    }

    /// The names of revisions of which something new is said from now on.
    pub fn news(&self) -> broadcast::Receiver<String> {
        self.news.subscribe()
    }

    /// The lock says this now.
    pub(crate) fn publish(&self, now: BTreeMap<Whose, Verdict>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *known, now);
        for (revision, verdict) in &*known {
            if before.get(revision) != Some(verdict) {
                // That nobody listens is no trouble.
                let _ = self.news.send(revision.name.clone());
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
        let whose = |kind: &str, name: &str, uid: &str| Whose {
            kind: kind.to_owned(),
            name: name.to_owned(),
            uid: Some(uid.to_owned()),
        };
        let provider = |name: &str| whose("ProviderRevision", name, "1");
        let named = |all: Vec<(&str, Verdict)>| {
            all.into_iter().map(|(name, one)| (provider(name), one)).collect()
        };
        verdicts.publish(named(vec![("a", waiting()), ("b", Verdict::Skipped)]));
        verdicts.publish(named(vec![("a", waiting()), ("b", Verdict::Skipped)]));
        verdicts.publish(named(vec![("a", Verdict::Skipped)]));
        let heard: Vec<String> = std::iter::from_fn(|| news.try_recv().ok()).collect();
        assert_eq!(heard, ["a", "b", "a"]);
        assert_eq!(verdicts.of(&provider("a")), Some(Verdict::Skipped));
        for other in [provider("b"), whose("FunctionRevision", "a", "1")] {
            assert_eq!(verdicts.of(&other), None);
        }
        // One that is made anew has nothing of the one before.
        assert_eq!(verdicts.of(&whose("ProviderRevision", "a", "2")), None);
    }
}
