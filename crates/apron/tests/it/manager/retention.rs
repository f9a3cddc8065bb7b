//! What lives is kept: objects outlive the versions that brought their definitions, until somebody
//! says that they may go.

use super::Scenario;
use super::revisions::{crd, owned, path, unhealthy};
use super::runtimes::{deployments, role};
use super::stage::{Stage, condition, packages};
use crate::support::until;
use serde_json::{Value as Json, json};

pub(super) const ALL: &[Scenario] = &[
    ("objects keep their definition", objects_keep_their_definition),
    ("definitions are removed when somebody says so", definitions_are_removed_on_command),
    ("a controller outlives its objects", a_controller_outlives_its_objects),
    ("a package comes back to finish", a_package_comes_back_to_finish),
];

/// Makes an object of a kind that a package defined.
fn make(stage: &Stage, group: &str, plural: &str, name: &str) -> Json {
    let collection = format!("/apis/{group}/v1/{plural}");
    until(&format!("{collection} is served"), || stage.ask(&collection));
    let kind = format!("{}{}", plural[..1].to_uppercase(), &plural[1..]);
    let object = json!({
        "apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": name},
    });
    stage.change("POST", &collection, "application/json", &object)
}

/// A provider whose third version has left the history of the first, which alone brought two of
/// three kinds: one has an object, one has none. Gives the object.
fn dropped(stage: &Stage, name: &str) -> Json {
    let group = format!("{name}.example.org");
    let all = ["ones", "twos", "threes"].map(|plural| crd(&group, plural, &["a"]));
    let first = stage.push_objects("Provider", name, "v1.0.0", &all);
    let second = stage.push_objects("Provider", name, "v2.0.0", &all[..1]);
    let third = stage.push_objects("Provider", name, "v3.0.0", &all[..1]);
    stage.install("Provider", name, &json!({"package": first}));
    stage.installed("Provider", name);
    let object = make(stage, &group, "twos", "precious");
    stage.merge("Provider", name, &json!({"spec": {"package": second}}));
    stage.states("Provider", name, &[(1, "Inactive"), (2, "Active")]);
    stage.installed("Provider", name);
    // It is told as soon as it is left behind, and once more before the next step.
    let told = stage.condition("Provider", name, "DefinitionsRetained", "True", "ObjectsExist");
    assert!(told.contains(&format!("twos.{group} (1 object)")), "{told}");
    let status = stage.apron(&["status", name]);
    assert!(status.stdout.contains(&format!("twos.{group} (1 object)")), "{}", status.all());
    let plan = stage.apron(&["plan", name, "v3.0.0"]);
    let stays = format!("twos.{group}: no longer part of the package, stays for its objects");
    assert!(plan.stdout.contains(&stays), "{}", plan.all());
    assert!(plan.stdout.contains(&format!("twos.{group} (1 object)")), "{}", plan.all());
    assert!(plan.stdout.contains(&format!("threes.{group}: goes")), "{}", plan.all());
    let updated = stage.apron(&["update", name, "v3.0.0"]).ok();
    assert!(updated.stderr.contains(&format!("twos.{group} (1 object)")), "{}", updated.all());
    assert_eq!(stage.package("Provider", name)["spec"]["package"], *third);
    stage.states("Provider", name, &[(2, "Inactive"), (3, "Active")]);
    stage.installed("Provider", name);
    // What has no objects goes with the revision that brought it.
    let gone = path(&format!("threes.{group}"));
    until(&format!("{gone} is gone"), || stage.is_absent(&gone).then_some(()));
    owned(stage, &path(&format!("twos.{group}")), &[name]);
    let still = stage.ask(&format!("/apis/{group}/v1/twos/precious")).unwrap();
    assert_eq!(still["metadata"]["uid"], object["metadata"]["uid"]);
    object
}

