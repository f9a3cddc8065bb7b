//! Deployments that become pods, driven by hand, with a host that is only a few writes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::log::Log;
use crate::runtime::{Hosting, LogOutput, LogPieces, LogQuery, LogStart, PodLogs};
use crate::testing::{Still, answer_as, ask, ask_as};
use crate::{Options, Server};

const STRATEGIC: &str = "application/strategic-merge-patch+json";

pub(super) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
pub(super) const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
pub(super) const PODS: &str = "/api/v1/namespaces/default/pods";

pub(super) async fn hosting(log: Log) -> (Arc<Server>, Arc<Still>) {
    let root_ca = Some("certificates".to_owned());
    let options = Options { root_ca, runtime: Hosting::Pods, ..Options::default() };
    let world = Arc::new(Still::at(1_000_000));
    let server = Server::new(log, options, Arc::clone(&world) as _);
    server.furnish().await.unwrap();
    server.settle().await;
    (server, world)
}

/// The same with a node that is ready.
pub(super) async fn with_node(log: Log) -> (Arc<Server>, Arc<Still>) {
    let (server, world) = hosting(log).await;
    report_ready(&server, "apron").await;
    (server, world)
}

/// What a node does when it starts: it registers, unless it is known, and says that it is ready.
pub(super) async fn report_ready(server: &Arc<Server>, name: &str) {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
    ask(server, "POST", "/api/v1/nodes", node).await;
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    ask(server, "PATCH", &format!("/api/v1/nodes/{name}/status"), ready).await;
}

pub(super) fn deployment(replicas: u64, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": image}]},
            },
        },
    })
}

pub(super) async fn items(server: &Arc<Server>, path: &str) -> Vec<Value> {
    let list = ask(server, "GET", path, Value::Null).await;
    list["items"].as_array().cloned().unwrap_or_default()
}

/// What a host does: pods that are new become ready, pods that end go.
async fn host_pods(server: &Arc<Server>) {
    for pod in items(server, PODS).await {
        let path = format!("{PODS}/{}", pod["metadata"]["name"].as_str().unwrap());
        if pod["metadata"]["deletionTimestamp"].is_string() {
            ask(server, "DELETE", &format!("{path}?gracePeriodSeconds=0"), Value::Null).await;
        } else if pod["status"]["phase"] == "Pending" {
            let broken = pod["spec"]["containers"][0]["image"] == "broken";
            let ready = json!({
                "type": "Ready", "status": if broken { "False" } else { "True" },
                "lastTransitionTime": "1970-01-12T13:46:40Z",
            });
            let scheduled = &pod["status"]["conditions"][0];
            if scheduled["status"] != "True" {
                continue;
            }
            let status = json!({"status": {
                "phase": "Running", "podIP": "10.244.0.9", "conditions": [scheduled, ready],
            }});
            ask(server, "PATCH", &format!("{path}/status"), status).await;
        }
    }
}

pub(super) async fn settle(server: &Arc<Server>) {
    for _ in 0..40 {
        server.settle().await;
        let before = server.log.version();
        host_pods(server).await;
        server.settle().await;
        if server.log.version() == before {
            return;
        }
    }
    panic!("no end of it");
}

pub(super) async fn status(server: &Arc<Server>) -> Value {
    ask(server, "GET", &format!("{DEPLOYMENTS}/d"), Value::Null).await["status"].clone()
}

