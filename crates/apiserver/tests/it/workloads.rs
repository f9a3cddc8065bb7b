//! Deployments on both: the real controllers behind a real API server, and ours. The same hands
//! write and run pods on each, and after each step both come to the same objects.

use std::time::{Duration, Instant};

use apiserver::log::Log;
use apiserver::runtime::Hosting;
use axum::body::Body;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::peers::{ControlPlane, TOKEN};

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments/d";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// How long both may take to come to the same.
const PATIENCE: Duration = Duration::from_secs(240);

/// An API server with controllers.
enum Cluster {
    Real { client: reqwest::Client, plane: ControlPlane },
    Ours(axum::Router),
}

impl Cluster {
    async fn ask(&self, method: &str, path: &str, body: Value) -> Value {
        let media = match method {
            "PATCH" => "application/strategic-merge-patch+json",
            _ => "application/json",
        };
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let answer = match self {
            Self::Real { client, plane } => {
                let request =
                    client.request(method.parse().expect("a method"), plane.url.clone() + path);
                let request = request.bearer_auth(TOKEN).header("Content-Type", media).body(text);
                request.send().await.expect("an answer").bytes().await.expect("a body")
            }
            Self::Ours(router) => {
                let request = http::Request::builder().method(method).uri(path);
                let request = request.header("Content-Type", media).body(Body::from(text));
                let answer = router.clone().oneshot(request.expect("a request")).await;
                answer.expect("an answer").into_body().collect().await.expect("a body").to_bytes()
            }
        };
        serde_json::from_slice(&answer).unwrap_or_default()
    }

    async fn list(&self, path: &str) -> Vec<Value> {
        let list = self.ask("GET", path, Value::Null).await;
        list["items"].as_array().cloned().unwrap_or_default()
    }

    async fn register_node(&self) {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "one"}});
        self.ask("POST", "/api/v1/nodes", node).await;
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        self.ask("PATCH", "/api/v1/nodes/one/status", ready).await;
    }

    /// What a scheduler and a kubelet do; pods of the image `broken` never become ready.
    async fn run_pods(&self) {
        for pod in self.list(PODS).await {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            let path = format!("{PODS}/{name}");
            if pod["metadata"]["deletionTimestamp"].is_string() {
                self.ask("DELETE", &format!("{path}?gracePeriodSeconds=0"), Value::Null).await;
                continue;
            }
            if pod["spec"]["nodeName"].is_null() {
                let target = json!({"apiVersion": "v1", "kind": "Node", "name": "one"});
                let binding = json!({
                    "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                    "target": target,
                });
                if matches!(self, Self::Real { .. }) {
                    self.ask("POST", &format!("{path}/binding"), binding).await;
                }
                continue;
            }
            let is_broken = pod["spec"]["containers"][0]["image"] == "broken";
            if pod["status"]["phase"] == "Pending" {
                let ready = json!({
                    "type": "Ready", "status": if is_broken { "False" } else { "True" },
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                });
                let status =
                    json!({"phase": "Running", "podIP": "10.1.2.3", "conditions": [ready]});
                self.ask("PATCH", &format!("{path}/status"), json!({"status": status})).await;
            }
        }
    }

    /// Everything that controllers make, without what differs from cluster to cluster.
    async fn picture(&self) -> Value {
        let deployment = self.ask("GET", DEPLOYMENT, Value::Null).await;
        let sets = self.list(SETS).await;
        let pods = self.list(PODS).await;
        let mut hashes: Vec<(String, String)> = Vec::new();
        for set in &sets {
            let hash = set["metadata"]["labels"]["pod-template-hash"].as_str().unwrap_or_default();
            let image = set.pointer("/spec/template/spec/containers/0/image");
            let image = image.and_then(Value::as_str).unwrap_or_default();
            hashes.push((hash.to_owned(), format!("<{image}>")));
        }
        let mut told: Vec<Value> = vec![essence(&deployment)];
        let mut rest: Vec<Value> = sets.iter().chain(&pods).map(essence).collect();
        rest.sort_by_key(|one| {
            let image = one.pointer("/spec/template/spec/containers/0/image");
            let image = image.or_else(|| one.pointer("/spec/containers/0/image"));
            format!("{:?} {image:?}", one["spec"].get("template").is_some())
        });
        told.append(&mut rest);
        told.push(json!({
            "endpoints": self.list(ENDPOINTS).await.iter().filter_map(addresses).collect::<Vec<_>>(),
            "slices": self.list(SLICES).await.iter().filter_map(addresses).collect::<Vec<_>>(),
        }));
        let mut text = json!(told).to_string();
        for (hash, image) in hashes.iter().filter(|(hash, _)| !hash.is_empty()) {
            text = text.replace(hash, image);
        }
        serde_json::from_str(&text).expect("JSON")
    }
}

