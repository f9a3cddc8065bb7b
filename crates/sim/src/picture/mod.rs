//! A picture of the cluster, with everything taken out that may differ between two runs that came
//! to the same.

mod hosted;

use apiserver::log::Log;
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

/// Kinds that say what happened, and not how things are.
pub(crate) const TRANSIENT: [&str; 2] = ["Event", "Lease"];

/// What differs from run to run and means nothing.
const NOISE: [&str; 13] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "lastTransitionTime",
    "lastUpdateTime",
    "managedFields",
    "generation",
    "observedGeneration",
    "pkg.crossplane.io/certificates",
    api::pkg::ANNOTATION_HANDOVER,
    api::pkg::ANNOTATION_STANDBY,
    "clusterIP",
    "clusterIPs",
];

/// Objects without noise, by kind, namespace and name.
pub type Picture = BTreeMap<String, Json>;

/// Texts by what they are to be told by instead.
type Names = BTreeMap<String, String>;

/// Every object of a cluster as it is.
pub fn objects(log: &Log) -> Vec<Json> {
    let Ok(snapshot) = log.list("", None) else { return Vec::new() };
    let entries = snapshot.entries.iter();
    let parse = |bytes: &[u8]| serde_json::from_slice::<Json>(bytes).ok();
    entries.filter_map(|(_, entry)| parse(&entry.value)).collect()
}

/// The picture.
pub fn take(log: &Log) -> Picture {
    let objects = objects(log);
    let mut names: Names =
        objects.iter().filter_map(|one| Some((uid(one)?.to_owned(), name(one)))).collect();
    names.extend(secrets(&objects));
    let is_kept = |one: &&Json| {
        let kind = text(one, "kind");
        !TRANSIENT.contains(&kind) && !hosted::KINDS.contains(&kind)
    };
    let kept = objects.iter().filter(is_kept);
    let mut picture: Picture = kept.map(|one| (name(one), clean(one, &names))).collect();
    hosted::condense(&objects, &mut picture);
    picture
}

/// A picture without the numbers of revisions: they tell how it came to what there is.
pub fn without_numbers(picture: &Picture) -> Picture {
    let plain = |(name, object): (&String, &Json)| {
        let mut object = object.clone();
        if let Some(spec) = object.get_mut("spec").and_then(Json::as_object_mut) {
            spec.remove("revision");
        }
        (name.clone(), object)
    };
    picture.iter().map(plain).collect()
}

/// What two pictures differ in, in lines.
pub fn difference(wanted: &Picture, found: &Picture) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, object) in wanted {
        match found.get(name) {
            None => lines.push(format!("{name} is missing")),
            Some(other) => compare(object, other, name, &mut lines),
        }
    }
    let new = found.iter().filter(|(name, _)| !wanted.contains_key(*name));
    lines.extend(new.map(|(name, object)| format!("{name} should not be there: {object}")));
    lines
}

/// What two values differ in, each difference with the place where it is.
fn compare(wanted: &Json, found: &Json, place: &str, lines: &mut Vec<String>) {
    match (wanted, found) {
        (Json::Object(one), Json::Object(other)) => {
            let mut keys: Vec<&String> = one.keys().chain(other.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let (one, other) = (one.get(key), other.get(key));
                let place = format!("{place} {key}");
                compare(one.unwrap_or(&Json::Null), other.unwrap_or(&Json::Null), &place, lines);
            }
        }
        (Json::Array(one), Json::Array(other)) if one.len() == other.len() => {
            for (at, (one, other)) in one.iter().zip(other).enumerate() {
                compare(one, other, &format!("{place} {at}"), lines);
            }
        }
        _ if wanted != found => {
            lines.push(format!("{place} is {found} and should be {wanted}"));
        }
        _ => {}
    }
}

/// What is in Secrets is another each time; that the same is in two places is not. A value is told
/// by the first place it is found at.
fn secrets(objects: &[Json]) -> Names {
    let mut places: Names = BTreeMap::new();
    let mut secrets: Vec<&Json> = objects.iter().filter(|one| one["kind"] == "Secret").collect();
    secrets.sort_by_key(|one| name(one));
    for secret in secrets {
        let mut data: Vec<(&String, &Json)> =
            secret["data"].as_object().into_iter().flatten().collect();
        data.sort_by_key(|(key, _)| *key);
        for (key, value) in data {
            let value = value.as_str().unwrap_or_default();
            if !value.is_empty() {
                let place = format!("{key} of {}", name(secret));
                places.entry(value.to_owned()).or_insert(place);
            }
        }
    }
    places
}

pub(crate) fn text<'a>(object: &'a Json, key: &str) -> &'a str {
    object.get(key).and_then(Json::as_str).unwrap_or_default()
}

pub(crate) fn uid(object: &Json) -> Option<&str> {
    object.pointer("/metadata/uid").and_then(Json::as_str)
}

/// Kind, namespace and name.
pub(crate) fn name(object: &Json) -> String {
    let metadata = object.get("metadata").cloned().unwrap_or_default();
    let (kind, namespace, name) =
        (text(object, "kind"), text(&metadata, "namespace"), text(&metadata, "name"));
    if namespace.is_empty() {
        format!("{kind}/{name}")
    } else {
        format!("{kind}/{namespace}/{name}")
    }
}

/// An object without noise; an identity is told by the name of whom it belongs to.
fn clean(value: &Json, names: &Names) -> Json {
    match value {
        Json::Object(fields) => {
            let mut sorted: Vec<(&String, &Json)> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            let mut cleaned = Map::new();
            for (key, value) in sorted {
                let known = value.as_str().is_some_and(|text| names.contains_key(text));
                if known && !is_own(fields, key) || !NOISE.contains(&key.as_str()) {
                    cleaned.insert(key.clone(), clean(value, names));
                }
            }
            Json::Object(cleaned)
        }
        Json::Array(items) => {
            let mut cleaned: Vec<Json> = items.iter().map(|item| clean(item, names)).collect();
            // Conditions are told apart by their type, and who came first says nothing.
            if cleaned.iter().all(|one| one.get("type").is_some() && one.get("status").is_some()) {
                cleaned.sort_by_key(|one| text(one, "type").to_owned());
            }
            Json::Array(cleaned)
        }
        Json::String(text) => {
            names.get(text).map_or_else(|| value.clone(), |name| name.as_str().into())
        }
        other => other.clone(),
    }
}

/// Whether a field of metadata is the object's own identity.
fn is_own(fields: &Map<String, Json>, key: &str) -> bool {
    key == "uid" && fields.contains_key("resourceVersion")
}
