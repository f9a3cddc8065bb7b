//! Upstream's end-to-end scenarios of packages, with packages of our own and upstream's expectations.
//! `e2e.txt` lists all of them: those that another chapter plays already, those of this one, and
//! those where another end is intended, with the reason.

use super::Scenario;
use super::dependencies::{becomes, count, entry, push};
use super::revisions::{crd, path};
use super::runtimes::{core, deployments};
use super::stage::{Stage, condition, packages};
use crate::support::until;
use serde_json::{Value as Json, json};

pub(super) const ALL: &[Scenario] = &[
    ("e2e: a configuration with a dependency", a_dependency_outlives_its_configuration),
    ("e2e: a provider upgrade", an_upgrade_keeps_objects_and_moves_control),
    ("e2e: common labels and annotations", common_labels_and_annotations_are_everywhere),
    ("e2e: an account of somebody else's", an_account_of_another_is_used_and_outlives_the_package),
    ("e2e: an image configuration for runtimes", an_image_config_chooses_how_dependencies_run),
    ("e2e: a dependency by digest", a_dependency_by_digest_is_that_digest),
    ("e2e: a dependency moves to another digest", a_dependency_moves_to_another_digest),
    ("e2e: a dependency moves to another version", a_dependency_moves_with_its_configuration),
    ("e2e: shared and transitive", a_shared_dependency_moves_once_all_accept_it),
    ("e2e: a dependency that exists", a_dependency_that_exists_is_moved_to_the_least_valid_version),
    ("e2e: no valid version", nothing_of_a_set_without_a_valid_version_is_installed),
    ("e2e: a dependency on itself or on nothing", a_dependency_on_itself_or_on_nothing_is_told),
    ("e2e: a spec change", a_spec_change_reaches_the_revision),
];

/// How the manager of this chapter is set up: upstream's scenarios turn upgrades on.
pub(super) const WORDS: [&str; 5] = [
    "--leader-election-lease-duration",
    "1h",
    "--leader-election-renew-deadline",
    "50m",
    "--enable-dependency-version-upgrades=true",
];

const CONFIGURATION: &str = "Configuration";
const PROVIDER: &str = "Provider";

/// Deletes a package, and waits until it is gone.
#[track_caller]
fn remove(stage: &Stage, kind: &str, name: &str) {
    let path = format!("{}/{name}", packages(kind));
    stage.change("DELETE", &path, "application/json", &json!({}));
    until(&format!("{kind} {name} is gone"), || stage.is_absent(&path).then_some(()));
}

/// The active revision of a package.
#[track_caller]
fn active(stage: &Stage, kind: &str, name: &str) -> String {
    until(&format!("{kind} {name} has an active revision"), || {
        let all = stage.revisions(kind, name);
        all.into_iter().find(|one| one.1 == "Active").map(|one| one.2)
    })
}

/// The digest of a reference in the stage's registry.
fn digest(stage: &Stage, reference: &str) -> String {
    let said = stage.apron(&["inspect", reference, "-o", "json"]).ok().stdout;
    let said: Json = serde_json::from_str(&said).unwrap();
    said["image"]["digest"].as_str().unwrap().to_owned()
}

/// `ConfigurationWithDependency`: what is needed comes in the version that fits, the lock lists both,
/// and the provider stays when the configuration goes.
fn a_dependency_outlives_its_configuration(stage: &Stage) {
    for version in ["v0.3.0", "v0.3.1", "v0.4.0"] {
        stage.push(PROVIDER, "e-nop", version);
    }
    let needs = [("provider", "e-nop", ">=v0.3.0, <v0.4.0")];
    let top = push(stage, CONFIGURATION, "e-with", "v1.0.0", &needs);
    stage.install(CONFIGURATION, "e-with", &json!({"package": top}));
    stage.installed(CONFIGURATION, "e-with");
    let provider = stage.registry.reference("e-nop:v0.3.1");
    becomes(stage, PROVIDER, "e-nop", &provider);
    stage.installed(PROVIDER, "e-nop");
    let listed = until("the lock lists both", || {
        entry(stage, PROVIDER, "e-nop")?;
        entry(stage, CONFIGURATION, "e-with")
    });
    assert_eq!(listed["dependencies"][0]["package"], stage.registry.reference("e-nop"));
    remove(stage, CONFIGURATION, "e-with");
    until("the lock lists the provider alone", || {
        let lock = stage.ask("/apis/pkg.crossplane.io/v1beta1/locks/lock")?.to_string();
        (lock.contains("e-nop") && !lock.contains("e-with")).then_some(())
    });
    stage.installed(PROVIDER, "e-nop");
    remove(stage, PROVIDER, "e-nop");
}

