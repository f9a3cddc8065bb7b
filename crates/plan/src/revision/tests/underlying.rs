//! Definitions of managed and composite resources beside definitions of other owners.

use super::cluster::Cluster;
use super::{TAG, crd, meta};
use crate::rbac::{self, Roles};
use crate::step::Target;
use api::meta::PackageKind;
use serde_json::{Value as Json, json};

const MANAGED: (&str, &str) = ("apiextensions.crossplane.io/v1alpha1", "ManagedResourceDefinition");
const ADOPT: &str = "pkg.crossplane.io/adopt";
const MARK: &str = "pkg.crossplane.io/brought-by";
const OURS: &str = "provider.pkg.crossplane.io/p";

/// How a package comes to bring a definition of managed resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Written,
    Converted,
}

const WAYS: [Way; 2] = [Way::Written, Way::Converted];

fn managed(plural: &str) -> Json {
    let mut definition = crd(plural);
    (definition["apiVersion"], definition["kind"]) = (json!(MANAGED.0), json!(MANAGED.1));
    definition
}

/// A provider that brings the kind `issuers` and a webhook about it.
fn provider(way: Way) -> (Cluster, String) {
    let mut cluster = Cluster::new();
    let definition = match way {
        Way::Written => managed("issuers"),
        Way::Converted => crd("issuers"),
    };
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "hook"}, "webhooks": [{"name": "h.example.org", "rules": [{
            "apiGroups": ["example.org"], "resources": ["issuers"], "operations": ["*"],
            "apiVersions": ["*"],
        }]}],
    });
    cluster.settings.defers_definitions = way == Way::Converted;
    cluster.settings.runs_packages = false;
    cluster.publish(TAG, &[meta("Provider", &json!({})), definition, webhook]);
    let name = cluster.revise(PackageKind::Provider, "p", TAG, "Active");
    (cluster, name)
}

/// Puts the definition there that Crossplane would make, with this in its metadata.
fn put(cluster: &mut Cluster, metadata: &Json) {
    let mut object = crd("issuers");
    object["metadata"]["uid"] = json!("by-helm");
    object["metadata"]["resourceVersion"] = json!("1");
    for (field, value) in metadata.as_object().unwrap() {
        object["metadata"][field] = value.clone();
    }
    cluster.objects.insert(Target::of(&object), object);
}

fn find<'a>(cluster: &'a Cluster, kind: &str) -> Option<&'a Json> {
    cluster.objects.iter().find(|(target, _)| target.kind == kind).map(|(_, object)| object)
}

fn rules(cluster: &Cluster, name: &str) -> String {
    let roles = rbac::roles(&rbac::World {
        revision: cluster.revisions[name].clone(),
        requests: Some(Vec::new()),
        ..rbac::World::default()
    });
    let Roles::Roles(roles) = roles else { panic!("nothing is asked for") };
    json!(roles).to_string()
}

#[test]
fn h1_a_managed_definition_does_not_stand_in_for_anothers_kind() {
    for way in WAYS {
        let (mut cluster, name) = provider(way);
        put(&mut cluster, &json!({}));
        let before = cluster.objects.clone();
        let told = cluster.settle(&name);
        assert_eq!(cluster.objects, before, "nothing is written, the webhook included");
        let condition = told.lines().find(|line| line.starts_with("# cannot")).unwrap();
        assert_eq!(
            condition,
            "# cannot establish control of object: CustomResourceDefinition issuers.example.org was \
             there already, not brought by a package; to give it to the package, after which it goes \
             when that is uninstalled: apron adopt p, or annotate it with \
             pkg.crossplane.io/adopt=provider.pkg.crossplane.io/p"
        );
        assert_eq!(rules(&cluster, &name), "[]", "nobody gets rights");
    }
}

