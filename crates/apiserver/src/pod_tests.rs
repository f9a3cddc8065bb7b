//! Pods at their bounds: how late they end, what a binding stores, how many logs are open, and whose
//! pods a server that simulates them takes away.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::log::Log;
use crate::runtime::{Hosting, LogPieces, LogQuery, PodLogs};
use crate::testing::{Still, answer_as, ask, ask_as};
use crate::{Identity, Options, Server};
use schema::object::time;

const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const MERGE: &str = "application/merge-patch+json";

async fn start(log: Log, runtime: Hosting) -> (Arc<Server>, Arc<Still>) {
    let root_ca = Some("certificates".to_owned());
    let world = Arc::new(Still::at(1_700_000_000));
    let options = Options { runtime, root_ca, ..Options::default() };
    let server = Server::new(log, options, Arc::clone(&world) as _);
    server.furnish().await.unwrap();
    (server, world)
}

async fn make_node(server: &Arc<Server>, name: &str) {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
    assert_eq!(ask(server, "POST", NODES, node).await["kind"], "Node");
}

/// A pod with a node, and whatever its specification says besides.
fn pod_on(node: &str, name: &str, spec: &Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    if !node.is_empty() {
        pod["spec"]["nodeName"] = json!(node);
    }
    for (field, value) in spec.as_object().into_iter().flatten() {
        pod["spec"][field] = value.clone();
    }
    pod
}

async fn make_pod(server: &Arc<Server>, pod: Value) -> String {
    let made = ask(server, "POST", PODS, pod).await;
    assert_eq!(made["kind"], "Pod", "{}", made["message"]);
    format!("{PODS}/{}", made["metadata"]["name"].as_str().unwrap())
}

async fn code_of(server: &Arc<Server>, path: &str) -> Value {
    ask(server, "GET", path, Value::Null).await["code"].clone()
}

/// H4: a pod that ended in the year 292277026596 could not be read by typed clients, nor could any
/// list or watch with it.
#[tokio::test]
async fn h4_no_pod_ends_later_than_can_be_written() {
    let longest = i64::from(i32::MAX);
    for hosting in [Hosting::Unattended, Hosting::Pods] {
        let (server, world) = start(Log::in_memory(), hosting).await;
        let now = world.now.load(Ordering::SeqCst);
        if server.options.runtime.makes_pods() {
            server.settle().await;
        } else {
            make_node(&server, "apron").await;
        }
        let long = json!({"terminationGracePeriodSeconds": i64::MAX});
        for (at, (spec, query, seconds)) in [
            (long.clone(), String::new(), longest),
            (json!({}), format!("?gracePeriodSeconds={}", i64::MAX), longest),
            (json!({}), format!("?gracePeriodSeconds={}", i64::from(i32::MAX) + 1), longest),
            (long, "?gracePeriodSeconds=9".to_owned(), 9),
            (json!({"terminationGracePeriodSeconds": -7}), String::new(), 1),
            (json!({}), format!("?gracePeriodSeconds={}", i64::MIN), 1),
        ]
        .into_iter()
        .enumerate()
        {
            let path = make_pod(&server, pod_on("apron", &format!("p{at}"), &spec)).await;
            let marked = ask(&server, "DELETE", &format!("{path}{query}"), Value::Null).await;
            let until = time::format(now + seconds.unsigned_abs());
            assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], seconds, "{at}: {marked}");
            assert_eq!(marked["metadata"]["deletionTimestamp"], until, "{at}");
            assert_eq!(until.len(), "2006-01-02T15:04:05Z".len());
        }
        let body = json!({
            "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": -3,
        });
        let shorter = ask(&server, "DELETE", &format!("{PODS}/p0"), body).await;
        assert_eq!(shorter["metadata"]["deletionTimestamp"], time::format(now + 1));
        assert_eq!(shorter["metadata"]["deletionGracePeriodSeconds"], 1, "{shorter}");
    }
}

