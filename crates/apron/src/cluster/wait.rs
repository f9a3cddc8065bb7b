//! Looking until packages are as somebody wants them, and saying how they come along.

use super::Cluster;
use super::pods::{PodNews, find_logged_troubles};
use crate::args::duration;
use crate::failure::{Failure, Outcome};
use crate::output;
use api::condition::{Condition, types};
use inventory::{FoundObject, Installed, Inventory, Which};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// The first pause between two looks; pauses grow, so that quick things are seen quickly and slow
/// ones cost the cluster little.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// What to wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Goal {
    /// Installed, and doing what they should
    #[default]
    Healthy,
    /// Their revision is active, whether or not it works yet
    Installed,
    /// Gone, with their revisions
    Deleted,
    /// Healthy, and what is asked for is what is active.
    #[value(skip)]
    Updated,
}

impl Goal {
    fn is_met(self, which: &Which, inventory: &Inventory) -> bool {
        let named = inventory.find_object(which).ok();
        let is_well = || named.is_some_and(|one| one.state(inventory).is_well());
        let found = named.and_then(|one| one.package(inventory));
        match self {
            Self::Deleted => inventory.is_gone(which),
            Self::Healthy => is_well(),
            Self::Updated => is_well() && found.is_some_and(|one| one.waiting().is_none()),
            Self::Installed => found.is_some_and(|one| {
                let installed = one.condition(types::INSTALLED);
                let is_now = |it: &&Condition| !it.is_past(one.package.metadata.generation);
                installed.filter(is_now).is_some_and(|it| it.status == "True")
            }),
        }
    }

    fn told(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Installed => "installed",
            Self::Deleted => "gone",
            Self::Updated => "healthy in the version that is asked for",
        }
    }
}

/// Looks until all are as wanted, or the time is over.
pub(crate) async fn until(
    cluster: &Cluster,
    which: &[Which],
    goal: Goal,
    time: Duration,
) -> Outcome<Inventory> {
    let (end, mut pause) = (Instant::now() + time, PAUSE_MIN);
    let (mut seen, mut news) = (BTreeMap::new(), PodNews::default());
    loop {
        // A cluster that is away for a moment is what waiting is for.
        let found = Inventory::gather(cluster).await;
        if let Ok(inventory) = &found {
            let is_met = which.iter().all(|one| goal.is_met(one, inventory));
            // What is so at the first look has not come along.
            if !is_met || pause > PAUSE_MIN {
                tell(which, inventory, &mut seen);
            }
            if is_met {
                return found;
            }
            if goal != Goal::Deleted {
                Box::pin(news.tell_changes(cluster, &affected(which, inventory))).await;
            }
        }
        if Instant::now() + pause > end {
            let causes = explain_pods(cluster, which, goal, &found);
            let causes = Box::pin(causes).await;
            let mut failure = overdue(which, goal, time, found);
            failure.causes.extend(causes);
            return Err(failure);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 3 / 2).min(PAUSE_MAX);
    }
}

/// The packages that are waited for, and those that they need.
fn affected<'a>(which: &[Which], inventory: &'a Inventory) -> Vec<&'a Installed> {
    let mut all: Vec<&Installed> = Vec::new();
    let found = which.iter().filter_map(|it| inventory.find(it).ok());
    for one in found.flat_map(|one| inventory.closure(one)) {
        if !all.iter().any(|other| std::ptr::eq(*other, one)) {
            all.push(one);
        }
    }
    all
}

/// What is in the way of the programs of packages that did not become healthy in time.
async fn explain_pods(
    cluster: &Cluster,
    which: &[Which],
    goal: Goal,
    found: &Outcome<Inventory>,
) -> Vec<String> {
    let Ok(inventory) = found else { return Vec::new() };
    if goal == Goal::Deleted {
        return Vec::new();
    }
    let troubles = find_logged_troubles(cluster, &affected(which, inventory)).await;
    troubles.iter().map(|(_, trouble)| trouble.sentence_with_log()).collect()
}

/// Says what has changed since the last look.
fn tell(which: &[Which], inventory: &Inventory, seen: &mut BTreeMap<String, String>) {
    for one in which.iter().filter_map(|it| inventory.find_object(it).ok()) {
        let below = one.package(inventory).map(|one| inventory.closure(one)).unwrap_or_default();
        let below = below.into_iter().rev().map(FoundObject::Package);
        let install = Some(one).filter(|one| matches!(one, FoundObject::Install(_)));
        for one in below.chain(install) {
            let (id, progress) = (one.id(), one.progress(inventory));
            if seen.get(&id) != Some(&progress) {
                output::say(format_args!("{} {progress}", output::bold(&id)));
                seen.insert(id, progress);
            }
        }
    }
}

