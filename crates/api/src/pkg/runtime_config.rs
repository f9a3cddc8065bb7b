//! Runtime configurations: what a package's Deployment, Service and `ServiceAccount` start from.

use crate::object::ObjectMeta;
use crate::wire::{Schema, wire};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

wire! {
    /// How packages are run.
    DeploymentRuntimeConfig {
        /// The version of the API this object is written in.
        api_version: String = "apiVersion",
        /// Always `DeploymentRuntimeConfig`.
        kind: String = "kind",
        /// Name, labels and the rest of what every object has.
        metadata: ObjectMeta = "metadata",
        /// What to start from.
        spec: Option<DeploymentRuntimeConfigSpec> = "spec",
    }

    /// What the objects that run a package start from.
    DeploymentRuntimeConfigSpec {
        /// The Deployment.
        deployment_template: Option<DeploymentTemplate> = "deploymentTemplate",
        /// The Service.
        service_template: Option<ServiceTemplate> = "serviceTemplate",
        /// The `ServiceAccount`.
        service_account_template: Option<ServiceAccountTemplate> = "serviceAccountTemplate",
    }

    /// A Deployment to start from.
    DeploymentTemplate {
        /// Its name, labels and annotations.
        metadata: Option<TemplateMeta> = "metadata",
        /// Its spec: any that apps/v1 has.
        spec: Option<DeploymentSpec> = "spec",
    }

    /// A Service to start from.
    ServiceTemplate {
        /// Its name, labels and annotations.
        metadata: Option<TemplateMeta> = "metadata",
    }

    /// A `ServiceAccount` to start from.
    ServiceAccountTemplate {
        /// Its name, labels and annotations.
        metadata: Option<TemplateMeta> = "metadata",
    }

    /// What a template says about metadata.
    TemplateMeta {
        /// The name, instead of the one the package manager would give.
        name: Option<String> = "name",
        /// Annotations.
        annotations: Option<BTreeMap<String, String>> = "annotations",
        /// Labels.
        labels: Option<BTreeMap<String, String>> = "labels",
    }
}

/// The spec of a Deployment. Who writes one into a template is told by the API server what is wrong
/// with it, as apps/v1 would; here it is passed on as it is.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct DeploymentSpec(pub Map<String, Json>);

impl Schema for DeploymentSpec {
    /// What apps/v1 says of it, as Crossplane v2.3.4 has it in its definition, without the words.
    fn schema() -> Json {
        serde_json::from_str(include_str!("deployment_spec.json")).unwrap_or_default()
    }
}
