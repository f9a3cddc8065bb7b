//! The bridge from client-side apply.
//!
//! Before server-side apply, kubectl kept what it last applied in an annotation. When the manager
//! is exactly `kubectl`, conflicts over fields whose value is still the annotation's are no
//! conflicts, and the annotation is kept up to date for clients that still read it.

use serde_json::{Map, Value};

use super::ApplyContext;
use super::fieldpath::Set;
use super::golang::{self, Style};
use super::typed::{Duplicates, compare, field_set, validate};

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
const ANNOTATIONS_SIZE_MAX: usize = 256 * 1024;

/// The one manager the bridge is for.
pub(super) const KUBECTL: &str = "kubectl";

fn annotations(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata")?.get("annotations")?.as_object()
}

fn annotation(object: &Value) -> Option<&str> {
    annotations(object)?.get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())
}

/// The fields whose live value is still the one client-side apply set.
pub(super) fn still_as_applied(live: &Value, context: &ApplyContext<'_>) -> Option<Set> {
    let applied: Value = serde_json::from_str(annotation(live)?).ok()?;
    applied.get("kind")?.as_str().filter(|kind| !kind.is_empty())?;
    if applied.get("apiVersion")?.as_str()? != context.api_version {
        return None;
    }
    validate(context.schema, live, Duplicates::Refused).ok()?;
    validate(context.schema, &applied, Duplicates::Refused).ok()?;
    let changes = compare(context.schema, &applied, live).ok()?;
    let set = field_set(context.schema, &applied);
    Some(set.difference(&changes.modified).difference(&changes.added).difference(&changes.removed))
}

/// Brings the annotation up to date with what was just applied, if there is one.
pub(super) fn refresh(object: &mut Value, config: &Value) -> bool {
    let Some(before) = annotation(object).map(str::to_owned) else { return false };
    let mut config = config.clone();
    if let Some(own) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        own.shift_remove(ANNOTATION);
    }
    let mut text = String::new();
    golang::json(&config, Style::Standard, &mut text);
    text.push('\n');
    let all = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    let Some(all) = all else { return false };
    let same = before == text;
    all.insert(ANNOTATION.to_owned(), Value::String(text));
    let size = |(key, value): (&String, &Value)| key.len() + value.as_str().map_or(0, str::len);
    if all.iter().map(size).sum::<usize>() > ANNOTATIONS_SIZE_MAX {
        all.shift_remove(ANNOTATION);
        return true;
    }
    !same
}
