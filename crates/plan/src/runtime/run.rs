//! What there is to do for a revision that is active.

use super::certificates::{self, Stop};
use super::config::{Chosen, Names};
use super::tell::{Trouble, UNESTABLISHED, simulation_remark};
use super::{World, called, deployment, objects, package_name};
use crate::adoption;
use crate::authority;
use crate::control::{self, controller_of};
use crate::package::pull::RECHECK;
use crate::same::{holds, is_applied, same};
use crate::step::{Action, Expect, MANAGER, Need, Step, Target};
use api::condition::{Condition, reasons, types};
use api::pkg::revision::ControllerReference;
use api::pkg::{ANNOTATION_ADOPT, LABEL_REVISION};
use serde_json::Value as Json;
use std::time::Duration;

/// What is to be done so far, and why.
#[derive(Default)]
pub(super) struct Work {
    pub(super) actions: Vec<Action>,
    pub(super) report: Vec<String>,
    /// When to look again, where nobody tells of what is waited for.
    again: Option<Duration>,
    /// What users are to know of a Deployment that is available.
    pub(super) remark: Option<String>,
}

/// What another revision had tells only that one when it is gone.
const GONE: Duration = Duration::from_secs(5);

impl Work {
    fn apply(&mut self, wanted: &Json, seen: Option<&Json>) {
        let Target { kind, name, .. } = Target::of(wanted);
        let how = if seen.is_some() { "is brought in line" } else { "is made" };
        self.report.push(format!("{kind} {name} {how}"));
        self.actions.extend(control::apply(wanted, seen));
    }

    pub(super) fn delete(&mut self, seen: &Json, why: &str) {
        let target = Target::of(seen);
        self.report.push(format!("{} {} goes: {why}", target.kind, target.name));
        self.actions.push(Action::Delete { target, expect: Expect::as_found(Some(seen)) });
    }

    /// Removes what is in the way of what is made next.
    fn clear(&mut self, seen: &Json, why: &str) {
        self.delete(seen, why);
        self.again = Some(GONE);
    }

    /// Looks again after a while, or earlier.
    pub(super) fn look_after(&mut self, time: Duration) {
        self.again = self.again.into_iter().chain([time]).min();
    }

    /// Whether an object goes, or is going.
    fn removes(&self, object: &Json) -> bool {
        let goes = |one: &Action| matches!(one, Action::Delete { target, .. } if *target == Target::of(object));
        !object["metadata"]["deletionTimestamp"].is_null() || self.actions.iter().any(goes)
    }
}

impl World {
    /// What there is to do for an active revision.
    pub(super) fn run(&self, chosen: &Chosen<'_>) -> Result<Step, Vec<Need>> {
        let names = chosen.names(&self.revision);
        let mut status = self.status();
        chosen.record(&mut status);
        status.tls_server_secret_name.clone_from(&self.revision.spec.tls_server_secret_name);
        status.tls_client_secret_name.clone_from(&self.revision.spec.tls_client_secret_name);
        if self.is_function() {
            let (service, namespace) = (&names.service, &self.settings.namespace);
            status.endpoint = Some(format!("dns:///{service}.{namespace}:{}", objects::PORT));
        }
        status.controller_ref = self.controller_ref();
        let mut work = Work::default();
        let service = objects::service(self, chosen, &names);
        // Until this revision's pods answer, the Service leads to those of the revision before.
        let deployed = self.found(&self.target("apps/v1", "Deployment", &names.deployment))?;
        let takes_calls = self.revision.is_established() && self.takes_calls(deployed);
        let is_lent = self.found(&Target::of(&service))?.is_some_and(|live| {
            !takes_calls && controller_of(live).is_some_and(|owner| self.is_sibling(owner))
        });
        // A Service that was lost meanwhile is made anew for these pods.
        let service = match self.running_sibling().filter(|_| !takes_calls) {
            Some((sibling, before)) => objects::lend_service(service, sibling, before),
            None => service,
        };
        if !is_lent && let Err(why) = self.make(&service, &mut work)? {
            let (why, again) = (Trouble::Fails(why).during("pre"), work.again);
            let mut plan = self.unhealthy(status, work, &why);
            plan.wake = self.wake(None, again);
            return Ok(Step::Do(plan));
        }
        let certificates = match certificates::decide(self, &names.service) {
            Ok(found) => found,
            Err(Stop::Need(needs)) => return Err(needs),
            Err(Stop::Trouble(why)) => {
                let why = Trouble::Fails(why).during("pre");
                return Ok(Step::Do(self.unhealthy(status, work, &why)));
            }
        };
        work.actions.extend(certificates.actions);
        work.report.extend(certificates.report);
        let deployed = if self.may_run(&names)? {
            self.deploy(chosen, &names, certificates.fingerprint.as_deref(), &mut work)?
        } else {
            Err(Trouble::Waits(UNESTABLISHED.to_owned()))
        };
        let again = work.again;
        let mut plan = match deployed {
            Ok(()) => self.healthy(status, work),
            Err(why) => self.unhealthy(status, work, &why),
        };
        plan.wake = self.wake(certificates.due, again);
        Ok(Step::Do(plan))
    }

