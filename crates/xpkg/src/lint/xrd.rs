//! `CompositeResourceDefinition`s: what Crossplane demands before it serves a composite resource.

use super::crd::{
    check_names, check_one, check_scope, check_version_names, place, required, resource,
};
use super::findings::Findings;
use super::object;
use super::report::Facts;
use super::rules;
use super::structural;
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
    check_names(spec, rule, findings);
    if spec.get("scope").is_some_and(|scope| !scope.is_null()) {
        check_scope(spec, rule, &SCOPES, findings);
    }
    check_claim(spec, findings);
    let versions = check_version_names(spec, rule, findings);
    for version in versions {
        for flag in ["served", "referenceable"] {
            if version.get(flag).and_then(Node::as_bool).is_none() {
                let message = format!("version has no boolean {flag:?}");
                findings.say(rule, place(version, &[flag]), message);
            }
        }
        // A version without a schema is legal: only the fields every composite has remain.
        if let Some(schema) = version.at(&["schema", "openAPIV3Schema"]) {
            structural::check(schema, &rules::XRD_SCHEMA, findings);
        }
    }
    check_one(versions, "referenceable", rule, spec, findings);
    Facts::Xrd(resource(spec))
}

/// A claim needs names of its own.
fn check_claim(spec: &Node<'_>, findings: &mut Findings<'_>) {
    let rule = &rules::XRD_INVALID;
    let Some(claim) = spec.get("claimNames").filter(|claim| !claim.is_null()) else {
        return;
    };
    for key in ["kind", "plural"] {
        let composite = spec.at(&["names", key]).and_then(Node::as_str);
        let written = required(claim, &[key], rule, findings);
        if written.is_some() && written == composite {
            let at = claim.get(key).map_or(claim.position, |node| node.position);
            findings.say(rule, at, format!("claim and composite have the same {key}"));
        }
    }
}
