//! What a document defines: a CRD, an XRD with its claim, an MRD.
//!
//! Documents are looked at as they are written. What lacks a group, a plural or a kind, or has a
//! name that says something else, defines nothing: no API server would take it.

use super::schema::pack_kind;
use crate::record::{Definition, KindDocument, Origin, Schema, ServedVersion};
use crate::stored::named_schema;
use serde_json::Value as Json;
use xpkg::lint::ObjectKind;
use yaml::Node;

/// A kind, with the schemas of its versions.
pub(super) struct Defined {
    pub(super) definition: Definition,
    pub(super) schemas: Vec<Schema>,
    pub(super) document: KindDocument,
}

/// The kinds that a document brings.
pub(super) fn defined(document: &Node<'_>) -> Vec<Defined> {
    let text = |key| document.get(key).and_then(Node::as_str).unwrap_or_default();
    let Some(spec) = document.get("spec") else { return Vec::new() };
    let definitions = match ObjectKind::find(text("apiVersion"), text("kind")) {
        Some(ObjectKind::CustomResourceDefinition) => find_one(spec, Origin::Crd),
        Some(ObjectKind::ManagedResourceDefinition) => find_one(spec, Origin::Mrd),
        Some(ObjectKind::CompositeResourceDefinition) => {
            find_composite(spec, text("apiVersion").ends_with("/v2"))
        }
        _ => return Vec::new(),
    };
    let name = document.at(&["metadata", "name"]).and_then(Node::as_str).unwrap_or_default();
    if definitions.first().is_none_or(|first| first.name != name) {
        return Vec::new();
    }
    let mut outline = document.to_json();
    let Some((packed, mut schemas)) = pack_kind(&mut outline) else { return Vec::new() };
    let kept = |mut definition: Definition| {
        name_schemas(&mut definition.versions, &outline["spec"]);
        let (schemas, document) = (std::mem::take(&mut schemas), packed.clone());
        Defined { definition, schemas, document }
    };
    definitions.into_iter().map(kept).collect()
}

fn find_one(spec: &Node<'_>, origin: Origin) -> Vec<Definition> {
    let scope = text_at(spec, "scope").unwrap_or("Namespaced").to_owned();
    let versions = read_versions(spec, "storage");
    names(spec, "names", scope, origin, versions).into_iter().collect()
}

/// A composite, and its claim.
fn find_composite(spec: &Node<'_>, is_second: bool) -> Vec<Definition> {
    let default = if is_second { "Namespaced" } else { "Cluster" };
    let scope = match text_at(spec, "scope").unwrap_or(default) {
        "LegacyCluster" => "Cluster",
        other => other,
    };
    let versions = read_versions(spec, "referenceable");
    let composite = names(spec, "names", scope.to_owned(), Origin::Xrd, versions.clone());
    let claim = names(spec, "claimNames", "Namespaced".to_owned(), Origin::XrdClaim, versions);
    composite
        .into_iter()
        .flat_map(|composite| [composite].into_iter().chain(claim.clone()))
        .collect()
}

/// A kind by the names it has under a key.
fn names(
    spec: &Node<'_>,
    key: &str,
    scope: String,
    origin: Origin,
    versions: Vec<ServedVersion>,
) -> Option<Definition> {
    let names = spec.get(key)?;
    let (group, kind) = (text_at(spec, "group")?, text_at(names, "kind")?);
    let plural = text_at(names, "plural")?;
    let singular = text_at(names, "singular").map_or_else(|| kind.to_lowercase(), str::to_owned);
    let short = names.get("shortNames").map(Node::items).unwrap_or_default();
    Some(Definition {
        name: format!("{plural}.{group}"),
        group: group.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        singular,
        short_names: short.iter().filter_map(Node::as_str).map(str::to_owned).collect(),
        scope,
        origin,
        versions,
    })
}

/// A text that says something.
fn text_at<'node>(node: &'node Node<'_>, key: &str) -> Option<&'node str> {
    node.get(key).and_then(Node::as_str).filter(|text| !text.is_empty())
}

