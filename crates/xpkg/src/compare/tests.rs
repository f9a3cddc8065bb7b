//! One table of pairs, each with what is said about it.

use super::{Comparison, Contents, Severity, compare};
use crate::Limits;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

const META: &str = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\n";

fn package(documents: &[Json]) -> Contents {
    let meta = format!("{META}metadata: {{name: c}}\n");
    let objects = documents.iter().map(|document| format!("---\n{document}\n"));
    let text: String = std::iter::once(meta).chain(objects).collect();
    Contents::read(text.as_bytes(), &Limits::default()).unwrap()
}

fn with_metadata(rest: &str) -> Contents {
    let text = format!("{META}metadata: {{name: c}}\nspec: {rest}\n");
    Contents::read(text.as_bytes(), &Limits::default()).unwrap()
}

fn definition(schema: &Json) -> Json {
    let version = json!({"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": schema}});
    with_versions(&json!([version]))
}

fn with_versions(versions: &Json) -> Json {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"}, "versions": versions},
    })
}

fn lines(comparison: &Comparison) -> Vec<String> {
    let changes = comparison.changes.iter();
    changes
        .map(|one| format!("{} {} {}: {}", one.severity, one.rule, one.path, one.message))
        .collect()
}

fn of_definitions(old: &Json, new: &Json) -> Vec<String> {
    lines(&compare(&package(std::slice::from_ref(old)), &package(std::slice::from_ref(new))))
}

/// What is said of a field `spec.a` that had one schema and gets another.
fn of_field(old: &Json, new: &Json) -> Vec<String> {
    let within = |schema: &Json| {
        definition(&json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"a": schema}}}}))
    };
    of_definitions(&within(old), &within(new))
}

