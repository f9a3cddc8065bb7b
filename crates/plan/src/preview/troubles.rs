//! What is in the way of what is asked for, and what was wrong before.

use super::{Change, Rehearsed, is_gone, name, text};
use crate::adoption::FOREIGN;
use api::condition::{reasons, types};
use api::pkg::revision::ACTIVE;
use serde_json::Value as Json;
use solver::Conflict;

/// What packages and revisions complain of, and would not if all went well. Whether something
/// runs is only known once it does. What was wrong before, of packages that stay as they are, is in
/// the way of no plan.
pub(super) fn list_troubles(rehearsed: &Rehearsed) -> Vec<String> {
    let mut found: Vec<String> = rehearsed.changes.iter().flat_map(new_trouble_of).collect();
    found.extend(rehearsed.changes.iter().flat_map(refused_definition));
    found.extend(rehearsed.refused.iter().cloned());
    // A package that is refused before it has a revision has no condition to say it in.
    for conflict in rehearsed.report.conflicts.iter().filter(|one| !is_standing(rehearsed, one)) {
        let told = conflict.to_string();
        if !found.iter().any(|one| one.contains(&told)) {
            found.push(conflict_words(conflict));
        }
    }
    found
}

/// What is wrong already, of packages that would not change.
pub(super) fn list_standing(rehearsed: &Rehearsed) -> Vec<String> {
    let conflicts = rehearsed.report.conflicts.iter();
    conflicts.filter(|one| is_standing(rehearsed, one)).map(conflict_words).collect()
}

fn conflict_words(conflict: &Conflict) -> String {
    format!("{}: {conflict}; hint: {}", conflict.name, conflict.hint)
}

/// Whether a conflict was there before, and is of a package that nothing else is asked of.
fn is_standing(rehearsed: &Rehearsed, conflict: &Conflict) -> bool {
    let asks = |one: &Option<Json>| one.as_ref().map(|one| one["spec"].clone());
    let is_its = |change: &&Change| {
        change.after.as_ref().is_some_and(|one| {
            let label = format!("{} {}", text(&one["kind"]), name(one));
            is_package(one) && (name(one) == conflict.name || label == conflict.name)
        })
    };
    let is_asked_otherwise =
        rehearsed.changes.iter().filter(is_its).any(|one| asks(&one.before) != asks(&one.after));
    let was_there = rehearsed.before.conflicts.iter().any(|one| one.name == conflict.name);
    was_there && !is_asked_otherwise
}

fn is_package(object: &Json) -> bool {
    text(&object["apiVersion"]).starts_with("pkg.") && !text(&object["kind"]).ends_with("Revision")
}

/// What a package or a revision would say that is in its way, and did not say before while the same
/// was asked of it.
fn new_trouble_of(change: &Change) -> Vec<String> {
    let asks_same =
        |before: &&Json| change.after.as_ref().is_some_and(|after| after["spec"] == before["spec"]);
    let before = change.before.as_ref().filter(asks_same);
    let before = Change { before: None, after: before.cloned() };
    let old = trouble_of(&before);
    trouble_of(change).into_iter().filter(|told| !old.contains(told)).collect()
}

/// What a package or a revision would say that is in its way.
pub(super) fn trouble_of(change: &Change) -> Vec<String> {
    let Some(after) = change.after.as_ref().filter(|_| !is_gone(change)) else { return Vec::new() };
    let group = text(&after["apiVersion"]);
    if !group.starts_with("pkg.") && !group.starts_with("packages.") {
        return Vec::new();
    }
    let counts = |one: &&Json| match text(&one["type"]) {
        _ if one["status"] != "False" || text(&one["message"]).is_empty() => false,
        // The revision says why it is not there.
        types::INSTALLED => {
            ![reasons::INACTIVE, reasons::UNESTABLISHED].contains(&text(&one["reason"]))
        }
        types::REVISION_HEALTHY => after["spec"]["desiredState"] == ACTIVE,
        types::SYNCED => true,
        // What runs it is in the way of itself only where something is there already.
        types::RUNTIME_HEALTHY => text(&one["message"]).contains(FOREIGN),
        _ => false,
    };
    let told = conditions(after).filter(counts).map(|one| text(&one["message"]));
    told.map(|told| format!("{} {}: {told}", text(&after["kind"]), name(after))).collect()
}

fn conditions(object: &Json) -> impl Iterator<Item = &Json> {
    object["status"]["conditions"].as_array().into_iter().flatten()
}

/// What the API server would not have of a definition, also if there are no objects: another scope, and
/// the loss of a version that objects are stored in.
fn refused_definition(change: &Change) -> Vec<String> {
    let (Some(before), Some(after)) = (&change.before, &change.after) else { return Vec::new() };
    if after["kind"] != "CustomResourceDefinition" || is_gone(change) {
        return Vec::new();
    }
    let mut refused = Vec::new();
    let scope = |object: &Json| text(&object["spec"]["scope"]).to_owned();
    if scope(before) != scope(after) {
        let (was, is) = (scope(before), scope(after));
        refused.push(format!("its scope cannot change from {was} to {is}"));
    }
    let kept: Vec<&str> = after["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| text(&one["name"]))
        .collect();
    let stored = before["status"]["storedVersions"].as_array().into_iter().flatten();
    for version in stored.map(text).filter(|one| !kept.contains(one)) {
        refused.push(format!(
            "version {version} cannot be removed, because objects may be stored in it \
             (status.storedVersions); store them in another first, and take it out of that list"
        ));
    }
    let name = name(after);
    let say =
        |why: String| format!("CustomResourceDefinition {name}: the API server refuses it: {why}");
    refused.into_iter().map(say).collect()
}
