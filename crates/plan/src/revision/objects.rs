//! From what a package brings to what is done to the cluster: all of it, or nothing.

use super::contents::Contents;
use super::draft::Draft;
use super::owners::{Party, Standing};
use super::underlying::Derived;
use super::{Halt, Seen, World, bounded, claims, fetch, listing, overlay, retain, underlying};
use crate::adoption::FOREIGN;
use crate::package::pull::RECHECK;
use crate::retention::is_definition;
use crate::step::{Action, Expect, Need, Plan, Target, Wake, Wanted, Write};
use api::meta::PackageKind;
use api::object::OwnerReference;
use api::pkg::ANNOTATION_ADOPT;
use api::pkg::revision::{ACTIVE, Revision, TypedReference};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

/// Brings the objects of a package into the cluster.
pub(super) fn establish(
    world: &World,
    contents: &Contents,
    draft: &mut Draft,
) -> Result<Plan, Halt> {
    let wanted = overlay::wanted(world, contents)?;
    let under = underlying::derived_definitions(world, contents);
    look(world, wanted.iter().cloned().chain(under.iter().map(Derived::as_wanted)))?;
    let mut actions = Vec::new();
    if world.is_active() {
        underlying::give_up_kinds(world, contents, &under, draft)?;
        let party = world.party();
        disputed(world, &party, &wanted, &under)?;
        let (writes, mut owners) = control(world, &party, &wanted);
        owners.extend(under.iter().filter_map(|one| one.own_given(world, &party)));
        check(world, &wanted, &writes)?;
        let report = vec![format!("{} of {} objects are written", writes.len(), wanted.len())];
        if !writes.is_empty() {
            actions.extend(claims::claim(world, &wanted)?);
        }
        actions.extend(writes.into_iter().map(Action::Establish));
        actions.extend(owners);
        if !actions.is_empty() {
            // What they became is told once it can be seen.
            return Ok(Plan { actions, report, wake: Wake::After(Duration::ZERO) });
        }
        retain::tell(world, &wanted, draft)?;
        if let Some(message) = terminating(world, &wanted) {
            draft.refer(references(world, &wanted));
            return Err(Halt::terminating(message));
        }
    } else {
        let party = world.party();
        actions.extend(wanted.iter().filter_map(|one| join(world, &party, one)));
    }
    draft.refer(references(world, &wanted));
    Ok(draft.healthy(world, actions, &contents.warnings))
}

/// What is told of definitions that are on their way out, if there are any: everything else is in
/// its place then, so that what runs can let go of their objects.
fn terminating(world: &World, wanted: &[Wanted]) -> Option<String> {
    let going = wanted.iter().filter(|one| may_finish(world, &one.target));
    let going: Vec<String> = going.map(|one| one.target.name.clone()).collect();
    (!going.is_empty()).then(|| {
        format!(
            "being deleted, with all their objects: {}; they are made again once they are gone, \
             which may take the package's controller to let go of objects with finalizers",
            bounded(&going, ", ")
        )
    })
}

/// Whether a definition of the package is on its way out, and what runs may have to help with that.
/// Rights on what is not the package's are not had in this way.
fn may_finish(world: &World, target: &Target) -> bool {
    let Some(Some(seen)) = world.seen.get(target) else { return false };
    seen.metadata.deletion_timestamp.is_some()
        && world.kind == PackageKind::Provider
        && is_definition(&target.kind)
        && claims::holder(world, target).is_none()
        && world.party().standing(seen) == Standing::Ours
}

fn references(world: &World, wanted: &[Wanted]) -> Vec<TypedReference> {
    ordered(wanted.iter().map(|one| reference(world, &one.target)).collect())
}