#[tokio::test]
async fn a_deployment_becomes_a_replica_set_and_pods_with_tokens_on_the_node() {
    let (server, _) = with_node(Log::in_memory()).await;
    ask(&server, "POST", DEPLOYMENTS, deployment(2, "i:1")).await;
    server.settle().await;
    assert_eq!(status(&server).await["unavailableReplicas"], 2, "nothing is ready yet");
    let sets = items(&server, SETS).await;
    let name = sets[0]["metadata"]["name"].as_str().unwrap();
    let pods = items(&server, PODS).await;
    assert_eq!(pods.len(), 2);
    for pod in &pods {
        assert!(pod["metadata"]["name"].as_str().unwrap().starts_with(&format!("{name}-")));
        assert_eq!(pod["metadata"]["ownerReferences"][0]["name"], name);
        assert_eq!(
            (&pod["spec"]["nodeName"], &pod["status"]["phase"]),
            (&json!("apron"), &json!("Pending"))
        );
        assert_eq!(pod["spec"]["serviceAccountName"], "default");
        let volume = pod["spec"]["volumes"][0]["name"].as_str().unwrap();
        assert!(volume.starts_with("kube-api-access-"), "{volume}");
        assert_eq!(pod["status"]["conditions"][0]["type"], "PodScheduled");
    }
    settle(&server).await;
    let told = status(&server).await;
    assert_eq!((&told["availableReplicas"], &told["updatedReplicas"]), (&json!(2), &json!(2)));
    assert_eq!(told["observedGeneration"], 1);
    let version = server.log.version();
    settle(&server).await;
    assert_eq!(server.log.version(), version, "what is done is not done again");
}

#[tokio::test]
async fn pods_that_end_are_counted_until_their_node_lets_go() {
    let log = Log::in_memory();
    let (server, _) = with_node(log.clone()).await;
    ask(&server, "POST", DEPLOYMENTS, deployment(2, "i:1")).await;
    settle(&server).await;
    assert_eq!(status(&server).await["terminatingReplicas"], 0);
    let scale = |size: u64| json!({"spec": {"replicas": size}});
    ask(&server, "PATCH", &format!("{DEPLOYMENTS}/d"), scale(0)).await;
    server.settle().await;
    let told = status(&server).await;
    assert_eq!((&told["replicas"], &told["terminatingReplicas"]), (&Value::Null, &json!(2)));
    assert_eq!(items(&server, SETS).await[0]["status"]["terminatingReplicas"], 2);
    settle(&server).await;
    assert_eq!(status(&server).await["terminatingReplicas"], 0);
    ask(&server, "PATCH", &format!("{DEPLOYMENTS}/d"), scale(1)).await;
    settle(&server).await;
    ask(&server, "PATCH", &format!("{DEPLOYMENTS}/d"), scale(0)).await;
    server.settle().await;
    assert_eq!(status(&server).await["terminatingReplicas"], 1);
    drop(server);
    let options = Options { runtime: Hosting::simulated(), ..Options::default() };
    let simulated = Server::new(log, options, Arc::new(Still::at(2_000_000)));
    simulated.furnish().await.unwrap();
    simulated.settle().await;
    assert_eq!(status(&simulated).await["terminatingReplicas"], Value::Null, "nothing counts them");
}

#[tokio::test]
async fn each_service_has_slices_of_its_own() {
    let (server, _) = with_node(Log::in_memory()).await;
    for name in ["s", "s-more"] {
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]},
        });
        ask(&server, "POST", "/api/v1/namespaces/default/services", service).await;
    }
    ask(&server, "POST", DEPLOYMENTS, deployment(1, "i:1")).await;
    settle(&server).await;
    let slices =
        items(&server, "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices").await;
    let label = |slice: &Value| slice["metadata"]["labels"]["kubernetes.io/service-name"].clone();
    let mut told: Vec<String> = slices
        .iter()
        .map(|slice| format!("{} {}", label(slice), slice["endpoints"].as_array().unwrap().len()))
        .collect();
    told.sort_unstable();
    assert_eq!(told, ["\"s\" 1", "\"s-more\" 1"]);
}

