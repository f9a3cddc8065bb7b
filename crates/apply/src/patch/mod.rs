//! Patches: JSON Patch and JSON Merge Patch, which need no schema, and strategic merge patch,
//! which does.

mod json;
pub mod strategic;

use serde_json::{Map, Value};

pub use json::{Budget, OPERATIONS_MAX, PatchError, apply as json, step as json_step};

/// RFC 7386: what is null goes, maps are merged, everything else is replaced.
///
/// As in upstream's library, what is new loses its nulls inside lists, too.
pub fn merge(target: &mut Value, patch: &Value) {
    match (target, patch) {
        (Value::Object(map), Value::Object(patch)) => merge_maps(map, patch),
        (target @ Value::Object(_), patch) => *target = patch.clone(),
        (target, patch) => *target = without_nulls(patch),
    }
}

fn merge_maps(map: &mut Map<String, Value>, patch: &Map<String, Value>) {
    // All at once: taking one member out of a map moves all that come after it.
    if patch.values().any(Value::is_null) {
        map.retain(|key, _| !patch.get(key).is_some_and(Value::is_null));
    }
    for (key, value) in patch.iter().filter(|(_, value)| !value.is_null()) {
        match map.get_mut(key) {
            Some(present) if !present.is_null() => merge(present, value),
            _ => {
                map.insert(key.clone(), without_nulls(value));
            }
        }
    }
}

/// A value whose maps have no null members; lists keep theirs.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), without_nulls(value)))
            .collect::<Map<String, Value>>()
            .into(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn merge_patches_follow_the_rfc() {
        let check = |target: Value, patch: Value, expect: Value| {
            let mut result = target.clone();
            merge(&mut result, &patch);
            assert_eq!(result, expect, "{target} with {patch}");
        };
        check(json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"}));
        check(json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"}));
        check(json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"}));
        check(
            json!({"a": {"b": "c"}}),
            json!({"a": {"b": "d", "c": null}}),
            json!({"a": {"b": "d"}}),
        );
        check(json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}}));
        check(json!(["a"]), json!({"a": 1}), json!({"a": 1}));
        check(json!({}), json!({"a": [{"b": null}, null]}), json!({"a": [{}, null]}));
        check(json!({"a": {}}), json!({"a": [{"b": null}]}), json!({"a": [{"b": null}]}));
    }
}
