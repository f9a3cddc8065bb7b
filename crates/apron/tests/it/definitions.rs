//! One truth about definitions: for each way in which one is broken, `apron lint` names the field that
//! an API server names, and the line where it stands.

use crate::support::{Scratch, peer_path, until};
use serde_json::Value as Json;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const METADATA: &str =
    "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: p}\n";

const SOUND: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.org}
spec:
  group: example.org
  names: {kind: Boat, plural: boats}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              sails: {type: object, properties: {count: {type: integer}}}
";

/// Where a server keeps the schema that all versions share, and where it is written.
const KEPT: &str = "spec.validation.openAPIV3Schema.properties[spec].properties";
const WRITTEN: &str = "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties";

/// A line of the definition, what stands there instead, the rule that is broken, the field as lint
/// names it, and as a server does; `K` and `W` stand for the paths above.
type Row = (&'static str, &'static str, &'static str, &'static str, &'static str);

const ROWS: &[Row] = &[
    ("  scope: Cluster", "  scope: Global", "crd-invalid", "spec.scope", "spec.scope"),
    (
        "  scope: Cluster",
        "  scope: Cluster\n  preserveUnknownFields: true",
        "crd-invalid",
        "spec.preserveUnknownFields",
        "spec.preserveUnknownFields",
    ),
    (
        "  names: {kind: Boat, plural: boats}",
        "  names: {kind: Boat, plural: boats, shortNames: [b_1]}",
        "crd-invalid",
        "spec.names.shortNames[0]",
        "spec.names.shortNames[0]",
    ),
    (
        "  names: {kind: Boat, plural: boats}",
        "  names: {kind: Boat, plural: boats, listKind: Boat}",
        "crd-invalid",
        "spec.names.listKind",
        "spec.names.listKind",
    ),
    (
        "metadata: {name: boats.example.org}",
        "metadata: {name: boats.example.org, labels: {'a b': c}}",
        "crd-invalid",
        "metadata.labels",
        "metadata.labels",
    ),
    (
        "  - name: v1",
        "  - name: V1",
        "crd-invalid",
        "spec.versions[0].name",
        "spec.versions[0].name",
    ),
    (
        "    served: true",
        "    served: true\n    deprecationWarning: soon",
        "crd-invalid",
        "spec.versions[0].deprecationWarning",
        "spec.versions[0].deprecationWarning",
    ),
    (
        "    served: true",
        "    served: true\n    additionalPrinterColumns: [{name: Size, type: text, jsonPath: .spec.size}]",
        "crd-invalid",
        "spec.versions[0].additionalPrinterColumns[0].type",
        "spec.additionalPrinterColumns[0].type",
    ),
    (
        "    served: true",
        "    served: true\n    additionalPrinterColumns: [{name: Size, type: string, jsonPath: spec.size}]",
        "crd-invalid",
        "spec.versions[0].additionalPrinterColumns[0].jsonPath",
        "spec.additionalPrinterColumns[0].JSONPath",
    ),
    (
        "    served: true",
        "    served: true\n    subresources: {scale: {specReplicasPath: spec.size, statusReplicasPath: .status.size}}",
        "crd-invalid",
        "spec.versions[0].subresources.scale.specReplicasPath",
        "spec.subresources.scale.specReplicasPath",
    ),
    (
        "    served: true",
        "    served: true\n    selectableFields: [{jsonPath: .spec.colour}]",
        "crd-invalid",
        "spec.versions[0].selectableFields[0].jsonPath",
        "spec.selectableFields[0].jsonPath",
    ),
    (
        "  scope: Cluster",
        "  scope: Cluster\n  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v2], clientConfig: {service: {name: a, namespace: b}}}}",
        "crd-invalid",
        "spec.conversion.webhook.conversionReviewVersions",
        "spec.conversion.conversionReviewVersions",
    ),
    (
        "              size: {type: integer}",
        "              size: {description: how long}",
        "crd-schema",
        "W[size].type",
        "K[size].type",
    ),
    (
        "              size: {type: integer}",
        "              size: {type: int}",
        "crd-schema",
        "W[size].type",
        "K[size].type",
    ),
    (
        "              size: {type: integer}",
        "              size: {type: array}",
        "crd-schema",
        "W[size].items",
        "K[size].items",
    ),
    (
        "              size: {type: integer}",
        "              size: {type: string, pattern: '(?=a)'}",
        "crd-schema",
        "W[size].pattern",
        "K[size].pattern",
    ),
    (
        "              size: {type: integer}",
        "              size: {type: integer, $ref: '#/a'}",
        "crd-schema",
        "W[size].$ref",
        "K[size].$ref",
    ),
    (
        "              size: {type: integer}",
        "              size: {type: array, uniqueItems: true, items: {type: string}}",
        "crd-schema",
        "W[size].uniqueItems",
        "K[size].uniqueItems",
    ),
    (
        "              size: {type: integer}",
        "              size: {type: integer, anyOf: [{type: integer}]}",
        "crd-schema",
        "W[size].anyOf[0].type",
        "K[size].anyOf[0].type",
    ),
    (
        "              size: {type: integer}",
        "              size: {type: array, x-kubernetes-list-type: map, items: {type: object}}",
        "crd-schema",
        "W[size].x-kubernetes-list-map-keys",
        "K[size].x-kubernetes-list-map-keys",
    ),
    (
        "              size: {type: integer}",
        "              size: {type: integer, default: large}",
        "crd-default",
        "W[size].default",
        "K[size].default",
    ),
    (
        "              size: {type: integer}",
        "              size: {type: integer, maximum: 9, default: 10}",
        "crd-default",
        "W[size].default",
        "K[size].default",
    ),
    (
        "              size: {type: integer}",
        "              size: {type: string, enum: [a], default: b}",
        "crd-default",
        "W[size].default",
        "K[size].default",
    ),
    (
        "              sails: {type: object, properties: {count: {type: integer}}}",
        "              sails: {type: object, default: {colour: red}, properties: {count: {type: integer}}}",
        "crd-default",
        "W[sails].default",
        "K[sails].default",
    ),
    (
        "              size: {type: integer}",
        "              size: {type: integer, x-kubernetes-validations: [{rule: 'self >'}]}",
        "crd-expression",
        "W[size].x-kubernetes-validations[0].rule",
        "K[size].x-kubernetes-validations[0].rule",
    ),
    (
        "              size: {type: integer}",
        "              size: {type: integer, x-kubernetes-validations: [{rule: 'self > \"a\"'}]}",
        "crd-expression",
        "W[size].x-kubernetes-validations[0].rule",
        "K[size].x-kubernetes-validations[0].rule",
    ),
    (
        "              size: {type: integer}",
        "              size: {type: integer, x-kubernetes-validations: [{rule: 'self + 1'}]}",
        "crd-expression",
        "W[size].x-kubernetes-validations[0].rule",
        "K[size].x-kubernetes-validations[0].rule",
    ),
    (
        "              sails: {type: object, properties: {count: {type: integer}}}",
        "              sails: {type: object, x-kubernetes-validations: [{rule: self.colour == 1}], properties: {count: {type: integer}}}",
        "crd-expression",
        "W[sails].x-kubernetes-validations[0].rule",
        "K[sails].x-kubernetes-validations[0].rule",
    ),
];

struct Server {
    child: Child,
    scratch: Scratch,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start() -> Self {
        let scratch = Scratch::new();
        let mut server = Command::new(env!("CARGO_BIN_EXE_apron"));
        server.args(["apiserver", "--listen", "127.0.0.1:0", "--data-dir"]).arg(scratch.path());
        let child = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let server = Self { child, scratch };
        until("the server is ready", || {
            let kubeconfig = server.scratch.join("kubeconfig");
            (kubeconfig.exists() && server.kubectl(&["get", "--raw", "/readyz"]).0).then_some(())
        });
        server
    }

    fn kubectl(&self, words: &[&str]) -> (bool, String) {
        let output = Command::new(peer_path("kubectl"))
            .env("KUBECONFIG", self.scratch.join("kubeconfig"))
            .env("HOME", self.scratch.path())
            .args(words)
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    /// What the server says to a definition.
    fn judge(&self, definition: &Path) -> (bool, String) {
        let file = definition.to_str().unwrap();
        self.kubectl(&["create", "--dry-run=server", "--validate=false", "-f", file])
    }
}

/// The findings of `apron lint` about a definition, and the file it is in.
fn lint(scratch: &Scratch, definition: &str) -> (Vec<Json>, std::path::PathBuf) {
    scratch.write("package/crossplane.yaml", METADATA);
    let file = scratch.write("package/boats.yaml", definition);
    let output = Command::new(env!("CARGO_BIN_EXE_apron"))
        .args(["lint", "-o", "json"])
        .arg(scratch.join("package"))
        .output()
        .unwrap();
    let said: Json = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let found = said["findings"].as_array().cloned().unwrap_or_default();
    (found.into_iter().filter(|one| one["severity"] == "error").collect(), file)
}

#[test]
fn lint_names_the_field_that_a_server_names() {
    let (server, scratch) = (Server::start(), Scratch::new());
    let (found, file) = lint(&scratch, SOUND);
    assert_eq!(found, Vec::<Json>::new());
    let (is_taken, said) = server.judge(&file);
    assert!(is_taken, "{said}");
    for (line, broken, rule, field, served) in ROWS {
        let definition = SOUND.replace(line, broken);
        assert_ne!(definition, SOUND, "{line}");
        let spelled = |field: &str, letter, path: &str| match field.strip_prefix(letter) {
            Some(rest) => format!("{path}{rest}"),
            None => field.to_owned(),
        };
        let (field, served) = (spelled(field, 'W', WRITTEN), spelled(served, 'K', KEPT));
        let (found, file) = lint(&scratch, &definition);
        let is_it = |one: &&Json| {
            let message = one["message"].as_str().unwrap_or_default();
            one["rule"] == *rule && message.starts_with(&format!("{field}: "))
        };
        let finding = found.iter().find(is_it);
        let finding = finding.unwrap_or_else(|| panic!("{broken}: {field}: {found:?}"));
        let last = broken.lines().last().unwrap();
        let wanted = definition.lines().position(|line| line == last).unwrap() + 1;
        assert_eq!(finding["line"], wanted, "{broken}: {finding}");
        assert!(finding["hint"].is_string(), "{broken}: {finding}");
        let (is_taken, said) = server.judge(&file);
        assert!(!is_taken && said.contains(&format!("{served}: ")), "{broken}: {served}: {said}");
    }
}
