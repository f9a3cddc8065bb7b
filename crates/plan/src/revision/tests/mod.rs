//! Worlds in, steps out, as text a person can check.

mod adoption;
mod authority;
mod cluster;
mod depart;
mod desired;
mod handover;
mod install;
mod refusal;
mod retention;
mod show;
mod signed;
mod underlying;

use api::meta::PackageKind;
use cluster::Cluster;
use serde_json::{Value as Json, json};

const TAG: &str = "registry.example.org/p:v1";
const TAG_TWO: &str = "registry.example.org/p:v2";

fn meta(kind: &str, spec: &Json) -> Json {
    json!({
        "apiVersion": "meta.pkg.crossplane.io/v1", "kind": kind,
        "metadata": {"name": "p"}, "spec": spec,
    })
}

fn crd(plural: &str) -> Json {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.org")},
        "spec": {"group": "example.org", "names": {"kind": plural, "plural": plural}},
    })
}

fn composition(name: &str) -> Json {
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": name}, "spec": {"mode": "Pipeline"},
    })
}

/// A provider with these definitions behind the first tag, and an active revision of it.
fn provider(plurals: &[&str]) -> (Cluster, String) {
    let mut cluster = Cluster::new();
    publish(&mut cluster, TAG, plurals);
    let name = cluster.revise(PackageKind::Provider, "p", TAG, "Active");
    (cluster, name)
}

fn publish(cluster: &mut Cluster, tag: &str, plurals: &[&str]) {
    let mut documents = vec![meta("Provider", &json!({}))];
    documents.extend(plurals.iter().map(|plural| crd(plural)));
    cluster.publish(tag, &documents);
}
