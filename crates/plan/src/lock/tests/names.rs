//! One package under several names, and several packages under one.

use super::cluster::{by_digest, cluster};
use insta::assert_snapshot;

const NEEDS: &str = "
    r.io/a v1.0.0 Configuration: home.io/acme/c >=v1.0.0
    home.io/acme/c v1.0.0 Provider: bytes c1
    home.io/acme/c v1.1.0 Provider: bytes c1.1
    mirror.io/x/c v1.0.0 Provider: bytes c1
";

#[test]
fn a_package_installed_under_the_name_of_a_mirror_counts() {
    let mut cluster = cluster(NEEDS);
    cluster.rewrite("home.io/acme/", "mirror.io/x/");
    cluster.install("Provider", "c", "mirror.io/x/c:v1.0.0");
    cluster.install("Configuration", "a", "r.io/a:v1.0.0");
    cluster.run();
    assert_snapshot!(cluster.show(), @r"
    Configuration a r.io/a:v1.0.0 resolved 1/1/0
    Provider c mirror.io/x/c:v1.0.0 resolved 0/0/0
    ");
}

#[test]
fn a_package_that_is_rewritten_is_listed_under_the_name_it_was_asked_by() {
    let mut cluster = cluster(NEEDS);
    cluster.rewrite("home.io/acme/", "mirror.io/x/");
    cluster.install("Configuration", "a", "r.io/a:v1.0.0");
    cluster.run();
    let sources = cluster.world.lock.iter().flat_map(|lock| lock.packages.iter().flatten());
    let sources: Vec<&str> = sources.map(|one| one.source.as_str()).collect();
    assert_snapshot!(format!("{}\n{}", cluster.show(), sources.join(", ")), @r"
    Configuration a r.io/a:v1.0.0 resolved 1/1/0
    Provider acme-c home.io/acme/c:v1.0.0 resolved 0/0/0
    r.io/a, home.io/acme/c
    ");
}

#[test]
fn a_copy_is_known_by_its_bytes() {
    let mut cluster = cluster(NEEDS);
    cluster.install("Provider", "c", "mirror.io/x/c:v1.0.0");
    cluster.install("Configuration", "a", "r.io/a:v1.0.0");
    cluster.run();
    assert_snapshot!(cluster.show(), @r"
    Configuration a r.io/a:v1.0.0 resolved 1/1/0
    Provider c mirror.io/x/c:v1.0.0 resolved 0/0/0
    ");
}

#[test]
fn what_only_ends_alike_is_another_package() {
    let mut cluster = cluster(NEEDS);
    cluster.publish("other.io/c v1.0.0 Provider: bytes other");
    cluster.install("Provider", "c", "other.io/c:v1.0.0");
    cluster.install("Configuration", "a", "r.io/a:v1.0.0");
    cluster.run();
    assert_snapshot!(cluster.show(), @r"
    Configuration a r.io/a:v1.0.0 resolved 1/1/0
    Provider acme-c home.io/acme/c:v1.1.0 resolved 0/0/0
    Provider c other.io/c:v1.0.0 resolved 0/0/0
    ");
}

#[test]
fn a_name_that_is_taken_is_not_taken_away() {
    let mut cluster = cluster(
        "r.io/a v1.0.0 Configuration: r.io/acme/c >=v1.0.0, s.io/acme/c >=v1.0.0, t.io/acme/c >=v1.0.0
         r.io/acme/c v1.0.0 Provider
         s.io/acme/c v1.0.0 Provider
         t.io/acme/c v1.0.0 Provider
         r.io/else v1.0.0 Provider",
    );
    cluster.install("Provider", "s-io-acme-c", "r.io/else:v1.0.0");
    cluster.install("Configuration", "a", "r.io/a:v1.0.0");
    let told = cluster.run();
    assert_snapshot!(format!("{told}\n{}", cluster.show()), @r"
    lock r.io/a v1.0.0, r.io/else v1.0.0
    create Provider acme-c r.io/acme/c:v1.0.0
    create Provider acme-c-4db64a3a15eb s.io/acme/c:v1.0.0
    create Provider t-io-acme-c t.io/acme/c:v1.0.0
    --
    lock r.io/a v1.0.0, s.io/acme/c v1.0.0, r.io/acme/c v1.0.0, r.io/else v1.0.0, t.io/acme/c v1.0.0

    Configuration a r.io/a:v1.0.0 resolved 3/3/0
    Provider acme-c r.io/acme/c:v1.0.0 resolved 0/0/0
    Provider acme-c-4db64a3a15eb s.io/acme/c:v1.0.0 resolved 0/0/0
    Provider s-io-acme-c r.io/else:v1.0.0 resolved 0/0/0
    Provider t-io-acme-c t.io/acme/c:v1.0.0 resolved 0/0/0
    ");
}

#[test]
fn the_same_name_for_two_kinds_is_told_apart() {
    let mut cluster = cluster(
        "r.io/a v1.0.0 Configuration: r.io/gone >=v1.0.0
         r.io/b v1.0.0 Provider",
    );
    cluster.install("Configuration", "same", "r.io/a:v1.0.0");
    cluster.install("Provider", "same", "r.io/b:v1.0.0");
    cluster.run();
    assert_snapshot!(cluster.show(), @r"
    Configuration same r.io/a:v1.0.0 conflict: r.io/a v1.0.0 needs r.io/gone >=v1.0.0; the versions of r.io/gone cannot be listed: no such repository; hint: make sure that r.io/gone can be reached
    Provider same r.io/b:v1.0.0 resolved 0/0/0
    ");
}

#[test]
fn two_objects_for_one_package_have_exactly_one_winner() {
    let mut cluster = cluster(NEEDS);
    cluster.install("Provider", "second", "home.io/acme/c:v1.0.0");
    cluster.run();
    cluster.install("Provider", "first", "home.io/acme/c:v1.1.0");
    cluster.install("Configuration", "a", "r.io/a:v1.0.0");
    cluster.run();
    assert_snapshot!(cluster.show(), @r"
    Configuration a r.io/a:v1.0.0 resolved 1/1/0
    Provider first home.io/acme/c:v1.1.0 conflict: second and first are both the package home.io/acme/c; hint: delete first, or let it name another package
    Provider second home.io/acme/c:v1.0.0 resolved 0/0/0
    ");
}

#[test]
fn a_tag_beside_a_digest_says_which_version_it_is() {
    let mut cluster = cluster(NEEDS);
    let image = by_digest("home.io/acme/c", "c1").replace('@', ":v1.0.0@");
    cluster.install("Provider", "c", &image);
    cluster.install("Configuration", "a", "r.io/a:v1.0.0");
    cluster.run();
    let digests = cluster.asked.iter().filter(|it| it.starts_with("digest")).count();
    assert_snapshot!(format!("{}\n{digests} digests asked for", cluster.show()), @r"
    Configuration a r.io/a:v1.0.0 resolved 1/1/0
    Provider c home.io/acme/c:v1.0.0@sha256:d0f631ca1ddba8db3bcfcb9e057cdc98d0379f1bee00e75a545147a27dadd982 resolved 0/0/0
    0 digests asked for
    ");
}

#[test]
fn a_channel_is_the_version_that_has_its_bytes() {
    let mut cluster = cluster(NEEDS);
    cluster.publish("home.io/acme/c latest Provider: bytes c1.1");
    cluster.install("Provider", "c", "home.io/acme/c:latest");
    cluster.install("Configuration", "a", "r.io/a:v1.0.0");
    cluster.run();
    assert_snapshot!(cluster.show(), @r"
    Configuration a r.io/a:v1.0.0 resolved 1/1/0
    Provider c home.io/acme/c:latest resolved 0/0/0
    ");
}

#[test]
fn a_digest_that_is_needed_is_installed_and_recognised() {
    let needed = by_digest("home.io/acme/c", "c1.1");
    let digest = needed.split('@').nth(1).unwrap();
    let mut told = Vec::new();
    for installed in [None, Some("home.io/acme/c:v1.1.0"), Some(needed.as_str())] {
        let mut cluster = cluster(NEEDS);
        cluster.publish(&format!("r.io/d v1.0.0 Configuration: home.io/acme/c {digest}"));
        if let Some(image) = installed {
            cluster.install("Provider", "c", image);
        }
        cluster.install("Configuration", "d", "r.io/d:v1.0.0");
        cluster.run();
        told.push(cluster.show());
    }
    assert_snapshot!(told.join("\n\n"), @r"
    Configuration d r.io/d:v1.0.0 resolved 1/1/0
    Provider acme-c home.io/acme/c@sha256:3729a73b1488734da5f2608c5597d8d6b887f8e6bf2393773b9da00242c220e7 resolved 0/0/0

    Configuration d r.io/d:v1.0.0 resolved 1/1/0
    Provider c home.io/acme/c:v1.1.0 resolved 0/0/0

    Configuration d r.io/d:v1.0.0 resolved 1/1/0
    Provider c home.io/acme/c@sha256:3729a73b1488734da5f2608c5597d8d6b887f8e6bf2393773b9da00242c220e7 resolved 0/0/0
    ");
}
