//! From images to outcomes: packages, what only looks like one, and what is made to do harm.

use crate::support::{image, image_of, index_of, look, manifest};
use catalog::{Incomplete, Origin, Outcome, Package};
use oci::{Descriptor, Identifier, MediaType};
use serde_json::json;
use store::{Layout, Store as _};

const META: &str = "apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata:
  name: provider-nop
  annotations:
    meta.crossplane.io/license: Apache-2.0
    meta.crossplane.io/description: does nothing
    meta.crossplane.io/iconURI: 'data:image/png;base64,AAAA'
    keywords: cloud, , nothing
    category: Storage
    readme: A longer text.
spec:
  dependsOn:
  - provider: registry.example.org/team/base
    version: '>=v1.0.0'
  controller:
    permissionRequests:
    - {apiGroups: [''], resources: [pods], verbs: [get]}
";

const CRD: &str = "---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: nops.example.org}
spec:
  group: example.org
  names: {kind: Nop, plural: nops}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
";

async fn package(text: &str) -> Package {
    let (memory, raw) = image("package.yaml", text.as_bytes(), true).await;
    match look(&memory, &raw.digest).await.unwrap() {
        Outcome::Package(package) => *package,
        other => panic!("{other:?}"),
    }
}

async fn reason(text: &[u8]) -> String {
    let (memory, raw) = image("package.yaml", text, true).await;
    match look(&memory, &raw.digest).await.unwrap() {
        Outcome::Broken(reason) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_package_is_read_with_what_it_says_and_brings() {
    let package = package(&format!("{META}{CRD}")).await;
    assert!(package.size > 100, "{}", package.size);
    let [one] = package.layers.as_slice() else { panic!("{:?}", package.layers) };
    assert_eq!((one.size, one.annotations.len()), (package.size, 1));
    assert!(one.digest.starts_with("sha256:") && one.media_type.ends_with("tar.gzip"));
    let without_layers = Package { size: 0, layers: Vec::new(), ..package.clone() };
    let facts = serde_json::to_value(without_layers).unwrap();
    let rule = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]});
    let base = "registry.example.org/team/base";
    let expected = json!({
        "type": "Provider",
        "dialect": "meta.pkg.crossplane.io/v1",
        "name": "provider-nop",
        "description": "does nothing",
        "license": "Apache-2.0",
        "category": "Storage",
        "keywords": ["cloud", "nothing"],
        "dependencies": [{"type": "Provider", "package": base, "version": ">=v1.0.0"}],
        "permissions": [rule],
        "platforms": ["linux/arm64"],
        "size": 0,
        "created": "2026-01-02T03:04:05Z",
    });
    assert_eq!(facts, expected);
    assert_eq!(package.readme.as_deref(), Some("A longer text."));
    assert_eq!(package.icon.as_deref(), Some("data:image/png;base64,AAAA"));
    let names: Vec<&str> = package.definitions.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["nops.example.org"]);
    assert_eq!(package.schemas.len(), 1, "two versions share one schema");
    let digests = package.definitions[0].versions.iter().map(|it| it.schema.as_deref());
    assert!(digests.eq([Some(package.schemas[0].digest.as_str()); 2]));
}

#[tokio::test]
async fn a_package_of_the_first_format_is_read_by_its_directory() {
    let app = "title: Sample\noverviewShort: does little\nreadme: A longer text.\ncategory: Storage\n\
               keywords: [cloud]\npermissionScope: Cluster\n";
    let crd = CRD.trim_start_matches("---\n");
    let files: [(&str, &[u8]); 3] = [
        ("bin/controller", b"program"),
        (".registry/app.yaml", app.as_bytes()),
        (".registry/resources/crd.yaml", crd.as_bytes()),
    ];
    let (memory, raw) = image_of(&files, false).await;
    let Outcome::Package(package) = look(&memory, &raw.digest).await.unwrap() else { panic!() };
    assert_eq!(package.dialect, "packages.crossplane.io/v1alpha1");
    assert_eq!((package.kind.as_str(), package.name.as_str()), ("Provider", "sample"));
    assert_eq!(package.find_install_kind(), Some("ClusterPackageInstall"));
    assert_eq!(package.permission_scope.as_deref(), Some("Cluster"));
    assert_eq!(package.description.as_deref(), Some("does little"));
    assert_eq!(package.readme.as_deref(), Some("A longer text."));
    assert_eq!(
        (package.category.as_deref(), package.keywords.join(" ")),
        (Some("Storage"), "cloud".into())
    );
    let names: Vec<&str> = package.definitions.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["nops.example.org"]);
    assert!(package.definitions[0].origin.installs());
    // One that cannot be read is listed with the reason.
    let files: [(&str, &[u8]); 1] = [(".registry/app.yaml", b"title: [")];
    let (memory, raw) = image_of(&files, false).await;
    let Outcome::Broken(reason) = look(&memory, &raw.digest).await.unwrap() else { panic!() };
    assert!(reason.contains(".registry/app.yaml line 1"), "{reason}");
}

