//! Which logs a package has: of which revision, which containers and runs; and why it has none.

use crate::installed::Installed;
use crate::pods::{INIT_STATUSES, PodTrouble, RUNTIME_CONTAINER, STATUSES, statuses, text_of};
use api::condition::{self, types};
use api::meta::PackageKind;
use api::pkg::revision::{ACTIVE, Revision};
use api::pkg::{ANNOTATION_HANDOVER, ANNOTATION_STANDBY, LABEL_REVISION};
use ground::failure::{Failure, Outcome};
use serde_json::Value as Json;

/// A container of a pod whose log can be asked for, if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedContainer {
    /// The pod's name.
    pub pod: String,
    /// The container's name.
    pub container: String,
    /// What no other container has: the pod's identity and its own name.
    pub identity: String,
    /// The run that is present: how often it was started again.
    pub run: i64,
    /// Whether the run goes on.
    pub is_running: bool,
    /// Whether a run before this one has ended.
    pub has_previous: bool,
    has_ended: bool,
    /// What is in its way, if it is not ready.
    trouble: Option<PodTrouble>,
}

impl LoggedContainer {
    /// The container of a pod that a name means; without one the container that runs the package, or the
    /// first.
    pub fn choose(pod: &Json, wished: Option<&str>) -> Outcome<Self> {
        let declared = |place: &str| {
            let all = pod["spec"][place].as_array().into_iter().flatten();
            all.map(|one| text_of(&one["name"])).collect::<Vec<String>>()
        };
        let (main, init) = (declared("containers"), declared("initContainers"));
        let name = text_of(&pod["metadata"]["name"]);
        let usual = || main.iter().find(|one| *one == RUNTIME_CONTAINER).or(main.first());
        let mut known = main.iter().chain(&init);
        let found = match wished {
            Some(wished) => known.find(|one| *one == wished),
            None => usual(),
        };
        let container = found.cloned().ok_or_else(|| {
            let known: Vec<&str> = main.iter().chain(&init).map(String::as_str).collect();
            let message = match wished {
                Some(wished) => format!("pod {name} has no container `{wished}`"),
                None => format!("pod {name} has no containers"),
            };
            Failure::new(message, format!("choose one with --container: {}", known.join(", ")))
        })?;
        Ok(Self::of_status(pod, name, container))
    }

    fn of_status(pod: &Json, name: String, container: String) -> Self {
        let mut told = [INIT_STATUSES, STATUSES].into_iter().flat_map(|it| statuses(pod, it));
        let status = told.find(|one| one["name"] == *container);
        let is_at = |pointer: &str| {
            status.and_then(|one| one.pointer(pointer)).is_some_and(Json::is_object)
        };
        let restarts = status.and_then(|one| one["restartCount"].as_i64()).unwrap_or_default();
        let of_container =
            |one: &PodTrouble| one.container.as_ref().is_none_or(|of| *of == container);
        let uid = text_of(&pod["metadata"]["uid"]);
        Self {
            identity: format!("{uid}/{container}"),
            run: restarts,
            is_running: is_at("/state/running"),
            has_previous: is_at("/lastState/terminated"),
            has_ended: is_at("/state/terminated"),
            trouble: PodTrouble::of_pod(pod).into_iter().find(of_container),
            pod: name,
            container,
        }
    }

    /// Whether there is a log of the run that goes on, or of the last one.
    pub fn has_log(&self) -> bool {
        self.is_running || self.has_previous || self.has_ended
    }

    /// What is in its way, in a sentence.
    pub fn describe_trouble(&self) -> Option<String> {
        self.trouble.as_ref().map(PodTrouble::sentence)
    }

