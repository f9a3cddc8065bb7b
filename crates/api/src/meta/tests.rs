//! Each dialect, read, returned and converted.

use super::fields::Place;
use super::*;
use serde_json::json;

fn meta(document: &Json) -> Meta {
    Meta::from_json(document).unwrap()
}

/// The exhaustive example of the first format, with a stranger at every level.
fn first() -> Json {
    json!({
        "apiVersion": "meta.pkg.ibm.crossplane.io/v1alpha1",
        "kind": "Provider",
        "metadata": {
            "name": "provider-example",
            "annotations": { "license": "Apache-2.0", "company": "Upbound" },
            "stranger": 1,
        },
        "spec": {
            "controller": { "image": "example/provider-example:v0.1.0", "stranger": [2] },
            "crossplane": "v0.13.0",
            "dependsOn": [
                { "provider": "example/provider-uncommon", "version": "v0.1.0", "stranger": {} },
            ],
            "permissionRequests": [{
                "apiGroups": ["otherpackage.example.com"],
                "resources": ["otherresource", "otherresource/status"],
                "verbs": ["*"],
                "stranger": true,
            }],
            "stranger": { "a": null },
        },
        "stranger": "x",
    })
}

#[test]
fn the_first_format_is_read() {
    let meta = meta(&first());
    assert_eq!((meta.kind(), meta.dialect()), (PackageKind::Provider, Dialect::First));
    assert_eq!(meta.name(), "provider-example");
    assert_eq!(meta.crossplane(), Some("v0.13.0"));
    assert_eq!(meta.image(), Some("example/provider-example:v0.1.0"));
    assert_eq!(meta.license(), Some("Apache-2.0"));
    assert_eq!(meta.permission_requests()[0].verbs, ["*"]);
    let dependency = &meta.dependencies()[0];
    assert_eq!(dependency.version, "v0.1.0");
    let target = dependency.target.as_ref().unwrap();
    assert_eq!(target.package, "example/provider-uncommon");
    assert_eq!(target.package_kind(), Some(PackageKind::Provider));
}

#[test]
fn the_first_format_becomes_v1_without_loss() {
    let converted = meta(&first()).to_v1();
    assert_eq!(
        converted,
        json!({
            "apiVersion": "meta.pkg.crossplane.io/v1",
            "kind": "Provider",
            "metadata": {
                "name": "provider-example",
                "annotations": { "license": "Apache-2.0", "company": "Upbound" },
                "stranger": 1,
            },
            "spec": {
                "controller": {
                    "image": "example/provider-example:v0.1.0",
                    "stranger": [2],
                    "permissionRequests": [{
                        "apiGroups": ["otherpackage.example.com"],
                        "resources": ["otherresource", "otherresource/status"],
                        "verbs": ["*"],
                        "stranger": true,
                    }],
                },
                "crossplane": { "version": "v0.13.0" },
                "dependsOn": [
                    { "provider": "example/provider-uncommon", "version": "v0.1.0", "stranger": {} },
                ],
                "stranger": { "a": null },
            },
            "stranger": "x",
        })
    );
    // The converted document means the same.
    let (before, after) = (meta(&first()), meta(&converted));
    assert_eq!(before.crossplane(), after.crossplane());
    // Except that versions are constraints from then on, of which a complete one is the same.
    let untagged = |one: &Dependency| Dependency { is_tag: false, ..one.clone() };
    let needed: Vec<Dependency> = before.dependencies().iter().map(untagged).collect();
    assert_eq!(needed, after.dependencies());
    assert_eq!(before.permission_requests(), after.permission_requests());
    assert_eq!(before.image(), after.image());
}

#[test]
fn rules_of_both_places_are_kept() {
    let mut document = first();
    let inside = json!([{ "verbs": ["get"] }]);
    document["spec"]["controller"]["permissionRequests"] = inside;
    let meta = meta(&document);
    let verbs = |meta: &Meta| -> Vec<_> {
        meta.permission_requests().iter().flat_map(|rule| rule.verbs.clone()).collect()
    };
    assert_eq!(verbs(&meta), ["get", "*"]);
    assert_eq!(verbs(&Meta::from_json(&meta.to_v1()).unwrap()), ["get", "*"]);
}

