//! Definitions that a package no longer brings, and the objects that live by them.
//!
//! A version may drop a definition that an older one brought. The revision that brought it keeps it,
//! and would take it along when it leaves the history, and with it every object of its kind. Objects
//! are not the package's: while there are any, the definition stays with the package, which says so,
//! until an administrator removes it or gives it up (`apron prune`). Who cannot be asked for objects
//! is taken to have some.

use crate::control::{group, is_named};
use crate::step::Target;
use api::condition::{self, Condition, types};
use api::meta::PackageKind;
use api::object::{ObjectMeta, OwnerReference};
use api::pkg::revision::{Revision, TypedReference};
use api::pkg::{ANNOTATION_BROUGHT_BY, LABEL_RETAINED, Package};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;

/// How many objects there are of a definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instances {
    /// So many were found.
    pub least: u64,
    /// Whether those are all.
    pub is_exact: bool,
}

/// Where objects of a definition are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    /// The version of their API.
    pub api_version: String,
    /// What the API calls them.
    pub plural: String,
    /// Their kind.
    pub kind: String,
}

impl Instances {
    /// Exactly so many.
    pub fn exactly(count: u64) -> Self {
        Self { least: count, is_exact: true }
    }

    /// Whether there are none for certain.
    pub fn is_none(self) -> bool {
        self.is_exact && self.least == 0
    }

    /// All of these together.
    #[must_use]
    pub fn and(self, more: Self) -> Self {
        let least = self.least.saturating_add(more.least);
        Self { least, is_exact: self.is_exact && more.is_exact }
    }
}

impl std::fmt::Display for Instances {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.least, self.is_exact) {
            (0, true) => write!(out, "no objects"),
            (0, false) => write!(out, "objects that cannot be counted"),
            (1, true) => write!(out, "1 object"),
            (count, true) => write!(out, "{count} objects"),
            (count, false) => write!(out, "at least {count} objects"),
        }
    }
}

/// Whether objects of other kinds live by objects of this one.
pub fn is_definition(kind: &str) -> bool {
    matches!(
        kind,
        "CustomResourceDefinition" | "ManagedResourceDefinition" | "CompositeResourceDefinition"
    )
}

/// The kinds of definitions that packages of a kind bring, with the versions of their APIs.
pub fn definitions(of: PackageKind) -> &'static [(&'static str, &'static str)] {
    match of {
        PackageKind::Provider => &[
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
            ("apiextensions.crossplane.io/v1alpha1", "ManagedResourceDefinition"),
        ],
        PackageKind::Configuration => {
            &[("apiextensions.crossplane.io/v1", "CompositeResourceDefinition")]
        }
        PackageKind::Function => &[],
    }
}

/// Where the objects of a definition are: those of its kind, and the claims on them. None if it
/// serves no version, so that they cannot be asked for.
pub fn collections(definition: &Json) -> Vec<Collection> {
    let spec = &definition["spec"];
    let served = spec["versions"].as_array().into_iter().flatten();
    let version = served.into_iter().find(|one| one["served"] == true);
    let version = version.and_then(|one| one["name"].as_str());
    let Some((group, version)) = spec["group"].as_str().zip(version) else { return Vec::new() };
    let names = ["names", "claimNames"].iter().map(|field| &spec[*field]);
    let found =
        names.filter_map(|names| Some((names["plural"].as_str()?, names["kind"].as_str()?)));
    found
        .map(|(plural, kind)| Collection {
            api_version: format!("{group}/{version}"),
            plural: plural.to_owned(),
            kind: kind.to_owned(),
        })
        .collect()
}

/// The definitions that a revision says it brings.
pub fn brought(revision: &Revision) -> impl Iterator<Item = Target> {
    let references = revision.status.iter().flat_map(|status| status.object_refs.iter().flatten());
    let definitions = references.filter(|one| is_definition(&one.kind));
    definitions.map(|TypedReference { api_version, kind, name, .. }| Target {
        api_version: api_version.clone(),
        kind: kind.clone(),
        namespace: None,
        name: name.clone(),
    })
}

/// The definitions that a package may have and does not bring: those of other revisions, and those
/// that are marked as kept for it, less what it brings.
pub fn dropped(
    brought: &BTreeSet<Target>,
    others: impl IntoIterator<Item = Target>,
) -> BTreeSet<Target> {
    let brought: BTreeSet<(&str, &str)> =
        brought.iter().map(|one| (one.kind.as_str(), one.name.as_str())).collect();
    let is_dropped = |one: &Target| !brought.contains(&(one.kind.as_str(), one.name.as_str()));
    others.into_iter().filter(is_dropped).collect()
}

/// Whether a package, or a revision of it, owns an object.
pub fn is_owned(metadata: &ObjectMeta, package: &Package, revisions: &[Revision]) -> bool {
    metadata.owner_references.iter().any(|one| is_owner(one, package, revisions))
}

fn is_owner(one: &OwnerReference, package: &Package, revisions: &[Revision]) -> bool {
    let is_package = one.kind == package.kind
        && one.name == package.metadata.name
        && group(&one.api_version) == group(&package.api_version);
    is_package || revisions.iter().any(|revision| is_named(one, revision))
}

