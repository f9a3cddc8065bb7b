//! Dependencies on kinds: found in a catalog, pinned, missed, there already.
//!
//! The manager asks the catalog of the registry, which reads a package after its push was answered.

use super::Scenario;
use super::revisions::{crd, unhealthy};
use super::stage::{Stage, condition};
use crate::support::until;
use serde_json::{Value as Json, json};

pub(super) const ALL: &[Scenario] = &[
    ("a package is found by a kind", a_package_is_found_by_a_kind_and_told_why),
    ("several packages bring a kind", none_of_several_packages_is_chosen_until_one_is_pinned),
    ("no package brings a kind", a_kind_that_no_package_brings_is_named_until_there_is_one),
    ("a kind in another version", a_kind_in_another_version_only_is_refused),
    ("all kinds of a group", all_kinds_of_a_group_come_from_all_packages_that_bring_some),
    ("a circle of kinds", a_circle_through_kinds_is_refused),
    ("a package is installed by a kind", a_package_is_installed_by_a_kind),
    ("an object asks for a kind", a_package_object_may_ask_for_a_kind),
    ("a kind that is there", a_kind_that_is_there_without_a_package_is_enough),
];

const CONFIGURATION: &str = "Configuration";

/// Pushes a configuration that needs a kind, and installs it; gives its reference.
fn install_needing(stage: &Stage, name: &str, kind: &str) -> String {
    let spec = json!({"dependsOn": [{"crd": kind}]});
    let reference = stage.push_package(CONFIGURATION, name, "v1.0.0", &spec, &[]);
    stage.install(CONFIGURATION, name, &json!({"package": reference}));
    reference
}

/// Pushes a package with objects, and waits until the catalog knows it: what it answers before that
/// is true, and not what a scenario is about.
pub(super) fn publish(
    stage: &Stage,
    kind: &str,
    name: &str,
    version: &str,
    objects: &[Json],
) -> String {
    publish_spec(stage, (kind, name, version), &json!({}), objects)
}

/// The same, with a spec.
fn publish_spec(
    stage: &Stage,
    (kind, name, version): (&str, &str, &str),
    spec: &Json,
    objects: &[Json],
) -> String {
    let reference = stage.push_package(kind, name, version, spec, objects);
    until(&format!("the catalog knows {reference}"), || {
        let path = format!("/api/v1/packages/{name}/-/versions/{version}");
        (stage.registry.get(&path).0 == 200).then_some(())
    });
    reference
}

/// Waits until the objects of a package are there.
#[track_caller]
fn established(stage: &Stage, kind: &str, package: &str) {
    until(&format!("{kind} {package} is established"), || {
        let active = stage.revisions(kind, package).into_iter().find(|one| one.1 == "Active")?;
        let revision = stage.package(&format!("{kind}Revision"), &active.2);
        (condition(&revision, "RevisionHealthy")?["status"] == "True").then_some(())
    });
}

/// What the lock remembers of the kind that a configuration needs.
#[track_caller]
fn remembered(stage: &Stage, name: &str) -> Json {
    let source = stage.registry.reference(name);
    until(&format!("the lock lists {name} with where its kind comes from"), || {
        let lock = stage.ask("/apis/pkg.crossplane.io/v1beta1/locks/lock")?;
        let entries = lock["packages"].as_array()?.clone();
        let entry = entries.into_iter().find(|one| one["source"] == *source)?;
        let dependency = entry["dependencies"][0].clone();
        let is_whole = dependency["reason"].is_string()
            && (dependency["broughtBy"].is_null() || dependency["digest"].is_string());
        is_whole.then_some(dependency)
    })
}

