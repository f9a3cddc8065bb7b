//! A replica set as it is, and as it is to be.

use schema::object::{map_at, meta_text, metadata, metadata_mut};
use serde_json::{Map, Value, json};

use super::{REVISION, SetAction, labelled_selector};
use crate::reading::{annotation, count_at, optional_count, text_at};
use crate::template::labelled_template;

/// The size that the Deployment had when the set was last sized.
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// The largest number of pods the Deployment allowed then.
const MOST: &str = "deployment.kubernetes.io/max-replicas";
/// Earlier numbers of the set's template.
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// Annotations of a Deployment that say nothing about its pods.
const OWN: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MOST,
    "deprecated.deployment.rollback.to",
];

/// The longest name of a replica set, in bytes.
const NAME_SIZE_MAX: usize = 253;

/// A replica set that may be changed.
#[derive(Debug, Clone)]
pub(super) struct SetDraft {
    pub(super) object: Value,
    /// What it was; nothing, if it is to be made.
    before: Option<Value>,
}

impl SetDraft {
    pub(super) fn of_object(object: &Value) -> Self {
        Self { object: object.clone(), before: Some(object.clone()) }
    }

    pub(super) fn new_one(object: Value) -> Self {
        Self { object, before: None }
    }

    pub(super) fn name(&self) -> &str {
        meta_text(&self.object, "name")
    }

    /// Older sets come first; of those of one second the order is that of their names.
    pub(super) fn age_key(&self) -> (&str, &str) {
        (meta_text(&self.object, "creationTimestamp"), self.name())
    }

    /// How many pods it is to have.
    pub(super) fn size(&self) -> i64 {
        optional_count(&self.object, "/spec/replicas").unwrap_or(1)
    }

    /// How many it has.
    pub(super) fn actual(&self) -> i64 {
        count_at(&self.object, "/status/replicas")
    }

    pub(super) fn ready(&self) -> i64 {
        count_at(&self.object, "/status/readyReplicas")
    }

    pub(super) fn available(&self) -> i64 {
        count_at(&self.object, "/status/availableReplicas")
    }

    /// How many of its pods end; nothing if its controller does not count them.
    pub(super) fn terminating(&self) -> Option<i64> {
        // A set that its controller has not seen yet has no pods.
        let is_unseen = count_at(&self.object, "/status/observedGeneration") == 0;
        let told = optional_count(&self.object, "/status/terminatingReplicas");
        told.or(is_unseen.then_some(0))
    }

    /// The size the Deployment had when this was sized.
    pub(super) fn desired(&self) -> Option<i64> {
        annotation(&self.object, DESIRED).parse().ok()
    }

    /// The largest number of pods that were allowed then.
    pub(super) fn most(&self) -> Option<i64> {
        annotation(&self.object, MOST).parse().ok()
    }

    pub(super) fn set_min_ready(&mut self, seconds: i64) {
        if count_at(&self.object, "/spec/minReadySeconds") != seconds {
            map_at(&mut self.object, "spec").insert("minReadySeconds".to_owned(), json!(seconds));
        }
    }

    /// Gives it a size, and notes what the Deployment wished then.
    pub(super) fn resize(&mut self, size: i64, wished: i64, most: i64) {
        map_at(&mut self.object, "spec").insert("replicas".to_owned(), json!(size));
        let annotations = annotations_of(&mut self.object);
        annotations.insert(DESIRED.to_owned(), json!(wished.to_string()));
        annotations.insert(MOST.to_owned(), json!(most.to_string()));
    }

    /// The same, if it has another size; says whether it had.
    pub(super) fn resize_if_other(&mut self, size: i64, wished: i64, most: i64) -> bool {
        let is_other = self.size() != size;
        if is_other {
            self.resize(size, wished, most);
        }
        is_other
    }

    pub(super) fn deletion(&self) -> SetAction {
        let uid = text_at(&self.object, "/metadata/uid").to_owned();
        SetAction::Delete { name: self.name().to_owned(), uid }
    }

    /// What has to be done for it to be so.
    pub(super) fn into_action(self) -> Option<SetAction> {
        let Some(before) = self.before.as_ref() else { return Some(SetAction::Make(self.object)) };
        if *before == self.object {
            return None;
        }
        let annotations = metadata(&self.object).get("annotations").and_then(Value::as_object);
        Some(SetAction::Amend {
            name: self.name().to_owned(),
            uid: text_at(&self.object, "/metadata/uid").to_owned(),
            replicas: self.size(),
            annotations: annotations.cloned().unwrap_or_default(),
            min_ready: count_at(&self.object, "/spec/minReadySeconds"),
        })
    }
}

fn annotations_of(object: &mut Value) -> &mut Map<String, Value> {
    let slot = metadata_mut(object).entry("annotations").or_insert_with(|| json!({}));
    if !slot.is_object() {
        *slot = json!({});
    }
    let Value::Object(map) = slot else { unreachable!("made an object above") };
    map
}

/// Gives a set the Deployment's annotations and a number that is not below this one.
pub(super) fn annotate_set(set: &mut Value, deployment: &Value, revision: i64) {
    let said = metadata(deployment).get("annotations").and_then(Value::as_object);
    let before = annotation(set, REVISION).to_owned();
    let annotations = annotations_of(set);
    for (name, value) in said.into_iter().flatten() {
        if !OWN.contains(&name.as_str()) {
            annotations.insert(name.clone(), value.clone());
        }
    }
    if before.parse::<i64>().unwrap_or(0) >= revision {
        return;
    }
    annotations.insert(REVISION.to_owned(), json!(revision.to_string()));
    if !before.is_empty() {
        let history = annotations.get(HISTORY).and_then(Value::as_str).unwrap_or_default();
        let history = if history.is_empty() { before } else { format!("{history},{before}") };
        annotations.insert(HISTORY.to_owned(), json!(history));
    }
}

/// The name of a Deployment's set: long names are cut so that it is one.
fn set_name(name: &str, hash: &str) -> String {
    let most = NAME_SIZE_MAX.saturating_sub(hash.len()).saturating_sub(1);
    format!("{}-{hash}", name.get(..most).unwrap_or(name))
}

/// A set for a template, of no size yet.
pub(super) fn new_set(deployment: &Value, template: &Value, hash: &str) -> Value {
    let name = meta_text(deployment, "name");
    let template = labelled_template(template, hash);
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": set_name(name, hash), "namespace": meta_text(deployment, "namespace"),
            "labels": template.pointer("/metadata/labels").cloned().unwrap_or_default(),
            "annotations": {},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": name,
                "uid": meta_text(deployment, "uid"), "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "replicas": 0, "minReadySeconds": count_at(deployment, "/spec/minReadySeconds"),
            "selector": labelled_selector(deployment, hash), "template": template,
        },
    })
}
