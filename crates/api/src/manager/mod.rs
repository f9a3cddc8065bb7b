//! The objects that make up an installed package manager. `charts/apron` says the same for Helm;
//! a test holds the two together.

mod people;

pub use people::people_objects;

use crate::crd::{SUFFIX, SuffixError};
use crate::stacks::{define_kinds, stacks_group};
use serde_json::{Value as Json, json};

/// What the Deployment is called, and what labels say.
pub const MANAGER_NAME: &str = "apron";
/// The namespace of the usual manager.
pub const MANAGER_NAMESPACE: &str = "crossplane-system";
/// The `ConfigMap` in that namespace with an administrator's choices of packages for kinds.
pub const PINS: &str = "package-pins";
/// The `ConfigMap` in a manager's namespace that says how it is set up; the suffix of the group tells
/// managers apart.
pub fn published_name(suffix: &str) -> String {
    format!("package-manager.{suffix}")
}

/// The service account; packages' runtimes know it by upstream's name.
const ACCOUNT: &str = "crossplane";
/// Where the manager is asked how it is.
const PORT: (&str, u16) = ("metrics", 8080);
/// What says the group to the manager.
const SUFFIX_FLAG: &str = "--group-suffix=";
/// What tells the manager to leave the kinds of the first package system alone.
const WITHOUT_STACKS: &str = "--packages-v1=false";
/// The user and group without rights.
const UNPRIVILEGED: u32 = 65532;

/// A package manager to be installed.
pub struct ManagerInstallation<'i> {
    /// Where it runs.
    pub namespace: &'i str,
    /// What the group of its packages ends with.
    pub suffix: &'i str,
    /// Its image.
    pub image: &'i str,
    /// Secrets that images are pulled with.
    pub pull_secrets: &'i [String],
    /// What it is told beside its group.
    pub arguments: Vec<String>,
    /// The role of everything that packages may ask for, which is made where Crossplane's core is not.
    pub allowed_role: Json,
}

/// All of them, in the order in which they are made.
pub fn manager_objects(manager: &ManagerInstallation<'_>) -> Result<Vec<Json>, SuffixError> {
    let has_stacks = !manager.arguments.iter().any(|word| word == WITHOUT_STACKS);
    let definitions = define_kinds(manager.suffix, has_stacks)?;
    let (namespace, role) = (manager.namespace, role_name(manager));
    let mut all =
        vec![json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})];
    all.extend(definitions);
    all.push(make_account(manager));
    all.push(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": role, "labels": manager_labels()},
        "rules": list_rules(manager.suffix),
    }));
    all.push(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": role, "labels": manager_labels()},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    }));
    // Beside Crossplane, its own chart has these.
    if manager.suffix == SUFFIX {
        all.push(manager.allowed_role.clone());
        all.extend(people_objects(&manager_labels()));
    }
    all.push(make_deployment(manager));
    Ok(all)
}

/// What the role and its binding are called. They have no namespace, so the name tells managers
/// apart: one must not take the rights of another. The usual manager has the short name it always had.
fn role_name(manager: &ManagerInstallation<'_>) -> String {
    let (namespace, suffix) = (manager.namespace, manager.suffix);
    if namespace == MANAGER_NAMESPACE && suffix == SUFFIX {
        return MANAGER_NAME.to_owned();
    }
    format!("{MANAGER_NAME}:{namespace}:{suffix}")
}

/// The suffix of the group that an installed Deployment manages.
pub fn managed_suffix(deployment: &Json) -> &str {
    let words = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    let mut words = words.as_array().into_iter().flatten().filter_map(Json::as_str);
    words.find_map(|word| word.strip_prefix(SUFFIX_FLAG)).unwrap_or(SUFFIX)
}

/// The account with the Secrets that images are pulled with. What packages run gets them from here.
fn make_account(manager: &ManagerInstallation<'_>) -> Json {
    let mut account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": ACCOUNT, "namespace": manager.namespace, "labels": manager_labels()},
    });
    let secrets = manager.pull_secrets.iter().map(|name| json!({"name": name}));
    let secrets: Vec<Json> = secrets.collect();
    if !secrets.is_empty() {
        account["imagePullSecrets"] = json!(secrets);
    }
    account
}

