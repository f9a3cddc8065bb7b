//! One example of each rule, good and bad.

use super::*;
use crate::diagnostic::Severity;
use serde_json::{Value as Json, json};
use std::borrow::Cow;
use yaml::{Entry, Position, Value};

/// Lays a JSON value out as block-style YAML would be, so that positions mean something: every
/// entry and item has a line of its own.
fn lay_out<'a>(json: &'a Json, line: &mut u32, column: u32) -> Node<'a> {
    let position = Position { line: *line, column };
    let value = match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(value) => Value::Int(value.as_i64().unwrap()),
        Json::String(text) => Value::String(Cow::Borrowed(text)),
        Json::Array(items) => {
            let item = |item| {
                let node = lay_out(item, line, column + 2);
                *line += u32::from(!matches!(node.value, Value::Mapping(_) | Value::Sequence(_)));
                node
            };
            Value::Sequence(items.iter().map(item).collect())
        }
        Json::Object(entries) => Value::Mapping(
            entries
                .iter()
                .map(|(key, json)| {
                    let position = Position { line: *line, column };
                    let nested = matches!(json, Json::Object(map) if !map.is_empty())
                        || matches!(json, Json::Array(list) if !list.is_empty());
                    let value = if nested {
                        *line += 1;
                        lay_out(json, line, column + 2)
                    } else {
                        let after = column + u32::try_from(key.len()).unwrap() + 2;
                        let value = lay_out(json, line, after);
                        *line += 1;
                        value
                    };
                    Entry { key: Cow::Borrowed(key), position, value }
                })
                .collect(),
        ),
    };
    Node { value, position }
}

pub(in crate::lint) fn node(json: &Json) -> Node<'_> {
    lay_out(json, &mut 1, 1)
}

/// The findings about a package of the given documents, one line each.
fn lint(package: &[Json]) -> String {
    let files: Vec<_> = (1..=package.len()).map(|index| format!("{index}.yaml")).collect();
    let nodes: Vec<_> = package.iter().map(node).collect();
    let pairs = files.iter().zip(&nodes);
    let found = documents(pairs.map(|(file, node)| Document { file, node }));
    let line = |one: &Diagnostic| {
        let severity = if one.severity == Severity::Error { "error" } else { "warning" };
        let hint = one.hint.as_ref().map_or(String::new(), |hint| format!(" ({hint})"));
        let (file, line, column, rule) = (&one.file, one.line, one.column, one.rule);
        format!("{file}:{line}:{column}: {severity}: {}{hint} [{rule}]", one.message)
    };
    found.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The findings about one schema, one line each, with lines counted from where it begins.
pub(in crate::lint) fn findings_of_schema(schema: &Json) -> String {
    let pointer = "/spec/versions/0/schema/openAPIV3Schema";
    let definition = with(&crd(), pointer, schema.clone());
    let found = document("", &node(&definition)).diagnostics;
    let line = |one: Diagnostic| {
        let hint = one.hint.map_or(String::new(), |hint| format!(" ({hint})"));
        let message = one.message.replace("spec.versions[0].schema.openAPIV3Schema", "schema");
        format!("{}:{} {}: {message}{hint}", one.line - 16, one.column, one.rule)
    };
    found.into_iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The same document with the value at a pointer replaced, added or (by `null`) emptied.
fn with(document: &Json, pointer: &str, value: Json) -> Json {
    let mut document = document.clone();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = document.pointer_mut(parent).unwrap();
    match parent {
        Json::Array(items) => items[key.parse::<usize>().unwrap()] = value,
        parent => parent[key] = value,
    }
    document
}

fn provider() -> Json {
    json!({
        "apiVersion": "meta.pkg.crossplane.io/v1", "kind": "Provider",
        "metadata": { "name": "provider-example" },
        "spec": { "crossplane": { "version": ">=v1.14.0-0" } },
    })
}

fn configuration(depends_on: &[Json]) -> Json {
    json!({
        "apiVersion": "meta.pkg.crossplane.io/v1", "kind": "Configuration",
        "metadata": { "name": "platform" },
        "spec": { "dependsOn": depends_on },
    })
}

fn crd() -> Json {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "buckets.example.org" },
        "spec": {
            "group": "example.org",
            "names": { "kind": "Bucket", "plural": "buckets" },
            "scope": "Cluster",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "metadata": { "type": "object" },
                        "spec": { "type": "object", "properties": { "size": { "type": "integer" } } },
                    },
                } },
            }],
        },
    })
}

