//! What the lock remembers of kinds that packages need: which package brings each, and why.

use super::World;
use super::contents::Contents;
use super::kinds::{DEFINITION, is_brought};
use super::question::Question;
use api::kind_reference::KindReference;
use api::pkg::lock::Dependency;
use api::pkg::{ANNOTATION_CHOSEN_BECAUSE, Package};
use solver::{Bringer, Source};

/// A package in the lock, and what it brings.
pub(super) struct Granted<'a> {
    pub(super) package: &'a Package,
    pub(super) source: String,
    pub(super) digest: Option<String>,
    pub(super) contents: &'a Contents,
}

/// Why a package brings a kind that nobody chose.
const INSTALLED: &str = "a package that was there brings it";

/// Why a package is installed for kinds, if it is. The package says so itself, from its first moment
/// on: whoever needs it may come into the lock later.
pub(super) fn write_reasons(question: &Question<'_>, source: &Source) -> Option<String> {
    let chosen = question
        .choices
        .iter()
        .filter(|(_, choice)| choice.name.as_ref().is_some_and(|name| name.source == *source));
    let lines: Vec<String> =
        chosen.map(|(crd, choice)| format!("{crd} {}", choice.reason)).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Why a package was installed for a kind, as it says itself.
fn read_reason(package: &Package, crd: &str) -> Option<String> {
    let lines = package.metadata.annotations.get(ANNOTATION_CHOSEN_BECAUSE)?.lines();
    let mut reasons = lines.filter_map(|line| line.split_once(' '));
    reasons.find(|(kind, _)| *kind == crd).map(|(_, reason)| reason.to_owned())
}

/// Writes down where the kinds among dependencies come from: from what was granted, else from what
/// was chosen and is on its way. A reason stays for as long as the package does.
pub(super) fn record_origins(
    world: &World,
    question: &Question<'_>,
    granted: &[Granted<'_>],
    dependencies: &mut [Dependency],
) {
    for dependency in dependencies.iter_mut().filter(|one| is_on_kind(one)) {
        let crd = normalise_kind(&dependency.package);
        let owner = granted.iter().find(|one| is_brought(&crd, one.contents));
        let choice = question.choices.get(&crd);
        let (brought_by, digest) = match (owner, choice) {
            (Some(owner), _) => (Some(owner.source.clone()), owner.digest.clone()),
            (None, Some(choice)) => (choice.name.as_ref().map(|name| name.written.clone()), None),
            (None, None) => {
                (recorded_dependency(world, &crd).and_then(|it| it.brought_by.clone()), None)
            }
        };
        let remembered =
            recorded_dependency(world, &crd).filter(|one| one.brought_by == brought_by);
        let reason = match (&brought_by, remembered.and_then(|one| one.reason.clone())) {
            (_, Some(reason)) => Some(reason),
            (Some(source), None) => {
                let chosen =
                    choice.filter(|it| it.name.as_ref().is_some_and(|it| it.written == *source));
                let said = || owner.and_then(|owner| read_reason(owner.package, &crd));
                let chosen = chosen.map(|choice| choice.reason.clone()).or_else(said);
                chosen.or_else(|| Some(INSTALLED.to_owned()))
            }
            (None, None) => {
                let there = choice.filter(|choice| choice.bringer == Bringer::There);
                there.map(|choice| choice.reason.clone())
            }
        };
        (dependency.brought_by, dependency.digest, dependency.reason) =
            (brought_by, digest, reason);
    }
}

/// A dependency without what is remembered of its origin.
pub(super) fn without_origin(dependency: &Dependency) -> Dependency {
    Dependency { brought_by: None, digest: None, reason: None, ..dependency.clone() }
}

fn is_on_kind(dependency: &Dependency) -> bool {
    dependency.kind.as_deref() == Some(DEFINITION)
}

/// A kind as it is known everywhere else, however it was written.
pub(super) fn normalise_kind(text: &str) -> String {
    KindReference::parse(text).map_or_else(|_| text.to_owned(), |kind| kind.to_string())
}

/// What the lock says of a kind now.
pub(super) fn recorded_dependency<'w>(world: &'w World, crd: &str) -> Option<&'w Dependency> {
    let packages = world.lock.as_ref()?.packages.iter().flatten();
    let mut dependencies = packages.flat_map(|one| &one.dependencies);
    dependencies.find(|one| is_on_kind(one) && normalise_kind(&one.package) == crd)
}
