//! Packages by the kinds they bring.
//!
//! A dependency may name a kind instead of a package. Any package that brings it will do, and of
//! those that are here, or come for another reason, the solver takes one. Only if there is none it
//! asks where the kind may come from, and is answered here, by the first of these that has a word
//! on it:
//!
//! 1. the API server: what it serves is there, whatever brought it;
//! 2. an administrator's pin;
//! 3. the Lock, which remembers what was chosen before;
//! 4. the catalogs of registries, in their order: the first that knows the kind counts.
//!
//! Several packages of one catalog are never chosen from, neither by age nor by name: an author who
//! defines somebody else's kind must not be installed for it. All of them are named, with the line
//! that pins one.

use super::World;
use super::contents::Contents;
use super::members::Members;
use super::origins::recorded_dependency;
use super::sources::Sources;
use crate::image_config::{Name, Names};
use api::kind_reference::KindReference;
use api::meta::Dependency;
use api::pkg::lock::Lock;
use oci::ReferenceError;
use solver::{Bringer, Pin, Requirement};
use std::collections::{BTreeMap, BTreeSet};

/// Candidates that are written out in one message; more are counted.
const TOLD_MAX: usize = 5;
/// The kind under which a dependency names a CRD in words that are no reference to a kind.
pub(super) const DEFINITION: &str = "CustomResourceDefinition";

/// Where the kinds may come from that a reference means, as far as the API server and catalogs say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindSources {
    /// By the names of their definitions.
    pub kinds: BTreeMap<String, Offered>,
    /// The catalogs that were asked, in order; none if the manager has none.
    pub catalogs: Vec<String>,
    /// Kinds that may be meant, if none was found.
    pub suggestions: Vec<String>,
    /// Why a catalog that counts could not be asked, with what to do about it.
    pub silent: Option<String>,
}

/// How a kind can be had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// Whether the API server serves it, in a version that is meant.
    pub is_served: bool,
    /// Repositories whose packages bring it in a version that is meant.
    pub candidates: Vec<KindCandidate>,
    /// Versions of it that are served by packages, or the API server, and not meant.
    pub other_versions: BTreeSet<String>,
}

/// A repository whose packages bring a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindCandidate {
    /// The repository, with its registry.
    pub repository: String,
    /// The tags of the packages that do.
    pub tags: Vec<String>,
    /// The catalog that says so.
    pub catalog: String,
}

/// An administrator's choice of packages for kinds: the repository, by `NAME.GROUP`, or by
/// `_.GROUP` for all kinds of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindPins {
    /// The choices.
    pub repositories: BTreeMap<String, String>,
    /// Where they stand, for those who want to add one: the command up to the kind.
    pub command: String,
}

impl KindPins {
    /// The repository that was chosen for a kind; `crd` is the name of its definition.
    fn repository_for(&self, kind: &KindReference, crd: &str) -> Option<&str> {
        let keys = kind.pin_keys(crd);
        let found = keys.iter().find_map(|key| self.repositories.get(key));
        found.map(|repository| repository.trim())
    }
}

/// Whether an answer may be another one before long.
pub(super) fn is_uncertain(answer: &Result<KindSources, String>) -> bool {
    answer.as_ref().map_or(true, |sources| sources.silent.is_some())
}

/// What was decided about a kind.
#[derive(Clone, Debug)]
pub(super) struct KindChoice {
    pub(super) bringer: Bringer,
    /// The package that was chosen.
    pub(super) name: Option<Name>,
    /// Why that one.
    pub(super) reason: String,
}

/// What a dependency on a kind asks for; nothing if it names a package.
pub(super) fn kind_requirements(
    world: &World,
    dependency: &Dependency,
) -> Option<Vec<Requirement>> {
    let target = dependency.target.as_ref()?;
    let kind = match target.crd()? {
        Ok(kind) => kind,
        // Packages of old name definitions by words that no API server would have.
        Err(_) if target.kind != api::meta::TargetKind::Crd => {
            return Some(vec![Requirement::Crd(target.package.clone())]);
        }
        Err(error) => {
            let why = format!("one of its dependencies names no kind: {error}");
            return Some(vec![Requirement::Invalid(why)]);
        }
    };
    if kind.name.is_some() {
        return Some(vec![Requirement::Crd(kind.to_string())]);
    }
    let found = world.known.kinds.get(&kind).and_then(|answer| answer.as_ref().ok());
    let found = found.map(|sources| expand_group(&kind, sources)).unwrap_or_default();
    if found.is_empty() {
        return Some(vec![Requirement::Crd(kind.to_string())]);
    }
    Some(found.into_iter().map(|(kind, _)| Requirement::Crd(kind.to_string())).collect())
}

