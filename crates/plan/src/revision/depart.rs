//! A package that goes: objects that live by its definitions go before what runs it.
//!
//! Whoever deletes a package deletes its definitions, and all their objects. Objects may have
//! finalizers that only the package's controller removes, so that stays until they are gone: the
//! definitions are deleted here, and the revision, which keeps what runs, waits.

use super::draft::Draft;
use super::objects::{brought, look};
use super::{Halt, World, bounded};
use crate::retention::{Instances, is_definition};
use crate::step::{Action, Expect, Need, Target, Wanted};

/// What whoever deletes an object sets there to keep what it owns.
const ORPHAN: &str = "orphan";

/// Waits until no objects live by the definitions that go with the revision.
pub(super) fn wait_for_objects(world: &World, draft: &Draft) -> Result<(), Halt> {
    let finalizers = &world.revision.metadata.finalizers;
    let is_orphaned = finalizers.iter().any(|one| one == ORPHAN);
    let is_followed = world.siblings.iter().any(super::objects::is_active);
    if world.package_stays || is_orphaned || is_followed {
        return Ok(());
    }
    let mut targets = brought(world, draft)?;
    targets.retain(|one| is_definition(&one.kind));
    look(world, targets.iter().map(|target| Wanted { target: target.clone(), packaged: None }))?;
    let party = world.party();
    let is_ours = |target: &Target| {
        let seen = world.seen.get(target).and_then(Option::as_ref);
        seen.is_some_and(|seen| party.controls(&seen.metadata))
    };
    targets.retain(is_ours);
    let uncounted = targets.iter().filter(|one| !world.instances.contains_key(one));
    let uncounted: Vec<Target> = uncounted.cloned().collect();
    if !uncounted.is_empty() {
        return Err(Halt::Need(vec![Need::Instances(uncounted)]));
    }
    let count = |one: &Target| world.instances.get(one).copied().unwrap_or_default();
    targets.retain(|one| !count(one).is_none());
    if targets.is_empty() {
        return Ok(());
    }
    let (actions, message) = (deletions(world, &targets), told(&targets, count));
    Err(Halt::First(draft.departing(world, actions, message)))
}

fn deletions(world: &World, targets: &[Target]) -> Vec<Action> {
    let each = targets.iter().filter_map(|target| {
        let metadata = &world.seen.get(target)?.as_ref()?.metadata;
        let expect = Expect::as_seen(metadata);
        let target = target.clone();
        metadata.deletion_timestamp.is_none().then_some(Action::Delete { target, expect })
    });
    each.collect()
}

fn told(targets: &[Target], count: impl Fn(&Target) -> Instances) -> String {
    let each: Vec<String> =
        targets.iter().map(|one| format!("{} ({})", one.name, count(one))).collect();
    format!(
        "it goes once objects of its kinds are gone, and what runs it stays until then, to let go of \
         those with finalizers: {}",
        bounded(&each, ", ")
    )
}
