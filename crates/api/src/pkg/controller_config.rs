//! Controller configurations: the older way to say how a provider's controller is run.

use super::package::LocalReference;
use crate::object::ObjectMeta;
use crate::wire::{Opaque, OpaqueList, wire};
use std::collections::BTreeMap;

wire! {
    /// How a provider's controller is run. Its own annotations go to the `ServiceAccount`.
    ControllerConfig {
        /// The version of the API this object is written in.
        api_version: String = "apiVersion",
        /// Always `ControllerConfig`.
        kind: String = "kind",
        /// Name, labels and the rest of what every object has.
        metadata: ObjectMeta = "metadata",
        /// What to change.
        spec: Option<ControllerConfigSpec> = "spec",
    }

    /// What to change about a controller's Deployment.
    ControllerConfigSpec {
        /// Labels and annotations of the pod.
        metadata: Option<PodMeta> = "metadata",
        /// How many pods.
        replicas: Option<i32> = "replicas",
        /// The image, instead of the package's.
        image: Option<String> = "image",
        /// Which nodes will do.
        node_selector: Option<BTreeMap<String, String>> = "nodeSelector",
        /// An existing `ServiceAccount` to run as.
        service_account_name: Option<String> = "serviceAccountName",
        /// The one node that will do.
        node_name: Option<String> = "nodeName",
        /// What the pod may do.
        pod_security_context: Option<Opaque> = "podSecurityContext",
        /// What the container may do.
        security_context: Option<Opaque> = "securityContext",
        /// Secrets with credentials for the image.
        image_pull_secrets: Option<Vec<LocalReference>> = "imagePullSecrets",
        /// When to ask the registry for the image.
        image_pull_policy: Option<String> = "imagePullPolicy",
        /// Where pods like to be.
        affinity: Option<Opaque> = "affinity",
        /// Which taints do not matter.
        tolerations: Option<OpaqueList> = "tolerations",
        /// The pod's priority.
        priority_class_name: Option<String> = "priorityClassName",
        /// What runs its containers.
        runtime_class_name: Option<String> = "runtimeClassName",
        /// What the container needs and may use.
        resources: Option<Opaque> = "resources",
        /// Arguments of the controller.
        args: Option<Vec<String>> = "args",
        /// Where environment variables come from.
        env_from: Option<OpaqueList> = "envFrom",
        /// Environment variables.
        env: Option<OpaqueList> = "env",
        /// Ports of the container.
        ports: Option<OpaqueList> = "ports",
        /// Volumes of the pod.
        volumes: Option<OpaqueList> = "volumes",
        /// Where the container sees them.
        volume_mounts: Option<OpaqueList> = "volumeMounts",
    }

    /// Labels and annotations of a pod.
    PodMeta {
        /// Annotations.
        annotations: Option<BTreeMap<String, String>> = "annotations",
        /// Labels.
        labels: Option<BTreeMap<String, String>> = "labels",
    }
}
