//! Upkeep driven by hand: nothing here sleeps, and the clock is a number.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::*;
use crate::log::{Limits, Log, Sqlite};
use crate::runtime::Hosting;
use crate::testing::{Still, ask, server, server_with};
use crate::world::World;
use crate::{Options, Server};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn make(server: &Arc<Server>, name: &str, owner: Option<&Value>) -> Value {
    let mut metadata = json!({"name": name});
    if let Some(owner) = owner {
        metadata["ownerReferences"] = json!([{
            "apiVersion": owner["apiVersion"], "kind": owner["kind"],
            "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": true,
        }]);
    }
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    ask(server, "POST", MAPS, object).await
}

async fn exists(server: &Arc<Server>, name: &str) -> bool {
    ask(server, "GET", &format!("{MAPS}/{name}"), Value::Null).await["kind"] == "ConfigMap"
}

async fn delete(server: &Arc<Server>, name: &str, policy: &str) -> Value {
    ask(server, "DELETE", &format!("{MAPS}/{name}?propagationPolicy={policy}"), Value::Null).await
}

#[tokio::test]
async fn nothing_happens_until_it_is_driven() {
    let server = server(Log::in_memory()).await;
    let owner = make(&server, "owner", None).await;
    make(&server, "dependent", Some(&owner)).await;
    server.settle().await;
    delete(&server, "owner", "Background").await;
    assert!(exists(&server, "dependent").await);
    assert!(server.step().await);
    assert!(!exists(&server, "dependent").await);
    assert!(!server.step().await, "one step was all there was to do");
}

#[tokio::test]
async fn a_crash_after_the_owner_is_gone_heals_at_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Log::open(Box::new(Sqlite::open(directory.path())?), Limits::default());
    let first = server(open().unwrap()).await;
    let owner = make(&first, "owner", None).await;
    let child = make(&first, "child", Some(&owner)).await;
    make(&first, "grandchild", Some(&child)).await;
    let waiting = make(&first, "waiting", None).await;
    make(&first, "blocking", Some(&waiting)).await;
    let leaving = make(&first, "leaving", None).await;
    make(&first, "orphan", Some(&leaving)).await;
    delete(&first, "owner", "Background").await;
    delete(&first, "waiting", "Foreground").await;
    delete(&first, "leaving", "Orphan").await;
    drop(first);
    let log = loop {
        match open() {
            Ok(log) => break log,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let second = server(log).await;
    second.settle().await;
    for gone in ["owner", "child", "grandchild", "waiting", "blocking", "leaving"] {
        assert!(!exists(&second, gone).await, "{gone}");
    }
    let orphan = ask(&second, "GET", &format!("{MAPS}/orphan"), Value::Null).await;
    assert_eq!(orphan["metadata"]["ownerReferences"], Value::Null);
    assert_eq!(orphan["kind"], "ConfigMap");
}

#[tokio::test]
async fn falling_behind_the_log_is_no_loss() {
    let server = server(Log::in_memory()).await;
    let owner = make(&server, "owner", None).await;
    make(&server, "dependent", Some(&owner)).await;
    server.settle().await;
    delete(&server, "owner", "Background").await;
    server.log.forget(server.log.version());
    server.settle().await;
    assert!(!exists(&server, "dependent").await);
}

#[tokio::test]
async fn a_foreground_delete_of_many_looks_at_each_once() {
    let server = server(Log::in_memory()).await;
    let owner = make(&server, "owner", None).await;
    for n in 0..200 {
        make(&server, &format!("dependent-{n}"), Some(&owner)).await;
    }
    server.settle().await;
    delete(&server, "owner", "Foreground").await;
    let mut steps = 0;
    while server.step().await {
        steps += 1;
    }
    assert!(!exists(&server, "owner").await);
    assert!(steps <= 202, "{steps} steps for 200 dependents and their owner");
}

#[tokio::test]
async fn an_unknown_owner_is_judged_when_its_kind_is_defined() {
    let server = server(Log::in_memory()).await;
    let owner = json!({
        "apiVersion": "example.org/v1", "kind": "Widget",
        "metadata": {"name": "w", "uid": "11111111-2222-4333-8444-555555555555"},
    });
    make(&server, "dependent", Some(&owner)).await;
    server.settle().await;
    assert!(exists(&server, "dependent").await);
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    ask(&server, "POST", path, definition()).await;
    server.settle().await;
    assert!(!exists(&server, "dependent").await);
}

#[test]
fn what_fails_is_tried_again_later_and_later() {
    let mut state = State::default();
    let duty = Duty::Collect("a".into());
    let mut now = 100;
    for pause in [1, 2, 4, 8, 16, 32, 64, 64] {
        state.add(duty.clone());
        assert_eq!(state.next(now).as_ref(), Some(&duty));
        state.close(duty.clone(), Outcome::Later, now);
        assert_eq!(state.later.first().map(|(due, _)| *due), Some(now + pause));
        assert_eq!(state.next(now + pause - 1), None);
        now += pause;
        assert_eq!(state.next(now).as_ref(), Some(&duty));
    }
    state.close(duty.clone(), Outcome::Done, now);
    assert!(state.failures.is_empty());
}

#[tokio::test]
async fn the_task_of_a_server_does_it_unasked_and_ends_with_it() {
    let server = server(Log::in_memory()).await;
    server.attend();
    let owner = make(&server, "owner", None).await;
    make(&server, "dependent", Some(&owner)).await;
    delete(&server, "owner", "Background").await;
    while exists(&server, "dependent").await {
        tokio::task::yield_now().await;
    }
    let weak = Arc::downgrade(&server);
    drop(server);
    while weak.strong_count() > 0 {
        tokio::task::yield_now().await;
    }
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    })
}

