//! Walks: what nobody thought of. Dice say what users do, in which order and how fast, what gets
//! lost, and when the manager dies; where that ends, the laws must hold.
//!
//! A walk is a list of steps and nothing else, so one that breaks a law can be played again, and
//! can be made shorter as long as it still does.

mod dice;
mod expected;
mod ground;
mod plan;

pub use dice::steps;
pub use ground::ground;
pub use plan::{Foretold, foretell};

use crate::explore::on_a_clock;
use crate::fault::Schedule;
use crate::gate::Bend;
use crate::history;
use crate::laws;
use crate::pack::Failure;
use crate::picture::{self, Picture, objects, text};
use crate::stage::{Setting, Snapshot, Stage};
use apiserver::log::Log;
use ground::{STABLE, nop};
use http::Method;
use serde_json::{Value as Json, json};
use std::fmt;
use std::time::Duration;

/// One thing that happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A user asks the API server for something.
    Ask(Method, String, Json),
    /// A user does something to one of the objects there are, whichever that is by then.
    Meddle(Meddling, usize),
    /// Somebody moves the tag `stable` to a version.
    Move(&'static str),
    /// Nobody does anything for some seconds.
    Wait(u64),
    /// Nobody does anything until it is quiet.
    Rest,
    /// The manager is ended and started again.
    Restart,
    /// Something happens to the nth call from now on.
    Weather(Schedule),
}

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meddling {
    /// A revision is activated.
    Activate,
    /// A revision is deactivated.
    Deactivate,
    /// A revision is paused.
    Pause,
    /// A revision is deleted.
    DeleteRevision,
    /// Something that the manager made is deleted.
    Lose,
    /// Something that the manager made is said to belong to nobody.
    Disown,
    /// What the manager wrote on something it made is wiped off.
    Unlabel,
    /// What the manager made is changed.
    Edit,
}

const MEDDLING: [Meddling; 8] = [
    Meddling::Activate,
    Meddling::Deactivate,
    Meddling::Pause,
    Meddling::DeleteRevision,
    Meddling::Lose,
    Meddling::Disown,
    Meddling::Unlabel,
    Meddling::Edit,
];

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ask(method, path, Json::Null) => write!(formatter, "{method} {path}"),
            Self::Ask(method, path, body) => write!(formatter, "{method} {path} {body}"),
            Self::Meddle(what, which) => write!(formatter, "{what:?} {which}"),
            Self::Move(version) => write!(formatter, "move the tag to {version}"),
            Self::Wait(seconds) => write!(formatter, "wait for {seconds} s"),
            Self::Rest => formatter.write_str("rest"),
            Self::Restart => formatter.write_str("restart"),
            Self::Weather(schedule) => write!(formatter, "{schedule} from now"),
        }
    }
}

/// Walks, and says which laws are broken at the end, and what the managers said.
pub fn walk(ground: &Snapshot, steps: &[Step], bend: Option<Bend>) -> (Vec<String>, Vec<String>) {
    let setting = Setting { pushes: true, bend, ..Setting::default() };
    let walked = on_a_clock(async {
        let mut stage = Stage::open(ground, setting).await?;
        stage.wake().await?;
        let gone = go(&mut stage, steps).await;
        let mut broken: Vec<String> =
            gone.err().map(|error| error.to_string()).into_iter().collect();
        let stable = stage.digest(STABLE).unwrap_or_default();
        let all = objects(&stage.place().log);
        broken.extend(laws::broken(&all));
        broken.extend(expected::unexpected(&all, &stable));
        if !steps.iter().any(|step| matches!(step, Step::Meddle(Meddling::Disown, _))) {
            let history = history::after(&stage.place().log, ground.log.version());
            broken.extend(history.wrongs);
        }
        if broken.is_empty() {
            broken.extend(made_anew(&mut stage).await?);
        }
        let diary = stage.diary();
        let _ = stage.close();
        Ok((broken, diary))
    });
    walked.unwrap_or_else(|failure| (vec![failure.to_string()], Vec::new()))
}

/// Takes all steps, and then lets everything come to rest.
async fn arrive(stage: &mut Stage, steps: &[Step]) -> Result<(), Failure> {
    for step in steps {
        take(stage, step).await?;
    }
    // Whoever is paused is left alone, and need not keep any law.
    for one in objects(&stage.place().log) {
        let is_paused = one["metadata"]["annotations"]["crossplane.io/paused"] == "true";
        if let Some(path) = is_paused.then(|| at(&one)).flatten() {
            let patch = json!({"metadata": {"annotations": {"crossplane.io/paused": null}}});
            stage.ask(Method::PATCH, &path, &patch).await?;
        }
    }
    stage.settle().await
}

async fn go(stage: &mut Stage, steps: &[Step]) -> Result<(), Failure> {
    arrive(stage, steps).await?;
    stage.restart()?;
    let mut writes = stage.first_writes().await;
    // A Lock that somebody deleted while nothing was installed is made at the next start.
    writes.retain(|write| write != "POST /apis/pkg.crossplane.io/v1beta1/locks");
    if writes.is_empty() {
        return Ok(());
    }
    Err(format!("a manager that is started again writes: {writes:?}").into())
}

/// What differs if everything that was made for packages is lost, and made again. If somebody is
/// not well that may depend on who is faster.
async fn made_anew(stage: &mut Stage) -> Result<Vec<String>, Failure> {
    let all = objects(&stage.place().log);
    if !laws::all_are_well(&all) {
        return Ok(Vec::new());
    }
    let before = essence(&stage.place().log);
    let is_lost = |one: &&Json| is_made(one) && text(one, "kind") != "Lock";
    for one in all.iter().filter(is_lost) {
        if let Some(path) = at(one) {
            // It may have gone with another.
            let _ = stage.ask(Method::DELETE, &path, &Json::Null).await;
        }
    }
    stage.settle().await?;
    let differences = picture::difference(&before, &essence(&stage.place().log));
    Ok(differences.into_iter().map(|one| format!("if all is lost: {one}")).collect())
}

