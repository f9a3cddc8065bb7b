//! Whether an object came with a package, or is an administrator's own.
//!
//! What a package wants may be there already. If a package brought it before, the next one takes it
//! back: that is known by its owners; by the annotation that every object of a package carries and
//! that outlives them; or, if it was made before there was such an annotation, by the record that
//! API servers keep of which manager wrote what ([`is_written`]). Everything else belongs to those
//! who made it until an administrator gives it away: one object ([`is_given`]), whatever is in the
//! way of one package ([`gives_existing`]), or everything (`--adopt-existing`).
//!
//! All of it is read from live objects. Nothing in a package can say it.

use crate::control::group;
use crate::step::MANAGER;
use api::meta::PackageKind;
use api::object::{ObjectMeta, OwnerReference};
use api::pkg::{ANNOTATION_ADOPT, ANNOTATION_ADOPT_EXISTING, ANNOTATION_BROUGHT_BY};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// What is said of an object that no package brought.
pub const FOREIGN: &str = "there already, not brought by a package";

/// The field manager of Crossplane's core.
const CORE: &str = "crossplane";
/// Groups whose definitions the core installs for itself.
const CORE_GROUPS: [&str; 5] = ["apiextensions", "ops", "pkg", "protection", "secrets"];

/// How annotations name an object: as kubectl does, `provider.pkg.crossplane.io/p`.
pub fn mark(api_version: &str, kind: &str, name: &str) -> String {
    format!("{}.{}/{name}", kind.to_lowercase(), group(api_version))
}

/// Whether a package of this API brought an object, as its owners or its annotation say.
pub fn is_brought(metadata: &ObjectMeta, api_version: &str) -> bool {
    let is_marked = metadata.annotations.get(ANNOTATION_BROUGHT_BY).is_some_and(|mark| {
        let kind = mark.split_once('/').map_or("", |(kind, _)| kind);
        kind.split_once('.').is_some_and(|(_, of)| of == group(api_version))
    });
    is_marked || metadata.owner_references.iter().any(|one| is_package_owner(one, api_version))
}

/// Whether an owner is a package of this API, or a revision of one.
pub fn is_package_owner(owner: &OwnerReference, api_version: &str) -> bool {
    let kind = owner.kind.strip_suffix("Revision").unwrap_or(&owner.kind);
    group(&owner.api_version) == group(api_version)
        && PackageKind::ALL.iter().any(|one| one.as_str() == kind)
}

/// Whether an administrator gave an object to whom this mark names.
pub fn is_given(metadata: &ObjectMeta, to: &str) -> bool {
    metadata.annotations.get(ANNOTATION_ADOPT).is_some_and(|given| given == to)
}

/// Whether a package with these annotations may take over what is there already.
pub fn gives_existing(annotations: &BTreeMap<String, String>) -> bool {
    annotations.get(ANNOTATION_ADOPT_EXISTING).is_some_and(|given| given == "true")
}

/// Whether a package manager wrote what an object of a package says: this one, which establishes
/// such objects by updates and applies its own, or Crossplane's core, which updates both.
pub fn is_written(object: &Json) -> bool {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    content_records(object).any(|record| match record["manager"].as_str() {
        Some(MANAGER) => record["operation"] == "Update",
        Some(CORE) => !is_of_core(name),
        _ => false,
    })
}

/// Whether a package manager wrote an object that it makes by itself, in whatever way.
pub fn is_managed(object: &Json) -> bool {
    records(object).any(|one| matches!(one["manager"].as_str(), Some(MANAGER | CORE)))
}

fn is_of_core(name: &str) -> bool {
    CORE_GROUPS.iter().any(|one| name.ends_with(&format!(".{one}.{}", api::crd::SUFFIX)))
}

/// The records of who wrote what, but for subresources.
fn records(object: &Json) -> impl Iterator<Item = &Json> {
    let all = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    all.filter(|one| one["subresource"].as_str().unwrap_or_default().is_empty())
}

/// Those of them that have more than metadata, which all kinds of controllers write to.
fn content_records(object: &Json) -> impl Iterator<Item = &Json> {
    records(object).filter(|one| {
        let fields = one["fieldsV1"].as_object().into_iter().flatten();
        fields.into_iter().any(|(field, _)| field != "f:metadata")
    })
}

