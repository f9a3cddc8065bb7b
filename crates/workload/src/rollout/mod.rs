//! Deployments: which replica sets there should be, and how large.
//!
//! A rollout moves pods from the sets of earlier templates to that of the present one, within
//! what the strategy allows. Each look takes one step; the news of that step's effects leads to
//! the next look.

mod draft;
mod scale;
mod status;
#[cfg(test)]
mod tests;

use draft::{SetDraft, annotate_set, new_set};
use schema::object::{is_deleting, metadata};
use serde_json::{Map, Value, json};

use crate::condition::{drop_condition, put_condition, reason_of};
use crate::reading::{
    Rounding, annotation, controller_uid, count_at, find_condition, is_pod_over, optional_count,
    share_of, text_at,
};
use crate::template::{HASH_LABEL, hash_template, plain_template};

/// The annotation that numbers the templates a Deployment has had.
const REVISION: &str = "deployment.kubernetes.io/revision";
/// The condition of a Deployment of which nothing runs: there are no pods, or pods without a program.
const SIMULATED: &str = "Simulated";
/// Its reason if there are no pods.
const PODLESS: &str = "NothingRuns";
/// Fields of 32 bits that say "never" with their largest value.
const NEVER: i64 = i32::MAX as i64;

/// What a rollout is decided on.
#[derive(Debug, Clone, Copy)]
pub struct RolloutView<'a> {
    /// The Deployment.
    pub deployment: &'a Value,
    /// The replica sets that it controls.
    pub sets: &'a [Value],
    /// The pods that those control.
    pub pods: &'a [Value],
    /// Seconds since 1970.
    pub now: u64,
}

/// Something to do with a replica set.
#[derive(Debug, Clone, PartialEq)]
pub enum SetAction {
    /// Make it.
    Make(Value),
    /// Give it this size, these annotations and this time to be ready for.
    Amend {
        /// Its name.
        name: String,
        /// The set that was looked at.
        uid: String,
        /// How many pods it is to have.
        replicas: i64,
        /// All of its annotations.
        annotations: Map<String, Value>,
        /// How long a pod must be ready to count, in seconds.
        min_ready: i64,
    },
    /// Delete it.
    Delete {
        /// Its name.
        name: String,
        /// The set that was looked at.
        uid: String,
    },
}

/// What is to be done for a Deployment.
#[derive(Debug, Clone, PartialEq)]
pub struct RolloutPlan {
    /// In this order, each before the status is written.
    pub actions: Vec<SetAction>,
    /// The number of the present template, for the Deployment's annotation.
    pub revision: Option<String>,
    /// Its status.
    pub status: Value,
    /// When to look again although nothing has changed.
    pub again_at: Option<u64>,
}

/// Decides what is to be done for a Deployment.
pub fn plan_rollout(view: &RolloutView<'_>) -> RolloutPlan {
    let mut rollout = Rollout::gather(view);
    if is_deleting(view.deployment) {
        return rollout.finish(StatusScope::Counts);
    }
    rollout.note_pause();
    if rollout.is_paused() || rollout.is_scaled() {
        rollout.renew_set(Absence::Leave);
        rollout.scale_sets();
        if rollout.is_paused() {
            rollout.drop_history();
        }
        return rollout.finish(StatusScope::Counts);
    }
    if text_at(view.deployment, "/spec/strategy/type") == "Recreate" {
        rollout.recreate_pods();
    } else {
        rollout.replace_pods();
    }
    rollout.finish(StatusScope::Progress)
}

/// Whether a replica set's template and selector are those that the Deployment's label makes.
pub fn is_collision(set: &Value, deployment: &Value) -> bool {
    let uid = text_at(deployment, "/metadata/uid");
    let template =
        |object: &Value| object.pointer("/spec/template").map(plain_template).unwrap_or_default();
    controller_uid(set) != Some(uid) || template(set) != template(deployment)
}

