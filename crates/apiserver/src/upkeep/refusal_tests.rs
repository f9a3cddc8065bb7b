//! What cannot become of Deployments: sets and pods that are refused, said once and tried again later.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::hosting_tests::{
    DEPLOYMENTS, PODS, SETS, deployment, hosting, items, report_ready, settle, status, with_node,
};
use crate::Server;
use crate::log::Log;
use crate::testing::{Still, ask};

fn condition(status: &Value, kind: &str) -> Value {
    let mut all = status["conditions"].as_array().into_iter().flatten();
    all.find(|one| one["type"] == kind).cloned().unwrap_or_default()
}

/// Takes steps that each last a second, until there is nothing to do now; says how many.
async fn step_slowly(server: &Arc<Server>, world: &Still) -> usize {
    let mut steps = 0;
    while steps < 200 && server.step().await {
        world.now.fetch_add(1, Ordering::SeqCst);
        steps += 1;
    }
    steps
}

/// A Deployment whose set was refused had no status at all.
#[tokio::test]
async fn a_deployment_whose_set_is_refused_says_why_and_goes_on_when_it_is_not() {
    let (server, world) = with_node(Log::in_memory()).await;
    let mut large = deployment(1, "i:1");
    // A set has more annotations than its Deployment: these are as many as there may be.
    let filler = "x".repeat((256 << 10) - "note".len());
    large["metadata"]["annotations"] = json!({"note": filler});
    let made = ask(&server, "POST", DEPLOYMENTS, large).await;
    assert_eq!(made["kind"], "Deployment", "{}", made["message"]);
    server.settle().await;
    let told = status(&server).await;
    let said = condition(&told, "Progressing");
    assert_eq!(
        (&said["status"], &said["reason"], &told["observedGeneration"]),
        (&json!("False"), &json!("ReplicaSetCreateError"), &json!(1)),
        "{told}"
    );
    let message = said["message"].as_str().unwrap();
    assert!(message.starts_with("Failed to create new replica set \"d-"), "{message}");
    assert!(message.contains("metadata.annotations: Too long"), "{message}");
    let found = ask(&server, "GET", &format!("{DEPLOYMENTS}/d"), Value::Null).await;
    let revision = "deployment.kubernetes.io/revision";
    assert_eq!(found["metadata"]["annotations"][revision], Value::Null, "nothing has it");

    let version = server.log.version();
    world.now.fetch_add(100, Ordering::SeqCst);
    assert!(step_slowly(&server, &world).await < 20, "another try is no news");
    assert_eq!(server.log.version(), version);

    let short = json!({"metadata": {"annotations": {"note": "short"}}});
    ask(&server, "PATCH", &format!("{DEPLOYMENTS}/d"), short).await;
    settle(&server).await;
    let told = status(&server).await;
    assert_eq!(condition(&told, "Progressing")["reason"], "NewReplicaSetAvailable", "{told}");
}

/// A refusal that takes longer than a second was tried again at once, and nothing else was done.
#[tokio::test]
async fn pods_that_are_refused_are_tried_again_after_a_pause() {
    let (server, world) = with_node(Log::in_memory()).await;
    let mut lonely = deployment(1, "i:1");
    lonely["spec"]["template"]["spec"]["serviceAccountName"] = json!("x");
    ask(&server, "POST", DEPLOYMENTS, lonely).await;
    let steps = step_slowly(&server, &world).await;
    assert!(steps < 60, "{steps}");
    let set = items(&server, SETS).await.remove(0);
    let said = condition(&set["status"], "ReplicaFailure");
    assert_eq!((&said["reason"], &said["lastUpdateTime"]), (&json!("FailedCreate"), &Value::Null));
    let version = server.log.version();
    world.now.fetch_add(100, Ordering::SeqCst);
    assert!(step_slowly(&server, &world).await < 20);
    assert_eq!(server.log.version(), version, "what is told already is not told again");
}

fn set(selector: Value) -> Value {
    let mut set = deployment(2, "i:1");
    set["kind"] = json!("ReplicaSet");
    set["spec"]["selector"] = selector;
    set
}

