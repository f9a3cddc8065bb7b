//! `CompositeResourceDefinition`s: what Crossplane demands before it serves a composite resource.
//!
//! Crossplane makes `CustomResourceDefinition`s from them, one for the composite resource and one
//! for its claims. What an API server would say of those is said of the document.

use super::crd::{check_flags, place, resource};
use super::definition::{self, COMPOSITE};
use super::findings::Findings;
use super::object;
use super::report::Facts;
use super::rules;
use std::collections::HashSet;
use yaml::Node;

/// Scopes; the first only in definitions of version 1, where it is the default.
const SCOPES: [&str; 3] = ["LegacyCluster", "Namespaced", "Cluster"];

/// Checks a definition and returns the composite resource it brings.
pub(super) fn check(node: &Node<'_>, findings: &mut Findings<'_>) -> Facts {
    let rule = &rules::XRD_INVALID;
    object::check_plural_name(node, findings);
    let Some(spec) = node.get("spec") else {
        findings.say(rule, node.position, "definition has no spec");
        return Facts::None;
    };
    check_scope(spec, findings);
    check_flags(spec, rule, ["served", "referenceable"], findings);
    check_referenceable(spec, findings);
    let made = definition::composite_as_definition(spec);
    definition::check_definition(node, made, &COMPOSITE, composite_field, findings);
    if let Some(claim) = spec.get("claimNames").filter(|claim| !claim.is_null()) {
        check_claim(spec, claim, findings);
        let made = definition::claim_as_definition(spec);
        definition::check_definition(node, made, &COMPOSITE, claim_field, findings);
    }
    Facts::Xrd(resource(spec))
}

/// The name that a field of the composite resource's definition has in the document; none if it is
/// not there, or checked otherwise.
fn composite_field(path: &str) -> Option<String> {
    // Which version is stored is not the document's to say; names that appear twice are told here.
    definition::keep_names(path).filter(|path| path != "spec.versions")
}

/// The name that a field of the claims' definition has in the document.
fn claim_field(path: &str) -> Option<String> {
    path.strip_prefix("spec.names").map(|name| format!("spec.claimNames{name}"))
}

fn check_scope(spec: &Node<'_>, findings: &mut Findings<'_>) {
    let scope = spec.get("scope").and_then(Node::as_str);
    if let Some(scope) = scope.filter(|scope| !SCOPES.contains(scope)) {
        let at = place(spec, &["scope"]);
        let hint = format!("write {}", SCOPES.join(" or "));
        let message = format!("scope {scope:?} does not exist");
        findings.advise(&rules::XRD_INVALID, at, message, hint);
    }
}

/// Checks that exactly one version is referenceable, and that no name is there twice.
fn check_referenceable(spec: &Node<'_>, findings: &mut Findings<'_>) {
    let versions = spec.get("versions").map(Node::items).unwrap_or_default();
    if versions.is_empty() {
        let at = place(spec, &["versions"]);
        findings.say(&rules::XRD_INVALID, at, "definition has no versions");
    }
    let is_set =
        |version: &&Node<'_>| version.get("referenceable").and_then(Node::as_bool) == Some(true);
    let count = versions.iter().filter(is_set).count();
    if count != 1 && !versions.is_empty() {
        let message = format!("{count} versions have \"referenceable\" set; exactly one must");
        findings.say(&rules::XRD_INVALID, place(spec, &["versions"]), message);
    }
    let mut seen = HashSet::new();
    for version in versions {
        let Some(name) = version.get("name").and_then(Node::as_str) else { continue };
        if !seen.insert(name) {
            let at = place(version, &["name"]);
            findings.say(&rules::XRD_INVALID, at, format!("version {name:?} appears twice"));
        }
    }
}

/// A claim needs names of its own.
fn check_claim(spec: &Node<'_>, claim: &Node<'_>, findings: &mut Findings<'_>) {
    for key in ["kind", "plural"] {
        let composite = spec.at(&["names", key]).and_then(Node::as_str);
        let written = claim.get(key).and_then(Node::as_str);
        if written.is_some() && written == composite {
            let at = claim.get(key).map_or(claim.position, |node| node.position);
            let message = format!("claim and composite have the same {key}");
            findings.say(&rules::XRD_INVALID, at, message);
        }
    }
}
