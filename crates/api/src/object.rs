//! What every object in a cluster has.

use crate::pkg::ANNOTATION_PAUSED;
use crate::wire::{Schema, wire};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

/// Name, owners, labels and so on.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Which object of that name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The state of the object this was read from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// Counts changes of what is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// When somebody asked for the object to be deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<String>,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Who must agree before the object goes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Whose going makes the object go.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
    /// Fields this type does not know, kept as they are.
    #[serde(flatten)]
    pub rest: serde_json::Map<String, Json>,
}

impl ObjectMeta {
    /// Whether somebody has stopped all work on the object.
    pub fn is_paused(&self) -> bool {
        self.annotations.get(ANNOTATION_PAUSED).is_some_and(|paused| paused == "true")
    }
}

/// The API server checks metadata itself, so its schema says nothing.
impl Schema for ObjectMeta {
    fn schema() -> Json {
        json!({"type": "object"})
    }

    fn is_required() -> bool {
        false
    }
}

wire! {
    /// An owner of an object.
    OwnerReference {
        /// The version of its API.
        api_version: String = "apiVersion",
        /// Its kind.
        kind: String = "kind",
        /// Its name.
        name: String = "name",
        /// Which object of that name.
        uid: String = "uid",
        /// Whether it is the one that controls the object.
        controller: Option<bool> = "controller",
        /// Whether it waits for the object to go first.
        block_owner_deletion: Option<bool> = "blockOwnerDeletion",
    }
}