#[tokio::test]
async fn an_image_that_does_not_start_is_rolled_back_by_writing_the_old_one() {
    let (server, world) = with_node(Log::in_memory()).await;
    ask(&server, "POST", DEPLOYMENTS, deployment(1, "i:1")).await;
    settle(&server).await;
    let path = format!("{DEPLOYMENTS}/d");
    let image = |image: &str| json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}});
    ask(&server, "PATCH", &path, image("broken")).await;
    settle(&server).await;
    assert_eq!(items(&server, PODS).await.len(), 2, "what works stays");
    world.now.store(server.due().expect("a deadline"), Ordering::SeqCst);
    settle(&server).await;
    let told = status(&server).await;
    let reasons: Vec<&str> = told["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["reason"].as_str())
        .collect();
    assert!(reasons.contains(&"ProgressDeadlineExceeded"), "{reasons:?}");
    ask(&server, "PATCH", &path, image("i:1")).await;
    settle(&server).await;
    assert_eq!(items(&server, PODS).await.len(), 1);
    let found = ask(&server, "GET", &path, Value::Null).await;
    assert_eq!(found["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "3");
    assert_eq!(items(&server, SETS).await.len(), 2);
}

#[tokio::test]
async fn a_pod_is_given_time_to_end_and_one_that_is_killed_is_made_again() {
    let (server, _) = with_node(Log::in_memory()).await;
    ask(&server, "POST", DEPLOYMENTS, deployment(1, "i:1")).await;
    settle(&server).await;
    let pod = items(&server, PODS).await.remove(0);
    let path = format!("{PODS}/{}", pod["metadata"]["name"].as_str().unwrap());
    let marked = ask(&server, "DELETE", &path, Value::Null).await;
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
    let shorter = json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 5});
    let marked = ask(&server, "DELETE", &path, shorter).await;
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 5);
    let note = json!({"status": {"message": "it ends"}});
    ask(&server, "PATCH", &format!("{path}/status"), note).await;
    assert_eq!(ask(&server, "GET", &path, Value::Null).await["kind"], "Pod", "it still ends");
    server.settle().await;
    assert_eq!(items(&server, PODS).await.len(), 2, "another takes its place at once");
    settle(&server).await;
    let left = items(&server, PODS).await;
    assert_eq!(left.len(), 1);
    assert_ne!(left[0]["metadata"]["uid"], pod["metadata"]["uid"]);
}

#[tokio::test]
async fn pods_go_with_their_deployment_and_stay_with_an_orphaned_set() {
    let (server, _) = with_node(Log::in_memory()).await;
    ask(&server, "POST", DEPLOYMENTS, deployment(2, "i:1")).await;
    settle(&server).await;
    let path = format!("{DEPLOYMENTS}/d");
    ask(&server, "DELETE", &format!("{path}?propagationPolicy=Orphan"), Value::Null).await;
    settle(&server).await;
    assert_eq!((items(&server, SETS).await.len(), items(&server, PODS).await.len()), (1, 2));
    ask(&server, "POST", DEPLOYMENTS, deployment(2, "i:1")).await;
    settle(&server).await;
    assert_eq!((items(&server, SETS).await.len(), items(&server, PODS).await.len()), (1, 2));
    ask(&server, "DELETE", &format!("{path}?propagationPolicy=Foreground"), Value::Null).await;
    settle(&server).await;
    assert_eq!((items(&server, SETS).await.len(), items(&server, PODS).await.len()), (0, 0));
    assert_eq!(ask(&server, "GET", &path, Value::Null).await["code"], 404);
}

