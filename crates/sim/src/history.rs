//! What happened on the way: some things must not happen at all, whatever comes of it in the end.

use crate::laws::{PACKAGES, is_active, is_going, owners};
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
/// So many pods more may be made for a Deployment: a manager that is told that its Deployment is gone takes
/// it back to the beginning of its turn.
const PODS_MORE: usize = 1;

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
    let mut cluster = Cluster::at(log, version);
    for event in events {
        cluster.take_in(&mut history, &event);
    }
    history
}

fn parse(bytes: &[u8]) -> Json {
    serde_json::from_slice(bytes).unwrap_or_default()
}

/// Objects that laws are about, as they are at a time.
#[derive(Default)]
struct Cluster(BTreeMap<String, Json>);

impl Cluster {
    fn at(log: &Log, version: u64) -> Self {
        let entries = log.list("", Some(version)).map(|then| then.entries).unwrap_or_default();
        let kept = entries.into_iter().filter(|(key, _)| is_kept(key));
        Self(kept.map(|(key, entry)| (key.to_string(), parse(&entry.value))).collect())
    }

    fn take_in(&mut self, history: &mut History, event: &Event) {
        let before = event.previous.as_ref().map(|entry| parse(&entry.value));
        let now = event.value.as_ref().map(|value| parse(value));
        let any = now.as_ref().or(before.as_ref()).cloned().unwrap_or_default();
        if TRANSIENT.contains(&text(&any, "kind")) {
            return;
        }
        history.writes += 1;
        if let Some(before) = &before {
            history.wrongs.extend(self.loses_objects(before, now.as_ref()));
        }
        if is_kept(&event.key) {
            self.0.remove(&*event.key);
            self.0.extend(now.clone().map(|now| (event.key.to_string(), now)));
        }
        if let Some(now) = &now {
            history.wrongs.extend(self.wrong(before.as_ref(), now));
            history.wrongs.extend(self.runs_twice(now));
        }
        match (&before, &now) {
            (None, Some(now)) => *history.made.entry(made_name(now)).or_default() += 1,
            (Some(before), Some(now)) => {
                if uid(before) != uid(now) {
                    history.wrongs.push(format!("{} has become another", name(now)));
                }
                if text(now, "kind") == "CustomResourceDefinition"
                    && is_owned(before)
                    && !is_owned(now)
                {
                    history.wrongs.push(format!("{} belonged to nobody", name(now)));
                }
            }
            _ => {}
        }
    }

    /// A definition that goes with its objects, though the package that brought it stays.
    fn loses_objects(&self, before: &Json, now: Option<&Json>) -> Option<String> {
        let goes = !is_going(before) && now.is_none_or(is_going);
        if text(before, "kind") != "CustomResourceDefinition" || !goes {
            return None;
        }
        let mark = text(&before["metadata"]["annotations"], api::pkg::ANNOTATION_BROUGHT_BY);
        let is_its = |one: &&Json| {
            let kind = text(one, "kind").to_lowercase();
            mark == format!("{kind}.pkg.crossplane.io/{}", text(&one["metadata"], "name"))
        };
        let package = self.0.values().find(is_its).filter(|one| !is_going(one))?;
        let (group, kind) = (&before["spec"]["group"], &before["spec"]["names"]["kind"]);
        let lives = |one: &&Json| {
            let of = text(one, "apiVersion").split('/').next();
            group.as_str() == of && one["kind"] == *kind
        };
        let lost = self.0.values().filter(lives).count();
        (lost > 0).then(|| {
            format!("{} went with {lost} objects, and {} stayed", name(before), name(package))
        })
    }

    /// A provider whose revisions run side by side.
    fn runs_twice(&self, now: &Json) -> Option<String> {
        let provider = provider_of(now).filter(|_| has_pods(now))?;
        let others = self.0.values().filter(|one| has_pods(one));
        let mut others = others.filter(|one| provider_of(one) == Some(provider));
        let other = others.find(|one| revision_of(one) != revision_of(now))?;
        Some(format!("{} ran beside {}", name(now), name(other)))
    }

    /// What an object says or is too early.
    fn wrong(&self, before: Option<&Json>, now: &Json) -> Option<String> {
        let becomes = |of: &str| says(now, of) && !before.is_some_and(|before| says(before, of));
        let kind = text(now, "kind");
        let who = name(now);
        if kind.ends_with("Revision") && is_active(now) {
            let is_early = becomes("RevisionHealthy") && !self.is_listed(now);
            return is_early.then(|| format!("{who} was healthy before the Lock told of it"));
        }
        if kind == "Deployment" && before.is_none() {
            let mut owners = owners(now).iter().filter_map(|owner| self.by_uid(&owner["uid"]));
            let is_early = owners.any(|owner| !says(owner, "RevisionHealthy"));
            return is_early.then(|| format!("{who} was started before its objects were there"));
        }
        let is_well = |one: &Json| says(one, "Healthy") && says(one, "Installed");
        let is_old = |before: &Json| {
            is_well(before)
                && before["status"]["currentRevision"] == now["status"]["currentRevision"]
        };
        if PACKAGES.contains(&kind) && is_well(now) && !before.is_some_and(is_old) {
            let revisions = self.0.values().filter(|one| {
                is_active(one) && owners(one).iter().any(|owner| owner["uid"].as_str() == uid(now))
            });
            let revisions: Vec<&Json> = revisions.collect();
            let is_well = |one: &Json| {
                let runs = kind != "Configuration";
                says(one, "RevisionHealthy")
                    && (!runs || says(one, "RuntimeHealthy"))
                    && !is_going(one)
            };
            let is_early = !matches!(revisions[..], [one] if is_well(one));
            return is_early.then(|| format!("{who} was healthy before its revision was"));
        }
        None
    }