/// Says in the status of a plan that the set of the present template was refused. A Deployment that has
/// told so keeps the time at which it did, so that another try is no news.
pub fn note_refused_set(status: &mut Value, view: &RolloutView<'_>, name: &str, why: &str) {
    let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) else {
        return;
    };
    if !conditions.iter().any(|one| one["type"] == "Progressing") {
        // Without a deadline nobody asks for progress.
        return;
    }
    drop_condition(conditions, "Progressing");
    conditions.extend(find_condition(view.deployment, "Progressing").cloned());
    let message = format!("Failed to create new replica set {name:?}: {why}");
    let said = ("Progressing", "False", "ReplicaSetCreateError", message);
    put_condition(conditions, &said, &schema::object::time::format(view.now));
}

/// What is done when there is no set for the present template.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Absence {
    Make,
    Leave,
}

/// How much of the status is told anew.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StatusScope {
    Counts,
    Progress,
}

/// A rollout while it is thought about.
struct Rollout<'a> {
    view: &'a RolloutView<'a>,
    /// The set of the present template.
    new: Option<SetDraft>,
    /// The others, oldest first.
    old: Vec<SetDraft>,
    deleted: Vec<SetAction>,
    conditions: Vec<Value>,
    revision: Option<String>,
}

impl<'a> Rollout<'a> {
    fn gather(view: &'a RolloutView<'a>) -> Self {
        let mut drafts: Vec<SetDraft> = view.sets.iter().map(SetDraft::of_object).collect();
        drafts.sort_by(|a, b| a.age_key().cmp(&b.age_key()));
        let wished = view.deployment.pointer("/spec/template").map(plain_template);
        let is_new =
            |draft: &SetDraft| draft.object.pointer("/spec/template").map(plain_template) == wished;
        let new = drafts.iter().position(is_new).map(|at| drafts.remove(at));
        let told = view.deployment.pointer("/status/conditions").and_then(Value::as_array);
        // What was said of pods that were only simulated is no beginning for what is true of real ones.
        let was_simulated = told.is_some_and(|told| reason_of(told, SIMULATED) == PODLESS);
        let conditions = told.filter(|_| !was_simulated);
        Self {
            view,
            new,
            old: drafts,
            deleted: Vec::new(),
            conditions: conditions.cloned().unwrap_or_default(),
            revision: None,
        }
    }

    fn wished(&self) -> i64 {
        optional_count(self.view.deployment, "/spec/replicas").unwrap_or(1)
    }

    fn is_paused(&self) -> bool {
        self.view.deployment.pointer("/spec/paused") == Some(&json!(true))
    }

    fn deadline(&self) -> Option<i64> {
        let said = optional_count(self.view.deployment, "/spec/progressDeadlineSeconds");
        said.filter(|seconds| *seconds != NEVER)
    }

    /// How many pods there may be above, and below, the wished number during a rollout.
    fn leeway(&self) -> (i64, i64) {
        let strategy = self.view.deployment.pointer("/spec/strategy");
        let Some(strategy) = strategy.filter(|one| one["type"] != "Recreate") else {
            return (0, 0);
        };
        let (rolling, wished) = (&strategy["rollingUpdate"], self.wished());
        let surge = share_of(rolling.get("maxSurge"), wished, Rounding::Up);
        let lack = share_of(rolling.get("maxUnavailable"), wished, Rounding::Down);
        // With neither, no pod could ever be moved.
        let lack = if surge == 0 && lack == 0 { 1 } else { lack };
        (surge, lack.min(wished))
    }

    fn all(&self) -> impl Iterator<Item = &SetDraft> {
        self.old.iter().chain(&self.new)
    }

    fn note_pause(&mut self) {
        if self.deadline().is_none() {
            return;
        }
        let reason = crate::condition::reason_of(&self.conditions, "Progressing");
        if reason == "ProgressDeadlineExceeded" {
            return;
        }
        let was_paused = reason == "DeploymentPaused";
        let said = match (self.is_paused(), was_paused) {
            (true, false) => ("DeploymentPaused", "Deployment is paused"),
            (false, true) => ("DeploymentResumed", "Deployment is resumed"),
            _ => return,
        };
        self.put_progress("Unknown", said.0, said.1.to_owned());
    }