#[test]
fn h1_a_definition_under_a_managed_one_is_had_as_any_other() {
    let owner = |api_version: &str, kind: &str, name: &str, controls: bool| {
        json!({"ownerReferences": [{
            "apiVersion": api_version, "kind": kind, "name": name, "uid": "u", "controller": controls,
        }]})
    };
    let annotated = |key: &str, value: &str| json!({"annotations": {key: value}});
    let (ours, core) = ("pkg.crossplane.io/v1", "apiextensions.crossplane.io/v1");
    for (what, metadata, is_had) in [
        ("nothing is known of it", json!({}), false),
        ("Crossplane made it", owner(MANAGED.0, MANAGED.1, "issuers.example.org", true), true),
        ("of another one", owner(MANAGED.0, MANAGED.1, "others.example.org", true), false),
        (
            "it does not control it",
            owner(MANAGED.0, MANAGED.1, "issuers.example.org", false),
            false,
        ),
        ("of a kind called so", owner("x.org/v1", MANAGED.1, "issuers.example.org", true), false),
        (
            "a composite one",
            owner(core, "CompositeResourceDefinition", "issuers.example.org", true),
            false,
        ),
        ("the package brought it", owner(ours, "Provider", "p", false), true),
        ("another package brought it", owner(ours, "Provider", "there", false), false),
        ("it has our mark", annotated(MARK, OURS), true),
        (
            "it has the mark of one that is there",
            annotated(MARK, "provider.pkg.crossplane.io/there"),
            false,
        ),
        ("an administrator gave it to us", annotated(ADOPT, OURS), true),
        ("to another package", annotated(ADOPT, "provider.pkg.crossplane.io/q"), false),
    ] {
        for way in WAYS {
            let (mut cluster, name) = provider(way);
            cluster.packages.insert("Provider/there".to_owned());
            put(&mut cluster, &metadata);
            cluster.settle(&name);
            assert_eq!(find(&cluster, MANAGED.1).is_some(), is_had, "{what}, {way:?}");
            let has_webhook = find(&cluster, "MutatingWebhookConfiguration").is_some();
            assert_eq!(has_webhook, is_had, "{what}, {way:?}");
            assert_eq!(rules(&cluster, &name).contains("issuers"), is_had, "{what}, {way:?}");
            let spec = &find(&cluster, "CustomResourceDefinition").unwrap()["spec"];
            assert_eq!(*spec, crd("issuers")["spec"], "what it says is Crossplane's to say");
            assert_eq!(cluster.settle(&name), "", "{what}: it is settled");
        }
    }
}

#[test]
fn h1_what_is_given_is_the_packages_from_then_on() {
    for of_manager in [true, false] {
        let (mut cluster, name) = provider(Way::Written);
        put(&mut cluster, &json!({}));
        cluster.adopts_existing = !of_manager;
        cluster.settings.adopts_existing = of_manager;
        cluster.settle(&name);
        let metadata = &find(&cluster, "CustomResourceDefinition").unwrap()["metadata"];
        assert_eq!(metadata["ownerReferences"][0]["name"], "p", "{metadata}");
        assert_eq!(metadata["ownerReferences"][0]["controller"], false, "that is Crossplane's");
        (cluster.adopts_existing, cluster.settings.adopts_existing) = (false, false);
        assert_eq!(cluster.settle(&name), "");
    }
}

/// The definition comes later: with Helm, say, before the package's was activated.
#[test]
fn h1_rights_and_webhooks_go_when_a_kind_becomes_anothers() {
    for way in WAYS {
        let (mut cluster, name) = provider(way);
        cluster.settle(&name);
        assert!(rules(&cluster, &name).contains("issuers"), "{way:?}");
        put(&mut cluster, &json!({}));
        let told = cluster.settle(&name);
        assert!(told.contains("delete crossplane-provider-p"), "{told}");
        assert!(told.contains("not brought by a package"), "{told}");
        assert!(find(&cluster, "MutatingWebhookConfiguration").is_none(), "{way:?}");
        assert!(!rules(&cluster, &name).contains("issuers"), "{way:?}");
        assert_eq!(cluster.settle(&name), "", "it is settled");
        // And it is the package's again once the other one is gone.
        cluster.objects.retain(|target, _| target.kind != "CustomResourceDefinition");
        cluster.settle(&name);
        assert!(rules(&cluster, &name).contains("issuers"), "{way:?}");
        assert!(find(&cluster, "MutatingWebhookConfiguration").is_some(), "{way:?}");
    }
}

#[test]
fn h1_what_a_package_brings_as_it_is_is_judged_as_that() {
    let mut cluster = Cluster::new();
    let (plain, other) = (crd("issuers"), managed("issuers"));
    cluster.publish(TAG, &[meta("Provider", &json!({})), plain, other]);
    let name = cluster.revise(PackageKind::Provider, "p", TAG, "Active");
    cluster.settle(&name);
    assert_eq!(cluster.objects.len(), 2);
    assert_eq!(cluster.settle(&name), "");
}

/// A configuration that brings a composite resource and its claims, one of which is called `issuers`.
fn configuration(composite: &str, claim: &str) -> (Cluster, String) {
    let definition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": COMPOSITE,
        "metadata": {"name": format!("{composite}.example.org")},
        "spec": {
            "group": "example.org", "names": {"kind": "One", "plural": composite},
            "claimNames": {"kind": "Two", "plural": claim},
        },
    });
    let mut cluster = Cluster::new();
    cluster.publish(TAG, &[meta("Configuration", &json!({})), definition]);
    let name = cluster.revise(PackageKind::Configuration, "p", TAG, "Active");
    (cluster, name)
}

