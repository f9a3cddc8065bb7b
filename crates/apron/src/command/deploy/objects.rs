//! The objects that make up an installed package manager. `charts/apron` says the same for Helm;
//! a test holds the two together.

use super::Request;
use crate::args::cluster::NAMESPACE;
use crate::command::permissions;
use crate::failure::{Failure, Outcome};
use serde_json::{Value as Json, json};

/// What the Deployment is called, and what labels say.
pub(super) const NAME: &str = "apron";
/// The service account; packages' runtimes know it by upstream's name.
const ACCOUNT: &str = "crossplane";
/// Where the manager is asked how it is.
const PORT: (&str, u16) = ("metrics", 8080);
/// What says the group to the manager.
const SUFFIX_FLAG: &str = "--group-suffix=";
/// A user that is nobody.
const NOBODY: u32 = 65532;

/// All of them, in the order in which they are made.
pub(super) fn objects(request: &Request) -> Outcome<Vec<Json>> {
    let suffix = &request.cluster.group_suffix;
    let definitions = api::crd::definitions(suffix).map_err(|error| {
        let hint = "give a suffix such as crossplane.io or ibm.crossplane.io";
        Failure::new("cannot make definitions", hint).because(&error)
    })?;
    let (namespace, role) = (&request.cluster.namespace, role(request));
    let mut all =
        vec![json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})];
    all.extend(definitions);
    all.push(account(request));
    all.push(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": role, "labels": labels()},
        "rules": rules(suffix),
    }));
    all.push(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": role, "labels": labels()},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    }));
    // Beside Crossplane, its own chart has these.
    if suffix == api::crd::SUFFIX {
        all.push(permissions::gathered(Some(&labels())));
        all.extend(super::people::people(&labels()));
    }
    all.push(deployment(request, image(request)?));
    Ok(all)
}

/// What the role and its binding are called. They have no namespace, so whatever tells managers
/// apart is in their name: one must not take the rights of another. The usual manager has the short
/// name it always had.
fn role(request: &Request) -> String {
    let (namespace, suffix) = (&request.cluster.namespace, &request.cluster.group_suffix);
    if namespace == NAMESPACE && suffix == api::crd::SUFFIX {
        return NAME.to_owned();
    }
    format!("{NAME}:{namespace}:{suffix}")
}

/// The suffix of the group that an installed Deployment manages.
pub(super) fn managed(deployment: &Json) -> &str {
    let words = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    let mut words = words.as_array().into_iter().flatten().filter_map(Json::as_str);
    words.find_map(|word| word.strip_prefix(SUFFIX_FLAG)).unwrap_or(api::crd::SUFFIX)
}

/// The account with the Secrets that images are pulled with. What packages run gets them from here.
fn account(request: &Request) -> Json {
    let mut account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": ACCOUNT, "namespace": request.cluster.namespace, "labels": labels()},
    });
    let secrets = request.pull_secrets.iter().map(|name| json!({"name": name}));
    let secrets: Vec<Json> = secrets.collect();
    if !secrets.is_empty() {
        account["imagePullSecrets"] = json!(secrets);
    }
    account
}

fn labels() -> Json {
    json!({"app": NAME, "app.kubernetes.io/version": env!("CARGO_PKG_VERSION")})
}

/// What the manager has to do, and no more. Whoever hands out rights must have them or be allowed to
/// go beyond (`escalate`, `bind`), so whoever runs as the manager can become an administrator;
/// which rights are handed out is for the manager to say (`plan::authority`).
fn rules(suffix: &str) -> Json {
    let all = ["*"];
    let change = ["get", "list", "watch", "create", "update", "patch", "delete"];
    let mut own = vec![format!("pkg.{suffix}")];
    for group in ["apiextensions", "ops", "protection"] {
        own.push(format!("{group}.{}", api::crd::SUFFIX));
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
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [controller::PINS],
         "verbs": ["get"]},
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
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterrolebindings"],
         "verbs": change},
    ])
}

/// The image that was named. No registry in the world has one that can be counted on.
fn image(request: &Request) -> Outcome<&str> {
    request.image.as_deref().filter(|image| !image.is_empty()).ok_or_else(|| {
        Failure::new(
            "no image of apron was named",
            "make one and send it to a registry that the cluster can reach: `apron image build`, \
             `apron copy apron.tar REGISTRY/apron:TAG`, then give --image REGISTRY/apron:TAG",
        )
    })
}

fn deployment(request: &Request, image: &str) -> Json {
    let namespace = &request.cluster.namespace;
    let first = ["manager", "--cache-dir=/cache", "--leader-election", "--listen=0.0.0.0:8080"];
    let mut arguments: Vec<String> = first.map(str::to_owned).into();
    if request.cluster.group_suffix != api::crd::SUFFIX {
        arguments.push(format!("{SUFFIX_FLAG}{}", request.cluster.group_suffix));
    }
    arguments.extend(request.open.words());
    arguments.extend(request.arguments.iter().cloned());
    let field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let container = json!({
        "name": NAME,
        "image": image,
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
            "runAsNonRoot": true, "runAsUser": NOBODY, "runAsGroup": NOBODY, "fsGroup": NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": "cache", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}],
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": namespace, "labels": labels()},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": NAME}},
            "template": {"metadata": {"labels": labels()}, "spec": pod},
        },
    })
}
