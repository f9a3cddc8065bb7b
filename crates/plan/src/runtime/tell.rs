//! How a runtime is, in conditions and events.

use super::World;
use super::run::Work;
use crate::step::{Action, Expect, Plan, Wake, timestamp};
use api::condition::{self, Condition, reasons, types};
use api::pkg::revision::RevisionStatus;
use serde_json::Value as Json;
use std::time::Duration;

/// Why a runtime is not healthy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It takes its time, which is no news.
    Waits(String),
    /// Something is wrong.
    Fails(String),
}

impl Trouble {
    fn as_str(&self) -> &str {
        match self {
            Self::Waits(why) | Self::Fails(why) => why,
        }
    }

    /// The same, said of a phase.
    pub(super) fn during(self, phase: &str) -> Self {
        let say = |why| format!("{phase} establish runtime hook failed for package: {why}");
        match self {
            Self::Waits(why) => Self::Waits(say(why)),
            Self::Fails(why) => Self::Fails(say(why)),
        }
    }
}

/// What is said of a Deployment of which nothing is known yet: it was made only just now.
pub const STARTING: &str = "has no condition of type \"Available\" yet";

/// What is said of a runtime whose revision does not have its objects: the revision says why.
pub const UNESTABLISHED: &str = "Package revision is not healthy yet";

/// The condition of a Deployment that is called available although nothing of it runs.
const SIMULATED: &str = "Simulated";

/// What a Deployment says of itself if its pods are only simulated: "healthy" without a word is for
/// what runs.
pub(super) fn simulation_remark(live: &Json) -> Option<String> {
    let conditions = live["status"]["conditions"].as_array()?;
    let said = conditions.iter().find(|one| one["type"] == SIMULATED && one["status"] == "True")?;
    Some(said["message"].as_str().unwrap_or(SIMULATED).to_owned())
}

impl World {
    /// Whether the Deployment is available, or why not.
    pub(super) fn availability(&self, live: Option<&Json>) -> Result<(), Trouble> {
        let what = self.what();
        let conditions = live.and_then(|live| live["status"]["conditions"].as_array());
        let conditions = conditions.map(Vec::as_slice).unwrap_or_default();
        let of = |kind: &str| conditions.iter().find(|one| one["type"] == kind);
        let message = |one: &Json| one["message"].as_str().unwrap_or_default().to_owned();
        match of("Available") {
            None => Err(Trouble::Waits(format!("{what} package deployment {STARTING}"))),
            Some(available) if available["status"] == "True" => Ok(()),
            Some(available) => {
                let failed = of("ReplicaFailure").filter(|one| one["status"] == "True");
                let failed = failed.map(|one| format!(" ({})", message(one))).unwrap_or_default();
                let message = message(available);
                Err(Trouble::Fails(format!(
                    "{what} package deployment is unavailable with message: {message}{failed}"
                )))
            }
        }
    }

    pub(super) fn healthy(&self, mut status: RevisionStatus, work: Work) -> Plan {
        let Work { mut actions, report, remark, .. } = work;
        let was = self.condition_of(types::RUNTIME_HEALTHY).is_some_and(|one| one.status == "True");
        if !was {
            let message = "Successfully configured package revision".to_owned();
            actions.push(self.event(false, message));
        }
        let conditions = status.conditions.get_or_insert_default();
        condition::set(
            conditions,
            self.condition(types::RUNTIME_HEALTHY, true, reasons::HEALTHY, remark),
        );
        let active = if self.is_awaiting_activation() {
            let message = "Package runtime is scaled to zero; awaiting the first \
                           ManagedResourceDefinition to be activated";
            let reason = reasons::AWAITING_ACTIVATION;
            self.condition(types::RUNTIME_ACTIVE, false, reason, Some(message.to_owned()))
        } else {
            self.condition(types::RUNTIME_ACTIVE, true, reasons::ACTIVE_RUNTIME, None)
        };
        condition::set(conditions, active);
        actions.extend(self.write(&status));
        Plan { actions, report, wake: Wake::OnChange }
    }

    pub(super) fn unhealthy(
        &self,
        mut status: RevisionStatus,
        mut work: Work,
        why: &Trouble,
    ) -> Plan {
        let conditions = status.conditions.get_or_insert_default();
        let text = why.as_str().to_owned();
        let said = condition::find(conditions, types::RUNTIME_HEALTHY);
        let is_news = said.is_none_or(|said| said.message.as_deref() != Some(&text));
        if is_news && matches!(why, Trouble::Fails(_)) {
            work.actions.push(self.event(true, text.clone()));
        }
        let reason = reasons::UNHEALTHY;
        let new = self.condition(types::RUNTIME_HEALTHY, false, reason, Some(text.clone()));
        condition::set(conditions, new);
        work.actions.extend(self.write(&status));
        work.report.push(text);
        Plan { actions: work.actions, report: work.report, wake: Wake::OnChange }
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
            last_transition_time: timestamp(self.now),
            reason: reason.to_owned(),
            message,
            observed_generation: self.revision.metadata.generation,
            ..Condition::default()
        }
    }

    fn event(&self, is_warning: bool, message: String) -> Action {
        Action::Event { target: self.own_target(), is_warning, reason: "SyncPackage", message }
    }

    /// What runs no more is named no more.
    pub(super) fn forget_controller(&self) -> Option<Action> {
        let named = self.revision.status.as_ref()?.controller_ref.as_ref();
        let status = RevisionStatus { controller_ref: None, ..self.status() };
        self.write(&status).filter(|_| named.is_some() && self.controller_ref().is_none())
    }

    /// The status, if it is not what was seen.
    fn write(&self, status: &RevisionStatus) -> Option<Action> {
        (self.revision.status.as_ref() != Some(status)).then(|| Action::Status {
            target: self.own_target(),
            status: serde_json::to_value(status).unwrap_or(Json::Null),
            expect: Expect::as_seen(&self.revision.metadata),
        })
    }

    /// When to look again: when certificates are due, or earlier.
    pub(super) fn wake(&self, due: Option<i64>, again: Option<Duration>) -> Wake {
        let left = due.map(|due| due.saturating_sub(self.now).max(1));
        let left = left.and_then(|left| u64::try_from(left).ok()).map(Duration::from_secs);
        left.into_iter().chain(again).min().map_or(Wake::OnChange, Wake::After)
    }
}