/// Lets the objects of an inactive revision go, but not away: it stays one of their owners.
///
/// What the active revision wants it takes by itself, so nothing is let go before that one has
/// everything. What is still ours then is no longer part of the package: it is kept by the
/// revisions that brought it, and goes with the last of them, unless objects live by it ([`retain`]).
pub(super) fn release(world: &World, draft: &Draft) -> Result<Plan, Halt> {
    let references = draft.status.object_refs.clone().unwrap_or_default();
    let targets: Vec<Target> = references.iter().map(target).collect();
    look(world, targets.iter().map(|target| Wanted { target: target.clone(), packaged: None }))?;
    let party = world.party();
    let successor = world.siblings.iter().find(|one| is_active(one));
    let is_done = successor.is_none_or(Revision::is_established);
    let is_dropped =
        |it: &&Target| successor.is_some_and(|one| one.is_established() && !brings(one, it));
    retain::count(world, &party, targets.iter().filter(is_dropped))?;
    let mut actions = Vec::new();
    for target in &targets {
        let Some(Some(seen)) = world.seen.get(target) else { continue };
        let before = &seen.metadata.owner_references;
        let is_awaited = party.controls(&seen.metadata) && !is_done;
        if before.is_empty() || is_awaited || is_anothers(&party, seen) {
            continue;
        }
        let mut owners = party.release(before);
        if is_dropped(&target) {
            owners = retain::left(world, &party, (target, seen), owners);
        }
        actions.extend(owned(target, seen, &owners));
    }
    Ok(draft.healthy(world, actions, &[]))
}

/// What a revision that goes does to its objects: those that are no longer part of the package
/// become its own alone, so that they go with it or with the last one that brought them; but
/// definitions that objects live by become the package's. Which
/// those are is known once the active revision has everything, so that is waited for. If there is
/// none, the package keeps what it has.
pub(super) fn bequeath(world: &World, draft: &Draft) -> Result<Vec<Action>, Halt> {
    let Some(successor) = world.siblings.iter().find(|one| is_active(one)) else {
        return Ok(Vec::new());
    };
    let mut dropped = brought(world, draft)?;
    dropped.retain(|target| !brings(successor, target));
    if !dropped.is_empty() && !successor.is_established() {
        let why = format!("it goes once {} has everything", successor.metadata.name);
        let (report, wake) = (vec![why], Wake::After(RECHECK));
        return Err(Halt::First(Plan { actions: Vec::new(), report, wake }));
    }
    look(world, dropped.iter().map(|target| Wanted { target: target.clone(), packaged: None }))?;
    let party = world.party();
    retain::count(world, &party, dropped.iter())?;
    let left = dropped.iter().filter_map(|target| {
        let seen = world.seen.get(target)?.as_ref()?;
        let owners = &seen.metadata.owner_references;
        if !owners.iter().any(|one| super::owners::is_named(one, &party.revision)) {
            return None;
        }
        if retain::is_needed(world, &party, target, seen) {
            return retain::keep(&party, target, seen);
        }
        owned(target, seen, &party.without_package(party.release(owners)))
    });
    Ok(left.collect())
}

/// What a revision brought: as its status has it, or, if it goes before it could tell, what is in
/// its package, if that is at hand.
pub(super) fn brought(world: &World, draft: &Draft) -> Result<Vec<Target>, Halt> {
    if let Some(told) = draft.status.object_refs.as_ref().filter(|told| !told.is_empty()) {
        return Ok(told.iter().map(target).collect());
    }
    if world.image.cached.is_none() || matches!(world.contents, Some(Err(_))) {
        return Ok(Vec::new());
    }
    let contents = fetch::contents(world, fetch::digest(world)?)?;
    let wanted = overlay::wanted(world, &contents).unwrap_or_default();
    Ok(wanted.into_iter().map(|one| one.target).collect())
}

pub(super) fn is_active(revision: &Revision) -> bool {
    revision.spec.desired_state == ACTIVE && revision.metadata.deletion_timestamp.is_none()
}

/// Whether a revision says that an object is one of its own, in whatever version.
fn brings(revision: &Revision, target: &Target) -> bool {
    let references = revision.status.iter().flat_map(|status| status.object_refs.iter().flatten());
    let group = |api_version: &str| api_version.split('/').next().map(str::to_owned);
    references.into_iter().any(|one| {
        one.kind == target.kind
            && one.name == target.name
            && group(&one.api_version) == group(&target.api_version)
    })
}

/// Asks for what the cluster has of objects nobody has looked at, once for each.
pub(super) fn look(world: &World, wanted: impl Iterator<Item = Wanted>) -> Result<(), Halt> {
    let mut asked = BTreeSet::new();
    let mut is_unknown =
        |one: &Wanted| !world.seen.contains_key(&one.target) && asked.insert(one.target.clone());
    let unknown: Vec<Wanted> = wanted.filter(|one| is_unknown(one)).collect();
    if unknown.is_empty() { Ok(()) } else { Err(Halt::Need(vec![Need::Objects(unknown)])) }
}

