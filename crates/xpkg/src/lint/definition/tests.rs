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
    insta::assert_snapshot!(check(&json!({})), @"0:9 crd-schema: schema.type: Required value: must not be empty at the root (set type: object)");
    insta::assert_snapshot!(check(&json!({ "type": "array", "items": { "type": "string" } })), @r#"1:17 crd-schema: schema.type: Invalid value: "array": must be object at the root (set type: object)"#);
    insta::assert_snapshot!(check(&of(&json!({ "description": "no type" }))), @"3:13 crd-schema: schema.properties[a].type: Required value: must not be empty for specified object fields (every property and item of a structural schema has a type)");
    insta::assert_snapshot!(check(&of(&json!({ "type": "text" }))), @r#"4:21 crd-schema: schema.properties[a].type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string" (write one of the supported values)"#);
    insta::assert_snapshot!(check(&of(&json!({ "type": ["string", "null"] }))), @"5:17 object-type: schema.properties.a.type is of type sequence, not string (quote the value to make it a string)");
    insta::assert_snapshot!(check(&of(&json!({ "type": "array" }))), @"3:13 crd-schema: schema.properties[a].items: Required value: must be specified (add items)");
    insta::assert_snapshot!(check(&of(&json!({ "type": "array", "items": {} }))), @"5:15 crd-schema: schema.properties[a].items.type: Required value: must not be empty for specified array items (every property and item of a structural schema has a type)");
    insta::assert_snapshot!(check(&of(&json!({ "type": "array", "items": [{}] }))), @"5:15 crd-schema: schema.properties[a].items: Forbidden: items must be a schema object and not an array (write one schema that all items have)");
    insta::assert_snapshot!(check(&of(&json!("string"))), @"3:16 object-type: schema.properties.a is of type string, not mapping (write it as a mapping; Crossplane cannot read it otherwise)");
}

#[test]
fn forbidden_keywords_are_named() {
    insta::assert_snapshot!(check(&of(&json!({
        "type": "object", "$ref": "#/a", "definitions": { "a": {} }, "dependencies": {},
        "patternProperties": { "a": {} }, "id": "a", "uniqueItems": true,
        "x-kubernetes-preserve-unknown-fields": false,
    }))), @"
    11:19 crd-schema: schema.properties[a].id: Forbidden: id is not supported (remove id)
    9:15 crd-schema: schema.properties[a].patternProperties: Forbidden: patternProperties is not supported (remove patternProperties)
    6:15 crd-schema: schema.properties[a].definitions: Forbidden: definitions is not supported (remove definitions)
    8:15 crd-schema: schema.properties[a].dependencies: Forbidden: dependencies is not supported (remove dependencies)
    5:21 crd-schema: schema.properties[a].$ref: Forbidden: $ref is not supported (write the schema in place)
    12:28 crd-schema: schema.properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic (use x-kubernetes-list-type: set)
    13:53 crd-schema: schema.properties[a].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined (an API server refuses the definition as it is)
    ");
    insta::assert_snapshot!(check(&json!({ "type": "object", "additionalProperties": false })), @"2:33 crd-schema: schema.additionalProperties: Forbidden: must not be used at the root (remove additionalProperties)");
    insta::assert_snapshot!(check(&of(&json!({
        "type": "object", "properties": { "b": { "type": "string" } },
        "additionalProperties": false,
    }))), @"8:37 crd-schema: schema.properties[a].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive (an object has either known fields or keys of its user's choice)");
}

#[test]
fn conditions_restrict_and_do_not_describe() {
    insta::assert_snapshot!(check(&of(&json!({
        "type": "object",
        "anyOf": [{ "type": "object", "description": "d", "default": {}, "nullable": true }],
        "oneOf": [{ "additionalProperties": { "type": "string" } }],
        "not": { "properties": { "b": { "type": "string" } } },
    }))), @"
    8:19 crd-default: schema.properties[a].anyOf[0].default: Forbidden: must be undefined to be structural (describe values outside of allOf, anyOf, oneOf and not)
    7:32 crd-schema: schema.properties[a].anyOf[0].description: Forbidden: must be empty to be structural (describe values outside of allOf, anyOf, oneOf and not)
    9:29 crd-schema: schema.properties[a].anyOf[0].nullable: Forbidden: must be false to be structural (describe values outside of allOf, anyOf, oneOf and not)
    6:25 crd-schema: schema.properties[a].anyOf[0].type: Forbidden: must be empty to be structural (describe values outside of allOf, anyOf, oneOf and not)
    16:27 crd-schema: schema.properties[a].not.properties[b].type: Forbidden: must be empty to be structural (describe values outside of allOf, anyOf, oneOf and not)
    11:19 crd-schema: schema.properties[a].oneOf[0].additionalProperties: Forbidden: must be undefined to be structural (describe values outside of allOf, anyOf, oneOf and not)
    ");
    insta::assert_snapshot!(check(&json!({
        "type": "object", "properties": { "metadata": { "type": "object" } },
        "allOf": [{ "properties": { "metadata": { "maxProperties": 1 } } }],
    })), @"7:17 crd-schema: schema.allOf[0].properties[metadata]: Forbidden: must not be specified in a nested context (describe values outside of allOf, anyOf, oneOf and not)");
    insta::assert_snapshot!(check(&json!({
        "type": "object", "properties": { "a": { "type": "string" } },
        "anyOf": [{ "items": { "pattern": "a" }, "properties": { "a": {}, "b": {} } }],
    })), @"
    0:9 crd-schema: schema.items: Required value: because it is defined in schema.anyOf[0].items (add it to the schema that has the condition)
    2:11 crd-schema: schema.properties[b]: Required value: because it is defined in schema.anyOf[0].properties[b] (add it to the schema that has the condition)
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
    insta::assert_snapshot!(list(map, item.clone()), @"3:13 crd-schema: schema.properties[a].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map (add x-kubernetes-list-map-keys)");
    let keys =
        json!({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "k", "l"] });
    insta::assert_snapshot!(list(keys.clone(), item.clone()), @"
    11:15 crd-schema: schema.properties[a].x-kubernetes-list-map-keys: Invalid value: must not contain duplicate entries (an API server refuses the definition as it is)
    11:15 crd-schema: schema.properties[a].x-kubernetes-list-map-keys: Invalid value: entries must all be names of item properties (an API server refuses the definition as it is)
    8:19 crd-default: schema.properties[a].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property (add default)
    ");
    insta::assert_snapshot!(list(keys, json!({ "type": "string" })), @r#"6:23 crd-schema: schema.properties[a].items.type: Invalid value: "string": must be object if parent array's x-kubernetes-list-type is map (an API server refuses the definition as it is)"#);
    let set = json!({ "x-kubernetes-list-type": "set" });
    insta::assert_snapshot!(list(set, item.clone()), @"5:15 crd-schema: schema.properties[a].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set (an API server refuses the definition as it is)");
    insta::assert_snapshot!(list(json!({ "x-kubernetes-list-type": "bag" }), item.clone()), @r#"10:39 crd-schema: schema.properties[a].x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map" (write one of the supported values)"#);
    insta::assert_snapshot!(list(json!({ "x-kubernetes-list-map-keys": ["k"] }), item), @"3:13 crd-schema: schema.properties[a].x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty (add x-kubernetes-list-type)");
    insta::assert_snapshot!(check(&of(&json!({
        "type": "object", "x-kubernetes-list-type": "set", "x-kubernetes-map-type": "loose",
    }))), @r#"
    6:38 crd-schema: schema.properties[a].x-kubernetes-map-type: Unsupported value: "loose": supported values: "atomic", "granular" (write one of the supported values)
    4:21 crd-schema: schema.properties[a].type: Invalid value: "object": must be array if x-kubernetes-list-type is specified (an API server refuses the definition as it is)
    "#);
}

#[test]
fn metadata_belongs_to_kubernetes() {
    insta::assert_snapshot!(check(&json!({ "type": "object", "properties": {
        "apiVersion": { "type": "integer" }, "kind": { "type": "string", "default": "A" },
        "metadata": { "type": "object", "description": "d",
            "properties": { "labels": { "type": "object" } } },
    } })), @r#"
    4:21 crd-schema: schema.properties[apiVersion].type: Invalid value: "integer": must be string (an API server refuses the definition as it is)
    8:13 crd-schema: schema.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified (Kubernetes defines the rest of metadata)
    7:24 crd-default: schema.properties[kind].default: Forbidden: must not be set in top-level kind (Kubernetes fills in apiVersion, kind and metadata)
    "#);
}

#[test]
fn extensions_fit_together() {
    insta::assert_snapshot!(check(&of(&json!({
        "x-kubernetes-int-or-string": true, "x-kubernetes-preserve-unknown-fields": true,
    }))), @"5:53 crd-schema: schema.properties[a].x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if x-kubernetes-int-or-string is true (an API server refuses the definition as it is)");
    insta::assert_snapshot!(check(&of(&json!({
        "type": "object", "x-kubernetes-embedded-resource": true,
    }))), @"3:13 crd-schema: schema.properties[a].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields (set x-kubernetes-preserve-unknown-fields: true)");
    insta::assert_snapshot!(check(&of(&json!({
        "type": "string",
        "x-kubernetes-validations": [{ "message": "m" }, { "rule": "a\nb" }],
    }))), @"
    6:19 crd-expression: schema.properties[a].x-kubernetes-validations[0].rule: Required value: rule is not specified (add rule)
    7:19 crd-expression: schema.properties[a].x-kubernetes-validations[1].message: Required value: message must be specified if rule contains line breaks (add a message in one line)
    ");
}