/// What of an object both must agree on.
fn essence(object: &Value) -> Value {
    if object["code"] == 404 {
        return json!("gone");
    }
    let metadata = &object["metadata"];
    let owner = &metadata["ownerReferences"][0];
    let name = metadata["name"].as_str().unwrap_or_default();
    let name = match metadata["generateName"].as_str() {
        Some(base) => format!("{base}…"),
        None => name.to_owned(),
    };
    let mut spec = object["spec"].clone();
    if let Value::Object(spec) = &mut spec {
        // Tokens are not given out by the real server here; each server fills in the rest of a pod.
        spec.retain(|field, _| {
            ["replicas", "selector", "template", "minReadySeconds", "strategy", "nodeName"]
                .contains(&field.as_str())
                || field == "containers"
        });
    }
    for container in spec.get_mut("containers").and_then(Value::as_array_mut).into_iter().flatten()
    {
        if let Value::Object(container) = container {
            container.remove("volumeMounts");
        }
    }
    let mut status = object["status"].clone();
    if let Value::Object(status) = &mut status {
        // What hosts write.
        for field in ["qosClass", "startTime", "podIP", "podIPs", "observedGeneration"] {
            status.remove(field);
        }
    }
    if let Some(Value::Array(conditions)) = status.get_mut("conditions") {
        conditions.retain(|one| one["type"] != "PodScheduled");
        for one in conditions.iter_mut().filter_map(Value::as_object_mut) {
            one.retain(|field, _| {
                ["type", "status", "reason", "message"].contains(&field.as_str())
            });
        }
        conditions.sort_by_key(|one| one["type"].to_string());
    }
    json!({
        "name": name, "labels": metadata["labels"], "annotations": metadata["annotations"],
        "owner": [owner["kind"], owner["name"], owner["controller"], owner["blockOwnerDeletion"]],
        // Whether its controller has seen the last wish.
        "seen": metadata["generation"] == object["status"]["observedGeneration"],
        "deleting": metadata["deletionTimestamp"].is_string(), "spec": spec, "status": status,
    })
}

/// Where a Service leads to, without the pods' names, which are made up.
fn addresses(object: &Value) -> Option<Value> {
    if object["metadata"]["name"] == "kubernetes"
        || object["metadata"]["labels"]["kubernetes.io/service-name"] == "kubernetes"
    {
        return None;
    }
    let metadata = &object["metadata"];
    let mut told = json!({
        "labels": metadata["labels"], "base": metadata["generateName"],
        "addressType": object["addressType"], "ports": object["ports"],
        "owner": metadata["ownerReferences"][0]["name"],
        "endpoints": object["endpoints"], "subsets": object["subsets"],
    });
    let lists = [
        "/endpoints",
        "/ports",
        "/subsets/0/addresses",
        "/subsets/0/notReadyAddresses",
        "/subsets/0/ports",
    ];
    for list in lists {
        let list = told.pointer_mut(list).and_then(Value::as_array_mut);
        let Some(list) = list else { continue };
        for one in list.iter_mut().filter(|one| one["targetRef"].is_object()) {
            one["targetRef"] = json!(one["targetRef"]["kind"]);
        }
        list.sort_by_key(|one| format!("{} {}", one["port"], one["conditions"]));
    }
    Some(told)
}

fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "labels": {"x": "y"}},
        "spec": {"selector": {"a": "b"}, "ports": [
            {"name": "web", "port": 80, "targetPort": 8080}, {"name": "grpc", "port": 9443},
        ]},
    })
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "d", "annotations": {"note": "kept"}},
        "spec": {
            "replicas": 3, "revisionHistoryLimit": 1, "progressDeadlineSeconds": 5,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}, "annotations": {"t": "u"}},
                "spec": {"containers": [{"name": "c", "image": "first"}]},
            },
        },
    })
}

fn image(name: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": name}]}}}})
}

/// What is done, in order: its name, verb, path and body.
fn steps() -> Vec<(&'static str, &'static str, String, Value)> {
    let patch = |name, body| (name, "PATCH", DEPLOYMENT.to_owned(), body);
    let delete = |name, policy| {
        (name, "DELETE", format!("{DEPLOYMENT}?propagationPolicy={policy}"), Value::Null)
    };
    let recreate = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    vec![
        ("a service", "POST", SERVICES.to_owned(), service()),
        ("made", "POST", DEPLOYMENTS.to_owned(), deployment()),
        patch("scaled up", json!({"spec": {"replicas": 5}})),
        patch("scaled down", json!({"spec": {"replicas": 2}})),
        patch("a second image", image("second")),
        patch("an image that does not start", image("broken")),
        patch("scaled in the middle", json!({"spec": {"replicas": 8}})),
        patch("scaled to nothing in the middle", json!({"spec": {"replicas": 0}})),
        patch("and up again", json!({"spec": {"replicas": 8}})),
        patch("rolled back", image("second")),
        patch("paused", json!({"spec": {"paused": true}})),
        patch("changed while paused", image("third")),
        patch("scaled while paused", json!({"spec": {"replicas": 3}})),
        patch("resumed", json!({"spec": {"paused": false}})),
        patch("recreated from now on", recreate),
        patch("another image, recreated", image("fourth")),
        patch("scaled to nothing", json!({"spec": {"replicas": 0}})),
        patch("and back", json!({"spec": {"replicas": 2}})),
        delete("orphaned", "Orphan"),
        ("made again", "POST", DEPLOYMENTS.to_owned(), {
            let mut same = deployment();
            same["spec"]["template"]["spec"]["containers"][0]["image"] = json!("fourth");
            same["spec"]["replicas"] = json!(2);
            same
        }),
        delete("deleted in the foreground", "Foreground"),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deployments_come_to_the_same_objects_as_under_the_real_controllers() {
    let client = reqwest::Client::builder().danger_accept_invalid_certs(true).build();
    let client = client.expect("a client");
    let controllers = ",deployment-controller,replicaset-controller,endpoints-controller,\
         endpointslice-controller";
    let plane = ControlPlane::start_with(&client, controllers).await;
    let options = apiserver::Options {
        root_ca: Some("ca".to_owned()),
        runtime: Hosting::Pods,
        ..apiserver::Options::default()
    };
    let ours = apiserver::router(Log::in_memory(), options).await.expect("a server");
    let both = [Cluster::Real { client, plane }, Cluster::Ours(ours)];
    for cluster in &both {
        cluster.register_node().await;
    }
    let mut found = Vec::new();
    for (name, method, path, body) in steps() {
        for cluster in &both {
            let answer = cluster.ask(method, &path, body.clone()).await;
            assert!(answer["code"].as_u64().is_none_or(|code| code < 400), "{name}: {answer}");
        }
        // Who has waited in vain once does not wait as long again.
        let patience = if found.is_empty() { PATIENCE } else { PATIENCE / 12 };
        found.extend(find_difference(name, &both, patience).await);
    }
    assert!(found.is_empty(), "they differ\n{}", found.join("\n"));
}

/// Runs pods until both clusters are the same twice in a row, at rest; after so long, what differs.
async fn find_difference(step: &str, both: &[Cluster; 2], patience: Duration) -> Option<String> {
    let start = Instant::now();
    let mut before = Value::Null;
    loop {
        for cluster in both {
            cluster.run_pods().await;
        }
        let (real, ours) = (both[0].picture().await, both[1].picture().await);
        if real == ours && real == before {
            return None;
        }
        if start.elapsed() > patience {
            return Some(format!("after «{step}»\nreal: {real:#}\nours: {ours:#}"));
        }
        before = ours;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}
