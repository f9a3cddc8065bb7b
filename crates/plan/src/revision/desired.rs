//! What an object of a package comes to in a cluster.

use crate::same;
use api::object::ObjectMeta;
use api::pkg::ANNOTATION_ADOPT;
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

/// How the text of what can be laid over begins.
const METADATA: &str = "{\"metadata\":";

/// A document of a package with something laid over it: objects are merged, everything else is
/// replaced. What only a cluster can say is left out.
pub fn desired(document: Json, overlay: &Json) -> Json {
    let mut document = cleared(document);
    lay(&mut document, overlay);
    withhold(document.get_mut("metadata"));
    document
}

/// The text of a document for [`text`] to lay something over: its metadata comes first.
pub fn prepared(document: Json) -> String {
    let mut document = cleared(document);
    if let Json::Object(fields) = &mut document
        && let Some(metadata) = fields.remove("metadata")
    {
        fields.shift_insert(0, "metadata".to_owned(), metadata);
    }
    document.to_string()
}

/// The text of a prepared document with something laid over it. Documents are large, and what is
/// laid over most of them concerns their metadata alone, so that the rest is not even read.
pub fn text(document: &str, overlay: &Json) -> Result<String, serde_json::Error> {
    if let Some(text) = spliced(document, overlay) {
        return Ok(text);
    }
    let mut document: Json = serde_json::from_str(document)?;
    lay(&mut document, overlay);
    withhold(document.get_mut("metadata"));
    Ok(document.to_string())
}

fn spliced(document: &str, overlay: &Json) -> Option<String> {
    let over = overlay.get("metadata")?;
    if overlay.as_object()?.len() > 1 {
        return None;
    }
    let begin = document.strip_prefix(METADATA)?;
    let mut values = serde_json::Deserializer::from_str(begin).into_iter::<Json>();
    let mut metadata = values.next()?.ok()?;
    let rest = begin.get(values.byte_offset()..)?;
    lay(&mut metadata, over);
    withhold(Some(&mut metadata));
    Some(format!("{METADATA}{metadata}{rest}"))
}

/// Takes away what only an administrator says: to whom an object is given.
fn withhold(metadata: Option<&mut Json>) {
    let annotations = metadata.and_then(|metadata| metadata.get_mut("annotations"));
    if let Some(Json::Object(annotations)) = annotations {
        annotations.shift_remove(ANNOTATION_ADOPT);
    }
}

/// A document without what only a cluster can say.
fn cleared(mut document: Json) -> Json {
    if let Json::Object(fields) = &mut document {
        fields.remove("status");
        if let Some(Json::Object(metadata)) = fields.get_mut("metadata") {
            metadata.retain(|field, value| !OBSERVED.contains(&field.as_str()) && !value.is_null());
        }
    }
    plain(&mut document);
    document
}

/// What of an object's metadata is shared: others may write there, too.
const SHARED: [&str; 2] = ["labels", "annotations"];

/// The labels and annotations of an object that somebody wrote last, as API servers remember it.
fn written<'a>(live: &'a Json, by: &'a str) -> impl Iterator<Item = (&'static str, &'a str)> {
    let all = live["metadata"]["managedFields"].as_array().into_iter().flatten();
    let own = all.filter(move |one| one["manager"] == by);
    own.flat_map(|one| {
        SHARED.into_iter().flat_map(move |field| {
            let fields = one["fieldsV1"]["f:metadata"][format!("f:{field}")].as_object();
            let keys = fields.into_iter().flat_map(|fields| fields.keys());
            keys.filter_map(move |key| Some((field, key.strip_prefix("f:")?)))
        })
    })
}

/// Whether an object of a cluster says what is desired, besides who owns it; and nothing that the
/// manager of this name wrote before and that is desired no longer.
pub fn is_same(desired: &Json, live: &Json, manager: &str) -> bool {
    let is_desired = |(field, key): (&str, &str)| !desired["metadata"][field][key].is_null();
    same::holds(desired, live) && written(live, manager).all(is_desired)
}

/// Takes away what labels and annotations the manager of this name wrote itself: what it still
/// desires it writes again.
pub fn disown(live: &mut Json, manager: &str) {
    let own: Vec<(&str, String)> =
        written(live, manager).map(|(field, key)| (field, key.to_owned())).collect();
    for (field, key) in own {
        let fields = live.get_mut("metadata").and_then(|metadata| metadata.get_mut(field));
        if let Some(Json::Object(fields)) = fields {
            fields.remove(&key);
        }
    }
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
