//! The lock: all packages together.
//!
//! What a package needs is decided here and nowhere else, for all packages at once, because only
//! together can they be right: one version of each must suit everybody. What is there is put
//! to the `solver` as a question, and its answer becomes
//!
//! - packages to install, all that are missing at once, and packages to move to other versions,
//!   as few as possible and only where that is allowed;
//! - the Lock object: what was granted, what it needs, and which package owns which CRD and
//!   composition;
//! - a [`Verdict`] for every active revision, without which none is established; and none is
//!   granted anything before the Lock has it, so whoever is healthy can be found there;
//! - a [`Report`] for people who ask why.
//!
//! A revision is *admitted* once it is in the lock, or established; from then on it counts as
//! installed, and gives way to nobody. Before that it is a wish: if it cannot be granted without
//! taking something from others, it is refused and told why, and nothing is touched for it. A
//! package whose new revision is refused is still what its old one was. Who cannot be installed
//! keeps nothing from others: not who has a fault, whatever the lock says of it, nor who has
//! nothing because the API server refuses its objects, if somebody else wants the same.
//!
//! Everything the lock says follows from packages, their revisions and what is inside them. A lock
//! that is lost or damaged is simply written again; an entry that makes no sense hurts nobody.

mod act;
mod contents;
mod entries;
mod keepers;
mod kinds;
mod members;
mod origins;
mod question;
mod render;
mod report;
mod sources;
mod succession;
#[cfg(test)]
mod tests;
mod verdicts;

pub use contents::Contents;
pub use entries::owner;
pub use keepers::is_automatic;
pub(crate) use kinds::choose_image;
pub use kinds::{KindCandidate, KindPins, KindSources, Offered};
pub use render::{Pinning, Rendered, render};
pub use report::Report;
pub use solver::Movement;
pub(crate) use succession::marked_successor;

use crate::step::{Action, Expect, Need, Plan, Refusal, Step, Target, Wake};
use api::condition::{self, Condition, reasons, types};
use api::kind_reference::KindReference;
use api::meta::PackageKind;
use api::pkg::lock::{Lock, LockStatus, NAME};
use api::pkg::revision::Revision;
use api::pkg::{ANNOTATION_PAUSED, ImageConfig, Package};
use members::Members;
use oci::{Digest, Repository};
use question::Question;
use serde_json::Value as Json;
use solver::{Conflict, Outcome, Settlement};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long a registry's answer is believed while somebody lacks something.
pub const RECHECK: Duration = Duration::from_secs(60);
/// Conflicts that are written out in one message; more are counted.
const TOLD_MAX: usize = 5;

/// Everything that decides about the lock.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// The lock, as seen.
    pub lock: Option<Lock>,
    /// All packages of all kinds, as seen.
    pub packages: Vec<Package>,
    /// All their revisions, as seen.
    pub revisions: Vec<Revision>,
    /// All image configurations.
    pub image_configs: Vec<ImageConfig>,
    /// Which packages an administrator chose for kinds that several packages bring.
    pub pins: KindPins,
    /// What is known besides.
    pub known: Known,
    /// What the API server refused of what was decided before.
    pub refused: Vec<Refusal>,
    /// How this manager is set up.
    pub settings: Settings,
    /// The time, as conditions write it.
    pub now: String,
}

/// What was found out. Failures count: they are told, and asked again when they are forgotten.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The tags of repositories.
    pub tags: BTreeMap<Repository, Result<Vec<String>, String>>,
    /// What is inside packages, by full reference.
    pub contents: BTreeMap<String, Result<Contents, String>>,
    /// What is inside revisions, by name.
    pub revisions: BTreeMap<String, Contents>,
    /// The digests behind tags, by full reference.
    pub digests: BTreeMap<String, Result<Digest, String>>,
    /// Revisions of packages that have nothing, and whose objects the API server refused, or were an
    /// administrator's, when they were last tried.
    pub failing: BTreeSet<Whose>,
    /// Where kinds may come from that packages need and no package here brings.
    pub kinds: BTreeMap<KindReference, Result<KindSources, String>>,
    /// The definition of the lock's kind, once it was asked for.
    pub definition: Option<Option<Json>>,
}