/// A time that was shortened when more than it had gone by lay in the past.
#[tokio::test]
async fn a_shorter_time_to_end_that_is_over_is_the_shortest_from_now_on() {
    for hosting in [Hosting::Unattended, Hosting::Pods] {
        let (server, world) = start(Log::in_memory(), hosting).await;
        if !server.options.runtime.makes_pods() {
            make_node(&server, "apron").await;
        }
        server.settle().await;
        let began = world.now.load(Ordering::SeqCst);
        for (name, after, wished, expected) in
            [("past", 20, 5, (20, 1)), ("due", 5, 5, (5, 1)), ("ahead", 2, 5, (5, 5))]
        {
            world.now.store(began, Ordering::SeqCst);
            let path = make_pod(&server, pod_on("apron", name, &json!({}))).await;
            ask(&server, "DELETE", &path, Value::Null).await;
            world.now.store(began + after, Ordering::SeqCst);
            let shorter = format!("{path}?gracePeriodSeconds={wished}");
            let marked = ask(&server, "DELETE", &shorter, Value::Null).await;
            let told = &marked["metadata"];
            assert_eq!(told["deletionTimestamp"], time::format(began + expected.0), "{name}");
            assert_eq!(told["deletionGracePeriodSeconds"], expected.1, "{name}");
            ask(&server, "DELETE", &format!("{path}?gracePeriodSeconds=0"), Value::Null).await;
            assert_eq!(code_of(&server, &path).await, 404, "{name}");
        }
    }
}

/// A pod that named its account by the older field alone ran as another.
#[tokio::test]
async fn the_older_field_of_a_pods_account_is_as_good_as_the_newer() {
    let (server, _) = start(Log::in_memory(), Hosting::Pods).await;
    server.settle().await;
    let older = json!({"serviceAccount": "x"});
    let refused = ask(&server, "POST", PODS, pod_on("apron", "p", &older)).await;
    assert_eq!(refused["code"], 403, "{refused}");
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    for name in ["x", "y"] {
        ask(&server, "POST", accounts, json!({"metadata": {"name": name}})).await;
    }
    let both = json!({"serviceAccount": "x", "serviceAccountName": "y"});
    for (spec, name) in [(older, "x"), (both, "y")] {
        let path = make_pod(&server, pod_on("apron", name, &spec)).await;
        let pod = ask(&server, "GET", &path, Value::Null).await;
        assert_eq!(pod["spec"]["serviceAccountName"], name);
        assert_eq!(pod["spec"]["serviceAccount"], name);
    }
}

/// The Node of a pod was deleted, or never made: its namespace ended never.
#[tokio::test]
async fn a_pod_of_a_node_that_is_not_there_goes_at_once_and_so_does_its_namespace() {
    let (server, _) = start(Log::in_memory(), Hosting::Pods).await;
    server.settle().await;
    make_node(&server, "one").await;
    let lost = make_pod(&server, pod_on("none", "lost", &json!({}))).await;
    ask(&server, "DELETE", &lost, Value::Null).await;
    assert_eq!(code_of(&server, &lost).await, 404);
    let there = make_pod(&server, pod_on("one", "there", &json!({}))).await;
    let marked = ask(&server, "DELETE", &there, Value::Null).await;
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);

    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    ask(&server, "POST", "/api/v1/namespaces", namespace).await;
    server.settle().await;
    let inside = "/api/v1/namespaces/n/pods";
    for (node, name) in [("none", "lost"), ("one", "ending"), ("one", "running")] {
        let made = ask(&server, "POST", inside, pod_on(node, name, &json!({}))).await;
        assert_eq!(made["kind"], "Pod", "{made}");
    }
    ask(&server, "DELETE", &format!("{inside}/ending"), Value::Null).await;
    assert_eq!(code_of(&server, &format!("{inside}/ending")).await, Value::Null);
    ask(&server, "DELETE", &format!("{NODES}/one"), Value::Null).await;
    ask(&server, "DELETE", "/api/v1/namespaces/n", Value::Null).await;
    server.settle().await;
    assert_eq!(code_of(&server, "/api/v1/namespaces/n").await, 404);
}

