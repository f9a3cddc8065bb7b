//! CRDs, made from the types.
//!
//! [`definitions`] gives every definition that apron installs: the kinds of [`pkg`](crate::pkg)
//! with the schema of their types, and, to hold what packages bring where Crossplane's core is
//! not, the kinds of its other groups, which take any fields.
//!
//! The group may get another suffix, so that apron can run beside Crossplane's core on one
//! cluster; then only the kinds of that group are made, because the core has the others.

mod kinds;
#[cfg(test)]
mod tests;

use kinds::{Column, Kind};
use serde_json::{Map, Value as Json, json};

/// The suffix of Crossplane's own groups.
pub const SUFFIX: &str = "crossplane.io";

/// The kinds of other groups: their names, versions and columns.
const HELD: &str = include_str!("../held.json");

/// Why something cannot be the suffix of an API group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{suffix:?} is not a DNS name of at least two labels")]
pub struct SuffixError {
    /// What was given.
    pub suffix: String,
}

/// Every definition, under a suffix.
pub fn definitions(suffix: &str) -> Result<Vec<Json>, SuffixError> {
    check_suffix(suffix)?;
    let group = format!("pkg.{suffix}");
    let mut all: Vec<Json> = kinds::all().iter().map(|kind| definition(kind, &group)).collect();
    if suffix == SUFFIX {
        all.extend(held());
    }
    Ok(all)
}

/// Refuses what cannot be the suffix of an API group.
pub(crate) fn check_suffix(suffix: &str) -> Result<(), SuffixError> {
    if is_dns_name(suffix) { Ok(()) } else { Err(SuffixError { suffix: suffix.to_owned() }) }
}

/// Two labels or more, of lower case letters, digits and hyphens, at most 249 bytes in all so
/// that the group is no longer than a DNS name.
fn is_dns_name(text: &str) -> bool {
    let label = |label: &str| {
        let inner = label
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        let edges = !label.starts_with('-') && !label.ends_with('-');
        inner && edges && (1..=63).contains(&label.len())
    };
    text.len() <= 249 && text.contains('.') && text.split('.').all(label)
}

fn definition(kind: &Kind, group: &str) -> Json {
    let schema = kind.schema(group);
    let versions = kind.versions.iter().map(|version| {
        let storage = *version == kind.versions[0];
        let columns = kind.columns.iter().map(Column::to_json);
        let columns: Vec<Json> = columns.collect();
        let mut made = json!({
            "name": version, "served": true, "storage": storage,
            "additionalPrinterColumns": columns,
            "schema": {"openAPIV3Schema": schema},
        });
        if kind.has_status {
            made["subresources"] = json!({"status": {}});
        }
        made
    });
    let versions: Vec<Json> = versions.collect();
    let names = kind.names();
    object(group, &names, "Cluster", &versions)
}

/// A definition of a kind with these versions.
pub(crate) fn object(group: &str, names: &Json, scope: &str, versions: &[Json]) -> Json {
    let plural = names["plural"].as_str().unwrap_or_default();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "names": names, "scope": scope, "versions": versions},
    })
}

/// The kinds of other groups, with any fields.
fn held() -> Vec<Json> {
    let kinds: Vec<Json> = serde_json::from_str(HELD).unwrap_or_default();
    kinds.iter().map(held_definition).collect()
}

fn held_definition(kind: &Json) -> Json {
    let text = |key: &str| kind[key].as_str().unwrap_or_default();
    let none = Vec::new();
    let versions = kind["versions"].as_array().unwrap_or(&none).iter().map(|version| {
        let mut made = Map::new();
        for key in ["name", "served", "storage", "deprecated"] {
            made.extend(version.get(key).map(|value| (key.to_owned(), value.clone())));
        }
        if version["columns"].as_array().is_some_and(|columns| !columns.is_empty()) {
            made.insert("additionalPrinterColumns".to_owned(), version["columns"].clone());
        }
        if version["status"] == json!(true) {
            made.insert("subresources".to_owned(), json!({"status": {}}));
        }
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        made.insert("schema".to_owned(), json!({"openAPIV3Schema": schema}));
        Json::Object(made)
    });
    let versions: Vec<Json> = versions.collect();
    object(text("group"), &kind["names"], text("scope"), &versions)
}
