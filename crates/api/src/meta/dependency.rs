//! The entries of `dependsOn`.
//!
//! An entry names a package in one of two ways: an explicit `apiVersion`, `kind` and `package`,
//! or one of the older keys `configuration`, `provider` and `function`. When several are set,
//! the explicit form wins when complete, then exactly that order decides.

use super::cursor::Cursor;
use super::{Dialect, MetaError, PackageKind};

/// The keys that may name a package, in order of precedence after the explicit triple.
const LEGACY: [(&str, PackageKind); 3] = [
    ("configuration", PackageKind::Configuration),
    ("provider", PackageKind::Provider),
    ("function", PackageKind::Function),
];
const TRIPLE: [&str; 3] = ["apiVersion", "kind", "package"];

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
    /// The repository, without tag or digest.
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
}

impl Dependency {
    /// Reads an entry: the explicit triple wins when complete, then `configuration`, then
    /// `provider`, then `function`.
    pub(super) fn read(entry: &Cursor<'_>, dialect: Dialect) -> Result<Self, MetaError> {
        let text = |key| entry.field(key)?.text();
        let mut keys = Vec::new();
        for key in TRIPLE.into_iter().chain(LEGACY.map(|(key, _)| key)) {
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
    /// The kind of package this points at, when it is one of the known ones.
    pub fn package_kind(&self) -> Option<PackageKind> {
        match &self.kind {
            TargetKind::Key(kind) => Some(*kind),
            TargetKind::Explicit { api_version, kind } => {
                let known = PackageKind::ALL.into_iter().find(|one| one.as_str() == kind);
                known.filter(|_| api_version.starts_with("pkg.crossplane.io/"))
            }
        }
    }
}
