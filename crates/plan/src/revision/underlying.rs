//! Definitions that Crossplane makes of definitions of managed resources.
//!
//! A package that brings a `ManagedResourceDefinition` brings a kind: Crossplane makes the
//! `CustomResourceDefinition` of that name once the kind is activated. RBAC and webhooks know kinds
//! by name alone, so where a definition of that name is there already and was made by another
//! owner, the kind is that owner's. The package gets nothing by standing a definition of managed resources
//! beside it: it waits as for any object that is not its own, is given the definition in the same
//! way, and has no rights on the kind until then.

use super::contents::{Contents, Document};
use super::draft::Draft;
use super::objects::owned;
use super::overlay::{CRD, is_managed};
use super::owners::{Party, Standing, controller};
use super::{Halt, Seen, World, trust, withdraw};
use crate::control::group;
use crate::step::{Action, Target, Wanted};
use std::collections::BTreeSet;
use xpkg::lint::ObjectKind;

/// The kind of definitions that Crossplane makes others of.
pub(super) const MANAGED: &str = "ManagedResourceDefinition";
const MANAGED_GROUP: &str = "apiextensions.crossplane.io";

/// The definitions under those of managed resources that an active revision wants. What the package
/// brings as it is is judged as that.
pub(super) fn underlying_targets(world: &World, contents: &Contents) -> Vec<Target> {
    if !world.is_active() {
        return Vec::new();
    }
    let is_deferred = |one: &Document| {
        one.object == ObjectKind::ManagedResourceDefinition || is_managed(world, one)
    };
    let (deferred, plain): (Vec<_>, Vec<_>) =
        contents.documents.iter().partition(|one| is_deferred(one));
    let is_plain = |one: &&Document| one.object == ObjectKind::CustomResourceDefinition;
    let plain: BTreeSet<&str> =
        plain.into_iter().filter(is_plain).map(|one| one.name.as_str()).collect();
    let deferred = deferred.into_iter().filter(|one| !plain.contains(one.name.as_str()));
    let target = |one: &Document| Target {
        api_version: CRD.to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        namespace: None,
        name: one.name.clone(),
    };
    deferred.map(target).collect()
}

/// How a definition is looked at that the package has no content for.
pub(super) fn as_wanted(target: &Target) -> Wanted {
    Wanted { target: target.clone(), packaged: None }
}

/// Whose a definition is, if it is there and Crossplane did not make it of the one of that name.
pub(super) fn find_standing<'w>(
    world: &'w World,
    party: &Party,
    target: &Target,
) -> Option<(&'w Seen, Standing)> {
    let seen = world.seen.get(target)?.as_ref()?;
    let is_made_of_it = controller(&seen.metadata).is_some_and(|one| {
        one.kind == MANAGED && one.name == target.name && group(&one.api_version) == MANAGED_GROUP
    });
    (!is_made_of_it).then(|| (seen, party.standing(seen)))
}

/// Takes away what the package has by kinds that another owner has by now: rights, which go by the
/// status's object references, and webhooks that only the kind's owner may have without permission.
pub(super) fn give_up_kinds(
    world: &World,
    contents: &Contents,
    targets: &[Target],
    draft: &mut Draft,
) -> Result<(), Halt> {
    let party = world.party();
    let is_others = |target: &&Target| {
        let standing = find_standing(world, &party, target).map(|(_, standing)| standing);
        matches!(standing, Some(Standing::Theirs(_) | Standing::Foreign))
    };
    let others: BTreeSet<&str> =
        targets.iter().filter(is_others).map(|one| one.name.as_str()).collect();
    if others.is_empty() {
        return Ok(());
    }
    draft.forget_kinds(&others);
    let (judgement, _) = trust::judge_contents(world, contents, &others)?;
    if judgement.is_good() { Ok(()) } else { withdraw::webhooks(world, draft) }
}

/// Makes the package an owner of a definition that it was given or gets back, and that Crossplane has
/// not made its own yet: what was given once is known as the package's from then on.
pub(super) fn own_given(world: &World, party: &Party, target: &Target) -> Option<Action> {
    let (seen, standing) = find_standing(world, party, target)?;
    let metadata = &seen.metadata;
    let is_free = metadata.deletion_timestamp.is_none() && controller(metadata).is_none();
    if standing != Standing::Ours || !is_free {
        return None;
    }
    owned(target, seen, &party.with_package(metadata.owner_references.clone()))
}
