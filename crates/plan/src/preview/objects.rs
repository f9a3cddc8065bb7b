//! What would become of the objects that a package brings.

use super::{
    Change, Family, ObjectAction, ObjectPreview, definition, is_gone, name, text, webhooks,
};
use crate::same;
use api::pkg::LABEL_RETAINED;
use api::pkg::revision::ACTIVE;
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// Kinds that packages do not bring: they are told of in other words, or are nobody's business.
const OTHERS: [&str; 8] = [
    "ClusterRole",
    "ClusterRoleBinding",
    "Deployment",
    "Secret",
    "Service",
    "ServiceAccount",
    "Lock",
    "Event",
];

/// An object by kind and name.
type Named = (String, String);

pub(super) fn of(family: &Family<'_>) -> Vec<ObjectPreview> {
    let brought = family.owned().filter(|change| {
        let kind = text(&super::either(change)["kind"]);
        let is_package = text(&super::either(change)["apiVersion"]).starts_with("pkg.");
        !is_package && !OTHERS.contains(&kind)
    });
    let mut found: Vec<ObjectPreview> = brought.filter_map(object).collect();
    let (dropped, removed) = left_behind(family);
    let kept = retained(family);
    let left = dropped.iter().map(|one| (one, ObjectAction::Keep));
    let removed = removed.iter().map(|one| {
        let stays = kept.contains(one);
        (one, if stays { ObjectAction::Retain } else { ObjectAction::Remove })
    });
    for ((kind, name), action) in left.chain(removed) {
        found.retain(|one| (&one.kind, &one.name) != (kind, name));
        let (kind, name) = (kind.clone(), name.clone());
        found.push(ObjectPreview { kind, name, action, details: Vec::new() });
    }
    found.sort_by(|one, two| {
        (&one.kind, one.action, &one.name).cmp(&(&two.kind, two.action, &two.name))
    });
    found
}

fn object(change: &Change) -> Option<ObjectPreview> {
    let after = change.after.as_ref()?;
    let preview = |action, details| ObjectPreview {
        kind: text(&after["kind"]).to_owned(),
        name: name(after).to_owned(),
        action,
        details,
    };
    let Some(before) = &change.before else {
        let details = if webhooks::is_one(after) {
            webhooks::summary(after)
        } else {
            definition::summary(after)
        };
        return Some(preview(ObjectAction::Add, details));
    };
    let details = if webhooks::is_one(after) {
        webhooks::difference(before, after)
    } else if definition::is_one(after) {
        definition::difference(before, after)
    } else {
        differences(before, after)
    };
    (!details.is_empty()).then(|| preview(ObjectAction::Change, details))
}

/// What the package does not bring any more: what stays with older revisions, and what goes with
/// those of them that go.
fn left_behind(family: &Family<'_>) -> (BTreeSet<Named>, BTreeSet<Named>) {
    let of = |object: &Json| -> BTreeSet<Named> {
        let references = object["status"]["objectRefs"].as_array().into_iter().flatten();
        let names = references.into_iter();
        names.map(|one| (text(&one["kind"]).to_owned(), text(&one["name"]).to_owned())).collect()
    };
    let is_active = |object: &&Json| object["spec"]["desiredState"] == ACTIVE;
    let stay = family.revisions.iter().filter(|one| !is_gone(one));
    let stay: Vec<&Json> = stay.filter_map(|one| one.after.as_ref()).collect();
    let kept: BTreeSet<Named> = stay.iter().flat_map(|one| of(one)).collect();
    let removed = family.removed().filter_map(|one| one.before.as_ref()).flat_map(of);
    let removed: BTreeSet<Named> = removed.filter(|one| !kept.contains(one)).collect();
    let before = family.revisions.iter().filter_map(|one| one.before.as_ref());
    let before: BTreeSet<Named> = before.filter(is_active).flat_map(of).collect();
    let after: BTreeSet<Named> = stay.iter().copied().filter(is_active).flat_map(of).collect();
    // While nothing new is in place, nothing old is left behind.
    if after.is_empty() {
        return (BTreeSet::new(), removed);
    }
    let dropped = before.into_iter().filter(|one| !after.contains(one) && !removed.contains(one));
    (dropped.collect(), removed)
}

/// Definitions that would be kept for the package though no revision brings them.
fn retained(family: &Family<'_>) -> BTreeSet<Named> {
    let after = family.rehearsed.changes.iter().filter_map(|change| change.after.as_ref());
    let kept = after.filter(|one| one["metadata"]["labels"][LABEL_RETAINED] == *family.name);
    kept.map(|one| (text(&one["kind"]).to_owned(), name(one).to_owned())).collect()
}

/// The fields that say something else, the first few by name.
pub(super) fn differences(before: &Json, after: &Json) -> Vec<String> {
    const SHOWN_MAX: usize = 4;
    let mut paths = Vec::new();
    let Json::Object(fields) = after else { return Vec::new() };
    for (field, value) in fields.iter().filter(|(field, _)| !skipped(field)) {
        differing(field, before.get(field).unwrap_or(&Json::Null), value, &mut paths);
    }
    let more = paths.len().saturating_sub(SHOWN_MAX);
    paths.truncate(SHOWN_MAX);
    let mut said: Vec<String> = paths.into_iter().map(|path| format!("{path} changes")).collect();
    if more > 0 {
        said.push(format!("and {more} more"));
    }
    said
}

fn skipped(field: &str) -> bool {
    matches!(field, "metadata" | "status" | "apiVersion" | "kind")
}

fn differing(path: &str, before: &Json, after: &Json, found: &mut Vec<String>) {
    if same::holds(after, before) {
        return;
    }
    match (before, after) {
        (Json::Object(before), Json::Object(after)) => {
            for (field, value) in after {
                let seen = before.get(field).unwrap_or(&Json::Null);
                differing(&format!("{path}.{field}"), seen, value, found);
            }
        }
        (Json::Array(before), Json::Array(after)) if before.len() == after.len() => {
            for (at, (before, after)) in before.iter().zip(after).enumerate() {
                differing(&format!("{path}[{at}]"), before, after, found);
            }
        }
        _ => found.push(path.to_owned()),
    }
}
