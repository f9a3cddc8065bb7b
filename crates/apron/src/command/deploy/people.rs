//! Roles for people: who is bound to one may do so much with whatever packages bring.
//!
//! The roles of packages carry labels by which they are gathered into these, as in upstream's
//! chart and under the same names.

use crate::cluster::{Cluster, Resource};
use crate::failure::Outcome;
use serde_json::{Value as Json, json};

const RBAC: &str = "rbac.authorization.k8s.io";
const READ: [&str; 3] = ["get", "list", "watch"];
const ALL: [&str; 1] = ["*"];
const GROUPS: [&str; 4] = [
    "apiextensions.crossplane.io",
    "ops.crossplane.io",
    "pkg.crossplane.io",
    "protection.crossplane.io",
];

/// The roles, and the binding of the group that administers everything.
pub(super) fn people(labels: &Json) -> Vec<Json> {
    let mut all: Vec<Json> = ["admin", "edit", "view", "browse"]
        .into_iter()
        .flat_map(|who| [gathered(who, labels), base(who, labels)])
        .collect();
    all.push(json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": "crossplane-admin", "labels": labels},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "crossplane-admin"},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": "crossplane:masters"}],
    }));
    all
}

/// Makes those of them that are not there; what is there stays as it is.
pub(crate) async fn ensure_people(cluster: &Cluster) -> Outcome {
    for object in people(&json!({})) {
        let is_role = object["kind"] == "ClusterRole";
        let plural = if is_role { "clusterroles" } else { "clusterrolebindings" };
        let resource = Resource::of_group(RBAC, "v1", plural);
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if cluster.get::<Json>(&resource, name).await?.is_none() {
            cluster.create(&resource, name, &object).await?;
        }
    }
    Ok(())
}

fn label(who: &str) -> String {
    format!("rbac.crossplane.io/aggregate-to-{who}")
}

fn gathered(who: &str, labels: &Json) -> Json {
    json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
        "metadata": {"name": format!("crossplane-{who}"), "labels": labels},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label(who): "true"}}]},
    })
}

/// What somebody may do before there are any packages.
fn base(who: &str, labels: &Json) -> Json {
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
    labels[label(who)] = json!("true");
    json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
        "metadata": {"name": format!("crossplane:aggregate-to-{who}"), "labels": labels},
        "rules": rules,
    })
}
