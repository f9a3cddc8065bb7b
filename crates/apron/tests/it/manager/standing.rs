//! A manager that has nothing to do, and one that takes over from another.

use super::process::{leads, metrics, stop};
use super::revisions::crd;
use super::stage::{Stage, packages};
use crate::support::until;
use serde_json::json;
use std::collections::BTreeMap;

/// Looks often, and gives up a lease soon, but not because the machine is busy.
pub(super) const WORDS: &[&str] = &[
    "--sync-interval",
    "200ms",
    "--leader-election-lease-duration",
    "60s",
    "--leader-election-renew-deadline",
    "50s",
    "--leader-election-retry-period",
    "1s",
];

/// How often everything must have been looked at without a write.
const LOOKS: f64 = 60.0;

/// Numbers of a family, by labels.
fn numbers(text: &str, family: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(family)?.strip_prefix('{'));
    let numbers = lines.filter_map(|line| {
        let (labels, number) = line.split_once("} ")?;
        Some((labels.to_owned(), number.parse().ok()?))
    });
    numbers.collect()
}

/// What was written, but for the lease, which is renewed whatever happens.
fn writes(stage: &Stage) -> BTreeMap<String, f64> {
    let mut all = numbers(&stage.metrics(), "apron_api_writes_total");
    all.retain(|labels, _| !labels.contains("kind=\"Lease\""));
    all
}

/// How often a controller has looked.
fn looks(stage: &Stage, controller: &str) -> f64 {
    let all = numbers(&stage.metrics(), "apron_reconciles_total");
    let label = format!("controller=\"{controller}\"");
    all.iter().filter(|(labels, _)| labels.contains(&label)).map(|(_, number)| number).sum()
}

const CONTROLLERS: [&str; 11] = [
    "provider",
    "configuration",
    "function",
    "providerrevision",
    "configurationrevision",
    "functionrevision",
    "lock",
    "provider-runtime",
    "function-runtime",
    "provider-roles",
    "definition-roles",
];

/// Waits until every controller has looked so many times more.
fn look(stage: &Stage, times: f64) {
    let before = CONTROLLERS.map(|one| looks(stage, one));
    for (controller, before) in CONTROLLERS.iter().zip(before) {
        until(&format!("{controller} has looked {times} times"), || {
            (looks(stage, controller) >= before + times).then_some(())
        });
    }
}

pub(super) fn what_is_settled_is_left_alone(stage: &mut Stage) {
    let of = |path: &str| stage.registry.reference(path);
    let definitions =
        [crd("quiet.example.org", "ones", &["a"]), crd("quiet.example.org", "twos", &["a"])];
    stage.push_objects("Provider", "quiet-provider", "v1.0.0", &definitions);
    stage.push("Function", "quiet-function", "v1.0.0");
    let composite = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xquiets.quiet.example.org"},
        "spec": {
            "group": "quiet.example.org", "names": {"kind": "XQuiet", "plural": "xquiets"},
            "versions": [{"name": "v1", "served": true, "referenceable": true, "schema":
                {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}}],
        },
    });
    let spec = json!({"dependsOn": [
        {"provider": of("quiet-provider"), "version": ">=v1.0.0"},
        {"function": of("quiet-function"), "version": ">=v1.0.0"},
    ]});
    let top = stage.push_package("Configuration", "quiet", "v1.0.0", &spec, &[composite]);
    let second = stage.push_package("Configuration", "quiet", "v1.1.0", &spec, &[]);
    stage.install("Configuration", "quiet", &json!({"package": top}));
    stage.installed("Configuration", "quiet");
    // With a history: an inactive revision is looked at, too.
    stage.merge("Configuration", "quiet", &json!({"spec": {"package": second}}));
    stage.states("Configuration", "quiet", &[(1, "Inactive"), (2, "Active")]);
    // One that cannot have what it needs says so once.
    let lost = json!({"dependsOn": [{"provider": of("quiet-lost"), "version": ">=v1.0.0"}]});
    let lost = stage.push_package("Configuration", "quiet-lacks", "v1.0.0", &lost, &[]);
    stage.install("Configuration", "quiet-lacks", &json!({"package": lost}));
    super::revisions::unhealthy(stage, "Configuration", "quiet-lacks", "is empty");
    for (kind, package) in
        [("Provider", "quiet-provider"), ("Function", "quiet-function"), ("Configuration", "quiet")]
    {
        stage.installed(kind, package);
    }
    is_silent(stage, LOOKS);
}

/// Nothing is written however often everything is looked at.
#[track_caller]
fn is_silent(stage: &Stage, times: f64) {
    // Whatever was decided before all was well is over after a few looks.
    look(stage, 10.0);
    let before = writes(stage);
    assert!(!before.is_empty(), "writes are counted");
    look(stage, times);
    let mut after = writes(stage);
    after.retain(|labels, number| before.get(labels) != Some(number));
    assert!(after.is_empty(), "written for nothing: {after:#?}, before: {before:#?}");
}

