//! One source per package, whatever it is called.
//!
//! [`Names`] tells names of one repository apart from names of another. Two repositories can still
//! hold one package: somebody copied it. That is noticed where it matters, when something is
//! needed from a repository of which nothing is installed, and a package is installed whose
//! repository ends alike: if the tag of what is installed means the same bytes in both, they are one.

use super::members::Members;
use super::{World, kinds};
use crate::image_config::{Name, Names};
use crate::step::Need;
use api::meta::{Dependency, TargetKind};
use oci::{Digest, ReferenceError, Repository};
use solver::{Pin, Range, Requirement, Source};
use std::collections::BTreeMap;
use xpkg::version::Version;

/// What names mean.
pub(super) struct Sources<'a> {
    world: &'a World,
    names: Names<'a>,
    /// Repositories that hold what is installed from another.
    copies: BTreeMap<Source, Source>,
}

impl<'a> Sources<'a> {
    pub(super) fn new(world: &'a World) -> Self {
        let configs = &world.image_configs;
        let names = Names { configs, default_registry: &world.settings.default_registry };
        Self { world, names, copies: BTreeMap::new() }
    }

    pub(super) fn world(&self) -> &'a World {
        self.world
    }

    pub(super) fn repository(&self, text: &str) -> Result<Name, ReferenceError> {
        let mut name = self.names.repository(text)?;
        if let Some(original) = self.copies.get(&name.source) {
            name.source = original.clone();
        }
        Ok(name)
    }

    pub(super) fn image(&self, text: &str) -> Option<Name> {
        let (name, _) = self.names.image(text).ok()?;
        self.repository(&name.written).ok()
    }

    /// What a dependency asks for: one thing, or each kind of a group.
    pub(super) fn requirements(&self, dependency: &Dependency) -> Vec<Requirement> {
        let by_kind = kinds::kind_requirements(self.world, dependency);
        by_kind.unwrap_or_else(|| vec![self.requirement(dependency)])
    }

    fn requirement(&self, dependency: &Dependency) -> Requirement {
        let Some(target) = &dependency.target else {
            return Requirement::Invalid(
                "one of its dependencies names no package; it must have an apiVersion, a kind and \
                 a package"
                    .to_owned(),
            );
        };
        let package = &target.package;
        let kind = match &target.kind {
            TargetKind::Explicit { kind, .. } => Some(kind.clone()),
            // A key is only another word for package: what it is, is found by looking.
            TargetKind::Key(_) | TargetKind::Crd => None,
        };
        let Name { source, repository, .. } = match self.repository(package) {
            Ok(name) => name,
            Err(error) => {
                return Requirement::Invalid(format!(
                    "one of its dependencies, {package:?}, is not a repository: {error}"
                ));
            }
        };
        let version = &dependency.version;
        let is_complete = Version::parse(version).is_ok_and(|version| version.is_installable());
        if dependency.is_tag && !is_complete && repository.tag(version).is_ok() {
            let range = Range::Tag(version.clone());
            return Requirement::Package { source, kind, range };
        }
        match Range::parse(version) {
            Ok(range) => Requirement::Package { source, kind, range },
            Err(error) => Requirement::Invalid(format!(
                "it needs {package} in version {version:?}, which is not a version constraint: {error}",
            )),
        }
    }

    /// Finds out who is a copy of whom, among what somebody needs.
    pub(super) fn find_copies(
        &mut self,
        world: &World,
        members: &Members<'_>,
        needed: &BTreeMap<Source, Name>,
    ) -> Vec<Need> {
        let mut needs = Vec::new();
        let mut copies = BTreeMap::new();
        for (source, name) in needed {
            if members.by_source(source).is_some() {
                continue;
            }
            for member in &members.all {
                if last(name.repository.path()) != last(member.name.repository.path()) {
                    continue;
                }
                let Some(active) = &member.active else { continue };
                let (Pin::Version(version), Some(digest)) = (&active.pin, active.digest()) else {
                    continue;
                };
                match digest_of(world, &name.repository, version.original()) {
                    Some(found) if found.as_ref() == Ok(digest) => {
                        copies.entry(source.clone()).or_insert(member.name.source.clone());
                    }
                    Some(_) => {}
                    None => {
                        let reference = name.repository.tag(version.original()).ok();
                        needs.extend(reference.map(Need::Digest));
                    }
                }
            }
        }
        self.copies = copies;
        needs
    }
}

/// The digest behind a tag, or why it is not known, if anybody asked.
pub(super) fn digest_of(
    world: &World,
    repository: &Repository,
    tag: &str,
) -> Option<Result<Digest, String>> {
    let reference = repository.tag(tag).ok()?.name();
    if let Some(answer) = world.known.digests.get(&reference) {
        return Some(answer.clone());
    }
    let contents = world.known.contents.get(&reference)?.as_ref().ok()?;
    contents.digest.clone().map(Ok)
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
