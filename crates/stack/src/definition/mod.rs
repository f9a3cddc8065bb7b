//! `*crd.yaml`: the definitions that a package owns.

pub(crate) mod beta;

use super::app::PermissionScope;
use super::files::directory_of;
use super::findings::{StackFindings, locate_field};
use super::{STACK_GROUP, rules};
use serde_json::{Map, Value as Json, json};
use xpkg::reserved::reserved;
use yaml::{Node, Position};

const BETA: &str = "apiextensions.k8s.io/v1beta1";
const STABLE: &str = "apiextensions.k8s.io/v1";
/// So many faults of one definition are told.
const FAULTS_MAX: usize = 20;
/// What API servers fill in and no file has to say.
const SERVER_FIELDS: [&str; 6] =
    ["creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"];

/// A definition that a package owns, in `v1`.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedDefinition {
    /// The file it came from.
    pub file: String,
    /// Where it begins there.
    pub position: Position,
    /// The object, with labels and annotations.
    pub object: Json,
    /// The group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The plural.
    pub plural: String,
    /// The version that is stored.
    pub storage_version: String,
    /// All versions, in the order written.
    pub versions: Vec<String>,
}

impl OwnedDefinition {
    /// The directory that metadata has to lie in, or above.
    pub(crate) fn directory(&self) -> &str {
        directory_of(&self.file)
    }

    /// The name of the object.
    pub fn name(&self) -> &str {
        self.object.pointer("/metadata/name").and_then(Json::as_str).unwrap_or_default()
    }

    /// Whether any version has this subresource.
    pub(crate) fn has_subresource(&self, name: &str) -> bool {
        let versions = self.object.pointer("/spec/versions").and_then(Json::as_array);
        let mut subresources =
            versions.into_iter().flatten().filter_map(|version| version.get("subresources"));
        subresources.any(|all| all.get(name).is_some_and(|value| !value.is_null()))
    }

    /// The annotations, made if there are none.
    pub(crate) fn annotations_mut(&mut self) -> Option<&mut Map<String, Json>> {
        metadata_map(&mut self.object, "annotations")
    }

    /// Reads one document of a `*crd.yaml`.
    pub(crate) fn read_definition(
        file: &str,
        node: &Node<'_>,
        scope: Option<PermissionScope>,
        findings: &mut StackFindings,
    ) -> Option<Self> {
        let mut object = read_stable(file, node, findings)?;
        clean_object(&mut object);
        let mut errors = schema::validate_crd(&object, None);
        errors.truncate(FAULTS_MAX);
        for error in &errors {
            let place = (file, locate_field(node, &error.path));
            let hint = "correct the definition: no API server takes it like this";
            findings.advise_at(&rules::DEFINITION_INVALID, place, error.to_string(), hint);
        }
        check_group(file, node, findings);
        check_scope(file, node, &object, scope, findings);
        errors.is_empty().then(|| Self::from_object(file, node.position, object))
    }

    fn from_object(file: &str, position: Position, mut object: Json) -> Self {
        if let Some(labels) = metadata_map(&mut object, "labels") {
            labels.insert("app.kubernetes.io/managed-by".to_owned(), json!("package-manager"));
        }
        let text =
            |path: &str| object.pointer(path).and_then(Json::as_str).unwrap_or_default().to_owned();
        let versions = object.pointer("/spec/versions").and_then(Json::as_array);
        let versions = versions.map(Vec::as_slice).unwrap_or_default();
        let name = |version: &Json| version["name"].as_str().unwrap_or_default().to_owned();
        let stored = versions.iter().find(|version| version["storage"] == json!(true));
        Self {
            file: file.to_owned(),
            position,
            group: text("/spec/group"),
            kind: text("/spec/names/kind"),
            plural: text("/spec/names/plural"),
            storage_version: stored.map(name).unwrap_or_default(),
            versions: versions.iter().map(name).collect(),
            object,
        }
    }
}

/// The definition in `v1`, whichever version it was written in.
fn read_stable(file: &str, node: &Node<'_>, findings: &mut StackFindings) -> Option<Json> {
    let text = |key: &str| node.get(key).and_then(Node::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if kind == "CustomResourceDefinition" && api_version == STABLE {
        return Some(node.to_json());
    }
    if kind != "CustomResourceDefinition" || api_version != BETA {
        let at = node.entry("kind").map_or(node.position, |entry| entry.position);
        let message = format!("{kind:?} in {api_version:?} is not a CustomResourceDefinition");
        let hint = format!("write one of {STABLE} or {BETA}, and nothing else, in *crd.yaml");
        findings.advise_at(&rules::DEFINITION_INVALID, (file, at), message, hint);
        return None;
    }
    check_first_version(file, node, findings);
    let beta::BetaDefinition { object, unchecked } = beta::convert_definition(&node.to_json());
    for (version, why) in unchecked {
        let at = node.get("spec").map_or(node.position, |spec| spec.position);
        let message = format!("objects of version {version:?} will not be checked: {why}");
        let hint = "write a structural schema; until then every field is accepted and kept";
        findings.advise_at(&rules::DEFINITION_SCHEMA, (file, at), message, hint);
    }
    Some(object)
}

/// In `v1beta1` the single version, if it is said beside a list, is the first of the list.
fn check_first_version(file: &str, node: &Node<'_>, findings: &mut StackFindings) {
    let single = node.at(&["spec", "version"]).filter(|version| !version.is_null());
    let listed = node.at(&["spec", "versions"]).map(Node::items).unwrap_or_default();
    let (Some(single), Some(first)) = (single, listed.first()) else { return };
    if single.as_str() != first.get("name").and_then(Node::as_str) {
        let message = "spec.version is not the first of spec.versions";
        let hint = "make them the same, or remove spec.version";
        let place = (file, single.position);
        findings.advise_at(&rules::DEFINITION_INVALID, place, message, hint);
    }
}

/// Takes out what only API servers write.
fn clean_object(object: &mut Json) {
    if let Json::Object(root) = object {
        root.shift_remove("status");
    }
    if let Some(Json::Object(metadata)) = object.get_mut("metadata") {
        for field in SERVER_FIELDS {
            metadata.shift_remove(field);
        }
    }
}

/// A map of texts in the metadata, made if there is none.
fn metadata_map<'o>(object: &'o mut Json, key: &str) -> Option<&'o mut Map<String, Json>> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    let map = metadata.entry(key).or_insert_with(|| json!({}));
    if map.is_null() {
        *map = json!({});
    }
    map.as_object_mut()
}

fn check_group(file: &str, node: &Node<'_>, findings: &mut StackFindings) {
    let Some(written) = node.at(&["spec", "group"]) else { return };
    let group = written.as_str().unwrap_or_default();
    if group == STACK_GROUP || (!group.is_empty() && reserved(group).is_some()) {
        let message = format!("group {group:?} is not a package's to define kinds in");
        let hint = "use a group under a domain of your own";
        findings.advise_at(&rules::GROUP_RESERVED, (file, written.position), message, hint);
    }
}

fn check_scope(
    file: &str,
    node: &Node<'_>,
    object: &Json,
    scope: Option<PermissionScope>,
    findings: &mut StackFindings,
) {
    let is_namespaced = scope == Some(PermissionScope::Namespaced);
    if is_namespaced && object.pointer("/spec/scope") == Some(&json!("Cluster")) {
        let at = locate_field(node, "spec.scope");
        let message = "a package of permissionScope Namespaced owns a definition of scope Cluster";
        let hint = "make the definition Namespaced, or the package's permissionScope Cluster";
        findings.advise_at(&rules::DEFINITION_SCOPE, (file, at), message, hint);
    }
}
