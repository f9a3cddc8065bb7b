//! Whatever a package contains, what comes of it is within what was allowed.

use super::cluster::Cluster;
use super::{TAG, crd, meta};
use crate::authority::{Allowed, Place};
use crate::rbac::{self, Roles, definition};
use crate::step::{Action, Step, Target};
use api::meta::{PackageKind, PermissionRequest};
use api::pkg::revision::RevisionStatus;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::strategy::ValueTree as _;
use serde_json::{Value as Json, json};

const GROUPS: [&str; 8] = [
    "",
    "apps",
    "*",
    "rbac.authorization.k8s.io",
    "gateway.networking.k8s.io",
    "pkg.crossplane.io",
    "example.org",
    "other.example.org",
];
const RESOURCES: [&str; 6] = ["pods", "secrets", "things", "clusterroles", "things/status", "*"];
const VERBS: [&str; 5] = ["get", "delete", "escalate", "intercept", "*"];
/// The uid of definitions that another tool made.
const FOREIGN: &str = "by-helm";
const COMMUNITY: &str = "gateway.networking.k8s.io";
const COMPOSITE: &str = "CompositeResourceDefinition";

/// A rule as people and packages write it.
fn any_rule() -> impl Strategy<Value = Json> {
    let some = |from: &'static [&'static str]| subsequence(from, 1..=2);
    let names = prop_oneof![3 => Just(Vec::new()), 1 => Just(vec!["one"])];
    let resources = (some(&GROUPS), some(&RESOURCES), names, some(&VERBS));
    prop_oneof![
        5 => resources.prop_map(|(groups, resources, names, verbs)| {
            json!({"apiGroups": groups, "resources": resources, "resourceNames": names, "verbs": verbs})
        }),
        1 => (select(vec!["/metrics", "*"]), some(&VERBS)).prop_map(|(url, verbs)| {
            json!({"nonResourceURLs": [url], "verbs": verbs})
        }),
    ]
}

fn any_definition() -> impl Strategy<Value = Json> {
    let groups = vec!["example.org", "other.example.org", "apps", COMMUNITY, "pkg.crossplane.io"];
    let kinds = vec![
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("apiextensions.crossplane.io/v1alpha1", "ManagedResourceDefinition"),
    ];
    (select(groups.clone()), select(groups), 0..9, select(kinds), any_client()).prop_map(
        |(group, other, chance, (api_version, kind), client)| {
            // Sometimes its name says something else than its spec.
            let named = if chance == 0 { other } else { group };
            let mut definition = json!({
                "apiVersion": api_version, "kind": kind,
                "metadata": {"name": format!("things.{named}")},
                "spec": {"group": group, "names": {"kind": "Thing", "plural": "things"}},
            });
            if chance > 6 {
                let webhook = json!({"conversionReviewVersions": ["v1"], "clientConfig": client});
                definition["spec"]["conversion"] =
                    json!({"strategy": "Webhook", "webhook": webhook});
            }
            definition
        },
    )
}

/// A definition of a composite resource, of whose two kinds one may be called as another's is, or what
/// is every kind where rights are written.
fn any_composite() -> impl Strategy<Value = Json> {
    let groups = vec!["example.org", "other.example.org", "apps", COMMUNITY, "pkg.crossplane.io"];
    let plurals = vec![
        ("things", None),
        ("things", Some("xs")),
        ("xs", Some("things")),
        ("xs", Some("*")),
        ("*", None),
    ];
    (select(groups), select(plurals)).prop_map(|(group, (plural, claim))| {
        let mut definition = json!({
            "apiVersion": "apiextensions.crossplane.io/v1", "kind": COMPOSITE,
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {"group": group, "names": {"kind": "One", "plural": plural}},
        });
        if let Some(claim) = claim {
            definition["spec"]["claimNames"] = json!({"kind": "Two", "plural": claim});
        }
        definition
    })
}

/// How a webhook says that it is reached.
fn any_client() -> impl Strategy<Value = Json> {
    prop_oneof![
        6 => Just(json!({})),
        3 => Just(json!({"service": {"name": "victim", "namespace": "kube-system", "path": "/x"}})),
        1 => Just(json!({"url": "https://attacker.example.org"})),
    ]
}

fn any_webhook() -> impl Strategy<Value = Json> {
    let kind = select(vec!["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"]);
    (kind, any_client(), subsequence(&GROUPS[..], 1..=2), subsequence(&RESOURCES[..], 1..=2))
        .prop_map(|(kind, client, groups, resources)| {
            let rule = json!({
                "apiGroups": groups, "resources": resources, "operations": ["*"],
                "apiVersions": ["*"],
            });
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                "metadata": {"name": "hook"},
                "webhooks": [{"name": "hook.example.org", "clientConfig": client, "rules": [rule]}],
            })
        })
}

