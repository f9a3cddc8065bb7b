//! Install objects of the first package system: each becomes a Provider.
//!
//! ```text
//!   ClusterPackageInstall ─┐              ┌─► DeploymentRuntimeConfig ─┐
//!                          ├─► the image ─┤                            ├─► as for every Provider
//!   PackageInstall ────────┘  (`image`)   └─► Provider ────────────────┘
//!                                 contents ─► Package, StackDefinition (`record`)
//! ```
//!
//! Fetching, trust, ownership, the Lock and what runs are the Provider's: an install object decides
//! nothing about them, and nothing else knows that there are install objects. The Provider begins
//! with activation by hand, so that its package is fetched and read, and nothing of it is installed;
//! what the package says then is held against what the install object asks for ([`checks`]), and only
//! a package that fits is activated. Install objects of one package in several namespaces share a
//! Provider: the oldest of them says how it is fetched and run ([`parties`]). One that asks for another
//! repository keeps its Provider, and what that has ([`choice`]).
//!
//! An install object that asks for a definition gets its image first, as package objects do ([`by_kind`]).
//! An install object goes last: its finalizer waits until the Provider and its revisions are gone.

mod by_kind;
mod checks;
mod choice;
pub mod image;
mod parties;
mod pods;
mod record;
mod runtime;
mod secrets;
mod tell;
#[cfg(test)]
mod tests;

pub use choice::{ProviderChoice, choose_provider};
pub use secrets::{LABEL_COPIED_FOR, NamedSecret, named_secrets, needs_copies};

use crate::control;
use crate::lock::{KindPins, KindSources};
use crate::package::pull::RECHECK;
use crate::runtime::prune_nulls;
use crate::same::same;
use crate::step::{Action, Expect, MANAGER, Plan, Refusal, Step, Target, Wake};
use api::condition::{self, Condition, types};
use api::meta::Meta;
use api::stacks::{
    FINALIZER_INSTALL, PackageInstall, RECORD, STACKS_VERSION, TEMPLATE_RECORD, install_kind,
};
use oci::{Reference, Rules};
use parties::Parties;
use serde_json::{Value as Json, json};
use std::time::Duration;

/// The annotation of a Provider that names the install objects it is for: `NAMESPACE/NAME`, with
/// commas between them.
pub const ANNOTATION_INSTALLS: &str = "packages.crossplane.io/installs";
/// The field of a package's metadata with its record, which only packages of the first format have.
pub const RECORD_FIELD: &str = "stack";
/// How long to wait for what goes, though nothing tells that it has.
const DEPARTURE_PAUSE: Duration = Duration::from_secs(5);

/// Everything that decides about one install object.
#[derive(Clone, Debug, Default)]
pub struct InstallWorld {
    /// The object, as seen.
    pub install: PackageInstall,
    /// All install objects there are, of both kinds.
    pub installs: Vec<PackageInstall>,
    /// Which Provider it goes by.
    pub choice: ProviderChoice,
    /// The Provider of that name.
    pub provider: Option<Json>,
    /// The runtime configuration of that name.
    pub runtime_config: Option<Json>,
    /// Whether that Provider has revisions, which may outlive it.
    pub has_revisions: bool,
    /// Whether something of such a revision is in the cluster.
    pub is_installed: bool,
    /// What the package says of itself, once it was read: its record, or null for a package of today.
    pub contents: Option<Json>,
    /// The Package of the object's name.
    pub record: Option<Json>,
    /// The `StackDefinition` of the object's name.
    pub template_record: Option<Json>,
    /// The pull secrets that it names, if they are in another namespace than the manager.
    pub secrets: Vec<NamedSecret>,
    /// What was copied of such secrets for it.
    pub copies: Vec<Json>,
    /// Where the definition may come from that it asks for, once that was asked.
    pub kinds: Option<KindSources>,
    /// Which packages an administrator chose for definitions.
    pub pins: KindPins,
    /// What the API server would not do when this was last decided.
    pub refused: Vec<Refusal>,
    /// How this manager is set up.
    pub settings: InstallSettings,
    /// The time, as conditions write it.
    pub now: String,
}

