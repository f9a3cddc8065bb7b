//! What packages and people may do: roles for the kinds that packages bring.
//!
//! A provider's revision gets three roles: one that lets Crossplane, administrators and editors do
//! everything with its kinds, one that lets viewers see them, and one for its own controller,
//! which is bound to the accounts that its Deployments run as. The last also has what the package
//! asked for beyond its own kinds, if all of it is on the allow list; if something is not, there
//! are no roles, and the reason is told where the package is run.
//!
//! Providers of one family, from one organisation, may use each other's kinds. A revision that is
//! not active has no roles once nothing of it runs.
//!
//! A provider whose package object says, by the labels `crossplane.io/scope: namespace` and
//! `namespace.crossplane.io/NAME: "true"` for all its objects, that it has rights in some namespaces
//! only gets a binding in each of those, and none for the cluster.
//!
//! A composite resource definition gets roles for the kinds it defines ([`definition`]).

pub mod definition;
mod roles;
#[cfg(test)]
mod tests;

pub use roles::{
    Resource, Roles, bindings, confined_to, has_roles, roles, system_label, system_role,
};

use crate::adoption;
use crate::authority::{self, Allowed};
use crate::control;
use crate::package::pull::RECHECK;
use crate::same::same;
use crate::step::{Action, Expect, MANAGER, Plan, Refusal, Step, Target, Wake};
use api::meta::{PackageKind, PermissionRequest};
use api::object::OwnerReference;
use api::pkg::revision::{ACTIVE, Revision};
use api::pkg::{ANNOTATION_ADOPT, LABEL_PACKAGE};
use serde_json::Value as Json;

/// What decides about the roles of a provider's revision.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// The revision.
    pub revision: Revision,
    /// The other revisions with the same family label.
    pub family: Vec<Revision>,
    /// Whether the provider starts before its kinds are there, and so must see when they come.
    pub is_safe_start: bool,
    /// What the package asks for beyond its own kinds, once it has been opened.
    pub requests: Option<Vec<PermissionRequest>>,
    /// What packages may bring and ask for.
    pub allowed: Allowed,
    /// The registry of references that name none.
    pub default_registry: String,
    /// The accounts that the revision's Deployments run as, by namespace and name.
    pub accounts: Vec<(String, String)>,
    /// The `ClusterRoles` and `ClusterRoleBindings` that the revision controls.
    pub owned: Vec<Json>,
    /// Those of their names that nothing controls.
    pub uncontrolled: Vec<Json>,
    /// Whether an administrator gave the package whatever is there already.
    pub adopts_existing: bool,
    /// What the API server would not do when this was last decided.
    pub refusals: Vec<Refusal>,
}

/// Decides about the roles of a provider's revision.
pub fn step(world: &World) -> Step {
    let metadata = &world.revision.metadata;
    if metadata.is_paused() || metadata.deletion_timestamp.is_some() {
        return Step::Do(Plan::default());
    }
    let mut report = Vec::new();
    let is_active = world.revision.spec.desired_state == ACTIVE;
    if !is_active && !world.accounts.is_empty() {
        let report = vec!["its roles stay for as long as it runs".to_owned()];
        return Step::Do(Plan { report, ..Plan::default() });
    }
    if is_active && world.requests.is_none() {
        let report = vec!["the package is not at hand, so its roles stay as they are".to_owned()];
        // That it has come is told to nobody.
        return Step::Do(Plan { report, wake: Wake::After(RECHECK), ..Plan::default() });
    }
    let wanted = if is_active {
        match roles(world) {
            Roles::Refused(refused) => {
                let package = metadata.labels.get(LABEL_PACKAGE).unwrap_or(&metadata.name);
                let kind = PackageKind::Provider;
                report.push(authority::refusal(&refused, &world.allowed, kind, package));
                Vec::new()
            }
            Roles::Roles(roles) if roles.is_empty() => Vec::new(),
            Roles::Roles(mut roles) => {
                roles.extend(bindings(&world.revision, &world.accounts));
                roles
            }
        }
    } else {
        Vec::new()
    };
    let target = Target {
        api_version: world.revision.api_version.clone(),
        kind: world.revision.kind.clone(),
        namespace: None,
        name: metadata.name.clone(),
    };
    if !world.refusals.is_empty() {
        return Step::Do(told(&world.refusals, &target));
    }
    let package = metadata.labels.get(LABEL_PACKAGE).map_or("", String::as_str);
    let claim = Claim {
        owned: &world.owned,
        uncontrolled: &world.uncontrolled,
        adopts_existing: world.adopts_existing,
        mark: adoption::mark(&target.api_version, PackageKind::Provider.as_str(), package),
        whose: &target,
    };
    let mut plan = claim.settle(&wanted);
    plan.report.splice(0..0, report);
    Step::Do(plan)
}