fn a_package_is_found_by_a_kind_and_told_why(stage: &Stage) {
    let group = "found.example.org";
    publish(stage, "Provider", "finds-it", "v1.0.0", &[crd(group, "olds", &["a"])]);
    publish(stage, "Provider", "finds-it", "v1.1.0", &[crd(group, "wants", &["a"])]);
    publish(stage, "Provider", "finds-it", "v1.2.0", &[crd(group, "wants", &["a"])]);
    install_needing(stage, "finder", &format!("wants.{group}/v1"));
    established(stage, CONFIGURATION, "finder");
    let provider = stage.package("Provider", "finds-it");
    assert_eq!(provider["spec"]["package"], stage.registry.reference("finds-it:v1.2.0"));
    let dependency = remembered(stage, "finder");
    assert_eq!(dependency["kind"], "CustomResourceDefinition");
    assert_eq!(dependency["package"], format!("wants.{group}/v1"));
    assert_eq!(dependency["broughtBy"], stage.registry.reference("finds-it"));
    let host = stage.registry.reference("");
    let reason = format!("only it brings the kind, says {}", host.trim_end_matches('/'));
    assert_eq!(dependency["reason"], reason);
    let why = stage.apron(&["why", "finds-it"]).ok().all();
    let told = format!("needs it (CRD wants.{group}/v1: {reason})");
    assert!(why.contains(&told), "{why}");
    let status = stage.apron(&["status", "finder"]).all();
    assert!(status.contains(&reason), "{status}");
}

fn none_of_several_packages_is_chosen_until_one_is_pinned(stage: &Stage) {
    let brings = [crd("several.example.org", "wants", &["a"])];
    for name in ["several-one", "several-two"] {
        publish(stage, "Provider", name, "v1.0.0", &brings);
    }
    install_needing(stage, "chooser", "wants.several.example.org/v1");
    let why = unhealthy(stage, CONFIGURATION, "chooser", "several packages bring the CRD");
    let of = |name: &str| stage.registry.reference(name);
    let (one, two) = (of("several-one"), of("several-two"));
    let several = format!("wants.several.example.org/v1: {one}, {two}");
    assert!(why.contains(&several), "{why}");
    let line = format!("apron pin wants.several.example.org {one}");
    assert!(why.contains(&format!("`{line}`")), "{why}");
    for name in ["several-one", "several-two"] {
        assert!(stage.package("Provider", name).is_null(), "{name} was chosen");
    }
    let pinned = stage.apron(&["pin", "wants.several.example.org", &two]).ok().all();
    assert!(pinned.contains(&two), "{pinned}");
    established(stage, CONFIGURATION, "chooser");
    assert_eq!(
        stage.package("Provider", "several-two")["spec"]["package"],
        of("several-two:v1.0.0")
    );
    assert!(stage.package("Provider", "several-one").is_null());
    let dependency = remembered(stage, "chooser");
    assert_eq!(dependency["broughtBy"], two);
    assert_eq!(dependency["reason"], "an administrator pinned it");
}

fn a_kind_that_no_package_brings_is_named_until_there_is_one(stage: &Stage) {
    // The explicit form, as packages have it that know nothing of the key `crd`.
    let spec = json!({"dependsOn": [{
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "package": "wants.missing.example.org", "version": "*",
    }]});
    let reference = stage.push_package(CONFIGURATION, "seeker", "v1.0.0", &spec, &[]);
    stage.install(CONFIGURATION, "seeker", &json!({"package": reference}));
    let why = unhealthy(stage, CONFIGURATION, "seeker", "no package brings the CRD");
    assert!(why.contains("no package brings the CRD wants.missing.example.org, says "), "{why}");
    let brings = [crd("missing.example.org", "wants", &["a"])];
    publish(stage, "Provider", "seeks-it", "v1.0.0", &brings);
    established(stage, CONFIGURATION, "seeker");
    established(stage, "Provider", "seeks-it");
}

fn a_kind_in_another_version_only_is_refused(stage: &Stage) {
    let brings = [crd("versions.example.org", "wants", &["a"])];
    publish(stage, "Provider", "versions-it", "v1.0.0", &brings);
    install_needing(stage, "versioned", "wants.versions.example.org/v2");
    let why = unhealthy(stage, CONFIGURATION, "versioned", "there is v1 of it");
    assert!(why.contains("wants.versions.example.org/v2"), "{why}");
    assert!(stage.package("Provider", "versions-it").is_null());
}