/// The request that deletes a definition and the upkeep that lets it go both say what is
/// served from then on. Whoever comes last must not bring the kind back. The definition is
/// a long one, so that reading it takes longer than removing it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_does_not_outlive_its_definition() {
    let server = server(Log::in_memory()).await;
    server.attend();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let mut long = definition();
    let fields = (0..2000).map(|n| (format!("field{n}"), json!({"type": "string"})));
    let fields: serde_json::Map<String, Value> = fields.collect();
    long["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = json!(fields);
    let name = "widgets.example.org";
    for round in 0..10 {
        ask(&server, "POST", definitions, long.clone()).await;
        let key = "customresourcedefinitions.apiextensions.k8s.io//widgets.example.org";
        let (other, asking) = (Arc::clone(&server), tokio::runtime::Handle::current());
        let other = std::thread::spawn(move || {
            while other.log.get(key).is_some() {
                asking.block_on(crate::crd::settle(&other, name));
            }
        });
        ask(&server, "DELETE", &format!("{definitions}/{name}"), Value::Null).await;
        tokio::task::spawn_blocking(|| other.join()).await.unwrap().unwrap();
        let asked = std::time::Instant::now();
        while server.kinds.find("example.org", "v1", "widgets").is_some() {
            assert!(asked.elapsed().as_secs() < 60, "still served after round {round}");
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn namespaces_and_definitions_half_gone_go_after_a_restart() {
    let log = Log::in_memory();
    let first = server(log.clone()).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    ask(&first, "POST", "/api/v1/namespaces", namespace).await;
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    ask(&first, "POST", "/api/v1/namespaces/n/secrets", object).await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    ask(&first, "POST", definitions, definition()).await;
    let widgets = "/apis/example.org/v1/namespaces/default/widgets";
    let widget =
        json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w"}});
    ask(&first, "POST", widgets, widget).await;
    ask(&first, "DELETE", "/api/v1/namespaces/n", Value::Null).await;
    let one = format!("{definitions}/widgets.example.org");
    ask(&first, "DELETE", &one, Value::Null).await;
    drop(first);

    let second = server(log).await;
    let left = ask(&second, "GET", widgets, Value::Null).await;
    assert_eq!(left["items"].as_array().map(Vec::len), Some(1), "nothing was driven yet");
    second.settle().await;
    for path in ["/api/v1/namespaces/n", "/api/v1/namespaces/n/secrets/s", &one] {
        assert_eq!(ask(&second, "GET", path, Value::Null).await["code"], 404, "{path}");
    }
    let left = second.log.list("", None).unwrap();
    let names: Vec<&str> = left.entries.iter().map(|(key, _)| &**key).collect();
    assert!(!names.iter().any(|key| key.contains("widgets") || key.contains("/n/")), "{names:?}");
}

#[tokio::test]
async fn a_definition_is_established_after_a_crash_before_its_status_was_written() {
    let log = Log::in_memory();
    let key = "customresourcedefinitions.apiextensions.k8s.io//widgets.example.org".to_owned();
    let mut object = definition();
    object["spec"]["names"]["listKind"] = json!("WidgetList");
    let value = Some(bytes::Bytes::from(object.to_string()));
    let write = crate::log::Write { key, expect: crate::log::Expect::Absent, value };
    log.write(write).await.unwrap();
    let server = server(log).await;
    assert!(server.kinds.find("example.org", "v1", "widgets").is_none());
    server.settle().await;
    assert!(server.kinds.find("example.org", "v1", "widgets").is_some());
}

const DEPLOYMENTS_PATH: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment(replicas: u64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "x:1"}]},
            },
        },
    })
}

