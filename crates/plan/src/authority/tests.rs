//! Tables of what is allowed.

use super::rules::{RIGHTS_MAX, TEXT_SIZE_MAX, beyond, excess};
use super::{ALLOWED_ROLE, Allowed, Place, asked, in_lines, judge, refusal};
use crate::revision::{Contents, Unsupported};
use api::meta::{PackageKind, PermissionRequest};
use insta::assert_snapshot;
use oci::Digest;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;

fn rule(rule: &Json) -> PermissionRequest {
    PermissionRequest::from_json(rule).unwrap()
}

fn rules(all: &[Json]) -> Vec<PermissionRequest> {
    all.iter().map(rule).collect()
}

fn contents(documents: &[Json]) -> Contents {
    let texts: Vec<String> = documents.iter().map(Json::to_string).collect();
    let text = texts.join("\n---\n");
    let opened = xpkg::open::read(text.as_bytes(), &xpkg::Limits::default()).unwrap();
    Contents::of(Digest::of(text.as_bytes()), &opened, Unsupported::default())
}

fn provider(requests: &Json) -> Json {
    json!({
        "apiVersion": "meta.pkg.crossplane.io/v1", "kind": "Provider", "metadata": {"name": "p"},
        "spec": {"controller": {"permissionRequests": requests}},
    })
}

fn definition(group: &str) -> Json {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("things.{group}"),
            "annotations": {"api-approved.kubernetes.io": "unapproved, legacy API"},
        },
        "spec": {"group": group, "names": {"kind": "Thing", "plural": "things"}},
    })
}

fn webhook(client: &Json, group: &str, resource: &str) -> Json {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "hook"},
        "webhooks": [{"name": "hook.example.org", "clientConfig": client, "rules": [
            {"apiGroups": [group], "resources": [resource], "operations": ["*"], "apiVersions": ["*"]},
        ]}],
    })
}

#[test]
fn c1_nothing_is_granted_that_no_rule_grants() {
    let all = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
    let urls = json!({"nonResourceURLs": ["*"], "verbs": ["*"]});
    let pods = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]});
    let one = json!({"apiGroups": [""], "resources": ["pods"], "resourceNames": ["one"], "verbs": ["get"]});
    let star =
        json!({"apiGroups": [""], "resources": ["pods"], "resourceNames": ["*"], "verbs": ["*"]});
    let log = json!({"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]});
    let metrics = json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"]});
    let get = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]});
    for (asked, allowed, refused) in [
        (&all, &[][..], "* *.*"),
        (&urls, &[], "* *"),
        (&all, std::slice::from_ref(&pods), "* *.*"),
        (&all, std::slice::from_ref(&urls), "* *.*"),
        (&urls, std::slice::from_ref(&all), "* *"),
        (&all, std::slice::from_ref(&all), ""),
        (&pods, std::slice::from_ref(&get), "list pods"),
        (
            &pods,
            &[get.clone(), json!({"apiGroups": [""], "resources": ["*"], "verbs": ["list"]})],
            "",
        ),
        (&get, std::slice::from_ref(&one), "get pods"),
        (&get, std::slice::from_ref(&star), "get pods"),
        (&one, std::slice::from_ref(&star), "get pods one"),
        (&one, std::slice::from_ref(&get), ""),
        (&log, std::slice::from_ref(&get), "get pods/log"),
        (&metrics, std::slice::from_ref(&get), "get /metrics"),
        (&metrics, std::slice::from_ref(&urls), ""),
        (
            &pods,
            &[json!({"apiGroups": ["apps"], "resources": ["pods"], "verbs": ["*"]})],
            "get, list pods",
        ),
    ] {
        let refused_now = beyond(&[rule(asked)], &rules(allowed));
        assert_eq!(in_lines(&refused_now).join("; "), refused, "{asked} {allowed:?}");
    }
}

