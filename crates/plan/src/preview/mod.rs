//! What would change, for people to read before anything does.
//!
//! The manager is played through on a cluster that is only imagined; what comes of it is a list of
//! objects before and after ([`Rehearsed`]). Here they are sorted by the packages they are about:
//! which are installed or moved and why, what becomes of the definitions they bring
//! ([`definition`]), what the API server calls them about ([`webhooks`]), what their controllers may do that they could not do before ([`rights`]), and
//! what runs them ([`runtime`]).

mod adoption;
mod definition;
mod objects;
mod rights;
mod runtime;
#[cfg(test)]
mod tests;
mod troubles;
mod webhooks;

pub use adoption::{Adoption, adoptions, obstacles};

use crate::lock::Report;
use crate::stacks::ANNOTATION_INSTALLS;
use api::condition::types;
use api::meta::PackageKind;
use api::pkg::LABEL_PACKAGE;
use api::pkg::revision::ACTIVE;
use oci::{Identifier, Reference, Rules};
use serde::Serialize;
use serde_json::Value as Json;
use std::cmp::Ordering;
use xpkg::version::Version;

/// An object before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// As it is; none if it is not there.
    pub before: Option<Json>,
    /// As it would be; none if it would be gone.
    pub after: Option<Json>,
}

/// What came of playing it through.
#[derive(Clone, Debug, Default)]
pub struct Rehearsed {
    /// Every object that would be another.
    pub changes: Vec<Change>,
    /// Why packages are there, and who is refused.
    pub report: Report,
    /// What could not be decided at all, in sentences.
    pub refused: Vec<String>,
    /// What was refused already, before anything was asked for.
    pub before: Report,
}

/// What would change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// Package by package; what is needed comes before what needs it.
    pub packages: Vec<PackagePreview>,
    /// What is in the way; with any of these, not everything above would happen.
    pub troubles: Vec<String>,
    /// What is wrong already, of packages that would not change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub standing: Vec<String>,
}

/// What would become of a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PackagePreview {
    /// For example `Provider`.
    pub kind: String,
    /// The name of its object.
    pub name: String,
    /// What is done to it.
    pub action: Action,
    /// The image it asks for now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The image it would ask for.
    pub to: String,
    /// Who needs it so; empty if only somebody asked for it.
    pub because: Vec<String>,
    /// The package that was installed automatically, and whose place it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// A revision that would wait for somebody to activate it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awaits_activation: Option<String>,
    /// Revisions that would go, because more are there than are to be kept.
    pub revisions_removed: Vec<String>,
    /// The objects it brings that would change.
    pub objects: Vec<ObjectPreview>,
    /// What its controller may do then and may not now.
    pub permissions_gained: Vec<String>,
    /// What its controller may do now and may not then.
    pub permissions_lost: Vec<String>,
    /// What would be told of definitions that stay although it no longer brings them, with how many
    /// objects each has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definitions_retained: Option<String>,
    /// What runs it, as far as that changes.
    pub runtime: Vec<String>,
}

/// What would be done to a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// It was not there.
    Install,
    /// To a higher version.
    Upgrade,
    /// To a lower version.
    Downgrade,
    /// To something that is neither.
    Switch,
    /// It asks for what it asked for, and something about it changes all the same.
    Keep,
}

/// What would become of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectPreview {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What is done to it.
    pub action: ObjectAction,
    /// How it differs, in short sentences.
    pub details: Vec<String>,
}

/// What would be done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ObjectAction {
    /// It is made.
    Add,
    /// It says something else.
    Change,
    /// The package no longer brings it; it stays while an older revision does.
    Keep,
    /// The package no longer brings it, and no revision does; it stays because of its objects.
    Retain,
    /// It goes. A definition that does has no objects.
    Remove,
}

