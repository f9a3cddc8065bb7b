//! What the lock says about revisions, for those who look after them.
//!
//! The lock is looked at as a whole, and what comes of it concerns single revisions. It is kept
//! here; whoever asks for [`news`](Verdicts::news) hears of those, and only those, of which
//! something else is said than before.

use api::pkg::revision::Revision;
use plan::lock::{Verdict, Whose};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use tokio::sync::broadcast;

/// News that may wait to be heard; who is further behind looks at everyone.
const NEWS_MAX: usize = 1024;

/// What the lock says about each revision.
#[derive(Debug)]
pub struct Verdicts {
    known: Mutex<BTreeMap<Whose, Verdict>>,
    failing: Mutex<BTreeSet<Whose>>,
    news: broadcast::Sender<String>,
}

impl Default for Verdicts {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            failing: Mutex::default(),
            news: broadcast::Sender::new(NEWS_MAX),
        }
    }
}

impl Verdicts {
    /// What the lock says about a revision; nothing while it has not been asked.
    pub fn of(&self, whose: &Whose) -> Option<Verdict> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(whose).cloned()
    }

    /// Whether the API server refuses the objects of a revision whose package has nothing. It is
    /// remembered until the revision is tried again.
    pub(crate) fn tried(&self, whose: Whose, has_failed: bool) {
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        if has_failed {
            failing.insert(whose);
        } else {
            failing.remove(&whose);
        }
    }

    /// Those of these revisions that were last tried in vain; others are forgotten.
    pub(crate) fn failing(&self, revisions: &[Revision]) -> BTreeSet<Whose> {
        let there: BTreeSet<Whose> = revisions.iter().map(Whose::of).collect();
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        failing.retain(|one| there.contains(one));
        failing.clone()
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

    #[test]
    fn who_was_tried_in_vain_is_remembered_until_it_is_tried_again_or_gone() {
        let verdicts = Verdicts::default();
        let revision = |uid: &str| {
            let object = serde_json::json!({
                "apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision",
                "metadata": {"name": "a", "uid": uid},
                "spec": {"desiredState": "Active", "image": "r.io/a:v1", "revision": 1},
            });
            serde_json::from_value::<Revision>(object).unwrap()
        };
        let (one, two) = (revision("1"), revision("2"));
        let failing = |all: &[&Revision]| {
            let all: Vec<Revision> = all.iter().map(|one| (*one).clone()).collect();
            verdicts.failing(&all).len()
        };
        verdicts.tried(Whose::of(&one), true);
        assert_eq!(failing(&[&one, &two]), 1);
        verdicts.tried(Whose::of(&one), false);
        assert_eq!(failing(&[&one, &two]), 0);
        verdicts.tried(Whose::of(&one), true);
        assert_eq!(failing(&[&two]), 0, "one that is made anew has nothing of the one before");
        assert_eq!(failing(&[&one]), 0);
    }
}
