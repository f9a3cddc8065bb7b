//! Objects going from one revision of a package to the next.

use super::cluster::{Cluster, metadata};
use super::{TAG_TWO, provider, publish};
use api::meta::PackageKind;
use insta::assert_snapshot;

/// A provider that is installed, and a second revision of it that is not active yet.
fn two(first: &[&str], second: &[&str]) -> (Cluster, String, String) {
    let (mut cluster, old) = provider(first);
    cluster.settle(&old);
    publish(&mut cluster, TAG_TWO, second);
    let new = cluster.revise(PackageKind::Provider, "p", TAG_TWO, "Active");
    (cluster, old, new)
}

/// Names people can follow.
fn read(told: &[String], old: &str, new: &str) -> String {
    told.join("\n==\n").replace(old, "OLD").replace(new, "NEW")
}

#[test]
fn the_new_revision_waits_for_the_old_one_to_step_back_and_takes_over() {
    let (mut cluster, old, new) = two(&["buckets", "keys"], &["buckets", "users"]);
    let mut told = vec![cluster.settle(&new), cluster.run(&new)];
    cluster.state(&old, "Inactive");
    told.push(cluster.run(&old));
    told.push(cluster.settle(&new));
    told.push(cluster.settle(&old));
    told.extend([cluster.run(&new), cluster.run(&old)]);
    assert_snapshot!(read(&told, &old, &new), @r#"
    add finalizer revision.pkg.crossplane.io
    --
    status RevisionHealthy=False UnhealthyPackageRevision (cannot establish control of object: CustomResourceDefinition buckets.example.org is still controlled by OLD); {"resolvedImage":"registry.example.org/p:v2"}
    # cannot establish control of object: CustomResourceDefinition buckets.example.org is still controlled by OLD
    # again in 60 s
    ==
    # cannot establish control of object: CustomResourceDefinition buckets.example.org is still controlled by OLD
    # again in 60 s
    ==
    status RevisionHealthy=True HealthyPackageRevision; {"resolvedImage":"registry.example.org/p:v1","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"keys.example.org","uid":"uid-keys.example.org"},{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"buckets.example.org","uid":"uid-buckets.example.org"}]}
    ==
    change Lock lock: {"customResourceDefinitions":{"users.example.org":"Provider/p"}}
    replace CustomResourceDefinition buckets.example.org owned by OLD p NEW*
    create CustomResourceDefinition users.example.org owned by NEW* p
    # 2 of 2 objects are written
    # again at once
    --
    status RevisionHealthy=True HealthyPackageRevision, DefinitionsRetained=False NoObjects (no longer part of the package, without objects; they go with the last revision that brought them: keys.example.org); {"resolvedImage":"registry.example.org/p:v2","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"users.example.org","uid":"uid-users.example.org"},{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"buckets.example.org","uid":"uid-buckets.example.org"}]}
    event Normal SyncPackage: Successfully reconciled package revision
    ==
    change CustomResourceDefinition keys.example.org: owned by OLD
    ==
    nothing
    ==
    nothing
    "#);
}

#[test]
fn an_old_revision_comes_back_with_all_it_had() {
    let (mut cluster, old, new) = two(&["buckets", "keys"], &["buckets"]);
    cluster.state(&old, "Inactive");
    for name in [&new, &old, &new] {
        cluster.settle(name);
    }
    cluster.state(&old, "Active");
    cluster.state(&new, "Inactive");
    let mut told = vec![cluster.settle(&old), cluster.settle(&new)];
    for name in ["buckets.example.org", "keys.example.org"] {
        told.push(format!("{name}: {}", cluster.owners(name)));
    }
    assert_snapshot!(read(&told, &old, &new), @r#"
    replace CustomResourceDefinition buckets.example.org owned by OLD* p NEW
    replace CustomResourceDefinition keys.example.org owned by OLD* p
    # 2 of 2 objects are written
    # again at once
    --
    status RevisionHealthy=True HealthyPackageRevision; {"resolvedImage":"registry.example.org/p:v1","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"keys.example.org","uid":"uid-keys.example.org"},{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"buckets.example.org","uid":"uid-buckets.example.org"}]}
    ==
    status DefinitionsRetained=False NoObjects (no longer part of the package, without objects; they go with the last revision that brought them: keys.example.org), RevisionHealthy=True HealthyPackageRevision; {"resolvedImage":"registry.example.org/p:v2","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"buckets.example.org","uid":"uid-buckets.example.org"}]}
    ==
    buckets.example.org: OLD* p NEW
    ==
    keys.example.org: OLD* p
    "#);
}

#[test]
fn a_revision_without_successor_lets_go_and_stays_an_owner() {
    let (mut cluster, name) = provider(&["buckets"]);
    cluster.settle(&name);
    cluster.state(&name, "Inactive");
    let told = [cluster.settle(&name), cluster.run(&name)];
    assert_snapshot!(told.join("\n==\n"), @r#"
    change CustomResourceDefinition buckets.example.org: owned by p-ca2815f8b304 p
    status RevisionHealthy=True HealthyPackageRevision; {"resolvedImage":"registry.example.org/p:v1","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"buckets.example.org","uid":"uid-buckets.example.org"}]}
    ==
    nothing
    "#);
}

#[test]
fn a_successor_that_fails_takes_nothing_and_the_old_one_keeps_control() {
    let (mut cluster, old, new) = two(&["buckets"], &["buckets", "users"]);
    cluster.state(&old, "Inactive");
    cluster.refuses.insert("users.example.org".to_owned(), "it is forbidden".to_owned());
    let mut told = vec![cluster.settle(&new), cluster.settle(&old)];
    told.push(cluster.owners("buckets.example.org"));
    cluster.refuses.clear();
    cluster.settle(&new);
    told.push(cluster.owners("buckets.example.org"));
    assert_snapshot!(read(&told, &old, &new), @r#"
    add finalizer revision.pkg.crossplane.io
    --
    status RevisionHealthy=False UnhealthyPackageRevision (cannot establish control of object: the API server refuses CustomResourceDefinition users.example.org (document 3 of the package): it is forbidden; nothing was written; install a version of the package that is mended); {"resolvedImage":"registry.example.org/p:v2"}
    event Warning SyncPackage: cannot establish control of object: the API server refuses CustomResourceDefinition users.example.org (document 3 of the package): it is forbidden; nothing was written; install a version of the package that is mended
    # cannot establish control of object: the API server refuses CustomResourceDefinition users.example.org (document 3 of the package): it is forbidden; nothing was written; install a version of the package that is mended
    # again in 60 s
    ==
    status RevisionHealthy=True HealthyPackageRevision; {"resolvedImage":"registry.example.org/p:v1","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"buckets.example.org","uid":"uid-buckets.example.org"}]}
    ==
    OLD* p
    ==
    OLD p NEW*
    "#);
}

#[test]
fn a_revision_that_was_never_active_owns_what_is_there_and_makes_nothing() {
    let (mut cluster, old, new) = two(&["buckets", "orphans"], &["buckets", "orphans", "users"]);
    let orphan = cluster.objects.values_mut().nth(1).unwrap();
    orphan["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    cluster.state(&new, "Inactive");
    let told = [cluster.settle(&new), cluster.run(&new)];
    assert_snapshot!(read(&told, &old, &new), @r#"
    add finalizer revision.pkg.crossplane.io
    --
    change CustomResourceDefinition buckets.example.org: owned by OLD* p NEW
    status RevisionHealthy=True HealthyPackageRevision; {"resolvedImage":"registry.example.org/p:v2","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"users.example.org"},{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"orphans.example.org","uid":"uid-orphans.example.org"},{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"buckets.example.org","uid":"uid-buckets.example.org"}]}
    event Normal SyncPackage: Successfully reconciled package revision
    ==
    nothing
    "#);
}

#[test]
fn an_undecided_revision_waits_like_an_inactive_one() {
    let (mut cluster, name) = provider(&["buckets"]);
    cluster.state(&name, "");
    assert_snapshot!(cluster.settle(&name), @r#"
    add finalizer revision.pkg.crossplane.io
    --
    status RevisionHealthy=True HealthyPackageRevision; {"resolvedImage":"registry.example.org/p:v1","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"buckets.example.org"}]}
    event Normal SyncPackage: Successfully reconciled package revision
    "#);
}

#[test]
fn a_revision_that_goes_leaves_the_lock_and_what_others_still_have() {
    let (mut cluster, old, new) = two(&["buckets", "keys"], &["buckets"]);
    cluster.state(&old, "Inactive");
    for name in [&new, &old] {
        cluster.settle(name);
    }
    let entry =
        serde_json::json!({"name": old, "source": "s", "version": "v1", "dependencies": []});
    let lock = cluster.lock.as_mut().unwrap();
    lock.packages = Some(vec![serde_json::from_value(entry).unwrap()]);
    let now = "2026-01-01T00:00:00Z";
    cluster.change(&old, |one| one.metadata.deletion_timestamp = Some(now.to_owned()));
    let told = [cluster.run(&old), cluster.run(&old), cluster.run(&new)];
    assert_snapshot!(read(&told, &old, &new), @r#"
    change Lock lock: {"packages":[]}
    remove finalizer revision.pkg.crossplane.io
    # it is being deleted: objects that only it owns go with it
    ==
    # it is being deleted: objects that only it owns go with it
    ==
    nothing
    "#);
}

#[test]
fn a_revision_that_goes_before_it_stepped_back_takes_what_only_it_brought() {
    // Whether or not it came to tell what it brought.
    for is_told in [true, false] {
        let (mut cluster, old, new) = two(&["buckets", "keys"], &["buckets"]);
        cluster.state(&old, "Inactive");
        let now = "2026-01-01T00:00:00Z";
        cluster.change(&old, |one| {
            one.metadata.deletion_timestamp = Some(now.to_owned());
            one.status = one.status.take().filter(|_| is_told);
        });
        cluster.is_cached = true;
        let mut told = vec![cluster.run(&old)];
        cluster.settle(&new);
        told.push(cluster.run(&old));
        told.extend(["keys", "buckets"].map(|one| cluster.owners(&format!("{one}.example.org"))));
        insta::allow_duplicates! {
            assert_snapshot!(read(&told, &old, &new), @r"
            # it goes once NEW has everything
            # again in 60 s
            ==
            change CustomResourceDefinition keys.example.org: owned by OLD
            remove finalizer revision.pkg.crossplane.io
            # it is being deleted: objects that only it owns go with it
            ==
            OLD
            ==
            OLD p NEW*
            ");
        }
    }
}

#[test]
fn a_paused_revision_is_left_alone_even_when_it_goes() {
    let (mut cluster, name) = provider(&["buckets"]);
    cluster.settle(&name);
    cluster.change(&name, |one| {
        one.metadata.annotations.insert("crossplane.io/paused".to_owned(), "true".to_owned());
        one.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".to_owned());
    });
    let mut told = vec![cluster.run(&name), cluster.run(&name)];
    cluster.change(&name, |one| {
        one.metadata.annotations.clear();
        one.metadata.deletion_timestamp = None;
    });
    told.extend([cluster.run(&name), cluster.run(&name)]);
    assert_snapshot!(told.join("\n==\n"), @r#"
    status RevisionHealthy=True HealthyPackageRevision, Synced=False ReconcilePaused (Reconciliation (including deletion) is paused via the pause annotation); {"resolvedImage":"registry.example.org/p:v1","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"buckets.example.org","uid":"uid-buckets.example.org"}]}
    event Normal ReconciliationPaused: Reconciliation (including deletion) is paused via the pause annotation
    # the annotation crossplane.io/paused stops all work on it
    ==
    # the annotation crossplane.io/paused stops all work on it
    ==
    status RevisionHealthy=True HealthyPackageRevision; {"resolvedImage":"registry.example.org/p:v1","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"buckets.example.org","uid":"uid-buckets.example.org"}]}
    ==
    nothing
    "#);
}

/// After every single write each object has a revision of the package among its owners, and one
/// controller.
fn every_object_is_controlled(cluster: &Cluster) {
    for (target, object) in &cluster.objects {
        let owners = metadata(object).owner_references;
        assert!(owners.iter().any(|one| one.kind == "ProviderRevision"), "{target:?} {owners:?}");
        let controllers = owners.iter().filter(|one| one.controller == Some(true)).count();
        assert_eq!(controllers, 1, "{target:?} {owners:?}");
    }
}

/// One revision steps back and another takes its place, acting in this order.
fn exchange(cluster: &mut Cluster, order: u32, from: &str, to: &str) {
    cluster.state(to, "Active");
    for turn in 0..8 {
        if turn == order % 5 {
            cluster.state(from, "Inactive");
        }
        cluster.run(if order >> turn & 1 == 0 { from } else { to });
    }
    for name in [from, to, from, to] {
        cluster.settle(name);
    }
    assert_eq!([cluster.run(from), cluster.run(to)], ["nothing", "nothing"], "order {order}");
}

#[test]
fn in_whatever_order_revisions_act_no_object_is_ever_without_owner_or_controller() {
    // Every order in which the two revisions act, there and back.
    for order in 0..1_u32 << 8 {
        let (mut cluster, old, new) = two(&["buckets", "keys"], &["keys", "buckets"]);
        cluster.law = every_object_is_controlled;
        exchange(&mut cluster, order, &old, &new);
        for name in ["buckets.example.org", "keys.example.org"] {
            assert_eq!(cluster.owners(name), format!("{old} p {new}*"), "order {order}");
        }
        exchange(&mut cluster, order, &new, &old);
        for name in ["buckets.example.org", "keys.example.org"] {
            assert_eq!(cluster.owners(name), format!("{old}* p {new}"), "order {order}");
        }
    }
}
