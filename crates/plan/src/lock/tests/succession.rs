//! Automatic packages give way to those that users install by name.

use super::cluster::{Cluster, cluster, show};
use crate::lock::Verdict;
use api::meta::PackageKind;
use api::pkg::{ANNOTATION_PAUSED, ANNOTATION_SUCCESSOR};
use serde_json::json;

/// An application, and the helper that the manager brought for it.
fn helped() -> Cluster {
    let mut cluster = cluster(
        "r.io/app v1.0.0 Configuration: r.io/t/helper >=v1.0.0
         r.io/t/helper v0.9.0 Provider
         r.io/t/helper v1.0.0 Provider: brings things.org
         r.io/t/helper v1.1.0 Provider: brings things.org",
    );
    cluster.has_cache = true;
    // So that revisions say that they run.
    cluster.world.settings.awaited = vec![PackageKind::Provider];
    cluster.install("Configuration", "app", "r.io/app:v1.0.0");
    cluster.run();
    let shown = cluster.show();
    assert!(shown.contains("Provider t-helper r.io/t/helper:v1.1.0 resolved"), "{shown}");
    cluster
}

/// The revisions of a package: the image and the state, by number.
fn revisions(cluster: &Cluster, package: &str) -> Vec<(i64, String, String)> {
    let of = |labels: &std::collections::BTreeMap<String, String>| {
        labels["pkg.crossplane.io/package"] == package
    };
    let own = cluster.world.revisions.iter().filter(|one| of(&one.metadata.labels));
    let mut own: Vec<_> = own
        .map(|one| (one.spec.revision, one.spec.image.clone(), one.spec.desired_state.clone()))
        .collect();
    own.sort();
    own
}

fn has(cluster: &Cluster, package: &str) -> bool {
    cluster.world.packages.iter().any(|one| one.metadata.name == package)
}

fn owner_of(cluster: &Cluster, crd: &str) -> Option<String> {
    let lock = cluster.world.lock.as_ref()?;
    lock.custom_resource_definitions.as_ref()?.get(crd).cloned()
}

fn revision(number: i64, version: &str, state: &str) -> (i64, String, String) {
    (number, format!("r.io/t/helper:{version}"), state.to_owned())
}

