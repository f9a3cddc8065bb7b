//! Deployments that become pods, driven by hand, with a host that is only a few writes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::log::Log;
use crate::runtime::Hosting;
use crate::testing::{Still, ask};
use crate::{Options, Server};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const PODS: &str = "/api/v1/namespaces/default/pods";

async fn hosting(log: Log) -> (Arc<Server>, Arc<Still>) {
    let root_ca = Some("certificates".to_owned());
    let options = Options { root_ca, ..Hosting::Nodes.options() };
    let world = Arc::new(Still::at(1_000_000));
    let server = Server::new(log, options, Arc::clone(&world) as _);
    server.furnish().await.unwrap();
    server.settle().await;
    (server, world)
}

/// The same with a node that is ready.
async fn with_node(log: Log) -> (Arc<Server>, Arc<Still>) {
    let (server, world) = hosting(log).await;
    register(&server, "one").await;
    (server, world)
}

async fn register(server: &Arc<Server>, name: &str) {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
    ask(server, "POST", "/api/v1/nodes", node).await;
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    ask(server, "PATCH", &format!("/api/v1/nodes/{name}/status"), ready).await;
}

fn deployment(replicas: u64, image: &str) -> Value {
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

async fn items(server: &Arc<Server>, path: &str) -> Vec<Value> {
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

async fn settle(server: &Arc<Server>) {
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

async fn status(server: &Arc<Server>) -> Value {
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
            (&json!("one"), &json!("Pending"))
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
    let patch = json!({"status": {"message": "it ends"}});
    ask(&server, "PATCH", &format!("{path}/status"), patch).await;
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
    ask(&server, "DELETE", "/api/v1/namespaces/default/services/s", Value::Null).await;
    settle(&server).await;
    assert_eq!(ask(&server, "GET", path, Value::Null).await["code"], 404);
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
async fn pods_wait_for_a_node_that_is_ready_and_say_so() {
    let (server, _) = hosting(Log::in_memory()).await;
    ask(&server, "POST", DEPLOYMENTS, deployment(2, "i:1")).await;
    server.settle().await;
    let pod = items(&server, PODS).await.remove(0);
    let said = &pod["status"]["conditions"][0];
    assert_eq!(
        (&said["reason"], &said["message"]),
        (&json!("Unschedulable"), &json!("0/0 nodes are available"))
    );
    assert_eq!(status(&server).await["unavailableReplicas"], 2);
    register(&server, "one").await;
    settle(&server).await;
    register(&server, "two").await;
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
    let (second, _) = hosting(log).await;
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
    let options = Hosting::Simulated.options();
    let server = Server::new(log, options, Arc::new(Still::at(2_000_000)));
    server.furnish().await.unwrap();
    server.settle().await;
    assert_eq!(items(&server, PODS).await, [Value::Null; 0]);
    let told = status(&server).await;
    let said = told["conditions"].as_array().unwrap().iter().find(|one| one["type"] == "Simulated");
    assert_eq!(said.unwrap()["message"], "nothing runs: pods are only simulated");
    let node = ask(&server, "GET", "/api/v1/nodes/apron", Value::Null).await;
    assert_eq!(node["status"]["conditions"][0]["reason"], "Simulated");
}