/// Labels of everything that makes it up.
pub fn manager_labels() -> Json {
    json!({"app": MANAGER_NAME, "app.kubernetes.io/version": env!("CARGO_PKG_VERSION")})
}

/// What the manager has to do, and no more. An account that hands out rights must have them or be
/// allowed to go beyond (`escalate`, `bind`), so the manager's account can become an administrator;
/// which rights are handed out is for the manager to say (`plan::authority`).
fn list_rules(suffix: &str) -> Json {
    let all = ["*"];
    let change = ["get", "list", "watch", "create", "update", "patch", "delete"];
    let mut own = vec![format!("pkg.{suffix}"), stacks_group(suffix)];
    for group in ["apiextensions", "ops", "protection"] {
        own.push(format!("{group}.{SUFFIX}"));
    }
    json!([
        // Packages, revisions and the Lock are its own; the rest is what packages bring.
        {"apiGroups": own, "resources": all, "verbs": all},
        // Definitions that packages bring, and its own at the start.
        {"apiGroups": ["apiextensions.k8s.io"],
         "resources": ["customresourcedefinitions", "customresourcedefinitions/status"], "verbs": all},
        // How many objects there are of a kind: a definition that has some is not let go.
        {"apiGroups": all, "resources": all, "verbs": ["list"]},
        // Certificates, credentials for registries and keys for signatures; what packages run as;
        // how they are reached.
        {"apiGroups": [""], "resources": ["secrets", "serviceaccounts", "services"],
         "verbs": change},
        // Which package an administrator chose for a kind.
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [PINS],
         "verbs": ["get"]},
        // How it is set up, for those who plan what it would do.
        {"apiGroups": [""], "resources": ["configmaps"],
         "resourceNames": [published_name(suffix)], "verbs": ["get", "create", "patch"]},
        // Its own namespace, if it is not there.
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "create"]},
        // What it tells people about packages.
        {"apiGroups": ["", "events.k8s.io"], "resources": ["events"],
         "verbs": ["get", "create", "update", "patch", "delete"]},
        // What runs packages.
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": change},
        // Which of several managers works.
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": change},
        // Webhooks that packages bring.
        {"apiGroups": ["admissionregistration.k8s.io"],
         "resources": ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"],
         "verbs": change},
        // Roles for the kinds of packages: rights on kinds that it has no rights on itself.
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"],
         "verbs": ["get", "list", "watch", "create", "update", "patch", "delete", "escalate", "bind"]},
        // Which account has them.
        {"apiGroups": ["rbac.authorization.k8s.io"],
         "resources": ["clusterrolebindings", "rolebindings"],
         "verbs": change},
    ])
}

fn make_deployment(manager: &ManagerInstallation<'_>) -> Json {
    let namespace = manager.namespace;
    let first = ["manager", "--cache-dir=/cache", "--leader-election", "--listen=0.0.0.0:8080"];
    let mut arguments: Vec<String> = first.map(str::to_owned).into();
    if manager.suffix != SUFFIX {
        arguments.push(format!("{SUFFIX_FLAG}{}", manager.suffix));
    }
    arguments.extend(manager.arguments.iter().cloned());
    let field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let container = json!({
        "name": MANAGER_NAME,
        "image": manager.image,
        "imagePullPolicy": "IfNotPresent",
        "args": arguments,
        "ports": [{"name": PORT.0, "containerPort": PORT.1}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": PORT.0}},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": PORT.0}},
        "env": [
            field("POD_NAME", "metadata.name"),
            field("POD_NAMESPACE", "metadata.namespace"),
            field("POD_SERVICE_ACCOUNT", "spec.serviceAccountName"),
        ],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
        },
        "volumeMounts": [
            {"name": "cache", "mountPath": "/cache"},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    });
    let pod = json!({
        "serviceAccountName": ACCOUNT,
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": UNPRIVILEGED, "runAsGroup": UNPRIVILEGED, "fsGroup": UNPRIVILEGED,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": "cache", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}],
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": MANAGER_NAME, "namespace": namespace, "labels": manager_labels()},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": MANAGER_NAME}},
            "template": {"metadata": {"labels": manager_labels()}, "spec": pod},
        },
    })
}
