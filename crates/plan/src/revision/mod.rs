//! Revisions: from a package's bytes to objects in a cluster.
//!
//! ```text
//!   which bytes ─► who signed them ─► what is in them ─► may it run here ─► is what it needs there ─► its objects
//! ```
//!
//! An active revision controls the objects its package brings. It gets all of them or none: whose
//! they are is looked at first ([`owners`]), then the API server is asked whether it would take
//! every one, then the package's name is put beside them in the Lock ([`claims`]), and only then
//! is anything written ([`objects`]). An inactive revision only owns what is there, and control
//! goes from one revision to the next without a moment in which nobody has it.
//!
//! At every place where it can go no further, the revision says why and what to do about it.

mod claims;
pub mod contents;
mod depart;
pub mod desired;
mod draft;
mod fetch;
mod objects;
mod overlay;
mod owners;
mod retain;
#[cfg(test)]
mod tests;
mod trust;
mod underlying;
mod withdraw;

pub use contents::{Contents, Document, Unsupported};
pub(crate) use trust::is_made_for;

use crate::adoption;
use crate::authority::{self, Allowed};
use crate::control::is_named;
use crate::image_config::Treatment;
use crate::lock::Verdict;
use crate::package::pull::{Image, RECHECK, Unavailable};
use crate::retention::Instances;
use crate::runtime::Configurations;
use crate::signature::Trust;
use crate::step::{Action, Expect, Need, Plan, Refusal, Step, Target, Wake};
use api::condition::{self, reasons, types};
use api::meta::{Meta, PackageKind, capability};
use api::object::{ObjectMeta, OwnerReference};
use api::pkg::lock::Lock;
use api::pkg::revision::{ACTIVE, Revision};
use api::pkg::{FINALIZER_REVISION, LABEL_PACKAGE};
use draft::Draft;
use owners::{Party, Sibling};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Everything that decides about one revision.
#[derive(Clone, Debug)]
pub struct World {
    /// The revision, as seen.
    pub revision: Revision,
    /// Which kind of package it is a revision of.
    pub kind: PackageKind,
    /// The other revisions of its package, as seen.
    pub siblings: Vec<Revision>,
    /// The Lock, if there is one.
    pub lock: Option<Lock>,
    /// The packages there are, as the Lock's record names them: `Provider/p`.
    pub packages: BTreeSet<String>,
    /// Whether its package is there and not on its way out.
    pub package_stays: bool,
    /// Whether an administrator gave its package whatever is there already.
    pub adopts_existing: bool,
    /// Whether its package was made for install objects of the first package system.
    pub serves_installs: bool,
    /// What is known about its image; what the cache holds is found by the revision's name.
    pub image: Image,
    /// What image configurations make of its image.
    pub treatment: Treatment,
    /// Whether its image may be used.
    pub trust: Trust,
    /// What is in the package, once it was asked for.
    pub contents: Option<Result<Arc<Contents>, Unavailable>>,
    /// What the lock says, once it was asked.
    pub verdict: Option<Verdict>,
    /// What packages may bring and ask for, once it was asked for.
    pub allowed: Option<Allowed>,
    /// The certificate of the runtime's endpoint in base64, once it was asked for.
    pub certificate: Option<Option<String>>,
    /// What may say how the runtime is reached, once it was asked for.
    pub configurations: Option<Configurations>,
    /// What the cluster has of the objects that were asked for; nothing where there is none.
    pub seen: BTreeMap<Target, Option<Seen>>,
    /// The definitions that are kept for the package though no revision of it brings them, once
    /// they were asked for.
    pub retained: Option<Vec<Target>>,
    /// How many objects there are of definitions that were asked for.
    pub instances: BTreeMap<Target, Instances>,
    /// What the API server would refuse, once it was asked.
    pub checked: Option<Vec<Refusal>>,
    /// What the API server refused of what was decided before.
    pub refused: Vec<Refusal>,
    /// How this manager is set up.
    pub settings: Settings,
    /// The time, as conditions write it.
    pub now: String,
}

/// What the cluster has of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Whether it says what the package says, besides who owns it.
    pub is_same: bool,
    /// `spec.state`, which only definitions of managed resources have.
    pub state: Option<String>,
    /// Whether a package manager wrote it, as [`is_written`](crate::adoption::is_written) has it.
    pub is_written: bool,
}

