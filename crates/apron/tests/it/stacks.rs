//! Packages of the first format: from a directory to a registry and back, and into today's format.

use crate::support::{Ran, Registry, Scratch, apron, peer, shared};
use serde_json::Value;

const CRD: &str = "apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: buckets.storage.example.org}
spec:
  group: storage.example.org
  names: {kind: Bucket, plural: buckets}
  scope: Namespaced
  version: v1alpha1
  subresources: {status: {}}
  additionalPrinterColumns: [{name: SIZE, type: string, JSONPath: .spec.size}]
  validation: {openAPIV3Schema: {properties: {spec: {type: object, properties: {size: {type: string}}}}}}
";
const POLICY: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: policies.access.example.org}
spec:
  group: access.example.org
  names: {kind: Policy, plural: policies}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";
const INSTALL: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: storage}
spec:
  selector: {matchLabels: {app: storage}}
  template:
    metadata: {labels: {app: storage}}
    spec:
      containers:
      - {name: controller, image: registry.example.org/storage/controller:v1.2.0, args: [--debug]}
";

/// Two definitions in two groups, with nested metadata, icons and ui-schemas.
fn storage_stack(scratch: &Scratch) {
    let app = "title: Storage Stack\nversion: 1.2.0\noverviewShort: Buckets and policies\nlicense: Apache-2.0\nsource: https://example.org/storage\nmaintainers: [{name: Ada, email: ada@example.org}]\nkeywords: [storage]\npackageType: Stack\npermissionScope: Cluster\ndependsOn:\n- crd: networks.net.example.org/v1\n";
    for (path, text) in [
        ("app.yaml", app),
        ("install.yaml", INSTALL),
        ("icon.svg", "<svg/>"),
        ("ui-schema.yaml", "version: 1\n"),
        ("resources/storage/group.yaml", "title: Storage\n"),
        ("resources/storage/bucket.crd.yaml", CRD),
        ("resources/storage/resource.yaml", "id: bucket\ntitle: Bucket\ntitlePlural: Buckets\n"),
        ("resources/storage/bucket.icon.svg", "<svg id='bucket'/>"),
        ("resources/access/policy.crd.yaml", POLICY),
        ("resources/access/policy.ui-schema.yaml", "version: 2\n"),
        ("notes.txt", "for people\n"),
    ] {
        scratch.write(&format!("src/.registry/{path}"), text);
    }
}

