//! What is told about a revision.

use super::underlying::MANAGED;
use super::{Trouble, World};
use crate::authority::{Asked, rules};
use crate::lock::Counts;
use crate::package::pull::RECHECK;
use crate::retention::retaining;
use crate::step::{Action, Expect, Plan, Wake};
use api::condition::{self, Condition, reasons, types};
use api::pkg::ANNOTATION_PAUSED;
use api::pkg::revision::{PolicyRule, RevisionStatus, TypedReference};
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// The status as it will be, made as things become known.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) status: RevisionStatus,
    /// What else there is to tell once, when the revision is well.
    pub(super) remark: Option<String>,
}

impl Draft {
    /// The status as it was seen; work goes on, so nothing says any more that it does not.
    pub(super) fn of(world: &World) -> Self {
        let mut status = world.revision.status.clone().unwrap_or_default();
        if let Some(conditions) = &mut status.conditions {
            conditions.retain(|one| one.reason != reasons::PAUSED);
        }
        Self { status, remark: None }
    }

    /// All is well, once this is done.
    pub(super) fn healthy(&self, world: &World, mut actions: Vec<Action>, odd: &[String]) -> Plan {
        let was_healthy = self.is_healthy();
        let mut status = self.status.clone();
        set(&mut status, world, types::REVISION_HEALTHY, true, reasons::HEALTHY, None);
        actions.extend(write(world, &status));
        if let Some(said) = newly_retained(world, &status) {
            actions.push(event(world, true, "RetainDefinitions", said));
        }
        if !was_healthy {
            let message = "Successfully reconciled package revision".to_owned();
            actions.push(event(world, false, "SyncPackage", message));
            if !odd.is_empty() {
                let message =
                    format!("linting package contents failed: {}; left out", super::listing(odd));
                actions.push(event(world, true, "LintPackage", message));
            }
            let remark = self.remark.clone();
            actions.extend(remark.map(|remark| event(world, true, "LintPackage", remark)));
        }
        Plan { actions, report: odd.to_vec(), wake: Wake::OnChange }
    }

    /// Something is in the way, and the revision says so.
    pub(super) fn troubled(&self, world: &World, trouble: Trouble) -> Plan {
        let Trouble { event: told, reason: why, message, wake } = trouble;
        let mut status = self.status.clone();
        set(&mut status, world, types::REVISION_HEALTHY, false, why, Some(message.clone()));
        let mut actions: Vec<Action> = write(world, &status).into_iter().collect();
        if let Some(reason) = told.filter(|_| !actions.is_empty()) {
            actions.push(event(world, true, reason, message.clone()));
        }
        Plan { actions, report: vec![message], wake }
    }

    /// The same, and this is done about it first.
    pub(super) fn departing(&self, world: &World, mut first: Vec<Action>, message: String) -> Plan {
        let (event, reason, wake) = (None, reasons::TERMINATING, Wake::After(RECHECK));
        let told = self.troubled(world, Trouble { event, reason, message, wake });
        first.extend(told.actions);
        Plan { actions: first, ..told }
    }

    /// What it needs, in numbers; none is not written.
    pub(super) fn count(&mut self, counts: &Counts) {
        let count = |count: usize| i64::try_from(count).ok().filter(|count| *count != 0);
        self.status.found_dependencies = count(counts.found);
        self.status.installed_dependencies = count(counts.installed);
        self.status.invalid_dependencies = count(counts.invalid);
    }

    /// What the package asks for, for those who decide about it; none is not written.
    pub(super) fn ask(&mut self, asked: &Asked) {
        let all = asked.all();
        let is_shown = !all.is_empty() && rules::excess(&all).is_none();
        self.status.permission_requests =
            is_shown.then(|| all.iter().map(PolicyRule::from).collect());
    }

    /// The objects of the package.
    pub(super) fn refer(&mut self, to: Vec<TypedReference>) {
        self.status.object_refs = Some(to).filter(|all| !all.is_empty());
    }

