//! What a revision says when it cannot go on.

use super::cluster::Cluster;
use super::{TAG, crd, meta, provider, publish};
use crate::step::{Refusal, Target};
use api::meta::PackageKind;
use insta::assert_snapshot;
use serde_json::{Value as Json, json};

const OTHER: &str = "registry.example.org/q:v1";

/// Two providers that share a definition; the first is installed.
fn rivals() -> (Cluster, String, String) {
    let (mut cluster, first) = provider(&["buckets", "keys"]);
    let documents = [meta("Provider", &json!({})), crd("users"), crd("buckets")];
    cluster.publish(OTHER, &documents);
    let second = cluster.revise(PackageKind::Provider, "q", OTHER, "Active");
    (cluster, first, second)
}

#[test]
fn of_two_packages_that_want_one_object_one_wins_and_the_other_says_so() {
    let (mut cluster, first, second) = rivals();
    cluster.settle(&first);
    let mut told = vec![cluster.settle(&second)];
    // Also while it is between two revisions.
    cluster.state(&first, "Inactive");
    cluster.settle(&first);
    told.push(cluster.run(&second));
    // When the winner goes, the other has it.
    cluster.packages.remove("Provider/p");
    cluster.revisions.remove(&first);
    cluster.objects.clear();
    told.push(cluster.settle(&second));
    assert_snapshot!(told.join("\n==\n"), @r#"
    add finalizer revision.pkg.crossplane.io
    --
    status RevisionHealthy=False UnhealthyPackageRevision (cannot establish control of object: CustomResourceDefinition buckets.example.org belongs to Provider p, so Provider q cannot have it; choose versions that do not share it, have it given up if its package no longer brings it (apron prune NAME --release), or uninstall one of the two, which deletes all objects of its kinds); {"resolvedImage":"registry.example.org/q:v1"}
    event Warning SyncPackage: cannot establish control of object: CustomResourceDefinition buckets.example.org belongs to Provider p, so Provider q cannot have it; choose versions that do not share it, have it given up if its package no longer brings it (apron prune NAME --release), or uninstall one of the two, which deletes all objects of its kinds
    # cannot establish control of object: CustomResourceDefinition buckets.example.org belongs to Provider p, so Provider q cannot have it; choose versions that do not share it, have it given up if its package no longer brings it (apron prune NAME --release), or uninstall one of the two, which deletes all objects of its kinds
    # again in 60 s
    ==
    # cannot establish control of object: CustomResourceDefinition buckets.example.org belongs to Provider p, so Provider q cannot have it; choose versions that do not share it, have it given up if its package no longer brings it (apron prune NAME --release), or uninstall one of the two, which deletes all objects of its kinds
    # again in 60 s
    ==
    change Lock lock: {"customResourceDefinitions":{"users.example.org":"Provider/q","buckets.example.org":"Provider/q"}}
    create CustomResourceDefinition users.example.org owned by q-ee74f2bcba0c* q
    create CustomResourceDefinition buckets.example.org owned by q-ee74f2bcba0c* q
    # 2 of 2 objects are written
    # again at once
    --
    status RevisionHealthy=True HealthyPackageRevision; {"resolvedImage":"registry.example.org/q:v1","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"users.example.org","uid":"uid-users.example.org"},{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"buckets.example.org","uid":"uid-buckets.example.org"}]}
    event Normal SyncPackage: Successfully reconciled package revision
    "#);
}

#[test]
fn who_is_first_in_the_lock_gets_everything_even_before_anything_is_there() {
    let (mut cluster, first, second) = rivals();
    cluster.settle(&first);
    cluster.objects.clear();
    let said = cluster.settle(&second);
    assert!(said.contains("buckets.example.org belongs to Provider p, so Provider q"), "{said}");
}

/// What a package may lose because it is refused depends on it.
#[test]
fn a_package_has_nothing_until_one_of_its_revisions_has_something() {
    let (mut cluster, first) = provider(&["buckets"]);
    let forbid = |cluster: &mut Cluster, name: &str| {
        cluster.refuses.insert(name.to_owned(), "it is forbidden".to_owned());
    };
    forbid(&mut cluster, "buckets.example.org");
    cluster.settle(&first);
    assert!(cluster.has_nothing(&first));
    publish(&mut cluster, OTHER, &["keys"]);
    let second = cluster.revise(PackageKind::Provider, "p", OTHER, "Active");
    cluster.state(&first, "Inactive");
    cluster.settle(&first);
    forbid(&mut cluster, "keys.example.org");
    cluster.settle(&second);
    assert!(cluster.has_nothing(&second), "neither has the one before");
    cluster.refuses.clear();
    cluster.settle(&second);
    assert!(!cluster.has_nothing(&second));
    // Whoever comes next brings something else, but the package has what it has.
    cluster.state(&second, "Inactive");
    cluster.state(&first, "Active");
    forbid(&mut cluster, "buckets.example.org");
    cluster.settle(&first);
    assert!(!cluster.has_nothing(&first));
}

#[test]
fn nothing_is_written_while_there_is_no_lock() {
    let (mut cluster, name) = provider(&["buckets"]);
    let lock = cluster.lock.take();
    let mut told = vec![cluster.settle(&name)];
    cluster.lock = lock;
    cluster.settle(&name);
    told.push(cluster.owners("buckets.example.org"));
    assert_snapshot!(told.join("\n==\n"), @r#"
    add finalizer revision.pkg.crossplane.io
    --
    status RevisionHealthy=False UnhealthyPackageRevision (waiting for the Lock, which records whose objects are whose); {"resolvedImage":"registry.example.org/p:v1"}
    # waiting for the Lock, which records whose objects are whose
    # again in 60 s
    ==
    p-ca2815f8b304* p
    "#);
}

#[test]
fn an_object_that_something_else_controls_is_left_alone() {
    let (mut cluster, name) = provider(&["buckets"]);
    cluster.settle(&name);
    let owner = json!([{"apiVersion": "apiextensions.crossplane.io/v1", "kind":
        "CompositeResourceDefinition", "name": "x", "uid": "u", "controller": true}]);
    cluster.objects.values_mut().next().unwrap()["metadata"]["ownerReferences"] = owner;
    assert_snapshot!(cluster.settle(&name), @r#"
    status RevisionHealthy=False UnhealthyPackageRevision (cannot establish control of object: CustomResourceDefinition buckets.example.org belongs to CompositeResourceDefinition x, so Provider p cannot have it; choose versions that do not share it, have it given up if its package no longer brings it (apron prune NAME --release), or uninstall one of the two, which deletes all objects of its kinds); {"resolvedImage":"registry.example.org/p:v1","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"buckets.example.org","uid":"uid-buckets.example.org"}]}
    event Warning SyncPackage: cannot establish control of object: CustomResourceDefinition buckets.example.org belongs to CompositeResourceDefinition x, so Provider p cannot have it; choose versions that do not share it, have it given up if its package no longer brings it (apron prune NAME --release), or uninstall one of the two, which deletes all objects of its kinds
    # cannot establish control of object: CustomResourceDefinition buckets.example.org belongs to CompositeResourceDefinition x, so Provider p cannot have it; choose versions that do not share it, have it given up if its package no longer brings it (apron prune NAME --release), or uninstall one of the two, which deletes all objects of its kinds
    # again in 60 s
    "#);
}

#[test]
fn an_object_that_is_being_deleted_is_waited_for() {
    let (mut cluster, name) = provider(&["buckets"]);
    cluster.settle(&name);
    let object = cluster.objects.values_mut().next().unwrap();
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut told = vec![cluster.settle(&name)];
    cluster.objects.clear();
    told.push(cluster.settle(&name));
    assert_snapshot!(told.join("\n==\n"), @r#"
    status RevisionHealthy=False TerminatingDefinitions (being deleted, with all their objects: buckets.example.org; they are made again once they are gone, which may take the package's controller to let go of objects with finalizers); {"resolvedImage":"registry.example.org/p:v1","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"buckets.example.org","uid":"uid-buckets.example.org"}]}
    # being deleted, with all their objects: buckets.example.org; they are made again once they are gone, which may take the package's controller to let go of objects with finalizers
    # again in 60 s
    ==
    create CustomResourceDefinition buckets.example.org owned by p-ca2815f8b304* p
    # 1 of 1 objects are written
    # again at once
    --
    status RevisionHealthy=True HealthyPackageRevision; {"resolvedImage":"registry.example.org/p:v1","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"buckets.example.org","uid":"uid-buckets.example.org"}]}
    event Normal SyncPackage: Successfully reconciled package revision
    "#);
}

#[test]
fn nothing_is_written_when_the_api_server_would_refuse_one_object() {
    let (mut cluster, name) = provider(&["a", "b", "c", "d", "e"]);
    for bad in ["b", "c", "d", "e"] {
        cluster.refuses.insert(format!("{bad}.example.org"), format!("{bad} is forbidden"));
    }
    let mut told = vec![cluster.settle(&name)];
    assert!(cluster.objects.is_empty() && is_unclaimed(&cluster));
    cluster.refuses.clear();
    cluster.settle(&name);
    told.push(format!("{} objects", cluster.objects.len()));
    assert_snapshot!(told.join("\n==\n"), @r#"
    add finalizer revision.pkg.crossplane.io
    --
    status RevisionHealthy=False UnhealthyPackageRevision (cannot establish control of object: the API server refuses CustomResourceDefinition b.example.org (document 3 of the package): b is forbidden; CustomResourceDefinition c.example.org (document 4 of the package): c is forbidden; CustomResourceDefinition d.example.org (document 5 of the package): d is forbidden; and 1 more; nothing was written; install a version of the package that is mended); {"resolvedImage":"registry.example.org/p:v1"}
    event Warning SyncPackage: cannot establish control of object: the API server refuses CustomResourceDefinition b.example.org (document 3 of the package): b is forbidden; CustomResourceDefinition c.example.org (document 4 of the package): c is forbidden; CustomResourceDefinition d.example.org (document 5 of the package): d is forbidden; and 1 more; nothing was written; install a version of the package that is mended
    # cannot establish control of object: the API server refuses CustomResourceDefinition b.example.org (document 3 of the package): b is forbidden; CustomResourceDefinition c.example.org (document 4 of the package): c is forbidden; CustomResourceDefinition d.example.org (document 5 of the package): d is forbidden; and 1 more; nothing was written; install a version of the package that is mended
    # again in 60 s
    ==
    5 objects
    "#);
}

#[test]
fn what_is_refused_in_spite_of_all_is_told() {
    let (mut cluster, name) = provider(&["buckets"]);
    cluster.run(&name);
    let target = Target {
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        namespace: None,
        name: "buckets.example.org".to_owned(),
    };
    cluster.refused = vec![Refusal { target, message: "the disk is full".to_owned() }];
    assert_snapshot!(cluster.settle(&name), @r"
    status RevisionHealthy=False UnhealthyPackageRevision (cannot establish control of object: the API server refuses CustomResourceDefinition buckets.example.org: the disk is full; mend what it names, and the revision is tried again); {}
    event Warning SyncPackage: cannot establish control of object: the API server refuses CustomResourceDefinition buckets.example.org: the disk is full; mend what it names, and the revision is tried again
    # cannot establish control of object: the API server refuses CustomResourceDefinition buckets.example.org: the disk is full; mend what it names, and the revision is tried again
    # again in 60 s
    ");
}

/// Whether nothing is recorded for anybody.
fn is_unclaimed(cluster: &Cluster) -> bool {
    cluster.lock.as_ref().unwrap().custom_resource_definitions.is_none()
}

/// What an active revision of a Provider says about these documents.
fn said_about(documents: &[Json]) -> String {
    let mut cluster = Cluster::new();
    cluster.publish(TAG, documents);
    let name = cluster.revise(PackageKind::Provider, "p", TAG, "Active");
    let told = cluster.settle(&name);
    assert!(cluster.objects.is_empty() && is_unclaimed(&cluster), "{told}");
    let told = told.split("\n--\n").last().unwrap().to_owned();
    let condition = told.lines().next().unwrap().to_owned();
    let (condition, _) = condition.rsplit_once("; ").unwrap();
    condition.to_owned()
}

#[test]
fn a_package_that_makes_no_sense_says_what_is_wrong_with_it() {
    let good = meta("Provider", &json!({}));
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
    let nameless =
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"});
    let told: Vec<String> = [
        vec![crd("a")],
        vec![good.clone(), good.clone()],
        vec![meta("Configuration", &json!({}))],
        vec![good.clone(), config_map],
        vec![good.clone(), nameless],
        vec![good.clone(), crd("a"), crd("a")],
        vec![meta("Provider", &json!({"crossplane": {"version": ""}}))],
        vec![meta("Provider", &json!({"crossplane": {"version": ">=v3.0.0"}})), crd("a")],
        vec![
            meta(
                "Provider",
                &json!({"controller": {"permissionRequests": [
                    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "delete"]},
                ]}}),
            ),
            crd("a"),
        ],
    ]
    .iter()
    .map(|documents| said_about(documents))
    .collect();
    assert_snapshot!(told.join("\n==\n"), @r#"
    status RevisionHealthy=False UnhealthyPackageRevision (validating package contents failed: package.yaml: package has no metadata (add a crossplane.yaml with a Provider, Configuration or Function of meta.pkg.crossplane.io/v1); install a version of the package that is mended)
    ==
    status RevisionHealthy=False UnhealthyPackageRevision (validating package contents failed: package.yaml line 3: package has a second metadata document; the first is at package.yaml:1 (a package has exactly one; remove this one or that one); install a version of the package that is mended)
    ==
    status RevisionHealthy=False UnhealthyPackageRevision (validating package contents failed: package meta type is not Provider: registry.example.org/p:v1 is a Configuration; install it as a Configuration)
    ==
    status RevisionHealthy=False UnhealthyPackageRevision (validating package contents failed: package.yaml line 3: ConfigMap in v1 cannot be part of any package (keep it out of the package directory, or leave it out with --ignore); install a version of the package that is mended)
    ==
    status RevisionHealthy=False UnhealthyPackageRevision (validating package contents failed: package.yaml line 3: object has no metadata.name (every document of a package needs apiVersion, kind and metadata.name); install a version of the package that is mended)
    ==
    status RevisionHealthy=False UnhealthyPackageRevision (validating package contents failed: package.yaml line 5: CustomResourceDefinition "a.example.org" is already defined at package.yaml:3 (keep one of them; which would win is undefined); install a version of the package that is mended)
    ==
    status RevisionHealthy=False UnhealthyPackageRevision (validating package contents failed: package.yaml line 1: constraint on Crossplane's version cannot be read: a constraint must not be empty (write a range such as ">=v1.14.0-0", or remove spec.crossplane); install a version of the package that is mended)
    ==
    status RevisionHealthy=False UnhealthyPackageRevision (incompatible Crossplane version: package is not compatible with Crossplane version (v2.5.0): it asks for >=v3.0.0; install a version of the package made for v2.5.0, or set ignoreCrossplaneConstraints)
    ==
    status RevisionHealthy=False UnhealthyPackageRevision (the package asks for permissions that nobody allowed: delete, get pods; an administrator allows exactly these with `apron permissions allow provider/p`)
    "#);
}

#[test]
fn constraints_on_crossplane_can_be_ignored() {
    let mut cluster = Cluster::new();
    cluster.publish(TAG, &[meta("Provider", &json!({"crossplane": {"version": "<v1"}}))]);
    let name = cluster.revise(PackageKind::Provider, "p", TAG, "Active");
    cluster.change(&name, |one| one.spec.ignore_crossplane_constraints = Some(true));
    assert_snapshot!(cluster.settle(&name), @r#"
    add finalizer revision.pkg.crossplane.io
    --
    status RevisionHealthy=True HealthyPackageRevision; {"resolvedImage":"registry.example.org/p:v1"}
    event Normal SyncPackage: Successfully reconciled package revision
    "#);
}

#[test]
fn m3_what_is_established_goes_on_while_its_package_cannot_be_had() {
    let (mut cluster, name) = provider(&["buckets"]);
    assert!(cluster.settle(&name).contains("RevisionHealthy=True"));
    // The cache is lost, and the tag was pushed again.
    publish(&mut cluster, TAG, &["other"]);
    let told = cluster.settle(&name);
    assert!(!told.contains("RevisionHealthy"), "{told}");
}

#[test]
fn a_package_that_cannot_be_had_or_is_another_by_now_is_not_installed() {
    let (mut cluster, name) = provider(&["buckets"]);
    let mut told = Vec::new();
    cluster.change(&name, |one| one.spec.image = "registry.example.org/gone:v1".to_owned());
    told.push(cluster.settle(&name));
    cluster.change(&name, |one| one.spec.image = TAG.to_owned());
    publish(&mut cluster, TAG, &["other"]);
    told.push(cluster.settle(&name));
    assert_snapshot!(told.join("\n==\n"), @r"
    add finalizer revision.pkg.crossplane.io
    --
    status RevisionHealthy=False UnhealthyPackageRevision (cannot get package: cannot resolve registry.example.org/gone:v1: not found; make sure that registry.example.org/gone:v1 exists and may be pulled); {}
    event Warning ParsePackage: cannot get package: cannot resolve registry.example.org/gone:v1: not found; make sure that registry.example.org/gone:v1 exists and may be pulled
    # cannot get package: cannot resolve registry.example.org/gone:v1: not found; make sure that registry.example.org/gone:v1 exists and may be pulled
    # again in 60 s
    ==
    status RevisionHealthy=False UnhealthyPackageRevision (cannot get package: registry.example.org/p:v1 means sha256:2c4bb85628d292c0fbba73cf9a09e11942c0fc6636a376458091da7b0e3709a0 now, which is not what this revision was made from; let the package make a revision of it, or install it by digest); {}
    event Warning ParsePackage: cannot get package: registry.example.org/p:v1 means sha256:2c4bb85628d292c0fbba73cf9a09e11942c0fc6636a376458091da7b0e3709a0 now, which is not what this revision was made from; let the package make a revision of it, or install it by digest
    # cannot get package: registry.example.org/p:v1 means sha256:2c4bb85628d292c0fbba73cf9a09e11942c0fc6636a376458091da7b0e3709a0 now, which is not what this revision was made from; let the package make a revision of it, or install it by digest
    # again in 60 s
    ");
}
