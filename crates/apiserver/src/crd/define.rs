//! From a definition to the kinds it serves.

use bytes::Bytes;
use serde_json::{Value, json};

use super::convert::Conversion;
use crate::Server;
use crate::kind::{Claim, Kind, LazyShape, Scale};
use schema::object::meta_text;
use schema::object::name::NameRule;

/// The kinds a definition serves now; none before its names are accepted. Their shapes are
/// read from its stored text when they are first needed.
pub fn kinds(object: &Value, text: &Bytes) -> Vec<Kind> {
    if !is_established(object) {
        return Vec::new();
    }
    let versions = object.pointer("/spec/versions").and_then(Value::as_array);
    let versions: Vec<&Value> = versions.into_iter().flatten().collect();
    let shape = |version: &Value| LazyShape::custom(text.clone(), self::text(version, "/name"));
    let storage = versions.iter().find(|version| version.get("storage") == Some(&json!(true)));
    let stored = storage.map(|version| shape(version));
    let conversion = Conversion::of(object);
    let served = |version: &&Value| version.get("served") == Some(&json!(true));
    versions
        .iter()
        .copied()
        .filter(served)
        .map(|version| match &stored {
            Some(stored) if Some(&version) == storage => {
                kind(object, version, stored.clone(), None)
            }
            _ => kind(object, version, shape(version), stored.clone()),
        })
        .map(|kind| Kind { conversion: conversion.clone(), ..kind })
        .collect()
}

/// Whether the definition's names were accepted at some time.
pub(crate) fn is_established(object: &Value) -> bool {
    is_true(object, "Established")
}

fn is_true(object: &Value, condition: &str) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|one| {
        one.get("type") == Some(&json!(condition)) && one.get("status") == Some(&json!("True"))
    })
}

/// The kind in which a definition's objects are stored, whether it is served or not.
pub(crate) fn stored(object: &Value, text: &Bytes) -> Kind {
    let versions = object.pointer("/spec/versions").and_then(Value::as_array);
    let mut versions = versions.into_iter().flatten();
    let storage = versions.find(|version| version.get("storage") == Some(&json!(true)));
    let storage = storage.unwrap_or(&Value::Null);
    let shape = LazyShape::custom(text.clone(), self::text(storage, "/name"));
    kind(object, storage, shape, None)
}

/// The version in which objects are stored.
pub(crate) fn storage_version(object: &Value) -> String {
    let versions = object.pointer("/spec/versions").and_then(Value::as_array);
    let storage =
        versions.into_iter().flatten().find(|version| version.get("storage") == Some(&json!(true)));
    storage.map(|version| text(version, "/name")).unwrap_or_default()
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn texts(value: &Value, pointer: &str) -> Vec<String> {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn kind(
    object: &Value,
    version: &Value,
    shape: LazyShape,
    stored_shape: Option<LazyShape>,
) -> Kind {
    let scale = version.pointer("/subresources/scale").map(|scale| Scale {
        spec_path: text(scale, "/specReplicasPath"),
        status_path: text(scale, "/statusReplicasPath"),
        selector_path: Some(text(scale, "/labelSelectorPath")).filter(|path| !path.is_empty()),
    });
    let fields = version.get("selectableFields").and_then(Value::as_array);
    Kind {
        group: text(object, "/spec/group"),
        version: text(version, "/name"),
        plural: text(object, "/spec/names/plural"),
        singular: text(object, "/spec/names/singular"),
        kind: text(object, "/spec/names/kind"),
        list_kind: text(object, "/spec/names/listKind"),
        short_names: texts(object, "/spec/names/shortNames"),
        categories: texts(object, "/spec/names/categories"),
        namespaced: text(object, "/spec/scope") == "Namespaced",
        status: version.pointer("/subresources/status").is_some(),
        scale,
        custom: true,
        generation: true,
        unconditional: false,
        names: NameRule::Subdomain,
        selectable: fields
            .into_iter()
            .flatten()
            .map(|field| text(field, "/jsonPath").trim_start_matches('.').to_owned())
            .collect(),
        columns: Vec::new(),
        storage_version: storage_version(object),
        shape,
        stored_shape,
        conversion: None,
        fleeting: false,
        counted: false,
        terminating: is_true(object, "Terminating"),
        deprecation: deprecation_warning(object, version),
    }
}

/// What clients of a deprecated version are told: the definition's own words, or that it is so.
fn deprecation_warning(object: &Value, version: &Value) -> Option<String> {
    if version.get("deprecated") != Some(&Value::Bool(true)) {
        return None;
    }
    let own = version.get("deprecationWarning").and_then(Value::as_str);
    Some(own.map_or_else(
        || {
            let [group, kind] = ["/spec/group", "/spec/names/kind"].map(|path| text(object, path));
            format!("{group}/{} {kind} is deprecated", text(version, "/name"))
        },
        str::to_owned,
    ))
}

/// The names that are free, and the last one that is not with the reason.
/// They are this definition's from now on.
pub(crate) fn accept(server: &Server, object: &Value) -> (Value, Option<(String, String)>) {
    let group = text(object, "/spec/group");
    server.kinds.claim(meta_text(object, "name"), |name, claims| {
        let others =
            || claims.iter().filter(|(other, claim)| *other != name && claim.group == group);
        let resources: Vec<String> =
            others().flat_map(|(_, claim)| claim.resources.clone()).collect();
        let kinds: Vec<String> = others().flat_map(|(_, claim)| claim.kinds.clone()).collect();
        let answer = free(object, &resources, &kinds);
        (claimed(object, &answer.0, answer.1.is_some()), answer)
    })
}

fn free(
    object: &Value,
    resources: &[String],
    kinds: &[String],
) -> (Value, Option<(String, String)>) {
    let mut accepted = json!({"plural": "", "kind": ""});
    let mut conflict = None;
    let mut judge = |field: &str, reason: &str, names: &[String]| {
        let name = text(object, &format!("/spec/names/{field}"));
        if names.contains(&name) {
            conflict = Some((reason.to_owned(), format!("{name:?} is already in use")));
        } else if !name.is_empty() {
            accepted[field] = json!(name);
        }
    };
    judge("plural", "PluralConflict", resources);
    judge("singular", "SingularConflict", resources);
    judge("kind", "KindConflict", kinds);
    judge("listKind", "ListKindConflict", kinds);
    let short = texts(object, "/spec/names/shortNames");
    match short.iter().find(|name| resources.contains(name)) {
        Some(name) if conflict.is_none() => {
            let why = format!("{name:?} is already in use");
            conflict = Some(("ShortNamesConflict".to_owned(), why));
        }
        Some(_) => {}
        None if short.is_empty() => {}
        None => accepted["shortNames"] = json!(short),
    }
    if let Some(categories) = object.pointer("/spec/names/categories") {
        accepted["categories"] = categories.clone();
    }
    (accepted, conflict)
}

/// Keeps the names that a definition has from others.
pub(crate) fn claim(server: &Server, object: &Value) {
    let names = object.pointer("/status/acceptedNames").cloned().unwrap_or_default();
    let contested = !is_true(object, "NamesAccepted");
    server.kinds.claim(meta_text(object, "name"), |_, _| (claimed(object, &names, contested), ()));
}

fn claimed(object: &Value, names: &Value, contested: bool) -> Claim {
    let name = |field: &str| text(names, &format!("/{field}"));
    let mut resources = vec![name("plural"), name("singular")];
    resources.extend(texts(names, "/shortNames"));
    let group = text(object, "/spec/group");
    Claim { group, resources, kinds: vec![name("kind"), name("listKind")], contested }
}