    /// Whether the objects of the package are there, without which nothing is started. What runs
    /// already follows what is asked for of its revision at once.
    fn may_run(&self, names: &Names) -> Result<bool, Vec<Need>> {
        let healthy = self.condition_of(types::REVISION_HEALTHY);
        let is_healthy = healthy.is_some_and(|one| one.status == "True");
        let generation = self.revision.metadata.generation;
        // Everything is there but what goes, and that may need what runs.
        let may_finish =
            |one: &Condition| one.reason == reasons::TERMINATING && !one.is_past(generation);
        if healthy.is_some_and(may_finish) {
            return Ok(true);
        }
        if !is_healthy || self.revision.is_established() {
            return Ok(is_healthy);
        }
        let live = self.found(&self.target("apps/v1", "Deployment", &names.deployment))?;
        Ok(live.is_some_and(|live| self.controls(live)))
    }

    /// The Deployment of this revision, for those who look for it.
    pub(super) fn controller_ref(&self) -> Option<ControllerReference> {
        let is_there = |one: &&Json| {
            one["kind"] == "Deployment" && one["metadata"]["deletionTimestamp"].is_null()
        };
        let Target { api_version, kind, namespace, name } =
            Target::of(self.owned.iter().find(is_there)?);
        let namespace = namespace.unwrap_or_default();
        Some(ControllerReference {
            api_version,
            kind,
            namespace,
            name,
            ..ControllerReference::default()
        })
    }

    /// Whether an object is this revision's.
    fn controls(&self, object: &Json) -> bool {
        control::is_controlled_by(object, &self.revision)
    }

    /// What there is to do once the objects of the package are there, and how it goes.
    fn deploy(
        &self,
        chosen: &Chosen<'_>,
        names: &Names,
        certificates: Option<&str>,
        work: &mut Work,
    ) -> Result<Result<(), Trouble>, Vec<Need>> {
        let fails = |why| Ok(Err(Trouble::Fails(why).during("post")));
        let live = self.found(&self.target("apps/v1", "Deployment", &names.deployment))?;
        if let Some(refused) = self.refused_requests() {
            return fails(refused);
        }
        let has_certificates = self.revision.spec.tls_server_secret_name.is_some();
        if self.package.is_none() {
            // That it has come is told to nobody.
            work.again = Some(RECHECK);
        }
        let mut turn = self.held_back(live);
        if live.is_some() && self.package.is_none() {
            work.report.push("the package is not at hand, so what runs stays as it is".to_owned());
        } else if let Some(forget) = self.forget_standby(live) {
            work.actions.push(forget);
        } else if certificates.is_some() || !has_certificates {
            // A Deployment follows its certificates, so it waits for them.
            match deployment::deployment(self, chosen, names, certificates) {
                Ok(mut wanted) => {
                    self.settle_first(&mut wanted);
                    turn = self.take_turn(&mut wanted, live, work);
                    if let Err(why) = self.roll_out(chosen, names, &wanted, work)? {
                        return fails(why);
                    }
                }
                Err(why) => return fails(why),
            }
        }
        // What another revision has, or what goes, says nothing of this one.
        let own = live.filter(|live| self.controls(live) && !work.removes(live));
        work.remark = own.and_then(simulation_remark);
        let available = turn.and_then(|()| self.availability(own));
        Ok(available.and_then(|()| self.has_rights()).map_err(|why| why.during("post")))
    }

    /// Makes the account and the Deployment what they should be, and removes what was there under
    /// other names.
    fn roll_out(
        &self,
        chosen: &Chosen<'_>,
        names: &Names,
        wanted: &Json,
        work: &mut Work,
    ) -> Result<Result<(), String>, Vec<Need>> {
        let runs_as = wanted["spec"]["template"]["spec"]["serviceAccountName"].as_str();
        let is_account_ours = runs_as == Some(&names.account);
        if is_account_ours {
            let live = self.found(&self.target("v1", "ServiceAccount", &names.account))?;
            let account = objects::account(self, chosen, names, live);
            if let Err(why) = self.make(&account, work)? {
                return Ok(Err(why));
            }
        }
        if let Err(why) = self.make(wanted, work)? {
            return Ok(Err(why));
        }
        for object in &self.owned {
            let (kind, name) = (object["kind"].as_str(), object["metadata"]["name"].as_str());
            let is_wanted = match kind {
                Some("Deployment") => name == Some(&names.deployment),
                Some("Service") => name == Some(&names.service),
                Some("ServiceAccount") => is_account_ours && name == Some(&names.account),
                _ => true,
            };
            if !is_wanted {
                work.delete(object, "nothing uses it any more");
            }
        }
        Ok(Ok(()))
    }