/// A picture of what is in control, without those who once were.
fn essence(log: &Log) -> Picture {
    let mut picture = picture::take(log);
    picture.retain(|_, object| {
        if text(object, "kind").ends_with("Revision") {
            return object["spec"]["desiredState"] == "Active";
        }
        let Some(metadata) = object.get_mut("metadata") else { return true };
        let Some(owners) = metadata.get_mut("ownerReferences").and_then(Json::as_array_mut) else {
            return true;
        };
        owners.retain(|owner| owner["controller"] == true);
        !owners.is_empty()
    });
    picture
}

async fn take(stage: &mut Stage, step: &Step) -> Result<(), Failure> {
    match step {
        // Users may be refused: what they ask for may be there, or not.
        Step::Ask(method, path, body) => {
            let _ = stage.ask(method.clone(), path, body).await;
        }
        Step::Meddle(what, which) => {
            let all = objects(&stage.place().log);
            let _ = meddle(stage, *what, *which, &all).await;
        }
        Step::Move(version) => {
            stage.push(&nop(version), STABLE).await?;
        }
        Step::Wait(seconds) => stage.pass(Duration::from_secs(*seconds)).await?,
        Step::Rest => stage.settle().await?,
        Step::Restart => stage.restart()?,
        Step::Weather(schedule) => stage.expect(*schedule),
    }
    Ok(())
}

async fn meddle(
    stage: &Stage,
    what: Meddling,
    which: usize,
    all: &[Json],
) -> Result<Json, Failure> {
    let is_meant = |one: &&Json| match what {
        Meddling::Lose | Meddling::Disown | Meddling::Unlabel | Meddling::Edit => is_made(one),
        _ => text(one, "kind").ends_with("Revision"),
    };
    let mut meant: Vec<&Json> =
        all.iter().filter(is_meant).filter(|one| at(one).is_some()).collect();
    meant.sort_by_key(|one| crate::picture::name(one));
    let Some(one) = meant.get(which % meant.len().max(1)) else { return Ok(Json::Null) };
    let path = at(one).unwrap_or_default();
    let (method, body) = match what {
        Meddling::Activate => (Method::PATCH, json!({"spec": {"desiredState": "Active"}})),
        Meddling::Deactivate => (Method::PATCH, json!({"spec": {"desiredState": "Inactive"}})),
        Meddling::Pause => {
            let paused = json!({"crossplane.io/paused": "true"});
            (Method::PATCH, json!({"metadata": {"annotations": paused}}))
        }
        Meddling::DeleteRevision | Meddling::Lose => (Method::DELETE, Json::Null),
        Meddling::Disown => (Method::PATCH, json!({"metadata": {"ownerReferences": null}})),
        Meddling::Unlabel => (Method::PATCH, json!({"metadata": {"labels": null}})),
        Meddling::Edit => (Method::PATCH, edit(text(one, "kind"))),
    };
    stage.ask(method, &path, &body).await
}

/// A change to what the manager says about an object of a kind.
fn edit(kind: &str) -> Json {
    match kind {
        "Deployment" => json!({"spec": {
            "replicas": 5, "template": {"spec": {"serviceAccountName": "somebody"}},
        }}),
        "CustomResourceDefinition" => json!({"spec": {"versions": [{
            "name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "description": "another"}},
        }]}}),
        "ClusterRole" => json!({"rules": []}),
        "ClusterRoleBinding" => json!({"subjects": []}),
        "Service" => json!({"spec": {"selector": {"somebody": "else"}}}),
        "Secret" => json!({"data": null}),
        "Composition" => json!({"spec": {"mode": "Resources"}}),
        "Lock" => json!({"packages": []}),
        _ => json!({}),
    }
}

/// Whether the manager made something for a package.
fn is_made(object: &Json) -> bool {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Json::as_array);
    let is_revision = text(object, "kind").ends_with("Revision");
    let is_lock = text(object, "kind") == "Lock";
    is_lock || !is_revision && owners.is_some_and(|owners| !owners.is_empty())
}

/// Where an object is, if it is of a kind that is known here.
fn at(object: &Json) -> Option<String> {
    let (kind, version) = (text(object, "kind"), text(object, "apiVersion"));
    let name = object["metadata"]["name"].as_str()?;
    let root = if version.contains('/') { "/apis" } else { "/api" };
    let plural = match kind {
        "Pod" | "ReplicaSet" | "Event" | "Lease" | "EndpointSlice" | "Endpoints" => return None,
        _ => format!("{}s", kind.to_lowercase()),
    };
    let namespace = object["metadata"]["namespace"].as_str();
    let namespace = namespace.map(|one| format!("namespaces/{one}/")).unwrap_or_default();
    Some(format!("{root}/{version}/{namespace}{plural}/{name}"))
}

/// A walk that breaks a law, without the steps that do not matter for that.
pub fn shorten(ground: &Snapshot, steps: Vec<Step>) -> Vec<Step> {
    let mut steps = steps;
    let mut at = 0;
    while at < steps.len() {
        let mut fewer = steps.clone();
        fewer.remove(at);
        if walk(ground, &fewer, None).0.is_empty() {
            at += 1;
        } else {
            (steps, at) = (fewer, 0);
        }
    }
    steps
}