async fn status(server: &Arc<Server>) -> Value {
    server.settle().await;
    ask(server, "GET", &format!("{DEPLOYMENTS_PATH}/d"), Value::Null).await["status"].clone()
}

fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
    let list = status["conditions"].as_array().unwrap();
    list.iter().find(|one| one["type"] == kind).unwrap()
}

#[tokio::test]
async fn a_simulated_deployment_is_available_and_follows_its_wishes() {
    let options = Options { runtime: Hosting::simulated(), ..Options::default() };
    let server = server_with(Log::in_memory(), options).await;
    ask(&server, "POST", DEPLOYMENTS_PATH, deployment(2)).await;
    let first = status(&server).await;
    for (field, count) in [
        ("observedGeneration", 1),
        ("replicas", 2),
        ("updatedReplicas", 2),
        ("readyReplicas", 2),
        ("availableReplicas", 2),
    ] {
        assert_eq!(first[field], count, "{field}");
    }
    assert_eq!(first["unavailableReplicas"], Value::Null);
    let available = condition(&first, "Available");
    assert_eq!(available["status"], "True");
    assert_eq!(available["reason"], "MinimumReplicasAvailable");
    assert_eq!(condition(&first, "Progressing")["reason"], "NewReplicaSetAvailable");

    let one = format!("{DEPLOYMENTS_PATH}/d");
    let scale = json!({"spec": {"replicas": 0}});
    ask(&server, "PATCH", &format!("{one}/scale"), scale).await;
    let scaled = status(&server).await;
    assert_eq!((&scaled["observedGeneration"], &scaled["replicas"]), (&json!(2), &Value::Null));
    assert_eq!(condition(&scaled, "Available"), available, "nothing changed here");
    let version = server.log.version();
    server.settle().await;
    assert_eq!(server.log.version(), version, "what is true is not written again");

    ask(&server, "PATCH", &one, json!({"spec": {"paused": true, "replicas": 3}})).await;
    let paused = status(&server).await;
    assert_eq!(paused["observedGeneration"], 3);
    assert_eq!(condition(&paused, "Progressing")["reason"], "DeploymentPaused");
    ask(&server, "DELETE", &format!("{one}?propagationPolicy=Foreground"), Value::Null).await;
    assert_eq!(status(&server).await, "Failure", "it is gone");
}

