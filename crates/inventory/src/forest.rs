//! Packages as trees: which stand at the top, what is below them, and what stays without a use.

use crate::installed::{Installed, Inventory};
use crate::installs::{FoundObject, InstallObject};
use api::condition::{self, types};
use api::pkg::revision::{ACTIVE, Revision};
use controller::is_automatic;
use ground::failure::{Failure, Outcome};

impl Inventory {
    /// Packages that nothing needs and no install object brought, and one of each circle.
    pub fn roots(&self) -> Vec<&Installed> {
        let is_below = |one: &Installed| one.is_for_installs() && !self.installs_of(one).is_empty();
        let is_root = |one: &&Installed| !is_below(one) && self.needed_by(one).is_empty();
        let mut roots: Vec<&Installed> = self.packages.iter().filter(is_root).collect();
        let brought: Vec<&Installed> = self.packages.iter().filter(|one| is_below(one)).collect();
        for one in &self.packages {
            let mut tops = roots.iter().chain(&brought);
            let is_shown = tops.any(|top| self.closure(top).iter().any(|it| it.id() == one.id()));
            if !is_shown {
                roots.push(one);
            }
        }
        roots
    }

    /// Packages and what they need, each once.
    pub fn closures<'a>(&'a self, roots: &[&'a Installed]) -> Vec<&'a Installed> {
        let mut kept: Vec<&Installed> = Vec::new();
        for one in roots.iter().flat_map(|root| self.closure(root)) {
            if !kept.iter().any(|other| other.id() == one.id()) {
                kept.push(one);
            }
        }
        kept
    }

    /// The packages that go with these: those that are named, and those whose install objects all are.
    pub fn going_with<'a>(&'a self, found: &[FoundObject<'a>]) -> Vec<&'a Installed> {
        let is_named = |id: &String| found.iter().any(|it| it.id() == *id);
        let mut going: Vec<&Installed> = found
            .iter()
            .filter_map(|one| match one {
                FoundObject::Package(one) => Some(*one),
                FoundObject::Install(_) => None,
            })
            .collect();
        for one in &self.packages {
            let installs = self.installs_of(one);
            let is_left = !installs.is_empty() && installs.iter().all(|it| is_named(&it.id()));
            if is_left && !is_named(&one.id()) {
                going.push(one);
            }
        }
        going
    }

    /// What packages need stays, and so does what install objects were made for, unless those go, too.
    pub fn refuse_needed(&self, found: &[FoundObject<'_>], going: &[&Installed]) -> Outcome {
        let stays = |id: &String| !found.iter().any(|it| it.id() == *id);
        for one in going {
            let id = one.id();
            let makers = self.installs_of(one).into_iter().map(InstallObject::id).filter(stays);
            let makers: Vec<String> = makers.collect();
            if !makers.is_empty() {
                let hint = format!(
                    "uninstall that: apron uninstall {}; the package manager would bring {id} back",
                    makers.join(" ")
                );
                return Err(Failure::new(
                    format!("{id} was made for {}", makers.join(" and ")),
                    hint,
                ));
            }
            let users = self.needed_by(one).into_iter().map(Installed::id);
            let users: Vec<String> =
                users.filter(|user| !going.iter().any(|it| it.id() == *user)).collect();
            if !users.is_empty() {
                let verb = if users.len() == 1 { "needs" } else { "need" };
                return Err(Failure::new(
                    format!("{} {verb} {id}", users.join(" and ")),
                    "uninstall them together, or this one alone with --force; the package manager may \
                     bring it back",
                ));
            }
        }
        Ok(())
    }

    /// Packages that the package manager brought for others, and that only what goes needs.
    pub fn needless_without<'a>(&'a self, going: &[&'a Installed]) -> Vec<&'a Installed> {
        let mut all = going.to_vec();
        let is_of = |all: &[&Installed], one: &Installed| all.iter().any(|it| it.id() == one.id());
        loop {
            let next = self.packages.iter().find(|one| {
                let users = self.needed_by(one);
                let is_left = !users.is_empty() && users.into_iter().all(|it| is_of(&all, it));
                is_left && is_automatic(&one.package) && !is_of(&all, one)
            });
            let Some(next) = next else { return all.split_off(going.len()) };
            all.push(next);
        }
    }
}

/// What a revision is, and not only what it is to be: one that never had anything in the cluster is
/// not called active.
pub fn revision_state(one: &Revision) -> String {
    let said = condition::find(one.conditions(), types::REVISION_HEALTHY);
    let said = said.filter(|it| !it.is_past(one.metadata.generation));
    match one.spec.desired_state.as_str() {
        "" => "undecided".to_owned(),
        ACTIVE if one.is_present() => "active".to_owned(),
        ACTIVE if said.is_some_and(|it| it.status == "False") => "not installed".to_owned(),
        ACTIVE => "installing".to_owned(),
        state => state.to_lowercase(),
    }
}

/// How many of a revision's objects are in the cluster; those that it only means to bring have no
/// identity yet.
pub fn count_objects(one: &Revision) -> usize {
    let objects = one.status.iter().flat_map(|it| it.object_refs.iter().flatten());
    objects.filter(|it| it.uid.is_some()).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_in_the_cluster_is_called_active() {
        let revision = |state: &str, healthy: Option<&str>, uid: Option<&str>| -> Revision {
            let conditions: Vec<_> = healthy
                .map(|status| {
                    json!({"type": "RevisionHealthy", "status": status, "reason": "R",
                           "lastTransitionTime": "2026-01-31T12:00:00Z"})
                })
                .into_iter()
                .collect();
            let object = json!({"apiVersion": "v1", "kind": "K", "name": "n", "uid": uid});
            let revision = json!({
                "apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision",
                "metadata": {"name": "p-1"},
                "spec": {"image": "p:v1", "revision": 1, "desiredState": state},
                "status": {"conditions": conditions, "objectRefs": [object]},
            });
            serde_json::from_value(revision).unwrap()
        };
        for (state, healthy, uid, said) in [
            ("Active", Some("True"), Some("u"), "active"),
            ("Active", Some("True"), None, "active"),
            ("Active", Some("False"), None, "not installed"),
            // An object of it may be in the way of an update, but it is there.
            ("Active", Some("False"), Some("u"), "active"),
            ("Active", None, None, "installing"),
            ("Inactive", Some("True"), Some("u"), "inactive"),
            ("", None, None, "undecided"),
        ] {
            let revision = revision(state, healthy, uid);
            assert_eq!(revision_state(&revision), said, "{state} {healthy:?} {uid:?}");
            assert_eq!(count_objects(&revision), usize::from(uid.is_some()), "only what is there");
        }
    }
}
