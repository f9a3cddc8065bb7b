//! `apron diff`: two packages, wherever they are, and how pipelines are told.

use crate::support::{Registry, Scratch, apron};
use serde_json::Value as Json;

fn write_package(scratch: &Scratch, directory: &str, version: &str, fields: &str) {
    let meta = format!(
        "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: shop\n\
         spec:\n  dependsOn:\n  - provider: registry.example.org/p\n    version: '{version}'\n"
    );
    scratch.write(&format!("{directory}/crossplane.yaml"), &meta);
    let definition = format!(
        "apiVersion: apiextensions.crossplane.io/v2\nkind: CompositeResourceDefinition\n\
         metadata:\n  name: shops.example.org\nspec:\n  group: example.org\n  names:\n    kind: Shop\n    \
         plural: shops\n  versions:\n  - name: v1\n    served: true\n    referenceable: true\n    schema:\n      \
         openAPIV3Schema:\n        type: object\n        properties:\n          spec:\n            \
         type: object\n            properties: {fields}\n"
    );
    scratch.write(&format!("{directory}/definition.yaml"), &definition);
}

fn two_packages(scratch: &Scratch) {
    let old =
        "{size: {type: integer}, a: {type: string}, b: {type: string}, colour: {type: string}}";
    write_package(scratch, "old", ">=v1.0.0", old);
    let new = "{size: {type: string}, colour: {type: string, default: red}, shape: {type: string}}";
    write_package(scratch, "new", ">=v2.0.0", new);
}

const SAID: &str = "\
3 breaking changes, 2 warnings, 1 note from old to new

breaking
  shops.example.org
    v1 spec.a, spec.b: removed
    v1 spec.size: type integer becomes string

warnings
  the package itself
    dependency on registry.example.org/p >=v1.0.0 becomes >=v2.0.0
  shops.example.org
    v1 spec.colour: default \"red\" added

notes
  shops.example.org
    v1 spec.shape: added
";

#[test]
fn packages_are_compared_wherever_they_are() {
    let (scratch, registry) = (Scratch::new(), Registry::start());
    two_packages(&scratch);
    let ran = apron(&scratch, ["diff", "old", "new"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), SAID), "{}", ran.stderr);

    apron(&scratch, ["build", "old", "-o", "old.xpkg"]).ok();
    let there = registry.reference("shop:v2");
    apron(&scratch, ["build", "new", "-o", "new.xpkg"]).ok();
    apron(&scratch, ["push", &there, "-f", "new.xpkg"]).ok();
    let ran = apron(&scratch, ["diff", "old.xpkg", &there]);
    let said = SAID.replace("from old to new", &format!("from old.xpkg to {there}"));
    assert_eq!((ran.code, ran.stdout), (Some(2), said), "{}", ran.stderr);

    let same = apron(&scratch, ["diff", "new", &there]).ok().stdout;
    assert_eq!(same, format!("new and {there} bring the same\n"));
}

#[test]
fn pipelines_choose_what_is_too_much() {
    let scratch = Scratch::new();
    two_packages(&scratch);
    for (from, to, fail_on, code) in [
        ("old", "new", "breaking", 2),
        ("old", "new", "never", 0),
        ("old", "old", "any", 0),
        ("new", "new", "warning", 0),
    ] {
        let ran = apron(&scratch, ["diff", from, to, "--fail-on", fail_on]);
        assert_eq!(ran.code, Some(code), "{from} {to} {fail_on}");
    }
    let ran = apron(&scratch, ["diff", "old", "new", "-o", "json"]);
    assert_eq!(ran.code, Some(2));
    let report: Json = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&report["breaking"], &report["warnings"]), (&Json::from(3), &Json::from(2)));
    let first = &report["changes"][0];
    assert_eq!(
        (&first["severity"], &first["path"]),
        (&Json::from("breaking"), &Json::from("spec.a"))
    );
    assert_eq!(first["object"]["name"], "shops.example.org");
}

#[test]
fn what_cannot_be_compared_is_a_failure_and_no_difference() {
    let scratch = Scratch::new();
    two_packages(&scratch);
    scratch.write("new/definition.yaml", "apiVersion: v1\nkind: [\n");
    let ran = apron(&scratch, ["diff", "old", "new"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("error: new cannot be built into a package"), "{}", ran.stderr);
    let ran = apron(&scratch, ["diff", "old", "missing.xpkg"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("there is no file missing.xpkg"), "{}", ran.stderr);
}
