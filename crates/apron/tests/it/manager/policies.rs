//! What the guide and the design promise about pull policies, activation, history and ends, cell by
//! cell: the table of pull policies, revisions that wait, revisions that are let go, packages that
//! are deleted, and a cache that is lost.

use super::Scenario;
use super::dependencies::push;
use super::revisions::{crd, healthy, name, owned, path, unhealthy};
use super::runtimes::{core, deployments, role};
use super::signer::digest;
use super::stage::{Stage, condition, packages};
use crate::support::until;
use serde_json::{Value as Json, json};

pub(super) const ALL: &[Scenario] = &[
    ("a version tag is followed by Always", a_version_tag_is_followed_by_always),
    ("h6 a tag that was pushed again", h6_a_tag_that_was_pushed_again_is_asked_for_again),
    ("Never fetches nothing", never_fetches_nothing),
    ("a channel with manual activation", a_channel_with_manual_activation),
    ("activation while nothing can be fetched", activation_while_nothing_can_be_fetched),
    ("a history of three", a_history_of_three),
    ("an active revision out of the history", an_active_revision_out_of_the_history),
    ("a waiting revision owns what is there", a_waiting_revision_owns_what_is_there),
    ("a deleted revision", a_deleted_revision),
    ("a package goes with all it brought", a_package_goes_with_all_it_brought),
    ("what runs comes back", what_runs_comes_back),
    ("pull secrets go no further", pull_secrets_go_no_further),
    ("two configurations, one composition", two_configurations_one_composition),
    ("a restored package knows its revisions", a_restored_package_knows_its_revisions),
];

const PROVIDER: &str = "Provider";
const CONFIGURATION: &str = "Configuration";

fn delete(stage: &Stage, path: &str) {
    stage.change("DELETE", path, "application/json", &json!({}));
}

#[track_caller]
fn gone(stage: &Stage, path: &str) {
    until(&format!("{path} is gone"), || stage.is_absent(path).then_some(()));
}

/// Waits until the manager has looked at a package after a change.
#[track_caller]
fn looked_at(stage: &Stage, kind: &str, package: &str, changed: &Json) {
    until(&format!("{kind} {package} was looked at"), || {
        let seen = condition(&stage.package(kind, package), "Installed")?;
        (seen["observedGeneration"] == changed["metadata"]["generation"]).then_some(())
    });
}

fn activate(stage: &Stage, kind: &str, revision: &str) {
    let active = json!({"spec": {"desiredState": "Active"}});
    stage.merge(&format!("{kind}Revision"), revision, &active);
}

/// New content for the same version is an upgrade under `Always`, and nothing otherwise.
fn a_version_tag_is_followed_by_always(stage: &Stage) {
    let tags =
        ["moved", "moved-kept"].map(|one| stage.registry.reference(&format!("{one}:v1.3.0")));
    let needed = stage.registry.reference("moved-needed:v1.3.0");
    for tag in tags.iter().chain([&needed]) {
        stage.push_as(CONFIGURATION, "moved", "v1.3.0", tag);
    }
    let needs = [("configuration", "moved-needed", "v1.3.0")];
    let needs = push(stage, CONFIGURATION, "needs-moved", "v1.0.0", &needs);
    stage.install(CONFIGURATION, "needs-moved", &json!({"package": needs}));
    stage.states(CONFIGURATION, "moved-needed", &[(1, "Active")]);
    let spec = json!({"package": tags[0], "packagePullPolicy": "Always"});
    stage.install(CONFIGURATION, "moved", &spec);
    stage.install(CONFIGURATION, "moved-kept", &json!({"package": tags[1]}));
    for package in ["moved", "moved-kept"] {
        stage.states(CONFIGURATION, package, &[(1, "Active")]);
    }
    for tag in tags.iter().chain([&needed]) {
        stage.push_as(CONFIGURATION, "moved", "v1.3.1", tag);
    }
    // Nobody does anything; it is asked for every minute.
    stage.states(CONFIGURATION, "moved", &[(1, "Inactive"), (2, "Active")]);
    // What was installed for somebody else is not asked for again, either.
    for kept in ["moved-kept", "moved-needed"] {
        let change = json!({"spec": {"revisionHistoryLimit": 7}});
        let changed = stage.merge(CONFIGURATION, kept, &change);
        looked_at(stage, CONFIGURATION, kept, &changed);
        stage.states(CONFIGURATION, kept, &[(1, "Active")]);
    }
}

