//! What runs a package, before and after.

use super::{Change, Family, either, is_gone, name, text};
use serde_json::Value as Json;

/// Kinds of objects that run packages.
const KINDS: [&str; 3] = ["Deployment", "Service", "ServiceAccount"];

pub(super) fn of(family: &Family<'_>) -> Vec<String> {
    let of_kind =
        |kind: &'static str| family.owned().filter(move |one| either(one)["kind"] == kind);
    let is_there = |one: &&Change| !is_gone(one);
    let goes = |one: &&Change| one.before.is_some() && is_gone(one);
    let mut said = Vec::new();
    for kind in KINDS {
        let old = of_kind(kind).find(goes).and_then(|one| one.before.as_ref());
        for change in of_kind(kind).filter(is_there) {
            let Some(after) = &change.after else { continue };
            let before = change.before.as_ref();
            let called = format!("{} {}", called(kind), name(after));
            match (before, old) {
                (None, Some(old)) => {
                    said.push(told(
                        format!("{called} takes the place of {}", name(old)),
                        old,
                        after,
                    ));
                }
                (None, None) => said.push(made(&called, after)),
                (Some(before), _) if !differences(before, after).is_empty() => {
                    said.push(told(format!("{called} changes"), before, after));
                }
                (Some(_), _) => {}
            }
        }
        let is_left = of_kind(kind).any(|one| is_there(&one));
        if let Some(old) = old.filter(|_| !is_left) {
            said.push(format!("{} {} goes", called(kind), name(old)));
        }
    }
    said
}

fn told(what: String, before: &Json, after: &Json) -> String {
    match differences(before, after).join("; ") {
        none if none.is_empty() => what,
        differences => format!("{what}: {differences}"),
    }
}

fn called(kind: &str) -> &'static str {
    match kind {
        "Deployment" => "deployment",
        "Service" => "service",
        _ => "service account",
    }
}

fn made(called: &str, object: &Json) -> String {
    match image(object) {
        "" => format!("{called} is made"),
        image => format!("{called} is made, with the image {image}"),
    }
}

fn container(object: &Json) -> &Json {
    &object["spec"]["template"]["spec"]["containers"][0]
}

fn image(object: &Json) -> &str {
    text(&container(object)["image"])
}

/// How two Deployments differ in what people ask for.
fn differences(before: &Json, after: &Json) -> Vec<String> {
    let mut said = Vec::new();
    let (old, new) = (image(before), image(after));
    if old != new {
        said.push(format!("image {old} becomes {new}"));
    }
    let replicas = |object: &Json| object["spec"]["replicas"].as_i64().unwrap_or(1);
    if before["kind"] == "Deployment" && replicas(before) != replicas(after) {
        said.push(format!("{} pods become {}", replicas(before), replicas(after)));
    }
    let account =
        |object: &Json| text(&object["spec"]["template"]["spec"]["serviceAccountName"]).to_owned();
    // An account of its own has the name of what runs as it.
    let is_own = |object: &Json| account(object) == name(object);
    if account(before) != account(after) && !(is_own(before) && is_own(after)) {
        said.push(format!("it runs as {} instead of {}", account(after), account(before)));
    }
    let arguments = |object: &Json| container(object)["args"].as_array().cloned();
    if arguments(before).unwrap_or_default() != arguments(after).unwrap_or_default() {
        said.push("its arguments change".to_owned());
    }
    said
}
