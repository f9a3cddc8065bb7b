//! Automatic packages give way to those that users install by name.
//!
//! A package that the manager brought for others, and one that came from git or from a user under
//! another name, are one package. The user's is the one that stays:
//!
//! ```text
//!   automatic package                    package by name
//!   marked: it is looked after no more
//!   its revisions ─────────────────────► are inactive revisions of this one
//!                                        an upgrade like any other, until it is healthy
//!   is deleted, and owns nothing
//! ```
//!
//! So objects change hands as they do between revisions of one package, what runs is handed over as
//! always, and a deletion never reaches anything. Nothing begins before the user's package has been
//! granted: one that cannot be installed takes nothing from what works.

use super::World;
use super::act::target_of;
use super::keepers::is_automatic;
use super::members::{Member, Members};
use crate::step::{Action, Expect, Plan, Target};
use api::condition::{self, types};
use api::object::OwnerReference;
use api::pkg::revision::{INACTIVE, Revision};
use api::pkg::{ANNOTATION_SUCCESSOR, LABEL_PACKAGE, Package};
use serde_json::{Value as Json, json};
use solver::{Conflict, Pin};

/// An automatic package that gives way to another, as that one sees it.
pub(super) struct Predecessor<'a> {
    package: &'a Package,
    /// What is installed of it.
    pub(super) pin: Option<Pin>,
    /// Whether it still has revisions.
    pub(super) has_revisions: bool,
}

impl Predecessor<'_> {
    /// What the package that comes after it waits for.
    pub(super) fn handover_message(&self) -> String {
        let name = &self.package.metadata.name;
        if retains_definitions(self.package) {
            return format!(
                "{name}, which was installed automatically, keeps definitions for objects that live by \
                 them, and gives way once they are given up; hint: apron prune {name} lists them"
            );
        }
        format!("{name}, which was installed automatically, gives way to it first")
    }
}

/// Whether a package owns definitions that no revision of it brings. They would go with it.
fn retains_definitions(package: &Package) -> bool {
    let conditions = package.status.iter().flat_map(|status| &status.conditions);
    let mut conditions = conditions.flatten();
    conditions.any(|one| one.condition_type == types::DEFINITIONS_RETAINED && one.status == "True")
}

/// Finds the packages that give way, and to which.
pub(super) fn pair_members<'a>(world: &'a World, all: &mut [Member<'a>]) {
    let pairs: Vec<(usize, usize)> = all
        .iter()
        .enumerate()
        .filter(|(_, member)| is_automatic(member.package))
        .filter_map(|(at, member)| Some((at, successor_of(member, all)?)))
        .collect();
    for (before, after) in pairs {
        let label = all[after].label.clone();
        let package = all[before].package;
        let pin = all[before].installed().cloned();
        let has_revisions = revisions_of(world, package).next().is_some();
        // Of several, the one that has something counts.
        if all[after].predecessor.as_ref().is_none_or(|one| !one.has_revisions) {
            all[after].predecessor = Some(Predecessor { package, pin, has_revisions });
        }
        all[before].successor = Some(label);
    }
}

/// The package of the same repository that a user installed by name.
fn successor_of(automatic: &Member<'_>, all: &[Member<'_>]) -> Option<usize> {
    all.iter().position(|one| {
        one.unfit.is_none()
            && one.package.kind == automatic.package.kind
            && one.name.source == automatic.name.source
            && !is_automatic(one.package)
    })
}

/// All revisions of a package, those on their way out among them.
fn revisions_of<'a>(world: &'a World, package: &Package) -> impl Iterator<Item = &'a Revision> {
    let (kind, name) = (format!("{}Revision", package.kind), package.metadata.name.clone());
    world.revisions.iter().filter(move |one| {
        one.kind == kind && one.metadata.labels.get(LABEL_PACKAGE) == Some(&name)
    })
}

/// The package that an automatic one was marked to give way to.
pub(crate) fn marked_successor(package: &Package) -> Option<&String> {
    package.metadata.annotations.get(ANNOTATION_SUCCESSOR).filter(|_| is_automatic(package))
}

/// The names by which the lock's record of owners may know a package: its own, and those of
/// packages that gave way to it, until the record is written anew.
pub(super) fn recorded_owners(world: &World, package: &Package) -> Vec<String> {
    let name = &package.metadata.name;
    let before = world.packages.iter().filter(|one| one.kind == package.kind);
    let before = before.filter(|one| marked_successor(one) == Some(name));
    let all = before.chain([package]);
    all.map(|one| super::owner(&one.kind, &one.metadata.name)).collect()
}

