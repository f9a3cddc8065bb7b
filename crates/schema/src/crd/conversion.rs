//! Conversion between versions

use std::collections::HashSet;

use serde_json::{Value, json};

use super::super::error::{FieldError, Path};
use super::super::names;
use super::super::structural::{below, list, text};
use super::{Options, Spec};

/// Whether the review versions of a stored conversion hold one the server knows (or none at all).
pub(super) fn recognizes(conversion: &Value) -> bool {
    let versions = review_versions(conversion);
    versions.is_empty() || versions.iter().any(known)
}

fn known(version: &Value) -> bool {
    matches!(version.as_str(), Some("v1" | "v1beta1"))
}

fn review_versions(conversion: &Value) -> &[Value] {
    conversion.get("webhook").map_or(&[], |webhook| list(webhook, "conversionReviewVersions"))
}

pub(super) fn check(spec: &Spec<'_>, options: &Options, path: &Path, errors: &mut Vec<FieldError>) {
    let conversion = spec.conversion;
    let strategy = text(conversion, "strategy");
    if strategy != "None" && spec.preserve_unknown_fields {
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid(&path.child("strategy"), strategy, detail));
    }
    match strategy {
        "" => errors.push(FieldError::required(&path.child("strategy"), "")),
        "None" | "Webhook" => {}
        other => {
            let supported = ["None", "Webhook"];
            errors.push(FieldError::not_supported(&path.child("strategy"), other, supported));
        }
    }
    let config = conversion.get("webhook").and_then(|webhook| below(webhook, "clientConfig"));
    let config_path = path.child("webhookClientConfig");
    let versions_path = path.child("conversionReviewVersions");
    if strategy != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        if config.is_some() {
            errors.push(FieldError::forbidden(&config_path, detail));
        }
        if !review_versions(conversion).is_empty() {
            errors.push(FieldError::forbidden(&versions_path, detail));
        }
        return;
    }
    match config {
        None => {
            let detail = "required when strategy is set to Webhook";
            errors.push(FieldError::required(&config_path, detail));
        }
        Some(config) => check_client(config, &config_path, errors),
    }
    let versions = review_versions(conversion);
    if versions.is_empty() {
        return errors.push(FieldError::required(&versions_path, ""));
    }
    check_review_versions(versions, options.recognized_review, &versions_path, errors);
}

/// What is wrong with how a webhook is to be reached.
pub fn check_client(config: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let url = config.get("url").and_then(Value::as_str);
    match (url, below(config, "service")) {
        (Some(url), None) => check_url(url, &path.child("url"), errors),
        (None, Some(service)) => check_service(service, &path.child("service"), errors),
        _ => errors.push(FieldError::required(path, "exactly one of url or service is required")),
    }
}

fn check_url(url: &str, path: &Path, errors: &mut Vec<FieldError>) {
    let form = "; desired format: https://host[/path]";
    if url.starts_with(':') {
        let detail = format!("url must be a valid URL: parse {url:?}: missing protocol scheme");
        return errors.push(FieldError::required(path, format!("{detail}{form}")));
    }
    let (before, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (before, query) = before.split_once('?').unwrap_or((before, ""));
    let (scheme, rest) = before.split_once(':').unwrap_or(("", before));
    let authority = rest.strip_prefix("//").map_or("", |rest| rest.split('/').next().unwrap_or(""));
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(u, h)| (Some(u), h));
    let scheme = scheme.to_ascii_lowercase();
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{form}");
        errors.push(FieldError::invalid(path, scheme, detail));
    }
    if host.is_empty() {
        errors.push(FieldError::invalid(path, "", format!("host must be specified{form}")));
    }
    if let Some(user) = user {
        let detail = "user information is not permitted in the URL";
        errors.push(FieldError::invalid(path, user, detail));
    }
    if !fragment.is_empty() {
        errors.push(FieldError::invalid(path, fragment, "fragments are not permitted in the URL"));
    }
    if !query.is_empty() {
        let detail = "query parameters are not permitted in the URL";
        errors.push(FieldError::invalid(path, query, detail));
    }
}

fn check_service(service: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    // The server hands name and namespace over in the wrong order: a missing one is reported as
    // the other.
    for (shown, held) in [("name", "namespace"), ("namespace", "name")] {
        if text(service, held).is_empty() {
            errors.push(FieldError::required(&path.child(shown), ""));
        }
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
    if !(1..=65_535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(&path.child("port"), json!(port), detail));
    }
    check_service_path(text(service, "path"), &path.child("path"), errors);
}

fn check_service_path(value: &str, path: &Path, errors: &mut Vec<FieldError>) {
    let mut refuse = |detail: String| errors.push(FieldError::invalid(path, value, detail));
    match value {
        "" | "/" => return,
        "//" => return refuse("segment[0] may not be empty".to_owned()),
        _ => {}
    }
    if !value.starts_with('/') {
        refuse("must start with a '/'".to_owned());
    }
    let mut chars = value.chars();
    chars.next();
    let inner = chars.as_str();
    for (i, step) in inner.strip_suffix('/').unwrap_or(inner).split('/').enumerate() {
        if step.is_empty() {
            refuse(format!("segment[{i}] may not be empty"));
            continue;
        }
        for fault in names::subdomain(step) {
            refuse(format!("segment[{i}]: {fault}"));
        }
    }
}

/// What is wrong with the versions of reviews that a webhook understands; `recognized` says that
/// the server must know one of them.
pub fn check_review_versions(
    versions: &[Value],
    recognized: bool,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    let mut seen = HashSet::new();
    for (i, version) in versions.iter().enumerate() {
        let name = version.as_str().unwrap_or_default();
        if !seen.insert(name) {
            errors.push(FieldError::invalid(&path.index(i), name, "duplicate version"));
            continue;
        }
        for fault in names::label_1035(name) {
            errors.push(FieldError::invalid(&path.index(i), name, fault));
        }
    }
    if recognized && !versions.iter().any(known) {
        let detail = "must include at least one of v1, v1beta1";
        errors.push(FieldError::invalid(path, Value::from(versions), detail));
    }
}
