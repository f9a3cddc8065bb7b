//! What upstream cannot do, sentence by sentence, and the life of its own example.

use super::cluster::{by_digest, cluster, digest};
use crate::lock::Verdict;
use api::pkg::ANNOTATION_PAUSED;
use insta::assert_snapshot;
use serde_json::json;
use solver::Movement;

/// Upstream's end-to-end example: two configurations, a dependency each, one below both.
const TRANSITIVE: &str = "
    r.io/config1 v0.0.1 Configuration: r.io/dep1 v0.0.1 as Configuration
    r.io/config1 v0.0.2 Configuration: r.io/dep1 v0.0.2 as Configuration
    r.io/config2 v0.0.1 Configuration: r.io/dep2 v0.0.1 as Configuration
    r.io/config2 v0.0.2 Configuration: r.io/dep2 v0.0.2 as Configuration
    r.io/dep1 v0.0.1 Configuration: r.io/transitive v0.0.1 as Provider
    r.io/dep1 v0.0.2 Configuration: r.io/transitive v0.0.2 as Provider
    r.io/dep2 v0.0.1 Configuration: r.io/transitive v0.0.1 as Provider
    r.io/dep2 v0.0.2 Configuration: r.io/transitive v0.0.2 as Provider
    r.io/transitive v0.0.1 Provider
    r.io/transitive v0.0.2 Provider
    r.io/transitive v0.0.3 Provider: bytes r.io/transitive v0.0.2 Provider
";