/// How this manager is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The registry of references that name none.
    pub default_registry: String,
    /// The group of package objects.
    pub group: String,
    /// The version of Crossplane that packages are told this is.
    pub crossplane_version: String,
    /// How far installed packages may be moved for the sake of others.
    pub movement: Movement,
    /// Whether that goes for packages whose image other field managers keep, too.
    pub moves_kept: bool,
    /// Kinds of packages that must run, and not only be installed, before those that need them are.
    pub awaited: Vec<PackageKind>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            default_registry: oci::reference::DOCKER_HUB.to_owned(),
            group: api::pkg::GROUP.to_owned(),
            crossplane_version: "v2.0.0".to_owned(),
            movement: Movement::Upgrades,
            moves_kept: false,
            awaited: Vec::new(),
        }
    }
}

/// What a revision needs, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many packages it needs, directly or not.
    pub found: usize,
    /// How many of them are there.
    pub installed: usize,
    /// How many of those are there in a version it does not accept.
    pub invalid: usize,
}

/// What the lock says about a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has all it needs: its objects may be established.
    Resolved(Counts),
    /// Something is not there yet and is on its way; the lock will look again by itself.
    Waiting(Counts, String),
    /// It cannot have what it needs, for this reason, until somebody changes something.
    Conflict(Counts, String),
    /// Somebody said that its dependencies do not matter.
    Skipped,
    /// Nothing yet: it was not looked at since the revision came, or has just been written.
    Unheard,
}

/// A revision, told from all others: the same bytes may be asked for as packages of several kinds,
/// and one that is made anew has the name of the one before.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Whose {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: Option<String>,
}

impl Whose {
    /// This revision.
    pub fn of(revision: &Revision) -> Self {
        let Revision { kind, metadata, .. } = revision;
        Self { kind: kind.clone(), name: metadata.name.clone(), uid: metadata.uid.clone() }
    }
}

/// What was decided about all packages.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// What to do.
    pub plan: Plan,
    /// What the lock says about each active revision.
    pub verdicts: BTreeMap<Whose, Verdict>,
    /// Why.
    pub report: Report,
}

/// Decides about the lock.
pub fn step(world: &World) -> Step {
    match decide(world) {
        Ok(decided) => Step::Do(decided.plan),
        Err(needs) => Step::Need(needs),
    }
}

/// Decides about all packages, or says what to find out first.
pub fn decide(world: &World) -> Result<Decided, Vec<Need>> {
    let members = Members::new(world);
    let question = Question::new(world, &members)?;
    match solver::solve(&question.problem, &question.known) {
        Outcome::Missing(needs) => Err(question.needs(&needs)),
        Outcome::Settled(mut settlement) => {
            keepers::advise_conflicts(world, &members, &mut settlement)?;
            settle(world, &members, &question, settlement).map_err(|need| vec![need])
        }
    }
}

fn settle(
    world: &World,
    members: &Members<'_>,
    question: &Question<'_>,
    settlement: Settlement,
) -> Result<Decided, Need> {
    let mut verdicts = verdicts::of(world, members, question, &settlement);
    let report = Report::new(world, members, question, settlement);
    if world.lock.as_ref().is_some_and(|lock| lock.metadata.is_paused()) {
        let why = format!("the annotation {ANNOTATION_PAUSED} stops all work on the lock");
        verdicts::withhold(&mut verdicts, members, Some(&why));
        let plan = Plan { report: vec![why], ..Plan::default() };
        return Ok(Decided { plan, verdicts, report });
    }
    let mut plan = act::packages(world, members, question, &report);
    succession::hand_over(world, members, &report.conflicts, &mut plan);
    // What was refused would be refused again.
    plan.actions
        .retain(|action| !world.refused.iter().any(|one| act::is_about(action, &one.target)));
    let entries = entries::of(world, members, question, &report.conflicts);
    let is_needed = entries.packages.as_ref().is_some_and(|packages| !packages.is_empty());
    let troubles = troubles(world, &report.conflicts);
    let status = status(world, is_needed, &troubles);
    let refused = world.refused.iter().find(|one| one.target == target(world));
    match (entries::write(world, &entries, !troubles.is_empty())?, refused) {
        (None, _) => plan.actions.extend(tell(world, &status, &report.conflicts, members)),
        // What is written makes another state, which the status is then told of, and those who
        // come into the lock with it. The lock comes first: why a package was chosen is known only
        // until it is there, so a plan that ends early must not leave the package without the reason.
        (Some(action), None) => {
            plan.actions.insert(0, action);
            verdicts::withhold(&mut verdicts, members, None);
        }
        (Some(_), Some(Refusal { message, .. })) => {
            let why = format!("the API server will not have the lock: {message}");
            verdicts::withhold(&mut verdicts, members, Some(&why));
            plan.report.push(why);
        }
    }
    plan.report.splice(0..0, report.sentences());
    plan.wake = wake(world, &troubles);
    Ok(Decided { plan, verdicts, report })
}