/// Where controllers are outside, as beside a real API server, the collection is theirs.
#[tokio::test]
async fn a_pod_of_a_node_that_is_not_there_is_given_time_where_controllers_are_outside() {
    let (server, _) = start(Log::in_memory(), Hosting::Unattended).await;
    let path = make_pod(&server, pod_on("none", "p", &json!({}))).await;
    let marked = ask(&server, "DELETE", &path, Value::Null).await;
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
}

fn binding(annotations: &Value, target: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Binding", "target": target,
        "metadata": {"name": "p", "annotations": annotations},
    })
}

/// H4: a binding stored annotations of any type, and any text as the name of a node.
#[tokio::test]
async fn h4_a_binding_stores_only_what_can_be_read() {
    let (server, _) = start(Log::in_memory(), Hosting::Unattended).await;
    let path = make_pod(&server, pod_on("", "p", &json!({}))).await;
    let before = ask(&server, "GET", &path, Value::Null).await;
    let node = |name: &str| json!({"kind": "Node", "name": name});
    let unread = "Binding in version \"v1\" cannot be handled as a Binding: json: cannot unmarshal";
    let mut labelled = binding(&json!({}), &node("n"));
    labelled["metadata"]["labels"] = json!({"a": 1});
    let mut other = binding(&json!({}), &node("n"));
    other["kind"] = json!("Pod");
    let long = "n".repeat(300);
    for (body, code, said) in [
        (binding(&json!({"a": 1}), &node("n")), 400, unread),
        (binding(&json!({"a": {"b": []}}), &node("n")), 400, unread),
        (binding(&json!("a"), &node("n")), 400, unread),
        (labelled, 400, unread),
        (binding(&json!({}), &json!("n")), 400, unread),
        (binding(&json!({}), &json!({"kind": 1, "name": "n"})), 400, unread),
        (binding(&json!({}), &json!({"name": ["n"]})), 400, unread),
        (other, 400, "Pod in version \"v1\" cannot be handled as a Binding"),
        (json!([]), 400, "couldn't get version/kind"),
        (binding(&json!({}), &node("no/node")), 422, "Binding \"p\" is invalid: target.name"),
        (binding(&json!({}), &node("Node\u{202e}")), 422, "target.name"),
        (binding(&json!({}), &node(&long)), 422, "must be no more than 253 characters"),
        (binding(&json!({}), &json!({"kind": "Pod", "name": "n"})), 500, "target.kind"),
        (
            binding(&json!({"a b": "c"}), &node("n")),
            422,
            "Pod \"p\" is invalid: metadata.annotations",
        ),
        (binding(&json!({"a": "x".repeat(300_000)}), &node("n")), 422, "more than 262144 bytes"),
    ] {
        let answer = ask(&server, "POST", &format!("{path}/binding"), body).await;
        let message = answer["message"].as_str().unwrap();
        assert_eq!(answer["code"], code, "{said}: {message}");
        assert!(message.contains(said), "{said}: {message}");
    }
    assert_eq!(ask(&server, "GET", &path, Value::Null).await, before, "nothing was stored");

    let media = "application/vnd.kubernetes.protobuf";
    let answer = answer_as(&server, "POST", &format!("{path}/binding"), media, json!("x")).await;
    assert_eq!(answer.status(), 415);

    let fine = binding(&json!({"a": "b", "c": null}), &node("n.example.org"));
    let bound = ask(&server, "POST", &format!("{path}/binding"), fine).await;
    assert_eq!(bound["status"], "Success", "{bound}");
    let pod = ask(&server, "GET", &path, Value::Null).await;
    assert_eq!(pod["metadata"]["annotations"], json!({"a": "b", "c": ""}));
    assert_eq!(pod["spec"]["nodeName"], "n.example.org");
}