impl Preview {
    /// What a rehearsal comes to.
    pub fn of(rehearsed: &Rehearsed) -> Self {
        let mut packages: Vec<(usize, PackagePreview)> = Vec::new();
        for change in &rehearsed.changes {
            let Some(kind) = package_kind(change) else { continue };
            let Some(after) = &change.after else { continue };
            let family = Family::new(rehearsed, kind, text(&after["metadata"]["name"]));
            let preview = family.preview(change, after);
            if !preview.is_empty() {
                packages.push((order(&rehearsed.report, &preview.name), preview));
            }
        }
        packages.sort_by(|one, two| (one.0, &one.1.name).cmp(&(two.0, &two.1.name)));
        let packages = packages.into_iter().map(|(_, preview)| preview).collect();
        let (troubles, standing) =
            (troubles::list_troubles(rehearsed), troubles::list_standing(rehearsed));
        Self { packages, troubles, standing }
    }

    /// Whether nothing would change.
    pub fn is_empty(&self) -> bool {
        self.packages.is_empty() && self.troubles.is_empty()
    }
}

impl PackagePreview {
    fn is_empty(&self) -> bool {
        self.action == Action::Keep
            && self.awaits_activation.is_none()
            && self.replaces.is_none()
            && self.revisions_removed.is_empty()
            && self.objects.is_empty()
            && self.permissions_gained.is_empty()
            && self.permissions_lost.is_empty()
            && self.runtime.is_empty()
    }
}

/// A package, and everything that would change because of it.
struct Family<'a> {
    rehearsed: &'a Rehearsed,
    kind: PackageKind,
    name: &'a str,
    revisions: Vec<&'a Change>,
}

impl<'a> Family<'a> {
    fn new(rehearsed: &'a Rehearsed, kind: PackageKind, name: &'a str) -> Self {
        let revision = format!("{}Revision", kind.as_str());
        let is_its = |change: &&Change| {
            let object = either(change);
            object["kind"] == *revision && object["metadata"]["labels"][LABEL_PACKAGE] == *name
        };
        let revisions = rehearsed.changes.iter().filter(is_its).collect();
        Self { rehearsed, kind, name, revisions }
    }

    fn preview(&self, change: &Change, after: &Json) -> PackagePreview {
        let image = |object: &Json| text(&object["spec"]["package"]).to_owned();
        let from = change.before.as_ref().map(image);
        let to = image(after);
        let (permissions_gained, permissions_lost) = rights::difference(self);
        PackagePreview {
            kind: self.kind.as_str().to_owned(),
            name: self.name.to_owned(),
            action: action(from.as_deref(), &to),
            because: self.because(after),
            replaces: self.replaced(),
            awaits_activation: self.awaits_activation(),
            revisions_removed: self.removed().map(|one| name(either(one)).to_owned()).collect(),
            objects: objects::of(self),
            permissions_gained,
            permissions_lost,
            definitions_retained: self.definitions_retained(),
            runtime: runtime::of(self),
            from,
            to,
        }
    }

    /// Who needs it, each with what they accept.
    fn because(&self, after: &Json) -> Vec<String> {
        let installs = text(&after["metadata"]["annotations"][ANNOTATION_INSTALLS]).split(',');
        let installs = installs.filter(|key| !key.is_empty());
        let asked = installs.map(|key| format!("the install object {key} asks for it"));
        let report = &self.rehearsed.report;
        let source = report.names.get(self.name);
        let change = report.changes.iter().find(|one| Some(&one.source) == source);
        let needs = change.into_iter().flat_map(|change| &change.because);
        let called = |source: &solver::Source| {
            let known = report.names.iter().find(|(_, one)| *one == source);
            known.map_or_else(|| source.as_str().to_owned(), |(name, _)| name.clone())
        };
        needs
            .map(|one| format!("{} {} needs {}", called(&one.source), one.pin, one.wants))
            .chain(asked)
            .collect()
    }

