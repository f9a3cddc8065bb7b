//! Our definitions against upstream's, field by field.
//!
//! `testdata/upstream-crds.json` holds the definitions of Crossplane v2.3.4 without their words,
//! and without the schema of a Deployment's spec.

use super::{SUFFIX, definitions};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};

/// Where ours says something else, and why.
const DIFFERENCES: [(&str, &str); 8] = [
    (
        ".spec.package.x-kubernetes-validations",
        "references without a registry, and names in the package cache, are accepted",
    ),
    (".spec.required", "a package may be asked for by a kind that it brings"),
    (".spec.x-kubernetes-validations", "a package is asked for by its image or by a kind"),
    (".spec.revisionActivationPolicy.enum", "what is no policy is refused, not read as one"),
    (".spec.packagePullPolicy.enum", "what is no policy is refused, not read as one"),
    ("columns.RUNTIME", "its successors RUNTIME-HEALTHY and RUNTIME-ACTIVE say more"),
    ("columns.RUNTIME-HEALTHY", "as upstream's later versions"),
    ("columns.RUNTIME-ACTIVE", "as upstream's later versions"),
];

/// Fields that upstream does not have, or no longer.
const MORE: [&str; 20] = [
    "providers.spec.controllerConfigRef",
    "providerrevisions.spec.controllerConfigRef",
    "providers.spec.serviceAccount",
    "functions.spec.serviceAccount",
    "providerrevisions.spec.serviceAccount",
    "functionrevisions.spec.serviceAccount",
    "providerrevisions.status.controllerRef",
    "functionrevisions.status.controllerRef",
    "providerrevisions.status.permissionRequests",
    "configurationrevisions.status.permissionRequests",
    "functionrevisions.status.permissionRequests",
    "providers.spec.crd",
    "configurations.spec.crd",
    "functions.spec.crd",
    "locks.customResourceDefinitions",
    "locks.packages[].digest",
    "locks.packages[].dependencies[].broughtBy",
    "locks.packages[].dependencies[].digest",
    "locks.packages[].dependencies[].reason",
    "locks.compositions",
];

/// Versions of the packages' first specification that upstream serves no more.
const FIRST_VERSIONS: [(&str, &str); 5] = [
    ("providers", "v1beta1"),
    ("configurations", "v1beta1"),
    ("providerrevisions", "v1beta1"),
    ("configurationrevisions", "v1beta1"),
    ("locks", "v1alpha1"),
];

/// Everything a schema says, by path; words left out.
fn flatten(path: &str, schema: &Json, facts: &mut BTreeMap<String, Json>) {
    // A Deployment's spec is upstream's as it is; servers are held to it with objects.
    if path.ends_with(".spec.deploymentTemplate.spec") {
        return;
    }
    let Json::Object(fields) = schema else { return };
    for (key, value) in fields {
        match key.as_str() {
            "properties" => {
                for (name, property) in value.as_object().unwrap() {
                    flatten(&format!("{path}.{name}"), property, facts);
                }
            }
            "items" => flatten(&format!("{path}[]"), value, facts),
            "additionalProperties" => flatten(&format!("{path}{{}}"), value, facts),
            "description" => {}
            "required" => {
                let names: BTreeSet<&str> =
                    value.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
                facts.insert(format!("{path}.required"), json!(names));
            }
            _ => {
                facts.insert(format!("{path}.{key}"), value.clone());
            }
        }
    }
}

fn facts(definition: &Json) -> BTreeMap<String, Json> {
    let spec = &definition["spec"];
    let mut facts = BTreeMap::new();
    for key in ["group", "scope"] {
        facts.insert(key.to_owned(), spec[key].clone());
    }
    flatten("names", &spec["names"], &mut facts);
    for version in spec["versions"].as_array().unwrap() {
        let name = version["name"].as_str().unwrap();
        facts.insert(format!("{name} served"), version["served"].clone());
        facts.insert(format!("{name} storage"), version["storage"].clone());
        let status = version["subresources"].get("status").is_some();
        facts.insert(format!("{name} status"), json!(status));
        for column in version["additionalPrinterColumns"].as_array().unwrap() {
            let of = column["name"].as_str().unwrap();
            facts.insert(format!("{name} columns.{of}"), column.clone());
        }
        flatten(&format!("{name} "), &version["schema"]["openAPIV3Schema"], &mut facts);
    }
    facts
}

fn upstream() -> Vec<Json> {
    serde_json::from_str(include_str!("../../testdata/upstream-crds.json")).unwrap()
}

fn ours() -> BTreeMap<String, Json> {
    let all = definitions(SUFFIX).unwrap().into_iter();
    all.map(|one| (one["metadata"]["name"].as_str().unwrap().to_owned(), one)).collect()
}