/// Each kind of a group that can be had, by its own reference.
fn expand_group<'s>(
    group: &KindReference,
    sources: &'s KindSources,
) -> Vec<(KindReference, &'s Offered)> {
    let can_be_had = |offered: &Offered| offered.is_served || !offered.candidates.is_empty();
    let kinds = sources.kinds.iter().filter(|(_, offered)| can_be_had(offered));
    let named = kinds.filter_map(|(crd, offered)| {
        let (name, _) = crd.split_once('.')?;
        let kind = KindReference { name: Some(name.to_owned()), ..group.clone() };
        Some((kind, offered))
    });
    named.collect()
}

/// Every way in which something known names a kind that it needs.
pub(super) fn needed_kinds(world: &World, members: &Members<'_>) -> BTreeSet<String> {
    let mut needed = BTreeSet::new();
    for contents in known_contents(world, members) {
        for dependency in &contents.dependencies {
            let requirements = kind_requirements(world, dependency).unwrap_or_default();
            needed.extend(requirements.into_iter().filter_map(|one| match one {
                Requirement::Crd(crd) => Some(crd),
                Requirement::Package { .. } | Requirement::Invalid(_) => None,
            }));
        }
    }
    needed
}

/// Everything that was read.
pub(super) fn known_contents<'w>(
    world: &'w World,
    members: &'w Members<'_>,
) -> impl Iterator<Item = &'w Contents> {
    let active = members.all.iter().filter_map(|one| one.active.as_ref()?.contents.as_deref());
    let previous = members.all.iter().filter_map(|one| Some(&one.previous.as_ref()?.2));
    let others = world.known.contents.values().filter_map(|one| one.as_ref().ok());
    active.chain(previous).chain(others)
}

/// What else a package may be called by those that need a kind it brings. None of its own needs is
/// among it: it would wait for itself.
pub(super) fn names_answered(
    world: &World,
    needed: &BTreeSet<String>,
    contents: &Contents,
) -> BTreeSet<String> {
    let own =
        contents.dependencies.iter().filter_map(|one| kind_requirements(world, one)).flatten();
    let own: Vec<Requirement> = own.collect();
    let is_own = |kind: &KindReference| {
        kind.name.is_none() && own.contains(&Requirement::Crd(kind.to_string()))
    };
    let answers = |crd: &&String| {
        let kind = KindReference::parse(crd);
        kind.is_ok_and(|kind| is_settled(world, &kind) && !is_own(&kind) && contents.brings(&kind))
    };
    needed.iter().filter(|crd| !contents.crds.contains(*crd)).filter(answers).cloned().collect()
}

/// Whether any package with a kind of a group stands for the whole group: one that was asked about and
/// of which nothing is to be had, or one that was had before. Packages that are published in a group
/// later are not installed for dependants that are content.
fn is_settled(world: &World, kind: &KindReference) -> bool {
    let was_had = || {
        let recorded = recorded_dependency(world, &kind.to_string());
        recorded.is_some_and(|one| one.brought_by.is_some())
    };
    kind.name.is_some() || world.known.kinds.contains_key(kind) || was_had()
}

/// Whether what is inside a package is what a requirement for a CRD means.
pub(super) fn is_brought(crd: &str, contents: &Contents) -> bool {
    let kind = KindReference::parse(crd);
    contents.crds.contains(crd) || kind.is_ok_and(|kind| contents.brings(&kind))
}

