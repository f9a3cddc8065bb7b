//! Package objects: what somebody wants installed.

use super::{ANNOTATION_CHOSEN_FOR, ANNOTATION_CHOSEN_PACKAGE};
use crate::condition::Condition;
use crate::object::ObjectMeta;
use crate::wire::{Schema, wire};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;

wire! {
    /// A package that somebody wants installed: a Provider, Configuration or Function.
    Package {
        /// The version of the API this object is written in.
        api_version: String = "apiVersion",
        /// Which kind of package.
        kind: String = "kind",
        /// Name, labels and the rest of what every object has.
        metadata: ObjectMeta = "metadata",
        /// What is asked for.
        spec: PackageSpec = "spec",
        /// What was found.
        status: Option<PackageStatus> = "status",
    }

    /// What a package object asks for.
    PackageSpec {
        /// The image to install, with a tag or digest. Without a registry the default registry is
        /// meant. With the pull policy Never it may be the name of a file in the package cache.
        package: String = "package",
        /// Instead of an image, a kind: the package that brings it is installed. `NAME.GROUP`, or
        /// `NAME.GROUP/VERSION`.
        crd: Option<String> = "crd" with {"minLength": 1},
        /// Whether a new revision becomes active by itself (Automatic) or waits for somebody to
        /// activate it (Manual).
        revision_activation_policy: Option<String> = "revisionActivationPolicy"
            with {"default": "Automatic", "enum": ["Automatic", "Manual"]},
        /// How many inactive revisions to keep; 0 keeps all.
        revision_history_limit: Option<i64> = "revisionHistoryLimit" with {"default": 1},
        /// Names of Secrets, in the package manager's namespace, with credentials for the image.
        package_pull_secrets: Option<Vec<LocalReference>> = "packagePullSecrets",
        /// When to ask the registry: `IfNotPresent`, Always or Never.
        package_pull_policy: Option<String> = "packagePullPolicy"
            with {"default": "IfNotPresent", "enum": ["IfNotPresent", "Always", "Never"]},
        /// Install the package whatever version of Crossplane it asks for.
        ignore_crossplane_constraints: Option<bool> = "ignoreCrossplaneConstraints"
            with {"default": false},
        /// Install the package without what it depends on.
        skip_dependency_resolution: Option<bool> = "skipDependencyResolution"
            with {"default": false},
        /// Labels for every object the package brings.
        common_labels: Option<BTreeMap<String, String>> = "commonLabels",
        /// Annotations for every object the package brings.
        common_annotations: Option<BTreeMap<String, String>> = "commonAnnotations",
        /// How to run the package's controller or function.
        runtime_config_ref: Option<RuntimeConfigRef> = "runtimeConfigRef"
            with {"default": {"name": "default"}},
        /// The older way to say how to run a provider's controller.
        controller_config_ref: Option<LocalReference> = "controllerConfigRef",
        /// What the account has that the package runs as, beside what its runtime configuration
        /// says.
        service_account: Option<ServiceAccountOptions> = "serviceAccount",
    }

    /// What an account has that a package runs as.
    ServiceAccountOptions {
        /// Annotations for it, which go before those of configurations.
        annotations: Option<BTreeMap<String, String>> = "annotations",
    }

    /// What was found about a package.
    PackageStatus {
        /// How the package is.
        conditions: Option<Vec<Condition>> = "conditions"
            with {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        /// The name of the revision that stands for what is asked for.
        current_revision: Option<String> = "currentRevision",
        /// What was asked for when that revision was made.
        current_identifier: Option<String> = "currentIdentifier",
        /// Which image configurations were applied, and what for.
        applied_image_config_refs: Option<Vec<ImageConfigRef>> = "appliedImageConfigRefs",
        /// The image that was used, which differs from the one asked for if it was rewritten.
        resolved_package: Option<String> = "resolvedPackage",
    }

    /// How to run a package.
    RuntimeConfigRef {
        /// The version of the referent's API.
        api_version: Option<String> = "apiVersion" with {"default": "pkg.crossplane.io/v1beta1"},
        /// The kind of the referent.
        kind: Option<String> = "kind" with {"default": "DeploymentRuntimeConfig"},
        /// The name of the referent.
        name: String = "name",
    }

    /// An image configuration that was applied.
    ImageConfigRef {
        /// Its name.
        name: String = "name",
        /// What for: `SetImagePullSecret`, `VerifyImage`, `RewriteImage` or `ConfigureRuntime`.
        reason: String = "reason",
    }
}

impl Package {
    /// The object, with the image that was chosen for the kind that it asks for, if it asks for one.
    /// A choice for another kind than that does not count.
    #[must_use]
    pub fn with_chosen_image(mut self) -> Self {
        let annotations = &self.metadata.annotations;
        let is_for_it = self.spec.crd.as_ref() == annotations.get(ANNOTATION_CHOSEN_FOR);
        let chosen = annotations.get(ANNOTATION_CHOSEN_PACKAGE).filter(|_| is_for_it);
        if let (Some(_), Some(image)) = (&self.spec.crd, chosen) {
            self.spec.package.clone_from(image);
        }
        self
    }

    /// Whether new revisions wait for somebody to activate them.
    pub fn is_manual(&self) -> bool {
        let policy = self.spec.revision_activation_policy.as_deref();
        !matches!(policy, None | Some("" | "Automatic"))
    }
}

/// The name of something in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct LocalReference {
    /// The name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Fields this type does not know, kept as they are.
    #[serde(flatten)]
    pub rest: Map<String, Json>,
}

/// Whoever applies a reference applies all of it.
impl Schema for LocalReference {
    fn schema() -> Json {
        let name = json!({"description": "The name.", "type": "string", "default": ""});
        let properties = json!({"name": name});
        json!({"type": "object", "properties": properties, "x-kubernetes-map-type": "atomic"})
    }
}