#[test]
fn everything_allows_everything() {
    let anything = Allowed::anything();
    for asked in [
        json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}),
        json!({"nonResourceURLs": ["*"], "verbs": ["*"]}),
        json!({"apiGroups": [""], "resources": ["pods"], "resourceNames": ["one"], "verbs": ["get"]}),
        json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["intercept"]}),
    ] {
        assert_eq!(anything.refused(&[rule(&asked)]), [], "{asked}");
    }
}

/// A package must not make anybody count forever, whatever it asks for.
#[test]
fn so_many_permissions_that_nobody_could_read_them_are_forbidden_at_once() {
    let many = |count: usize| -> Vec<String> { (0..count).map(|one| format!("r{one}")).collect() };
    let huge = json!({"apiGroups": many(2000), "resources": many(2000), "verbs": many(2000)});
    let wide =
        json!({"apiGroups": [""], "resources": ["x".repeat(TEXT_SIZE_MAX)], "verbs": ["get"]});
    for asked in [&huge, &wide] {
        assert!(excess(&[rule(asked)]).is_some());
        assert_eq!(in_lines(&[rule(asked)]).len(), 1);
        assert_eq!(beyond(&[rule(asked)], &[]).len(), 1);
        let judgement = judge(&contents(&[provider(&json!([asked]))]), &Allowed::anything());
        assert_eq!(judgement.forbidden.len(), 1);
    }
    let most =
        json!({"apiGroups": many(100), "resources": many(RIGHTS_MAX / 100), "verbs": ["get"]});
    assert_eq!(excess(&[rule(&most)]), None);
}