const COMPOSITE: &str = "CompositeResourceDefinition";
/// The kind of others as a composite resource, and as a claim.
const BOTH: [(&str, &str); 2] = [("issuers", "certificates"), ("xissuers", "issuers")];

#[test]
fn h1_a_composite_definition_does_not_stand_in_for_anothers_kind() {
    for (composite, claim) in BOTH {
        let (mut cluster, name) = configuration(composite, claim);
        put(&mut cluster, &json!({}));
        let before = cluster.objects.clone();
        let told = cluster.settle(&name);
        assert_eq!(cluster.objects, before, "nothing is written");
        let condition = told.lines().find(|line| line.starts_with("# cannot")).unwrap();
        assert_eq!(
            condition,
            "# cannot establish control of object: CustomResourceDefinition issuers.example.org was \
             there already, not brought by a package; to give it to the package, after which it goes \
             when that is uninstalled: apron adopt p, or annotate it with \
             pkg.crossplane.io/adopt=configuration.pkg.crossplane.io/p"
        );
    }
}

#[test]
fn h1_a_definition_under_a_composite_one_is_had_as_any_other() {
    let owner = |api_version: &str, kind: &str, name: &str, controls: bool| {
        json!({"ownerReferences": [{
            "apiVersion": api_version, "kind": kind, "name": name, "uid": "u", "controller": controls,
        }]})
    };
    let core = "apiextensions.crossplane.io/v2";
    let ours = "configuration.pkg.crossplane.io/p";
    for (composite, claim) in BOTH {
        let own = format!("{composite}.example.org");
        for (what, metadata, is_had) in [
            ("nothing is known of it", json!({}), false),
            ("Crossplane made it", owner(core, COMPOSITE, &own, true), true),
            ("of another one", owner(core, COMPOSITE, "others.example.org", true), false),
            ("of a managed one", owner(MANAGED.0, MANAGED.1, &own, true), false),
            ("it does not control it", owner(core, COMPOSITE, &own, false), false),
            ("of a kind called so", owner("x.org/v1", COMPOSITE, &own, true), false),
            (
                "another package brought it",
                owner("pkg.crossplane.io/v1", "Provider", "there", false),
                false,
            ),
            ("an administrator gave it to us", json!({"annotations": {ADOPT: ours}}), true),
        ] {
            let (mut cluster, name) = configuration(composite, claim);
            cluster.packages.insert("Provider/there".to_owned());
            put(&mut cluster, &metadata);
            cluster.settle(&name);
            assert_eq!(find(&cluster, COMPOSITE).is_some(), is_had, "{what}, {composite}");
            let spec = &find(&cluster, "CustomResourceDefinition").unwrap()["spec"];
            assert_eq!(*spec, crd("issuers")["spec"], "what it says is Crossplane's to say");
            assert_eq!(cluster.settle(&name), "", "{what}: it is settled");
        }
    }
}

/// Two that want one definition are both held against it; the cluster here bears no second look.
#[test]
fn h1_what_is_wanted_twice_is_looked_at_once() {
    let composite = |plural: &str| {
        json!({
            "apiVersion": "apiextensions.crossplane.io/v1", "kind": COMPOSITE,
            "metadata": {"name": format!("{plural}.example.org")},
            "spec": {
                "group": "example.org", "names": {"kind": plural, "plural": plural},
                "claimNames": {"kind": "Issuer", "plural": "issuers"},
            },
        })
    };
    for (kind, objects) in [
        (PackageKind::Configuration, [composite("ones"), composite("twos")]),
        (PackageKind::Provider, [managed("issuers"), crd("issuers")]),
    ] {
        let mut cluster = Cluster::new();
        cluster.settings.defers_definitions = true;
        cluster.publish(TAG, &[&[meta(kind.as_str(), &json!({}))][..], &objects].concat());
        let name = cluster.revise(kind, "p", TAG, "Active");
        put(&mut cluster, &json!({}));
        let before = cluster.objects.clone();
        let told = cluster.settle(&name);
        assert_eq!(cluster.objects, before);
        let condition = told.lines().find(|line| line.starts_with("# cannot")).unwrap();
        assert_eq!(condition.matches("issuers.example.org was there").count(), 1, "{condition}");
    }
}