/// How this manager is set up.
#[derive(Clone, Debug, Default)]
pub struct InstallSettings {
    /// The group of Providers.
    pub group: String,
    /// The group of install objects.
    pub stacks_group: String,
    /// The registry of references that name none.
    pub default_registry: String,
    /// Where the manager fetches and runs packages.
    pub namespace: String,
}

/// The name of the Provider of an image.
pub fn provider_name(image: &Reference) -> String {
    xpkg::label::object_name(image)
}

/// The kind of install object that a package needs, by its metadata; nothing for one of today.
pub(crate) fn find_install_kind(meta: &Meta) -> Option<&'static str> {
    let document = meta.to_json();
    let record = document.get(RECORD_FIELD)?;
    Some(install_kind(record["spec"]["permissionScope"].as_str()))
}

/// Decides about one install object.
pub fn decide_install(world: &InstallWorld) -> Step {
    let metadata = &world.install.metadata;
    let is_held = metadata.finalizers.iter().any(|one| one == FINALIZER_INSTALL);
    if metadata.is_paused() {
        return Step::Do(world.tell_paused());
    }
    if metadata.deletion_timestamp.is_some() {
        return Step::Do(if is_held { world.plan_departure() } else { Plan::default() });
    }
    if !is_held {
        return Step::Do(Plan { actions: vec![world.finalizer(true)], ..Plan::default() });
    }
    if let (Some(crd), []) = (image::asked_kind(&world.install.spec), world.refused.as_slice()) {
        return by_kind::choose_install(world, crd);
    }
    match world.plan_provider() {
        Ok(plan) => Step::Do(plan),
        Err(why) => Step::Do(world.tell_trouble(why)),
    }
}

impl InstallWorld {
    /// The Provider as it should be, with what it needs; or what is in the way.
    fn plan_provider(&self) -> Result<Plan, String> {
        if let Some(Refusal { target: Target { kind, name, .. }, message }) = self.refused.first() {
            return Err(format!("the API server refuses {kind} {name}: {message}"));
        }
        let image = image::install_image(&self.install.spec, &self.settings.default_registry)?;
        let parties = Parties::of(self, &image)?;
        self.refuse_leaving(&image)?;
        let name = self.provider_name(&image);
        let contents = self.contents.as_ref().filter(|_| self.is_about(&image));
        let contents = contents.map(|contents| prune_nulls(contents.clone()));
        let fit = contents.as_ref().map(|it| checks::check_contents(self, &image, it));
        self.refuse_other_provider(&image, fit.as_ref())?;
        self.refuse_other_record()?;
        let mut actions = self.copy_secrets()?;
        if let (Some(contents), Some(Ok(()))) = (&contents, &fit) {
            let named = (name.as_str(), &image);
            let config = runtime::runtime_config(&parties, named, contents, &self.settings)?;
            actions.extend(apply_over(&config, self.runtime_config.as_ref()));
            actions.extend(self.apply_records(&image, contents));
        }
        let is_activated = match &fit {
            Some(fit) => fit.is_ok(),
            None => self.is_about(&image) && self.is_automatic(),
        };
        let wanted = parties.provider((&name, &image), &self.settings, is_activated);
        let waits = self.provider.as_ref().is_some_and(is_going);
        if !waits {
            actions.extend(apply_over(&wanted, self.provider.as_ref()));
        }
        let trouble = fit.and_then(Result::err);
        let plan = self.tell_progress(actions, &image, trouble);
        Ok(Plan { wake: self.secrets_wake(), ..plan })
    }

    /// A Provider that was not made for install objects is taken over only if it waits for one: its
    /// package is of the first format and fits this object, and nothing of it is installed. What runs is
    /// its makers', and would go with this object.
    fn refuse_other_provider(
        &self,
        image: &Reference,
        fit: Option<&Result<(), String>>,
    ) -> Result<(), String> {
        let Some(provider) = &self.provider else { return Ok(()) };
        let name = self.provider_name(image);
        if choice::is_for_installs(provider) {
            let repository = choice::repository_of(provider, &self.settings.default_registry);
            if self.is_party(provider) || repository.as_ref() == Some(image.repository()) {
                return Ok(());
            }
            let others = provider["metadata"]["annotations"][ANNOTATION_INSTALLS].as_str();
            return Err(format!(
                "Provider {name} is there already, for the install object {}, and has another \
                 repository; delete one of the two",
                others.unwrap_or_default()
            ));
        }
        let is_stack = self.contents.as_ref().is_some_and(|it| !it.is_null());
        match fit {
            Some(Ok(())) if !self.is_installed => Ok(()),
            Some(Err(why)) if is_stack => Err(why.clone()),
            _ => Err(format!(
                "Provider {name} is there already, and was not made for an install object; \
                     delete one of the two"
            )),
        }
    }