/// Where each kind that is needed may come from, as far as that was asked.
pub(super) fn choose_packages(
    world: &World,
    needed: &BTreeSet<String>,
    sources: &Sources<'_>,
) -> BTreeMap<String, KindChoice> {
    let names = |text: &str| sources.repository(text);
    let chooser = KindChooser { pins: &world.pins, lock: world.lock.as_ref(), names: &names };
    let mut choices = BTreeMap::new();
    for (kind, answer) in &world.known.kinds {
        match answer {
            Err(why) => {
                let hint = "the manager asks again before long".to_owned();
                let reason = format!("it cannot be found out who brings {kind}: {why}");
                choices.insert(kind.to_string(), KindChoice::nowhere(reason, hint));
            }
            Ok(found) if kind.name.is_none() => {
                choices.insert(kind.to_string(), chooser.refuse_group(kind, found));
                for (kind, offered) in expand_group(kind, found) {
                    let choice = chooser.choose_bringer(&kind, &kind.bare(), offered, found);
                    choices.insert(kind.to_string(), choice);
                }
            }
            Ok(found) => {
                let choice = match found.kinds.first_key_value() {
                    Some((crd, offered)) => chooser.choose_bringer(kind, crd, offered, found),
                    None => chooser.choose_bringer(kind, &kind.bare(), &Offered::default(), found),
                };
                choices.insert(kind.to_string(), choice);
            }
        }
    }
    // What is no reference to a kind is in no catalog.
    for crd in needed.iter().filter(|crd| KindReference::parse(crd).is_err()) {
        let reason = format!("no package that is installed brings the CRD {crd}");
        let hint = format!("install a package that brings {crd}");
        choices.insert(crd.clone(), KindChoice::nowhere(reason, hint));
    }
    choices
}

impl KindChoice {
    fn nowhere(reason: String, hint: String) -> Self {
        let bringer = Bringer::Nowhere { reason, hint };
        Self { bringer, name: None, reason: String::new() }
    }
}

struct KindChooser<'a> {
    pins: &'a KindPins,
    lock: Option<&'a Lock>,
    /// What a repository is known as.
    names: &'a dyn Fn(&str) -> Result<Name, ReferenceError>,
}

/// The image to install for a package object that asks for a kind, and why that one; or why there is
/// none, and what to do about it.
pub(crate) fn choose_image(
    kind: &KindReference,
    found: &KindSources,
    pins: &KindPins,
    default_registry: &str,
) -> Result<(String, String), (String, String)> {
    let names = Names { configs: &[], default_registry };
    let names = |text: &str| names.repository(text);
    let chooser = KindChooser { pins, lock: None, names: &names };
    let none = (kind.bare(), Offered::default());
    let (crd, offered) = found.kinds.first_key_value().unwrap_or((&none.0, &none.1));
    let choice = chooser.choose_bringer(kind, crd, offered, found);
    match (choice.bringer, choice.name) {
        (Bringer::Package { tags, .. }, Some(name)) => {
            let newest = tags.iter().max_by_key(|tag| (Pin::parse(tag).version().cloned(), *tag));
            let image = newest.map(|tag| format!("{}:{tag}", name.written));
            image.map(|image| (image, choice.reason)).ok_or_else(|| {
                let why = format!("no catalog knows a version of {} with {kind}", name.written);
                (why, "name the package in spec.package instead of spec.crd".to_owned())
            })
        }
        (Bringer::There, _) => Err((
            format!("{kind} is there already, and another package or user brought it"),
            "delete this object, or install a package by its name in spec.package".to_owned(),
        )),
        (Bringer::Nowhere { reason, hint }, _) => Err((reason, hint)),
        (Bringer::Package { source, .. }, None) => {
            Err((format!("{source} has no name here"), "name it in spec.package".to_owned()))
        }
    }
}

