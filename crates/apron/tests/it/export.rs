//! `apron apiserver export`: what one server had, another has after `kubectl apply`.

#![expect(clippy::expect_used, reason = "a test that cannot go on must stop")]

use crate::control_plane::{Server, runtime};
use crate::peers::{ControlPlane, TOKEN};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const WORLD: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}, tag: {type: string}}}
          status: {type: object, properties: {ready: {type: boolean}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: team, labels: {a: b}}}
---
{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: team}, data: {p: c2VjcmV0}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: odd, namespace: team}, data: {a: "on", b: "1", c: "x\ny\n", d: "'", e: ": #"}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list]}]
---
{apiVersion: example.org/v1, kind: Widget, metadata: {name: w, namespace: team}, spec: {size: 3, tag: "yes"}}
"#;

/// What is compared: objects a user would miss.
const LOOK: &str = "widgets.example.org/w,secrets/s,configmaps/odd";

fn kubectl(access: &[&str], words: &[&str]) -> (bool, String) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let found = Command::new(root.join("scripts/peers")).args(["path", "kubectl"]).output();
    let program = String::from_utf8(found.expect("scripts/peers").stdout).expect("a path");
    let output = Command::new(program.trim()).args(access).args(words).output().expect("kubectl");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// Applies a file until all of it is taken: kubectl looks kinds up before it makes any.
fn apply(access: &[&str], file: &str) {
    for _ in 0..600 {
        let (taken, said) = kubectl(access, &["apply", "--server-side", "-f", file]);
        if taken {
            return;
        }
        let early = ["no matches for kind", "could not find the requested resource"];
        assert!(early.iter().any(|words| said.contains(words)), "{said}");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    unreachable!("{file} is never taken");
}

/// What a server has, without what must differ.
fn look(access: &[&str]) -> Vec<serde_json::Value> {
    let mut seen = Vec::new();
    for word in LOOK.split(',').chain(["clusterroles/reader", "namespaces/team"]) {
        let (fine, said) = kubectl(access, &["get", word, "-n", "team", "-o", "json"]);
        assert!(fine, "{said}");
        let mut object: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        let metadata = object["metadata"].as_object_mut().expect("metadata");
        metadata.retain(|field, _| ["name", "namespace", "labels"].contains(&field.as_str()));
        seen.push(object);
    }
    seen
}

#[test]
fn an_export_applied_elsewhere_is_the_same_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name).display().to_string();
    fs_err::write(at("world.yaml"), WORLD).expect("a file");
    let runtime = runtime();
    let export = |extra: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_apron"));
        command.args(["apiserver", "export", "--data-dir", &at("data")]).args(extra);
        command.output().expect("apron runs")
    };
    let server = runtime.block_on(Server::start(&directory.path().join("data"), None));
    let first = format!("--kubeconfig={}", server.kubeconfig().display());
    apply(&[&first], &at("world.yaml"));
    let before = look(&[&first]);
    let refused = export(&[]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("stop the server"), "{said}");
    drop(server);

    let done = export(&["--output", &at("all.yaml")]);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success() && said.contains("1 secret can be read"), "{said}");
    let mode = fs_err::metadata(at("all.yaml")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let printed = export(&[]).stdout;
    let written = fs_err::read_to_string(at("all.yaml")).expect("a file");
    assert_eq!(String::from_utf8_lossy(&printed).trim_end(), written.trim_end());

    let server = runtime.block_on(Server::start(&directory.path().join("other"), None));
    let second = format!("--kubeconfig={}", server.kubeconfig().display());
    apply(&[&second], &at("all.yaml"));
    assert_eq!(look(&[&second]), before);

    let client = reqwest::Client::builder().tls_danger_accept_invalid_certs(true).build();
    let plane = runtime.block_on(ControlPlane::start(&client.expect("a client")));
    let url = format!("--server={}", plane.url);
    let token = format!("--token={TOKEN}");
    let real = [url.as_str(), &token, "--insecure-skip-tls-verify"];
    apply(&real, &at("all.yaml"));
    let there: Vec<_> = look(&real).into_iter().map(without_label).collect();
    assert_eq!(there, before.into_iter().map(without_label).collect::<Vec<_>>());
}

/// Upstream labels namespaces with their names.
fn without_label(mut object: serde_json::Value) -> serde_json::Value {
    if let Some(labels) = object.pointer_mut("/metadata/labels").and_then(|it| it.as_object_mut()) {
        labels.shift_remove("kubernetes.io/metadata.name");
    }
    object
}
