//! `CustomResourceDefinition`s: what the API server demands before it serves one.
//!
//! The checks follow the API server's own validation of `apiextensions.k8s.io/v1`, minus what
//! needs evaluation (defaults, CEL, regular expressions). Schemas are looked at in
//! [`super::structural`]. The CA bundle and address of a conversion webhook are filled in when a
//! package is installed, so they are not demanded here.

use super::findings::Findings;
use super::names;
use super::object;
use super::report::{Facts, Resource};
use super::rules::{self, Rule};
use super::structural;
use std::collections::HashSet;
use yaml::{Node, Position};

const COLUMN_TYPES: [&str; 5] = ["integer", "number", "string", "boolean", "date"];

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
    check_names(spec, &rules::CRD_INVALID, findings);
    check_scope(spec, &rules::CRD_INVALID, &["Namespaced", "Cluster"], findings);
    check_versions(spec, findings);
    check_conversion(spec, findings);
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

/// Checks group, plural and kind.
pub(super) fn check_names(spec: &Node<'_>, rule: &Rule, findings: &mut Findings<'_>) {
    if let Some(group) = required(spec, &["group"], rule, findings)
        && !(names::is_subdomain(group) && group.contains('.'))
    {
        let at = place(spec, &["group"]);
        findings.say(rule, at, format!("group {group:?} is not a domain with a dot"));
    }
    if let Some(plural) = required(spec, &["names", "plural"], rule, findings)
        && !names::is_label(plural)
    {
        let at = place(spec, &["names", "plural"]);
        findings.say(rule, at, format!("plural {plural:?} is not a lower-case DNS label"));
    }
    let Some(kind) = required(spec, &["names", "kind"], rule, findings) else {
        return;
    };
    if !names::is_label(&kind.to_ascii_lowercase()) {
        let at = place(spec, &["names", "kind"]);
        findings.say(rule, at, format!("kind {kind:?} is not a DNS label"));
    }
    if spec.at(&["names", "listKind"]).and_then(Node::as_str) == Some(kind) {
        let at = place(spec, &["names", "listKind"]);
        findings.say(rule, at, "kind and listKind must differ");
    }
}

/// Checks that the scope is one of those allowed.
pub(super) fn check_scope(
    spec: &Node<'_>,
    rule: &Rule,
    allowed: &[&str],
    findings: &mut Findings<'_>,
) {
    if let Some(scope) = required(spec, &["scope"], rule, findings)
        && !allowed.contains(&scope)
    {
        let at = place(spec, &["scope"]);
        let hint = format!("write {}", allowed.join(" or "));
        findings.advise(rule, at, format!("scope {scope:?} does not exist"), hint);
    }
}

/// Checks that versions exist and have proper, different names; returns them.
pub(super) fn check_version_names<'n, 'a>(
    spec: &'n Node<'a>,
    rule: &Rule,
    findings: &mut Findings<'_>,
) -> &'n [Node<'a>] {
    let versions = spec.get("versions").map(Node::items).unwrap_or_default();
    if versions.is_empty() {
        findings.say(rule, place(spec, &["versions"]), "definition has no versions");
    }
    let mut seen = HashSet::new();
    for version in versions {
        let Some(name) = required(version, &["name"], rule, findings) else {
            continue;
        };
        let at = place(version, &["name"]);
        if !names::is_label(name) {
            let message = format!("version name {name:?} is not a lower-case DNS label");
            findings.say(rule, at, message);
        }
        if !seen.insert(name) {
            findings.say(rule, at, format!("version {name:?} appears twice"));
        }
    }
    versions
}

fn check_versions(spec: &Node<'_>, findings: &mut Findings<'_>) {
    let versions = check_version_names(spec, &rules::CRD_INVALID, findings);
    for version in versions {
        for flag in ["served", "storage"] {
            if version.get(flag).and_then(Node::as_bool).is_none() {
                let message = format!("version has no boolean {flag:?}");
                findings.say(&rules::CRD_INVALID, place(version, &[flag]), message);
            }
        }
        check_columns(version, findings);
        let schema = version.at(&["schema", "openAPIV3Schema"]);
        if let Some(schema) = schema.filter(|schema| !schema.is_null()) {
            structural::check(schema, &rules::CRD_SCHEMA, findings);
        } else {
            let at = place(version, &["schema"]);
            let message = "version has no schema.openAPIV3Schema";
            findings.say(&rules::CRD_INVALID, at, message);
        }
    }
    check_one(versions, "storage", &rules::CRD_INVALID, spec, findings);
}

