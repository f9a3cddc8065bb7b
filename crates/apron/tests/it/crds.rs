//! `apron crds`: what it prints is what API servers take, ours and the real one.

use crate::support::{Scratch, free_port, peer_path, until, wait_for};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Processes that end with the test.
#[derive(Default)]
struct Running(Vec<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        for child in self.0.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Running {
    fn start(&mut self, mut command: Command) {
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        self.0.push(command.spawn().expect("the program starts"));
    }
}

fn kubectl(kubeconfig: &Path, words: &[&str]) -> (bool, String) {
    let output = Command::new(peer_path("kubectl"))
        .env("KUBECONFIG", kubeconfig)
        .env("HOME", kubeconfig.parent().unwrap())
        .args(words)
        .output()
        .expect("kubectl runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

fn wait_until_ready(kubeconfig: &Path) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(300) {
        if kubeconfig.exists() && kubectl(kubeconfig, &["get", "--raw", "/readyz"]).0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the server did not become ready");
}

fn crds(words: &[&str]) -> (bool, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_apron")).arg("crds").args(words).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

/// Applies what apron prints, waits until all of it is served, and installs a few objects.
fn are_taken(scratch: &Scratch, kubeconfig: &Path) {
    for words in [&[][..], &["--group-suffix", "ibm.crossplane.io"]] {
        let (fine, text) = crds(words);
        assert!(fine, "{text}");
        let path = scratch.write("crds.yaml", text);
        let path = path.to_str().unwrap();
        let (fine, said) = kubectl(kubeconfig, &["apply", "--server-side", "-f", path]);
        assert!(fine, "{said}");
        let until = ["wait", "--for=condition=Established", "--timeout=600s", "-f", path];
        let (fine, said) = kubectl(kubeconfig, &until);
        assert!(fine, "{said}");
    }
    let objects = scratch.write("objects.yaml", OBJECTS);
    // That a kind is established and that discovery tells of it are two things.
    until("the objects are taken", || {
        let (fine, said) = kubectl(kubeconfig, &["apply", "-f", objects.to_str().unwrap()]);
        let early = ["no matches for kind", "could not find the requested resource"];
        assert!(fine || early.iter().any(|words| said.contains(words)), "{said}");
        fine.then_some(())
    });
    let path = "jsonpath={.spec.packagePullPolicy} {.spec.revisionHistoryLimit} \
                {.spec.runtimeConfigRef.kind} {.spec.controllerConfigRef.name}";
    let (_, filled) = kubectl(kubeconfig, &["get", "providers", "old", "-o", path]);
    assert_eq!(filled, "IfNotPresent 1 DeploymentRuntimeConfig aws-config");
    // Manifests of the first specifications are taken, and shown as today's.
    for (words, expected) in [
        (&["get", "provider", "first", "-o", "jsonpath={.apiVersion}"][..], "pkg.crossplane.io/v1"),
        (
            &["get", "providers.v1beta1.pkg.crossplane.io", "old", "-o", "jsonpath={.apiVersion}"],
            "pkg.crossplane.io/v1beta1",
        ),
        (&["get", "lock", "first", "-o", "jsonpath={.apiVersion}"], "pkg.crossplane.io/v1beta1"),
        (
            &[
                "get",
                "locks.v1alpha1.pkg.crossplane.io",
                "first",
                "-o",
                "jsonpath={.packages[0].name}",
            ],
            "p-1",
        ),
    ] {
        assert_eq!(kubectl(kubeconfig, words), (true, expected.to_owned()), "{words:?}");
    }
    first_objects_are_taken(scratch, kubeconfig);
}

/// Objects of the first package system as its description has them are taken, with a word that they are
/// deprecated; one that asks for a package in two ways is not.
fn first_objects_are_taken(scratch: &Scratch, kubeconfig: &Path) {
    let objects = scratch.write("first.yaml", FIRST_OBJECTS);
    let (fine, said) = kubectl(kubeconfig, &["apply", "-f", objects.to_str().unwrap()]);
    assert!(fine, "{said}");
    let warning = "packages.crossplane.io/v1alpha1 ClusterPackageInstall is deprecated: turn the package \
                   into a Provider with `apron convert`";
    assert!(said.contains(warning), "{said}");
    let (_, header) = kubectl(kubeconfig, &["get", "clusterpackageinstalls"]);
    let columns = ["NAME", "READY", "SOURCE", "PACKAGE", "CRD", "AGE"];
    let found: Vec<&str> = header
        .lines()
        .find(|line| line.starts_with("NAME"))
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    assert_eq!(found, columns, "{header}");
    let path = "jsonpath={.spec.controller.deployment.spec.template.spec.containers[0].image} \
                {.spec.customresourcedefinitions[0].kind} {.spec.icons[0].mediatype}";
    let (_, kept) =
        kubectl(kubeconfig, &["get", "packages.packages.crossplane.io", "redis", "-o", path]);
    assert!(
        kept.contains("redis/redis-crossplane-controller:2.0.9 RedisCluster image/png"),
        "{kept}"
    );
    let both = FIRST_OBJECTS
        .replace("  package: crossplane", "  crd: a.example.org/v1\n  package: crossplane");
    let both = scratch.write("both.yaml", both);
    let (fine, said) = kubectl(kubeconfig, &["apply", "-f", both.to_str().unwrap()]);
    assert!(!fine && said.contains("exactly one of package and crd must be set"), "{said}");
    let (fine, without) = crds(&["--packages-v1=false"]);
    assert!(fine && !without.contains("packages.crossplane.io"), "the kinds can be left out");
}

/// Objects of the description of the first package system.
const FIRST_OBJECTS: &str = "
apiVersion: packages.crossplane.io/v1alpha1
kind: ClusterPackageInstall
metadata:
  name: gcp-from-package
spec:
  source: registry.crossplane.io
  package: crossplane/provider-gcp:v0.1.0
status:
  conditions:
  - type: Ready
    status: 'True'
---
apiVersion: packages.crossplane.io/v1alpha1
kind: PackageInstall
metadata:
  name: wordpress-from-crd
spec:
  source: registry.crossplane.io
  crd: wordpressinstances.wordpress.samples.packages.crossplane.io/v1alpha1
---
apiVersion: packages.crossplane.io/v1alpha1
kind: Package
metadata:
  name: redis
spec:
  customresourcedefinitions:
  - kind: RedisCluster
    apiVersion: crossplane.redislabs.com/v1alpha1
  dependsOn: []
  title: Redis package for Crossplane
  overviewShort: One sentence in plain text
  category: Database
  version: 0.1.0
  icons:
  - base64data: iVBORw0KGgoAAAANSUhEUgAAAOEAAADZCAYAAADWmle6AAAACXBIWXMA
    mediatype: image/png
  maintainers:
  - name: Rick Kane
    email: rick@foo.io
  keywords:
  - databases
  website: https://redislabs.com/
  controller:
    deployment:
      name: redis-controller
      spec:
        replicas: 1
        selector:
          matchLabels:
            core.crossplane.io/name: redis
        template:
          metadata:
            name: redis-controller
            labels:
              core.crossplane.io/name: redis
          spec:
            serviceAccountName: redis-controller
            containers:
            - name: redis-controller
              image: redis/redis-crossplane-controller:2.0.9
              imagePullPolicy: Always
              env:
---
apiVersion: packages.crossplane.io/v1alpha1
kind: PackageInstall
metadata:
  name: private
spec:
  source: private.registry.example.com
  package: private-user/image
  imagePullSecrets:
  - name: private-registry-secret
  imagePullPolicy: Always
  serviceAccount:
    annotations:
      iam-service-annotation: special-value
";

/// Objects from the guide and from upstream's documentation, and what packages bring.
const OBJECTS: &str = "
apiVersion: pkg.crossplane.io/v1alpha1
kind: ControllerConfig
metadata: {name: aws-config, annotations: {eks.amazonaws.com/role-arn: 'arn:aws:iam::1:role/r'}}
spec: {podSecurityContext: {fsGroup: 2000}}
---
apiVersion: pkg.crossplane.io/v1
kind: Provider
metadata: {name: old}
spec: {package: 'crossplane/provider-aws:v0.15.0', controllerConfigRef: {name: aws-config}}
---
apiVersion: pkg.crossplane.io/v1beta1
kind: Provider
metadata: {name: first}
spec: {package: 'crossplane/provider-aws:v0.15.0'}
---
apiVersion: pkg.crossplane.io/v1alpha1
kind: Lock
metadata: {name: first}
packages: [{name: p-1, type: Provider, source: crossplane/provider-aws, version: v0.15.0, dependencies: []}]
---
apiVersion: pkg.crossplane.io/v1
kind: Configuration
metadata: {name: my-cool-pkg}
spec: {package: mycoolpkg, packagePullPolicy: Never}
---
apiVersion: pkg.crossplane.io/v1beta1
kind: Function
metadata: {name: f}
spec: {package: 'xpkg.crossplane.io/crossplane-contrib/function-auto-ready:v0.2.1'}
---
apiVersion: pkg.crossplane.io/v1beta1
kind: DeploymentRuntimeConfig
metadata: {name: default}
spec: {deploymentTemplate: {spec: {selector: {}, template: {spec: {containers: [{name: package-runtime, args: [--debug]}]}}}}}
---
apiVersion: pkg.crossplane.io/v1beta1
kind: ImageConfig
metadata: {name: mirror}
spec: {matchImages: [{prefix: xpkg.crossplane.io}], rewriteImage: {prefix: registry.example.org}}
---
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: xbuckets.example.org}
spec: {group: example.org, names: {kind: XBucket, plural: xbuckets}, versions: []}
---
apiVersion: pkg.ibm.crossplane.io/v1
kind: Provider
metadata: {name: beside}
spec: {package: 'crossplane/provider-aws:v0.15.0'}
";

#[test]
fn our_server_takes_the_definitions() {
    let (scratch, mut running) = (Scratch::new(), Running::default());
    let mut server = Command::new(env!("CARGO_BIN_EXE_apron"));
    server.args(["apiserver", "--listen", "127.0.0.1:0", "--data-dir"]).arg(scratch.path());
    running.start(server);
    let kubeconfig = scratch.join("kubeconfig");
    wait_until_ready(&kubeconfig);
    are_taken(&scratch, &kubeconfig);
}

#[test]
fn a_real_server_takes_the_definitions() {
    let (scratch, mut running) = (Scratch::new(), Running::default());
    let (etcd, other, port) = (free_port(), free_port(), free_port());
    let path = |name: &str| scratch.join(name).display().to_string();
    let (client, between) =
        (format!("http://127.0.0.1:{etcd}"), format!("http://127.0.0.1:{other}"));
    let mut command = Command::new(peer_path("etcd"));
    command.args([
        format!("--data-dir={}", path("etcd")),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={between}"),
        format!("--initial-advertise-peer-urls={between}"),
        format!("--initial-cluster=default={between}"),
        "--unsafe-no-fsync".to_owned(),
    ]);
    running.start(command);
    // The API server gives up on an etcd that is not there in time.
    wait_for(&format!("127.0.0.1:{etcd}"));
    let key = path("sa.key");
    let made = Command::new("openssl").args(["genrsa", "-out", &key, "2048"]).output();
    assert!(made.is_ok_and(|made| made.status.success()), "openssl makes a key");
    let tokens = scratch.write("tokens.csv", "secret,admin,1,system:masters\n");
    let mut command = Command::new(peer_path("kube-apiserver"));
    command.args([
        format!("--etcd-servers={client}"),
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--cert-dir={}", path("certs")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={key}"),
        format!("--service-account-signing-key-file={key}"),
        format!("--token-auth-file={}", tokens.display()),
        "--authorization-mode=RBAC".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
    ]);
    running.start(command);
    let kubeconfig = scratch.write(
        "kubeconfig",
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters:\n- name: x\n  cluster: \
             {{server: 'https://127.0.0.1:{port}', insecure-skip-tls-verify: true}}\nusers:\n- name: \
             x\n  user: {{token: secret}}\ncontexts:\n- name: x\n  context: {{cluster: x, user: x}}\n"
        ),
    );
    wait_until_ready(&kubeconfig);
    are_taken(&scratch, &kubeconfig);
}

#[test]
fn a_suffix_that_is_no_name_is_refused_with_advice() {
    let (fine, text) = crds(&["--group-suffix", "IBM"]);
    assert!(!fine);
    insta::assert_snapshot!(text, @r#"
    error: cannot make definitions
      because "IBM" is not a DNS name of at least two labels
    hint: give a suffix such as crossplane.io or ibm.crossplane.io
    "#);
}