    /// The package that the revisions were of that are this one's afterwards.
    fn replaced(&self) -> Option<String> {
        let before = self.revisions.iter().filter_map(|one| one.before.as_ref());
        let mut packages = before.map(|one| text(&one["metadata"]["labels"][LABEL_PACKAGE]));
        packages.find(|package| *package != self.name).map(str::to_owned)
    }

    fn awaits_activation(&self) -> Option<String> {
        let is_new = |one: &&&Change| one.before.is_none();
        let waits = self.revisions.iter().filter(is_new).filter_map(|one| one.after.as_ref());
        let mut waits = waits.filter(|one| one["spec"]["desiredState"] != ACTIVE);
        waits.next().map(|one| name(one).to_owned())
    }

    /// What the active revision would say of definitions that stay.
    fn definitions_retained(&self) -> Option<String> {
        let stay = self.revisions.iter().filter(|one| !is_gone(one));
        let mut active = stay
            .filter_map(|one| one.after.as_ref())
            .filter(|one| one["spec"]["desiredState"] == ACTIVE);
        let conditions = active.next()?["status"]["conditions"].as_array()?;
        let said = conditions.iter().find(|one| one["type"] == types::DEFINITIONS_RETAINED)?;
        Some(text(&said["message"]).to_owned()).filter(|_| said["status"] == "True")
    }

    /// Revisions that go.
    fn removed(&self) -> impl Iterator<Item = &'a Change> {
        self.revisions.iter().copied().filter(|one| one.before.is_some() && is_gone(one))
    }

    /// Changes of objects of which a revision of the package, or the package, is an owner.
    fn owned(&self) -> impl Iterator<Item = &'a Change> {
        let revisions: Vec<&str> = self.revisions.iter().map(|one| name(either(one))).collect();
        let (package, own) = (self.kind.as_str(), self.name);
        let revision = format!("{package}Revision");
        self.rehearsed.changes.iter().filter(move |change| {
            let owners = either(change)["metadata"]["ownerReferences"].as_array();
            owners.into_iter().flatten().any(|owner| {
                let (kind, name) = (&owner["kind"], text(&owner["name"]));
                (*kind == *package && name == own)
                    || (*kind == *revision && revisions.contains(&name))
            })
        })
    }
}

fn package_kind(change: &Change) -> Option<PackageKind> {
    let object = either(change);
    let is_ours = text(&object["apiVersion"]).starts_with("pkg.");
    let kinds = PackageKind::ALL.into_iter().filter(|_| is_ours);
    kinds.into_iter().find(|kind| object["kind"] == kind.as_str())
}

/// What a change is about, whether it comes or goes.
fn either(change: &Change) -> &Json {
    const NOTHING: &Json = &Json::Null;
    change.after.as_ref().or(change.before.as_ref()).unwrap_or(NOTHING)
}

fn is_gone(change: &Change) -> bool {
    change.after.as_ref().is_none_or(|after| !after["metadata"]["deletionTimestamp"].is_null())
}

fn text(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

fn name(object: &Json) -> &str {
    text(&object["metadata"]["name"])
}

/// Where a package comes among those that need each other.
fn order(report: &Report, name: &str) -> usize {
    let source = report.names.get(name);
    let found = report.changes.iter().position(|change| Some(&change.source) == source);
    found.unwrap_or(usize::MAX)
}

fn action(from: Option<&str>, to: &str) -> Action {
    let Some(from) = from else { return Action::Install };
    if from == to {
        return Action::Keep;
    }
    let version = |image: &str| {
        let reference = Reference::parse(image, &Rules::weak().any_digest()).ok()?;
        let Identifier::Tag(tag) = reference.identifier() else { return None };
        Version::parse(tag).ok()
    };
    match version(from).zip(version(to)).map(|(from, to)| from.cmp(&to)) {
        Some(Ordering::Less) => Action::Upgrade,
        Some(Ordering::Greater) => Action::Downgrade,
        Some(Ordering::Equal) | None => Action::Switch,
    }
}
