//! The roles by which permissions are allowed.

use crate::cluster::{Cluster, Resource, lower};
use crate::installed::{Inventory, Which};
use api::meta::{PackageKind, PermissionRequest};
use controller::authority::rules::to_json;
use controller::authority::{ALLOWED_LABEL, ALLOWED_ROLE, Allowed, Place};
use ground::failure::Outcome;
use serde_json::{Value as Json, json};

const RBAC: &str = "rbac.authorization.k8s.io";
/// How roles begin that `apron permissions allow` writes.
const BEGIN: &str = "apron:allowed:";

fn cluster_roles() -> Resource {
    Resource::of_group(RBAC, "v1", "clusterroles")
}

/// The role of everything that is allowed: empty, until there is one with its label.
pub fn gathered(labels: Option<&Json>) -> Json {
    let mut role = json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
        "metadata": {"name": ALLOWED_ROLE},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {ALLOWED_LABEL: "true"}}]},
    });
    if let Some(labels) = labels {
        role["metadata"]["labels"] = labels.clone();
    }
    role
}

/// Makes that role, if it is not there. One that is there stays as it is.
pub async fn ensure_gathered(cluster: &Cluster) -> Outcome {
    let roles = cluster_roles();
    if cluster.get::<Json>(&roles, ALLOWED_ROLE).await?.is_none() {
        cluster.create(&roles, ALLOWED_ROLE, &gathered(None)).await?;
    }
    Ok(())
}

/// What packages may ask for, as that role says.
pub async fn read_allowed(cluster: &Cluster) -> Outcome<Allowed> {
    let role: Option<Json> = cluster.get(&cluster_roles(), ALLOWED_ROLE).await?;
    let place = Place::Gathered { is_there: role.is_some() };
    let permissions = role.as_ref().map(rules).unwrap_or_default();
    Ok(Allowed { permissions, place, ..Allowed::default() })
}

fn rules(role: &Json) -> Vec<PermissionRequest> {
    let rules = role["rules"].as_array().into_iter().flatten();
    rules.filter_map(|rule| PermissionRequest::from_json(rule).ok()).collect()
}

/// What the role for a package is called. Packages of another group are others.
pub fn name(cluster: &Cluster, kind: PackageKind, package: &str) -> String {
    let kind = lower(kind);
    let group = cluster.group.strip_prefix("pkg.").filter(|suffix| *suffix != api::crd::SUFFIX);
    match group {
        Some(suffix) => format!("{BEGIN}{kind}.pkg.{suffix}:{package}"),
        None => format!("{BEGIN}{kind}:{package}"),
    }
}

/// Writes the role for a package: these rules, and no others.
pub async fn write(
    cluster: &Cluster,
    kind: PackageKind,
    package: &str,
    asked: &[PermissionRequest],
) -> Outcome {
    let name = name(cluster, kind, package);
    let role = json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
        "metadata": {"name": name, "labels": {ALLOWED_LABEL: "true"}},
        "rules": asked.iter().map(to_json).collect::<Vec<_>>(),
    });
    cluster.apply(&cluster_roles(), &name, &role).await
}

/// Deletes the role for a package; false if there is none.
pub async fn delete(cluster: &Cluster, kind: PackageKind, package: &str) -> Outcome<bool> {
    cluster.delete(&cluster_roles(), &name(cluster, kind, package)).await
}

async fn labelled(cluster: &Cluster) -> Outcome<Vec<Json>> {
    let all: Vec<Json> = cluster.list(&cluster_roles()).await?.unwrap_or_default();
    let is_one = |one: &Json| one["metadata"]["labels"][ALLOWED_LABEL] == "true";
    Ok(all.into_iter().filter(is_one).collect())
}

/// What is allowed by other roles than these.
pub async fn written_by_others(
    cluster: &Cluster,
    names: &[String],
) -> Outcome<Vec<PermissionRequest>> {
    let is_other = |one: &&Json| {
        let name = one["metadata"]["name"].as_str().unwrap_or_default();
        !names.iter().any(|known| known == name)
    };
    Ok(labelled(cluster).await?.iter().filter(is_other).flat_map(rules).collect())
}

/// Packages that something was allowed for and that are not installed.
pub async fn left_behind(cluster: &Cluster, inventory: &Inventory) -> Outcome<Vec<String>> {
    let mut left = Vec::new();
    for role in labelled(cluster).await? {
        let written = role["metadata"]["name"].as_str().unwrap_or_default();
        let Some((_, package)) = written.strip_prefix(BEGIN).and_then(|it| it.split_once(':'))
        else {
            continue;
        };
        let mut kinds = PackageKind::ALL.into_iter();
        let kind = kinds.find(|kind| name(cluster, *kind, package) == written);
        let Some(kind) = kind else { continue };
        let which = Which { kind: Some(kind), name: package.to_owned() };
        if inventory.find(&which).is_err() {
            left.push(format!("{}/{package}", lower(kind)));
        }
    }
    Ok(left)
}
