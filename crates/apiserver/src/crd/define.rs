//! From a definition to the kinds it serves.

use serde_json::{Value, json};

use super::{GROUP, is_deleting};
use crate::Server;
use crate::kind::{AGE, Column, Kind, Scale};
use crate::object::meta_text;
use crate::object::name::NameRule;
use crate::rest::open;

/// The kinds a definition serves now; none before its names are accepted.
pub fn kinds(object: &Value) -> Vec<Kind> {
    if !is_established(object) {
        return Vec::new();
    }
    let versions = object.pointer("/spec/versions").and_then(Value::as_array);
    versions
        .into_iter()
        .flatten()
        .filter(|version| version.get("served") == Some(&json!(true)))
        .map(|version| kind(object, version))
        .collect()
}

/// Whether the definition's names were accepted at some time.
pub(crate) fn is_established(object: &Value) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|one| {
        one.get("type") == Some(&json!("Established")) && one.get("status") == Some(&json!("True"))
    })
}

/// The version in which objects are stored.
pub(crate) fn storage_version(object: &Value) -> String {
    let versions = object.pointer("/spec/versions").and_then(Value::as_array);
    let storage =
        versions.into_iter().flatten().find(|version| version.get("storage") == Some(&json!(true)));
    storage.map(|version| text(version, "/name")).unwrap_or_default()
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn texts(value: &Value, pointer: &str) -> Vec<String> {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn kind(object: &Value, version: &Value) -> Kind {
    let scale = version.pointer("/subresources/scale").map(|scale| Scale {
        spec_path: text(scale, "/specReplicasPath"),
        status_path: text(scale, "/statusReplicasPath"),
        selector_path: Some(text(scale, "/labelSelectorPath")).filter(|path| !path.is_empty()),
    });
    let fields = version.get("selectableFields").and_then(Value::as_array);
    Kind {
        group: text(object, "/spec/group"),
        version: text(version, "/name"),
        plural: text(object, "/spec/names/plural"),
        singular: text(object, "/spec/names/singular"),
        kind: text(object, "/spec/names/kind"),
        list_kind: text(object, "/spec/names/listKind"),
        short_names: texts(object, "/spec/names/shortNames"),
        categories: texts(object, "/spec/names/categories"),
        namespaced: text(object, "/spec/scope") == "Namespaced",
        status: version.pointer("/subresources/status").is_some(),
        scale,
        custom: true,
        generation: true,
        unconditional: false,
        names: NameRule::Subdomain,
        selectable: fields
            .into_iter()
            .flatten()
            .map(|field| text(field, "/jsonPath").trim_start_matches('.').to_owned())
            .collect(),
        columns: columns(version),
        storage_version: storage_version(object),
        terminating: is_deleting(object),
    }
}

fn columns(version: &Value) -> Vec<Column> {
    let declared = version.get("additionalPrinterColumns").and_then(Value::as_array);
    let Some(declared) = declared.filter(|columns| !columns.is_empty()) else {
        return vec![Column {
            name: "Age".to_owned(),
            type_: "date".to_owned(),
            format: String::new(),
            description: AGE.to_owned(),
            priority: 0,
            path: ".metadata.creationTimestamp".to_owned(),
        }];
    };
    declared
        .iter()
        .map(|column| {
            let path = text(column, "/jsonPath");
            let said = text(column, "/description");
            let description = if said.is_empty() {
                format!("Custom resource definition column (in JSONPath format): {path}")
            } else {
                said
            };
            Column {
                name: text(column, "/name"),
                type_: text(column, "/type"),
                format: text(column, "/format"),
                description,
                priority: column.get("priority").and_then(Value::as_i64).unwrap_or(0),
                path,
            }
        })
        .collect()
}

/// Another definition of the same group that has one of these names already.
pub(crate) fn conflict(server: &Server, object: &Value) -> Option<(String, String)> {
    let kind = server.kinds.find(GROUP, "v1", "customresourcedefinitions")?;
    let snapshot = server.log.list(&kind.prefix(None), None).ok()?;
    let group = text(object, "/spec/group");
    for (_, entry) in &snapshot.entries {
        let Ok(other) = open(&kind, entry) else { continue };
        if meta_text(&other, "name") == meta_text(object, "name")
            || text(&other, "/spec/group") != group
        {
            continue;
        }
        if let Some(found) = clash(object, &other) {
            return Some(found);
        }
    }
    None
}

fn clash(object: &Value, other: &Value) -> Option<(String, String)> {
    let taken = |pointer: &str| text(other, &format!("/status/acceptedNames{pointer}"));
    let mut resources = vec![taken("/plural"), taken("/singular")];
    resources.extend(texts(other, "/status/acceptedNames/shortNames"));
    let kinds = [taken("/kind"), taken("/listKind")];
    let wish = |pointer: &str| text(object, &format!("/spec/names{pointer}"));
    let said = |name: &str| format!("\"{name}\" is already in use");
    let checks = [
        ("/plural", "PluralConflict", resources.as_slice()),
        ("/singular", "SingularConflict", resources.as_slice()),
        ("/kind", "KindConflict", kinds.as_slice()),
        ("/listKind", "ListKindConflict", kinds.as_slice()),
    ];
    for (pointer, reason, names) in checks {
        let name = wish(pointer);
        if !name.is_empty() && names.contains(&name) {
            return Some((reason.to_owned(), said(&name)));
        }
    }
    let short = texts(object, "/spec/names/shortNames");
    let found = short.iter().find(|name| resources.contains(name))?;
    Some(("ShortNamesConflict".to_owned(), said(found)))
}
