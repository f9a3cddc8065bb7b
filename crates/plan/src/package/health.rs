//! How a package is, told from how its revision is.

use super::{ACTIVE, World};
use api::condition::{self, Condition, reasons, types};
use api::meta::PackageKind;
use api::pkg::revision::Revision;
use api::pkg::{ImageConfigRef, PackageStatus};

/// The condition `Healthy` of a package whose revision is this one; `otherwise` is what there is
/// to say when there is none.
pub(super) fn of_package(
    world: &World,
    revision: Option<&Revision>,
    otherwise: Option<&str>,
) -> Condition {
    let conditions = revision.map(Revision::conditions).unwrap_or_default();
    // What waits to be activated runs nothing, and nothing is wrong with that.
    let is_active = revision.is_none_or(|one| one.spec.desired_state == ACTIVE);
    let runs = world.kind != PackageKind::Configuration && is_active;
    let unhealthy =
        |message: String| world.condition(types::HEALTHY, false, reasons::UNHEALTHY, Some(message));
    if let (None, Some(why)) = (revision, otherwise) {
        return unhealthy(why.to_owned());
    }
    let revision = told(conditions, types::REVISION_HEALTHY);
    if revision.0 != "True" {
        return unhealthy(format!("Package revision health is {}", quoted(&revision)));
    }
    let awaiting = condition::find(conditions, types::RUNTIME_ACTIVE)
        .filter(|active| active.reason == reasons::AWAITING_ACTIVATION);
    let runtime = told(conditions, types::RUNTIME_HEALTHY);
    if runs && runtime.0 != "True" {
        let asleep =
            if awaiting.is_some() { "; runtime is scaled to zero awaiting activation" } else { "" };
        return unhealthy(format!("Package runtime health is {}{asleep}", quoted(&runtime)));
    }
    match awaiting {
        Some(active) => {
            let reason = reasons::AWAITING_ACTIVATION;
            world.condition(types::HEALTHY, true, reason, active.message.clone())
        }
        None => world.condition(types::HEALTHY, true, reasons::HEALTHY, None),
    }
}

/// Whether what an active revision says is about what is asked for of it now.
pub(super) fn is_current(world: &World, revision: &Revision) -> bool {
    let is_past = |of: &str| {
        let said = condition::find(revision.conditions(), of);
        said.is_some_and(|one| one.is_past(revision.metadata.generation))
    };
    // Who else runs packages need not say which state of them.
    let is_run_here = world.settings.runs_packages;
    let is_past =
        is_past(types::REVISION_HEALTHY) || is_run_here && is_past(types::RUNTIME_HEALTHY);
    !is_past
}

/// The status and message of a condition; nobody knows when it is not there.
fn told(conditions: &[Condition], of: &str) -> (String, Option<String>) {
    condition::find(conditions, of).map_or_else(
        || ("Unknown".to_owned(), None),
        |one| (one.status.clone(), one.message.clone().filter(|message| !message.is_empty())),
    )
}

fn quoted((status, message): &(String, Option<String>)) -> String {
    match message {
        Some(message) => format!("{status:?} with message: {message}"),
        None => format!("{status:?}"),
    }
}

/// What a package said of something before.
pub(super) fn said(status: &PackageStatus, of: &str) -> Option<Condition> {
    condition::find(status.conditions.as_deref().unwrap_or_default(), of).cloned()
}

/// Purposes that are decided when a package is fetched; others are somebody else's to record.
const FETCHING: [&str; 3] = ["RewriteImage", "SetImagePullSecret", "VerifyImage"];

/// What was applied before for other purposes, and now for fetching.
pub(crate) fn applied(
    before: &[ImageConfigRef],
    now: &[ImageConfigRef],
) -> Option<Vec<ImageConfigRef>> {
    let is_ours = |one: &&ImageConfigRef| FETCHING.contains(&one.reason.as_str());
    let others = before.iter().filter(|one| !is_ours(one));
    let all: Vec<ImageConfigRef> = others.chain(now.iter().filter(is_ours)).cloned().collect();
    (!all.is_empty()).then_some(all)
}
