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
    insta::assert_snapshot!(check(&json!({})), @"1:1: openAPIV3Schema has no type (every property and item of a structural schema has a type)");
    insta::assert_snapshot!(check(&json!({ "type": "array", "items": { "type": "string" } })), @"1:7: openAPIV3Schema must be of type object at the root");
    insta::assert_snapshot!(check(&of(&json!({ "description": "no type" }))), @"4:5: openAPIV3Schema.properties.a has no type (every property and item of a structural schema has a type)");
    insta::assert_snapshot!(check(&of(&json!({ "type": "text" }))), @"4:11: openAPIV3Schema.properties.a has an unknown type (write one of array, boolean, integer, number, object, string; nullable: true allows null)");
    insta::assert_snapshot!(check(&of(&json!({ "type": ["string", "null"] }))), @"5:7: openAPIV3Schema.properties.a has an unknown type (write one of array, boolean, integer, number, object, string; nullable: true allows null)");
    insta::assert_snapshot!(check(&of(&json!({ "type": "array" }))), @"4:5: openAPIV3Schema.properties.a is an array without items");
    insta::assert_snapshot!(check(&of(&json!({ "type": "array", "items": {} }))), @"5:12: openAPIV3Schema.properties.a.items has no type (every property and item of a structural schema has a type)");
    insta::assert_snapshot!(check(&of(&json!({ "type": "array", "items": [{}] }))), @"6:7: openAPIV3Schema.properties.a has a list of items; only one schema is allowed");
    insta::assert_snapshot!(check(&of(&json!("string"))), @"3:6: openAPIV3Schema.properties.a is not a schema");
}