/// H6: what a tag meant to a package that is gone is nothing to the next one: it is installed as a
/// plan says.
fn h6_a_tag_that_was_pushed_again_is_asked_for_again(stage: &Stage) {
    let tag = stage.registry.reference("edgy:edge");
    let made_of = |version: &str| {
        stage.push_as(CONFIGURATION, "edgy", version, &tag);
        digest(stage, &tag).hex()[..12].to_owned()
    };
    let first = made_of("v1.0.0");
    stage.install(CONFIGURATION, "edgy", &json!({"package": tag}));
    stage.installed(CONFIGURATION, "edgy");
    assert!(stage.revisions(CONFIGURATION, "edgy")[0].2.ends_with(&first));
    let second = made_of("v1.1.0");
    assert_ne!(first, second);
    // To the package that has it, it means what it meant, whatever another one finds out.
    stage.install(CONFIGURATION, "edgy-too", &json!({"package": tag}));
    let other = until("another one is told what it means now", || {
        stage.revisions(CONFIGURATION, "edgy-too").pop()
    });
    assert!(other.2.ends_with(&second), "{other:?}");
    let change = json!({"spec": {"revisionHistoryLimit": 7}});
    let changed = stage.merge(CONFIGURATION, "edgy", &change);
    looked_at(stage, CONFIGURATION, "edgy", &changed);
    stage.states(CONFIGURATION, "edgy", &[(1, "Active")]);
    for package in ["edgy", "edgy-too"] {
        let path = format!("{}/{package}", packages(CONFIGURATION));
        delete(stage, &path);
        until(&format!("{package} is gone"), || {
            let is_gone = stage.is_absent(&path);
            (is_gone && stage.revisions(CONFIGURATION, package).is_empty()).then_some(())
        });
    }
    stage.install(CONFIGURATION, "edgy", &json!({"package": tag}));
    stage.installed(CONFIGURATION, "edgy");
    assert!(stage.revisions(CONFIGURATION, "edgy")[0].2.ends_with(&second));
}

/// What is there can be activated, whatever the package asks for meanwhile.
fn activation_while_nothing_can_be_fetched(stage: &Stage) {
    let image = stage.push(CONFIGURATION, "offline", "v1.0.0");
    let spec = json!({"package": image, "revisionActivationPolicy": "Manual"});
    stage.install(CONFIGURATION, "offline", &spec);
    stage.states(CONFIGURATION, "offline", &[(1, "Inactive")]);
    activate(stage, CONFIGURATION, &stage.revisions(CONFIGURATION, "offline")[0].2);
    stage.condition(CONFIGURATION, "offline", "Installed", "True", "ActivePackageRevision");
    let image = stage.push(CONFIGURATION, "offline", "v1.1.0");
    stage.merge(CONFIGURATION, "offline", &json!({"spec": {"package": image}}));
    stage.states(CONFIGURATION, "offline", &[(2, "Active"), (3, "Inactive")]);
    let mistyped = stage.registry.reference("offline:v1.2.0");
    stage.merge(CONFIGURATION, "offline", &json!({"spec": {"package": mistyped}}));
    stage.condition(CONFIGURATION, "offline", "Installed", "False", "UnpackingPackage");
    activate(stage, CONFIGURATION, &stage.revisions(CONFIGURATION, "offline")[1].2);
    stage.states(CONFIGURATION, "offline", &[(2, "Inactive"), (4, "Active")]);
    activate(stage, CONFIGURATION, &stage.revisions(CONFIGURATION, "offline")[0].2);
    stage.states(CONFIGURATION, "offline", &[(4, "Inactive"), (5, "Active")]);
}

