//! Conditions of a status, as upstream's controllers keep them.

use serde_json::{Value, json};

/// What a condition says: its type, status, reason and message.
pub(crate) type Statement<'a> = (&'a str, &'a str, &'a str, String);

/// Puts a condition into a list. What says the same as before keeps its times; the time of
/// transition changes with the status only.
pub(crate) fn put_condition(list: &mut Vec<Value>, said: &(&str, &str, &str, String), now: &str) {
    let (kind, status, reason, message) = said;
    let mut new = json!({
        "type": kind, "status": status, "lastUpdateTime": now, "lastTransitionTime": now,
        "reason": reason, "message": message,
    });
    let Some(at) = list.iter().position(|one| one["type"] == *kind) else {
        list.push(new);
        return;
    };
    let old = list.remove(at);
    if old["status"] == new["status"] && old["reason"] == new["reason"] {
        list.push(old);
        return;
    }
    if old["status"] == new["status"] {
        new["lastTransitionTime"] = old["lastTransitionTime"].clone();
    }
    list.push(new);
}

/// Puts a condition in even if it says the same, since its message or time is news.
pub(crate) fn renew_condition(list: &mut Vec<Value>, said: &Statement<'_>, now: &str) {
    let before = list.iter().position(|one| one["type"] == said.0).map(|at| list.remove(at));
    put_condition(list, said, now);
    if let (Some(old), Some(new)) = (before, list.last_mut())
        && old["status"] == new["status"]
    {
        new["lastTransitionTime"] = old["lastTransitionTime"].clone();
    }
}

/// Takes a condition out.
pub(crate) fn drop_condition(list: &mut Vec<Value>, kind: &str) {
    list.retain(|one| one["type"] != kind);
}

/// The reason of a condition, or nothing.
pub(crate) fn reason_of<'a>(list: &'a [Value], kind: &str) -> &'a str {
    let found = list.iter().find(|one| one["type"] == kind);
    found.and_then(|one| one["reason"].as_str()).unwrap_or_default()
}
