//! What is there already before a package comes.

use super::cluster::Cluster;
use super::{TAG, crd, meta, provider};
use crate::step::Target;
use api::meta::PackageKind;
use insta::assert_snapshot;
use serde_json::{Value as Json, json};

const MARK: &str = "pkg.crossplane.io/brought-by";
const ADOPT: &str = "pkg.crossplane.io/adopt";
const OURS: &str = "provider.pkg.crossplane.io/p";

/// Puts a definition there that a package also brings, with this in its metadata.
fn put(cluster: &mut Cluster, plural: &str, metadata: &Json) {
    let mut object = crd(plural);
    object["spec"]["scope"] = json!("Namespaced");
    object["metadata"]["uid"] = json!("by-hand");
    object["metadata"]["resourceVersion"] = json!("1");
    for (field, value) in metadata.as_object().unwrap() {
        object["metadata"][field] = value.clone();
    }
    let target = Target::of(&object);
    cluster.objects.insert(target, object);
}

fn live<'a>(cluster: &'a Cluster, plural: &str) -> &'a Json {
    let name = format!("{plural}.example.org");
    cluster.objects.iter().find(|(target, _)| target.name == name).unwrap().1
}

fn is_taken(cluster: &Cluster, plural: &str) -> bool {
    let owners = live(cluster, plural)["metadata"]["ownerReferences"].to_string();
    owners.contains("\"controller\":true") && owners.contains("\"name\":\"p\"")
}

fn owner(api_version: &str, kind: &str, name: &str) -> Json {
    json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": "old"})
}

#[test]
fn c2_what_no_package_brought_is_left_alone_and_all_of_it_is_named() {
    let (mut cluster, name) = provider(&["buckets", "keys", "users", "roles", "groups"]);
    for plural in ["buckets", "users", "roles", "groups"] {
        put(&mut cluster, plural, &json!({}));
    }
    let before = cluster.objects.clone();
    let told = cluster.settle(&name);
    assert_eq!(cluster.objects, before, "nothing is written, not even what nobody has");
    assert!(cluster.lock.as_ref().unwrap().custom_resource_definitions.is_none());
    assert_snapshot!(told.lines().last().unwrap(), @"# again in 60 s");
    let condition = told.lines().find(|line| line.starts_with("# cannot")).unwrap();
    assert_snapshot!(condition, @"# cannot establish control of object: CustomResourceDefinition buckets.example.org, CustomResourceDefinition users.example.org, CustomResourceDefinition roles.example.org, CustomResourceDefinition groups.example.org were there already, not brought by a package; to give them to the package, after which they go when that is uninstalled: apron adopt p, or annotate them with pkg.crossplane.io/adopt=provider.pkg.crossplane.io/p");
}

#[test]
fn c2_a_condition_has_room_for_what_it_names() {
    let plurals: Vec<String> = (0..1_000).map(|at| format!("definitions-no-{at}")).collect();
    let plurals: Vec<&str> = plurals.iter().map(String::as_str).collect();
    let (mut cluster, name) = provider(&plurals);
    for plural in plurals {
        put(&mut cluster, plural, &json!({}));
    }
    cluster.settle(&name);
    let status = cluster.revisions[&name].status.clone().unwrap();
    let message = status.conditions.unwrap().remove(0).message.unwrap();
    assert!((20 << 10..32 << 10).contains(&message.len()), "{}", message.len());
    assert!(message.contains(" more were there already"), "{message}");
    assert!(message.contains("apron adopt p"), "{message}");
}

#[test]
fn c2_what_is_there_is_taken_only_from_those_who_brought_it_or_gave_it() {
    let record = |manager: &str, operation: &str, fields: &Json| json!({"managedFields": [{"manager": manager, "operation": operation, "fieldsV1": fields}]});
    let annotated = |key: &str, value: &str| json!({"annotations": {key: value}});
    let owned = |one: Json| json!({"ownerReferences": [one]});
    let content = json!({"f:spec": {"f:group": {}}});
    let api = "pkg.crossplane.io/v1";
    for (what, metadata, expected) in [
        ("nothing is known of it", json!({}), false),
        ("labels that anybody gives", json!({"labels": {"app": "p"}}), false),
        ("an inactive revision that is gone", owned(owner(api, "ProviderRevision", "p-0")), true),
        (
            "a revision of another manager",
            owned(owner("pkg.x.org/v1", "ProviderRevision", "p")),
            false,
        ),
        ("something else owns it", owned(owner("v1", "ConfigMap", "mine")), false),
        ("our mark", annotated(MARK, OURS), true),
        (
            "the mark of a package that is gone",
            annotated(MARK, "provider.pkg.crossplane.io/q"),
            true,
        ),
        (
            "the mark of one that is there",
            annotated(MARK, "provider.pkg.crossplane.io/there"),
            false,
        ),
        ("the mark of another manager", annotated(MARK, "provider.pkg.x.org/p"), false),
        ("we wrote it before there were marks", record("apron", "Update", &content), true),
        ("we applied it for ourselves", record("apron", "Apply", &content), false),
        ("upstream's core wrote it", record("crossplane", "Update", &content), true),
        ("kubectl wrote it", record("kubectl-create", "Update", &content), false),
        ("an administrator gave it to us", annotated(ADOPT, OURS), true),
        ("to another package", annotated(ADOPT, "provider.pkg.crossplane.io/q"), false),
        (
            "to a configuration of the name",
            annotated(ADOPT, "configuration.pkg.crossplane.io/p"),
            false,
        ),
    ] {
        let (mut cluster, name) = provider(&["buckets"]);
        cluster.packages.insert("Provider/there".to_owned());
        put(&mut cluster, "buckets", &metadata);
        cluster.settle(&name);
        assert_eq!(is_taken(&cluster, "buckets"), expected, "{what}");
        if expected {
            let annotations = &live(&cluster, "buckets")["metadata"]["annotations"];
            assert_eq!(annotations[MARK], OURS, "{what}");
            assert!(live(&cluster, "buckets")["spec"]["scope"].is_null(), "it says the package's");
        }
        assert_eq!(cluster.settle(&name), "", "{what}: it is settled");
    }
}