/// Whatever the image is called by, the registry is not asked; once it is in the cache, it is used.
fn never_fetches_nothing(stage: &Stage) {
    let image = |package: &str| {
        let version = stage.push(CONFIGURATION, package, "v1.3.0");
        match package {
            "never-version" => version,
            "never-channel" => {
                let channel = stage.registry.reference("never-channel:latest");
                stage.push_as(CONFIGURATION, package, "v1.3.0", &channel);
                channel
            }
            _ => {
                let exact = format!("{package}@{}", digest(stage, &version));
                stage.registry.reference(&exact)
            }
        }
    };
    for package in ["never-version", "never-channel", "never-digest"] {
        let image = image(package);
        let spec = json!({"package": image, "packagePullPolicy": "Never"});
        stage.install(CONFIGURATION, package, &spec);
        let text = format!(
            "cannot unpack package: {image} is not in the package cache, and its pull policy is \
             Never; load the package into the cache, or use another pull policy"
        );
        stage.says(CONFIGURATION, package, "Installed", &text);
        // Everybody has looked: the lock, too, says that it cannot be had.
        let lock = until("the lock says so", || {
            let lock = stage.ask("/apis/pkg.crossplane.io/v1beta1/locks/lock")?;
            let told = condition(&lock, "Resolved")?["message"].as_str()?.to_owned();
            told.contains(&format!("of {package}: ")).then_some(told)
        });
        assert!(lock.contains(&format!("{image} is not in the package cache")), "{lock}");
        let change = json!({"spec": {"revisionHistoryLimit": 2}});
        looked_at(stage, CONFIGURATION, package, &stage.merge(CONFIGURATION, package, &change));
        stage.says(CONFIGURATION, package, "Installed", &text);
        assert_eq!(stage.revisions(CONFIGURATION, package), []);
        // Somebody loads it: by fetching it once, say.
        let policy = |policy: &str| json!({"spec": {"packagePullPolicy": policy}});
        stage.merge(CONFIGURATION, package, &policy("IfNotPresent"));
        stage.installed(CONFIGURATION, package);
        stage.merge(CONFIGURATION, package, &policy("Never"));
        stage.merge(CONFIGURATION, package, &json!({"spec": {"revisionHistoryLimit": 3}}));
        stage.installed(CONFIGURATION, package);
        stage.states(CONFIGURATION, package, &[(1, "Active")]);
    }
}

/// New content makes a revision by itself, which waits for somebody.
fn a_channel_with_manual_activation(stage: &Stage) {
    let channel = stage.registry.reference("careful:latest");
    stage.push_as(CONFIGURATION, "careful", "v1.0.0", &channel);
    let spec = json!({
        "package": channel, "packagePullPolicy": "Always", "revisionActivationPolicy": "Manual",
    });
    stage.install(CONFIGURATION, "careful", &spec);
    stage.states(CONFIGURATION, "careful", &[(1, "Inactive")]);
    activate(stage, CONFIGURATION, &stage.revisions(CONFIGURATION, "careful")[0].2);
    stage.condition(CONFIGURATION, "careful", "Installed", "True", "ActivePackageRevision");
    stage.push_as(CONFIGURATION, "careful", "v1.1.0", &channel);
    stage.states(CONFIGURATION, "careful", &[(2, "Active"), (3, "Inactive")]);
}