    fn by_uid(&self, uid: &Json) -> Option<&Json> {
        self.0.values().find(|one| one["metadata"]["uid"] == *uid)
    }

    fn is_listed(&self, revision: &Json) -> bool {
        let lock = self.0.values().find(|one| text(one, "kind") == "Lock");
        let mut entries = lock.and_then(|lock| lock["packages"].as_array()).into_iter().flatten();
        entries.any(|one| one["name"] == revision["metadata"]["name"])
    }
}

/// Whether laws are about objects of this key.
fn is_kept(key: &str) -> bool {
    ["pkg.crossplane.io", "keeper.example.org", "deployments"].iter().any(|one| key.contains(one))
}

/// The provider that a Deployment runs.
fn provider_of(deployment: &Json) -> Option<&str> {
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    labels[api::pkg::LABEL_PROVIDER].as_str().filter(|_| text(deployment, "kind") == "Deployment")
}

/// The revision that a Deployment runs.
fn revision_of(deployment: &Json) -> &Json {
    &deployment["spec"]["template"]["metadata"]["labels"][api::pkg::LABEL_REVISION]
}

/// Whether a Deployment has pods, those among them that are deleted and still end, or is to have some.
fn has_pods(deployment: &Json) -> bool {
    let status = &deployment["status"];
    let counts =
        [&deployment["spec"]["replicas"], &status["replicas"], &status["terminatingReplicas"]];
    counts.into_iter().any(|count| count.as_i64().is_some_and(|count| count > 0))
}

/// Whether an object says that something is so, of the state it is in.
fn says(object: &Json, of: &str) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Json::as_array);
    let mut said = conditions.into_iter().flatten().filter(|one| one["type"] == of);
    said.any(|one| {
        let is_of_now = one["observedGeneration"] == object["metadata"]["generation"];
        one["status"] == "True" && is_of_now
    })
}

/// The name under which it is counted how often an object was made: replica sets and pods are counted by
/// the Deployment that they are made for, and what else gets another name each time by its prefix.
fn made_name(object: &Json) -> String {
    let kind = text(object, "kind");
    let prefix = text(&object["metadata"], "generateName").trim_end_matches('-');
    match (kind, prefix) {
        ("Pod", prefix) => format!("Pod of {}", without_hash(prefix)),
        ("ReplicaSet", _) => format!("ReplicaSet of {}", without_hash(&name(object))),
        (_, "") => name(object),
        (_, prefix) => format!("{kind} {prefix}"),
    }
}

/// A name without what was made of a template, which has in it what is new in each run.
fn without_hash(name: &str) -> &str {
    name.rsplit_once('-').map_or(name, |(name, _)| name)
}

fn is_owned(object: &Json) -> bool {
    !owners(object).is_empty()
}

impl History {
    /// What should not have happened, given what happens if all goes well.
    pub fn difference(&self, wanted: &Self) -> Vec<String> {
        let mut lines = self.wrongs.clone();
        for (name, times) in &self.made {
            let usual = wanted.made.get(name).copied().unwrap_or_default();
            let most = usual.max(1) + usize::from(name.starts_with("Pod of")) * PODS_MORE;
            if *times > most {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A Deployment of a provider's revision.
    fn deployment(revision: &str, replicas: i64, status: &Json) -> Json {
        let mut labels = json!({});
        labels[api::pkg::LABEL_PROVIDER] = json!("p");
        labels[api::pkg::LABEL_REVISION] = json!(revision);
        json!({
            "kind": "Deployment", "metadata": {"name": revision}, "status": status,
            "spec": {"replicas": replicas, "template": {"metadata": {"labels": labels}}},
        })
    }

    #[test]
    fn a_provider_runs_twice_while_pods_of_the_one_before_end() {
        let next = deployment("p-2", 1, &json!({}));
        let is_wrong = |replicas: i64, status: &Json| {
            let before = deployment("p-1", replicas, status);
            Cluster(BTreeMap::from([("a".to_owned(), before)])).runs_twice(&next).is_some()
        };
        assert!(is_wrong(1, &json!({})));
        assert!(is_wrong(0, &json!({"replicas": 1})));
        assert!(is_wrong(0, &json!({"replicas": 0, "terminatingReplicas": 1})));
        assert!(!is_wrong(0, &json!({"replicas": 0, "terminatingReplicas": 0})));
        assert!(!is_wrong(0, &json!({})), "a server that does not count pods that end");
    }
}
