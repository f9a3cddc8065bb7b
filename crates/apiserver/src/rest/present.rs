//! Objects in the form a client asked for: whole, as metadata only, or as a table.

use serde_json::{Value, json};

use super::Request;
use crate::Server;
use crate::http::negotiate::Form;
use crate::kind::{Column, Kind, print};
use schema::object::meta_text;

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
        Form::Object | Form::Discovery => {
            let mut list = json!({
                "kind": kind.list_kind, "apiVersion": kind.api_version(),
                "metadata": list_metadata(kind, metadata),
            });
            // Moved, not copied: there may be many, and big ones.
            list["items"] = items.into_iter().map(|item| bare(kind, item)).collect();
            list
        }
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
    let definition = |column: &Column| {
        json!({
            "name": column.name, "type": column.type_, "format": column.format,
            "description": column.description, "priority": column.priority,
        })
    };
    kind.columns.iter().map(definition).collect()
}

fn row(server: &Server, request: &Request, item: &Value) -> Value {
    let now = server.world.now();
    let kind = &request.kind;
    let cells = match kind.shape.columns().filter(|_| kind.custom) {
        Some(columns) => columns.cells(item, i64::try_from(now).unwrap_or_default()),
        None => print::cells(&kind.plural, item, now),
    };
    let object = match request.query.get("includeObject") {
        "None" => Value::Null,
        "Object" => item.clone(),
        _ => partial(item),
    };
    json!({"cells": cells, "object": object})
}
