//! Packages: from what somebody asks for to revisions.
//!
//! A package object names an image. What that image means now ([`pull`]) has a digest, and a
//! digest has a revision, whose name is made from both. [`revisions`] says which revisions there
//! should be, in which state and with which number; [`health`] what to tell about it all. An object
//! that names a kind instead of an image gets the image first (`by_kind`), as annotations of its own.

pub(crate) mod by_kind;
pub mod health;
mod policy;
pub mod pull;
pub mod revisions;
#[cfg(test)]
mod tests;

use crate::image_config::Treatment;
use crate::lock::{self, KindPins, KindSources};
use crate::retention;
use crate::signature::Trust;
use crate::step::{Action, Expect, Need, Plan, Refusal, Step, Target, Wake};
use api::condition::{self, Condition, reasons, types};
use api::meta::PackageKind;
use api::object::OwnerReference;
use api::pkg::revision::{ACTIVE, Revision};
use api::pkg::{ANNOTATION_PAUSED, PACKAGE_NAME_SIZE_MAX, Package, PackageStatus};
use pull::{Image, Policy, Pull, RECHECK};
use revisions::Decided;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Everything that decides about one package.
#[derive(Clone, Debug)]
pub struct World {
    /// The package object, as seen.
    pub package: Package,
    /// Which kind of package it is.
    pub kind: PackageKind,
    /// Its revisions, by label, as seen.
    pub revisions: Vec<Revision>,
    /// What is known about the image it asks for.
    pub image: Image,
    /// What image configurations make of the image.
    pub treatment: Treatment,
    /// Whether the image may be used.
    pub trust: Trust,
    /// Who owns the objects that were asked for; nobody where there is none.
    pub owners: BTreeMap<Target, Vec<OwnerReference>>,
    /// Where the kind may come from that it asks for, once that was asked.
    pub kinds: Option<KindSources>,
    /// Which packages an administrator chose for kinds.
    pub pins: KindPins,
    /// What the API server would not do when it was last asked.
    pub refused: Vec<Refusal>,
    /// How this manager is set up.
    pub settings: Settings,
    /// The time, as conditions write it.
    pub now: String,
}

/// How this manager is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The registry of references that name none.
    pub default_registry: String,
    /// Whether this manager runs packages of the kind itself.
    pub runs_packages: bool,
}

/// Decides about one package.
pub fn step(world: &World) -> Step {
    let metadata = &world.package.metadata;
    if metadata.deletion_timestamp.is_some() {
        let report = vec!["it is being deleted, and its revisions go with it".to_owned()];
        return Step::Do(Plan { report, ..Plan::default() });
    }
    if metadata.is_paused() {
        return Step::Do(world.paused());
    }
    if let Some(successor) = lock::marked_successor(&world.package) {
        return Step::Do(world.giving_way(successor));
    }
    if !can_be_labelled(&metadata.name) {
        return Step::Do(world.unnameable());
    }
    if let Some(refusal) = world.refused.first() {
        return Step::Do(world.rejected(refusal));
    }
    if let Trust::Refused(why) = &world.trust {
        return Step::Do(world.failed("UnpackPackage", format!("cannot unpack package: {why}")));
    }
    let spec = &world.package.spec;
    if let (true, Some(crd)) = (spec.package.is_empty(), &spec.crd) {
        return by_kind::choose_package(world, crd);
    }
    let policy = Policy::parse(spec.package_pull_policy.as_deref());
    let registry = &world.settings.default_registry;
    let is_known = |digest: &oci::Digest| world.has_revision(digest);
    match pull::decide(policy, &spec.package, registry, &world.image, is_known) {
        Pull::Ask(reference) => Step::Need(vec![Need::Digest(reference)]),
        Pull::Search(name) => Step::Need(vec![Need::CachedFile(name)]),
        Pull::Fail(why, advice) => match world.installed() {
            Some(installed) if policy == Policy::IfNotPresent => {
                world.go_on_without(installed, &why)
            }
            _ => Step::Do(world.unfetched(&why, &advice)),
        },
        Pull::Use(digest) if matches!(world.trust, Trust::Asked { .. }) => {
            match pull::pinned(world.treatment.name(&spec.package), registry, digest) {
                Ok(image) => Step::Need(vec![Need::Signatures(image)]),
                Err((why, advice)) => Step::Do(world.unfetched(&why, &advice)),
            }
        }
        Pull::Use(digest) => match revisions::decide(world, &world.revision_of(&digest)) {
            Ok(decided) => Step::Do(world.with_revisions(policy, decided)),
            Err(needs) => Step::Need(needs),
        },
    }
}

