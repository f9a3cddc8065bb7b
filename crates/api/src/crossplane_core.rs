//! The objects that make up Crossplane's core beside apron's package manager.
//!
//! The core has a package manager of its own, and no switch for it. What the core lacks here are rights: its account
//! reads packages, which is how the core finds functions, and may not write them. Neither may it read service accounts,
//! which upstream's fetcher does before it asks a registry, so no package is fetched twice. What is left of the core's
//! package manager is a refused attempt for each package once a minute, and an event about it.
//!
//! ```text
//!  packages, revisions, their programs and certificates   apron writes, the core reads
//!  definitions of the kinds of packages                   apron's; the core's files of them are hidden from its setup
//!  definitions of all other kinds of Crossplane           the core's setup writes, over what apron held in their place
//!  the authority in crossplane-root-ca                    whoever comes first makes it, and both sign with it
//!  rights on composite and composed kinds                 apron's roles, gathered by label into the role of the core
//! ```

use crate::crd::SUFFIX;
use crate::manager::MANAGER_NAMESPACE;
use serde_json::{Value as Json, json};

/// What the Deployment, its account and its role are called, as in upstream's chart.
pub const CORE_NAME: &str = NAME;
/// Where the core runs: beside the package manager, whose Secrets and runtimes it uses.
pub const CORE_NAMESPACE: &str = NAMESPACE;

const NAME: &str = "crossplane";
const NAMESPACE: &str = MANAGER_NAMESPACE;
/// The role with the rights of the core before there are any packages.
const BASE_ROLE: &str = "crossplane:system:aggregate-to-crossplane";
/// The Service behind which the core's webhook is, and its port.
const WEBHOOKS: &str = "crossplane-webhooks";
const WEBHOOK_PORT: u16 = 9443;
/// Where the core says whether it is ready.
const HEALTH_PORT: u16 = 8081;
/// The Secrets with the core's own certificates.
const SERVER_SECRET: &str = "crossplane-tls-server";
const CLIENT_SECRET: &str = "crossplane-tls-client";
/// The `ConfigMap` with the empty file that is mounted over others.
const HIDING: &str = "crossplane-hidden-definitions";
const EMPTY_FILE: &str = "empty";
/// The user and group without rights, as in upstream's image.
const UNPRIVILEGED: u32 = 65532;

const RBAC: &str = "rbac.authorization.k8s.io";
const AGGREGATE: &str = "rbac.crossplane.io/aggregate-to-crossplane";
const READ: [&str; 3] = ["get", "list", "watch"];
const CHANGE: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

/// Everything that makes up the core, in the order in which it is applied. The definitions are those of the package
/// manager, and the authority is the Secret whose key signs certificates.
pub fn core_objects(image: &str, authority: &str, definitions: &[Json]) -> Vec<Json> {
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": describe_object()}),
        make_base_role(),
        make_gathering_role(),
        make_binding(),
        make_service(),
        make_hiding(),
        make_deployment(image, authority, &list_hidden_files(definitions)),
    ]
}

/// The metadata of the objects that have the core's name.
fn describe_object() -> Json {
    json!({"name": NAME, "namespace": NAMESPACE, "labels": {"app": NAME}})
}

fn make_base_role() -> Json {
    json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
        "metadata": {"name": BASE_ROLE, "labels": {"app": NAME, AGGREGATE: "true"}},
        "rules": list_rules(),
    })
}

/// The role that gathers the rights on kinds of packages and of composite resources, which apron gives.
fn make_gathering_role() -> Json {
    json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
        "metadata": {"name": NAME, "labels": {"app": NAME}},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {AGGREGATE: "true"}}]},
    })
}

fn make_binding() -> Json {
    json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": NAME, "labels": {"app": NAME}},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
    })
}