/// The metadata of an object, as far as it can be read.
pub fn metadata_of(object: &Json) -> ObjectMeta {
    serde_json::from_value(object["metadata"].clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const API: &str = "pkg.crossplane.io/v1";

    fn metadata(field: &str, value: &Json) -> ObjectMeta {
        metadata_of(&json!({"metadata": {"name": "x", field: value}}))
    }

    #[test]
    fn c2_what_a_package_brought_is_known_by_owners_and_by_its_annotation() {
        let owner = |api_version: &str, kind: &str| {
            let one = json!({"apiVersion": api_version, "kind": kind, "name": "p", "uid": "any"});
            metadata("ownerReferences", &json!([one]))
        };
        let marked = |mark: &str| metadata("annotations", &json!({ANNOTATION_BROUGHT_BY: mark}));
        for (what, it, expected) in [
            ("nothing", metadata("labels", &json!({"app": "p"})), false),
            ("a revision", owner("pkg.crossplane.io/v1", "ProviderRevision"), true),
            ("one of an old version", owner("pkg.crossplane.io/v1beta1", "FunctionRevision"), true),
            ("a package", owner(API, "Configuration"), true),
            ("another manager's revision", owner("pkg.other.org/v1", "ProviderRevision"), false),
            ("another kind of the group", owner(API, "Lock"), false),
            ("a namesake of another group", owner("example.org/v1", "Provider"), false),
            ("a mark", marked("provider.pkg.crossplane.io/p"), true),
            ("another manager's mark", marked("provider.pkg.other.org/p"), false),
            ("a mark that is none", marked("p"), false),
        ] {
            assert_eq!(is_brought(&it, API), expected, "{what}");
        }
    }

    #[test]
    fn c2_consent_is_for_whom_it_names_and_nobody_else() {
        let ours = mark(API, "Provider", "p");
        assert_eq!(ours, "provider.pkg.crossplane.io/p");
        for (said, expected) in [
            ("provider.pkg.crossplane.io/p", true),
            ("configuration.pkg.crossplane.io/p", false),
            ("provider.pkg.crossplane.io/p2", false),
            ("provider.pkg.other.org/p", false),
            ("true", false),
            ("*", false),
        ] {
            let it = metadata("annotations", &json!({ANNOTATION_ADOPT: said}));
            assert_eq!(is_given(&it, &ours), expected, "{said}");
        }
        for (said, expected) in [("true", true), ("false", false), ("", false)] {
            let it = metadata("annotations", &json!({ANNOTATION_ADOPT_EXISTING: said}));
            assert_eq!(gives_existing(&it.annotations), expected, "{said}");
        }
    }

    #[test]
    fn c2_what_a_manager_wrote_is_known_by_the_record_of_its_fields() {
        let content = json!({"f:spec": {"f:group": {}}});
        let finalizer = json!({"f:metadata": {"f:finalizers": {}}});
        for (name, manager, operation, fields, expected) in [
            ("a.example.org", "apron", "Update", &content, true),
            // What is applied are the manager's own definitions.
            ("a.example.org", "apron", "Apply", &content, false),
            ("a.example.org", "apron", "Update", &finalizer, false),
            ("a.example.org", "crossplane", "Update", &content, true),
            ("a.example.org", "crossplane", "Apply", &content, true),
            // What people made gets finalizers from the core, too.
            ("a.example.org", "crossplane", "Update", &finalizer, false),
            ("locks.pkg.crossplane.io", "crossplane", "Update", &content, false),
            ("nops.nop.crossplane.io", "crossplane", "Update", &content, true),
            ("a.example.org", "kubectl-create", "Update", &content, false),
            ("a.example.org", "helm", "Update", &content, false),
        ] {
            let mut record =
                json!({"manager": manager, "operation": operation, "fieldsV1": fields});
            let object =
                |record: &Json| json!({"metadata": {"name": name, "managedFields": [record]}});
            assert_eq!(is_written(&object(&record)), expected, "{name} {record}");
            record["subresource"] = json!("status");
            assert!(!is_written(&object(&record)), "{name} {record}");
        }
    }
}
