//! Definitions that the package no longer brings: who keeps them, and what is told of them.
//!
//! While a revision that brought one is in the history, that revision owns it. If the definition has
//! objects, the package owns it, too, so that it does not go with the revision; and when that leaves,
//! the definition is marked as kept for the package. The active revision tells of all of them. That
//! it ever told of some is how the next one knows to ask for those that are marked: definitions are
//! many and large, and are not searched for nothing.

use super::draft::Draft;
use super::objects::look;
use super::owners::{Party, Standing, is_named};
use super::{Halt, Seen, World};
use crate::retention::{self, Instances, Retained, brought, is_definition, told};
use crate::step::{Action, Expect, Need, Target, Wanted};
use api::condition::{self, types};
use api::object::OwnerReference;
use api::pkg::LABEL_RETAINED;
use api::pkg::revision::Revision;
use serde_json::json;
use std::collections::BTreeSet;

/// Asks how many objects there are of definitions that are there and have not been counted.
pub(super) fn count<'a>(
    world: &World,
    party: &Party,
    targets: impl Iterator<Item = &'a Target>,
) -> Result<(), Halt> {
    let unknown = targets.filter(|one| {
        is_definition(&one.kind)
            && !world.instances.contains_key(one)
            && seen(world, one).is_some_and(|seen| is_ours(party, seen))
    });
    let unknown: Vec<Target> = unknown.cloned().collect();
    if unknown.is_empty() { Ok(()) } else { Err(Halt::Need(vec![Need::Instances(unknown)])) }
}

/// Whether a definition that the package no longer brings must not go with a revision.
pub(super) fn is_needed(world: &World, party: &Party, target: &Target, seen: &Seen) -> bool {
    is_definition(&target.kind) && is_ours(party, seen) && !instances(world, target).is_none()
}

/// The owners of an object that the package no longer brings, once its revision is inactive.
pub(super) fn left(
    world: &World,
    party: &Party,
    (target, seen): (&Target, &Seen),
    owners: Vec<OwnerReference>,
) -> Vec<OwnerReference> {
    if is_needed(world, party, target, seen) {
        party.with_package(owners)
    } else {
        party.without_package(owners)
    }
}

/// Leaves a definition to the package when the revision goes that brought it.
pub(super) fn keep(party: &Party, target: &Target, seen: &Seen) -> Option<Action> {
    let metadata = &seen.metadata;
    let mut owners = party.with_package(metadata.owner_references.clone());
    owners.retain(|one| !is_named(one, &party.revision));
    let name = &party.package.name;
    let is_marked = metadata.labels.get(LABEL_RETAINED) == Some(name);
    (!is_marked || owners != metadata.owner_references).then(|| Action::Merge {
        target: target.clone(),
        change: json!({"metadata": {
            "labels": {LABEL_RETAINED: name}, "ownerReferences": owners,
        }}),
        expect: Expect::as_seen(metadata),
    })
}

/// Finds out which definitions the package no longer brings, and has the revision tell of them.
pub(super) fn tell(world: &World, wanted: &[Wanted], draft: &mut Draft) -> Result<(), Halt> {
    let all = dropped(world, wanted)?;
    draft.retain(world, told(&all, world.package_name()));
    Ok(())
}

fn dropped(world: &World, wanted: &[Wanted]) -> Result<Vec<Retained>, Halt> {
    let kept = kept(world)?;
    let before: BTreeSet<Target> = world.siblings.iter().flat_map(brought).collect();
    let now: BTreeSet<Target> = wanted.iter().map(|one| one.target.clone()).collect();
    let mut all = retention::dropped(&now, before.iter().chain(&kept).cloned());
    look(world, all.iter().map(|target| Wanted { target: target.clone(), packaged: None }))?;
    let party = world.party();
    count(world, &party, all.iter())?;
    all.retain(|one| seen(world, one).is_some_and(|seen| is_ours(&party, seen)));
    let each = all.into_iter().map(|target| Retained {
        instances: instances(world, &target),
        is_kept: !before.contains(&target),
        target,
    });
    Ok(each.collect())
}

/// The definitions that are marked as kept, if there can be any: this revision, or one before it,
/// told of some when they were about to be.
fn kept(world: &World) -> Result<Vec<Target>, Halt> {
    let has_told =
        |one: &Revision| condition::find(one.conditions(), types::DEFINITIONS_RETAINED).is_some();
    if !world.siblings.iter().chain([&world.revision]).any(has_told) {
        return Ok(Vec::new());
    }
    world.retained.clone().ok_or_else(|| Halt::Need(vec![Need::Retained]))
}

fn seen<'a>(world: &'a World, target: &Target) -> Option<&'a Seen> {
    world.seen.get(target)?.as_ref()
}

/// Whether a definition is the package's and stays for now.
fn is_ours(party: &Party, seen: &Seen) -> bool {
    let metadata = &seen.metadata;
    metadata.deletion_timestamp.is_none()
        && !metadata.owner_references.is_empty()
        && matches!(party.standing(seen), Standing::Ours | Standing::Held(_))
}

fn instances(world: &World, target: &Target) -> Instances {
    world.instances.get(target).copied().unwrap_or_default()
}
