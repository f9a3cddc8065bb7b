//! How one definition of resources differs from another, in the words of `apron diff`.

use super::{text, webhooks};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use xpkg::compare::{Change, Severity, change_sentences, compare_definition};
use xpkg::lint::ObjectKind;

/// Fields that are named one by one; of more it is told how many they are.
const NAMED_MAX: usize = 5;

/// Whether an object defines resources.
pub(super) fn is_one(object: &Json) -> bool {
    let group = text(&object["apiVersion"]).split_once('/').map_or("", |(group, _)| group);
    let kind = ObjectKind::find_in_group(group, text(&object["kind"]));
    kind.is_some_and(ObjectKind::is_definition)
}

/// What a definition brings: its versions.
pub(super) fn summary(definition: &Json) -> Vec<String> {
    if !is_one(definition) {
        return Vec::new();
    }
    let names: Vec<&str> = versions(definition).into_iter().collect();
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
    let (old, new) = (converted(before), converted(after));
    let converted = new.filter(|new| old.as_ref() != Some(new));
    let changes = compare_definition(before, after);
    // A webhook that is called from now on is told by its name.
    let is_told = |change: &&Change| converted.is_none() || change.rule != "conversion";
    let changes: Vec<&Change> = changes.iter().filter(is_told).collect();
    let sentences = change_sentences(&changes, NAMED_MAX).into_iter();
    let sentences = sentences.map(|(severity, sentence)| match severity {
        Severity::Breaking => format!("{sentence} (breaking)"),
        Severity::Warning | Severity::Note => sentence,
    });
    sentences.chain(converted).collect()
}

fn versions(definition: &Json) -> BTreeSet<&str> {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    versions.map(|version| text(&version["name"])).collect()
}
