//! What people are told who ask why, and what would change.

use super::cluster::{Cluster, cluster};
use crate::lock::decide;
use insta::assert_snapshot;

const PACKAGES: &str = "
    r.io/a v1.0.0 Configuration: r.io/c >=v1.0.0, r.io/f * as Function
    r.io/b v1.0.0 Configuration: r.io/c <v2.0.0
    r.io/b v2.0.0 Configuration: r.io/c >=v2.0.0
    r.io/c v1.5.0 Provider
    r.io/c v2.0.0 Provider
    r.io/f v1.0.0 Function
";

fn installed() -> Cluster {
    let mut cluster = cluster(PACKAGES);
    cluster.install("Configuration", "a", "r.io/a:v1.0.0");
    cluster.install("Configuration", "b", "r.io/b:v1.0.0");
    cluster.run();
    cluster
}

#[test]
fn why_a_package_is_there_and_in_this_version() {
    let mut cluster = installed();
    let mut told = vec![cluster.report.why("c").join("\n"), cluster.report.why("a").join("\n")];
    // Somebody who asks has the versions looked up.
    let repository = oci::Repository::parse("r.io/c", &oci::Rules::weak()).unwrap();
    let tags = vec!["v1.5.0".to_owned(), "v2.0.0".to_owned()];
    cluster.world.known.tags.insert(repository, Ok(tags));
    told.push(decide(&cluster.world).unwrap().report.why("r.io/c").join("\n"));
    assert_snapshot!(told.join("\n\n"), @r"
    c is r.io/c:v1.5.0
    r.io/a v1.0.0 needs it: >=v1.0.0
    r.io/b v1.0.0 needs it: <v2.0.0

    a is r.io/a:v1.0.0
    nobody needs it; somebody asked for it

    r.io/c is r.io/c:v1.5.0
    r.io/a v1.0.0 needs it: >=v1.0.0
    r.io/b v1.0.0 needs it: <v2.0.0
    v2.0.0 is passed over: r.io/b v1.0.0 needs <v2.0.0
    ");
}

#[test]
fn what_an_update_would_change() {
    let mut cluster = installed();
    let none = cluster.decide().report.sentences();
    assert_eq!(none, Vec::<String>::new());
    cluster.install("Configuration", "b", "r.io/b:v2.0.0");
    assert_snapshot!(cluster.decide().report.sentences().join("\n"), @r"
    upgrade r.io/c v1.5.0 -> v2.0.0, because r.io/a v1.0.0 needs >=v1.0.0 and r.io/b v2.0.0 needs >=v2.0.0
    upgrade r.io/b v1.0.0 -> v2.0.0
    ");
}

#[test]
fn why_something_is_refused() {
    let mut cluster = installed();
    cluster.publish("r.io/d v1.0.0 Configuration: r.io/c >=v2.0.0");
    cluster.install("Configuration", "d", "r.io/d:v1.0.0");
    let report = cluster.decide().report;
    assert_snapshot!([report.sentences(), report.why("d"), report.why("c")].concat().join("\n"), @r"
    d is refused: r.io/d v1.0.0 needs r.io/c >=v2.0.0; r.io/b v1.0.0 needs r.io/c <v2.0.0; there is no version of r.io/c that satisfies them all (there are v1.5.0 and v2.0.0)
    d is refused:
      r.io/d v1.0.0 needs r.io/c >=v2.0.0
      r.io/b v1.0.0 needs r.io/c <v2.0.0
      there is no version of r.io/c that satisfies them all (there are v1.5.0 and v2.0.0)
      hint: accept more versions in one of these, or remove a package; removing one deletes all objects of the kinds it brought
    c is r.io/c:v1.5.0
    r.io/a v1.0.0 needs it: >=v1.0.0
    r.io/b v1.0.0 needs it: <v2.0.0
    v2.0.0 is passed over: r.io/b v1.0.0 needs <v2.0.0
    d is refused:
      r.io/d v1.0.0 needs r.io/c >=v2.0.0
      r.io/b v1.0.0 needs r.io/c <v2.0.0
      there is no version of r.io/c that satisfies them all (there are v1.5.0 and v2.0.0)
      hint: accept more versions in one of these, or remove a package; removing one deletes all objects of the kinds it brought
    ");
}