fn built_stack() -> Scratch {
    let scratch = Scratch::new();
    storage_stack(&scratch);
    apron(&scratch, ["build", "src", "-o", "storage.xpkg"]).ok();
    scratch
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn a_stack_goes_from_directory_to_registry_and_back() {
    let scratch = built_stack();
    let registry = Registry::start();
    let there = registry.reference("team/storage:v1.2.0");
    let here = apron(&scratch, ["unpack", "src"]).ok().stdout;
    insta::assert_snapshot!(here);
    assert_eq!(apron(&scratch, ["unpack", "src/.registry"]).ok().stdout, here);
    assert_eq!(apron(&scratch, ["unpack", "storage.xpkg"]).ok().stdout, here);
    apron(&scratch, ["push", &there, "-f", "storage.xpkg"]).ok();
    assert_eq!(
        apron(&scratch, ["lint", &there, "--strict"]).ok().stdout,
        "1 package checked: 0 errors, 0 warnings\n"
    );
    assert_eq!(apron(&scratch, ["unpack", &there]).ok().stdout, here);
    apron(&scratch, ["copy", &there, "oci:copied:v1.2.0"]).ok();
    assert_eq!(apron(&scratch, ["unpack", "oci:copied:v1.2.0"]).ok().stdout, here);
    let facts = json(&apron(&scratch, ["inspect", &there, "-o", "json"]).ok());
    assert_eq!(facts["package"]["kind"], "Stack");
    assert_eq!(facts["package"]["apiVersion"], "packages.crossplane.io/v1alpha1");
    assert_eq!(facts["objects"].as_array().unwrap().len(), 2);
    assert_eq!(facts["dependencies"][0]["package"], "networks.net.example.org");
    assert_eq!(facts["image"]["layers"].as_array().unwrap().len(), 1);
    let of_directory = json(&apron(&scratch, ["inspect", "src", "-o", "json"]).ok());
    assert_eq!(of_directory["objects"], facts["objects"]);
    // A tag that is another version is told of, wherever the package is read.
    let wrong = registry.reference("team/storage:v1.3.0");
    apron(&scratch, ["copy", &there, &wrong]).ok();
    let said = apron(&scratch, ["lint", &wrong]).failed();
    assert!(
        said.contains("version \"1.2.0\" is not the tag \"v1.3.0\" [stack-version-tag]"),
        "{said}"
    );
}

#[test]
fn the_same_stack_gives_the_same_bytes() {
    let scratch = built_stack();
    let first = json(&apron(&scratch, ["build", "src", "-o", "a.xpkg", "--output", "json"]).ok());
    storage_stack(&scratch);
    let second = json(&apron(&scratch, ["build", "src", "-o", "b.xpkg", "--output", "json"]).ok());
    assert_eq!(first["digest"], second["digest"]);
}

#[test]
fn a_converted_stack_is_a_provider_that_upstream_reads() {
    let scratch = built_stack();
    let told = apron(&scratch, ["convert", "storage.xpkg", "-d", "today"]).ok().stdout;
    insta::assert_snapshot!(told);
    let read = |path: &str| fs_err::read_to_string(scratch.join(path)).unwrap();
    insta::assert_snapshot!(read("today/package/crossplane.yaml"));
    insta::assert_snapshot!(read("today/runtime-config.yaml"));
    apron(&scratch, ["lint", "today/package", "--strict"]).ok();
    apron(&scratch, ["build", "today/package", "-o", "today.xpkg"]).ok();
    peer(&scratch, "crossplane", ["xpkg", "extract", "--from-xpkg", "today.xpkg", "-o", "up.gz"])
        .ok();
    peer(&scratch, "crossplane", ["xpkg", "build", "-f", "today/package", "-o", "theirs.xpkg"])
        .ok();
    // It installs, and is healthy once its definitions and rights are there.
    scratch.copy_package_from(&scratch.join("today/package"), "platform/storage");
    let anywhere = ["--listen", "127.0.0.1:0", "--registry-listen", "127.0.0.1:0"];
    // Its controller is in no registry here.
    let flags = [
        "up",
        "platform",
        "--in-memory",
        "--exit-when-ready",
        "--allow-any-permissions",
        "--runtime",
        "simulated",
    ];
    let said = apron(&scratch, flags.iter().chain(&anywhere)).ok().all();
    assert!(said.contains("provider storage-stack v0.1.0: healthy"), "{said}");
    // The definitions are those of the stack, byte for byte.
    let unpacked = apron(&scratch, ["unpack", "src"]).ok().stdout;
    for name in ["buckets.storage.example.org", "policies.access.example.org"] {
        let definition = read(&format!("today/package/crds/{name}.yaml"));
        assert!(unpacked.contains(&definition), "{definition}");
    }
    let said = apron(&scratch, ["convert", "storage.xpkg", "-d", "today"]).failed();
    assert!(said.contains("is a directory with other things in it"), "{said}");
}

#[test]
fn the_real_sample_stack_is_read_built_and_converted() {
    let Some(sample) = shared("corpus/packages/sample-stack-v1") else { return };
    let scratch = Scratch::new();
    scratch.copy_package_from(&sample, "src");
    let findings = apron(&scratch, ["lint", "src"]).ok().stdout;
    insta::assert_snapshot!("sample_lint", findings);
    let words = [
        "unpack",
        "src",
        "--name",
        "sample",
        "--permission-scope",
        "Cluster",
        "--outfile",
        "o.yaml",
    ];
    apron(&scratch, words).ok();
    let unpacked = fs_err::read_to_string(scratch.join("o.yaml")).unwrap();
    assert!(unpacked.contains("kind: Package\nmetadata:\n  name: sample\n"), "{unpacked}");
    apron(&scratch, ["build", "src", "-o", "s.xpkg"]).ok();
    apron(&scratch, ["convert", "s.xpkg", "--name", "provider-sample"]).ok();
    apron(&scratch, ["build", "provider-sample/package", "-o", "p.xpkg"]).ok();
    peer(&scratch, "crossplane", ["xpkg", "extract", "--from-xpkg", "p.xpkg", "-o", "up.gz"]).ok();
}

#[test]
fn directories_made_to_do_harm_are_refused_with_their_places() {
    let scratch = Scratch::new();
    storage_stack(&scratch);
    let registry = scratch.join("src/.registry");
    std::os::unix::fs::symlink("/etc/passwd", registry.join("resources/storage/x.crd.yaml"))
        .unwrap();
    std::os::unix::fs::symlink("/etc", registry.join("resources/etc")).unwrap();
    scratch.write("src/.registry/resources/bin.crd.yaml", b"\xff\xfe");
    let said = apron(&scratch, ["lint", "src"]).failed();
    for expected in [
        "src/.registry/resources/etc: error: resources/etc is a link, and links are not followed [stack-file-unread]",
        "src/.registry/resources/storage/x.crd.yaml: error: ",
        "src/.registry/resources/bin.crd.yaml:1:1: error: file is not UTF-8 text [yaml-syntax]",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    let said = apron(&scratch, ["build", "src", "-o", "bad.xpkg"]).failed();
    assert!(said.contains("nothing was written"), "{said}");
    assert!(!scratch.join("bad.xpkg").exists());
    // The directory itself may not be a link either.
    std::os::unix::fs::symlink(
        &registry,
        scratch.write("linked/x", "").with_file_name(".registry"),
    )
    .unwrap();
    let said = apron(&scratch, ["unpack", "linked"]).failed();
    assert!(said.contains(".registry is a link"), "{said}");
}

#[test]
fn a_directory_beside_metadata_of_today_is_told_of() {
    let scratch = built_stack();
    apron(&scratch, ["convert", "storage.xpkg", "-d", "today"]).ok();
    scratch.write("today/package/.registry/app.yaml", "title: Forgotten\n");
    let said = apron(&scratch, ["lint", "today/package", "--ignore", ".registry"]).ok().stdout;
    let finding = "today/package/.registry: warning: a package of the first format is beside one of \
                   today, which alone counts [stack-registry-ignored]";
    assert!(said.contains(finding), "{said}");
}

#[test]
fn commands_say_what_they_take() {
    let scratch = built_stack();
    let said = apron(&scratch, ["diff", "storage.xpkg", "storage.xpkg"]).failed();
    assert!(
        said.contains(
            "one of the first format (.registry/) is installed by a ClusterPackageInstall"
        ),
        "{said}"
    );
    let words = ["unpack", "src", "--permission-scope", "Namespaced"];
    let said = apron(&scratch, words).failed();
    assert!(said.contains("the package's permissionScope is Cluster, not Namespaced"), "{said}");
    apron(&scratch, ["init", "configuration", "mine"]).ok();
    let said = apron(&scratch, ["unpack", "mine"]).failed();
    assert!(
        said.contains("mine is not a package of the first format: it has no .registry"),
        "{said}"
    );
}