fn target(world: &World) -> Target {
    let api_version = world.lock.as_ref().map(|lock| lock.api_version.clone());
    let api_version = api_version
        .filter(|it| !it.is_empty())
        .unwrap_or_else(|| format!("{}/v1beta1", world.settings.group));
    Target { api_version, kind: "Lock".to_owned(), namespace: None, name: NAME.to_owned() }
}

/// The conditions of the lock; one that lists nothing has none.
fn status(world: &World, is_needed: bool, troubles: &[String]) -> LockStatus {
    let seen = world.lock.as_ref().and_then(|lock| lock.status.clone());
    let mut status = seen.unwrap_or_default();
    if !is_needed && troubles.is_empty() {
        status.conditions = None;
        return status;
    }
    let (is_resolved, reason) = match troubles {
        [] => (true, reasons::RESOLVED),
        _ => (false, reasons::UNRESOLVED),
    };
    let resolved = Condition {
        condition_type: types::RESOLVED.to_owned(),
        status: if is_resolved { "True" } else { "False" }.to_owned(),
        last_transition_time: world.now.clone(),
        reason: reason.to_owned(),
        message: (!is_resolved).then(|| message(troubles)),
        observed_generation: world.lock.as_ref().and_then(|lock| lock.metadata.generation),
        ..Condition::default()
    };
    let conditions = status.conditions.get_or_insert_default();
    // The generation counts what we write ourselves, so a new one alone is no news.
    let seen = condition::find(conditions, types::RESOLVED);
    let generation = seen.and_then(|seen| seen.observed_generation);
    let same = seen.is_some_and(|seen| {
        seen.says_same(&Condition { observed_generation: generation, ..resolved.clone() })
    });
    if !same {
        condition::set(conditions, resolved);
    }
    status
}

/// Whatever keeps packages from having what they need, each with whose it is and what to do.
fn troubles(world: &World, conflicts: &[Conflict]) -> Vec<String> {
    let refused = world.refused.iter().map(|Refusal { target, message }| {
        let Target { kind, name, .. } = target;
        format!(
            "of {name}: the API server will not have the {kind}: {message}; hint: make it by hand"
        )
    });
    let conflicts = conflicts.iter().map(|one| format!("of {}: {}", one.name, words(one)));
    conflicts.chain(refused).collect()
}

fn message(troubles: &[String]) -> String {
    let told = troubles.get(..TOLD_MAX).unwrap_or(troubles);
    let more = troubles.len() - told.len();
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("Error occurred during dependency resolution {}{more}", told.join("; and "))
}

/// A conflict in one line.
fn words(conflict: &Conflict) -> String {
    format!("{conflict}; hint: {}", conflict.hint)
}

/// Puts the conditions into the lock, and tells packages that became part of a conflict; what was
/// told stays quiet.
fn tell(
    world: &World,
    status: &LockStatus,
    conflicts: &[Conflict],
    members: &Members<'_>,
) -> Vec<Action> {
    let Some(lock) = &world.lock else { return Vec::new() };
    if lock.status.as_ref().unwrap_or(&LockStatus::default()) == status {
        return Vec::new();
    }
    let event = |conflict: &Conflict| {
        let member = members.by_label(&conflict.name)?;
        let target = act::target_of(member.package);
        let (is_warning, reason) = (true, "ResolveDependencies");
        Some(Action::Event { target, is_warning, reason, message: words(conflict) })
    };
    let mut actions: Vec<Action> = conflicts.iter().filter_map(event).collect();
    actions.push(Action::Status {
        target: target(world),
        status: serde_json::to_value(status).unwrap_or(Json::Null),
        expect: Expect::as_seen(&lock.metadata),
    });
    actions
}

/// While somebody lacks something, or something could not be found out, the world may change
/// without a sign.
fn wake(world: &World, troubles: &[String]) -> Wake {
    let known = &world.known;
    let failed = known.tags.values().any(Result::is_err)
        || known.contents.values().any(Result::is_err)
        || known.digests.values().any(Result::is_err)
        || known.kinds.values().any(kinds::is_uncertain);
    if failed || !troubles.is_empty() { Wake::After(RECHECK) } else { Wake::OnChange }
}
