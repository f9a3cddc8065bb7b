//! Install objects as values: what names mean, how objects are, and what goes with what.

use super::*;
use api::meta::PackageKind;
use serde_json::json;

const IMAGE: &str = "registry.example.org/team/stack:v1.0.0";

fn condition(of: &str, status: &str, message: &str) -> Json {
    json!({"type": of, "status": status, "reason": "R", "message": message, "observedGeneration": 1,
        "lastTransitionTime": "2026-01-31T12:00:00Z"})
}

fn object(namespace: &str, name: &str, conditions: &[Json]) -> Json {
    json!({
        "apiVersion": "packages.crossplane.io/v1alpha1",
        "metadata": {"name": name, "namespace": namespace, "uid": format!("u-{namespace}"), "generation": 1},
        "spec": {"source": "registry.example.org", "package": "team/stack:v1.0.0"},
        "status": {"conditions": conditions},
    })
}

fn provider(name: &str, installs: &str) -> (PackageKind, Json, Vec<Json>) {
    let package = json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": "Provider",
        "metadata": {"name": name, "annotations": {ANNOTATION_INSTALLS: installs}},
        "spec": {"package": IMAGE}, "status": {"conditions": [
            condition("Installed", "True", ""), condition("Healthy", "True", ""),
        ]},
    });
    (PackageKind::Provider, package, Vec::new())
}

/// Two install objects of one name that share a Provider, and a package of today.
fn shared(conditions: &[Json]) -> Inventory {
    let today = json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": "Function", "metadata": {"name": "today"},
        "spec": {"package": "registry.example.org/team/today:v1.0.0"},
    });
    let packages = vec![
        provider("team-stack", "one/stack,two/stack"),
        (PackageKind::Function, today, Vec::new()),
    ];
    let objects = ["one", "two"].map(|namespace| object(namespace, "stack", conditions));
    let record = json!({
        "metadata": {"name": "stack", "namespace": "one", "ownerReferences": [{"uid": "u-one"}]},
        "spec": {"title": "Stack", "version": "1.0.0"},
    });
    let inventory = Inventory::of(packages, json!({})).unwrap();
    inventory.with_installs(NAMESPACE_INSTALL, objects.to_vec(), &[record]).unwrap()
}

fn well() -> Vec<Json> {
    vec![condition("Synced", "True", ""), condition("Ready", "True", "")]
}

fn found(inventory: &Inventory, name: &str) -> Result<String, String> {
    let found = inventory.find_object(&Which::parse(name));
    found.map(FoundObject::id).map_err(|failure| failure.message)
}

#[test]
fn names_mean_install_objects_with_or_without_kind_and_namespace() {
    let inventory = shared(&well());
    for (name, expected) in [
        ("one/stack", Ok("packageinstall/one/stack")),
        ("packageinstall/two/stack", Ok("packageinstall/two/stack")),
        ("PackageInstalls/two/stack", Ok("packageinstall/two/stack")),
        ("stack", Err("there are several install objects called stack")),
        (
            "clusterpackageinstall/one/stack",
            Err("clusterpackageinstall/one/stack is not installed"),
        ),
        ("team-stack", Ok("provider/team-stack")),
        ("provider/team-stack", Ok("provider/team-stack")),
        ("today", Ok("function/today")),
        ("nothing", Err("nothing is not installed")),
    ] {
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(found(&inventory, name), expected, "{name}");
    }
    // What is about packages alone means the Provider.
    let provider = inventory.find(&Which::parse("one/stack")).map(Installed::id);
    assert_eq!(provider.unwrap(), "provider/team-stack");
}

#[test]
fn one_name_for_an_object_and_its_provider_means_the_object() {
    let packages = || Inventory::of(vec![provider("stack", "one/stack")], json!({})).unwrap();
    let with = |namespace: &str| {
        packages().with_installs(NAMESPACE_INSTALL, vec![object(namespace, "stack", &[])], &[])
    };
    assert_eq!(found(&with("one").unwrap(), "stack").unwrap(), "packageinstall/one/stack");
    let other = found(&with("other").unwrap(), "stack").unwrap_err();
    assert_eq!(other, "there are several packages called stack");
}

