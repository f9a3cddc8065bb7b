//! What a Deployment's status says of a rollout.

use schema::object::{meta_text, metadata, time};
use serde_json::{Map, Value, json};

use super::draft::SetDraft;
use super::{Rollout, SIMULATED, StatusScope};
use crate::condition::{drop_condition, put_condition, reason_of, renew_condition};
use crate::reading::{count_at, find_condition, is_pod_over};

/// The condition of what cannot make pods.
const FAILURE: &str = "ReplicaFailure";

/// What is counted of pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PodTally {
    total: i64,
    updated: i64,
    ready: i64,
    available: i64,
    /// Those that end, unless a set does not tell.
    terminating: Option<i64>,
}

impl Rollout<'_> {
    pub(super) fn count_pods(&self) -> PodTally {
        PodTally {
            total: self.all().map(SetDraft::actual).sum(),
            updated: self.new.as_ref().map_or(0, SetDraft::actual),
            ready: self.all().map(SetDraft::ready).sum(),
            available: self.all().map(SetDraft::available).sum(),
            terminating: self.all().map(SetDraft::terminating).sum(),
        }
    }

    /// Whether all pods are those of the present template, and work.
    pub(super) fn is_complete(&self, counts: &PodTally) -> bool {
        let wished = self.wished();
        counts.updated == wished && counts.total == wished && counts.available == wished
    }

    pub(super) fn status(&mut self, report: StatusScope) -> Value {
        let counts = self.count_pods();
        let now = time::format(self.view.now);
        let least = self.wished() - self.leeway().1;
        let said = if counts.available >= least {
            ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        } else {
            (
                "False",
                "MinimumReplicasUnavailable",
                "Deployment does not have minimum availability.",
            )
        };
        let said = ("Available", said.0, said.1, said.2.to_owned());
        put_condition(&mut self.conditions, &said, &now);
        if report == StatusScope::Progress {
            self.note_progress(&counts, &now);
            self.note_failure(&now);
        }
        self.note_simulation(&now);
        self.write_status(&counts)
    }

    /// Says why a set cannot make pods, the new one before others.
    fn note_failure(&mut self, now: &str) {
        let failure = |set: &SetDraft| find_condition(&set.object, FAILURE).cloned();
        let found = self.new.iter().chain(&self.old).find_map(failure);
        let Some(found) = found else {
            drop_condition(&mut self.conditions, FAILURE);
            return;
        };
        let text = |field: &str| found[field].as_str().unwrap_or_default();
        let said = (FAILURE, text("status"), text("reason"), text("message").to_owned());
        put_condition(&mut self.conditions, &said, now);
    }

    /// Says that pods are called running which have no program, as long as there are such.
    fn note_simulation(&mut self, now: &str) {
        let pods = self.view.pods.iter().filter(|pod| !is_pod_over(pod));
        let found = pods.filter_map(|pod| find_condition(pod, SIMULATED));
        let Some(found) = found.into_iter().find(|one| one["status"] == "True") else {
            drop_condition(&mut self.conditions, SIMULATED);
            return;
        };
        let text = |field: &str| found[field].as_str().unwrap_or_default();
        let said = (SIMULATED, "True", text("reason"), text("message").to_owned());
        put_condition(&mut self.conditions, &said, now);
    }

    fn note_progress(&mut self, counts: &PodTally, now: &str) {
        let Some(deadline) = self.deadline() else {
            self.drop_progress();
            return;
        };
        let reason = reason_of(&self.conditions, "Progressing").to_owned();
        let is_rolled_out = counts.total == counts.updated && reason == "NewReplicaSetAvailable";
        if is_rolled_out {
            return;
        }
        let what = match &self.new {
            Some(new) => format!("ReplicaSet {:?}", new.name()),
            None => format!("Deployment {:?}", meta_text(self.view.deployment, "name")),
        };
        if self.is_complete(counts) {
            let message = format!("{what} has successfully progressed.");
            self.put_progress("True", "NewReplicaSetAvailable", message);
        } else if self.has_progressed(counts) {
            let said =
                ("Progressing", "True", "ReplicaSetUpdated", format!("{what} is progressing."));
            renew_condition(&mut self.conditions, &said, now);
        } else if self.is_late(deadline) {
            let message = format!("{what} has timed out progressing.");
            self.put_progress("False", "ProgressDeadlineExceeded", message);
        }
    }

    /// Whether there is more of what is wished, or less of what is not, than was last told.
    fn has_progressed(&self, counts: &PodTally) -> bool {
        let told = |field: &str| count_at(self.view.deployment, &format!("/status/{field}"));
        counts.updated > told("updatedReplicas")
            || counts.total - counts.updated < told("replicas") - told("updatedReplicas")
            || counts.ready > told("readyReplicas")
            || counts.available > told("availableReplicas")
    }

    fn progress_since(&self) -> Option<u64> {
        let found = self.conditions.iter().find(|one| one["type"] == "Progressing")?;
        found["lastUpdateTime"].as_str().and_then(time::parse)
    }

    fn is_late(&self, deadline: i64) -> bool {
        match reason_of(&self.conditions, "Progressing") {
            "ProgressDeadlineExceeded" => true,
            "NewReplicaSetAvailable" | "" => false,
            _ => {
                let seconds = u64::try_from(deadline).unwrap_or_default();
                let since = self.progress_since();
                since.is_some_and(|since| since.saturating_add(seconds) < self.view.now)
            }
        }
    }

    /// When a rollout that does not go on will have missed its deadline.
    pub(super) fn deadline_moment(&self, status: &Value) -> Option<u64> {
        let conditions = status.get("conditions").and_then(Value::as_array)?;
        let reason = reason_of(conditions, "Progressing");
        let is_waiting = ["ReplicaSetUpdated", "NewReplicaSetCreated", "FoundNewReplicaSet"];
        if self.is_paused() || !is_waiting.contains(&reason) && reason != "DeploymentResumed" {
            return None;
        }
        let seconds = u64::try_from(self.deadline()?).ok()?;
        let moment = self.progress_since()?.saturating_add(seconds).saturating_add(1);
        (moment > self.view.now).then_some(moment)
    }

    fn write_status(&self, counts: &PodTally) -> Value {
        let before = self.view.deployment.get("status").and_then(Value::as_object);
        let mut status: Map<String, Value> = before.cloned().unwrap_or_default();
        let generation = metadata(self.view.deployment).get("generation").cloned();
        status.insert("observedGeneration".to_owned(), generation.unwrap_or(json!(0)));
        for (field, count) in [
            ("replicas", counts.total),
            ("updatedReplicas", counts.updated),
            ("readyReplicas", counts.ready),
            ("availableReplicas", counts.available),
            ("unavailableReplicas", self.all().map(SetDraft::size).sum::<i64>() - counts.available),
        ] {
            // As upstream writes it: zero is nothing.
            if count > 0 {
                status.insert(field.to_owned(), json!(count));
            } else {
                status.shift_remove(field);
            }
        }
        match counts.terminating {
            Some(count) => status.insert("terminatingReplicas".to_owned(), json!(count)),
            None => status.shift_remove("terminatingReplicas"),
        };
        status.insert("conditions".to_owned(), json!(self.conditions));
        Value::Object(status)
    }
}