#[test]
fn every_registered_dialect_comes_back_as_it_came() {
    for dialect in Dialect::ALL {
        for kind in dialect.kinds() {
            let mut document = first();
            document["apiVersion"] = json!(dialect.api_version());
            document["kind"] = json!(kind.as_str());
            if dialect != Dialect::First {
                document["spec"]["crossplane"] = json!({ "version": ">=v1.0.0", "stranger": 0 });
            }
            let meta = meta(&document);
            assert_eq!(meta.to_json(), document);
            assert_eq!(meta.to_json().to_string(), document.to_string(), "key order too");
            if dialect != Dialect::First {
                document["apiVersion"] = json!("meta.pkg.crossplane.io/v1");
                assert_eq!(meta.to_v1().to_string(), document.to_string());
            }
        }
    }
}

#[test]
fn pairs_that_look_plausible_are_refused() {
    let check = |api_version, kind, expect| {
        assert_eq!(registered(api_version, kind).is_some(), expect, "{api_version} {kind}");
    };
    check("meta.pkg.crossplane.io/v1", "Function", true);
    check("meta.pkg.crossplane.io/v1beta1", "Function", true);
    check("meta.pkg.crossplane.io/v1alpha1", "Function", false);
    check("meta.pkg.crossplane.io/v1beta1", "Provider", false);
    check("meta.pkg.ibm.crossplane.io/v1alpha1", "Configuration", true);
    check("meta.pkg.ibm.crossplane.io/v1", "Configuration", false);
    check("pkg.crossplane.io/v1", "Provider", false);
    assert!(is_meta_group("meta.pkg.crossplane.io/v9"));
    assert!(!is_meta_group("meta.pkg.crossplane.io"));
    assert!(!is_meta_group("pkg.crossplane.io/v1"));
}

#[test]
fn a_wrong_type_is_named_by_its_path() {
    let check = |pointer: &str, value: Json, expect: &str| {
        let mut document = first();
        *document.pointer_mut(pointer).unwrap() = value;
        assert_eq!(Meta::from_json(&document).unwrap_err().to_string(), expect);
    };
    check(
        "/spec/dependsOn/0/version",
        json!(1),
        "spec.dependsOn[0].version must be a string, not a number",
    );
    check("/spec/dependsOn", json!({}), "spec.dependsOn must be a list, not a mapping");
    check("/spec", json!("x"), "spec must be a mapping, not a string");
    check("/spec/crossplane", json!([]), "spec.crossplane must be a mapping, not a list");
    check("/metadata/name", json!(true), "metadata.name must be a string, not a boolean");
    check(
        "/metadata/annotations",
        json!({ "a.b/c": 3 }),
        r#"metadata.annotations["a.b/c"] must be a string, not a number"#,
    );
    check(
        "/spec/permissionRequests/0/verbs",
        json!([4]),
        "spec.permissionRequests[0].verbs[0] must be a string, not a number",
    );
    check(
        "/kind",
        json!("Plugin"),
        "Plugin in meta.pkg.ibm.crossplane.io/v1alpha1 is not a kind of package metadata",
    );
    let not_a_mapping = Meta::from_json(&json!([])).unwrap_err().to_string();
    assert_eq!(not_a_mapping, "the document must be a mapping, not a list");
}

fn dependency(entry: &Json) -> Dependency {
    let document = json!({
        "apiVersion": "meta.pkg.crossplane.io/v1",
        "kind": "Configuration",
        "spec": { "dependsOn": [entry] },
    });
    meta(&document).dependencies()[0].clone()
}

#[test]
fn the_explicit_triple_wins_then_configuration_provider_function() {
    let triple = json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": "Function", "package": "a",
        "provider": "b", "function": "c", "configuration": "d", "version": "*",
    });
    let mut entry = triple.clone();
    let mut winner = |removed: Option<&str>| {
        if let Some(key) = removed {
            entry.as_object_mut().unwrap().remove(key);
        }
        let found = dependency(&entry);
        (found.target.map(|target| target.package), found.keys.len())
    };
    assert_eq!(winner(None), (Some("a".to_owned()), 6));
    assert_eq!(winner(Some("kind")), (Some("d".to_owned()), 5));
    assert_eq!(winner(Some("configuration")), (Some("b".to_owned()), 4));
    assert_eq!(winner(Some("provider")), (Some("c".to_owned()), 3));
    assert_eq!(winner(Some("function")), (None, 2));

    let whole = dependency(&triple);
    assert_eq!(whole.ignored_keys(), ["configuration", "provider", "function"]);
    assert!(whole.missing_keys().is_empty());
    assert_eq!(whole.target.unwrap().package_kind(), Some(PackageKind::Function));
    let partial = dependency(&json!({ "package": "a", "provider": "b", "function": "c" }));
    assert_eq!(partial.missing_keys(), ["apiVersion", "kind"]);
    assert_eq!(partial.ignored_keys(), ["function"]);
}