/// What it takes to control every object: writes of their contents, and changes of owners alone.
fn control(world: &World, party: &Party, wanted: &[Wanted]) -> (Vec<Write>, Vec<Action>) {
    let (mut writes, mut owners) = (Vec::new(), Vec::new());
    for Wanted { target, packaged } in wanted {
        let Some(packaged) = packaged else { continue };
        if may_finish(world, target) {
            continue;
        }
        let seen = world.seen.get(target).and_then(Option::as_ref);
        let taken = party.take(seen.map_or(&[][..], |seen| &seen.metadata.owner_references));
        if let Some(seen) = seen.filter(|seen| seen.is_same && party.controls(&seen.metadata)) {
            // Whoever controls an object wrote all of it, so nothing of others is left in it.
            owners.extend(owned(target, seen, &taken));
            continue;
        }
        let mut object = packaged.clone();
        object.overlay["metadata"]["ownerReferences"] = json!(taken);
        // What was activated stays so.
        if seen.is_some_and(|seen| seen.state.as_deref() == Some(ACTIVE)) {
            object.overlay["spec"]["state"] = json!(ACTIVE);
        }
        let expect = seen.map_or(Expect::Absent, |seen| Expect::as_seen(&seen.metadata));
        writes.push(Write { target: target.clone(), object, expect });
    }
    (writes, owners)
}

/// What keeps a package from its objects.
#[derive(Default)]
struct Obstacles {
    theirs: Vec<String>,
    held: Vec<String>,
    going: Vec<String>,
    foreign: Vec<String>,
}

impl Obstacles {
    fn find_at(&mut self, world: &World, party: &Party, target: &Target) {
        let what = format!("{} {}", target.kind, target.name);
        let recorded = || claims::holder(world, target).map(|it| format!("{what} belongs to {it}"));
        let Some(Some(seen)) = world.seen.get(target) else {
            self.theirs.extend(recorded());
            return;
        };
        match party.standing(seen) {
            Standing::Ours | Standing::Foreign if seen.metadata.deletion_timestamp.is_some() => {
                if !may_finish(world, target) {
                    self.going.push(format!("{what} is being deleted"));
                }
            }
            Standing::Ours => self.theirs.extend(recorded()),
            others => self.note(what, others),
        }
    }

    /// The same for a definition that Crossplane would make.
    fn find_under(&mut self, world: &World, party: &Party, derived: &Derived) {
        let Some((seen, standing)) = derived.find_standing(world, party) else { return };
        let target = &derived.target;
        let what = format!("{} {}", target.kind, target.name);
        if standing == Standing::Foreign && seen.metadata.deletion_timestamp.is_some() {
            self.going.push(format!("{what} is being deleted"));
        } else {
            self.note(what, standing);
        }
    }

    fn note(&mut self, what: String, standing: Standing) {
        match standing {
            Standing::Ours => {}
            Standing::Theirs(whose) => self.theirs.push(format!("{what} belongs to {whose}")),
            Standing::Held(by) => self.held.push(format!("{what} is still controlled by {by}")),
            Standing::Foreign => self.foreign.push(what),
        }
    }
}

/// Fails if one of the objects, or of the definitions under them, has another owner, or one that has
/// not released it.
fn disputed(
    world: &World,
    party: &Party,
    wanted: &[Wanted],
    under: &[Derived],
) -> Result<(), Halt> {
    let mut found = Obstacles::default();
    for Wanted { target, .. } in wanted {
        found.find_at(world, party, target);
    }
    for derived in under {
        found.find_under(world, party, derived);
    }
    let Obstacles { theirs, mut held, going, foreign } = found;
    let why = "cannot establish control of object";
    if !theirs.is_empty() {
        let ours = format!("{} {}", world.kind.as_str(), world.package_name());
        let message = format!(
            "{why}: {}, so {ours} cannot have it; choose versions that do not share it, have it given \
             up if its package no longer brings it (apron prune NAME --release), or uninstall one of \
             the two, which deletes all objects of its kinds",
            listing(&theirs)
        );
        return Err(Halt::trouble("SyncPackage", message));
    }
    if !foreign.is_empty() {
        return Err(Halt::trouble("SyncPackage", in_the_way(world, party, &foreign)));
    }
    held.extend(going);
    if held.is_empty() { Ok(()) } else { Err(Halt::waiting(format!("{why}: {}", listing(&held)))) }
}