/// A package, and what an administrator allows.
#[derive(Clone, Debug)]
struct Case {
    requests: Vec<Json>,
    objects: Vec<Json>,
    allowed: Allowed,
    is_run_here: bool,
    /// Whether plain definitions are handed to Crossplane.
    is_deferred: bool,
    /// Whether it is a configuration, which brings definitions of composite resources.
    composes: bool,
    /// Groups in which another tool defines kinds, and whether that was before the package came.
    foreign: Vec<(&'static str, bool)>,
}

fn any_case() -> impl Strategy<Value = Case> {
    let objects = proptest::collection::vec(any_definition(), 0..3);
    let webhooks = proptest::collection::vec(any_webhook(), 0..2);
    let requests = proptest::collection::vec(any_rule(), 0..3);
    let allowed = proptest::collection::vec(any_rule(), 0..4);
    let groups = subsequence(vec!["example.org", "other.example.org"], 0..=1);
    let foreign = (groups, any::<bool>()).prop_map(|(groups, is_first)| {
        groups.into_iter().map(|group| (group, is_first)).collect::<Vec<_>>()
    });
    let composites =
        proptest::option::weighted(0.3, proptest::collection::vec(any_composite(), 1..3));
    (requests, objects, webhooks, allowed, (foreign, composites, any::<[bool; 5]>())).prop_map(
        |(mut requests, mut objects, mut webhooks, allowed, (foreign, composites, chances))| {
            let [is_run_here, opens, asks_less, mut is_plain, is_deferred] = chances;
            let composes = composites.is_some();
            if let Some(composites) = composites {
                // Configurations run nothing.
                (requests, webhooks, is_plain) = (Vec::new(), Vec::new(), false);
                objects = composites;
            }
            let permissions = |rules: &[Json]| -> Vec<PermissionRequest> {
                rules.iter().map(|rule| PermissionRequest::from_json(rule).unwrap()).collect()
            };
            let mut allowed = permissions(&allowed);
            // Half of all packages ask for nothing else than what is allowed.
            if asks_less {
                allowed.extend(permissions(&requests));
            }
            if is_plain {
                objects = vec![crd("things")];
            }
            // A definition that is handed on beside one that is written would be the same object.
            let is_managed = |one: &Json| one["kind"] == "ManagedResourceDefinition";
            let is_deferred = is_deferred && !objects.iter().any(is_managed);
            objects.extend(webhooks);
            let groups = if opens { vec![COMMUNITY.to_owned()] } else { Vec::new() };
            let place = Place::Gathered { is_there: true };
            let allowed = Allowed { permissions: allowed, groups, place, ..Allowed::default() };
            Case { requests, objects, allowed, is_run_here, is_deferred, composes, foreign }
        },
    )
}

/// One thing that somebody does: a verb, a group, a resource and an object; or a verb and a path.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Resource(&'static str, &'static str, &'static str, Option<&'static str>),
    Path(&'static str, &'static str),
}

/// Everything that can be done in a small world, and beyond what anybody wrote down.
fn deeds() -> Vec<Deed> {
    let mut all = Vec::new();
    for verb in ["get", "delete", "escalate", "intercept", "unheard-of"] {
        for group in GROUPS.into_iter().filter(|one| *one != "*").chain(["unheard.example.org"]) {
            for resource in ["pods", "secrets", "things", "clusterroles", "things/status", "others"]
            {
                for name in [None, Some("one"), Some("two")] {
                    all.push(Deed::Resource(verb, group, resource, name));
                }
            }
        }
        all.extend(["/metrics", "/other"].map(|path| Deed::Path(verb, path)));
    }
    all
}

/// Whether a rule lets somebody do it, as API servers have it.
fn lets(rule: &Json, deed: Deed) -> bool {
    let has = |key: &str, value: &str| {
        let list = rule[key].as_array().into_iter().flatten();
        list.into_iter().any(|one| one == value || one == "*")
    };
    match deed {
        Deed::Path(verb, path) => has("verbs", verb) && has("nonResourceURLs", path),
        Deed::Resource(verb, group, resource, name) => {
            let names = rule["resourceNames"].as_array().filter(|names| !names.is_empty());
            let is_named =
                names.is_none_or(|names| names.iter().any(|one| Some(one.as_str()) == Some(name)));
            let is_allowed = has("verbs", verb) && has("apiGroups", group) && is_named;
            is_allowed && has("resources", resource)
        }
    }
}

