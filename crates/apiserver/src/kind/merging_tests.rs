//! Random patches and what Go's library made of them.

use serde_json::{Map, Value, json};

use super::shape;
use apply::patch::strategic::{StrategicError, strategic};

/// Ours for one recorded case: the result, or the words of the refusal.
fn ours(case: &Value) -> Value {
    let map = |field: &str| case[field].as_object().cloned().unwrap_or_default();
    let (version, kind) = case["kind"].as_str().unwrap().rsplit_once('/').unwrap();
    match strategic(map("original"), map("patch"), shape::merging(version, kind)) {
        Ok(result) => Value::Object(result),
        Err(error) => json!(error.to_string()),
    }
}

fn check(lines: &str) -> usize {
    let mut cases = 0;
    for line in lines.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let expect = case.get("result").or(case.get("error")).unwrap();
        let found = ours(&case);
        // Where the library crashes, any refusal will do.
        let crash = *expect == json!("panic") && found.is_string();
        assert!(crash || found == *expect, "{line}\n  expected {expect}\n  found    {found}");
        cases += 1;
    }
    cases
}

#[test]
fn recorded_patches_give_what_the_library_gave() {
    let cases = check(include_str!("../../testdata/patch/strategic.jsonl"));
    assert!(cases >= 400, "{cases}");
}

fn pod(original: &Value, patch: &Value) -> Result<Value, StrategicError> {
    let map = |value: &Value| -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_else(Map::new)
    };
    strategic(map(original), map(patch), shape::merging("v1", "Pod")).map(Value::Object)
}

#[test]
fn containers_are_merged_by_name_and_keep_their_order() {
    let original = json!({"spec": {"containers": [
        {"name": "a", "image": "a:1", "args": ["x"]}, {"name": "b", "image": "b:1"},
    ]}});
    let patch = json!({"spec": {"containers": [{"name": "b", "image": "b:2"}, {"name": "c"}]}});
    let expect = json!({"spec": {"containers": [
        {"name": "a", "image": "a:1", "args": ["x"]}, {"name": "b", "image": "b:2"}, {"name": "c"},
    ]}});
    assert_eq!(pod(&original, &patch), Ok(expect));
    let patch = json!({"spec": {"containers": [{"name": "a", "$patch": "delete"}]}});
    let expect = json!({"spec": {"containers": [{"name": "b", "image": "b:1"}]}});
    assert_eq!(pod(&original, &patch), Ok(expect));
    let patch = json!({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}});
    let names = |pod: &Value| [0, 1].map(|at| pod["spec"]["containers"][at]["name"].clone());
    assert_eq!(names(&pod(&original, &patch).unwrap()), ["b", "a"]);
}
