//! What changed between two versions of a package, from what the catalog knows of both.
//!
//! Packages are compared by [`xpkg::compare`], which reads them as streams. The catalog has no
//! streams; it has what they said. So each is written again, of which only definitions that
//! are not the same in both: equal ones cannot differ, and there may be thousands.

use catalog::{Definition, Package, Permission, ServedVersion};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use xpkg::compare::{Comparison, Contents, compare};

/// What is known of a version.
pub(crate) struct Edition {
    pub(crate) package: Package,
    pub(crate) definitions: Vec<Definition>,
}

/// Compares two versions; schemas are asked for by their digests.
pub(crate) fn compare_editions(
    old: &Edition,
    new: &Edition,
    schema: impl Fn(&Edition, &str) -> Option<Json>,
) -> Option<Comparison> {
    let (before, after) = (by_name(old), by_name(new));
    let is_same = |name: &str| before.get(name) == after.get(name);
    let read = |edition: &Edition| {
        let mut stream = write_metadata(&edition.package).to_string();
        for definition in edition.definitions.iter().filter(|it| !is_same(&it.name)) {
            stream.push_str("\n---\n");
            stream.push_str(&write_definition(definition, |digest| schema(edition, digest)).to_string());
        }
        Contents::read(stream.as_bytes(), &xpkg::Limits::default()).ok()
    };
    Some(compare(&read(old)?, &read(new)?))
}

fn by_name(edition: &Edition) -> BTreeMap<&str, &Definition> {
    edition.definitions.iter().map(|it| (it.name.as_str(), it)).collect()
}

fn write_metadata(package: &Package) -> Json {
    let needs = package.dependencies.iter().map(|need| {
        let kind = if need.kind.is_empty() { "Provider" } else { &need.kind };
        json!({"apiVersion": "pkg.crossplane.io/v1", "kind": kind,
               "package": need.package, "version": need.version})
    });
    let rules = package.permissions.iter().map(write_rule);
    let mut spec = json!({
        "dependsOn": needs.collect::<Vec<_>>(),
        "controller": {"permissionRequests": rules.collect::<Vec<_>>()},
        "capabilities": package.capabilities,
    });
    if let Some(version) = &package.crossplane {
        spec["crossplane"] = json!({"version": version});
    }
    json!({
        "apiVersion": "meta.pkg.crossplane.io/v1", "kind": package.kind,
        "metadata": {"name": package.name}, "spec": spec,
    })
}

fn write_rule(rule: &Permission) -> Json {
    json!({
        "apiGroups": rule.api_groups, "resources": rule.resources,
        "resourceNames": rule.resource_names, "nonResourceURLs": rule.non_resource_urls,
        "verbs": rule.verbs,
    })
}

/// A definition as the one kind of document that all of them can be told in.
fn write_definition(definition: &Definition, schema: impl Fn(&str) -> Option<Json>) -> Json {
    let version = |version: &ServedVersion| {
        let mut told = json!({
            "name": version.name, "served": version.served, "storage": version.storage,
            "deprecated": version.deprecated,
        });
        if let Some(schema) = version.schema.as_deref().and_then(&schema) {
            told["schema"] = json!({"openAPIV3Schema": schema});
        }
        told
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": definition.name},
        "spec": {
            "group": definition.group, "scope": definition.scope,
            "names": {
                "kind": definition.kind, "plural": definition.plural,
                "singular": definition.singular, "shortNames": definition.short_names,
            },
            "versions": definition.versions.iter().map(version).collect::<Vec<_>>(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use catalog::Origin;
    use xpkg::compare::Severity;

    fn edition(schema: &str, needs: &[&str]) -> Edition {
        let version = ServedVersion {
            name: "v1".to_owned(),
            served: true,
            storage: true,
            deprecated: false,
            schema: Some(schema.to_owned()),
        };
        let definition = Definition {
            name: "buckets.example.org".to_owned(),
            group: "example.org".to_owned(),
            kind: "Bucket".to_owned(),
            plural: "buckets".to_owned(),
            singular: "bucket".to_owned(),
            short_names: Vec::new(),
            scope: "Cluster".to_owned(),
            origin: Origin::Crd,
            versions: vec![version],
        };
        let need = |package: &&str| catalog::Dependency {
            kind: "Function".to_owned(),
            package: (*package).to_owned(),
            version: ">=v1.0.0".to_owned(),
        };
        let package = Package {
            kind: "Provider".to_owned(),
            name: "p".to_owned(),
            dependencies: needs.iter().map(need).collect(),
            ..Package::default()
        };
        Edition { package, definitions: vec![definition] }
    }

    #[test]
    fn fields_that_go_break_and_dependencies_that_come_are_told() {
        let schema = |_: &Edition, digest: &str| {
            let fields = if digest == "old" { json!({"acl": {"type": "string"}}) } else { json!({}) };
            Some(json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}))
        };
        let (old, new) = (edition("old", &[]), edition("new", &["example.org/f"]));
        let found = compare_editions(&old, &new, schema).unwrap();
        assert_eq!(found.count(Severity::Breaking), 1, "{found:?}");
        assert_eq!(found.changes[0].path, "spec.acl");
        assert_eq!(found.count(Severity::Warning), 1, "{found:?}");
        let same = compare_editions(&old, &old, |_, _| panic!("nothing differs")).unwrap();
        assert!(same.changes.is_empty());
    }
}
