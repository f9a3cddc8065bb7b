//! The group `packages.crossplane.io`: the first package system.
//!
//! A `ClusterPackageInstall` or `PackageInstall` asks for a package, by its image or by a definition
//! it brings; a `Package` is the record of an installed one, a `StackDefinition` the record of one
//! that fills in templates. All of them are deprecated: `apron convert` leads to Providers.
//!
//! - `install`: what is asked for. - `record`: what was installed. - [`definitions`]: their CRDs.

mod install;
mod record;
#[cfg(test)]
mod tests;

pub use install::{
    InstallConditions, InstallReference, PackageInstall, PackageInstallSpec, PackageInstallStatus,
};
pub use record::{
    BehaviorEngine, BehaviorSource, ControllerDeployment, DefinitionKind, RecordBehavior,
    RecordController, RecordIcon, RecordPermissions, RecordPerson, RecordSpec, RecordStatus,
    StackRecord,
};

use crate::crd::{SUFFIX, SuffixError, check_suffix};
use crate::object::ObjectMeta;
use crate::wire::Schema;
use serde_json::{Value as Json, json};

/// What the group begins with; its suffix follows.
const GROUP_PREFIX: &str = "packages";
const VERSION: &str = "v1alpha1";
const READY: &str = ".status.conditionedStatus.conditions[?(@.type=='Ready')].status";

/// A column of `kubectl get`: name, type and path.
type PrintedColumn = (&'static str, &'static str, &'static str);

const INSTALL_COLUMNS: [PrintedColumn; 5] = [
    ("READY", "string", READY),
    ("SOURCE", "string", ".spec.source"),
    ("PACKAGE", "string", ".spec.package"),
    ("CRD", "string", ".spec.crd"),
    ("AGE", "date", ".metadata.creationTimestamp"),
];
const RECORD_COLUMNS: [PrintedColumn; 3] = [
    ("READY", "string", READY),
    ("VERSION", "string", ".spec.version"),
    ("AGE", "date", ".metadata.creationTimestamp"),
];

/// The definitions of the group, under a suffix.
pub fn definitions(suffix: &str) -> Result<Vec<Json>, SuffixError> {
    check_suffix(suffix)?;
    let group = format!("{GROUP_PREFIX}.{suffix}");
    let install = |kind: &str, about: &str| {
        define_kind(&group, kind, about, &INSTALL_COLUMNS, PackageInstall::schema())
    };
    let mut package = StackRecord::schema();
    if let Some(Json::Object(spec)) = package.pointer_mut("/properties/spec/properties") {
        spec.remove("behavior");
    }
    let mut template = StackRecord::schema();
    if let Some(Json::Object(fields)) = template.get_mut("properties") {
        fields.remove("status");
    }
    Ok(vec![
        install(
            "ClusterPackageInstall",
            "A ClusterPackageInstall asks for a package with rights in the whole cluster.",
        ),
        install(
            "PackageInstall",
            "A PackageInstall asks for a package with rights in its own namespace.",
        ),
        define_kind(
            &group,
            "Package",
            "A Package is the record of an installed package.",
            &RECORD_COLUMNS,
            package,
        ),
        define_kind(
            &group,
            "StackDefinition",
            "A StackDefinition is the record of an installed package that fills in templates.",
            &RECORD_COLUMNS[1..],
            template,
        ),
    ])
}

/// The group under Crossplane's own suffix.
pub fn group_name() -> String {
    format!("{GROUP_PREFIX}.{SUFFIX}")
}

fn define_kind(
    group: &str,
    kind: &str,
    about: &str,
    columns: &[PrintedColumn],
    mut schema: Json,
) -> Json {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    schema["description"] = json!(about);
    schema["properties"]["metadata"] = ObjectMeta::schema();
    if let Json::Object(schema) = &mut schema {
        schema.remove("required");
    }
    let columns = columns.iter();
    let columns: Vec<Json> = columns
        .map(|(name, of, path)| json!({"name": name, "type": of, "jsonPath": path}))
        .collect();
    let mut version = json!({
        "name": VERSION, "served": true, "storage": true, "deprecated": true,
        "deprecationWarning": format!(
            "{group}/{VERSION} {kind} is deprecated: convert the package with `apron convert` and install it as a Provider"
        ),
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": schema},
    });
    if schema_has_status(&version) {
        version["subresources"] = json!({"status": {}});
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "names": {
                "kind": kind, "listKind": format!("{kind}List"), "plural": plural,
                "singular": singular, "categories": ["crossplane"],
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    })
}

fn schema_has_status(version: &Json) -> bool {
    version.pointer("/schema/openAPIV3Schema/properties/status").is_some()
}