/// Rights that every provider has, and those on kinds that it brought itself.
fn is_its_own(deed: Deed, kinds: &[(String, String)]) -> bool {
    let Deed::Resource(verb, group, resource, _) = deed else { return false };
    let is_common = group.is_empty() && resource == "secrets";
    let kind = resource.split('/').next().unwrap_or_default();
    let is_brought = kinds.contains(&(kind.to_owned(), group.to_owned()));
    is_common || is_brought && !matches!(verb, "delete" | "escalate" | "intercept")
}

/// Makes a definition as another tool does, where none is.
fn put_foreign(cluster: &mut Cluster, case: &Case, before: bool) {
    for (group, _) in case.foreign.iter().filter(|(_, is_first)| *is_first == before) {
        let mut definition = crd("things");
        definition["metadata"] = json!({"name": format!("things.{group}"), "uid": FOREIGN});
        definition["metadata"]["resourceVersion"] = json!("1");
        definition["spec"]["group"] = json!(group);
        cluster.objects.entry(Target::of(&definition)).or_insert(definition);
    }
}

/// The roles of composite resources that these define beside what else is in a cluster.
fn composite_roles<'d>(
    definitions: impl Iterator<Item = &'d Json>,
    cluster: &Cluster,
    allowed: &Allowed,
) -> Vec<Json> {
    let is_plain = |one: &&Json| one["kind"] == "CustomResourceDefinition";
    let derived: Vec<Json> = cluster.objects.values().filter(is_plain).cloned().collect();
    let composite = definitions.filter(|one| one["kind"] == COMPOSITE);
    let roles = composite.flat_map(|definition| {
        let (definition, derived) = (definition.clone(), derived.clone());
        let allowed = allowed.clone();
        let world = definition::World { definition, derived, allowed, ..Default::default() };
        let Step::Do(plan) = definition::step(&world) else { panic!("nothing is needed") };
        plan.actions
    });
    let applied = roles.filter_map(|one| match one {
        Action::Apply { object, .. } => Some(object),
        _ => None,
    });
    applied.collect()
}

/// The package, as far as it gets, and its roles.
fn installed(case: &Case) -> (Cluster, Vec<Json>) {
    let mut cluster = Cluster::new();
    let kind = if case.composes { PackageKind::Configuration } else { PackageKind::Provider };
    let spec = if case.composes {
        json!({})
    } else {
        json!({"controller": {"permissionRequests": case.requests}})
    };
    let documents = [vec![meta(kind.as_str(), &spec)], case.objects.clone()].concat();
    cluster.publish(TAG, &documents);
    cluster.allowed = case.allowed.clone();
    cluster.settings.allowed.groups.clone_from(&case.allowed.groups);
    cluster.settings.runs_packages = case.is_run_here;
    cluster.settings.defers_definitions = case.is_deferred;
    cluster.certificate = Some("Q0VSVA==".to_owned());
    let name = cluster.revise(kind, "p", TAG, "Active");
    let secret = case.is_run_here.then(|| "p-tls-server".to_owned());
    cluster.change(&name, |one| {
        one.status = Some(RevisionStatus { tls_server_secret_name: secret, ..Default::default() });
    });
    put_foreign(&mut cluster, case, true);
    cluster.settle(&name);
    put_foreign(&mut cluster, case, false);
    cluster.settle(&name);
    if case.composes {
        let roles = composite_roles(cluster.objects.values(), &cluster, &case.allowed);
        return (cluster, roles);
    }
    let requests = case.requests.iter().map(|rule| PermissionRequest::from_json(rule).unwrap());
    let roles = rbac::roles(&rbac::World {
        revision: cluster.revisions[&name].clone(),
        requests: Some(requests.collect()),
        allowed: case.allowed.clone(),
        ..rbac::World::default()
    });
    match roles {
        Roles::Roles(roles) => (cluster, roles),
        Roles::Refused(_) => (cluster, Vec::new()),
    }
}

