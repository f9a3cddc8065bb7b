//! `CustomResourceDefinition`s: what the API server demands before it serves one.
//!
//! What it demands is the business of [`super::definition`]. The CA bundle and address of a
//! conversion webhook are filled in when a package is installed, so they are not demanded here.

use super::definition::{self, CUSTOM};
use super::findings::Findings;
use super::object;
use super::report::{Facts, Resource};
use super::rules::{self, Rule};
use yaml::{Node, Position};

/// Checks a definition and returns the resource it brings.
pub(super) fn check(node: &Node<'_>, findings: &mut Findings<'_>) -> Facts {
    object::check_plural_name(node, findings);
    let Some(spec) = node.get("spec") else {
        findings.say(&rules::CRD_INVALID, node.position, "definition has no spec");
        return Facts::None;
    };
    let resource = resource(spec);
    if node.get("apiVersion").and_then(Node::as_str) == Some("apiextensions.k8s.io/v1beta1") {
        let message = "CustomResourceDefinition v1beta1 is no longer served by any cluster";
        let hint = "convert it to apiextensions.k8s.io/v1";
        let at = node.entry("apiVersion").map_or(node.position, |entry| entry.position);
        findings.advise(&rules::CRD_REMOVED_API, at, message, hint);
        return Facts::Crd(resource);
    }
    check_flags(spec, &rules::CRD_INVALID, ["served", "storage"], findings);
    let installed = definition::definition_as_installed(node);
    definition::check_definition(node, installed, &CUSTOM, definition::keep_names, findings);
    Facts::Crd(resource)
}

/// The resource a definition's spec describes, as far as it does.
pub(super) fn resource(spec: &Node<'_>) -> Resource {
    let text = |path: &[&str]| spec.at(path).and_then(Node::as_str).map(str::to_owned);
    let versions = spec.get("versions").map(Node::items).unwrap_or_default().iter();
    let name = |version: &Node<'_>| version.get("name")?.as_str().map(str::to_owned);
    let is_served =
        |version: &&Node<'_>| version.get("served").and_then(Node::as_bool) != Some(false);
    Resource {
        group: text(&["group"]).unwrap_or_default(),
        kind: text(&["names", "kind"]).unwrap_or_default(),
        plural: text(&["names", "plural"]).unwrap_or_default(),
        singular: text(&["names", "singular"]).unwrap_or_default(),
        claim: text(&["claimNames", "plural"]),
        claim_kind: text(&["claimNames", "kind"]),
        served: versions.clone().filter(is_served).filter_map(name).collect(),
        versions: versions.filter_map(name).collect(),
    }
}

/// Checks that each version says what becomes of it: a server takes silence for a no.
pub(super) fn check_flags(
    spec: &Node<'_>,
    rule: &Rule,
    flags: [&str; 2],
    findings: &mut Findings<'_>,
) {
    let versions = spec.get("versions").map(Node::items).unwrap_or_default();
    for (index, version) in versions.iter().enumerate() {
        for flag in flags {
            if version.get(flag).is_none_or(Node::is_null) {
                let message = format!("spec.versions[{index}].{flag}: Required value");
                let hint = format!("write {flag}: true or {flag}: false");
                findings.advise(rule, version.position, message, hint);
            }
        }
    }
}

/// The position of the value at a path, or of the nearest ancestor that exists.
pub(super) fn place(node: &Node<'_>, path: &[&str]) -> Position {
    let mut at = node;
    for key in path {
        let Some(next) = at.get(key) else { break };
        at = next;
    }
    at.position
}
