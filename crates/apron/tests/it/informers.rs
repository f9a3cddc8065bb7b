//! Informers, of kube and of client-go, through restarts and forgotten history: no object is
//! lost, no event missed, and all caches end as the server's list.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on must stop")]

use crate::control_plane::Server;
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const WRITERS: usize = 4;
const NAMES: usize = 8;

/// What a writer knows to be so.
#[derive(Debug, Clone)]
enum Fact {
    /// The object had this version.
    Is { name: String, version: u64 },
    /// It was removed after this version.
    Gone { name: String, after: u64 },
}

impl Fact {
    fn version(&self) -> u64 {
        match self {
            Self::Is { version, .. } => *version,
            Self::Gone { after, .. } => *after,
        }
    }
}

/// What an informer said.
#[derive(Debug, Clone)]
enum Seen {
    Put {
        name: String,
        version: u64,
        sequence: String,
    },
    /// Version zero: found missing in a new list.
    Gone {
        name: String,
        version: u64,
    },
    List,
}

/// Name to version and content.
type Cache = BTreeMap<String, (u64, String)>;

/// A list that several tasks write.
struct Shared<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Clone> Shared<T> {
    fn new() -> Self {
        Self(Arc::default())
    }

    fn push(&self, one: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(one);
    }

    fn all(&self) -> Vec<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn version(object: &ConfigMap) -> u64 {
    object.resource_version().and_then(|text| text.parse().ok()).expect("a version")
}

fn sequence(object: &ConfigMap) -> String {
    object.data.as_ref().and_then(|data| data.get("sequence")).cloned().unwrap_or_default()
}

/// Creates, changes and removes objects of its own until told to stop; writes down every
/// acknowledged write. After a failure it looks what is there: it cannot know what was done.
async fn write(api: Api<ConfigMap>, writer: usize, stop: Arc<AtomicBool>, facts: Shared<Fact>) {
    let mut known: BTreeMap<String, Option<u64>> = BTreeMap::new();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        let name = format!("w{writer}-{}", number * 5 % NAMES);
        let mut object = ConfigMap::default();
        object.metadata.name = Some(name.clone());
        object.data = Some([("sequence".to_owned(), number.to_string())].into());
        let present = known.get(&name).copied().flatten();
        let done = match present {
            None => api.create(&PostParams::default(), &object).await.map(Some),
            Some(_) if number % 7 == 0 => {
                api.delete(&name, &DeleteParams::default()).await.map(|_| None)
            }
            Some(_) if number % 3 == 0 => {
                let patch = serde_json::json!({"data": {"sequence": number.to_string()}});
                api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.map(Some)
            }
            Some(version) => {
                object.metadata.resource_version = Some(version.to_string());
                api.replace(&name, &PostParams::default(), &object).await.map(Some)
            }
        };
        let found = match done {
            Ok(found) => found,
            Err(_) => loop {
                match api.get_opt(&name).await {
                    Ok(found) => break found,
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            },
        };
        let now = found.as_ref().map(version);
        match (now, present) {
            (Some(version), _) => facts.push(Fact::Is { name: name.clone(), version }),
            (None, Some(after)) => facts.push(Fact::Gone { name: name.clone(), after }),
            (None, None) => {}
        }
        known.insert(name, now);
    }
}

/// Follows with kube's watcher, and keeps a cache as its reflector does.
async fn follow(
    api: Api<ConfigMap>,
    config: watcher::Config,
    seen: Shared<Seen>,
    cache: Arc<Mutex<Cache>>,
) {
    let mut events = std::pin::pin!(watcher(api, config));
    let mut fresh = Cache::new();
    while let Some(event) = events.next().await {
        let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Ok(watcher::Event::Init) => {
                seen.push(Seen::List);
                fresh.clear();
            }
            Ok(watcher::Event::InitApply(object)) => {
                fresh.insert(object.name_any(), (version(&object), sequence(&object)));
                seen.push(put(&object));
            }
            Ok(watcher::Event::InitDone) => *cache = std::mem::take(&mut fresh),
            Ok(watcher::Event::Apply(object)) => {
                cache.insert(object.name_any(), (version(&object), sequence(&object)));
                seen.push(put(&object));
            }
            Ok(watcher::Event::Delete(object)) => {
                cache.remove(&object.name_any());
                seen.push(Seen::Gone { name: object.name_any(), version: version(&object) });
            }
            Err(_) => {
                drop(cache);
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
        }
    }
}

fn put(object: &ConfigMap) -> Seen {
    let (version, sequence) = (version(object), sequence(object));
    Seen::Put { name: object.name_any(), version, sequence }
}

/// A client-go informer in a process of its own.
struct GoInformer {
    child: Child,
    seen: Shared<Seen>,
    dumps: std::sync::mpsc::Receiver<Cache>,
}

impl GoInformer {
    fn start(kubeconfig: &Path, streaming: bool) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let found = Command::new(root.join("scripts/peers")).args(["path", "informer"]).output();
        let found = found.expect("scripts/peers runs");
        assert!(found.status.success(), "the peer informer is missing: run scripts/peers");
        let mut child = Command::new(String::from_utf8_lossy(&found.stdout).trim())
            .arg(kubeconfig)
            .env("KUBE_FEATURE_WatchListClient", streaming.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the informer starts");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let (seen, (dump, dumps)) = (Shared::new(), std::sync::mpsc::channel());
        let told = seen.clone();
        std::thread::spawn(move || {
            let mut cache = Cache::new();
            for line in output.lines().map_while(Result::ok) {
                let words: Vec<&str> = line.split(' ').collect();
                let number = |text: &str| text.parse::<u64>().expect("a version");
                match words.as_slice() {
                    ["put", name, version, sequence] => told.push(Seen::Put {
                        name: (*name).to_owned(),
                        version: number(version),
                        sequence: (*sequence).to_owned(),
                    }),
                    ["gone", name, version] => {
                        told.push(Seen::Gone {
                            name: (*name).to_owned(),
                            version: number(version),
                        });
                    }
                    ["list"] => told.push(Seen::List),
                    ["cached", name, version, sequence] => {
                        let value = (number(version), (*sequence).to_owned());
                        cache.insert((*name).to_owned(), value);
                    }
                    ["end"] => _ = dump.send(std::mem::take(&mut cache)),
                    _ => panic!("the informer said {line:?}"),
                }
            }
        });
        Self { child, seen, dumps }
    }

