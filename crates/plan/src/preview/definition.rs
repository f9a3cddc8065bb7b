//! How one definition of resources differs from another, in words: versions, and fields of each.

use super::{text, webhooks};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Fields that are named one by one; of more it is told how many they are.
const NAMED_MAX: usize = 5;

/// Whether an object defines resources.
pub(super) fn is_one(object: &Json) -> bool {
    let kind = text(&object["kind"]);
    kind == "CustomResourceDefinition" || kind == "CompositeResourceDefinition"
}

/// What a definition brings: its versions.
pub(super) fn summary(definition: &Json) -> Vec<String> {
    if !is_one(definition) {
        return Vec::new();
    }
    let names: Vec<&str> = versions(definition).keys().copied().collect();
    let mut said = vec![names.join(", ")];
    said.extend(converted(definition));
    said
}

/// Who converts between its versions, if anybody is called for that.
fn converted(definition: &Json) -> Option<String> {
    let conversion = &definition["spec"]["conversion"];
    let is_called = text(&conversion["strategy"]) == "Webhook";
    let client = &conversion["webhook"]["clientConfig"];
    is_called.then(|| format!("versions are converted by {}", webhooks::called(client)))
}

/// How a definition changes; nothing if it means the same.
pub(super) fn difference(before: &Json, after: &Json) -> Vec<String> {
    let mut said = Vec::new();
    for field in ["scope", "group"] {
        let (old, new) = (text(&before["spec"][field]), text(&after["spec"][field]));
        if !new.is_empty() && old != new {
            said.push(format!("{field} {old} becomes {new}"));
        }
    }
    let (old, new) = (versions(before), versions(after));
    for (name, version) in &new {
        match old.get(name) {
            None => said.push(format!("version {name} is added")),
            Some(seen) => {
                said.extend(flags(name, seen, version));
                said.extend(fields(name, seen, version));
            }
        }
    }
    let gone = old.keys().filter(|name| !new.contains_key(*name));
    said.extend(gone.map(|name| format!("version {name} is removed")));
    let (old, new) = (converted(before), converted(after));
    said.extend(new.filter(|new| old.as_ref() != Some(new)));
    said
}

fn versions(definition: &Json) -> BTreeMap<&str, &Json> {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    versions.map(|one| (text(&one["name"]), one)).collect()
}

fn flags(name: &str, before: &Json, after: &Json) -> Vec<String> {
    let is = |version: &Json, flag: &str| version[flag] == true;
    let mut said = Vec::new();
    for (flag, gained, lost) in [
        ("served", "is served", "is no longer served"),
        ("storage", "is what objects are stored as", "is no longer what objects are stored as"),
        ("referenceable", "is what compositions use", "is no longer what compositions use"),
        ("deprecated", "is deprecated", "is no longer deprecated"),
    ] {
        match (is(before, flag), is(after, flag)) {
            (false, true) => said.push(format!("version {name} {gained}")),
            (true, false) => said.push(format!("version {name} {lost}")),
            _ => {}
        }
    }
    said
}

/// What a schema says of one field.
#[derive(PartialEq)]
struct Field {
    kind: String,
    is_required: bool,
    /// Everything that limits its values.
    limits: BTreeMap<String, String>,
}

fn fields(version: &str, before: &Json, after: &Json) -> Vec<String> {
    let of = |version: &Json| {
        let mut found = BTreeMap::new();
        walk(&version["schema"]["openAPIV3Schema"], "", false, &mut found);
        found
    };
    let (old, new) = (of(before), of(after));
    let added: Vec<&str> = outermost(&new, &old);
    let removed: Vec<&str> = outermost(&old, &new);
    let mut said = Vec::new();
    said.extend(told(version, &added, "added"));
    said.extend(told(version, &removed, "removed"));
    let (mut required, mut freed, mut limited) = (Vec::new(), Vec::new(), Vec::new());
    for (path, field) in &new {
        let path = path.as_str();
        let Some(seen) = old.get(path) else {
            // One that is required from the start breaks what is there.
            if field.is_required && added.contains(&path) && exists(path, &old) {
                required.push(path);
            }
            continue;
        };
        if seen.kind != field.kind {
            said.push(format!("{version}: {path} was {} and becomes {}", seen.kind, field.kind));
        }
        match (seen.is_required, field.is_required) {
            (false, true) => required.push(path),
            (true, false) => freed.push(path),
            _ => {}
        }
        if seen.limits != field.limits {
            limited.push(path);
        }
    }
    said.extend(told(version, &required, "now required"));
    said.extend(told(version, &freed, "no longer required"));
    said.extend(told(version, &limited, "limited otherwise"));
    said
}

/// Whether whatever a field is in was there before.
fn exists(path: &str, fields: &BTreeMap<String, Field>) -> bool {
    path.rsplit_once('.').is_none_or(|(above, _)| fields.contains_key(above))
}

/// Fields that only one of two has, without those that are in such fields.
fn outermost<'a>(
    one: &'a BTreeMap<String, Field>,
    other: &BTreeMap<String, Field>,
) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    for path in one.keys().filter(|path| !other.contains_key(*path)) {
        let is_below = found
            .iter()
            .any(|above| path.strip_prefix(above).is_some_and(|rest| rest.starts_with(['.', '['])));
        if !is_below {
            found.push(path);
        }
    }
    found
}

fn told(version: &str, paths: &[&str], what: &str) -> Option<String> {
    let shown = paths.get(..NAMED_MAX).unwrap_or(paths).join(", ");
    match (paths.len(), paths.len().saturating_sub(NAMED_MAX)) {
        (0, _) => None,
        (_, 0) => Some(format!("{version}: {what} {shown}")),
        (_, more) => Some(format!("{version}: {what} {shown} and {more} more")),
    }
}

/// What limits values, besides their type.
const LIMITS: [&str; 14] = [
    "enum",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "uniqueItems",
    "x-kubernetes-validations",
];

fn walk(schema: &Json, path: &str, is_required: bool, found: &mut BTreeMap<String, Field>) {
    if !path.is_empty() {
        let limits = LIMITS.iter().filter(|one| !schema[**one].is_null());
        let limits = limits.map(|one| ((*one).to_owned(), schema[*one].to_string())).collect();
        let kind = if schema["x-kubernetes-int-or-string"] == true {
            "int or string"
        } else {
            schema["type"].as_str().unwrap_or("any")
        };
        let field = Field { kind: kind.to_owned(), is_required, limits };
        found.insert(path.to_owned(), field);
    }
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    for (name, below) in schema["properties"].as_object().into_iter().flatten() {
        // What every object has, and what only its controller writes, is nobody's input.
        if path.is_empty() && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            continue;
        }
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        walk(below, &path, required.contains(&name.as_str()), found);
    }
    if schema["items"].is_object() {
        walk(&schema["items"], &format!("{path}[]"), false, found);
    }
    if schema["additionalProperties"].is_object() {
        walk(&schema["additionalProperties"], &format!("{path}.*"), false, found);
    }
}