fn overdue(which: &[Which], goal: Goal, time: Duration, found: Outcome<Inventory>) -> Failure {
    let inventory = match found {
        Ok(inventory) => inventory,
        Err(failure) => return failure,
    };
    let open: Vec<&Which> = which.iter().filter(|one| !goal.is_met(one, &inventory)).collect();
    let names: Vec<&str> = open.iter().map(|one| one.name.as_str()).collect();
    let (names, told) = (names.join(" and "), goal.told());
    let message = format!("{names} did not become {told} within {}", duration::tell(time));
    let see = match open.as_slice() {
        [one] => format!("see more with `apron status {}`", one.name),
        _ => "see more with `apron status`".to_owned(),
    };
    let is_stuck = |one: &&Which| {
        inventory.find_object(one).is_ok_and(|one| one.needs_user_action(&inventory))
    };
    let hint = if goal != Goal::Deleted && open.iter().all(is_stuck) {
        see
    } else {
        format!("{see}, or wait longer")
    };
    let mut failure = Failure::new(message, hint);
    for one in open {
        match inventory.find_object(one) {
            Ok(one) => failure.causes.push(format!("{} is {}", one.id(), one.progress(&inventory))),
            Err(_) if goal == Goal::Deleted => {
                failure.causes.push(format!("revisions of {} are still there", one.name));
            }
            Err(missing) => failure.causes.push(missing.message),
        }
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::meta::PackageKind;
    use serde_json::json;

    #[test]
    fn nobody_is_told_to_wait_longer_where_that_cannot_help() {
        let hint = |annotations: serde_json::Value, says: &str| {
            let said = |of: &str, status: &str| {
                json!({"type": of, "status": status, "reason": "R", "message": says,
                    "lastTransitionTime": "2026-01-31T12:00:00Z"})
            };
            let package = json!({
                "apiVersion": "pkg.crossplane.io/v1", "kind": "Provider",
                "metadata": {"name": "p", "annotations": annotations}, "spec": {"package": "p:v2"},
                "status": {"conditions": [
                    said(types::INSTALLED, "True"), said(types::HEALTHY, "False"),
                ]},
            });
            let found = vec![(PackageKind::Provider, package, Vec::new())];
            let (inventory, which) = (Inventory::of(found, json!({})).unwrap(), Which::parse("p"));
            overdue(&[which], Goal::Healthy, Duration::from_secs(1), Ok(inventory)).hint
        };
        let (see, longer) = ("see more with `apron status p`", ", or wait longer");
        assert_eq!(hint(json!({}), "no answer"), format!("{see}{longer}"));
        assert_eq!(hint(json!({"crossplane.io/paused": "true"}), "no answer"), see);
        let circle = "packages must not need each other in a circle; hint: remove one of these";
        assert_eq!(hint(json!({}), circle), see);
    }

    #[test]
    fn a_package_is_not_updated_while_the_new_version_waits_to_be_activated() {
        let said = |of: &str| {
            json!({"type": of, "status": "True", "reason": "R",
                "lastTransitionTime": "2026-01-31T12:00:00Z"})
        };
        let package = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": {"name": "p"},
            "spec": {"package": "p:v2", "revisionActivationPolicy": "Manual"},
            "status": {"conditions": [said(types::INSTALLED), said(types::HEALTHY)]},
        });
        let revision = |number: i64, active: i64| {
            let state = if number == active { "Active" } else { "Inactive" };
            json!({
                "apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision",
                "metadata": {
                    "name": format!("p-{number}"), "labels": {"pkg.crossplane.io/package": "p"},
                },
                "spec": {"image": format!("p:v{number}"), "revision": number, "desiredState": state},
            })
        };
        let met = |active: i64| {
            let mut package = package.clone();
            package["status"]["currentRevision"] = json!(format!("p-{active}"));
            let revisions = vec![revision(1, active), revision(2, active)];
            let inventory =
                Inventory::of(vec![(PackageKind::Provider, package, revisions)], json!({}))
                    .unwrap();
            [Goal::Healthy, Goal::Updated].map(|it| it.is_met(&Which::parse("p"), &inventory))
        };
        assert_eq!(met(1), [true, false]);
        assert_eq!(met(2), [true, true]);
    }
}
