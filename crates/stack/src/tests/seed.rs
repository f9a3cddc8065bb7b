//! The examples of the format's own description.

use super::{read, shown};
use crate::InstallOwner;
use crate::app::VersionTag;
use crate::definition::beta::convert_definition;
use crate::record::RecordOptions;

const APP: &str = r#"# This example conforms to version 0.1.0 of the package format
apiVersion: 0.1.0
version: 0.0.1
title: Crossplane Sample Stack
overviewShort: A one line plain text explanation of this package
overview: |
  Multiple line plain text description of this package.
readme: |
 *Markdown* describing the sample Crossplane Stack project in more detail
maintainers:
- name: Jared Watts
  email: jared@upbound.io
owners:
- name: Bassam Tabbara
  email: bassam@upbound.io
company: Upbound
category: Database
keywords:
- "samples"
- "examples"
- "tutorials"
website: "https://crossplane.io"
source: "https://github.com/crossplane/sample-stack"
license: Apache-2.0
packageType: Provider
permissionScope: Cluster
dependsOn:
- crd: "mytype.mygroup.example.org/v1alpha1"
- crd: '*.yourstack.example.org/v1alpha1'
"#;

const INSTALL: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: crossplane-sample-stack
  labels:
    core.crossplane.io/name: "crossplane-sample-stack"
spec:
  selector:
    matchLabels:
      core.crossplane.io/name: "crossplane-sample-stack"
  replicas: 1
  template:
    metadata:
      name: sample-stack-controller
      labels:
        core.crossplane.io/name: "crossplane-sample-stack"
    spec:
      containers:
      - name: sample-stack-controller
        env:
        - name: POD_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
"#;

const CRD: &str = r#"apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata:
  labels:
    controller-tools.k8s.io: "1.0"
  name: mytypes.samples.crossplane.io
spec:
  group: samples.crossplane.io
  names:
    kind: Mytype
    plural: mytypes
  scope: Namespaced
  version: v1alpha1
"#;

const GROUP: &str = "group: samples.crossplane.io\ntitle: Title of the Group\noverview: Overview of the Group\n\
                     overviewShort: Short overview of the Group\nreadme: Readme of the Group\n";
const RESOURCE: &str = "id: mytype\ntitle: Example Resource\ntitlePlural: Example Resources\n\
                        category: Databases\noverviewShort: Short overview of the Resource\n\
                        overview: Overview of the Resource\nreadme: Readme of the Resource\n";
const ICON: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\"/>\n";
const UI_GLOBAL: &str = r"version: 0.5
configSections:
- title: Configuration
  description: Enter information specific to the configuration you wish to create.
  items:
  - name: dbReplicas
    controlType: singleInput
    type: integer
    path: .spec.dbReplicas
    title: DB Replicas
    description: The number of DB Replicas
    default: 1
    validation:
    - minimum: 1
    - maximum: 3
";
const UI_KIND: &str =
    "\nadditionalSpec: example\nstillYaml: true\nusesSameSpecConvention: \"not necessary\"\n";