/// The guide's example: three old revisions and an active one, and then another.
fn a_history_of_three(stage: &Stage) {
    let versions = ["v1.0.0", "v2.0.0", "v3.0.0", "v4.0.0", "v5.0.0"];
    let images = versions.map(|one| stage.push(CONFIGURATION, "remembers", one));
    let spec = json!({"package": images[0], "revisionHistoryLimit": 3});
    stage.install(CONFIGURATION, "remembers", &spec);
    let mut expected = vec![(1, "Active")];
    stage.states(CONFIGURATION, "remembers", &expected);
    for (number, image) in (2..).zip(&images[1..]) {
        stage.merge(CONFIGURATION, "remembers", &json!({"spec": {"package": image}}));
        expected.last_mut().unwrap().1 = "Inactive";
        expected.push((number, "Active"));
        expected = expected.split_off(expected.len().saturating_sub(4));
        stage.states(CONFIGURATION, "remembers", &expected);
    }
    assert_eq!(expected, [(2, "Inactive"), (3, "Inactive"), (4, "Inactive"), (5, "Active")]);
    // One that becomes active again is the youngest, and nothing is made or let go for it.
    stage.merge(CONFIGURATION, "remembers", &json!({"spec": {"package": images[1]}}));
    let again = [(3, "Inactive"), (4, "Inactive"), (5, "Inactive"), (6, "Active")];
    stage.states(CONFIGURATION, "remembers", &again);
}

/// Upgraded by hand so often that the active one is the oldest: once another is activated, it goes,
/// and so does what only it brought.
fn an_active_revision_out_of_the_history(stage: &Stage) {
    let group = "elder.example.org";
    let objects = |own: &str| [crd(group, own, &["a"]), crd(group, "shareds", &["a"])];
    let push =
        |version: &str, own: &str| stage.push_objects(PROVIDER, "elder", version, &objects(own));
    let images = [push("v1.0.0", "ones"), push("v2.0.0", "twos"), push("v3.0.0", "threes")];
    let spec = json!({"package": images[0], "revisionActivationPolicy": "Manual"});
    stage.install(PROVIDER, "elder", &spec);
    stage.states(PROVIDER, "elder", &[(1, "Inactive")]);
    let first = stage.revisions(PROVIDER, "elder").remove(0).2;
    activate(stage, PROVIDER, &first);
    owned(stage, &path(&format!("ones.{group}")), &["elder", &format!("{first}*")]);
    stage.merge(PROVIDER, "elder", &json!({"spec": {"package": images[1]}}));
    stage.states(PROVIDER, "elder", &[(2, "Active"), (3, "Inactive")]);
    stage.merge(PROVIDER, "elder", &json!({"spec": {"package": images[2]}}));
    // What is active stays, however old it is.
    stage.states(PROVIDER, "elder", &[(2, "Active"), (3, "Inactive"), (4, "Inactive")]);
    let shared = owned(stage, &path(&format!("shareds.{group}")), &["elder", &format!("{first}*")]);
    activate(stage, PROVIDER, &stage.revisions(PROVIDER, "elder")[2].2);
    stage.states(PROVIDER, "elder", &[(3, "Inactive"), (5, "Active")]);
    gone(stage, &path(&format!("ones.{group}")));
    healthy(stage, PROVIDER, "elder", 5);
    let after = stage.ask(&path(&format!("shareds.{group}"))).expect("what others bring stays");
    assert_eq!(after["metadata"]["uid"], shared["metadata"]["uid"]);
    assert!(stage.is_absent(&path(&format!("twos.{group}"))), "who never was active made nothing");
}

/// A revision that waits is an owner of what is there, and runs nothing.
fn a_waiting_revision_owns_what_is_there(stage: &Stage) {
    let group = "patient.example.org";
    let push = |version: &str, fields: &[&str]| {
        stage.push_objects(PROVIDER, "patient", version, &[crd(group, "ones", fields)])
    };
    let (one, two) = (push("v1.0.0", &["a"]), push("v2.0.0", &["b"]));
    let spec = json!({"package": one, "revisionActivationPolicy": "Manual"});
    stage.install(PROVIDER, "patient", &spec);
    stage.states(PROVIDER, "patient", &[(1, "Inactive")]);
    stage.condition(PROVIDER, "patient", "Installed", "False", "InactivePackageRevision");
    stage.condition(PROVIDER, "patient", "Healthy", "True", "HealthyPackageRevision");
    let first = stage.revisions(PROVIDER, "patient").remove(0).2;
    activate(stage, PROVIDER, &first);
    stage.installed(PROVIDER, "patient");
    stage.merge(PROVIDER, "patient", &json!({"spec": {"package": two}}));
    stage.states(PROVIDER, "patient", &[(2, "Active"), (3, "Inactive")]);
    let second = name(&healthy(stage, PROVIDER, "patient", 3));
    let definition = path(&format!("ones.{group}"));
    let object = owned(stage, &definition, &["patient", &format!("{first}*"), &second]);
    let fields = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    assert!(object.pointer(fields).unwrap()["b"].is_null(), "nothing of it is installed");
    assert!(stage.ask(&deployments(&first)).is_some());
    assert!(stage.is_absent(&deployments(&second)));
    assert!(stage.is_absent(&core("serviceaccounts", &second)));
    assert!(stage.is_absent(&role(&second)));
    // Until somebody activates it.
    activate(stage, PROVIDER, &second);
    owned(stage, &definition, &["patient", &first, &format!("{second}*")]);
    stage.installed(PROVIDER, "patient");
    assert_eq!(stage.package(PROVIDER, "patient")["status"]["currentRevision"], second);
}