/// The kinds that definitions in the cluster bring; their groups must be open.
fn brought(cluster: &Cluster, allowed: &Allowed) -> Result<Vec<(String, String)>, TestCaseError> {
    let mut kinds = Vec::new();
    let is_foreign = |object: &Json| object["metadata"]["uid"] == FOREIGN;
    let foreign: Vec<&str> = cluster
        .objects
        .iter()
        .filter(|(_, object)| is_foreign(object))
        .map(|(target, object)| {
            assert!(object["metadata"]["ownerReferences"].is_null(), "{object}");
            target.name.as_str()
        })
        .collect();
    for (target, object) in &cluster.objects {
        if !target.kind.ends_with("Definition") || foreign.contains(&target.name.as_str()) {
            continue;
        }
        let group = object["spec"]["group"].as_str().unwrap_or_default();
        for group in [group, target.name.split_once('.').unwrap().1] {
            prop_assert!(allowed.closed(group).is_none(), "{object}");
        }
        let client = &object["spec"]["conversion"]["webhook"]["clientConfig"];
        is_own_service(client)?;
        if target.name == format!("things.{group}") && target.kind != COMPOSITE {
            kinds.push(("things".to_owned(), group.to_owned()));
        }
    }
    Ok(kinds)
}

fn is_own_service(client: &Json) -> Result<(), TestCaseError> {
    if !client.is_null() {
        prop_assert!(client["url"].is_null(), "{client}");
        prop_assert_eq!(&client["service"]["name"], "p");
        prop_assert_eq!(&client["service"]["namespace"], "crossplane-system");
    }
    Ok(())
}