#[tokio::test]
async fn a_service_lists_the_pods_that_are_ready_and_a_pod_without_its_account_is_refused() {
    let (server, _) = with_node(Log::in_memory()).await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]},
    });
    ask(&server, "POST", "/api/v1/namespaces/default/services", service).await;
    ask(&server, "POST", DEPLOYMENTS, deployment(1, "i:1")).await;
    settle(&server).await;
    let path = "/api/v1/namespaces/default/endpoints/s";
    let found = ask(&server, "GET", path, Value::Null).await;
    assert_eq!(found["subsets"][0]["addresses"][0]["ip"], "10.244.0.9");
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let slice = items(&server, slices).await.remove(0);
    let endpoint = &slice["endpoints"][0];
    assert_eq!(
        (&endpoint["addresses"][0], &endpoint["conditions"]["ready"]),
        (&json!("10.244.0.9"), &json!(true))
    );
    assert_eq!(slice["ports"], json!([{"name": "", "protocol": "TCP", "port": 80}]));
    let gone = format!("{slices}/{}", slice["metadata"]["name"].as_str().unwrap());
    ask(&server, "DELETE", &gone, Value::Null).await;
    settle(&server).await;
    assert_eq!(items(&server, slices).await.len(), 1, "it is made again");
    ask(&server, "DELETE", "/api/v1/namespaces/default/services/s", Value::Null).await;
    settle(&server).await;
    assert_eq!(ask(&server, "GET", path, Value::Null).await["code"], 404);
    assert_eq!(items(&server, slices).await, [Value::Null; 0], "they go with their Service");
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"serviceAccountName": "x", "containers": [{"name": "c", "image": "i"}]},
    });
    let refused = ask(&server, "POST", PODS, pod).await;
    assert_eq!(
        refused["message"],
        "pods \"p\" is forbidden: error looking up service account default/x: serviceaccount \
         \"x\" not found"
    );
}

#[tokio::test]
async fn a_deployment_without_its_account_says_so_and_goes_on_when_there_is_one() {
    let (server, world) = with_node(Log::in_memory()).await;
    let mut lonely = deployment(1, "i:1");
    lonely["spec"]["template"]["spec"]["serviceAccountName"] = json!("x");
    ask(&server, "POST", DEPLOYMENTS, lonely).await;
    server.settle().await;
    let told = status(&server).await;
    let mut all = told["conditions"].as_array().unwrap().iter();
    let said = all.find(|one| one["type"] == "ReplicaFailure").unwrap();
    let message = said["message"].as_str().unwrap();
    assert!(message.contains("serviceaccount \"x\" not found"), "{message}");
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    ask(&server, "POST", accounts, json!({"metadata": {"name": "x"}})).await;
    world.now.fetch_add(300, Ordering::SeqCst);
    settle(&server).await;
    let told = status(&server).await;
    assert_eq!(told["availableReplicas"], 1, "{told}");
    let mut kinds = told["conditions"].as_array().unwrap().iter().map(|one| &one["type"]);
    assert!(kinds.all(|kind| kind != "ReplicaFailure"), "{told}");
}

