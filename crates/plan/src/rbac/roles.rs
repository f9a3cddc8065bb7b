//! The roles of a provider's revision, and who has them.

use super::World;
use crate::authority::{Allowed, rules};
use api::kind_reference::split_definition_name;
use api::meta::PermissionRequest;
use api::pkg::revision::Revision;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;

/// How labels of roles begin.
pub(super) const LABEL: &str = "rbac.crossplane.io/";
/// What says where a package has rights, among the labels for everything that it brings.
const LABEL_SCOPE: &str = "crossplane.io/scope";
const SCOPE_NAMESPACE: &str = "namespace";
/// How labels begin that name such a namespace.
const LABEL_NAMESPACE: &str = "namespace.crossplane.io/";
const READ: [&str; 3] = ["get", "list", "watch"];
/// What a controller does with its own kinds; deleting them is for people.
const OPERATE: [&str; 6] = ["get", "list", "watch", "update", "patch", "create"];

/// A kind of resource, by plural and group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// For example `buckets`.
    pub plural: String,
    /// For example `s3.aws.example.org`.
    pub group: String,
}

/// The roles, or what was asked for and is not allowed.
#[derive(Clone, Debug, PartialEq)]
pub enum Roles {
    /// These `ClusterRoles`; none while the revision brings no kinds and asks for nothing.
    Roles(Vec<Json>),
    /// None, because of this.
    Refused(Vec<PermissionRequest>),
}

/// The roles of a provider's revision.
pub fn roles(world: &World) -> Roles {
    let requests = world.requests.as_deref().unwrap_or_default();
    let refused = world.allowed.refused(requests);
    if !refused.is_empty() {
        return Roles::Refused(refused);
    }
    let mut resources: BTreeSet<Resource> = brought(&world.revision, &world.allowed).collect();
    for other in &world.family {
        if is_same_organisation(world, &world.revision.spec.image, &other.spec.image) {
            resources.extend(brought(other, &world.allowed));
        }
    }
    let name = &world.revision.metadata.name;
    let groups = by_group(&resources);
    let labels = json!({format!("{LABEL}system"): name});
    if resources.is_empty() {
        let asked = !requests.is_empty();
        let system = asked.then(|| role(world, "system", &labels, &system(world, &groups)));
        return Roles::Roles(system.into_iter().collect());
    }
    let aggregate = |to: &[&str]| -> Json {
        to.iter().map(|to| (format!("{LABEL}aggregate-to-{to}"), json!("true"))).collect()
    };
    let edit: Vec<Json> = groups.iter().map(|group| group.rule(&["*"])).collect();
    let view: Vec<Json> = groups.iter().map(|group| group.rule(&READ)).collect();
    let system = system(world, &groups);
    Roles::Roles(vec![
        role(world, "aggregate-to-edit", &aggregate(&["crossplane", "admin", "edit"]), &edit),
        role(world, "aggregate-to-view", &aggregate(&["view"]), &view),
        role(world, "system", &labels, &system),
    ])
}

/// The role of a provider's own controller, and the binding that gives it to it.
pub fn system_role(revision: &Revision) -> String {
    format!("crossplane:provider:{}:system", revision.metadata.name)
}

/// Whether a provider's revision has roles: it brings kinds, or asks for something else.
pub fn has_roles(revision: &Revision, requests: &[PermissionRequest], allowed: &Allowed) -> bool {
    !requests.is_empty() || brought(revision, allowed).next().is_some()
}

/// The namespaces that a provider has rights in, if its package object says that it has them in some
/// namespaces only: by labels for everything that it brings.
pub fn confined_to(revision: &Revision) -> Option<Vec<&str>> {
    let labels = revision.spec.common_labels.as_ref()?;
    let is_confined = labels.get(LABEL_SCOPE).is_some_and(|scope| scope == SCOPE_NAMESPACE);
    let named = labels.iter().filter(|(_, value)| *value == "true");
    let named = named.filter_map(|(key, _)| key.strip_prefix(LABEL_NAMESPACE));
    is_confined.then(|| named.collect())
}

/// The label by which bindings of a revision are found, in whatever namespace.
pub fn system_label(revision: &Revision) -> (String, String) {
    (format!("{LABEL}system"), revision.metadata.name.clone())
}

/// The bindings of a provider's revision to the accounts its controllers run as: one for the whole
/// cluster, or one in each namespace that it has rights in.
pub fn bindings(revision: &Revision, accounts: &[(String, String)]) -> Vec<Json> {
    let everywhere = binding(revision, accounts);
    let Some(namespaces) = confined_to(revision) else { return vec![everywhere] };
    let (key, value) = system_label(revision);
    let within = namespaces.into_iter().map(|namespace| {
        let mut binding = everywhere.clone();
        binding["kind"] = json!("RoleBinding");
        binding["metadata"]["namespace"] = json!(namespace);
        binding["metadata"]["labels"] = json!({key.as_str(): value});
        binding
    });
    within.collect()
}