#[test]
fn c2_h1_definitions_in_groups_of_others_are_forbidden() {
    let told = |group: &str, allowed: &Allowed| {
        judge(&contents(&[provider(&json!([])), definition(group)]), allowed).forbidden.join("; ")
    };
    for group in ["example.org", "nop.crossplane.io", "s3.aws.upbound.io"] {
        assert_eq!(told(group, &Allowed::default()), "", "{group}");
    }
    let opened = |groups: &[&str]| Allowed {
        groups: groups.iter().map(|one| (*one).to_owned()).collect(),
        ..Allowed::anything()
    };
    let gateway = "gateway.networking.k8s.io";
    assert_eq!(told(gateway, &opened(&[gateway])), "");
    let closed = ["rbac.authorization.k8s.io", "pkg.crossplane.io", "apps"];
    let all = closed.map(|group| told(group, &opened(&closed)));
    assert_snapshot!(format!("{}\n{}", all.join("\n"), told(gateway, &Allowed::anything())), @r"
    CustomResourceDefinition things.rbac.authorization.k8s.io defines a kind in the group rbac.authorization.k8s.io, which is Kubernetes' own
    CustomResourceDefinition things.pkg.crossplane.io defines a kind in the group pkg.crossplane.io, which is the package manager's own
    CustomResourceDefinition things.apps defines a kind in the group apps, which is Kubernetes' own
    CustomResourceDefinition things.gateway.networking.k8s.io defines a kind in the group gateway.networking.k8s.io, which is kept for Kubernetes' community (an administrator opens it with `apron manager --allow-group gateway.networking.k8s.io`)
    ");
}

/// C2: which groups are the manager's own depends on its suffix; several share a cluster.
#[test]
fn c2_groups_of_the_manager_are_closed_whatever_its_suffix() {
    let own_groups = vec!["packages.apron.example.org".to_owned()];
    let allowed = Allowed { own_groups, ..Allowed::anything() };
    for (group, is_closed) in [
        ("packages.apron.example.org", true),
        ("Packages.apron.example.org.", true),
        ("packages.crossplane.io", true),
        ("pkg.apron.example.org", true),
        ("meta.pkg.apron.example.org", true),
        ("packages.example.org", false),
        ("apron.example.org", false),
    ] {
        assert_eq!(allowed.closed(group).is_some(), is_closed, "{group}");
    }
    let judgement = judge(
        &contents(&[provider(&json!([])), definition("packages.apron.example.org")]),
        &allowed,
    );
    assert_eq!(judgement.forbidden.len(), 1, "{judgement:?}");
}

/// H1: RBAC does not know which of two API servers serves a kind.
#[test]
fn h1_groups_of_other_api_servers_are_closed_unless_they_are_named() {
    let group = "authorization.openshift.io";
    let aggregated_groups = vec![group.to_owned(), "custom.metrics.k8s.io".to_owned()];
    let cluster = Allowed { aggregated_groups, ..Allowed::anything() };
    let told = |allowed: &Allowed, group: &str| {
        judge(&contents(&[provider(&json!([])), definition(group)]), allowed).forbidden.join("; ")
    };
    assert_snapshot!(told(&cluster, group), @"CustomResourceDefinition things.authorization.openshift.io defines a kind in the group authorization.openshift.io, which another API server serves in this cluster (an administrator opens it with `apron manager --allow-group authorization.openshift.io`)");
    assert_eq!(told(&cluster, "example.org"), "");
    assert_eq!(told(&Allowed::anything(), group), "", "elsewhere the name means nothing");
    let groups = vec![group.to_owned(), "custom.metrics.k8s.io".to_owned()];
    let open = Allowed { groups, ..cluster };
    assert_eq!(told(&open, group), "");
    assert_eq!(told(&open, "custom.metrics.k8s.io"), "", "the community's is named once");
}

/// H1: rights are handed out by name, and found by the property of generated packages.
#[test]
fn h1_definitions_under_the_name_of_another_kind_are_forbidden() {
    for kind in ["CustomResourceDefinition", "ManagedResourceDefinition"] {
        let mut definition = definition("example.org");
        if kind == "ManagedResourceDefinition" {
            definition["apiVersion"] = json!("apiextensions.crossplane.io/v1alpha1");
        }
        definition["kind"] = json!(kind);
        definition["metadata"]["name"] = json!("clusters.victim.example.org");
        let judgement = judge(&contents(&[provider(&json!([])), definition]), &Allowed::anything());
        assert_eq!(judgement.forbidden.len(), 1, "{judgement:?}");
    }
}

/// H1: `*` is every kind where rights are written, and a webhook about every kind is not the business of
/// a package that calls a kind so.
#[test]
fn h1_definitions_that_name_no_kind_are_forbidden() {
    let service = json!({"service": {"name": "x", "namespace": "y"}});
    for kind in ["CustomResourceDefinition", "ManagedResourceDefinition"] {
        for (plural, group) in [
            ("*", "example.org"),
            ("things/status", "example.org"),
            ("Things", "example.org"),
            ("things", "*.example.org"),
            ("things", "Example.org"),
        ] {
            let mut definition = definition(group);
            if kind == "ManagedResourceDefinition" {
                definition["apiVersion"] = json!("apiextensions.crossplane.io/v1alpha1");
            }
            definition["kind"] = json!(kind);
            definition["metadata"]["name"] = json!(format!("{plural}.{group}"));
            definition["spec"]["names"]["plural"] = json!(plural);
            let documents = [provider(&json!([])), definition, webhook(&service, group, plural)];
            let contents = contents(&documents);
            let judgement = judge(&contents, &Allowed::anything());
            assert_eq!(judgement.forbidden.len(), 1, "{plural} {group}: {judgement:?}");
            let asked = asked(&contents, &BTreeSet::new()).interceptions;
            assert_eq!(asked.len(), 1, "{plural} {group}: {asked:?}");
        }
    }
}

/// H1, for composite resources and their claims.
#[test]
fn h1_composite_definitions_that_name_no_kind_are_forbidden() {
    let meta = json!({
        "apiVersion": "meta.pkg.crossplane.io/v1", "kind": "Configuration",
        "metadata": {"name": "c"}, "spec": {},
    });
    let told = |plural: &str, claim: &Json| {
        let composite = json!({
            "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
            "metadata": {"name": format!("{plural}.example.org")},
            "spec": {
                "group": "example.org", "names": {"kind": "X", "plural": plural},
                "claimNames": claim,
            },
        });
        let judgement = judge(&contents(&[meta.clone(), composite]), &Allowed::anything());
        judgement.forbidden.join("; ")
    };
    let claim = |plural: &str| json!({"kind": "C", "plural": plural});
    for sound in [Json::Null, claim("cs"), claim("c-1")] {
        assert_eq!(told("xs", &sound), "", "{sound}");
    }
    for unsound in ["issuers/status", "*/status", "Issuers", "issuers.more", "-", &"c".repeat(64)] {
        let told = told("xs", &claim(unsound));
        assert!(told.contains("spec.claimNames.plural"), "{unsound}: {told}");
    }
    assert_snapshot!([
        told("xs", &claim("*")),
        told("xs", &claim("")),
        told("*", &Json::Null),
    ].join("\n"), @r#"
    CompositeResourceDefinition xs.example.org has "*" in spec.claimNames.plural, which is no name of a kind (write at most 63 lower case letters, digits and `-`, beginning and ending with a letter or digit)
    CompositeResourceDefinition xs.example.org has "" in spec.claimNames.plural, which is no name of a kind (write at most 63 lower case letters, digits and `-`, beginning and ending with a letter or digit)
    CompositeResourceDefinition *.example.org has "*" in spec.names.plural, which is no name of a kind (write at most 63 lower case letters, digits and `-`, beginning and ending with a letter or digit)
    "#);
}

#[test]
fn h7_webhooks_beyond_the_package_are_asked_for_and_addresses_forbidden() {
    let service = json!({"service": {"name": "x", "namespace": "kube-system"}});
    let judged = |client: &Json, group: &str, resource: &str| {
        let documents =
            [provider(&json!([])), definition("example.org"), webhook(client, group, resource)];
        let judgement = judge(&contents(&documents), &Allowed::default());
        let refused = in_lines(&judgement.refused);
        [judgement.forbidden, refused].concat().join("; ")
    };
    assert_eq!(judged(&service, "example.org", "things/status"), "");
    assert_snapshot!([
        judged(&service, "*", "*/*"),
        judged(&service, "example.org", "*"),
        judged(&service, "", "secrets"),
        judged(&json!({"url": "https://attacker.example.org/collect"}), "example.org", "things"),
    ].join("\n"), @r"
    intercept */*.*
    intercept *.example.org
    intercept secrets
    MutatingWebhookConfiguration hook has the API server call https://attacker.example.org/collect, and not the Service of the package
    ");
    // Allowed in so many words, or with everything about the kind.
    let documents = [provider(&json!([])), webhook(&service, "", "secrets")];
    for verbs in [json!(["intercept"]), json!(["*"])] {
        let permissions =
            rules(&[json!({"apiGroups": [""], "resources": ["secrets"], "verbs": verbs})]);
        let allowed = Allowed { permissions, ..Allowed::default() };
        assert!(judge(&contents(&documents), &allowed).is_good());
    }
    let permissions =
        rules(&[json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "update"]})]);
    assert!(
        !judge(&contents(&documents), &Allowed { permissions, ..Allowed::default() }).is_good()
    );
}

/// H7: a list that ends before the kinds do says nothing of those beyond.
#[test]
fn h7_webhooks_about_more_kinds_than_are_listed_are_about_everything() {
    let service = json!({"service": {"name": "x", "namespace": "kube-system"}});
    let harmless: Vec<String> = (0..1000).map(|number| format!("harmless{number:04}")).collect();
    let about = |webhooks: &mut Json, resources: &Json| {
        let rules = webhooks["webhooks"][0]["rules"].as_array_mut().unwrap();
        rules.push(json!({
            "apiGroups": [""], "resources": resources, "operations": ["*"], "apiVersions": ["*"],
        }));
    };
    let judged = |more: &[Json], permissions: Vec<PermissionRequest>| {
        let mut hook = webhook(&service, "", "harmless0000");
        for resources in more {
            about(&mut hook, resources);
        }
        let allowed = Allowed { permissions, ..Allowed::default() };
        judge(&contents(&[provider(&json!([])), hook]), &allowed)
    };
    let those = rule(&json!({"apiGroups": [""], "resources": harmless, "verbs": ["intercept"]}));
    let exactly = judged(&[json!(harmless), json!(harmless)], vec![those.clone()]);
    assert!(exactly.is_good(), "a kind that is named again is no further one: {exactly:?}");
    for more in [json!(["secrets"]), json!(["secrets", "pods"]), json!(["*"])] {
        let judgement = judged(&[json!(harmless), more], vec![those.clone()]);
        assert_eq!(in_lines(&judgement.refused), ["intercept */*.*"]);
    }
    let further = [json!(harmless), json!(["secrets"])];
    assert!(judged(&further, Allowed::anything().permissions).is_good());
}

/// H7, for composite resources: a configuration runs nothing, so whoever converts is somebody else.
#[test]
fn h7_conversions_of_composite_resources_by_others_are_asked_for() {
    let composite = |client: &Json| {
        json!({
            "apiVersion": "apiextensions.crossplane.io/v2", "kind": "CompositeResourceDefinition",
            "metadata": {"name": "xs.example.org"},
            "spec": {
                "group": "example.org", "names": {"kind": "X", "plural": "xs"},
                "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": client}},
            },
        })
    };
    let meta = json!({
        "apiVersion": "meta.pkg.crossplane.io/v1", "kind": "Configuration",
        "metadata": {"name": "c"}, "spec": {},
    });
    let service = json!({"service": {"name": "x", "namespace": "y"}});
    let by_service = contents(&[meta.clone(), composite(&service)]);
    assert_eq!(in_lines(&asked(&by_service, &BTreeSet::new()).all()), ["intercept xs.example.org"]);
    assert!(judge(&by_service, &Allowed::default()).forbidden.is_empty());
    let by_address = contents(&[meta, composite(&json!({"url": "https://a.example.org"}))]);
    assert_eq!(judge(&by_address, &Allowed::anything()).forbidden.len(), 1);
}

