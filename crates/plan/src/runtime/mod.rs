//! How a package's controller or function is run: a Deployment, its Service and `ServiceAccount`,
//! and the certificates it serves and calls with.
//!
//! ```text
//!  before its objects are there    Service, certificates            their names go into the status
//!  once its objects are there      ServiceAccount, Deployment       healthy when it is available
//!  once the next one is healthy    Deployment and ServiceAccount go; Service and Secrets stay, for
//!                                  they are the package's
//! ```
//!
//! The order is what webhooks need: their definitions carry a certificate that must be there
//! first, and a controller must not start before its kinds.
//!
//! [`config`] says which configurations count, [`deployment`] and [`objects`] what they come to,
//! [`certificates`] what happens to keys and when, [`handover`] how one revision follows another.

mod certificates;
mod config;
mod deployment;
mod handover;
mod objects;
mod run;
mod tell;
#[cfg(test)]
mod tests;

pub use certificates::{Certificate, Lifetimes, SECRETS};
pub use config::Configurations;
pub(crate) use deployment::prune_nulls;
pub use tell::{STARTING, UNESTABLISHED};

use crate::adoption;
use crate::authority::Allowed;
use crate::step::{Plan, Refusal, Step, Target, Wake};
use api::condition::{self, Condition, reasons, types};
use api::meta::{PackageKind, PermissionRequest, capability};
use api::pkg::controller_config::ControllerConfig;
use api::pkg::revision::{ACTIVE, Revision, RevisionStatus};
use api::pkg::runtime_config::DeploymentRuntimeConfig;
use api::pkg::{ImageConfig, LABEL_PACKAGE};
use config::choose;
use oci::Digest;
use run::Work;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tell::Trouble;

/// How long to wait before trying again what the API server refused.
const RETRY: Duration = Duration::from_secs(60);

/// Everything that decides about how one revision is run.
#[derive(Clone, Debug)]
pub struct World {
    /// The revision, as seen.
    pub revision: Revision,
    /// Which kind of package it is a revision of.
    pub kind: PackageKind,
    /// The other revisions of the same package.
    pub siblings: Vec<Revision>,
    /// What the package says, once it has been opened.
    pub package: Option<Package>,
    /// What packages may bring and ask for.
    pub allowed: Allowed,
    /// All image configurations.
    pub image_configs: Vec<ImageConfig>,
    /// All runtime configurations.
    pub runtime_configs: Vec<DeploymentRuntimeConfig>,
    /// All controller configurations.
    pub controller_configs: Vec<ControllerConfig>,
    /// The kinds of managed resources that the revision controls.
    pub managed: Managed,
    /// Pull secrets of the account that this manager runs as; its packages get them, too.
    pub account_secrets: Vec<String>,
    /// The Deployments, Services and `ServiceAccounts` that the revision controls: their metadata, and
    /// whole Deployments of a revision that is not active.
    pub owned: Vec<Json>,
    /// The binding that should give the provider its rights, where it does not.
    pub unbound: Option<String>,
    /// The Deployments of other revisions of the package, as they are.
    pub deployments: Vec<Json>,
    /// Objects that were asked for; none where there is none.
    pub live: BTreeMap<Target, Option<Json>>,
    /// What certificates in those objects say, by the text of the field; those that cannot be read
    /// are not there.
    pub certificates: BTreeMap<String, Certificate>,
    /// Certificates and keys in those objects that belong together, by the texts of both fields.
    pub pairs: BTreeSet<(String, String)>,
    /// What the API server would not do when this was last decided.
    pub refusal: Option<Refusal>,
    /// How this manager is set up.
    pub settings: Settings,
    /// The time, in seconds since 1970.
    pub now: i64,
}

/// What running a package needs to know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// The bytes that were installed.
    pub digest: Digest,
    /// The image that an old package names for its controller.
    pub image: Option<String>,
    /// What it asks for beyond its own kinds.
    pub requests: Vec<PermissionRequest>,
}

/// Kinds of managed resources, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Managed {
    /// All of them.
    pub total: usize,
    /// Those that somebody wants to use.
    pub active: usize,
}

/// How this manager is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespace everything runs in.
    pub namespace: String,
    /// The registry of references that name none.
    pub default_registry: String,
    /// The Secret of the authority that signs certificates.
    pub authority: String,
    /// How long certificates are good for.
    pub lifetimes: Lifetimes,
    /// Whether packages take over whatever is there already, as upstream's do.
    pub adopts_existing: bool,
}

/// The Secret of the authority, as upstream calls it.
pub const AUTHORITY: &str = "crossplane-root-ca";

