//! How packages are, in words, and what they wait for.

use crate::installed::{self, Installed, Inventory};
use api::condition::{self, Condition, reasons, types};
use api::pkg::revision::{ACTIVE, Revision};
use controller::retention::retaining;
use controller::{STARTING, UNESTABLISHED};

/// How a package is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody has looked at it yet.
    New,
    /// It is being fetched, installed or started.
    Installing,
    /// It does what it should.
    Healthy,
    /// All is there; its controller sleeps until something uses it.
    Idle,
    /// A revision waits for somebody to activate it, and none is active.
    Inactive,
    /// Something is wrong.
    Unhealthy,
    /// Somebody asked for no more work on it.
    Paused,
    /// It is going.
    Deleting,
}

impl State {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Installing => "installing",
            Self::Healthy => "healthy",
            Self::Idle => "idle",
            Self::Inactive => "inactive",
            Self::Unhealthy => "unhealthy",
            Self::Paused => "paused",
            Self::Deleting => "deleting",
        }
    }

    /// Whether it is as it should be.
    pub fn is_well(self) -> bool {
        matches!(self, Self::Healthy | Self::Idle)
    }
}

impl Installed {
    /// How it is.
    pub fn state(&self) -> State {
        let metadata = &self.package.metadata;
        if metadata.deletion_timestamp.is_some() {
            return State::Deleting;
        }
        if metadata.is_paused() {
            return State::Paused;
        }
        let (Some(installed), Some(healthy)) =
            (self.condition(types::INSTALLED), self.condition(types::HEALTHY))
        else {
            return if self.conditions().is_empty() { State::New } else { State::Installing };
        };
        // Somebody has asked for something else since, of the package or of its revision.
        let is_past = |one: &Condition| one.is_past(metadata.generation);
        let is_installed = installed.status == "True" || installed.reason == reasons::UNESTABLISHED;
        if is_past(installed) || is_past(healthy) || is_installed && !self.is_settled() {
            return State::Installing;
        }
        match (installed.status.as_str(), healthy.status.as_str()) {
            ("True", "True") if healthy.reason == reasons::AWAITING_ACTIVATION => State::Idle,
            ("True", "True") => State::Healthy,
            (_, _) if installed.reason == reasons::INACTIVE => State::Inactive,
            _ if self.is_under_way() => State::Installing,
            _ => State::Unhealthy,
        }
    }

    /// Whether it stays as it is until a user acts: waiting longer does not help.
    pub fn needs_user_action(&self) -> bool {
        matches!(self.state(), State::New | State::Inactive | State::Paused)
            || self.troubles().iter().any(|trouble| trouble.contains("; hint: "))
    }

    /// Whether at most one revision is active, the one that the package speaks of, and what it
    /// says is about what is asked for of it now.
    fn is_settled(&self) -> bool {
        let mut active = self.revisions.iter().filter(|one| one.spec.desired_state == ACTIVE);
        let (first, second) = (active.next(), active.next());
        let current = self.package.status.as_ref().and_then(|it| it.current_revision.as_ref());
        let is_of = |one: &Revision| {
            let said = condition::find(one.conditions(), types::REVISION_HEALTHY);
            current == Some(&one.metadata.name)
                && said.is_none_or(|it| !it.is_past(one.metadata.generation))
        };
        second.is_none() && first.is_none_or(is_of)
    }

    fn conditions(&self) -> &[Condition] {
        let status = self.package.status.as_ref();
        status.and_then(|status| status.conditions.as_deref()).unwrap_or_default()
    }

    /// What it says of itself under a condition.
    pub fn condition(&self, of: &str) -> Option<&Condition> {
        condition::find(self.conditions(), of)
    }

    /// Whether there is no bad news yet, only none that is good.
    fn is_under_way(&self) -> bool {
        let told = |one: &Condition| one.message.as_deref().is_some_and(|text| !text.is_empty());
        let is_unpacking =
            |one: &&Condition| one.status != "True" && one.reason != reasons::UNESTABLISHED;
        let unpacking = self.condition(types::INSTALLED).filter(is_unpacking);
        if let Some(unpacking) = unpacking {
            return !told(unpacking);
        }
        let Some(revision) = self.current() else { return true };
        let starts =
            |one: &Condition| one.message.as_deref().is_some_and(|text| text.ends_with(STARTING));
        let is_bad = |one: &Condition| names_cause(one) && !starts(one);
        !revision.conditions().iter().any(is_bad)
    }

    /// What there is to say of it, in sentences: what is in the way, what waits to be activated, and
    /// which definitions stay for their objects.
    pub fn complaints(&self) -> Vec<String> {
        self.troubles().into_iter().chain(self.waits()).chain(self.retained()).collect()
    }

    /// What is to be known of a program that is called healthy: that it is only simulated, say.
    pub fn remark(&self) -> Option<String> {
        let said = condition::find(self.current()?.conditions(), types::RUNTIME_HEALTHY)?;
        said.message.clone().filter(|message| said.status == "True" && !message.is_empty())
    }

