//! Roles, as text.

use super::{Roles, World, bindings, definition, roles, step};
use crate::authority::{Allowed, in_lines};
use crate::step::{Action, Expect, Plan, Step, Target};
use api::meta::PermissionRequest;
use api::pkg::LABEL_PACKAGE;
use api::pkg::revision::Revision;
use insta::assert_snapshot;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;

fn revision(name: &str, image: &str, objects: &[(&str, &str, &str)]) -> Revision {
    let objects: Vec<Json> = objects
        .iter()
        .map(|(version, kind, name)| json!({"apiVersion": version, "kind": kind, "name": name}))
        .collect();
    serde_json::from_value(json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision",
        "metadata": {"name": name, "uid": "u"},
        "spec": {"desiredState": "Active", "image": image, "revision": 1},
        "status": {"objectRefs": objects},
    }))
    .unwrap()
}

const CRD: (&str, &str) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");
const MRD: (&str, &str) = ("apiextensions.crossplane.io/v1alpha1", "ManagedResourceDefinition");

fn world() -> World {
    let objects = [
        (MRD.0, MRD.1, "queues.sqs.aws.example.org"),
        (CRD.0, CRD.1, "providerconfigs.aws.example.org"),
        (MRD.0, MRD.1, "buckets.s3.aws.example.org"),
        ("v1", "ConfigMap", "no.kind"),
    ];
    let revision = revision("p-1", "xpkg.example.org/acme/p:v1", &objects);
    World {
        revision,
        requests: Some(Vec::new()),
        default_registry: "index.docker.io".to_owned(),
        ..World::default()
    }
}

fn show(roles: &Roles) -> String {
    let roles = match roles {
        Roles::Refused(what) => return format!("refused: {}", in_lines(what).join("; ")),
        Roles::Roles(roles) => roles,
    };
    let mut lines = Vec::new();
    for role in roles {
        lines.push(role["metadata"]["name"].as_str().unwrap().to_owned());
        for (label, value) in role["metadata"]["labels"].as_object().unwrap() {
            lines.push(format!("  {label}={}", value.as_str().unwrap()));
        }
        lines.extend(role["rules"].as_array().unwrap().iter().map(|rule| format!("  {rule}")));
    }
    lines.join("\n")
}

fn request(verbs: &[&str], group: &str, resources: &[&str]) -> PermissionRequest {
    let owned = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect();
    PermissionRequest {
        verbs: owned(verbs),
        api_groups: vec![group.to_owned()],
        resources: owned(resources),
        ..PermissionRequest::default()
    }
}

fn allowing(permissions: Vec<PermissionRequest>) -> Allowed {
    Allowed { permissions, ..Allowed::default() }
}

