//! Events: one storage, two APIs. What is stored has the shape of the core API; the newer
//! `events.k8s.io` has other names for the same things.

use serde_json::{Value, json};

use super::Kind;
use schema::object::field_error::FieldError;
use schema::object::{meta_text, name};

/// The group of the newer API.
pub(crate) const GROUP: &str = "events.k8s.io";

/// What the newer API calls something, and what the core does.
const NAMES: &[(&str, &str)] = &[
    ("reportingController", "reportingComponent"),
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// Whether a kind is an event in the newer API.
pub(crate) fn is_newer(kind: &Kind) -> bool {
    kind.group == GROUP && kind.plural == "events"
}

/// A stored event as the newer API shows it.
pub(crate) fn to_newer(object: &mut Value) {
    rename(object, |(newer, core)| (core, newer));
    complete(object, true);
}

/// An event of the newer API as it is stored.
pub(crate) fn to_core(object: &mut Value) {
    rename(object, |(newer, core)| (newer, core));
    complete(object, false);
}

/// An event of either API in the shape of the core.
pub(super) fn core(object: &Value) -> std::borrow::Cow<'_, Value> {
    if object.get("regarding").is_none() {
        return std::borrow::Cow::Borrowed(object);
    }
    let mut event = object.clone();
    to_core(&mut event);
    std::borrow::Cow::Owned(event)
}

fn rename(
    object: &mut Value,
    names: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
) {
    let Value::Object(map) = object else { return };
    for (from, to) in NAMES.iter().copied().map(names) {
        if let Some(value) = map.shift_remove(from) {
            map.insert(to.to_owned(), value);
        }
    }
}

/// What a typed event always shows, and what it never does.
pub(super) fn complete(object: &mut Value, newer: bool) {
    let Value::Object(map) = object else { return };
    let (structs, times, texts): (_, _, &[&str]) = if newer {
        (
            ["regarding", "deprecatedSource"],
            ["eventTime", "deprecatedFirstTimestamp", "deprecatedLastTimestamp"],
            &[],
        )
    } else {
        (
            ["involvedObject", "source"],
            ["eventTime", "firstTimestamp", "lastTimestamp"],
            &["reportingComponent", "reportingInstance"],
        )
    };
    let defaults = structs.map(|field| (field, json!({}))).into_iter();
    let defaults = defaults.chain(times.map(|field| (field, Value::Null)));
    for (field, value) in defaults.chain(texts.iter().map(|field| (*field, json!("")))) {
        if map.get(field).is_none_or(Value::is_null) {
            map.insert(field.to_owned(), value);
        }
    }
    map.retain(|field, value| {
        let kept = texts.contains(&field.as_str()) || structs.contains(&field.as_str());
        kept || !(*value == json!("") || *value == json!(0))
    });
}

/// An event in which nobody has said anything.
pub(super) fn blank(newer: bool) -> Value {
    let mut object = json!({});
    complete(&mut object, newer);
    object
}

/// What is wrong with an event.
pub(super) fn check(kind: &Kind, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let newer = is_newer(kind);
    let mut event = object.clone();
    let mut wrong = Vec::new();
    if newer {
        to_core(&mut event);
    }
    legacy(&event, newer, &mut wrong);
    if !newer {
        return wrong;
    }
    match old {
        None => strict(&event, &mut wrong),
        Some(old) => {
            let mut old = old.clone();
            to_core(&mut old);
            unchanged(&event, &old, &mut wrong);
        }
    }
    wrong
}

fn text<'a>(event: &'a Value, pointer: &str) -> &'a str {
    event.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn legacy(event: &Value, newer: bool, wrong: &mut Vec<FieldError>) {
    let (own, other) = (meta_text(event, "namespace"), text(event, "/involvedObject/namespace"));
    let dated = !text(event, "/eventTime").is_empty();
    let fits = match (dated, other) {
        (false, "") => ["", "default"].contains(&own),
        (false, other) => own == other,
        (true, "") => ["default", "kube-system"].contains(&own),
        (true, _) => true,
    };
    if !fits {
        let why = "does not match event.namespace";
        wrong.push(FieldError::invalid("involvedObject.namespace", &json!(other), why));
    }
    if !dated {
        return;
    }
    let controller = text(event, "/reportingComponent");
    let field = if newer { "reportingController" } else { "reportingComponent" };
    if controller.is_empty() {
        wrong.push(FieldError::required(field, ""));
    }
    for fault in name::check_qualified(controller) {
        wrong.push(FieldError::invalid(field, &json!(controller), &fault));
    }
    for (field, limit, needed) in [
        ("reportingInstance", 128, true),
        ("action", 128, true),
        ("reason", 128, true),
        ("message", 1024, false),
    ] {
        let said = text(event, &format!("/{field}"));
        if said.is_empty() && needed {
            wrong.push(FieldError::required(field, ""));
        }
        if said.len() > limit {
            let why = format!("can have at most {limit} characters");
            wrong.push(FieldError::invalid(field, &json!(""), &why));
        }
    }
}

/// What the newer API demands of new events.
fn strict(event: &Value, wrong: &mut Vec<FieldError>) {
    series(event, wrong);
    if text(event, "/eventTime").is_empty() {
        wrong.push(FieldError::required("eventTime", ""));
    }
    let kind = text(event, "/type");
    if !["Normal", "Warning"].contains(&kind) {
        let why = format!("has invalid value: {kind}");
        wrong.push(FieldError::invalid("type", &json!(""), &why));
    }
    for field in ["firstTimestamp", "lastTimestamp", "count", "source"] {
        let set = match event.get(field) {
            None | Some(Value::Null) => false,
            Some(Value::Object(map)) => !map.is_empty(),
            Some(_) => true,
        };
        if set {
            wrong.push(FieldError::invalid(field, &json!(""), "needs to be unset"));
        }
    }
}

fn series(event: &Value, wrong: &mut Vec<FieldError>) {
    if !event.get("series").is_some_and(Value::is_object) {
        return;
    }
    if event.pointer("/series/count").and_then(Value::as_i64).unwrap_or_default() < 2 {
        wrong.push(FieldError::invalid("series.count", &json!(""), "should be at least 2"));
    }
    if text(event, "/series/lastObservedTime").is_empty() {
        wrong.push(FieldError::required("series.lastObservedTime", ""));
    }
}

/// Only the series of an event may change.
fn unchanged(event: &Value, old: &Value, wrong: &mut Vec<FieldError>) {
    if event.get("series") != old.get("series") {
        series(event, wrong);
    }
    for field in [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "reason",
        "type",
        "eventTime",
        "action",
        "related",
        "reportingComponent",
        "reportingInstance",
    ] {
        if event.get(field) != old.get(field) {
            let value = event.get(field).cloned().unwrap_or(json!(""));
            let shown = if field == "reportingComponent" { "reportingController" } else { field };
            wrong.push(FieldError::invalid(shown, &value, "field is immutable"));
        }
    }
}

/// When an event was last heard of, in seconds since 1970.
pub(crate) fn last_heard(event: &Value) -> Option<u64> {
    let times =
        ["/metadata/creationTimestamp", "/lastTimestamp", "/series/lastObservedTime", "/eventTime"];
    times.iter().filter_map(|pointer| schema::object::time::parse(text(event, pointer))).max()
}

/// The text of an event's source, which selectors compare.
pub(super) fn source(event: &Value) -> String {
    let component = text(event, "/source/component");
    if component.is_empty() { text(event, "/reportingComponent") } else { component }.to_owned()
}