/// How this manager is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The registry of references that name none.
    pub default_registry: String,
    /// The version of Crossplane that packages are told this is.
    pub crossplane_version: String,
    /// The namespace that Secrets and Services of runtimes are in.
    pub namespace: String,
    /// Whether this manager runs packages of the kind itself.
    pub runs_packages: bool,
    /// Whether definitions of resources are handed to Crossplane, which makes them when they are
    /// activated. It must be there for that.
    pub defers_definitions: bool,
    /// What packages may bring and ask for wherever this manager is; more may be allowed in the
    /// cluster.
    pub allowed: Allowed,
    /// Whether packages take over whatever is there already, as upstream's do.
    pub adopts_existing: bool,
}

/// Why a revision goes no further for now.
#[derive(Debug)]
enum Halt {
    /// Not enough is known.
    Need(Vec<Need>),
    /// Something else comes first.
    First(Plan),
    /// Something is in the way.
    Trouble(Trouble),
}

/// Something that is in the way, and what is told about it.
#[derive(Debug)]
struct Trouble {
    /// The reason of an event about it, if it is worth one.
    event: Option<&'static str>,
    /// Why, in one word.
    reason: &'static str,
    message: String,
    wake: Wake,
}

impl Halt {
    /// Something that may be mended elsewhere, unseen from here.
    fn trouble(event: &'static str, message: impl Into<String>) -> Self {
        let (message, wake) = (message.into(), Wake::After(RECHECK));
        Self::Trouble(Trouble { event: Some(event), reason: reasons::UNHEALTHY, message, wake })
    }

    /// Something that only a change to what is watched can mend.
    fn lasting(event: &'static str, message: impl Into<String>) -> Self {
        let (message, wake) = (message.into(), Wake::OnChange);
        Self::Trouble(Trouble { event: Some(event), reason: reasons::UNHEALTHY, message, wake })
    }

    /// Something that passes by itself.
    fn waiting(message: impl Into<String>) -> Self {
        Self::passing(reasons::UNHEALTHY, message)
    }

    /// Definitions are on their way out with their objects, which what runs may have to let go of.
    fn terminating(message: impl Into<String>) -> Self {
        Self::passing(reasons::TERMINATING, message)
    }

    fn passing(reason: &'static str, message: impl Into<String>) -> Self {
        let (message, wake) = (message.into(), Wake::After(RECHECK));
        Self::Trouble(Trouble { event: None, reason, message, wake })
    }
}

/// Decides about one revision.
pub fn step(world: &World) -> Step {
    let mut draft = Draft::of(world);
    match decide(world, &mut draft) {
        Ok(plan) | Err(Halt::First(plan)) => Step::Do(plan),
        Err(Halt::Need(needs)) => Step::Need(needs),
        Err(Halt::Trouble(trouble)) => Step::Do(draft.troubled(world, trouble)),
    }
}

fn decide(world: &World, draft: &mut Draft) -> Result<Plan, Halt> {
    let metadata = &world.revision.metadata;
    if metadata.is_paused() {
        return Ok(draft::paused(world));
    }
    if metadata.deletion_timestamp.is_some() {
        return leave(world, draft);
    }
    if !world.refused.is_empty() {
        return Err(refused(&world.refused));
    }
    hold(world)?;
    let is_known = draft.status.object_refs.as_ref().is_some_and(|objects| !objects.is_empty());
    if !world.is_active() && is_known {
        return objects::release(world, draft);
    }
    trust::refused(world, draft)?;
    let digest = fetch::digest(world).map_err(|halt| go_on_without(world, halt))?;
    trust::verified(world, draft, &digest)?;
    let contents = fetch::contents(world, digest).map_err(|halt| go_on_without(world, halt))?;
    let resolved = world.treatment.name(&world.revision.spec.image);
    draft.status.resolved_image = Some(resolved.to_owned());
    let before = draft.status.applied_image_config_refs.as_deref().unwrap_or_default();
    draft.status.applied_image_config_refs =
        crate::package::health::applied(before, &world.treatment.applied);
    let meta = trust::valid(world, &contents)?;
    trust::require_install_object(world, &contents)?;
    trust::mark(world, meta)?;
    draft.remark = trust::withheld(meta);
    draft.status.capabilities = capabilities(meta);
    trust::compatible(world, meta)?;
    draft.ask(&authority::asked(&contents, &BTreeSet::new()));
    trust::permitted(world, draft, &contents)?;
    depend(world, draft)?;
    objects::establish(world, &contents, draft)
}

