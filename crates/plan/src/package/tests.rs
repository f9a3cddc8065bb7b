//! Worlds in, steps out, as text a person can check.

use super::pull::{Image, Policy, Pull, decide};
use super::{Settings, World, step};
use crate::image_config::Treatment;
use crate::lock::KindPins;
use crate::signature::Trust;
use crate::step::{Action, Expect, Need, Step, Wake};
use api::meta::PackageKind;
use api::pkg::revision::Revision;
use insta::assert_snapshot;
use oci::Digest;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

fn digest(of: &str) -> Digest {
    Digest::of(of.as_bytes())
}

fn registry() -> String {
    "index.docker.io".to_owned()
}

/// A provider that asks for an image, which means `one`.
fn world(spec: &Json) -> World {
    let mut package = json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": "Provider",
        "metadata": {"name": "p", "uid": "u", "generation": 3, "resourceVersion": "7"},
        "spec": {"package": "registry.example.org/p:v1"},
    });
    for (key, value) in spec.as_object().unwrap() {
        package["spec"][key] = value.clone();
    }
    World {
        package: serde_json::from_value(package).unwrap(),
        kind: PackageKind::Provider,
        revisions: Vec::new(),
        image: Image { asked: Some(Ok(digest("one"))), ..Image::default() },
        treatment: Treatment::default(),
        trust: Trust::default(),
        owners: BTreeMap::new(),
        kinds: None,
        pins: KindPins::default(),
        refused: Vec::new(),
        settings: Settings { default_registry: registry(), runs_packages: true },
        now: "2026-01-01T00:00:00Z".to_owned(),
    }
}

fn name(of: &str) -> String {
    xpkg::label::friendly_id("p", digest(of).hex())
}

/// Carries out what a step says, on the world itself.
fn act(world: &mut World) -> String {
    let shown = show(&step(world));
    let Step::Do(plan) = step(world) else { return shown };
    for action in plan.actions {
        match action {
            Action::Apply { object, .. } => {
                let mut revision: Revision = serde_json::from_value(object).unwrap();
                let name = revision.metadata.name.clone();
                let place = world.revisions.iter_mut().find(|one| one.metadata.name == name);
                revision.metadata.uid = Some(format!("uid-{name}"));
                match place {
                    Some(old) => {
                        revision.status = old.status.take();
                        *old = revision;
                    }
                    None => world.revisions.push(revision),
                }
            }
            Action::Delete { target, .. } => {
                world.revisions.retain(|one| one.metadata.name != target.name);
            }
            Action::Status { status, .. } => {
                world.package.status = serde_json::from_value(status).unwrap();
            }
            Action::Event { .. } => {}
            other => panic!("no business of a package: {other:?}"),
        }
    }
    shown
}

fn show(step: &Step) -> String {
    let plan = match step {
        Step::Need(needs) => {
            let needs = needs.iter().map(|need| match need {
                Need::Digest(reference) => format!("need the digest of {reference}"),
                Need::CachedFile(name) => format!("need the cached file {name}.xpkg"),
                Need::Signatures(image) => format!("need the signatures of {image}"),
                Need::Objects(wanted) => {
                    let names = wanted.iter().map(|one| one.target.name.as_str());
                    format!("need the owners of {}", names.collect::<Vec<_>>().join(", "))
                }
                other => panic!("no business of a package: {other:?}"),
            });
            return needs.collect::<Vec<_>>().join("\n");
        }
        Step::Do(plan) => plan,
    };
    let mut lines: Vec<String> = plan.actions.iter().map(show_action).collect();
    lines.extend(plan.report.iter().map(|line| format!("# {line}")));
    if let Wake::After(time) = plan.wake {
        lines.push(format!("# again in {} s", time.as_secs()));
    }
    if lines.is_empty() { "nothing".to_owned() } else { lines.join("\n") }
}

fn show_action(action: &Action) -> String {
    match action {
        Action::Apply { object, expect } => {
            let how = if *expect == Expect::Absent { "create" } else { "apply" };
            let (name, spec) = (&object["metadata"]["name"], &object["spec"]);
            let (state, number) = (&spec["desiredState"], &spec["revision"]);
            format!("{how} {} state {state} number {number}", name.as_str().unwrap())
        }
        Action::Delete { target, .. } => format!("delete {}", target.name),
        Action::Status { status, .. } => {
            let conditions = status["conditions"].as_array().unwrap().iter().map(|one| {
                let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
                let message = text("message");
                let message = if message.is_empty() { message } else { format!(" ({message})") };
                format!("{}={} {}{message}", text("type"), text("status"), text("reason"))
            });
            let conditions: Vec<String> = conditions.collect();
            let current = status["currentRevision"].as_str().unwrap_or("none");
            format!("status current {current}: {}", conditions.join(", "))
        }
        Action::Event { is_warning, reason, message, .. } => {
            format!("event {} {reason}: {message}", if *is_warning { "Warning" } else { "Normal" })
        }
        other => panic!("no business of a package: {other:?}"),
    }
}

