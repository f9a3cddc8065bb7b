//! What an object of a package comes to in a cluster.

use crate::same;
use api::object::ObjectMeta;
use serde_json::{Value as Json, json};

/// What only a cluster says about an object.
const OBSERVED: [&str; 8] = [
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// A document of a package with something laid over it: objects are merged, everything else is
/// replaced. What only a cluster can say is left out.
pub fn desired(mut document: Json, overlay: &Json) -> Json {
    if let Json::Object(fields) = &mut document {
        fields.remove("status");
        if let Some(Json::Object(metadata)) = fields.get_mut("metadata") {
            metadata.retain(|field, value| !OBSERVED.contains(&field.as_str()) && !value.is_null());
        }
    }
    lay(&mut document, overlay);
    plain(&mut document);
    document
}

/// Whether an object of a cluster says what is desired, besides who owns it.
pub fn is_same(desired: &Json, live: &Json) -> bool {
    same::holds(desired, live)
}

/// What to write in the place of an object that is there: nothing that others wrote into its
/// metadata is lost, and it must still be that very object in that state.
pub fn replacement(mut desired: Json, live: &ObjectMeta) -> Json {
    let wanted = desired.get("metadata").cloned().unwrap_or_default();
    let mut metadata = json!({"labels": live.labels, "annotations": live.annotations});
    lay(&mut metadata, &wanted);
    let named = wanted["finalizers"].as_array().cloned().unwrap_or_default();
    let mut finalizers: Vec<Json> = live.finalizers.iter().map(|one| json!(one)).collect();
    finalizers
        .extend(named.into_iter().filter(|one| !live.finalizers.iter().any(|two| one == two)));
    let mut state = json!({"finalizers": finalizers, "uid": live.uid});
    state["resourceVersion"] = json!(live.resource_version);
    if wanted["ownerReferences"].is_null() {
        state["ownerReferences"] = json!(live.owner_references);
    }
    lay(&mut metadata, &state);
    if let Json::Object(fields) = &mut metadata {
        let is_empty = |value: &Json| match value {
            Json::Array(items) => items.is_empty(),
            Json::Object(fields) => fields.is_empty(),
            other => other.is_null(),
        };
        fields.retain(|_, value| !is_empty(value));
    }
    if let Json::Object(fields) = &mut desired {
        fields.insert("metadata".to_owned(), metadata);
    }
    desired
}

/// Lays one value over another.
pub(super) fn lay(under: &mut Json, over: &Json) {
    match (under, over) {
        (Json::Object(under), Json::Object(over)) => {
            for (field, value) in over {
                lay(under.entry(field.clone()).or_insert(Json::Null), value);
            }
        }
        (under, over) => *under = over.clone(),
    }
}

/// Writes whole numbers as such: API servers do not tell `1.0` from `1`.
fn plain(value: &mut Json) {
    /// Up to here every whole number is itself as a float.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    match value {
        Json::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            if float.fract() == 0.0 && float.abs() < EXACT_MAX {
                let whole = format!("{float:.0}").parse::<i64>();
                *value = whole.map_or_else(|_| json!(float), |whole| json!(whole));
            }
        }
        Json::Array(items) => items.iter_mut().for_each(plain),
        Json::Object(fields) => fields.values_mut().for_each(plain),
        _ => {}
    }
}