/// Whether the label of revisions can name a package. One that it cannot name has no revisions, and
/// nobody can ask for them.
pub fn can_be_labelled(name: &str) -> bool {
    name.len() <= PACKAGE_NAME_SIZE_MAX
}

/// Whether a package may go by what the cache has for its image, instead of asking the registry: it
/// was found to mean that for this very package, or the registry is never asked. What another package
/// brought there may be private to that one, and its tag may mean something else by now.
pub fn may_use_cached(package: &Package, revisions: &[Revision]) -> bool {
    let Package { spec, status, .. } = package;
    let identifier = status.as_ref().and_then(|status| status.current_identifier.as_ref());
    Policy::parse(spec.package_pull_policy.as_deref()) == Policy::Never
        || identifier == Some(&spec.package)
        || revision_of_image(package, revisions).is_some()
}

/// The revision that was made of the image a package asks for, and stays: the one that stands for the
/// package, or the newest. Its bytes are what the image means to the package until the registry is
/// asked again, also when other packages found out something else.
pub fn revision_of_image<'r>(package: &Package, revisions: &'r [Revision]) -> Option<&'r Revision> {
    let living = revisions.iter().filter(|one| one.metadata.deletion_timestamp.is_none());
    let of_image = living.filter(|one| one.spec.image == package.spec.package);
    let current = package.status.as_ref().and_then(|status| status.current_revision.as_ref());
    of_image.max_by_key(|one| (Some(&one.metadata.name) == current, one.spec.revision))
}

impl World {
    /// What a revision that is made of these bytes is called.
    fn revision_of(&self, digest: &oci::Digest) -> String {
        xpkg::label::friendly_id(&self.package.metadata.name, digest.hex())
    }

    /// Whether a revision was made of these bytes.
    fn has_revision(&self, digest: &oci::Digest) -> bool {
        let name = self.revision_of(digest);
        self.revisions.iter().any(|one| one.metadata.name == name)
    }

    fn target(&self) -> Target {
        target_of(&self.package.api_version, &self.package.kind, &self.package.metadata.name)
    }

    fn status(&self) -> PackageStatus {
        self.package.status.clone().unwrap_or_default()
    }

    /// The status, if it is not what was seen.
    fn write(&self, status: &PackageStatus) -> Option<Action> {
        let before = self.package.status.as_ref();
        (before != Some(status)).then(|| Action::Status {
            target: self.target(),
            status: serde_json::to_value(status).unwrap_or(Json::Null),
            expect: Expect::as_seen(&self.package.metadata),
        })
    }

    fn condition(
        &self,
        of: &str,
        status: bool,
        reason: &str,
        message: Option<String>,
    ) -> Condition {
        Condition {
            condition_type: of.to_owned(),
            status: if status { "True" } else { "False" }.to_owned(),
            last_transition_time: self.now.clone(),
            reason: reason.to_owned(),
            message,
            observed_generation: self.package.metadata.generation,
            ..Condition::default()
        }
    }

    fn event(&self, is_warning: bool, reason: &'static str, message: String) -> Action {
        Action::Event { target: self.target(), is_warning, reason, message }
    }

    /// Work goes on: nothing says any more that it does not, unless it goes on otherwise than somebody
    /// may think.
    fn resume(&self, status: &mut PackageStatus) {
        let unknown = policy::unknown(&self.package.spec);
        if let Some(conditions) = &mut status.conditions {
            let is_over = |one: &Condition| {
                one.reason == reasons::PAUSED
                    || unknown.is_none() && one.reason == reasons::UNKNOWN_POLICY
            };
            conditions.retain(|one| !is_over(one));
        }
        if let Some(why) = unknown {
            let told = self.condition(types::SYNCED, false, reasons::UNKNOWN_POLICY, Some(why));
            condition::set(status.conditions.get_or_insert_default(), told);
        }
    }

    fn paused(&self) -> Plan {
        let message = "Reconciliation (including deletion) is paused via the pause annotation";
        let mut status = self.status();
        let paused =
            self.condition(types::SYNCED, false, reasons::PAUSED, Some(message.to_owned()));
        condition::set(status.conditions.get_or_insert_default(), paused);
        let mut actions: Vec<Action> = self.write(&status).into_iter().collect();
        if !actions.is_empty() {
            actions.push(self.event(false, "ReconciliationPaused", message.to_owned()));
        }
        let report = vec![format!("the annotation {ANNOTATION_PAUSED} stops all work on it")];
        Plan { actions, report, wake: Wake::OnChange }
    }

