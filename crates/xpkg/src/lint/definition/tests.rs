//! Schemas that are structural, and schemas that are not.

use crate::lint::tests::{findings_of_schema as check, node};
use serde_json::{Value as Json, json};

/// A schema with one property.
fn of(property: &Json) -> Json {
    json!({ "type": "object", "properties": { "a": property } })
}

#[test]
fn structural_schemas_have_no_findings() {
    let good = [
        json!({ "type": "object" }),
        json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
        json!({ "x-kubernetes-preserve-unknown-fields": true, "type": "object" }),
        of(&json!({ "x-kubernetes-int-or-string": true })),
        of(&json!({ "x-kubernetes-int-or-string": true,
            "anyOf": [{ "type": "integer" }, { "type": "string" }] })),
        of(&json!({ "x-kubernetes-int-or-string": true, "allOf": [
            { "anyOf": [{ "type": "integer" }, { "type": "string" }] }, { "pattern": "^a" }] })),
        of(&json!({ "x-kubernetes-preserve-unknown-fields": true })),
        of(&json!({ "type": "object", "additionalProperties": { "type": "string" } })),
        of(&json!({ "type": "object", "additionalProperties": true })),
        of(&json!({ "type": "object", "properties": { "b": { "type": "string" } },
            "anyOf": [{ "required": ["b"] }, { "properties": { "b": { "pattern": "c" } } }] })),
        of(&json!({ "type": "array", "items": { "type": "string" },
            "x-kubernetes-list-type": "set" })),
        of(&json!({ "type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": { "type": "object", "required": ["k"],
                "properties": { "k": { "type": "string" } } } })),
        of(&json!({ "type": "string", "uniqueItems": false, "nullable": true, "id": "" })),
        of(&json!({ "type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true })),
        json!({ "type": "object", "properties": {
            "apiVersion": { "type": "string" }, "kind": { "type": "string" },
            "metadata": { "type": "object",
                "properties": { "name": { "type": "string", "maxLength": 9 } } } } }),
        of(&json!({ "type": "string", "x-kubernetes-validations": [{ "rule": "self != ''" }] })),
    ];
    for schema in good {
        assert_eq!(check(&schema), "", "{schema}");
    }
}

#[test]
fn the_api_server_refuses_the_same_definitions() {
    // Drawn from a differential run against the validation of apiextensions-apiserver v0.35.1:
    // all accepted rows are sound, and each refused one has a single fault.
    let rows: Vec<Json> =
        serde_json::from_str(include_str!("../../../testdata/lint/crd.json")).unwrap();
    for row in rows {
        let report = crate::lint::document("crd.yaml", &node(&row["crd"]));
        let found = &report.diagnostics;
        assert_eq!(found.is_empty(), row["accepted"] == true, "{row}\n{found:?}");
    }
}

#[test]
fn values_have_known_types() {
    insta::assert_snapshot!(check(&json!({})), @"");
    insta::assert_snapshot!(check(&json!({ "type": "array", "items": { "type": "string" } })), @"");
    insta::assert_snapshot!(check(&of(&json!({ "description": "no type" }))), @"");
    insta::assert_snapshot!(check(&of(&json!({ "type": "text" }))), @"");
    insta::assert_snapshot!(check(&of(&json!({ "type": ["string", "null"] }))), @"");
    insta::assert_snapshot!(check(&of(&json!({ "type": "array" }))), @"");
    insta::assert_snapshot!(check(&of(&json!({ "type": "array", "items": {} }))), @"");
    insta::assert_snapshot!(check(&of(&json!({ "type": "array", "items": [{}] }))), @"");
    insta::assert_snapshot!(check(&of(&json!("string"))), @"");
}

#[test]
fn forbidden_keywords_are_named() {
    insta::assert_snapshot!(check(&of(&json!({
        "type": "object", "$ref": "#/a", "definitions": { "a": {} }, "dependencies": {},
        "patternProperties": { "a": {} }, "id": "a", "uniqueItems": true,
        "x-kubernetes-preserve-unknown-fields": false,
    }))), @"");
    insta::assert_snapshot!(check(&json!({ "type": "object", "additionalProperties": false })), @"");
    insta::assert_snapshot!(check(&of(&json!({
        "type": "object", "properties": { "b": { "type": "string" } },
        "additionalProperties": false,
    }))), @"");
}

#[test]
fn conditions_restrict_and_do_not_describe() {
    insta::assert_snapshot!(check(&of(&json!({
        "type": "object",
        "anyOf": [{ "type": "object", "description": "d", "default": {}, "nullable": true }],
        "oneOf": [{ "additionalProperties": { "type": "string" } }],
        "not": { "properties": { "b": { "type": "string" } } },
    }))), @"");
    insta::assert_snapshot!(check(&json!({
        "type": "object", "properties": { "metadata": { "type": "object" } },
        "allOf": [{ "properties": { "metadata": { "maxProperties": 1 } } }],
    })), @"");
    insta::assert_snapshot!(check(&json!({
        "type": "object", "properties": { "a": { "type": "string" } },
        "anyOf": [{ "items": { "pattern": "a" }, "properties": { "a": {}, "b": {} } }],
    })), @"");
}

#[test]
fn lists_that_merge_know_their_keys() {
    let list = |extra: Json, items: Json| {
        let mut schema = json!({ "type": "array", "items": items });
        for (key, value) in extra.as_object().unwrap() {
            schema[key] = value.clone();
        }
        check(&of(&schema))
    };
    let item = json!({ "type": "object", "properties": { "k": { "type": "string" } } });
    let map = json!({ "x-kubernetes-list-type": "map" });
    insta::assert_snapshot!(list(map, item.clone()), @"");
    let keys =
        json!({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "k", "l"] });
    insta::assert_snapshot!(list(keys.clone(), item.clone()), @"");
    insta::assert_snapshot!(list(keys, json!({ "type": "string" })), @"");
    let set = json!({ "x-kubernetes-list-type": "set" });
    insta::assert_snapshot!(list(set, item.clone()), @"");
    insta::assert_snapshot!(list(json!({ "x-kubernetes-list-type": "bag" }), item.clone()), @"");
    insta::assert_snapshot!(list(json!({ "x-kubernetes-list-map-keys": ["k"] }), item), @"");
    insta::assert_snapshot!(check(&of(&json!({
        "type": "object", "x-kubernetes-list-type": "set", "x-kubernetes-map-type": "loose",
    }))), @"");
}

#[test]
fn metadata_belongs_to_kubernetes() {
    insta::assert_snapshot!(check(&json!({ "type": "object", "properties": {
        "apiVersion": { "type": "integer" }, "kind": { "type": "string", "default": "A" },
        "metadata": { "type": "object", "description": "d",
            "properties": { "labels": { "type": "object" } } },
    } })), @"");
}

#[test]
fn extensions_fit_together() {
    insta::assert_snapshot!(check(&of(&json!({
        "x-kubernetes-int-or-string": true, "x-kubernetes-preserve-unknown-fields": true,
    }))), @"");
    insta::assert_snapshot!(check(&of(&json!({
        "type": "object", "x-kubernetes-embedded-resource": true,
    }))), @"");
    insta::assert_snapshot!(check(&of(&json!({
        "type": "string",
        "x-kubernetes-validations": [{ "message": "m" }, { "rule": "a\nb" }],
    }))), @"");
}
