//! What is not of its type is refused, never dropped: metadata of custom resources, owners that
//! nothing may have, options of deletions.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::Server;
use crate::log::Log;
use crate::testing::{ask, ask_as, server, server_with_widgets};

const WIDGETS: &str = "/apis/example.org/v1/namespaces/default/widgets";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json-patch+json";

/// A server with a kind that holds other resources, too.
async fn with_widgets() -> Arc<Server> {
    let embedded = json!({
        "type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    });
    server_with_widgets(json!({"template": embedded})).await
}

fn widget(name: &str) -> Value {
    let metadata = json!({
        "name": name, "labels": {"app": "shop", "tier": "db"}, "annotations": {"a": "b"},
        "finalizers": ["example.org/keep"],
    });
    json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": metadata})
}

/// Each field with a value it cannot hold, and what Go says of that.
fn forms() -> Vec<(&'static str, Value, &'static str)> {
    let owner = |field: &str, value: Value| {
        let mut owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"});
        owner[field] = value;
        json!([owner])
    };
    vec![
        (
            "labels",
            json!({"version": 1}),
            "number into Go struct field ObjectMeta.labels of type string",
        ),
        (
            "labels",
            json!(["a"]),
            "array into Go struct field ObjectMeta.labels of type map[string]string",
        ),
        (
            "labels",
            json!("a"),
            "string into Go struct field ObjectMeta.labels of type map[string]string",
        ),
        (
            "annotations",
            json!({"n": true}),
            "bool into Go struct field ObjectMeta.annotations of type string",
        ),
        (
            "annotations",
            json!(5),
            "number into Go struct field ObjectMeta.annotations of type map[string]string",
        ),
        (
            "finalizers",
            json!([1]),
            "number into Go struct field ObjectMeta.finalizers of type string",
        ),
        (
            "finalizers",
            json!({}),
            "object into Go struct field ObjectMeta.finalizers of type []string",
        ),
        (
            "ownerReferences",
            json!({}),
            "object into Go struct field ObjectMeta.ownerReferences of type []v1.OwnerReference",
        ),
        (
            "ownerReferences",
            json!(["x"]),
            "string into Go struct field ObjectMeta.ownerReferences of type v1.OwnerReference",
        ),
        (
            "ownerReferences",
            owner("controller", json!("yes")),
            "string into Go struct field OwnerReference.ownerReferences.controller of type bool",
        ),
        (
            "ownerReferences",
            owner("uid", json!(7)),
            "number into Go struct field OwnerReference.ownerReferences.uid of type types.UID",
        ),
        (
            "generateName",
            json!(1),
            "number into Go struct field ObjectMeta.generateName of type string",
        ),
        ("uid", json!({}), "object into Go struct field ObjectMeta.uid of type types.UID"),
        (
            "resourceVersion",
            json!(1),
            "number into Go struct field ObjectMeta.resourceVersion of type string",
        ),
        (
            "generation",
            json!("1"),
            "string into Go struct field ObjectMeta.generation of type int64",
        ),
        ("selfLink", json!([]), "array into Go struct field ObjectMeta.selfLink of type string"),
        ("creationTimestamp", json!(5), "number into Go value of type string"),
        ("creationTimestamp", json!("soon"), "parsing time \"soon\""),
        ("deletionTimestamp", json!({}), "object into Go value of type string"),
        (
            "deletionGracePeriodSeconds",
            json!("x"),
            "string into Go struct field ObjectMeta.deletionGracePeriodSeconds of type int64",
        ),
        (
            "managedFields",
            json!("x"),
            "string into Go struct field ObjectMeta.managedFields of type []v1.ManagedFieldsEntry",
        ),
    ]
}

#[tokio::test]
async fn a1_metadata_of_the_wrong_type_is_refused_in_every_kind_of_write() {
    let server = with_widgets().await;
    let before = ask(&server, "POST", WIDGETS, widget("keep")).await;
    assert_eq!(before["metadata"]["labels"]["tier"], "db", "{before}");
    let kept = format!("{WIDGETS}/keep");
    for (field, value, complaint) in forms() {
        let mut made = widget("new");
        made["metadata"][field] = value.clone();
        let mut put = before.clone();
        put["metadata"][field] = value.clone();
        let operation =
            json!([{"op": "add", "path": format!("/metadata/{field}"), "value": value}]);
        let merge = json!({"metadata": {field: value}});
        let post = ask(&server, "POST", WIDGETS, made).await;
        let put = ask(&server, "PUT", &kept, put).await;
        let handled = "Widget in version \"v1\" cannot be handled as a Widget: ";
        for (verb, answer) in [("POST", post), ("PUT", put)] {
            let message = answer["message"].as_str().unwrap_or_default();
            assert_eq!(answer["code"], 400, "{verb} {field} {value}: {answer}");
            assert!(message.starts_with(handled) && message.contains(complaint), "{message}");
        }
        let merged = ask_as(&server, "PATCH", &kept, MERGE, merge).await;
        let patched = ask_as(&server, "PATCH", &kept, JSON, operation).await;
        for (media, answer) in [(MERGE, merged), (JSON, patched)] {
            let message = answer["message"].as_str().unwrap_or_default();
            assert_eq!(answer["code"], 422, "{media} {field} {value}: {answer}");
            assert!(message.contains("is invalid: patch: Invalid value: "), "{message}");
            assert!(message.contains(complaint), "{message}");
        }
        assert_eq!(ask(&server, "GET", &kept, Value::Null).await, before, "{field} {value}");
    }
    let missing = ask(&server, "GET", &format!("{WIDGETS}/new"), Value::Null).await;
    assert_eq!(missing["code"], 404);
}

#[tokio::test]
async fn a1_one_label_of_the_wrong_type_does_not_cost_the_others() {
    let server = with_widgets().await;
    ask(&server, "POST", WIDGETS, widget("keep")).await;
    let kept = format!("{WIDGETS}/keep");
    let patch = json!([{"op": "add", "path": "/metadata/annotations/n", "value": 5}]);
    let answer = ask_as(&server, "PATCH", &kept, JSON, patch).await;
    assert_eq!((&answer["code"], &answer["reason"]), (&json!(422), &json!("Invalid")), "{answer}");
    // What is null is not there; what is well typed is taken.
    let fine = json!({"metadata": {"labels": {"tier": null, "version": "1"}, "annotations": null}});
    let answer = ask_as(&server, "PATCH", &kept, MERGE, fine).await;
    assert_eq!(answer["metadata"]["labels"], json!({"app": "shop", "version": "1"}), "{answer}");
    let mut embedded = widget("embedded");
    embedded["template"] = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": 1}},
    });
    let answer = ask(&server, "POST", WIDGETS, embedded).await;
    let message = answer["message"].as_str().unwrap_or_default();
    assert_eq!(answer["code"], 400, "{answer}");
    assert!(message.contains("template.metadata: Invalid value"), "{message}");
}