#[test]
fn forbidden_keywords_are_named() {
    insta::assert_snapshot!(check(&of(&json!({
        "type": "object", "$ref": "#/a", "definitions": { "a": {} }, "dependencies": {},
        "patternProperties": { "a": {} }, "id": "a", "uniqueItems": true,
        "x-kubernetes-preserve-unknown-fields": false,
    }))), @"
    5:5: openAPIV3Schema.properties.a must not use $ref (write the schema in place)
    6:5: openAPIV3Schema.properties.a must not use definitions
    8:5: openAPIV3Schema.properties.a must not use dependencies
    9:5: openAPIV3Schema.properties.a must not use patternProperties
    11:5: openAPIV3Schema.properties.a must not use id
    12:5: openAPIV3Schema.properties.a must not set uniqueItems (use x-kubernetes-list-type: set)
    13:5: openAPIV3Schema.properties.a may only set x-kubernetes-preserve-unknown-fields to true
    ");
    insta::assert_snapshot!(check(&json!({ "type": "object", "additionalProperties": false })), @"2:1: openAPIV3Schema must not use additionalProperties at the root");
    insta::assert_snapshot!(check(&of(&json!({
        "type": "object", "properties": { "b": { "type": "string" } },
        "additionalProperties": false,
    }))), @"8:5: openAPIV3Schema.properties.a has both properties and additionalProperties (an object has either known fields or keys of its user's choice)");
}

#[test]
fn conditions_restrict_and_do_not_describe() {
    insta::assert_snapshot!(check(&of(&json!({
        "type": "object",
        "anyOf": [{ "type": "object", "description": "d", "default": {}, "nullable": true }],
        "oneOf": [{ "additionalProperties": { "type": "string" } }],
        "not": { "properties": { "b": { "type": "string" } } },
    }))), @"
    6:9: openAPIV3Schema.properties.a.anyOf[0] must not have type inside a condition (describe values outside of allOf, anyOf, oneOf and not)
    7:9: openAPIV3Schema.properties.a.anyOf[0] must not have description inside a condition (describe values outside of allOf, anyOf, oneOf and not)
    8:9: openAPIV3Schema.properties.a.anyOf[0] must not have default inside a condition (describe values outside of allOf, anyOf, oneOf and not)
    9:9: openAPIV3Schema.properties.a.anyOf[0] must not have nullable inside a condition (describe values outside of allOf, anyOf, oneOf and not)
    11:9: openAPIV3Schema.properties.a.oneOf[0] must not have additionalProperties inside a condition (describe values outside of allOf, anyOf, oneOf and not)
    16:11: openAPIV3Schema.properties.a.not.properties.b must not have type inside a condition (describe values outside of allOf, anyOf, oneOf and not)
    ");
    insta::assert_snapshot!(check(&json!({
        "type": "object", "properties": { "metadata": { "type": "object" } },
        "allOf": [{ "properties": { "metadata": { "maxProperties": 1 } } }],
    })), @"7:7: openAPIV3Schema.allOf[0].properties.metadata must not be restricted inside a condition");
    insta::assert_snapshot!(check(&json!({
        "type": "object", "properties": { "a": { "type": "string" } },
        "anyOf": [{ "items": { "pattern": "a" }, "properties": { "a": {}, "b": {} } }],
    })), @"
    10:7: openAPIV3Schema.anyOf[0].properties.b is restricted by a condition but not described outside (add it to the properties of the schema that has the condition)
    7:7: openAPIV3Schema.anyOf[0].items is restricted by a condition but not described outside
    ");
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
    insta::assert_snapshot!(list(map, item.clone()), @"10:29: openAPIV3Schema.properties.a is a list of type map without x-kubernetes-list-map-keys");
    let keys =
        json!({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "k", "l"] });
    insta::assert_snapshot!(list(keys.clone(), item.clone()), @r#"
    12:9: openAPIV3Schema.properties.a has list map key "k", which is neither required nor defaulted
    13:9: openAPIV3Schema.properties.a names a list map key twice
    14:9: openAPIV3Schema.properties.a has list map key "l", which its items do not have
    "#);
    insta::assert_snapshot!(list(keys, json!({ "type": "string" })), @"7:29: openAPIV3Schema.properties.a.items must be of type object in a list of type map");
    let set = json!({ "x-kubernetes-list-type": "set" });
    insta::assert_snapshot!(list(set, item.clone()), @"6:7: openAPIV3Schema.properties.a.items must be atomic to be in a set");
    insta::assert_snapshot!(list(json!({ "x-kubernetes-list-type": "bag" }), item.clone()), @"10:29: openAPIV3Schema.properties.a has an unknown x-kubernetes-list-type (write atomic, set or map)");
    insta::assert_snapshot!(list(json!({ "x-kubernetes-list-map-keys": ["k"] }), item), @"4:5: openAPIV3Schema.properties.a has x-kubernetes-list-map-keys without x-kubernetes-list-type: map");
    insta::assert_snapshot!(check(&of(&json!({
        "type": "object", "x-kubernetes-list-type": "set", "x-kubernetes-map-type": "loose",
    }))), @"
    6:28: openAPIV3Schema.properties.a has an unknown x-kubernetes-map-type (write atomic or granular)
    5:29: openAPIV3Schema.properties.a has x-kubernetes-list-type but is not an array
    ");
}

#[test]
fn metadata_belongs_to_kubernetes() {
    insta::assert_snapshot!(check(&json!({ "type": "object", "properties": {
        "apiVersion": { "type": "integer" }, "kind": { "type": "string", "default": "A" },
        "metadata": { "type": "object", "description": "d",
            "properties": { "labels": { "type": "object" } } },
    } })), @"
    4:11: openAPIV3Schema.properties.apiVersion must be of type string
    7:5: openAPIV3Schema.properties.kind must not have a default
    10:5: openAPIV3Schema.properties.metadata may only restrict name and generateName (Kubernetes defines the rest of metadata)
    11:5: openAPIV3Schema.properties.metadata may only restrict name and generateName (Kubernetes defines the rest of metadata)
    ");
}

#[test]
fn extensions_fit_together() {
    insta::assert_snapshot!(check(&of(&json!({
        "x-kubernetes-int-or-string": true, "x-kubernetes-preserve-unknown-fields": true,
    }))), @"5:5: openAPIV3Schema.properties.a must not combine x-kubernetes-preserve-unknown-fields with x-kubernetes-int-or-string");
    insta::assert_snapshot!(check(&of(&json!({
        "type": "object", "x-kubernetes-embedded-resource": true,
    }))), @"5:5: openAPIV3Schema.properties.a embeds a resource but says nothing about its fields (set x-kubernetes-preserve-unknown-fields: true)");
    insta::assert_snapshot!(check(&of(&json!({
        "type": "string",
        "x-kubernetes-validations": [{ "message": "m" }, { "rule": "a\nb" }],
    }))), @"
    6:9: openAPIV3Schema.properties.a has an x-kubernetes-validations item without rule
    7:9: openAPIV3Schema.properties.a has a validation rule of several lines, which needs a message
    ");
}
