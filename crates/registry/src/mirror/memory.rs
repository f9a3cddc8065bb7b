//! What was learned of another registry lately: which tags were looked at, what is not there,
//! whether it answers at all. All of it is forgotten with the process, and nothing breaks.

use super::Trouble;
use crate::name::Name;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most entries of each kind.
const ENTRIES_MAX: usize = 20_000;
/// The most lists of tags; they are longer.
const LISTS_MAX: usize = 128;

/// A list of tags as it was at some time.
type Tags = Arc<Vec<String>>;

#[derive(Default)]
pub(super) struct Memory {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When a tag was last seen to be what it is here.
    checked: HashMap<String, Instant>,
    /// What went wrong, and until when that holds.
    troubles: HashMap<String, (Trouble, Instant)>,
    /// Until when nobody answers there.
    away: Option<Instant>,
    lists: HashMap<String, (Tags, Instant)>,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a tag was looked at since.
    pub(super) fn is_fresh(&self, name: &Name, tag: &str, age: Duration) -> bool {
        let state = self.lock();
        state.checked.get(&key(name, tag)).is_some_and(|since| since.elapsed() < age)
    }

    pub(super) fn checked(&self, name: &Name, tag: &str, age: Duration) {
        let mut state = self.lock();
        let now = Instant::now();
        make_room(&mut state.checked, ENTRIES_MAX, |since| now.duration_since(*since) < age);
        state.checked.insert(key(name, tag), now);
        state.away = None;
    }

    /// What is known to be wrong with something, or with everything, right now.
    pub(super) fn trouble(&self, name: &Name, reference: &str) -> Option<Trouble> {
        let state = self.lock();
        let now = Instant::now();
        if state.away.is_some_and(|until| now < until) {
            return Some(Trouble::Away);
        }
        let (trouble, until) = state.troubles.get(&key(name, reference))?;
        (now < *until).then(|| trouble.clone())
    }

    pub(super) fn note(&self, name: &Name, reference: &str, trouble: &Trouble) {
        let mut state = self.lock();
        let now = Instant::now();
        let until = now.checked_add(trouble.pause()).unwrap_or(now);
        if *trouble == Trouble::Away {
            state.away = Some(until);
            return;
        }
        make_room(&mut state.troubles, ENTRIES_MAX, |(_, until)| now < *until);
        state.troubles.insert(key(name, reference), (trouble.clone(), until));
    }

    /// A list of tags that is not older than this.
    pub(super) fn tags(&self, name: &Name, age: Duration) -> Option<Tags> {
        let state = self.lock();
        let (tags, since) = state.lists.get(name.as_str())?;
        (since.elapsed() < age).then(|| tags.clone())
    }

    pub(super) fn keep_tags(&self, name: &Name, tags: &Tags, age: Duration) {
        let mut state = self.lock();
        let now = Instant::now();
        make_room(&mut state.lists, LISTS_MAX, |(_, since)| now.duration_since(*since) < age);
        state.lists.insert(name.to_string(), (tags.clone(), now));
    }
}

/// Makes room for one more: first what no longer counts goes, then everything.
fn make_room<T>(map: &mut HashMap<String, T>, limit: usize, counts: impl Fn(&T) -> bool) {
    if map.len() >= limit {
        map.retain(|_, value| counts(value));
    }
    if map.len() >= limit {
        map.clear();
    }
}

fn key(name: &Name, reference: &str) -> String {
    // Neither part can hold a space.
    [name.as_str(), reference].join(" ")
}
