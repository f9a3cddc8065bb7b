//! What an install object says about itself.

use super::parties::namespace_of;
use super::{InstallWorld, retry};
use crate::step::{Action, Expect, Plan, Target, Wake};
use api::condition::{self, Condition, types};
use api::pkg::ANNOTATION_PAUSED;
use api::stacks::{InstallConditions, InstallReference, PackageInstallStatus, RECORD};
use oci::Reference;
use serde_json::{Value as Json, json};

/// The package is there and does what it should.
const READY: &str = "Ready";
/// The package is being installed.
const CREATING: &str = "Creating";

impl InstallWorld {
    /// What becomes of the package, once this is done.
    pub(super) fn tell_progress(
        &self,
        mut actions: Vec<Action>,
        image: &Reference,
        trouble: Option<String>,
    ) -> Plan {
        if let Some(why) = trouble {
            let told = self.tell_trouble(why);
            actions.extend(told.actions);
            // What decides about it is watched.
            return Plan { actions, report: told.report, wake: Wake::OnChange };
        }
        let health = self.provider_health(image);
        let mut conditions = self.conditions();
        let ready = match &health {
            Ok(()) => self.condition(READY, true, "Available", None),
            Err(why) => self.condition(READY, false, CREATING, Some(why.clone())),
        };
        let synced = self.condition(types::SYNCED, true, "ReconcileSuccess", None);
        conditions.retain(|one| one.condition_type != CREATING);
        condition::set(&mut conditions, ready.clone());
        condition::set(&mut conditions, synced);
        if health.is_err() {
            let was = self.conditions();
            let before = condition::find(&was, CREATING).cloned();
            let creating = || self.condition(CREATING, true, CREATING, None);
            conditions.push(before.unwrap_or_else(creating));
        }
        let recorded = self.tell_record(&actions, &ready);
        actions.extend(recorded);
        if let Some(written) = self.write_status(conditions) {
            actions.push(written);
            actions.extend(self.news(&health));
        }
        Plan { actions, report: Vec::new(), wake: Wake::OnChange }
    }

    /// Something is in the way, and nothing is done until it is mended.
    pub(super) fn tell_trouble(&self, why: String) -> Plan {
        let mut conditions = self.conditions();
        let said = Some(why.clone());
        conditions.retain(|one| one.condition_type != CREATING);
        if condition::find(&conditions, READY).is_none_or(|one| one.status != "True") {
            condition::set(&mut conditions, self.condition(READY, false, CREATING, said.clone()));
        }
        let synced = self.condition(types::SYNCED, false, "ReconcileError", said);
        condition::set(&mut conditions, synced);
        let mut actions: Vec<Action> = self.write_status(conditions).into_iter().collect();
        if !actions.is_empty() {
            actions.push(self.event(true, "InstallPackage", why.clone()));
        }
        Plan { actions, report: vec![why], wake: retry() }
    }

    /// The object waits for something to go.
    pub(super) fn tell_leaving(&self, mut actions: Vec<Action>, message: &str) -> Plan {
        let mut conditions = self.conditions();
        conditions.retain(|one| one.condition_type != CREATING);
        let leaving = self.condition(READY, false, "Deleting", Some(message.to_owned()));
        condition::set(&mut conditions, leaving);
        actions.extend(self.write_status(conditions));
        Plan { actions, report: vec![message.to_owned()], wake: Wake::OnChange }
    }

    /// Nothing is done to an object that a user paused.
    pub(super) fn tell_paused(&self) -> Plan {
        let message = "Reconciliation (including deletion) is paused via the pause annotation";
        let mut conditions = self.conditions();
        let paused =
            self.condition(types::SYNCED, false, "ReconcilePaused", Some(message.to_owned()));
        condition::set(&mut conditions, paused);
        let actions = self.write_status(conditions).into_iter().collect();
        let report = vec![format!("the annotation {ANNOTATION_PAUSED} stops all work on it")];
        Plan { actions, report, wake: Wake::OnChange }
    }

    /// The record says of itself what the install object does, unless it is being written.
    fn tell_record(&self, actions: &[Action], ready: &Condition) -> Option<Action> {
        let record = self.record.as_ref()?;
        let is_written = |one: &Action| match one {
            Action::Apply { object, .. } => object["kind"] == RECORD,
            Action::Merge { target, .. } => target.kind == RECORD,
            _ => false,
        };
        if actions.iter().any(is_written) {
            return None;
        }
        let mut status = record["status"].clone();
        let all = status["conditions"].clone();
        let mut all: Vec<Condition> = serde_json::from_value(all).unwrap_or_default();
        condition::set(&mut all, Condition { observed_generation: None, ..ready.clone() });
        status["conditions"] = json!(all);
        status["conditionedStatus"] = json!({"conditions": all});
        (status != record["status"]).then(|| Action::Status {
            target: Target::of(record),
            status,
            expect: Expect::as_found(Some(record)),
        })
    }

    fn news(&self, health: &Result<(), String>) -> Option<Action> {
        let was_ready =
            condition::find(&self.conditions(), READY).is_some_and(|one| one.status == "True");
        let is_news = health.is_ok() && !was_ready;
        let message = "The package is installed".to_owned();
        is_news.then(|| self.event(false, "InstallPackage", message))
    }

    fn conditions(&self) -> Vec<Condition> {
        let status = self.install.status.as_ref();
        status.and_then(|status| status.conditions.clone()).unwrap_or_default()
    }

    fn condition(
        &self,
        of: &str,
        is_true: bool,
        reason: &str,
        message: Option<String>,
    ) -> Condition {
        Condition {
            condition_type: of.to_owned(),
            status: if is_true { "True" } else { "False" }.to_owned(),
            last_transition_time: self.now.clone(),
            reason: reason.to_owned(),
            message,
            observed_generation: self.install.metadata.generation,
            ..Condition::default()
        }
    }

    /// The status with these conditions, in both places where readers look, if it is another.
    fn write_status(&self, conditions: Vec<Condition>) -> Option<Action> {
        let mut status: PackageInstallStatus = self.install.status.clone().unwrap_or_default();
        status.conditions = Some(conditions.clone());
        let both = Some(conditions);
        status.conditioned_status =
            Some(InstallConditions { conditions: both, ..InstallConditions::default() });
        status.package_record = self.record.as_ref().map(|record| {
            let text = |value: &Json| value.as_str().map(str::to_owned);
            InstallReference {
                api_version: text(&record["apiVersion"]),
                kind: Some(RECORD.to_owned()),
                name: text(&record["metadata"]["name"]),
                namespace: Some(namespace_of(&self.install).to_owned()),
                uid: text(&record["metadata"]["uid"]),
                ..InstallReference::default()
            }
        });
        (self.install.status.as_ref() != Some(&status)).then(|| Action::Status {
            target: self.target(),
            status: serde_json::to_value(status).unwrap_or(Json::Null),
            expect: Expect::as_seen(&self.install.metadata),
        })
    }

    pub(super) fn event(&self, is_warning: bool, reason: &'static str, message: String) -> Action {
        Action::Event { target: self.target(), is_warning, reason, message }
    }
}
