//! # Definitions of custom kinds
//!
//! A definition is an object like any other; what is special is what follows from it:
//! its names are accepted or not, its versions are served, and when it goes, so do the
//! objects it defined. Upstream does this with controllers that lag behind; here it is
//! done before the write is answered, so a client that has made a definition can use it.

mod check;
mod define;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::Server;
use crate::kind::Kind;
use crate::log::{Expect, Write};
use crate::object::{is_deleting, map_at, meta_list, meta_text, metadata_mut, time};
use crate::rest::{close, open, track_own};

pub use check::check;
pub use define::kinds;

/// The group of definitions.
pub const GROUP: &str = "apiextensions.k8s.io";
/// Their kind.
pub const KIND: &str = "CustomResourceDefinition";
/// Holds a definition until its objects are gone.
pub const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

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
    spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
    let storage = define::storage_version(object);
    let status = map_at(object, "status");
    status.entry("conditions").or_insert(Value::Null);
    status.entry("acceptedNames").or_insert_with(|| json!({"plural": "", "kind": ""}));
    let stored = status.entry("storedVersions").or_insert_with(|| json!([]));
    if let Value::Array(list) = stored
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
            server.kinds.define(meta_text(&object, "name"), kinds(&object));
        }
    }
}

/// Draws the consequences of what happened to the definition called `name`.
pub async fn settle(server: &Arc<Server>, name: &str) {
    let Some(kind) = server.kinds.find(GROUP, "v1", "customresourcedefinitions") else { return };
    let key = kind.key(None, name);
    // Others may write at the same time; each round starts from what is there.
    for _ in 0..64 {
        let Some(entry) = server.log.get(&key) else {
            serve(server, name, Vec::new());
            return;
        };
        let Ok(object) = open(&kind, &entry) else { return };
        let mut next = object.clone();
        if is_deleting(&object) {
            serve(server, name, kinds(&object));
            empty(server, &object).await;
            if !is_empty(server, &object) {
                return;
            }
            let left: Vec<&str> = meta_list(&object, "finalizers")
                .into_iter()
                .filter(|one| *one != FINALIZER)
                .collect();
            metadata_mut(&mut next).insert("finalizers".to_owned(), json!(left));
        } else {
            judge(server, &mut next);
            next = track_own(server, &kind, &object, next);
            crate::apply::keep_times(&object, &mut next);
        }
        let gone = is_deleting(&next) && meta_list(&next, "finalizers").is_empty();
        if next == object {
            serve(server, name, kinds(&object));
            return;
        }
        let value = (!gone).then(|| close(&kind, &next));
        let write = Write { key: key.clone(), expect: Expect::Version(entry.version), value };
        if matches!(server.log.write(write).await, Err(crate::log::WriteError::Broken(_))) {
            return;
        }
    }
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
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will \
                   occur as soon as possible";
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

/// Deletes all objects of a definition that is going.
async fn empty(server: &Arc<Server>, object: &Value) {
    let Some(kind) = kinds(object).into_iter().next() else { return };
    let kind = Arc::new(kind);
    crate::rest::delete_all(server, &kind, None).await;
}

fn is_empty(server: &Server, object: &Value) -> bool {
    let Some(kind) = kinds(object).into_iter().next() else { return true };
    server.log.list(&kind.prefix(None), None).is_ok_and(|snapshot| snapshot.entries.is_empty())
}
