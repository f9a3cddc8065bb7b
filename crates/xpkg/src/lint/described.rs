//! What metadata says about a package in its annotations and labels: keys that an API server takes, a
//! source that can be opened, a licence that tools know.

use super::findings::Findings;
use super::rules;
use api::meta::Meta;
use api::pkg::{is_steering_annotation, is_steering_label};
use yaml::{Node, Position};

/// Longest name of a key, behind its prefix.
const KEY_NAME_SIZE_MAX: usize = 63;

pub(super) fn check_descriptions(node: &Node<'_>, meta: &Meta, findings: &mut Findings<'_>) {
    for field in ["annotations", "labels"] {
        check_keys(node.at(&["metadata", field]), field, findings);
    }
    check_steering(node.at(&["metadata", "annotations"]), is_steering_annotation, findings);
    check_steering(node.at(&["metadata", "labels"]), is_steering_label, findings);
    if let Some(source) = meta.source().filter(|source| !is_address(source)) {
        let message = format!("source {source:?} is no address that could be opened");
        let hint = "write it as https://github.com/OWNER/REPOSITORY";
        findings.advise(&rules::METADATA_SOURCE, position_of(node, "source"), message, hint);
    }
    if let Some(license) = meta.license()
        && let Err(error) = spdx::Expression::parse(license.trim())
    {
        let message = format!("licence {license:?} is no SPDX expression: {}", error.reason);
        let hint = "write an identifier from spdx.org/licenses, for example Apache-2.0";
        findings.advise(&rules::METADATA_LICENSE, position_of(node, "license"), message, hint);
    }
}

fn check_keys(map: Option<&Node<'_>>, field: &str, findings: &mut Findings<'_>) {
    for entry in map.map(Node::entries).unwrap_or_default() {
        if !is_qualified_name(&entry.key) {
            let message = format!("{:?} is no key that {field} may have", entry.key);
            let hint = "write a name of letters, digits, '-', '_' and '.', with a DNS name and '/' before \
                        it if need be";
            findings.advise(&rules::METADATA_KEY, entry.position, message, hint);
        }
    }
}

fn check_steering(
    map: Option<&Node<'_>>,
    is_steering: fn(&str) -> bool,
    findings: &mut Findings<'_>,
) {
    let entries = map.map(Node::entries).unwrap_or_default().iter();
    for entry in entries.filter(|entry| is_steering(&entry.key)) {
        let message =
            format!("{:?} steers the package manager, and is not copied to revisions", entry.key);
        let hint = "remove it; administrators set it on packages and revisions";
        findings.advise(&rules::METADATA_STEERING, entry.position, message, hint);
    }
}

/// Whether a text is a key that labels and annotations may have.
fn is_qualified_name(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    // Prefixes of annotations are compared in lower case.
    let has_good_prefix = prefix.is_none_or(|prefix| is_subdomain(&prefix.to_ascii_lowercase()));
    let bytes = name.as_bytes();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric();
    has_good_prefix
        && bytes.len() <= KEY_NAME_SIZE_MAX
        && bytes.first().is_some_and(is_plain)
        && bytes.last().is_some_and(is_plain)
        && bytes.iter().all(|byte| is_plain(byte) || matches!(byte, b'-' | b'_' | b'.'))
}

/// Whether a text says where something is: with a scheme, or as a host and a path, which is how most
/// packages write it.
fn is_address(text: &str) -> bool {
    let text = text.trim();
    let rest = text.split_once("://").map_or(text, |(scheme, rest)| {
        let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
        if is_scheme { rest } else { "" }
    });
    let (host, _) = rest.split_once(['/', ':']).unwrap_or((rest, ""));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let is_host = host == "localhost" || host.contains('.');
    is_host
        && is_subdomain(&host.to_ascii_lowercase())
        && !text.contains(|letter: char| letter.is_whitespace() || letter.is_control())
}

/// Where an annotation stands that is written with or without the specified prefix.
fn position_of(node: &Node<'_>, name: &str) -> Position {
    let map = node.at(&["metadata", "annotations"]);
    let specified = format!("meta.crossplane.io/{name}");
    let entry = map.and_then(|map| map.entry(&specified).or_else(|| map.entry(name)));
    entry.map_or(node.position, |entry| entry.position)
}

/// Whether a text is a lower-case DNS subdomain.
fn is_subdomain(text: &str) -> bool {
    schema::names::subdomain(text).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_follow_kubernetes_rules() {
        for key in ["a", "example.org/a_b.c-d", "Example.org/x", "9"] {
            assert!(is_qualified_name(key), "{key}");
        }
        let long = "x".repeat(64);
        for key in ["", "bad key!", "/a", "a/", "a/b/c", "-a", "a-", "ex_ample.org/a", &long] {
            assert!(!is_qualified_name(key), "{key}");
        }
    }

    #[test]
    fn sources_are_addresses_with_or_without_a_scheme() {
        for text in [
            "https://github.com/example/provider",
            "github.com/example/provider",
            "git@github.com:example/provider.git",
            "ssh://git@example.org/x",
            "http://localhost:3000/x",
            "example.org",
        ] {
            assert!(is_address(text), "{text}");
        }
        for text in ["", "not a url", "provider", "https://", "://example.org", "https://a b.org/"]
        {
            assert!(!is_address(text), "{text}");
        }
    }
}
