//! Whose an object is, and how that changes hands.
//!
//! An object that a package brought has one controller, its active revision, and more owners: the
//! package, and revisions that are inactive. The package among the owners says whose the object
//! is, also at moments when no revision controls it, so nobody else can take it then.
//!
//! Control goes from one revision of a package to the next in one write. There is no moment at
//! which an object has no owner, and none at which it has no controller.
//!
//! After a restore from a backup everybody has another uid. Owners are therefore known by kind and
//! name, and uids are put right.
//!
//! An object that no package brought is nobody's to take, unless an administrator gave it away
//! ([`crate::adoption`]).

use super::Seen;
use crate::adoption::{is_brought, is_given, is_package_owner};
use crate::control::group;
use api::meta::PackageKind;
use api::object::{ObjectMeta, OwnerReference};
use api::pkg::ANNOTATION_BROUGHT_BY;

/// Who wants an object: a revision on behalf of its package.
#[derive(Clone, Debug)]
pub(super) struct Party {
    /// The revision.
    pub(super) revision: OwnerReference,
    /// The package.
    pub(super) package: OwnerReference,
    /// The other revisions of the package.
    pub(super) siblings: Vec<Sibling>,
    /// How annotations name the package.
    pub(super) mark: String,
    /// The other packages there are: what annotations call them, and what people do.
    pub(super) neighbours: Vec<(String, String)>,
    /// Whether an administrator gave the package whatever is there already.
    pub(super) adopts_existing: bool,
}

/// Another revision of the same package.
#[derive(Clone, Debug)]
pub(super) struct Sibling {
    pub(super) name: String,
    pub(super) uid: String,
    /// Whether it wants to be in control, and so has to be waited for.
    pub(super) is_active: bool,
}

/// Whose an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Ours: a package brought it that is not there any more, or an administrator gave it to us.
    Ours,
    /// Ours, but another revision has not stepped back yet.
    Held(String),
    /// Somebody else's.
    Theirs(String),
    /// No package brought it, and no administrator gave it away.
    Foreign,
}

/// Whether two references are to one object by name, whatever its uid.
pub(super) fn is_named(one: &OwnerReference, other: &OwnerReference) -> bool {
    one.kind == other.kind
        && one.name == other.name
        && group(&one.api_version) == group(&other.api_version)
}

fn is_package(one: &OwnerReference) -> bool {
    PackageKind::ALL.iter().any(|kind| kind.as_str() == one.kind)
}

fn is_controller(one: &OwnerReference) -> bool {
    one.controller == Some(true)
}

/// The owner that controls an object.
pub(super) fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().find(|one| is_controller(one))
}

impl Party {
    /// Whose an object is, seen from here.
    pub(super) fn standing(&self, seen: &Seen) -> Standing {
        let metadata = &seen.metadata;
        let owners = &metadata.owner_references;
        let is_ours = owners.iter().any(|one| is_named(one, &self.package));
        let other = owners.iter().find(|one| self.is_other_package(one));
        let Some(controller) = controller(metadata) else {
            return match other {
                _ if is_ours => Standing::Ours,
                Some(other) => Standing::Theirs(format!("{} {}", other.kind, other.name)),
                None => self.uncontrolled(seen),
            };
        };
        if is_named(controller, &self.revision) {
            return Standing::Ours;
        }
        if self.is_our_kind(controller) {
            match self.sibling(controller) {
                Some(sibling) if sibling.is_active => return Standing::Held(sibling.name.clone()),
                Some(_) => return Standing::Ours,
                // A revision of ours that is gone by now.
                None if is_ours && other.is_none() => return Standing::Ours,
                None => {}
            }
        }
        // The revision changes with every upgrade; the package is whom people know.
        let package = owners.iter().find(|one| {
            is_package(one)
                && !is_named(one, &self.package)
                && group(&one.api_version) == group(&controller.api_version)
                && controller.kind == format!("{}Revision", one.kind)
                && controller.name.starts_with(one.name.as_str())
        });
        let whose = package.unwrap_or(controller);
        let (kind, name, theirs) = (&whose.kind, &whose.name, group(&whose.api_version));
        // Managers of two groups may have packages of one name.
        if package.is_some() && theirs != group(&self.revision.api_version) {
            return Standing::Theirs(format!("{kind} {name} of {theirs}"));
        }
        Standing::Theirs(format!("{kind} {name}"))
    }