/// M8: the annotations of bindings made pods of any size.
#[tokio::test]
async fn m8_a_binding_makes_no_pod_bigger_than_a_store_takes() {
    let (server, _) = start(Log::in_memory(), Hosting::Unattended).await;
    let value = "x".repeat((3 << 19) - 100_000);
    let container = json!({"name": "c", "image": "i", "env": [{"name": "E", "value": value}]});
    let path = make_pod(&server, pod_on("", "p", &json!({"containers": [container]}))).await;
    let bind = async |size: usize| {
        let target = json!({"kind": "Node", "name": "n"});
        let body = binding(&json!({"a": "x".repeat(size)}), &target);
        ask(&server, "POST", &format!("{path}/binding"), body).await
    };
    let refused = bind(200_000).await;
    assert_eq!(
        (&refused["code"], &refused["message"]),
        (&json!(500), &json!("etcdserver: request is too large"))
    );
    assert_eq!(bind(50_000).await["status"], "Success");
}

/// Logs that never end, as of programs that write nothing.
#[derive(Debug)]
struct Endless;

impl PodLogs for Endless {
    fn open_log(&self, _pod: &Value, _query: LogQuery) -> BoxFuture<'_, Result<LogPieces, String>> {
        let first: [std::io::Result<Bytes>; 1] = [Ok(Bytes::from_static(b"first\n"))];
        let pieces = futures::stream::iter(first).chain(futures::stream::pending()).boxed();
        Box::pin(async move { Ok(pieces) })
    }
}

/// A server whose pod `p` has a log, which the group `devs` may read.
async fn with_log() -> Arc<Server> {
    let options = Options { logs: Some(Arc::new(Endless)), ..Options::default() };
    let server = Server::new(Log::in_memory(), options, Arc::new(Still::at(1_700_000_000)));
    server.furnish().await.unwrap();
    let role = json!({
        "metadata": {"name": "devs"}, "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "Group", "name": "devs"}],
    });
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    assert_eq!(ask(&server, "POST", roles, role).await["kind"], "RoleBinding");
    let path = make_pod(&server, pod_on("n", "p", &json!({}))).await;
    let running = json!({"status": {"containerStatuses": [{
        "name": "c", "state": {"running": {}}, "ready": true, "restartCount": 0, "image": "i",
        "imageID": "",
    }]}});
    let told = ask_as(&server, "PATCH", &format!("{path}/status"), MERGE, running).await;
    assert_eq!(told["kind"], "Pod", "{told}");
    server
}

