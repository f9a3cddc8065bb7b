//! What is inside a package, as far as others are concerned.

use super::origins::normalise_kind;
use crate::revision;
use api::kind_reference::KindReference;
use api::meta::{Dependency, Meta, Target, TargetKind};
use api::pkg::lock::{self, Lock, LockPackage};
use oci::Digest;
use solver::Range;
use std::collections::{BTreeMap, BTreeSet};
use xpkg::lint::Resource;

/// What is inside a package, as far as others are concerned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    /// The bytes it is, where that is known.
    pub digest: Option<Digest>,
    /// What kind of package it is, for example `Provider`; empty where that is not known.
    pub kind: String,
    /// The versions of Crossplane that it is made for, if it says so.
    pub crossplane: Option<String>,
    /// What keeps it from ever being installed, whatever else is there.
    pub fault: Option<String>,
    /// What it needs.
    pub dependencies: Vec<Dependency>,
    /// The CRDs it brings, those of its definitions and of their claims among them.
    pub crds: BTreeSet<String>,
    /// What is known of those beside their names; nothing where only names are remembered.
    pub resources: Vec<Resource>,
    /// The kinds that the Lock says it brings, as those that need them call them; only of what is
    /// remembered.
    pub granted_kinds: BTreeSet<String>,
    /// The compositions it brings.
    pub compositions: BTreeSet<String>,
}

impl Contents {
    /// What others are concerned with of a package, or why it is of no use to anybody.
    pub fn of(package: &revision::Contents) -> Result<Self, String> {
        let Some(meta) = &package.meta else {
            let faults = package.faults.first().map_or("it has no metadata", String::as_str);
            return Err(faults.to_owned());
        };
        let mut contents = Self::new(package.package.clone(), meta);
        contents.fault = package.faults.first().cloned();
        for document in &package.documents {
            contents.bring(&document.kind, &document.name);
            contents.crds.extend(document.claim.clone());
            contents.resources.extend(document.resource.clone());
        }
        Ok(contents)
    }

    /// A package with this metadata that brings nothing.
    pub fn new(digest: Digest, meta: &Meta) -> Self {
        Self {
            digest: Some(digest),
            kind: meta.kind().as_str().to_owned(),
            crossplane: meta.crossplane().map(str::to_owned),
            dependencies: meta.dependencies().to_vec(),
            ..Self::default()
        }
    }

    /// The package brings this object, too.
    pub fn bring(&mut self, kind: &str, name: &str) {
        match kind {
            "CustomResourceDefinition"
            | "CompositeResourceDefinition"
            | "ManagedResourceDefinition" => drop(self.crds.insert(name.to_owned())),
            "Composition" => drop(self.compositions.insert(name.to_owned())),
            _ => {}
        }
    }

    /// Whether it brings a kind, or a kind of a group, in a version that is meant. Where only names
    /// of definitions are remembered, those decide: it was granted once.
    pub fn brings(&self, kind: &KindReference) -> bool {
        if self.resources.is_empty() {
            let is_meant = |crd: &String| match &kind.name {
                Some(_) => *crd == kind.bare(),
                None => crd.split_once('.').is_some_and(|(_, group)| group == kind.group),
            };
            let is_granted = self.granted_kinds.contains(&kind.to_string());
            return is_granted || self.crds.iter().any(is_meant);
        }
        let serves = |resource: &Resource| {
            resource.served.iter().any(|version| kind.accepts_version(version))
        };
        self.resources.iter().any(|resource| resource.is_meant_by(kind) && serves(resource))
    }

    /// What a lock remembers of a package that is in it, and that its record of owners knows by
    /// these names.
    pub(super) fn remembered(lock: &Lock, entry: &LockPackage, package: &[String]) -> Self {
        Self {
            digest: entry.digest.as_ref().unwrap_or(&entry.version).parse().ok(),
            kind: entry.kind.clone().or_else(|| entry.package_type.clone()).unwrap_or_default(),
            crossplane: None,
            fault: None,
            dependencies: entry.dependencies.iter().map(read).collect(),
            crds: owned(lock.custom_resource_definitions.as_ref(), package),
            resources: Vec::new(),
            granted_kinds: granted_kinds(lock, entry),
            compositions: owned(lock.compositions.as_ref(), package),
        }
    }
}

/// The kinds that packages of a lock have from one of them.
fn granted_kinds(lock: &Lock, entry: &LockPackage) -> BTreeSet<String> {
    let dependencies = lock.packages.iter().flatten().flat_map(|one| &one.dependencies);
    let own = dependencies.filter(|one| one.brought_by.as_ref() == Some(&entry.source));
    own.map(|one| normalise_kind(&one.package)).collect()
}

fn owned(owners: Option<&BTreeMap<String, String>>, package: &[String]) -> BTreeSet<String> {
    let owners = owners.into_iter().flatten();
    owners.filter(|(_, owner)| package.contains(owner)).map(|(name, _)| name.clone()).collect()
}

fn read(dependency: &lock::Dependency) -> Dependency {
    let explicit = dependency.api_version.clone().zip(dependency.kind.clone());
    let kind = match (explicit, dependency.package_type.as_deref()) {
        (Some((api_version, kind)), _) => Some(TargetKind::Explicit { api_version, kind }),
        (None, Some(key)) => {
            let kinds = api::meta::PackageKind::ALL.into_iter();
            kinds.filter(|kind| kind.as_str() == key).map(TargetKind::Key).next()
        }
        (None, None) => None,
    };
    let target = kind.map(|kind| Target { kind, package: dependency.package.clone() });
    let version = dependency.constraints.clone();
    // What is no constraint was granted as a tag.
    let is_tag = Range::parse(&version).is_err();
    Dependency { target, version, is_tag, keys: Vec::new() }
}

/// How the lock writes down what a package needs.
pub(super) fn write(dependency: &Dependency) -> Option<lock::Dependency> {
    let target = dependency.target.as_ref()?;
    let mut written = lock::Dependency {
        package: target.package.clone(),
        constraints: dependency.version.clone(),
        ..lock::Dependency::default()
    };
    match &target.kind {
        TargetKind::Crd => {
            written.api_version = Some("apiextensions.k8s.io/v1".to_owned());
            written.kind = Some("CustomResourceDefinition".to_owned());
        }
        TargetKind::Key(kind) => written.package_type = Some(kind.as_str().to_owned()),
        TargetKind::Explicit { api_version, kind } => {
            written.api_version = Some(api_version.clone());
            written.kind = Some(kind.clone());
        }
    }
    Some(written)
}