#[test]
fn how_an_object_is_comes_from_its_conditions_and_its_provider() {
    let state = |conditions: &[Json]| shared(conditions).installs[0].state(&shared(conditions));
    assert_eq!(state(&[]), State::New);
    assert_eq!(state(&well()), State::Healthy);
    let creating = [condition("Synced", "True", ""), condition("Ready", "False", "waiting")];
    assert_eq!(state(&creating), State::Installing);
    let refused = [condition("Synced", "False", "it has another scope"), well()[1].clone()];
    assert_eq!(state(&refused), State::Unhealthy);
    let inventory = shared(&refused);
    assert_eq!(inventory.installs[0].complaints(&inventory), ["it has another scope"]);
    assert_eq!(inventory.installs[0].progress(&inventory), "unhealthy: it has another scope");
    // Somebody has asked for something else since.
    let mut past = well();
    past[0]["observedGeneration"] = json!(7);
    assert_eq!(state(&past), State::Installing);
}

#[test]
fn an_object_tells_of_its_provider_and_its_record() {
    let inventory = shared(&well());
    let [one, two] = &inventory.installs[..] else { panic!("two objects") };
    let shown = serde_json::to_value(one.shown(&inventory)).unwrap();
    let said = ["id", "namespace", "version", "package", "provider", "state"].map(|it| &shown[it]);
    assert_eq!(
        json!(said),
        json!(["packageinstall/one/stack", "one", "v1.0.0", IMAGE, "team-stack", "healthy"])
    );
    assert_eq!(one.record_line().unwrap(), "record package one/stack: Stack 1.0.0");
    assert_eq!(two.record_line(), None);
    let why = inventory.explain("provider/team-stack").unwrap();
    assert_eq!(why.made_for, ["packageinstall/one/stack", "packageinstall/two/stack"]);
    let why = inventory.explain("one/stack").unwrap();
    assert_eq!(why.became.as_deref(), Some("provider/team-stack"));
    let roots: Vec<String> = inventory.roots().into_iter().map(Installed::id).collect();
    assert_eq!(roots, ["function/today"]);
}

#[test]
fn a_provider_goes_with_the_last_of_its_objects_and_not_before() {
    let inventory = shared(&well());
    let going = |names: &[&str]| {
        let found: Vec<FoundObject<'_>> =
            names.iter().map(|it| inventory.find_object(&Which::parse(it)).unwrap()).collect();
        let going = inventory.going_with(&found);
        let refused = inventory.refuse_needed(&found, &going).err().map(|failure| failure.message);
        (going.into_iter().map(Installed::id).collect::<Vec<_>>(), refused)
    };
    assert_eq!(going(&["one/stack"]), (vec![], None));
    let both = going(&["one/stack", "two/stack"]);
    assert_eq!(both, (vec!["provider/team-stack".to_owned()], None));
    let alone = going(&["team-stack", "one/stack"]).1.unwrap();
    assert_eq!(alone, "provider/team-stack was made for packageinstall/two/stack");
}

#[test]
fn a_wish_is_the_object_that_a_user_would_write() {
    let wish = InstallWish {
        kind: CLUSTER_INSTALL,
        namespace: "default".to_owned(),
        name: "gcp".to_owned(),
        source: Some("registry.crossplane.io".to_owned()),
        package: "crossplane/provider-gcp:v0.1.0".to_owned(),
        pull_secrets: vec!["private".to_owned()],
        pull_policy: Some("Always".to_owned()),
    };
    let expected = json!({
        "apiVersion": "packages.crossplane.io/v1alpha1", "kind": "ClusterPackageInstall",
        "metadata": {"name": "gcp", "namespace": "default"},
        "spec": {
            "source": "registry.crossplane.io", "package": "crossplane/provider-gcp:v0.1.0",
            "imagePullSecrets": [{"name": "private"}], "imagePullPolicy": "Always",
        },
    });
    assert_eq!(wish.object("packages.crossplane.io"), expected);
    let image = wish.image("index.docker.io").unwrap();
    assert_eq!(image.as_written(), "registry.crossplane.io/crossplane/provider-gcp:v0.1.0");
}
