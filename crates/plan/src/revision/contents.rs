//! What is in a package, as far as installing it goes.
//!
//! The objects themselves stay where they are: two thousand resource definitions are known here by
//! name and place, and by the few facts that decide what is laid over them.

use crate::stacks;
use api::kind_reference::{is_group, is_label};
use api::meta::{Meta, PackageKind};
use oci::Digest;
use xpkg::diagnostic::Severity;
use xpkg::lint::{Calls, DocumentReport, Facts, ObjectKind, Resource};
use xpkg::open::Opened;

/// What is in a package.
#[derive(Clone, Debug)]
pub struct Contents {
    /// The image it came in.
    pub package: Digest,
    /// What it says about itself; nothing if it says that twice, or not at all.
    pub meta: Option<Meta>,
    /// The objects it brings that packages of its kind may bring.
    pub documents: Vec<Document>,
    /// What keeps it from being installed, each a sentence with a place.
    pub faults: Vec<String>,
    /// What is odd about it and left out.
    pub warnings: Vec<String>,
    /// The kind of install object that it needs, if it is a package of the first format.
    pub installed_by: Option<&'static str>,
}

/// What becomes of a package with objects that packages of its kind may not bring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unsupported {
    /// It is not installed.
    #[default]
    Refuse,
    /// They are left out and the others installed, as Crossplane does.
    Skip,
}

/// An object in a package.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Its place in the stream, from 0.
    pub index: usize,
    /// The version of its API.
    pub api_version: String,
    /// Its kind, of those that packages may contain.
    pub object: ObjectKind,
    /// The name of that kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The kind it defines, if it is a definition of resources.
    pub defines: Option<String>,
    /// The definition that Crossplane makes of it for claims, if it offers them by a name that a kind
    /// can have.
    pub claim: Option<String>,
    /// The groups it defines kinds in.
    pub groups: Vec<String>,
    /// The kind it brings, by group and plural.
    pub brings: Option<(String, String)>,
    /// What it defines, if it is a definition.
    pub resource: Option<Resource>,
    /// What in it makes the API server call somebody.
    pub calls: Calls,
}

/// Rules without which a package means nothing, or something else to everybody who reads it. What
/// is wrong with an object by itself is for the API server to say.
const FATAL: [&str; 9] = [
    "yaml-syntax",
    "metadata-missing",
    "metadata-duplicate",
    "metadata-unregistered",
    "metadata-invalid",
    "crossplane-constraint",
    "kind-unknown",
    "object-incomplete",
    "duplicate-object",
];
/// The rule about objects that packages of a kind may not bring.
const NOT_ALLOWED: &str = "kind-not-allowed";

impl Contents {
    /// What matters of a package that was opened.
    pub fn of(package: Digest, opened: &Opened, unsupported: Unsupported) -> Self {
        let kind = opened.meta().map(Meta::kind);
        let (mut faults, mut warnings) = (Vec::new(), Vec::new());
        for finding in &opened.diagnostics {
            let hint = finding.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            let place = match finding.line {
                0 => finding.file.clone(),
                line => format!("{} line {line}", finding.file),
            };
            let said = format!("{place}: {}{hint}", finding.message);
            let is_unsupported = finding.rule == NOT_ALLOWED;
            if is_unsupported && unsupported == Unsupported::Skip {
                warnings.push(said);
            } else if is_unsupported
                || FATAL.contains(&finding.rule) && finding.severity == Severity::Error
            {
                faults.push(said);
            }
        }
        let reports = opened.reports.iter().enumerate();
        let documents = reports.filter_map(|(index, report)| Document::of(index, report, kind?));
        let documents = documents.collect();
        let meta = opened.meta().cloned();
        let installed_by = meta.as_ref().and_then(stacks::find_install_kind);
        Self { package, meta, documents, faults, warnings, installed_by }
    }
}

impl Document {
    fn of(index: usize, report: &DocumentReport, kind: PackageKind) -> Option<Self> {
        let object = report.object.filter(|object| is_established(*object, kind))?;
        let defines = match &report.facts {
            Facts::Crd(resource) => Some(resource.kind.clone()),
            _ => None,
        };
        let claim = match &report.facts {
            Facts::Xrd(resource) => {
                let group = &resource.group;
                let is_served = |plural: &&str| is_label(plural) && is_group(group);
                let plural = resource.claim.as_deref().filter(is_served);
                plural.map(|plural| format!("{plural}.{group}"))
            }
            _ => None,
        };
        Some(Self {
            index,
            api_version: report.identity.api_version.clone(),
            object,
            kind: report.identity.kind.clone(),
            name: report.identity.name.clone(),
            defines,
            claim,
            groups: report.groups().into_iter().map(str::to_owned).collect(),
            brings: report.brought(),
            resource: report.defined().cloned(),
            calls: report.calls.clone(),
        })
    }
}

/// Whether objects of this kind in such a package become objects of the cluster. A function's
/// definitions only describe its input.
fn is_established(object: ObjectKind, kind: PackageKind) -> bool {
    kind != PackageKind::Function && object.packages().contains(&kind)
}
