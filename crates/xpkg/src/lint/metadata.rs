//! Package metadata: types, unknown fields, the constraint on Crossplane, the dependencies.

use super::dependency;
use super::described;
use super::findings::Findings;
use super::rules;
use super::suggest;
use crate::constraint::Constraint;
use api::meta::fields::{self, Place};
use api::meta::path::{FieldPath, Step};
use api::meta::{Dialect, Meta, MetaError, PackageKind, registered};
use serde_json::Value as Json;
use yaml::{Node, Position, Value};

/// Wrongly typed fields reported at once. Each costs another reading of the document, so a hostile
/// one must not have its way; nobody reads more.
const WRONG_TYPES_MAX: usize = 32;

/// Checks metadata and returns it as far as it can be read.
pub(super) fn check(node: &Node<'_>, findings: &mut Findings<'_>) -> Option<Meta> {
    let meta = read(node, findings)?;
    check_fields(node, &meta, findings);
    check_crossplane(node, &meta, findings);
    dependency::check(node, &meta, findings);
    check_required(node, &meta, findings);
    described::check_descriptions(node, &meta, findings);
    Some(meta)
}

/// Reads metadata, reporting every wrongly typed field and going on without it.
fn read(node: &Node<'_>, findings: &mut Findings<'_>) -> Option<Meta> {
    let mut document = node.to_json();
    for _ in 0..WRONG_TYPES_MAX {
        match Meta::from_json(&document) {
            Ok(meta) => return Some(meta),
            Err(error @ MetaError::Unregistered { .. }) => {
                report_unregistered(node, &error, findings);
                return None;
            }
            Err(error) => {
                let MetaError::WrongType { path, .. } = &error else {
                    return None;
                };
                let message = error.to_string();
                findings.say(&rules::METADATA_INVALID, locate(node, path), message);
                // Without the value the next fault shows.
                *find_mut(&mut document, path).filter(|value| !value.is_null())? = Json::Null;
            }
        }
    }
    None
}

fn report_unregistered(node: &Node<'_>, error: &MetaError, findings: &mut Findings<'_>) {
    let text = |key| node.get(key).and_then(Node::as_str).unwrap_or_default();
    let known = |dialect: &Dialect| registered(dialect.api_version(), text("kind")).is_some();
    let versions: Vec<_> = Dialect::ALL.into_iter().filter(known).collect();
    let hint = match versions.first() {
        Some(dialect) => format!("use {}", dialect.api_version()),
        None => "package metadata is a Provider, a Configuration or a Function".to_owned(),
    };
    let at = node.entry("apiVersion").map_or(node.position, |entry| entry.position);
    findings.advise(&rules::METADATA_UNREGISTERED, at, error.to_string(), hint);
}

/// The position of a field, or of its nearest ancestor that has one.
fn locate(node: &Node<'_>, path: &FieldPath) -> Position {
    let mut place = node;
    for step in path.steps() {
        let next = match step {
            Step::Key(key) => place.get(key),
            Step::Index(index) => place.items().get(*index),
        };
        let Some(next) = next else { break };
        place = next;
    }
    place.position
}

fn find_mut<'d>(document: &'d mut Json, path: &FieldPath) -> Option<&'d mut Json> {
    path.steps().iter().try_fold(document, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Index(index) => value.get_mut(*index),
    })
}

/// Reports fields that Crossplane would silently ignore.
fn check_fields(node: &Node<'_>, meta: &Meta, findings: &mut Findings<'_>) {
    let about = (meta.dialect(), meta.kind());
    unknown(Some(node), about, Place::Root, findings);
    unknown(node.get("spec"), about, Place::Spec, findings);
    unknown(node.at(&["spec", "crossplane"]), about, Place::Crossplane, findings);
    unknown(node.at(&["spec", "controller"]), about, Place::Controller, findings);
    for entry in node.at(&["spec", "dependsOn"]).map(Node::items).unwrap_or_default() {
        unknown(Some(entry), about, Place::Dependency, findings);
    }
}

fn unknown(
    node: Option<&Node<'_>>,
    (dialect, kind): (Dialect, PackageKind),
    place: Place,
    findings: &mut Findings<'_>,
) {
    let known = fields::known(dialect, kind, place);
    for entry in node.map(Node::entries).unwrap_or_default() {
        if known.contains(&entry.key.as_ref()) {
            continue;
        }
        let hint = match suggest::closest(&entry.key, known.iter().copied()) {
            Some(close) => format!("did you mean {close:?}?"),
            None => format!("known here: {}", known.join(", ")),
        };
        let message = format!("field {:?} means nothing here and is ignored", entry.key);
        findings.advise(&rules::METADATA_UNKNOWN_FIELD, entry.position, message, hint);
    }
}

/// Reports what the first dialect calls required and is not there.
fn check_required(node: &Node<'_>, meta: &Meta, findings: &mut Findings<'_>) {
    if meta.dialect() != Dialect::First {
        return;
    }
    let paths: &[&[&str]] = match meta.kind() {
        PackageKind::Provider => {
            &[&["spec"], &["spec", "controller"], &["spec", "controller", "image"]]
        }
        PackageKind::Configuration | PackageKind::Function => &[&["spec"]],
    };
    let is_there = |path: &&&[&str]| node.at(path).is_some_and(|field| !field.is_null());
    if let Some(missing) = paths.iter().find(|path| !is_there(path)) {
        let parent = node.at(&missing[..missing.len() - 1]).unwrap_or(node);
        let message = format!("{} is required in this format", missing.join("."));
        let hint = format!("add it, or use {}", Dialect::V1.api_version());
        findings.advise(&rules::METADATA_REQUIRED, parent.position, message, hint);
    }
}

fn check_crossplane(node: &Node<'_>, meta: &Meta, findings: &mut Findings<'_>) {
    let Some(text) = meta.crossplane() else {
        return;
    };
    let field = node.at(&["spec", "crossplane"]);
    let version = field.and_then(|field| field.get("version"));
    let at = version.or(field).unwrap_or(node).position;
    match Constraint::parse(text) {
        Err(error) => {
            let message = format!("constraint on Crossplane's version cannot be read: {error}");
            let hint = r#"write a range such as ">=v1.14.0-0", or remove spec.crossplane"#;
            findings.advise(&rules::CROSSPLANE_CONSTRAINT, at, message, hint);
        }
        // The first dialect names one version the package is compatible with, not a range.
        Ok(_) if field.is_some_and(|field| matches!(field.value, Value::String(_))) => {}
        Ok(constraint) => dependency::check_constraint(&constraint, at, findings),
    }
}
