//! Objects in the form a client asked for: whole, as metadata only, or as a table.

use serde_json::{Map, Value, json};

use super::Request;
use crate::Server;
use crate::http::negotiate::Form;
use crate::kind::{Column, Kind};
use crate::object::{meta_text, path, time};

const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, \
    although some resources may allow a client to request the generation of an appropriate name \
    automatically. Name is primarily intended for creation idempotence and configuration \
    definition. Cannot be updated. More info: \
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// One object.
pub(crate) fn one(server: &Server, request: &Request, object: Value) -> Value {
    match request.form {
        Form::Metadata => partial(&object),
        Form::Table => {
            let version = json!({"resourceVersion": meta_text(&object, "resourceVersion")});
            table(server, request, &[object], &version, true)
        }
        Form::Object | Form::Discovery => object,
    }
}

/// An event's object; a table repeats its columns only in the first one.
pub(crate) fn event(server: &Server, request: &Request, object: Value, first: bool) -> Value {
    match request.form {
        Form::Table => {
            let version = json!({"resourceVersion": meta_text(&object, "resourceVersion")});
            table(server, request, &[object], &version, first)
        }
        _ => one(server, request, object),
    }
}

/// A list.
pub(crate) fn many(
    server: &Server,
    request: &Request,
    items: Vec<Value>,
    metadata: &Value,
) -> Value {
    let kind = &request.kind;
    match request.form {
        Form::Table => table(server, request, &items, metadata, true),
        Form::Metadata => json!({
            "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata, "items": items.iter().map(partial).collect::<Vec<_>>(),
        }),
        Form::Object | Form::Discovery => json!({
            "kind": kind.list_kind, "apiVersion": kind.api_version(),
            "metadata": list_metadata(kind, metadata),
            "items": items.into_iter().map(|item| bare(kind, item)).collect::<Vec<_>>(),
        }),
    }
}

/// Lists of custom kinds say that they are complete.
fn list_metadata(kind: &Kind, metadata: &Value) -> Value {
    let mut metadata = metadata.clone();
    if kind.custom && metadata.get("continue").is_none() {
        metadata["continue"] = json!("");
    }
    metadata
}

/// Items of built-in lists do not say their kind again.
fn bare(kind: &Kind, mut item: Value) -> Value {
    if !kind.custom
        && let Value::Object(map) = &mut item
    {
        map.shift_remove("kind");
        map.shift_remove("apiVersion");
    }
    item
}

/// The object of a bookmark: a kind and a version, nothing else.
pub(crate) fn bookmark(request: &Request, version: u64) -> Value {
    let metadata = json!({"resourceVersion": version.to_string()});
    match request.form {
        Form::Metadata => json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        }),
        Form::Table => json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
            "columnDefinitions": null, "rows": [],
        }),
        Form::Object | Form::Discovery => json!({
            "kind": request.kind.kind, "apiVersion": request.kind.api_version(),
            "metadata": metadata,
        }),
    }
}

fn partial(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
    })
}

fn table(
    server: &Server,
    request: &Request,
    items: &[Value],
    metadata: &Value,
    head: bool,
) -> Value {
    let kind = &request.kind;
    let rows: Vec<Value> = items.iter().map(|item| row(server, request, item)).collect();
    let columns = if head { columns(kind) } else { Value::Null };
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": columns, "rows": rows,
    })
}

fn columns(kind: &Kind) -> Value {
    if let Some(columns) = kind.shape.columns().filter(|_| kind.custom) {
        return json!(columns.definitions());
    }
    let name = json!({
        "name": "Name", "type": "string", "format": "name", "description": NAME, "priority": 0,
    });
    let rest = kind.columns.iter().map(|column| {
        json!({
            "name": column.name, "type": column.type_, "format": column.format,
            "description": column.description, "priority": column.priority,
        })
    });
    std::iter::once(name).chain(rest).collect()
}

fn row(server: &Server, request: &Request, item: &Value) -> Value {
    let now = server.world.now();
    let kind = &request.kind;
    let cells = match kind.shape.columns().filter(|_| kind.custom) {
        Some(columns) => columns.cells(item, i64::try_from(now).unwrap_or_default()),
        None => std::iter::once(json!(meta_text(item, "name")))
            .chain(kind.columns.iter().map(|column| cell(column, item, now)))
            .collect(),
    };
    let object = match request.query.get("includeObject") {
        "None" => Value::Null,
        "Object" => item.clone(),
        _ => partial(item),
    };
    json!({"cells": cells, "object": object})
}

fn cell(column: &Column, item: &Value, now: u64) -> Value {
    if let Some(inside) = column.path.strip_prefix('<').and_then(|text| text.strip_suffix('>')) {
        return counted(inside, item);
    }
    let found = path::find(item, &column.path);
    let Some(first) = found.first() else {
        let builtin_age = column.name == "Age" && column.type_ == "string";
        return if builtin_age { json!("<unknown>") } else { Value::Null };
    };
    let is_time = column.type_ == "date" || column.path == ".metadata.creationTimestamp";
    match (column.type_.as_str(), first) {
        (_, Value::String(text)) if is_time => match time::parse(text) {
            Some(then) => json!(time::age(now.saturating_sub(then))),
            None => json!("<unknown>"),
        },
        ("integer" | "number", Value::Number(_))
        | ("boolean", Value::Bool(_))
        | ("string", Value::String(_)) => (*first).clone(),
        ("string", Value::Null) | ("integer" | "number" | "boolean" | "date", _) => Value::Null,
        ("string", _) => {
            let texts: Vec<String> = found.iter().map(|value| plain(value)).collect();
            json!(texts.join(","))
        }
        _ => (*first).clone(),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Cells of built-in kinds that need counting or joining.
fn counted(what: &str, item: &Value) -> Value {
    let (verb, rest) = what.split_once(' ').unwrap_or((what, ""));
    let first = |path: &str| path::find(item, path).first().copied().cloned();
    let length = |path: &str| match first(path) {
        Some(Value::Array(list)) => list.len(),
        Some(Value::Object(map)) => Map::len(&map),
        _ => 0,
    };
    match verb {
        "count" | "length" => json!(rest.split(' ').map(length).sum::<usize>()),
        "number" => first(rest).unwrap_or(json!(0)),
        "text" => first(rest).unwrap_or(Value::Null),
        "ready" => {
            let number = |path: &str| first(path).and_then(|n| n.as_i64()).unwrap_or(0);
            json!(format!("{}/{}", number(".status.readyReplicas"), number(".spec.replicas")))
        }
        "role" => {
            let part = |path: &str| first(path).map(|value| plain(&value)).unwrap_or_default();
            json!(format!("{}/{}", part(".roleRef.kind"), part(".roleRef.name")))
        }
        _ => Value::Null,
    }
}
