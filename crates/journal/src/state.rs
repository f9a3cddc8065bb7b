//! What the log holds in memory: the present, and the events that led to it.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use super::{Damage, DiskError, Entry, Event, Expired, Limits, Record, Recovered, Snapshot};

#[derive(Clone)]
pub(crate) struct State {
    entries: BTreeMap<Arc<str>, Entry>,
    ring: VecDeque<Arc<Event>>,
    ring_bytes: usize,
    version: u64,
    /// Versions up to this one cannot be told apart any more; it itself can be read.
    oldest: u64,
    limits: Limits,
}

impl State {
    /// A state in which nothing has happened. Versions start at 1, so that zero can mean
    /// "any" on the wire.
    pub(crate) fn empty(limits: Limits) -> Self {
        Self {
            entries: BTreeMap::new(),
            ring: VecDeque::new(),
            ring_bytes: 0,
            version: 1,
            oldest: 1,
            limits,
        }
    }

    /// Replays what a disk holds, checking that each record replaces what it says.
    pub(crate) fn recover(recovered: Recovered, limits: Limits) -> Result<Self, DiskError> {
        let mut state = Self::empty(limits);
        state.oldest = recovered.compacted.max(1);
        for record in recovered.records {
            let found = state.entries.get(record.key.as_str()).map_or(0, |entry| entry.version);
            let kept = record.version > state.oldest;
            if kept && found != record.previous {
                let Record { version, previous, .. } = record;
                return Err(DiskError::Damaged(Damage::Chain { version, previous }));
            }
            state.apply(record);
        }
        state.version = state.version.max(recovered.version).max(1);
        Ok(state)
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    pub(crate) fn oldest(&self) -> u64 {
        self.oldest
    }

    pub(crate) fn get(&self, key: &str) -> Option<Entry> {
        self.entries.get(key).cloned()
    }

    pub(crate) fn list(&self, prefix: &str, at: Option<u64>) -> Result<Snapshot, Expired> {
        let at = at.map_or(self.version, |at| at.min(self.version));
        if at < self.oldest {
            return Err(Expired { asked: at, oldest: self.oldest });
        }
        let present = self
            .entries
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(prefix))
            .map(|(key, entry)| (Arc::clone(key), entry.clone()));
        if at == self.version {
            return Ok(Snapshot { version: at, entries: present.collect() });
        }
        let mut entries: BTreeMap<Arc<str>, Entry> = present.collect();
        for event in self.ring.iter().rev().take_while(|event| event.version > at) {
            if event.key.starts_with(prefix) {
                match &event.previous {
                    Some(entry) => entries.insert(Arc::clone(&event.key), entry.clone()),
                    None => entries.remove(&event.key),
                };
            }
        }
        Ok(Snapshot { version: at, entries: entries.into_iter().collect() })
    }

    pub(crate) fn after(
        &self,
        version: u64,
        prefix: &str,
        limit: usize,
    ) -> Result<(Vec<Arc<Event>>, u64), Expired> {
        if version < self.oldest {
            return Err(Expired { asked: version, oldest: self.oldest });
        }
        let start = self.ring.partition_point(|event| event.version <= version);
        let mut events = Vec::new();
        for event in self.ring.range(start..).filter(|event| event.key.starts_with(prefix)) {
            if events.len() == limit {
                let last = events.last().map_or(version, |event: &Arc<Event>| event.version);
                return Ok((events, last));
            }
            events.push(Arc::clone(event));
        }
        Ok((events, self.version.max(version)))
    }

    /// Takes a durable record into the present and the past.
    pub(crate) fn apply(&mut self, record: Record) {
        let key: Arc<str> = record.key.into();
        let previous = match &record.value {
            Some(value) => {
                let entry = Entry { version: record.version, value: value.clone() };
                self.entries.insert(Arc::clone(&key), entry)
            }
            None => self.entries.remove(&key),
        };
        self.version = record.version;
        if record.version <= self.oldest {
            return;
        }
        let event = Event { version: record.version, key, value: record.value, previous };
        self.ring_bytes = self.ring_bytes.saturating_add(weight(&event));
        self.ring.push_back(Arc::new(event));
        while self.ring.len() > self.limits.events_max || self.ring_bytes > self.limits.bytes_max {
            self.drop_oldest();
        }
    }

    pub(crate) fn forget(&mut self, version: u64) {
        while self.ring.front().is_some_and(|event| event.version <= version) {
            self.drop_oldest();
        }
        self.oldest = self.oldest.max(version.min(self.version));
    }

    fn drop_oldest(&mut self) {
        if let Some(event) = self.ring.pop_front() {
            self.ring_bytes = self.ring_bytes.saturating_sub(weight(&event));
            self.oldest = self.oldest.max(event.version);
        }
    }
}

fn weight(event: &Event) -> usize {
    let previous = event.previous.as_ref().map_or(0, |entry| entry.value.len());
    let value = event.value.as_ref().map_or(0, bytes::Bytes::len);
    event.key.len().saturating_add(value).saturating_add(previous)
}