#[test]
fn a_dependency_may_name_a_kind_instead_of_a_package() {
    let by_key = dependency(&json!({ "crd": "buckets.s3.example.org/v1beta1" }));
    let target = by_key.target.as_ref().unwrap();
    assert_eq!((target.kind.clone(), by_key.version.as_str()), (TargetKind::Crd, ""));
    assert_eq!(target.package_kind(), None);
    let kind = target.crd().unwrap().unwrap();
    assert_eq!(kind.to_string(), "buckets.s3.example.org/v1beta1");

    let triple = |api_version: &str, package: &str| {
        let kind = "CustomResourceDefinition";
        dependency(&json!({ "apiVersion": api_version, "kind": kind, "package": package }))
    };
    let found = triple("apiextensions.k8s.io/v1", "buckets.s3.example.org").target.unwrap();
    assert_eq!(found.crd().unwrap().unwrap().bare(), "buckets.s3.example.org");
    assert!(triple("example.org/v1", "buckets.s3.example.org").target.unwrap().crd().is_none());
    let broken = triple("apiextensions.k8s.io/v1", "buckets").target.unwrap();
    assert!(broken.crd().unwrap().is_err());

    let both = dependency(&json!({ "crd": "a.b.c", "provider": "example.org/p" }));
    assert_eq!(both.ignored_keys(), ["crd"]);
    assert_eq!(both.target.unwrap().package, "example.org/p", "as readers that do not know it");
    assert!(dependency(&json!({ "provider": "example.org/p" })).target.unwrap().crd().is_none());
}

#[test]
fn missing_capabilities_are_not_an_empty_list() {
    let read = |kind: &str, capabilities: Json| {
        meta(&json!({
            "apiVersion": "meta.pkg.crossplane.io/v1", "kind": kind,
            "spec": { "capabilities": capabilities },
        }))
    };
    let function = read("Function", Json::Null);
    assert!(function.capabilities().is_none() && function.has_capability("Composition"));
    assert!(!read("Function", json!([])).has_capability("composition"));
    assert!(!read("Provider", Json::Null).has_capability("composition"));
    let provider = read("Provider", json!(["SafeStart"]));
    assert!(provider.has_capability(capability::SAFE_START));
    assert!(provider.has_capability("safe start") && !provider.has_capability("safe"));
}

#[test]
fn specified_annotations_are_honoured_over_bare_ones() {
    let meta = meta(&json!({
        "apiVersion": "meta.pkg.crossplane.io/v1",
        "kind": "Function",
        "metadata": {
            "annotations": {
                "source": "bare", "meta.crossplane.io/source": "specified", "readme": "r",
                "meta.crossplane.io/maintainer": "m", "description": "d",
            },
        },
        "spec": { "image": "runtime:v1" },
    }));
    assert_eq!(meta.source(), Some("specified"));
    assert_eq!(meta.readme(), Some("r"));
    assert_eq!(meta.maintainer(), Some("m"));
    assert_eq!(meta.description(), Some("d"));
    assert_eq!(meta.license(), None);
    assert_eq!(meta.image(), Some("runtime:v1"));
    assert_eq!((meta.name(), meta.crossplane()), ("", None));
}

#[test]
fn a_constraint_that_says_nothing_is_empty_not_absent() {
    let read = |crossplane: Json| {
        let document = json!({
            "apiVersion": "meta.pkg.crossplane.io/v1", "kind": "Provider",
            "spec": { "crossplane": crossplane },
        });
        meta(&document).crossplane().map(str::to_owned)
    };
    assert_eq!(read(json!({})), Some(String::new()));
    assert_eq!(read(Json::Null), None);
    assert_eq!(read(json!({ "version": ">=v1" })), Some(">=v1".to_owned()));
}

#[test]
fn known_fields_follow_the_dialect() {
    let spec = |dialect, kind| fields::known(dialect, kind, Place::Spec);
    assert!(spec(Dialect::First, PackageKind::Provider).contains(&"permissionRequests"));
    assert!(!spec(Dialect::V1, PackageKind::Provider).contains(&"permissionRequests"));
    assert!(spec(Dialect::V1Beta1, PackageKind::Function).contains(&"image"));
}
