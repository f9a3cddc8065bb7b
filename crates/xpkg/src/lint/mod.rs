//! The linter: everything that can be said about a package without installing it.
//!
//! ```text
//!   document 1 ──► document() ──► DocumentReport ─┐
//!   document 2 ──► document() ──► DocumentReport ─┼──► package() ──► findings
//!   document n ──► document() ──► DocumentReport ─┘
//! ```
//!
//! The work is cut in two so that a package of thousands of resource definitions can be read as
//! a stream and on several cores. [`document`] looks at one document only and keeps a small
//! report: who the object is, the few facts other documents care about, and what is wrong with
//! it. [`package`] then looks at the reports together: exactly one metadata, no object twice,
//! no kind where it does not belong, compositions that find their types and functions.
//!
//! All faults are found at once, each with the place of the offending node. A rule's name is
//! stable; [`rules`] lists them. What an API server says about definitions is asked of the room
//! that apron's own API server asks. What the linter refuses to do: read files, fetch dependencies
//! to see what they contain. Where a dependency might make a doubt go away, the linter keeps silent.
//!
//! Start with [`rules`] for what is checked, and `tests.rs` for an example of each.

mod authority;
mod calls;
mod composition;
mod crd;
mod definition;
mod dependency;
mod described;
mod findings;
mod kinds;
mod metadata;
mod object;
pub(crate) mod places;
mod report;
pub(crate) mod rules;
mod runtime;
mod suggest;
#[cfg(test)]
mod tests;
mod types;
mod whole;
mod xrd;

pub use calls::{Calls, Kinds};
pub use kinds::ObjectKind;
pub use report::{Composition, DocumentReport, Facts, Identity, Resource, TypeReference};
pub use rules::{Rule, rules};
pub use runtime::{Root, image};
pub use suggest::{closest, edits_between};
pub use whole::package;

use crate::diagnostic::Diagnostic;
use findings::Findings;
use yaml::Node;

/// One document of a package: where it came from and what it says.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// The file, relative to the package root.
    pub file: &'a str,
    /// The document.
    pub node: &'a Node<'a>,
}

/// Lints documents one after the other, then the package they make up; findings are sorted.
pub fn documents<'a>(documents: impl IntoIterator<Item = Document<'a>>) -> Vec<Diagnostic> {
    let each = documents.into_iter();
    let mut reports: Vec<_> = each.map(|one| document(one.file, one.node)).collect();
    let mut found = package(&reports);
    for report in &mut reports {
        found.append(&mut report.diagnostics);
    }
    crate::diagnostic::sort(&mut found);
    found
}

/// Looks at one document alone and reports what it is and what is wrong with it.
pub fn document(file: &str, node: &Node<'_>) -> DocumentReport {
    let mut findings = Findings::new(file);
    let identity = object::identify(node, &mut findings);
    let mut report = DocumentReport::new(file, node.position, identity);
    classify(node, &mut report, &mut findings);
    report.diagnostics = findings.into_list();
    report
}

/// Hands the document to the checks of its kind.
fn classify(node: &Node<'_>, report: &mut DocumentReport, findings: &mut Findings<'_>) {
    let (api_version, kind) = (&report.identity.api_version, &report.identity.kind);
    if api_version.is_empty() || kind.is_empty() {
        return;
    }
    if api::meta::is_meta_group(api_version) {
        report.is_metadata = true;
        report.package_kind = api::meta::registered(api_version, kind).map(|(_, kind)| kind);
        report.meta = metadata::check(node, findings);
        object::check(node, findings);
        types::check_metadata(node, findings);
        return;
    }
    report.object = ObjectKind::find(api_version, kind);
    let Some(object) = report.object else {
        kinds::report_unknown(node, &report.identity, findings);
        return;
    };
    object::check(node, findings);
    report.calls = calls::find(object, node);
    // The checks of definitions keep silent about what cannot be decoded; others are kept silent for.
    let is_definition = object.is_definition();
    if is_definition {
        types::check(object, node, findings);
    }
    report.facts = match object {
        ObjectKind::CustomResourceDefinition => crd::check(node, findings),
        ObjectKind::CompositeResourceDefinition => xrd::check(node, findings),
        ObjectKind::Composition => composition::check(node, findings),
        ObjectKind::ManagedResourceDefinition => {
            object::check_plural_name(node, findings);
            node.get("spec").map_or(Facts::None, |spec| Facts::Mrd(crd::resource(spec)))
        }
        _ => Facts::None,
    };
    if !is_definition {
        types::check(object, node, findings);
    }
}
