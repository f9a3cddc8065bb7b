//! Answers without what must differ: identities, versions, times.

use serde_json::{Value, json};

/// An answer, as far as it is compared.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) media: String,
    pub(crate) warnings: Vec<String>,
    /// One value, or one for each event of a watch.
    pub(crate) bodies: Vec<Value>,
}

/// The comparable part of an answer.
pub(crate) fn normal(mut answer: Answer) -> Answer {
    // Upstream walks over maps, and warns in whatever order that gives.
    answer.warnings.sort();
    for body in &mut answer.bodies {
        mask(body, "");
    }
    // Upstream goes through maps in any order, and warns in that order.
    answer.warnings.sort();
    answer
}

fn mask(value: &mut Value, key: &str) {
    let masked = match key {
        "uid" => "UID",
        "resourceVersion" => "VERSION",
        "creationTimestamp"
        | "deletionTimestamp"
        | "expirationTimestamp"
        | "lastTransitionTime"
        | "time" => "TIME",
        "continue" => "TOKEN",
        "serverAddress" => "ADDRESS",
        "storageVersionHash" => "HASH",
        _ => "",
    };
    match value {
        Value::String(text) if !masked.is_empty() && !text.is_empty() => *value = json!(masked),
        Value::String(text) if text.starts_with("eyJ") => *value = json!("JWT"),
        Value::String(text) if is_address(text) => *value = json!("ADDRESS"),
        Value::String(text) => *value = json!(mask_text(text)),
        Value::Number(_) if key == "nodePort" => *value = json!("PORT"),
        Value::Object(map) => {
            map.remove("storageVersionHash");
            for (key, value) in map.iter_mut() {
                mask(value, key);
            }
            // Field paths name list items by their identities.
            *map = std::mem::take(map).into_iter().map(|(k, v)| (mask_text(&k), v)).collect();
        }
        Value::Array(items) => {
            for item in items.iter_mut() {
                mask(item, "");
            }
            if key == "managedFields" {
                // Their order is that of times, which are not compared.
                items.sort_by_cached_key(|entry| {
                    ["manager", "operation", "subresource", "apiVersion"]
                        .map(|field| entry.get(field).map(ToString::to_string).unwrap_or_default())
                });
            }
            if ["resourceRules", "nonResourceRules"].contains(&key) {
                // Upstream tells them in any order.
                items.sort_by_key(Value::to_string);
            }
        }
        _ => {}
    }
}

/// `5s`, `2m5s`.
fn is_age(text: &str) -> bool {
    let mut parts = text.split_inclusive(['s', 'm', 'h', 'd']);
    let is_part = |part: &str| {
        let number = part.strip_suffix(['s', 'm', 'h', 'd']).unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    !text.is_empty() && parts.by_ref().take(2).all(is_part) && parts.next().is_none()
}

/// Identities, versions, ages and times inside sentences.
fn mask_text(text: &str) -> String {
    if is_age(text) {
        return "AGE".to_owned();
    }
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(uuid) = rest.get(..36).filter(|part| is_uuid(part)) {
            out.push_str("UID");
            rest = &rest[uuid.len()..];
            continue;
        }
        if let Some(suffix) = rest.get(..17).filter(|part| is_event_suffix(part)) {
            out.push_str(".SUFFIX");
            rest = &rest[suffix.len()..];
            continue;
        }
        if let Some(time) = rest.get(..20).filter(|part| is_time(part)) {
            out.push_str("TIME");
            rest = &rest[time.len()..];
            continue;
        }
        let Some(c) = rest.chars().next() else { break };
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    for base in ["gen-", "Gen_"] {
        out = mask_suffix(&out, base);
    }
    let marks = ["current: ", "resource version: ", "record (", "too old. (", "ResourceVersion: "];
    // The last is a line of YAML.
    for mark in marks.into_iter().chain(["resourceVersion: \""]) {
        out = mask_number(&out, mark);
    }
    out
}

/// Every `gen-x7k2p` in a text.
fn mask_suffix(text: &str, base: &str) -> String {
    let mut parts = text.split(base);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let suffix = part.bytes().take_while(u8::is_ascii_alphanumeric).count();
        out.push_str(base);
        out.push_str(if suffix == 5 { "SUFFIX" } else { &part[..suffix] });
        out.push_str(&part[suffix..]);
    }
    out
}

fn mask_number(text: &str, mark: &str) -> String {
    let Some((before, after)) = text.split_once(mark) else { return text.to_owned() };
    let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    if digits == 0 || &after[..digits] == "0" {
        return text.to_owned();
    }
    format!("{before}{mark}N{}", &after[digits..])
}

/// An address that was given to a service.
fn is_address(text: &str) -> bool {
    text.starts_with("10.") && text.parse::<std::net::Ipv4Addr>().is_ok()
}

fn is_uuid(text: &str) -> bool {
    text.char_indices().all(|(at, c)| match at {
        8 | 13 | 18 | 23 => c == '-',
        _ => c.is_ascii_hexdigit(),
    })
}

/// What makes the names of events unlike others: the nanoseconds, in sixteen digits.
fn is_event_suffix(text: &str) -> bool {
    text.strip_prefix('.').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn is_time(text: &str) -> bool {
    text.char_indices().all(|(at, c)| match at {
        4 | 7 => c == '-',
        10 => c == 'T',
        13 | 16 => c == ':',
        19 => c == 'Z',
        _ => c.is_ascii_digit(),
    })
}

/// Where two answers differ, as lines of `path: real / ours`.
pub(crate) fn differences(real: &Answer, ours: &Answer) -> Vec<String> {
    let mut lines = Vec::new();
    if real.code != ours.code {
        lines.push(format!("code: {} / {}", real.code, ours.code));
    }
    if real.media != ours.media {
        lines.push(format!("content type: {} / {}", real.media, ours.media));
    }
    if real.warnings != ours.warnings {
        lines.push(format!("warnings: {:?} / {:?}", real.warnings, ours.warnings));
    }
    compare("", &json!(real.bodies), &json!(ours.bodies), &mut lines);
    lines
}

fn compare(path: &str, real: &Value, ours: &Value, lines: &mut Vec<String>) {
    match (real, ours) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                let (a, b) = (a.get(key), b.get(key));
                let missing = json!("(missing)");
                compare(
                    &format!("{path}.{key}"),
                    a.unwrap_or(&missing),
                    b.unwrap_or(&missing),
                    lines,
                );
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{at}]"), a, b, lines);
            }
        }
        _ if real != ours => lines.push(format!("{path}: {real} / {ours}")),
        _ => {}
    }
}
