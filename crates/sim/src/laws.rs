//! What holds wherever a cluster comes to rest, however it came there.

use crate::picture::{name, text, uid};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};

/// Kinds of packages.
pub(crate) const PACKAGES: [&str; 3] = ["Provider", "Configuration", "Function"];
const LABEL_PACKAGE: &str = api::pkg::LABEL_PACKAGE;
const LABEL_REVISION: &str = api::pkg::LABEL_REVISION;

/// Which laws are broken, in sentences.
pub fn broken(objects: &[Json]) -> Vec<String> {
    let cluster = Cluster { objects };
    let mut broken = Vec::new();
    cluster.nothing_is_left_over(&mut broken);
    cluster.kinds_have_one_controller(&mut broken);
    for package in cluster.packages() {
        cluster.package_has_its_revisions(package, &mut broken);
    }
    for revision in cluster.revisions() {
        cluster.revision_has_what_it_should(revision, &mut broken);
    }
    cluster.lock_tells_what_there_is(&mut broken);
    broken
}

/// Whether every package has all it wants.
pub fn all_are_well(objects: &[Json]) -> bool {
    let cluster = Cluster { objects };
    let has_orphans = cluster.all_revisions().iter().any(|one| owners(one).is_empty());
    let is_well =
        |one: &&Json| ["Healthy", "Installed"].iter().all(|kind| condition(one, kind).0 == "True");
    !has_orphans && cluster.packages().iter().all(is_well)
}

/// All objects of a cluster.
#[derive(Clone, Copy)]
pub(crate) struct Cluster<'a> {
    pub(crate) objects: &'a [Json],
}