    /// What is in the way, in sentences; nothing if all is well.
    fn troubles(&self) -> Vec<String> {
        let state = self.state();
        if state == State::New {
            return vec!["no package manager has looked at it yet".to_owned()];
        }
        let mut all: Vec<String> = Vec::new();
        let of_package = self.conditions().iter().filter(|one| is_bad(one));
        // What a package says of its revision, the revision says better.
        let of_revision: Vec<&Condition> = self
            .current()
            .map(Revision::conditions)
            .unwrap_or_default()
            .iter()
            .filter(|one| is_bad(one))
            .collect();
        let is_told_again = |one: &Condition| {
            one.condition_type == types::HEALTHY || one.reason == reasons::UNESTABLISHED
        };
        let own = of_package.filter(|one| of_revision.is_empty() || !is_told_again(one));
        let mut bad: Vec<&Condition> = own.chain(of_revision.iter().copied()).collect();
        bad.sort_by_key(|one| !names_cause(one));
        for one in bad {
            let sentence = sentence(one);
            if !all.contains(&sentence) {
                all.push(sentence);
            }
        }
        if state == State::Inactive
            && let Some(waiting) = self.next()
        {
            let (name, revision) = (self.name(), &waiting.metadata.name);
            let waits = if self.is_for_installs() {
                format!("revision {revision} waits for its install object")
            } else {
                format!("revision {revision} waits to be activated: apron activate {name}")
            };
            all = vec![waits];
        }
        all
    }

    /// That another version waits to be activated than the one that is, if one does.
    fn waits(&self) -> Option<String> {
        let version = installed::version(&self.waiting()?.spec.image);
        if self.is_for_installs() {
            return Some(format!("{version} waits for its install object"));
        }
        Some(format!("{version} waits to be activated: apron activate {}", self.name()))
    }

    /// What it says of definitions that stay although it no longer brings them.
    pub fn retained(&self) -> Option<String> {
        retaining(self.conditions())?.message.clone()
    }

    /// One line on how it comes along.
    pub fn progress(&self, inventory: &Inventory) -> String {
        let state = self.state();
        let word = state.word();
        if state.is_well() {
            let waits = self.waits().map(|it| format!(" with {}; {it}", self.version()));
            return format!("{word}{}", waits.unwrap_or_default());
        }
        let missing: Vec<String> = inventory
            .needs(self)
            .iter()
            .filter(|it| it.installed.is_none_or(|it| !it.state().is_well()))
            .map(|it| it.installed.map_or(it.dependency.package.as_str(), Self::name).to_owned())
            .collect();
        if !missing.is_empty() && state != State::New {
            return format!("{word}, waits for {}", missing.join(", "));
        }
        match self.troubles().first() {
            Some(trouble) => format!("{word}: {trouble}"),
            None => word.to_owned(),
        }
    }
}

/// Whether a condition says that something is wrong. That no definition has to stay is not.
fn is_bad(one: &Condition) -> bool {
    one.status != "True" && one.condition_type != types::DEFINITIONS_RETAINED
}

/// Whether a condition that is not true says why, and not only that it waits for another.
fn names_cause(one: &Condition) -> bool {
    let message = one.message.as_deref().map(str::trim).unwrap_or_default();
    is_bad(one) && one.status == "False" && !message.is_empty() && !message.ends_with(UNESTABLISHED)
}

/// A condition that is not true, as a sentence.
fn sentence(one: &Condition) -> String {
    let subject = match one.condition_type.as_str() {
        types::INSTALLED => "not installed",
        types::HEALTHY => "not healthy",
        types::REVISION_HEALTHY => "its objects are not in place",
        types::RUNTIME_HEALTHY => "it does not run",
        types::RUNTIME_ACTIVE => "its controller sleeps",
        types::SYNCED if one.reason == reasons::UNKNOWN_POLICY => "it has a policy that is none",
        types::SYNCED => "nobody works on it",
        other => return format!("{other} is {}: {}", one.status, one.reason),
    };
    let subject = if one.status == "Unknown" {
        match one.condition_type.as_str() {
            types::RUNTIME_HEALTHY => "whether it runs is not known yet",
            types::REVISION_HEALTHY => "whether its objects are in place is not known yet",
            _ => "not known yet",
        }
    } else {
        subject
    };
    match one.message.as_deref().map(str::trim) {
        Some(message) if !message.is_empty() => format!("{subject}: {}", without_step(message)),
        _ => subject.to_owned(),
    }
}