#[tokio::test]
async fn what_a_function_defines_is_never_installed() {
    let function = META.replace("kind: Provider", "kind: Function");
    let package = package(&format!("{function}{CRD}")).await;
    assert_eq!(package.definitions[0].origin, Origin::FunctionInput);
    assert!(!package.definitions[0].origin.installs());
}

#[tokio::test]
async fn an_index_is_read_by_its_image_and_tells_all_platforms() {
    let (memory, raw) = image("package.yaml", META.as_bytes(), true).await;
    let index = index_of(&memory, &raw).await;
    let Outcome::Package(package) = look(&memory, &index.digest).await.unwrap() else { panic!() };
    assert_eq!(package.platforms, ["linux/amd64", "linux/arm64"]);
}

#[tokio::test]
async fn an_image_without_marks_is_a_package_if_it_has_the_file() {
    let (memory, raw) = image("package.yaml", META.as_bytes(), false).await;
    assert!(matches!(look(&memory, &raw.digest).await.unwrap(), Outcome::Package(_)));
    let (memory, raw) = image("etc/hello", b"hello", false).await;
    assert_eq!(look(&memory, &raw.digest).await.unwrap(), Outcome::Other);
    let (memory, raw) = image("etc/hello", b"hello", true).await;
    assert!(matches!(look(&memory, &raw.digest).await.unwrap(), Outcome::Broken(_)));
}

#[tokio::test]
async fn what_is_broken_or_hostile_is_told_with_the_reason() {
    for (text, why) in [
        (&b"a: [1"[..], "package.yaml"),
        (&b"\xff\xfe"[..], "package.yaml"),
        (&b"apiVersion: v1\nkind: ConfigMap\n"[..], "metadata"),
        (META.replace("kind: Provider", "kind: Stack").as_bytes(), "Stack"),
    ] {
        let reason = reason(text).await;
        assert!(!reason.is_empty(), "{why}");
    }
    // A small text that aliases make huge.
    let mut bomb = format!("{META}---\na0: &a0 [x,x,x,x,x,x,x,x,x]\n");
    for level in 1..30 {
        let before = vec![format!("*a{}", level - 1); 9].join(",");
        bomb.push_str(&format!("a{level}: &a{level} [{before}]\n"));
    }
    let (memory, raw) = image("package.yaml", bomb.as_bytes(), true).await;
    match look(&memory, &raw.digest).await.unwrap() {
        Outcome::Broken(reason) => assert!(!reason.is_empty()),
        Outcome::Package(package) => assert!(package.problem.is_some()),
        Outcome::Other => panic!("it says that it is a package"),
    }
    // A layer that says it is far too big is refused before it is read.
    let memory = store::Memory::new();
    let mut layer = Descriptor::of(MediaType::DOCKER_LAYER_GZIP, b"x");
    layer.size = 1 << 40;
    layer.annotations.insert("io.crossplane.xpkg".to_owned(), "base".to_owned());
    let raw = manifest(&memory, vec![layer]).await;
    let Outcome::Broken(reason) = look(&memory, &raw.digest).await.unwrap() else { panic!() };
    assert!(reason.contains("allowed"), "{reason}");
}

#[tokio::test]
async fn what_is_not_there_yet_is_no_verdict() {
    let (memory, raw) = image("package.yaml", META.as_bytes(), true).await;
    let empty = store::Memory::new();
    assert!(matches!(look(&empty, &raw.digest).await, Err(Incomplete::Missing(_))));
    let mut layer = Descriptor::of(MediaType::DOCKER_LAYER_GZIP, b"somewhere else");
    layer.annotations.insert("io.crossplane.xpkg".to_owned(), "base".to_owned());
    let raw = manifest(&memory, vec![layer]).await;
    assert!(matches!(look(&memory, &raw.digest).await, Err(Incomplete::Missing(_))));
}

#[tokio::test]
async fn a_place_with_other_bytes_under_a_digest_says_nothing_of_what_the_digest_is() {
    let (memory, raw) = image("package.yaml", format!("{META}{CRD}").as_bytes(), true).await;
    let directory = tempfile::tempdir().unwrap();
    let layout = Layout::create(directory.path()).await.unwrap();
    let manifest = raw.manifest().unwrap();
    for described in manifest.layers.iter().chain([&manifest.config]) {
        let blob = memory.blob(described).await.unwrap().unwrap();
        layout.put_blob(described, &blob.bytes(described.size).await.unwrap()).await.unwrap();
    }
    layout.put_manifest(&Identifier::Digest(raw.digest.clone()), &raw).await.unwrap();
    let path = directory.path().join("blobs/sha256").join(manifest.layers[0].digest.hex());
    let bytes = fs_err::read(&path).unwrap();
    for lie in [vec![b'x'; bytes.len()], bytes.iter().rev().copied().collect()] {
        fs_err::write(&path, lie).unwrap();
        let found = look(&layout, &raw.digest).await;
        assert!(matches!(found, Err(Incomplete::DigestMismatch(_))), "{found:?}");
    }
    fs_err::write(&path, bytes).unwrap();
    assert!(matches!(look(&layout, &raw.digest).await.unwrap(), Outcome::Package(_)));
}