/// Upstream's definition of the lock has neither owners nor digests: what is said of them is lost.
pub(super) fn a_lock_that_keeps_less_is_left_alone(stage: &mut Stage) {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/locks.pkg.crossplane.io";
    let mut definition = stage.ask(path).unwrap();
    for version in definition["spec"]["versions"].as_array_mut().unwrap() {
        let fields = &mut version["schema"]["openAPIV3Schema"]["properties"];
        for ours in ["customResourceDefinitions", "compositions"] {
            fields.as_object_mut().unwrap().remove(ours).unwrap();
        }
        let package = &mut fields["packages"]["items"]["properties"];
        package.as_object_mut().unwrap().remove("digest").unwrap();
    }
    stage.change("PUT", path, "application/json", &definition);
    let objects = [crd("plain.example.org", "ones", &["a"])];
    let package = stage.push_objects("Provider", "kept-plain", "v1.0.0", &objects);
    stage.install("Provider", "kept-plain", &json!({"package": package}));
    stage.installed("Provider", "kept-plain");
    let lock = until("the lock lists it, and no more", || {
        let lock = stage.ask("/apis/pkg.crossplane.io/v1beta1/locks/lock")?;
        let is_listed = lock["packages"].to_string().contains("kept-plain");
        (is_listed && lock["customResourceDefinitions"].is_null()).then_some(lock)
    });
    assert!(!lock["packages"].to_string().contains("digest"), "{lock}");
    is_silent(stage, LOOKS / 3.0);
}

/// M5: what another field manager keeps is not edited, and the condition says what to write.
pub(super) fn m5_what_git_keeps_is_changed_in_git(stage: &mut Stage) {
    let first = stage.push("Configuration", "kept-low", "v1.0.0");
    let second = stage.push("Configuration", "kept-low", "v2.0.0");
    stage.install("Configuration", "kept-low", &json!({"package": first}));
    stage.installed("Configuration", "kept-low");
    let needs = json!({"dependsOn": [{
        "apiVersion": "pkg.crossplane.io/v1", "kind": "Configuration",
        "package": stage.registry.reference("kept-low"), "version": ">=v2.0.0",
    }]});
    let user = stage.push_package("Configuration", "kept-user", "v1.0.0", &needs, &[]);
    stage.install("Configuration", "kept-user", &json!({"package": user}));
    let written = format!("write {second} into spec.package of Configuration kept-low, which");
    super::revisions::unhealthy(stage, "Configuration", "kept-user", &written);
    assert_eq!(stage.package("Configuration", "kept-low")["spec"]["package"], *first);
    // As git would.
    stage.merge("Configuration", "kept-low", &json!({"spec": {"package": second}}));
    stage.installed("Configuration", "kept-user");
}

pub(super) fn another_takes_over(stage: &mut Stage) {
    let path = "/apis/coordination.k8s.io/v1/namespaces/crossplane-system/leases/\
                apron-manager.pkg.crossplane.io";
    let lease = |stage: &Stage| stage.ask(path).unwrap()["spec"].clone();
    let transitions = |stage: &Stage| lease(stage)["leaseTransitions"].as_i64().unwrap();
    assert_eq!(lease(stage)["leaseDurationSeconds"], 60);
    let (other, log) = stage.another("other", WORDS);
    // One that never saw the lease held takes it where there is none.
    until("the other stands by", || {
        let said = fs_err::read_to_string(&log).ok()?;
        said.contains("this one stands by").then_some(())
    });
    assert!(leads(&stage.log));
    assert!(metrics(&log).lines().any(|line| line == "apron_is_leader 0"));
    // Whoever holds the lease makes it again if somebody deletes it, and works on.
    let held = stage.ask(path).unwrap();
    stage.change("DELETE", path, "application/json", &json!({}));
    let again = until("the lease is there again", || stage.ask(path));
    assert_ne!(again["metadata"]["uid"], held["metadata"]["uid"]);
    assert_eq!(again["spec"]["holderIdentity"], held["spec"]["holderIdentity"]);
    assert!(leads(&stage.log) && !leads(&log));
    let before = transitions(stage);
    // The one that works is gone, without a word.
    stage.manager.kill().unwrap();
    stage.manager.wait().unwrap();
    let package = stage.push("Configuration", "taken-over", "v1.0.0");
    stage.install("Configuration", "taken-over", &json!({"package": package}));
    (stage.manager, stage.log) = (other.take(), log);
    stage.installed("Configuration", "taken-over");
    assert!(leads(&stage.log));
    assert_eq!(transitions(stage), before + 1);
    // One that is told to stop lets go, and nobody has to wait for the lease to end.
    let (third, third_log) = stage.another("third", WORDS);
    until("the third stands by", || {
        fs_err::read_to_string(&third_log).ok()?.contains("this one stands by").then_some(())
    });
    stop(&mut stage.manager);
    (stage.manager, stage.log) = (third.take(), third_log);
    let path = format!("{}/taken-over", packages("Configuration"));
    stage.change("DELETE", &path, "application/json", &json!({}));
    until("the third works", || leads(&stage.log).then_some(()));
    until("it is gone", || stage.is_absent(&path).then_some(()));
}
