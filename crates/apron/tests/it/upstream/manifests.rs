//! What people wrote for upstream: each object is sent, in a dry run, to a server with upstream's
//! definitions and to one with apron's, and both must say the same and fill in the same.
//!
//! `manifests.yaml` has the objects, each under a line that says what must come of it:
//!
//! - `good`: both take it, and make the same of it;
//! - `bad`: both refuse it, with the same code, because of the same fields;
//! - `held`: both take it; apron holds it for Crossplane's core, which fills in what it likes;
//! - `seed`: upstream refuses what the guide allows, so apron takes it;
//! - `strict`: upstream takes what the guide does not name, and apron refuses it;
//! - `kept`: upstream drops a field that the guide has, and apron keeps it.

use crate::control_plane::Asked;
use serde_json::Value as Json;

const MANIFESTS: &str = include_str!("manifests.yaml");

/// A taken object without what differs from server to server; or a code and the fields that a
/// refusal names.
type Verdict = Result<Json, (u16, Vec<String>)>;

/// Sends every object to both servers, and says everything that is not as it should be.
pub(super) fn mean_the_same(upstream: &Asked, ours: &Asked) {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for document in MANIFESTS.split("\n---\n") {
        let (title, text) = document.split_once('\n').unwrap();
        let (expected, title) = title.trim_start_matches("# ").split_once(": ").unwrap();
        let object: Json = serde_saphyr::from_str(text).unwrap();
        let (theirs, ours) = (verdict(upstream, &object), verdict(ours, &object));
        let fine = match expected {
            "good" => theirs.is_ok() && theirs == ours,
            "bad" => theirs.is_err() && theirs == ours,
            "held" => match (&theirs, &ours) {
                (Ok(theirs), Ok(ours)) => is_part(ours, theirs),
                _ => false,
            },
            "seed" => theirs.is_err() && ours.is_ok(),
            "strict" => theirs.is_ok() && ours.is_err(),
            "kept" => match (&theirs, &ours) {
                (Ok(theirs), Ok(ours)) => theirs != ours && without_lost(ours) == *theirs,
                _ => false,
            },
            other => panic!("{other} is no verdict"),
        };
        count += 1;
        if !fine {
            wrong.push(format!("{expected}: {title}\n  upstream {theirs:?}\n  ours     {ours:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} manifests:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 40, "{count} manifests were read");
}

/// Whether one object says nothing that the other does not.
fn is_part(part: &Json, whole: &Json) -> bool {
    match (part, whole) {
        (Json::Object(part), Json::Object(whole)) => part
            .iter()
            .all(|(field, value)| whole.get(field).is_some_and(|other| is_part(value, other))),
        _ => part == whole,
    }
}

/// An object without what upstream has no room for.
fn without_lost(object: &Json) -> Json {
    let mut object = object.clone();
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.remove("controllerConfigRef");
    }
    object
}

fn verdict(server: &Asked, object: &Json) -> Verdict {
    let kind = object["kind"].as_str().unwrap().to_lowercase();
    let plural = kind.strip_suffix('y').map_or_else(|| format!("{kind}s"), |it| format!("{it}ies"));
    let path = format!("/apis/{}/{plural}?dryRun=All", object["apiVersion"].as_str().unwrap());
    match server.send("POST", &path, "application/json", object) {
        Ok(mut taken) => {
            let metadata = taken["metadata"].as_object_mut().unwrap();
            for field in
                ["creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"]
            {
                metadata.remove(field);
            }
            Ok(taken)
        }
        Err(kube::Error::Api(refusal)) => Err((refusal.code, fields(&refusal.message))),
        Err(error) => panic!("{path}: {error}"),
    }
}

/// The fields that a refusal names, in order.
fn fields(message: &str) -> Vec<String> {
    let named = regex::Regex::new(r"\b(spec|metadata)((\.[A-Za-z]+)|(\[[0-9]+\]))+").unwrap();
    let mut all: Vec<String> = named.find_iter(message).map(|it| it.as_str().to_owned()).collect();
    all.sort();
    all.dedup();
    all
}
