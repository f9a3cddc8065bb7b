//! Which revision of a package is meant: by its name, or as the one to go back to.

use crate::cluster::{Cluster, Resource};
use crate::installed::{Installed, version};
use api::condition::{self, types};
use api::pkg::revision::{ACTIVE, Revision};
use controller::UNESTABLISHED;
use ground::failure::{Failure, Outcome};
use serde_json::Value as Json;

/// How many of a package's objects are looked at to see whose they are: one says it, unless it is
/// gone or was taken by another package.
const LOOKS_MAX: usize = 8;

impl Installed {
    /// The revision to go back to.
    ///
    /// If something else is asked for than what is active and in place, that is the one. If what is
    /// active never got the package's objects, it is the one that still has them. Otherwise it is the
    /// last one that was active before: numbers are raised whenever a revision becomes active, so it
    /// has the highest below that of the one that is. One that did not get its objects while it was
    /// active comes after all that did.
    pub fn revision_before(&self, holder: Option<&str>) -> Outcome<&Revision> {
        let active = self.active();
        let stays = |it: &&Revision| it.spec.image != self.package.spec.package;
        let stays = active.filter(|_| !self.package.is_manual()).filter(stays);
        let number = active.map(|it| it.spec.revision);
        let is_older = |it: &&&Revision| number.is_none_or(|number| it.spec.revision < number);
        let inactive: Vec<&Revision> =
            self.revisions.iter().filter(|it| it.spec.desired_state != ACTIVE).collect();
        let holds = inactive.iter().find(|it| Some(it.metadata.name.as_str()) == holder);
        let older = || inactive.iter().filter(is_older).filter(|it| was_active(it));
        let found =
            holds.or_else(|| older().find(|it| !was_refused(it))).or_else(|| older().next());
        let runs = stays.filter(|it| it.is_established());
        runs.or(found.copied()).or(stays).ok_or_else(|| nothing_before(self, inactive.is_empty()))
    }

    /// The revision that controls the package's objects, if the active one has not got them. Who may
    /// not read them is not told, and goes by what the revisions say.
    pub async fn find_holder(&self, cluster: &Cluster) -> Option<String> {
        self.active().filter(|it| !it.is_established())?;
        let all = self.revisions.iter().filter_map(|it| it.status.as_ref()?.object_refs.as_ref());
        for object in all.flatten().take(LOOKS_MAX) {
            let Some((group, version)) = object.api_version.split_once('/') else { continue };
            let plural = format!("{}s", object.kind.to_lowercase());
            let resource = Resource::of_group(group, version, &plural);
            let found = cluster.get::<Json>(&resource, &object.name).await.ok().flatten();
            if let Some(name) = found.as_ref().and_then(controller)
                && self.revisions.iter().any(|it| it.metadata.name == name)
            {
                return Some(name.to_owned());
            }
        }
        None
    }

    /// The revision of a name, number or version.
    pub fn revision_named(&self, named: &str) -> Outcome<&Revision> {
        let is_it = |it: &&Revision| {
            it.metadata.name == named
                || it.spec.revision.to_string() == named
                || version(&it.spec.image) == named
        };
        self.revisions.iter().find(is_it).ok_or_else(|| {
            let known: Vec<String> = self
                .revisions
                .iter()
                .map(|it| format!("{} ({})", it.metadata.name, version(&it.spec.image)))
                .collect();
            if known.is_empty() {
                return self.without_revisions();
            }
            let message = format!("{} has no revision {named}", self.id());
            Failure::new(message, format!("it has {}", known.join(", ")))
        })
    }

    /// That it has no revisions, and where to see why.
    pub fn without_revisions(&self) -> Failure {
        Failure::new(
            format!("{} has no revisions yet", self.id()),
            format!("see what it waits for with `apron status {}`", self.name()),
        )
    }
}

/// Whether an inactive revision was active once: one that was made to wait, and waits, was never
/// changed.
fn was_active(revision: &Revision) -> bool {
    revision.metadata.generation.is_none_or(|generation| generation > 1)
}

/// Whether the last thing that was said of an inactive revision while it was active is that its
/// objects are not there. What is said of them now is said of one that needs none.
fn was_refused(revision: &Revision) -> bool {
    let runtime = condition::find(revision.conditions(), types::RUNTIME_HEALTHY);
    let message = runtime.filter(|it| it.status == "False").and_then(|it| it.message.as_deref());
    message.is_some_and(|message| message.ends_with(UNESTABLISHED))
}

/// The name of the owner that controls an object.
fn controller(object: &Json) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|it| it["controller"] == true)?["name"].as_str()
}

