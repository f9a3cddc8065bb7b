//! Packages to make, and packages to move.

use super::World;
use super::members::Members;
use super::origins;
use super::question::Question;
use super::report::Report;
use crate::image_config::Name;
use crate::step::{Action, Expect, Plan, Target};
use api::meta::PackageKind;
use api::pkg::{
    ANNOTATION_AUTOMATIC, ANNOTATION_CHOSEN_BECAUSE, ANNOTATION_CHOSEN_PACKAGE, Package,
};
use oci::Digest;
use serde_json::json;
use solver::{Change, Pin};
use std::collections::BTreeSet;
use xpkg::label::{friendly_id, to_dns_label};

/// What is to be done to package objects, what is needed first.
pub(super) fn packages(
    world: &World,
    members: &Members<'_>,
    question: &Question<'_>,
    report: &Report,
) -> Plan {
    let mut plan = Plan::default();
    let mut taken: BTreeSet<(String, String)> =
        world.packages.iter().map(|one| (one.kind.clone(), one.metadata.name.clone())).collect();
    for change in &report.changes {
        match change.name.as_deref().and_then(|label| members.by_label(label)) {
            None => install(world, question, change, &mut taken, &mut plan),
            Some(member) => {
                // Only who is where it should be is moved; a wish stays what somebody wrote.
                let is_settled = member.installed() == Some(member.wish());
                if is_settled && change.to != *member.wish() && change.to != member.asked {
                    plan.actions.push(set(member.package, &member.name.written, &change.to));
                }
            }
        }
    }
    plan
}

fn install(
    world: &World,
    question: &Question<'_>,
    change: &Change,
    taken: &mut BTreeSet<(String, String)>,
    plan: &mut Plan,
) {
    let Some(name) = question.directory.get(&change.source) else { return };
    let kind = change.kind.as_deref().and_then(known_kind);
    let Some(kind) = kind else {
        plan.report.push(format!("nobody says what kind of package {} is", change.source));
        return;
    };
    if leaving(world, question, change) {
        plan.report.push(format!(
            "{} is being deleted; it is installed again once it is gone",
            name.written
        ));
        return;
    }
    let (object, is_plain) = free_name(kind, name, taken);
    if !is_plain {
        plan.report.push(format!(
            "{} is called {object}, because its name is taken by another package",
            name.written
        ));
    }
    taken.insert((kind.as_str().to_owned(), object.clone()));
    let mut annotations = json!({ANNOTATION_AUTOMATIC: "true"});
    if let Some(reasons) = origins::write_reasons(question, &change.source) {
        annotations[ANNOTATION_CHOSEN_BECAUSE] = json!(reasons);
    }
    let object = json!({
        "apiVersion": format!("{}/v1", world.settings.group),
        "kind": kind.as_str(),
        "metadata": {"name": object, "annotations": annotations},
        "spec": {"package": image(&name.written, &change.to)},
    });
    plan.actions.push(Action::Apply { object, expect: Expect::Absent });
}

pub(super) fn known_kind(kind: &str) -> Option<PackageKind> {
    PackageKind::ALL.into_iter().find(|one| one.as_str() == kind)
}

/// Whether an object for the package is there, on its way out.
fn leaving(world: &World, question: &Question<'_>, change: &Change) -> bool {
    let mut going = world.packages.iter().filter(|one| one.metadata.deletion_timestamp.is_some());
    going.any(|package| {
        let name = question.sources.image(&package.spec.package);
        name.is_some_and(|name| name.source == change.source)
    })
}

/// The name upstream gives, or if another package has it, one that says where it is from.
pub(super) fn free_name(
    kind: PackageKind,
    name: &Name,
    taken: &BTreeSet<(String, String)>,
) -> (String, bool) {
    let plain = to_dns_label(name.repository.path());
    let is_free = |label: &String| {
        !label.is_empty() && !taken.contains(&(kind.as_str().to_owned(), label.clone()))
    };
    if is_free(&plain) {
        return (plain, true);
    }
    let whole = name.repository.to_string();
    let digest = Digest::of(whole.as_bytes());
    let long = to_dns_label(&whole);
    let hashed = friendly_id(&plain, digest.hex());
    (Some(long).filter(is_free).unwrap_or(hashed), false)
}

fn set(package: &Package, written: &str, to: &Pin) -> Action {
    let image = image(written, to);
    let change = if package.spec.crd.is_some() {
        json!({"metadata": {"annotations": {ANNOTATION_CHOSEN_PACKAGE: image}}})
    } else {
        json!({"spec": {"package": image}})
    };
    let expect = Expect::as_seen(&package.metadata);
    Action::Merge { target: target_of(package), change, expect }
}

/// An image as a package object names it.
pub(super) fn image(written: &str, pin: &Pin) -> String {
    let separator = if matches!(pin, Pin::Digest(_)) { '@' } else { ':' };
    format!("{written}{separator}{pin}")
}

pub(super) fn target_of(package: &Package) -> Target {
    Target {
        api_version: package.api_version.clone(),
        kind: package.kind.clone(),
        namespace: None,
        name: package.metadata.name.clone(),
    }
}

/// Whether an action is about an object.
pub(super) fn is_about(action: &Action, refused: &Target) -> bool {
    match action {
        Action::Apply { object, .. } => {
            object["kind"] == refused.kind && object["metadata"]["name"] == refused.name
        }
        Action::Merge { target, .. } | Action::Delete { target, .. } => target == refused,
        _ => false,
    }
}