fn binding(revision: &Revision, accounts: &[(String, String)]) -> Json {
    let role = system_role(revision);
    let sorted: BTreeSet<&(String, String)> = accounts.iter().collect();
    let subjects: Vec<Json> = sorted
        .into_iter()
        .map(|(namespace, name)| json!({"kind": "ServiceAccount", "namespace": namespace, "name": name}))
        .collect();
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role, "ownerReferences": [owner(revision)]},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": subjects,
    })
}

fn role(world: &World, end: &str, labels: &Json, rules: &[Json]) -> Json {
    let name = format!("crossplane:provider:{}:{end}", world.revision.metadata.name);
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels, "ownerReferences": [owner(&world.revision)]},
        "rules": rules,
    })
}

fn owner(revision: &Revision) -> Json {
    json!({
        "apiVersion": revision.api_version, "kind": revision.kind,
        "name": revision.metadata.name, "uid": revision.metadata.uid.clone().unwrap_or_default(),
        "controller": true, "blockOwnerDeletion": true,
    })
}

fn system(world: &World, groups: &[Group<'_>]) -> Vec<Json> {
    let mut rules: Vec<Json> = groups.iter().map(|group| group.rule(&OPERATE)).collect();
    let names: Vec<&str> = groups.iter().map(|group| group.name).collect();
    if !names.is_empty() {
        rules.push(json!({"apiGroups": names, "resources": ["*/finalizers"], "verbs": ["update"]}));
    }
    rules.push(json!({
        "apiGroups": ["", "coordination.k8s.io"],
        "resources": ["secrets", "configmaps", "events", "leases"],
        "verbs": ["*"],
    }));
    if world.is_safe_start {
        rules.push(json!({
            "apiGroups": ["apiextensions.k8s.io"],
            "resources": ["customresourcedefinitions"],
            "verbs": READ,
        }));
    }
    rules.extend(world.requests.iter().flatten().map(rules::to_json));
    rules
}

/// The kinds a revision brings, as its status says; a definition of managed resources is not told of
/// there while its kind has another owner. Whatever the status says, no role has rights on
/// groups that are closed to packages: RBAC cannot tell a made-up version of a kind from a real one.
/// Nor has any by a name that no kind can have: `*` is every kind to RBAC.
fn brought<'a>(
    revision: &'a Revision,
    allowed: &'a Allowed,
) -> impl Iterator<Item = Resource> + 'a {
    let references = revision.status.iter().filter_map(|status| status.object_refs.as_ref());
    let resources = references.flatten().filter_map(|reference| {
        let group = reference.api_version.split('/').next().unwrap_or_default();
        let defines = matches!(
            (group, reference.kind.as_str()),
            ("apiextensions.k8s.io", "CustomResourceDefinition")
                | ("apiextensions.crossplane.io", "ManagedResourceDefinition")
        );
        let (plural, group) = split_definition_name(&reference.name)?;
        let (plural, group) = (plural.to_owned(), group.to_owned());
        defines.then_some(Resource { plural, group })
    });
    resources.filter(|one| allowed.closed(&one.group).is_none())
}

/// Whether two images come from one registry and one organisation there.
fn is_same_organisation(world: &World, one: &str, two: &str) -> bool {
    let rules = oci::Rules::weak().default_registry(&world.default_registry).git_sources();
    let organisation = |image: &str| {
        let reference = oci::Reference::parse(image, &rules).ok()?;
        let repository = reference.repository();
        let (first, _) = repository.path().split_once('/')?;
        Some((repository.registry().to_owned(), first.to_owned()))
    };
    organisation(one).is_some_and(|one| Some(one) == organisation(two))
}

/// Resources of one API group.
struct Group<'a> {
    name: &'a str,
    resources: Vec<String>,
}

impl Group<'_> {
    fn rule(&self, verbs: &[&str]) -> Json {
        json!({"apiGroups": [self.name], "resources": self.resources, "verbs": verbs})
    }
}

/// Resources by group, in the order of the first resource of each.
fn by_group(resources: &BTreeSet<Resource>) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for Resource { plural, group } in resources {
        let resources = [plural.clone(), format!("{plural}/status")];
        match groups.iter_mut().find(|known| known.name == group) {
            Some(known) => known.resources.extend(resources),
            None => groups.push(Group { name: group, resources: resources.to_vec() }),
        }
    }
    groups
}