fn nothing_before(one: &Installed, is_alone: bool) -> Failure {
    let (id, name) = (one.id(), one.name());
    if is_alone {
        return Failure::new(
            format!("{id} has no older revision to go back to"),
            format!(
                "name a version instead: apron update {name} VERSION; revisionHistoryLimit says \
                 how many revisions are kept"
            ),
        );
    }
    Failure::new(
        format!("no other revision of {id} was active before"),
        format!("choose one that `apron status {name}` shows: apron rollback {name} REVISION"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::installed::Inventory;
    use api::meta::PackageKind;
    use serde_json::json;

    /// A revision by its version, number and generation, with what it says.
    fn revision(version: &str, (number, generation): (i64, i64), says: &[(&str, &str)]) -> Json {
        let says = says.iter().map(|(of, message)| {
            let status = if message.is_empty() { "True" } else { "False" };
            json!({"type": of, "status": status, "reason": "R", "message": message,
                "lastTransitionTime": "2026-01-31T12:00:00Z"})
        });
        json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision",
            "metadata": {"name": format!("p-{version}"), "generation": generation,
                "labels": {"pkg.crossplane.io/package": "p"}},
            "spec": {"image": format!("p:{version}"), "revision": number, "desiredState": "Inactive"},
            "status": {"conditions": says.collect::<Vec<Json>>()},
        })
    }

    fn active(mut revision: Json) -> Json {
        revision["spec"]["desiredState"] = json!("Active");
        revision
    }

    /// The version that a package asking for another would go back to, or why to none.
    fn back(asked: &str, policy: &str, revisions: Vec<Json>, holder: Option<&str>) -> String {
        let package = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": {"name": "p"},
            "spec": {"package": format!("p:{asked}"), "revisionActivationPolicy": policy},
        });
        let found = vec![(PackageKind::Provider, package, revisions)];
        let inventory = Inventory::of(found, json!({})).unwrap();
        let one = &inventory.packages[0];
        match one.revision_before(holder) {
            Ok(revision) => version(&revision.spec.image),
            Err(failure) => failure.message,
        }
    }

    const ESTABLISHED: &[(&str, &str)] = &[(types::REVISION_HEALTHY, "")];
    const RAN: &[(&str, &str)] = &[(types::REVISION_HEALTHY, ""), (types::RUNTIME_HEALTHY, "")];
    const REFUSED: &[(&str, &str)] =
        &[(types::REVISION_HEALTHY, "no"), (types::RUNTIME_HEALTHY, UNESTABLISHED)];
    /// What one that was refused says as soon as it is inactive.
    const STEPPED_BACK: &[(&str, &str)] =
        &[(types::REVISION_HEALTHY, ""), (types::RUNTIME_HEALTHY, UNESTABLISHED)];

    #[test]
    fn a_rollback_leaves_out_what_only_waited() {
        let (first, waits) =
            (revision("v1", (1, 3), ESTABLISHED), revision("v3", (3, 1), ESTABLISHED));
        let second = active(revision("v2", (4, 3), ESTABLISHED));
        let all = vec![first, waits.clone(), second.clone()];
        assert_eq!(back("v3", "Manual", all, None), "v1");
        let none = "no other revision of provider/p was active before";
        assert_eq!(back("v3", "Manual", vec![waits, second], None), none);
    }

    #[test]
    fn a_rollback_from_what_never_came_is_to_what_runs() {
        let (old, runs) = (revision("v2", (2, 2), RAN), active(revision("v3", (3, 1), RAN)));
        assert_eq!(back("v9", "Automatic", vec![old.clone(), runs.clone()], None), "v3");
        assert_eq!(back("v3", "Automatic", vec![old, runs], None), "v2");
        // What never worked is better than what does not exist.
        let refused = active(revision("v1", (1, 1), REFUSED));
        assert_eq!(back("v9", "Automatic", vec![refused], None), "v1");
    }

    #[test]
    fn a_rollback_is_to_a_revision_that_got_its_objects() {
        let (good, bad) = (revision("v1", (1, 2), RAN), revision("v2", (2, 2), STEPPED_BACK));
        let worse = active(revision("v3", (3, 1), REFUSED));
        assert_eq!(
            back("v3", "Automatic", vec![good.clone(), bad.clone(), worse.clone()], None),
            "v1"
        );
        // A configuration runs nothing that could tell; whose the objects are does.
        let quiet = |version, number| revision(version, number, ESTABLISHED);
        let all = vec![quiet("v1", (1, 2)), quiet("v2", (2, 2)), worse.clone()];
        assert_eq!(back("v3", "Automatic", all, Some("p-v1")), "v1");
        // If there is no other, it will have to do.
        assert_eq!(back("v3", "Automatic", vec![bad, worse], None), "v2");
    }

    #[test]
    fn the_owner_that_controls_an_object_is_told_from_the_others() {
        let object = json!({"metadata": {"ownerReferences": [
            {"name": "p-v2"}, {"name": "p-v1", "controller": true}, {"name": "p", "controller": false},
        ]}});
        assert_eq!(controller(&object), Some("p-v1"));
        assert_eq!(controller(&json!({"metadata": {}})), None);
    }
}
