//! The record of who owns what.

use super::cluster::{Cluster, cluster};
use crate::lock::{Counts, Decided, Verdict};
use crate::step::Refusal;
use api::pkg::ANNOTATION_PAUSED;
use insta::assert_snapshot;
use std::collections::BTreeMap;

#[test]
fn a_provider_and_a_configuration_of_one_name_are_two_owners() {
    let mut cluster = cluster(
        "r.io/p v1.0.0 Provider: brings things.org
         r.io/c v1.0.0 Configuration: brings others.org, composition c",
    );
    cluster.install("Provider", "x", "r.io/p:v1.0.0");
    cluster.install("Configuration", "x", "r.io/c:v1.0.0");
    cluster.run();
    let lock = cluster.world.lock.as_ref().unwrap();
    let record = |all: &[(&str, &str)]| {
        let all = all.iter().map(|(thing, owner)| ((*thing).to_owned(), (*owner).to_owned()));
        Some(all.collect::<BTreeMap<String, String>>())
    };
    let crds = [("things.org", "Provider/x"), ("others.org", "Configuration/x")];
    assert_eq!(lock.custom_resource_definitions, record(&crds));
    assert_eq!(lock.compositions, record(&[("c", "Configuration/x")]));
}

const BRINGS: &str = "
    r.io/a v1.0.0 Provider: brings things.org
    r.io/b v1.0.0 Provider: brings others.org
";

#[test]
fn nobody_is_granted_anything_before_the_lock_has_it() {
    let mut cluster = cluster(BRINGS);
    cluster.install("Provider", "a", "r.io/a:v1.0.0");
    cluster.packages();
    let decided = cluster.decide();
    assert_eq!(decided.verdicts, BTreeMap::new());
    decided.plan.actions.into_iter().for_each(|action| cluster.carry_out(action));
    let heard: Vec<Verdict> = cluster.decide().verdicts.into_values().collect();
    assert_eq!(heard, [Verdict::Resolved(Counts::default())]);
}

#[test]
fn who_cannot_come_into_the_lock_is_told_why() {
    let mut cluster = cluster(BRINGS);
    cluster.install("Provider", "a", "r.io/a:v1.0.0");
    cluster.run();
    cluster.install("Provider", "b", "r.io/b:v1.0.0");
    cluster.packages();
    let waiting = |cluster: &mut Cluster| {
        let decided = cluster.decide();
        assert_eq!(decided.plan.actions, []);
        let verdicts = decided.verdicts.into_values();
        let why = |one| if let Verdict::Waiting(_, why) = one { Some(why) } else { None };
        verdicts.filter_map(why).collect::<Vec<_>>()
    };
    let target = super::super::target(&cluster.world);
    cluster.world.refused = vec![Refusal { target, message: "it is too large".to_owned() }];
    assert_eq!(waiting(&mut cluster), ["the API server will not have the lock: it is too large"]);
    cluster.world.refused.clear();
    let lock = cluster.world.lock.as_mut().unwrap();
    lock.metadata.annotations.insert(ANNOTATION_PAUSED.to_owned(), "true".to_owned());
    assert_eq!(
        waiting(&mut cluster),
        ["the annotation crossplane.io/paused stops all work on the lock"]
    );
}

/// What it needs does not matter, nor what others need of it; but whoever asks must find it.
#[test]
fn who_skips_its_dependencies_is_in_the_lock_before_it_hears_of_it() {
    let mut cluster = cluster(
        "r.io/a v1.0.0 Configuration: r.io/c <v2.0.0
         r.io/c v1.0.0 Provider
         r.io/c v2.0.0 Provider: r.io/none >=v1.0.0",
    );
    cluster.install("Configuration", "a", "r.io/a:v1.0.0");
    cluster.install("Provider", "c", "r.io/c:v1.0.0");
    cluster.run();
    let package = cluster.install("Provider", "c", "r.io/c:v2.0.0");
    package.spec.skip_dependency_resolution = Some(true);
    cluster.packages();
    // It is in the cache by the time there is a revision.
    let new = cluster.world.revisions.iter().find(|one| one.spec.image == "r.io/c:v2.0.0").unwrap();
    let inside = cluster.registry["r.io/c"]["v2.0.0"].clone();
    cluster.world.known.revisions.insert(new.metadata.name.clone(), inside);
    let heard = |decided: &Decided| {
        let skipped = decided.verdicts.iter().filter(|(_, it)| **it == Verdict::Skipped);
        skipped.map(|(whose, _)| whose.kind.clone()).collect::<Vec<_>>()
    };
    let decided = cluster.decide();
    assert_eq!(heard(&decided), Vec::<String>::new());
    decided.plan.actions.into_iter().for_each(|action| cluster.carry_out(action));
    let lock = cluster.world.lock.as_ref().unwrap();
    assert!(lock.packages.iter().flatten().any(|one| one.version == "v2.0.0"));
    assert_eq!(heard(&cluster.decide()), ["ProviderRevision"]);
}

#[test]
fn a_lock_that_keeps_no_record_is_not_written_again_and_again() {
    let mut cluster = cluster(BRINGS);
    cluster.prunes = true;
    cluster.install("Provider", "a", "r.io/a:v1.0.0");
    assert_eq!(cluster.run(), "lock r.io/a v1.0.0\n");
    assert_eq!(cluster.run(), "nothing");
    cluster.install("Provider", "b", "r.io/b:v1.0.0");
    assert_eq!(cluster.run(), "lock r.io/a v1.0.0, r.io/b v1.0.0\n");
    assert_eq!(cluster.run(), "nothing");
}