#[tokio::test]
async fn b4_an_event_owns_nothing() {
    let server = with_widgets().await;
    server.attend();
    let owner = json!([{"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "u"}]);
    let told = "metadata.ownerReferences: Invalid value: \
                {\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"e\",\"uid\":\"u\"}: \
                /v1, Kind=Event is disallowed from being an owner";
    let map = json!({"metadata": {"name": "m", "ownerReferences": owner}});
    let mut custom = widget("w");
    custom["metadata"]["ownerReferences"] = owner.clone();
    for (path, object) in [(MAPS, map), (WIDGETS, custom)] {
        let answer = ask(&server, "POST", path, object).await;
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(answer["code"] == 422 && message.contains(told), "{answer}");
    }
    ask(&server, "POST", MAPS, json!({"metadata": {"name": "m"}})).await;
    let path = format!("{MAPS}/m");
    let change = json!({"metadata": {"ownerReferences": owner}});
    let answer = ask_as(&server, "PATCH", &path, MERGE, change).await;
    assert_eq!(answer["code"], 422, "{answer}");
    assert_eq!(ask(&server, "GET", &path, Value::Null).await["metadata"]["name"], "m");
}

#[tokio::test]
async fn b5_broken_options_delete_nothing() {
    let server = server(Log::in_memory()).await;
    ask(&server, "POST", MAPS, json!({"metadata": {"name": "m"}})).await;
    let one = format!("{MAPS}/m");
    for (code, query, body) in [
        (400, "?gracePeriodSeconds=x", Value::Null),
        (422, "?propagationPolicy=X", Value::Null),
        (422, "?dryRun=X", Value::Null),
        (400, "", json!({"kind": "Foo"})),
        (400, "", json!({"kind": 1})),
        (400, "", json!({"apiVersion": []})),
        (400, "", json!([1])),
        (400, "", json!("x")),
        (400, "", json!({"gracePeriodSeconds": "x"})),
        (400, "", json!({"gracePeriodSeconds": 1.5})),
        (400, "", json!({"preconditions": "x"})),
        (400, "", json!({"preconditions": {"uid": 1}})),
        (400, "", json!({"preconditions": {"resourceVersion": 1}})),
        (400, "", json!({"orphanDependents": "x"})),
        (400, "", json!({"propagationPolicy": true})),
        (400, "", json!({"dryRun": "All"})),
        (400, "", json!({"dryRun": [1]})),
        (422, "", json!({"dryRun": ["X"]})),
        (422, "", json!({"propagationPolicy": "X"})),
        (422, "", json!({"propagationPolicy": "Orphan", "orphanDependents": true})),
    ] {
        for path in [&one, MAPS, &format!("{MAPS}/missing")] {
            let answer = ask(&server, "DELETE", &format!("{path}{query}"), body.clone()).await;
            assert_eq!(answer["code"], code, "{path}{query} {body}: {answer}");
        }
        let there = ask(&server, "GET", &one, Value::Null).await;
        assert_eq!(there["metadata"]["name"], "m", "{query} {body}");
    }
    for kind in ["DeleteOptions", ""] {
        let fine =
            json!({"kind": kind, "apiVersion": "v1", "dryRun": ["All"], "preconditions": null});
        let answer = ask(&server, "DELETE", &one, fine).await;
        assert_eq!(answer["status"], "Success", "{answer}");
    }
}