/// Objects that only it owned go with an inactive revision; an active one is made again.
fn a_deleted_revision(stage: &Stage) {
    let group = "erased.example.org";
    let push = |version: &str, own: &str| {
        let objects = [crd(group, own, &["a"]), crd(group, "boths", &["a"])];
        stage.push_objects(PROVIDER, "erased", version, &objects)
    };
    let (one, two) = (push("v1.0.0", "olds"), push("v2.0.0", "news"));
    stage.install(PROVIDER, "erased", &json!({"package": one}));
    let first = name(&healthy(stage, PROVIDER, "erased", 1));
    stage.merge(PROVIDER, "erased", &json!({"spec": {"package": two}}));
    let second = healthy(stage, PROVIDER, "erased", 2);
    owned(stage, &path(&format!("olds.{group}")), &[&first]);
    delete(stage, &format!("{}/{first}", packages("ProviderRevision")));
    gone(stage, &path(&format!("olds.{group}")));
    let both = format!("{}*", name(&second));
    owned(stage, &path(&format!("boths.{group}")), &["erased", &both]);
    delete(stage, &format!("{}/{}", packages("ProviderRevision"), name(&second)));
    until("it is made again", || {
        let again = stage.package("ProviderRevision", &name(&second));
        let uid = &again["metadata"]["uid"];
        (!uid.is_null() && *uid != second["metadata"]["uid"]).then_some(())
    });
    stage.installed(PROVIDER, "erased");
    owned(stage, &path(&format!("boths.{group}")), &["erased", &both]);
    owned(stage, &path(&format!("news.{group}")), &["erased", &both]);
}

fn a_package_goes_with_all_it_brought(stage: &Stage) {
    let group = "leaves.example.org";
    let push = |version: &str, fields: &[&str]| {
        stage.push_objects(PROVIDER, "leaves", version, &[crd(group, "ones", fields)])
    };
    let (one, two) = (push("v1.0.0", &["a"]), push("v2.0.0", &["b"]));
    stage.install(PROVIDER, "leaves", &json!({"package": one}));
    stage.installed(PROVIDER, "leaves");
    stage.merge(PROVIDER, "leaves", &json!({"spec": {"package": two}}));
    stage.states(PROVIDER, "leaves", &[(1, "Inactive"), (2, "Active")]);
    stage.installed(PROVIDER, "leaves");
    let revisions = stage.revisions(PROVIDER, "leaves");
    let active = &revisions[1].2;
    until("its role is there", || stage.ask(&role(active)));
    delete(stage, &format!("{}/leaves", packages(PROVIDER)));
    for (_, _, revision) in &revisions {
        gone(stage, &format!("{}/{revision}", packages("ProviderRevision")));
    }
    for path in [
        format!("{}/leaves", packages(PROVIDER)),
        path(&format!("ones.{group}")),
        deployments(active),
        core("serviceaccounts", active),
        core("services", "leaves"),
        core("secrets", "leaves-tls-server"),
        role(active),
    ] {
        gone(stage, &path);
    }
    until("the lock has forgotten it", || {
        let lock = stage.ask("/apis/pkg.crossplane.io/v1beta1/locks/lock")?;
        (!lock.to_string().contains("leaves")).then_some(())
    });
}