/// Says that revisions are well.
fn healthy(world: &mut World) {
    for revision in &mut world.revisions {
        let condition = |of: &str| {
            json!({"type": of, "status": "True", "reason": "HealthyPackageRevision",
                   "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let status =
            json!({"conditions": [condition("RevisionHealthy"), condition("RuntimeHealthy")]});
        revision.status = serde_json::from_value(status).unwrap();
    }
}

/// Points the package at other bytes.
fn point(world: &mut World, at: &str) {
    world.image.asked = Some(Ok(digest(at)));
}

#[test]
fn the_pull_policy_table_holds_cell_by_cell() {
    let fixed = format!("registry.example.org/p@{}", digest("fixed"));
    let mut lines = Vec::new();
    for (what, package) in
        [("version", "registry.example.org/p:v1.3.0"), ("channel", "p:latest"), ("digest", &fixed)]
    {
        for policy in [Policy::IfNotPresent, Policy::Always, Policy::Never] {
            for (held, cached) in [("cached", Some(digest("cached"))), ("not cached", None)] {
                let searched = policy == Policy::Never;
                let mut answers = Vec::new();
                let failed = Err("not found".to_owned().into());
                for asked in [None, Some(Ok(digest("asked"))), Some(failed)] {
                    let image = Image { cached: cached.clone(), asked, searched };
                    answers.push(match decide(policy, package, &registry(), &image, |_| false) {
                        Pull::Use(found) => ["cached", "asked", "fixed"]
                            .into_iter()
                            .find(|one| digest(one) == found)
                            .unwrap()
                            .to_owned(),
                        Pull::Ask(_) => "ask".to_owned(),
                        Pull::Search(_) => "search".to_owned(),
                        Pull::Fail(..) => "fail".to_owned(),
                    });
                }
                let policy = format!("{policy:?}");
                lines.push(format!("{what:8} {policy:12} {held:11} {}", answers.join(" / ")));
            }
        }
    }
    // What is used before the registry was asked, when it answered, and when it could not.
    assert_snapshot!(lines.join("\n"), @r"
    version  IfNotPresent cached      cached / cached / cached
    version  IfNotPresent not cached  ask / asked / fail
    version  Always       cached      ask / asked / fail
    version  Always       not cached  ask / asked / fail
    version  Never        cached      cached / cached / cached
    version  Never        not cached  fail / fail / fail
    channel  IfNotPresent cached      cached / cached / cached
    channel  IfNotPresent not cached  ask / asked / fail
    channel  Always       cached      ask / asked / fail
    channel  Always       not cached  ask / asked / fail
    channel  Never        cached      cached / cached / cached
    channel  Never        not cached  fail / fail / fail
    digest   IfNotPresent cached      fixed / fixed / fixed
    digest   IfNotPresent not cached  ask / asked / fail
    digest   Always       cached      fixed / fixed / fixed
    digest   Always       not cached  ask / asked / fail
    digest   Never        cached      cached / cached / cached
    digest   Never        not cached  fail / fail / fail
    ");
}

#[test]
fn a_digest_is_fetched_before_anything_is_made_of_it() {
    let fixed = format!("registry.example.org/p@{}", digest("fixed"));
    let mut world = world(&json!({"package": fixed}));
    world.image = Image::default();
    let mut told = vec![act(&mut world)];
    world.image.asked = Some(Err("not found".to_owned().into()));
    told.push(act(&mut world));
    world.image.asked = Some(Ok(digest("fixed")));
    told.push(act(&mut world));
    // From then on it is the revision's business.
    world.image = Image::default();
    told.push(act(&mut world));
    let told = told.join("\n--\n").replace(&fixed, "IT");
    assert_snapshot!(told, @r#"
    need the digest of IT
    --
    status current none: Installed=False UnpackingPackage (cannot unpack package: cannot resolve IT: not found; make sure that IT exists and may be pulled), Healthy=False UnhealthyPackageRevision (cannot unpack package: cannot resolve IT: not found; make sure that IT exists and may be pulled)
    event Warning UnpackPackage: cannot unpack package: cannot resolve IT: not found; make sure that IT exists and may be pulled
    # cannot unpack package: cannot resolve IT: not found; make sure that IT exists and may be pulled
    # again in 60 s
    --
    create p-992a93455c71 state "Active" number 1
    status current p-992a93455c71: Installed=False UnpackingPackage, Healthy=False UnhealthyPackageRevision (Package revision health is "Unknown")
    # p-992a93455c71 is made as revision 1
    --
    nothing
    "#);
}

#[test]
fn a_name_without_registry_is_looked_for_in_the_cache_when_nothing_may_be_pulled() {
    let mut world = world(&json!({"package": "mycoolpkg", "packagePullPolicy": "Never"}));
    world.image = Image::default();
    let mut told = vec![act(&mut world)];
    world.image.searched = true;
    told.push(act(&mut world));
    world.image.cached = Some(digest("file"));
    told.push(act(&mut world));
    assert_snapshot!(told.join("\n--\n"), @r#"
    need the cached file mycoolpkg.xpkg
    --
    status current none: Installed=False UnpackingPackage (cannot unpack package: mycoolpkg is not in the package cache, and its pull policy is Never; load the package into the cache, or use another pull policy), Healthy=False UnhealthyPackageRevision (cannot unpack package: mycoolpkg is not in the package cache, and its pull policy is Never; load the package into the cache, or use another pull policy)
    event Warning UnpackPackage: cannot unpack package: mycoolpkg is not in the package cache, and its pull policy is Never; load the package into the cache, or use another pull policy
    # cannot unpack package: mycoolpkg is not in the package cache, and its pull policy is Never; load the package into the cache, or use another pull policy
    # again in 60 s
    --
    create p-3b9c358f36f0 state "Active" number 1
    status current p-3b9c358f36f0: Installed=False UnpackingPackage, Healthy=False UnhealthyPackageRevision (Package revision health is "Unknown")
    # p-3b9c358f36f0 is made as revision 1
    "#);
}

#[test]
fn a_name_that_no_label_can_hold_is_told_before_anything_is_tried() {
    let mut world = world(&json!({}));
    world.image = Image::default();
    world.package.metadata.name = "n".repeat(63);
    let mut told = vec![act(&mut world)];
    world.package.metadata.name = "n".repeat(64);
    told.extend([act(&mut world), act(&mut world)]);
    assert_snapshot!(told.join("\n--\n"), @r"
    need the digest of registry.example.org/p:v1
    --
    status current none: Installed=False UnpackingPackage (cannot unpack package: the name of a package may have at most 63 characters, because its revisions carry it as a label, and this one has 64; install it under another name, and delete this one), Healthy=False UnhealthyPackageRevision (cannot unpack package: the name of a package may have at most 63 characters, because its revisions carry it as a label, and this one has 64; install it under another name, and delete this one)
    event Warning UnpackPackage: cannot unpack package: the name of a package may have at most 63 characters, because its revisions carry it as a label, and this one has 64; install it under another name, and delete this one
    # cannot unpack package: the name of a package may have at most 63 characters, because its revisions carry it as a label, and this one has 64; install it under another name, and delete this one
    --
    # cannot unpack package: the name of a package may have at most 63 characters, because its revisions carry it as a label, and this one has 64; install it under another name, and delete this one
    ");
}

#[test]
fn a_package_gets_a_revision_and_then_there_is_nothing_to_do() {
    let mut world = world(&json!({}));
    let mut told = vec![act(&mut world), act(&mut world)];
    healthy(&mut world);
    told.extend([act(&mut world), act(&mut world)]);
    assert_snapshot!(told.join("\n--\n"), @r#"
    create p-7692c3ad3540 state "Active" number 1
    status current p-7692c3ad3540: Healthy=False UnhealthyPackageRevision (Package revision health is "Unknown"), Installed=False UnpackingPackage
    # p-7692c3ad3540 is made as revision 1
    --
    nothing
    --
    event Normal InstallPackageRevision: Successfully installed package revision
    status current p-7692c3ad3540: Healthy=True HealthyPackageRevision, Installed=True ActivePackageRevision
    --
    nothing
    "#);
}

#[test]
fn a_revision_is_told_everything_its_package_says() {
    let world = world(&json!({
        "packagePullSecrets": [{"name": "s"}], "packagePullPolicy": "IfNotPresent",
        "commonLabels": {"a": "b"}, "commonAnnotations": {"c": "d"},
        "skipDependencyResolution": true, "ignoreCrossplaneConstraints": true,
        "runtimeConfigRef": {"name": "default"}, "controllerConfigRef": {"name": "old"},
    }));
    let Step::Do(plan) = step(&world) else { panic!("{:?}", step(&world)) };
    let Action::Apply { object, .. } = &plan.actions[0] else { panic!("{plan:?}") };
    assert_snapshot!(serde_json::to_string_pretty(object).unwrap(), @r#"
    {
      "apiVersion": "pkg.crossplane.io/v1",
      "kind": "ProviderRevision",
      "metadata": {
        "name": "p-7692c3ad3540",
        "labels": {
          "pkg.crossplane.io/package": "p"
        },
        "ownerReferences": [
          {
            "apiVersion": "pkg.crossplane.io/v1",
            "kind": "Provider",
            "name": "p",
            "uid": "u",
            "controller": true,
            "blockOwnerDeletion": true
          }
        ]
      },
      "spec": {
        "desiredState": "Active",
        "image": "registry.example.org/p:v1",
        "revision": 1,
        "packagePullSecrets": [
          {
            "name": "s"
          }
        ],
        "packagePullPolicy": "IfNotPresent",
        "ignoreCrossplaneConstraints": true,
        "skipDependencyResolution": true,
        "commonLabels": {
          "a": "b"
        },
        "commonAnnotations": {
          "c": "d"
        },
        "runtimeConfigRef": {
          "name": "default"
        },
        "controllerConfigRef": {
          "name": "old"
        },
        "tlsServerSecretName": "p-tls-server",
        "tlsClientSecretName": "p-tls-client"
      }
    }
    "#);
}

#[test]
fn automatic_moves_to_what_is_new_and_back() {
    let mut world = world(&json!({"revisionHistoryLimit": 2}));
    let mut told = Vec::new();
    for at in ["one", "two", "three", "four", "two"] {
        point(&mut world, at);
        told.push(format!("{at} = {}\n{}", name(at), act(&mut world)));
        healthy(&mut world);
        told.push(act(&mut world));
    }
    assert_snapshot!(told.join("\n--\n"), @r#"
    one = p-7692c3ad3540
    create p-7692c3ad3540 state "Active" number 1
    status current p-7692c3ad3540: Healthy=False UnhealthyPackageRevision (Package revision health is "Unknown"), Installed=False UnpackingPackage
    # p-7692c3ad3540 is made as revision 1
    --
    event Normal InstallPackageRevision: Successfully installed package revision
    status current p-7692c3ad3540: Healthy=True HealthyPackageRevision, Installed=True ActivePackageRevision
    --
    two = p-3fc4ccfe7458
    create p-3fc4ccfe7458 state "Active" number 2
    apply p-7692c3ad3540 state "Inactive" number 1
    status current p-3fc4ccfe7458: Healthy=False UnhealthyPackageRevision (Package revision health is "Unknown"), Installed=False UnpackingPackage
    # p-3fc4ccfe7458 is made as revision 2
    # p-7692c3ad3540 becomes Inactive
    --
    event Normal InstallPackageRevision: Successfully installed package revision
    status current p-3fc4ccfe7458: Healthy=True HealthyPackageRevision, Installed=True ActivePackageRevision
    --
    three = p-8b5b9db0c13d
    create p-8b5b9db0c13d state "Active" number 3
    apply p-3fc4ccfe7458 state "Inactive" number 2
    status current p-8b5b9db0c13d: Healthy=False UnhealthyPackageRevision (Package revision health is "Unknown"), Installed=False UnpackingPackage
    # p-8b5b9db0c13d is made as revision 3
    # p-3fc4ccfe7458 becomes Inactive
    --
    event Normal InstallPackageRevision: Successfully installed package revision
    status current p-8b5b9db0c13d: Healthy=True HealthyPackageRevision, Installed=True ActivePackageRevision
    --
    four = p-04efaf080f5a
    create p-04efaf080f5a state "Active" number 4
    apply p-8b5b9db0c13d state "Inactive" number 3
    status current p-04efaf080f5a: Healthy=False UnhealthyPackageRevision (Package revision health is "Unknown"), Installed=False UnpackingPackage
    # p-04efaf080f5a is made as revision 4
    # p-8b5b9db0c13d becomes Inactive
    --
    delete p-7692c3ad3540
    event Normal InstallPackageRevision: Successfully installed package revision
    status current p-04efaf080f5a: Healthy=True HealthyPackageRevision, Installed=True ActivePackageRevision
    # p-7692c3ad3540 goes: more inactive revisions than are to be kept
    --
    two = p-3fc4ccfe7458
    apply p-3fc4ccfe7458 state "Active" number 5
    apply p-04efaf080f5a state "Inactive" number 4
    status current p-3fc4ccfe7458: Healthy=False UnhealthyPackageRevision (Package revision health is "Unknown"), Installed=True ActivePackageRevision
    # p-3fc4ccfe7458 becomes Active
    # p-04efaf080f5a becomes Inactive
    --
    event Normal InstallPackageRevision: Successfully installed package revision
    status current p-3fc4ccfe7458: Healthy=True HealthyPackageRevision, Installed=True ActivePackageRevision
    "#);
}

#[test]
fn who_becomes_active_again_is_the_latest_whatever_the_status_says() {
    let mut world = world(&json!({"revisionHistoryLimit": 0}));
    for at in ["one", "two"] {
        point(&mut world, at);
        act(&mut world);
    }
    // Whoever made the second one could not write that down before somebody wanted the first back.
    let status = world.package.status.as_mut().unwrap();
    status.current_revision = Some(name("one"));
    point(&mut world, "one");
    let told = act(&mut world);
    assert!(told.contains(&format!("apply {} state \"Active\" number 3", name("one"))), "{told}");
}

#[test]
fn what_the_api_server_fills_in_is_let_be() {
    let mut world = world(&json!({}));
    world.settings.runs_packages = false;
    act(&mut world);
    let filled = json!({
        "desiredState": "Active", "image": "registry.example.org/p:v1", "revision": 1,
        "packagePullPolicy": "IfNotPresent", "ignoreCrossplaneConstraints": false,
        "skipDependencyResolution": false, "fieldOfTheFuture": 1,
        "runtimeConfigRef": {"name": "default", "kind": "DeploymentRuntimeConfig"},
    });
    world.revisions[0].spec = serde_json::from_value(filled).unwrap();
    assert_eq!(act(&mut world), "nothing");
}

#[test]
fn what_a_package_no_longer_says_is_taken_back() {
    let mut world = world(&json!({"packagePullSecrets": [{"name": "s"}]}));
    act(&mut world);
    world.package.spec.package_pull_secrets = None;
    let told = act(&mut world);
    assert!(told.starts_with("apply p-7692c3ad3540"), "{told}");
    assert_eq!(world.revisions[0].spec.package_pull_secrets, None);
    assert_eq!(act(&mut world), "nothing");
}

#[test]
fn a_limit_of_zero_keeps_everything() {
    let mut world = world(&json!({"revisionHistoryLimit": 0}));
    for at in ["one", "two", "three", "four", "five"] {
        point(&mut world, at);
        act(&mut world);
    }
    assert_eq!(world.revisions.len(), 5);
}

#[test]
fn the_default_keeps_one_old_revision() {
    let mut world = world(&json!({}));
    for at in ["one", "two", "three", "four", "five"] {
        point(&mut world, at);
        act(&mut world);
        healthy(&mut world);
        act(&mut world);
    }
    let mut kept: Vec<&str> =
        world.revisions.iter().map(|one| one.metadata.name.as_str()).collect();
    kept.sort_unstable();
    let (four, five) = (name("four"), name("five"));
    let mut expected = vec![four.as_str(), five.as_str()];
    expected.sort_unstable();
    assert_eq!(kept, expected);
}

/// What a revision says of itself and of what it runs, and the definition that both bring.
fn tells(world: &mut World, at: &str, revision: &str, runtime: Option<&str>) {
    let condition = |of: &str, status: &str| {
        json!({"type": of, "status": status, "reason": "x",
               "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let mut conditions = vec![condition("RevisionHealthy", revision)];
    conditions.extend(runtime.map(|runtime| condition("RuntimeHealthy", runtime)));
    let mut status = json!({"conditions": conditions});
    if revision == "True" {
        status["objectRefs"] = json!([{"apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition", "name": "things.org"}]);
    }
    let revision = world.revisions.iter_mut().find(|one| one.metadata.name == name(at)).unwrap();
    revision.status = serde_json::from_value(status).unwrap();
}

fn controlled(world: &mut World, by: &str) {
    let target =
        super::target_of("apiextensions.k8s.io/v1", "CustomResourceDefinition", "things.org");
    let kind = world.revisions[0].kind.clone();
    let owner = json!({"apiVersion": "pkg.crossplane.io/v1", "kind": kind, "name": name(by),
                       "uid": "u", "controller": true});
    world.owners = BTreeMap::from([(target, vec![serde_json::from_value(owner).unwrap()])]);
}

fn kept(world: &World) -> Vec<&'static str> {
    let is_there = |at: &&str| world.revisions.iter().any(|one| one.metadata.name == name(at));
    ["one", "two", "three", "four", "five"].into_iter().filter(is_there).collect()
}

/// One that works, and then upgrades that are refused, each of which is well once it is inactive.
fn refused_upgrades(kind: PackageKind) -> World {
    let mut world = world(&json!({}));
    world.kind = kind;
    world.package.kind = kind.as_str().to_owned();
    let runs = |status: &'static str| (kind != PackageKind::Configuration).then_some(status);
    act(&mut world);
    tells(&mut world, "one", "True", runs("True"));
    act(&mut world);
    let mut before = None;
    for at in ["two", "three", "two", "four"] {
        point(&mut world, at);
        if at == "four" {
            assert_eq!(act(&mut world), "need the owners of things.org");
            controlled(&mut world, "one");
        }
        act(&mut world);
        tells(&mut world, at, "False", runs("False"));
        act(&mut world);
        if let Some(before) = before.replace(at) {
            tells(&mut world, before, "True", runs("False"));
            act(&mut world);
        }
        assert!(kept(&world).contains(&"one"), "what works goes after {at}: {:?}", kept(&world));
    }
    world
}

#[test]
fn what_works_stays_however_many_upgrades_are_refused() {
    for kind in PackageKind::ALL {
        let mut world = refused_upgrades(kind);
        assert_eq!(kept(&world), ["one", "two", "four"], "the refused one of before goes");
        // Going back leaves one of those that were refused.
        point(&mut world, "one");
        act(&mut world);
        assert_eq!(kept(&world), ["one", "two", "four"], "until it has everything again");
        tells(&mut world, "one", "True", Some("True"));
        act(&mut world);
        assert_eq!(kept(&world), ["one", "four"]);
    }
}

#[test]
fn of_old_revisions_those_that_never_ran_go_first() {
    let mut world = refused_upgrades(PackageKind::Provider);
    tells(&mut world, "four", "True", Some("True"));
    act(&mut world);
    assert_eq!(kept(&world), ["one", "four"], "two was refused");
}

fn activate(world: &mut World, at: &str) {
    let name = name(at);
    let revision = world.revisions.iter_mut().find(|one| one.metadata.name == name).unwrap();
    revision.spec.desired_state = "Active".to_owned();
}

#[test]
fn manual_leaves_what_is_active_until_somebody_activates_another() {
    let spec = json!({"revisionActivationPolicy": "Manual", "revisionHistoryLimit": 3});
    let mut world = world(&spec);
    let mut told = vec![format!("one = {}, two = {}", name("one"), name("two"))];
    told.push(act(&mut world));
    activate(&mut world, "one");
    told.push(format!("one is activated\n{}", act(&mut world)));
    point(&mut world, "two");
    told.push(format!("two is there\n{}", act(&mut world)));
    told.push(act(&mut world));
    activate(&mut world, "two");
    told.push(format!("two is activated\n{}", act(&mut world)));
    activate(&mut world, "one");
    told.push(format!("one is activated again\n{}", act(&mut world)));
    told.push(act(&mut world));
    assert_snapshot!(told.join("\n--\n"), @r#"
    one = p-7692c3ad3540, two = p-3fc4ccfe7458
    --
    create p-7692c3ad3540 state "Inactive" number 1
    status current p-7692c3ad3540: Healthy=False UnhealthyPackageRevision (Package revision health is "Unknown"), Installed=False InactivePackageRevision (Package is inactive)
    # p-7692c3ad3540 waits for somebody to activate it
    # p-7692c3ad3540 is made as revision 1
    --
    one is activated
    apply p-7692c3ad3540 state "Active" number 2
    status current p-7692c3ad3540: Healthy=False UnhealthyPackageRevision (Package revision health is "Unknown"), Installed=False UnpackingPackage
    --
    two is there
    create p-3fc4ccfe7458 state "Inactive" number 3
    # p-3fc4ccfe7458 waits for somebody to activate it
    # p-3fc4ccfe7458 is made as revision 3
    --
    # p-3fc4ccfe7458 waits for somebody to activate it
    --
    two is activated
    apply p-3fc4ccfe7458 state "Active" number 4
    apply p-7692c3ad3540 state "Inactive" number 2
    status current p-3fc4ccfe7458: Healthy=False UnhealthyPackageRevision (Package revision health is "Unknown"), Installed=False UnpackingPackage
    # p-7692c3ad3540 becomes Inactive
    --
    one is activated again
    apply p-7692c3ad3540 state "Active" number 5
    apply p-3fc4ccfe7458 state "Inactive" number 4
    status current p-7692c3ad3540: Healthy=False UnhealthyPackageRevision (Package revision health is "Unknown"), Installed=False UnpackingPackage
    # p-3fc4ccfe7458 waits for somebody to activate it
    # p-3fc4ccfe7458 becomes Inactive
    --
    # p-3fc4ccfe7458 waits for somebody to activate it
    "#);
}

#[test]
fn who_becomes_active_gets_a_number_of_its_own_once() {
    let mut world = world(&json!({"revisionHistoryLimit": 0}));
    for at in ["one", "two"] {
        point(&mut world, at);
        act(&mut world);
    }
    // Of its own accord: whoever has the highest number was inactive, too.
    let two = world.revisions.iter_mut().find(|one| one.metadata.name == name("two")).unwrap();
    two.spec.desired_state = "Inactive".to_owned();
    let told = act(&mut world);
    assert!(told.contains(&format!("apply {} state \"Active\" number 3", name("two"))), "{told}");
    assert_eq!(act(&mut world), "nothing");
    // By hand, and whoever should write down that it is the current one now dies before it does.
    world.package.spec.revision_activation_policy = Some("Manual".to_owned());
    activate(&mut world, "one");
    let before = world.package.status.clone();
    let told = act(&mut world);
    assert!(told.contains(&format!("apply {} state \"Active\" number 4", name("one"))), "{told}");
    world.package.status = before;
    let told = act(&mut world);
    assert!(!told.contains("number"), "{told}");
    assert!(told.contains(&format!("status current {}", name("one"))), "{told}");
}

#[test]
fn a_policy_that_is_none_is_told_and_taken_for_the_careful_one() {
    let spec = json!({"revisionActivationPolicy": "Weird", "packagePullPolicy": "Automatic"});
    let mut world = world(&spec);
    assert_snapshot!(act(&mut world), @r#"
    create p-7692c3ad3540 state "Inactive" number 1
    status current p-7692c3ad3540: Synced=False UnknownPolicy (revisionActivationPolicy is "Weird", so new revisions wait to be activated as under Manual; hint: set it to Automatic or Manual; packagePullPolicy is "Automatic", so the registry is asked as under IfNotPresent; hint: set it to IfNotPresent, Always or Never), Healthy=False UnhealthyPackageRevision (Package revision health is "Unknown"), Installed=False InactivePackageRevision (Package is inactive)
    # p-7692c3ad3540 waits for somebody to activate it
    # p-7692c3ad3540 is made as revision 1
    "#);
    assert_eq!(world.revisions[0].spec.package_pull_policy, None);
    world.now = "2027-01-01T00:00:00Z".to_owned();
    assert!(!act(&mut world).contains("status"), "it is told once");
    world.package.spec.revision_activation_policy = Some("Manual".to_owned());
    world.package.spec.package_pull_policy = Some("Always".to_owned());
    let told = act(&mut world);
    assert!(!told.contains("Synced"), "{told}");
}

#[test]
fn always_looks_again_in_a_minute() {
    let mut world = world(&json!({"packagePullPolicy": "Always"}));
    assert_snapshot!(act(&mut world), @r#"
    create p-7692c3ad3540 state "Active" number 1
    status current p-7692c3ad3540: Healthy=False UnhealthyPackageRevision (Package revision health is "Unknown"), Installed=False UnpackingPackage
    # p-7692c3ad3540 is made as revision 1
    # again in 60 s
    "#);
}

#[test]
fn what_cannot_be_fetched_is_told_and_what_runs_goes_on() {
    let mut world = world(&json!({"packagePullPolicy": "Always"}));
    act(&mut world);
    healthy(&mut world);
    act(&mut world);
    world.image.asked = Some(Err("unauthorized".to_owned().into()));
    let mut told = vec![act(&mut world), act(&mut world)];
    point(&mut world, "one");
    told.push(act(&mut world));
    assert_snapshot!(told.join("\n--\n"), @r"
    status current p-7692c3ad3540: Healthy=True HealthyPackageRevision, Installed=False UnpackingPackage (cannot unpack package: cannot resolve registry.example.org/p:v1: unauthorized; make sure that registry.example.org/p:v1 exists and may be pulled)
    event Warning UnpackPackage: cannot unpack package: cannot resolve registry.example.org/p:v1: unauthorized; make sure that registry.example.org/p:v1 exists and may be pulled
    # cannot unpack package: cannot resolve registry.example.org/p:v1: unauthorized; make sure that registry.example.org/p:v1 exists and may be pulled
    # again in 60 s
    --
    # cannot unpack package: cannot resolve registry.example.org/p:v1: unauthorized; make sure that registry.example.org/p:v1 exists and may be pulled
    # again in 60 s
    --
    status current p-7692c3ad3540: Healthy=True HealthyPackageRevision, Installed=True ActivePackageRevision
    # again in 60 s
    ");
}

#[test]
fn m3_what_is_installed_goes_on_while_no_registry_says_what_its_image_is() {
    let mut world = world(&json!({}));
    act(&mut world);
    healthy(&mut world);
    act(&mut world);
    let before = world.package.status.clone();
    // The cache is lost, and the registry is away.
    world.image =
        Image { asked: Some(Err("connection refused".to_owned().into())), ..Image::default() };
    let told = act(&mut world);
    assert!(told.contains("connection refused; what is installed goes on"), "{told}");
    assert_eq!(world.package.status, before);
    assert!(told.ends_with("again in 60 s"), "{told}");
    // What else is asked of it is done.
    world.package.spec.package_pull_policy = Some("IfNotPresent".to_owned());
    assert!(act(&mut world).starts_with("apply p-7692c3ad3540"));
    // Another image is not to be had, and that is told.
    world.package.spec.package = "registry.example.org/p:v2".to_owned();
    assert!(act(&mut world).contains("Installed=False UnpackingPackage"));
}

#[test]
fn a_reference_that_is_none_is_told() {
    let mut world = world(&json!({"package": "Not A Reference"}));
    assert_snapshot!(act(&mut world), @r#"
    status current none: Installed=False UnpackingPackage (cannot unpack package: "Not A Reference" is not an image reference: repository `Not A Reference` may only have lower-case letters and digits with `_` `-` `.` `/` between them, at most 255 in all; write it as registry.example.org/repository:tag), Healthy=False UnhealthyPackageRevision (cannot unpack package: "Not A Reference" is not an image reference: repository `Not A Reference` may only have lower-case letters and digits with `_` `-` `.` `/` between them, at most 255 in all; write it as registry.example.org/repository:tag)
    event Warning UnpackPackage: cannot unpack package: "Not A Reference" is not an image reference: repository `Not A Reference` may only have lower-case letters and digits with `_` `-` `.` `/` between them, at most 255 in all; write it as registry.example.org/repository:tag
    # cannot unpack package: "Not A Reference" is not an image reference: repository `Not A Reference` may only have lower-case letters and digits with `_` `-` `.` `/` between them, at most 255 in all; write it as registry.example.org/repository:tag
    # again in 60 s
    "#);
}

/// D67: nothing that is not there is called installed.
#[test]
fn d67_what_is_refused_is_not_installed_and_what_has_objects_is() {
    let mut world = world(&json!({}));
    act(&mut world);
    let refused = json!({
        "type": "RevisionHealthy", "status": "False", "reason": "UnhealthyPackageRevision",
        "message": "it needs q", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    world.revisions[0].status = serde_json::from_value(json!({"conditions": [refused]})).unwrap();
    assert_snapshot!(act(&mut world), @r#"status current p-7692c3ad3540: Healthy=False UnhealthyPackageRevision (Package revision health is "False" with message: it needs q), Installed=False UnestablishedPackageRevision (it needs q)"#);
    let object = json!({"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u"});
    let status = json!({"conditions": [refused], "objectRefs": [object]});
    world.revisions[0].status = serde_json::from_value(status).unwrap();
    assert_snapshot!(act(&mut world), @r#"status current p-7692c3ad3540: Healthy=False UnhealthyPackageRevision (Package revision health is "False" with message: it needs q), Installed=True ActivePackageRevision"#);
}

#[test]
fn nothing_is_done_to_a_paused_or_deleted_package() {
    let mut world = world(&json!({}));
    act(&mut world);
    let paused = ("crossplane.io/paused".to_owned(), "true".to_owned());
    world.package.metadata.annotations.extend([paused]);
    let mut told = vec![act(&mut world), act(&mut world)];
    world.package.metadata.annotations.clear();
    told.push(act(&mut world));
    world.package.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".to_owned());
    point(&mut world, "two");
    told.push(act(&mut world));
    assert_snapshot!(told.join("\n--\n"), @r#"
    status current p-7692c3ad3540: Healthy=False UnhealthyPackageRevision (Package revision health is "Unknown"), Installed=False UnpackingPackage, Synced=False ReconcilePaused (Reconciliation (including deletion) is paused via the pause annotation)
    event Normal ReconciliationPaused: Reconciliation (including deletion) is paused via the pause annotation
    # the annotation crossplane.io/paused stops all work on it
    --
    # the annotation crossplane.io/paused stops all work on it
    --
    status current p-7692c3ad3540: Healthy=False UnhealthyPackageRevision (Package revision health is "Unknown"), Installed=False UnpackingPackage
    --
    # it is being deleted, and its revisions go with it
    "#);
}

#[test]
fn a_package_is_as_healthy_as_its_revision() {
    let mut lines = Vec::new();
    for (revision, runtime, active) in [
        ("True", "True", "ActiveRuntime"),
        ("False", "True", "ActiveRuntime"),
        ("True", "False", "ActiveRuntime"),
        ("True", "False", "AwaitingActivation"),
        ("True", "True", "AwaitingActivation"),
    ] {
        let mut world = world(&json!({}));
        act(&mut world);
        let condition = |of: &str, status: &str, reason: &str| {
            json!({"type": of, "status": status, "reason": reason, "message": "because",
                   "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let status = json!({"conditions": [
            condition("RevisionHealthy", revision, "x"), condition("RuntimeHealthy", runtime, "x"),
            condition("RuntimeActive", "False", active),
        ]});
        world.revisions[0].status = serde_json::from_value(status).unwrap();
        lines.push(format!("{revision} {runtime} {active}\n  {}", act(&mut world)));
    }
    assert_snapshot!(lines.join("\n"), @r#"
    True True ActiveRuntime
      event Normal InstallPackageRevision: Successfully installed package revision
    status current p-7692c3ad3540: Healthy=True HealthyPackageRevision, Installed=True ActivePackageRevision
    False True ActiveRuntime
      status current p-7692c3ad3540: Healthy=False UnhealthyPackageRevision (Package revision health is "False" with message: because), Installed=True ActivePackageRevision
    True False ActiveRuntime
      status current p-7692c3ad3540: Healthy=False UnhealthyPackageRevision (Package runtime health is "False" with message: because), Installed=True ActivePackageRevision
    True False AwaitingActivation
      status current p-7692c3ad3540: Healthy=False UnhealthyPackageRevision (Package runtime health is "False" with message: because; runtime is scaled to zero awaiting activation), Installed=True ActivePackageRevision
    True True AwaitingActivation
      event Normal InstallPackageRevision: Successfully installed package revision
    status current p-7692c3ad3540: Healthy=True AwaitingActivation (because), Installed=True ActivePackageRevision
    "#);
}

/// What a revision says, and of which generation of it.
fn says(world: &mut World, at: &str, generation: i64) {
    let revision = world.revisions.iter_mut().find(|one| one.metadata.name == name(at)).unwrap();
    let condition = |of: &str| {
        json!({"type": of, "status": "True", "reason": "x", "observedGeneration": generation,
               "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let status = json!({"conditions": [condition("RevisionHealthy"), condition("RuntimeHealthy")]});
    revision.status = serde_json::from_value(status).unwrap();
    revision.metadata.generation.get_or_insert(1);
}

/// Whether the package says that it is well, and of which generation of it.
fn said(world: &World) -> (String, Option<i64>) {
    let conditions = world.package.status.as_ref().unwrap().conditions.as_ref().unwrap();
    let healthy = conditions.iter().find(|one| one.condition_type == "Healthy").unwrap();
    (healthy.status.clone(), healthy.observed_generation)
}

#[test]
fn what_a_revision_said_of_an_older_state_is_not_said_of_this_one() {
    let well = |generation: i64| ("True".to_owned(), Some(generation));
    let mut world = world(&json!({"revisionHistoryLimit": 3}));
    act(&mut world);
    says(&mut world, "one", 1);
    act(&mut world);
    assert_eq!(said(&world), well(3));
    // Something else is asked for of the same revision: it was well, and that is all one knows.
    world.package.spec.common_labels = Some([("a".to_owned(), "b".to_owned())].into());
    world.package.metadata.generation = Some(4);
    act(&mut world);
    world.revisions[0].metadata.generation = Some(2);
    says(&mut world, "one", 1);
    act(&mut world);
    assert_eq!(said(&world), well(3));
    says(&mut world, "one", 2);
    act(&mut world);
    assert_eq!(said(&world), well(4));
    // Another revision takes over, and then the first one again, which was well when it stepped
    // back.
    point(&mut world, "two");
    act(&mut world);
    says(&mut world, "two", 1);
    act(&mut world);
    assert_eq!(said(&world), well(4));
    point(&mut world, "one");
    act(&mut world);
    assert_eq!(said(&world).0, "False", "in the very look that activates it");
    let again = world.revisions.iter_mut().find(|one| one.metadata.name == name("one")).unwrap();
    again.metadata.generation = Some(4);
    act(&mut world);
    assert_eq!(said(&world).0, "False");
    says(&mut world, "one", 4);
    act(&mut world);
    assert_eq!(said(&world), well(4));
}

/// What somebody else says in a revision stays theirs, however often ours is applied.
#[test]
fn what_others_add_to_a_revision_does_not_keep_its_health_from_being_told() {
    let mut world = world(&json!({}));
    act(&mut world);
    world.revisions[0].spec.common_labels = Some([("a".to_owned(), "b".to_owned())].into());
    says(&mut world, "one", 1);
    assert!(act(&mut world).contains("apply p-7692c3ad3540"));
    assert_eq!(said(&world).0, "True");
}

#[test]
fn who_waited_well_is_not_well_for_being_activated() {
    let mut world = world(&json!({"revisionActivationPolicy": "Manual"}));
    act(&mut world);
    says(&mut world, "one", 1);
    act(&mut world);
    assert_eq!(said(&world).0, "True");
    activate(&mut world, "one");
    world.revisions[0].metadata.generation = Some(2);
    act(&mut world);
    assert_eq!(said(&world).0, "False");
}

#[test]
fn a_revision_on_its_way_out_is_waited_for() {
    let mut world = world(&json!({}));
    act(&mut world);
    says(&mut world, "one", 1);
    world.revisions[0].metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".to_owned());
    world.revisions[0].metadata.owner_references.clear();
    assert_snapshot!(act(&mut world), @r#"
    status current p-7692c3ad3540: Healthy=False UnhealthyPackageRevision (Package revision health is "Unknown"), Installed=False UnpackingPackage (waiting for the revision p-7692c3ad3540 that was here before to be gone)
    "#);
    world.revisions.clear();
    assert!(act(&mut world).starts_with("create p-7692c3ad3540"));
}

#[test]
fn who_is_activated_takes_over_even_if_nothing_can_be_fetched() {
    let spec = json!({"revisionActivationPolicy": "Manual", "revisionHistoryLimit": 3});
    let mut world = world(&spec);
    act(&mut world);
    activate(&mut world, "one");
    act(&mut world);
    point(&mut world, "two");
    act(&mut world);
    world.image.asked = Some(Err("it is away".to_owned().into()));
    let mut told = Vec::new();
    let mut next = |world: &mut World| {
        let said = act(world);
        assert!(said.contains("cannot unpack package") && said.ends_with("# again in 60 s"));
        let applied = said.lines().filter(|line| line.starts_with("apply"));
        told.push(format!("{} {:?}", said.lines().count(), applied.collect::<Vec<_>>()));
    };
    next(&mut world);
    for activated in ["two", "one"] {
        activate(&mut world, activated);
        next(&mut world);
        next(&mut world);
        assert_eq!(world.package.status.as_ref().unwrap().current_revision, Some(name(activated)));
    }
    // Who stepped back already, though nobody could write it down, does not come back.
    world.package.status.as_mut().unwrap().current_revision = Some(name("two"));
    next(&mut world);
    assert_eq!(world.package.status.as_ref().unwrap().current_revision, Some(name("one")));
    assert_snapshot!(told.join("\n"), @r#"
    4 []
    7 ["apply p-3fc4ccfe7458 state \"Active\" number 4", "apply p-7692c3ad3540 state \"Inactive\" number 2"]
    2 []
    7 ["apply p-7692c3ad3540 state \"Active\" number 5", "apply p-3fc4ccfe7458 state \"Inactive\" number 4"]
    2 []
    4 []
    "#);
}

#[test]
fn what_waits_to_be_activated_is_not_unhealthy_for_running_nothing() {
    let mut world = world(&json!({"revisionActivationPolicy": "Manual"}));
    act(&mut world);
    let healthy = json!({"type": "RevisionHealthy", "status": "True", "reason": "x",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    world.revisions[0].status = serde_json::from_value(json!({"conditions": [healthy]})).unwrap();
    assert_snapshot!(act(&mut world), @"
    event Normal InstallPackageRevision: Successfully installed package revision
    status current p-7692c3ad3540: Healthy=True HealthyPackageRevision, Installed=False InactivePackageRevision (Package is inactive)
    # p-7692c3ad3540 waits for somebody to activate it
    ");
    world.revisions[0].spec.desired_state = "Active".to_owned();
    assert_snapshot!(act(&mut world), @r#"
    apply p-7692c3ad3540 state "Active" number 2
    status current p-7692c3ad3540: Healthy=False UnhealthyPackageRevision (Package revision health is "Unknown"), Installed=True ActivePackageRevision
    "#);
}

#[test]
fn the_names_of_secrets_are_never_too_long() {
    let mut world = world(&json!({}));
    // Longer than a step would let it be.
    world.package.metadata.name = "n".repeat(253);
    let actions =
        super::revisions::decide(&world, &world.revision_of(&digest("one"))).unwrap().actions;
    let Action::Apply { object, .. } = &actions[0] else { panic!("{actions:?}") };
    let secret = object["spec"]["tlsServerSecretName"].as_str().unwrap();
    assert!(secret.len() == 253 && secret.ends_with("-tls-server"));
}

#[test]
fn nothing_is_made_of_an_image_before_it_is_accepted() {
    let verification = json!({"provider": "Cosign", "cosign": {"authorities": []}});
    let verification = serde_json::from_value(verification).unwrap();
    let applied = json!([
        {"name": "mirror", "reason": "RewriteImage"}, {"name": "signed", "reason": "VerifyImage"},
        {"name": "small", "reason": "ConfigureRuntime"},
    ]);
    let pinned = format!("registry.example.org/p@{}", digest("one"));
    // However it is known which bytes are meant: they must be signed.
    for spec in [
        json!({}),
        json!({"packagePullPolicy": "Always"}),
        json!({"packagePullPolicy": "Never"}),
        json!({"package": pinned}),
    ] {
        let mut world = world(&spec);
        world.image.cached = Some(digest("one"));
        world.treatment.resolved = "mirror.local/cache/p:v1".to_owned();
        world.treatment.applied = serde_json::from_value(applied.clone()).unwrap();
        let (config, verification) = ("signed".to_owned(), Clone::clone(&verification));
        world.trust = Trust::Asked { config, verification };
        let wanted = format!("need the signatures of mirror.local/cache/p@{}", digest("one"));
        assert_eq!(show(&step(&world)), wanted, "{spec}");
        world.trust = Trust::Refused("signature verification failed: a: no; do b".to_owned());
        let said = show(&step(&world));
        let first = "status current none: Installed=False UnpackingPackage (cannot unpack package: \
                     signature verification failed: a: no; do b), ";
        assert!(said.starts_with(first), "{said}");
        assert!(!said.contains("create"), "{said}");
        let (config, authority) = ("signed".to_owned(), "a".to_owned());
        world.trust = Trust::Accepted { config, authority };
        assert!(act(&mut world).starts_with("create "));
        let status = world.package.status.clone().unwrap();
        assert_eq!(status.resolved_package.as_deref(), Some("mirror.local/cache/p:v1"));
        // How it is run is its revision's to say.
        let applied = serde_json::to_value(status.applied_image_config_refs).unwrap();
        let reasons: Vec<&Json> =
            applied.as_array().unwrap().iter().map(|one| &one["reason"]).collect();
        assert_eq!(reasons, ["RewriteImage", "VerifyImage"]);
    }
}

#[test]
fn h8_a_package_that_gives_way_makes_no_revisions() {
    let mut world = world(&json!({}));
    let annotations = &mut world.package.metadata.annotations;
    annotations.insert("pkg.crossplane.io/automatic".to_owned(), "true".to_owned());
    annotations.insert("pkg.crossplane.io/gives-way-to".to_owned(), "named".to_owned());
    let told = act(&mut world);
    let expected = "Installed=False InactivePackageRevision (it was installed automatically, and gives \
                    way to Provider named, which was installed by name)";
    assert!(told.contains(expected) && !told.contains("create"), "{told}");
    assert!(!act(&mut world).contains("status"), "it is told once");
    // What only says so is no automatic package.
    world.package.metadata.annotations.remove("pkg.crossplane.io/automatic");
    assert!(act(&mut world).contains("create"));
}

#[test]
fn h8_the_active_revision_has_the_highest_number_also_of_those_that_came_from_another_package() {
    let mut world = world(&json!({}));
    act(&mut world);
    let mut other = world.revisions[0].clone();
    other.metadata.name = "t-p-1".to_owned();
    other.spec.desired_state = "Inactive".to_owned();
    for number in [1, 4] {
        other.spec.revision = number;
        let mut world = world.clone();
        world.revisions.push(other.clone());
        act(&mut world);
        let own = world.revisions.iter().find(|one| one.metadata.name == name("one")).unwrap();
        assert_eq!(own.spec.revision, number + 1);
        assert!(!act(&mut world).contains("apply"));
    }
}

#[test]
fn h6_what_is_cached_counts_for_the_package_that_it_was_fetched_for() {
    let mut world = world(&json!({}));
    let may = |world: &World| super::may_use_cached(&world.package, &world.revisions);
    assert!(!may(&world), "another package brought it there");
    act(&mut world);
    let status = world.package.status.take();
    assert!(may(&world), "a revision of its own was made of it");
    let newest = super::revision_of_image(&world.package, &world.revisions).unwrap();
    assert_eq!(newest.metadata.name, name("one"));
    let deleted = Some("2026-01-01T00:00:00Z".to_owned());
    world.revisions[0].metadata.deletion_timestamp = deleted;
    assert!(!may(&world), "that one goes");
    world.package.status = status;
    assert!(may(&world), "it was what the image meant when it was last asked for");
    world.package.spec.package = "registry.example.org/p:v2".to_owned();
    assert!(!may(&world), "of another image nobody knows");
    world.package.spec.package_pull_policy = Some("Never".to_owned());
    assert!(may(&world), "the registry is never asked");
}