/// What is only simulated says so, also where an earlier version said nothing; a runtime that runs
/// something takes it back.
#[tokio::test]
async fn a_deployment_says_that_it_is_only_simulated_as_long_as_it_is() {
    const REMARK: &str = "nothing runs here: pods are only simulated";
    const PLAIN: &str = "Deployment has minimum availability.";
    let log = Log::in_memory();
    let pods = crate::runtime::Pods { total: 2, updated: 2, ready: 2, available: 2 };
    let runs = || Scripted { pods: Mutex::new(pods), ..Scripted::default() };
    let start = async |runtime: Arc<dyn crate::runtime::Runtime>| {
        let options = Options { runtime: Hosting::Counted(runtime), ..Options::default() };
        server_with(log.clone(), options).await
    };
    let first = start(Arc::new(runs())).await;
    ask(&first, "POST", DEPLOYMENTS_PATH, deployment(2)).await;
    let plain = status(&first).await;
    let kinds = |status: &Value| -> Vec<String> {
        let all = status["conditions"].as_array().unwrap().iter();
        all.map(|one| one["type"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(kinds(&plain), ["Available", "Progressing"]);
    assert_eq!(condition(&plain, "Available")["message"], PLAIN);

    let simulated = status(&start(Arc::new(crate::runtime::Simulated)).await).await;
    assert_eq!(kinds(&simulated), ["Available", "Progressing", "Simulated"]);
    let said = condition(&simulated, "Simulated");
    assert_eq!((&said["status"], &said["reason"]), (&json!("True"), &json!("NothingRuns")));
    assert_eq!(said["message"], REMARK);
    let available = condition(&simulated, "Available");
    assert_eq!(available["status"], "True", "dependents go on");
    assert_eq!(available["message"], format!("Deployment has minimum availability; {REMARK}."));
    let transition = |status: &Value| condition(status, "Available")["lastTransitionTime"].clone();
    assert_eq!(transition(&simulated), transition(&plain));

    let again = status(&start(Arc::new(runs())).await).await;
    assert_eq!(kinds(&again), ["Available", "Progressing"]);
    assert_eq!(condition(&again, "Available")["message"], PLAIN);
}

/// A runtime that has what a test says it has, and remembers what it was told.
#[derive(Debug, Default)]
struct Scripted {
    pods: Mutex<crate::runtime::Pods>,
    stopped: Mutex<Vec<String>>,
}

impl crate::runtime::Runtime for Scripted {
    fn run(&self, _deployment: &Value) -> crate::runtime::Pods {
        *self.pods.lock().unwrap()
    }

    fn stop(&self, namespace: &str, name: &str) {
        self.stopped.lock().unwrap().push(format!("{namespace}/{name}"));
    }
}

#[tokio::test]
async fn a_deployment_says_what_its_runtime_says() {
    let runtime = Arc::new(Scripted::default());
    let shared: Arc<dyn crate::runtime::Runtime> = Arc::clone(&runtime) as _;
    let options = Options { runtime: Hosting::Counted(shared), ..Options::default() };
    let server = server_with(Log::in_memory(), options).await;
    ask(&server, "POST", DEPLOYMENTS_PATH, deployment(4)).await;
    let none = status(&server).await;
    assert_eq!(condition(&none, "Available")["reason"], "MinimumReplicasUnavailable");
    assert_eq!(condition(&none, "Progressing")["reason"], "ReplicaSetUpdated");
    *runtime.pods.lock().unwrap() =
        crate::runtime::Pods { total: 4, updated: 4, ready: 3, available: 3 };
    server.look_again("default", "d");
    let most = status(&server).await;
    assert_eq!(most["unavailableReplicas"], 1);
    assert_eq!(condition(&most, "Available")["status"], "True", "a quarter may be missing");
    assert_eq!(condition(&most, "Progressing")["reason"], "ReplicaSetUpdated");
    ask(&server, "DELETE", &format!("{DEPLOYMENTS_PATH}/d"), Value::Null).await;
    server.settle().await;
    assert_eq!(*runtime.stopped.lock().unwrap(), ["default/d"]);
}

#[tokio::test]
async fn every_namespace_has_an_account_and_the_certificates() {
    let options = Options { root_ca: Some("PEM".to_owned()), ..Options::default() };
    let server = server_with(Log::in_memory(), options).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    ask(&server, "POST", "/api/v1/namespaces", namespace).await;
    server.settle().await;
    for namespace in ["default", "kube-system", "n"] {
        let account = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
        let map = format!("/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt");
        assert_eq!(ask(&server, "GET", &account, Value::Null).await["kind"], "ServiceAccount");
        assert_eq!(ask(&server, "GET", &map, Value::Null).await["data"]["ca.crt"], "PEM");
        ask(&server, "DELETE", &account, Value::Null).await;
        ask(&server, "PATCH", &map, json!({"data": {"ca.crt": "other"}})).await;
        server.settle().await;
        assert_eq!(ask(&server, "GET", &account, Value::Null).await["kind"], "ServiceAccount");
        assert_eq!(ask(&server, "GET", &map, Value::Null).await["data"]["ca.crt"], "PEM");
    }
    ask(&server, "DELETE", "/api/v1/namespaces/n", Value::Null).await;
    server.settle().await;
    assert_eq!(ask(&server, "GET", "/api/v1/namespaces/n", Value::Null).await["code"], 404);
}

#[tokio::test]
async fn events_are_one_storage_with_two_shapes_and_go_after_an_hour() {
    let world = Arc::new(Still::default());
    let shared: Arc<dyn World> = Arc::clone(&world) as _;
    let server = Server::new(Log::in_memory(), Options::default(), shared);
    server.furnish().await.unwrap();
    let newer = "/apis/events.k8s.io/v1/namespaces/default/events";
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
        "eventTime": "2026-01-01T00:00:00.123456Z", "reportingController": "example.org/c",
        "reportingInstance": "i", "action": "A", "reason": "R", "type": "Normal", "note": "n",
        "regarding": {"kind": "ConfigMap", "name": "x", "namespace": "default"},
    });
    ask(&server, "POST", newer, event).await;
    server.settle().await;
    let core = "/api/v1/namespaces/default/events/e";
    let seen = ask(&server, "GET", core, Value::Null).await;
    assert_eq!((&seen["message"], &seen["involvedObject"]["name"]), (&json!("n"), &json!("x")));
    assert_eq!(seen["reportingComponent"], "example.org/c");
    world.now.store(3000, Ordering::Relaxed);
    ask(&server, "PATCH", core, json!({"count": 2})).await;
    server.settle().await;
    world.now.store(3601, Ordering::Relaxed);
    server.settle().await;
    assert_eq!(ask(&server, "GET", core, Value::Null).await["count"], 2, "it was heard of again");
    assert_eq!(server.due(), Some(6600));
    world.now.store(6600, Ordering::Relaxed);
    server.settle().await;
    assert_eq!(ask(&server, "GET", core, Value::Null).await["code"], 404);
}

/// A runtime that breaks down over Deployments until it is mended.
#[derive(Debug, Default)]
struct Brittle {
    is_mended: std::sync::atomic::AtomicBool,
}

impl crate::runtime::Runtime for Brittle {
    fn run(&self, deployment: &Value) -> crate::runtime::Pods {
        assert!(self.is_mended.load(Ordering::SeqCst), "it broke");
        crate::runtime::Simulated.run(deployment)
    }

    fn stop(&self, _namespace: &str, _name: &str) {}
}

/// H2, the second half: the garbage collector and its siblings outlive what breaks them.
#[tokio::test]
async fn h2_a_duty_that_panics_keeps_no_other_from_being_done_and_is_tried_again() {
    let (runtime, world) = (Arc::new(Brittle::default()), Arc::new(Still::default()));
    let options =
        Options { runtime: Hosting::Counted(Arc::clone(&runtime) as _), ..Options::default() };
    let server = Server::new(Log::in_memory(), options, Arc::clone(&world) as _);
    server.furnish().await.unwrap();
    ask(&server, "POST", DEPLOYMENTS_PATH, deployment(2)).await;
    let owner = make(&server, "owner", None).await;
    make(&server, "dependent", Some(&owner)).await;
    delete(&server, "owner", "Background").await;
    server.settle().await;
    assert!(!exists(&server, "dependent").await, "garbage is collected all the same");
    for pause in [1, 2, 4] {
        let due = server.due().unwrap();
        assert_eq!(due, world.now() + pause, "it waits longer each time");
        world.now.store(due, Ordering::SeqCst);
        server.settle().await;
    }
    runtime.is_mended.store(true, Ordering::SeqCst);
    world.now.store(server.due().unwrap(), Ordering::SeqCst);
    assert_eq!(status(&server).await["readyReplicas"], 2);
}