/// What there is to do for packages that give way, and for those that were to give way to a package
/// that is gone.
pub(super) fn hand_over(
    world: &World,
    members: &Members<'_>,
    conflicts: &[Conflict],
    plan: &mut Plan,
) {
    for member in &members.all {
        let successor = member.successor.as_ref().and_then(|label| members.by_label(label));
        match successor {
            Some(successor) => give_way(world, member.package, successor, conflicts, plan),
            None if marked_successor(member.package).is_some() => {
                plan.actions.push(mark_successor(member.package, None));
            }
            None => {}
        }
    }
}

fn give_way(
    world: &World,
    package: &Package,
    successor: &Member<'_>,
    conflicts: &[Conflict],
    plan: &mut Plan,
) {
    let (name, heir) = (&package.metadata.name, successor.package);
    let is_paused = package.metadata.is_paused() || heir.metadata.is_paused();
    if is_paused || retains_definitions(package) {
        return;
    }
    let is_marked = marked_successor(package) == Some(&heir.metadata.name);
    let mut revisions: Vec<&Revision> = revisions_of(world, package).collect();
    let is_granted = successor.active.as_ref().is_some_and(|active| active.contents.is_some())
        && !successor.is_refused(conflicts);
    if revisions.is_empty() {
        if is_installed(successor) {
            plan.report.push(format!("{name} goes: {} has taken its place", heir.metadata.name));
            let expect = Expect::as_seen(&package.metadata);
            plan.actions.push(Action::Delete { target: target_of(package), expect });
        } else if is_granted && !is_marked {
            plan.actions.push(mark_successor(package, Some(&heir.metadata.name)));
        }
        return;
    }
    if !is_granted {
        if is_marked {
            plan.actions.push(mark_successor(package, None));
        }
        return;
    }
    if !is_marked {
        plan.actions.push(mark_successor(package, Some(&heir.metadata.name)));
        let message = format!(
            "takes the place of {name}, which was installed automatically: what that has is handed \
             over, and it goes"
        );
        let (target, reason) = (target_of(heir), "ReplaceAutomaticPackage");
        plan.actions.push(Action::Event { target, is_warning: false, reason, message });
    }
    plan.report.push(format!("the revisions of {name} become those of {}", heir.metadata.name));
    // They were active before that of the package by name, which gets a higher number than they.
    revisions.sort_by_key(|one| (one.spec.revision, &one.metadata.name));
    let highest = revisions_of(world, heir).map(|one| one.spec.revision).max().unwrap_or_default();
    let numbered = revisions.into_iter().zip(highest.saturating_add(1)..);
    plan.actions.extend(numbered.map(|(revision, number)| pass_on(revision, number, heir)));
}

/// Whether a package has all that it asks for, by a revision of its own.
fn is_installed(successor: &Member<'_>) -> bool {
    let Some(active) = &successor.active else { return false };
    let Some(status) = &successor.package.status else { return false };
    let healthy = condition::find(status.conditions.as_deref().unwrap_or_default(), types::HEALTHY);
    active.is_established()
        && status.current_revision.as_ref() == Some(&active.revision.metadata.name)
        && healthy.is_some_and(|one| one.status == "True")
}

fn mark_successor(package: &Package, successor: Option<&str>) -> Action {
    Action::Merge {
        target: target_of(package),
        change: json!({"metadata": {"annotations": {ANNOTATION_SUCCESSOR: successor}}}),
        expect: Expect::as_seen(&package.metadata),
    }
}

/// Makes a revision one of another package: inactive, because that has one that is active.
fn pass_on(revision: &Revision, number: i64, heir: &Package) -> Action {
    let Revision { api_version, kind, metadata, .. } = revision;
    let owner = OwnerReference {
        api_version: heir.api_version.clone(),
        kind: heir.kind.clone(),
        name: heir.metadata.name.clone(),
        uid: heir.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
        rest: serde_json::Map::<String, Json>::new(),
    };
    let others = metadata.owner_references.iter();
    let others = others.filter(|one| one.controller != Some(true) && one.uid != owner.uid);
    let owners: Vec<&OwnerReference> = others.chain([&owner]).collect();
    let target = Target {
        api_version: api_version.clone(),
        kind: kind.clone(),
        namespace: None,
        name: metadata.name.clone(),
    };
    let change = json!({
        "metadata": {
            "labels": {LABEL_PACKAGE: heir.metadata.name},
            "ownerReferences": owners,
        },
        "spec": {"desiredState": INACTIVE, "revision": number},
    });
    Action::Merge { target, change, expect: Expect::as_seen(metadata) }
}