fn xrd() -> Json {
    json!({
        "apiVersion": "apiextensions.crossplane.io/v2", "kind": "CompositeResourceDefinition",
        "metadata": { "name": "clusters.example.org" },
        "spec": {
            "group": "example.org",
            "names": { "kind": "Cluster", "plural": "clusters" },
            "versions": [{
                "name": "v1", "served": true, "referenceable": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    })
}

fn composition() -> Json {
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": { "name": "clusters" },
        "spec": {
            "compositeTypeRef": { "apiVersion": "example.org/v1", "kind": "Cluster" },
            "mode": "Pipeline",
            "pipeline": [{ "step": "ready", "functionRef": { "name": "acme-function-ready" } }],
        },
    })
}

fn ready() -> Json {
    json!({ "function": "xpkg.example.org/acme/function-ready", "version": ">=v0.1.0" })
}

#[test]
fn sound_packages_have_no_findings() {
    assert_eq!(lint(&[provider(), crd()]), "");
    assert_eq!(lint(&[composition(), xrd(), configuration(&[ready()])]), "");
    let function = with(&provider(), "/kind", json!("Function"));
    assert_eq!(lint(&[function, crd()]), "");
}

#[test]
fn one_metadata_is_needed() {
    insta::assert_snapshot!(lint(&[crd()]), @":0:0: error: package has no metadata (add a crossplane.yaml with a Provider, Configuration or Function of meta.pkg.crossplane.io/v1) [metadata-missing]");
    insta::assert_snapshot!(lint(&[provider(), crd(), configuration(&[])]), @"3.yaml:1:1: error: package has a second metadata document; the first is at 1.yaml:1 (a package has exactly one; remove this one or that one) [metadata-duplicate]");
}

#[test]
fn metadata_must_be_registered_and_well_typed() {
    let beta = with(&provider(), "/apiVersion", json!("meta.pkg.crossplane.io/v1beta1"));
    insta::assert_snapshot!(lint(&[beta]), @"1.yaml:1:1: error: Provider in meta.pkg.crossplane.io/v1beta1 is not a kind of package metadata (use meta.pkg.crossplane.io/v1) [metadata-unregistered]");
    let plugin = with(&provider(), "/kind", json!("Plugin"));
    insta::assert_snapshot!(lint(&[plugin]), @"1.yaml:1:1: error: Plugin in meta.pkg.crossplane.io/v1 is not a kind of package metadata (package metadata is a Provider, a Configuration or a Function) [metadata-unregistered]");
    let wrong = with(&provider(), "/metadata/labels", json!({ "a": 1 }));
    let wrong = with(&wrong, "/spec/dependsOn", json!([{ "provider": "a/b", "version": 2 }]));
    insta::assert_snapshot!(lint(&[wrong]), @"
    1.yaml:6:8: error: metadata.labels.a must be a string, not a number [metadata-invalid]
    1.yaml:12:16: error: spec.dependsOn[0].version must be a string, not a number [metadata-invalid]
    ");
}

#[test]
fn what_metadata_says_of_a_package_can_be_used() {
    let annotations = json!({"meta.crossplane.io/source": "not a url", "license": "Not A License", "bad key!": "x"});
    let said = lint(&[with(&provider(), "/metadata/annotations", annotations)]);
    for rule in ["metadata-source", "metadata-license", "metadata-key"] {
        assert_eq!(said.matches(rule).count(), 1, "{rule}: {said}");
    }
    let annotations = json!({"source": "github.com/example/p", "license": "Apache-2.0 OR MIT"});
    let said = lint(&[with(&provider(), "/metadata/annotations", annotations)]);
    assert!(!said.contains("metadata-"), "{said}");
}

#[test]
fn the_first_dialect_has_what_it_calls_required() {
    let first = |kind: &str, spec: Json| {
        let (version, name) = ("meta.pkg.ibm.crossplane.io/v1alpha1", json!({"name": "p"}));
        lint(&[json!({"apiVersion": version, "kind": kind, "metadata": name, "spec": spec})])
    };
    for (kind, spec, missing) in [
        ("Provider", json!(null), "spec"),
        ("Provider", json!({}), "spec.controller"),
        ("Provider", json!({"controller": {}}), "spec.controller.image"),
        ("Configuration", json!(null), "spec"),
    ] {
        let said = first(kind, spec);
        assert!(said.contains(&format!("{missing} is required in this format")), "{said}");
    }
    let said = first("Provider", json!({"controller": {"image": "example.org/p:v1"}}));
    assert!(!said.contains("metadata-required"), "{said}");
}

#[test]
fn unknown_fields_of_metadata_are_noticed() {
    let spec = json!({
        "dependson": [], "controller": { "image": "a:v1", "resources": {} },
        "crossplane": { "Version": "" , "version": ">=v1" },
    });
    insta::assert_snapshot!(lint(&[with(&provider(), "/spec", spec)]), @r#"
    1.yaml:6:3: warning: field "dependson" means nothing here and is ignored (did you mean "dependsOn"?) [metadata-unknown-field]
    1.yaml:9:5: warning: field "resources" means nothing here and is ignored (known here: image, permissionRequests) [metadata-unknown-field]
    1.yaml:11:5: warning: field "Version" means nothing here and is ignored (did you mean "version"?) [metadata-unknown-field]
    "#);
}

#[test]
fn constraints_are_read_as_crossplane_reads_them() {
    let crossplane =
        |text: &str| lint(&[with(&provider(), "/spec/crossplane/version", json!(text))]);
    insta::assert_snapshot!(crossplane(""), @r#"1.yaml:7:14: error: constraint on Crossplane's version cannot be read: a constraint must not be empty (write a range such as ">=v1.14.0-0", or remove spec.crossplane) [crossplane-constraint]"#);
    insta::assert_snapshot!(crossplane("latest"), @r#"1.yaml:7:14: error: constraint on Crossplane's version cannot be read: improper constraint "latest" (write a range such as ">=v1.14.0-0", or remove spec.crossplane) [crossplane-constraint]"#);
    insta::assert_snapshot!(crossplane("v1.14"), @r#"1.yaml:7:14: warning: version "v1.14" is not exact: it means the range v1.14.x (write "~v1.14", or all three numbers) [version-partial]"#);
    insta::assert_snapshot!(crossplane(">=v1.0.0-0 <v2"), @r#"1.yaml:7:14: warning: range ">=v1.0.0-0 <v2" also admits pre-releases of v2 (write <2.0.0-0 to exclude them) [version-prerelease]"#);
    assert_eq!(crossplane("^v1.14.0-0 || ~2.1"), "");
}

#[test]
fn dependencies_name_a_repository_and_a_range() {
    let hex = "0".repeat(64);
    assert_eq!(
        lint(&[configuration(&[
            json!({ "provider": "xpkg.example.org/acme/provider-a", "version": "v1.2.3" }),
            json!({ "configuration": "acme/b", "version": format!("sha256:{hex}") }),
            json!({
                "apiVersion": "pkg.crossplane.io/v1", "kind": "Function",
                "package": "localhost:5000/c", "version": ">=1 <2",
            }),
        ])]),
        ""
    );
    insta::assert_snapshot!(lint(&[configuration(&[
        json!({ "provider": "acme/a:v1.0.0" }),
        json!({ "provider": "acme/b@sha256:00", "version": "latest" }),
        json!({ "provider": "https://example.org/c", "version": "*" }),
        json!({ "provider": "Acme/D", "version": "v1" }),
        json!({ "package": "acme/e", "version": "*" }),
        json!({ "version": "*" }),
        json!({ "provider": "acme/f", "function": "acme/g", "version": "*" }),
        json!({ "provider": "acme/f", "version": ">=1" }),
    ])]), @r#"
    1.yaml:7:7: error: dependency has no version (write a constraint such as ">=v1.2.0", or a digest) [dependency-version]
    1.yaml:7:17: error: package "acme/a:v1.0.0" carries a tag or digest (write "acme/a", and the tag or digest as version) [dependency-pinned]
    1.yaml:8:17: error: package "acme/b@sha256:00" carries a tag or digest (write "acme/b", and the tag or digest as version) [dependency-pinned]
    1.yaml:9:16: error: version "latest" is neither a constraint nor a digest: improper constraint "latest" (tags that are no versions, such as latest, cannot be depended on) [dependency-version]
    1.yaml:10:17: error: package "https://example.org/c" is not a repository: it has a URL scheme (write it like registry.example.org/organisation/package) [dependency-reference]
    1.yaml:12:17: error: package "Acme/D" is not a repository: repository `Acme/D` may only have lower-case letters and digits with `_` `-` `.` `/` between them, at most 255 in all (write it like registry.example.org/organisation/package) [dependency-reference]
    1.yaml:13:16: warning: version "v1" is not exact: it means the range v1.x (write "~v1", or all three numbers) [version-partial]
    1.yaml:14:7: error: dependency lacks apiVersion and kind of its explicit type (set apiVersion, kind and package together) [dependency-target]
    1.yaml:16:7: error: dependency names no package (set apiVersion, kind and package) [dependency-target]
    1.yaml:18:7: warning: dependency names several packages; function will be ignored (keep one of them) [dependency-ambiguous]
    1.yaml:20:7: error: acme/f is depended on twice; first in line 17 (merge both into one entry; a constraint may have several parts) [dependency-duplicate]
    "#);
}

#[test]
fn dependencies_may_name_kinds() {
    let definition = |package: &str| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "package": package,
        })
    };
    assert_eq!(
        lint(&[configuration(&[
            json!({ "crd": "buckets.s3.example.org/v1beta1" }),
            json!({ "crd": "*.db.example.org" }),
            definition("queues.sqs.example.org"),
        ])]),
        ""
    );
    insta::assert_snapshot!(lint(&[configuration(&[
        json!({ "crd": "buckets" }),
        json!({ "crd": "deployments.apps/v1" }),
        json!({ "crd": "buckets.s3.example.org", "version": ">=v1.0.0" }),
        json!({ "crd": "tables.s3.example.org", "provider": "acme/a", "version": "*" }),
        json!({ "crd": "buckets.s3.example.org" }),
        json!({ "crd": "leases.coordination.k8s.io/v1" }),
        definition("buckets.s3.example.org/first"),
    ])]), @r#"
    1.yaml:7:12: error: dependency on a kind: `buckets` has no group: write NAME.GROUP, where the group has a dot in it (write it like buckets.s3.example.org/v1beta1, or *.s3.example.org) [dependency-crd]
    1.yaml:8:12: error: dependency on a kind: `deployments.apps` has no group: write NAME.GROUP, where the group has a dot in it (write it like buckets.s3.example.org/v1beta1, or *.s3.example.org) [dependency-crd]
    1.yaml:10:16: error: dependency on a kind has a version of a package, ">=v1.0.0" (remove it; the version of the kind stands behind its name, after a slash) [dependency-crd]
    1.yaml:11:7: error: dependency names several packages; crd will be ignored (keep one of them) [dependency-crd]
    1.yaml:14:7: error: buckets.s3.example.org is depended on twice; first in line 9 (merge both into one entry; a constraint may have several parts) [dependency-duplicate]
    1.yaml:15:12: error: no package may bring leases.coordination.k8s.io/v1: its group is reserved (remove the dependency; the kind is there) [dependency-crd]
    1.yaml:18:16: error: dependency on a kind: `first` is not a version such as v1, v1beta1 or v2alpha1 (write it like buckets.s3.example.org/v1beta1, or *.s3.example.org) [dependency-crd]
    "#);
    let own = json!([{ "crd": "bucket.example.org/v1" }]);
    insta::assert_snapshot!(lint(&[with(&provider(), "/spec/dependsOn", own), crd()]), @"1.yaml:1:1: error: package depends on bucket.example.org/v1, which it brings itself at 2.yaml:1 (remove the dependency) [dependency-crd]");
}

#[test]
fn the_first_dialect_meant_exact_tags() {
    let first = json!({
        "apiVersion": "meta.pkg.ibm.crossplane.io/v1alpha1", "kind": "Provider",
        "metadata": { "name": "provider-example" },
        "spec": {
            "controller": { "image": "example/provider-example:v0.1.0" },
            "crossplane": "v0.13",
            "dependsOn": [{ "provider": "example/provider-uncommon", "version": "nightly" }],
            "permissionRequests": [{ "verbs": ["*"] }],
        },
    });
    assert_eq!(lint(&[first, crd()]), "");
}

#[test]
fn keys_of_dependencies_say_what_names_do() {
    let needs = json!([
        { "provider": "example.org/function-a", "version": "*" },
        { "function": "example.org/function-b", "version": "*" },
        { "configuration": "example.org/providers", "version": "*" },
        { "configuration": "provider-c", "version": "*" },
    ]);
    insta::assert_snapshot!(lint(&[with(&provider(), "/spec/dependsOn", needs), crd()]), @"
    1.yaml:9:17: warning: example.org/function-a is a Function by its name, and its key says provider (write function: instead; apron looks what it is, other package managers go by the key) [dependency-kind]
    1.yaml:15:22: warning: provider-c is a Provider by its name, and its key says configuration (write provider: instead; apron looks what it is, other package managers go by the key) [dependency-kind]
    ");
}

#[test]
fn what_steers_the_manager_is_not_a_packages_to_say() {
    let annotations = json!({
        "crossplane.io/paused": "true", "pkg.crossplane.io/adopt-existing": "true",
        "pkg.crossplane.io/other": "x", "app.kubernetes.io/name": "y",
    });
    let labels = json!({
        "pkg.crossplane.io/package": "q", "pkg.crossplane.io/provider-family": "f", "team": "t",
    });
    let says = with(&provider(), "/metadata/annotations", annotations);
    insta::assert_snapshot!(lint(&[with(&says, "/metadata/labels", labels), crd()]), @r#"
    1.yaml:6:5: warning: "crossplane.io/paused" steers the package manager, and is not copied to revisions (remove it; administrators set it on packages and revisions) [metadata-steering]
    1.yaml:7:5: warning: "pkg.crossplane.io/adopt-existing" steers the package manager, and is not copied to revisions (remove it; administrators set it on packages and revisions) [metadata-steering]
    1.yaml:11:5: warning: "pkg.crossplane.io/package" steers the package manager, and is not copied to revisions (remove it; administrators set it on packages and revisions) [metadata-steering]
    "#);
}

#[test]
fn kinds_belong_in_their_packages() {
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
    let old = with(&composition(), "/apiVersion", json!("apiextensions.crossplane.io/v1beta1"));
    let typo = with(&composition(), "/kind", json!("Compostion"));
    insta::assert_snapshot!(lint(&[provider(), map, old, typo]), @"
    2.yaml:2:1: error: ConfigMap in v1 cannot be part of any package (keep it out of the package directory, or leave it out with --ignore) [kind-unknown]
    3.yaml:2:1: error: Composition in apiextensions.crossplane.io/v1beta1 cannot be part of any package (Composition is known in apiextensions.crossplane.io/v1) [kind-unknown]
    4.yaml:2:1: error: Compostion in apiextensions.crossplane.io/v1 cannot be part of any package (did you mean Composition?) [kind-unknown]
    ");
    // Crossplane can read this one, and leaves it out.
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": "a" },
    });
    insta::assert_snapshot!(lint(&[provider(), policy]), @"2.yaml:2:1: error: ValidatingAdmissionPolicy \"a\" in admissionregistration.k8s.io/v1 cannot be part of any package (keep it out of the package directory, or leave it out with --ignore) [kind-not-allowed]");
    insta::assert_snapshot!(lint(&[provider(), xrd()]), @"2.yaml:1:1: error: CompositeResourceDefinition \"clusters.example.org\" does not belong in a Provider package (CompositeResourceDefinition may be part of a Configuration package) [kind-not-allowed]");
    insta::assert_snapshot!(lint(&[configuration(&[]), crd()]), @"2.yaml:1:1: error: CustomResourceDefinition \"buckets.example.org\" does not belong in a Configuration package (CustomResourceDefinition may be part of a Provider or Function package) [kind-not-allowed]");
}

#[test]
fn x35_the_specifications_name_for_webhooks_is_an_error_that_says_what_is_meant() {
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "AdmissionWebhookConfiguration",
        "metadata": { "name": "a" },
    });
    insta::assert_snapshot!(lint(&[provider(), webhook]), @"2.yaml:2:1: error: AdmissionWebhookConfiguration in admissionregistration.k8s.io/v1 cannot be part of any package (Kubernetes has no such kind: write ValidatingWebhookConfiguration or MutatingWebhookConfiguration) [kind-unknown]");
}

#[test]
fn each_type_of_package_may_contain_its_kinds() {
    let rows = [
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "PF"),
        ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", "PF"),
        ("apiextensions.crossplane.io/v1alpha1", "ManagedResourceDefinition", "P"),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "P"),
        ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "P"),
        ("admissionregistration.k8s.io/v1", "AdmissionWebhookConfiguration", ""),
        ("apiextensions.crossplane.io/v1", "CompositeResourceDefinition", "C"),
        ("apiextensions.crossplane.io/v2", "CompositeResourceDefinition", "C"),
        ("apiextensions.crossplane.io/v1", "Composition", "C"),
        ("apiextensions.crossplane.io/v1alpha1", "ManagedResourceActivationPolicy", "C"),
        ("ops.crossplane.io/v1alpha1", "Operation", "C"),
        ("ops.crossplane.io/v1alpha1", "CronOperation", "C"),
        ("ops.crossplane.io/v1alpha1", "WatchOperation", "C"),
        ("apiextensions.crossplane.io/v1", "CompositionRevision", ""),
        ("apiextensions.crossplane.io/v1beta1", "EnvironmentConfig", ""),
        ("v1", "Secret", ""),
    ];
    for (api_version, kind, packages) in rows {
        let found = ObjectKind::find(api_version, kind).map(ObjectKind::packages);
        let initials = found.unwrap_or_default().iter().map(|one| &one.as_str()[..1]);
        assert_eq!(initials.collect::<String>(), packages, "{api_version} {kind}");
    }
}

#[test]
fn objects_have_identities() {
    let unnamed = with(&crd(), "/metadata", json!({ "labels": {} }));
    let number = with(&xrd(), "/metadata/name", json!(7));
    insta::assert_snapshot!(lint(&[
        provider(), json!([1]), json!({ "kind": "Composition" }), unnamed, number, json!({ "a": 1 }),
    ]), @"
    2.yaml:1:1: error: document is a sequence, not an object (keep it out of the package directory, or leave it out with --ignore) [object-incomplete]
    3.yaml:1:1: error: object has no apiVersion (every document of a package needs apiVersion, kind and metadata.name) [object-incomplete]
    3.yaml:1:1: error: object has no metadata.name (every document of a package needs apiVersion, kind and metadata.name) [object-incomplete]
    4.yaml:3:1: error: object has no metadata.name (every document of a package needs apiVersion, kind and metadata.name) [object-incomplete]
    5.yaml:1:1: error: CompositeResourceDefinition does not belong in a Provider package (CompositeResourceDefinition may be part of a Configuration package) [kind-not-allowed]
    5.yaml:4:9: error: object has no metadata.name (its value is of type integer; quote it to make it a string) [object-incomplete]
    6.yaml:1:1: error: document is not a Kubernetes object: it has no apiVersion and no kind (keep it out of the package directory, or leave it out with --ignore) [object-incomplete]
    ");
}

#[test]
fn names_and_namespaces_follow_the_rules() {
    let name = with(&composition(), "/metadata/name", json!("Clusters_"));
    let namespace = with(&composition(), "/metadata/namespace", json!("default"));
    let definition = with(&xrd(), "/metadata/name", json!("cluster.example.org"));
    let meta = configuration(&[ready()]);
    insta::assert_snapshot!(lint(&[meta, xrd(), name, namespace, definition]), @r#"
    3.yaml:4:9: error: name "Clusters_" is not a valid object name (use lower-case letters, digits, '-' and '.', at most 253 characters) [object-name]
    4.yaml:5:3: warning: object is cluster-scoped but has a namespace (remove metadata.namespace; it is ignored at best) [object-namespace]
    5.yaml:4:9: error: definition is named "cluster.example.org" but must be named "clusters.example.org" (the name is spec.names.plural, a dot, and spec.group) [object-name]
    "#);
}

#[test]
fn an_object_appears_once() {
    let newer = with(&crd(), "/apiVersion", json!("apiextensions.k8s.io/v1beta1"));
    insta::assert_snapshot!(lint(&[provider(), crd(), newer]), @r#"
    3.yaml:1:1: error: CustomResourceDefinition "buckets.example.org" is already defined at 2.yaml:1 (keep one of them; which would win is undefined) [duplicate-object]
    3.yaml:1:1: warning: CustomResourceDefinition v1beta1 is no longer served by any cluster (convert it to apiextensions.k8s.io/v1) [crd-removed-api]
    "#);
}

#[test]
fn compositions_find_their_types_and_functions() {
    insta::assert_snapshot!(lint(&[configuration(&[]), composition()]), @r#"
    2.yaml:7:5: warning: Cluster in example.org/v1 is not defined in this package (add its CompositeResourceDefinition, or depend on the configuration that has it) [composition-type]
    2.yaml:13:15: warning: function "acme-function-ready" is not among the dependencies (add the function's package to spec.dependsOn) [composition-function]
    "#);
    let newer = with(&composition(), "/spec/compositeTypeRef/apiVersion", json!("example.org/v2"));
    insta::assert_snapshot!(lint(&[configuration(&[ready()]), xrd(), newer]), @r#"3.yaml:7:5: warning: Cluster has no version "v2" (its definition has v1) [composition-type]"#);
    let other = with(&composition(), "/spec/pipeline/0/functionRef/name", json!("function-go"));
    insta::assert_snapshot!(lint(&[configuration(&[ready()]), xrd(), other]), @r#"3.yaml:13:15: warning: function "function-go" is not among the dependencies (dependencies bring: acme-function-ready) [composition-function]"#);
    // A configuration may bring anything.
    let opaque = json!({ "configuration": "acme/base", "version": "v1.0.0" });
    assert_eq!(lint(&[configuration(&[opaque]), composition()]), "");
}

#[test]
fn definitions_have_what_the_server_demands() {
    let check = |pointer: &str, value: Json| lint(&[provider(), with(&crd(), pointer, value)]);
    insta::assert_snapshot!(check("/spec", json!({})), @"
    2.yaml:5:1: error: spec.group: Required value (add group) [crd-invalid]
    2.yaml:5:1: error: spec.scope: Required value (add scope) [crd-invalid]
    2.yaml:5:1: error: spec.versions: Invalid value: null: must have exactly one version marked as storage version (set storage: true for one version and false for the others) [crd-invalid]
    2.yaml:5:1: error: spec.names.plural: Required value (add plural) [crd-invalid]
    2.yaml:5:1: error: spec.names.singular: Required value (add singular) [crd-invalid]
    2.yaml:5:1: error: spec.names.kind: Required value (add kind) [crd-invalid]
    2.yaml:5:1: error: spec.names.listKind: Required value (add listKind) [crd-invalid]
    ");
    insta::assert_snapshot!(check("/spec/scope", json!("Global")), @r#"2.yaml:10:10: error: spec.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced" (write one of the supported values) [crd-invalid]"#);
    insta::assert_snapshot!(check("/spec/group", json!("example")), @r#"
    2.yaml:1:1: error: CustomResourceDefinition defines a kind in the group "example", which is Kubernetes' own (choose a group under a domain of yours; no cluster installs this one) [group-reserved]
    2.yaml:4:9: error: definition is named "buckets.example.org" but must be named "buckets.example" (the name is spec.names.plural, a dot, and spec.group) [object-name]
    2.yaml:6:10: error: spec.group: Invalid value: "example": should be a domain with at least one dot (an API server refuses the definition as it is) [crd-invalid]
    "#);
    insta::assert_snapshot!(check("/spec/names/plural", json!("Buckets")), @r#"
    2.yaml:4:9: error: definition is named "buckets.example.org" but must be named "Buckets.example.org" (the name is spec.names.plural, a dot, and spec.group) [object-name]
    2.yaml:9:13: error: spec.names.plural: Invalid value: "Buckets": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?') (an API server refuses the definition as it is) [crd-invalid]
    "#);
    insta::assert_snapshot!(check("/spec/versions/0/storage", json!(false)), @"2.yaml:11:3: error: spec.versions: Invalid value: must have exactly one version marked as storage version (set storage: true for one version and false for the others) [crd-invalid]");
    insta::assert_snapshot!(check("/spec/versions/0/name", json!("1.0")), @r#"2.yaml:12:13: error: spec.versions[0].name: Invalid value: "1.0": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?') (an API server refuses the definition as it is) [crd-invalid]"#);
    insta::assert_snapshot!(check("/spec/versions/0/schema", json!({})), @"2.yaml:15:7: error: spec.versions[0].schema.openAPIV3Schema: Required value (add openAPIV3Schema) [crd-schema]");
    insta::assert_snapshot!(check("/spec/preserveUnknownFields", json!(true)), @"2.yaml:26:26: error: spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead (remove preserveUnknownFields; it was for v1beta1) [crd-invalid]");
    let columns = json!([{ "name": "AGE", "type": "time", "jsonPath": ".a" }, { "name": "B" }]);
    insta::assert_snapshot!(check("/spec/versions/0/additionalPrinterColumns", columns), @r#"
    2.yaml:28:17: error: spec.versions[0].additionalPrinterColumns[0].type: Invalid value: "time": must be one of boolean,date,integer,number,string (an API server refuses the definition as it is) [crd-invalid]
    2.yaml:30:11: error: spec.versions[0].additionalPrinterColumns[1].type: Required value: must be one of boolean,date,integer,number,string (add type) [crd-invalid]
    2.yaml:30:11: error: spec.versions[0].additionalPrinterColumns[1].jsonPath: Required value (add jsonPath) [crd-invalid]
    "#);
    insta::assert_snapshot!(check("/spec/conversion", json!({ "strategy": "Webhook" })), @"2.yaml:26:3: error: spec.conversion.webhook.conversionReviewVersions: Required value (add conversionReviewVersions) [crd-invalid]");
    let webhook =
        json!({ "strategy": "Webhook", "webhook": { "conversionReviewVersions": ["v2"] } });
    insta::assert_snapshot!(check("/spec/conversion", webhook), @"2.yaml:29:7: error: spec.conversion.webhook.conversionReviewVersions: Invalid value: must include at least one of v1, v1beta1 (set conversionReviewVersions: [v1]) [crd-invalid]");
    let twice = json!([crd()["spec"]["versions"][0], crd()["spec"]["versions"][0]]);
    insta::assert_snapshot!(check("/spec/versions", twice), @"
    2.yaml:11:3: error: spec.versions: Invalid value: must contain unique version names (an API server refuses the definition as it is) [crd-invalid]
    2.yaml:11:3: error: spec.versions: Invalid value: must have exactly one version marked as storage version (set storage: true for one version and false for the others) [crd-invalid]
    ");
    insta::assert_snapshot!(check("/apiVersion", json!("apiextensions.k8s.io/v1beta1")), @"2.yaml:1:1: warning: CustomResourceDefinition v1beta1 is no longer served by any cluster (convert it to apiextensions.k8s.io/v1) [crd-removed-api]");
}

#[test]
fn composite_definitions_have_what_crossplane_demands() {
    let check =
        |pointer: &str, value: Json| lint(&[configuration(&[]), with(&xrd(), pointer, value)]);
    insta::assert_snapshot!(check("/spec/versions/0/referenceable", json!(false)), @r#"2.yaml:11:5: error: 0 versions have "referenceable" set; exactly one must [xrd-invalid]"#);
    insta::assert_snapshot!(check("/spec/versions", json!([])), @"2.yaml:10:13: error: definition has no versions [xrd-invalid]");
    insta::assert_snapshot!(check("/spec/scope", json!("Global")), @r#"2.yaml:17:10: error: scope "Global" does not exist (write LegacyCluster or Namespaced or Cluster) [xrd-invalid]"#);
    insta::assert_snapshot!(check("/spec/claimNames", json!({ "kind": "Cluster" })), @"
    2.yaml:17:3: error: spec.claimNames.plural: Required value (add plural) [xrd-invalid]
    2.yaml:18:11: error: claim and composite have the same kind [xrd-invalid]
    ");
    let schema = json!({ "type": "string" });
    insta::assert_snapshot!(check("/spec/versions/0/schema/openAPIV3Schema", schema), @r#"2.yaml:16:17: error: spec.versions[0].schema.openAPIV3Schema.type: Invalid value: "string": must be object at the root (set type: object) [xrd-schema]"#);
}

#[test]
fn rules_have_unique_names_and_one_sentence() {
    let mut names: Vec<_> = rules().iter().map(|rule| rule.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), rules().len());
    for rule in rules() {
        let plain = |c: char| c.is_ascii_lowercase() || c == '-';
        assert!(rule.name.chars().all(plain), "{}", rule.name);
        assert!(rule.description.ends_with('.'), "{}", rule.name);
    }
}

#[test]
fn what_cannot_be_decoded_is_refused() {
    let null = Json::Null;
    let labels = with(&composition(), "/metadata/labels", json!({ "a": 1 }));
    let spec = with(&composition(), "/spec", json!(3));
    let reference = with(&composition(), "/spec/compositeTypeRef", json!("x"));
    let pipeline = with(&composition(), "/spec/pipeline", json!({ "a": "b" }));
    let mode = with(&composition(), "/spec/mode", json!("Pipelin"));
    let installed = with(&provider(), "/apiVersion", json!("pkg.crossplane.io/v1"));
    let rules = |documents: &[Json]| -> Vec<String> {
        let text = lint(documents);
        let rule = |line: &str| {
            line.rsplit_once('[').map(|(_, rule)| rule.trim_end_matches(']').to_owned())
        };
        text.lines().filter_map(rule).collect()
    };
    let meta = configuration(&[ready()]);
    let check = |document: Json, expected: &str| {
        let found = rules(&[meta.clone(), xrd(), document]);
        assert!(found.iter().any(|rule| rule == expected), "{expected}: {found:?}");
    };
    check(null, "object-incomplete");
    check(labels, "object-type");
    check(spec, "object-type");
    check(reference, "object-type");
    check(pipeline, "object-type");
    check(mode, "composition-invalid");
    assert!(lint(&[installed]).contains("did you mean meta.pkg.crossplane.io/v1?"));
}

#[test]
fn values_are_of_the_types_they_are_decoded_to() {
    let mut bad = crd();
    for (pointer, value) in [
        ("/metadata/finalizers", json!("x")),
        ("/spec/names/shortNames", json!(["a", 1])),
        ("/spec/preserveUnknownFields", json!("false")),
        ("/spec/versions/0/deprecationWarning", json!(true)),
        ("/spec/versions/0/schema/openAPIV3Schema/properties/spec/required", json!("a")),
        ("/spec/versions/0/schema/openAPIV3Schema/maxProperties", json!("1")),
    ] {
        bad = with(&bad, pointer, value);
    }
    let hook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "w"}, "webhooks": [{
            "clientConfig": {"caBundle": "%", "service": {"name": false, "port": 3_000_000_000_i64}},
            "reinvocationPolicy": 1, "namespaceSelector": [], "timeoutSeconds": null,
        }],
    });
    insta::assert_snapshot!(lint(&[provider(), bad, hook]), @"
    2.yaml:5:15: error: metadata.finalizers is of type string, not sequence (write it as a sequence; Crossplane cannot read it otherwise) [object-type]
    2.yaml:13:9: error: spec.names.shortNames[1] is of type integer, not string (quote the value to make it a string) [object-type]
    2.yaml:30:25: error: spec.versions[0].schema.openAPIV3Schema.properties.spec.required is of type string, not sequence (write it as a sequence; Crossplane cannot read it otherwise) [object-type]
    2.yaml:31:26: error: spec.versions[0].schema.openAPIV3Schema.maxProperties is of type string, not integer (write a whole number, without quotes) [object-type]
    2.yaml:32:27: error: spec.versions[0].deprecationWarning is of type boolean, not string (quote the value to make it a string) [object-type]
    2.yaml:33:26: error: spec.preserveUnknownFields is of type string, not boolean (write true or false, without quotes) [object-type]
    3.yaml:7:17: error: webhooks[0].clientConfig.caBundle is not base64 (encode the bytes in base64) [object-type]
    3.yaml:9:15: error: webhooks[0].clientConfig.service.name is of type boolean, not string (quote the value to make it a string) [object-type]
    3.yaml:10:15: error: webhooks[0].clientConfig.service.port is too large for an integer of 32 bits (write a smaller number) [object-type]
    3.yaml:11:25: error: webhooks[0].reinvocationPolicy is of type integer, not string (quote the value to make it a string) [object-type]
    3.yaml:12:24: error: webhooks[0].namespaceSelector is of type sequence, not mapping (write it as a mapping; Crossplane cannot read it otherwise) [object-type]
    ");
}

#[test]
fn of_a_thousand_wrong_values_some_are_told() {
    let names: Vec<Json> = (0..1000).map(|number| json!(number)).collect();
    let bad = with(&crd(), "/spec/names/shortNames", json!(names));
    assert_eq!(lint(&[provider(), bad]).lines().count(), 32);
}

/// A webhook of a package that is called about this kind, and reached like that.
fn webhook(group: &str, resource: &str, client: &Json) -> Json {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": { "name": "hook" },
        "webhooks": [{
            "name": "hook.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": client,
            "rules": [{
                "apiGroups": [group], "apiVersions": ["*"], "operations": ["*"],
                "resources": [resource],
            }],
        }],
    })
}

fn definition_in(definition: &Json, group: &str) -> Json {
    let plural = definition["spec"]["names"]["plural"].as_str().unwrap();
    let named = with(definition, "/metadata/name", json!(format!("{plural}.{group}")));
    with(&named, "/spec/group", json!(group))
}

/// C2 and H1, as far as an author can be told.
#[test]
fn c2_h1_groups_of_others_are_no_packages() {
    for group in ["nop.crossplane.io", "s3.aws.upbound.io", "ops.example.org"] {
        assert_eq!(lint(&[provider(), definition_in(&crd(), group)]), "", "{group}");
        assert_eq!(lint(&[configuration(&[]), definition_in(&xrd(), group)]), "", "{group}");
    }
    // What a function defines is only a description.
    let function = with(&provider(), "/kind", json!("Function"));
    assert_eq!(lint(&[function, definition_in(&crd(), "rbac.authorization.k8s.io")]), "");
    let managed = with(&crd(), "/kind", json!("ManagedResourceDefinition"));
    let managed = with(&managed, "/apiVersion", json!("apiextensions.crossplane.io/v1alpha1"));
    let other_name = with(&managed, "/metadata/name", json!("buckets.pkg.crossplane.io"));
    let packages = [
        vec![provider(), definition_in(&crd(), "rbac.authorization.k8s.io")],
        vec![provider(), definition_in(&crd(), "pkg.crossplane.io")],
        vec![provider(), definition_in(&crd(), "gateway.networking.k8s.io")],
        vec![provider(), other_name],
        vec![configuration(&[]), definition_in(&xrd(), "meta.pkg.ibm.crossplane.io")],
    ];
    insta::assert_snapshot!(packages.map(|one| lint(&one)).join("\n"), @r#"
    2.yaml:1:1: error: CustomResourceDefinition defines a kind in the group "rbac.authorization.k8s.io", which is Kubernetes' own (choose a group under a domain of yours; no cluster installs this one) [group-reserved]
    2.yaml:1:1: error: CustomResourceDefinition defines a kind in the group "pkg.crossplane.io", which is the package manager's own (choose a group under a domain of yours; no cluster installs this one) [group-reserved]
    2.yaml:1:1: warning: CustomResourceDefinition defines a kind in the group "gateway.networking.k8s.io", which is kept for Kubernetes' community (it is installed only where an administrator opens the group to packages: apron manager --allow-group GROUP) [group-community]
    2.yaml:1:1: error: ManagedResourceDefinition defines a kind in the group "pkg.crossplane.io", which is the package manager's own (choose a group under a domain of yours; no cluster installs this one) [group-reserved]
    2.yaml:4:9: error: definition is named "buckets.pkg.crossplane.io" but must be named "buckets.example.org" (the name is spec.names.plural, a dot, and spec.group) [object-name]
    2.yaml:1:1: error: CompositeResourceDefinition defines a kind in the group "meta.pkg.ibm.crossplane.io", which is the package manager's own (choose a group under a domain of yours; no cluster installs this one) [group-reserved]
    "#);
}

/// H7, as far as an author can be told.
#[test]
fn h7_webhooks_are_about_the_package_and_at_its_service() {
    let service = json!({ "service": { "name": "x", "namespace": "y" } });
    let url = json!({ "url": "https://attacker.example.org/collect" });
    for resource in ["buckets", "buckets/status", "buckets/*"] {
        assert_eq!(lint(&[provider(), crd(), webhook("example.org", resource, &service)]), "");
    }
    let conversion = |client: &Json| {
        let webhook = json!({ "conversionReviewVersions": ["v1"], "clientConfig": client });
        json!({ "strategy": "Webhook", "webhook": webhook })
    };
    let converted = |definition: &Json| with(definition, "/spec/conversion", conversion(&url));
    let packages = [
        vec![provider(), crd(), webhook("example.org", "*", &service)],
        vec![provider(), crd(), webhook("*", "buckets", &service)],
        vec![provider(), crd(), webhook("", "secrets", &url)],
        vec![provider(), converted(&crd())],
        vec![configuration(&[]), converted(&xrd())],
    ];
    insta::assert_snapshot!(packages.map(|one| lint(&one)).join("\n"), @r"
    3.yaml:1:1: warning: MutatingWebhookConfiguration is called about kinds that the package does not bring: *.example.org (name only kinds of the package in its rules, or tell those who install it to run `apron permissions allow`) [webhook-scope]
    3.yaml:1:1: warning: MutatingWebhookConfiguration is called about kinds that the package does not bring: buckets.* (name only kinds of the package in its rules, or tell those who install it to run `apron permissions allow`) [webhook-scope]
    3.yaml:1:1: error: MutatingWebhookConfiguration has the API server call https://attacker.example.org/collect (remove clientConfig.url: the package manager leads the call to the Service of the package) [webhook-address]
    3.yaml:1:1: warning: MutatingWebhookConfiguration is called about kinds that the package does not bring: secrets (name only kinds of the package in its rules, or tell those who install it to run `apron permissions allow`) [webhook-scope]
    2.yaml:1:1: error: CustomResourceDefinition has the API server call https://attacker.example.org/collect (remove clientConfig.url: the package manager leads the call to the Service of the package) [webhook-address]
    2.yaml:1:1: error: CompositeResourceDefinition has the API server call https://attacker.example.org/collect (remove clientConfig.url: the package manager leads the call to the Service of the package) [webhook-address]
    ");
}
