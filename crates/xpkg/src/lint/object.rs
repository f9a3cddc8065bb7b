//! What every object must have: an identity, a proper name, and no namespace.

use super::findings::Findings;
use super::report::Identity;
use super::rules;
use yaml::{Node, Position, Value};

/// Reads who the object is and reports what is missing.
pub(super) fn identify(node: &Node<'_>, findings: &mut Findings<'_>) -> Identity {
    if !matches!(node.value, Value::Mapping(_)) {
        let message = format!("document is a {}, not an object", node.type_name());
        let hint = "keep it out of the package directory, or leave it out with --ignore";
        findings.advise(&rules::OBJECT_INCOMPLETE, node.position, message, hint);
        return Identity::default();
    }
    if node.get("apiVersion").is_none() && node.get("kind").is_none() {
        let message = "document is not a Kubernetes object: it has no apiVersion and no kind";
        let hint = "keep it out of the package directory, or leave it out with --ignore";
        findings.advise(&rules::OBJECT_INCOMPLETE, node.position, message, hint);
        return Identity::default();
    }
    let mut read = |path: &[&str]| {
        let found = node.at(path);
        if let Some(text) = found.and_then(Node::as_str).filter(|text| !text.is_empty()) {
            return text.to_owned();
        }
        let at = found.map_or(holder(node, path), |one| one.position);
        let message = format!("object has no {}", path.join("."));
        findings.advise(&rules::OBJECT_INCOMPLETE, at, message, missing_hint(found));
        String::new()
    };
    let (api_version, kind) = (read(&["apiVersion"]), read(&["kind"]));
    Identity { api_version, kind, name: read(&["metadata", "name"]) }
}

/// The place where a missing field should have been.
fn holder(node: &Node<'_>, path: &[&str]) -> Position {
    let parent = path.split_last().map_or(path, |(_, parent)| parent);
    let key = parent.first().and_then(|key| node.entry(key));
    key.map_or(node.position, |entry| entry.position)
}

fn missing_hint(found: Option<&Node<'_>>) -> String {
    match found {
        Some(node) if node.as_str().is_none() && !node.is_null() => {
            format!("its value is of type {}; quote it to make it a string", node.type_name())
        }
        _ => "every document of a package needs apiVersion, kind and metadata.name".to_owned(),
    }
}

/// Checks name and namespace.
pub(super) fn check(node: &Node<'_>, findings: &mut Findings<'_>) {
    let Some(metadata) = node.get("metadata") else {
        return;
    };
    if let Some(name) = metadata.get("name")
        && let Some(text) = name.as_str().filter(|text| !text.is_empty())
        && !schema::names::subdomain(text).is_empty()
    {
        let message = format!("name {text:?} is not a valid object name");
        let hint = "use lower-case letters, digits, '-' and '.', at most 253 characters";
        findings.advise(&rules::OBJECT_NAME, name.position, message, hint);
    }
    if let Some(namespace) = metadata.entry("namespace").filter(|entry| !entry.value.is_null()) {
        let message = "object is cluster-scoped but has a namespace";
        let hint = "remove metadata.namespace; it is ignored at best";
        findings.advise(&rules::OBJECT_NAMESPACE, namespace.position, message, hint);
    }
}

/// Checks that a definition is named after its plural and group.
pub(super) fn check_plural_name(node: &Node<'_>, findings: &mut Findings<'_>) {
    let text = |path: &[&str]| node.at(path).and_then(Node::as_str);
    let parts = (text(&["spec", "names", "plural"]), text(&["spec", "group"]));
    let (Some(name), (Some(plural), Some(group))) = (node.at(&["metadata", "name"]), parts) else {
        return;
    };
    let wanted = format!("{plural}.{group}");
    if let Some(written) = name.as_str().filter(|written| *written != wanted) {
        let message = format!("definition is named {written:?} but must be named {wanted:?}");
        let hint = "the name is spec.names.plural, a dot, and spec.group";
        findings.advise(&rules::OBJECT_NAME, name.position, message, hint);
    }
}