#[test]
fn h8_the_same_by_name_takes_the_place_of_an_automatic_one() {
    let mut cluster = helped();
    cluster.install("Provider", "helper", "r.io/t/helper:v1.1.0");
    let told = cluster.run();
    let shown = cluster.show();
    assert!(!has(&cluster, "t-helper"), "{told}\n{shown}");
    assert!(shown.contains("Provider helper r.io/t/helper:v1.1.0 resolved"), "{told}\n{shown}");
    assert!(shown.contains("Configuration app r.io/app:v1.0.0 resolved 1/1/0"), "{told}\n{shown}");
    let expected = [revision(2, "v1.1.0", "Inactive"), revision(3, "v1.1.0", "Active")];
    assert_eq!(revisions(&cluster, "helper"), expected, "{told}");
    assert_eq!(owner_of(&cluster, "things.org").as_deref(), Some("Provider/helper"), "{told}");
    let lines: Vec<&str> = told.lines().map(str::trim).collect();
    let at = |start: &str| lines.iter().position(|line| line.starts_with(start));
    let order = ["mark Provider t-helper", "pass ProviderRevision t-helper-", "delete Provider"];
    let places: Vec<_> = order.iter().map(|start| at(start)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{told}");
    let said = "event helper: takes the place of t-helper, which was installed automatically";
    assert!(told.contains(said), "{told}");
    assert_eq!(cluster.run(), "nothing");
}

#[test]
fn h8_another_version_by_name_is_an_upgrade_or_a_downgrade() {
    let mut cluster = helped();
    cluster.install("Provider", "helper", "r.io/t/helper:v1.0.0");
    let told = cluster.run();
    let shown = cluster.show();
    assert!(!has(&cluster, "t-helper"), "{told}\n{shown}");
    assert!(shown.contains("Provider helper r.io/t/helper:v1.0.0 resolved"), "{told}\n{shown}");
    let expected = [revision(2, "v1.1.0", "Inactive"), revision(3, "v1.0.0", "Active")];
    assert_eq!(revisions(&cluster, "helper"), expected, "{told}");
}

#[test]
fn h8_what_cannot_be_installed_takes_nothing_from_what_works() {
    for (version, why) in [("v0.9.0", ">=v1.0.0"), ("v7.7.7", "no such tag")] {
        let mut cluster = helped();
        cluster.install("Provider", "helper", &format!("r.io/t/helper:{version}"));
        let told = cluster.run();
        let shown = cluster.show();
        assert!(shown.contains("Provider t-helper r.io/t/helper:v1.1.0 resolved"), "{shown}");
        assert!(shown.contains("Configuration app r.io/app:v1.0.0 resolved 1/1/0"), "{shown}");
        assert!(!told.contains("mark ") && !told.contains("pass "), "{told}");
        let resolved = cluster.resolved();
        assert!(resolved.contains("of helper: ") && resolved.contains(why), "{resolved}");
        assert_eq!(owner_of(&cluster, "things.org").as_deref(), Some("Provider/t-helper"));
        // Mended, it takes over.
        cluster.install("Provider", "helper", "r.io/t/helper:v1.1.0");
        let told = cluster.run();
        assert!(!has(&cluster, "t-helper"), "{told}\n{}", cluster.show());
        assert!(cluster.show().contains("helper:v1.1.0 resolved"), "{}", cluster.show());
    }
}

#[test]
fn h8_definitions_that_an_automatic_package_keeps_do_not_go_with_it() {
    let mut cluster = helped();
    cluster.install("Provider", "helper", "r.io/t/helper:v1.1.0");
    cluster.packages();
    let mut packages = cluster.world.packages.iter_mut();
    let automatic = packages.find(|one| one.metadata.name == "t-helper").unwrap();
    let kept = json!({
        "type": "DefinitionsRetained", "status": "True", "reason": "ObjectsExist",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let status = automatic.status.get_or_insert_default();
    status.conditions.get_or_insert_default().push(serde_json::from_value(kept).unwrap());
    let decided = cluster.decide();
    let told = show(&decided).join("\n");
    assert!(!told.contains("mark ") && !told.contains("pass "), "{told}");
    let waits = |one: &Verdict| matches!(one, Verdict::Waiting(_, why) if why.ends_with("apron prune t-helper lists them"));
    assert!(decided.verdicts.values().any(waits), "{:?}", decided.verdicts);
    // The package says so no more, and gives way.
    cluster.run();
    assert!(!has(&cluster, "t-helper"), "{}", cluster.show());
}

#[test]
fn h8_nothing_changes_hands_while_one_of_the_two_is_paused() {
    let mut cluster = helped();
    let mut packages = cluster.world.packages.iter_mut();
    let automatic = packages.find(|one| one.metadata.name == "t-helper").unwrap();
    automatic.metadata.annotations.insert(ANNOTATION_PAUSED.to_owned(), "true".to_owned());
    cluster.install("Provider", "helper", "r.io/t/helper:v1.1.0");
    let told = cluster.run();
    assert!(has(&cluster, "t-helper") && !told.contains("pass "), "{told}");
    let shown = cluster.show();
    assert!(shown.contains("t-helper, which was installed automatically, gives way"), "{shown}");
}

#[test]
fn h8_a_package_with_nobody_to_give_way_to_any_more_goes_on() {
    let mut cluster = helped();
    let mut packages = cluster.world.packages.iter_mut();
    let automatic = packages.find(|one| one.metadata.name == "t-helper").unwrap();
    let (key, heir) = (ANNOTATION_SUCCESSOR.to_owned(), "helper".to_owned());
    automatic.metadata.annotations.insert(key, heir);
    let told = cluster.run();
    assert!(told.contains("mark Provider t-helper for null"), "{told}");
    assert_eq!(cluster.run(), "nothing");
    assert!(
        cluster.show().contains("t-helper r.io/t/helper:v1.1.0 resolved"),
        "{}",
        cluster.show()
    );
}

#[test]
fn h8_what_is_still_on_its_way_gives_way_too() {
    let mut cluster = helped();
    cluster.refuses.insert("t-helper".to_owned());
    for revision in &mut cluster.world.revisions {
        if revision.metadata.labels["pkg.crossplane.io/package"] == "t-helper" {
            revision.status = None;
        }
    }
    cluster.install("Provider", "helper", "r.io/t/helper:v1.1.0");
    let told = cluster.run();
    assert!(!has(&cluster, "t-helper"), "{told}\n{}", cluster.show());
    assert!(cluster.show().contains("Provider helper r.io/t/helper:v1.1.0 resolved"), "{told}");
}
