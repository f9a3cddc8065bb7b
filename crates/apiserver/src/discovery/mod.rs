//! # Discovery: what can be asked for
//!
//! Told in two ways: all at once to clients that ask for it, and group by group to the
//! others. Both follow from the kinds served at this moment.

mod priority;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::kind::{Kind, Kinds};

const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// Those of a kind whose objects go one by one.
const SINGLE_VERBS: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];
/// Custom kinds list their verbs in another order.
const CUSTOM_VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const PART_VERBS: [&str; 3] = ["get", "patch", "update"];

/// A group and its versions, the preferred one first.
struct Group {
    name: String,
    versions: Vec<(String, Vec<Arc<Kind>>)>,
}

fn groups(kinds: &Kinds, core: bool) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for kind in kinds.all().into_iter().filter(|kind| kind.group.is_empty() == core) {
        let at = groups.iter().position(|group| group.name == kind.group).unwrap_or_else(|| {
            groups.push(Group { name: kind.group.clone(), versions: Vec::new() });
            groups.len().saturating_sub(1)
        });
        let versions = &mut groups[at].versions;
        match versions.iter_mut().find(|(version, _)| *version == kind.version) {
            Some((_, list)) => list.push(kind),
            None => versions.push((kind.version.clone(), vec![kind])),
        }
    }
    for group in &mut groups {
        group.versions.sort_by(|a, b| priority::compare(&a.0, &b.0));
    }
    groups
}

/// `/api` or `/apis`, all at once.
pub fn aggregated(kinds: &Kinds, core: bool) -> Value {
    let items: Vec<Value> = groups(kinds, core)
        .iter()
        .map(|group| {
            let versions: Vec<Value> = group
                .versions
                .iter()
                .map(|(version, kinds)| {
                    let resources: Vec<Value> = kinds.iter().map(|kind| whole(kind)).collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let metadata =
                if group.name.is_empty() { json!({}) } else { json!({"name": group.name}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
        "items": items,
    })
}

fn whole(kind: &Kind) -> Value {
    let own = response_kind(kind);
    let mut resource = json!({
        "resource": kind.plural,
        "responseKind": own,
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": verbs(kind),
    });
    if !kind.short_names.is_empty() {
        resource["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        resource["categories"] = json!(kind.categories);
    }
    let mut parts = Vec::new();
    if kind.kind == "Namespace" && kind.group.is_empty() {
        parts.push(json!({"subresource": "finalize", "responseKind": own, "verbs": ["update"]}));
    }
    if is_pod(kind) {
        let binding = json!({"group": "", "version": "", "kind": "Binding"});
        parts.push(json!({"subresource": "binding", "responseKind": binding, "verbs": ["create"]}));
        parts.push(json!({"subresource": "log", "responseKind": own, "verbs": ["get"]}));
    }
    if has_token(kind) {
        let token = json!({
            "group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest",
        });
        parts.push(json!({"subresource": "token", "responseKind": token, "verbs": ["create"]}));
    }
    if kind.scale.is_some() {
        let scale = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
        parts.push(json!({"subresource": "scale", "responseKind": scale, "verbs": PART_VERBS}));
    }
    if kind.status {
        parts.push(json!({"subresource": "status", "responseKind": own, "verbs": PART_VERBS}));
    }
    if kind.custom {
        parts.reverse();
    }
    if !parts.is_empty() {
        resource["subresources"] = json!(parts);
    }
    resource
}

/// Built-in kinds leave group and version to the reader; custom ones say them.
fn response_kind(kind: &Kind) -> Value {
    if kind.custom {
        json!({"group": kind.group, "version": kind.version, "kind": kind.kind})
    } else {
        json!({"group": "", "version": "", "kind": kind.kind})
    }
}

fn verbs(kind: &Kind) -> &'static [&'static str] {
    match kind {
        kind if kind.fleeting => &["create"],
        kind if kind.counted => &["get", "list"],
        kind if kind.custom => &CUSTOM_VERBS,
        kind if !kind.is_removed_in_bulk() => &SINGLE_VERBS,
        _ => &VERBS,
    }
}

/// Pods are bound to nodes, and their containers have logs.
fn is_pod(kind: &Kind) -> bool {
    kind.kind == "Pod" && kind.group.is_empty()
}

/// Service accounts have tokens, which are of another group.
fn has_token(kind: &Kind) -> bool {
    kind.kind == "ServiceAccount" && kind.group.is_empty()
}

/// `/api`, the old way.
pub fn versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

/// `/apis`, the old way.
pub fn group_list(kinds: &Kinds) -> Value {
    let groups: Vec<Value> = groups(kinds, false).iter().map(described).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`.
pub fn group(kinds: &Kinds, name: &str) -> Option<Value> {
    let group = groups(kinds, false).into_iter().find(|group| group.name == name)?;
    let mut described = described(&group);
    described["kind"] = json!("APIGroup");
    described["apiVersion"] = json!("v1");
    Some(described)
}

fn described(group: &Group) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|(version, _)| {
            json!({"groupVersion": format!("{}/{version}", group.name), "version": version})
        })
        .collect();
    json!({"name": group.name, "versions": versions, "preferredVersion": versions.first()})
}

/// `/api/v1` or `/apis/GROUP/VERSION`.
pub fn resources(kinds: &Kinds, group: &str, version: &str) -> Option<Value> {
    let groups = groups(kinds, group.is_empty());
    let found = groups.iter().find(|one| one.name == group)?;
    let (_, list) = found.versions.iter().find(|(name, _)| name == version)?;
    let resources: Vec<Value> = list.iter().flat_map(|kind| lines(kind)).collect();
    let name = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut answer = json!({"kind": "APIResourceList"});
    if !group.is_empty() {
        answer["apiVersion"] = json!("v1");
    }
    answer["groupVersion"] = json!(name);
    answer["resources"] = json!(resources);
    Some(answer)
}

fn lines(kind: &Kind) -> Vec<Value> {
    let mut line = json!({
        "name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced,
        "kind": kind.kind, "verbs": verbs(kind),
    });
    if !kind.short_names.is_empty() {
        line["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        line["categories"] = json!(kind.categories);
    }
    let part = |name: &str, verbs: &[&str]| {
        json!({
            "name": format!("{}/{name}", kind.plural), "singularName": "",
            "namespaced": kind.namespaced, "kind": kind.kind, "verbs": verbs,
        })
    };
    let mut parts = Vec::new();
    if kind.kind == "Namespace" && kind.group.is_empty() {
        parts.push(part("finalize", &["update"]));
    }
    if is_pod(kind) {
        let mut binding = part("binding", &["create"]);
        binding["kind"] = json!("Binding");
        parts.extend([binding, part("log", &["get"])]);
    }
    if has_token(kind) {
        let mut token = part("token", &["create"]);
        token["group"] = json!("authentication.k8s.io");
        token["version"] = json!("v1");
        token["kind"] = json!("TokenRequest");
        parts.push(token);
    }
    if kind.scale.is_some() {
        let mut scale = part("scale", &PART_VERBS);
        scale["group"] = json!("autoscaling");
        scale["version"] = json!("v1");
        scale["kind"] = json!("Scale");
        parts.push(scale);
    }
    if kind.status {
        parts.push(part("status", &PART_VERBS));
    }
    if kind.custom {
        parts.reverse();
    }
    std::iter::once(line).chain(parts).collect()
}
