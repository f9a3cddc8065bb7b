//! Dependencies on kinds: which package is installed for one, and when none is.

use super::cluster::{Cluster, cluster};
use insta::assert_snapshot;

/// An application that needs a kind, and two providers of which one brings it.
const STORAGE: &str = "
    r.io/app v1.0.0 Configuration: kind buckets.s3.example.org/v1
    r.io/s3 v1.0.0 Provider: brings buckets.s3.example.org/v1alpha1
    r.io/s3 v1.1.0 Provider: brings buckets.s3.example.org/v1
    r.io/s3 v1.2.0 Provider: brings buckets.s3.example.org/v1
    r.io/s3 v2.0.0-rc.1 Provider: brings buckets.s3.example.org/v1
    r.io/db v1.0.0 Provider: brings tables.db.example.org/v1
";

/// The application is asked for; says what the lock did and what there is then.
fn install(cluster: &mut Cluster) -> String {
    cluster.install("Configuration", "app", "r.io/app:v1.0.0");
    let told = cluster.run();
    format!("{told}==\n{}", cluster.show())
}

/// What the lock remembers of the kinds that packages need.
fn remembered(cluster: &Cluster) -> String {
    let lock = cluster.world.lock.as_ref().unwrap();
    let dependencies = lock.packages.iter().flatten().flat_map(|one| &one.dependencies);
    let line = |one: &api::pkg::lock::Dependency| {
        let text = |it: &Option<String>| it.clone().unwrap_or_else(|| "-".to_owned());
        let digest = if one.digest.is_some() { "with its digest" } else { "without a digest" };
        format!("{} <- {} {digest}: {}", one.package, text(&one.brought_by), text(&one.reason))
    };
    dependencies.map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_only_package_that_brings_a_kind_is_installed_for_it_in_its_newest_release() {
    let mut cluster = cluster(STORAGE);
    assert_snapshot!(install(&mut cluster), @"
    lock r.io/app v1.0.0
    create Provider s3 r.io/s3:v1.2.0
    --
    lock r.io/app v1.0.0, r.io/s3 v1.2.0
    ==
    Configuration app r.io/app:v1.0.0 resolved 1/1/0
    Provider s3 r.io/s3:v1.2.0 resolved 0/0/0
    ");
    assert_snapshot!(remembered(&cluster), @"buckets.s3.example.org/v1 <- r.io/s3 with its digest: only it brings the kind, says r.io");
    assert_snapshot!(cluster.report.why("s3").join("\n"), @"
    s3 is r.io/s3:v1.2.0
    r.io/app v1.0.0 needs it: buckets.s3.example.org/v1
    brings the CRD buckets.s3.example.org/v1: only it brings the kind, says r.io
    ");
    assert!(!cluster.asked.iter().any(|asked| asked.contains("r.io/db")), "{:#?}", cluster.asked);
    cluster.asked.clear();
    cluster.run();
    let asked = cluster.asked.iter().filter(|asked| asked.starts_with("packages with"));
    assert_eq!(asked.count(), 0, "what is there is not looked for");
}

#[test]
fn several_packages_are_named_and_none_is_chosen_until_one_is_pinned() {
    let mut cluster = cluster(STORAGE);
    cluster.publish("r.io/squat v9.0.0 Provider: brings buckets.s3.example.org/v1");
    assert_snapshot!(install(&mut cluster), @"
    lock nothing
    # again in 60 s
    --
    event app: r.io/app v1.0.0 needs the CRD buckets.s3.example.org/v1; several packages bring the CRD buckets.s3.example.org/v1: r.io/s3, r.io/squat; hint: choose one of them, for example with `apron pin buckets.s3.example.org r.io/s3`
    # again in 60 s
    ==
    Configuration app r.io/app:v1.0.0 conflict: r.io/app v1.0.0 needs the CRD buckets.s3.example.org/v1; several packages bring the CRD buckets.s3.example.org/v1: r.io/s3, r.io/squat; hint: choose one of them, for example with `apron pin buckets.s3.example.org r.io/s3`
    ");
    cluster.pin("buckets.s3.example.org", "r.io/s3");
    assert_snapshot!(install(&mut cluster), @"
    lock r.io/app v1.0.0
    create Provider s3 r.io/s3:v1.2.0
    --
    lock r.io/app v1.0.0, r.io/s3 v1.2.0
    ==
    Configuration app r.io/app:v1.0.0 resolved 1/1/0
    Provider s3 r.io/s3:v1.2.0 resolved 0/0/0
    ");
    assert_snapshot!(remembered(&cluster), @"buckets.s3.example.org/v1 <- r.io/s3 with its digest: an administrator pinned it");
}

#[test]
fn a_pin_may_be_for_a_whole_group_and_needs_no_catalog() {
    let mut cluster = cluster(STORAGE);
    cluster.catalog.is_absent = true;
    cluster.pin("_.s3.example.org", "r.io/s3");
    assert_snapshot!(install(&mut cluster), @"
    lock r.io/app v1.0.0
    create Provider s3 r.io/s3:v1.2.0
    --
    lock r.io/app v1.0.0, r.io/s3 v1.2.0
    ==
    Configuration app r.io/app:v1.0.0 resolved 1/1/0
    Provider s3 r.io/s3:v1.2.0 resolved 0/0/0
    ");
}

#[test]
fn what_was_chosen_once_is_chosen_again_though_others_bring_it_by_now() {
    let mut cluster = cluster(STORAGE);
    install(&mut cluster);
    cluster.publish("r.io/squat v9.0.0 Provider: brings buckets.s3.example.org/v1");
    cluster.uninstall("s3");
    assert_snapshot!(cluster.run(), @"
    lock r.io/app v1.0.0
    create Provider s3 r.io/s3:v1.2.0
    --
    lock r.io/app v1.0.0, r.io/s3 v1.2.0
    ");
}

#[test]
fn a_kind_that_no_package_brings_is_missed_and_installed_for_once_there_is_one() {
    let mut cluster = cluster("r.io/app v1.0.0 Configuration: kind bucket.s3.example.org");
    assert_snapshot!(install(&mut cluster), @"
    lock nothing
    # again in 60 s
    --
    event app: r.io/app v1.0.0 needs the CRD bucket.s3.example.org; no package brings the CRD bucket.s3.example.org, says r.io; hint: publish a package that brings bucket.s3.example.org, or install one by name
    # again in 60 s
    ==
    Configuration app r.io/app:v1.0.0 conflict: r.io/app v1.0.0 needs the CRD bucket.s3.example.org; no package brings the CRD bucket.s3.example.org, says r.io; hint: publish a package that brings bucket.s3.example.org, or install one by name
    ");
    cluster.publish("r.io/s3 v1.0.0 Provider: brings buckets.s3.example.org/v1");
    assert_snapshot!(install(&mut cluster), @"
    lock r.io/app v1.0.0
    create Provider s3 r.io/s3:v1.0.0
    --
    lock r.io/app v1.0.0, r.io/s3 v1.0.0
    ==
    Configuration app r.io/app:v1.0.0 resolved 1/1/0
    Provider s3 r.io/s3:v1.0.0 resolved 0/0/0
    ");
}

#[test]
fn a_kind_that_comes_in_other_versions_only_is_missed() {
    let mut cluster = cluster(STORAGE);
    cluster.publish("r.io/app v1.0.0 Configuration: kind buckets.s3.example.org/v7");
    assert_snapshot!(install(&mut cluster), @"
    lock nothing
    # again in 60 s
    --
    event app: r.io/app v1.0.0 needs the CRD buckets.s3.example.org/v7; no package brings the CRD buckets.s3.example.org/v7, says r.io; there is v1, v1alpha1 of it; hint: depend on a version that there is, or publish a package with this one
    # again in 60 s
    ==
    Configuration app r.io/app:v1.0.0 conflict: r.io/app v1.0.0 needs the CRD buckets.s3.example.org/v7; no package brings the CRD buckets.s3.example.org/v7, says r.io; there is v1, v1alpha1 of it; hint: depend on a version that there is, or publish a package with this one
    ");
}

#[test]
fn an_installed_package_is_moved_to_the_nearest_version_that_brings_the_kind() {
    let mut cluster = cluster(STORAGE);
    cluster.has_cache = true;
    cluster.install("Provider", "s3", "r.io/s3:v1.0.0");
    cluster.run();
    let told = install(&mut cluster);
    assert!(told.contains("set Provider s3 r.io/s3:v1.1.0"), "{told}");
    assert!(told.contains("Provider s3 r.io/s3:v1.1.0 resolved"), "{told}");
}

#[test]
fn a_kind_that_a_package_brings_already_or_will_is_not_looked_for() {
    let mut with_own = cluster(STORAGE);
    with_own.publish("r.io/fork v1.0.0 Provider: brings buckets.s3.example.org/v1");
    with_own.install("Provider", "fork", "r.io/fork:v1.0.0");
    assert_snapshot!(install(&mut with_own), @"
    lock r.io/app v1.0.0, r.io/fork v1.0.0
    ==
    Configuration app r.io/app:v1.0.0 resolved 1/1/0
    Provider fork r.io/fork:v1.0.0 resolved 0/0/0
    ");
    assert_snapshot!(remembered(&with_own), @"buckets.s3.example.org/v1 <- r.io/fork with its digest: a package that was there brings it");
    // It comes for another reason.
    let mut both = cluster(STORAGE);
    both.publish(
        "r.io/fork v1.0.0 Provider: brings buckets.s3.example.org/v1
         r.io/app v1.0.0 Configuration: kind buckets.s3.example.org/v1, r.io/fork *",
    );
    assert_snapshot!(install(&mut both), @"
    lock r.io/app v1.0.0
    create Provider fork r.io/fork:v1.0.0
    --
    lock r.io/app v1.0.0, r.io/fork v1.0.0
    ==
    Configuration app r.io/app:v1.0.0 resolved 1/1/0
    Provider fork r.io/fork:v1.0.0 resolved 0/0/0
    ");
    assert!(!both.asked.iter().any(|asked| asked.starts_with("packages")), "{:#?}", both.asked);
}

#[test]
fn a_kind_that_is_there_without_a_package_is_enough() {
    let mut cluster = cluster(STORAGE);
    cluster.served.insert("buckets.s3.example.org/v1".to_owned());
    assert_snapshot!(install(&mut cluster), @"
    lock r.io/app v1.0.0
    ==
    Configuration app r.io/app:v1.0.0 resolved 0/0/0
    ");
    assert_snapshot!(remembered(&cluster), @"buckets.s3.example.org/v1 <- - without a digest: the API server serves it, and no package here brings it");
    assert_snapshot!(cluster.report.external.join("\n"), @"the CRD buckets.s3.example.org/v1 is there: the API server serves it, and no package here brings it");
}

#[test]
fn all_kinds_of_a_group_come_from_all_packages_that_bring_some() {
    let mut cluster = cluster(
        "r.io/app v1.0.0 Configuration: kind *.aws.example.org/v1
         r.io/s3 v1.0.0 Provider: brings buckets.aws.example.org/v1
         r.io/sqs v1.0.0 Provider: brings queues.aws.example.org/v1
         r.io/old v1.0.0 Provider: brings tapes.aws.example.org/v1alpha1",
    );
    assert_snapshot!(install(&mut cluster), @"
    lock r.io/app v1.0.0
    create Provider s3 r.io/s3:v1.0.0
    create Provider sqs r.io/sqs:v1.0.0
    --
    lock r.io/app v1.0.0, r.io/s3 v1.0.0, r.io/sqs v1.0.0
    ==
    Configuration app r.io/app:v1.0.0 resolved 1/1/0
    Provider s3 r.io/s3:v1.0.0 resolved 0/0/0
    Provider sqs r.io/sqs:v1.0.0 resolved 0/0/0
    ");
    let mut rivals = super::cluster::cluster(
        "r.io/app v1.0.0 Configuration: kind *.aws.example.org/v1
         r.io/s3 v1.0.0 Provider: brings buckets.aws.example.org/v1
         r.io/fork v1.0.0 Provider: brings buckets.aws.example.org/v1, brings queues.aws.example.org/v1",
    );
    assert_snapshot!(install(&mut rivals), @"
    lock nothing
    # again in 60 s
    --
    event app: r.io/app v1.0.0 needs the CRD buckets.aws.example.org/v1; several packages bring the CRD buckets.aws.example.org/v1: r.io/fork, r.io/s3; hint: choose one of them, for example with `apron pin buckets.aws.example.org r.io/fork`
    # again in 60 s
    ==
    Configuration app r.io/app:v1.0.0 conflict: r.io/app v1.0.0 needs the CRD buckets.aws.example.org/v1; several packages bring the CRD buckets.aws.example.org/v1: r.io/fork, r.io/s3; hint: choose one of them, for example with `apron pin buckets.aws.example.org r.io/fork`
    ");
}

#[test]
fn a_package_with_one_kind_of_a_group_does_not_stand_for_the_others() {
    let mut cluster = cluster(
        "r.io/app v1.0.0 Configuration: kind *.aws.example.org/v1
         r.io/s3 v1.0.0 Provider: brings buckets.aws.example.org/v1
         r.io/sqs v1.0.0 Provider: brings queues.aws.example.org/v1",
    );
    cluster.install("Provider", "s3", "r.io/s3:v1.0.0");
    cluster.run();
    assert_snapshot!(install(&mut cluster), @"
    lock r.io/app v1.0.0, r.io/s3 v1.0.0
    create Provider sqs r.io/sqs:v1.0.0
    --
    lock r.io/app v1.0.0, r.io/s3 v1.0.0, r.io/sqs v1.0.0
    ==
    Configuration app r.io/app:v1.0.0 resolved 1/1/0
    Provider s3 r.io/s3:v1.0.0 resolved 0/0/0
    Provider sqs r.io/sqs:v1.0.0 resolved 0/0/0
    ");
    // What is published later is not installed for a package that is content.
    cluster.publish("r.io/late v1.0.0 Provider: brings tapes.aws.example.org/v1");
    assert_snapshot!(cluster.run(), @"nothing");
}

#[test]
fn packages_must_not_need_each_other_through_kinds() {
    let mut cluster = cluster(
        "r.io/app v1.0.0 Configuration: kind buckets.s3.example.org/v1, brings apps.example.org/v1
         r.io/s3 v1.0.0 Provider: kind apps.example.org/v1, brings buckets.s3.example.org/v1",
    );
    assert_snapshot!(install(&mut cluster), @"
    lock nothing
    # again in 60 s
    --
    event app: r.io/app v1.0.0 needs the CRD buckets.s3.example.org/v1; r.io/s3 v1.0.0 needs the CRD apps.example.org/v1; packages must not need each other in a circle; hint: remove one of these dependencies
    # again in 60 s
    ==
    Configuration app r.io/app:v1.0.0 conflict: r.io/app v1.0.0 needs the CRD buckets.s3.example.org/v1; r.io/s3 v1.0.0 needs the CRD apps.example.org/v1; packages must not need each other in a circle; hint: remove one of these dependencies
    ");
}

#[test]
fn what_a_catalog_says_is_a_proposal_and_what_is_inside_decides() {
    let mut cluster = cluster(
        "r.io/app v1.0.0 Configuration: kind buckets.s3.example.org/v1
         r.io/liar v1.0.0 Provider: brings tapes.example.org/v1",
    );
    cluster.catalog.lies = vec!["r.io/liar".to_owned()];
    assert_snapshot!(install(&mut cluster), @"
    lock nothing
    # again in 60 s
    --
    event app: r.io/app v1.0.0 needs the CRD buckets.s3.example.org/v1; r.io/liar is said to bring the CRD buckets.s3.example.org/v1, and no version of it that can be read does; hint: name the package that brings it as a dependency or in a pin, or have the catalog put right
    # again in 60 s
    ==
    Configuration app r.io/app:v1.0.0 conflict: r.io/app v1.0.0 needs the CRD buckets.s3.example.org/v1; r.io/liar is said to bring the CRD buckets.s3.example.org/v1, and no version of it that can be read does; hint: name the package that brings it as a dependency or in a pin, or have the catalog put right
    ");
}

#[test]
fn a_catalog_that_is_away_keeps_only_those_waiting_that_need_it() {
    let mut cluster = cluster(STORAGE);
    cluster.publish("r.io/other v1.0.0 Configuration: r.io/db *");
    cluster.catalog.away = Some("r.io: connection refused".to_owned());
    cluster.install("Configuration", "other", "r.io/other:v1.0.0");
    assert_snapshot!(install(&mut cluster), @"
    lock r.io/other v1.0.0
    create Provider db r.io/db:v1.0.0
    # again in 60 s
    --
    lock r.io/db v1.0.0, r.io/other v1.0.0
    # again in 60 s
    --
    event app: r.io/app v1.0.0 needs the CRD buckets.s3.example.org/v1; no package that is installed brings the CRD buckets.s3.example.org/v1, and a catalog cannot be asked: r.io: connection refused; hint: make the catalog reachable, install the package by name, or pin it with `apron pin buckets.s3.example.org REPOSITORY`
    # again in 60 s
    ==
    Configuration app r.io/app:v1.0.0 conflict: r.io/app v1.0.0 needs the CRD buckets.s3.example.org/v1; no package that is installed brings the CRD buckets.s3.example.org/v1, and a catalog cannot be asked: r.io: connection refused; hint: make the catalog reachable, install the package by name, or pin it with `apron pin buckets.s3.example.org REPOSITORY`
    Configuration other r.io/other:v1.0.0 resolved 1/1/0
    Provider db r.io/db:v1.0.0 resolved 0/0/0
    ");
    cluster.catalog.away = None;
    cluster.run();
    assert_snapshot!(cluster.show(), @"
    Configuration app r.io/app:v1.0.0 resolved 1/1/0
    Configuration other r.io/other:v1.0.0 resolved 1/1/0
    Provider db r.io/db:v1.0.0 resolved 0/0/0
    Provider s3 r.io/s3:v1.2.0 resolved 0/0/0
    ");
}

#[test]
fn a_conflict_over_versions_says_where_the_kind_comes_from() {
    let mut cluster = cluster(STORAGE);
    cluster.has_cache = true;
    cluster.publish("r.io/old v1.0.0 Configuration: r.io/s3 =v1.0.0");
    cluster.install("Configuration", "old", "r.io/old:v1.0.0");
    cluster.run();
    let told = install(&mut cluster);
    assert!(told.contains("r.io/old v1.0.0 needs r.io/s3 =v1.0.0"), "{told}");
    assert!(told.contains("the CRD buckets.s3.example.org/v1 comes with r.io/s3"), "{told}");
    assert!(told.contains("Provider s3 r.io/s3:v1.0.0 resolved"), "{told}");
}

#[test]
fn why_a_package_was_chosen_is_known_though_who_needs_it_comes_into_the_lock_later() {
    let mut cluster = cluster(STORAGE);
    cluster.install("Configuration", "app", "r.io/app:v1.0.0");
    // No revision of it is there yet.
    for action in cluster.decide().plan.actions {
        cluster.carry_out(action);
    }
    assert_snapshot!(cluster.show(), @"
    Configuration app r.io/app:v1.0.0 no revision
    Provider s3 r.io/s3:v1.2.0 no revision
    ");
    cluster.run();
    let told = remembered(&cluster);
    assert!(told.ends_with("only it brings the kind, says r.io"), "{told}");
}

#[test]
fn why_a_package_was_chosen_is_known_wherever_a_plan_ended() {
    for count in 0..2 {
        let mut cluster = cluster(STORAGE);
        cluster.install("Configuration", "app", "r.io/app:v1.0.0");
        cluster.packages();
        let plan = cluster.decide().plan;
        assert_eq!(plan.actions.len(), 2, "{plan:#?}");
        for action in plan.actions.into_iter().take(count) {
            cluster.carry_out(action);
        }
        cluster.run();
        let told = remembered(&cluster);
        assert!(told.ends_with("only it brings the kind, says r.io"), "after {count}: {told}");
    }
}
