//! Whether a definition may be stored
//!
//! What the server checks when a `CustomResourceDefinition` is created or updated, after its own
//! defaulting (singular, list kind, conversion strategy, stored versions). Inside the server a
//! definition has another shape: what all versions say alike is said once, at the top. Errors
//! name fields of that shape (`spec.validation.openAPIV3Schema…` for a single version), and show
//! values of it; so does [`Spec`].
//!
//! The expressions of rules are read and checked; what they might cost is not estimated: their
//! cost is bounded when they are evaluated.

mod conversion;
mod defaulted;
mod expressions;
mod field_path;
mod internal;
mod schema;
mod spec;

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::error::{FieldError, Path};
use super::metadata::{self, NameRule, Scope};
use super::names;
use super::structural::{list, text};

pub use conversion::{check_client, check_review_versions};
pub(crate) use spec::Spec;

/// Everything wrong with a definition that is not there yet. What the server fills in is filled in
/// in place.
pub fn validate_new_crd(crd: Value) -> Vec<FieldError> {
    let crd = if is_complete(&crd) { crd } else { completed(crd) };
    validate_completed(&crd, None)
}

/// Everything wrong with a definition, or with changing one into it.
pub fn validate_crd(crd: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let (crd, old) = (with_defaults(crd), old.map(with_defaults));
    validate_completed(crd.as_ref(), old.as_deref())
}

fn validate_completed(crd: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_metadata(crd, old, &mut errors);
    let spec = Spec::of(&crd["spec"]);
    let old_spec = old.map(|old| Spec::of(&old["spec"]));
    let options = Options::of(&spec, old.zip(old_spec.as_ref()));
    spec::check(&spec, &options, &mut errors);
    if let Some(old) = &old_spec {
        spec::check_immutable(&spec, old, options.immutable_names, &mut errors);
    }
    let status = crd.get("status").unwrap_or(&Value::Null);
    let accepted = status.get("acceptedNames").unwrap_or(&Value::Null);
    spec::check_names(accepted, &Path::new("status").child("acceptedNames"), &mut errors);
    check_stored_versions(status, &spec, &mut errors);
    check_approval(crd, old, &mut errors);
    let preserved = old_spec.as_ref().is_some_and(|old| old.preserve_unknown_fields);
    if spec.preserve_unknown_fields && !preserved {
        let path = Path::new("spec").child("preserveUnknownFields");
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid(&path, true, detail));
    }
    errors
}

/// How strict to be: a stored definition is not held to rules it already breaks.
#[expect(clippy::struct_excessive_bools, reason = "independent rules, each on or off")]
pub(crate) struct Options {
    pub(crate) recognized_review: bool,
    pub(crate) immutable_names: bool,
    pub(crate) schema: bool,
    pub(crate) structural: bool,
    pub(crate) valid_types: bool,
    pub(crate) pruned_defaults: bool,
    pub(crate) atomic_sets: bool,
    pub(crate) map_keys: bool,
    /// Versions (or "" for all) that may keep too many selectable fields.
    pub(crate) many_selectable: Vec<String>,
}

impl Options {
    fn of(spec: &Spec<'_>, old: Option<(&Value, &Spec<'_>)>) -> Self {
        let Some((old_crd, old)) = old else {
            return Self {
                recognized_review: true,
                immutable_names: false,
                schema: true,
                structural: true,
                valid_types: true,
                pruned_defaults: true,
                atomic_sets: true,
                map_keys: true,
                many_selectable: Vec::new(),
            };
        };
        let fine = |fault: &dyn Fn(&Value) -> bool| !old.schemas().any(fault);
        Self {
            recognized_review: conversion::recognizes(old.conversion),
            immutable_names: is_established(old_crd),
            schema: old.validation.is_some() || old.versions.iter().all(|v| v.schema.is_some()),
            structural: fine(&|s| {
                schema::is_unsupported(s) || !super::structural::check(s, &Path::NIL).is_empty()
            }),
            valid_types: fine(&|s| schema::any(s, &schema::has_invalid_type)),
            pruned_defaults: fine(&defaulted::has_unpruned),
            atomic_sets: fine(&|s| schema::any(s, &|s| schema::non_atomic_set(s).is_some())),
            map_keys: fine(&|s| schema::any(s, &schema::has_invalid_map_keys)),
            many_selectable: spec::many_selectable(spec, old),
        }
    }
}

fn is_established(crd: &Value) -> bool {
    let conditions = crd.pointer("/status/conditions").and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|c| text(c, "type") == "Established" && text(c, "status") == "True")
}

/// Whether nothing is left out that the server would fill in.
fn is_complete(crd: &Value) -> bool {
    let spec = crd.get("spec").unwrap_or(&Value::Null);
    let names = spec.get("names").unwrap_or(&Value::Null);
    let status = crd.get("status").unwrap_or(&Value::Null);
    ["kind", "singular", "listKind"].into_iter().all(|name| !text(names, name).is_empty())
        && spec.get("conversion").is_some_and(Value::is_object)
        && !list(status, "storedVersions").is_empty()
}

/// The definition as the server sees it after defaulting.
fn with_defaults(crd: &Value) -> Cow<'_, Value> {
    // They are large, and mostly filled in before they come here.
    if is_complete(crd) { Cow::Borrowed(crd) } else { Cow::Owned(completed(crd.clone())) }
}

