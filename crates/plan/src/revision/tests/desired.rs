//! What a document of a package becomes.

use super::super::desired::{desired, disown, is_same, prepared, replacement, text};
use serde_json::{Value as Json, json};

#[test]
fn what_only_a_cluster_can_say_is_not_taken_from_a_package() {
    let document = json!({
        "kind": "K", "status": {"conditions": []},
        "metadata": {
            "name": "n", "creationTimestamp": null, "uid": "u", "resourceVersion": "1",
            "ownerReferences": [{"name": "x"}], "annotations": {"a": "b"},
        },
        "spec": {"maximum": 10.0, "fraction": 0.5, "large": 1e300, "nested": [{"minimum": -3.0}]},
    });
    let overlay = json!({"metadata": {"labels": {"l": "m"}}, "spec": {"nested": [1]}});
    let expect = json!({
        "kind": "K",
        "metadata": {"name": "n", "annotations": {"a": "b"}, "labels": {"l": "m"}},
        "spec": {"maximum": 10, "fraction": 0.5, "large": 1e300, "nested": [1]},
    });
    assert_eq!(desired(document, &overlay), expect);
}

#[test]
fn something_is_laid_over_a_text_as_over_what_it_says() {
    let documents = [
        json!({"kind": "K", "metadata": {"name": "n", "uid": "u"}, "spec": {"port": 1.0}}),
        json!({"spec": {"text": "{\"metadata\":{\"name\":\"é\\n\"}}"}, "metadata": {"name": "n}"}}),
        json!({"metadata": {}, "status": {"a": 1}}),
        json!({"metadata": null, "kind": "K"}),
        json!({"metadata": "none"}),
        json!({"kind": "K"}),
        json!([1, 2]),
        json!("metadata"),
        Json::Null,
    ];
    let overlays = [
        json!({"metadata": {"labels": {"l": "m"}, "ownerReferences": [{"uid": "x"}]}}),
        json!({"metadata": {"name": "other"}, "spec": {"port": 2}}),
        json!({"spec": {"port": 2}}),
        json!({"metadata": {}}),
        json!({}),
    ];
    for document in &documents {
        for overlay in &overlays {
            let read = text(&prepared(document.clone()), overlay).unwrap();
            let read: Json = serde_json::from_str(&read).unwrap();
            assert_eq!(read, desired(document.clone(), overlay), "{document} {overlay}");
        }
    }
}

#[test]
fn a_replacement_keeps_what_others_wrote_into_the_metadata() {
    let live = json!({
        "name": "n", "uid": "u", "resourceVersion": "7", "generation": 3,
        "labels": {"theirs": "1", "both": "theirs"}, "finalizers": ["theirs", "both"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "x"}],
    });
    let live = serde_json::from_value(live).unwrap();
    let wanted = json!({"metadata": {
        "name": "n", "labels": {"ours": "1", "both": "ours"}, "finalizers": ["both", "ours"],
    }, "spec": {}});
    let expect = json!({"metadata": {
        "name": "n", "uid": "u", "resourceVersion": "7",
        "labels": {"theirs": "1", "both": "ours", "ours": "1"},
        "finalizers": ["theirs", "both", "ours"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "x"}],
    }, "spec": {}});
    assert_eq!(replacement(wanted.clone(), &live), expect);
    let mut owned = wanted;
    owned["metadata"]["ownerReferences"] = json!([]);
    assert_eq!(replacement(owned, &live)["metadata"].get("ownerReferences"), None::<&Json>);
}

#[test]
fn an_object_that_an_api_server_filled_in_is_the_same() {
    let document = json!({"spec": {"versions": [{"name": "v1", "schema": {"maximum": 1.0}}]}});
    let wanted = desired(document, &json!({"metadata": {}}));
    let live = |maximum: i64| {
        json!({
            "metadata": {"uid": "u"},
            "spec": {
                "conversion": {"strategy": "None"},
                "versions": [{"name": "v1", "schema": {"maximum": maximum}}],
            },
        })
    };
    assert!(is_same(&wanted, &live(1), "apron"));
    assert!(!is_same(&wanted, &live(2), "apron"));
}

#[test]
fn what_a_manager_wrote_and_no_longer_wants_goes() {
    let wrote = |manager: &str, labels: &[&str]| {
        let keys = labels.iter().map(|key| (format!("f:{key}"), json!({})));
        let keys: serde_json::Map<String, Json> =
            keys.chain([(".".to_owned(), json!({}))]).collect();
        json!({"manager": manager, "operation": "Update", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": keys}, "f:spec": {"f:a": {}}}})
    };
    let mut live = json!({
        "metadata": {
            "labels": {"kept": "1", "dropped": "1", "theirs": "1"},
            "annotations": {"theirs": "1"},
            "managedFields": [wrote("apron", &["kept", "dropped"]), wrote("kubectl", &["theirs"])],
        },
        "spec": {"a": 1},
    });
    let wanted = |labels: Json| json!({"metadata": {"labels": labels}, "spec": {"a": 1}});
    assert!(is_same(&wanted(json!({"kept": "1", "dropped": "1"})), &live, "apron"));
    assert!(!is_same(&wanted(json!({"kept": "1"})), &live, "apron"));
    disown(&mut live, "apron");
    assert_eq!(live["metadata"]["labels"], json!({"theirs": "1"}));
    assert_eq!(live["metadata"]["annotations"], json!({"theirs": "1"}));
}