impl<'a> Cluster<'a> {
    pub(crate) fn of_kind(&self, is: impl Fn(&str) -> bool) -> Vec<&'a Json> {
        self.objects.iter().filter(|one| is(text(one, "kind"))).collect()
    }

    pub(crate) fn packages(&self) -> Vec<&'a Json> {
        self.of_kind(|kind| PACKAGES.contains(&kind))
    }

    /// Those of packages. One without a package is left alone: somebody wanted it to stay.
    pub(crate) fn revisions(&self) -> Vec<&'a Json> {
        self.all_revisions().into_iter().filter(|one| !owners(one).is_empty()).collect()
    }

    pub(crate) fn all_revisions(&self) -> Vec<&'a Json> {
        self.of_kind(|kind| kind.ends_with("Revision") && kind != "ControllerRevision")
    }

    /// Whatever has owners has one that is there; nothing waits to be deleted for ever.
    fn nothing_is_left_over(&self, broken: &mut Vec<String>) {
        let known: BTreeSet<&str> = self.objects.iter().filter_map(uid).collect();
        for one in self.objects {
            let gone: Vec<&str> = owners(one)
                .iter()
                .filter_map(|owner| owner["uid"].as_str())
                .filter(|uid| !known.contains(uid))
                .collect();
            if !gone.is_empty() && gone.len() == owners(one).len() {
                broken.push(format!("{} belongs to nobody who is there", name(one)));
            }
            if is_going(one) && !self.may_wait(one) {
                let finalizers = &one["metadata"]["finalizers"];
                broken.push(format!("{} is not deleted: {finalizers}", name(one)));
            }
        }
    }

    /// The Lock stays for as long as there are packages; a revision until the next one has what it
    /// leaves.
    fn may_wait(&self, object: &Json) -> bool {
        let kind = text(object, "kind");
        kind == "Lock" || kind.ends_with("Revision") && !self.successor_is_fine(object)
    }

    /// A kind has at most one controller.
    fn kinds_have_one_controller(&self, broken: &mut Vec<String>) {
        for one in self.objects {
            let controllers =
                owners(one).iter().filter(|owner| owner["controller"] == true).count();
            if controllers > 1 {
                broken.push(format!("{} has {controllers} controllers", name(one)));
            }
        }
    }

    fn revisions_of(&self, package: &Json) -> Vec<&'a Json> {
        let kind = format!("{}Revision", text(package, "kind"));
        let is_its =
            |one: &&Json| owners(one).iter().any(|owner| owner["uid"].as_str() == uid(package));
        self.of_kind(|one| one == kind).into_iter().filter(is_its).collect()
    }

    fn package_has_its_revisions(&self, package: &Json, broken: &mut Vec<String>) {
        let who = name(package);
        let revisions = self.revisions_of(package);
        let mut say = |what: String| broken.push(format!("{who}: {what}"));
        let labelled: Vec<&Json> = self
            .revisions()
            .into_iter()
            .filter(|one| {
                text(one, "kind") == format!("{}Revision", text(package, "kind"))
                    && one["metadata"]["labels"][LABEL_PACKAGE] == package["metadata"]["name"]
            })
            .collect();
        if labelled.len() != revisions.len() {
            say(format!("owns {} revisions, and {} say so", revisions.len(), labelled.len()));
        }
        let active: Vec<&&Json> = revisions.iter().filter(|one| is_active(one)).collect();
        if active.len() > 1 {
            say(format!("{} revisions are active", active.len()));
        }
        let mut numbers: BTreeMap<i64, usize> = BTreeMap::new();
        for one in &revisions {
            *numbers.entry(one["spec"]["revision"].as_i64().unwrap_or(-1)).or_default() += 1;
        }
        if numbers.values().any(|count| *count > 1) || numbers.contains_key(&-1) {
            say(format!("numbers of revisions: {numbers:?}"));
        }
        let limit = package["spec"]["revisionHistoryLimit"].as_u64().unwrap_or(1);
        let kept = revisions.iter().filter(|one| !is_going(one)).count();
        // What still stands while the active one has nothing does not count.
        let is_done = active.iter().any(|one| condition(one, "RevisionHealthy").0 == "True");
        let standing = u64::from(!active.is_empty() && !is_done);
        if limit > 0 && kept as u64 > limit + 1 + standing {
            say(format!("{kept} revisions, and {limit} may be kept"));
        }
        let is_automatic = package["spec"]["revisionActivationPolicy"] != "Manual";
        let is_fetched = condition(package, "Installed").0 == "True";
        if is_automatic && is_fetched {
            let current = &package["status"]["currentRevision"];
            match active.first() {
                None => say("nothing is active, though it is installed".to_owned()),
                Some(active) => {
                    if active["metadata"]["name"] != *current {
                        say(format!("{} is active, and not {current}", name(active)));
                    }
                    if active["spec"]["image"] != package["spec"]["package"] {
                        let (is, wanted) = (&active["spec"]["image"], &package["spec"]["package"]);
                        say(format!("{is} is active, and not {wanted}"));
                    }
                    let number = active["spec"]["revision"].as_i64();
                    if number != numbers.keys().copied().max() {
                        say(format!("the active one has number {number:?} of {numbers:?}"));
                    }
                }
            }
        }
        health_is_told(package, &revisions, broken);
    }

    /// Whether the active revision of a package has all it wants: until then the one before keeps
    /// what it has, so that it does not become nobody's.
    fn successor_is_fine(&self, revision: &Json) -> bool {
        self.successor(revision).is_some_and(is_fine)
    }

    /// The active revision of the same package.
    fn successor(&self, revision: &Json) -> Option<&'a Json> {
        let package = &revision["metadata"]["labels"][LABEL_PACKAGE];
        let kind = text(revision, "kind");
        self.revisions().into_iter().find(|one| {
            text(one, "kind") == kind
                && one["metadata"]["labels"][LABEL_PACKAGE] == *package
                && is_active(one)
        })
    }

    fn revision_has_what_it_should(&self, revision: &Json, broken: &mut Vec<String>) {
        let who = name(revision);
        let mut say = |what: String| broken.push(format!("{who}: {what}"));
        let is_active = is_active(revision);
        let is_fine = is_fine(revision);
        let is_run = condition(revision, "RuntimeHealthy").0 == "True";
        let its = |kind: &str| -> Vec<&Json> {
            let all = self.of_kind(|one| one == kind).into_iter();
            all.filter(|one| owners(one).iter().any(|owner| owner["uid"].as_str() == uid(revision)))
                .collect()
        };
        for kind in ["Deployment", "ServiceAccount"] {
            let count = its(kind).len();
            if is_active && is_run && count != 1 {
                say(format!("has {count} of {kind}"));
            }
            // What runs goes on until the next revision has all it wants, and is available.
            let is_awaited = self.successor(revision).is_some_and(|one| !is_well(one));
            if !is_active && !is_awaited && count > 0 {
                say(format!("is not active and has {count} of {kind}"));
            }
        }
        let labelled = self.of_kind(|kind| kind == "Deployment").into_iter().filter(|one| {
            one["spec"]["template"]["metadata"]["labels"][LABEL_REVISION]
                == revision["metadata"]["name"]
        });
        let labelled = labelled.count();
        if labelled != its("Deployment").len() {
            say(format!(
                "{labelled} Deployments run it and {} are its own",
                its("Deployment").len()
            ));
        }
        let refs = revision["status"]["objectRefs"].as_array().cloned().unwrap_or_default();
        for reference in refs {
            let found = self.objects.iter().find(|one| {
                text(one, "kind") == text(&reference, "kind")
                    && text(one, "apiVersion") == text(&reference, "apiVersion")
                    && one["metadata"]["name"] == reference["name"]
            });
            let what = format!("{}/{}", text(&reference, "kind"), text(&reference, "name"));
            let Some(found) = found else {
                if is_active && is_fine {
                    say(format!("{what} is not there"));
                }
                continue;
            };
            let owner = owners(found).iter().find(|owner| owner["uid"].as_str() == uid(revision));
            let controls = owner.is_some_and(|owner| owner["controller"] == true);
            if is_active && is_fine && !controls {
                say(format!("does not control {what}"));
            }
            if !is_active && controls && self.successor_is_fine(revision) {
                say(format!("is not active and controls {what}"));
            }
        }
    }

    /// The Lock has those that are active and no others.
    fn lock_tells_what_there_is(&self, broken: &mut Vec<String>) {
        let lock = self.of_kind(|kind| kind == "Lock");
        let entries = lock.first().and_then(|lock| lock["packages"].as_array());
        let told: BTreeSet<&str> =
            entries.into_iter().flatten().map(|entry| text(entry, "name")).collect();
        for revision in self.revisions() {
            let called = revision["metadata"]["name"].as_str().unwrap_or_default();
            let is_active = is_active(revision);
            let is_fine = is_fine(revision);
            if is_active && is_fine && !told.contains(called) {
                broken.push(format!("{} is not in the Lock", name(revision)));
            }
        }
        let is_meant = |one: &&Json| is_active(one) || !self.successor_is_fine(one);
        let revisions = self.revisions();
        let there = revisions.into_iter().filter(is_meant);
        let there: BTreeSet<&str> =
            there.filter_map(|one| one["metadata"]["name"].as_str()).collect();
        for gone in told.difference(&there) {
            broken.push(format!("the Lock tells of {gone}, which is not active"));
        }
    }
}

