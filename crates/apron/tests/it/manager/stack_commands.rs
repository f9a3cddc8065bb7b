//! Packages of the first system by command: what people type about install objects, and what they are told.

use super::Scenario;
use super::stacks::{CRDS, StackSource, ask_for, brought, is_ready, object_path, push_stack};
use super::stage::{Stage, packages};
use crate::support::{Ran, until};
use serde_json::{Value as Json, json};

pub(super) const ALL: &[Scenario] = &[
    ("a stack by command", a_stack_is_planned_installed_looked_at_updated_and_removed),
    ("shared stacks by command", namespaces_that_share_a_stack_are_told_apart),
    ("mistakes about stacks by command", mistakes_about_install_objects_are_told),
];

/// What is told, with the registry's address and the digests in names taken out, and without the lines that
/// say that programs are only simulated and what the Lock has against packages of scenarios beside this one.
fn plain(stage: &Stage, ran: &Ran) -> String {
    let text = ran.all().replace(stage.registry.address(), "registry");
    let digests = regex::Regex::new(r"-[0-9a-f]{12}\b|@sha256:[0-9a-f]{64}").unwrap();
    let text = digests.replace_all(&text, "").into_owned();
    let is_of_others = |line: &str| line.contains("during dependency resolution of");
    let lines = text.lines().filter(|line| !line.contains("imulated") && !is_of_others(line));
    lines.flat_map(|line| [line, "\n"]).collect()
}

fn read(ran: &Ran) -> Json {
    serde_json::from_str(&ran.stdout).unwrap()
}

fn a_stack_is_planned_installed_looked_at_updated_and_removed(stage: &Stage) {
    let app = "title: Ordered\npermissionScope: Cluster\n";
    for tag in ["v1.0.0", "v1.1.0"] {
        push_stack(stage, &StackSource::new("ordered", app), tag);
    }
    let [first, second] =
        ["v1.0.0", "v1.1.0"].map(|tag| stage.registry.reference(&format!("team/ordered:{tag}")));
    let path = object_path("default", "ClusterPackageInstall", "ordered");
    let kinds = path.rsplit_once('/').unwrap().0;
    until("install objects are served", || stage.ask(kinds));
    // Beforehand: the package says by itself which object it needs.
    let told = stage.apron(&["plan", &first, "--detailed-exitcode"]);
    assert_eq!(told.code, Some(2), "{}", told.all());
    insta::assert_snapshot!("stack_plan", plain(stage, &told));
    assert!(stage.is_absent(&path));
    let created = stage.apron(&["install", &first]).ok().stdout;
    assert_eq!(created, "installed clusterpackageinstall default/ordered\n");
    let again = stage.apron(&["install", "clusterpackageinstall", &first]).ok();
    assert!(again.all().contains("is installed already; nothing changed"), "{}", again.all());
    is_ready(stage, &path, "team-ordered");
    let id = "clusterpackageinstall/default/ordered";
    let healthy = stage.apron(&["wait", id]).ok().stdout;
    assert_eq!(healthy, format!("{id} healthy\n"));
    // As it is: the object at the top, its record and its Provider below it.
    insta::assert_snapshot!("stack_status", plain(stage, &stage.apron(&["status", id]).ok()));
    let shown = &read(&stage.apron(&["status", "default/ordered", "-o", "json"]).ok())[0];
    assert_eq!((&shown["id"], &shown["namespace"]), (&json!(id), &json!("default")));
    assert_eq!((&shown["provider"], &shown["isWell"]), (&json!("team-ordered"), &json!(true)));
    assert_eq!(shown["record"]["title"], "Ordered");
    assert!(shown["conditions"].as_array().unwrap().iter().any(|it| it["type"] == "Ready"));
    let whole = stage.apron(&["status"]).all();
    let provider = whole.lines().filter(|line| line.contains("provider team-ordered"));
    assert!(provider.clone().all(|line| line.contains("└─ provider")), "{whole}");
    assert_eq!(provider.count(), 1, "{whole}");
    let listed = read(&stage.apron(&["list", "clusterpackageinstall", "-o", "json"]).ok());
    let listed = listed.as_array().unwrap().iter().find(|one| one["name"] == "ordered").unwrap();
    let said = ["namespace", "kind", "version", "state", "provider", "package"];
    assert_eq!(
        json!(said.map(|field| &listed[field])),
        json!(["default", "ClusterPackageInstall", "v1.0.0", "healthy", "team-ordered", first])
    );
    let names = stage.apron(&["list", "-o", "name"]).ok().stdout;
    let name = "clusterpackageinstall.packages.crossplane.io/ordered";
    assert!(names.lines().any(|line| line == name), "{names}");
    let why = |name: &str| plain(stage, &stage.apron(&["why", name]).ok());
    insta::assert_snapshot!("stack_why", format!("{}{}", why("ordered"), why("team-ordered")));
    // Another version, planned first.
    let told = plain(stage, &stage.apron(&["plan", "ordered", "v1.1.0"]).ok());
    assert!(told.contains("provider team-ordered v1.0.0 is upgraded to v1.1.0"), "{told}");
    assert!(told.contains("because the install object default/ordered asks for it"), "{told}");
    let updated = stage.apron(&["update", "ordered", "v1.1.0"]).ok().stdout;
    assert_eq!(updated, "updated clusterpackageinstall default/ordered from v1.0.0 to v1.1.0\n");
    until("the Provider follows", || {
        (stage.package("Provider", "team-ordered")["spec"]["package"] == *second).then_some(())
    });
    is_ready(stage, &path, "team-ordered");
    removed_with_its_objects(stage, id, &path);
}

