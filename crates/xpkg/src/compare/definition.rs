//! Two definitions of the same resource: who it is, its versions, and what serves them.

use super::schema::{compare_schemas, is_served};
use super::{Changes, Severity, shown};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};

const SCHEMA: &str = "/schema/openAPIV3Schema";

/// Finds the changes between two definitions.
pub(super) fn compare_definitions(old: &Json, new: &Json, found: &mut Changes) {
    compare_identity(old, new, found);
    let (before, after) = (versions(old), versions(new));
    for (name, version) in &before {
        (*name).clone_into(&mut found.version);
        match after.get(name) {
            Some(now) => compare_versions(version, now, found),
            None if is_served(version) => {
                found.add(Severity::Breaking, "version-removed", "", "version removed");
            }
            None => {
                let message = "version removed, which was not served";
                found.add(Severity::Warning, "version-removed", "", message);
            }
        }
    }
    for (name, version) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
        (*name).clone_into(&mut found.version);
        let message =
            if is_served(version) { "version added" } else { "version added, not served" };
        found.add(Severity::Note, "version-added", "", message);
    }
    found.version.clear();
    compare_storage(&before, &after, found);
    compare_conversion(old, new, after.len(), found);
    compare_composite(old, new, found);
}

fn versions(definition: &Json) -> BTreeMap<&str, &Json> {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    versions.map(|one| (one["name"].as_str().unwrap_or_default(), one)).collect()
}

/// Group, scope and names.
fn compare_identity(old: &Json, new: &Json, found: &mut Changes) {
    let (before, after) = (&old["spec"], &new["spec"]);
    let (scope, now) = (scope(old), scope(new));
    if scope != now {
        let message = format!("scope {scope} becomes {now}");
        found.add(Severity::Breaking, "scope", "", message);
    }
    for path in ["/group", "/names/kind", "/names/plural", "/names/listKind", "/names/singular"] {
        let text = |spec: &Json| spec.pointer(path).and_then(Json::as_str).map(str::to_owned);
        let (Some(before), Some(after)) = (text(before), text(after)) else { continue };
        if before != after {
            let what = path.rsplit('/').next().unwrap_or_default();
            let message = format!("{what} {before} becomes {after}");
            found.add(Severity::Breaking, "names", "", message);
        }
    }
    for (path, what) in [("/names/shortNames", "short name"), ("/names/categories", "category")] {
        for (severity, item, verb) in differing_texts(before.pointer(path), after.pointer(path)) {
            let severity =
                if severity == Severity::Breaking { Severity::Warning } else { severity };
            found.add(severity, "names", "", format!("{what} {item} {verb}"));
        }
    }
}

/// The scope; composite resources have one by the version of their API if none is said.
fn scope(definition: &Json) -> String {
    let said = definition["spec"]["scope"].as_str();
    let usual = match definition["apiVersion"].as_str() {
        Some("apiextensions.crossplane.io/v1") => "LegacyCluster",
        Some("apiextensions.crossplane.io/v2") => "Namespaced",
        _ => "",
    };
    said.unwrap_or(usual).to_owned()
}

/// Texts of a list that went (breaking) or came (a note).
fn differing_texts(
    old: Option<&Json>,
    new: Option<&Json>,
) -> Vec<(Severity, String, &'static str)> {
    let texts = |list: Option<&Json>| -> BTreeSet<String> {
        let items = list.and_then(Json::as_array).into_iter().flatten();
        items.map(|item| item.as_str().map_or_else(|| shown(item), str::to_owned)).collect()
    };
    let (old, new) = (texts(old), texts(new));
    let removed = old.difference(&new).map(|item| (Severity::Breaking, item.clone(), "removed"));
    let added = new.difference(&old).map(|item| (Severity::Note, item.clone(), "added"));
    removed.chain(added).collect()
}

fn compare_versions(old: &Json, new: &Json, found: &mut Changes) {
    match (is_served(old), is_served(new)) {
        (true, false) => {
            found.add(Severity::Breaking, "version-unserved", "", "version no longer served");
        }
        (false, true) => found.add(Severity::Note, "version-served", "", "version now served"),
        _ => {}
    }
    if old["deprecated"] != true && new["deprecated"] == true {
        found.add(Severity::Warning, "version-deprecated", "", "version deprecated");
    }
    compare_subresources(&old["subresources"], &new["subresources"], found);
    let (before, after) = (old.get("selectableFields"), new.get("selectableFields"));
    let paths = |list: Option<&Json>| {
        let items = list.and_then(Json::as_array).into_iter().flatten();
        Json::Array(items.map(|item| item["jsonPath"].clone()).collect())
    };
    for (severity, item, verb) in differing_texts(Some(&paths(before)), Some(&paths(after))) {
        found.add(severity, "selectable-field", "", format!("selectable field {item} {verb}"));
    }
    if printer_columns(old) != printer_columns(new) {
        found.add(Severity::Note, "printer-columns", "", "other printer columns");
    }
    let (before, after) = (old.pointer(SCHEMA), new.pointer(SCHEMA));
    match (before, after) {
        (Some(before), Some(after)) => compare_schemas(before, after, "", found),
        (None, Some(_)) => found.add(Severity::Breaking, "schema", "", "schema added"),
        (Some(_), None) => found.add(Severity::Note, "schema", "", "schema removed"),
        (None, None) => {}
    }
}

