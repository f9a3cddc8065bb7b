//! `OpenAPI` v3: what clients read to know which kinds there are and how to patch them.
//!
//! One document for each group and version, made when it is asked for. It says what
//! kubectl looks for: which media types a patch may have, that the server validates
//! fields, and the shapes.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::kind::{Kind, Kinds};

/// What `apiVersion` means, in the words of the API's own documentation.
pub(crate) const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should \
    convert recognized schemas to the latest internal value, and may reject unrecognized values. \
    More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
/// What `kind` means.
pub(crate) const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may \
    infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. \
    More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
/// What `metadata` means.
pub(crate) const METADATA: &str = "Standard object's metadata. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// `/openapi/v3`: the documents there are. The fingerprint changes with the content.
pub fn root(kinds: &Kinds) -> Value {
    let mut paths = Map::new();
    for kind in kinds.all() {
        let path = document_path(&kind);
        if !paths.contains_key(&path) {
            let text = document(kinds, &path).unwrap_or_default().to_string();
            let hash = crate::http::fingerprint(text.as_bytes());
            let url = format!("/openapi/v3/{path}?hash={hash:016X}");
            paths.insert(path, json!({"serverRelativeURL": url}));
        }
    }
    json!({"paths": paths})
}

/// The document at `api/v1` or `apis/GROUP/VERSION`.
pub fn document(kinds: &Kinds, path: &str) -> Option<Value> {
    let found: Vec<Arc<Kind>> =
        kinds.all().into_iter().filter(|kind| document_path(kind) == path).collect();
    if found.is_empty() {
        return None;
    }
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for kind in &found {
        paths.extend(operations(kind, path));
        kind.shape.describe(kind, &mut schemas);
    }
    Some(json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1.36.4"},
        "paths": paths, "components": {"schemas": schemas},
    }))
}

fn document_path(kind: &Kind) -> String {
    match kind.group.as_str() {
        "" => format!("api/{}", kind.version),
        group => format!("apis/{group}/{}", kind.version),
    }
}

/// `org.example.v1.Widget` for a custom kind of `example.org`.
pub fn component(kind: &Kind) -> String {
    let mut parts: Vec<&str> = kind.group.split('.').collect();
    parts.reverse();
    format!("{}.{}.{}", parts.join("."), kind.version, kind.kind)
}

/// How a kind is named inside documents.
pub fn group_version_kind(kind: &Kind) -> Value {
    json!({"group": kind.group, "version": kind.version, "kind": kind.kind})
}

fn operations(kind: &Kind, document: &str) -> Vec<(String, Value)> {
    let base = if kind.namespaced {
        format!("/{document}/namespaces/{{namespace}}/{}", kind.plural)
    } else {
        format!("/{document}/{}", kind.plural)
    };
    let marked = |action: &str, mut operation: Value| {
        operation["x-kubernetes-action"] = json!(action);
        operation["x-kubernetes-group-version-kind"] = group_version_kind(kind);
        operation["responses"] = json!({"200": {"description": "OK"}});
        operation
    };
    let write =
        || json!({"parameters": parameters(&["dryRun", "fieldManager", "fieldValidation"])});
    if kind.fleeting {
        return vec![(base, json!({"post": marked("post", write())}))];
    }
    if kind.counted {
        return vec![
            (format!("{base}/{{name}}"), json!({"get": marked("get", json!({}))})),
            (base, json!({"get": marked("list", json!({}))})),
        ];
    }
    let mut patch =
        json!({"parameters": parameters(&["dryRun", "fieldManager", "fieldValidation", "force"])});
    let mut media = vec![
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
    ];
    if !kind.custom {
        media.push("application/strategic-merge-patch+json");
    }
    let content: Map<String, Value> =
        media.iter().map(|media| ((*media).to_owned(), json!({}))).collect();
    patch["requestBody"] = json!({"content": content, "required": true});
    let collection = json!({
        "get": marked("list", json!({})),
        "post": marked("post", write()),
        "delete": marked("deletecollection", json!({})),
    });
    let item = json!({
        "get": marked("get", json!({})),
        "put": marked("put", write()),
        "patch": marked("patch", patch),
        "delete": marked("delete", json!({})),
    });
    vec![(format!("{base}/{{name}}"), item), (base, collection)]
}

fn parameters(names: &[&str]) -> Value {
    let one = |name: &&str| {
        let schema = if *name == "force" { "boolean" } else { "string" };
        json!({"name": name, "in": "query", "schema": {"type": schema, "uniqueItems": true}})
    };
    names.iter().map(one).collect()
}

/// `/openapi/v2`, for clients that look there for what version 3 does not know: nothing is
/// described there that is not in version 3.
pub fn old() -> Value {
    json!({
        "swagger": "2.0", "info": {"title": "Kubernetes", "version": "v1.36.4"},
        "paths": {}, "definitions": {},
    })
}
