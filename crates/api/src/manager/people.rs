//! Roles for people: a user bound to one may do so much with what packages bring.
//!
//! The roles of packages carry labels by which they are gathered into these, as in upstream's
//! chart and under the same names.

use serde_json::{Value as Json, json};

const RBAC: &str = "rbac.authorization.k8s.io";
const READ: [&str; 3] = ["get", "list", "watch"];
const ALL: [&str; 1] = ["*"];
const GROUPS: [&str; 5] = [
    "apiextensions.crossplane.io",
    "ops.crossplane.io",
    "packages.crossplane.io",
    "pkg.crossplane.io",
    "protection.crossplane.io",
];

/// The roles, and the binding of the group that administers everything.
pub fn people_objects(labels: &Json) -> Vec<Json> {
    let mut all: Vec<Json> = ["admin", "edit", "view", "browse"]
        .into_iter()
        .flat_map(|role| [gathering_role(role, labels), base_role(role, labels)])
        .collect();
    all.push(json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": "crossplane-admin", "labels": labels},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "crossplane-admin"},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": "crossplane:masters"}],
    }));
    all
}

fn role_label(who: &str) -> String {
    format!("rbac.crossplane.io/aggregate-to-{who}")
}

fn gathering_role(who: &str, labels: &Json) -> Json {
    json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
        "metadata": {"name": format!("crossplane-{who}"), "labels": labels},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {role_label(who): "true"}}]},
    })
}

/// Rights of a role before there are any packages.
fn base_role(who: &str, labels: &Json) -> Json {
    let rule = |groups: &[&str], resources: &[&str], verbs: &[&str]| json!({"apiGroups": groups, "resources": resources, "verbs": verbs});
    let mut rules = vec![rule(&["", "events.k8s.io"], &["events"], &READ)];
    if who == "browse" {
        rules.push(rule(&GROUPS[..1], &ALL, &READ));
    } else {
        rules.push(rule(&[""], &["namespaces"], &READ));
        rules.push(rule(&["apiextensions.k8s.io"], &["customresourcedefinitions"], &READ));
    }
    match who {
        "view" => rules.push(rule(&GROUPS, &ALL, &READ)),
        "edit" | "admin" => {
            rules.push(rule(&[""], &["secrets"], &ALL));
            rules.push(rule(&GROUPS, &ALL, &ALL));
        }
        _ => {}
    }
    if who == "admin" {
        rules.push(rule(&[RBAC], &["clusterroles", "roles"], &READ));
        rules.push(rule(&[RBAC], &["clusterrolebindings", "rolebindings"], &ALL));
    }
    let mut labels = labels.clone();
    labels[role_label(who)] = json!("true");
    json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
        "metadata": {"name": format!("crossplane:aggregate-to-{who}"), "labels": labels},
        "rules": rules,
    })
}