fn objects_keep_their_definition(stage: &Stage) {
    let object = dropped(stage, "retains");
    let told =
        stage.condition("Provider", "retains", "DefinitionsRetained", "True", "ObjectsExist");
    assert!(told.contains("twos.retains.example.org (1 object)"), "{told}");
    // Nobody else gets it.
    let definition = crd("retains.example.org", "twos", &["a", "b"]);
    let heir = stage.push_objects("Provider", "inherits", "v1.0.0", &[definition]);
    stage.install("Provider", "inherits", &json!({"package": heir}));
    unhealthy(stage, "Provider", "inherits", "belongs to Provider retains");
    // Until it is given up: the object lives on with another package.
    let listed = stage.apron(&["prune", "retains", "--dry-run"]).ok();
    let expected =
        "- CustomResourceDefinition twos.retains.example.org: 1 object\n    Twos precious\n";
    assert_eq!(listed.stdout, expected, "{}", listed.stderr);
    stage.apron(&["prune", "retains", "--release"]).ok();
    stage.installed("Provider", "inherits");
    let (_, _, revision) = stage.revisions("Provider", "inherits").pop().unwrap();
    let owners = [&*format!("{revision}*"), "inherits"];
    owned(stage, &path("twos.retains.example.org"), &owners);
    let still = stage.ask("/apis/retains.example.org/v1/twos/precious").unwrap();
    assert_eq!(still["metadata"]["uid"], object["metadata"]["uid"]);
    until("the package has nothing more to tell", || {
        let package = stage.package("Provider", "retains");
        condition(&package, "DefinitionsRetained").is_none().then_some(())
    });
}

fn definitions_are_removed_on_command(stage: &Stage) {
    dropped(stage, "prunes");
    let refused = stage.apron(&["prune", "prunes"]).failed();
    assert!(refused.contains("1 definition with 1 object"), "{refused}");
    assert!(refused.contains("--delete-objects"), "{refused}");
    assert!(stage.ask("/apis/prunes.example.org/v1/twos/precious").is_some());
    let removed = stage.apron(&["prune", "prunes", "--delete-objects", "-o", "json"]).ok();
    let removed: Json = serde_json::from_str(&removed.stdout).unwrap();
    assert_eq!(removed["isRemoved"], true, "{removed}");
    assert_eq!(removed["definitions"][0]["objects"], 1, "{removed}");
    let definition = path("twos.prunes.example.org");
    until("the definition is gone", || stage.is_absent(&definition).then_some(()));
    until("the package has nothing more to tell", || {
        let package = stage.package("Provider", "prunes");
        condition(&package, "DefinitionsRetained").is_none().then_some(())
    });
    let nothing = stage.apron(&["prune", "prunes"]).ok();
    assert!(nothing.stdout.contains("no definition that it no longer brings"), "{}", nothing.all());
}

const MERGE: &str = "application/merge-patch+json";

/// Makes an object that somebody has to let go of.
fn hold(stage: &Stage, group: &str, name: &str) -> String {
    make(stage, group, "ones", name);
    let object = format!("/apis/{group}/v1/ones/{name}");
    let held = json!({"metadata": {"finalizers": ["example.org/held"]}});
    stage.change("PATCH", &object, MERGE, &held);
    object
}

/// Does what the controller of a kind does at last.
fn let_go(stage: &Stage, object: &str) {
    stage.change("PATCH", object, MERGE, &json!({"metadata": {"finalizers": null}}));
}

/// Installs a provider of two kinds, and gives its revision.
fn provided(stage: &Stage, name: &str) -> (String, String) {
    let group = format!("{name}.example.org");
    let kinds = ["ones", "twos"].map(|plural| crd(&group, plural, &["a"]));
    let package = stage.push_objects("Provider", name, "v1.0.0", &kinds);
    stage.install("Provider", name, &json!({"package": package}));
    stage.installed("Provider", name);
    let (_, _, revision) = stage.revisions("Provider", name).pop().unwrap();
    (package, revision)
}

