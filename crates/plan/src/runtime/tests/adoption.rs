//! Objects that are there already under the names that a runtime's have.

use super::*;
use crate::control::controller_of;

const OURS: &str = "provider.pkg.crossplane.io/p";

/// The package, with these annotations.
fn package(world: &mut World, annotations: &Json) {
    let package = json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": "Provider",
        "metadata": {"name": "p", "annotations": annotations},
    });
    world.live.insert(Target::of(&package), Some(package));
}

fn object(kind: &str, name: &str, metadata: &Json, spec: &Json) -> Json {
    let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec});
    object["metadata"]["name"] = json!(name);
    object["metadata"]["namespace"] = json!(NAMESPACE);
    object
}

fn is_taken(world: &World, kind: &str, name: &str) -> bool {
    controller_of(live(world, kind, name).unwrap()).is_some()
}

#[test]
fn c2_a_service_that_no_package_brought_is_left_alone_until_it_is_given() {
    let mut world = world();
    package(&mut world, &json!({}));
    let by_hand = object("Service", "p", &json!({}), &json!({"selector": {"app": "mine"}}));
    put(&mut world, by_hand.clone(), "kubectl");
    insta::assert_snapshot!(act(&mut world).lines().skip(2).collect::<Vec<_>>().join("\n"), @r"
    # pre establish runtime hook failed for package: cannot apply provider package service: Service p was there already, not brought by a package; give it another name in a DeploymentRuntimeConfig, or to the package, after which it goes when that is uninstalled: apron adopt p, or annotate it with pkg.crossplane.io/adopt=provider.pkg.crossplane.io/p
    # again in 60 s
    ");
    assert_eq!(live(&world, "Service", "p").unwrap()["spec"], by_hand["spec"]);
    for (what, metadata, of_package, of_manager) in [
        ("the object", json!({"annotations": {"pkg.crossplane.io/adopt": OURS}}), false, false),
        ("the package", json!({}), true, false),
        ("the manager", json!({}), false, true),
    ] {
        let mut world = world.clone();
        let agreed = if of_package { "true" } else { "false" };
        package(&mut world, &json!({"pkg.crossplane.io/adopt-existing": agreed}));
        world.settings.adopts_existing = of_manager;
        put(&mut world, object("Service", "p", &metadata, &by_hand["spec"]), "kubectl");
        settle(&mut world);
        assert!(is_taken(&world, "Service", "p"), "{what}");
        let annotations = &live(&world, "Service", "p").unwrap()["metadata"]["annotations"];
        assert_eq!(annotations["pkg.crossplane.io/brought-by"], OURS, "{what}");
    }
}

#[test]
fn c2_what_ran_a_package_before_is_taken_back() {
    let selects = json!({"selector": {"pkg.crossplane.io/revision": "p-0"}});
    let marked = json!({"annotations": {"pkg.crossplane.io/brought-by": OURS}});
    let nothing = json!({});
    for (what, kind, name, metadata, spec, manager, expected) in [
        ("nothing is known", "Service", "p", &nothing, &nothing, "kubectl", false),
        ("it selects pods of a revision", "Service", "p", &nothing, &selects, "restore", true),
        ("it is marked", "Service", "p", &marked, &nothing, "restore", true),
        ("the manager's own", "Service", "p", &nothing, &nothing, MANAGER, false),
        ("an account by hand", "ServiceAccount", "p-1", &nothing, &nothing, "kubectl", false),
        ("a marked account", "ServiceAccount", "p-1", &marked, &nothing, "restore", true),
        ("an account of before", "ServiceAccount", "p-1", &nothing, &nothing, MANAGER, true),
        ("one of upstream's", "ServiceAccount", "p-1", &nothing, &nothing, "crossplane", true),
    ] {
        let mut world = world();
        package(&mut world, &json!({}));
        established(&mut world, true);
        put(&mut world, object(kind, name, metadata, spec), manager);
        settle(&mut world);
        assert_eq!(is_taken(&world, kind, name), expected, "{what}");
    }
}

#[test]
fn c2_the_account_of_the_manager_is_not_taken_by_naming_it() {
    let mut world = world();
    package(&mut world, &json!({}));
    established(&mut world, true);
    let named = json!({"metadata": {"name": "default"}, "spec":
        {"serviceAccountTemplate": {"metadata": {"name": "crossplane"}}}});
    world.runtime_configs = vec![serde_json::from_value(named).unwrap()];
    put(&mut world, object("ServiceAccount", "crossplane", &json!({}), &json!({})), MANAGER);
    let told = settle(&mut world);
    assert!(!is_taken(&world, "ServiceAccount", "crossplane"), "{told}");
    assert!(told.contains("ServiceAccount crossplane was there already, not brought"), "{told}");
}