/// The rules of upstream's chart, without those by which its package manager works. The last two are needed by its
/// setup: an empty change to the Lock, which is there already, and a configuration of runtimes that says nothing.
fn list_rules() -> Json {
    let packages = format!("pkg.{SUFFIX}");
    let own = ["apiextensions", "ops", "protection"].map(|group| format!("{group}.{SUFFIX}"));
    let rule = |groups: &[&str], resources: &[&str], verbs: &[&str]| json!({"apiGroups": groups, "resources": resources, "verbs": verbs});
    json!([
        rule(&[""], &["events"], &["create", "update", "patch", "delete"]),
        rule(
            &["apiextensions.k8s.io"],
            &["customresourcedefinitions", "customresourcedefinitions/status"],
            &["*"],
        ),
        rule(&own.each_ref().map(String::as_str), &["*"], &["*"]),
        rule(&[""], &["configmaps", "secrets"], &CHANGE),
        rule(&[""], &["services"], &["*"]),
        rule(&["apps"], &["deployments"], &CHANGE),
        rule(&["coordination.k8s.io"], &["leases"], &CHANGE),
        rule(
            &["admissionregistration.k8s.io"],
            &["validatingwebhookconfigurations", "mutatingwebhookconfigurations"],
            &CHANGE,
        ),
        rule(&[&packages], &["*"], &READ),
        {"apiGroups": [&packages], "resources": ["locks"], "resourceNames": ["lock"], "verbs": ["patch"]},
        rule(&[&packages], &["deploymentruntimeconfigs"], &["create"]),
    ])
}

fn make_service() -> Json {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": WEBHOOKS, "namespace": NAMESPACE, "labels": {"app": NAME}},
        "spec": {
            "selector": {"app": NAME},
            "ports": [{"protocol": "TCP", "port": WEBHOOK_PORT, "targetPort": WEBHOOK_PORT}],
        },
    })
}

fn make_hiding() -> Json {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": HIDING, "namespace": NAMESPACE, "labels": {"app": NAME}},
        "data": {EMPTY_FILE: ""},
    })
}

/// Files of upstream's image that define the kinds of packages. apron's definitions have more fields, and the API
/// server would drop those; the core's setup passes over files that are empty.
fn list_hidden_files(definitions: &[Json]) -> Vec<String> {
    let group = format!("pkg.{SUFFIX}");
    let specs = definitions.iter().map(|one| &one["spec"]);
    let plurals = specs
        .filter(|spec| spec["group"] == group.as_str())
        .filter_map(|spec| spec["names"]["plural"].as_str());
    plurals.map(|plural| format!("/crds/{group}_{plural}.yaml")).collect()
}

fn make_deployment(image: &str, authority: &str, hidden_files: &[String]) -> Json {
    let labels = json!({"app": NAME});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": describe_object(),
        "spec": {
            "replicas": 1,
            // A second one beside it would wait for the lease of the first, and so would one that comes after a crash.
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": NAME,
                    "initContainers": [make_setup_container(image, authority, hidden_files)],
                    "containers": [make_core_container(image)],
                    "volumes": [
                        {"name": "package-cache", "emptyDir": {}},
                        {"name": "function-cache", "emptyDir": {}},
                        {"name": "hiding", "configMap": {"name": HIDING}},
                        // The setup makes these two.
                        {"name": "tls-server", "secret": {"secretName": SERVER_SECRET, "optional": true}},
                        {"name": "tls-client", "secret": {"secretName": CLIENT_SECRET, "optional": true}},
                    ],
                },
            },
        },
    })
}

/// What makes the definitions, certificates and webhook of the core before it starts.
fn make_setup_container(image: &str, authority: &str, hidden_files: &[String]) -> Json {
    let port = WEBHOOK_PORT.to_string();
    let hide = |file: &String| json!({"name": "hiding", "mountPath": file, "subPath": EMPTY_FILE});
    json!({
        "name": "crossplane-init", "image": image,
        "args": ["core", "init"],
        "env": list_environment(&[
            ("TLS_CA_SECRET_NAME", authority),
            ("WEBHOOK_SERVICE_NAME", WEBHOOKS),
            ("WEBHOOK_SERVICE_NAMESPACE", NAMESPACE),
            ("WEBHOOK_SERVICE_PORT", &port),
        ]),
        "securityContext": make_security_context(),
        "volumeMounts": hidden_files.iter().map(hide).collect::<Vec<_>>(),
    })
}

