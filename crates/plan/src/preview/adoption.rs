//! What of an administrator's own objects a package would take over.

use super::troubles::trouble_of;
use super::{Change, Family, Rehearsed, definition, name, objects, text};
use crate::adoption;
use crate::control::controller_of;
use api::meta::PackageKind;
use api::pkg::{LABEL_PACKAGE, LABEL_REVISION};
use serde::Serialize;
use serde_json::Value as Json;

/// An object that no package brought, and how it would be another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Adoption {
    /// The version of its API.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace, if its kind has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Which object of that name was looked at.
    pub uid: String,
    /// In which state.
    pub resource_version: String,
    /// How it would differ, in short sentences; it stays as it is if there are none.
    pub details: Vec<String>,
}

/// What is told of a definition that Crossplane makes of one of the package's.
const UNDERLYING: &str =
    "Crossplane makes it what the package's definition of managed or composite resources says";

/// The objects that a package would take over, in a rehearsal in which it may.
pub fn adoptions(rehearsed: &Rehearsed, kind: PackageKind, package: &str) -> Vec<Adoption> {
    let family = Family::new(rehearsed, kind, package);
    let mut found: Vec<Adoption> = family.owned().filter_map(adopted).collect();
    found.sort_by(|one, two| (&one.kind, &one.name).cmp(&(&two.kind, &two.name)));
    found
}

/// What else is in the way of a package there; what is in the way of others is no business of
/// those who give it something.
pub fn obstacles(rehearsed: &Rehearsed, kind: PackageKind, package: &str) -> Vec<String> {
    let is_its = |change: &&Change| {
        let Some(after) = &change.after else { return false };
        match text(&after["kind"]).strip_suffix("Revision") {
            Some(of) => {
                of == kind.as_str() && after["metadata"]["labels"][LABEL_PACKAGE] == package
            }
            None => after["kind"] == kind.as_str() && name(after) == package,
        }
    };
    let changes = rehearsed.changes.iter().filter(is_its);
    let mut found: Vec<String> = changes.flat_map(trouble_of).collect();
    let conflicts = rehearsed.report.conflicts.iter().filter(|one| one.name == package);
    found.extend(conflicts.map(|one| format!("{one}; hint: {}", one.hint)));
    found
}

fn adopted(change: &Change) -> Option<Adoption> {
    let (before, after) = (change.before.as_ref()?, change.after.as_ref()?);
    if !is_foreign(before, after) {
        return None;
    }
    let details = if controller_of(after).is_none() {
        vec![UNDERLYING.to_owned()]
    } else if definition::is_one(after) {
        definition::difference(before, after)
    } else {
        objects::differences(before, after)
    };
    let metadata = &before["metadata"];
    Some(Adoption {
        api_version: text(&after["apiVersion"]).to_owned(),
        kind: text(&after["kind"]).to_owned(),
        namespace: metadata["namespace"].as_str().map(str::to_owned),
        name: name(after).to_owned(),
        uid: text(&metadata["uid"]).to_owned(),
        resource_version: text(&metadata["resourceVersion"]).to_owned(),
        details,
    })
}

/// The package that an object goes with which no revision controls.
fn package_of(object: &Json) -> Option<&Json> {
    let mut owners = object["metadata"]["ownerReferences"].as_array()?.iter();
    owners.find(|one| PackageKind::ALL.iter().any(|kind| one["kind"] == kind.as_str()))
}

/// Whether an object was nobody's and would be a package's.
fn is_foreign(before: &Json, after: &Json) -> bool {
    let Some(owner) = controller_of(after).or_else(|| package_of(after)) else { return false };
    let selector = &before["spec"]["selector"];
    let selects = |one: &Json| !one[LABEL_REVISION].is_null();
    let is_known = controller_of(before).is_some()
        || adoption::is_brought(
            &adoption::metadata_of(before),
            owner["apiVersion"].as_str().unwrap_or_default(),
        )
        || adoption::is_written(before)
        || selects(selector)
        || selects(&selector["matchLabels"]);
    !is_known
}