    fn cache(&mut self) -> Cache {
        let input = self.child.stdin.as_mut().expect("its input");
        input.write_all(b"dump\n").expect("it listens");
        self.dumps.recv_timeout(Duration::from_secs(300)).expect("it answers")
    }
}

impl Drop for GoInformer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Everything acknowledged was seen. What was replaced or removed between two lists need not
/// have been; without a second list there is no such excuse.
fn check(who: &str, facts: &[Fact], seen: &[Seen], may_relist: bool) {
    let lists = seen.iter().filter(|seen| matches!(seen, Seen::List)).count();
    assert!(may_relist || lists == 1, "{who}: listed {lists} times");
    let mut puts: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let mut gone: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for one in seen {
        match one {
            Seen::Put { name, version, sequence } => {
                let furniture = name == "kube-root-ca.crt";
                assert!(furniture || !sequence.is_empty(), "{who}: {name} came without content");
                let last = puts.entry(name).or_default();
                let backwards = last.last().is_some_and(|last| last > version);
                assert!(!backwards, "{who}: {name} went back to {version} from {last:?}");
                last.push(*version);
            }
            Seen::Gone { name, version } => gone.entry(name).or_default().push(*version),
            Seen::List => {}
        }
    }
    let removed_after = |wanted: &str, version: u64| {
        facts.iter().any(
            |fact| matches!(fact, Fact::Gone { name, after } if name == wanted && *after >= version),
        )
    };
    for fact in facts {
        let fine = match fact {
            Fact::Is { name, version } => {
                let versions = puts.get(name.as_str()).map_or(&[][..], Vec::as_slice);
                versions.contains(version)
                    || lists > 1
                        && (versions.iter().any(|seen| seen > version)
                            || removed_after(name, *version))
            }
            Fact::Gone { name, after } => {
                let versions = gone.get(name.as_str()).map_or(&[][..], Vec::as_slice);
                lists > 1 || versions.iter().any(|seen| seen > after)
            }
        };
        assert!(fine, "{who} missed {fact:?}");
    }
}

/// No version names two writes.
fn check_versions(facts: &[Fact]) {
    let mut named: BTreeMap<u64, &str> = BTreeMap::new();
    for fact in facts {
        let Fact::Is { name, version } = fact else { continue };
        let other = named.insert(*version, name);
        assert!(other.is_none_or(|other| other == name), "{version}: {name} and {other:?}");
    }
}

/// What is written after a restart has a higher version than anything before.
async fn check_new(api: &Api<ConfigMap>, round: usize, highest: Option<u64>) {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(format!("restart-{round}"));
    object.data = Some([("sequence".to_owned(), round.to_string())].into());
    let made = api.create(&PostParams::default(), &object).await.expect("a write");
    assert!(Some(version(&made)) > highest, "{:?} after {highest:?}", version(&made));
}

/// What the server has, as a cache.
async fn listed(api: &Api<ConfigMap>) -> Cache {
    let list = api.list(&ListParams::default()).await.expect("a list");
    let entry = |object: ConfigMap| (object.name_any(), (version(&object), sequence(&object)));
    list.items.into_iter().map(entry).collect()
}

/// Someone who follows with kube: who, what was seen, and the cache.
type Follower = (&'static str, Shared<Seen>, Arc<Mutex<Cache>>);

/// Waits until everybody has what the server has.
async fn agree(
    api: &Api<ConfigMap>,
    followers: &[Follower],
    informers: &mut [(&'static str, GoInformer)],
) {
    let deadline = Instant::now() + Duration::from_secs(300);
    loop {
        let truth = listed(api).await;
        let mut caches: Vec<(&str, Cache)> = Vec::new();
        for (who, _, cache) in followers {
            caches.push((who, cache.lock().unwrap_or_else(PoisonError::into_inner).clone()));
        }
        for (who, informer) in &mut *informers {
            caches.push((who, informer.cache()));
        }
        let Some((who, cache)) = caches.into_iter().find(|(_, cache)| *cache != truth) else {
            return;
        };
        assert!(Instant::now() < deadline, "{who} has {cache:?}\nthe server has {truth:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Runs writers and informers while the server is killed and started again; gives how many
/// events each informer saw, and how often it listed.
async fn run(keep: Option<usize>, may_relist: bool) -> Vec<(&'static str, usize, usize)> {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = Server::start(&directory.path().join("data"), keep).await;
    let api = server.api().await;
    let (stop, facts) = (Arc::new(AtomicBool::new(false)), Shared::new());
    let mut followers = Vec::new();
    let base = watcher::Config::default();
    for (who, config) in
        [("kube, list and watch", base.clone()), ("kube, streaming", base.streaming_lists())]
    {
        let (seen, cache) = (Shared::new(), Arc::new(Mutex::new(Cache::new())));
        let api = server.api().await;
        tokio::spawn(follow(api, config, seen.clone(), Arc::clone(&cache)));
        followers.push((who, seen, cache));
    }
    let mut informers = [
        ("client-go, streaming", GoInformer::start(&server.kubeconfig(), true)),
        ("client-go, list and watch", GoInformer::start(&server.kubeconfig(), false)),
    ];
    // What was replaced before somebody's first list is not theirs to see.
    agree(&api, &followers, &mut informers).await;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let api = server.api().await;
        writers.spawn(write(api, writer, Arc::clone(&stop), facts.clone()));
    }
    let all = followers.iter().map(|(_, seen, _)| seen.clone());
    let all: Vec<_> = all.chain(informers.iter().map(|(_, it)| it.seen.clone())).collect();
    let lists =
        |seen: &Shared<Seen>| seen.all().iter().filter(|seen| matches!(seen, Seen::List)).count();
    let deadline = Instant::now() + Duration::from_secs(900);
    for round in 0.. {
        // Whether somebody comes back too late is a matter of luck, so it is tried until it is so.
        let enough =
            !may_relist || all.iter().any(|seen| lists(seen) > 1) || Instant::now() > deadline;
        if round >= 5 && enough {
            break;
        }
        let before = facts.all().len();
        while facts.all().len() < before + 120 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let highest = facts.all().iter().map(Fact::version).max();
        server.restart().await;
        check_new(&api, round, highest).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    stop.store(true, Ordering::Relaxed);
    while writers.join_next().await.is_some() {}
    agree(&api, &followers, &mut informers).await;
    let facts = facts.all();
    check_versions(&facts);
    let told = followers.iter().map(|(who, seen, _)| (*who, seen.all()));
    let told = told.chain(informers.iter().map(|(who, informer)| (*who, informer.seen.all())));
    let mut lists = Vec::new();
    for (who, seen) in told {
        check(who, &facts, &seen, may_relist);
        let listed = seen.iter().filter(|seen| matches!(seen, Seen::List)).count();
        lists.push((who, seen.len() - listed, listed));
    }
    lists
}

#[test]
fn informers_see_every_write_through_restarts_of_the_server() {
    let counted = crate::control_plane::runtime().block_on(run(None, false));
    println!("events and lists: {counted:?}");
}

#[test]
fn informers_start_over_when_the_server_has_forgotten_and_lose_nothing() {
    let counted = crate::control_plane::runtime().block_on(run(Some(40), true));
    println!("events and lists: {counted:?}");
    assert!(counted.iter().any(|(_, _, lists)| *lists > 1), "nobody started over: {counted:?}");
}