async fn follow_log(server: &Arc<Server>, user: &str, group: &str) -> http::Response<Body> {
    let (user, groups) = (user.to_owned(), vec![group.to_owned()]);
    let request = http::Request::builder()
        .uri(format!("{PODS}/p/log?follow=true"))
        .extension(Identity { user, groups, credential: None });
    server.router().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

/// M2: each followed log kept a file open, and any number of them could be followed.
#[tokio::test]
async fn m2_followed_logs_have_seats() {
    let server = with_log().await;
    let mut open = Vec::new();
    for at in 0..256 {
        let mut answer = follow_log(&server, &format!("u{}", at / 32), "devs").await;
        assert_eq!(answer.status(), 200, "{at}");
        if at == 31 {
            let first = answer.body_mut().frame().await.unwrap().unwrap();
            assert_eq!(first.into_data().unwrap(), "first\n");
            let refused = follow_log(&server, "u0", "devs").await;
            assert_eq!(refused.status(), 429);
            assert_eq!(refused.headers()["retry-after"], "1");
            let body = refused.into_body().collect().await.unwrap().to_bytes();
            let told: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(told["reason"], "TooManyRequests");
            assert_eq!(told["details"]["retryAfterSeconds"], 1);
        }
        open.push(answer);
    }
    assert_eq!(follow_log(&server, "late", "devs").await.status(), 429, "all seats are taken");
    let admin = follow_log(&server, "admin", "system:masters").await;
    assert_eq!(admin.status(), 200, "administrators can help");
    let list = ask(&server, "GET", PODS, Value::Null).await;
    assert_eq!(list["kind"], "PodList", "other requests are served");
    drop(open.pop());
    assert_eq!(follow_log(&server, "late", "devs").await.status(), 200, "its client went away");
    open.clear();
    for at in 0..32 {
        let answer = follow_log(&server, "late", "devs").await;
        assert_eq!(answer.status(), 200, "{at}");
        open.push(answer);
    }
    assert_eq!(follow_log(&server, "late", "devs").await.status(), 429);
}

/// A reference to a controller.
fn controller(api_version: &str, kind: &str) -> Value {
    json!([{
        "apiVersion": api_version, "kind": kind, "name": "owner", "uid": "u", "controller": true,
    }])
}

/// Pods and replica sets of several owners, as controllers outside made them.
async fn fill_with_owned(log: &Log) {
    let (server, _) = start(log.clone(), Hosting::Unattended).await;
    let mut loose = controller("apps/v1", "ReplicaSet");
    loose[0]["controller"] = json!(false);
    for (name, node, owners) in [
        ("job", "", controller("batch/v1", "Job")),
        ("stateful", "apron", controller("apps/v1", "StatefulSet")),
        ("foreign", "apron", controller("example.org/v1", "ReplicaSet")),
        ("loose", "apron", loose),
        ("elsewhere", "other", controller("apps/v1", "ReplicaSet")),
        ("waiting", "", controller("apps/v1", "ReplicaSet")),
        ("hosted", "apron", controller("apps/v1", "ReplicaSet")),
    ] {
        let mut pod = pod_on(node, name, &json!({}));
        pod["metadata"]["ownerReferences"] = owners;
        make_pod(&server, pod).await;
    }
    for (name, owners) in [
        ("rollout", controller("argoproj.io/v1alpha1", "Rollout")),
        ("deployed", controller("apps/v1", "Deployment")),
    ] {
        let set = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": name, "ownerReferences": owners},
            "spec": {
                "replicas": 2, "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        });
        let made = ask(&server, "POST", SETS, set).await;
        assert_eq!(made["kind"], "ReplicaSet", "{made}");
        let status = json!({"status": {"replicas": 2, "readyReplicas": 2}});
        let told = ask_as(&server, "PATCH", &format!("{SETS}/{name}/status"), MERGE, status).await;
        assert_eq!(told["status"]["readyReplicas"], 2, "{told}");
    }
}

/// Nothing but what is done at a start is done: what follows from it would collect these objects, whose
/// owners are not there.
async fn start_simulated(log: &Log) -> (Vec<String>, Vec<Value>) {
    let (server, _) = start(log.clone(), Hosting::simulated()).await;
    let items = async |path: &str| {
        let list = ask(&server, "GET", path, Value::Null).await;
        list["items"].as_array().unwrap().clone()
    };
    let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap().to_owned();
    let pods = items(PODS).await.iter().map(name).collect();
    (pods, items(SETS).await.iter().map(|set| set["status"]["replicas"].clone()).collect())
}

/// Every start of a server that simulates pods deleted those of other controllers.
#[tokio::test]
async fn a_simulated_start_forgets_only_the_pods_of_deployments_that_its_node_had() {
    let log = Log::in_memory();
    fill_with_owned(&log).await;
    let all = ["elsewhere", "foreign", "hosted", "job", "loose", "stateful", "waiting"];
    let (pods, replicas) = start_simulated(&log).await;
    assert_eq!(pods, all, "no node of this machine has had any");
    assert_eq!(replicas, [2, 2]);

    let (hosted, _) = start(log.clone(), Hosting::Unattended).await;
    make_node(&hosted, "apron").await;
    let (pods, replicas) = start_simulated(&log).await;
    assert_eq!(pods, ["elsewhere", "foreign", "job", "loose", "stateful"]);
    assert_eq!(replicas, [0, 2], "deployed, rollout");
}
