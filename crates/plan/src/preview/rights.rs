//! What a package's controller may do, before and after.

use super::{Family, is_gone, name, text};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};

/// Something that may be done: a resource or an address, and a verb.
type Right = (String, String);

/// What is gained, and what is lost, each a line for all things with which the same may be done.
pub(super) fn difference(family: &Family<'_>) -> (Vec<String>, Vec<String>) {
    let (mut before, mut after) = (BTreeSet::new(), BTreeSet::new());
    for change in family.owned() {
        let object = super::either(change);
        let is_its = object["kind"] == "ClusterRole"
            && name(object).starts_with("crossplane:provider:")
            && name(object).ends_with(":system");
        if !is_its {
            continue;
        }
        before.extend(change.before.iter().flat_map(rights));
        if !is_gone(change) {
            after.extend(change.after.iter().flat_map(rights));
        }
    }
    (lines(&after, &before), lines(&before, &after))
}

fn rights(role: &Json) -> Vec<Right> {
    let mut found = Vec::new();
    let rules = role["rules"].as_array().into_iter().flatten();
    for rule in rules {
        let list = |field: &str| -> Vec<&str> {
            rule[field].as_array().into_iter().flatten().map(text).collect()
        };
        let mut things: Vec<String> =
            list("nonResourceURLs").into_iter().map(str::to_owned).collect();
        let names = list("resourceNames");
        for group in list("apiGroups") {
            for resource in list("resources") {
                let of = if group.is_empty() { String::new() } else { format!(".{group}") };
                let thing = format!("{resource}{of}");
                if names.is_empty() {
                    things.push(thing);
                } else {
                    things.extend(names.iter().map(|name| format!("{thing} {name}")));
                }
            }
        }
        let verbs = list("verbs");
        found.extend(
            things.iter().flat_map(|thing| {
                verbs.iter().map(move |verb| (thing.clone(), (*verb).to_owned()))
            }),
        );
    }
    found
}

/// What one has and the other has not. Status and finalizers go with their resource.
fn lines(one: &BTreeSet<Right>, other: &BTreeSet<Right>) -> Vec<String> {
    let everything = |thing: &str| other.contains(&(thing.to_owned(), "*".to_owned()));
    let mut by_thing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for right @ (thing, verb) in
        one.iter().filter(|(thing, _)| !thing.contains('/') || thing.starts_with('/'))
    {
        if !other.contains(right) && !everything(thing) {
            by_thing.entry(thing).or_default().push(verb);
        }
    }
    let mut by_verbs: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (thing, verbs) in by_thing {
        by_verbs.entry(verbs.join(", ")).or_default().push(thing);
    }
    by_verbs.into_iter().map(|(verbs, things)| format!("{verbs}: {}", things.join(", "))).collect()
}
