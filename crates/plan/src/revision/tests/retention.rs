//! Definitions with objects outlive the versions that brought them.

use super::cluster::Cluster;
use super::{TAG_TWO, provider, publish};
use crate::retention::Instances;
use api::meta::PackageKind;
use insta::assert_snapshot;

const TAG_THREE: &str = "registry.example.org/p:v3";
const NOW: &str = "2026-01-01T00:00:00Z";

/// A provider whose second version has dropped a definition with so many objects.
fn dropped(keys: Instances) -> (Cluster, String, String) {
    let (mut cluster, old) = provider(&["buckets", "keys"]);
    cluster.instances.insert("keys.example.org".to_owned(), keys);
    cluster.settle(&old);
    publish(&mut cluster, TAG_TWO, &["buckets"]);
    let new = cluster.revise(PackageKind::Provider, "p", TAG_TWO, "Active");
    cluster.state(&old, "Inactive");
    for name in [&new, &old, &new] {
        cluster.settle(name);
    }
    (cluster, old, new)
}

/// A third version, which drops nothing more, and the first one leaves the history.
fn leaves(cluster: &mut Cluster, old: &str, new: &str) -> (String, String) {
    publish(cluster, TAG_THREE, &["buckets", "users"]);
    let third = cluster.revise(PackageKind::Provider, "p", TAG_THREE, "Active");
    cluster.state(new, "Inactive");
    for name in [&third, new, &third] {
        cluster.settle(name);
    }
    cluster.change(old, |one| one.metadata.deletion_timestamp = Some(NOW.to_owned()));
    let told = cluster.run(old);
    cluster.revisions.remove(old);
    (third, told)
}

/// What a revision says of definitions that it does not bring.
fn said(cluster: &Cluster, revision: &str) -> String {
    let conditions = cluster.revisions[revision].conditions();
    let said = api::condition::find(conditions, "DefinitionsRetained");
    said.map_or("nothing".to_owned(), |one| {
        let message = one.message.clone().unwrap_or_default();
        format!("{} {}: {message}", one.status, one.reason)
    })
}

#[test]
fn a_definition_with_objects_stays_with_the_package_and_is_told() {
    let (mut cluster, old, new) = dropped(Instances::exactly(3));
    let mut told = vec![said(&cluster, &new), cluster.owners("keys.example.org")];
    let (third, left) = leaves(&mut cluster, &old, &new);
    told.extend([left, cluster.owners("keys.example.org")]);
    cluster.settle(&third);
    told.push(said(&cluster, &third));
    // However many objects there are then, it stays until somebody removes it.
    cluster.instances.clear();
    cluster.settle(&third);
    told.push(said(&cluster, &third));
    cluster.objects.retain(|target, _| target.name != "keys.example.org");
    cluster.settle(&third);
    told.push(said(&cluster, &third));
    let told = told.join("\n==\n").replace(&old, "OLD").replace(&new, "NEW");
    assert_snapshot!(told, @r"
    True ObjectsExist: no longer part of the package, and kept for their objects: keys.example.org (3 objects); `apron prune p --dry-run` shows what can be removed or given up
    ==
    OLD p
    ==
    change CustomResourceDefinition keys.example.org: owned by p
    remove finalizer revision.pkg.crossplane.io
    # it is being deleted: objects that only it owns go with it
    ==
    p
    ==
    True ObjectsExist: no longer part of the package, and kept for their objects: keys.example.org (3 objects); `apron prune p --dry-run` shows what can be removed or given up
    ==
    True ObjectsExist: no longer part of the package, and kept for their objects: keys.example.org (no objects); `apron prune p --dry-run` shows what can be removed or given up
    ==
    nothing
    ");
}

#[test]
fn a_definition_without_objects_goes_with_the_revision_that_brought_it() {
    let (mut cluster, old, new) = dropped(Instances::exactly(0));
    let mut told = vec![said(&cluster, &new), cluster.owners("keys.example.org")];
    let (_, left) = leaves(&mut cluster, &old, &new);
    told.extend([left, cluster.owners("keys.example.org")]);
    let told = told.join("\n==\n").replace(&old, "OLD").replace(&new, "NEW");
    assert_snapshot!(told, @r"
    False NoObjects: no longer part of the package, without objects; they go with the last revision that brought them: keys.example.org
    ==
    OLD
    ==
    remove finalizer revision.pkg.crossplane.io
    # it is being deleted: objects that only it owns go with it
    ==
    OLD
    ");
}

#[test]
fn objects_that_came_after_the_drop_and_those_that_cannot_be_counted_count() {
    for instances in [Instances::exactly(1), Instances::default()] {
        let (mut cluster, old, new) = dropped(Instances::exactly(0));
        cluster.instances.insert("keys.example.org".to_owned(), instances);
        let (third, _) = leaves(&mut cluster, &old, &new);
        assert_eq!(cluster.owners("keys.example.org"), "p");
        cluster.settle(&third);
        assert!(said(&cluster, &third).starts_with("True ObjectsExist"), "{instances}");
    }
}

#[test]
fn a_version_that_brings_it_again_takes_it_back() {
    let (mut cluster, old, new) = dropped(Instances::exactly(3));
    let (third, _) = leaves(&mut cluster, &old, &new);
    cluster.settle(&third);
    let again = cluster.revise(PackageKind::Provider, "p", super::TAG, "Active");
    cluster.state(&third, "Inactive");
    for name in [&again, &third, &again] {
        cluster.settle(name);
    }
    assert_eq!(cluster.owners("keys.example.org"), format!("p {again}*"));
    let said = said(&cluster, &again);
    assert!(said.starts_with("False NoObjects") && said.ends_with(": users.example.org"), "{said}");
}