/// Decides about how one revision is run.
pub fn step(world: &World) -> Step {
    let metadata = &world.revision.metadata;
    if metadata.deletion_timestamp.is_some() || metadata.is_paused() {
        return Step::Do(Plan::default());
    }
    if world.revision.spec.desired_state != ACTIVE {
        return Step::Do(world.stop());
    }
    if let Some(refusal) = &world.refusal {
        return Step::Do(world.refused(refusal));
    }
    match choose(world, &world.revision) {
        Ok(chosen) => world.run(&chosen).unwrap_or_else(Step::Need),
        Err(why) => {
            let why = format!("cannot prepare runtime manifest builder options: {why}");
            Step::Do(world.unhealthy(world.status(), Work::default(), &Trouble::Fails(why)))
        }
    }
}

impl World {
    fn is_function(&self) -> bool {
        self.kind == PackageKind::Function
    }

    /// What upstream's messages call it.
    fn what(&self) -> &'static str {
        if self.is_function() { "function" } else { "provider" }
    }

    fn target(&self, api_version: &str, kind: &str, name: &str) -> Target {
        Target {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: Some(self.settings.namespace.clone()),
            name: name.to_owned(),
        }
    }

    /// The package, whose annotations an administrator writes.
    fn package_target(&self) -> Target {
        Target {
            api_version: self.revision.api_version.clone(),
            kind: self.kind.as_str().to_owned(),
            namespace: None,
            name: package_name(&self.revision).to_owned(),
        }
    }

    /// How annotations name the package.
    fn mark(&self) -> String {
        let Target { api_version, kind, name, .. } = self.package_target();
        adoption::mark(&api_version, &kind, &name)
    }

    fn own_target(&self) -> Target {
        Target {
            api_version: self.revision.api_version.clone(),
            kind: self.revision.kind.clone(),
            namespace: None,
            name: self.revision.metadata.name.clone(),
        }
    }

    fn status(&self) -> RevisionStatus {
        self.revision.status.clone().unwrap_or_default()
    }

    fn condition_of(&self, of: &str) -> Option<&Condition> {
        let conditions = self.revision.status.as_ref()?.conditions.as_ref()?;
        condition::find(conditions, of)
    }

    /// Whether the runtime has nothing to do yet: its package waits for its kinds to be wanted, and
    /// none was so far.
    fn is_awaiting_activation(&self) -> bool {
        let capabilities = self.revision.status.iter().flat_map(|one| &one.capabilities).flatten();
        let is_safe_start =
            capabilities.into_iter().any(|one| capability::matches(one, capability::SAFE_START));
        let was_active = self
            .condition_of(types::RUNTIME_ACTIVE)
            .is_some_and(|one| one.reason == reasons::ACTIVE_RUNTIME);
        is_safe_start && !was_active && self.managed.total > 0 && self.managed.active == 0
    }

    /// What there is to do for a revision that is not active. What ran it goes once the next
    /// revision is healthy: one that is refused, or does not start, must not stop what works.
    fn stop(&self) -> Plan {
        let mut work = Work::default();
        let successor = self.siblings.iter().find(|one| one.spec.desired_state == ACTIVE);
        if let Some(successor) = successor.filter(|one| !handover::relieves(one)) {
            return self.stand_by(successor);
        }
        let taken = successor.and_then(|one| Some(choose(self, one).ok()?.names(one)));
        for object in &self.owned {
            let name = object["metadata"]["name"].as_str();
            let goes = match object["kind"].as_str() {
                Some("Deployment") => true,
                // One that the next revision runs as, too, is taken over by it.
                Some("ServiceAccount") => name != taken.as_ref().map(|it| it.account.as_str()),
                // Older managers had one for each revision, and the package had another name if it
                // gave way to this one.
                Some("Service") => {
                    name == Some(&self.revision.metadata.name)
                        || taken.as_ref().is_some_and(|it| name != Some(it.service.as_str()))
                }
                _ => false,
            };
            if goes && object["metadata"]["deletionTimestamp"].is_null() {
                work.delete(object, "the revision is not active");
            }
        }
        work.actions.extend(self.forget_controller());
        Plan { actions: work.actions, report: work.report, wake: Wake::OnChange }
    }

    fn refused(&self, refusal: &Refusal) -> Plan {
        let kind = &refusal.target.kind;
        let when = if matches!(kind.as_str(), "Service" | "Secret") { "pre" } else { "post" };
        let why = format!(
            "{when} establish runtime hook failed for package: cannot apply {} package {}: {}",
            self.what(),
            called(kind),
            refusal.message
        );
        let mut plan = self.unhealthy(self.status(), Work::default(), &Trouble::Fails(why));
        plan.wake = Wake::After(RETRY);
        plan
    }
}

/// The package that a revision is of.
fn package_name(revision: &Revision) -> &str {
    revision.metadata.labels.get(LABEL_PACKAGE).map_or("", String::as_str)
}

/// What upstream's messages call a kind.
fn called(kind: &str) -> String {
    match kind {
        "ServiceAccount" => "service account".to_owned(),
        other => other.to_lowercase(),
    }
}