/// Every webhook in the cluster is at the package's Service, and about kinds that it brought or
/// that somebody let it intercept.
fn webhooks_are_allowed(
    cluster: &Cluster,
    kinds: &[(String, String)],
    allowed: &[Json],
) -> Result<(), TestCaseError> {
    let configurations =
        cluster.objects.iter().filter(|(target, _)| target.kind.ends_with("WebhookConfiguration"));
    for webhook in configurations.flat_map(|(_, one)| one["webhooks"].as_array().unwrap().clone()) {
        is_own_service(&webhook["clientConfig"])?;
        for deed in deeds() {
            let Deed::Resource("get", group, resource, None) = deed else { continue };
            let rule = json!({
                "apiGroups": webhook["rules"][0]["apiGroups"], "verbs": ["*"],
                "resources": webhook["rules"][0]["resources"],
            });
            let intercept = Deed::Resource("intercept", group, resource, None);
            let kind = resource.split('/').next().unwrap_or_default();
            let is_brought = kinds.contains(&(kind.to_owned(), group.to_owned()));
            let is_allowed = is_brought || allowed.iter().any(|one| lets(one, intercept));
            prop_assert!(!lets(&rule, deed) || is_allowed, "{intercept:?} of {webhook}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// C1, C2, H1 and H7 in one sentence.
    #[test]
    fn c1_c2_h1_h7_whatever_a_package_contains_what_comes_of_it_was_allowed(case in any_case()) {
        let (cluster, mut roles) = installed(&case);
        // What no package may bring is no way to rights for those either who write it by hand.
        roles.extend(composite_roles(case.objects.iter(), &cluster, &case.allowed));
        let allowed: Vec<Json> =
            case.allowed.permissions.iter().map(crate::authority::rules::to_json).collect();
        let kinds = brought(&cluster, &case.allowed)?;
        webhooks_are_allowed(&cluster, &kinds, &allowed)?;
        for role in roles.iter().filter(|role| role["metadata"]["name"].as_str().unwrap().ends_with(":system")) {
            for deed in deeds() {
                let is_granted = role["rules"].as_array().unwrap().iter().any(|rule| lets(rule, deed));
                let is_allowed = is_its_own(deed, &kinds) || allowed.iter().any(|rule| lets(rule, deed));
                prop_assert!(!is_granted || is_allowed, "{deed:?} of {role}");
            }
        }
        let foreign = |group: &str| {
            let mut all = cluster.objects.iter().filter(|(_, it)| it["metadata"]["uid"] == FOREIGN);
            all.any(|(target, _)| target.name == format!("things.{group}"))
        };
        let is_defined = |group: &str| case.objects.iter().any(|it| it["spec"]["group"] == group);
        for role in roles.iter().filter(|one| one["metadata"]["name"].to_string().contains(":aggregate-to-")) {
            for deed in deeds() {
                let Deed::Resource(_, group, resource, _) = deed else { continue };
                let is_own = resource.starts_with("things") && is_defined(group) && !foreign(group);
                let mut rules = role["rules"].as_array().unwrap().iter();
                prop_assert!(is_own || !rules.any(|rule| lets(rule, deed)), "{deed:?} of {role}");
            }
        }
        for role in &roles {
            for rule in role["rules"].as_array().unwrap() {
                let is_closed = |group: &Json| case.allowed.closed(group.as_str().unwrap()).is_some();
                let derived = role["metadata"]["name"].as_str().unwrap().contains(":aggregate-to-");
                prop_assert!(!derived || !rule["apiGroups"].as_array().unwrap().iter().any(is_closed));
            }
        }
    }
}

/// The property above is worth nothing if nothing is ever installed.
#[test]
fn the_packages_that_are_made_up_are_installed_now_and_then() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut with_objects, mut with_webhooks, mut with_roles, mut beside) = (0, 0, 0, 0);
    let (mut composed, mut composed_beside) = (0, 0);
    for _ in 0..2000 {
        let case = any_case().new_tree(&mut runner).unwrap().current();
        let (cluster, roles) = installed(&case);
        with_objects += usize::from(!cluster.objects.is_empty());
        let is_webhook = |target: &Target| target.kind.ends_with("WebhookConfiguration");
        with_webhooks += usize::from(cluster.objects.keys().any(is_webhook));
        with_roles += usize::from(!roles.is_empty() && !case.requests.is_empty());
        let is_managed = |target: &&Target| target.kind == "ManagedResourceDefinition";
        let mut managed = cluster.objects.keys().filter(is_managed);
        let is_beside = |one: &Target| {
            let mut others =
                cluster.objects.iter().filter(|(_, it)| it["metadata"]["uid"] == FOREIGN);
            others.any(|(target, _)| target.name == one.name)
        };
        beside += usize::from(managed.any(is_beside));
        let allowed: Vec<&Json> = roles.iter().map(|role| &role["rules"]).collect();
        let text = json!(allowed).to_string();
        composed += usize::from(case.composes && text.contains("things"));
        // Another tool came later: one of the two kinds is its own from then on.
        composed_beside +=
            usize::from(case.composes && !roles.is_empty() && !text.contains("things"));
    }
    assert!(
        with_objects > 20 && with_webhooks > 5 && with_roles > 20 && beside > 0,
        "{with_objects} {with_webhooks} {with_roles} {beside}"
    );
    assert!(composed > 5 && composed_beside > 0, "{composed} {composed_beside}");
}

/// H7: what was allowed once and is no longer goes, as roles do.
#[test]
fn h7_webhooks_go_when_they_are_no_longer_allowed() {
    let rule = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["intercept"]});
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "hook"}, "webhooks": [{"name": "h.example.org", "rules": [
            {"apiGroups": [""], "resources": ["secrets"], "operations": ["*"], "apiVersions": ["*"]},
        ]}],
    });
    let permissions = vec![PermissionRequest::from_json(&rule).unwrap()];
    let allowed =
        Allowed { permissions, place: Place::Gathered { is_there: true }, ..Allowed::default() };
    let case = Case {
        requests: Vec::new(),
        objects: vec![crd("things"), webhook],
        allowed,
        is_run_here: true,
        is_deferred: false,
        composes: false,
        foreign: Vec::new(),
    };
    let (mut cluster, _) = installed(&case);
    let name = cluster.revisions.keys().next().unwrap().clone();
    assert_eq!(cluster.objects.len(), 2);
    cluster.allowed.permissions.clear();
    insta::assert_snapshot!(cluster.settle(&name), @r#"
    delete crossplane-provider-p
    # MutatingWebhookConfiguration crossplane-provider-p goes: nobody allows it
    --
    status RevisionHealthy=False UnhealthyPackageRevision (the package asks for permissions that nobody allowed: intercept secrets (to intercept is to see every write of these, and to change or refuse it); an administrator allows exactly these with `apron permissions allow provider/p`); {"tlsServerSecretName":"p-tls-server","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"things.example.org","uid":"uid-things.example.org"},{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration","name":"crossplane-provider-p","uid":"uid-crossplane-provider-p"}],"resolvedImage":"registry.example.org/p:v1","permissionRequests":[{"apiGroups":[""],"resources":["secrets"],"verbs":["intercept"]}]}
    event Warning SyncPackage: the package asks for permissions that nobody allowed: intercept secrets (to intercept is to see every write of these, and to change or refuse it); an administrator allows exactly these with `apron permissions allow provider/p`
    # the package asks for permissions that nobody allowed: intercept secrets (to intercept is to see every write of these, and to change or refuse it); an administrator allows exactly these with `apron permissions allow provider/p`
    "#);
    let kinds: Vec<&str> = cluster.objects.keys().map(|one| one.kind.as_str()).collect();
    assert_eq!(kinds, ["CustomResourceDefinition"]);
    cluster.allowed = case.allowed;
    cluster.settle(&name);
    assert_eq!(cluster.objects.len(), 2);
}