impl KindChooser<'_> {
    /// Where a kind comes from; `crd` is the name of its definition.
    fn choose_bringer(
        &self,
        kind: &KindReference,
        crd: &str,
        offered: &Offered,
        found: &KindSources,
    ) -> KindChoice {
        if offered.is_served {
            let reason = "the API server serves it, and no package here brings it".to_owned();
            return KindChoice { bringer: Bringer::There, name: None, reason };
        }
        if let Some(repository) = self.pins.repository_for(kind, crd) {
            let reason = "an administrator pinned it".to_owned();
            return self.choose_package(kind, repository, &offered.candidates, reason);
        }
        if let Some(repository) = self.recorded_choice(kind) {
            let reason = "it was chosen before".to_owned();
            return self.choose_package(kind, repository, &offered.candidates, reason);
        }
        let mut candidates: BTreeMap<_, &KindCandidate> = BTreeMap::new();
        for candidate in &offered.candidates {
            if let Ok(name) = (self.names)(&candidate.repository) {
                candidates.entry(name.source).or_insert(candidate);
            }
        }
        let candidates: Vec<&KindCandidate> = candidates.into_values().collect();
        match candidates.as_slice() {
            [] => self.refuse_missing(kind, offered, found),
            [only] => {
                let reason = format!("only it brings the kind, says {}", only.catalog);
                self.choose_package(kind, &only.repository, &offered.candidates, reason)
            }
            several => self.refuse_ambiguous(kind, crd, several),
        }
    }

    fn choose_package(
        &self,
        kind: &KindReference,
        repository: &str,
        candidates: &[KindCandidate],
        reason: String,
    ) -> KindChoice {
        let name = match (self.names)(repository) {
            Ok(name) => name,
            Err(error) => {
                let reason =
                    format!("{repository:?}, pinned for {kind}, is not a repository: {error}");
                return KindChoice::nowhere(reason, "write it without a tag or digest".to_owned());
            }
        };
        let own = candidates
            .iter()
            .filter(|one| (self.names)(&one.repository).is_ok_and(|it| it.source == name.source));
        let tags: Vec<&String> = own.flat_map(|one| &one.tags).collect();
        let bringer = Bringer::Package { source: name.source.clone(), tags: release_tags(&tags) };
        KindChoice { bringer, name: Some(name), reason }
    }

    /// The package that brought a kind when it was last needed.
    fn recorded_choice(&self, kind: &KindReference) -> Option<&str> {
        let packages = self.lock?.packages.iter().flatten();
        let mut dependencies = packages.flat_map(|one| &one.dependencies);
        let is_it = |one: &&api::pkg::lock::Dependency| {
            let is_definition = one.kind.as_deref() == Some(DEFINITION);
            is_definition && KindReference::parse(&one.package).ok().as_ref() == Some(kind)
        };
        dependencies.find_map(|one| one.brought_by.as_deref().filter(|_| is_it(&one)))
    }

    fn refuse_ambiguous(
        &self,
        kind: &KindReference,
        crd: &str,
        several: &[&KindCandidate],
    ) -> KindChoice {
        let names: Vec<&str> = several.iter().map(|one| one.repository.as_str()).collect();
        let told = names.get(..TOLD_MAX).unwrap_or(&names).join(", ");
        let more = names.len().saturating_sub(TOLD_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let reason = format!("several packages bring the CRD {kind}: {told}{more}");
        let command = &self.pins.command;
        let first = names.first().copied().unwrap_or_default();
        let hint = format!("choose one of them, for example with `{command} {crd} {first}`");
        KindChoice::nowhere(reason, hint)
    }

    /// A group of which nothing can be had.
    fn refuse_group(&self, group: &KindReference, found: &KindSources) -> KindChoice {
        let mut offered = Offered::default();
        for other in found.kinds.values() {
            offered.other_versions.extend(other.other_versions.clone());
        }
        self.refuse_missing(group, &offered, found)
    }

    fn refuse_missing(
        &self,
        kind: &KindReference,
        offered: &Offered,
        found: &KindSources,
    ) -> KindChoice {
        if let Some(why) = &found.silent {
            let reason = format!(
                "no package that is installed brings the CRD {kind}, and a catalog cannot be asked: \
                 {why}"
            );
            let command = &self.pins.command;
            let hint = format!(
                "make the catalog reachable, install the package by name, or pin it with \
                 `{command} {} REPOSITORY`",
                kind.bare()
            );
            return KindChoice::nowhere(reason, hint);
        }
        if found.catalogs.is_empty() {
            let reason = format!("no package that is installed brings the CRD {kind}");
            let hint = format!(
                "install a package that brings {kind}, or give the manager a catalog with --catalog"
            );
            return KindChoice::nowhere(reason, hint);
        }
        let catalogs = found.catalogs.join(", ");
        let others: Vec<&str> = offered.other_versions.iter().map(String::as_str).collect();
        if !others.is_empty() {
            let reason = format!(
                "no package brings the CRD {kind}, says {catalogs}; there is {} of it",
                others.join(", ")
            );
            let hint = "depend on a version that there is, or publish a package with this one";
            return KindChoice::nowhere(reason, hint.to_owned());
        }
        let reason = format!("no package brings the CRD {kind}, says {catalogs}");
        let hint = match found.suggestions.as_slice() {
            [] => format!("publish a package that brings {kind}, or install one by name"),
            some => format!("did its author mean {}?", some.join(" or ")),
        };
        KindChoice::nowhere(reason, hint)
    }
}

/// Tags that are releases, or if none is, all of them.
fn release_tags(tags: &[&String]) -> BTreeSet<String> {
    let is_release = |tag: &&&String| {
        let pin = Pin::parse(tag);
        pin.version().is_some_and(|it| it.is_installable() && !it.is_prerelease())
    };
    let releases: BTreeSet<String> =
        tags.iter().filter(is_release).map(|tag| (*tag).clone()).collect();
    if releases.is_empty() { tags.iter().map(|tag| (*tag).clone()).collect() } else { releases }
}