/// Tells whom roles are for that the API server will not have them. Their kind has no condition for
/// it; where the package is run, it is not healthy without.
fn told(refusals: &[Refusal], whose: &Target) -> Plan {
    let tell = |refusal: &Refusal| {
        let Refusal { target: Target { kind, name, .. }, message } = refusal;
        let message = format!("cannot apply {kind} {name}: {message}");
        let reason =
            if kind.ends_with("RoleBinding") { "BindClusterRole" } else { "ApplyClusterRoles" };
        Action::Event { target: whose.clone(), is_warning: true, reason, message }
    };
    let actions = refusals.iter().map(tell).collect();
    Plan { actions, wake: Wake::After(RECHECK), ..Plan::default() }
}

/// Who wants roles, and what is there under their names.
struct Claim<'a> {
    /// Those that the object they are for controls.
    owned: &'a [Json],
    /// Those that nothing controls.
    uncontrolled: &'a [Json],
    /// Whether all of the latter may be taken over.
    adopts_existing: bool,
    /// To whom an administrator may give them.
    mark: String,
    /// The object they are for.
    whose: &'a Target,
}

impl Claim<'_> {
    /// Makes roles and bindings what they should be, removes those of ours that should not be
    /// there, and tells the object they are for. All are made, or none.
    fn settle(&self, wanted: &[Json]) -> Plan {
        let is_meant = |seen: &&Json, object: &Json| Target::of(seen) == Target::of(object);
        let of =
            |all: &'_ [Json], object: &Json| all.iter().find(|it| is_meant(it, object)).cloned();
        let mut plan = Plan::default();
        let (mut applied, mut foreign) = (Vec::new(), Vec::new());
        for object in wanted {
            let seen = of(self.owned, object);
            let free = of(self.uncontrolled, object).filter(|_| seen.is_none());
            if free.as_ref().is_some_and(|free| !self.may_take(free)) {
                foreign.push(self.in_the_way(Target::of(object)));
                continue;
            }
            let seen = seen.or(free);
            if seen.as_ref().is_some_and(|seen| same(object, seen, MANAGER)) {
                continue;
            }
            let target = Target::of(object);
            plan.report.push(format!("{} {} is applied", target.kind, target.name));
            applied.push(target);
            // A name may be taken by an object that something else controls: then the API server
            // says so, and nothing of it is lost.
            plan.actions.extend(control::apply(object, seen.as_ref()));
        }
        if !foreign.is_empty() {
            return told(&foreign, self.whose);
        }
        self.remove(wanted, &mut plan);
        self.tell(applied, &mut plan);
        plan
    }

    /// Whether roles that nothing controls may be taken over: a package manager made them, or an
    /// administrator gave them away. Labels by which roles are gathered are on every role of a
    /// package, and so is the name of its own role in a binding.
    fn may_take(&self, seen: &Json) -> bool {
        let metadata = adoption::metadata_of(seen);
        let Target { api_version, kind, .. } = self.whose;
        let is_labelled = metadata.labels.keys().any(|key| key.starts_with(roles::LABEL));
        let is_its = |one: &OwnerReference| {
            one.kind == *kind && control::group(&one.api_version) == control::group(api_version)
        };
        self.adopts_existing
            || is_labelled
            || seen["roleRef"]["name"] == *metadata.name
            || metadata.owner_references.iter().any(is_its)
            || adoption::is_managed(seen)
            || adoption::is_given(&metadata, &self.mark)
    }

    fn in_the_way(&self, target: Target) -> Refusal {
        let message = format!(
            "it was {}; to give it away, after which it goes with {}, annotate it with \
             {ANNOTATION_ADOPT}={}",
            adoption::FOREIGN,
            self.whose.name,
            self.mark
        );
        Refusal { target, message }
    }

    /// Removes what is controlled and not wanted.
    fn remove(&self, wanted: &[Json], plan: &mut Plan) {
        for seen in self.owned {
            let target = Target::of(seen);
            let is_wanted = wanted.iter().any(|object| Target::of(object) == target);
            if !is_wanted && seen["metadata"]["deletionTimestamp"].is_null() {
                plan.report.push(format!("{} {} goes", target.kind, target.name));
                plan.actions.push(Action::Delete { target, expect: Expect::as_found(Some(seen)) });
            }
        }
    }

    fn tell(&self, applied: Vec<Target>, plan: &mut Plan) {
        let tell = |reason, message| Action::Event {
            target: self.whose.clone(),
            is_warning: false,
            reason,
            message,
        };
        let (roles, bindings): (Vec<Target>, Vec<Target>) =
            applied.into_iter().partition(|target| target.kind == "ClusterRole");
        if !roles.is_empty() {
            let names: Vec<&str> = roles.iter().map(|role| role.name.as_str()).collect();
            let message = format!("Applied RBAC ClusterRoles: {}", names.join(", "));
            plan.actions.push(tell("ApplyClusterRoles", message));
        }
        if !bindings.is_empty() {
            let message =
                "Bound the system ClusterRole to the provider's ServiceAccounts".to_owned();
            plan.actions.push(tell("BindClusterRole", message));
        }
    }
}
