//! How deep an object is nested.
//!
//! Bodies are as deep as the parser lets them be; patches could nest what is there without end.
//! Whatever is stored must be read again, by this server and by whom it is sent to, so it is
//! bounded once more where it is stored. Nothing here recurses: what is measured may be too deep.

use serde_json::Value;

/// The deepest object that is stored. The parser takes 127 levels; the others are for what an
/// object travels in: lists, reviews, conversions.
pub const DEPTH_MAX: usize = 120;

/// How many maps and lists are around the deepest value.
pub fn measure(value: &Value) -> usize {
    let mut deepest = 0;
    let mut open = vec![(value, 1_usize)];
    while let Some((value, depth)) = open.pop() {
        let inside = depth.saturating_add(1);
        match value {
            Value::Object(map) => open.extend(map.values().map(|inner| (inner, inside))),
            Value::Array(items) => open.extend(items.iter().map(|inner| (inner, inside))),
            _ => continue,
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// How many values there are at or below one.
pub fn count(value: &Value) -> usize {
    let (mut count, mut open) = (0_usize, vec![value]);
    while let Some(value) = open.pop() {
        count = count.saturating_add(1);
        match value {
            Value::Object(map) => open.extend(map.values()),
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    count
}

/// The first steps of the way to something deeper than [`DEPTH_MAX`]; none where nothing is.
pub fn too_deep(value: &Value) -> Option<String> {
    const SHOWN: usize = 4;
    if measure(value) <= DEPTH_MAX {
        return None;
    }
    let (mut path, mut value, mut left) = (String::new(), value, DEPTH_MAX);
    for _ in 0..SHOWN {
        let (step, inner) = match value {
            Value::Object(map) => {
                let (name, inner) = map.iter().find(|(_, inner)| measure(inner) >= left)?;
                (format!(".{}", super::shortened(name, 64)), inner)
            }
            Value::Array(items) => {
                let (at, inner) = items.iter().enumerate().find(|one| measure(one.1) >= left)?;
                (format!("[{at}]"), inner)
            }
            _ => break,
        };
        path.push_str(&step);
        (value, left) = (inner, left.saturating_sub(1));
    }
    Some(path.trim_start_matches('.').to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(depth: usize) -> Value {
        (1..depth).fold(json!({}), |inner, _| json!({"a": inner}))
    }

    #[test]
    fn maps_and_lists_count() {
        for (value, depth) in [
            (json!(1), 0),
            (json!({}), 1),
            (json!([1, [2], {"a": [3]}]), 3),
            (json!({"a": 1, "b": {"c": {}}}), 3),
            (nested(1000), 1000),
        ] {
            assert_eq!(measure(&value), depth);
        }
    }

    #[test]
    fn what_is_too_deep_is_named_by_where_it_starts() {
        assert_eq!(too_deep(&nested(DEPTH_MAX)), None);
        let object = json!({"shallow": nested(3), "spec": [1, nested(DEPTH_MAX - 1)]});
        assert_eq!(too_deep(&object).as_deref(), Some("spec[1].a.a"));
    }

    #[test]
    fn what_may_be_stored_can_be_read_in_everything_it_travels_in() {
        let text = format!("[{{\"a\":{{\"b\":[{{\"c\":{}}}]}}}}]", nested(DEPTH_MAX));
        assert!(serde_json::from_str::<Value>(&text).is_ok());
    }
}
