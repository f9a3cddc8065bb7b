//! The entries of `dependsOn`.
//!
//! An entry names a package in one of three ways: an explicit `apiVersion`, `kind` and `package`,
//! one of the older keys `configuration`, `provider` and `function`, or by a kind that it brings:
//! `crd`, or the explicit form with `CustomResourceDefinition`. When several are set, the explicit
//! form wins when complete, then exactly that order decides; `crd` is last, because readers that do
//! not know it go by the others.

use super::cursor::Cursor;
use super::{Dialect, MetaError, PackageKind};
use crate::kind_reference::{GrammarError, KindReference};

/// The keys that may name a package, in order of precedence after the explicit triple.
const LEGACY: [(&str, PackageKind); 3] = [
    ("configuration", PackageKind::Configuration),
    ("provider", PackageKind::Provider),
    ("function", PackageKind::Function),
];
const TRIPLE: [&str; 3] = ["apiVersion", "kind", "package"];
/// The key that names a package by a kind it brings.
const CRD: &str = "crd";
/// The group and the kind under which the explicit form does so.
const DEFINITION: (&str, &str) = ("apiextensions.k8s.io", "CustomResourceDefinition");

/// One entry of `dependsOn`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// What it points at; `None` when no key, or only part of the explicit triple, is set.
    pub target: Option<Target>,
    /// The accepted versions as written: a constraint, a tag or a digest; empty when missing.
    pub version: String,
    /// Whether that is one tag and no constraint, as the first dialect has it.
    pub is_tag: bool,
    /// The naming keys that were set, in order of precedence.
    pub keys: Vec<&'static str>,
}

/// The package a dependency points at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// What kind of package it says this is.
    pub kind: TargetKind,
    /// The repository, without tag or digest; or the kind, where a kind is named.
    pub package: String,
}

/// How a dependency says what kind of package it points at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// By the key it was written under.
    Key(PackageKind),
    /// By an explicit type.
    Explicit {
        /// For example `pkg.crossplane.io/v1`.
        api_version: String,
        /// For example `Provider`.
        kind: String,
    },
    /// By a kind that it brings.
    Crd,
}

impl Dependency {
    /// Reads an entry: the explicit triple wins when complete, then `configuration`, then
    /// `provider`, then `function`, then `crd`.
    pub(super) fn read(entry: &Cursor<'_>, dialect: Dialect) -> Result<Self, MetaError> {
        let text = |key| entry.field(key)?.text();
        let mut keys = Vec::new();
        for key in TRIPLE.into_iter().chain(LEGACY.map(|(key, _)| key)).chain([CRD]) {
            if text(key)?.is_some() {
                keys.push(key);
            }
        }
        let mut target = None;
        if let [Some(api_version), Some(kind), Some(package)] =
            [text(TRIPLE[0])?, text(TRIPLE[1])?, text(TRIPLE[2])?]
        {
            let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
            let kind = TargetKind::Explicit { api_version, kind };
            target = Some(Target { kind, package: package.to_owned() });
        }
        for (key, kind) in LEGACY {
            if let (None, Some(package)) = (&target, text(key)?) {
                let package = package.to_owned();
                target = Some(Target { kind: TargetKind::Key(kind), package });
            }
        }
        if let (None, Some(kind)) = (&target, text(CRD)?) {
            target = Some(Target { kind: TargetKind::Crd, package: kind.to_owned() });
        }
        let version = text("version")?.unwrap_or_default().to_owned();
        Ok(Self { target, version, is_tag: dialect == Dialect::First, keys })
    }

    /// The keys beside the winning one, which are silently ignored.
    pub fn ignored_keys(&self) -> &[&'static str] {
        let used = match &self.target {
            Some(Target { kind: TargetKind::Explicit { .. }, .. }) => TRIPLE.len(),
            Some(_) => {
                // Parts of an incomplete triple come first and lose too, but as a different fault.
                let partial = self.keys.iter().filter(|key| TRIPLE.contains(key)).count();
                partial + 1
            }
            None => self.keys.len(),
        };
        self.keys.get(used..).unwrap_or_default()
    }

    /// The parts of the explicit triple that are missing although others are set.
    pub fn missing_keys(&self) -> Vec<&'static str> {
        let missing: Vec<_> = TRIPLE.into_iter().filter(|key| !self.keys.contains(key)).collect();
        if missing.len() == TRIPLE.len() { Vec::new() } else { missing }
    }
}

impl Target {
    /// The kind whose package this points at, if it names one by that; an error if what it names
    /// is not a kind.
    pub fn crd(&self) -> Option<Result<KindReference, GrammarError>> {
        let is_crd = match &self.kind {
            TargetKind::Crd => true,
            TargetKind::Key(_) => false,
            TargetKind::Explicit { api_version, kind } => {
                let group = api_version.split_once('/').map_or("", |(group, _)| group);
                (group, kind.as_str()) == DEFINITION
            }
        };
        is_crd.then(|| KindReference::parse(&self.package))
    }

    /// The kind of package this points at, when it is one of the known ones.
    pub fn package_kind(&self) -> Option<PackageKind> {
        match &self.kind {
            TargetKind::Key(kind) => Some(*kind),
            TargetKind::Crd => None,
            TargetKind::Explicit { api_version, kind } => {
                let known = PackageKind::ALL.into_iter().find(|one| one.as_str() == kind);
                known.filter(|_| api_version.starts_with("pkg.crossplane.io/"))
            }
        }
    }
}