/// What has its objects goes on while its package is not to be had: the cache is lost, and the
/// registry does not answer. It is looked at again before long. What must be signed is held against
/// its signatures each time.
fn go_on_without(world: &World, halt: Halt) -> Halt {
    let goes_on = world.revision.is_established() && matches!(world.trust, Trust::Unasked);
    match halt {
        Halt::Trouble(Trouble { message, wake, .. }) if goes_on => {
            let report = vec![format!("{message}; what is established goes on")];
            Halt::First(Plan { report, wake, ..Plan::default() })
        }
        halt => halt,
    }
}

/// A revision that goes: it leaves the Lock, and its objects to those that own them.
fn leave(world: &World, draft: &Draft) -> Result<Plan, Halt> {
    let report = vec!["it is being deleted: objects that only it owns go with it".to_owned()];
    let has_ours = world.revision.metadata.finalizers.iter().any(|one| one == FINALIZER_REVISION);
    let mut actions = Vec::new();
    if has_ours {
        actions.extend(objects::bequeath(world, draft)?);
        depart::wait_for_objects(world, draft)?;
        actions.extend(claims::leave(world));
        actions.push(world.finalizer(false));
    }
    Ok(Plan { actions, report, wake: Wake::OnChange })
}

/// Makes sure that we are asked before the revision goes.
fn hold(world: &World) -> Result<(), Halt> {
    if world.revision.metadata.finalizers.iter().any(|one| one == FINALIZER_REVISION) {
        return Ok(());
    }
    let actions = vec![world.finalizer(true)];
    Err(Halt::First(Plan { actions, ..Plan::default() }))
}

fn refused(refusals: &[Refusal]) -> Halt {
    let each = refusals.iter().map(|Refusal { target: Target { kind, name, .. }, message }| {
        format!("{kind} {name}: {message}")
    });
    let message = format!(
        "cannot establish control of object: the API server refuses {}; mend what it names, and \
         the revision is tried again",
        listing(&each.collect::<Vec<_>>())
    );
    Halt::trouble("SyncPackage", message)
}

/// Waits for what the package needs. An inactive revision needs nothing; who does not want to know
/// what it needs only waits for the Lock to have it.
fn depend(world: &World, draft: &mut Draft) -> Result<(), Halt> {
    if !world.is_active() {
        return Ok(());
    }
    let Some(verdict) = &world.verdict else {
        return Err(Halt::Need(vec![Need::Dependencies]));
    };
    let why = "cannot resolve package dependencies";
    match verdict {
        Verdict::Skipped => Ok(()),
        // It says something before long, and is heard; there is nothing to tell meanwhile.
        Verdict::Unheard => Err(Halt::First(Plan {
            report: vec!["the lock has not been looked at since it came".to_owned()],
            ..Plan::default()
        })),
        Verdict::Resolved(counts) => {
            draft.count(counts);
            Ok(())
        }
        Verdict::Waiting(counts, message) | Verdict::Conflict(counts, message) => {
            draft.count(counts);
            Err(Halt::lasting("ResolveDependencies", format!("{why}: {message}")))
        }
    }
}

/// A function that does not say what it can do composes.
fn capabilities(meta: &Meta) -> Option<Vec<String>> {
    let said = meta.capabilities().map(<[String]>::to_vec);
    let otherwise =
        (meta.kind() == PackageKind::Function).then(|| vec![capability::COMPOSITION.to_owned()]);
    said.or(otherwise).filter(|all| !all.is_empty())
}

/// As many of these as a condition has room for, which are almost always all.
fn bounded(all: &[String], between: &str) -> String {
    /// API servers take conditions of 32 KiB.
    const SIZE_MAX: usize = 24 << 10;
    let mut text = String::new();
    for (at, one) in all.iter().enumerate() {
        if text.len() + one.len() > SIZE_MAX {
            return format!("{text} and {} more", all.len() - at);
        }
        let between = if text.is_empty() { "" } else { between };
        text = format!("{text}{between}{one}");
    }
    text
}