/// A package with an object goes only with a word on that.
fn removed_with_its_objects(stage: &Stage, id: &str, path: &str) {
    let things = "/apis/ordered.example.org/v1alpha1/namespaces/default/things";
    until("the kind is served", || stage.ask(things));
    let thing = json!({
        "apiVersion": "ordered.example.org/v1alpha1", "kind": "Thing",
        "metadata": {"name": "lives", "namespace": "default"},
    });
    stage.make(things, &thing);
    let refused = stage.apron(&["uninstall", "provider/team-ordered"]).failed();
    assert!(refused.contains(&format!("provider/team-ordered was made for {id}")), "{refused}");
    let refused = stage.apron(&["uninstall", "ordered"]).failed();
    assert!(refused.contains("1 definition with 1 object would be deleted"), "{refused}");
    let told = plain(stage, &stage.apron(&["uninstall", "ordered", "--dry-run"]).ok());
    assert!(told.contains("would uninstall clusterpackageinstall default/ordered"), "{told}");
    assert!(told.contains("Thing default/lives"), "{told}");
    assert!(stage.ask(path).is_some());
    let rest = brought(stage, "default", "ordered", "team-ordered");
    let gone = stage.apron(&["uninstall", "ordered", "--delete-objects", "--wait", "2m"]).ok();
    assert_eq!(gone.stdout, "uninstalled clusterpackageinstall default/ordered\n");
    let definition = format!("{CRDS}/things.ordered.example.org");
    for path in rest.iter().chain([&definition]) {
        until(&format!("{path} is gone"), || stage.is_absent(path).then_some(()));
    }
}

fn namespaces_that_share_a_stack_are_told_apart(stage: &Stage) {
    let app = "title: Halves\nversion: 1.0.0\npermissionScope: Namespaced\n";
    let package = push_stack(stage, &StackSource::new("halves", app), "v1.0.0");
    let image = stage.registry.reference(&package);
    let namespaces = ["halves-one", "halves-two"];
    for namespace in namespaces {
        let metadata = json!({"name": namespace});
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        stage.make("/api/v1/namespaces", &object);
        let path = object_path(namespace, "PackageInstall", "halves");
        until("install objects are served", || stage.ask(path.rsplit_once('/').unwrap().0));
        let words = ["install", &image, "--install-namespace", namespace];
        let created = stage.apron(&words).ok().stdout;
        assert_eq!(created, format!("installed packageinstall {namespace}/halves\n"));
    }
    let [one, two] = namespaces.map(|it| object_path(it, "PackageInstall", "halves"));
    for path in [&one, &two] {
        is_ready(stage, path, "team-halves");
    }
    let refused = stage.apron(&["status", "halves"]).failed();
    assert!(refused.contains("there are several install objects called halves"), "{refused}");
    assert!(refused.contains("say which: packageinstall/halves-one/halves or "), "{refused}");
    // Nothing says which of them another version should be for.
    stage.apron(&["copy", &image, &stage.registry.reference("team/halves:v1.0.1")]).ok();
    let refused = stage.apron(&["update", "provider/team-halves", "v1.0.1"]).failed();
    let both = "was made for packageinstall/halves-one/halves and packageinstall/halves-two/halves";
    assert!(refused.contains(both), "{refused}");
    let why = stage.apron(&["why", "provider/team-halves"]).ok().stdout;
    for namespace in namespaces {
        assert!(why.contains(&format!("packageinstall/{namespace}/halves asks for it")), "{why}");
    }
    // The definition stays as long as one of both is there, and so do its objects.
    let gone = ["uninstall", "halves-one/halves", "--wait", "2m"];
    assert_eq!(stage.apron(&gone).ok().stdout, "uninstalled packageinstall halves-one/halves\n");
    assert!(stage.is_absent(&one));
    is_ready(stage, &two, "team-halves");
    assert!(stage.ask(&format!("{CRDS}/things.halves.example.org")).is_some());
    stage.apron(&["uninstall", "halves", "--wait", "2m"]).ok();
    let provider = format!("{}/team-halves", packages("Provider"));
    assert!(stage.is_absent(&two) && stage.is_absent(&provider));
}

fn mistakes_about_install_objects_are_told(stage: &Stage) {
    let app = "title: Mistaken\nversion: 1.0.0\npermissionScope: Cluster\n";
    let package = push_stack(stage, &StackSource::new("mistaken", app), "v1.0.0");
    let image = stage.registry.reference(&package);
    let path = ask_for(stage, "ClusterPackageInstall", "default", "mistaken", &package);
    let mut told = String::new();
    for words in [
        &["install", &image, "mistaken"][..],
        &["install", &image, "--manual-activation"],
        &["install", "packageinstall"],
        &["install", &image, "--source", "registry.example.org"],
        &["install", "packageinstall", "a b"],
        &["status", "packageinstall/default/nothing"],
        &["list", "packages"],
        &["logs", "packageinstall/default/nothing"],
    ] {
        let ran = stage.apron(words);
        assert_ne!(ran.code, Some(0), "{}", ran.all());
        let failed = ran.all().replace(stage.registry.address(), "registry");
        let shown = words.join(" ").replace(stage.registry.address(), "registry");
        // Which others there are depends on the other scenarios.
        let lines = failed.lines().filter(|line| !line.contains("these are there"));
        told += &format!("$ apron {shown}\n{}\n\n", lines.collect::<Vec<_>>().join("\n"));
    }
    insta::assert_snapshot!("stack_mistakes", told);
    let today = stage.push("Function", "mistaken-today", "v1.0.0");
    let refused = stage.apron(&["install", &today, "--install-namespace", "default"]).failed();
    assert!(refused.contains("a package of today has no namespace"), "{refused}");
    super::stacks::goes(stage, &path, &brought(stage, "default", "mistaken", "team-mistaken"));
}
