//! Plans: what an install or update would change is told before anything does, to somebody who may
//! only read; and what then happens is what was told.

use super::Scenario;
use super::stage::Stage;
use crate::support::{Ran, until};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

/// One after the other: a plan tells of everything that is going to happen, and what others have
/// just asked for would be part of it.
pub(super) const ALL: &[Scenario] = &[("plans", |stage| {
    an_install_is_told_before_it_happens(stage);
    an_update_is_told_before_it_happens(stage);
    a_plan_that_cannot_be_says_why(stage);
    a_plan_can_be_checked_by_the_server(stage);
    h6_a_plan_knows_how_the_manager_is_set_up(stage);
})];

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A definition with these versions, each with these fields of its spec.
fn definition(group: &str, versions: &[(&str, &[&str])]) -> Json {
    let versions: Vec<Json> = versions
        .iter()
        .enumerate()
        .map(|(at, (name, fields))| {
            let fields: Json =
                fields.iter().map(|one| ((*one).to_owned(), json!({"type": "string"}))).collect();
            let spec = json!({"type": "object", "properties": fields});
            json!({
                "name": name, "served": true, "storage": at == 0,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            })
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group, "scope": "Cluster", "versions": versions,
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        },
    })
}

/// What a package asks for beyond its own kinds.
fn asking(verbs: &[&str]) -> Json {
    let request = json!({"apiGroups": ["example.org"], "resources": ["boats"], "verbs": verbs});
    json!({"controller": {"permissionRequests": [request]}})
}

/// Lets packages ask for that.
fn allow(stage: &Stage) {
    let boats = json!({"apiGroups": ["example.org"], "resources": ["boats"], "verbs": ["*"]});
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "allowed-permissions"}, "rules": [boats],
    });
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/allowed-permissions\
                ?fieldManager=test&force=true";
    stage.change("PATCH", path, "application/apply-patch+yaml", &role);
}

fn needing(reference: &str, range: &str) -> Json {
    let (repository, _) = reference.rsplit_once(':').unwrap();
    json!({"dependsOn": [{"provider": repository, "version": range}]})
}

/// What `apron plan` says to somebody who may only read.
fn plan(stage: &Stage, words: &[&str]) -> Ran {
    // The manager was told of another role for permissions than the usual one, and says so.
    let words: Vec<&str> = ["plan"].iter().chain(words).copied().collect();
    stage.read_only(&words)
}

/// Text with the registry's address and the digests in names taken out.
fn plain(stage: &Stage, ran: &Ran) -> String {
    let text = ran.all().replace(stage.registry.address(), "registry");
    let digests = regex::Regex::new(r"-[0-9a-f]{12}\b|@sha256:[0-9a-f]{64}").unwrap();
    digests.replace_all(&text, "").into_owned()
}

fn an_install_is_told_before_it_happens(stage: &Stage) {
    allow(stage);
    let objects = [definition("foretold.example.org", &[("v1", &["size"])])];
    let low = stage.push_package("Provider", "foretold", "v1.0.0", &asking(&["get"]), &objects);
    let top = stage.push_package(
        "Configuration",
        "foretelling",
        "v1.0.0",
        &needing(&low, ">=v1.0.0"),
        &[],
    );
    let told = plan(stage, &[&top, "--detailed-exitcode"]);
    assert_eq!(told.code, Some(2), "{}", told.all());
    insta::assert_snapshot!("plan_install", plain(stage, &told));
    // Who asks may not do it.
    let refused = stage.read_only(&["install", "configuration", &top]).failed();
    assert!(refused.contains("forbidden"), "{refused}");
    // Nothing happened: there is neither the one nor the other.
    assert!(stage.is_absent(&format!("{}/foretelling", super::stage::packages("Configuration"))));
    assert!(stage.is_absent(&format!("{DEFINITIONS}/things.foretold.example.org")));
    let promised = promised(&plan(stage, &[&top, "-o", "json"]));
    stage.install("Configuration", "foretelling", &json!({"package": top}));
    kept(stage, &promised);
    let told = plan(stage, &[&top, "--detailed-exitcode"]);
    assert_eq!(told.stdout, "nothing would change\n", "{}", told.stderr);
    assert_eq!(told.code, Some(0));
}

fn an_update_is_told_before_it_happens(stage: &Stage) {
    allow(stage);
    let push = |version: &str, verbs: &[&str], versions: &[(&str, &[&str])]| {
        let objects = [definition("moves.example.org", versions)];
        stage.push_package("Provider", "moves", version, &asking(verbs), &objects)
    };
    let old = push("v1.0.0", &["get"], &[("v1", &["size", "colour"])]);
    stage.install("Provider", "moves", &json!({"package": old}));
    stage.installed("Provider", "moves");
    let new = push("v1.1.0", &["get", "delete"], &[("v1", &["size", "weight"]), ("v2", &["size"])]);
    let told = plan(stage, &[&new, "--detailed-exitcode"]);
    assert_eq!(told.code, Some(2), "{}", told.all());
    insta::assert_snapshot!("plan_update", plain(stage, &told));
    // It can also be said by name and version.
    assert_eq!(plan(stage, &["moves", "v1.1.0"]).ok().stdout, told.stdout);
    let promised = promised(&plan(stage, &[&new, "-o", "json"]));
    stage.merge("Provider", "moves", &json!({"spec": {"package": new}}));
    kept(stage, &promised);
}

