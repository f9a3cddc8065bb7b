//! What is kept of a package to compare it: digests of objects, and definitions.

use crate::Limits;
use crate::lint::ObjectKind;
use crate::open::{self, OpenError};
use api::meta::Meta;
use oci::Digest;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use yaml::Node;

/// How an object is told from others across versions of a package: the version of its API does
/// not count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ObjectKey {
    /// The API group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
}

impl ObjectKey {
    fn of(node: &Node<'_>) -> Self {
        let text = |path: &[&str]| node.at(path).and_then(Node::as_str).unwrap_or_default();
        let group = text(&["apiVersion"]).split_once('/').map_or("", |(group, _)| group);
        let (kind, name) = (text(&["kind"]), text(&["metadata", "name"]));
        Self { group: group.to_owned(), kind: kind.to_owned(), name: name.to_owned() }
    }

    pub(super) fn of_json(object: &Json) -> Self {
        let text = |path| object.pointer(path).and_then(Json::as_str).unwrap_or_default();
        let group = text("/apiVersion").split_once('/').map_or("", |(group, _)| group);
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        Self { group: group.to_owned(), kind: kind.to_owned(), name: name.to_owned() }
    }

    /// Whether it defines resources.
    pub fn is_definition(&self) -> bool {
        let kind = ObjectKind::find_in_group(&self.group, &self.kind);
        kind.is_some_and(ObjectKind::is_definition)
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_definition() {
            return formatter.write_str(&self.name);
        }
        write!(formatter, "{} {}", self.kind, self.name)
    }
}

/// What is kept of a package.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    pub(super) meta: Option<Meta>,
    pub(super) objects: BTreeMap<ObjectKey, Object>,
}

/// What is kept of an object.
#[derive(Clone, Debug)]
pub(super) struct Object {
    /// Of everything it says, in whatever order.
    pub(super) digest: Digest,
    /// Definitions as JSON without descriptions. A text takes a fraction of a tree's memory.
    definition: Option<String>,
}

impl Object {
    fn of(mut json: Json, key: &ObjectKey) -> Self {
        json.sort_all_objects();
        let digest = Digest::of(json.to_string().as_bytes());
        let definition = key.is_definition().then(|| as_compared(json).to_string());
        Self { digest, definition }
    }

    pub(super) fn definition(&self) -> Option<Json> {
        self.definition.as_deref().and_then(|text| serde_json::from_str(text).ok())
    }
}

impl Contents {
    /// Reads a package's stream. Documents that cannot be read are findings of the linter, and
    /// are left out here.
    pub fn read(reader: impl Read, limits: &Limits) -> Result<Self, OpenError> {
        let mut objects = BTreeMap::new();
        let make = |_: &yaml::RawDocument, node: Option<&Node<'_>>| {
            let node = node?;
            let key = ObjectKey::of(node);
            if api::meta::is_meta_group(node.get("apiVersion").and_then(Node::as_str)?) {
                return None;
            }
            let object = Object::of(node.to_json(), &key);
            Some((key, object))
        };
        let take = |made: Option<(ObjectKey, Object)>| {
            objects.extend(made);
            Ok::<(), OpenError>(())
        };
        let opened = open::read_with(reader, limits, make, take, &|| false)?;
        Ok(Self { meta: opened.meta().cloned(), objects })
    }

    /// Puts a package together that was read before: its metadata, its definitions as JSON, and the
    /// digests of its other objects' JSON with sorted keys. Objects that two packages have in common may
    /// be left out of both.
    pub fn assemble(
        meta: Option<Meta>,
        definitions: impl IntoIterator<Item = Json>,
        others: impl IntoIterator<Item = (ObjectKey, Digest)>,
    ) -> Self {
        let definitions = definitions.into_iter().map(|json| {
            let key = ObjectKey::of_json(&json);
            let object = Object::of(json, &key);
            (key, object)
        });
        let others =
            others.into_iter().map(|(key, digest)| (key, Object { digest, definition: None }));
        Self { meta, objects: definitions.chain(others).collect() }
    }

    /// What the package says about itself.
    pub fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }
}

/// Keys of either package, each once.
pub(super) fn all_keys<'a>(
    old: &'a Contents,
    new: &'a Contents,
) -> impl Iterator<Item = &'a ObjectKey> {
    let added = new.objects.keys().filter(|key| !old.objects.contains_key(*key));
    old.objects.keys().chain(added)
}

/// A definition in the form that is compared.
pub(super) fn as_compared(mut definition: Json) -> Json {
    give_each_version_its_own(&mut definition);
    drop_descriptions(&mut definition);
    definition
}

/// Definitions of `v1beta1` may say once for all versions what each says itself since `v1`, and may
/// have one version without a list.
fn give_each_version_its_own(definition: &mut Json) {
    if definition["apiVersion"] != "apiextensions.k8s.io/v1beta1" {
        return;
    }
    let Some(spec) = definition.get_mut("spec").and_then(Json::as_object_mut) else { return };
    let (schema, subresources) =
        (spec.get("validation").cloned(), spec.get("subresources").cloned());
    if let (None, Some(name)) = (spec.get("versions"), spec.get("version").cloned()) {
        let only = json!([{"name": name, "served": true, "storage": true}]);
        spec.insert("versions".to_owned(), only);
    }
    let versions = spec.get_mut("versions").and_then(Json::as_array_mut).into_iter().flatten();
    for version in versions.filter_map(Json::as_object_mut) {
        for (field, common) in [("schema", &schema), ("subresources", &subresources)] {
            if let Some(common) = common {
                version.entry(field).or_insert_with(|| common.clone());
            }
        }
    }
}

/// Removes the texts for people from a definition's schemas.
fn drop_descriptions(definition: &mut Json) {
    let versions = definition.pointer_mut("/spec/versions").and_then(Json::as_array_mut);
    for version in versions.into_iter().flatten() {
        if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
            drop_schema_descriptions(schema);
        }
    }
}

/// A field may be called `description`, so only keywords of schemas are removed.
fn drop_schema_descriptions(schema: &mut Json) {
    let Json::Object(keywords) = schema else { return };
    for keyword in ["description", "title", "example", "externalDocs"] {
        keywords.shift_remove(keyword);
    }
    for (keyword, value) in keywords {
        match keyword.as_str() {
            "properties" => each_value(value, drop_schema_descriptions),
            "items" | "additionalProperties" | "not" => drop_schema_descriptions(value),
            "allOf" | "anyOf" | "oneOf" => {
                let branches = value.as_array_mut().into_iter().flatten();
                branches.for_each(drop_schema_descriptions);
            }
            _ => {}
        }
    }
}

fn each_value(entries: &mut Json, change: impl FnMut(&mut Json)) {
    entries.as_object_mut().into_iter().flat_map(Map::values_mut).for_each(change);
}