    /// The name of the Provider that it goes by.
    fn provider_name(&self, image: &Reference) -> String {
        self.choice.name.clone().unwrap_or_else(|| provider_name(image))
    }

    /// What an object would leave is not taken down for it: definitions would go, with their objects.
    fn refuse_leaving(&self, image: &Reference) -> Result<(), String> {
        let Some(left) = &self.choice.left else { return Ok(()) };
        Err(format!(
            "{} is installed already, for other install objects, and Provider {left} is there for this \
             one; delete this object to give that up, and make it again",
            image.repository()
        ))
    }

    /// A record of the object's name that is not its own is not overwritten.
    fn refuse_other_record(&self) -> Result<(), String> {
        let ours = json!(self.install);
        let mut records = [&self.record, &self.template_record].into_iter().flatten();
        let other = records.find(|it| !control::is_controlled_by_object(it, &ours));
        other.map_or(Ok(()), |it| {
            let (kind, name) = (&it["kind"], &self.install.metadata.name);
            let kind = kind.as_str().unwrap_or_default();
            Err(format!(
                "{kind} {name} is there already, and is not the record of this object; delete one of \
                 the two"
            ))
        })
    }

    /// Takes back what the object brought, in order: records, the Provider, its configuration.
    fn plan_departure(&self) -> Plan {
        let mut actions = Vec::new();
        for record in [&self.template_record, &self.record].into_iter().flatten() {
            let is_ours = control::is_controlled_by_object(record, &json!(self.install));
            if is_ours && !is_going(record) {
                actions.push(delete_seen(record));
            }
        }
        let is_needed =
            self.departing_image().is_some_and(|it| Parties::of_others(self, &it).is_some());
        let provider = self.provider.as_ref().filter(|it| !is_needed && self.is_party(it));
        let is_leaving = match provider {
            Some(provider) => {
                if !is_going(provider) {
                    actions.push(delete_seen(provider));
                }
                true
            }
            None => !is_needed && self.provider.is_none() && self.has_revisions,
        };
        if is_leaving {
            let message = "waiting for the package's revisions and their objects to be gone";
            let plan = self.tell_leaving(actions, message);
            return Plan { wake: Wake::After(DEPARTURE_PAUSE), ..plan };
        }
        let config = self.runtime_config.as_ref().filter(|it| !is_needed && self.is_party(it));
        actions.extend(config.filter(|it| !is_going(it)).map(delete_seen));
        actions.extend(self.delete_copies(&[]));
        if !actions.is_empty() {
            // Nothing but the object remembers what it brought: it goes once that is seen to be gone.
            let plan =
                self.tell_leaving(actions, "waiting for its records and configuration to be gone");
            return Plan { wake: Wake::After(DEPARTURE_PAUSE), ..plan };
        }
        actions.push(self.finalizer(false));
        Plan { actions, report: vec!["nothing of it is left".to_owned()], wake: Wake::OnChange }
    }

    /// The image of the package that the object has: that of its Provider, whatever it asks for since.
    fn departing_image(&self) -> Option<Reference> {
        let registry = &self.settings.default_registry;
        let provider = self.provider.as_ref().filter(|it| self.is_party(it));
        let package = provider.and_then(|it| it["spec"]["package"].as_str());
        let rules = Rules::weak().default_registry(registry);
        let image = package.and_then(|package| Reference::parse(package, &rules).ok());
        image.or_else(|| image::install_image(&self.install.spec, registry).ok())
    }

    /// Whether an object was made for this one, among others.
    fn is_party(&self, object: &Json) -> bool {
        parties::is_named_in(object, &self.install)
    }

