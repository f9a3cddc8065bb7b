//! What is kept elsewhere is changed there.

use super::cluster::{Cluster, cluster};
use serde_json::json;

/// A helper that a field manager keeps, and an application that needs a higher version of it.
fn kept_by(manager: &str) -> Cluster {
    let mut cluster = cluster(
        "r.io/app v1.0.0 Configuration: r.io/helper >=v2.0.0
         r.io/helper v1.0.0 Provider
         r.io/helper v2.0.0 Provider
         r.io/helper v2.1.0 Provider",
    );
    let record = json!([{
        "manager": manager, "operation": "Apply", "fieldsV1": {"f:spec": {"f:package": {}}},
    }]);
    let helper = cluster.install("Provider", "helper", "r.io/helper:v1.0.0");
    helper.metadata.rest.insert("managedFields".to_owned(), record);
    cluster.run();
    cluster.install("Configuration", "app", "r.io/app:v1.0.0");
    cluster.run();
    cluster
}

#[test]
fn m5_what_git_keeps_is_not_edited_and_the_conflict_says_what_to_write() {
    let cluster = kept_by("argocd-controller");
    let shown = cluster.show();
    assert!(shown.contains("Provider helper r.io/helper:v1.0.0 resolved"), "{shown}");
    let written = "write r.io/helper:v2.0.0 into spec.package of Provider helper, which \
                   argocd-controller keeps; or let the package manager do it";
    assert!(shown.contains(written), "{shown}");
}

#[test]
fn m5_what_the_manager_wrote_or_may_write_is_moved() {
    let cluster = kept_by("apron");
    assert!(cluster.show().contains("helper r.io/helper:v2.0.0 resolved"), "{}", cluster.show());
    let mut cluster = kept_by("argocd-controller");
    cluster.world.settings.moves_kept = true;
    cluster.run();
    assert!(cluster.show().contains("helper r.io/helper:v2.0.0 resolved"), "{}", cluster.show());
    let mut cluster = kept_by("argocd-controller");
    let helper = cluster.install("Provider", "helper", "r.io/helper:v1.0.0");
    let annotation = api::pkg::ANNOTATION_UPGRADES.to_owned();
    helper.metadata.annotations.insert(annotation, "true".to_owned());
    cluster.run();
    assert!(cluster.show().contains("helper r.io/helper:v2.0.0 resolved"), "{}", cluster.show());
}
