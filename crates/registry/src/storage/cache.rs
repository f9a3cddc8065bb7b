//! Answers kept in memory, manifests and lists of tags: most pulls never touch the disk.
//!
//! Two generations: what is asked for moves to the young one; when that is full, it becomes the
//! old one and what was old and never asked for is forgotten. Entries are filled by readers and
//! dropped by writers after their commit; a reader that started before a drop may not fill
//! (`epoch`), so that an answer is never older than the last change that was acknowledged.

use crate::limits::{CACHE_ENTRY_SIZE_MAX, CACHE_SIZE_MAX};
use crate::name::Name;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What an entry costs beyond its bytes, about.
const ENTRY_OVERHEAD: usize = 512;

/// Something that takes up memory.
pub(super) trait Size {
    /// About how many bytes.
    fn size(&self) -> usize;
}

pub(super) struct Cache<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    epoch: u64,
    young: HashMap<String, Arc<T>>,
    young_size: usize,
    old: HashMap<String, Arc<T>>,
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self { state: Mutex::new(State::new(0)) }
    }
}

impl<T> State<T> {
    fn new(epoch: u64) -> Self {
        Self { epoch, young: HashMap::new(), young_size: 0, old: HashMap::new() }
    }
}

impl<T: Size> Cache<T> {
    /// The entry, or the epoch that a later [`Cache::fill`] must show.
    pub(super) fn get(&self, name: &Name, reference: &str) -> Result<Arc<T>, u64> {
        let key = key(name, reference);
        let mut state = self.lock();
        if let Some(found) = state.young.get(&key) {
            return Ok(found.clone());
        }
        match state.old.remove(&key) {
            Some(found) => {
                state.insert(key, found.clone());
                Ok(found)
            }
            None => Err(state.epoch),
        }
    }

    /// Keeps an entry that was read since `epoch`, unless something changed meanwhile.
    pub(super) fn fill(&self, name: &Name, reference: &str, entry: &Arc<T>, epoch: u64) {
        let mut state = self.lock();
        if state.epoch == epoch && entry.size() <= CACHE_ENTRY_SIZE_MAX {
            state.insert(key(name, reference), entry.clone());
        }
    }

    /// Forgets one tag or digest of a repository.
    pub(super) fn forget(&self, name: &Name, reference: &str) {
        let key = key(name, reference);
        let mut state = self.lock();
        state.epoch = state.epoch.wrapping_add(1);
        state.old.remove(&key);
        if let Some(entry) = state.young.remove(&key) {
            state.young_size = state.young_size.saturating_sub(cost(&*entry));
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        let mut state = self.lock();
        *state = State::new(state.epoch.wrapping_add(1));
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Size> State<T> {
    fn insert(&mut self, key: String, entry: Arc<T>) {
        if self.young_size > CACHE_SIZE_MAX / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_size = 0;
        }
        self.young_size = self.young_size.saturating_add(cost(&*entry));
        if let Some(before) = self.young.insert(key, entry) {
            self.young_size = self.young_size.saturating_sub(cost(&*before));
        }
    }
}

fn key(name: &Name, reference: &str) -> String {
    // Neither part can hold a space.
    [name.as_str(), reference].join(" ")
}

fn cost(entry: &impl Size) -> usize {
    entry.size().saturating_add(ENTRY_OVERHEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Size for Vec<u8> {
        fn size(&self) -> usize {
            self.len()
        }
    }

    fn entry(size: usize) -> Arc<Vec<u8>> {
        Arc::new(vec![b'x'; size])
    }

    #[test]
    fn a_reader_that_started_before_a_change_may_not_fill() {
        let (cache, name) = (Cache::default(), Name::parse("a").unwrap());
        let epoch = cache.get(&name, "v1").unwrap_err();
        cache.forget(&name, "v1");
        cache.fill(&name, "v1", &entry(1), epoch);
        let epoch = cache.get(&name, "v1").unwrap_err();
        cache.fill(&name, "v1", &entry(1), epoch);
        assert!(cache.get(&name, "v1").is_ok());
        cache.clear();
        assert!(cache.get(&name, "v1").is_err());
    }

    #[test]
    fn memory_is_bounded_and_what_is_used_stays() {
        let (cache, name) = (Cache::default(), Name::parse("a").unwrap());
        let big = entry(CACHE_ENTRY_SIZE_MAX);
        for number in 0..200 {
            let tag = number.to_string();
            let epoch = cache.get(&name, &tag).unwrap_err();
            cache.fill(&name, &tag, &big, epoch);
            assert!(cache.get(&name, "0").is_ok(), "what is asked for stays");
        }
        let state = cache.lock();
        let entries = state.young.len() + state.old.len();
        assert!(entries * CACHE_ENTRY_SIZE_MAX <= CACHE_SIZE_MAX + 2 * CACHE_ENTRY_SIZE_MAX);
    }
}