fn what_runs_comes_back(stage: &Stage) {
    let objects = [crd("reborn.example.org", "ones", &["a"])];
    let package = stage.push_objects(PROVIDER, "reborn", "v1.0.0", &objects);
    stage.install(PROVIDER, "reborn", &json!({"package": package}));
    stage.installed(PROVIDER, "reborn");
    let revision = stage.revisions(PROVIDER, "reborn").remove(0).2;
    until("its role is there", || stage.ask(&role(&revision)));
    for path in [
        deployments(&revision),
        core("serviceaccounts", &revision),
        core("services", "reborn"),
        role(&revision),
    ] {
        let before = stage.ask(&path).unwrap()["metadata"]["uid"].clone();
        delete(stage, &path);
        until(&format!("{path} is made again"), || {
            (stage.ask(&path)?["metadata"]["uid"] != before).then_some(())
        });
    }
    stage.installed(PROVIDER, "reborn");
}

/// They are for the package and for its controller, not for what it needs.
fn pull_secrets_go_no_further(stage: &Stage) {
    stage.secret("opens", ".dockerconfigjson", "{\"auths\": {}}");
    let needed = stage.registry.reference("needed-openly");
    stage.push(PROVIDER, "needed-openly", "v1.0.0");
    let spec = json!({"dependsOn": [{"provider": needed, "version": ">=v1.0.0"}]});
    let package = stage.push_package(PROVIDER, "opened", "v1.0.0", &spec, &[]);
    let secrets = json!([{"name": "opens"}]);
    stage.install(PROVIDER, "opened", &json!({"package": package, "packagePullSecrets": secrets}));
    stage.installed(PROVIDER, "opened");
    let revision = stage.revisions(PROVIDER, "opened").remove(0).2;
    let pod = &stage.ask(&deployments(&revision)).unwrap()["spec"]["template"]["spec"];
    assert_eq!(pod["imagePullSecrets"], secrets);
    stage.installed(PROVIDER, "needed-openly");
    let needed = stage.package(PROVIDER, "needed-openly");
    assert!(needed["spec"]["packagePullSecrets"].is_null(), "{needed}");
    let revision = stage.revisions(PROVIDER, "needed-openly").remove(0).2;
    let pod = &stage.ask(&deployments(&revision)).unwrap()["spec"]["template"]["spec"];
    assert!(pod["imagePullSecrets"].is_null(), "{pod}");
}

/// What a configuration brings is its own alone.
fn two_configurations_one_composition(stage: &Stage) {
    let composition = |kind: &str| {
        json!({
            "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
            "metadata": {"name": "contested"},
            "spec": {
                "compositeTypeRef": {"apiVersion": "contested.example.org/v1", "kind": kind},
                "mode": "Pipeline", "pipeline": [],
            },
        })
    };
    let push = |package: &str, kind: &str| {
        stage.push_objects(CONFIGURATION, package, "v1.0.0", &[composition(kind)])
    };
    let (mine, yours) = (push("mine", "XMine"), push("yours", "XYours"));
    stage.install(CONFIGURATION, "mine", &json!({"package": mine}));
    let revision = name(&healthy(stage, CONFIGURATION, "mine", 1));
    // One that waits to be activated does not become an owner of what is another's.
    let spec = json!({"package": push("hopes", "XHopes"), "revisionActivationPolicy": "Manual"});
    stage.install(CONFIGURATION, "hopes", &spec);
    healthy(stage, CONFIGURATION, "hopes", 1);
    stage.install(CONFIGURATION, "yours", &json!({"package": yours}));
    let said = unhealthy(stage, CONFIGURATION, "yours", "contested");
    assert!(said.contains("mine") && said.contains("yours"), "both are named: {said}");
    let at = "/apis/apiextensions.crossplane.io/v1/compositions/contested";
    let object = owned(stage, at, &["mine", &format!("{revision}*")]);
    assert_eq!(object["spec"]["compositeTypeRef"]["kind"], "XMine");
    let lock = stage.ask("/apis/pkg.crossplane.io/v1beta1/locks/lock").unwrap();
    assert_eq!(lock["compositions"]["contested"], "Configuration/mine");
    // Until the other cedes it.
    delete(stage, &format!("{}/mine", packages(CONFIGURATION)));
    let revision = name(&healthy(stage, CONFIGURATION, "yours", 1));
    let object = owned(stage, at, &["yours", &format!("{revision}*")]);
    assert_eq!(object["spec"]["compositeTypeRef"]["kind"], "XYours");
}

