//! The API server killed at every step that touches the disk, and opened again: what it
//! acknowledged is there, no version comes twice, and watches go on where they were.

#![expect(clippy::expect_used, reason = "a test that cannot go on must stop")]

use crate::control_plane::{Server, runtime};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams, WatchEvent, WatchParams};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The system calls after which the disk differs.
const CALLS: [&str; 5] = ["pwrite64", "fdatasync", "fsync", "ftruncate", "unlink"];

/// What a client knows.
#[derive(Default)]
struct Known {
    /// Version and content of each object; nothing where it was removed.
    objects: BTreeMap<String, Option<(u64, String)>>,
    /// Every version that was acknowledged with an object.
    versions: BTreeSet<u64>,
    /// The object whose last write was not answered, and what it would be.
    doubt: Option<(String, Option<String>)>,
}

fn version(object: &ConfigMap) -> u64 {
    object.resource_version().and_then(|text| text.parse().ok()).expect("a version")
}

fn text(object: &ConfigMap) -> String {
    object.data.as_ref().and_then(|data| data.get("text")).cloned().unwrap_or_default()
}

fn object(name: &str, text: &str, version: Option<u64>) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.to_owned());
    object.metadata.resource_version = version.map(|version| version.to_string());
    object.data = Some([("text".to_owned(), text.to_owned())].into());
    object
}

impl Known {
    /// Writes an object, or removes it; nothing if nobody answered.
    async fn put(&mut self, api: &Api<ConfigMap>, name: &str, text: Option<String>) -> Option<()> {
        let present = self.objects.get(name).cloned().flatten().map(|(version, _)| version);
        self.doubt = Some((name.to_owned(), text.clone()));
        let params = PostParams::default();
        let now = match (&text, present) {
            (None, _) => {
                api.delete(name, &DeleteParams::default()).await.ok()?;
                None
            }
            (Some(text), None) => Some(api.create(&params, &object(name, text, None)).await.ok()?),
            (Some(text), version) => {
                Some(api.replace(name, &params, &object(name, text, version)).await.ok()?)
            }
        };
        self.doubt = None;
        self.versions.extend(now.as_ref().map(version));
        let now = now.map(|object| (version(&object), self::text(&object)));
        self.objects.insert(name.to_owned(), now);
        Some(())
    }

    /// Small and big objects, made, changed and removed: enough for the database to move its
    /// write-ahead log into the file more than once.
    async fn live(&mut self, api: &Api<ConfigMap>) -> Option<()> {
        for number in 0..4 {
            self.put(api, &format!("small-{number}"), Some(number.to_string())).await?;
        }
        for number in 0..12 {
            let name = format!("big-{}", number % 3);
            self.put(api, &name, Some(number.to_string().repeat(400_000))).await?;
            let name = format!("small-{}", number % 4);
            let now = (number % 5 != 4).then(|| format!("{number}"));
            if now.is_some() || self.objects.get(&name).is_some_and(Option::is_some) {
                self.put(api, &name, now).await?;
            }
        }
        Some(())
    }

    /// Everything known is so after a restart, in the list and in a watch from the beginning.
    async fn check(&self, api: &Api<ConfigMap>, when: &str) {
        for (name, known) in &self.objects {
            let found = api.get_opt(name).await.expect("an answer");
            let found = found.map(|object| (version(&object), text(&object)));
            let doubted = self.doubt.as_ref().filter(|(doubted, _)| doubted == name);
            let perhaps = doubted
                .is_some_and(|(_, text)| text.as_ref() == found.as_ref().map(|(_, text)| text));
            assert!(
                found == *known || perhaps,
                "{when}: {name} was acknowledged and is not as it was"
            );
        }
        let last = api.create(&PostParams::default(), &object("after", "x", None)).await;
        let last = version(&last.expect("a write"));
        let highest = self.versions.last().copied().unwrap_or_default();
        assert!(last > highest, "{when}: version {last} after {highest}");
        let Some(first) = self.versions.first() else { return };
        let mut events = api
            .watch(&WatchParams::default(), &(first - 1).to_string())
            .await
            .expect("a watch")
            .boxed();
        let mut seen = BTreeSet::new();
        while let Some(event) = events.next().await {
            let found = match event.expect("an event") {
                WatchEvent::Added(object)
                | WatchEvent::Modified(object)
                | WatchEvent::Deleted(object) => version(&object),
                other => unreachable!("{when}: {other:?}"),
            };
            assert!(seen.insert(found), "{when}: version {found} came twice");
            if found == last {
                break;
            }
        }
        let missed: Vec<&u64> = self.versions.difference(&seen).collect();
        assert!(missed.is_empty(), "{when}: a watch from the start misses {missed:?}");
    }
}

/// strace, which kills what it runs at its nth call.
fn killer(call: &str, nth: usize) -> Command {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}")]);
    command.args(["-e", &format!("inject={call}:signal=KILL:when={nth}")]);
    command
}

/// The first calls each, later ones at growing distances.
fn moments() -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1_usize), |nth| Some(nth + 1 + nth / 12))
}

#[test]
fn killed_at_any_step_the_api_server_keeps_what_it_acknowledged() {
    let runtime = runtime();
    let mut kills = BTreeMap::new();
    for call in CALLS {
        for nth in moments() {
            let directory = tempfile::tempdir().expect("a directory");
            let data = directory.path().join("data");
            let when = format!("{call} {nth}");
            let mut known = Known::default();
            let finished = runtime.block_on(async {
                let server = Server::start_under(killer(call, nth), &data).await?;
                let api = server.api().await;
                known.live(&api).await
            });
            if finished.is_some() {
                break;
            }
            *kills.entry(call).or_insert(0) += 1;
            runtime.block_on(async {
                let server = Server::start(&data, None).await;
                known.check(&server.api().await, &when).await;
            });
        }
    }
    println!("killed at {kills:?}");
    assert!(kills.values().sum::<usize>() > 60, "{kills:?}");
}