#[test]
fn people_are_told_the_one_way_to_allow_it() {
    let refused = rules(&[
        json!({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "create"]}),
        json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["intercept"]}),
    ]);
    let named = |is_there| Place::Named { role: "mine".to_owned(), is_there };
    let places = [
        Place::Gathered { is_there: true },
        Place::Gathered { is_there: false },
        named(true),
        named(false),
        Place::Flags,
    ];
    let told = places.map(|place| {
        let allowed = Allowed { place, ..Allowed::default() };
        refusal(&refused, &allowed, PackageKind::Provider, "provider-helm")
    });
    assert!(told[1].contains(ALLOWED_ROLE));
    assert_snapshot!(told.join("\n"), @r"
    the package asks for permissions that nobody allowed: create, get deployments.apps; intercept secrets (to intercept is to see every write of these, and to change or refuse it); an administrator allows exactly these with `apron permissions allow provider/provider-helm`
    the package asks for permissions that nobody allowed: create, get deployments.apps; intercept secrets (to intercept is to see every write of these, and to change or refuse it); nothing is allowed, because there is no ClusterRole crossplane:allowed-provider-permissions; an administrator allows exactly these with `apron permissions allow provider/provider-helm`
    the package asks for permissions that nobody allowed: create, get deployments.apps; intercept secrets (to intercept is to see every write of these, and to change or refuse it); an administrator allows them in the ClusterRole mine, which this manager goes by
    the package asks for permissions that nobody allowed: create, get deployments.apps; intercept secrets (to intercept is to see every write of these, and to change or refuse it); nothing is allowed, because there is no ClusterRole mine; an administrator allows them in the ClusterRole mine, which this manager goes by
    the package asks for permissions that nobody allowed: create, get deployments.apps; intercept secrets (to intercept is to see every write of these, and to change or refuse it); an administrator allows them where the manager is started, with --provider-clusterrole or --allow-any-permissions
    ");
}