fn a_plan_that_cannot_be_says_why(stage: &Stage) {
    let low = stage.push_package("Provider", "contested", "v1.0.0", &json!({}), &[]);
    stage.push_package("Provider", "contested", "v2.0.0", &json!({}), &[]);
    let holds =
        stage.push_package("Configuration", "holds", "v1.0.0", &needing(&low, "<v2.0.0"), &[]);
    stage.install("Configuration", "holds", &json!({"package": holds}));
    stage.installed("Configuration", "holds");
    let wants =
        stage.push_package("Configuration", "wants", "v1.0.0", &needing(&low, ">=v2.0.0"), &[]);
    let told = plan(stage, &[&wants, "--detailed-exitcode"]);
    assert_eq!(told.code, Some(1), "{}", told.all());
    insta::assert_snapshot!("plan_conflict", plain(stage, &told));
    let missing = stage.registry.reference("nobody:v1.0.0");
    let told = plan(stage, &["provider", &missing]);
    assert_eq!(told.code, Some(1), "{}", told.all());
    assert!(told.stderr.contains("nobody:v1.0.0"), "{}", told.stderr);
    assert!(told.stderr.contains("hint: "), "{}", told.stderr);
}

fn a_plan_can_be_checked_by_the_server(stage: &Stage) {
    let mut unsound = definition("unsound.example.org", &[("v1", &["size"])]);
    unsound["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] =
        json!([{"rule": "self.nowhere == 1"}]);
    let package = stage.push_unsound("Provider", "unsound", "v1.0.0", &[unsound]);
    plan(stage, &[&package]).ok();
    let told = stage.apron(&["plan", &package, "--check"]).failed();
    let refused = "the API server refuses CustomResourceDefinition things.unsound.example.org";
    assert!(told.contains(refused), "{told}");
    // Even so nothing was written.
    assert!(stage.is_absent(&format!("{}/unsound", super::stage::packages("Provider"))));
    assert!(stage.is_absent(&format!("{DEFINITIONS}/things.unsound.example.org")));
}

/// The plan that was told, with packages that would be there and their objects.
fn promised(ran: &Ran) -> Json {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.all()))
}

/// Waits until everything that was told is so.
fn kept(stage: &Stage, promised: &Json) {
    for package in promised["packages"].as_array().unwrap() {
        let (kind, name) = (package["kind"].as_str().unwrap(), package["name"].as_str().unwrap());
        until(&format!("{kind} {name} asks for what was told"), || {
            (stage.package(kind, name)["spec"]["package"] == package["to"]).then_some(())
        });
        stage.installed(kind, name);
        for object in package["objects"].as_array().unwrap() {
            if object["kind"] == "CustomResourceDefinition" {
                let path = format!("{DEFINITIONS}/{}", object["name"].as_str().unwrap());
                until(&format!("{path} is there"), || stage.ask(&path));
            }
        }
    }
}

/// H6: the manager was told to move also what others keep, and a plan knows. H8: the same for git.
fn h6_a_plan_knows_how_the_manager_is_set_up(stage: &Stage) {
    let kind = "Configuration";
    let [first, second] =
        ["v1.0.0", "v2.0.0"].map(|version| stage.push(kind, "known-low", version));
    stage.install(kind, "known-low", &json!({"package": first}));
    stage.installed(kind, "known-low");
    let repository = stage.registry.reference("known-low");
    let needs = json!({"dependsOn": [{"configuration": repository, "version": ">=v2.0.0"}]});
    let user = stage.push_package(kind, "known-user", "v1.0.0", &needs, &[]);
    let told = plan(stage, &[&user]).ok();
    let upgraded = "configuration known-low v1.0.0 is upgraded to v2.0.0";
    assert!(told.stdout.contains(upgraded), "{}", told.all());
    let place = "ConfigMap crossplane-system/package-manager.crossplane.io";
    let by = format!("by the manager's settings, from {place}");
    assert!(told.stderr.contains(&by), "{}", told.all());
    let images = |words: &[&str]| {
        let words: Vec<&str> = [&["render", "-o", "json"], words].concat();
        let rendered: Json = serde_json::from_str(&stage.read_only(&words).ok().stdout).unwrap();
        let items = rendered["items"].as_array().unwrap().clone();
        assert!(items.iter().all(|one| one["status"].is_null()), "{items:?}");
        let image = |one: &Json| {
            let (name, image) = (&one["metadata"]["name"], &one["spec"]["package"]);
            (name.as_str().unwrap().to_owned(), image.as_str().unwrap().to_owned())
        };
        items.iter().map(image).collect::<BTreeMap<String, String>>()
    };
    let rendered = images(&[&user]);
    assert_eq!((&rendered["known-low"], &rendered["known-user"]), (&second, &user));
    stage.install(kind, "known-user", &json!({"package": user}));
    stage.installed(kind, "known-user");
    assert_eq!(stage.package(kind, "known-low")["spec"]["package"], *second);
    assert_eq!(images(&[]), rendered);
    let pinned = &images(&["--digests"])["known-low"];
    assert!(pinned.starts_with(&format!("{second}@sha256:")), "{pinned}");
    let yaml = stage.read_only(&["render"]).ok().stdout;
    assert!(yaml.contains(&format!("package: {second}")), "{yaml}");
}