/// Facts of one that the other does not have alike, those with a reason left out.
fn beyond(name: &str, one: &BTreeMap<String, Json>, other: &BTreeMap<String, Json>) -> Vec<String> {
    let excused = |path: &str| {
        let field = path.split_once(' ').map_or(path, |(_, field)| field);
        let short = name.split('.').next().unwrap();
        let version = path.split_once(' ').map_or("", |(version, _)| version);
        FIRST_VERSIONS.contains(&(short, version))
            || DIFFERENCES.iter().any(|(known, _)| field.ends_with(known))
            || MORE.iter().any(|more| {
                let more = more.split_once('.').unwrap();
                more.0 == short && field.starts_with(&format!(".{}", more.1))
            })
    };
    let differs = one.iter().filter(|(path, fact)| other.get(*path) != Some(*fact));
    let differs = differs.filter(|(path, _)| !excused(path));
    differs.map(|(path, fact)| format!("{name}: {path} = {fact}")).collect()
}

#[test]
fn upstreams_definitions_say_nothing_that_ours_do_not() {
    let ours = ours();
    let mut missing = Vec::new();
    for theirs in upstream() {
        let name = theirs["name"].as_str().unwrap();
        let definition = ours.get(name).unwrap_or_else(|| panic!("{name} is missing"));
        missing.extend(beyond(name, &facts(&theirs), &facts(definition)));
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn ours_say_nothing_more_without_a_reason() {
    let ours = ours();
    let mut more = Vec::new();
    for theirs in upstream() {
        let name = theirs["name"].as_str().unwrap();
        more.extend(beyond(name, &facts(&ours[name]), &facts(&theirs)));
    }
    assert!(more.is_empty(), "{}", more.join("\n"));
}

#[test]
fn versions_of_the_first_specification_say_what_todays_say() {
    let ours = ours();
    for (short, version) in FIRST_VERSIONS {
        let versions = ours[&format!("{short}.pkg.crossplane.io")]["spec"]["versions"].clone();
        let named =
            |name: &str| versions.as_array().unwrap().iter().find(|one| one["name"] == name);
        let (first, mut today) = (named(version).unwrap(), versions[0].clone());
        assert_ne!(first["name"], today["name"]);
        today["name"] = json!(version);
        today["storage"] = json!(false);
        assert_eq!(*first, today, "{short}");
    }
}

#[test]
fn every_excuse_is_needed() {
    let ours = ours();
    let mut used: BTreeSet<&str> = BTreeSet::new();
    for theirs in upstream() {
        let (theirs, ours) = (facts(&theirs), facts(&ours[theirs["name"].as_str().unwrap()]));
        let differs = theirs.iter().filter(|(path, fact)| ours.get(*path) != Some(*fact));
        let more = ours.iter().filter(|(path, fact)| theirs.get(*path) != Some(*fact));
        let paths = differs.chain(more).map(|(path, _)| path);
        for path in paths {
            let needed = DIFFERENCES.iter().filter(|(known, _)| path.ends_with(known));
            used.extend(needed.map(|(known, _)| *known));
        }
    }
    assert_eq!(used.len(), DIFFERENCES.len(), "{used:?}");
}

#[test]
fn another_suffix_gives_another_group_and_only_its_kinds() {
    let all = definitions("ibm.crossplane.io").unwrap();
    assert_eq!(all.len(), 10);
    assert_eq!(all[0]["metadata"]["name"], "providers.pkg.ibm.crossplane.io");
    let text = serde_json::to_string(&all).unwrap();
    assert!(!text.contains("pkg.crossplane.io"), "the old group is left somewhere");
    assert!(text.contains(r#""default":"pkg.ibm.crossplane.io/v1beta1""#));
}

#[test]
fn a_suffix_that_is_no_name_is_refused() {
    for suffix in ["", "io", "Crossplane.io", "a..b", "-a.b", "a.b-", "a_b.c"] {
        assert!(definitions(suffix).is_err(), "{suffix:?}");
    }
}

#[test]
fn what_packages_bring_can_be_held() {
    let ours = ours();
    let kinds = [
        "compositeresourcedefinitions.apiextensions.crossplane.io",
        "compositions.apiextensions.crossplane.io",
        "compositionrevisions.apiextensions.crossplane.io",
        "managedresourcedefinitions.apiextensions.crossplane.io",
        "managedresourceactivationpolicies.apiextensions.crossplane.io",
        "environmentconfigs.apiextensions.crossplane.io",
        "usages.apiextensions.crossplane.io",
        "usages.protection.crossplane.io",
        "clusterusages.protection.crossplane.io",
        "operations.ops.crossplane.io",
        "cronoperations.ops.crossplane.io",
        "watchoperations.ops.crossplane.io",
    ];
    for name in kinds {
        let versions = ours[name]["spec"]["versions"].as_array().unwrap();
        assert!(versions.iter().any(|version| version["storage"] == true), "{name}");
    }
    assert_eq!(ours.len(), 10 + kinds.len());
}