#[test]
fn c2_an_administrator_gives_a_package_or_all_packages_what_is_there() {
    for of_manager in [true, false] {
        let (mut cluster, name) = provider(&["buckets", "keys"]);
        put(&mut cluster, "buckets", &json!({}));
        cluster.settle(&name);
        assert!(!is_taken(&cluster, "buckets"));
        cluster.adopts_existing = !of_manager;
        cluster.settings.adopts_existing = of_manager;
        cluster.settle(&name);
        assert!(is_taken(&cluster, "buckets") && is_taken(&cluster, "keys"));
    }
}

#[test]
fn c2_what_another_controls_is_not_given_by_an_annotation() {
    let (mut cluster, name) = provider(&["buckets"]);
    let mut controller = owner("example.org/v1", "Tool", "mine");
    controller["controller"] = json!(true);
    let metadata = json!({"annotations": {ADOPT: OURS}, "ownerReferences": [controller]});
    put(&mut cluster, "buckets", &metadata);
    cluster.adopts_existing = true;
    let told = cluster.settle(&name);
    assert!(told.contains("belongs to Tool mine"), "{told}");
    assert!(!is_taken(&cluster, "buckets"));
}

/// Managers of two groups may each have a provider of one name.
#[test]
fn a_package_of_another_group_is_named_with_its_group() {
    let (mut cluster, name) = provider(&["buckets"]);
    let package = owner("pkg.other.example.org/v1", "Provider", "p");
    let mut revision = owner("pkg.other.example.org/v1", "ProviderRevision", "p-0123456789ab");
    revision["controller"] = json!(true);
    put(&mut cluster, "buckets", &json!({"ownerReferences": [package, revision]}));
    let told = cluster.settle(&name);
    assert!(told.contains("belongs to Provider p of pkg.other.example.org, so"), "{told}");
}

#[test]
fn c2_a_package_cannot_give_itself_anything() {
    let mut forged = crd("buckets");
    forged["metadata"]["annotations"] =
        json!({MARK: "provider.pkg.crossplane.io/q", ADOPT: "provider.pkg.crossplane.io/q"});
    let mut cluster = Cluster::new();
    let mut says = meta("Provider", &json!({}));
    says["metadata"]["annotations"] = json!({"pkg.crossplane.io/adopt-existing": "true"});
    cluster.publish(TAG, &[says, forged, crd("keys")]);
    let name = cluster.revise(PackageKind::Provider, "p", TAG, "Active");
    put(&mut cluster, "keys", &json!({}));
    cluster.settle(&name);
    assert!(!is_taken(&cluster, "keys"), "metadata of a package gives nothing away");
    let revision = &cluster.revisions[&name].metadata;
    assert!(revision.annotations.is_empty(), "{:?}", revision.annotations);
    cluster.objects.clear();
    cluster.settle(&name);
    let annotations = &live(&cluster, "buckets")["metadata"]["annotations"];
    assert_eq!(
        *annotations,
        json!({MARK: OURS}),
        "objects say whose they are, not whose they like"
    );
}

#[test]
fn c2_an_inactive_revision_does_not_become_an_owner_of_what_is_others() {
    for metadata in [json!({}), json!({"ownerReferences": [owner("v1", "ConfigMap", "mine")]})] {
        let (mut cluster, name) = provider(&["buckets"]);
        cluster.state(&name, "Inactive");
        put(&mut cluster, "buckets", &metadata);
        let before = cluster.objects.clone();
        cluster.settle(&name);
        assert_eq!(cluster.objects, before);
        // Nor does it count as the package's once the revision is active.
        cluster.state(&name, "Active");
        cluster.settle(&name);
        assert!(!is_taken(&cluster, "buckets"));
    }
}

#[test]
fn c2_after_an_orphaning_delete_everything_is_taken_back() {
    let (mut cluster, first) = provider(&["buckets", "keys"]);
    cluster.settle(&first);
    // Everybody who owned something is gone, and no owner is left.
    cluster.revisions.clear();
    cluster.packages.clear();
    cluster.lock.as_mut().unwrap().custom_resource_definitions = None;
    for object in cluster.objects.values_mut() {
        object["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    }
    let again = cluster.revise(PackageKind::Provider, "p", TAG, "Active");
    cluster.settle(&again);
    assert!(is_taken(&cluster, "buckets") && is_taken(&cluster, "keys"));
}
