//! # Definitions of custom kinds
//!
//! A definition is an object like any other; what is special is what follows from it:
//! its names are accepted or not, its versions are served, and when it goes, so do the
//! objects it defined. Upstream does this with controllers that lag behind; here it is
//! done before the write is answered, so a client that has made a definition can use it.

pub(crate) mod convert;
mod define;

use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use serde_json::{Value, json};

use crate::Server;
use crate::kind::Kind;
use crate::log::{Expect, Write};
use crate::rest::{close, open, track_own};
use schema::object::{is_deleting, map_at, meta_list, meta_text, metadata_mut, time};

pub use define::kinds;

/// The group of definitions.
pub const GROUP: &str = "apiextensions.k8s.io";
/// Their kind.
pub const KIND: &str = "CustomResourceDefinition";
/// Holds a definition until its objects are gone.
pub const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Whether a kind is that of definitions.
pub(crate) fn is_definition(kind: &Kind) -> bool {
    kind.group == GROUP && kind.kind == KIND
}

/// Fills in what a definition leaves out.
pub fn complete(kind: &Kind, object: &mut Value) {
    if kind.custom {
        kind.shape.default(object);
    }
    if kind.group != GROUP || kind.kind != KIND {
        return;
    }
    let spec = map_at(object, "spec");
    if let Some(Value::Object(names)) = spec.get_mut("names") {
        let name = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        for (field, value) in
            [("singular", name.to_lowercase()), ("listKind", format!("{name}List"))]
        {
            let missing = names.get(field).and_then(Value::as_str).unwrap_or_default().is_empty();
            if missing && !name.is_empty() {
                names.insert(field.to_owned(), json!(value));
            }
        }
    }
    let conversion = spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
    if let Some(Value::Object(service)) = conversion.pointer_mut("/webhook/clientConfig/service") {
        service.entry("port").or_insert_with(|| json!(443));
    }
    let storage = define::storage_version(object);
    let status = map_at(object, "status");
    status.entry("conditions").or_insert(Value::Null);
    status.entry("acceptedNames").or_insert_with(|| json!({"plural": "", "kind": ""}));
    let stored = status.entry("storedVersions").or_insert(Value::Null);
    if !storage.is_empty() && stored.as_array().is_none_or(Vec::is_empty) {
        *stored = json!([storage]);
    }
}

/// Notes in which version objects will be stored from now on.
pub(crate) fn note_storage(kind: &Kind, object: &mut Value) {
    if !is_definition(kind) {
        return;
    }
    let storage = define::storage_version(object);
    if let Some(Value::Array(list)) = map_at(object, "status").get_mut("storedVersions")
        && !storage.is_empty()
        && !list.contains(&json!(storage))
    {
        list.push(json!(storage));
    }
}

/// Makes what is served follow from all definitions in the log.
pub fn load(server: &Server) {
    let Some(kind) = server.kinds.find(GROUP, "v1", "customresourcedefinitions") else { return };
    let Ok(snapshot) = server.log.list(&kind.prefix(None), None) else { return };
    for (_, entry) in &snapshot.entries {
        if let Ok(object) = open(&kind, entry) {
            let name = meta_text(&object, "name");
            define::claim(server, &object);
            server.kinds.define(name, kinds(&object, &entry.value));
        }
    }
}

/// Draws the consequences of what happened to the definition called `name`, as far as
/// clients must not wait for them: its names are judged and its kinds served.
pub async fn settle(server: &Arc<Server>, name: &str) {
    let Some(kind) = server.kinds.find(GROUP, "v1", "customresourcedefinitions") else { return };
    change(server, &kind, name, |object| {
        if !is_deleting(object) {
            judge(server, object);
        }
    })
    .await;
    follow(server, &kind, name);
}

/// Serves what the log says of a definition at this moment. Several settle one definition
/// side by side (the request that deletes it and the upkeep that lets it go): each reads and
/// serves in one step, so that the last to serve is also the last to have read.
fn follow(server: &Server, kind: &Kind, name: &str) {
    let turn = server.following.lock().unwrap_or_else(PoisonError::into_inner);
    let entry = server.log.get(&kind.key(None, name));
    let known = entry.and_then(|entry| Some((open(kind, &entry).ok()?, entry.value)));
    if let Some((object, text)) = known {
        serve(server, name, kinds(&object, &text));
    } else {
        serve(server, name, Vec::new());
        server.upkeep.again(server.kinds.release(name));
    }
    drop(turn);
}