    /// Finds or makes the set of the present template, and numbers it after all others.
    fn renew_set(&mut self, missing: Absence) {
        let number = |draft: &SetDraft| annotation(&draft.object, REVISION).parse::<i64>();
        let last = self.old.iter().filter_map(|draft| number(draft).ok()).max().unwrap_or(0);
        let revision = last.saturating_add(1);
        let deployment = self.view.deployment;
        if let Some(new) = &mut self.new {
            annotate_set(&mut new.object, deployment, revision);
            new.set_min_ready(count_at(deployment, "/spec/minReadySeconds"));
            let name = new.name().to_owned();
            self.revision = Some(annotation(&new.object, REVISION).to_owned());
            let is_told = self.conditions.iter().any(|one| one["type"] == "Progressing");
            if self.deadline().is_some() && !is_told {
                let message = format!("Found new replica set {name:?}");
                self.put_progress("True", "FoundNewReplicaSet", message);
            }
            return;
        }
        if missing == Absence::Leave {
            return;
        }
        let collisions = count_at(deployment, "/status/collisionCount");
        let template = deployment.pointer("/spec/template").cloned().unwrap_or_default();
        let hash = hash_template(&template, collisions);
        let mut draft = SetDraft::new_one(new_set(deployment, &template, &hash));
        annotate_set(&mut draft.object, deployment, revision);
        self.revision = Some(annotation(&draft.object, REVISION).to_owned());
        self.new = Some(draft);
        let (size, (surge, _)) = (self.size_of_new(), self.leeway());
        let (wished, name) = (self.wished(), self.new_name().to_owned());
        if let Some(new) = &mut self.new {
            new.resize(size, wished, wished.saturating_add(surge));
        }
        if self.deadline().is_some() {
            let message = format!("Created new replica set {name:?}");
            self.put_progress("True", "NewReplicaSetCreated", message);
        }
    }

    fn new_name(&self) -> &str {
        self.new.as_ref().map_or("", SetDraft::name)
    }

    /// How large the new set may be now.
    fn size_of_new(&self) -> i64 {
        let wished = self.wished();
        if text_at(self.view.deployment, "/spec/strategy/type") == "Recreate" {
            return wished;
        }
        let present = self.new.as_ref().map_or(0, SetDraft::size);
        let most = wished.saturating_add(self.leeway().0);
        let all: i64 = self.all().map(SetDraft::size).sum();
        present + (most - all).min(wished - present).max(0)
    }

    /// Old pods go first, and new ones come when none of them is left.
    fn recreate_pods(&mut self) {
        self.renew_set(Absence::Leave);
        let (wished, most) = (self.wished(), self.wished());
        let mut is_scaled = false;
        for old in &mut self.old {
            is_scaled |= old.resize_if_other(0, wished, most);
        }
        if is_scaled || self.has_old_pods() {
            return;
        }
        self.renew_set(Absence::Make);
        if let Some(new) = &mut self.new {
            new.resize_if_other(wished, wished, most);
        }
        self.drop_history_when_complete();
    }

    fn has_old_pods(&self) -> bool {
        let new = self.new.as_ref().map(|draft| text_at(&draft.object, "/metadata/uid"));
        let is_old = |pod: &&Value| controller_uid(pod) != new && !is_pod_over(pod);
        self.old.iter().any(|old| old.actual() > 0) || self.view.pods.iter().any(|pod| is_old(&pod))
    }

    /// New pods come and old ones go, a few at a time.
    fn replace_pods(&mut self) {
        self.renew_set(Absence::Make);
        let (wished, (surge, _)) = (self.wished(), self.leeway());
        let most = wished.saturating_add(surge);
        let size = self.new.as_ref().map_or(0, SetDraft::size);
        let target = if size > wished { wished } else { self.size_of_new() };
        if let Some(new) = &mut self.new
            && new.resize_if_other(target, wished, most)
        {
            return;
        }
        if self.shrink_old_sets() {
            return;
        }
        self.drop_history_when_complete();
    }