fn all_kinds_of_a_group_come_from_all_packages_that_bring_some(stage: &Stage) {
    let group = "whole.example.org";
    publish(stage, "Provider", "whole-one", "v1.0.0", &[crd(group, "firsts", &["a"])]);
    publish(stage, "Provider", "whole-two", "v1.0.0", &[crd(group, "seconds", &["a"])]);
    install_needing(stage, "gatherer", &format!("*.{group}/v1"));
    established(stage, CONFIGURATION, "gatherer");
    established(stage, "Provider", "whole-one");
    established(stage, "Provider", "whole-two");
}

fn a_circle_through_kinds_is_refused(stage: &Stage) {
    let group = "round.example.org";
    let spec = |kind: &str| json!({"dependsOn": [{"crd": format!("{kind}.{group}/v1")}]});
    let brings = [crd(group, "hens", &["a"])];
    publish_spec(stage, ("Provider", "round-hen", "v1.0.0"), &spec("eggs"), &brings);
    let brings = [crd(group, "eggs", &["a"])];
    let egg = publish_spec(stage, ("Provider", "round-egg", "v1.0.0"), &spec("hens"), &brings);
    stage.install("Provider", "round-egg", &json!({"package": egg}));
    let why = unhealthy(stage, "Provider", "round-egg", "in a circle");
    assert!(why.contains(&format!("needs the CRD hens.{group}/v1")), "{why}");
    assert!(stage.package("Provider", "round-hen").is_null());
}

fn a_package_is_installed_by_a_kind(stage: &Stage) {
    let group = "by-kind.example.org";
    publish(stage, "Provider", "by-kind", "v1.0.0", &[crd(group, "wants", &["a"])]);
    let (kind, host) = (format!("wants.{group}"), stage.registry.reference(""));
    let install = |kind: &str| stage.apron(&["install", "--crd", kind, "--catalog", &host]);
    let refused = install(&format!("{kind}/v9")).failed();
    assert!(refused.contains("there is v1 of it"), "{refused}");
    install(&format!("{kind}/v1")).ok();
    established(stage, "Provider", "by-kind");
    let package = stage.package("Provider", "by-kind")["spec"]["package"].clone();
    assert_eq!(package, stage.registry.reference("by-kind:v1.0.0"));
    let refused = install("*.by-kind.example.org").failed();
    assert!(refused.contains("is a group of kinds"), "{refused}");
}

fn a_package_object_may_ask_for_a_kind(stage: &Stage) {
    let group = "asked.example.org";
    publish(stage, "Provider", "asked-it", "v1.0.0", &[crd(group, "wants", &["a"])]);
    let kind = format!("wants.{group}/v1");
    let image = stage.registry.reference("asked-it:v1.0.0");
    stage.install("Provider", "asked", &json!({"crd": kind}));
    established(stage, "Provider", "asked");
    for spec in [json!({"package": image}), json!({"crd": null})] {
        let refused = stage.refusal("Provider", "asked", &json!({"spec": spec}));
        assert!(refused.contains("exactly one of package and crd must be set"), "{refused}");
    }
    let object = stage.package("Provider", "asked");
    assert_eq!(object["metadata"]["annotations"]["pkg.crossplane.io/chosen-package"], image);
    assert!(object["spec"]["package"].is_null(), "{object}");
    let status = stage.apron(&["status", "asked"]).all();
    assert!(status.contains("v1.0.0"), "{status}");
}

fn a_kind_that_is_there_without_a_package_is_enough(stage: &Stage) {
    let definition = crd("foreign.example.org", "wants", &["a"]);
    stage.make("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition);
    let brings = [crd("foreign.example.org", "wants", &["a"])];
    publish(stage, "Provider", "foreign-it", "v1.0.0", &brings);
    until("the kind is served", || stage.ask("/apis/foreign.example.org/v1/wants"));
    install_needing(stage, "guest", "wants.foreign.example.org/v1");
    established(stage, CONFIGURATION, "guest");
    assert!(stage.package("Provider", "foreign-it").is_null());
    let dependency = remembered(stage, "guest");
    assert!(dependency["broughtBy"].is_null(), "{dependency}");
    let reason = "the API server serves it, and no package here brings it";
    assert_eq!(dependency["reason"], reason);
}
