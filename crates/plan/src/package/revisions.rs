//! Which revisions a package should have.
//!
//! - The revision of what is asked for is named after the package and the digest, so the same
//!   bytes have the same revision, whatever tag led to them.
//! - `Automatic`: it is active, and no other is. `Manual`: it waits, and whichever was active stays
//!   so until somebody activates another; then that one is, alone.
//! - Numbers say who was active last: a new revision gets one more than the highest, and so does one
//!   that becomes active, even if it has the highest already, and one that is active while the package
//!   gets the revisions of another ([`crate::lock`]).
//! - Of inactive revisions the limit allows the highest numbers stay, and 0 keeps them all; those
//!   that never ran go before those that did. What is active, or asked for, always stays. So does
//!   what still stands for the package while the active one has nothing yet, and it
//!   does not count: an upgrade that is refused must not take away what works.
//!
//! New comes before old in the list of actions, so there is always a revision that holds on to
//! what is installed.

use super::pull::Policy;
use super::{World, target_of};
use crate::control;
use crate::runtime::SECRETS;
use crate::same::same;
use crate::step::{Action, Expect, MANAGER, Need, Target, Wanted as Object};
use api::condition::{self, reasons, types};
use api::meta::PackageKind;
use api::object::OwnerReference;
use api::pkg::revision::{ACTIVE, INACTIVE, Revision, RevisionSpec, TypedReference};
use api::pkg::{ANNOTATION_ACTIVATED_AS, LABEL_PACKAGE, LocalReference};
use serde_json::{Value as Json, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The longest name an object may have.
const NAME_SIZE_MAX: usize = 253;

/// What was decided.
pub(super) struct Decided {
    /// The revision that stands for the package.
    pub(super) current: String,
    /// Whether that one is active.
    pub(super) is_active: bool,
    /// Whether something else is asked of it than before.
    pub(super) changes: bool,
    pub(super) actions: Vec<Action>,
    pub(super) report: Vec<String>,
}

/// What a revision should be.
struct Wanted {
    state: String,
    number: i64,
    /// Whether it is written down that it got its number for being activated.
    is_noted: bool,
}

/// Decides about all revisions of a package, given the one that its image means now, or says what
/// to find out first.
pub(super) fn decide(world: &World, asked: &str) -> Result<Decided, Vec<Need>> {
    let seen = seen(world);
    let mut report = Vec::new();
    let active = winner(world, &seen, asked, &mut report);
    let wanted = states(world, &seen, Some(asked), active.as_deref());
    let mut actions = changes(world, &seen, &wanted, Some(asked), &mut report);
    for revision in outdated(world, &wanted, asked)? {
        let name = &revision.metadata.name;
        report.push(format!("{name} goes: more inactive revisions than are to be kept"));
        let expect = Expect::as_seen(&revision.metadata);
        let target = target_of(&revision.api_version, &revision.kind, name);
        actions.push(Action::Delete { target, expect });
    }
    let current = active.clone().unwrap_or_else(|| asked.to_owned());
    let changes = actions.iter().any(|action| changes_something(action, &seen, &current));
    Ok(Decided { is_active: active.is_some(), current, changes, actions, report })
}

/// Decides who is active where nobody can tell what the package asks for: the one that somebody
/// activated, alone.
pub(super) fn settle(world: &World) -> Option<Decided> {
    let seen = seen(world);
    let active = activated(world, &seen);
    let found = &active.first()?.metadata.name;
    if !world.package.is_manual() || active.len() < 2 && current(world) == Some(found) {
        return None;
    }
    let current = found.clone();
    let wanted = states(world, &seen, None, Some(&current));
    let mut report = Vec::new();
    let actions = changes(world, &seen, &wanted, None, &mut report);
    let changes = actions.iter().any(|action| changes_something(action, &seen, &current));
    Some(Decided { current, is_active: true, changes, actions, report })
}

/// Whether an action makes something else of a revision. What others say in it, and the package
/// does not, stays theirs however often it is applied.
fn changes_something(action: &Action, seen: &BTreeMap<&str, &Revision>, revision: &str) -> bool {
    let Action::Apply { object, .. } = action else { return false };
    let live = seen.get(revision).and_then(|live| serde_json::to_value(live).ok());
    object["metadata"]["name"] == *revision && live.is_none_or(|live| !same(object, &live, MANAGER))
}

fn seen(world: &World) -> BTreeMap<&str, &Revision> {
    world.revisions.iter().map(|one| (one.metadata.name.as_str(), one)).collect()
}

/// Makes revisions what they should be: who becomes active or is new first, then who steps back.
fn changes(
    world: &World,
    seen: &BTreeMap<&str, &Revision>,
    wanted: &BTreeMap<String, Wanted>,
    asked: Option<&str>,
    report: &mut Vec<String>,
) -> Vec<Action> {
    let (first, then): (Vec<_>, Vec<_>) = wanted.iter().partition(|(_, one)| one.state == ACTIVE);
    let each = first.into_iter().chain(then).flat_map(|(name, wanted)| {
        let revision = seen.get(name.as_str()).copied();
        apply(world, name, wanted, revision, asked == Some(name), report)
    });
    each.collect()
}

/// The revision that stood for the package so far.
pub(super) fn current(world: &World) -> Option<&str> {
    world.package.status.as_ref()?.current_revision.as_deref()
}

/// The revision that should be active.
fn winner(
    world: &World,
    seen: &BTreeMap<&str, &Revision>,
    asked: &str,
    report: &mut Vec<String>,
) -> Option<String> {
    if !world.package.is_manual() {
        return Some(asked.to_owned());
    }
    let found = activated(world, seen).first().map(|one| one.metadata.name.clone());
    if found.as_deref() != Some(asked) {
        report.push(format!("{asked} waits for somebody to activate it"));
    }
    found
}

/// The revisions that are active, the one that was not so before first: that is the one somebody
/// activated.
fn activated<'a>(world: &World, seen: &BTreeMap<&str, &'a Revision>) -> Vec<&'a Revision> {
    let mut active: Vec<&Revision> =
        seen.values().copied().filter(|one| one.spec.desired_state == ACTIVE).collect();
    let before = current(world);
    active.sort_by_key(|one| {
        let name = one.metadata.name.as_str();
        (Some(name) == before, Reverse((one.spec.revision, name)))
    });
    active
}

