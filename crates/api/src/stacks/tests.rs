//! The kinds of the first package system.

use super::*;
use crate::crd::SUFFIX;

fn schema_of(definition: &Json) -> &Json {
    &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
}

#[test]
fn four_kinds_are_defined_and_deprecated() {
    let all = define_stack_kinds(SUFFIX).unwrap();
    let names: Vec<&str> =
        all.iter().map(|one| one["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "clusterpackageinstalls.packages.crossplane.io",
            "packageinstalls.packages.crossplane.io",
            "packages.packages.crossplane.io",
            "stackdefinitions.packages.crossplane.io",
        ]
    );
    for one in &all {
        let version = &one["spec"]["versions"][0];
        assert_eq!(version["deprecated"], json!(true));
        assert!(version["deprecationWarning"].as_str().unwrap().contains("apron convert"));
        assert_eq!(one["spec"]["names"]["categories"], json!(["crossplane"]));
        assert_eq!(one["spec"]["scope"], "Namespaced");
    }
    let has_status = |one: &Json| one["spec"]["versions"][0].get("subresources").is_some();
    assert_eq!(all.iter().map(has_status).collect::<Vec<_>>(), [true, true, true, false]);
    assert!(schema_of(&all[2])["spec"]["properties"].get("behavior").is_none());
    assert!(schema_of(&all[3])["spec"]["properties"].get("behavior").is_some());
}

#[test]
fn another_suffix_gives_another_group() {
    let all = define_stack_kinds("apron.example.org").unwrap();
    assert_eq!(all[0]["spec"]["group"], "packages.apron.example.org");
    assert!(define_stack_kinds("io").is_err());
}

#[test]
fn an_install_object_says_exactly_one_of_package_and_crd() {
    let all = define_stack_kinds(SUFFIX).unwrap();
    let rules = &schema_of(&all[0])["spec"]["x-kubernetes-validations"];
    assert_eq!(rules[0]["message"], "exactly one of package and crd must be set");
    let depends = &schema_of(&all[2])["spec"]["properties"]["dependsOn"]["items"];
    assert!(depends.get("x-kubernetes-validations").is_none(), "a record may say either");
}