/// The versions of a definition; `storage` is the key that marks the one that counts.
fn read_versions(spec: &Node<'_>, storage: &str) -> Vec<ServedVersion> {
    let version = |version: &Node<'_>| {
        let is = |key| version.get(key).and_then(Node::as_bool).unwrap_or_default();
        Some(ServedVersion {
            name: text_at(version, "name")?.to_owned(),
            served: is("served"),
            storage: is(storage),
            deprecated: is("deprecated"),
            schema: None,
        })
    };
    let listed = spec.get("versions").map(Node::items).unwrap_or_default();
    let all: Vec<ServedVersion> = listed.iter().filter_map(version).collect();
    // In the first format one version needed no list.
    match text_at(spec, "version") {
        Some(name) if all.is_empty() => {
            let (name, schema) = (name.to_owned(), None);
            vec![ServedVersion { name, served: true, storage: true, deprecated: false, schema }]
        }
        _ => all,
    }
}

/// Lets versions name their schemas. In the first format one schema was for all versions.
fn name_schemas(versions: &mut [ServedVersion], outline: &Json) {
    let common = named_schema(&outline["validation"]["openAPIV3Schema"]);
    let listed = outline["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    for version in versions {
        let own = listed.iter().find(|it| it["name"] == version.name.as_str());
        let own = own.and_then(|it| named_schema(&it["schema"]["openAPIV3Schema"]));
        version.schema = own.or(common).map(str::to_owned);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Definition> {
        let node = yaml::parse(text, 1, &yaml::Limits::default()).unwrap();
        defined(&node).into_iter().map(|it| it.definition).collect()
    }

    fn told(text: &str) -> String {
        let tell = |it: Definition| {
            let versions: Vec<String> = it
                .versions
                .iter()
                .map(|version| {
                    let mark = |is, mark| if is { mark } else { "" };
                    let schema = version.schema.is_some();
                    format!(
                        "{}{}{}{}{}",
                        version.name,
                        mark(version.served, " served"),
                        mark(version.storage, " stored"),
                        mark(version.deprecated, " deprecated"),
                        mark(schema, " schema"),
                    )
                })
                .collect();
            let Definition { name, kind, singular, short_names, scope, origin, .. } = it;
            format!(
                "{name} {kind} {singular} {short_names:?} {scope} {origin:?}: {}",
                versions.join(", ")
            )
        };
        read(text).into_iter().map(tell).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn definitions_of_every_form_are_read() {
        insta::assert_snapshot!(told("
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: buckets.s3.example.org}
spec:
  group: s3.example.org
  names: {kind: Bucket, plural: buckets, shortNames: [b, bkt]}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1beta1, served: false, storage: false, deprecated: true}
"), @"buckets.s3.example.org Bucket bucket [\"b\", \"bkt\"] Cluster Crd: v1 served stored schema, v1beta1 deprecated");
        insta::assert_snapshot!(told("
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: buckets.s3.example.org}
spec:
  group: s3.example.org
  names: {kind: Bucket, plural: buckets}
  version: v1alpha1
  validation: {openAPIV3Schema: {type: object}}
"), @"buckets.s3.example.org Bucket bucket [] Namespaced Crd: v1alpha1 served stored schema");
        insta::assert_snapshot!(told("
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xnets.example.org}
spec:
  group: example.org
  names: {kind: XNet, plural: xnets}
  claimNames: {kind: Net, plural: nets}
  versions:
  - {name: v1, served: true, referenceable: true, schema: {openAPIV3Schema: {type: object}}}
"), @r"
        xnets.example.org XNet xnet [] Cluster Xrd: v1 served stored schema
        nets.example.org Net net [] Namespaced XrdClaim: v1 served stored schema
        ");
        insta::assert_snapshot!(told("
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: nets.example.org}
spec:
  group: example.org
  names: {kind: Net, plural: nets}
  versions: [{name: v1, served: true, referenceable: true}]
"), @"nets.example.org Net net [] Namespaced Xrd: v1 served stored");
        insta::assert_snapshot!(told("
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceDefinition
metadata: {name: buckets.s3.example.org}
spec:
  group: s3.example.org
  names: {kind: Bucket, plural: buckets}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true}]
"), @"buckets.s3.example.org Bucket bucket [] Namespaced Mrd: v1 served stored");
    }

    #[test]
    fn what_no_api_server_would_take_defines_nothing() {
        for text in [
            "kind: CustomResourceDefinition",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {}",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
             metadata: {name: other.a.b}\nspec: {group: a.b, names: {kind: X, plural: xs}}",
            "apiVersion: v1\nkind: ConfigMap\nspec: {group: a.b, names: {kind: X, plural: xs}}",
            "[]",
        ] {
            assert_eq!(read(text), [], "{text}");
        }
    }
}