/// The state and number of every revision.
fn states(
    world: &World,
    seen: &BTreeMap<&str, &Revision>,
    asked: Option<&str>,
    active: Option<&str>,
) -> BTreeMap<String, Wanted> {
    let (is_manual, before) = (world.package.is_manual(), current(world));
    let highest = seen.values().map(|one| one.spec.revision).max().unwrap_or_default();
    let mut wanted: BTreeMap<String, Wanted> = BTreeMap::new();
    for (name, revision) in seen {
        let (was, number) = (&revision.spec.desired_state, revision.spec.revision);
        let is_active = active == Some(*name);
        let state = match (is_active, was.as_str()) {
            (true, _) => ACTIVE,
            // Whoever made it left it undecided, which is for people to settle.
            (false, "") if is_manual => "",
            (false, _) => INACTIVE,
        };
        // What the status says may be older than the states are: whoever was not active, is new.
        let is_new = is_active && (was != ACTIVE || before != Some(*name));
        let is_noted = is_active && was == ACTIVE && is_activated_by_hand(world, revision);
        let is_overtaken = is_active && is_overtaken(world, revision);
        let is_raised =
            is_active && was != ACTIVE || is_noted || is_overtaken || is_new && number < highest;
        let number = if is_raised { highest + 1 } else { number };
        wanted.insert((*name).to_owned(), Wanted { state: state.to_owned(), number, is_noted });
    }
    if let Some(asked) = asked {
        wanted.entry(asked.to_owned()).or_insert_with(|| {
            let state = if active == Some(asked) { ACTIVE } else { INACTIVE };
            Wanted { state: state.to_owned(), number: highest + 1, is_noted: false }
        });
    }
    wanted
}

/// Whether the number of an active revision is another's, too, or not the highest though only the
/// newest is ever active: the package got revisions of an automatic one that gave way to it.
fn is_overtaken(world: &World, active: &Revision) -> bool {
    let number = active.spec.revision;
    let mut others = world.revisions.iter().filter(|one| one.metadata.name != active.metadata.name);
    others.any(|one| {
        one.spec.revision == number || !world.package.is_manual() && one.spec.revision > number
    })
}