#[tokio::test]
async fn pods_wait_for_a_node_that_is_ready_and_say_so() {
    let (server, _) = hosting(Log::in_memory()).await;
    ask(&server, "POST", DEPLOYMENTS, deployment(2, "i:1")).await;
    server.settle().await;
    let pod = items(&server, PODS).await.remove(0);
    let said = &pod["status"]["conditions"][0];
    assert_eq!(
        (&said["reason"], &said["message"]),
        (&json!("Unschedulable"), &json!("0/1 nodes are available"))
    );
    assert_eq!(status(&server).await["unavailableReplicas"], 2);
    report_ready(&server, "one").await;
    settle(&server).await;
    report_ready(&server, "two").await;
    ask(&server, "PATCH", &format!("{DEPLOYMENTS}/d"), json!({"spec": {"replicas": 4}})).await;
    settle(&server).await;
    let pods = items(&server, PODS).await;
    let on = |node: &str| pods.iter().filter(|pod| pod["spec"]["nodeName"] == node).count();
    assert_eq!((on("one"), on("two")), (2, 2), "they are spread");
    assert_eq!(pods[0]["status"]["conditions"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn a_restart_in_the_middle_of_a_rollout_goes_on() {
    let log = Log::in_memory();
    let (first, _) = with_node(log.clone()).await;
    ask(&first, "POST", DEPLOYMENTS, deployment(3, "i:1")).await;
    for _ in 0..4 {
        first.step().await;
    }
    drop(first);
    let (second, _) = with_node(log).await;
    settle(&second).await;
    assert_eq!(status(&second).await["availableReplicas"], 3);
    assert_eq!((items(&second, SETS).await.len(), items(&second, PODS).await.len()), (1, 3));
}

#[tokio::test]
async fn what_is_only_simulated_says_so_and_forgets_the_pods_that_ran() {
    let log = Log::in_memory();
    let (first, _) = with_node(log.clone()).await;
    ask(&first, "POST", DEPLOYMENTS, deployment(1, "i:1")).await;
    settle(&first).await;
    drop(first);
    let options = Options { runtime: Hosting::simulated(), ..Options::default() };
    let server = Server::new(log, options, Arc::new(Still::at(2_000_000)));
    server.furnish().await.unwrap();
    server.settle().await;
    assert_eq!(items(&server, PODS).await, [Value::Null; 0]);
    let told = status(&server).await;
    let said = told["conditions"].as_array().unwrap().iter().find(|one| one["type"] == "Simulated");
    assert_eq!(said.unwrap()["message"], "nothing runs here: pods are only simulated");
    assert_eq!(items(&server, SETS).await[0]["status"]["replicas"], 0, "the set stays, empty");
    let node = ask(&server, "GET", "/api/v1/nodes/apron", Value::Null).await;
    assert_eq!(node["status"]["conditions"][0]["reason"], "Simulated");
}

/// The other way: what was said of pods that were only simulated is taken back.
#[tokio::test]
async fn a_deployment_that_was_simulated_is_not_available_before_its_pods_are() {
    let log = Log::in_memory();
    let options = Options { runtime: Hosting::simulated(), ..Options::default() };
    let first = Server::new(log.clone(), options, Arc::new(Still::at(1_000_000)));
    first.furnish().await.unwrap();
    ask(&first, "POST", DEPLOYMENTS, deployment(1, "i:1")).await;
    first.settle().await;
    assert_eq!(status(&first).await["availableReplicas"], 1);
    drop(first);
    let (second, _) = with_node(log).await;
    second.settle().await;
    let told = status(&second).await;
    assert_eq!(told["availableReplicas"], Value::Null, "{told}");
    let kinds: Vec<&Value> =
        told["conditions"].as_array().unwrap().iter().map(|one| &one["type"]).collect();
    assert_eq!(kinds, ["Progressing", "Available"]);
    settle(&second).await;
    assert_eq!(status(&second).await["availableReplicas"], 1);
}

/// Programs end with the server that ran them: until the node reports again, nothing is ready.
#[tokio::test]
async fn after_a_restart_pods_are_not_ready_before_the_node_says_so() {
    let log = Log::in_memory();
    let (first, _) = with_node(log.clone()).await;
    ask(&first, "POST", DEPLOYMENTS, deployment(1, "i:1")).await;
    settle(&first).await;
    drop(first);
    let (second, _) = hosting(log).await;
    let told = status(&second).await;
    assert_eq!((&told["replicas"], &told["availableReplicas"]), (&json!(1), &Value::Null));
    let node = ask(&second, "GET", "/api/v1/nodes/apron", Value::Null).await;
    assert_eq!(node["status"]["conditions"][0]["reason"], "NodeStatusUnknown");
    let pod = items(&second, PODS).await.remove(0);
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let path = format!("{PODS}/{}/status", pod["metadata"]["name"].as_str().unwrap());
    ask_as(&second, "PATCH", &path, STRATEGIC, json!({"status": {"conditions": ready}})).await;
    second.settle().await;
    assert_eq!(status(&second).await["availableReplicas"], 1);
}

#[tokio::test]
async fn a_pod_without_a_node_goes_at_once_and_one_with_a_node_when_the_node_lets_go() {
    let (server, world) = hosting(Log::in_memory()).await;
    let pod = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "finalizers": if name == "held" { json!(["a.b/c"]) } else { json!([]) }},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        })
    };
    ask(&server, "POST", PODS, pod("waiting")).await;
    ask(&server, "DELETE", &format!("{PODS}/waiting"), Value::Null).await;
    assert_eq!(ask(&server, "GET", &format!("{PODS}/waiting"), Value::Null).await["code"], 404);
    for name in ["given", "held"] {
        ask(&server, "POST", PODS, pod(name)).await;
        let target = json!({"kind": "Node", "name": "apron"});
        let binding = json!({"metadata": {"name": name}, "target": target});
        let bound = ask(&server, "POST", &format!("{PODS}/{name}/binding"), binding).await;
        assert_eq!((&bound["status"], &bound["code"]), (&json!("Success"), &json!(201)), "{bound}");
        let path = format!("{PODS}/{name}");
        let marked = ask(&server, "DELETE", &path, Value::Null).await;
        assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
        let until = schema::object::time::format(world.now.load(Ordering::SeqCst) + 30);
        assert_eq!(marked["metadata"]["deletionTimestamp"], until);
        ask(&server, "DELETE", &format!("{path}?gracePeriodSeconds=60"), Value::Null).await;
        let there = ask(&server, "GET", &path, Value::Null).await;
        assert_eq!(there["metadata"]["deletionTimestamp"], until, "it is not made longer");
        ask(&server, "DELETE", &format!("{path}?gracePeriodSeconds=0"), Value::Null).await;
    }
    assert_eq!(ask(&server, "GET", &format!("{PODS}/given"), Value::Null).await["code"], 404);
    let held = ask(&server, "GET", &format!("{PODS}/held"), Value::Null).await;
    assert_eq!(held["metadata"]["deletionGracePeriodSeconds"], 0);
    let free = json!({"metadata": {"finalizers": null}});
    ask(&server, "PATCH", &format!("{PODS}/held"), free).await;
    assert_eq!(ask(&server, "GET", &format!("{PODS}/held"), Value::Null).await["code"], 404);
}

