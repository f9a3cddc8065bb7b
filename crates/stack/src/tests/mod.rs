//! A package per question, as files in memory.

mod beta;
mod findings;
mod images;
mod nested;
mod seed;

use super::files::{Gathering, RegistryFiles};
use super::{Stack, StackLimits, read_stack};
use xpkg::diagnostic::Diagnostic;

const APP: &str = "title: Sample\npermissionScope: Cluster\n";
const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata:
  labels:
    controller-tools.k8s.io: \"1.0\"
  name: mytypes.samples.example.org
spec:
  group: samples.example.org
  names:
    kind: Mytype
    plural: mytypes
  scope: Namespaced
  version: v1alpha1
";

/// The files of a package, as a walk finds them.
fn gather(files: &[(&str, &str)]) -> RegistryFiles {
    let limits = StackLimits::default();
    let mut gathering = Gathering::new(&limits);
    for (path, text) in files {
        if gathering.accepts_file(path, text.len() as u64) {
            gathering.add_file(path, text.as_bytes().to_vec());
        }
    }
    gathering.finish()
}

fn read(files: &[(&str, &str)]) -> (Option<Stack>, Vec<Diagnostic>) {
    read_stack(&gather(files), &StackLimits::default())
}

/// A definition of a kind in `samples.example.org`.
fn definition_of(kind: &str) -> String {
    let plural = format!("{}s", kind.to_lowercase());
    CRD.replace("Mytype", kind).replace("mytypes", &plural)
}

/// Findings as people see them.
fn shown(findings: &[Diagnostic]) -> String {
    let line = |one: &Diagnostic| {
        let severity = format!("{:?}", one.severity).to_lowercase();
        let place = format!("{}:{}:{}", one.file, one.line, one.column);
        let hint = one.hint.as_deref().unwrap_or_default();
        format!("{place}: {severity}: {} [{}]\n  hint: {hint}\n", one.message, one.rule)
    };
    findings.iter().map(line).collect::<Vec<String>>().concat()
}

#[test]
fn the_smallest_package_has_three_files() {
    let install = "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: [{name: c}]}}}\n";
    let files =
        [("app.yaml", APP), ("install.yaml", install), ("resources/crd.yaml", &structural(CRD))];
    let (stack, findings) = read(&files);
    assert_eq!(shown(&findings), "");
    let stack = stack.unwrap();
    assert_eq!(stack.definitions[0].name(), "mytypes.samples.example.org");
    assert!(stack.deployment.is_some());
}

#[test]
fn a_package_without_install_yaml_brings_definitions_only() {
    let (stack, _) = read(&[("app.yaml", APP), ("resources/crd.yaml", CRD)]);
    assert!(stack.unwrap().deployment.is_none());
}

/// The same definition with a schema.
fn structural(definition: &str) -> String {
    format!("{definition}  validation: {{openAPIV3Schema: {{type: object}}}}\n")
}
