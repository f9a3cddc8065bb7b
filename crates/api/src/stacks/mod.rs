//! The group `packages.crossplane.io`: the first package system.
//!
//! A `ClusterPackageInstall` or `PackageInstall` asks for a package, by its image or by a definition
//! it brings; a `Package` is the record of an installed one, a `StackDefinition` the record of one
//! that fills in templates. All of them are deprecated: `apron convert` leads to Providers.
//!
//! - `install`: what is asked for. - `record`: what was installed. - [`define_stack_kinds`]: their
//!   definitions, which are made from the types as those of [`pkg`](crate::pkg) are.

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

use crate::crd::{self, SuffixError, check_suffix};
use crate::object::ObjectMeta;
use crate::wire::Schema;
use serde_json::{Value as Json, json};

/// The version that all kinds of the group have.
pub const STACKS_VERSION: &str = "v1alpha1";
/// The kind of a package with rights in the whole cluster.
pub const CLUSTER_INSTALL: &str = "ClusterPackageInstall";
/// The kind of a package with rights in its namespace.
pub const NAMESPACE_INSTALL: &str = "PackageInstall";
/// The kind of the record of an installed package.
pub const RECORD: &str = "Package";
/// The kind of the record of a package that fills in templates.
pub const TEMPLATE_RECORD: &str = "StackDefinition";
/// The finalizer of install objects.
pub const FINALIZER_INSTALL: &str = "finalizer.packageinstall.crossplane.io";

/// The kind of install object that gives a package the rights of its `permissionScope`. A package without
/// one fits either; the usual is cluster-wide.
pub fn install_kind(permission_scope: Option<&str>) -> &'static str {
    if permission_scope == Some("Namespaced") { NAMESPACE_INSTALL } else { CLUSTER_INSTALL }
}

/// Where `Ready` is told, for readers of the time.
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

/// The group under a suffix.
pub fn stacks_group(suffix: &str) -> String {
    format!("packages.{suffix}")
}

/// Every definition that a manager brings, under a suffix: with or without those of this group.
pub fn define_kinds(suffix: &str, has_stacks: bool) -> Result<Vec<Json>, SuffixError> {
    let mut all = crd::definitions(suffix)?;
    if has_stacks {
        all.extend(define_stack_kinds(suffix)?);
    }
    Ok(all)
}

/// The definitions of the group, under a suffix.
pub fn define_stack_kinds(suffix: &str) -> Result<Vec<Json>, SuffixError> {
    check_suffix(suffix)?;
    let group = stacks_group(suffix);
    let mut install = PackageInstall::schema();
    install["required"] = json!(["spec"]);
    let mut package = StackRecord::schema();
    if let Some(Json::Object(spec)) = package.pointer_mut("/properties/spec/properties") {
        spec.shift_remove("behavior");
    }
    let mut template = StackRecord::schema();
    if let Some(Json::Object(fields)) = template.get_mut("properties") {
        fields.shift_remove("status");
    }
    for record in [&mut package, &mut template] {
        record["required"] = json!([]);
    }
    let of = |kind, about, columns, schema| define_kind(&group, kind, about, columns, schema);
    let about = "A ClusterPackageInstall asks for a package with rights in the whole cluster.";
    let cluster = of(CLUSTER_INSTALL, about, &INSTALL_COLUMNS[..], install.clone());
    let about = "A PackageInstall asks for a package with rights in its own namespace.";
    let namespaced = of(NAMESPACE_INSTALL, about, &INSTALL_COLUMNS[..], install);
    let about = "A Package is the record of an installed package.";
    let record = of(RECORD, about, &RECORD_COLUMNS[..], package);
    let about = "A StackDefinition is the record of an installed package that fills in templates.";
    let template = of(TEMPLATE_RECORD, about, &RECORD_COLUMNS[1..], template);
    Ok(vec![cluster, namespaced, record, template])
}

fn define_kind(
    group: &str,
    kind: &str,
    about: &str,
    columns: &[PrintedColumn],
    mut schema: Json,
) -> Json {
    let singular = kind.to_lowercase();
    let has_status = schema.pointer("/properties/status").is_some();
    schema["description"] = json!(about);
    // What every object has is checked by the API server, before any schema.
    schema["properties"]["metadata"] = ObjectMeta::schema();
    if let Json::Object(fields) = &mut schema
        && fields.get("required").is_some_and(|required| *required == json!([]))
    {
        fields.shift_remove("required");
    }
    let columns: Vec<Json> = columns
        .iter()
        .map(|(name, of, path)| json!({"name": name, "type": of, "jsonPath": path}))
        .collect();
    let warning = format!(
        "{group}/{STACKS_VERSION} {kind} is deprecated: turn the package into a Provider with \
         `apron convert`"
    );
    let mut version = json!({
        "name": STACKS_VERSION, "served": true, "storage": true, "deprecated": true,
        "deprecationWarning": warning,
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": schema},
    });
    if has_status {
        version["subresources"] = json!({"status": {}});
    }
    let names = json!({
        "kind": kind, "listKind": format!("{kind}List"), "plural": format!("{singular}s"),
        "singular": singular, "categories": ["crossplane"],
    });
    crd::object(group, &names, "Namespaced", &[version])
}