/// After a restore the package has another uid than its revisions say.
fn a_restored_package_knows_its_revisions(stage: &Stage) {
    let package = stage.push(CONFIGURATION, "moved-house", "v1.0.0");
    stage.install(CONFIGURATION, "moved-house", &json!({"package": package}));
    stage.installed(CONFIGURATION, "moved-house");
    let revision = stage.revisions(CONFIGURATION, "moved-house").remove(0).2;
    let at = format!("{}/{revision}", packages("ConfigurationRevision"));
    let before = stage.ask(&at).unwrap();
    // Somebody else keeps it, so that the garbage collector does not take it for an orphan.
    let keeper = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "keeper"}});
    let keeper = stage.change("POST", "/api/v1/namespaces", "application/json", &keeper);
    let mut owners = before["metadata"]["ownerReferences"].as_array().unwrap().clone();
    owners[0]["uid"] = json!("00000000-0000-0000-0000-000000000000");
    owners.push(json!({"apiVersion": "v1", "kind": "Namespace", "name": "keeper",
        "uid": keeper["metadata"]["uid"]}));
    let patch = json!({"metadata": {"ownerReferences": owners}});
    stage.change("PATCH", &at, "application/merge-patch+json", &patch);
    let uid = stage.package(CONFIGURATION, "moved-house")["metadata"]["uid"].clone();
    until("its revision knows it again", || {
        let revision = stage.ask(&at)?;
        assert_eq!(revision["metadata"]["uid"], before["metadata"]["uid"], "it is the same");
        let owners = revision["metadata"]["ownerReferences"].as_array()?;
        let owner = owners.iter().find(|one| one["name"] == "moved-house")?;
        (owner["uid"] == uid && owner["controller"] == true).then_some(())
    });
    stage.installed(CONFIGURATION, "moved-house");
}

/// A tag may mean something else by then, which is an upgrade; a digest is fetched again.
pub(super) fn a_cache_is_lost(stage: &mut Stage) {
    let tags = ["lost-version:v1.3.0", "lost-channel:latest", "lost-digest:v1.3.0"];
    let tags = tags.map(|tag| stage.registry.reference(tag));
    let push = |version: &str| {
        for tag in &tags {
            stage.push_as(CONFIGURATION, "lost", version, tag);
        }
    };
    push("v1.3.0");
    let digest = digest(stage, &tags[2]);
    let pinned = stage.registry.reference(&format!("lost-digest@{digest}"));
    let all = [("lost-version", &tags[0]), ("lost-channel", &tags[1]), ("lost-digest", &pinned)];
    for (package, image) in all {
        stage.install(CONFIGURATION, package, &json!({"package": image}));
        stage.installed(CONFIGURATION, package);
    }
    push("v1.3.1");
    stage.restart_after(&[], |stage| fs_err::remove_dir_all(&stage.cache).unwrap());
    for package in ["lost-version", "lost-channel"] {
        stage.states(CONFIGURATION, package, &[(1, "Inactive"), (2, "Active")]);
    }
    let file = stage.cache.join(format!("{}.gz", digest.hex()));
    until("the digest is fetched again", || file.exists().then_some(()));
    stage.installed(CONFIGURATION, "lost-digest");
    stage.states(CONFIGURATION, "lost-digest", &[(1, "Active")]);
}