/// The definition of the example, as the description prints it.
const EXPECTED: &str = r#"apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata:
  name: mytypes.samples.crossplane.io
  labels:
    controller-tools.k8s.io: "1.0"
    app.kubernetes.io/managed-by: package-manager
  annotations:
    packages.crossplane.io/package-title: "Crossplane Sample Stack"
    packages.crossplane.io/group-title: "Title of the Group"
    packages.crossplane.io/group-overview: "Overview of the Group"
    packages.crossplane.io/group-overview-short: "Short overview of the Group"
    packages.crossplane.io/group-readme: "Readme of the Group"
    packages.crossplane.io/resource-category: "Databases"
    packages.crossplane.io/resource-title: "Example Resource"
    packages.crossplane.io/resource-title-plural: "Example Resources"
    packages.crossplane.io/resource-overview: "Overview of the Resource"
    packages.crossplane.io/resource-overview-short: "Short overview of the Resource"
    packages.crossplane.io/resource-readme: "Readme of the Resource"
    packages.crossplane.io/icon-data-uri: data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4K
    packages.crossplane.io/ui-schema: |
      version: 0.5
      configSections:
      - title: Configuration
        description: Enter information specific to the configuration you wish to create.
        items:
        - name: dbReplicas
          controlType: singleInput
          type: integer
          path: .spec.dbReplicas
          title: DB Replicas
          description: The number of DB Replicas
          default: 1
          validation:
          - minimum: 1
          - maximum: 3
      ---
      additionalSpec: example
      stillYaml: true
      usesSameSpecConvention: "not necessary"
  ownerReferences:
  - apiVersion: packages.crossplane.io/v1alpha1
    kind: PackageInstall
    name: stack-wordpress
    uid: 1eb30f04-afdf-4282-bfd2-d0fb924f65d9
spec:
  group: samples.crossplane.io
  names:
    kind: Mytype
    plural: mytypes
  scope: Namespaced
  version: v1alpha1
"#;

const FILES: [(&str, &str); 8] = [
    ("app.yaml", APP),
    ("install.yaml", INSTALL),
    ("icon.svg", ICON),
    ("ui-schema.yaml", UI_GLOBAL),
    ("resources/samples/group.yaml", GROUP),
    ("resources/samples/mytype/v1alpha1/mytype.v1alpha1.crd.yaml", CRD),
    ("resources/samples/mytype/v1alpha1/resource.yaml", RESOURCE),
    ("resources/samples/mytype/v1alpha1/mytype.ui-schema.yaml", UI_KIND),
];

#[test]
fn the_definition_is_that_of_the_description_byte_for_byte() {
    let (stack, findings) = read(&FILES);
    assert!(
        findings.iter().all(|one| one.rule == "stack-definition-schema"),
        "{}",
        shown(&findings)
    );
    let owner = InstallOwner {
        kind: "PackageInstall".to_owned(),
        name: "stack-wordpress".to_owned(),
        uid: "1eb30f04-afdf-4282-bfd2-d0fb924f65d9".to_owned(),
    };
    let made = stack.unwrap().definitions[0].with_owner(&owner);
    let expected = yaml::parse(EXPECTED, 1, &yaml::Limits::default()).unwrap().to_json();
    // Definitions of v1beta1 cannot be made any more; the rest is as printed.
    let expected = convert_definition(&expected).object;
    assert_eq!(yaml::write::to_string(&made), yaml::write::to_string(&expected));
}

#[test]
fn the_record_says_what_the_files_say() {
    let (stack, _) = read(&FILES);
    let image = Some("registry.example.org/crossplane/sample-stack:v0.0.1");
    let options = RecordOptions { name: Some("sample"), image, tag: VersionTag::Tag("v0.0.1") };
    insta::assert_snapshot!(yaml::write::to_string(&stack.unwrap().to_record(&options)));
}

#[test]
fn a_version_is_that_of_the_tag_or_the_tag_is_told_of() {
    let (stack, _) = read(&FILES);
    let app = stack.unwrap().app;
    assert!(app.check_tag(VersionTag::Tag("0.0.1")).is_none());
    assert!(app.check_tag(VersionTag::Tag("v0.0.1")).is_none());
    assert!(app.check_tag(VersionTag::Untagged).is_none());
    let told: Vec<_> =
        ["v0.0.2", "latest"].iter().filter_map(|tag| app.check_tag(VersionTag::Tag(tag))).collect();
    insta::assert_snapshot!(shown(&told));
    let (bare, _) = read(&[("app.yaml", super::APP), ("resources/crd.yaml", super::CRD)]);
    let bare = bare.unwrap().app;
    assert_eq!(bare.choose_version(VersionTag::Tag("v7")).as_deref(), Some("v7"));
    assert_eq!(bare.choose_version(VersionTag::Untagged), None);
}
