//! The package as a whole: what only shows when the documents are seen together.
//!
//! Works on reports alone, in one pass per question, so its cost is that of the number of
//! documents and not of their size.

use super::authority;
use super::dependency::split_registry;
use super::findings::finding;
use super::report::{Composition, DocumentReport, Facts, Resource, TypeReference};
use super::rules;
use crate::diagnostic::Diagnostic;
use crate::label::to_dns_label;
use api::meta::{Meta, PackageKind, Target, TargetKind};
use std::collections::HashMap;
use yaml::Position;

/// Looks at the reports of all documents, in the order of the package, and returns what is wrong
/// with the whole; what is wrong with each document is in its own report.
pub fn package(reports: &[DocumentReport]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let metadata = check_metadata(reports, &mut found);
    if let Some(kind) = metadata.and_then(|report| report.package_kind) {
        check_kinds(reports, kind, &mut found);
        authority::check(reports, kind, &mut found);
    }
    check_duplicates(reports, &mut found);
    let meta = metadata.and_then(|report| report.meta.as_ref());
    check_compositions(reports, meta, &mut found);
    if let Some(report) = metadata {
        check_own_kinds(reports, report, &mut found);
    }
    found
}

/// A package that needs a kind it brings itself would wait for itself. A function brings none: its
/// definitions describe its input.
fn check_own_kinds(
    reports: &[DocumentReport],
    metadata: &DocumentReport,
    found: &mut Vec<Diagnostic>,
) {
    let meta = metadata.meta.as_ref().filter(|meta| meta.kind() != PackageKind::Function);
    let targets = meta.map(Meta::dependencies).unwrap_or_default().iter();
    let kinds = targets.filter_map(|dependency| dependency.target.as_ref()?.crd()?.ok());
    for kind in kinds {
        let own = reports
            .iter()
            .find(|report| report.defined().is_some_and(|resource| resource.is_meant_by(&kind)));
        let Some(own) = own else { continue };
        let place = own.place();
        let message = format!("package depends on {kind}, which it brings itself at {place}");
        let at = metadata.position;
        let hint = "remove the dependency";
        found.push(finding(&rules::DEPENDENCY_CRD, &metadata.file, at, message).hint(hint));
    }
}

/// Demands exactly one metadata document and returns the first.
fn check_metadata<'r>(
    reports: &'r [DocumentReport],
    found: &mut Vec<Diagnostic>,
) -> Option<&'r DocumentReport> {
    let mut all = reports.iter().filter(|report| report.is_metadata);
    let Some(first) = all.next() else {
        let message = "package has no metadata";
        let hint = "add a crossplane.yaml with a Provider, Configuration or Function of \
                    meta.pkg.crossplane.io/v1";
        let nowhere = Position::default();
        found.push(finding(&rules::METADATA_MISSING, "", nowhere, message).hint(hint));
        return None;
    };
    for other in all {
        let message =
            format!("package has a second metadata document; the first is at {}", first.place());
        let hint = "a package has exactly one; remove this one or that one";
        let place = other.position;
        found.push(finding(&rules::METADATA_DUPLICATE, &other.file, place, message).hint(hint));
    }
    Some(first)
}

fn check_kinds(reports: &[DocumentReport], kind: PackageKind, found: &mut Vec<Diagnostic>) {
    for report in reports {
        let Some(object) = report.object else {
            continue;
        };
        if object.packages().contains(&kind) {
            continue;
        }
        let name = &report.identity.kind;
        let what = report.identity.called();
        let message = format!("{what} does not belong in a {kind} package");
        let others: Vec<_> = object.packages().iter().map(|one| one.as_str()).collect();
        let hint = format!("{name} may be part of a {} package", others.join(" or "));
        let at = report.position;
        found.push(finding(&rules::KIND_NOT_ALLOWED, &report.file, at, message).hint(hint));
    }
}