/// `ProviderUpgrade`: a live object survives, the definition is controlled by the new revision, and at
/// the end both are gone.
fn an_upgrade_keeps_objects_and_moves_control(stage: &Stage) {
    let group = "e-upgrade.example.org";
    let old = stage.push_objects(PROVIDER, "e-upgrade", "v0.2.0", &[crd(group, "nops", &["a"])]);
    let new =
        stage.push_objects(PROVIDER, "e-upgrade", "v0.3.0", &[crd(group, "nops", &["a", "b"])]);
    stage.install(PROVIDER, "e-upgrade", &json!({"package": old}));
    stage.installed(PROVIDER, "e-upgrade");
    let definition = path(&format!("nops.{group}"));
    let object = stage.ask(&definition).unwrap();
    let (version, kind) =
        (object["spec"]["versions"][0]["name"].clone(), object["spec"]["names"]["kind"].clone());
    let all = format!("/apis/{group}/{}/nops", version.as_str().unwrap());
    until("the kind is served", || stage.ask(&all));
    let api_version = format!("{group}/{}", version.as_str().unwrap());
    let live = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "lives"}});
    stage.make(&all, &live);
    stage.merge(PROVIDER, "e-upgrade", &json!({"spec": {"package": new}}));
    stage.states(PROVIDER, "e-upgrade", &[(1, "Inactive"), (2, "Active")]);
    stage.installed(PROVIDER, "e-upgrade");
    let revision = active(stage, PROVIDER, "e-upgrade");
    until("the new revision controls the definition", || {
        let object = stage.ask(&definition)?;
        let owners = object["metadata"]["ownerReferences"].as_array()?.clone();
        let controller = owners.into_iter().find(|one| one["controller"] == true)?;
        (controller["name"] == *revision).then_some(())
    });
    let lives = format!("{all}/lives");
    assert!(stage.ask(&lives).is_some(), "the object survives");
    stage.change("DELETE", &lives, "application/json", &json!({}));
    until("the object is gone", || stage.is_absent(&lives).then_some(()));
    remove(stage, PROVIDER, "e-upgrade");
    until("the definition is gone", || stage.is_absent(&definition).then_some(()));
}

/// `CommonAnnotationsAndLabels`: the revision says them, and what it brings has them.
fn common_labels_and_annotations_are_everywhere(stage: &Stage) {
    let group = "e-common.example.org";
    let package = stage.push_objects(PROVIDER, "e-common", "v1.0.0", &[crd(group, "nops", &["a"])]);
    let spec = json!({
        "package": package, "commonLabels": {"my-label": "a"},
        "commonAnnotations": {"my-annotation": "b"},
    });
    stage.install(PROVIDER, "e-common", &spec);
    stage.installed(PROVIDER, "e-common");
    let revision = stage.package("ProviderRevision", &active(stage, PROVIDER, "e-common"));
    let definition = stage.ask(&path(&format!("nops.{group}"))).unwrap();
    assert_eq!(revision["spec"]["commonLabels"]["my-label"], "a", "{revision}");
    assert_eq!(revision["spec"]["commonAnnotations"]["my-annotation"], "b", "{revision}");
    assert_eq!(definition["metadata"]["labels"]["my-label"], "a", "{definition}");
    assert_eq!(definition["metadata"]["annotations"]["my-annotation"], "b", "{definition}");
}

fn make_runtime_config(stage: &Stage, name: &str, spec: &Json) {
    let config = json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "DeploymentRuntimeConfig",
        "metadata": {"name": name}, "spec": spec,
    });
    stage.make("/apis/pkg.crossplane.io/v1beta1/deploymentruntimeconfigs", &config);
}

