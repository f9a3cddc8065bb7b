//! What is installed, as objects for git.

use super::cluster::{Cluster, cluster, digest};
use crate::lock::{Pinning, Rendered, render};
use serde_json::{Value as Json, json};

/// The objects, once everything is found out that it takes.
fn rendered(cluster: &mut Cluster, pinning: Pinning) -> Rendered {
    for _ in 0..30 {
        match render(&cluster.world, pinning) {
            Ok(rendered) => return rendered,
            Err(needs) => needs.into_iter().for_each(|need| cluster.find_out(need)),
        }
    }
    panic!("it never ends: {:#?}", cluster.asked);
}

fn images(objects: &[Json]) -> Vec<String> {
    let line = |one: &Json| {
        let text = |value: &Json| value.as_str().unwrap().to_owned();
        let (kind, name) = (text(&one["kind"]), text(&one["metadata"]["name"]));
        format!("{kind} {name} {}", text(&one["spec"]["package"]))
    };
    objects.iter().map(line).collect()
}

const PACKAGES: &str =
    "r.io/app v1.0.0 Configuration: r.io/t/helper >=v1.0.0, r.io/t/fn * as Function
     r.io/t/helper v1.0.0 Provider
     r.io/t/helper v1.1.0 Provider
     r.io/t/fn v0.3.0 Function
     r.io/edge main Provider";

#[test]
fn h8_what_is_asked_for_is_rendered_with_all_it_needs_and_nothing_automatic() {
    let mut wished = cluster(PACKAGES);
    wished.install("Configuration", "app", "r.io/app:v1.0.0");
    let expected = [
        "Function t-fn r.io/t/fn:v0.3.0",
        "Provider t-helper r.io/t/helper:v1.1.0",
        "Configuration app r.io/app:v1.0.0",
    ];
    let objects = rendered(&mut wished, Pinning::Versions).objects;
    assert_eq!(images(&objects), expected);
    // The same once it is installed.
    let mut installed = cluster(PACKAGES);
    installed.has_cache = true;
    installed.install("Configuration", "app", "r.io/app:v1.0.0");
    installed.run();
    let objects = rendered(&mut installed, Pinning::Versions).objects;
    assert_eq!(images(&objects), expected);
    assert!(!json!(objects).to_string().contains("automatic"), "{objects:?}");
}

#[test]
fn h8_a_tag_that_is_no_version_is_pinned_by_its_bytes_and_everything_if_asked_for() {
    let mut cluster = cluster(PACKAGES);
    cluster.install("Provider", "edge", "r.io/edge:main");
    let bytes = digest("r.io/edge main Provider");
    let by_digest = format!("Provider edge r.io/edge:main@{bytes}");
    let objects = rendered(&mut cluster, Pinning::Versions).objects;
    assert_eq!(images(&objects), [by_digest.as_str()]);
    cluster.install("Provider", "helper", "r.io/t/helper:v1.0.0");
    let bytes = digest("r.io/t/helper v1.0.0 Provider");
    let helper = format!("Provider helper r.io/t/helper:v1.0.0@{bytes}");
    let mut objects = images(&rendered(&mut cluster, Pinning::Digests).objects);
    objects.sort();
    assert_eq!(objects, [by_digest, helper]);
}

#[test]
fn h8_what_only_a_cluster_says_is_left_out() {
    let mut cluster = cluster(PACKAGES);
    let package = cluster.install("Provider", "helper", "r.io/t/helper:v1.0.0");
    package.metadata.labels.insert("team".to_owned(), "a".to_owned());
    for (key, value) in [
        ("pkg.crossplane.io/automatic", "true"),
        ("kubectl.kubernetes.io/last-applied-configuration", "{}"),
        ("example.org/note", "kept"),
    ] {
        package.metadata.annotations.insert(key.to_owned(), value.to_owned());
    }
    package.spec.package_pull_policy = Some("IfNotPresent".to_owned());
    package.spec.revision_history_limit = Some(3);
    package.spec.skip_dependency_resolution = Some(false);
    let objects = rendered(&mut cluster, Pinning::Versions).objects;
    let expected = json!([{
        "apiVersion": "pkg.crossplane.io/v1", "kind": "Provider",
        "metadata": {
            "name": "helper", "labels": {"team": "a"}, "annotations": {"example.org/note": "kept"},
        },
        "spec": {"package": "r.io/t/helper:v1.0.0", "revisionHistoryLimit": 3},
    }]);
    assert_eq!(json!(objects), expected);
}

#[test]
fn h8_what_is_refused_is_told_and_keeps_nothing_from_others() {
    let lost = "r.io/torn v1.0.0 Configuration: r.io/lost >=v1.0.0";
    let mut cluster = cluster(&format!("{PACKAGES}\n{lost}"));
    cluster.install("Configuration", "torn", "r.io/torn:v1.0.0");
    cluster.install("Provider", "helper", "r.io/t/helper:v1.0.0");
    let told = rendered(&mut cluster, Pinning::Versions);
    assert_eq!(images(&told.objects), ["Provider helper r.io/t/helper:v1.0.0"]);
    let (name, why) = &told.refused[0];
    assert!(name == "torn" && why.contains("r.io/lost"), "{told:?}");
}