fn completed(mut crd: Value) -> Value {
    let Some(map) = crd.as_object_mut() else { return json!({ "spec": {} }) };
    let spec = map.entry("spec").or_insert_with(|| json!({}));
    let Some(spec) = spec.as_object_mut() else { return crd };
    let kind = spec.get("names").map(|names| text(names, "kind").to_owned()).unwrap_or_default();
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let mut fill = |name: &str, value: String| {
            if names.get(name).and_then(Value::as_str).unwrap_or_default().is_empty() {
                names.insert(name.to_owned(), Value::from(value));
            }
        };
        fill("singular", kind.to_lowercase());
        if !kind.is_empty() {
            fill("listKind", format!("{kind}List"));
        }
    }
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".to_owned(), json!({ "strategy": "None" }));
    }
    let versions = spec.get("versions").and_then(Value::as_array).into_iter().flatten();
    let storage = versions.into_iter().find(|v| v.get("storage") == Some(&json!(true)));
    let stored: Vec<Value> = storage.into_iter().map(|v| json!(text(v, "name"))).collect();
    let status = map.entry("status").or_insert_with(|| json!({}));
    if list(status, "storedVersions").is_empty()
        && !stored.is_empty()
        && let Some(status) = status.as_object_mut()
    {
        status.insert("storedVersions".to_owned(), Value::from(stored));
    }
    crd
}

fn check_metadata(crd: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let path = Path::new("metadata");
    let read = |crd: &Value| {
        metadata::read_meta(crd.get("metadata").unwrap_or(&Value::Null)).map(|(read, _)| read)
    };
    let new = match read(crd) {
        Ok(new) => new,
        Err(error) => {
            return errors.push(FieldError::invalid(&path, crd["metadata"].clone(), error));
        }
    };
    if let Some(old) = old {
        let old: Map<String, Value> = read(old).unwrap_or_default();
        return metadata::check_meta_update(&new, &old, &path, errors);
    }
    let names = crd["spec"].get("names").unwrap_or(&Value::Null);
    let wanted = format!("{}.{}", text(names, "plural"), text(&crd["spec"], "group"));
    let rule = |name: &str, prefix: bool| {
        let mut faults = NameRule::Subdomain.faults(name, prefix);
        if name != wanted {
            faults.push("must be spec.names.plural+\".\"+spec.group".to_owned());
        }
        faults
    };
    metadata::check_meta(&new, Scope::Cluster, &rule, &path, errors);
}

fn check_stored_versions(status: &Value, spec: &Spec<'_>, errors: &mut Vec<FieldError>) {
    let path = Path::new("status").child("storedVersions");
    let stored = list(status, "storedVersions");
    if stored.is_empty() {
        let value = status.get("storedVersions").cloned().unwrap_or(Value::Null);
        let detail = "must have at least one stored version";
        return errors.push(FieldError::invalid(&path, value, detail));
    }
    let mut seen = HashSet::new();
    for version in &spec.versions {
        // A version listed twice is looked for twice, and found once.
        let found =
            seen.insert(version.name) && stored.iter().any(|stored| *stored == version.name);
        if version.storage && !found {
            let detail = format!("must have the storage version {}", version.name);
            errors.push(FieldError::invalid(&path, Value::from(stored), detail));
        }
    }
    for (i, stored) in stored.iter().enumerate() {
        let name = stored.as_str().unwrap_or_default();
        if !seen.contains(name) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            errors.push(FieldError::invalid(&path.index(i), name, detail));
        }
    }
}

/// Groups of the Kubernetes project need a reference to their review.
fn check_approval(crd: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    const ANNOTATION: &str = "api-approved.kubernetes.io";
    let group = text(&crd["spec"], "group");
    let protected = |domain: &str| group == domain || group.ends_with(&format!(".{domain}"));
    if !protected("k8s.io") && !protected("kubernetes.io") {
        return;
    }
    let state = |crd: &Value| {
        let annotation =
            text(crd.pointer("/metadata/annotations").unwrap_or(&Value::Null), ANNOTATION)
                .to_owned();
        let url = annotation.split_once("://").is_some_and(|(scheme, rest)| {
            !scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/')
        });
        let approved = url || annotation.starts_with("unapproved");
        (annotation.is_empty(), approved, annotation)
    };
    let (missing, approved, annotation) = state(crd);
    let unchanged = old.map(state).is_some_and(|(m, a, _)| (m, a) == (missing, approved));
    if approved || unchanged {
        return;
    }
    let path = Path::new("metadata").child("annotations").key(ANNOTATION);
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let must = format!("protected groups must have approval annotation \"{ANNOTATION}\"");
    errors.push(if missing {
        FieldError::required(&path, format!("{must}, {see}"))
    } else {
        let detail =
            format!("{must} with either a URL or a reason starting with \"unapproved\", {see}");
        FieldError::invalid(&path, annotation, detail)
    });
}

/// One error for all faults of a name.
fn push_joined(errors: &mut Vec<FieldError>, path: &Path, value: &str, faults: &[String]) {
    if !faults.is_empty() {
        errors.push(FieldError::invalid(path, value, faults.join(",")));
    }
}

/// One error for all faults of a kind, whose case does not matter.
fn push_kind(errors: &mut Vec<FieldError>, path: &Path, kind: &str) {
    let faults = names::label_1035(&kind.to_lowercase());
    if !faults.is_empty() {
        let detail =
            format!("may have mixed case, but should otherwise match: {}", faults.join(","));
        errors.push(FieldError::invalid(path, kind, detail));
    }
}
