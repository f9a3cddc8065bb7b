//! Packages that upstream's own tools built and pushed: they become healthy, and there is not a word
//! of complaint about them. They have the stage for themselves, because what others do wrong is told of
//! on objects that all share.

use super::Scenario;
use super::stage::Stage;
use crate::support::{Ran, patiently, shared, until};
use serde_json::{Value as Json, json};

pub(super) const ALL: &[Scenario] = &[
    ("upstream's provider", a_provider_that_upstream_built_becomes_healthy),
    ("upstream's function", a_function_that_upstream_built_becomes_healthy),
    ("upstream's configuration", a_configuration_that_upstream_built_becomes_healthy),
];

/// What upstream's packages are installed as, and where their sources are.
const INSTALLED: [(&str, &str, &str); 3] = [
    ("Provider", "upstream-nop", "provider-nop"),
    ("Function", "upstream-ready", "function-auto-ready"),
    ("Configuration", "upstream-platform", "platform-ref-aws"),
];
/// What is told of what runs where nothing does, which is no complaint.
const SIMULATED: &str = "nothing runs here: pods are only simulated";
/// Where objects are that package managers tell of, besides packages.
const GROUPS: [&str; 2] = ["pkg.crossplane.io/", "apiextensions.crossplane.io/"];

fn a_provider_that_upstream_built_becomes_healthy(stage: &Stage) {
    let reference = stage.push_by_upstream("provider-nop", "v0.5.0");
    commands_install(stage, "upstream-nop", &reference);
    stage.installed("Provider", "upstream-nop");
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/\
                      nopresources.nop.crossplane.io";
    let definition = until("its kind is defined", || stage.ask(definition));
    let served = "/apis/nop.crossplane.io/v1alpha1/nopresources";
    until("its kind is served", || stage.ask(served));
    let owners = definition["metadata"]["ownerReferences"].as_array().unwrap();
    assert!(owners.iter().any(|one| one["name"] == "upstream-nop"), "{owners:?}");
}

fn a_function_that_upstream_built_becomes_healthy(stage: &Stage) {
    let reference = stage.push_by_upstream("function-auto-ready", "v0.6.0");
    commands_install(stage, "upstream-ready", &reference);
    stage.installed("Function", "upstream-ready");
    let service = "/api/v1/namespaces/crossplane-system/services/upstream-ready";
    let service = until("it has a service", || stage.ask(service));
    assert_eq!(service["spec"]["ports"][0]["port"], 9443, "{service}");
}

/// The definition and the composition of a real one lie beside a checkout only, and what it needs does
/// not.
fn a_configuration_that_upstream_built_becomes_healthy(stage: &Stage) {
    let Some(real) = shared("corpus/packages/platform-ref-aws/apis") else { return };
    let needs = ["upbound/platform-ref-awscluster", "crossplane-contrib/function-auto-ready"];
    let needs = needs
        .map(|name| json!({"function": format!("xpkg.upbound.io/{name}"), "version": ">=v0.0.0"}));
    let metadata = json!({
        "apiVersion": "meta.pkg.crossplane.io/v1", "kind": "Configuration",
        "metadata": {"name": "platform-ref-aws"}, "spec": {"dependsOn": needs},
    });
    let name = "platform-ref-aws";
    stage.scratch.copy_package_from(&real, &format!("{name}/apis"));
    stage.scratch.write(&format!("{name}/crossplane.yaml"), metadata.to_string());
    let reference = stage.push_built_by_upstream(name, "v1.0.0");
    let spec = json!({"package": reference, "skipDependencyResolution": true});
    stage.install("Configuration", "upstream-platform", &spec);
    stage.installed("Configuration", "upstream-platform");
}

/// Looks beforehand at what an installation would change, and installs; neither complains.
fn commands_install(stage: &Stage, name: &str, reference: &str) {
    for words in [&["plan", reference][..], &["install", reference, name]] {
        does_not_complain(stage.apron(words), words);
    }
}

/// Whether a command did what it was told to, without a word of complaint. Packages of scenarios beside this one
/// are from registries that cannot be reached here, which a plan of everything says.
#[track_caller]
fn does_not_complain(ran: Ran, words: &[&str]) {
    let said = ran.ok().all();
    let is_of_others = |line: &&str| line.starts_with("warning: no connection to xpkg.");
    let said = said.lines().filter(|line| !is_of_others(line)).collect::<Vec<_>>().join("\n");
    for word in ["warning:", "error:", "hint:"] {
        assert!(!said.contains(word), "{words:?}: {said}");
    }
}

/// What was said of them: conditions, events, findings, and what commands print.
pub(super) fn nothing_is_complained_of(stage: &Stage) {
    let is_there = |(kind, name, _): &&(&str, &str, &str)| !stage.package(kind, name).is_null();
    let there: Vec<_> = INSTALLED.iter().filter(is_there).collect();
    assert!(there.len() >= 2, "{there:?}");
    for (kind, name, source) in there {
        conditions_become_good(|| stage.package(kind, name));
        let revisions = stage.revisions(kind, name);
        assert_eq!(revisions.len(), 1, "{revisions:?}");
        conditions_become_good(|| stage.package(&format!("{kind}Revision"), &revisions[0].2));
        for words in [["lint", source], ["status", name], ["why", name]] {
            does_not_complain(stage.apron(&words), &words);
        }
    }
    let lock = "/apis/pkg.crossplane.io/v1beta1/locks/lock";
    conditions_become_good(|| stage.ask(lock).expect("there is a lock"));
    let events = stage.ask("/api/v1/events").unwrap();
    let about = |event: &&Json| {
        let version = event["involvedObject"]["apiVersion"].as_str().unwrap_or_default();
        GROUPS.iter().any(|group| version.starts_with(group))
    };
    let ours: Vec<&Json> = events["items"].as_array().unwrap().iter().filter(about).collect();
    assert!(!ours.is_empty(), "what goes well is told, too");
    for event in ours {
        assert_eq!(event["type"], "Normal", "{event}");
    }
}

/// Waits until no condition of an object complains: what others still do may be in the way for a while.
#[track_caller]
fn conditions_become_good(look: impl Fn() -> Json) {
    patiently(|| find_complaint(&look()).map_or(Ok(()), Err));
}

/// The first condition of an object that is not as it should be.
fn find_complaint(object: &Json) -> Option<String> {
    let is_good = |one: &&Json| {
        let is_silent = ["", SIMULATED].contains(&one["message"].as_str().unwrap_or_default());
        one["status"] == "True" && is_silent
    };
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let bad = conditions.find(|one| !is_good(one))?;
    Some(format!("{}: {bad}", object["metadata"]["name"]))
}
