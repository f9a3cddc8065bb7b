//! The kinds of the first package system.

use super::*;

#[test]
fn four_kinds_are_defined_and_deprecated() {
    let all = definitions(SUFFIX).unwrap();
    let names: Vec<&str> = all.iter().map(|one| one["metadata"]["name"].as_str().unwrap()).collect();
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
        assert_eq!(one["spec"]["names"]["categories"], json!(["crossplane"]));
        assert_eq!(one["spec"]["scope"], "Namespaced");
    }
    let has_status = |one: &Json| one["spec"]["versions"][0].get("subresources").is_some();
    assert_eq!(all.iter().map(has_status).collect::<Vec<_>>(), [true, true, true, false]);
    let spec = |one: &Json| one["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone();
    assert!(spec(&all[2])["properties"].get("behavior").is_none());
    assert!(spec(&all[3])["properties"].get("behavior").is_some());
}

#[test]
fn another_suffix_gives_another_group() {
    let all = definitions("ibm.crossplane.io").unwrap();
    assert_eq!(all[0]["spec"]["group"], "packages.ibm.crossplane.io");
    assert!(definitions("io").is_err());
}
