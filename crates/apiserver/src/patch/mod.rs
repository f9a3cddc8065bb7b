//! Patches: JSON Patch and JSON Merge Patch, which need no schema, and strategic merge patch,
//! which does.

mod json;
pub mod strategic;

use serde_json::{Map, Value};

pub use json::{PatchError, apply as json};

/// RFC 7386: what is null goes, maps are merged, everything else is replaced.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(map) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            map.shift_remove(key);
        } else {
            merge(map.entry(key).or_insert(Value::Null), value);
        }
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
    }
}
