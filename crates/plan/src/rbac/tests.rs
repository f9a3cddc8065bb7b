//! Roles, as text.

use super::{Roles, World, binding, roles};
use api::meta::PermissionRequest;
use api::pkg::revision::Revision;
use insta::assert_snapshot;
use serde_json::{Value as Json, json};

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
    World { revision, default_registry: "index.docker.io".to_owned(), ..World::default() }
}

fn show(roles: &Roles) -> String {
    let roles = match roles {
        Roles::Refused(what) => return format!("refused: {}", what.join(", ")),
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
    let told = show(&roles(&World { requests, allowed, ..world() }));
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
    let allowed = vec![request(&["get"], "apps", &["*"]), one];
    let told = show(&roles(&World { requests, allowed, ..world() }));
    assert_snapshot!(told, @r"
    refused: delete deployments.apps, delete replicasets.apps, get /metrics, get secrets two
    ");
}

#[test]
fn everything_is_only_granted_to_whom_everything_is_allowed() {
    let requests = vec![request(&["*"], "*", &["*"])];
    let some = vec![request(&["get"], "*", &["*"])];
    assert!(matches!(
        roles(&World { requests: requests.clone(), allowed: some, ..world() }),
        Roles::Refused(_)
    ));
    let all = vec![request(&["*"], "*", &["*"])];
    assert!(matches!(roles(&World { requests, allowed: all, ..world() }), Roles::Roles(_)));
}

#[test]
fn the_binding_names_each_account_once() {
    let account = |name: &str| ("system".to_owned(), name.to_owned());
    let accounts = [account("b"), account("a"), account("b")];
    let bound = binding(&world().revision, &accounts);
    assert_eq!(bound["roleRef"]["name"], "crossplane:provider:p-1:system");
    assert_eq!(
        bound["subjects"],
        json!([
            {"kind": "ServiceAccount", "namespace": "system", "name": "a"},
            {"kind": "ServiceAccount", "namespace": "system", "name": "b"},
        ])
    );
}
