//! From what happens in a cluster to who is looked at.
//!
//! Only the metadata of objects is watched: it says whom the news concerns, and what became of the
//! object is read when somebody's turn comes. Several kinds want to know about the same objects:
//! they are watched once, and whoever is concerned is told.

use crate::kind::{Meta, Wakes, Watch};
use crate::queue::Queue;
use crate::run::again_after_panic;
use crate::{Hands, cluster};
use futures::StreamExt as _;
use kube::Api;
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt as _, watcher};
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How long to wait for a kind that the API server does not have.
const ABSENT: Duration = Duration::from_secs(5);
/// Objects in one page of the first list.
const PAGE: u32 = 250;

/// Which objects: the version of their API, their kind, and a namespace if it is only one.
type Objects = (String, String, Option<String>);
/// Whom news may concern.
type Concerned = Vec<(Watch, Arc<Queue>)>;

/// Everything that somebody wants to know about.
#[derive(Default)]
pub(crate) struct Watches(BTreeMap<Objects, Concerned>);

impl Watches {
    /// Somebody wants to know about these objects, too.
    pub(crate) fn add(&mut self, watch: Watch, queue: &Arc<Queue>) {
        let objects = (watch.api_version.clone(), watch.kind.clone(), watch.namespace.clone());
        self.0.entry(objects).or_default().push((watch, Arc::clone(queue)));
    }

    /// Watches until what is returned is dropped.
    pub(crate) fn begin(self, hands: &Arc<Hands>) -> JoinSet<()> {
        let watches = self.0.into_iter();
        let begin = |(objects, all): (Objects, Concerned)| {
            let (hands, kind) = (Arc::clone(hands), objects.1.clone());
            async move {
                // It begins with a list, so nothing is missed of what happened meanwhile.
                again_after_panic(&hands, &kind, || watch(&hands, &objects, &all)).await;
            }
        };
        watches.map(begin).collect()
    }
}

/// Wakes whom news concerns, for ever.
async fn watch(hands: &Hands, (api_version, kind, namespace): &Objects, all: &Concerned) {
    let resource = loop {
        match hands.cluster.resource(api_version, kind).await {
            Ok(resource) => break resource,
            Err(_) => tokio::time::sleep(ABSENT).await,
        }
    };
    let client = hands.cluster.client().clone();
    let api: Api<Meta> = match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    };
    let config = Config::default().page_size(PAGE);
    let mut events = watcher(api, config).default_backoff().boxed();
    // What objects were is remembered only for those who want to know whether it changed.
    let is_for_content = all.iter().any(|(watch, _)| watch.is_for_content);
    let mut contents = Contents::default();
    // Errors are the watcher's to mend: it lists again after a while.
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(meta) | Event::InitApply(meta)) => {
                let is_changed = is_for_content && contents.changes(&meta);
                for (watch, queue) in all {
                    if !watch.is_for_content || is_changed {
                        tell(watch, queue, &meta, true);
                    }
                }
            }
            Ok(Event::Delete(meta)) => {
                contents.forget(&meta);
                for (watch, queue) in all {
                    tell(watch, queue, &meta, false);
                }
            }
            // What went away while nobody watched is found missing when everyone is looked at.
            Ok(Event::InitDone) => all.iter().for_each(|(_, queue)| queue.wake_everyone()),
            Ok(Event::Init) => {}
            Err(error) => hands.say(crate::Entry::trouble(kind, "", &told(&error))),
        }
    }
}

/// What objects were when they were last seen, but for their status.
#[derive(Default)]
struct Contents(HashMap<String, u64>);

impl Contents {
    fn key(meta: &Meta) -> String {
        let of = |text: &Option<String>| text.clone().unwrap_or_default();
        format!("{}/{}", of(&meta.metadata.namespace), of(&meta.metadata.name))
    }

    /// Whether an object is another than it was.
    fn changes(&mut self, meta: &Meta) -> bool {
        let metadata = &meta.metadata;
        // Kinds whose changes are not counted are news each time.
        let count = metadata.generation.map_or_else(
            || metadata.resource_version.clone().unwrap_or_default(),
            |generation| generation.to_string(),
        );
        let mut hasher = DefaultHasher::new();
        let owners = metadata.owner_references.iter().flatten();
        let owners: Vec<_> = owners.map(|one| (&one.uid, &one.name, one.controller)).collect();
        let marks = (&metadata.labels, &metadata.annotations, &metadata.finalizers);
        let is_going = metadata.deletion_timestamp.is_some();
        (&metadata.uid, count, owners, marks, is_going).hash(&mut hasher);
        let now = hasher.finish();
        self.0.insert(Self::key(meta), now) != Some(now)
    }

    fn forget(&mut self, meta: &Meta) {
        self.0.remove(&Self::key(meta));
    }
}

/// What an error of a watch means for people.
fn told(error: &watcher::Error) -> String {
    let lost = match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => error,
        other => return other.to_string(),
    };
    match lost {
        kube::Error::Api(_) => error.to_string(),
        lost => cluster::lost(lost).to_string(),
    }
}

/// What an object is looked at under: its name, and before that its namespace, if its kind has one.
fn key_of(meta: &Meta) -> Option<String> {
    let name = meta.metadata.name.as_deref()?;
    let namespace = meta.metadata.namespace.as_deref().filter(|one| !one.is_empty());
    Some(namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}")))
}

fn tell(watch: &Watch, queue: &Queue, meta: &Meta, is_there: bool) {
    match (watch.wakes)(meta) {
        Wakes::Itself => {
            let Some(key) = key_of(meta) else { return };
            queue.know(&key, is_there);
            queue.wake(&key);
        }
        Wakes::These(keys) => keys.iter().for_each(|key| queue.wake(key)),
        Wakes::Everyone => queue.wake_everyone(),
    }
}