#[test]
fn the_record_is_written_once_the_definition_of_the_lock_has_it() {
    let mut cluster = cluster(BRINGS);
    cluster.prunes = true;
    cluster.install("Provider", "a", "r.io/a:v1.0.0");
    cluster.run();
    cluster.prunes = false;
    cluster.run();
    let lock = cluster.world.lock.as_ref().unwrap();
    assert_eq!(lock.custom_resource_definitions.as_ref().unwrap()["things.org"], "Provider/a");
    assert!(lock.packages.as_ref().unwrap()[0].digest.is_some());
    cluster.asked.clear();
    assert_eq!(cluster.run(), "nothing");
    assert_eq!(cluster.asked, Vec::<String>::new());
}

fn owner(cluster: &Cluster, crd: &str) -> Option<String> {
    cluster.world.lock.as_ref()?.custom_resource_definitions.as_ref()?.get(crd).cloned()
}

const THREE: &str = "
    r.io/a v1.0.0 Provider: brings things.org
    r.io/b v1.0.0 Provider: brings things.org
    r.io/c v1.0.0 Provider: brings things.org
";

#[test]
fn who_can_never_be_installed_keeps_nothing_from_others() {
    let mut cluster = cluster(
        "r.io/a v1.0.0 Provider: brings things.org, broken
         r.io/b v1.0.0 Provider: brings things.org",
    );
    cluster.install("Provider", "a", "r.io/a:v1.0.0");
    cluster.run();
    cluster.install("Provider", "b", "r.io/b:v1.0.0");
    cluster.run();
    assert_snapshot!(cluster.show(), @r"
    Provider a r.io/a:v1.0.0 conflict: r.io/a v1.0.0 cannot be installed: line 9: ConfigMap cannot be part of it; hint: install another version, or ask its author
    Provider b r.io/b:v1.0.0 resolved 0/0/0
    ");
    assert_eq!(owner(&cluster, "things.org").as_deref(), Some("Provider/b"));
    assert_eq!(cluster.run(), "nothing");
}

#[test]
fn a_broken_package_leaves_the_lock_that_an_older_manager_put_it_into() {
    let mut cluster = cluster(THREE);
    cluster.refuses.insert("a".to_owned());
    cluster.install("Provider", "a", "r.io/a:v1.0.0");
    cluster.run();
    assert_eq!(owner(&cluster, "things.org").as_deref(), Some("Provider/a"));
    let a = cluster.registry.get_mut("r.io/a").unwrap().get_mut("v1.0.0").unwrap();
    a.fault = Some("it is broken".to_owned());
    let revision = cluster.world.revisions[0].metadata.name.clone();
    cluster.world.known.revisions.insert(revision, a.clone());
    cluster.run();
    assert_eq!(owner(&cluster, "things.org"), None);
}

#[test]
fn who_has_nothing_because_the_api_server_refuses_it_gives_way() {
    let mut cluster = cluster(THREE);
    cluster.refuses.insert("a".to_owned());
    cluster.install("Provider", "a", "r.io/a:v1.0.0");
    cluster.run();
    assert_eq!(
        owner(&cluster, "things.org").as_deref(),
        Some("Provider/a"),
        "nobody else wants it"
    );
    cluster.install("Provider", "b", "r.io/b:v1.0.0");
    cluster.run();
    assert_snapshot!(cluster.show(), @r"
    Provider a r.io/a:v1.0.0 conflict: r.io/a v1.0.0 cannot be installed: what it brings is refused, so b has the CRD things.org; hint: install another version, or ask its author
    Provider b r.io/b:v1.0.0 resolved 0/0/0
    ");
    assert_eq!(owner(&cluster, "things.org").as_deref(), Some("Provider/b"));
    // What is established stays whose it is, whatever would work by now.
    cluster.refuses.clear();
    assert_eq!(cluster.run(), "nothing");
    cluster.uninstall("b");
    cluster.run();
    assert_snapshot!(cluster.show(), @"Provider a r.io/a:v1.0.0 resolved 0/0/0");
    assert_eq!(owner(&cluster, "things.org").as_deref(), Some("Provider/a"));
}

#[test]
fn what_was_tried_in_vain_is_nothing_to_fall_back_on() {
    let mut cluster = cluster(THREE);
    cluster.publish("r.io/a v2.0.0 Provider: brings things.org, broken");
    cluster.refuses.insert("a".to_owned());
    cluster.install("Provider", "a", "r.io/a:v1.0.0");
    cluster.run();
    cluster.install("Provider", "a", "r.io/a:v2.0.0");
    cluster.run();
    cluster.install("Provider", "b", "r.io/b:v1.0.0");
    cluster.run();
    assert_eq!(owner(&cluster, "things.org").as_deref(), Some("Provider/b"));
    assert_eq!(cluster.run(), "nothing");
}

#[test]
fn two_who_fail_do_not_take_turns() {
    let mut cluster = cluster(THREE);
    cluster.refuses = ["a".to_owned(), "b".to_owned()].into();
    cluster.install("Provider", "a", "r.io/a:v1.0.0");
    cluster.run();
    cluster.install("Provider", "b", "r.io/b:v1.0.0");
    cluster.run();
    assert_eq!(owner(&cluster, "things.org").as_deref(), Some("Provider/b"), "it was tried, too");
    assert_eq!(cluster.run(), "nothing");
    cluster.install("Provider", "c", "r.io/c:v1.0.0");
    cluster.run();
    assert_eq!(owner(&cluster, "things.org").as_deref(), Some("Provider/c"));
    assert_eq!(cluster.run(), "nothing");
}
