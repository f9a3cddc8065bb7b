//! What is read of objects in several places.

use schema::object::{metadata, time};
use serde_json::Value;

/// The most replicas an object can wish for; upstream's fields have 32 bits.
const REPLICAS_MAX: i64 = i32::MAX as i64;

/// A count in an object, bounded as upstream's fields are.
pub(crate) fn count_at(object: &Value, pointer: &str) -> i64 {
    optional_count(object, pointer).unwrap_or_default()
}

/// The same, if it is there.
pub(crate) fn optional_count(object: &Value, pointer: &str) -> Option<i64> {
    let found = object.pointer(pointer).and_then(Value::as_i64);
    found.map(|number| number.clamp(0, REPLICAS_MAX))
}

/// A text in an object, or nothing.
pub(crate) fn text_at<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// An annotation, or nothing.
pub(crate) fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    let annotations = metadata(object).get("annotations");
    annotations.and_then(|all| all.get(name)).and_then(Value::as_str).unwrap_or_default()
}

/// The uid of the object that controls this one.
pub fn controller_uid(object: &Value) -> Option<&str> {
    let owners = metadata(object).get("ownerReferences").and_then(Value::as_array)?;
    let controller = owners.iter().find(|owner| owner["controller"] == true)?;
    controller.get("uid").and_then(Value::as_str)
}

/// A condition of a status.
pub(crate) fn find_condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array)?;
    conditions.iter().find(|one| one["type"] == kind)
}

/// Whether a pod answers.
pub fn is_pod_ready(pod: &Value) -> bool {
    find_condition(pod, "Ready").is_some_and(|one| one["status"] == "True")
}

/// Since when a pod answers, in seconds since 1970.
pub(crate) fn ready_since(pod: &Value) -> Option<u64> {
    let ready = find_condition(pod, "Ready").filter(|one| one["status"] == "True")?;
    ready.get("lastTransitionTime").and_then(Value::as_str).and_then(time::parse)
}

/// Whether a pod is over, or on its way out.
pub(crate) fn is_pod_over(pod: &Value) -> bool {
    ["Succeeded", "Failed"].contains(&text_at(pod, "/status/phase"))
}

/// A number of pods that is said as such or as a part of all of them.
pub(crate) fn share_of(said: Option<&Value>, all: i64, rounding: Rounding) -> i64 {
    match said {
        Some(Value::Number(number)) => number.as_i64().unwrap_or_default().clamp(0, REPLICAS_MAX),
        Some(Value::String(text)) => {
            let percent = text.strip_suffix('%').and_then(|text| text.parse::<i64>().ok());
            let hundredths = all.saturating_mul(percent.unwrap_or_default().clamp(0, 1_000_000));
            match rounding {
                Rounding::Up => hundredths.saturating_add(99) / 100,
                Rounding::Down => hundredths / 100,
            }
        }
        _ => 0,
    }
}

/// Where a part of a pod goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    Up,
    Down,
}