/// Waits until a revision says that definitions are on their way out, and gives what it says.
fn terminating(stage: &Stage, revision: &str) -> String {
    let path = format!("{}/{revision}", packages("ProviderRevision"));
    until(&format!("{revision} tells of definitions on their way out"), || {
        let told = condition(&stage.ask(&path)?, "RevisionHealthy")?;
        let is_it = told["reason"] == "TerminatingDefinitions";
        is_it.then(|| told["message"].as_str().unwrap_or_default().to_owned())
    })
}

fn a_controller_outlives_its_objects(stage: &Stage) {
    let (_, revision) = provided(stage, "leaves");
    let object = hold(stage, "leaves.example.org", "held");
    let refused = stage.apron(&["uninstall", "leaves"]).failed();
    assert!(refused.contains("1 definition with 1 object would be deleted"), "{refused}");
    assert!(refused.contains("--delete-objects"), "{refused}");
    let listed = stage.apron(&["uninstall", "leaves", "--dry-run"]).ok();
    let expected = "- CustomResourceDefinition ones.leaves.example.org: 1 object\n    \
                    Ones held (goes once example.org/held lets go of it)\n";
    assert!(listed.stdout.contains(expected), "{}", listed.all());
    assert!(stage.package("Provider", "leaves")["metadata"]["deletionTimestamp"].is_null());
    stage.apron(&["uninstall", "leaves", "--delete-objects"]).ok();
    let told = terminating(stage, &revision);
    assert!(told.contains("ones.leaves.example.org (1 object)"), "{told}");
    until("the definition is on its way out", || {
        let going = &stage.ask(&path("ones.leaves.example.org"))?["metadata"]["deletionTimestamp"];
        going.is_string().then_some(())
    });
    // Who can let go of it is still there, and may.
    assert!(stage.ask(&deployments(&revision)).is_some());
    assert!(stage.ask(&role(&revision)).is_some());
    let_go(stage, &object);
    let gone = [path("ones.leaves.example.org"), path("twos.leaves.example.org")];
    let runs = [deployments(&revision), format!("{}/{revision}", packages("ProviderRevision"))];
    for path in gone.iter().chain(&runs) {
        until(&format!("{path} is gone"), || stage.is_absent(path).then_some(()));
    }
}

fn a_package_comes_back_to_finish(stage: &Stage) {
    let (package, revision) = provided(stage, "returns");
    let object = hold(stage, "returns.example.org", "held");
    stage.apron(&["uninstall", "returns", "--delete-objects"]).ok();
    terminating(stage, &revision);
    // Somebody is impatient: the controller is gone, and the object with its finalizer is not.
    let own = format!("{}/{revision}", packages("ProviderRevision"));
    stage.change("PATCH", &own, MERGE, &json!({"metadata": {"finalizers": null}}));
    for path in [&own, &deployments(&revision), &path("twos.returns.example.org")] {
        until(&format!("{path} is gone"), || stage.is_absent(path).then_some(()));
    }
    let stuck = stage.ask(&path("ones.returns.example.org")).unwrap();
    assert!(stuck["metadata"]["deletionTimestamp"].is_string(), "{stuck}");
    stage.install("Provider", "returns", &json!({"package": package}));
    let told = terminating(stage, &revision);
    assert!(told.contains("ones.returns.example.org"), "{told}");
    until("the controller runs", || stage.ask(&deployments(&revision)));
    until("it may let go of the object", || {
        stage.ask(&role(&revision))?.to_string().contains("\"ones\"").then_some(())
    });
    assert!(stage.ask(&path("twos.returns.example.org")).is_some());
    let_go(stage, &object);
    stage.installed("Provider", "returns");
    let anew = stage.ask(&path("ones.returns.example.org")).unwrap();
    assert_ne!(anew["metadata"]["uid"], stuck["metadata"]["uid"]);
}