    /// A user installed the same by another name, and that package gets the revisions of this one,
    /// which makes no more of them and goes once that one is well.
    fn giving_way(&self, successor: &str) -> Plan {
        let kind = self.kind.as_str();
        let message = format!(
            "it was installed automatically, and gives way to {kind} {successor}, which was installed \
             by name"
        );
        let mut status = self.status();
        let inactive =
            self.condition(types::INSTALLED, false, reasons::INACTIVE, Some(message.clone()));
        condition::set(status.conditions.get_or_insert_default(), inactive);
        let actions = self.write(&status).into_iter().collect();
        Plan { actions, report: vec![message], wake: Wake::OnChange }
    }

    /// The newest revision that was made of the image that is asked for, if it is active and has its
    /// objects. Signatures are held against the keys each time.
    fn installed(&self) -> Option<&Revision> {
        let image = &self.package.spec.package;
        let of_image = self.revisions.iter().filter(|one| one.spec.image == *image);
        let newest = of_image.max_by_key(|one| one.spec.revision)?;
        let is_installed = newest.spec.desired_state == ACTIVE && newest.is_established();
        (is_installed && matches!(self.trust, Trust::Unasked)).then_some(newest)
    }

    /// The cache is lost, and the registry does not say what the image is: what was installed of it
    /// is what is asked for.
    fn go_on_without(&self, installed: &Revision, why: &str) -> Step {
        match revisions::decide(self, &installed.metadata.name) {
            Ok(mut decided) => {
                decided.report.insert(0, format!("{why}; what is installed goes on"));
                let plan = self.with_revisions(Policy::IfNotPresent, decided);
                Step::Do(Plan { wake: Wake::After(RECHECK), ..plan })
            }
            Err(needs) => Step::Need(needs),
        }
    }

    /// What is there goes on as it was; only what was asked for is not to be had.
    fn unfetched(&self, why: &str, advice: &str) -> Plan {
        self.failed("UnpackPackage", format!("cannot unpack package: {why}; {advice}"))
    }

    /// No revision could say whose it is. Names do not change, so it is not looked at again.
    fn unnameable(&self) -> Plan {
        let why = format!(
            "the name of a package may have at most {PACKAGE_NAME_SIZE_MAX} characters, because its \
             revisions carry it as a label, and this one has {}",
            self.package.metadata.name.len()
        );
        let advice = "install it under another name, and delete this one";
        Plan { wake: Wake::OnChange, ..self.unfetched(&why, advice) }
    }

    /// The API server would not have what was decided.
    fn rejected(&self, refusal: &Refusal) -> Plan {
        let Refusal { target, message } = refusal;
        let why = format!("cannot apply {} {}: {message}", target.kind, target.name);
        self.failed("InstallPackageRevision", why)
    }

    fn failed(&self, reason: &'static str, message: String) -> Plan {
        let mut status = self.status();
        self.resume(&mut status);
        let conditions = status.conditions.get_or_insert_default();
        let installed =
            self.condition(types::INSTALLED, false, reasons::UNPACKING, Some(message.clone()));
        condition::set(conditions, installed);
        // Who somebody activated takes over all the same.
        let settled = revisions::settle(self).filter(|_| self.refused.is_empty());
        let running = self.revisions.iter().find(|one| one.spec.desired_state == ACTIVE);
        let healthy = match (&settled, running) {
            (Some(settled), _) => self.health(settled),
            (None, Some(running)) if !health::is_current(self, running) => {
                self.health_before(running)
            }
            (None, running) => health::of_package(self, running, Some(&message)),
        };
        condition::set(conditions, healthy);
        let (mut actions, mut report) = (Vec::new(), vec![message.clone()]);
        if let Some(settled) = settled {
            status.current_revision = Some(settled.current);
            actions.extend(settled.actions);
            report.extend(settled.report);
        }
        if let Some(write) = self.write(&status) {
            actions.extend([write, self.event(true, reason, message)]);
        }
        // Whatever is in the way may be gone by then.
        Plan { actions, report, wake: Wake::After(RECHECK) }
    }