/// Removes the objects of a definition that is going, then lets it go.
pub(crate) async fn finish(server: &Arc<Server>, name: &str) {
    let Some(kind) = server.kinds.find(GROUP, "v1", "customresourcedefinitions") else { return };
    let now = time::format(server.world.now());
    let held = |object: &Value| {
        is_deleting(object) && meta_list(object, "finalizers").contains(&FINALIZER)
    };
    let said = ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress");
    let object = change(server, &kind, name, |object| {
        if held(object) {
            set_condition(object, "Terminating", said, &now);
        }
    })
    .await;
    let Some((object, text)) = object.filter(|(object, _)| held(object)) else {
        return settle(server, name).await;
    };
    let said = if define::is_established(&object) {
        let stored = Arc::new(define::stored(&object, &text));
        crate::rest::delete_all(server, &stored, None).await;
        let left = server.log.list(&stored.prefix(None), None);
        if !left.is_ok_and(|snapshot| snapshot.entries.is_empty()) {
            // Each one that goes brings us back.
            return;
        }
        ("False", "InstanceDeletionCompleted", "removed all instances")
    } else {
        ("False", "NeverEstablished", "resource was never established")
    };
    change(server, &kind, name, |object| {
        if held(object) {
            set_condition(object, "Terminating", said, &now);
            let finalizers = metadata_mut(object).get_mut("finalizers");
            if let Some(Value::Array(list)) = finalizers {
                list.retain(|one| one != FINALIZER);
            }
        }
    })
    .await;
    settle(server, name).await;
}

/// Rewrites a definition until nobody was faster; answers with what is there then, and its
/// text.
async fn change(
    server: &Arc<Server>,
    kind: &Arc<Kind>,
    name: &str,
    edit: impl Fn(&mut Value),
) -> Option<(Value, Bytes)> {
    let key = kind.key(None, name);
    for _ in 0..64 {
        let entry = server.log.get(&key)?;
        let object = open(kind, &entry).ok()?;
        let mut next = object.clone();
        edit(&mut next);
        if next == object {
            return Some((object, entry.value));
        }
        next = track_own(server, kind, &object, next);
        apply::keep_times(&object, &mut next);
        let gone = is_deleting(&next) && meta_list(&next, "finalizers").is_empty();
        let value = (!gone).then(|| close(kind, &next));
        if gone {
            // First: who sees that the definition is gone must not find its kinds.
            serve(server, name, Vec::new());
        }
        let text = value.clone();
        let write = Write { key: key.clone(), expect: Expect::Version(entry.version), value };
        match server.log.write(write).await {
            Ok(_) => return text.map(|text| (next, text)),
            Err(crate::log::WriteError::Conflict(_)) => {}
            Err(crate::log::WriteError::Broken(_)) => return Some((object, entry.value)),
        }
    }
    None
}

/// Serves a definition's kinds from now on.
fn serve(server: &Server, name: &str, kinds: Vec<Kind>) {
    server.kinds.define(name, kinds);
    server.upkeep.defined();
}

/// Marks a definition that is to be deleted, so that it stays until its objects are gone.
pub fn mark_terminating(server: &Server, object: &mut Value) {
    let now = time::format(server.world.now());
    let mut finalizers: Vec<String> =
        meta_list(object, "finalizers").into_iter().map(str::to_owned).collect();
    if !finalizers.iter().any(|one| one == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
    }
    metadata_mut(object).insert("finalizers".to_owned(), json!(finalizers));
    metadata_mut(object).insert("deletionTimestamp".to_owned(), json!(now));
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will \
                   begin soon";
    set_condition(object, "Terminating", ("True", "InstanceDeletionPending", message), &now);
}

/// Accepts the names, or says whose they are already.
fn judge(server: &Server, object: &mut Value) {
    let now = time::format(server.world.now());
    let (names, conflict) = define::accept(server, object);
    map_at(object, "status").insert("acceptedNames".to_owned(), names);
    if let Some((reason, message)) = conflict {
        set_condition(object, "NamesAccepted", ("False", &reason, &message), &now);
        if !define::is_established(object) {
            let why = "not all names are accepted";
            set_condition(object, "Established", ("False", "NotAccepted", why), &now);
        }
        return;
    }
    set_condition(object, "NamesAccepted", ("True", "NoConflicts", "no conflicts found"), &now);
    if !define::is_established(object) {
        let why = "the initial names have been accepted";
        set_condition(object, "Established", ("True", "InitialNamesAccepted", why), &now);
    }
}

fn set_condition(object: &mut Value, type_: &str, said: (&str, &str, &str), now: &str) {
    let (status, reason, message) = said;
    let slot = map_at(object, "status").entry("conditions").or_insert_with(|| json!([]));
    if !slot.is_array() {
        *slot = json!([]);
    }
    let Value::Array(conditions) = slot else { return };
    let found = conditions.iter_mut().find(|one| one.get("type") == Some(&json!(type_)));
    let new = json!({
        "type": type_, "status": status, "lastTransitionTime": now, "reason": reason,
        "message": message,
    });
    match found {
        Some(old) if old.get("status") == Some(&json!(status)) => {
            old["reason"] = json!(reason);
            old["message"] = json!(message);
        }
        Some(old) => *old = new,
        None => conditions.push(new),
    }
}