    /// Makes an object what it should be, if it is not. Says why it cannot be, if it cannot.
    fn make(&self, wanted: &Json, work: &mut Work) -> Result<Result<(), String>, Vec<Need>> {
        let target = Target::of(wanted);
        let live = self.found(&target)?;
        let Some(seen) = live else {
            work.apply(wanted, None);
            return Ok(Ok(()));
        };
        if !seen["metadata"]["deletionTimestamp"].is_null() {
            work.report.push(format!("{} {} is on its way out", target.kind, target.name));
            work.again = Some(GONE);
            return Ok(Ok(()));
        }
        if controller_of(seen).is_none() && !self.may_take(seen)? {
            // That it went away is told to nobody.
            work.again = Some(RECHECK);
            return Ok(Err(self.in_the_way(&target)));
        }
        let other = controller_of(seen).filter(|_| !self.controls(seen));
        if let Some(owner) = other {
            if !self.is_sibling(owner) {
                let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
                return Ok(Err(format!(
                    "cannot apply {} package {}: {} is already controlled by {} {}; give it \
                     another name in a DeploymentRuntimeConfig",
                    self.what(),
                    called(&target.kind),
                    target.name,
                    text(&owner["kind"]),
                    text(&owner["name"]),
                )));
            }
            if !is_applied(seen, MANAGER) {
                work.clear(seen, "it belongs to an older revision, as somebody else made it");
                return Ok(Ok(()));
            }
        }
        let (was, is) = (&seen["spec"]["selector"], &wanted["spec"]["selector"]);
        if target.kind == "Deployment" && !(holds(is, was) && holds(was, is)) {
            // Selectors cannot be changed; those of older managers named pods differently.
            work.clear(seen, "its selector is another");
            return Ok(Ok(()));
        }
        if !same(wanted, seen, MANAGER) {
            work.apply(wanted, Some(seen));
        }
        Ok(Ok(()))
    }

    /// Whether an object that nothing controls may be taken over: a package had it before, or an
    /// administrator gave it away.
    fn may_take(&self, seen: &Json) -> Result<bool, Vec<Need>> {
        let metadata = adoption::metadata_of(seen);
        let is_ours = adoption::is_brought(&metadata, &self.revision.api_version)
            || self.settings.adopts_existing
            || adoption::is_given(&metadata, &self.mark())
            || self.was_run(seen);
        if is_ours {
            return Ok(true);
        }
        let package = self.found(&self.package_target())?.map(adoption::metadata_of);
        Ok(package.is_some_and(|one| adoption::gives_existing(&one.annotations)))
    }

    /// Whether an object without owners and annotation ran a package all the same: it selects pods
    /// by a label that only package managers give them, or is an account that one of them made for
    /// a revision of this package.
    fn was_run(&self, seen: &Json) -> bool {
        let selector = &seen["spec"]["selector"];
        let mut selectors = [selector, &selector["matchLabels"]].into_iter();
        let mut revisions = self.siblings.iter().chain([&self.revision]);
        selectors.any(|one| !one[LABEL_REVISION].is_null())
            || seen["kind"] == "ServiceAccount"
                && revisions.any(|one| seen["metadata"]["name"] == *one.metadata.name)
                && adoption::is_managed(seen)
    }

    /// What is told of an object that no package brought, and how it is given away.
    fn in_the_way(&self, target: &Target) -> String {
        let Target { kind, name, .. } = target;
        format!(
            "cannot apply {} package {}: {kind} {name} was {}; give it another name in \
             a DeploymentRuntimeConfig, or to the package, after which it goes when that is \
             uninstalled: apron adopt {}, or annotate it with {ANNOTATION_ADOPT}={}",
            self.what(),
            called(kind),
            adoption::FOREIGN,
            self.package_target().name,
            self.mark(),
        )
    }

    /// Whether an owner is another revision of the package.
    fn is_sibling(&self, owner: &Json) -> bool {
        self.siblings.iter().any(|one| control::is_meant(owner, one))
    }

    fn found(&self, target: &Target) -> Result<Option<&Json>, Vec<Need>> {
        match self.live.get(target) {
            Some(found) => Ok(found.as_ref()),
            None => Err(vec![Need::Object(target.clone())]),
        }
    }

    /// What runs can do nothing without its rights. Why they are refused is told by events.
    fn has_rights(&self) -> Result<(), Trouble> {
        let Some(binding) = &self.unbound else { return Ok(()) };
        let Target { kind, name, .. } = self.own_target();
        Err(Trouble::Waits(format!(
            "the ClusterRoleBinding {binding} does not give the provider its rights yet; if that \
             stays so, see the events of {kind} {name}"
        )))
    }

    /// What the package asks for and may not have, in a sentence.
    fn refused_requests(&self) -> Option<String> {
        let requests = &self.package.as_ref()?.requests;
        let refused = self.allowed.refused(requests);
        let package = package_name(&self.revision);
        (!refused.is_empty())
            .then(|| authority::refusal(&refused, &self.allowed, self.kind, package))
    }
}
