//! Who may have what: the record that the Lock keeps.
//!
//! Before a package writes anything it puts its name beside everything it brings that there can
//! only be one of, in one write to the one Lock. Of two packages that want one definition, only
//! one can do that first; the other sees it and leaves everything alone. Without it, each could
//! end up with half.

use super::World;
use crate::step::{Action, Expect, Target, Wanted};
use api::pkg::lock;
use api::pkg::revision::Revision;
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};

const DEFINITIONS: &str = "customResourceDefinitions";
const COMPOSITIONS: &str = "compositions";

/// Under which heading an object of a kind is recorded. Composite resources have definitions, too.
fn heading(kind: &str) -> Option<&'static str> {
    match kind {
        "CustomResourceDefinition"
        | "ManagedResourceDefinition"
        | "CompositeResourceDefinition" => Some(DEFINITIONS),
        "Composition" => Some(COMPOSITIONS),
        _ => None,
    }
}

/// How a package is written in the record.
pub fn claimant(kind: &str, name: &str) -> String {
    format!("{kind}/{name}")
}

impl World {
    fn claimant(&self) -> String {
        claimant(self.kind.as_str(), self.package_name())
    }

    fn record(&self, heading: &str) -> Option<&BTreeMap<String, String>> {
        let lock = self.lock.as_ref()?;
        match heading {
            DEFINITIONS => lock.custom_resource_definitions.as_ref(),
            _ => lock.compositions.as_ref(),
        }
    }
}

/// The package that an object is recorded for, if it is another one that is still there.
pub(super) fn holder(world: &World, target: &Target) -> Option<String> {
    let holder = world.record(heading(&target.kind)?)?.get(&target.name)?;
    let is_other = *holder != world.claimant() && world.packages.contains(holder);
    is_other.then(|| holder.replacen('/', " ", 1))
}

/// The record as it should be for these objects, if it is not: they are ours, and what no
/// revision of ours has any more is free.
pub(super) fn claim(world: &World, wanted: &[Wanted]) -> Option<Action> {
    let ours = world.claimant();
    let mut change = Map::new();
    let mut kept = listed(world.siblings.iter());
    for Wanted { target, .. } in wanted {
        let Some(heading) = heading(&target.kind) else { continue };
        kept.insert((heading, target.name.clone()));
        let holder = world.record(heading).and_then(|record| record.get(&target.name));
        if holder != Some(&ours) {
            note(&mut change, heading, &target.name, json!(ours));
        }
    }
    free(world, &kept, &mut change);
    write(world, change)
}

/// What is left of the Lock when this revision goes.
pub(super) fn leave(world: &World) -> Option<Action> {
    let mut change = Map::new();
    free(world, &listed(world.siblings.iter()), &mut change);
    let lock = world.lock.as_ref()?;
    let mut packages = lock.packages.clone().unwrap_or_default();
    let before = packages.len();
    packages.retain(|one| one.name != world.revision.metadata.name);
    if packages.len() != before {
        change.insert("packages".to_owned(), json!(packages));
    }
    write(world, change)
}

/// Everything that these revisions brought, if they stay.
fn listed<'a>(revisions: impl Iterator<Item = &'a Revision>) -> BTreeSet<(&'static str, String)> {
    let staying = revisions.filter(|one| one.metadata.deletion_timestamp.is_none());
    let brought = staying.filter_map(|one| one.status.as_ref()?.object_refs.as_ref()).flatten();
    brought.filter_map(|one| Some((heading(&one.kind)?, one.name.clone()))).collect()
}

/// Takes our name off everything that is not kept.
fn free(world: &World, kept: &BTreeSet<(&'static str, String)>, change: &mut Map<String, Json>) {
    let ours = world.claimant();
    for heading in [DEFINITIONS, COMPOSITIONS] {
        for (name, holder) in world.record(heading).into_iter().flatten() {
            if *holder == ours && !kept.contains(&(heading, name.clone())) {
                note(change, heading, name, Json::Null);
            }
        }
    }
}

fn note(change: &mut Map<String, Json>, heading: &str, name: &str, value: Json) {
    let notes = change.entry(heading).or_insert_with(|| json!({}));
    if let Json::Object(notes) = notes {
        notes.insert(name.to_owned(), value);
    }
}

fn write(world: &World, change: Map<String, Json>) -> Option<Action> {
    if change.is_empty() {
        return None;
    }
    let group = world.revision.api_version.split('/').next().unwrap_or(api::pkg::GROUP);
    let api_version = format!("{group}/v1beta1");
    let Some(lock) = &world.lock else {
        let mut object =
            json!({"apiVersion": api_version, "kind": "Lock", "metadata": {"name": lock::NAME}});
        if let Json::Object(object) = &mut object {
            object.extend(change);
        }
        return Some(Action::Apply { object, expect: Expect::Absent });
    };
    let name = lock::NAME.to_owned();
    let target = Target { api_version, kind: "Lock".to_owned(), namespace: None, name };
    let expect = Expect::as_seen(&lock.metadata);
    Some(Action::Merge { target, change: Json::Object(change), expect })
}
