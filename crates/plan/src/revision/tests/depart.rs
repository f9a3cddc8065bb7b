//! A package that goes, and one that comes back before all of it was gone.

use super::cluster::Cluster;
use super::provider;
use crate::retention::Instances;
use crate::step::Target;
use insta::assert_snapshot;
use serde_json::json;

const NOW: &str = "2026-01-01T00:00:00Z";

/// A provider that is installed, with two objects of one of its kinds, and then is not.
fn leaving() -> (Cluster, String) {
    let (mut cluster, name) = provider(&["buckets", "keys"]);
    cluster.settle(&name);
    cluster.instances.insert("buckets.example.org".to_owned(), Instances::exactly(2));
    cluster.packages.clear();
    cluster.change(&name, |one| one.metadata.deletion_timestamp = Some(NOW.to_owned()));
    (cluster, name)
}

fn definition(name: &str) -> Target {
    Target {
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        namespace: None,
        name: name.to_owned(),
    }
}

#[test]
fn a_revision_waits_for_the_objects_of_its_kinds_before_it_goes() {
    let (mut cluster, name) = leaving();
    let told = [cluster.run(&name), cluster.run(&name)];
    assert_snapshot!(told.join("\n==\n"), @r#"
    delete buckets.example.org
    status RevisionHealthy=False TerminatingDefinitions (it goes once objects of its kinds are gone, and what runs it stays until then, to let go of those with finalizers: buckets.example.org (2 objects)); {"resolvedImage":"registry.example.org/p:v1","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"keys.example.org","uid":"uid-keys.example.org"},{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"buckets.example.org","uid":"uid-buckets.example.org"}]}
    # it goes once objects of its kinds are gone, and what runs it stays until then, to let go of those with finalizers: buckets.example.org (2 objects)
    # again in 60 s
    ==
    remove finalizer revision.pkg.crossplane.io
    # it is being deleted: objects that only it owns go with it
    "#);
}

#[test]
fn a_definition_that_is_on_its_way_out_is_waited_for_and_not_deleted_again() {
    let (mut cluster, name) = leaving();
    let going = cluster.objects.get_mut(&definition("buckets.example.org")).unwrap();
    going["metadata"]["deletionTimestamp"] = json!(NOW);
    let told = cluster.run(&name);
    assert!(!told.contains("delete "), "{told}");
    assert!(told.contains("buckets.example.org (2 objects)"), "{told}");
    cluster.instances.clear();
    assert!(cluster.run(&name).contains("remove finalizer"), "nothing is left to wait for");
}

#[test]
fn nothing_is_deleted_while_the_package_stays_or_whoever_deletes_it_wants_to_keep_what_it_has() {
    let (mut cluster, name) = leaving();
    cluster.packages.insert("Provider/p".to_owned());
    assert!(!cluster.run(&name).contains("delete "), "the package stays");
    let (mut cluster, name) = leaving();
    cluster.change(&name, |one| one.metadata.finalizers.push("orphan".to_owned()));
    assert!(!cluster.run(&name).contains("delete "), "they are to be kept");
}

#[test]
fn nobody_gets_rights_on_what_was_not_theirs_because_it_is_on_its_way_out() {
    let (mut cluster, name) = provider(&["buckets", "keys"]);
    let mut going = super::crd("buckets");
    going["metadata"]["deletionTimestamp"] = json!(NOW);
    cluster.objects.insert(definition("buckets.example.org"), going);
    let told = cluster.settle(&name);
    assert!(told.contains("UnhealthyPackageRevision (cannot establish control"), "{told}");
    assert!(!told.contains("create CustomResourceDefinition"), "{told}");
}

#[test]
fn a_package_that_comes_back_has_everything_else_and_says_what_is_still_going() {
    let (mut cluster, name) = provider(&["buckets", "keys"]);
    let mut going = super::crd("buckets");
    going["metadata"]["deletionTimestamp"] = json!(NOW);
    going["metadata"]["uid"] = json!("old");
    going["metadata"]["annotations"] =
        json!({"pkg.crossplane.io/brought-by": "provider.pkg.crossplane.io/p"});
    cluster.objects.insert(definition("buckets.example.org"), going);
    let mut told = vec![cluster.settle(&name)];
    cluster.objects.remove(&definition("buckets.example.org"));
    told.push(cluster.settle(&name));
    assert_snapshot!(told.join("\n==\n"), @r#"
    add finalizer revision.pkg.crossplane.io
    --
    change Lock lock: {"customResourceDefinitions":{"buckets.example.org":"Provider/p","keys.example.org":"Provider/p"}}
    create CustomResourceDefinition keys.example.org owned by p-f2fba9b72b5d* p
    # 1 of 2 objects are written
    # again at once
    --
    status RevisionHealthy=False TerminatingDefinitions (being deleted, with all their objects: buckets.example.org; they are made again once they are gone, which may take the package's controller to let go of objects with finalizers); {"resolvedImage":"registry.example.org/p:v1","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"keys.example.org","uid":"uid-keys.example.org"},{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"buckets.example.org","uid":"old"}]}
    # being deleted, with all their objects: buckets.example.org; they are made again once they are gone, which may take the package's controller to let go of objects with finalizers
    # again in 60 s
    ==
    create CustomResourceDefinition buckets.example.org owned by p-f2fba9b72b5d* p
    # 1 of 2 objects are written
    # again at once
    --
    status RevisionHealthy=True HealthyPackageRevision; {"resolvedImage":"registry.example.org/p:v1","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"keys.example.org","uid":"uid-keys.example.org"},{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"buckets.example.org","uid":"uid-buckets.example.org"}]}
    event Normal SyncPackage: Successfully reconciled package revision
    "#);
}