#[test]
fn a_provider_gets_three_roles_for_its_kinds() {
    assert_snapshot!(show(&roles(&world())), @r#"
    crossplane:provider:p-1:aggregate-to-edit
      rbac.crossplane.io/aggregate-to-crossplane=true
      rbac.crossplane.io/aggregate-to-admin=true
      rbac.crossplane.io/aggregate-to-edit=true
      {"apiGroups":["s3.aws.example.org"],"resources":["buckets","buckets/status"],"verbs":["*"]}
      {"apiGroups":["aws.example.org"],"resources":["providerconfigs","providerconfigs/status"],"verbs":["*"]}
      {"apiGroups":["sqs.aws.example.org"],"resources":["queues","queues/status"],"verbs":["*"]}
    crossplane:provider:p-1:aggregate-to-view
      rbac.crossplane.io/aggregate-to-view=true
      {"apiGroups":["s3.aws.example.org"],"resources":["buckets","buckets/status"],"verbs":["get","list","watch"]}
      {"apiGroups":["aws.example.org"],"resources":["providerconfigs","providerconfigs/status"],"verbs":["get","list","watch"]}
      {"apiGroups":["sqs.aws.example.org"],"resources":["queues","queues/status"],"verbs":["get","list","watch"]}
    crossplane:provider:p-1:system
      rbac.crossplane.io/system=p-1
      {"apiGroups":["s3.aws.example.org"],"resources":["buckets","buckets/status"],"verbs":["get","list","watch","update","patch","create"]}
      {"apiGroups":["aws.example.org"],"resources":["providerconfigs","providerconfigs/status"],"verbs":["get","list","watch","update","patch","create"]}
      {"apiGroups":["sqs.aws.example.org"],"resources":["queues","queues/status"],"verbs":["get","list","watch","update","patch","create"]}
      {"apiGroups":["s3.aws.example.org","aws.example.org","sqs.aws.example.org"],"resources":["*/finalizers"],"verbs":["update"]}
      {"apiGroups":["","coordination.k8s.io"],"resources":["secrets","configmaps","events","leases"],"verbs":["*"]}
    "#);
}

#[test]
fn a_provider_that_waits_for_its_kinds_may_see_them_come() {
    let world = World { is_safe_start: true, ..world() };
    let told = show(&roles(&world));
    assert!(
        told.contains(r#"["customresourcedefinitions"],"verbs":["get","list","watch"]"#),
        "{told}"
    );
}

#[test]
fn a_family_of_one_organisation_shares_its_kinds() {
    let kin = revision("q-1", "xpkg.example.org/acme/q:v1", &[(CRD.0, CRD.1, "a.kin.org")]);
    let other = revision("r-1", "xpkg.example.org/evil/r:v1", &[(CRD.0, CRD.1, "a.other.org")]);
    let mirror = revision("s-1", "registry.org/acme/s:v1", &[(CRD.0, CRD.1, "a.mirror.org")]);
    let world = World { family: vec![kin, other, mirror], ..world() };
    let told = show(&roles(&world));
    assert!(
        told.contains("kin.org") && !told.contains("other.org") && !told.contains("mirror.org")
    );
}

/// H6: a path that leads elsewhere makes nobody kin.
#[test]
fn h6_no_other_spelling_makes_an_image_one_of_an_organisation() {
    for (image, is_kin) in [
        ("xpkg.example.org/acme/q:v1", true),
        ("XPKG.Example.org:443/acme/q:v1", true),
        ("xpkg.example.org/acme/../evil/q:v1", false),
        ("xpkg.example.org/./acme/q:v1", false),
        ("xpkg.example.org//acme/q:v1", false),
    ] {
        let kin = revision("q-1", image, &[(CRD.0, CRD.1, "a.kin.org")]);
        let told = show(&roles(&World { family: vec![kin], ..world() }));
        assert_eq!(told.contains("kin.org"), is_kin, "{image}");
    }
}

#[test]
fn a_revision_without_kinds_gets_no_roles() {
    let revision = revision("p-1", "xpkg.example.org/acme/p:v1", &[]);
    let world = World { revision, ..world() };
    assert_eq!(roles(&world), Roles::Roles(Vec::new()));
}

#[test]
fn what_is_asked_for_is_granted_when_all_of_it_is_allowed() {
    let requests = vec![request(&["get", "list"], "apps", &["deployments"])];
    let allowed = vec![request(&["*"], "apps", &["deployments", "daemonsets"])];
    let told =
        show(&roles(&World { requests: Some(requests), allowed: allowing(allowed), ..world() }));
    let rule = r#"{"apiGroups":["apps"],"resources":["deployments"],"verbs":["get","list"]}"#;
    assert!(told.ends_with(rule), "{told}");
}

#[test]
fn what_is_not_allowed_is_named_and_nothing_is_granted() {
    let mut named = request(&["get"], "", &["secrets"]);
    named.resource_names = vec!["one".to_owned(), "two".to_owned()];
    let mut urls = PermissionRequest { verbs: vec!["get".to_owned()], ..Default::default() };
    urls.non_resource_urls = vec!["/metrics".to_owned()];
    let requests =
        vec![request(&["get", "delete"], "apps", &["deployments", "replicasets"]), named, urls];
    let mut one = request(&["get"], "", &["secrets"]);
    one.resource_names = vec!["one".to_owned()];
    let allowed = allowing(vec![request(&["get"], "apps", &["*"]), one]);
    let told = show(&roles(&World { requests: Some(requests), allowed, ..world() }));
    assert_snapshot!(told, @r"
    refused: delete deployments.apps, replicasets.apps; get /metrics, secrets two
    ");
}

#[test]
fn everything_is_only_granted_to_whom_everything_is_allowed() {
    let requests = vec![request(&["*"], "*", &["*"])];
    let some = vec![request(&["get"], "*", &["*"])];
    assert!(matches!(
        roles(&World { requests: Some(requests.clone()), allowed: allowing(some), ..world() }),
        Roles::Refused(_)
    ));
    let all = vec![request(&["*"], "*", &["*"])];
    assert!(matches!(
        roles(&World { requests: Some(requests), allowed: allowing(all), ..world() }),
        Roles::Roles(_)
    ));
}

#[test]
fn the_binding_names_each_account_once() {
    let account = |name: &str| ("system".to_owned(), name.to_owned());
    let accounts = [account("b"), account("a"), account("b")];
    let all = bindings(&world().revision, &accounts);
    let [bound] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(bound["kind"], "ClusterRoleBinding");
    assert_eq!(bound["roleRef"]["name"], "crossplane:provider:p-1:system");
    assert_eq!(
        bound["subjects"],
        json!([
            {"kind": "ServiceAccount", "namespace": "system", "name": "a"},
            {"kind": "ServiceAccount", "namespace": "system", "name": "b"},
        ])
    );
}

#[test]
fn a_provider_with_rights_in_some_namespaces_has_a_binding_in_each_and_none_for_the_cluster() {
    let mut world = world();
    let labels = [
        ("crossplane.io/scope", "namespace"),
        ("namespace.crossplane.io/one", "true"),
        ("namespace.crossplane.io/two", "true"),
        ("namespace.crossplane.io/three", "false"),
    ];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    world.revision.spec.common_labels = Some(labels.into());
    let all = bindings(&world.revision, &[("system".to_owned(), "a".to_owned())]);
    let bound: Vec<(&str, &str)> = all
        .iter()
        .map(|one| (one["kind"].as_str().unwrap(), one["metadata"]["namespace"].as_str().unwrap()))
        .collect();
    assert_eq!(bound, [("RoleBinding", "one"), ("RoleBinding", "two")]);
    assert_eq!(all[0]["roleRef"]["kind"], "ClusterRole");
    assert_eq!(all[0]["subjects"][0]["name"], "a");
    world.accounts = vec![("system".to_owned(), "a".to_owned())];
    let Step::Do(plan) = step(&world) else { panic!("nothing is left to be known") };
    let told = told(&plan);
    assert!(told.contains("create RoleBinding crossplane:provider:p-1:system"), "{told}");
    assert!(!told.contains("create ClusterRoleBinding"), "{told}");
}

/// What a plan does to roles and bindings, as text.
fn told(plan: &Plan) -> String {
    let lines = plan.actions.iter().map(|action| match action {
        Action::Apply { object, expect } => {
            let how = if *expect == Expect::Absent { "create" } else { "apply" };
            format!("{how} {} {}", Target::of(object).kind, Target::of(object).name)
        }
        Action::Delete { target, .. } => format!("delete {} {}", target.kind, target.name),
        Action::Event { reason, message, .. } => format!("event {reason}: {message}"),
        other => panic!("no business of roles: {other:?}"),
    });
    lines.chain(plan.report.iter().map(|line| format!("# {line}"))).collect::<Vec<_>>().join("\n")
}

/// Carries a plan out on what the revision controls.
fn act(step: Step, owned: &mut Vec<Json>) -> String {
    let Step::Do(plan) = step else { panic!("{step:?}") };
    let shown = told(&plan);
    for action in plan.actions {
        match action {
            Action::Apply { object, .. } => {
                owned.retain(|one| Target::of(one) != Target::of(&object));
                owned.push(object);
            }
            Action::Delete { target, .. } => owned.retain(|one| Target::of(one) != target),
            _ => {}
        }
    }
    shown
}

#[test]
fn roles_come_with_a_revision_follow_it_and_go_when_it_is_inactive() {
    let mut world = world();
    world.accounts = vec![("system".to_owned(), "p-1".to_owned())];
    let mut owned = Vec::new();
    let mut next = |world: &mut World| {
        let told = act(step(world), &mut owned);
        world.owned.clone_from(&owned);
        told
    };
    let mut lines = vec![next(&mut world), next(&mut world)];
    world.accounts.push(("system".to_owned(), "other".to_owned()));
    lines.push(next(&mut world));
    world.revision.spec.desired_state = "Inactive".to_owned();
    lines.push(next(&mut world));
    world.accounts.clear();
    lines.extend([next(&mut world), next(&mut world)]);
    assert_snapshot!(lines.join("\n--\n"), @r"
    create ClusterRole crossplane:provider:p-1:aggregate-to-edit
    create ClusterRole crossplane:provider:p-1:aggregate-to-view
    create ClusterRole crossplane:provider:p-1:system
    create ClusterRoleBinding crossplane:provider:p-1:system
    event ApplyClusterRoles: Applied RBAC ClusterRoles: crossplane:provider:p-1:aggregate-to-edit, crossplane:provider:p-1:aggregate-to-view, crossplane:provider:p-1:system
    event BindClusterRole: Bound the system ClusterRole to the provider's ServiceAccounts
    # ClusterRole crossplane:provider:p-1:aggregate-to-edit is applied
    # ClusterRole crossplane:provider:p-1:aggregate-to-view is applied
    # ClusterRole crossplane:provider:p-1:system is applied
    # ClusterRoleBinding crossplane:provider:p-1:system is applied
    --

    --
    apply ClusterRoleBinding crossplane:provider:p-1:system
    event BindClusterRole: Bound the system ClusterRole to the provider's ServiceAccounts
    # ClusterRoleBinding crossplane:provider:p-1:system is applied
    --
    # its roles stay for as long as it runs
    --
    delete ClusterRole crossplane:provider:p-1:aggregate-to-edit
    delete ClusterRole crossplane:provider:p-1:aggregate-to-view
    delete ClusterRole crossplane:provider:p-1:system
    delete ClusterRoleBinding crossplane:provider:p-1:system
    # ClusterRole crossplane:provider:p-1:aggregate-to-edit goes
    # ClusterRole crossplane:provider:p-1:aggregate-to-view goes
    # ClusterRole crossplane:provider:p-1:system goes
    # ClusterRoleBinding crossplane:provider:p-1:system goes
    --
    ");
}

#[test]
fn roles_of_a_package_that_asks_for_too_much_are_taken_away() {
    let mut world = world();
    let mut owned = Vec::new();
    act(step(&world), &mut owned);
    world.owned = owned;
    world.requests = None;
    let Step::Do(plan) = step(&world) else { panic!("{:?}", step(&world)) };
    assert!(plan.actions.is_empty(), "nothing is known yet");
    world.requests = Some(vec![request(&["get"], "apps", &["deployments"])]);
    let Step::Do(plan) = step(&world) else { panic!("{:?}", step(&world)) };
    assert_snapshot!(told(&plan), @r"
    delete ClusterRole crossplane:provider:p-1:aggregate-to-edit
    delete ClusterRole crossplane:provider:p-1:aggregate-to-view
    delete ClusterRole crossplane:provider:p-1:system
    delete ClusterRoleBinding crossplane:provider:p-1:system
    # the package asks for permissions that nobody allowed: get deployments.apps; an administrator allows them where the manager is started, with --provider-clusterrole or --allow-any-permissions
    # ClusterRole crossplane:provider:p-1:aggregate-to-edit goes
    # ClusterRole crossplane:provider:p-1:aggregate-to-view goes
    # ClusterRole crossplane:provider:p-1:system goes
    # ClusterRoleBinding crossplane:provider:p-1:system goes
    ");
}

#[test]
fn nothing_happens_to_roles_of_what_is_paused_or_going() {
    let mut world = world();
    world.revision.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".to_owned());
    assert_eq!(step(&world), Step::Do(Plan::default()));
    world.revision.metadata.deletion_timestamp = None;
    let paused = ("crossplane.io/paused".to_owned(), "true".to_owned());
    world.revision.metadata.annotations.extend([paused]);
    assert_eq!(step(&world), Step::Do(Plan::default()));
}

#[test]
fn a_provider_without_kinds_still_gets_what_it_asked_for() {
    let revision = revision("p-1", "xpkg.example.org/acme/p:v1", &[]);
    let asked = vec![request(&["get"], "apps", &["deployments"])];
    let world =
        World { revision, requests: Some(asked.clone()), allowed: allowing(asked), ..world() };
    assert_snapshot!(show(&roles(&world)), @r#"
    crossplane:provider:p-1:system
      rbac.crossplane.io/system=p-1
      {"apiGroups":["","coordination.k8s.io"],"resources":["secrets","configmaps","events","leases"],"verbs":["*"]}
      {"apiGroups":["apps"],"resources":["deployments"],"verbs":["get"]}
    "#);
}

#[test]
fn a_definition_gets_roles_for_what_it_defines() {
    let definition = json!({
        "apiVersion": "apiextensions.crossplane.io/v2", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xbuckets.example.org", "uid": "u"},
        "spec": {
            "group": "example.org", "names": {"plural": "xbuckets"},
            "claimNames": {"plural": "buckets"},
        },
    });
    let wanted = definition::roles(&definition, &[]);
    let mut owned = Vec::new();
    let world = definition::World { definition, ..definition::World::default() };
    act(definition::step(&world), &mut owned);
    assert_eq!(owned, wanted);
    let world = definition::World { owned, ..world };
    assert_eq!(definition::step(&world), Step::Do(Plan::default()));
    assert_snapshot!(show(&Roles::Roles(wanted)), @r#"
    crossplane:composite:xbuckets.example.org:aggregate-to-crossplane
      rbac.crossplane.io/aggregate-to-crossplane=true
      {"apiGroups":["example.org"],"resources":["xbuckets","xbuckets/status"],"verbs":["*"]}
      {"apiGroups":["example.org"],"resources":["xbuckets/finalizers"],"verbs":["update"]}
      {"apiGroups":["example.org"],"resources":["buckets","buckets/status"],"verbs":["*"]}
      {"apiGroups":["example.org"],"resources":["buckets/finalizers"],"verbs":["update"]}
    crossplane:composite:xbuckets.example.org:aggregate-to-edit
      rbac.crossplane.io/aggregate-to-admin=true
      rbac.crossplane.io/aggregate-to-ns-admin=true
      rbac.crossplane.io/aggregate-to-edit=true
      rbac.crossplane.io/aggregate-to-ns-edit=true
      {"apiGroups":["example.org"],"resources":["xbuckets","xbuckets/status"],"verbs":["*"]}
      {"apiGroups":["example.org"],"resources":["buckets","buckets/status"],"verbs":["*"]}
    crossplane:composite:xbuckets.example.org:aggregate-to-view
      rbac.crossplane.io/aggregate-to-view=true
      rbac.crossplane.io/aggregate-to-ns-view=true
      {"apiGroups":["example.org"],"resources":["xbuckets","xbuckets/status"],"verbs":["get","list","watch"]}
      {"apiGroups":["example.org"],"resources":["buckets","buckets/status"],"verbs":["get","list","watch"]}
    crossplane:composite:xbuckets.example.org:aggregate-to-browse
      rbac.crossplane.io/aggregate-to-browse=true
      {"apiGroups":["example.org"],"resources":["xbuckets","xbuckets/status"],"verbs":["get","list","watch"]}
    "#);
}

/// A role by hand, under a name that a package's has.
fn by_hand(name: &str, metadata: &Json) -> Json {
    let mut role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": metadata, "rules": [],
    });
    role["metadata"]["name"] = json!(name);
    role
}

#[test]
fn c2_a_role_that_no_package_brought_is_left_alone_until_it_is_given() {
    let name = "crossplane:provider:p-1:system";
    let record = |manager: &str| json!({"managedFields": [{"manager": manager}]});
    let adopt = |to: &str| json!({"annotations": {"pkg.crossplane.io/adopt": to}});
    let owner = |kind: &str| {
        let one =
            json!({"apiVersion": "pkg.crossplane.io/v1", "kind": kind, "name": "p-0", "uid": "x"});
        json!({"ownerReferences": [one]})
    };
    for (what, metadata, expected) in [
        ("nothing is known of it", json!({}), false),
        ("kubectl made it", record("kubectl-create"), false),
        ("we made it", record("apron"), true),
        ("upstream made it", record("crossplane"), true),
        ("it is labelled", json!({"labels": {"rbac.crossplane.io/system": "p-1"}}), true),
        ("a revision owned it", owner("ProviderRevision"), true),
        ("something else owns it", owner("Lock"), false),
        ("it was given to the package", adopt("provider.pkg.crossplane.io/p"), true),
        ("to another", adopt("provider.pkg.crossplane.io/q"), false),
    ] {
        let mut world = World { uncontrolled: vec![by_hand(name, &metadata)], ..world() };
        world.revision.metadata.labels.insert(LABEL_PACKAGE.to_owned(), "p".to_owned());
        let Step::Do(plan) = step(&world) else { panic!("{what}") };
        let is_applied = plan.actions.iter().any(|one| matches!(one, Action::Apply { .. }));
        assert_eq!(is_applied, expected, "{what}: {}", told(&plan));
        if !expected {
            assert!(told(&plan).contains("it was there already, not brought"), "{}", told(&plan));
            world.adopts_existing = true;
            let Step::Do(plan) = step(&world) else { panic!("{what}") };
            assert!(told(&plan).contains(&format!("apply ClusterRole {name}")), "{}", told(&plan));
        }
    }
}

/// H1: RBAC knows no versions, so rights on a made-up version of a kind are rights on the real one.
#[test]
fn h1_no_rights_come_of_definitions_in_groups_of_others() {
    let closed = [
        (CRD.0, CRD.1, "clusterroles.rbac.authorization.k8s.io"),
        (CRD.0, CRD.1, "mutatingwebhookconfigurations.admissionregistration.k8s.io"),
        (MRD.0, MRD.1, "imageconfigs.pkg.crossplane.io"),
        (CRD.0, CRD.1, "deployments.apps"),
        (CRD.0, CRD.1, "gateways.gateway.networking.k8s.io"),
        // These are names of no kind, and to RBAC names of others'.
        (MRD.0, MRD.1, "*.cert-manager.example.org"),
        (CRD.0, CRD.1, "issuers/status.cert-manager.example.org"),
        (CRD.0, CRD.1, "Issuers.cert-manager.example.org"),
        (CRD.0, CRD.1, "issuers.*.cert-manager.example.org"),
    ];
    let closed = revision("p-1", "xpkg.example.org/acme/p:v1", &closed);
    let own = World { revision: closed.clone(), ..world() };
    assert_eq!(roles(&own), Roles::Roles(Vec::new()));
    let kin = revision("q-1", "xpkg.example.org/acme/q:v1", &[]);
    let kin = World { revision: kin, family: vec![closed.clone()], ..world() };
    assert_eq!(roles(&kin), Roles::Roles(Vec::new()));
    // A group of the community is for those who open it.
    let groups = vec!["gateway.networking.k8s.io".to_owned()];
    let open = World { allowed: Allowed { groups, ..Allowed::default() }, ..own };
    let Roles::Roles(made) = roles(&open) else { panic!("nothing is asked for") };
    let text: Vec<&Json> = made.iter().map(|role| &role["rules"]).collect();
    let text = json!(text).to_string();
    assert!(text.contains("gateway.networking.k8s.io"), "{text}");
    for group in
        ["rbac.authorization.k8s.io", "admissionregistration", "pkg.", "\"apps\"", "cert-manager"]
    {
        assert!(!text.contains(group), "{text}");
    }
}

/// H1, for composite resources and their claims.
#[test]
fn h1_no_rights_come_of_composite_resources_in_groups_of_others() {
    let definition = |group: &str| {
        json!({
            "apiVersion": "apiextensions.crossplane.io/v2", "kind": "CompositeResourceDefinition",
            "metadata": {"name": format!("xs.{group}"), "uid": "u"},
            "spec": {"group": group, "names": {"plural": "xs"}, "claimNames": {"plural": "clusterroles"}},
        })
    };
    let made = |group: &str| {
        let mut owned = Vec::new();
        let definition = definition(group);
        act(
            definition::step(&definition::World { definition, ..definition::World::default() }),
            &mut owned,
        );
        owned.len()
    };
    assert_eq!(made("example.org"), 4);
    for group in ["rbac.authorization.k8s.io", "pkg.crossplane.io", "apps", "x.k8s.io"] {
        assert_eq!(made(group), 0, "{group}");
    }
    // What an older manager made goes.
    let definition = definition("rbac.authorization.k8s.io");
    let owned = definition::roles(&definition, &[]);
    let world = definition::World { definition, owned, ..definition::World::default() };
    let Step::Do(plan) = definition::step(&world) else { panic!("nothing is needed") };
    assert_eq!(plan.actions.len(), 4);
    assert!(plan.actions.iter().all(|one| matches!(one, Action::Delete { .. })));
}

/// H1: a composite resource or a claim that is called like a kind of another owner is no way to that.
#[test]
fn h1_no_rights_come_of_composite_definitions_beside_those_of_others() {
    let definition = json!({
        "apiVersion": "apiextensions.crossplane.io/v2", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xs.example.org", "uid": "u"},
        "spec": {"group": "example.org", "names": {"plural": "xs"}, "claimNames": {"plural": "cs"}},
    });
    let custom = |plural: &str, (group, kind, name): (&str, &str, &str), controls: bool| {
        let owner = json!({
            "apiVersion": format!("{group}/v1"), "kind": kind, "name": name, "uid": "other",
            "controller": controls,
        });
        json!({"metadata": {"name": format!("{plural}.example.org"), "ownerReferences": [owner]}})
    };
    let core = "apiextensions.crossplane.io";
    let own = (core, "CompositeResourceDefinition", "xs.example.org");
    let bare = json!({"metadata": {"name": "xs.example.org"}});
    for (what, derived, expected) in [
        ("none is there", Vec::new(), &["xs", "cs"][..]),
        (
            "Crossplane made both",
            vec![custom("xs", own, true), custom("cs", own, true)],
            &["xs", "cs"],
        ),
        ("of no owner", vec![bare], &["cs"]),
        ("it does not control it", vec![custom("xs", own, false)], &["cs"]),
        (
            "a provider's",
            vec![custom("cs", ("pkg.crossplane.io", "ProviderRevision", "p-1"), true)],
            &["xs"],
        ),
        (
            "of another definition",
            vec![custom("cs", (core, own.1, "ys.example.org"), true)],
            &["xs"],
        ),
        ("of a kind called so", vec![custom("cs", ("x.org", own.1, own.2), true)], &["xs"]),
        (
            "both are others'",
            vec![custom("xs", ("x.org", "A", "a"), true), custom("cs", ("x.org", "A", "a"), true)],
            &[],
        ),
        ("it is about another name", vec![custom("ys", ("x.org", "A", "a"), true)], &["xs", "cs"]),
    ] {
        let made = definition::roles(&definition, &derived);
        let text = json!(made).to_string();
        for plural in ["xs", "cs"] {
            let is_there = text.contains(&format!("\"{plural}\""));
            assert_eq!(is_there, expected.contains(&plural), "{what}: {text}");
        }
        assert_eq!(made.is_empty(), expected.is_empty(), "{what}");
        // What was there before another owner came goes.
        let owned = definition::roles(&definition, &[]);
        let (definition, allowed) = (definition.clone(), Allowed::default());
        let world = definition::World { definition, derived, allowed, owned, ..Default::default() };
        let Step::Do(plan) = definition::step(&world) else { panic!("nothing is needed") };
        let gone = plan.actions.iter().filter(|one| matches!(one, Action::Delete { .. })).count();
        assert_eq!(gone, if expected.is_empty() { 4 } else { 0 }, "{what}");
        assert_eq!(plan.actions.is_empty(), expected.len() == 2, "{what}");
    }
    let names = definition::derived_definitions(&definition).into_iter().map(|one| one.name);
    assert!(names.eq(["xs.example.org", "cs.example.org"]));
}

/// H1: to RBAC `*` is every kind, and `issuers/status` a part of another's.
#[test]
fn h1_no_rights_come_of_composite_definitions_that_name_no_kind() {
    let own = "cert-manager.example.org";
    for (group, plural, claim, expected) in [
        (own, "xs", "cs", &["xs", "cs"][..]),
        (own, "xs", "*", &["xs"]),
        (own, "xs", "issuers/status", &["xs"]),
        (own, "xs", "Issuers", &["xs"]),
        (own, "xs", "", &["xs"]),
        (own, "xs", "issuers.more", &["xs"]),
        (own, "*", "cs", &["cs"]),
        (own, "*", "*/status", &[]),
        ("*", "xs", "cs", &[]),
        ("", "pods", "secrets", &[]),
        ("Cert-manager.example.org.", "xs", "cs", &[]),
    ] {
        let definition = json!({
            "apiVersion": "apiextensions.crossplane.io/v2", "kind": "CompositeResourceDefinition",
            "metadata": {"name": format!("xs.{group}"), "uid": "u"},
            "spec": {"group": group, "names": {"plural": plural}, "claimNames": {"plural": claim}},
        });
        let made = definition::roles(&definition, &[]);
        let rules = made.iter().flat_map(|role| role["rules"].as_array().unwrap());
        let resources = rules.flat_map(|rule| rule["resources"].as_array().unwrap());
        let kind = |one: &Json| one.as_str().unwrap().split('/').next().unwrap().to_owned();
        let kinds: BTreeSet<String> = resources.map(kind).collect();
        let wanted: BTreeSet<String> = expected.iter().copied().map(str::to_owned).collect();
        assert_eq!(kinds, wanted, "{plural} {claim} {group}");
        assert_eq!(definition::derived_definitions(&definition).len(), expected.len());
    }
}