fn check_duplicates(reports: &[DocumentReport], found: &mut Vec<Diagnostic>) {
    let mut seen: HashMap<_, &DocumentReport> = HashMap::with_capacity(reports.len());
    for report in reports {
        let who = &report.identity;
        if report.is_metadata || who.kind.is_empty() || who.name.is_empty() {
            continue;
        }
        // Versions are views of one object, so the group decides and the version does not.
        let first = *seen.entry((who.group(), &who.kind, &who.name)).or_insert(report);
        if std::ptr::eq(first, report) {
            continue;
        }
        let place = first.place();
        let message = format!("{} {:?} is already defined at {place}", who.kind, who.name);
        let hint = "keep one of them; which would win is undefined";
        let at = report.position;
        found.push(finding(&rules::DUPLICATE_OBJECT, &report.file, at, message).hint(hint));
    }
}

/// Follows the references of compositions.
///
/// A dependency on a configuration, or on something unknown, may bring definitions and functions
/// that cannot be seen from here; then nothing is said.
fn check_compositions(
    reports: &[DocumentReport],
    meta: Option<&Meta>,
    found: &mut Vec<Diagnostic>,
) {
    let dependencies = meta.map(Meta::dependencies).unwrap_or_default();
    let opaque = dependencies.iter().any(|dependency| {
        let kind = dependency.target.as_ref().and_then(Target::package_kind);
        matches!(kind, None | Some(PackageKind::Configuration))
    });
    let definitions: HashMap<_, _> = reports.iter().filter_map(definition).collect();
    for report in reports {
        let Facts::Composition(composition) = &report.facts else {
            continue;
        };
        if let Some(wanted) = &composition.composite_type {
            found.extend(check_type(report, wanted, &definitions, opaque));
        }
        if let Some(meta) = meta.filter(|_| !opaque) {
            check_functions(report, composition, meta, found);
        }
    }
}

type Definitions<'r> = HashMap<(&'r str, &'r str), &'r Resource>;

fn definition(report: &DocumentReport) -> Option<((&str, &str), &Resource)> {
    match &report.facts {
        Facts::Xrd(resource) => Some(((&resource.group, &resource.kind), resource)),
        _ => None,
    }
}

fn check_type(
    report: &DocumentReport,
    wanted: &TypeReference,
    definitions: &Definitions<'_>,
    opaque: bool,
) -> Option<Diagnostic> {
    let (group, version) = wanted.api_version.split_once('/').unwrap_or(("", &wanted.api_version));
    let (message, hint) = match definitions.get(&(group, wanted.kind.as_str())) {
        Some(resource) if resource.versions.iter().any(|one| one == version) => return None,
        Some(resource) => (
            format!("{} has no version {version:?}", wanted.kind),
            format!("its definition has {}", resource.versions.join(", ")),
        ),
        None if opaque => return None,
        None => (
            format!("{} in {} is not defined in this package", wanted.kind, wanted.api_version),
            "add its CompositeResourceDefinition, or depend on the configuration that has it"
                .to_owned(),
        ),
    };
    let at = wanted.position;
    Some(finding(&rules::COMPOSITION_TYPE, &report.file, at, message).hint(hint))
}

fn check_functions(
    report: &DocumentReport,
    composition: &Composition,
    meta: &Meta,
    found: &mut Vec<Diagnostic>,
) {
    let targets = meta.dependencies().iter().filter_map(|dependency| dependency.target.as_ref());
    // A key does not decide what a package is, so what is called may stand under any.
    let keyed = targets.clone().filter(|target| matches!(target.kind, TargetKind::Key(_)));
    let keyed: Vec<&str> = keyed.map(path_of).collect();
    let functions = targets.filter(|target| target.package_kind() == Some(PackageKind::Function));
    let paths: Vec<&str> = functions.map(path_of).collect();
    for (name, at) in &composition.functions {
        // A dependency's object is named after its whole path; people who install functions by
        // hand use the last part.
        let named = |path: &&str| {
            to_dns_label(path) == *name || path.rsplit('/').next() == Some(name.as_str())
        };
        if paths.iter().chain(&keyed).any(named) {
            continue;
        }
        let message = format!("function {name:?} is not among the dependencies");
        let labels: Vec<_> = paths.iter().map(|path| to_dns_label(path)).collect();
        let hint = match labels.as_slice() {
            [] => "add the function's package to spec.dependsOn".to_owned(),
            _ => format!("dependencies bring: {}", labels.join(", ")),
        };
        found.push(finding(&rules::COMPOSITION_FUNCTION, &report.file, *at, message).hint(hint));
    }
}

fn path_of(target: &Target) -> &str {
    split_registry(&target.package).1
}
