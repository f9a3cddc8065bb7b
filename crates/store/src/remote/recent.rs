//! A memory that forgets: what is over goes, and when there is too much, what was not asked for
//! the longest.

use std::collections::HashMap;
use tokio::time::Instant;

/// Values by name, so many and so large at most.
pub(super) struct Recent<T> {
    entries: HashMap<String, Entry<T>>,
    /// The most entries.
    count_max: usize,
    /// The most bytes of all of them, and what they have.
    size_max: usize,
    size: usize,
    /// Counts what is asked for.
    clock: u64,
}

struct Entry<T> {
    value: T,
    size: usize,
    expires: Instant,
    used: u64,
}

impl<T: Clone> Recent<T> {
    pub(super) fn new(count_max: usize, size_max: usize) -> Self {
        Self { entries: HashMap::new(), count_max, size_max, size: 0, clock: 0 }
    }

    /// A value that is not over.
    pub(super) fn get(&mut self, key: &str, now: Instant) -> Option<T> {
        self.clock += 1;
        let entry = self.entries.get_mut(key).filter(|entry| entry.expires > now)?;
        entry.used = self.clock;
        Some(entry.value.clone())
    }

    /// Keeps a value of some size until it is over. One that is larger than all may be is not
    /// kept.
    pub(super) fn keep(&mut self, key: String, value: T, size: usize, expires: Instant) {
        self.forget(&key);
        let size = size.saturating_add(key.len());
        if size > self.size_max {
            return;
        }
        self.make_room(size);
        self.clock += 1;
        self.size += size;
        self.entries.insert(key, Entry { value, size, expires, used: self.clock });
    }

    fn forget(&mut self, key: &str) {
        if let Some(entry) = self.entries.remove(key) {
            self.size = self.size.saturating_sub(entry.size);
        }
    }

    fn make_room(&mut self, size: usize) {
        let now = Instant::now();
        let over = self.entries.iter().filter(|(_, entry)| entry.expires <= now);
        let over: Vec<String> = over.map(|(key, _)| key.clone()).collect();
        for key in &over {
            self.forget(key);
        }
        while self.entries.len() >= self.count_max || self.size + size > self.size_max {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { return };
            self.forget(&key);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn l1_what_is_kept_is_bounded_and_the_last_used_stays() {
        let now = Instant::now();
        let later = now + Duration::from_secs(60);
        let mut recent = Recent::new(3, 100);
        for number in 0..1000 {
            recent.keep(number.to_string(), number, 10, later);
            recent.get("0", now);
        }
        assert_eq!(recent.len(), 3);
        assert_eq!(recent.get("0", now), Some(0), "what is asked for stays");
        assert_eq!(recent.get("999", now), Some(999));
        assert_eq!(recent.get("500", now), None);
        recent.keep("large".to_owned(), 1, 90, later);
        assert_eq!((recent.len(), recent.size), (1, 95));
        recent.keep("larger".to_owned(), 1, 1000, later);
        assert_eq!(recent.get("larger", now), None);
    }

    #[test]
    fn l1_what_is_over_is_forgotten() {
        let now = Instant::now();
        let mut recent = Recent::new(1000, 100_000);
        for number in 0..100 {
            recent.keep(number.to_string(), number, 10, now);
        }
        assert_eq!(recent.get("99", now), None);
        recent.keep("next".to_owned(), 1, 10, now + Duration::from_secs(60));
        assert_eq!(recent.len(), 1);
        recent.keep("next".to_owned(), 2, 20, now + Duration::from_secs(60));
        assert_eq!((recent.len(), recent.size), (1, 24));
    }
}