    /// Drops definitions of managed resources whose kinds are another owner's: roles give no rights on
    /// them for the package.
    pub(super) fn forget_kinds(&mut self, names: &BTreeSet<&str>) {
        let mut told = self.status.object_refs.take().unwrap_or_default();
        told.retain(|one| one.kind != MANAGED || !names.contains(one.name.as_str()));
        self.refer(told);
    }

    /// Definitions that the package no longer brings: whether some stay, why, and a sentence.
    pub(super) fn retain(&mut self, world: &World, told: Option<(bool, &'static str, String)>) {
        let of = types::DEFINITIONS_RETAINED;
        if let Some((stay, why, said)) = told {
            set(&mut self.status, world, of, stay, why, Some(said));
        } else if let Some(conditions) = &mut self.status.conditions {
            conditions.retain(|one| one.condition_type != of);
        }
    }

    /// The image is signed as it should be.
    pub(super) fn verified(&mut self, world: &World, message: String) {
        let (of, why) = (types::VERIFIED, reasons::VERIFIED);
        set(&mut self.status, world, of, true, why, Some(message));
    }

    /// The image is not signed as it should be, or nobody can tell.
    pub(super) fn unverified(&mut self, world: &World, why: &str) {
        let (of, reason) = (types::VERIFIED, reasons::UNVERIFIED);
        set(&mut self.status, world, of, false, reason, Some(why.to_owned()));
    }

    /// Nobody asks whether the image is signed.
    pub(super) fn unasked(&mut self) {
        if let Some(conditions) = &mut self.status.conditions {
            conditions.retain(|one| one.condition_type != types::VERIFIED);
        }
    }

    fn is_healthy(&self) -> bool {
        let conditions = self.status.conditions.as_deref().unwrap_or_default();
        condition::find(conditions, types::REVISION_HEALTHY).is_some_and(|one| one.status == "True")
    }
}

/// What is told of definitions that stay, if it is news.
fn newly_retained(world: &World, status: &RevisionStatus) -> Option<String> {
    let now = retaining(status.conditions.as_deref().unwrap_or_default())?;
    let was = retaining(world.revision.conditions());
    now.message.clone().filter(|_| was.is_none())
}

/// Nothing is done to a revision that somebody paused.
pub(super) fn paused(world: &World) -> Plan {
    let message = "Reconciliation (including deletion) is paused via the pause annotation";
    let mut status = world.revision.status.clone().unwrap_or_default();
    let (of, why) = (types::SYNCED, reasons::PAUSED);
    set(&mut status, world, of, false, why, Some(message.to_owned()));
    let mut actions: Vec<Action> = write(world, &status).into_iter().collect();
    if !actions.is_empty() {
        actions.push(event(world, false, "ReconciliationPaused", message.to_owned()));
    }
    let report = vec![format!("the annotation {ANNOTATION_PAUSED} stops all work on it")];
    Plan { actions, report, wake: Wake::OnChange }
}

fn set(
    status: &mut RevisionStatus,
    world: &World,
    of: &str,
    is_true: bool,
    reason: &str,
    message: Option<String>,
) {
    let new = Condition {
        condition_type: of.to_owned(),
        status: if is_true { "True" } else { "False" }.to_owned(),
        last_transition_time: world.now.clone(),
        reason: reason.to_owned(),
        message,
        observed_generation: world.revision.metadata.generation,
        ..Condition::default()
    };
    condition::set(status.conditions.get_or_insert_default(), new);
}

/// The status, if it is not what was seen.
fn write(world: &World, status: &RevisionStatus) -> Option<Action> {
    (world.revision.status.as_ref() != Some(status)).then(|| Action::Status {
        target: world.target(),
        status: serde_json::to_value(status).unwrap_or(Json::Null),
        expect: Expect::as_seen(&world.revision.metadata),
    })
}

fn event(world: &World, is_warning: bool, reason: &'static str, message: String) -> Action {
    Action::Event { target: world.target(), is_warning, reason, message }
}