/// A node follows its own pods: it hears of a pod when the pod is given to it, and that it is gone.
#[tokio::test]
async fn a_node_lists_its_own_pods_and_gets_tokens_that_end_with_them() {
    let (server, _) = with_node(Log::in_memory()).await;
    ask(&server, "POST", DEPLOYMENTS, deployment(1, "i:1")).await;
    settle(&server).await;
    let of = |node: &str| format!("{PODS}?fieldSelector=spec.nodeName%3D{node}");
    assert_eq!(items(&server, &of("other")).await.len(), 0);
    let pod = items(&server, &of("apron")).await.remove(0);
    let account = pod["spec"]["serviceAccountName"].as_str().unwrap();
    let asked = json!({"spec": {"expirationSeconds": 3607, "boundObjectRef": {
        "apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"],
    }}});
    let path = format!("/api/v1/namespaces/default/serviceaccounts/{account}/token");
    let given = ask(&server, "POST", &path, asked).await;
    let token = given["status"]["token"].as_str().unwrap();
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token},
    });
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let said = ask(&server, "POST", reviews, review.clone()).await;
    assert_eq!(said["status"]["user"]["username"], "system:serviceaccount:default:default");
    let pod = format!("{PODS}/{}", pod["metadata"]["name"].as_str().unwrap());
    ask(&server, "DELETE", &format!("{pod}?gracePeriodSeconds=0"), Value::Null).await;
    let said = ask(&server, "POST", reviews, review).await;
    assert_eq!(said["status"]["authenticated"], Value::Null, "{said}");
    let map = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt";
    assert_eq!(ask(&server, "GET", map, Value::Null).await["data"]["ca.crt"], "certificates");
}

/// Logs that say what they were asked for.
#[derive(Debug)]
struct Echo;

