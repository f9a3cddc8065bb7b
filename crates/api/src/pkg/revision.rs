//! Revisions: each state a package was in, of which one is active.

use super::package::{ImageConfigRef, LocalReference, RuntimeConfigRef};
use crate::condition::{self, Condition, types};
use crate::object::ObjectMeta;
use crate::wire::wire;
use std::collections::BTreeMap;

/// The state of a revision that is installed.
pub const ACTIVE: &str = "Active";
/// The state of a revision that only remembers.
pub const INACTIVE: &str = "Inactive";

wire! {
    /// One state of a package.
    Revision {
        /// The version of the API this object is written in.
        api_version: String = "apiVersion",
        /// Which kind of revision.
        kind: String = "kind",
        /// Name, labels and the rest of what every object has.
        metadata: ObjectMeta = "metadata",
        /// What the package manager decided.
        spec: RevisionSpec = "spec",
        /// What was found.
        status: Option<RevisionStatus> = "status",
    }

    /// What a revision is to be.
    RevisionSpec {
        /// Active, Inactive, or empty while it waits for somebody to decide.
        desired_state: String = "desiredState",
        /// The image, as the package asked for it.
        image: String = "image",
        /// Its number among the revisions of its package; the highest was active last.
        revision: i64 = "revision",
        /// Names of Secrets with credentials for the image, and for the images it runs.
        package_pull_secrets: Option<Vec<LocalReference>> = "packagePullSecrets",
        /// When to ask the registry, for the package and for the images it runs.
        package_pull_policy: Option<String> = "packagePullPolicy"
            with {"default": "IfNotPresent"},
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
        /// The Secret with the certificate that the runtime serves with.
        tls_server_secret_name: Option<String> = "tlsServerSecretName",
        /// The Secret with the certificate that the runtime calls others with.
        tls_client_secret_name: Option<String> = "tlsClientSecretName",
    }

    /// What was found about a revision.
    RevisionStatus {
        /// How the revision is.
        conditions: Option<Vec<Condition>> = "conditions"
            with {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        /// The objects it brings.
        object_refs: Option<Vec<TypedReference>> = "objectRefs",
        /// How many packages it needs.
        found_dependencies: Option<i64> = "foundDependencies",
        /// How many of them are there.
        installed_dependencies: Option<i64> = "installedDependencies",
        /// How many of those are there in a version it does not accept.
        invalid_dependencies: Option<i64> = "invalidDependencies",
        /// Which image configurations were applied, and what for.
        applied_image_config_refs: Option<Vec<ImageConfigRef>> = "appliedImageConfigRefs",
        /// The image that was used, which differs from the one asked for if it was rewritten.
        resolved_image: Option<String> = "resolvedImage",
        /// What the package says it can do.
        capabilities: Option<Vec<String>> = "capabilities",
        /// The Secret with the certificate that the runtime serves with.
        tls_server_secret_name: Option<String> = "tlsServerSecretName",
        /// The Secret with the certificate that the runtime calls others with.
        tls_client_secret_name: Option<String> = "tlsClientSecretName",
        /// Where a function can be called.
        endpoint: Option<String> = "endpoint",
    }

    /// An object by kind and name.
    TypedReference {
        /// The version of its API.
        api_version: String = "apiVersion",
        /// Its kind.
        kind: String = "kind",
        /// Its name.
        name: String = "name",
        /// Which object of that name.
        uid: Option<String> = "uid",
    }
}

impl Revision {
    /// What is said of it.
    pub fn conditions(&self) -> &[Condition] {
        let status = self.status.as_ref();
        status.and_then(|status| status.conditions.as_deref()).unwrap_or_default()
    }

    /// Whether it has everything that it should, in the state that it is in now.
    pub fn is_established(&self) -> bool {
        let healthy = condition::find(self.conditions(), types::REVISION_HEALTHY);
        healthy.is_some_and(|one| one.status == "True" && !one.is_past(self.metadata.generation))
    }
}