/// How a definition is given up: neither the package nor a revision of it owns it any more, and
/// nothing says that it came with them, so that another package may bring it.
pub fn released(metadata: &ObjectMeta, package: &Package, revisions: &[Revision]) -> Json {
    let owners = metadata.owner_references.iter();
    let left: Vec<&OwnerReference> =
        owners.filter(|one| !is_owner(one, package, revisions)).collect();
    json!({"metadata": {
        "uid": metadata.uid, "resourceVersion": metadata.resource_version,
        "ownerReferences": left,
        "labels": {LABEL_RETAINED: null},
        "annotations": {ANNOTATION_BROUGHT_BY: null},
    }})
}

/// A definition that a package no longer brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retained {
    /// Which.
    pub target: Target,
    /// How many objects live by it.
    pub instances: Instances,
    /// Whether it stays however many objects there are: no revision brings it.
    pub is_kept: bool,
}

impl Retained {
    /// Whether it stays when the revisions that brought it are gone.
    pub fn stays(&self) -> bool {
        self.is_kept || !self.instances.is_none()
    }

    fn told(&self) -> String {
        format!("{} ({})", self.target.name, self.instances)
    }
}

/// What is said of definitions that a package no longer brings: whether some of them stay, why in a
/// word, and a sentence. Nothing if there are none.
pub fn told(all: &[Retained], package: &str) -> Option<(bool, &'static str, String)> {
    const SHOWN_MAX: usize = 20;
    let (stay, go): (Vec<&Retained>, Vec<&Retained>) = all.iter().partition(|one| one.stays());
    let list = |some: &[&Retained], tell: fn(&Retained) -> String| {
        let shown: Vec<String> = some.iter().take(SHOWN_MAX).map(|one| tell(one)).collect();
        match some.len().saturating_sub(SHOWN_MAX) {
            0 => shown.join(", "),
            more => format!("{} and {more} more", shown.join(", ")),
        }
    };
    if !stay.is_empty() {
        let message = format!(
            "no longer part of the package, and kept for their objects: {}; `apron prune {package} \
             --dry-run` shows what can be removed or given up",
            list(&stay, Retained::told)
        );
        return Some((true, "ObjectsExist", message));
    }
    if go.is_empty() {
        return None;
    }
    let message = format!(
        "no longer part of the package, without objects; they go with the last revision that \
         brought them: {}",
        list(&go, |one| one.target.name.clone())
    );
    Some((false, "NoObjects", message))
}

/// What was said of definitions that a package no longer brings, if some of them stay.
pub fn retaining(conditions: &[Condition]) -> Option<&Condition> {
    let said = condition::find(conditions, types::DEFINITIONS_RETAINED);
    said.filter(|one| one.status == "True")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn retained(name: &str, instances: Instances, is_kept: bool) -> Retained {
        let target = Target {
            api_version: "apiextensions.k8s.io/v1".to_owned(),
            kind: "CustomResourceDefinition".to_owned(),
            namespace: None,
            name: name.to_owned(),
        };
        Retained { target, instances, is_kept }
    }

    #[test]
    fn objects_are_where_the_first_served_version_is_and_claims_count_too() {
        let versions = json!([
            {"name": "v1alpha1", "served": false}, {"name": "v1", "served": true}, {"name": "v2", "served": true},
        ]);
        let definition = json!({"spec": {
            "group": "example.org", "versions": versions,
            "names": {"kind": "XThing", "plural": "xthings"},
            "claimNames": {"kind": "Thing", "plural": "things"},
        }});
        let found: Vec<String> = collections(&definition)
            .into_iter()
            .map(|one| format!("{}/{} {}", one.api_version, one.plural, one.kind))
            .collect();
        assert_eq!(found, ["example.org/v1/xthings XThing", "example.org/v1/things Thing"]);
        let unserved = json!({"spec": {
            "group": "example.org", "versions": [{"name": "v1", "served": false}],
            "names": {"kind": "Thing", "plural": "things"},
        }});
        assert_eq!(collections(&unserved), []);
    }

    #[test]
    fn what_cannot_be_counted_is_taken_to_be_there() {
        let unknown = Instances::default();
        let cases = [
            (Instances::exactly(0), true, "no objects"),
            (Instances::exactly(1), false, "1 object"),
            (Instances::exactly(2).and(Instances::exactly(3)), false, "5 objects"),
            (unknown, false, "objects that cannot be counted"),
            (unknown.and(Instances::exactly(2)), false, "at least 2 objects"),
        ];
        for (instances, is_none, words) in cases {
            assert_eq!((instances.is_none(), instances.to_string().as_str()), (is_none, words));
        }
    }

    #[test]
    fn definitions_that_stay_are_told_before_those_that_go() {
        let none = Instances::exactly(0);
        let busy = retained("a.example.org", Instances::exactly(3), false);
        let (idle, kept) = (retained("b.example.org", none, false), retained("c", none, true));
        let told = |all: &[Retained]| told(all, "p");
        assert_eq!(told(&[]), None);
        let (is_true, why, message) = told(&[busy, idle.clone(), kept]).unwrap();
        assert_eq!((is_true, why), (true, "ObjectsExist"));
        assert!(message.contains("a.example.org (3 objects), c (no objects); `apron prune p"));
        let (is_true, why, message) = told(&[idle]).unwrap();
        assert_eq!((is_true, why), (false, "NoObjects"));
        assert!(message.ends_with("brought them: b.example.org"), "{message}");
    }
}