    /// Takes pods from old sets as far as enough of all pods stay available.
    fn shrink_old_sets(&mut self) -> bool {
        let (wished, (surge, lack)) = (self.wished(), self.leeway());
        let most = wished.saturating_add(surge);
        let least = wished - lack;
        let all: i64 = self.all().map(SetDraft::size).sum();
        let unready = self.new.as_ref().map_or(0, |new| (new.size() - new.available()).max(0));
        let mut budget = all - least - unready;
        if budget <= 0 || self.old.iter().all(|old| old.size() == 0) {
            return false;
        }
        let mut is_scaled = false;
        // Pods that do not work serve none: they go first.
        for old in &mut self.old {
            let broken = (old.size() - old.available()).clamp(0, budget);
            budget -= broken;
            is_scaled |= old.resize_if_other(old.size() - broken, wished, most);
        }
        let available: i64 = self.all().map(SetDraft::available).sum();
        let mut spare = (available - least).max(0);
        for old in &mut self.old {
            let going = old.size().min(spare);
            spare -= going;
            is_scaled |= old.resize_if_other(old.size() - going, wished, most);
        }
        is_scaled
    }

    fn drop_history_when_complete(&mut self) {
        let status = self.count_pods();
        if self.is_complete(&status) {
            self.drop_history();
        }
    }

    /// Deletes the oldest sets beyond those that are kept for a way back.
    fn drop_history(&mut self) {
        let kept = optional_count(self.view.deployment, "/spec/revisionHistoryLimit").unwrap_or(10);
        if kept == NEVER {
            return;
        }
        let mut all: Vec<&SetDraft> =
            self.old.iter().filter(|old| !is_deleting(&old.object)).collect();
        let excess = all.len().saturating_sub(usize::try_from(kept).unwrap_or(usize::MAX));
        all.sort_by_key(|old| annotation(&old.object, REVISION).parse::<i64>().unwrap_or(0));
        let is_idle = |old: &&SetDraft| {
            let seen = old.object.pointer("/status/observedGeneration").and_then(Value::as_i64);
            let generation = metadata(&old.object).get("generation").and_then(Value::as_i64);
            old.size() == 0 && old.actual() == 0 && generation <= seen
        };
        let going = all.into_iter().take(excess).filter(is_idle);
        self.deleted = going.map(SetDraft::deletion).collect();
    }

    fn finish(mut self, report: StatusScope) -> RolloutPlan {
        let status = self.status(report);
        let again_at = self.deadline_moment(&status);
        let drafts = self.old.into_iter().chain(self.new);
        let mut actions: Vec<SetAction> = drafts.filter_map(SetDraft::into_action).collect();
        // A set that is refused leaves the others as they are.
        actions.sort_by_key(|action| !matches!(action, SetAction::Make(_)));
        actions.retain(|action| !self.deleted.iter().any(|gone| same_set(action, gone)));
        actions.extend(self.deleted);
        RolloutPlan { actions, revision: self.revision, status, again_at }
    }

    fn put_progress(&mut self, status: &str, reason: &str, message: String) {
        let now = schema::object::time::format(self.view.now);
        let said = ("Progressing", status, reason, message);
        put_condition(&mut self.conditions, &said, &now);
    }

    fn drop_progress(&mut self) {
        drop_condition(&mut self.conditions, "Progressing");
    }
}

fn same_set(one: &SetAction, other: &SetAction) -> bool {
    let uid = |action: &SetAction| match action {
        SetAction::Amend { uid, .. } | SetAction::Delete { uid, .. } => Some(uid.clone()),
        SetAction::Make(_) => None,
    };
    uid(one).is_some() && uid(one) == uid(other)
}

/// The selector of a set: the Deployment's, and the label of its template.
fn labelled_selector(deployment: &Value, hash: &str) -> Value {
    let mut selector = deployment.pointer("/spec/selector").cloned().unwrap_or_default();
    let labels = schema::object::map_at(&mut selector, "matchLabels");
    labels.insert(HASH_LABEL.to_owned(), hash.into());
    selector
}