#[test]
fn the_example_of_two_configurations_goes_from_version_to_version() {
    let mut cluster = cluster(TRANSITIVE);
    cluster.install("Configuration", "config1", "r.io/config1:v0.0.1");
    cluster.install("Configuration", "config2", "r.io/config2:v0.0.1");
    let mut told = vec![cluster.run(), cluster.show(), cluster.resolved()];
    cluster.install("Configuration", "config1", "r.io/config1:v0.0.2");
    told.push(format!("\nconfig1 is to be v0.0.2\n{}", cluster.run()));
    told.extend([cluster.show(), cluster.resolved()]);
    cluster.install("Configuration", "config2", "r.io/config2:v0.0.2");
    told.push(format!("\nconfig2 is to be v0.0.2\n{}", cluster.run()));
    told.extend([cluster.show(), cluster.resolved(), cluster.run()]);
    assert_snapshot!(told.join("\n"), @r"
    lock r.io/config1 v0.0.1, r.io/config2 v0.0.1
    create Provider transitive r.io/transitive:v0.0.1
    create Configuration dep1 r.io/dep1:v0.0.1
    create Configuration dep2 r.io/dep2:v0.0.1
    --
    lock r.io/config1 v0.0.1, r.io/config2 v0.0.1, r.io/dep1 v0.0.1, r.io/dep2 v0.0.1, r.io/transitive v0.0.1

    Configuration config1 r.io/config1:v0.0.1 resolved 2/2/0
    Configuration config2 r.io/config2:v0.0.1 resolved 2/2/0
    Configuration dep1 r.io/dep1:v0.0.1 resolved 1/1/0
    Configuration dep2 r.io/dep2:v0.0.1 resolved 1/1/0
    Provider transitive r.io/transitive:v0.0.1 resolved 0/0/0
    Resolved=True DependencyResolutionSucceeded

    config1 is to be v0.0.2
    event config1: r.io/config1 v0.0.2 needs r.io/dep1 v0.0.2; r.io/dep1 v0.0.2 needs r.io/transitive v0.0.2; r.io/config2 v0.0.1 needs r.io/dep2 v0.0.1; r.io/dep2 v0.0.1 needs r.io/transitive v0.0.1; there is no version of r.io/transitive that satisfies them all (there are v0.0.1, v0.0.2 and v0.0.3); hint: accept more versions in one of these, or remove a package; removing one deletes all objects of the kinds it brought
    # again in 60 s

    Configuration config1 r.io/config1:v0.0.2 conflict: r.io/config1 v0.0.2 needs r.io/dep1 v0.0.2; r.io/dep1 v0.0.2 needs r.io/transitive v0.0.2; r.io/config2 v0.0.1 needs r.io/dep2 v0.0.1; r.io/dep2 v0.0.1 needs r.io/transitive v0.0.1; there is no version of r.io/transitive that satisfies them all (there are v0.0.1, v0.0.2 and v0.0.3); hint: accept more versions in one of these, or remove a package; removing one deletes all objects of the kinds it brought
    Configuration config2 r.io/config2:v0.0.1 resolved 2/2/0
    Configuration dep1 r.io/dep1:v0.0.1 resolved 1/1/0
    Configuration dep2 r.io/dep2:v0.0.1 resolved 1/1/0
    Provider transitive r.io/transitive:v0.0.1 resolved 0/0/0
    Resolved=False DependencyResolutionFailed (Error occurred during dependency resolution of config1: r.io/config1 v0.0.2 needs r.io/dep1 v0.0.2; r.io/dep1 v0.0.2 needs r.io/transitive v0.0.2; r.io/config2 v0.0.1 needs r.io/dep2 v0.0.1; r.io/dep2 v0.0.1 needs r.io/transitive v0.0.1; there is no version of r.io/transitive that satisfies them all (there are v0.0.1, v0.0.2 and v0.0.3); hint: accept more versions in one of these, or remove a package; removing one deletes all objects of the kinds it brought)

    config2 is to be v0.0.2
    lock r.io/config1 v0.0.2, r.io/config2 v0.0.2, r.io/dep1 v0.0.1, r.io/dep2 v0.0.1, r.io/transitive v0.0.1
    set Provider transitive r.io/transitive:v0.0.2
    set Configuration dep1 r.io/dep1:v0.0.2
    set Configuration dep2 r.io/dep2:v0.0.2
    --
    lock r.io/config1 v0.0.2, r.io/config2 v0.0.2, r.io/dep1 v0.0.2, r.io/dep2 v0.0.2, r.io/transitive v0.0.2

    Configuration config1 r.io/config1:v0.0.2 resolved 2/2/0
    Configuration config2 r.io/config2:v0.0.2 resolved 2/2/0
    Configuration dep1 r.io/dep1:v0.0.2 resolved 1/1/0
    Configuration dep2 r.io/dep2:v0.0.2 resolved 1/1/0
    Provider transitive r.io/transitive:v0.0.2 resolved 0/0/0
    Resolved=True DependencyResolutionSucceeded
    nothing
    ");
}

#[test]
fn all_that_is_missing_is_installed_at_once_and_what_is_needed_first() {
    let mut cluster = cluster(
        "r.io/top v1.0.0 Configuration: r.io/a >=v1.0.0 as Configuration, r.io/b >=v1.0.0 as Provider
         r.io/a v1.0.0 Configuration: r.io/c >=v1.0.0 as Function
         r.io/b v1.0.0 Provider: r.io/c >=v1.0.0 as Function
         r.io/c v1.0.0 Function",
    );
    cluster.install("Configuration", "top", "r.io/top:v1.0.0");
    assert_snapshot!(cluster.run(), @r"
    lock r.io/top v1.0.0
    create Function c r.io/c:v1.0.0
    create Configuration a r.io/a:v1.0.0
    create Provider b r.io/b:v1.0.0
    --
    lock r.io/a v1.0.0, r.io/b v1.0.0, r.io/c v1.0.0, r.io/top v1.0.0
    ");
}

#[test]
fn versions_are_chosen_for_everybody_together() {
    // The highest c that suits a alone would not suit b.
    let mut cluster = cluster(
        "r.io/a v1.0.0 Configuration: r.io/c >=v1.0.0
         r.io/b v1.0.0 Configuration: r.io/c <v2.0.0
         r.io/c v1.5.0 Provider
         r.io/c v2.0.0 Provider",
    );
    cluster.install("Configuration", "a", "r.io/a:v1.0.0");
    cluster.install("Configuration", "b", "r.io/b:v1.0.0");
    cluster.run();
    assert_snapshot!(cluster.show(), @r"
    Configuration a r.io/a:v1.0.0 resolved 1/1/0
    Configuration b r.io/b:v1.0.0 resolved 1/1/0
    Provider c r.io/c:v1.5.0 resolved 0/0/0
    ");
}

#[test]
fn a_version_whose_own_needs_cannot_be_met_is_passed_over() {
    let mut cluster = cluster(
        "r.io/a v1.0.0 Configuration: r.io/b >=v1.0.0
         r.io/b v1.0.0 Provider
         r.io/b v2.0.0 Provider: r.io/nowhere >=v1.0.0",
    );
    cluster.install("Configuration", "a", "r.io/a:v1.0.0");
    cluster.run();
    assert_snapshot!(cluster.show(), @r"
    Configuration a r.io/a:v1.0.0 resolved 1/1/0
    Provider b r.io/b:v1.0.0 resolved 0/0/0
    ");
}

#[test]
fn a_bad_constraint_in_one_package_blocks_nobody_else() {
    let mut cluster = cluster(
        "r.io/bad v1.0.0 Configuration: r.io/c not-a-version
         r.io/good v1.0.0 Configuration: r.io/c >=v1.0.0
         r.io/c v1.0.0 Provider",
    );
    cluster.install("Configuration", "bad", "r.io/bad:v1.0.0");
    cluster.install("Configuration", "good", "r.io/good:v1.0.0");
    let told = [cluster.run(), cluster.show(), cluster.resolved()];
    assert_snapshot!(told.join("\n"), @r#"
    lock r.io/good v1.0.0
    create Provider c r.io/c:v1.0.0
    # again in 60 s
    --
    lock r.io/c v1.0.0, r.io/good v1.0.0
    # again in 60 s
    --
    event bad: r.io/bad v1.0.0 cannot be installed: it needs r.io/c in version "not-a-version", which is not a version constraint: improper constraint "not-a-version"; hint: install another version, or ask its author
    # again in 60 s

    Configuration bad r.io/bad:v1.0.0 conflict: r.io/bad v1.0.0 cannot be installed: it needs r.io/c in version "not-a-version", which is not a version constraint: improper constraint "not-a-version"; hint: install another version, or ask its author
    Configuration good r.io/good:v1.0.0 resolved 1/1/0
    Provider c r.io/c:v1.0.0 resolved 0/0/0
    Resolved=False DependencyResolutionFailed (Error occurred during dependency resolution of bad: r.io/bad v1.0.0 cannot be installed: it needs r.io/c in version "not-a-version", which is not a version constraint: improper constraint "not-a-version"; hint: install another version, or ask its author)
    "#);
}

#[test]
fn a_circle_blocks_nobody_else() {
    let mut cluster = cluster(
        "r.io/a v1.0.0 Configuration: r.io/b >=v1.0.0 as Configuration
         r.io/b v1.0.0 Configuration: r.io/a >=v1.0.0 as Configuration
         r.io/self v1.0.0 Configuration: r.io/self >=v1.0.0 as Configuration
         r.io/good v1.0.0 Configuration: r.io/c >=v1.0.0
         r.io/c v1.0.0 Provider",
    );
    cluster.install("Configuration", "a", "r.io/a:v1.0.0");
    cluster.install("Configuration", "self", "r.io/self:v1.0.0");
    cluster.install("Configuration", "good", "r.io/good:v1.0.0");
    cluster.run();
    assert_snapshot!(cluster.show(), @r"
    Configuration a r.io/a:v1.0.0 conflict: r.io/a v1.0.0 needs r.io/b >=v1.0.0; r.io/b v1.0.0 needs r.io/a >=v1.0.0; packages must not need each other in a circle; hint: remove one of these dependencies
    Configuration good r.io/good:v1.0.0 resolved 1/1/0
    Configuration self r.io/self:v1.0.0 conflict: r.io/self v1.0.0 needs r.io/self >=v1.0.0; packages must not need each other in a circle; hint: remove one of these dependencies
    Provider c r.io/c:v1.0.0 resolved 0/0/0
    ");
}

#[test]
fn an_unreachable_registry_blocks_only_who_needs_it_and_is_asked_again() {
    let mut cluster = cluster(
        "r.io/a v1.0.0 Configuration: r.io/gone >=v1.0.0
         r.io/good v1.0.0 Configuration: r.io/c >=v1.0.0
         r.io/c v1.0.0 Provider",
    );
    cluster.install("Configuration", "a", "r.io/a:v1.0.0");
    cluster.install("Configuration", "good", "r.io/good:v1.0.0");
    let mut told = vec![cluster.run(), cluster.show()];
    cluster.publish("r.io/gone v1.0.0 Provider");
    told.extend([format!("\nit is back\n{}", cluster.run()), cluster.show()]);
    assert_snapshot!(told.join("\n"), @r"
    lock r.io/good v1.0.0
    create Provider c r.io/c:v1.0.0
    # again in 60 s
    --
    lock r.io/c v1.0.0, r.io/good v1.0.0
    # again in 60 s
    --
    event a: r.io/a v1.0.0 needs r.io/gone >=v1.0.0; the versions of r.io/gone cannot be listed: no such repository; hint: make sure that r.io/gone can be reached
    # again in 60 s

    Configuration a r.io/a:v1.0.0 conflict: r.io/a v1.0.0 needs r.io/gone >=v1.0.0; the versions of r.io/gone cannot be listed: no such repository; hint: make sure that r.io/gone can be reached
    Configuration good r.io/good:v1.0.0 resolved 1/1/0
    Provider c r.io/c:v1.0.0 resolved 0/0/0

    it is back
    lock r.io/a v1.0.0, r.io/c v1.0.0, r.io/good v1.0.0
    create Provider gone r.io/gone:v1.0.0
    --
    lock r.io/a v1.0.0, r.io/c v1.0.0, r.io/gone v1.0.0, r.io/good v1.0.0

    Configuration a r.io/a:v1.0.0 resolved 1/1/0
    Configuration good r.io/good:v1.0.0 resolved 1/1/0
    Provider c r.io/c:v1.0.0 resolved 0/0/0
    Provider gone r.io/gone:v1.0.0 resolved 0/0/0
    ");
}

#[test]
fn a_package_that_nobody_needs_is_never_moved() {
    let mut cluster = cluster(
        "r.io/a v1.0.0 Configuration: r.io/c v1.0.0
         r.io/a v2.0.0 Configuration: r.io/c v2.0.0
         r.io/b v1.0.0 Configuration: r.io/c v1.0.0
         r.io/b v2.0.0 Configuration: r.io/c v2.0.0
         r.io/c v1.0.0 Provider
         r.io/c v2.0.0 Provider",
    );
    cluster.install("Configuration", "a", "r.io/a:v1.0.0");
    cluster.install("Configuration", "b", "r.io/b:v1.0.0");
    cluster.run();
    cluster.install("Configuration", "b", "r.io/b:v2.0.0");
    cluster.run();
    assert_snapshot!(cluster.show(), @r"
    Configuration a r.io/a:v1.0.0 resolved 1/1/0
    Configuration b r.io/b:v2.0.0 conflict: r.io/b v2.0.0 needs r.io/c v2.0.0; r.io/a v1.0.0 needs r.io/c v1.0.0; there is no version of r.io/c that satisfies them all (there are v1.0.0 and v2.0.0); hint: accept more versions in one of these, or remove a package; removing one deletes all objects of the kinds it brought
    Provider c r.io/c:v1.0.0 resolved 0/0/0
    ");
}

const SHARED: &str = "
    r.io/a v1.0.0 Configuration: r.io/c >=v1.0.0
    r.io/a v2.0.0 Configuration: r.io/c >=v1.2.0
    r.io/a v3.0.0 Configuration: r.io/c <v1.0.0
    r.io/c v0.9.0 Provider
    r.io/c v1.0.0 Provider
    r.io/c v1.2.0 Provider
    r.io/c v1.3.0 Provider
";

#[test]
fn what_is_needed_is_moved_as_little_as_possible_and_as_far_as_allowed() {
    let mut told = Vec::new();
    for movement in [Movement::Held, Movement::Upgrades, Movement::Any] {
        for version in ["v2.0.0", "v3.0.0"] {
            let mut cluster = cluster(SHARED);
            cluster.world.settings.movement = movement;
            cluster.install("Provider", "c", "r.io/c:v1.0.0");
            cluster.install("Configuration", "a", "r.io/a:v1.0.0");
            cluster.run();
            cluster.install("Configuration", "a", &format!("r.io/a:{version}"));
            cluster.run();
            told.push(format!("{movement:?} {version}\n{}", cluster.show()));
        }
    }
    assert_snapshot!(told.join("\n"), @r"
    Held v2.0.0
    Configuration a r.io/a:v2.0.0 conflict: r.io/a v2.0.0 needs r.io/c >=v1.2.0; r.io/c v1.0.0 is installed and must not be moved; hint: move c to a version that satisfies the others
    Provider c r.io/c:v1.0.0 resolved 0/0/0
    Held v3.0.0
    Configuration a r.io/a:v3.0.0 conflict: r.io/a v3.0.0 needs r.io/c <v1.0.0; r.io/c v1.0.0 is installed and must not be moved; hint: move c to a version that satisfies the others
    Provider c r.io/c:v1.0.0 resolved 0/0/0
    Upgrades v2.0.0
    Configuration a r.io/a:v2.0.0 resolved 1/1/0
    Provider c r.io/c:v1.2.0 resolved 0/0/0
    Upgrades v3.0.0
    Configuration a r.io/a:v3.0.0 conflict: r.io/a v3.0.0 needs r.io/c <v1.0.0; r.io/c v1.0.0 is installed and may only go up (there are v0.9.0, v1.0.0, v1.2.0 and v1.3.0); hint: move c to a version that satisfies the others
    Provider c r.io/c:v1.0.0 resolved 0/0/0
    Any v2.0.0
    Configuration a r.io/a:v2.0.0 resolved 1/1/0
    Provider c r.io/c:v1.2.0 resolved 0/0/0
    Any v3.0.0
    Configuration a r.io/a:v3.0.0 resolved 1/1/0
    Provider c r.io/c:v0.9.0 resolved 0/0/0
    ");
}

#[test]
fn what_somebody_pinned_stays_where_it_is() {
    let mut told = Vec::new();
    for movement in [Movement::Upgrades, Movement::Any] {
        for (pinned, policy) in [
            (format!("r.io/c:v1.0.0@{}", digest("one")), None),
            (format!("r.io/c@{}", digest("one")), None),
            ("r.io/c:v1.0.0".to_owned(), Some("Never")),
        ] {
            let mut cluster = cluster(
                "r.io/a v1.0.0 Configuration: r.io/c >=v1.0.0
                 r.io/a v2.0.0 Configuration: r.io/c >=v1.2.0
                 r.io/c v1.0.0 Provider: bytes one
                 r.io/c v1.2.0 Provider: bytes two",
            );
            cluster.world.settings.movement = movement;
            let package = cluster.install("Provider", "c", &pinned);
            package.spec.package_pull_policy = policy.map(str::to_owned);
            cluster.install("Configuration", "a", "r.io/a:v1.0.0");
            cluster.run();
            assert!(cluster.show().starts_with("Configuration a r.io/a:v1.0.0 resolved 1/1/0"));
            cluster.install("Configuration", "a", "r.io/a:v2.0.0");
            cluster.run();
            assert!(cluster.show().ends_with(&format!("Provider c {pinned} resolved 0/0/0")));
            told.extend(cluster.show().lines().next().map(str::to_owned));
        }
    }
    assert_snapshot!(told[..3].join("\n"), @r"
    Configuration a r.io/a:v2.0.0 conflict: r.io/a v2.0.0 needs r.io/c >=v1.2.0; r.io/c sha256:7692c3ad3540 is installed and must not be moved; hint: move c to a version that satisfies the others
    Configuration a r.io/a:v2.0.0 conflict: r.io/a v2.0.0 needs r.io/c >=v1.2.0; r.io/c sha256:7692c3ad3540 is installed and must not be moved; hint: move c to a version that satisfies the others
    Configuration a r.io/a:v2.0.0 conflict: r.io/a v2.0.0 needs r.io/c >=v1.2.0; r.io/c v1.0.0 is installed and must not be moved; hint: move c to a version that satisfies the others
    ");
    assert_eq!(told[..3], told[3..]);
}

#[test]
fn a_digest_is_moved_by_whoever_names_another() {
    let (one, two) = (digest("one"), digest("two"));
    let mut cluster = cluster(&format!(
        "r.io/a v1.0.0 Configuration: r.io/c {one}
         r.io/a v2.0.0 Configuration: r.io/c {two}
         r.io/c v1.0.0 Provider: bytes one
         r.io/c v1.2.0 Provider: bytes two"
    ));
    cluster.install("Configuration", "a", "r.io/a:v1.0.0");
    cluster.run();
    cluster.install("Configuration", "a", "r.io/a:v2.0.0");
    cluster.run();
    assert_eq!(
        cluster.show(),
        format!(
            "Configuration a r.io/a:v2.0.0 resolved 1/1/0\nProvider c r.io/c@{two} resolved 0/0/0"
        )
    );
}

#[test]
fn who_can_never_be_installed_keeps_nothing_from_others() {
    let mut cluster = cluster(
        "r.io/a v1.0.0 Provider: crossplane >=v9.0.0, brings things.org
         r.io/b v1.0.0 Provider: brings things.org
         r.io/c v1.0.0 Configuration: brings others.org
         r.io/d v1.0.0 Configuration: r.io/e >=v1.0.0, r.io/a >=v1.0.0
         r.io/e v1.0.0 Provider: brings es.org
         r.io/e v2.0.0 Provider: crossplane >=v9.0.0, brings es.org",
    );
    cluster.install("Provider", "a", "r.io/a:v1.0.0");
    cluster.install("Provider", "c", "r.io/c:v1.0.0");
    cluster.run();
    cluster.install("Provider", "b", "r.io/b:v1.0.0");
    cluster.install("Configuration", "c", "r.io/c:v1.0.0");
    cluster.run();
    assert_snapshot!(format!("{}\n{}", cluster.show(), owners(&cluster)), @r"
    Configuration c r.io/c:v1.0.0 resolved 0/0/0
    Provider a r.io/a:v1.0.0 conflict: r.io/a v1.0.0 cannot be installed: it is made for Crossplane >=v9.0.0, and this is v2.0.0; hint: install another version, or ask its author
    Provider b r.io/b:v1.0.0 resolved 0/0/0
    Provider c r.io/c:v1.0.0 conflict: Configuration c and Provider c are both the package r.io/c; hint: delete Provider c, or let it name another package
    others.org is Configuration/c's
    things.org is Provider/b's
    ");
    // What is needed and cannot be installed is told.
    cluster.uninstall("b");
    cluster.install("Configuration", "d", "r.io/d:v1.0.0");
    cluster.run();
    assert_snapshot!(cluster.show(), @r"
    Configuration c r.io/c:v1.0.0 resolved 0/0/0
    Configuration d r.io/d:v1.0.0 conflict: r.io/d v1.0.0 needs r.io/a >=v1.0.0; r.io/a v1.0.0 cannot be installed: it is made for Crossplane >=v9.0.0, and this is v2.0.0; hint: install another version, or ask its author
    Provider a r.io/a:v1.0.0 conflict: r.io/a v1.0.0 cannot be installed: it is made for Crossplane >=v9.0.0, and this is v2.0.0; hint: install another version, or ask its author
    Provider c r.io/c:v1.0.0 conflict: Configuration c and Provider c are both the package r.io/c; hint: delete Provider c, or let it name another package
    ");
    // Of what is needed, a version is taken that can be installed.
    cluster.uninstall("a");
    cluster.install("Provider", "a", "r.io/a:v1.0.0").spec.ignore_crossplane_constraints =
        Some(true);
    cluster.run();
    assert_snapshot!(cluster.show(), @r"
    Configuration c r.io/c:v1.0.0 resolved 0/0/0
    Configuration d r.io/d:v1.0.0 resolved 2/2/0
    Provider a r.io/a:v1.0.0 resolved 0/0/0
    Provider c r.io/c:v1.0.0 conflict: Configuration c and Provider c are both the package r.io/c; hint: delete Provider c, or let it name another package
    Provider e r.io/e:v1.0.0 resolved 0/0/0
    ");
}

#[test]
fn two_packages_with_the_same_crd_have_exactly_one_winner() {
    let mut cluster = cluster(
        "r.io/a v1.0.0 Provider: brings things.org, brings others.org
         r.io/b v1.0.0 Provider: brings things.org
         r.io/b v2.0.0 Provider: brings new.org",
    );
    cluster.install("Provider", "b", "r.io/b:v1.0.0");
    cluster.run();
    cluster.install("Provider", "a", "r.io/a:v1.0.0");
    let mut told = vec![cluster.run(), cluster.show(), owners(&cluster)];
    cluster.install("Provider", "b", "r.io/b:v2.0.0");
    told.extend(["\nb lets go of it".to_owned(), cluster.run(), cluster.show(), owners(&cluster)]);
    assert_snapshot!(told.join("\n"), @r"
    event a: r.io/a v1.0.0 brings the CRD things.org; r.io/b v1.0.0 brings the CRD things.org; only one package may own a CRD; hint: move one of the packages to a version without it; removing one deletes all objects of the kinds it brought
    # again in 60 s

    Provider a r.io/a:v1.0.0 conflict: r.io/a v1.0.0 brings the CRD things.org; r.io/b v1.0.0 brings the CRD things.org; only one package may own a CRD; hint: move one of the packages to a version without it; removing one deletes all objects of the kinds it brought
    Provider b r.io/b:v1.0.0 resolved 0/0/0
    things.org is Provider/b's

    b lets go of it
    lock r.io/a v1.0.0, r.io/b v2.0.0

    Provider a r.io/a:v1.0.0 resolved 0/0/0
    Provider b r.io/b:v2.0.0 resolved 0/0/0
    new.org is Provider/b's
    others.org is Provider/a's
    things.org is Provider/a's
    ");
}

fn owners(cluster: &super::cluster::Cluster) -> String {
    let lock = cluster.world.lock.as_ref().unwrap();
    let owners = lock.custom_resource_definitions.iter().flatten();
    owners.map(|(crd, owner)| format!("{crd} is {owner}'s")).collect::<Vec<_>>().join("\n")
}

#[test]
fn two_packages_with_the_same_crd_at_once_have_exactly_one_winner_too() {
    let mut cluster = cluster(
        "r.io/a v1.0.0 Provider: brings things.org
         r.io/b v1.0.0 Provider: brings things.org",
    );
    cluster.install("Provider", "b", "r.io/b:v1.0.0");
    cluster.install("Provider", "a", "r.io/a:v1.0.0");
    cluster.run();
    assert_snapshot!(format!("{}\n{}", cluster.show(), owners(&cluster)), @r"
    Provider a r.io/a:v1.0.0 resolved 0/0/0
    Provider b r.io/b:v1.0.0 conflict: r.io/b v1.0.0 brings the CRD things.org; r.io/a v1.0.0 brings the CRD things.org; only one package may own a CRD; hint: move one of the packages to a version without it; removing one deletes all objects of the kinds it brought
    things.org is Provider/a's
    ");
}

#[test]
fn a_crd_that_is_needed_is_there_when_somebody_brings_it() {
    let mut cluster = cluster(
        "r.io/a v1.0.0 Configuration: crd things.org
         r.io/b v1.0.0 Provider: brings things.org",
    );
    cluster.install("Configuration", "a", "r.io/a:v1.0.0");
    cluster.run();
    let before = cluster.show();
    cluster.install("Provider", "b", "r.io/b:v1.0.0");
    cluster.run();
    assert_snapshot!(format!("{before}\n\n{}", cluster.show()), @r"
    Configuration a r.io/a:v1.0.0 conflict: r.io/a v1.0.0 needs the CRD things.org; no package that is installed brings the CRD things.org; hint: install a package that brings things.org

    Configuration a r.io/a:v1.0.0 resolved 1/1/0
    Provider b r.io/b:v1.0.0 resolved 0/0/0
    ");
}

#[test]
fn a_damaged_lock_is_written_again_and_hurts_nobody() {
    let mut cluster = cluster(TRANSITIVE);
    cluster.install("Configuration", "config1", "r.io/config1:v0.0.1");
    cluster.run();
    let good = cluster.world.lock.clone();
    let lock = cluster.world.lock.as_mut().unwrap();
    let packages = lock.packages.as_mut().unwrap();
    // Twice the same, one without a name, one of a package nobody has.
    let mut twice = packages[0].clone();
    twice.name = "config1-000000000000".to_owned();
    let mut nameless = packages[1].clone();
    nameless.name.clear();
    packages.extend([twice, nameless]);
    assert!(cluster.run().starts_with("lock "));
    assert_eq!(cluster.world.lock, good);
    cluster.world.lock = None;
    cluster.run();
    assert_eq!(cluster.world.lock.as_ref().unwrap().packages, good.unwrap().packages);
}

#[test]
fn a_lock_that_lists_nothing_lets_go() {
    let mut cluster = cluster("r.io/a v1.0.0 Provider");
    cluster.install("Provider", "a", "r.io/a:v1.0.0");
    cluster.run();
    let finalizers = |cluster: &super::cluster::Cluster| {
        cluster.world.lock.as_ref().unwrap().metadata.finalizers.clone()
    };
    assert_eq!(finalizers(&cluster), ["lock.pkg.crossplane.io"]);
    cluster.uninstall("a");
    assert_snapshot!(format!("{}{}", cluster.run(), cluster.resolved()), @"lock nothing");
    assert_eq!(cluster.run(), "nothing");
    assert_eq!(finalizers(&cluster), Vec::<String>::new());
}

#[test]
fn a_settled_world_asks_no_registry() {
    let mut cluster = cluster(TRANSITIVE);
    cluster.install("Configuration", "config1", "r.io/config1:v0.0.1");
    cluster.run();
    cluster.asked.clear();
    assert_eq!(cluster.run(), "nothing");
    assert_eq!(cluster.asked, Vec::<String>::new());
}

/// The manager makes the lock when it starts, before there is anything to write down.
#[test]
fn a_lock_that_was_empty_remembers_that_packages_own_nothing() {
    let mut cluster = cluster(TRANSITIVE);
    cluster.world.lock = Some(api::pkg::lock::Lock::default());
    cluster.install("Configuration", "config1", "r.io/config1:v0.0.1");
    cluster.run();
    cluster.asked.clear();
    assert_eq!(cluster.run(), "nothing");
    assert_eq!(cluster.asked, Vec::<String>::new());
}

#[test]
fn dependencies_that_do_not_matter_are_not_installed() {
    let mut cluster = cluster(TRANSITIVE);
    let package = cluster.install("Configuration", "config1", "r.io/config1:v0.0.1");
    package.spec.skip_dependency_resolution = Some(true);
    cluster.run();
    assert_snapshot!(cluster.show(), @"Configuration config1 r.io/config1:v0.0.1 skipped");
}

#[test]
fn a_package_installed_by_digest_is_the_version_that_has_these_bytes() {
    let mut cluster = cluster(
        "r.io/a v1.0.0 Configuration: r.io/c >=v1.1.0
         r.io/c v1.0.0 Provider
         r.io/c v1.2.0 Provider",
    );
    cluster.install("Provider", "c", &by_digest("r.io/c", "r.io/c v1.2.0 Provider"));
    cluster.install("Configuration", "a", "r.io/a:v1.0.0");
    cluster.run();
    let asked = cluster.asked.join("\n");
    assert_snapshot!(format!("{}\n{asked}", cluster.show()), @r"
    Configuration a r.io/a:v1.0.0 resolved 1/1/0
    Provider c r.io/c@sha256:5c1d62fd37d038d4aaaecd2bc7f50fcc3ffb29d56938d532744210a608e23a93 resolved 0/0/0
    contents of r.io/a:v1.0.0
    contents of r.io/c@sha256:5c1d62fd37d038d4aaaecd2bc7f50fcc3ffb29d56938d532744210a608e23a93
    tags of r.io/c
    digest of r.io/c:v1.2.0
    tags of r.io/c
    digest of r.io/c:v1.2.0
    tags of r.io/c
    digest of r.io/c:v1.2.0
    tags of r.io/c
    digest of r.io/c:v1.2.0
    tags of r.io/c
    digest of r.io/c:v1.2.0
    ");
}

/// One that is paused, and one under Manual whose new revision waits.
#[test]
fn who_asks_for_another_package_is_what_it_was_until_somebody_acts() {
    let mut told = Vec::new();
    for is_paused in [true, false] {
        let mut cluster = cluster(
            "r.io/a v1.0.0 Configuration: r.io/c >=v1.0.0
             r.io/c v1.0.0 Provider
             r.io/d v1.0.0 Provider",
        );
        cluster.install("Provider", "moves", "r.io/c:v1.0.0");
        cluster.install("Configuration", "a", "r.io/a:v1.0.0");
        cluster.install("Provider", "other", "r.io/d:v1.0.0");
        cluster.run();
        let package = cluster.install("Provider", "moves", "r.io/d:v1.0.0");
        if is_paused {
            package.metadata.annotations.insert(ANNOTATION_PAUSED.to_owned(), "true".to_owned());
        } else {
            package.spec.revision_activation_policy = Some("Manual".to_owned());
        }
        told.extend([cluster.run(), cluster.show()]);
    }
    assert_snapshot!(told.join("\n"), @"
    nothing
    Configuration a r.io/a:v1.0.0 resolved 1/1/0
    Provider moves r.io/d:v1.0.0 resolved 0/0/0
    Provider other r.io/d:v1.0.0 resolved 0/0/0
    nothing
    Configuration a r.io/a:v1.0.0 resolved 1/1/0
    Provider moves r.io/d:v1.0.0 resolved 0/0/0
    Provider other r.io/d:v1.0.0 resolved 0/0/0
    ");
}

/// A revision that waits says that it is well. Activating it takes nothing from anybody.
#[test]
fn who_was_well_while_it_waited_is_not_installed_for_that() {
    let mut cluster = cluster(
        "r.io/a v1.0.0 Configuration: r.io/c <v2.0.0
         r.io/c v1.0.0 Provider
         r.io/c v2.0.0 Provider",
    );
    let package = cluster.install("Provider", "c", "r.io/c:v1.0.0");
    package.spec.revision_activation_policy = Some("Manual".to_owned());
    cluster.run();
    cluster.world.revisions[0].spec.desired_state = "Active".to_owned();
    cluster.install("Configuration", "a", "r.io/a:v1.0.0");
    cluster.run();
    cluster.install("Provider", "c", "r.io/c:v2.0.0");
    cluster.run();
    let of = |one: &&mut api::pkg::revision::Revision| one.kind == "ProviderRevision";
    for revision in cluster.world.revisions.iter_mut().filter(of) {
        let is_new = revision.spec.image.ends_with("v2.0.0");
        let state = if is_new { "Active" } else { "Inactive" };
        revision.spec.desired_state = state.to_owned();
        if is_new {
            revision.metadata.generation = Some(2);
            let condition = json!({"type": "RevisionHealthy", "status": "True", "reason": "x",
                "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"});
            revision.status = serde_json::from_value(json!({"conditions": [condition]})).unwrap();
        }
    }
    assert_snapshot!(format!("{}\n{}", cluster.run(), cluster.show()), @r"
    event c: r.io/a v1.0.0 needs r.io/c <v2.0.0; c asks for r.io/c v2.0.0 and may only go up (there are v1.0.0 and v2.0.0); hint: move c to a version that satisfies the others
    # again in 60 s

    Configuration a r.io/a:v1.0.0 resolved 1/1/0
    Provider c r.io/c:v2.0.0 conflict: r.io/a v1.0.0 needs r.io/c <v2.0.0; c asks for r.io/c v2.0.0 and may only go up (there are v1.0.0 and v2.0.0); hint: move c to a version that satisfies the others
    ");
}

#[test]
fn a_package_under_manual_waits_for_somebody_and_so_does_who_needs_it() {
    let mut cluster = cluster(SHARED);
    let package = cluster.install("Provider", "c", "r.io/c:v1.0.0");
    package.spec.revision_activation_policy = Some("Manual".to_owned());
    cluster.install("Configuration", "a", "r.io/a:v1.0.0");
    let mut told = vec![cluster.run(), cluster.show()];
    let mut activate = |cluster: &mut super::cluster::Cluster| {
        let revisions = cluster.world.revisions.iter_mut();
        let last = revisions.filter(|one| one.kind == "ProviderRevision").last().unwrap();
        last.spec.desired_state = "Active".to_owned();
        told.extend([format!("\nactivated\n{}", cluster.run()), cluster.show()]);
    };
    activate(&mut cluster);
    cluster.install("Configuration", "a", "r.io/a:v2.0.0");
    let needs_more = format!("\na needs more\n{}{}", cluster.run(), cluster.show());
    activate(&mut cluster);
    told.insert(4, needs_more);
    assert_snapshot!(told.join("\n"), @r#"
    lock r.io/a v1.0.0

    Configuration a r.io/a:v1.0.0 waiting: missing dependencies: "r.io/c" (>=v1.0.0), of which c waits for somebody to activate it
    Provider c r.io/c:v1.0.0 no revision

    activated
    lock r.io/a v1.0.0, r.io/c v1.0.0

    Configuration a r.io/a:v1.0.0 resolved 1/1/0
    Provider c r.io/c:v1.0.0 resolved 0/0/0

    a needs more
    lock r.io/a v2.0.0, r.io/c v1.0.0
    set Provider c r.io/c:v1.2.0
    Configuration a r.io/a:v2.0.0 waiting: missing dependencies: "r.io/c" (>=v1.2.0), of which c is v1.0.0
    Provider c r.io/c:v1.2.0 resolved 0/0/0

    activated
    lock r.io/a v2.0.0, r.io/c v1.2.0

    Configuration a r.io/a:v2.0.0 resolved 1/1/0
    Provider c r.io/c:v1.2.0 resolved 0/0/0
    "#);
}

#[test]
fn what_the_api_server_will_not_have_is_told_and_not_tried_again() {
    let mut cluster = cluster(
        "r.io/a v1.0.0 Configuration: r.io/c >=v1.0.0, r.io/d >=v1.0.0
         r.io/c v1.0.0 Provider
         r.io/d v1.0.0 Provider",
    );
    cluster.install("Configuration", "a", "r.io/a:v1.0.0");
    cluster.world.refused = vec![crate::step::Refusal {
        target: crate::step::Target {
            api_version: "pkg.crossplane.io/v1".to_owned(),
            kind: "Provider".to_owned(),
            namespace: None,
            name: "c".to_owned(),
        },
        message: "no more than 3 providers".to_owned(),
    }];
    assert_snapshot!(format!("{}{}", cluster.run(), cluster.resolved()), @r"
    lock r.io/a v1.0.0
    create Provider d r.io/d:v1.0.0
    # again in 60 s
    --
    lock r.io/a v1.0.0, r.io/d v1.0.0
    # again in 60 s
    Resolved=False DependencyResolutionFailed (Error occurred during dependency resolution of c: the API server will not have the Provider: no more than 3 providers; hint: make it by hand)
    ");
}

#[test]
fn going_back_from_a_refused_upgrade_is_no_news_to_whoever_needs_it() {
    let mut cluster = cluster(
        "r.io/vpc v1.1.0 Provider: brings vpcs.org
         r.io/vpc v2.0.0 Provider: brings vpcs.org
         r.io/net v1.0.0 Configuration: r.io/vpc <v2.0.0",
    );
    cluster.install("Provider", "vpc", "r.io/vpc:v1.1.0");
    cluster.install("Configuration", "net", "r.io/net:v1.0.0");
    cluster.run();
    let granted = cluster.world.lock.as_ref().unwrap().packages.clone();
    cluster.install("Provider", "vpc", "r.io/vpc:v2.0.0");
    cluster.run();
    assert_snapshot!(cluster.show(), @r"
    Configuration net r.io/net:v1.0.0 resolved 1/1/0
    Provider vpc r.io/vpc:v2.0.0 conflict: r.io/net v1.0.0 needs r.io/vpc <v2.0.0; vpc asks for r.io/vpc v2.0.0 and may only go up (there are v1.1.0 and v2.0.0); hint: move vpc to a version that satisfies the others
    ");
    cluster.install("Provider", "vpc", "r.io/vpc:v1.1.0");
    // What is asked for is another before its revision is active, and that before it is well again.
    for moment in ["asked for", "active", "well"] {
        let decided = cluster.decide();
        let net =
            decided.verdicts.iter().find(|(whose, _)| whose.kind.starts_with("Conf")).unwrap();
        assert!(matches!(net.1, Verdict::Resolved(_)), "{moment}: {net:?}");
        let vpc = decided.verdicts.iter().find(|(whose, _)| whose.kind.starts_with("Prov"));
        assert_eq!(vpc.is_none(), moment == "asked for", "{moment}: {vpc:?}");
        decided.plan.actions.into_iter().for_each(|action| cluster.carry_out(action));
        assert_eq!(cluster.world.lock.as_ref().unwrap().packages, granted, "{moment}");
        cluster.packages();
    }
    assert_eq!(cluster.run(), "nothing");
}

#[test]
fn whoever_asks_for_something_else_at_once_is_granted_that_alone() {
    let mut cluster = cluster(
        "r.io/vpc v1.1.0 Provider: brings vpcs.org
         r.io/vpc v2.0.0 Provider: brings vpcs.org
         r.io/net v1.0.0 Configuration: r.io/vpc >=v1.0.0",
    );
    cluster.install("Provider", "vpc", "r.io/vpc:v2.0.0").spec.skip_dependency_resolution =
        Some(true);
    cluster.install("Configuration", "net", "r.io/net:v1.0.0");
    cluster.packages();
    cluster.install("Provider", "vpc", "r.io/vpc:v1.1.0");
    let decided = cluster.decide();
    let of = |kind: &str| decided.verdicts.keys().any(|whose| whose.kind.starts_with(kind));
    assert!(!of("Prov"), "{decided:?}");
    decided.plan.actions.into_iter().for_each(|action| cluster.carry_out(action));
    let lock = cluster.world.lock.as_ref().unwrap();
    let listed: Vec<&str> =
        lock.packages.iter().flatten().map(|one| one.version.as_str()).collect();
    assert_eq!(listed, ["v1.0.0"], "only the configuration");
    cluster.run();
    assert_snapshot!(cluster.show(), @r"
    Configuration net r.io/net:v1.0.0 resolved 1/1/0
    Provider vpc r.io/vpc:v1.1.0 skipped
    ");
}
