//! The kinds of the group, and what `kubectl get` shows of them.

use crate::object::ObjectMeta;
use crate::pkg::controller_config::ControllerConfig;
use crate::pkg::lock::Lock;
use crate::pkg::revision::Revision;
use crate::pkg::runtime_config::DeploymentRuntimeConfig;
use crate::pkg::{GROUP, ImageConfig, Package};
use crate::wire::Schema;
use serde_json::{Value as Json, json};

/// A kind of the group.
pub(super) struct Kind {
    called: &'static str,
    about: &'static str,
    /// The first is the one stored.
    pub(super) versions: &'static [&'static str],
    categories: &'static [&'static str],
    pub(super) columns: &'static [Column],
    pub(super) has_status: bool,
    schema: fn() -> Json,
    /// Fields of the type that this kind does not have.
    without: &'static [(&'static str, &'static str)],
}

/// A column of `kubectl get`: name, type, path, and whether it takes `-o wide` to see it.
pub(super) struct Column(&'static str, &'static str, &'static str, bool);

impl Column {
    pub(super) fn to_json(&self) -> Json {
        let Self(name, of, path, wide) = self;
        let mut column = json!({"name": name, "type": of, "jsonPath": path});
        if *wide {
            column["priority"] = json!(1);
        }
        column
    }
}

const AGE: Column = Column("AGE", "date", ".metadata.creationTimestamp", false);

const OF_PACKAGE: &[Column] = &[
    Column("INSTALLED", "string", ".status.conditions[?(@.type=='Installed')].status", false),
    Column("HEALTHY", "string", ".status.conditions[?(@.type=='Healthy')].status", false),
    Column("PACKAGE", "string", ".spec.package", false),
    AGE,
];

const HEALTHY: Column =
    Column("HEALTHY", "string", ".status.conditions[?(@.type=='RevisionHealthy')].status", false);
const IMAGE: Column = Column("IMAGE", "string", ".spec.image", false);
const STATE: Column = Column("STATE", "string", ".spec.desiredState", false);
const REVISION: Column = Column("REVISION", "string", ".spec.revision", true);
const FOUND: Column = Column("DEP-FOUND", "string", ".status.foundDependencies", true);
const DONE: Column = Column("DEP-INSTALLED", "string", ".status.installedDependencies", true);

const OF_REVISION: &[Column] = &[HEALTHY, IMAGE, STATE, AGE, REVISION, FOUND, DONE];

const OF_RUNNING_REVISION: &[Column] = &[
    HEALTHY,
    Column(
        "RUNTIME-HEALTHY",
        "string",
        ".status.conditions[?(@.type=='RuntimeHealthy')].status",
        false,
    ),
    Column(
        "RUNTIME-ACTIVE",
        "string",
        ".status.conditions[?(@.type=='RuntimeActive')].status",
        false,
    ),
    IMAGE,
    STATE,
    AGE,
    REVISION,
    FOUND,
    DONE,
];

/// Versions of packages and their revisions. Manifests of the time when they were introduced say
/// `v1beta1`, and the Lock `v1alpha1`; both are read and written, and stored as today's.
const WITH_BETA: &[&str] = &["v1", "v1beta1"];

/// Every kind, in the order they are printed.
pub(super) fn all() -> Vec<Kind> {
    packages().into_iter().chain(revisions()).chain(others()).collect()
}

fn packages() -> [Kind; 3] {
    let package = |called, about, versions, without| Kind {
        called,
        about,
        versions,
        categories: &["crossplane", "pkg"],
        columns: OF_PACKAGE,
        has_status: true,
        schema: package_schema,
        without,
    };
    [
        package(
            "Provider",
            "A Provider installs a package of controllers and their kinds.",
            WITH_BETA,
            &[],
        ),
        package(
            "Configuration",
            "A Configuration installs a package of compositions and their kinds.",
            WITH_BETA,
            &[
                ("spec", "runtimeConfigRef"),
                ("spec", "controllerConfigRef"),
                ("spec", "serviceAccount"),
            ],
        ),
        package(
            "Function",
            "A Function installs a package that composition pipelines can call.",
            WITH_BETA,
            &[("spec", "controllerConfigRef")],
        ),
    ]
}

/// A package is asked for by its image, or by a kind that it brings.
fn package_schema() -> Json {
    let mut schema = Package::schema();
    let spec = &mut schema["properties"]["spec"];
    if let Json::Object(spec) = spec {
        spec.remove("required");
    }
    spec["x-kubernetes-validations"] = json!([{
        "rule": "has(self.package) != has(self.crd)",
        "message": "exactly one of package and crd must be set",
    }]);
    schema
}

fn revisions() -> [Kind; 3] {
    let revision = |called, about, versions, columns, without| Kind {
        called,
        about,
        versions,
        categories: &["crossplane", "pkgrev"],
        columns,
        has_status: true,
        schema: Revision::schema,
        without,
    };
    [
        revision(
            "ProviderRevision",
            "A ProviderRevision is one state of a Provider. The package manager makes them.",
            WITH_BETA,
            OF_RUNNING_REVISION,
            &[("status", "endpoint")],
        ),
        revision(
            "ConfigurationRevision",
            "A ConfigurationRevision is one state of a Configuration. The package manager makes them.",
            WITH_BETA,
            OF_REVISION,
            &[
                ("spec", "runtimeConfigRef"),
                ("spec", "controllerConfigRef"),
                ("spec", "serviceAccount"),
                ("spec", "tlsServerSecretName"),
                ("spec", "tlsClientSecretName"),
                ("status", "tlsServerSecretName"),
                ("status", "tlsClientSecretName"),
                ("status", "controllerRef"),
                ("status", "endpoint"),
            ],
        ),
        revision(
            "FunctionRevision",
            "A FunctionRevision is one state of a Function. The package manager makes them.",
            WITH_BETA,
            OF_RUNNING_REVISION,
            &[("spec", "controllerConfigRef")],
        ),
    ]
}

fn others() -> [Kind; 4] {
    let config = |called, about, versions, schema| Kind {
        called,
        about,
        versions,
        categories: &["crossplane"],
        columns: &[AGE],
        has_status: false,
        schema,
        without: &[],
    };
    [
        Kind {
            called: "Lock",
            about: "The Lock says which packages are installed, who needs whom, and who owns what.",
            versions: &["v1beta1", "v1alpha1"],
            categories: &[],
            columns: &[AGE],
            has_status: true,
            schema: Lock::schema,
            without: &[],
        },
        config(
            "ImageConfig",
            "An ImageConfig says how images whose names begin alike are fetched, checked and run.",
            &["v1beta1"],
            ImageConfig::schema,
        ),
        config(
            "DeploymentRuntimeConfig",
            "A DeploymentRuntimeConfig says how packages are run.",
            &["v1beta1"],
            DeploymentRuntimeConfig::schema,
        ),
        config(
            "ControllerConfig",
            "A ControllerConfig is the older way to say how a provider's controller is run.",
            &["v1alpha1"],
            ControllerConfig::schema,
        ),
    ]
}

impl Kind {
    pub(super) fn names(&self) -> Json {
        let singular = self.called.to_lowercase();
        let mut names = json!({
            "kind": self.called,
            "listKind": format!("{}List", self.called),
            "plural": format!("{singular}s"),
            "singular": singular,
        });
        if !self.categories.is_empty() {
            names["categories"] = json!(self.categories);
        }
        names
    }

    /// The schema, with the group's own name where it is a default.
    pub(super) fn schema(&self, group: &str) -> Json {
        let mut schema = (self.schema)();
        schema["description"] = json!(self.about);
        // What every object has is checked by the API server, before any schema, and not even a
        // description of metadata is allowed.
        schema["properties"]["metadata"] = ObjectMeta::schema();
        if let Json::Object(schema) = &mut schema {
            schema.remove("required");
        }
        for (part, field) in self.without {
            if let Json::Object(fields) = &mut schema["properties"][part]["properties"] {
                fields.remove(*field);
            }
        }
        rename(&mut schema, group);
        schema
    }
}

/// Puts a group in the place of Crossplane's own, in defaults.
fn rename(schema: &mut Json, group: &str) {
    match schema {
        Json::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                if let (true, Json::String(text)) = (key == "default", &mut *value)
                    && let Some(version) = text.strip_prefix(&format!("{GROUP}/"))
                {
                    *text = format!("{group}/{version}");
                }
                rename(value, group);
            }
        }
        Json::Array(items) => items.iter_mut().for_each(|item| rename(item, group)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}
