//! Pods as clients write them: what is refused, what may be changed, and what is not served.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::Server;
use crate::log::Log;
use crate::testing::{ask, server};

const PODS: &str = "/api/v1/namespaces/default/pods";
const POD: &str = "/api/v1/namespaces/default/pods/p";

async fn server_with_pod() -> Arc<Server> {
    let server = server(Log::in_memory()).await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]},
    });
    let made = ask(&server, "POST", PODS, pod).await;
    assert_eq!(made["kind"], "Pod", "{made}");
    server
}

#[tokio::test]
async fn pods_and_templates_that_cannot_run_are_refused() {
    let server = server(Log::in_memory()).await;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}});
    let refused = ask(&server, "POST", PODS, pod).await;
    assert_eq!(
        (&refused["code"], &refused["message"]),
        (&json!(422), &json!("Pod \"p\" is invalid: spec.containers: Required value"))
    );
    let template = json!({
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]},
    });
    for (plural, kind) in [("replicasets", "ReplicaSet"), ("deployments", "Deployment")] {
        let object = json!({
            "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "x"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
        });
        let path = format!("/apis/apps/v1/namespaces/default/{plural}");
        let refused = ask(&server, "POST", &path, object).await;
        let container = "spec.template.spec.containers[0]";
        let said = format!(
            "{kind}.apps \"x\" is invalid: [{container}.image: Required value, \
             {container}.volumeMounts[0].name: Not found: \"v\"]"
        );
        assert_eq!(refused["message"], said);
    }
}

#[tokio::test]
async fn little_of_a_pod_can_be_changed_once_it_is_there() {
    let server = server_with_pod().await;
    let image = json!({"spec": {"containers": [{"name": "c", "image": "i:2"}]}});
    let changed = ask(&server, "PATCH", POD, image).await;
    assert_eq!(changed["spec"]["containers"][0]["image"], "i:2", "{changed}");
    let refused = ask(&server, "PATCH", POD, json!({"spec": {"nodeName": "one"}})).await;
    let said = refused["message"].as_str().unwrap();
    let begin =
        "Pod \"p\" is invalid: spec: Forbidden: pod updates may not change fields other than";
    assert!(refused["code"] == 422 && said.starts_with(begin), "{refused}");
    let more = json!({"spec": {"containers": [
        {"name": "c", "image": "i:2"}, {"name": "d", "image": "i:2"},
    ]}});
    let refused = ask(&server, "PATCH", POD, more).await;
    let why = "spec.containers: Forbidden: pod updates may not add or remove containers";
    assert_eq!(refused["message"], format!("Pod \"p\" is invalid: {why}"));
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": "one"},
    });
    let bound = ask(&server, "POST", &format!("{POD}/binding"), binding).await;
    assert_eq!(bound["status"], "Success", "{bound}");
    let status = json!({"status": {"phase": "Running"}});
    let told = ask(&server, "PATCH", &format!("{POD}/status"), status).await;
    assert_eq!(
        (&told["status"]["phase"], &told["spec"]["nodeName"]),
        (&json!("Running"), &json!("one"))
    );
    let labelled = ask(&server, "PATCH", POD, json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(labelled["metadata"]["labels"]["a"], "b", "{labelled}");
}

#[tokio::test]
async fn a_pod_keeps_what_the_server_gave_it_when_its_new_form_leaves_it_out() {
    let server = server_with_pod().await;
    let before = ask(&server, "GET", POD, Value::Null).await;
    let mut new = before.clone();
    for field in ["priority", "preemptionPolicy", "tolerations"] {
        assert!(new["spec"].as_object_mut().unwrap().shift_remove(field).is_some(), "{field}");
    }
    let after = ask(&server, "PUT", POD, new).await;
    assert_eq!(after["spec"], before["spec"], "{after}");
}

#[tokio::test]
async fn connections_into_pods_are_refused_with_a_word_on_logs() {
    let server = server_with_pod().await;
    for part in ["exec", "attach", "portforward"] {
        for method in ["GET", "POST"] {
            let path = format!("{POD}/{part}?command=ls&stdout=true");
            let refused = ask(&server, method, &path, Value::Null).await;
            assert_eq!(
                (&refused["code"], &refused["reason"]),
                (&json!(501), &json!("NotImplemented")),
                "{refused}"
            );
            let said = refused["message"].as_str().unwrap();
            assert!(said.contains(&format!("does not serve pods/{part}")), "{said}");
            assert!(said.contains("kubectl logs p "), "{said}");
        }
        let missing = ask(&server, "POST", &format!("{PODS}/q/{part}"), Value::Null).await;
        assert_eq!(missing["message"], "pods \"q\" not found");
        let odd = ask(&server, "DELETE", &format!("{POD}/{part}"), Value::Null).await;
        assert_eq!(odd["code"], 405, "{odd}");
    }
}
