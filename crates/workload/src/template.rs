//! Pod templates: whether two are the same, and a short text that tells them apart.

use schema::object::map_at;
use serde_json::{Map, Value};

/// The label by which the pods of one template are told from those of another.
pub(crate) const HASH_LABEL: &str = "pod-template-hash";

/// Letters and digits of generated names: no vowels, so no words.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Fields that map names to values. Empty, they say nothing; other empty objects do, as `emptyDir`.
const MAPS: [&str; 7] =
    ["labels", "annotations", "nodeSelector", "matchLabels", "limits", "requests", "overhead"];

/// A template without the label that a replica set has in addition, and without what says nothing:
/// clients with types leave it out when they write a template that they have read.
pub(crate) fn plain_template(template: &Value) -> Value {
    let mut plain = template.clone();
    let metadata = map_at(&mut plain, "metadata");
    if let Some(Value::Object(labels)) = metadata.get_mut("labels") {
        labels.shift_remove(HASH_LABEL);
    }
    drop_empty(&mut plain);
    plain
}

/// Takes out fields that are null, an empty list or an empty map of names.
fn drop_empty(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(drop_empty);
            map.retain(|name, one| match one {
                Value::Null => false,
                Value::Array(list) => !list.is_empty(),
                Value::Object(inner) => !(inner.is_empty() && MAPS.contains(&name.as_str())),
                _ => true,
            });
        }
        Value::Array(list) => list.iter_mut().for_each(drop_empty),
        _ => {}
    }
}

/// A template with the label.
pub(crate) fn labelled_template(template: &Value, hash: &str) -> Value {
    let mut labelled = template.clone();
    let metadata = map_at(&mut labelled, "metadata");
    let labels = metadata.entry("labels").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(labels) = labels {
        labels.insert(HASH_LABEL.to_owned(), hash.into());
    }
    labelled
}

/// A text for a template: the same for the same one, in the letters of generated names.
/// Collisions are counted, and the count makes another text.
pub(crate) fn hash_template(template: &Value, collisions: i64) -> String {
    let mut hash = 0x811c_9dc5_u32;
    let mut take = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    };
    take(ordered_text(&plain_template(template)).as_bytes());
    if collisions > 0 {
        take(&collisions.to_le_bytes());
    }
    let digits = hash.to_string();
    let letter = |digit: u8| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()]);
    digits.bytes().map(letter).collect()
}

/// JSON whose maps are in order, so that the order in which a client wrote does not count.
fn ordered_text(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut pairs: Vec<(&String, &Value)> = map.iter().collect();
            pairs.sort_by_key(|(name, _)| *name);
            let pairs = pairs.iter().map(|(name, one)| format!("{name:?}:{}", ordered_text(one)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
        }
        Value::Array(list) => {
            format!("[{}]", list.iter().map(ordered_text).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_hash_depends_on_what_is_said_and_not_on_the_order() {
        let one = json!({"spec": {"a": 1, "b": [1, 2]}, "metadata": {"labels": {"x": "y"}}});
        let same = json!({"metadata": {"labels": {"x": "y", HASH_LABEL: "z"}}, "spec": {"b": [1, 2], "a": 1}});
        let other = json!({"spec": {"a": 1, "b": [2, 1]}, "metadata": {"labels": {"x": "y"}}});
        assert_eq!(hash_template(&one, 0), hash_template(&same, 0));
        assert_ne!(hash_template(&one, 0), hash_template(&other, 0));
        assert_ne!(hash_template(&one, 0), hash_template(&one, 1));
        let empty = json!({
            "metadata": {"labels": {"x": "y"}, "annotations": {}, "creationTimestamp": null},
            "spec": {"a": 1, "b": [1, 2], "c": []},
        });
        assert_eq!(hash_template(&one, 0), hash_template(&empty, 0));
        assert!(hash_template(&one, 0).bytes().all(|letter| ALPHABET.contains(&letter)));
    }

    #[test]
    fn what_clients_leave_out_when_they_write_again_makes_no_other_template() {
        let spec = |spec: Value| plain_template(&json!({"metadata": {}, "spec": spec}));
        let same = [
            json!({"containers": [{"name": "c", "resources": {}}], "volumes": [{"emptyDir": {}}]}),
            json!({"containers": [{"name": "c", "resources": {"limits": {}}, "env": []}],
                "volumes": [{"emptyDir": {}}], "initContainers": [], "nodeSelector": {}}),
            json!({"containers": [{"name": "c", "resources": {}, "args": null, "ports": []}],
                "volumes": [{"emptyDir": {}}], "tolerations": null}),
        ];
        assert!(same.iter().all(|one| spec(one.clone()) == spec(same[0].clone())));
        let other = json!({"containers": [{"name": "c", "resources": {}}], "volumes": [{}]});
        assert_ne!(spec(other), spec(same[0].clone()), "an empty object may say something");
    }
}