/// A set that does not select its own pods made them without end.
#[tokio::test]
async fn sets_that_could_not_have_their_own_pods_are_refused() {
    let (server, _) = with_node(Log::in_memory()).await;
    let expression = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]});
    for (selector, field) in [
        (Value::Null, "spec.selector"),
        (json!({}), "spec.selector"),
        (json!({"matchLabels": {"a": "c"}}), "spec.template.metadata.labels"),
        (json!({"matchLabels": {"a": "b c"}}), "spec.selector.matchLabels"),
        (expression("Near", json!(["b"])), "spec.selector.matchExpressions[0].operator"),
        (expression("In", json!([])), "spec.selector.matchExpressions[0].values"),
        (expression("Exists", json!(["b"])), "spec.selector.matchExpressions[0].values"),
        (expression("In", json!(["b c"])), "spec.selector.matchExpressions[0].values[0]"),
    ] {
        let mut wished = deployment(2, "i:1");
        wished["spec"]["selector"] = selector.clone();
        for (path, object) in [(SETS, set(selector.clone())), (DEPLOYMENTS, wished)] {
            let refused = ask(&server, "POST", path, object).await;
            assert_eq!(refused["code"], 422, "{path} {selector}");
            let first = &refused["details"]["causes"][0];
            assert_eq!(first["field"], field, "{path} {selector} {refused}");
        }
    }
    let good = json!({"matchLabels": {"a": "b"}});
    for (pointer, value, field) in [
        ("/spec/template/spec/activeDeadlineSeconds", json!(5), "spec.activeDeadlineSeconds"),
        ("/spec/template/spec/restartPolicy", json!("Never"), "spec.restartPolicy"),
        ("/spec/template/metadata/labels/version", json!("1.0 rc"), "labels"),
        ("/spec/template/metadata/annotations", json!({"a b": "c"}), "annotations"),
        ("/spec/replicas", json!(-1), "spec.replicas"),
        ("/spec/minReadySeconds", json!(-1), "spec.minReadySeconds"),
    ] {
        for (path, mut object) in [(SETS, set(good.clone())), (DEPLOYMENTS, deployment(2, "i:1"))] {
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap()[name] = value.clone();
            let refused = ask(&server, "POST", path, object).await;
            let causes = refused["details"]["causes"].as_array().cloned().unwrap_or_default();
            let is_told =
                causes.iter().any(|one| one["field"].as_str().unwrap_or_default().ends_with(field));
            assert!(refused["code"] == 422 && is_told, "{path} {pointer}: {refused}");
        }
    }
    ask(&server, "POST", SETS, set(good)).await;
    settle(&server).await;
    assert_eq!(items(&server, PODS).await.len(), 2);
    for patch in [json!({"matchLabels": {"c": "d"}}), json!({"matchLabels": {"a": null}})] {
        let patch = json!({"spec": {"selector": patch}});
        let refused = ask(&server, "PATCH", &format!("{SETS}/d"), patch).await;
        assert_eq!(refused["code"], 422, "{refused}");
        assert!(refused["message"].as_str().unwrap().contains("field is immutable"), "{refused}");
    }
}

/// Only news of Nodes woke pods that waited.
#[tokio::test]
async fn a_pod_that_waits_for_room_gets_it_when_another_leaves_or_is_over() {
    let (server, _) = hosting(Log::in_memory()).await;
    report_ready(&server, "apron").await;
    let room = json!({"status": {"allocatable": {"pods": "1"}}});
    ask(&server, "PATCH", "/api/v1/nodes/apron/status", room).await;
    for name in ["p", "q", "r"] {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        ask(&server, "POST", PODS, pod).await;
        server.settle().await;
    }
    let placed = async || {
        let pods = items(&server, PODS).await;
        let placed = pods.iter().filter(|pod| pod["spec"]["nodeName"] == "apron");
        let names = placed.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(placed().await, ["p"]);
    ask(&server, "DELETE", &format!("{PODS}/p?gracePeriodSeconds=0"), Value::Null).await;
    server.settle().await;
    assert_eq!(placed().await, ["q"]);
    let over = json!({"status": {"phase": "Succeeded"}});
    ask(&server, "PATCH", &format!("{PODS}/q/status"), over).await;
    server.settle().await;
    assert_eq!(placed().await, ["q", "r"]);
}
