//! What no request may do: bring in what cannot be read again, or what is too much to keep; and
//! what something broken that is stored costs: itself.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures::StreamExt as _;
use serde_json::{Value, json};

use super::bounds::STORED_MAX;
use crate::Server;
use crate::log::{Expect, Log, Write};
use crate::testing::{answer_as, ask, ask_as, send, server, server_with_widgets};
use schema::object::depth::{DEPTH_MAX, measure};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WIDGETS: &str = "/apis/example.org/v1/namespaces/default/widgets";
const EVERYWHERE: &str = "/apis/example.org/v1/widgets";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// A server with a kind whose objects may hold anything.
async fn with_widgets() -> Arc<Server> {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    server_with_widgets(json!({"spec": open})).await
}

fn widget(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec,
    })
}

fn nested(depth: usize) -> Value {
    (1..depth).fold(json!({}), |inner, _| json!({"a": inner}))
}

async fn stored(server: &Arc<Server>, path: &str) -> Value {
    ask(server, "GET", path, Value::Null).await
}

/// H3: a patch of 42 kB nested an object 4,800 deep; the stack overflowed.
#[tokio::test]
async fn h3_no_json_patch_nests_an_object_deeper_than_can_be_read() {
    let server = with_widgets().await;
    ask(&server, "POST", WIDGETS, widget("w", &json!({"a": {}}))).await;
    let mut patch = Vec::new();
    for _ in 0..120 {
        patch.push(json!({"op": "move", "from": "/spec", "path": "/metadata/kept"}));
        patch.push(json!({"op": "add", "path": "/spec", "value": nested(41)}));
        let inner = format!("/spec{}", "/a".repeat(40));
        patch.push(json!({"op": "move", "from": "/metadata/kept", "path": inner}));
    }
    let place = format!("{WIDGETS}/w");
    let answer = ask_as(&server, "PATCH", &place, JSON, Value::Array(patch)).await;
    assert_eq!(answer["code"], 422, "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("exceeded max depth"), "{answer}");
    assert_eq!(stored(&server, &place).await["spec"], json!({"a": {}}));
}

/// H4: whatever way something deep is brought, it is refused, or can be read again.
#[tokio::test]
async fn h4_whatever_is_stored_can_be_read_again() {
    let server = with_widgets().await;
    let place = format!("{WIDGETS}/w");
    for depth in [60, 110, 113, 114, 115, 116, 117, 118, 119, 120, 121, 122, 124] {
        let spec = nested(depth);
        let named = |name: &str| widget(name, &spec);
        let patch = json!([{"op": "add", "path": "/spec", "value": spec}]);
        let applied = format!("{place}?fieldManager=me&force=true");
        for (method, path, media, body) in [
            ("POST", WIDGETS, "application/json", named("w")),
            ("PUT", place.as_str(), "application/json", named("w")),
            ("PATCH", place.as_str(), MERGE, json!({"spec": spec})),
            ("PATCH", place.as_str(), JSON, patch),
            ("PATCH", applied.as_str(), APPLY, named("w")),
        ] {
            let answer = ask_as(&server, method, path, media, body).await;
            let code = answer["code"].as_u64();
            assert!([None, Some(422), Some(409), Some(404), Some(400)].contains(&code), "{answer}");
            let list = stored(&server, WIDGETS).await;
            assert_eq!(list["kind"], "WidgetList", "{method} {media} {depth}: {list}");
            for item in list["items"].as_array().unwrap() {
                assert!(measure(item) <= DEPTH_MAX, "{method} {media} {depth}");
            }
        }
        let gone = ask(&server, "DELETE", &place, Value::Null).await;
        assert!(gone["status"] == "Success" || gone["code"] == 404, "{depth}: {gone}");
    }
}

/// Built-in kinds have no place for anything deep but in what nobody looks into.
#[tokio::test]
async fn h4_strategic_patches_are_bounded_too() {
    let server = server(Log::in_memory()).await;
    ask(&server, "POST", MAPS, json!({"metadata": {"name": "m"}})).await;
    let patch = json!({"metadata": {"annotations": {"a": nested(120)}}, "data": nested(120)});
    let answer = ask_as(&server, "PATCH", &format!("{MAPS}/m"), STRATEGIC, patch).await;
    assert!(answer["code"].as_u64().is_some_and(|code| code < 500), "{answer}");
    assert_eq!(stored(&server, MAPS).await["kind"], "ConfigMapList");
}

/// Puts a text into the log that no request could bring there.
async fn poison(server: &Server, key: &str, text: Vec<u8>) {
    let write =
        Write { key: key.to_owned(), expect: Expect::Absent, value: Some(Bytes::from(text)) };
    server.log.write(write).await.unwrap();
}

fn deep_widget(name: &str) -> Vec<u8> {
    let (open, close) = ("{\"a\":".repeat(500), "}".repeat(500));
    let head = "\"kind\":\"Widget\",\"apiVersion\":\"example.org/v1\"";
    format!("{{{head},\"metadata\":{{\"name\":\"{name}\"}},\"spec\":{open}1{close}}}").into_bytes()
}

fn poisons() -> [(&'static str, Vec<u8>); 4] {
    [
        ("deep", deep_widget("deep")),
        ("cut", deep_widget("cut")[..100].to_vec()),
        ("list", b"[]".to_vec()),
        ("nothing", Vec::new()),
    ]
}

/// H4: one such object kept the administrator from listing and deleting anything of its kind.
#[tokio::test]
async fn h4_what_a_broken_object_costs_is_itself() {
    let server = with_widgets().await;
    ask(&server, "POST", WIDGETS, widget("good", &json!({}))).await;
    for (name, text) in poisons() {
        poison(&server, &format!("widgets.example.org/default/{name}"), text).await;
    }
    for path in [WIDGETS, EVERYWHERE] {
        let answer = answer_as(&server, "GET", path, "", Value::Null).await;
        let warnings: Vec<_> = answer.headers().get_all("warning").iter().collect();
        assert_eq!(warnings.len(), 4, "{warnings:?}");
        let list = stored(&server, path).await;
        assert_eq!(list["items"].as_array().unwrap().len(), 1, "{list}");
    }
    for (name, _) in poisons() {
        let place = format!("{WIDGETS}/{name}");
        let told = stored(&server, &place).await;
        assert_eq!((&told["code"], &told["reason"]), (&json!(500), &json!("StorageReadError")));
        let wrong = json!({"preconditions": {"uid": "somebody"}});
        assert_eq!(ask(&server, "DELETE", &place, wrong).await["code"], 409);
        assert_eq!(ask(&server, "DELETE", &place, Value::Null).await["status"], "Success");
        assert_eq!(stored(&server, &place).await["code"], 404);
    }
    assert_eq!(stored(&server, &format!("{WIDGETS}/good")).await["kind"], "Widget");
}

#[tokio::test]
async fn h4_watches_survive_a_broken_object() {
    let server = with_widgets().await;
    let (name, text) = &poisons()[0];
    let key = format!("widgets.example.org/default/{name}");
    poison(&server, &key, text.clone()).await;
    let mut lines =
        send(&server, "GET", &format!("{WIDGETS}?watch=1"), Value::Null).await.into_data_stream();
    ask(&server, "POST", WIDGETS, widget("good", &json!({}))).await;
    ask(&server, "DELETE", &format!("{WIDGETS}/{name}"), Value::Null).await;
    poison(&server, &key, text.clone()).await;
    ask(&server, "POST", WIDGETS, widget("better", &json!({}))).await;
    for name in ["good", "better"] {
        let line: Value = serde_json::from_slice(&lines.next().await.unwrap().unwrap()).unwrap();
        assert_eq!(
            (&line["type"], &line["object"]["metadata"]["name"]),
            (&json!("ADDED"), &json!(name))
        );
    }
}

#[tokio::test]
async fn h4_broken_objects_go_with_their_definition_their_namespace_and_their_kin() {
    let server = with_widgets().await;
    let namespace = json!({"metadata": {"name": "n"}});
    ask(&server, "POST", "/api/v1/namespaces", namespace).await;
    for (name, text) in poisons() {
        poison(&server, &format!("widgets.example.org/n/{name}"), text.clone()).await;
        poison(&server, &format!("configmaps/n/{name}"), text).await;
    }
    ask(&server, "DELETE", "/api/v1/namespaces/n", Value::Null).await;
    server.settle().await;
    assert_eq!(stored(&server, "/api/v1/namespaces/n").await["code"], 404);
    for (name, text) in poisons() {
        poison(&server, &format!("widgets.example.org/default/{name}"), text).await;
    }
    ask(&server, "DELETE", WIDGETS, Value::Null).await;
    assert!(server.log.list("widgets.example.org/", None).unwrap().entries.is_empty());
    for (name, text) in poisons() {
        poison(&server, &format!("widgets.example.org/default/{name}"), text).await;
    }
    let definition = format!("{DEFINITIONS}/widgets.example.org");
    ask(&server, "DELETE", &definition, Value::Null).await;
    server.settle().await;
    assert_eq!(stored(&server, &definition).await["code"], 404);
}

/// M8: patches of 2.9 MB each made an object of 43.5 MB.
#[tokio::test]
async fn m8_no_object_grows_beyond_what_a_store_takes() {
    let server = with_widgets().await;
    ask(&server, "POST", WIDGETS, widget("w", &json!({}))).await;
    let place = format!("{WIDGETS}/w");
    for at in 0..4 {
        let patch = json!({"spec": {format!("part{at}"): "x".repeat(STORED_MAX / 2)}});
        let answer = ask_as(&server, "PATCH", &place, MERGE, patch).await;
        if at == 0 {
            assert_eq!(answer["kind"], "Widget", "{}", answer["message"]);
            continue;
        }
        assert_eq!(answer["code"], 500);
        assert_eq!(answer["message"], "etcdserver: request is too large");
        assert_eq!(answer.get("reason"), None);
    }
    let whole = widget("big", &json!({"a": "x".repeat(STORED_MAX)}));
    assert_eq!(ask(&server, "POST", WIDGETS, whole).await["code"], 500);
    let size = server.log.get("widgets.example.org/default/w").unwrap().value.len();
    assert!(size < STORED_MAX, "{size}");
}

#[tokio::test]
async fn m8_config_maps_hold_a_mebibyte() {
    let server = server(Log::in_memory()).await;
    let map = |bytes: usize| json!({"metadata": {"name": "m"}, "data": {"a": "x".repeat(bytes)}});
    let answer = ask(&server, "POST", MAPS, map((1 << 20) + 1)).await;
    let why = "ConfigMap \"m\" is invalid: []: Too long: may not be more than 1048576 bytes";
    assert_eq!((&answer["code"], &answer["message"]), (&json!(422), &json!(why)));
    assert_eq!(ask(&server, "POST", MAPS, map(1 << 20)).await["kind"], "ConfigMap");
}

/// What was too big before there was a limit does not grow, and can shrink and go.
#[tokio::test]
async fn m8_what_is_too_big_already_can_be_mended_and_deleted() {
    let server = with_widgets().await;
    let mut big = widget("big", &json!({"a": "x".repeat(STORED_MAX), "b": "x"}));
    big["metadata"]["namespace"] = json!("default");
    big["metadata"]["generation"] = json!(1);
    big["metadata"]["uid"] = json!("00000000-0000-4000-8000-000000000001");
    big["metadata"]["finalizers"] = json!(["example.org/held"]);
    poison(&server, "widgets.example.org/default/big", big.to_string().into_bytes()).await;
    let place = format!("{WIDGETS}/big");
    let patch = |patch: Value| ask_as(&server, "PATCH", &place, MERGE, patch);
    assert_eq!(patch(json!({"spec": {"c": "x".repeat(9999)}})).await["code"], 500);
    assert_eq!(patch(json!({"spec": {"b": null}})).await.get("code"), None);
    let marked = ask(&server, "DELETE", &place, Value::Null).await;
    assert!(marked["metadata"]["deletionTimestamp"].is_string(), "{}", marked["message"]);
    assert_eq!(patch(json!({"metadata": {"finalizers": null}})).await.get("code"), None);
    assert_eq!(stored(&server, &place).await["code"], 404);
}

/// H5: any user stalled the server with many fields that nobody knows, or that are written twice.
#[tokio::test]
async fn h5_odd_fields_are_told_of_only_so_often() {
    let server = server(Log::in_memory()).await;
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let review = |odd: &str, validation: &str| {
        let text = format!(
            "{{\"spec\":{{\"nonResourceAttributes\":{{\"path\":\"/x\",\"verb\":\"get\"}}}}{odd}}}"
        );
        let place = format!("{reviews}?fieldValidation={validation}");
        let request = http::Request::builder().method("POST").uri(place);
        let request = request.header("Content-Type", "application/json");
        let request = request.body(Body::from(text)).unwrap();
        let router = server.router();
        async move {
            let answer = tower::ServiceExt::oneshot(router, request).await.unwrap();
            let warnings = answer.headers().get_all("warning").iter().count();
            let bytes = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
            (warnings, serde_json::from_slice::<Value>(&bytes).unwrap())
        }
    };
    let unknown: Vec<String> = (0..100_000).map(|n| format!(",\"k{n}\":1")).collect();
    let twice: Vec<String> = (0..50_000).map(|n| format!(",\"k{n}\":1,\"k{n}\":1")).collect();
    for odd in [unknown.concat(), twice.concat()] {
        let (warnings, answer) = review(&odd, "Warn").await;
        assert!(warnings > 10 && warnings <= 200, "{warnings}");
        assert_eq!(answer["kind"], "SelfSubjectAccessReview");
        let (_, answer) = review(&odd, "Strict").await;
        assert_eq!(answer["code"], 400);
        assert!(answer["message"].as_str().unwrap().len() < 10_000);
    }
}
