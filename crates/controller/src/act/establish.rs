//! Makes an object of the cluster what a package says.
//!
//! The package's document is parsed again, because it was too large to be kept. What the plan lays
//! over it wins; what others wrote into the metadata of the object stays; the rest is replaced.

use super::require;
use crate::Hands;
use crate::cache::CacheError;
use crate::cluster::{Error, Mode, chain};
use plan::step::{Expect, Packaged, Write};
use serde_json::{Map, Value as Json};

/// Fields of the metadata in which others have a say: theirs stay beside ours.
const SHARED: [&str; 2] = ["labels", "annotations"];

/// Makes the object, or replaces it.
pub(super) async fn establish(hands: &Hands, write: &Write, mode: Mode) -> Result<(), Error> {
    let Write { target, object, expect } = write;
    let wanted = wanted(hands, object).await?;
    let live = match expect {
        Expect::Absent => None,
        Expect::Anything | Expect::Unchanged { .. } => hands.cluster.get(target).await?,
    };
    let Some(live) = live else {
        if matches!(expect, Expect::Unchanged { .. }) {
            return Err(Error::Stale(format!("{} {} is gone", target.kind, target.name)));
        }
        return hands.cluster.create(target, &wanted, mode).await.map(|_| ());
    };
    let mut wanted = over(wanted, live);
    require(&mut wanted, expect);
    hands.cluster.replace(target, &wanted, mode).await.map(|_| ())
}

/// A package's object with what the plan lays over it, as it is sent.
pub(crate) async fn wanted(hands: &Hands, object: &Packaged) -> Result<Json, Error> {
    let mut wanted = document(hands, object).await?;
    merge(&mut wanted, &object.overlay);
    Ok(wanted)
}

async fn document(hands: &Hands, object: &Packaged) -> Result<Json, Error> {
    let read = hands.cache.document(&object.package, object.document).await;
    read.map_err(|error| match error {
        // It is fetched again when the package is looked at again.
        CacheError::Absent { .. } | CacheError::Damaged { .. } => Error::Stale(error.to_string()),
        other => Error::Busy(chain(&other)),
    })
}

/// What is wanted, with what others wrote into the metadata and status of the live object.
fn over(mut wanted: Json, mut live: Json) -> Json {
    let mut metadata = match live["metadata"].take() {
        Json::Object(metadata) => metadata,
        _ => Map::new(),
    };
    metadata.remove("managedFields");
    let ours = wanted["metadata"].take();
    for (field, value) in ours.as_object().into_iter().flatten() {
        if SHARED.contains(&field.as_str()) && metadata.contains_key(field) {
            merge(&mut metadata[field], value);
        } else {
            metadata.insert(field.clone(), value.clone());
        }
    }
    wanted["metadata"] = Json::Object(metadata);
    if let Some(status) = live.get_mut("status") {
        wanted["status"] = status.take();
    }
    wanted
}

/// Lays one value over another: objects are merged, everything else is replaced.
fn merge(base: &mut Json, overlay: &Json) {
    match (base, overlay) {
        (Json::Object(base), Json::Object(overlay)) => {
            for (key, value) in overlay {
                merge(base.entry(key.clone()).or_insert(Json::Null), value);
            }
        }
        (base, overlay) => *base = overlay.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_others_wrote_into_the_metadata_stays() {
        let wanted = json!({
            "apiVersion": "v1", "kind": "X", "metadata": {
                "name": "x", "labels": {"ours": "new"}, "ownerReferences": [{"uid": "1"}],
            },
            "spec": {"a": 1},
        });
        let live = json!({
            "apiVersion": "v1", "kind": "X", "metadata": {
                "name": "x", "uid": "u", "resourceVersion": "7", "finalizers": ["f"],
                "labels": {"ours": "old", "theirs": "1"}, "annotations": {"theirs": "2"},
                "ownerReferences": [{"uid": "0"}], "managedFields": [{}],
            },
            "spec": {"a": 0, "b": 2}, "status": {"c": 3},
        });
        assert_eq!(
            over(wanted, live),
            json!({
                "apiVersion": "v1", "kind": "X", "metadata": {
                    "name": "x", "uid": "u", "resourceVersion": "7", "finalizers": ["f"],
                    "labels": {"ours": "new", "theirs": "1"}, "annotations": {"theirs": "2"},
                    "ownerReferences": [{"uid": "1"}],
                },
                "spec": {"a": 1}, "status": {"c": 3},
            })
        );
    }

    #[test]
    fn lists_are_replaced_and_objects_merged() {
        let mut base = json!({"a": {"b": 1, "c": [1, 2]}, "d": 1});
        merge(&mut base, &json!({"a": {"c": [3]}, "e": {"f": 2}}));
        assert_eq!(base, json!({"a": {"b": 1, "c": [3]}, "d": 1, "e": {"f": 2}}));
    }
}