    fn with_revisions(&self, policy: Policy, decided: Decided) -> Plan {
        let mut status = self.status();
        self.resume(&mut status);
        status.current_revision = Some(decided.current.clone());
        status.current_identifier = Some(self.package.spec.package.clone());
        let asked = &self.package.spec.package;
        status.resolved_package = Some(self.treatment.name(asked).to_owned());
        let before = status.applied_image_config_refs.as_deref().unwrap_or_default();
        status.applied_image_config_refs = health::applied(before, &self.treatment.applied);
        let healthy = self.health(&decided);
        let was_healthy =
            health::said(&status, types::HEALTHY).is_some_and(|it| it.status == "True");
        let became_healthy = healthy.status == "True" && !was_healthy;
        let conditions = status.conditions.get_or_insert_default();
        condition::set(conditions, healthy);
        condition::set(conditions, self.installation(&decided));
        self.retention(conditions, &decided);
        let mut actions = decided.actions;
        if became_healthy {
            let message = "Successfully installed package revision".to_owned();
            actions.push(self.event(false, "InstallPackageRevision", message));
        }
        actions.extend(self.write(&status));
        Plan { actions, report: decided.report, wake: wake(policy) }
    }
}

impl World {
    /// How the package is. What its revision says of an older state is not said of what is asked
    /// for now: until it has spoken, what was said of it before stands, as of then.
    fn health(&self, decided: &Decided) -> Condition {
        let current = self.staying(&decided.current);
        let is_told = |current: &Revision| {
            !decided.is_active || !decided.changes && health::is_current(self, current)
        };
        match current {
            Some(current) if !is_told(current) => self.health_before(current),
            current => health::of_package(self, current, None),
        }
    }

    /// What was said of a revision before, if it was the one that counted, and nobody knows how it
    /// is if it was not.
    fn health_before(&self, revision: &Revision) -> Condition {
        let before = self.status();
        let is_same = revisions::current(self) == Some(&revision.metadata.name);
        let was_active = revision.spec.desired_state == ACTIVE
            && health::said(&before, types::INSTALLED)
                .is_none_or(|it| it.reason != reasons::INACTIVE);
        let said = health::said(&before, types::HEALTHY).filter(|_| is_same && was_active);
        said.unwrap_or_else(|| health::of_package(self, None, None))
    }

    fn installation(&self, decided: &Decided) -> Condition {
        let said = |reason, message: String| {
            self.condition(types::INSTALLED, false, reason, Some(message))
        };
        let name = &decided.current;
        let is_there = self.revisions.iter().any(|one| one.metadata.name == *name);
        if is_there && self.staying(name).is_none() {
            let why = format!("waiting for the revision {name} that was here before to be gone");
            return said(reasons::UNPACKING, why);
        }
        if decided.is_active {
            return self.presence(self.staying(name));
        }
        said(reasons::INACTIVE, "Package is inactive".to_owned())
    }

    /// Whether the active revision is in the cluster: nothing is called installed that was refused.
    fn presence(&self, revision: Option<&Revision>) -> Condition {
        if revision.is_some_and(Revision::is_present) {
            return self.condition(types::INSTALLED, true, reasons::ACTIVE, None);
        }
        let said = revision.and_then(|one| {
            let said = condition::find(one.conditions(), types::REVISION_HEALTHY)?;
            let is_refusal = said.status == "False" && !said.is_past(one.metadata.generation);
            said.message.clone().filter(|_| is_refusal)
        });
        let reason = if said.is_some() { reasons::UNESTABLISHED } else { reasons::UNPACKING };
        self.condition(types::INSTALLED, false, reason, said)
    }

    /// Says of definitions that stay what the revision says of them, once it has its objects.
    fn retention(&self, conditions: &mut Vec<Condition>, decided: &Decided) {
        let current = self.staying(&decided.current).filter(|one| one.is_established());
        let Some(current) = current else { return };
        match retention::retaining(current.conditions()) {
            Some(said) => {
                let (reason, message) = (said.reason.as_str(), said.message.clone());
                let of = types::DEFINITIONS_RETAINED;
                condition::set(conditions, self.condition(of, true, reason, message));
            }
            None => conditions.retain(|one| one.condition_type != types::DEFINITIONS_RETAINED),
        }
    }

    /// A revision that is there and not on its way out.
    fn staying(&self, name: &str) -> Option<&Revision> {
        let mut staying =
            self.revisions.iter().filter(|one| one.metadata.deletion_timestamp.is_none());
        staying.find(|one| one.metadata.name == name)
    }
}

fn wake(policy: Policy) -> Wake {
    if policy == Policy::Always { Wake::After(RECHECK) } else { Wake::OnChange }
}

fn target_of(api_version: &str, kind: &str, name: &str) -> Target {
    let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
    Target { api_version, kind, namespace: None, name: name.to_owned() }
}