/// Whether somebody activated a revision since the status was written, and it has not got its number
/// for that yet. Its state says nothing about that any more, so the number is noted beside it.
fn is_activated_by_hand(world: &World, revision: &Revision) -> bool {
    let Revision { metadata, spec, .. } = revision;
    let was_another = current(world).is_some_and(|before| before != metadata.name);
    let conditions = world.package.status.iter().flat_map(|status| status.conditions.iter());
    let installed = conditions.flatten().find(|one| one.condition_type == types::INSTALLED);
    let waited = installed.is_some_and(|one| one.reason == reasons::INACTIVE);
    let noted = metadata.annotations.get(ANNOTATION_ACTIVATED_AS);
    let is_noted = noted.is_some_and(|noted| *noted == spec.revision.to_string());
    world.package.is_manual() && (was_another || waited) && !is_noted
}

/// Makes a revision what it should be, if it is not. Only the one asked for follows the package
/// in what else it says: others keep what they were made with.
fn apply(
    world: &World,
    name: &str,
    wanted: &Wanted,
    seen: Option<&Revision>,
    is_asked: bool,
    report: &mut Vec<String>,
) -> Vec<Action> {
    // One that goes cannot be kept; once it is gone, there is another.
    if seen.is_some_and(|seen| seen.metadata.deletion_timestamp.is_some()) {
        return Vec::new();
    }
    let mut spec = match seen {
        Some(seen) if !is_asked => seen.spec.clone(),
        _ => spec(world),
    };
    spec.desired_state.clone_from(&wanted.state);
    spec.revision = wanted.number;
    let owner = owner(world);
    if let Some(seen) = seen {
        let compared = filled(&spec, &seen.spec);
        let labelled =
            seen.metadata.labels.get(LABEL_PACKAGE) == Some(&world.package.metadata.name);
        let is_ours = seen.metadata.owner_references.contains(&owner);
        if seen.spec == compared && labelled && is_ours {
            return Vec::new();
        }
        if seen.spec.desired_state != wanted.state {
            report.push(format!("{name} becomes {}", wanted.state));
        }
    } else {
        report.push(format!("{name} is made as revision {}", wanted.number));
    }
    let mut object = json!({
        "apiVersion": seen.map_or(&world.package.api_version, |seen| &seen.api_version),
        "kind": format!("{}Revision", world.kind.as_str()),
        "metadata": {
            "name": name,
            "labels": {LABEL_PACKAGE: world.package.metadata.name},
            "ownerReferences": [owner],
        },
        "spec": spec,
    });
    if wanted.is_noted {
        object["metadata"]["annotations"] =
            json!({ANNOTATION_ACTIVATED_AS: wanted.number.to_string()});
    }
    let seen = seen.map(|seen| json!({"metadata": seen.metadata}));
    control::apply(&object, seen.as_ref())
}

/// What ours comes to once the API server has filled in what it says nothing about.
fn filled(ours: &RevisionSpec, seen: &RevisionSpec) -> RevisionSpec {
    let mut filled = ours.clone();
    filled.rest.clone_from(&seen.rest);
    filled.package_pull_policy =
        filled.package_pull_policy.or_else(|| seen.package_pull_policy.clone());
    filled.ignore_crossplane_constraints =
        filled.ignore_crossplane_constraints.or(seen.ignore_crossplane_constraints);
    filled.skip_dependency_resolution =
        filled.skip_dependency_resolution.or(seen.skip_dependency_resolution);
    filled.runtime_config_ref =
        filled.runtime_config_ref.or_else(|| seen.runtime_config_ref.clone());
    filled
}

/// What a package hands down to its revision.
fn spec(world: &World) -> RevisionSpec {
    let package = &world.package.spec;
    let runs = world.kind != PackageKind::Configuration && world.settings.runs_packages;
    let [server, client] = SECRETS.map(|end| named(&world.package.metadata.name, end));
    let is_provider = world.kind == PackageKind::Provider;
    let policy = package.package_pull_policy.as_ref();
    let policy = policy.filter(|policy| Policy::known(policy).is_some());
    let controller_config: Option<LocalReference> =
        package.controller_config_ref.clone().filter(|_| is_provider);
    RevisionSpec {
        image: package.package.clone(),
        package_pull_secrets: package.package_pull_secrets.clone(),
        // What is no policy would be refused of the pods that it is handed on to.
        package_pull_policy: policy.cloned(),
        ignore_crossplane_constraints: package.ignore_crossplane_constraints,
        skip_dependency_resolution: package.skip_dependency_resolution,
        common_labels: package.common_labels.clone(),
        common_annotations: package.common_annotations.clone(),
        runtime_config_ref: package.runtime_config_ref.clone().filter(|_| runs),
        controller_config_ref: controller_config,
        service_account: package.service_account.clone().filter(|_| runs),
        tls_server_secret_name: runs.then_some(server),
        tls_client_secret_name: (runs && is_provider).then_some(client),
        ..RevisionSpec::default()
    }
}

