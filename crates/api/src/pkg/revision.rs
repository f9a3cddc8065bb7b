//! Revisions: each state a package was in, of which one is active.

use super::package::{ImageConfigRef, LocalReference, RuntimeConfigRef, ServiceAccountOptions};
use crate::condition::{self, Condition, types};
use crate::meta::PermissionRequest;
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
        /// What the account has that the package runs as.
        service_account: Option<ServiceAccountOptions> = "serviceAccount",
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
        /// What the package asks for beyond its own kinds, allowed or not.
        permission_requests: Option<Vec<PolicyRule>> = "permissionRequests",
        /// The Secret with the certificate that the runtime serves with.
        tls_server_secret_name: Option<String> = "tlsServerSecretName",
        /// The Secret with the certificate that the runtime calls others with.
        tls_client_secret_name: Option<String> = "tlsClientSecretName",
        /// The Deployment that runs the package, once there is one.
        controller_ref: Option<ControllerReference> = "controllerRef",
        /// Where a function can be called.
        endpoint: Option<String> = "endpoint",
    }

    /// What may be done, as roles write it.
    PolicyRule {
        /// API groups the rule is about.
        api_groups: Option<Vec<String>> = "apiGroups",
        /// Resources of those groups.
        resources: Option<Vec<String>> = "resources",
        /// The only object names the rule is about; any when empty.
        resource_names: Option<Vec<String>> = "resourceNames",
        /// URL paths that are no resources.
        non_resource_urls: Option<Vec<String>> = "nonResourceURLs",
        /// What may be done.
        verbs: Vec<String> = "verbs",
    }

    /// What runs a package.
    ControllerReference {
        /// The version of its API.
        api_version: String = "apiVersion",
        /// Its kind.
        kind: String = "kind",
        /// The namespace it is in.
        namespace: String = "namespace",
        /// Its name.
        name: String = "name",
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

impl From<&PermissionRequest> for PolicyRule {
    fn from(request: &PermissionRequest) -> Self {
        let some = |list: &Vec<String>| (!list.is_empty()).then(|| list.clone());
        Self {
            api_groups: some(&request.api_groups),
            resources: some(&request.resources),
            resource_names: some(&request.resource_names),
            non_resource_urls: some(&request.non_resource_urls),
            verbs: request.verbs.clone(),
            ..Self::default()
        }
    }
}

impl From<&PolicyRule> for PermissionRequest {
    fn from(rule: &PolicyRule) -> Self {
        let list = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
        Self {
            api_groups: list(&rule.api_groups),
            resources: list(&rule.resources),
            resource_names: list(&rule.resource_names),
            non_resource_urls: list(&rule.non_resource_urls),
            verbs: rule.verbs.clone(),
        }
    }
}

impl Revision {
    /// What is said of it.
    pub fn conditions(&self) -> &[Condition] {
        let status = self.status.as_ref();
        status.and_then(|status| status.conditions.as_deref()).unwrap_or_default()
    }

    /// Whether something of it is in the cluster: it was established, runs, or has objects. Whether all
    /// of it is well is another question.
    pub fn is_present(&self) -> bool {
        let says =
            |of| condition::find(self.conditions(), of).is_some_and(|it| it.status == "True");
        let objects = self.status.iter().flat_map(|status| status.object_refs.iter().flatten());
        { objects }.any(|one| one.uid.is_some())
            || says(types::REVISION_HEALTHY)
            || says(types::RUNTIME_HEALTHY)
    }

    /// Whether it has everything that it should, in the state that it is in now.
    pub fn is_established(&self) -> bool {
        let healthy = condition::find(self.conditions(), types::REVISION_HEALTHY);
        healthy.is_some_and(|one| one.status == "True" && !one.is_past(self.metadata.generation))
    }
}
