//! Pairs of what is wanted and what a cluster answers with.

use super::{holds, parse_quantity, same};
use serde_json::{Value as Json, json};

fn container(container: &Json) -> Json {
    json!({"spec": {"template": {"spec": {"containers": [container]}}}})
}

#[test]
fn what_a_cluster_fills_in_makes_no_difference() {
    let container = |one: &Json| container(one);
    for (wanted, live) in [
        (json!({"a": 1}), json!({"a": 1, "b": 2})),
        (
            json!({"metadata": {"name": "a", "resourceVersion": "1"}}),
            json!({"metadata": {"name": "a", "resourceVersion": "2"}}),
        ),
        (json!({"selector": {}, "labels": null, "hostNetwork": false}), json!({})),
        (json!({"metadata": {"creationTimestamp": null}}), json!({})),
        (
            container(&json!({"name": "a", "env": [{"name": "B"}, {"name": "C", "value": ""}]})),
            container(
                &json!({"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "C"}, {"name": "B"}], "terminationMessagePath": "/dev"}),
            ),
        ),
        (
            container(&json!({"name": "a", "ports": [{"name": "m", "containerPort": 1}]})),
            container(
                &json!({"name": "a", "ports": [{"containerPort": 1, "protocol": "UDP"}, {"containerPort": 1, "name": "m", "protocol": "TCP"}]}),
            ),
        ),
        (
            container(
                &json!({"name": "a", "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": 0.5}}}),
            ),
            container(
                &json!({"name": "a", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}}),
            ),
        ),
    ] {
        assert!(holds(&wanted, &live), "{wanted} in {live}");
    }
}

#[test]
fn every_other_difference_counts() {
    let container = |one: &Json| container(one);
    for (wanted, live) in [
        (json!({"a": 1}), json!({"a": 2})),
        (json!({"a": true}), json!({})),
        (json!({"replicas": 0}), json!({"replicas": 1})),
        (json!({"args": ["a", "b"]}), json!({"args": ["b", "a"]})),
        (json!({"args": ["a"]}), json!({"args": ["a", "b"]})),
        (
            json!({"rules": [{"verbs": ["get"]}]}),
            json!({"rules": [{"verbs": ["get"]}, {"verbs": ["list"]}]}),
        ),
        (
            container(&json!({"name": "a", "image": "x"})),
            container(&json!({"name": "b", "image": "x"})),
        ),
        (
            container(&json!({"name": "a", "env": [{"name": "B", "value": "1000m"}]})),
            container(&json!({"name": "a", "env": [{"name": "B", "value": "1"}]})),
        ),
        (
            container(&json!({"name": "a", "resources": {"limits": {"cpu": "1"}}})),
            container(&json!({"name": "a", "resources": {"limits": {"cpu": "1001m"}}})),
        ),
    ] {
        assert!(!holds(&wanted, &live), "{wanted} in {live}");
    }
}

#[test]
fn what_others_add_counts_where_it_changes_what_we_said() {
    for (wanted, live) in [
        (
            json!({"rules": [{"verbs": ["get"]}]}),
            json!({"rules": [{"verbs": ["get"], "resourceNames": ["a"]}]}),
        ),
        (
            json!({"spec": {"selector": {"app": "a"}}}),
            json!({"spec": {"selector": {"app": "a", "tier": "b"}}}),
        ),
    ] {
        assert!(!same(&wanted, &live, "ours"), "{wanted} in {live}");
        assert!(same(&wanted, &wanted, "ours"), "{wanted}");
    }
    // Objects of packages may be of kinds in which API servers fill something in at such places.
    let wanted = json!({"webhooks": [{"name": "a", "rules": [{"operations": ["CREATE"]}]}]});
    let live =
        json!({"webhooks": [{"name": "a", "rules": [{"operations": ["CREATE"], "scope": "*"}]}]});
    assert!(holds(&wanted, &live));
}

#[test]
fn what_was_ours_and_is_no_longer_wanted_counts() {
    let fields = json!({
        "f:metadata": {"f:labels": {"f:old": {}}},
        "f:spec": {
            "f:replicas": {},
            "f:template": {"f:spec": {"f:containers": {
                "k:{\"name\":\"a\"}": {
                    ".": {}, "f:name": {},
                    "f:ports": {"k:{\"containerPort\":1,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
                },
            }}},
        },
    });
    let wanted = json!({
        "metadata": {"labels": {"old": "1"}},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [
            {"name": "a", "ports": [{"containerPort": 1}]},
        ]}}},
    });
    let mut live = wanted.clone();
    let record = |manager: &str, operation: &str| json!({"manager": manager, "operation": operation, "fieldsV1": fields});
    live["metadata"]["managedFields"] = json!([record("ours", "Apply"), record("x", "Update")]);
    assert!(same(&wanted, &live, "ours"));
    for path in [
        "/metadata/labels/old",
        "/spec/replicas",
        "/spec/template/spec/containers/0/ports/0",
        "/spec/template/spec/containers/0/ports",
    ] {
        let (parent, last) = path.rsplit_once('/').unwrap();
        let mut less = wanted.clone();
        match less.pointer_mut(parent).unwrap() {
            Json::Object(fields) => drop(fields.remove(last)),
            Json::Array(items) => drop(items.remove(0)),
            other => panic!("{other}"),
        }
        assert!(holds(&less, &live), "{path}");
        assert!(!same(&less, &live, "ours"), "{path}");
        assert!(same(&less, &live, "somebody else"), "{path}");
        assert!(same(&less, &live, "x"), "only what was applied is known to be meant: {path}");
    }
}

#[test]
fn members_of_sets_are_known_by_value() {
    let live = json!({
        "metadata": {"finalizers": ["a", "b"], "managedFields": [{
            "manager": "ours", "operation": "Apply",
            "fieldsV1": {"f:metadata": {"f:finalizers": {"v:\"a\"": {}, "v:\"b\"": {}}}},
        }]},
    });
    assert!(same(&json!({"metadata": {"finalizers": ["a", "b"]}}), &live, "ours"));
    assert!(!same(&json!({"metadata": {"finalizers": ["a"]}}), &live, "ours"));
}

#[test]
fn quantities_are_read_as_kubernetes_writes_them() {
    let billion = 1_000_000_000;
    for (text, value) in [
        ("1", Some(billion)),
        ("1.5", Some(1_500_000_000)),
        ("100m", Some(100_000_000)),
        ("0.1n", Some(1)),
        ("1Ki", Some(1024 * billion)),
        ("1.5Gi", Some(1_610_612_736 * billion)),
        ("1e3", Some(1000 * billion)),
        ("1E", Some(1_000_000_000_000_000_000 * billion)),
        ("-1k", Some(-1000 * billion)),
        ("one", None),
        ("", None),
        ("1Q", None),
    ] {
        assert_eq!(parse_quantity(text), value, "{text}");
    }
}