fn make_core_container(image: &str) -> Json {
    let mut environment = list_environment(&[
        ("LEADER_ELECTION", "false"),
        ("PACKAGE_RUNTIME", "External"),
        ("TLS_SERVER_CERTS_DIR", "/tls/server"),
        ("TLS_CLIENT_CERTS_DIR", "/tls/client"),
    ]);
    // No program reads this. Volumes are filled before the setup runs, and again as soon as a variable cannot be had: so
    // the core finds its certificates in them the first time.
    environment.push(json!({
        "name": "TLS_CLIENT_AUTHORITY",
        "valueFrom": {"secretKeyRef": {"name": CLIENT_SECRET, "key": "ca.crt"}},
    }));
    json!({
        "name": NAME, "image": image,
        "args": ["core", "start"],
        "env": environment,
        "ports": [
            {"name": "readyz", "containerPort": HEALTH_PORT, "protocol": "TCP"},
            {"name": "webhooks", "containerPort": WEBHOOK_PORT, "protocol": "TCP"},
        ],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": HEALTH_PORT}, "periodSeconds": 2},
        "securityContext": make_security_context(),
        "volumeMounts": [
            {"name": "package-cache", "mountPath": "/cache/xpkg"},
            {"name": "function-cache", "mountPath": "/cache/xfn"},
            {"name": "tls-server", "mountPath": "/tls/server"},
            {"name": "tls-client", "mountPath": "/tls/client"},
        ],
    })
}

/// The variables that the setup and the core have in common, and these.
fn list_environment(more: &[(&str, &str)]) -> Vec<Json> {
    let common = [
        ("POD_NAMESPACE", NAMESPACE),
        ("POD_SERVICE_ACCOUNT", NAME),
        ("TLS_SERVER_SECRET_NAME", SERVER_SECRET),
        ("TLS_CLIENT_SECRET_NAME", CLIENT_SECRET),
    ];
    let all = common.iter().chain(more);
    all.map(|(name, value)| json!({"name": name, "value": value})).collect()
}

fn make_security_context() -> Json {
    json!({
        "runAsUser": UNPRIVILEGED, "runAsGroup": UNPRIVILEGED,
        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_may_read_packages_and_neither_write_nor_fetch_them() {
        let rules = list_rules();
        let mut written = Vec::new();
        for rule in rules.as_array().unwrap() {
            let has =
                |field: &str, one: &str| rule[field].as_array().unwrap().contains(&json!(one));
            assert!(!has("apiGroups", "*"), "{rule}");
            // Without the pull secrets of its account it asks no registry.
            let is_core_group = has("apiGroups", "");
            let has_accounts = has("resources", "*") || has("resources", "serviceaccounts");
            assert!(!(is_core_group && has_accounts), "{rule}");
            let verbs = rule["verbs"].as_array().unwrap().iter();
            let changes = verbs.filter(|verb| !READ.iter().any(|read| *verb == read));
            if has("apiGroups", "pkg.crossplane.io") {
                written.extend(changes.map(|verb| (rule["resources"].clone(), verb.clone())));
            }
        }
        let setup = [
            (json!(["locks"]), json!("patch")),
            (json!(["deploymentruntimeconfigs"]), json!("create")),
        ];
        assert_eq!(written, setup);
    }

    #[test]
    fn the_setup_does_not_see_definitions_of_kinds_of_packages() {
        let definitions = crate::crd::definitions(SUFFIX).unwrap();
        let files = list_hidden_files(&definitions);
        assert!(files.contains(&"/crds/pkg.crossplane.io_locks.yaml".to_owned()), "{files:?}");
        assert!(files.iter().all(|file| file.starts_with("/crds/pkg.")), "{files:?}");
        assert_eq!(files.len(), 10);
        let setup = make_setup_container("i", "authority", &files);
        let mounts = setup["volumeMounts"].as_array().unwrap();
        assert!(mounts.iter().all(|mount| mount["subPath"] == EMPTY_FILE), "{setup:#}");
    }
}