/// What is well says so, and what is not says why.
fn health_is_told(package: &Json, revisions: &[&Json], broken: &mut Vec<String>) {
    let who = name(package);
    let (healthy, why) = condition(package, "Healthy");
    let (installed, reason) = condition(package, "Installed");
    let active = revisions.iter().find(|one| is_active(one));
    let revision = active.map(|one| condition(one, "RevisionHealthy"));
    let mut say = |what: String| broken.push(format!("{who}: {what}"));
    if healthy.is_empty() || installed.is_empty() {
        say(format!("says nothing: {healthy:?} {installed:?}"));
    }
    if healthy != "True" && why.is_empty() {
        say(format!("is not healthy and does not say why: {reason}"));
    }
    if let (Some(active), Some((fine, said))) = (active, revision)
        && installed == "True"
    {
        let runs = condition(active, "RuntimeHealthy").0;
        let is_fine = fine == "True" && (runs.is_empty() || runs == "True");
        if is_fine != (healthy == "True") {
            say(format!("health is {healthy} ({why}), its revision's {fine} ({said}), {runs}"));
        }
    }
}

pub(crate) fn is_active(revision: &Json) -> bool {
    revision["spec"]["desiredState"] == "Active"
}

/// Whether a revision has all it wants, and runs.
fn is_well(revision: &Json) -> bool {
    is_fine(revision) && condition(revision, "RuntimeHealthy").0 == "True"
}

/// Whether a revision has all it wants.
fn is_fine(revision: &Json) -> bool {
    condition(revision, "RevisionHealthy").0 == "True"
}

pub(crate) fn is_going(object: &Json) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

pub(crate) fn owners(object: &Json) -> &[Json] {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Json::as_array);
    owners.map_or(&[], Vec::as_slice)
}

/// Status and message of a condition.
pub(crate) fn condition<'a>(object: &'a Json, kind: &str) -> (&'a str, &'a str) {
    let conditions = object.pointer("/status/conditions").and_then(Json::as_array);
    let found = conditions.into_iter().flatten().find(|one| one["type"] == kind);
    found.map_or(("", ""), |one| (text(one, "status"), text(one, "message")))
}
