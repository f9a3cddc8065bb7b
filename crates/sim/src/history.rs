//! What happened on the way: some things must not happen at all, whatever comes of it in the end.

use crate::laws::condition;
use crate::picture::{TRANSIENT, name, text, uid};
use apiserver::log::{Event, Log};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// The most events there may be.
const EVENTS_MAX: usize = 100_000;
/// A run with a fault may write this many times as often as one without.
const WRITES_FACTOR: usize = 3;
/// And this many times more.
const WRITES_MORE: usize = 20;

/// What was done to objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// How often an object of this name was made.
    pub made: BTreeMap<String, usize>,
    /// How often anything was written.
    pub writes: usize,
    /// What must never be.
    pub wrongs: Vec<String>,
}

/// What happened after a version.
pub fn after(log: &Log, version: u64) -> History {
    let mut history = History::default();
    let Ok((events, _)) = log.after(version, "", EVENTS_MAX) else {
        history.wrongs.push("the log has forgotten what happened".to_owned());
        return history;
    };
    let mut lock = lock_at(log, version);
    for event in events {
        take_in(&mut history, &mut lock, &event);
    }
    history
}

fn parse(bytes: &[u8]) -> Json {
    serde_json::from_slice(bytes).unwrap_or_default()
}

fn lock_at(log: &Log, version: u64) -> Json {
    let entries = log.list("", Some(version)).map(|then| then.entries).unwrap_or_default();
    let lock = entries.into_iter().find(|(key, _)| key.contains("/locks/"));
    lock.map(|(_, entry)| parse(&entry.value)).unwrap_or_default()
}

fn take_in(history: &mut History, lock: &mut Json, event: &Event) {
    let before = event.previous.as_ref().map(|entry| parse(&entry.value));
    let now = event.value.as_ref().map(|value| parse(value));
    let any = now.as_ref().or(before.as_ref()).cloned().unwrap_or_default();
    if TRANSIENT.contains(&text(&any, "kind")) {
        return;
    }
    history.writes += 1;
    if text(&any, "kind") == "Lock" {
        *lock = now.clone().unwrap_or_default();
    }
    let was_healthy = before.as_ref().is_some_and(is_healthy);
    if let Some(now) = &now
        && (is_healthy(now) && !was_healthy)
        && is_asked_about(now)
        && !is_listed(lock, now)
    {
        history.wrongs.push(format!("{} was healthy before the Lock told of it", name(now)));
    }
    match (&before, &now) {
        (None, Some(now)) => *history.made.entry(name(now)).or_default() += 1,
        (Some(before), Some(now)) => {
            if uid(before) != uid(now) {
                history.wrongs.push(format!("{} has become another", name(now)));
            }
            if text(now, "kind") == "CustomResourceDefinition" && is_owned(before) && !is_owned(now)
            {
                history.wrongs.push(format!("{} belonged to nobody", name(now)));
            }
        }
        _ => {}
    }
}

fn is_owned(object: &Json) -> bool {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Json::as_array);
    owners.is_some_and(|owners| !owners.is_empty())
}

fn is_healthy(object: &Json) -> bool {
    condition(object, "RevisionHealthy").0 == "True"
}

/// Whether it waits for what the Lock says: inactive revisions need nothing, and some do not want
/// to know what they need.
fn is_asked_about(revision: &Json) -> bool {
    let spec = &revision["spec"];
    spec["desiredState"] == "Active" && spec["skipDependencyResolution"] != true
}

fn is_listed(lock: &Json, revision: &Json) -> bool {
    let mut entries = lock["packages"].as_array().into_iter().flatten();
    entries.any(|one| one["name"] == revision["metadata"]["name"])
}

impl History {
    /// What should not have happened, given what happens if all goes well.
    pub fn difference(&self, wanted: &Self) -> Vec<String> {
        let mut lines = self.wrongs.clone();
        for (name, times) in &self.made {
            let usual = wanted.made.get(name).copied().unwrap_or_default();
            if *times > usual.max(1) {
                lines.push(format!("{name} was made {times} times, and not {usual}"));
            }
        }
        let most = wanted.writes * WRITES_FACTOR + WRITES_MORE;
        if self.writes > most {
            lines.push(format!("there were {} writes, and not {}", self.writes, wanted.writes));
        }
        lines
    }
}