/// `ExternallyManagedServiceAccount`: it is used, nobody becomes its owner, and it stays.
fn an_account_of_another_is_used_and_outlives_the_package(stage: &Stage) {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "e-external"},
    });
    stage.make("/api/v1/namespaces/crossplane-system/serviceaccounts", &account);
    let template = json!({"template": {"spec": {
        "serviceAccountName": "e-external", "containers": [{"name": "package-runtime"}],
    }}, "selector": {}});
    make_runtime_config(stage, "e-external", &json!({"deploymentTemplate": {"spec": template}}));
    let package = stage.push_provider("e-external", "v1.0.0", &json!({}));
    let spec = json!({"package": package, "runtimeConfigRef": {"name": "e-external"}});
    stage.install(PROVIDER, "e-external", &spec);
    stage.installed(PROVIDER, "e-external");
    let revision = active(stage, PROVIDER, "e-external");
    let deployment = stage.ask(&deployments(&revision)).unwrap();
    let used = &deployment["spec"]["template"]["spec"]["serviceAccountName"];
    assert_eq!(used, "e-external");
    let theirs = core("serviceaccounts", "e-external");
    let is_unowned = |object: &Json| object["metadata"]["ownerReferences"].is_null();
    assert!(stage.ask(&theirs).is_some_and(|it| is_unowned(&it)), "nobody owns it");
    remove(stage, PROVIDER, "e-external");
    until("what ran is gone", || stage.is_absent(&deployments(&revision)).then_some(()));
    assert!(stage.ask(&theirs).is_some(), "it is still there");
}