    /// Whether what is known of the Provider is known of this image.
    fn is_about(&self, image: &Reference) -> bool {
        let provider = self.provider.as_ref();
        provider.is_some_and(|it| {
            it["spec"]["package"] == *image.as_written()
                && it["status"]["currentIdentifier"] == it["spec"]["package"]
        })
    }

    fn is_automatic(&self) -> bool {
        let provider = self.provider.as_ref();
        provider.is_some_and(|it| it["spec"]["revisionActivationPolicy"] == "Automatic")
    }

    /// A condition of the Provider, if it is about what is asked for now.
    fn provider_condition(&self, of: &str) -> Option<Condition> {
        let provider = self.provider.as_ref()?;
        let all = provider["status"]["conditions"].clone();
        let all: Vec<Condition> = serde_json::from_value(all).unwrap_or_default();
        let generation = provider["metadata"]["generation"].as_i64();
        condition::find(&all, of).filter(|one| !one.is_past(generation)).cloned()
    }

    /// Whether the package is installed and does what it should, and if not, why.
    fn provider_health(&self, image: &Reference) -> Result<(), String> {
        let waiting = || "waiting for the package to be fetched and installed".to_owned();
        if !self.is_about(image) || !self.is_automatic() {
            let said = self.provider_condition(types::INSTALLED);
            let said = said.filter(|one| one.status == "False" && is_stuck(one));
            return Err(said.and_then(|one| one.message).unwrap_or_else(waiting));
        }
        for of in [types::INSTALLED, types::HEALTHY] {
            match self.provider_condition(of) {
                Some(one) if one.status == "True" => {}
                Some(one) => return Err(one.message.unwrap_or_else(waiting)),
                None => return Err(waiting()),
            }
        }
        Ok(())
    }

    fn apply_records(&self, image: &Reference, contents: &Json) -> Vec<Action> {
        let mut actions = Vec::new();
        for wanted in record::records(self, image, contents) {
            let seen = match wanted["kind"].as_str() {
                Some(TEMPLATE_RECORD) => self.template_record.as_ref(),
                _ => self.record.as_ref(),
            };
            if !seen.is_some_and(is_going) {
                actions.extend(apply_over(&wanted, seen));
            }
        }
        // A package that no longer fills in templates has no use for the record of those.
        let is_template = contents["kind"] == TEMPLATE_RECORD;
        let outdated = self.template_record.as_ref().filter(|_| !is_template);
        let is_ours = |it: &&Json| control::is_controlled_by_object(it, &json!(self.install));
        actions.extend(outdated.filter(is_ours).filter(|it| !is_going(it)).map(delete_seen));
        actions
    }

    fn target(&self) -> Target {
        Target {
            api_version: self.install.api_version.clone(),
            kind: self.install.kind.clone(),
            namespace: Some(parties::namespace_of(&self.install).to_owned()),
            name: self.install.metadata.name.clone(),
        }
    }

    fn finalizer(&self, is_wanted: bool) -> Action {
        let finalizer = FINALIZER_INSTALL.to_owned();
        let expect = Expect::as_seen(&self.install.metadata);
        // Other actions of a departure leave the object itself as it was.
        Action::Finalizer { target: self.target(), finalizer, is_wanted, expect }
    }

    /// Where the record of the object is.
    fn record_target(&self) -> Target {
        Target {
            api_version: format!("{}/{STACKS_VERSION}", self.settings.stacks_group),
            kind: RECORD.to_owned(),
            ..self.target()
        }
    }
}

/// Whether a condition tells of something else than that the revision waits to be activated.
fn is_stuck(one: &Condition) -> bool {
    one.reason != condition::reasons::INACTIVE && one.message.is_some()
}

fn is_going(object: &Json) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

fn delete_seen(object: &Json) -> Action {
    Action::Delete { target: Target::of(object), expect: Expect::as_found(Some(object)) }
}

/// Makes an object say this, if it does not.
fn apply_over(wanted: &Json, seen: Option<&Json>) -> Vec<Action> {
    match seen {
        Some(seen) if same(wanted, seen, MANAGER) => Vec::new(),
        seen => control::apply(wanted, seen),
    }
}

/// When to look again at what cannot go on.
fn retry() -> Wake {
    Wake::After(RECHECK)
}