    /// Why the log that is asked for is not there, if it is not.
    pub fn explain_missing(&self, previous: bool) -> Option<Failure> {
        let Self { pod, container, .. } = self;
        if previous {
            return (!self.has_previous).then(|| {
                let message = format!("no run of container {container} in pod {pod} has ended");
                Failure::new(
                    message,
                    "leave out --previous: the log of the present run is all there is",
                )
            });
        }
        if self.has_log() {
            return None;
        }
        let hint = "mend what the line above names, or wait for it with --follow";
        let message = format!("container {container} in pod {pod} has not been started yet");
        let mut failure = Failure::new(message, hint);
        failure.causes.extend(self.describe_trouble());
        if failure.causes.is_empty() {
            "wait for it with --follow".clone_into(&mut failure.hint);
        }
        Some(failure)
    }
}

impl Installed {
    /// Whether it runs a program, so that there can be logs.
    pub fn check_logged(&self) -> Outcome {
        if self.kind != PackageKind::Configuration {
            return Ok(());
        }
        let message = format!("{} runs no program, so it has no log", self.id());
        let name = self.name();
        let hint = format!(
            "providers and functions have logs; `apron status {name}` shows those it needs"
        );
        Err(Failure::new(message, hint))
    }

    /// The revision with the logs that are meant if none is named: the active one.
    pub fn logged_revision(&self) -> Outcome<&Revision> {
        self.active().ok_or_else(|| {
            let known: Vec<&str> =
                self.revisions.iter().map(|one| one.metadata.name.as_str()).collect();
            let hint = match known.as_slice() {
                [] => format!("see what it waits for with `apron status {}`", self.name()),
                known => format!("name one with --revision: {}", known.join(", ")),
            };
            Failure::new(format!("no revision of {} is active", self.id()), hint)
        })
    }
}

/// Why a revision has no pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodAbsence {
    /// It has no Deployment.
    NoDeployment,
    /// The Deployment's pods are only simulated.
    Simulated,
    /// The Deployment is to have none.
    ScaledDown(Option<String>),
    /// They are not made yet, or cannot be.
    NotYet(Option<String>),
}

impl PodAbsence {
    /// What the Deployments of a namespace say of a revision; they may not be readable.
    pub fn find_cause(deployments: Option<&[Json]>, revision: &Revision) -> Self {
        let Some(deployments) = deployments else { return Self::NotYet(None) };
        let selects = |one: &&Json| {
            let labels = &one["spec"]["selector"]["matchLabels"];
            labels[LABEL_REVISION] == *revision.metadata.name
        };
        let Some(found) = deployments.iter().find(selects) else { return Self::NoDeployment };
        let conditions = found["status"]["conditions"].as_array().map(Vec::as_slice);
        let conditions = conditions.unwrap_or_default();
        let said = |of: &str, status: &str| {
            let mut all = conditions.iter();
            all.find(|one| one["type"] == *of && one["status"] == *status)
        };
        if found["spec"]["replicas"] == 0 {
            return Self::ScaledDown(explain_zero(found, revision));
        }
        if said("Simulated", "True").is_some() {
            return Self::Simulated;
        }
        let bad = said("ReplicaFailure", "True").or(said("Progressing", "False"));
        let bad = bad.or(said("Available", "False"));
        Self::NotYet(bad.map(|one| text_of(&one["message"])).filter(|text| !text.is_empty()))
    }

    /// Whether pods may come by themselves.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::NotYet(_))
    }

    /// The same as a failure to read logs.
    pub fn explain(&self, one: &Installed, revision: &Revision, namespace: &str) -> Failure {
        let (id, name, of) = (one.id(), one.name(), &revision.metadata.name);
        let status = format!("`apron status {name}` says what is in the way");
        let (message, cause, hint) = match self {
            Self::NoDeployment => (
                format!("revision {of} of {id} has no Deployment in the namespace {namespace}"),
                (revision.spec.desired_state != ACTIVE).then(|| "it is not active".to_owned()),
                format!(
                    "{status}; if the package manager runs in another namespace, name it with --namespace"
                ),
            ),
            Self::Simulated => (
                format!("{id} has no log: its pods are only simulated here"),
                None,
                "have it run, on Linux, with `apron up --runtime process`".to_owned(),
            ),
            Self::ScaledDown(cause) => (
                format!("revision {of} of {id} has no pods: its Deployment is scaled to zero"),
                cause.clone(),
                format!(
                    "`apron status {name}` shows its revisions, and --revision reads the logs of another"
                ),
            ),
            Self::NotYet(cause) => (
                format!("revision {of} of {id} has no pods yet"),
                cause.clone(),
                format!("wait for them with --follow; {status}"),
            ),
        };
        let mut failure = Failure::new(message, hint);
        failure.causes.extend(cause);
        failure
    }
}