/// What clients print of each object; what a column is for does not count.
fn printer_columns(version: &Json) -> Vec<[Option<&Json>; 5]> {
    const FIELDS: [&str; 5] = ["name", "type", "format", "jsonPath", "priority"];
    let columns = version["additionalPrinterColumns"].as_array().into_iter().flatten();
    let says_more = |value: &&Json| value.as_i64() != Some(0);
    columns.map(|column| FIELDS.map(|field| column.get(field).filter(says_more))).collect()
}

fn compare_subresources(old: &Json, new: &Json, found: &mut Changes) {
    for name in ["status", "scale"] {
        match (old[name].is_null(), new[name].is_null()) {
            (false, true) => {
                let message = format!("subresource {name} removed");
                found.add(Severity::Breaking, "subresource", "", message);
            }
            // From now on writes to the object leave its status alone.
            (true, false) if name == "status" => {
                let message = "subresource status added";
                found.add(Severity::Warning, "subresource", "", message);
            }
            (true, false) => {
                found.add(Severity::Note, "subresource", "", format!("subresource {name} added"));
            }
            (false, false) if old[name] != new[name] => {
                let message = format!("subresource {name} changed");
                found.add(Severity::Breaking, "subresource", "", message);
            }
            _ => {}
        }
    }
}

/// What objects are stored as: once some are stored in a version, there is no way back to a
/// definition without it.
fn compare_storage(
    before: &BTreeMap<&str, &Json>,
    after: &BTreeMap<&str, &Json>,
    found: &mut Changes,
) {
    let marked = |versions: &BTreeMap<&str, &Json>, flag: &str| {
        let mut all = versions.iter().filter(|(_, version)| version[flag] == true);
        all.next().map(|(name, _)| (*name).to_owned())
    };
    for (flag, rule, what) in [
        ("storage", "storage-moved", "storage version"),
        ("referenceable", "referenceable-moved", "version that compositions use"),
    ] {
        let (Some(old), Some(new)) = (marked(before, flag), marked(after, flag)) else { continue };
        if old != new {
            found.add(Severity::Warning, rule, "", format!("{what} {old} becomes {new}"));
        }
    }
}

fn compare_conversion(old: &Json, new: &Json, versions: usize, found: &mut Changes) {
    let is_called = |definition: &Json| definition["spec"]["conversion"]["strategy"] == "Webhook";
    match (is_called(old), is_called(new)) {
        (true, false) if versions > 1 => {
            let message = "conversion by a webhook removed";
            found.add(Severity::Breaking, "conversion", "", message);
        }
        (true, false) => {
            found.add(Severity::Note, "conversion", "", "conversion by a webhook removed");
        }
        (false, true) => {
            found.add(Severity::Note, "conversion", "", "conversion by a webhook added");
        }
        _ => {}
    }
}

/// What only composite resources have: claims, and keys of connection details.
fn compare_composite(old: &Json, new: &Json, found: &mut Changes) {
    let claim =
        |definition: &Json| definition["spec"]["claimNames"]["kind"].as_str().map(str::to_owned);
    match (claim(old), claim(new)) {
        (Some(before), None) => {
            found.add(Severity::Breaking, "claim", "", format!("claims ({before}) removed"));
        }
        (None, Some(after)) => {
            found.add(Severity::Note, "claim", "", format!("claims ({after}) added"));
        }
        (Some(before), Some(after)) if old["spec"]["claimNames"] != new["spec"]["claimNames"] => {
            let message = if before == after {
                format!("other names of claims ({after})")
            } else {
                format!("claims {before} become {after}")
            };
            found.add(Severity::Breaking, "claim", "", message);
        }
        _ => {}
    }
    let keys = |definition: &Json| definition.pointer("/spec/connectionSecretKeys").cloned();
    let (before, after) = (keys(old), keys(new));
    for (severity, item, verb) in differing_texts(before.as_ref(), after.as_ref()) {
        let message = format!("connection secret key {item} {verb}");
        found.add(severity, "connection-secret-key", "", message);
    }
    for reference in ["enforcedCompositionRef", "defaultCompositionRef"] {
        let name =
            |definition: &Json| definition["spec"][reference]["name"].as_str().map(str::to_owned);
        let (before, after) = (name(old), name(new));
        if before != after {
            let words = |name: Option<String>| name.unwrap_or_else(|| "nothing".to_owned());
            let message = format!("{reference} {} becomes {}", words(before), words(after));
            found.add(Severity::Warning, "composition-reference", "", message);
        }
    }
}
