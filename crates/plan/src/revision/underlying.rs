//! Definitions that Crossplane makes of definitions that packages bring.
//!
//! A package that brings a `ManagedResourceDefinition` brings a kind: Crossplane makes the
//! `CustomResourceDefinition` of that name once the kind is activated. Of a
//! `CompositeResourceDefinition` it makes one for the composite resource, and one for its claims.
//! RBAC and webhooks know kinds by name alone, so where a definition of that name is there already
//! and was made by another owner, the kind is that owner's. The package gets nothing by standing a
//! definition of Crossplane's beside it: it waits as for any object that is not its own, is given the
//! definition in the same way, and has no rights on the kind until then.

use super::contents::Contents;
use super::draft::Draft;
use super::objects::owned;
use super::overlay::{CRD, is_managed};
use super::owners::{Party, Standing, controller};
use super::{Halt, Seen, World, trust, withdraw};
use crate::control::group;
use crate::step::{Action, Target, Wanted};
use api::kind_reference::split_definition_name;
use api::object::OwnerReference;
use std::collections::{BTreeMap, BTreeSet};
use xpkg::lint::ObjectKind;

/// The kind of definitions of managed resources.
pub(super) const MANAGED: &str = "ManagedResourceDefinition";
/// The kind of definitions of composite resources.
const COMPOSITE: &str = "CompositeResourceDefinition";
/// The group of both.
const CORE: &str = "apiextensions.crossplane.io";

/// A definition that Crossplane makes of one that the package brings. Several may want to be that
/// one; Crossplane takes the first.
pub(super) struct Derived {
    pub(super) target: Target,
    /// What it is made of, by kind and name.
    makers: Vec<(&'static str, String)>,
}

/// The definitions under those of Crossplane's that an active revision wants. What the package brings
/// as it is is judged as that, and Crossplane makes none under a name that no kind can have.
pub(super) fn derived_definitions(world: &World, contents: &Contents) -> Vec<Derived> {
    if !world.is_active() {
        return Vec::new();
    }
    let mut makers: BTreeMap<&str, Vec<(&'static str, String)>> = BTreeMap::new();
    let mut plain = BTreeSet::new();
    for document in &contents.documents {
        let name = document.name.as_str();
        match document.object {
            ObjectKind::CompositeResourceDefinition => {
                let made = [Some(name), document.claim.as_deref()].into_iter().flatten();
                for made in made {
                    makers.entry(made).or_default().push((COMPOSITE, name.to_owned()));
                }
            }
            ObjectKind::ManagedResourceDefinition => {
                makers.entry(name).or_default().push((MANAGED, name.to_owned()));
            }
            ObjectKind::CustomResourceDefinition if is_managed(world, document) => {
                makers.entry(name).or_default().push((MANAGED, name.to_owned()));
            }
            ObjectKind::CustomResourceDefinition => {
                plain.insert(name);
            }
            _ => {}
        }
    }
    let is_made = |name: &str| !plain.contains(name) && split_definition_name(name).is_some();
    let derived = makers.into_iter().filter(|(name, _)| is_made(name));
    let derived = derived.map(|(name, makers)| {
        let target = Target {
            api_version: CRD.to_owned(),
            kind: "CustomResourceDefinition".to_owned(),
            namespace: None,
            name: name.to_owned(),
        };
        Derived { target, makers }
    });
    derived.collect()
}

impl Derived {
    /// How it is looked at: the package has no content for it.
    pub(super) fn as_wanted(&self) -> Wanted {
        Wanted { target: self.target.clone(), packaged: None }
    }

    fn is_made_by(&self, owner: &OwnerReference) -> bool {
        let mut makers = self.makers.iter();
        group(&owner.api_version) == CORE
            && makers.any(|(kind, name)| owner.kind == *kind && owner.name == *name)
    }

    /// Whose it is, if it is there and Crossplane did not make it of the package's.
    pub(super) fn find_standing<'w>(
        &self,
        world: &'w World,
        party: &Party,
    ) -> Option<(&'w Seen, Standing)> {
        let seen = world.seen.get(&self.target)?.as_ref()?;
        let is_made = controller(&seen.metadata).is_some_and(|one| self.is_made_by(one));
        (!is_made).then(|| (seen, party.standing(seen)))
    }

    /// Makes the package an owner of a definition that it was given or gets back, and that Crossplane
    /// has not made its own yet: what was given once is known as the package's from then on.
    pub(super) fn own_given(&self, world: &World, party: &Party) -> Option<Action> {
        let (seen, standing) = self.find_standing(world, party)?;
        let metadata = &seen.metadata;
        let is_free = metadata.deletion_timestamp.is_none() && controller(metadata).is_none();
        if standing != Standing::Ours || !is_free {
            return None;
        }
        owned(&self.target, seen, &party.with_package(metadata.owner_references.clone()))
    }
}

/// Takes away what the package has by kinds that another owner has by now: rights, which go by the
/// status's object references, and webhooks that only the kind's owner may have without permission.
/// Rights on composite resources go by the definitions themselves ([`crate::rbac::definition`]).
pub(super) fn give_up_kinds(
    world: &World,
    contents: &Contents,
    derived: &[Derived],
    draft: &mut Draft,
) -> Result<(), Halt> {
    let party = world.party();
    let is_others = |one: &&Derived| {
        let standing = one.find_standing(world, &party).map(|(_, standing)| standing);
        matches!(standing, Some(Standing::Theirs(_) | Standing::Foreign))
    };
    let others: BTreeSet<&str> =
        derived.iter().filter(is_others).map(|one| one.target.name.as_str()).collect();
    if others.is_empty() {
        return Ok(());
    }
    draft.forget_kinds(&others);
    let (judgement, _) = trust::judge_contents(world, contents, &others)?;
    if judgement.is_good() { Ok(()) } else { withdraw::webhooks(world, draft) }
}