    /// Whose an object is that nothing controls and no package owns.
    fn uncontrolled(&self, seen: &Seen) -> Standing {
        let metadata = &seen.metadata;
        let api_version = &self.revision.api_version;
        let mut owners = metadata.owner_references.iter();
        let is_released = owners.any(|one| is_package_owner(one, api_version));
        if is_released || self.adopts_existing || is_given(metadata, &self.mark) {
            return Standing::Ours;
        }
        // What lost its owners is still that of a package that is there.
        let marked = metadata.annotations.get(ANNOTATION_BROUGHT_BY);
        let neighbour = self.neighbours.iter().find(|(mark, _)| Some(mark) == marked);
        match neighbour {
            Some((_, whose)) => Standing::Theirs(whose.clone()),
            None if is_brought(metadata, api_version) || seen.is_written => Standing::Ours,
            None => Standing::Foreign,
        }
    }

    /// Whether the object is controlled by this very revision, by name.
    pub(super) fn controls(&self, metadata: &ObjectMeta) -> bool {
        controller(metadata).is_some_and(|one| is_named(one, &self.revision))
    }

    /// The owners once this revision is in control.
    pub(super) fn take(&self, owners: &[OwnerReference]) -> Vec<OwnerReference> {
        let controller = OwnerReference {
            controller: Some(true),
            block_owner_deletion: Some(true),
            ..self.revision.clone()
        };
        let mut taken: Vec<OwnerReference> =
            owners.iter().map(|one| self.stepped_back(one)).collect();
        put(&mut taken, controller);
        put(&mut taken, self.package.clone());
        taken
    }

    /// The owners once this revision is one of them, and no longer in control.
    pub(super) fn release(&self, owners: &[OwnerReference]) -> Vec<OwnerReference> {
        let mut released: Vec<OwnerReference> = owners.to_vec();
        let place = released.iter_mut().find(|one| is_named(one, &self.revision));
        match place {
            Some(one) => {
                one.uid.clone_from(&self.revision.uid);
                one.controller = one.controller.map(|_| false);
            }
            None => released.push(self.revision.clone()),
        }
        released
    }

    /// The same owners without the package.
    pub(super) fn without_package(&self, owners: Vec<OwnerReference>) -> Vec<OwnerReference> {
        owners.into_iter().filter(|one| !is_named(one, &self.package)).collect()
    }

    /// The same owners with the package, if it is known which that is.
    pub(super) fn with_package(&self, mut owners: Vec<OwnerReference>) -> Vec<OwnerReference> {
        if !self.package.uid.is_empty() {
            put(&mut owners, self.package.clone());
        }
        owners
    }

    /// Another revision of ours as an owner that is not in control, with the uid it has now.
    fn stepped_back(&self, one: &OwnerReference) -> OwnerReference {
        let mut one = one.clone();
        if self.is_our_kind(&one) && is_controller(&one) {
            one.controller = Some(false);
        }
        if let Some(sibling) = self.sibling(&one) {
            one.uid.clone_from(&sibling.uid);
        }
        one
    }

    fn is_our_kind(&self, one: &OwnerReference) -> bool {
        one.kind == self.revision.kind
            && group(&one.api_version) == group(&self.revision.api_version)
    }

    fn sibling(&self, one: &OwnerReference) -> Option<&Sibling> {
        let mut siblings = self.siblings.iter().filter(|_| self.is_our_kind(one));
        siblings.find(|sibling| sibling.name == one.name)
    }

    fn is_other_package(&self, one: &OwnerReference) -> bool {
        group(&one.api_version) == group(&self.revision.api_version)
            && is_package(one)
            && !is_named(one, &self.package)
    }
}

/// Puts an owner in the place of the one with its name, or at the end.
fn put(owners: &mut Vec<OwnerReference>, new: OwnerReference) {
    match owners.iter_mut().find(|one| is_named(one, &new)) {
        Some(old) => *old = new,
        None => owners.push(new),
    }
}