/// Why a Deployment is to have no pods, if the package manager scaled it.
fn explain_zero(deployment: &Json, revision: &Revision) -> Option<String> {
    let annotations = &deployment["metadata"]["annotations"];
    if annotations[ANNOTATION_STANDBY].is_string() {
        return Some("it stands back for another revision of the package".to_owned());
    }
    let turn = annotations[ANNOTATION_HANDOVER].as_str().unwrap_or_default();
    if turn.starts_with("waiting ") {
        return Some("it waits until the revision before it has stopped".to_owned());
    }
    if turn.starts_with("given-up ") {
        return Some(
            "it did not become available in time, and gave way to the one before".to_owned(),
        );
    }
    let active = condition::find(revision.conditions(), types::RUNTIME_ACTIVE)?;
    active.message.clone().filter(|_| active.status == "False")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::installed::{Inventory, Which};
    use serde_json::json;

    fn pod(status: &Json) -> Json {
        json!({
            "metadata": {"name": "p-1", "uid": "u"},
            "spec": {
                "initContainers": [{"name": "first"}],
                "containers": [{"name": "beside"}, {"name": "package-runtime"}],
            },
            "status": {"containerStatuses": [status]},
        })
    }

    fn chosen(status: &Json) -> LoggedContainer {
        LoggedContainer::choose(&pod(status), None).unwrap()
    }

    /// A kind of package with a revision in this state.
    fn installed(kind: PackageKind, state: &str) -> Installed {
        let package = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": kind.as_str(), "metadata": {"name": "p"},
            "spec": {"package": "p:v1"},
        });
        let revision = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": format!("{}Revision", kind.as_str()),
            "metadata": {"name": "p-1", "labels": {"pkg.crossplane.io/package": "p"}},
            "spec": {"image": "p:v1", "revision": 1, "desiredState": state},
        });
        let inventory = Inventory::of(vec![(kind, package, vec![revision])], json!({})).unwrap();
        inventory.find(&Which::parse("p")).unwrap().clone()
    }

    #[test]
    fn the_container_that_runs_the_package_is_meant_unless_another_is_named() {
        let pod = pod(&json!({}));
        let choose = |wished| LoggedContainer::choose(&pod, wished).map(|one| one.container);
        assert_eq!(choose(None).unwrap(), "package-runtime");
        assert_eq!(choose(Some("first")).unwrap(), "first");
        let failure = choose(Some("other")).unwrap_err();
        assert_eq!(failure.message, "pod p-1 has no container `other`");
        assert_eq!(failure.hint, "choose one with --container: beside, package-runtime, first");
    }

    #[test]
    fn a_log_that_is_not_there_is_explained_by_what_the_container_waits_for() {
        let waiting = json!({"name": "package-runtime", "restartCount": 0, "state": {"waiting": {
            "reason": "ErrImagePull", "message": "no such image"}}});
        let failure = chosen(&waiting).explain_missing(false).unwrap();
        let message = "container package-runtime in pod p-1 has not been started yet";
        assert_eq!(failure.message, message);
        assert_eq!(failure.causes, ["pod p-1 waits: ErrImagePull: no such image"]);
        let running = json!({"name": "package-runtime", "ready": true, "restartCount": 0,
            "state": {"running": {}}});
        assert!(chosen(&running).explain_missing(false).is_none());
        let failure = chosen(&running).explain_missing(true).unwrap();
        assert_eq!(failure.message, "no run of container package-runtime in pod p-1 has ended");
        let mut again = running;
        again["lastState"] = json!({"terminated": {"exitCode": 1}});
        assert!(chosen(&again).explain_missing(true).is_none());
        let mut ended = waiting;
        ended["state"] = json!({"terminated": {"exitCode": 1}});
        assert!(chosen(&ended).explain_missing(false).is_none());
    }

    #[test]
    fn runs_of_containers_are_told_apart() {
        let status = |restarts: i64| json!({"name": "package-runtime", "restartCount": restarts});
        assert_eq!(chosen(&status(0)).identity, "u/package-runtime");
        assert_ne!(chosen(&status(0)).run, chosen(&status(1)).run);
    }

    #[test]
    fn only_programs_that_are_active_have_logs_of_their_own() {
        let found = |kind: PackageKind, state: &str| {
            let one = installed(kind, state);
            let found = one.check_logged().and_then(|()| one.logged_revision());
            let told = found.map(|it| it.metadata.name.clone());
            told.map_err(|failure| (failure.message, failure.hint))
        };
        assert_eq!(found(PackageKind::Function, "Active").unwrap(), "p-1");
        let (message, hint) = found(PackageKind::Provider, "Inactive").unwrap_err();
        assert_eq!(message, "no revision of provider/p is active");
        assert_eq!(hint, "name one with --revision: p-1");
        let (message, _) = found(PackageKind::Configuration, "Active").unwrap_err();
        assert_eq!(message, "configuration/p runs no program, so it has no log");
    }

    #[test]
    fn what_has_no_pods_says_why() {
        let one = installed(PackageKind::Provider, "Active");
        let revision = one.active().unwrap();
        let deployment = |replicas: i64, annotations: Json, conditions: Json| {
            json!({
                "metadata": {"name": "d", "annotations": annotations},
                "spec": {"replicas": replicas,
                    "selector": {"matchLabels": {"pkg.crossplane.io/revision": "p-1"}}},
                "status": {"conditions": conditions},
            })
        };
        let told = |deployments: Option<&[Json]>| {
            let failure =
                PodAbsence::find_cause(deployments, revision).explain(&one, revision, "ns");
            [vec![failure.message], failure.causes].concat().join(": ")
        };
        let yet = "revision p-1 of provider/p has no pods yet";
        assert_eq!(told(None), yet);
        let missing = "revision p-1 of provider/p has no Deployment in the namespace ns";
        assert_eq!(told(Some(&[])), missing);
        let zero = "revision p-1 of provider/p has no pods: its Deployment is scaled to zero";
        let simulated = json!([{"type": "Simulated", "status": "True", "message": "m"}]);
        let failed = json!([{"type": "Available", "status": "False", "message": "too few"},
            {"type": "ReplicaFailure", "status": "True", "message": "over quota"}]);
        let standby = json!({ANNOTATION_STANDBY: "1 u"});
        let waiting = json!({ANNOTATION_HANDOVER: "waiting 0123"});
        for (replicas, annotations, conditions, expected) in [
            (1, json!({}), json!([]), yet.to_owned()),
            (1, json!({}), failed, format!("{yet}: over quota")),
            (
                1,
                json!({}),
                simulated.clone(),
                "provider/p has no log: its pods are only simulated here".to_owned(),
            ),
            (0, json!({}), simulated, zero.to_owned()),
            (
                0,
                standby,
                json!([]),
                format!("{zero}: it stands back for another revision of the package"),
            ),
            (
                0,
                waiting,
                json!([]),
                format!("{zero}: it waits until the revision before it has stopped"),
            ),
        ] {
            assert_eq!(told(Some(&[deployment(replicas, annotations, conditions)])), expected);
        }
    }
}
