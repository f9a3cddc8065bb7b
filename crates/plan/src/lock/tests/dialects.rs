//! What the first dialect says of dependencies, and later ones otherwise.

use super::cluster::cluster;

#[test]
fn a_version_of_the_first_dialect_that_is_none_is_the_tag_it_names() {
    let mut cluster = cluster(
        "r.io/app v1.0.0 Configuration: first, r.io/dep nightly
         r.io/dep nightly Provider
         r.io/dep v1.0.0 Provider",
    );
    cluster.install("Configuration", "app", "r.io/app:v1.0.0");
    insta::assert_snapshot!(cluster.run(), @"
    lock r.io/app v1.0.0
    create Provider dep r.io/dep:nightly
    --
    lock r.io/app v1.0.0, r.io/dep nightly
    ");
    insta::assert_snapshot!(cluster.show(), @"
    Configuration app r.io/app:v1.0.0 resolved 1/1/0
    Provider dep r.io/dep:nightly resolved 0/0/0
    ");
    assert_eq!(cluster.run(), "nothing");
    // What has the tag by now has it as well as what had it before.
    let had = cluster.show();
    cluster.publish("r.io/dep nightly Provider: bytes others");
    cluster.run();
    assert_eq!(cluster.show(), had);
}

#[test]
fn what_is_not_whole_of_a_version_is_a_tag_to_the_first_dialect_and_a_range_to_others() {
    let packages = "r.io/old v1.0.0 Configuration: first, r.io/dep v1.2
         r.io/new v1.0.0 Configuration: r.io/dep v1.2
         r.io/exact v1.0.0 Configuration: first, r.io/dep v1.2.0
         r.io/dep v1.2 Provider
         r.io/dep v1.2.0 Provider
         r.io/dep v1.2.3 Provider";
    for (name, installs) in [("old", "v1.2"), ("new", "v1.2.3"), ("exact", "v1.2.0")] {
        let mut cluster = cluster(packages);
        cluster.install("Configuration", name, &format!("r.io/{name}:v1.0.0"));
        cluster.run();
        let has = format!("Provider dep r.io/dep:{installs} resolved 0/0/0");
        assert!(cluster.show().ends_with(&has), "{}", cluster.show());
        assert!(cluster.show().contains("resolved 1/1/0"), "{}", cluster.show());
    }
}

#[test]
fn a_tag_that_is_not_there_is_told_to_whoever_needs_it() {
    let mut cluster = cluster(
        "r.io/app v1.0.0 Configuration: first, r.io/dep nightly
         r.io/late v1.0.0 Configuration: r.io/dep nightly
         r.io/dep v1.0.0 Provider",
    );
    cluster.install("Configuration", "app", "r.io/app:v1.0.0");
    cluster.install("Configuration", "late", "r.io/late:v1.0.0");
    cluster.run();
    insta::assert_snapshot!(cluster.show(), @r#"
    Configuration app r.io/app:v1.0.0 conflict: r.io/app v1.0.0 needs r.io/dep nightly; r.io/dep nightly cannot be installed: no such tag; hint: install another version, or ask its author
    Configuration late r.io/late:v1.0.0 conflict: r.io/late v1.0.0 cannot be installed: it needs r.io/dep in version "nightly", which is not a version constraint: improper constraint "nightly"; hint: install another version, or ask its author
    "#);
    cluster.publish("r.io/dep nightly Provider");
    cluster.run();
    insta::assert_snapshot!(cluster.show(), @r#"
    Configuration app r.io/app:v1.0.0 resolved 1/1/0
    Configuration late r.io/late:v1.0.0 conflict: r.io/late v1.0.0 cannot be installed: it needs r.io/dep in version "nightly", which is not a version constraint: improper constraint "nightly"; hint: install another version, or ask its author
    Provider dep r.io/dep:nightly resolved 0/0/0
    "#);
}

#[test]
fn somebody_who_has_the_tag_by_another_name_is_moved_to_it() {
    let mut cluster = cluster(
        "r.io/app v1.0.0 Configuration: first, r.io/dep nightly
         r.io/dep nightly Provider
         r.io/dep v1.0.0 Provider",
    );
    cluster.install("Provider", "dep", "r.io/dep:v1.0.0");
    cluster.begin();
    cluster.install("Configuration", "app", "r.io/app:v1.0.0");
    insta::assert_snapshot!(cluster.run(), @"
    lock r.io/app v1.0.0, r.io/dep v1.0.0
    set Provider dep r.io/dep:nightly
    --
    lock r.io/app v1.0.0, r.io/dep nightly
    ");
}

#[test]
fn a_key_does_not_decide_what_a_package_is() {
    // All these say `provider`.
    let mut cluster = cluster(
        "r.io/app v1.0.0 Configuration: r.io/p *, r.io/c *, r.io/f *
         r.io/p v1.0.0 Provider
         r.io/c v1.0.0 Configuration: first, r.io/f v1.0.0
         r.io/f v1.0.0 Function",
    );
    cluster.install("Configuration", "app", "r.io/app:v1.0.0");
    cluster.run();
    insta::assert_snapshot!(cluster.show(), @"
    Configuration app r.io/app:v1.0.0 resolved 3/3/0
    Configuration c r.io/c:v1.0.0 resolved 1/1/0
    Function f r.io/f:v1.0.0 resolved 0/0/0
    Provider p r.io/p:v1.0.0 resolved 0/0/0
    ");
    assert_eq!(cluster.run(), "nothing");
}

#[test]
fn an_explicit_kind_is_a_statement() {
    let mut cluster = cluster(
        "r.io/app v1.0.0 Configuration: r.io/f * as Provider
         r.io/f v1.0.0 Function",
    );
    cluster.install("Configuration", "app", "r.io/app:v1.0.0");
    cluster.run();
    insta::assert_snapshot!(cluster.show(), @"Configuration app r.io/app:v1.0.0 conflict: r.io/app v1.0.0 needs r.io/f * as a Provider; r.io/f is a Function; hint: need it as a Function, or need another package");
}