/// A name with an end that is never cut off.
fn named(name: &str, end: &str) -> String {
    let kept = name.len().min(NAME_SIZE_MAX - end.len());
    let kept = (0..=kept).rev().find(|at| name.is_char_boundary(*at)).unwrap_or_default();
    format!("{}{end}", &name[..kept])
}

fn owner(world: &World) -> OwnerReference {
    OwnerReference {
        api_version: world.package.api_version.clone(),
        kind: world.package.kind.clone(),
        name: world.package.metadata.name.clone(),
        uid: world.package.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
        rest: serde_json::Map::<String, Json>::new(),
    }
}

/// Inactive revisions beyond the limit: those that were tried and never ran first, then the oldest.
fn outdated<'a>(
    world: &'a World,
    wanted: &BTreeMap<String, Wanted>,
    asked: &str,
) -> Result<Vec<&'a Revision>, Vec<Need>> {
    let limit = world.package.spec.revision_history_limit.unwrap_or(1);
    let Ok(limit @ 1..) = usize::try_from(limit) else { return Ok(Vec::new()) };
    let is_active = |name: &String| wanted.get(name).is_some_and(|wanted| wanted.state == ACTIVE);
    let stays = |one: &&Revision| {
        let name = &one.metadata.name;
        !is_active(name) && name != asked && one.metadata.deletion_timestamp.is_none()
    };
    let mut inactive: Vec<&Revision> = world.revisions.iter().filter(stays).collect();
    let has_active = wanted.values().any(|one| one.state == ACTIVE);
    let is_done = |one: &Revision| one.spec.desired_state == ACTIVE && one.is_established();
    let is_settled = |one: &Revision| is_active(&one.metadata.name) && is_done(one);
    if has_active && !world.revisions.iter().any(is_settled) {
        // Whichever of them stands does not count, and nobody has to know yet which that is.
        if inactive.len() <= limit.saturating_add(1) {
            return Ok(Vec::new());
        }
        let standing = standing(world, &inactive)?;
        inactive.retain(|one| !standing.contains(one.metadata.name.as_str()));
    }
    let beyond = inactive.len().saturating_sub(limit);
    inactive.sort_by_key(|one| (ran(one) != Some(false), one.spec.revision, &one.metadata.name));
    inactive.truncate(beyond);
    Ok(inactive)
}

/// The revisions that still stand for the package, although another one is to be active: those that
/// control objects, which the next one takes when it can, and the last one that ran, whose
/// controller goes on until then.
fn standing<'a>(world: &World, inactive: &[&'a Revision]) -> Result<BTreeSet<&'a str>, Vec<Need>> {
    let brought: BTreeSet<Target> = inactive.iter().flat_map(|one| brought(one)).collect();
    let unknown = brought.into_iter().filter(|target| !world.owners.contains_key(target));
    let unknown: Vec<Object> = unknown.map(|target| Object { target, packaged: None }).collect();
    if !unknown.is_empty() {
        return Err(vec![Need::Objects(unknown)]);
    }
    let last = inactive.iter().filter(|one| ran(one) == Some(true));
    let last = last.max_by_key(|one| (one.spec.revision, &one.metadata.name));
    let controlling = inactive.iter().filter(|one| controls(world, one));
    Ok(controlling.chain(last).map(|one| one.metadata.name.as_str()).collect())
}

/// Whether a revision controls one of the objects it brought. It is known by its name: after a
/// restore it has another uid.
fn controls(world: &World, revision: &Revision) -> bool {
    let is_it = |owner: &OwnerReference| {
        owner.controller == Some(true) && control::is_named(owner, revision)
    };
    brought(revision)
        .any(|target| world.owners.get(&target).is_some_and(|owners| owners.iter().any(is_it)))
}

fn brought(revision: &Revision) -> impl Iterator<Item = Target> {
    let references = revision.status.iter().flat_map(|status| status.object_refs.iter().flatten());
    references
        .map(|TypedReference { api_version, kind, name, .. }| target_of(api_version, kind, name))
}

/// Whether what a revision runs was well when it was last active; nothing for those that run
/// nothing, or never were.
fn ran(revision: &Revision) -> Option<bool> {
    let runtime = condition::find(revision.conditions(), types::RUNTIME_HEALTHY)?;
    Some(runtime.status == "True")
}