/// A few of many, as one sentence.
fn listing(all: &[String]) -> String {
    const SHOWN_MAX: usize = 3;
    let shown = all.iter().take(SHOWN_MAX).map(String::as_str).collect::<Vec<_>>().join("; ");
    match all.len().saturating_sub(SHOWN_MAX) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

impl World {
    /// Whether the package has nothing in the cluster, as far as can be seen: none of the objects
    /// is its own, none of its other revisions brought one that was there, and none ever ran.
    pub fn has_nothing(&self) -> bool {
        let party = self.party();
        let is_ours = |one: &OwnerReference| {
            let revisions = self.siblings.iter().chain([&self.revision]);
            owners::is_named(one, &party.package) || { revisions }.any(|it| is_named(one, it))
        };
        let mut seen = self.seen.values().flatten();
        let has_objects = seen.any(|one| one.metadata.owner_references.iter().any(is_ours));
        let had_some = |one: &Revision| {
            let status = one.status.iter();
            let mut objects = status.flat_map(|status| status.object_refs.iter().flatten());
            let runtime = condition::find(one.conditions(), types::RUNTIME_HEALTHY);
            objects.any(|it| it.uid.is_some()) || runtime.is_some_and(|it| it.status == "True")
        };
        !has_objects && !self.siblings.iter().any(had_some)
    }

    /// Whether something is in the way, as far as can be seen, that no package brought.
    pub fn is_obstructed(&self) -> bool {
        let party = self.party();
        let mut seen = self.seen.values().flatten();
        seen.any(|one| party.standing(one) == owners::Standing::Foreign)
    }

    fn is_active(&self) -> bool {
        self.revision.spec.desired_state == ACTIVE
    }

    /// The name of the package this is a revision of.
    fn package_name(&self) -> &str {
        let metadata = &self.revision.metadata;
        metadata.labels.get(LABEL_PACKAGE).unwrap_or(&metadata.name)
    }

    /// How annotations name the package.
    fn mark(&self) -> String {
        adoption::mark(&self.revision.api_version, self.kind.as_str(), self.package_name())
    }

    fn target(&self) -> Target {
        Target {
            api_version: self.revision.api_version.clone(),
            kind: self.revision.kind.clone(),
            namespace: None,
            name: self.revision.metadata.name.clone(),
        }
    }

    fn finalizer(&self, is_wanted: bool) -> Action {
        let finalizer = FINALIZER_REVISION.to_owned();
        let expect = Expect::as_seen(&self.revision.metadata);
        Action::Finalizer { target: self.target(), finalizer, is_wanted, expect }
    }

    fn party(&self) -> Party {
        let owner = |api_version: &str, kind: &str, name: &str, uid: Option<&String>| {
            let (api_version, kind, name) =
                (api_version.to_owned(), kind.to_owned(), name.to_owned());
            let uid = uid.cloned().unwrap_or_default();
            OwnerReference { api_version, kind, name, uid, ..OwnerReference::default() }
        };
        let Revision { api_version, kind, metadata, .. } = &self.revision;
        let (package, package_kind) = (self.package_name(), self.kind.as_str());
        let of = metadata.owner_references.iter();
        let mut of = of.filter(|one| one.kind == package_kind && one.name == package);
        let package = OwnerReference {
            controller: Some(false),
            block_owner_deletion: Some(true),
            ..owner(api_version, package_kind, package, of.next().map(|one| &one.uid))
        };
        let siblings = self.siblings.iter().map(|one| Sibling {
            name: one.metadata.name.clone(),
            uid: one.metadata.uid.clone().unwrap_or_default(),
            is_active: one.spec.desired_state == ACTIVE
                && one.metadata.deletion_timestamp.is_none(),
        });
        let revision = owner(api_version, kind, &metadata.name, metadata.uid.as_ref());
        let ours = crate::lock::owner(package_kind, &package.name);
        let others = self.packages.iter().filter(|one| **one != ours);
        let others = others.filter_map(|one| one.split_once('/')).map(|(kind, name)| {
            (adoption::mark(api_version, kind, name), format!("{kind} {name}"))
        });
        Party {
            siblings: siblings.collect(),
            neighbours: others.collect(),
            adopts_existing: self.adopts_existing || self.settings.adopts_existing,
            mark: self.mark(),
            revision,
            package,
        }
    }
}