/// Checks that exactly one version has a flag set.
pub(super) fn check_one(
    versions: &[Node<'_>],
    flag: &str,
    rule: &Rule,
    spec: &Node<'_>,
    findings: &mut Findings<'_>,
) {
    let set = |version: &&Node<'_>| version.get(flag).and_then(Node::as_bool) == Some(true);
    let count = versions.iter().filter(set).count();
    if count != 1 && !versions.is_empty() {
        let message = format!("{count} versions have {flag:?} set; exactly one must");
        findings.say(rule, place(spec, &["versions"]), message);
    }
}

fn check_columns(version: &Node<'_>, findings: &mut Findings<'_>) {
    let columns = version.get("additionalPrinterColumns").map(Node::items).unwrap_or_default();
    for column in columns {
        for key in ["name", "type", "jsonPath"] {
            required(column, &[key], &rules::CRD_INVALID, findings);
        }
        let kind = column.get("type").filter(|kind| {
            kind.as_str().is_some_and(|text| !text.is_empty() && !COLUMN_TYPES.contains(&text))
        });
        if let Some(kind) = kind {
            let hint = format!("write one of {}", COLUMN_TYPES.join(", "));
            let message = "printer column has an unknown type";
            findings.advise(&rules::CRD_INVALID, kind.position, message, hint);
        }
    }
}

fn check_conversion(spec: &Node<'_>, findings: &mut Findings<'_>) {
    let rule = &rules::CRD_INVALID;
    let preserve = spec.get("preserveUnknownFields").filter(|node| node.as_bool() == Some(true));
    if let Some(preserve) = preserve {
        let message = "preserveUnknownFields must be false in v1";
        let hint = "set x-kubernetes-preserve-unknown-fields in the schema instead";
        findings.advise(rule, preserve.position, message, hint);
    }
    let Some(conversion) = spec.get("conversion").filter(|node| !node.is_null()) else {
        return;
    };
    let webhook = conversion.get("webhook").filter(|node| !node.is_null());
    match required(conversion, &["strategy"], rule, findings) {
        Some("Webhook") => check_webhook(conversion, webhook, findings),
        Some("None") => {
            if let Some(webhook) = webhook {
                findings.say(rule, webhook.position, "conversion None has no webhook");
            }
        }
        Some(other) => {
            let at = place(conversion, &["strategy"]);
            let message = format!("conversion strategy {other:?} does not exist");
            findings.advise(rule, at, message, "write None or Webhook");
        }
        None => {}
    }
}

fn check_webhook(conversion: &Node<'_>, webhook: Option<&Node<'_>>, findings: &mut Findings<'_>) {
    let Some(webhook) = webhook else {
        let message = "conversion Webhook needs a webhook";
        findings.say(&rules::CRD_INVALID, conversion.position, message);
        return;
    };
    let versions = webhook.get("conversionReviewVersions").map(Node::items).unwrap_or_default();
    let understood = |one: &Node<'_>| matches!(one.as_str(), Some("v1" | "v1beta1"));
    if !versions.iter().any(understood) {
        let at = place(webhook, &["conversionReviewVersions"]);
        let message = "conversion webhook must accept review version v1 or v1beta1";
        let hint = "set conversionReviewVersions: [v1]";
        findings.advise(&rules::CRD_INVALID, at, message, hint);
    }
}

/// The non-empty string at a path, which is reported when it is missing.
pub(super) fn required<'n>(
    node: &'n Node<'_>,
    path: &[&str],
    rule: &Rule,
    findings: &mut Findings<'_>,
) -> Option<&'n str> {
    let found = node.at(path).and_then(Node::as_str).filter(|text| !text.is_empty());
    if found.is_none() {
        let message = format!("{} is missing or not a string", path.join("."));
        findings.say(rule, place(node, path), message);
    }
    found
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