/// A message without the words that say at which step of the work it was said.
fn without_step(message: &str) -> &str {
    let steps = ["pre", "post"].iter().find_map(|step| {
        message.strip_prefix(step)?.strip_prefix(" establish runtime hook failed for package: ")
    });
    steps.unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::meta::PackageKind;
    use serde_json::json;

    /// A package whose revision says this about its runtime.
    fn installed(message: &str) -> Installed {
        let condition = |of: &str, status: &str, message: &str| {
            json!({"type": of, "status": status, "reason": "R", "message": message,
                "lastTransitionTime": "2026-01-31T12:00:00Z"})
        };
        let json = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": {"name": "p"},
            "spec": {"package": "p:v1"}, "status": {"currentRevision": "p-1", "conditions": [
                condition("Installed", "True", ""), condition("Healthy", "False", message),
            ]},
        });
        let revision = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision",
            "metadata": {"name": "p-1"},
            "spec": {"image": "p:v1", "revision": 1, "desiredState": "Active"},
            "status": {"conditions": [condition("RuntimeHealthy", "False", message)]},
        });
        Installed {
            kind: PackageKind::Provider,
            package: serde_json::from_value(json.clone()).unwrap(),
            revisions: vec![serde_json::from_value(revision).unwrap()],
            json,
        }
    }

    /// A package under manual activation that asks for the second version while the first is active.
    fn waiting() -> Installed {
        let condition = |of: &str, reason: &str| {
            json!({"type": of, "status": "True", "reason": reason,
                "lastTransitionTime": "2026-01-31T12:00:00Z"})
        };
        let package = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": {"name": "p"},
            "spec": {"package": "p:v2", "revisionActivationPolicy": "Manual"},
            "status": {"currentRevision": "p-1", "conditions": [
                condition("Installed", "R"), condition("Healthy", "R"),
            ]},
        });
        let revision = |number: i64, image: &str, state: &str| {
            json!({
                "apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision",
                "metadata": {
                    "name": format!("p-{number}"), "labels": {"pkg.crossplane.io/package": "p"},
                },
                "spec": {"image": image, "revision": number, "desiredState": state},
            })
        };
        let revisions = vec![
            revision(1, "p:v1", "Active"),
            revision(2, "p:v2", "Inactive"),
            revision(3, "p:v3", "Inactive"),
        ];
        let found = vec![(PackageKind::Provider, package, revisions)];
        Inventory::of(found, json!({})).unwrap().packages.remove(0)
    }

    #[test]
    fn what_waits_to_be_activated_is_not_what_is_healthy() {
        let one = waiting();
        assert_eq!((one.state(), one.version()), (State::Healthy, "v1".to_owned()));
        let waits = "v2 waits to be activated: apron activate p";
        assert_eq!(one.complaints(), [waits]);
        assert_eq!(one.progress(&Inventory::default()), format!("healthy with v1; {waits}"));
        // Although there is one that was made later.
        assert_eq!(one.next().unwrap().metadata.name, "p-2");
    }

    #[test]
    fn the_step_at_which_something_failed_is_not_told() {
        let one = installed("post establish runtime hook failed for package: no pod came");
        assert_eq!(one.complaints(), ["it does not run: no pod came"]);
    }

    #[test]
    fn the_cause_is_told_before_what_waits_for_it() {
        let mut one = installed(UNESTABLISHED);
        let refused = json!({"type": "RevisionHealthy", "status": "False", "reason": "R",
            "message": "the API server refuses it", "lastTransitionTime": "2026-01-31T12:00:00Z"});
        let unknown = json!({"type": "Verified", "status": "Unknown", "reason": "R",
            "lastTransitionTime": "2026-01-31T12:00:00Z"});
        let conditions = one.revisions[0].status.as_mut().unwrap().conditions.as_mut().unwrap();
        conditions.insert(0, serde_json::from_value(unknown).unwrap());
        conditions.push(serde_json::from_value(refused).unwrap());
        let cause = "its objects are not in place: the API server refuses it";
        let waits = format!("it does not run: {UNESTABLISHED}");
        assert_eq!(one.complaints(), [cause, "Verified is Unknown: R", &waits]);
        assert_eq!(one.progress(&Inventory::default()), format!("unhealthy: {cause}"));
    }

    #[test]
    fn what_is_to_be_known_of_a_healthy_program_is_not_in_the_way() {
        let mut one = installed("nothing runs here");
        assert_eq!(one.remark(), None, "what is wrong is a complaint");
        one.revisions[0].status.as_mut().unwrap().conditions.as_mut().unwrap()[0].status =
            "True".to_owned();
        assert_eq!(one.remark().as_deref(), Some("nothing runs here"));
        let healthy = json!({"type": "Healthy", "status": "True", "reason": "R",
            "lastTransitionTime": "2026-01-31T12:00:00Z"});
        one.package.status.as_mut().unwrap().conditions.as_mut().unwrap()[1] =
            serde_json::from_value(healthy).unwrap();
        assert_eq!((one.state(), one.complaints()), (State::Healthy, Vec::new()));
    }

    #[test]
    fn a_package_whose_deployment_was_made_only_just_now_is_not_called_unhealthy() {
        let state = |message: &str| installed(message).state();
        assert_eq!(state(&format!("package deployment {STARTING}")), State::Installing);
        assert_eq!(state(UNESTABLISHED), State::Installing);
        assert_eq!(state("package deployment is unavailable"), State::Unhealthy);
        assert_eq!(state(""), State::Installing);
    }
}
