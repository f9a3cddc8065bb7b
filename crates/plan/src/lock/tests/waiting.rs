//! What is needed runs before what needs it is installed.

use super::cluster::{Cluster, cluster};
use api::meta::PackageKind;

/// A configuration that needs a provider, which needs a function.
fn waiting() -> Cluster {
    let mut cluster = cluster(
        "r.io/app v1.0.0 Configuration: r.io/p >=v1.0.0
         r.io/p v1.0.0 Provider: r.io/f >=v1.0.0
         r.io/f v1.0.0 Function",
    );
    cluster.world.settings.awaited = vec![PackageKind::Provider, PackageKind::Function];
    cluster.install("Configuration", "app", "r.io/app:v1.0.0");
    cluster
}

#[test]
fn a_package_waits_until_what_it_needs_runs() {
    let mut cluster = waiting();
    cluster.stands = ["f".to_owned(), "p".to_owned()].into();
    cluster.run();
    insta::assert_snapshot!(cluster.show(), @"
    Configuration app r.io/app:v1.0.0 waiting: waiting for dependencies: p
    Function f r.io/f:v1.0.0 resolved 0/0/0
    Provider p r.io/p:v1.0.0 waiting: waiting for dependencies: f (it does not run yet: no pods)
    ");
    cluster.stands.remove("f");
    cluster.run();
    insta::assert_snapshot!(cluster.show(), @"
    Configuration app r.io/app:v1.0.0 waiting: waiting for dependencies: p (it does not run yet: no pods)
    Function f r.io/f:v1.0.0 resolved 0/0/0
    Provider p r.io/p:v1.0.0 resolved 1/1/0
    ");
    cluster.stands.clear();
    cluster.run();
    insta::assert_snapshot!(cluster.show(), @"
    Configuration app r.io/app:v1.0.0 resolved 2/2/0
    Function f r.io/f:v1.0.0 resolved 0/0/0
    Provider p r.io/p:v1.0.0 resolved 1/1/0
    ");
    // What was installed once is not held up by what becomes of others.
    cluster.stands.insert("p".to_owned());
    cluster.run();
    insta::assert_snapshot!(cluster.show(), @"
    Configuration app r.io/app:v1.0.0 resolved 2/2/0
    Function f r.io/f:v1.0.0 resolved 0/0/0
    Provider p r.io/p:v1.0.0 resolved 1/1/0
    ");
}

#[test]
fn kinds_that_somebody_else_runs_are_not_waited_for() {
    let mut cluster = waiting();
    cluster.world.settings.awaited = vec![PackageKind::Provider];
    cluster.stands.insert("f".to_owned());
    cluster.run();
    insta::assert_snapshot!(cluster.show(), @"
    Configuration app r.io/app:v1.0.0 resolved 2/2/0
    Function f r.io/f:v1.0.0 resolved 0/0/0
    Provider p r.io/p:v1.0.0 resolved 1/1/0
    ");
}

#[test]
fn a_circle_is_refused_and_does_not_wait_for_itself() {
    let mut cluster = cluster(
        "r.io/a v1.0.0 Provider: r.io/b *
         r.io/b v1.0.0 Provider: r.io/a *",
    );
    cluster.world.settings.awaited = vec![PackageKind::Provider];
    cluster.install("Provider", "a", "r.io/a:v1.0.0");
    cluster.install("Provider", "b", "r.io/b:v1.0.0");
    cluster.run();
    insta::assert_snapshot!(cluster.show(), @"
    Provider a r.io/a:v1.0.0 conflict: r.io/a v1.0.0 needs r.io/b *; r.io/b v1.0.0 needs r.io/a *; packages must not need each other in a circle; hint: remove one of these dependencies
    Provider b r.io/b:v1.0.0 conflict: r.io/b v1.0.0 needs r.io/a *; r.io/a v1.0.0 needs r.io/b *; packages must not need each other in a circle; hint: remove one of these dependencies
    ");
}
