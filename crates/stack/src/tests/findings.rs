//! What is said about packages with mistakes: everything at once, with places and hints.

use super::{APP, CRD, definition_of, gather, read, shown};
use crate::files::{Gathering, UnreadReason};
use crate::{StackLimits, read_stack};

fn told(files: &[(&str, &str)]) -> String {
    let (stack, findings) = read(files);
    let is_refused = findings.iter().any(|one| one.severity == xpkg::diagnostic::Severity::Error);
    assert_eq!(stack.is_none(), is_refused);
    assert!(findings.iter().all(|one| one.hint.is_some()));
    shown(&findings)
}

#[test]
fn nothing_at_all() {
    insta::assert_snapshot!(told(&[]));
}

#[test]
fn an_app_yaml_with_every_mistake() {
    let app = "apiVersion: 7.0.0
version: 1.0
title: [t]
descripton: d
maintainers: {name: n}
owners: [nobody, {name: a, mail: b}]
keywords: [a, 1]
packageType: provider
permissionScope: Everything
dependsOn:
- crd: thing
- package: p
- crd: Thing.example.org
- crd: things.example/v1
- crd: 3
";
    insta::assert_snapshot!(told(&[("app.yaml", app), ("resources/crd.yaml", CRD)]));
}

#[test]
fn documents_that_are_something_else() {
    let files = [
        ("app.yaml", "- a\n- b\n"),
        ("install.yaml", "apiVersion: batch/v1\nkind: Job\n"),
        ("behavior.yaml", "engine: {type: helm3}\nsource: {path: /}\n"),
        ("resources/group.yaml", "title: {a: b}\n"),
        ("resources/resource.yaml", "id: a\n---\nid: b\n"),
        ("resources/crd.yaml", "apiVersion: v1\nkind: Secret\n---\nkind: [\n"),
        ("resources/ui-schema.yaml", "a: b: c\n"),
    ];
    insta::assert_snapshot!(told(&files));
}

#[test]
fn an_install_yaml_that_runs_nothing() {
    let check = |install: &str, expected: &str| {
        let files = [("app.yaml", APP), ("install.yaml", install), ("resources/crd.yaml", CRD)];
        let told = told(&files);
        assert!(told.contains(expected), "{told}");
    };
    let head = "apiVersion: apps/v1\nkind: Deployment\n";
    check("", "install.yaml is empty");
    check(head, "install.yaml:1:1: error: the Deployment has no spec.template.spec");
    check(
        &format!("{head}spec: {{template: {{spec: {{containers: []}}}}}}\n"),
        "the Deployment has no containers",
    );
    check(
        &format!("{head}spec: {{template: {{spec: {{containers: [{{name: c, image: 3}}]}}}}}}\n"),
        "install.yaml:3:56: error: image must be a string, not an integer",
    );
}

#[test]
fn files_that_are_not_where_they_count() {
    let files = [
        ("app.yaml", APP),
        ("crd.yaml", CRD),
        ("rbac.yaml", "rules: []\n"),
        ("other/icon.svg", "svg"),
        ("resources/app.yaml", APP),
        ("resources/crd.yaml", CRD),
        ("resources/more.crd.yml", CRD),
        ("resources/a/resource.yaml", "id: other\n"),
        ("resources/a/b/group.yaml", "group: other.example.org\n"),
        ("resources/other.icon.svg", "svg"),
        ("resources/bigicon.png", "png"),
    ];
    insta::assert_snapshot!(told(&files));
}

#[test]
fn definitions_that_no_api_server_takes() {
    let wrong = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.org}
spec:
  group: samples.example.org
  names: {kind: Thing, plural: Things}
  scope: Everywhere
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: string}}
";
    let twice = "apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: things.apps.k8s.io}
spec:
  group: apps.k8s.io
  names: {kind: Thing, plural: things}
  version: v2
  versions: [{name: v1, served: true, storage: true}]
  validation: {openAPIV3Schema: {type: object}}
";
    let files = [
        ("app.yaml", APP),
        ("resources/a.crd.yaml", wrong),
        ("resources/b.crd.yaml", twice),
        ("resources/c.crd.yaml", CRD),
        ("resources/d.crd.yaml", CRD),
    ];
    insta::assert_snapshot!(told(&files));
}

#[test]
fn a_namespaced_package_owns_nothing_of_the_cluster() {
    let app = "title: t\npermissionScope: Namespaced\n";
    let cluster = definition_of("Thing").replace("scope: Namespaced", "scope: Cluster");
    let told = told(&[("app.yaml", app), ("resources/crd.yaml", &cluster)]);
    assert!(told.contains("resources/crd.yaml:12:3: error: a package of permissionScope Namespaced owns a definition of scope Cluster [stack-definition-scope]"), "{told}");
}

#[test]
fn icons_and_annotations_have_limits() {
    let large = "x".repeat(70_000);
    let files = [("app.yaml", APP), ("icon.svg", &large), ("resources/crd.yaml", CRD)];
    let said = told(&files);
    assert!(
        said.contains(
            "icon.svg:0:0: error: icon has 70000 bytes, more than 65536 (icon_bytes_max)"
        ),
        "{said}"
    );
    let readme = format!("id: mytype\nreadme: {}\n", "y".repeat(300_000));
    let files =
        [("app.yaml", APP), ("resources/resource.yaml", &readme), ("resources/crd.yaml", CRD)];
    let said = told(&files);
    assert!(said.contains("annotation_bytes_max"), "{said}");
}

#[test]
fn hostile_trees_are_refused_within_bounds() {
    let limits = StackLimits::default();
    let mut gathering = Gathering::new(&limits);
    for index in 0..100_000 {
        let path = format!("resources/{index}.crd.yaml");
        if gathering.accepts_file(&path, CRD.len() as u64) {
            gathering.add_file(&path, Vec::new());
        }
    }
    gathering.add_unread("resources/link", UnreadReason::Link);
    let files = gathering.finish();
    assert_eq!((files.files.len(), files.unread.len()), (limits.files_max, 1));
    let (stack, findings) = read_stack(&files, &limits);
    assert!(stack.is_none() && findings.len() == 1);
    assert!(
        shown(&findings)
            .contains("is one file more than the 10000 that a package may have (files_max)")
    );

    let mut gathering = Gathering::new(&limits);
    gathering.add_unread("app.yaml", UnreadReason::Link);
    gathering.add_unread("resources/pipe.crd.yaml", UnreadReason::Irregular);
    assert!(!gathering.accepts_file("resources/big.crd.yaml", 9 << 20));
    for index in 0..8 {
        assert!(gathering.accepts_file(&format!("resources/{index}crd.yaml"), 8 << 20));
    }
    assert!(!gathering.accepts_file("resources/more.crd.yaml", 1));
    let (_, findings) = read_stack(&gathering.finish(), &limits);
    insta::assert_snapshot!(shown(&findings));
}

#[test]
fn aliases_cannot_make_a_package_larger_than_its_text() {
    let bomb = "a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n\
                c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c]\n\
                e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d]\nf: [*e, *e, *e, *e, *e, *e, *e, *e, *e]\n";
    let files: Vec<(String, &str)> =
        (0..200).map(|index| (format!("resources/{index}/ui-schema.yaml"), bomb)).collect();
    let mut files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    files.push(("app.yaml", APP));
    let (stack, findings) = read_stack(&gather(&files), &StackLimits::default());
    assert!(stack.is_none());
    assert!(findings.iter().any(|one| one.rule == "yaml-syntax"), "{}", shown(&findings));
}