/// What a field's schema was, what it becomes, and what is said about that.
const FIELDS: &str = r#"
{"type": "integer"} | {"type": "string"} | breaking type spec.a: type integer becomes string
{"type": "integer"} | {"type": "number"} | note type spec.a: type integer becomes number
{"type": "string"} | {"x-kubernetes-int-or-string": true} | note type spec.a: type string becomes int-or-string
{"x-kubernetes-preserve-unknown-fields": true} | {"type": "object", "x-kubernetes-preserve-unknown-fields": true} | breaking type spec.a: type any becomes object
{"type": "string", "enum": ["a", "b"]} | {"type": "string", "enum": ["b"]} | breaking enum spec.a: value "a" no longer allowed
{"type": "string", "enum": ["a"]} | {"type": "string", "enum": ["b", "a"]} | note enum spec.a: value "b" added
{"type": "string"} | {"type": "string", "enum": ["a", "b"]} | breaking enum spec.a: limited to "a", "b"
{"type": "string", "enum": ["a"]} | {"type": "string"} | note enum spec.a: no longer limited to some values
{"type": "integer", "minimum": 1} | {"type": "integer", "minimum": 2} | breaking bounds spec.a: minimum 1 becomes 2
{"type": "integer", "minimum": 2} | {"type": "integer", "minimum": 1} | note bounds spec.a: minimum 2 becomes 1
{"type": "string"} | {"type": "string", "maxLength": 9} | breaking bounds spec.a: maxLength 9 added
{"type": "string", "maxLength": 9} | {"type": "string", "maxLength": 8} | breaking bounds spec.a: maxLength 9 becomes 8
{"type": "number", "maximum": 1.5} | {"type": "number", "maximum": 2} | note bounds spec.a: maximum 1.5 becomes 2
{"type": "integer", "minimum": 1} | {"type": "integer", "minimum": 1, "exclusiveMinimum": true} | breaking bounds spec.a: exclusiveMinimum added
{"type": "string"} | {"type": "string", "pattern": "^a$"} | breaking pattern spec.a: pattern "^a$" added
{"type": "string", "pattern": "^a$"} | {"type": "string"} | note pattern spec.a: pattern "^a$" removed
{"type": "integer", "format": "int32"} | {"type": "integer", "format": "int64"} | note format spec.a: format "int32" becomes "int64"
{"type": "integer", "format": "int64"} | {"type": "integer", "format": "int32"} | breaking format spec.a: format "int64" becomes "int32"
{"type": "string", "nullable": true} | {"type": "string"} | breaking nullable spec.a: null no longer allowed
{"type": "object", "x-kubernetes-preserve-unknown-fields": true} | {"type": "object"} | breaking unknown-fields spec.a: unknown fields no longer kept
{"type": "string", "default": "x"} | {"type": "string", "default": "y"} | warning default spec.a: default "x" becomes "y"
{"type": "array", "items": {"type": "string"}} | {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"} | breaking merging spec.a: list-type atomic becomes set
{"type": "array", "items": {"type": "string"}} | {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"} | note description : described otherwise
{"type": "array", "items": {"type": "string"}} | {"type": "array", "items": {"type": "integer"}} | breaking type spec.a[]: type string becomes integer
{"type": "object", "additionalProperties": {"type": "string"}} | {"type": "object"} | breaking map-values spec.a: other keys no longer kept
{"type": "object", "additionalProperties": {"type": "string"}} | {"type": "object", "additionalProperties": {"type": "integer"}} | breaking type spec.a.*: type string becomes integer
{"type": "string"} | {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]} | breaking validation-rule spec.a: cannot be changed any more
{"type": "string"} | {"type": "string", "x-kubernetes-validations": [{"rule": "size(self) < 3"}]} | breaking validation-rule spec.a: rule added: size(self) < 3
{"type": "object", "oneOf": [{"required": ["x"]}, {"required": ["y"]}]} | {"type": "object", "oneOf": [{"required": ["x"]}]} | breaking logic spec.a: oneOf: 0 added, 1 removed
{"type": "string", "description": "one"} | {"type": "string", "description": "two"} | note description : described otherwise
"#;

#[test]
fn each_change_of_a_field_has_its_severity_and_words() {
    for row in FIELDS.trim().lines() {
        let [old, new, said] = row.split(" | ").collect::<Vec<_>>()[..] else { panic!("{row}") };
        let schema = |text: &str| -> Json { serde_json::from_str(text).unwrap() };
        assert_eq!(of_field(&schema(old), &schema(new)), [said], "{row}");
    }
}

#[test]
fn fields_that_come_and_go_are_told_with_what_they_demand() {
    let of = |spec: Json| definition(&json!({"type": "object", "properties": {"spec": spec}}));
    let old = of(json!({"type": "object", "required": ["kept"], "properties": {
        "kept": {"type": "string"}, "gone": {"type": "string"},
        "strict": {"type": "string"}, "eased": {"type": "string"}}}));
    let new = of(
        json!({"type": "object", "required": ["kept", "strict", "eased", "must"], "properties": {
        "kept": {"type": "string"}, "strict": {"type": "string"},
        "eased": {"type": "string", "default": "x"}, "must": {"type": "string"},
        "may": {"type": "object", "required": ["below"], "properties": {"below": {"type": "string"}}}}}),
    );
    assert_eq!(
        of_definitions(&old, &new),
        [
            "breaking field-added spec.must: added, and required",
            "breaking field-removed spec.gone: removed",
            "breaking required spec.strict: required",
            "warning default spec.eased: default \"x\" added",
            "note field-added spec.may: added",
            "note required spec.eased: required, with a default",
        ]
    );
}

#[test]
fn a_controller_may_demand_more_of_its_own_status() {
    let of =
        |status: Json| definition(&json!({"type": "object", "properties": {"status": status}}));
    let old = of(
        json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}),
    );
    let new =
        of(json!({"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}}));
    assert_eq!(
        of_definitions(&old, &new),
        ["breaking field-removed status.b: removed", "warning bounds status.a: maxLength 3 added",]
    );
}

#[test]
fn versions_are_told_by_what_is_served_and_stored() {
    let version = |name: &str, served: bool, storage: bool| {
        json!({"name": name, "served": served, "storage": storage, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object"}}})
    };
    let old = with_versions(&json!([
        version("v1alpha1", true, false),
        version("v1alpha2", false, false),
        version("v1beta1", true, true)
    ]));
    let mut new =
        with_versions(&json!([version("v1beta1", false, false), version("v1", true, true)]));
    new["spec"]["versions"][0]["subresources"] = Json::Null;
    new["spec"]["scope"] = json!("Cluster");
    let all = compare(&package(&[old]), &package(&[new]));
    let lines: Vec<String> = all
        .changes
        .iter()
        .map(|one| format!("{} {}: {}", one.severity, one.version, one.message))
        .collect();
    assert_eq!(
        lines,
        [
            "breaking : scope Namespaced becomes Cluster",
            "breaking v1alpha1: version removed",
            "breaking v1beta1: subresource status removed",
            "breaking v1beta1: version no longer served",
            "warning : storage version v1beta1 becomes v1",
            "warning v1alpha2: version removed, which was not served",
            "note v1: version added",
        ]
    );
    assert_eq!(all.count(Severity::Breaking), 4);
}

#[test]
fn definitions_of_v1beta1_are_compared_with_themselves_and_with_v1() {
    let fields = |names: &[&str]| {
        let all = names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"})));
        json!({"type": "object", "properties": all.collect::<serde_json::Map<_, _>>()})
    };
    let old_form = |names: &[&str]| {
        json!({"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.org"}, "spec": {"group": "example.org",
            "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"}, "version": "v1",
            "validation": {"openAPIV3Schema": fields(names)}}})
    };
    let gone = ["breaking field-removed b: removed"];
    assert_eq!(of_definitions(&old_form(&["a", "b"]), &old_form(&["a"])), gone);
    assert_eq!(of_definitions(&old_form(&["a", "b"]), &definition(&fields(&["a"]))), gone);
    let same = of_definitions(&old_form(&["a"]), &definition(&fields(&["a"])));
    assert_eq!(same, ["note description : described otherwise"]);
}

#[test]
fn composite_resources_lose_claims_and_keys() {
    let composite = |claims: Json, keys: Json| {
        json!({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
            "metadata": {"name": "xs.example.org"}, "spec": {"group": "example.org",
            "names": {"kind": "X", "plural": "xs"}, "claimNames": claims,
            "connectionSecretKeys": keys, "versions": []}})
    };
    let old = composite(json!({"kind": "C", "plural": "cs"}), json!(["host", "port"]));
    let mut new = composite(Json::Null, json!(["host", "user"]));
    new["apiVersion"] = json!("apiextensions.crossplane.io/v2");
    assert_eq!(
        of_definitions(&old, &new),
        [
            "breaking claim : claims (C) removed",
            "breaking connection-secret-key : connection secret key port removed",
            "breaking scope : scope LegacyCluster becomes Namespaced",
            "note connection-secret-key : connection secret key user added",
        ]
    );
}

#[test]
fn objects_come_and_go() {
    let composition = |name: &str, mode: &str| {
        json!({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
            "metadata": {"name": name}, "spec": {"mode": mode}})
    };
    let kind = definition(&json!({"type": "object"}));
    let old = package(&[kind, composition("a", "x"), composition("b", "x")]);
    let new = package(&[composition("b", "y"), composition("c", "x")]);
    let all = compare(&old, &new);
    let said: Vec<String> = all
        .changes
        .iter()
        .map(|one| format!("{} {} {}", one.severity, one.object.as_ref().unwrap(), one.message))
        .collect();
    assert_eq!(
        said,
        [
            "breaking widgets.example.org removed",
            "warning Composition a removed",
            "note Composition b changed",
            "note Composition c added",
        ]
    );
}

#[test]
fn metadata_is_told_by_what_it_needs_and_asks_for() {
    let old = with_metadata(
        "{crossplane: {version: '>=1.0'}, dependsOn: [{provider: r/a, version: '>=1'}, {provider: r/b, version: '>=1'}]}",
    );
    let new = with_metadata(
        "{dependsOn: [{provider: r/a, version: '>=2'}, {function: r/c, version: v1}]}",
    );
    assert_eq!(
        lines(&compare(&old, &new)),
        [
            "warning crossplane : crossplane version >=1.0 becomes any",
            "warning dependency : dependency on r/a >=1 becomes >=2",
            "warning dependency : depends on r/c v1",
            "note dependency : no longer depends on r/b",
        ]
    );
}

#[test]
fn the_order_of_keys_and_documents_does_not_count() {
    let one =
        definition(&json!({"type": "object", "properties": {"b": {"type": "string"}, "a": {}}}));
    let other =
        definition(&json!({"properties": {"a": {}, "b": {"type": "string"}}, "type": "object"}));
    let more = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
    let all = compare(&package(&[one, more.clone()]), &package(&[more, other]));
    assert_eq!(all, Comparison::default());
}

fn schemas() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "string", "maxLength": 5, "pattern": "^a"})),
        Just(json!({"type": "integer", "minimum": 1})),
        Just(json!({"type": "string", "enum": ["a", "b"], "default": "a"})),
        Just(json!({"x-kubernetes-int-or-string": true})),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            inner
                .clone()
                .prop_map(|values| json!({"type": "object", "additionalProperties": values})),
            proptest::collection::btree_map("[a-d]", inner, 0..4).prop_map(|fields| {
                let required: Vec<&String> = fields.keys().take(1).collect();
                json!({"type": "object", "properties": fields, "required": required})
            }),
        ]
    })
}

proptest! {
    /// Nothing is different from itself, and whatever is different is told.
    #[test]
    fn schemas_differ_exactly_if_something_is_told(old in schemas(), new in schemas()) {
        prop_assert_eq!(of_field(&old, &old), Vec::<String>::new());
        let said = of_field(&old, &new);
        prop_assert_eq!(old == new, said.is_empty(), "{:?}", said);
    }

    /// A field that is removed one way is added the other way, and so on: a change that breaks is
    /// never silent on the way back.
    #[test]
    fn what_changes_one_way_changes_back(old in schemas(), new in schemas()) {
        prop_assert_eq!(of_field(&old, &new).is_empty(), of_field(&new, &old).is_empty());
    }
}