/// `ImageConfigRuntimeConfig`: packages that nobody wrote an object for are run as an image
/// configuration says, providers and functions alike.
fn an_image_config_chooses_how_dependencies_run(stage: &Stage) {
    let container = json!({
        "name": "package-runtime", "args": ["--debug"], "env": [{"name": "E", "value": "2e"}],
    });
    let deployment = json!({
        "metadata": {"labels": {"chosen": "by-image"}},
        "spec": {"selector": {}, "template": {"spec": {"containers": [container]}}},
    });
    make_runtime_config(stage, "e-chosen", &json!({"deploymentTemplate": deployment}));
    let prefix = stage.registry.reference("e-run-");
    let config = json!({
        "matchImages": [{"prefix": prefix}],
        "runtime": {"configRef": {
            "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "DeploymentRuntimeConfig",
            "name": "e-chosen",
        }},
    });
    stage.image_config("e-chosen", &config);
    stage.push_provider("e-run-provider", "v1.0.0", &json!({}));
    stage.push("Function", "e-run-function", "v1.0.0");
    let needs =
        [("provider", "e-run-provider", ">=v1.0.0"), ("function", "e-run-function", ">=v1.0.0")];
    let top = push(stage, CONFIGURATION, "e-runs", "v1.0.0", &needs);
    stage.install(CONFIGURATION, "e-runs", &json!({"package": top}));
    for (kind, name) in [(PROVIDER, "e-run-provider"), ("Function", "e-run-function")] {
        stage.installed(kind, name);
        let revision = active(stage, kind, name);
        let found = stage.ask(&deployments(&revision)).unwrap();
        assert_eq!(found["metadata"]["labels"]["chosen"], "by-image", "{found}");
        let container = &found["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["args"], json!(["--debug"]), "{container}");
        let env = container["env"].as_array().unwrap();
        assert!(env.iter().any(|one| one["name"] == "E" && one["value"] == "2e"), "{container}");
        let revision = stage.package(&format!("{kind}Revision"), &revision);
        let applied = revision["status"]["appliedImageConfigRefs"].to_string();
        assert!(applied.contains("e-chosen"), "{applied}");
    }
    stage.installed(CONFIGURATION, "e-runs");
}

/// `ConfigurationWithDigest`: a dependency that is named by digest is installed by digest.
fn a_dependency_by_digest_is_that_digest(stage: &Stage) {
    let provider = stage.push(PROVIDER, "e-digest", "v0.3.0");
    let digest = digest(stage, &provider);
    let needs = [("provider", "e-digest", digest.as_str())];
    let top = push(stage, CONFIGURATION, "e-by-digest", "v1.0.0", &needs);
    stage.install(CONFIGURATION, "e-by-digest", &json!({"package": top}));
    let pinned = format!("{}@{digest}", stage.registry.reference("e-digest"));
    becomes(stage, PROVIDER, "e-digest", &pinned);
    stage.installed(PROVIDER, "e-digest");
    stage.installed(CONFIGURATION, "e-by-digest");
}

/// `UpgradeDependencyDigest`: the next version of a configuration names another digest.
fn a_dependency_moves_to_another_digest(stage: &Stage) {
    let of = |version: &str| digest(stage, &stage.push(PROVIDER, "e-moves", version));
    let (one, two) = (of("v0.3.0"), of("v0.3.1"));
    let needs = |digest: &str, version: &str| {
        push(stage, CONFIGURATION, "e-mover", version, &[("provider", "e-moves", digest)])
    };
    let (first, second) = (needs(&one, "v1.0.0"), needs(&two, "v2.0.0"));
    stage.install(CONFIGURATION, "e-mover", &json!({"package": first}));
    let pinned = |digest: &str| format!("{}@{digest}", stage.registry.reference("e-moves"));
    becomes(stage, PROVIDER, "e-moves", &pinned(&one));
    stage.installed(CONFIGURATION, "e-mover");
    stage.merge(CONFIGURATION, "e-mover", &json!({"spec": {"package": second}}));
    becomes(stage, PROVIDER, "e-moves", &pinned(&two));
    stage.installed(PROVIDER, "e-moves");
    stage.installed(CONFIGURATION, "e-mover");
    assert_eq!(count(stage, PROVIDER, "e-moves"), 1);
}

/// `UpgradeDependencyVersion`: v0.3.0, then v0.3.1.
fn a_dependency_moves_with_its_configuration(stage: &Stage) {
    for version in ["v0.3.0", "v0.3.1"] {
        stage.push(PROVIDER, "e-version", version);
    }
    let needs = |wanted: &str, version: &str| {
        push(stage, CONFIGURATION, "e-versions", version, &[("provider", "e-version", wanted)])
    };
    let (first, second) = (needs("v0.3.0", "v1.0.0"), needs("v0.3.1", "v2.0.0"));
    stage.install(CONFIGURATION, "e-versions", &json!({"package": first}));
    becomes(stage, PROVIDER, "e-version", &stage.registry.reference("e-version:v0.3.0"));
    stage.installed(CONFIGURATION, "e-versions");
    stage.merge(CONFIGURATION, "e-versions", &json!({"spec": {"package": second}}));
    becomes(stage, PROVIDER, "e-version", &stage.registry.reference("e-version:v0.3.1"));
    stage.installed(CONFIGURATION, "e-versions");
}

/// `SharedTransitive`: two configurations need one that needs a provider. While only one of them asks
/// for more, nothing moves, and the lock says so; then everything does.
fn a_shared_dependency_moves_once_all_accept_it(stage: &Stage) {
    let of = |path: &str| stage.registry.reference(path);
    for version in ["v0.3.0", "v0.3.1"] {
        stage.push(PROVIDER, "e-shared", version);
    }
    let common = |version: &str, wanted: &str| {
        push(stage, CONFIGURATION, "e-common-part", version, &[("provider", "e-shared", wanted)])
    };
    let (part, next_part) = (common("v1.0.0", "v0.3.0"), common("v2.0.0", "v0.3.1"));
    let top = |name: &str, version: &str, wanted: &str| {
        push(stage, CONFIGURATION, name, version, &[("configuration", "e-common-part", wanted)])
    };
    let (left, right) = (top("e-left", "v1.0.0", "v1.0.0"), top("e-right", "v1.0.0", "v1.0.0"));
    let (left_next, right_next) =
        (top("e-left", "v2.0.0", "v2.0.0"), top("e-right", "v2.0.0", "v2.0.0"));
    for (name, package) in [("e-left", &left), ("e-right", &right)] {
        stage.install(CONFIGURATION, name, &json!({"package": package}));
        stage.installed(CONFIGURATION, name);
    }
    becomes(stage, CONFIGURATION, "e-common-part", &part);
    becomes(stage, PROVIDER, "e-shared", &of("e-shared:v0.3.0"));
    stage.merge(CONFIGURATION, "e-left", &json!({"spec": {"package": left_next}}));
    until("the lock says that this cannot be", || {
        let lock = stage.ask("/apis/pkg.crossplane.io/v1beta1/locks/lock")?;
        let resolved = condition(&lock, "Resolved")?;
        (resolved["status"] == "False").then_some(())
    });
    becomes(stage, CONFIGURATION, "e-common-part", &part);
    stage.merge(CONFIGURATION, "e-right", &json!({"spec": {"package": right_next}}));
    becomes(stage, CONFIGURATION, "e-common-part", &next_part);
    becomes(stage, PROVIDER, "e-shared", &of("e-shared:v0.3.1"));
    for name in ["e-left", "e-right", "e-common-part"] {
        stage.installed(CONFIGURATION, name);
    }
}

/// `UpgradeAlreadyExistsDependency`: under whatever name, it is moved no further than it must be, and
/// there is no second one.
fn a_dependency_that_exists_is_moved_to_the_least_valid_version(stage: &Stage) {
    for version in ["v0.2.0", "v0.2.1", "v0.3.0"] {
        stage.push(PROVIDER, "e-cool", version);
    }
    let first = stage.registry.reference("e-cool:v0.2.0");
    stage.install(PROVIDER, "e-cool-provider", &json!({"package": first}));
    stage.installed(PROVIDER, "e-cool-provider");
    let needs = [("provider", "e-cool", ">=v0.2.1")];
    let top = push(stage, CONFIGURATION, "e-cooler", "v1.0.0", &needs);
    stage.install(CONFIGURATION, "e-cooler", &json!({"package": top}));
    becomes(stage, PROVIDER, "e-cool-provider", &stage.registry.reference("e-cool:v0.2.1"));
    stage.installed(CONFIGURATION, "e-cooler");
    assert_eq!(count(stage, PROVIDER, "e-cool"), 1);
}

/// `NoValidVersion`: upstream installs the inner configuration and leaves it unhealthy. Here nothing
/// of a set that cannot be had is installed, and the outer one says why.
fn nothing_of_a_set_without_a_valid_version_is_installed(stage: &Stage) {
    stage.push(PROVIDER, "e-none", "v0.2.0");
    push(stage, CONFIGURATION, "e-inner", "v1.0.0", &[("provider", "e-none", ">=v0.3.0")]);
    let needs = [("configuration", "e-inner", ">=v1.0.0"), ("provider", "e-none", "v0.2.0")];
    let top = push(stage, CONFIGURATION, "e-outer", "v1.0.0", &needs);
    stage.install(CONFIGURATION, "e-outer", &json!({"package": top}));
    let said = super::revisions::unhealthy(stage, CONFIGURATION, "e-outer", "e-none");
    assert!(said.contains("hint:"), "{said}");
    assert_eq!(count(stage, CONFIGURATION, "e-inner"), 0);
    assert_eq!(count(stage, PROVIDER, "e-none"), 0);
}

/// A package that needs itself, and one that needs what is not there, are unhealthy and say so.
fn a_dependency_on_itself_or_on_nothing_is_told(stage: &Stage) {
    for (name, needed) in [("e-self", "e-self"), ("e-lacks", "e-missing")] {
        let top =
            push(stage, CONFIGURATION, name, "v1.0.0", &[("configuration", needed, ">=v1.0.0")]);
        stage.install(CONFIGURATION, name, &json!({"package": top}));
        let needed = stage.registry.reference(needed);
        let said = super::revisions::unhealthy(stage, CONFIGURATION, name, &needed);
        assert!(said.contains("cannot resolve package dependencies"), "{said}");
    }
}

/// `PackageRevisionLifeCycle`: what the package says reaches its revision, which stays the active one.
fn a_spec_change_reaches_the_revision(stage: &Stage) {
    let package = stage.push(CONFIGURATION, "e-life", "v1.0.0");
    stage.install(CONFIGURATION, "e-life", &json!({"package": package}));
    stage.installed(CONFIGURATION, "e-life");
    stage.merge(CONFIGURATION, "e-life", &json!({"spec": {"skipDependencyResolution": true}}));
    until("the active revision says the same", || {
        let revision = active(stage, CONFIGURATION, "e-life");
        let found = stage.package("ConfigurationRevision", &revision);
        (found["spec"]["skipDependencyResolution"] == true).then_some(())
    });
    stage.installed(CONFIGURATION, "e-life");
}

/// The scenarios of the list, each with those that play it or the reason why it ends otherwise.
#[test]
fn every_scenario_of_upstream_is_played_or_its_other_end_intended() {
    let list = include_str!("e2e.txt");
    let known: Vec<&str> =
        super::CHAPTERS.iter().flat_map(|all| all.iter().map(|one| one.0)).collect();
    let mut seen = 0;
    for line in list.lines().filter(|line| line.starts_with("- ")) {
        let (name, played) = line[2..].split_once(" = ").unwrap();
        seen += 1;
        let (played, reason) = played.split_once(" ; ").unwrap_or((played, ""));
        let scenarios: Vec<&str> = played.split(" | ").filter(|one| !one.is_empty()).collect();
        assert!(!scenarios.is_empty() || !reason.is_empty(), "{name} is neither");
        for one in scenarios.into_iter().filter(|one| *one != "-") {
            let chapters = [include_str!("functions.rs"), include_str!("dependencies.rs")].concat();
            let end = one.strip_prefix("end: ").map(|end| format!("fn {end}("));
            let is_end = end.is_some_and(|end| chapters.contains(&end));
            assert!(is_end || known.contains(&one), "{name}: there is no scenario {one:?}");
        }
    }
    assert!(seen >= 25, "{seen}");
    for (name, _) in ALL {
        assert!(list.contains(name), "the list leaves {name:?} out");
    }
}