/// What is told of objects that no package brought: all of them, and how they are given away.
fn in_the_way(world: &World, party: &Party, foreign: &[String]) -> String {
    let name = world.package_name();
    let (was, them, go) = match foreign.len() {
        1 => ("was", "it", "it goes"),
        _ => ("were", "them", "they go"),
    };
    format!(
        "cannot establish control of object: {} {was} {FOREIGN}; to give {them} to the package, \
         after which {go} when that is uninstalled: apron adopt {name}, or annotate {them} with \
         {ANNOTATION_ADOPT}={}",
        bounded(foreign, ", "),
        party.mark,
    )
}

/// Fails if the API server would refuse one of the writes.
fn check(world: &World, wanted: &[Wanted], writes: &[Write]) -> Result<(), Halt> {
    if writes.is_empty() {
        return Ok(());
    }
    let Some(refusals) = &world.checked else {
        return Err(Halt::Need(vec![Need::DryRun(writes.to_vec())]));
    };
    if refusals.is_empty() {
        return Ok(());
    }
    let each: Vec<String> = refusals
        .iter()
        .map(|refusal| {
            let of = wanted.iter().find(|one| one.target == refusal.target);
            let document = of.and_then(|one| one.packaged.as_ref()).map(|one| one.document + 1);
            let place = document.map(|at| format!(" (document {at} of the package)"));
            let Target { kind, name, .. } = &refusal.target;
            format!("{kind} {name}{}: {}", place.unwrap_or_default(), refusal.message)
        })
        .collect();
    let message = format!(
        "cannot establish control of object: the API server refuses {}; nothing was written; \
         install a version of the package that is mended",
        listing(&each)
    );
    Err(Halt::trouble("SyncPackage", message))
}

/// Makes an inactive revision an owner of what is there of its package. Something that has no owner
/// is left alone: it would go with the revision.
fn join(world: &World, party: &Party, wanted: &Wanted) -> Option<Action> {
    let seen = world.seen.get(&wanted.target)?.as_ref()?;
    let before = &seen.metadata.owner_references;
    if before.is_empty() || is_anothers(party, seen) {
        return None;
    }
    owned(&wanted.target, seen, &party.release(before))
}

/// Whether an object is another's, and no business of a revision that does not own it.
fn is_anothers(party: &Party, seen: &Seen) -> bool {
    let owners = &seen.metadata.owner_references;
    let is_owner = owners.iter().any(|one| super::owners::is_named(one, &party.revision));
    !is_owner && matches!(party.standing(seen), Standing::Theirs(_) | Standing::Foreign)
}

/// Makes these the owners, if they are not.
pub(super) fn owned(target: &Target, seen: &Seen, owners: &[OwnerReference]) -> Option<Action> {
    (owners != seen.metadata.owner_references).then(|| Action::Merge {
        target: target.clone(),
        change: json!({"metadata": {"ownerReferences": owners}}),
        expect: Expect::as_seen(&seen.metadata),
    })
}

fn reference(world: &World, target: &Target) -> TypedReference {
    let seen = world.seen.get(target).and_then(Option::as_ref);
    TypedReference {
        api_version: target.api_version.clone(),
        kind: target.kind.clone(),
        name: target.name.clone(),
        uid: seen.and_then(|seen| seen.metadata.uid.clone()),
        ..TypedReference::default()
    }
}

pub(super) fn target(reference: &TypedReference) -> Target {
    let TypedReference { api_version, kind, name, .. } = reference.clone();
    Target { api_version, kind, namespace: None, name }
}

/// From the last to the first, as Crossplane lists them.
fn ordered(mut references: Vec<TypedReference>) -> Vec<TypedReference> {
    let key = |one: &TypedReference| format!("{}, Kind={}/{}", one.api_version, one.kind, one.name);
    references.sort_by_key(|one| std::cmp::Reverse(key(one)));
    references
}