impl PodLogs for Echo {
    fn open_log(&self, pod: &Value, query: LogQuery) -> BoxFuture<'_, Result<LogPieces, String>> {
        let said = format!("{} {query:?}\n", pod["metadata"]["name"]);
        Box::pin(async move {
            if query.tail_lines == Some(13) {
                return Err("the file is damaged".to_owned());
            }
            let pieces = [Ok(Bytes::from("first\n")), Ok(Bytes::from(said))];
            Ok(futures::stream::iter(pieces).boxed())
        })
    }
}

#[tokio::test]
async fn a_log_is_told_as_it_comes_once_the_container_has_run() {
    let options =
        Options { runtime: Hosting::Pods, logs: Some(Arc::new(Echo)), ..Options::default() };
    let options = Options { root_ca: Some("certificates".to_owned()), ..options };
    let server = Server::new(Log::in_memory(), options, Arc::new(Still::at(1_000_000)));
    server.furnish().await.unwrap();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    ask(&server, "POST", PODS, pod).await;
    let log = format!("{PODS}/p/log");
    let answer = answer_as(&server, "GET", &log, "", Value::Null).await;
    assert_eq!(answer.status(), 204, "no node has it yet");
    report_ready(&server, "apron").await;
    server.settle().await;
    let early = ask(&server, "GET", &log, Value::Null).await;
    assert_eq!(early["message"], "container \"c\" in pod \"p\" is not available");
    let state = json!({"name": "c", "state": {"running": {}}, "ready": true, "restartCount": 0, "image": "i", "imageID": ""});
    let status = json!({"status": {"containerStatuses": [state]}});
    ask(&server, "PATCH", &format!("{PODS}/p/status"), status).await;
    let query = "container=c&follow=true&timestamps=true&sinceSeconds=5&tailLines=3&limitBytes=9";
    let answer = answer_as(&server, "GET", &format!("{log}?{query}"), "", Value::Null).await;
    assert_eq!(answer.headers()["content-type"], "text/plain");
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    let expected = LogQuery {
        container: "c".to_owned(),
        follow: true,
        previous: false,
        start: Some(LogStart::SecondsAgo(5)),
        timestamps: true,
        tail_lines: Some(3),
        limit_bytes: Some(9),
        output: LogOutput::All,
    };
    assert_eq!(text, format!("first\n\"p\" {expected:?}\n"));
    let refusal = async |query: &str| {
        let said = ask(&server, "GET", &format!("{log}?{query}"), Value::Null).await;
        (said["code"].as_u64().unwrap(), said["message"].as_str().unwrap().to_owned())
    };
    for (query, code, message) in [
        ("previous=true", 400, "previous terminated container \"c\" in pod \"p\" not found"),
        ("container=x", 400, "container x is not valid for pod p"),
        ("tailLines=13", 500, "Internal error occurred: the file is damaged"),
        (
            "tailLines=-1",
            422,
            "PodLogOptions \"p\" is invalid: tailLines: Invalid value: -1: must be greater than or \
             equal to 0",
        ),
    ] {
        assert_eq!(refusal(query).await, (code, message.to_owned()), "{query}");
    }
    let missing = ask(&server, "GET", &format!("{PODS}/q/log"), Value::Null).await;
    assert_eq!(missing["message"], "pods \"q\" not found");
}

#[tokio::test]
async fn a_server_without_logs_says_that_it_has_none() {
    let (server, _) = with_node(Log::in_memory()).await;
    ask(&server, "POST", DEPLOYMENTS, deployment(1, "i:1")).await;
    settle(&server).await;
    let pod = items(&server, PODS).await.remove(0);
    let log = format!("{PODS}/{}/log", pod["metadata"]["name"].as_str().unwrap());
    let said = ask(&server, "GET", &log, Value::Null).await;
    assert_eq!((&said["code"], &said["reason"]), (&json!(501), &json!("NotImplemented")));
    assert!(said["message"].as_str().unwrap().contains("no logs"), "{said}");
}
