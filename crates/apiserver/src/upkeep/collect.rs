//! The garbage collector: what nobody owns any more goes, and what is to go waits for what
//! it owns, or sets it free.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Outcome;
use super::stored::{FOREGROUND, ORPHAN, Owner, Stored};
use crate::Server;
use crate::http::status::Failure;
use crate::kind::{Kind, split_key};
use crate::rest::{Own, Propagation};
use schema::object::{metadata_mut, time};

/// What the references of an object turn out to be.
#[derive(Default)]
struct References {
    solid: usize,
    /// Uids of owners that are not there.
    dangling: Vec<String>,
    /// Uids of owners that wait for their dependents to go.
    waiting: Vec<String>,
    /// Owners that are there, but in another namespace.
    strangers: Vec<Owner>,
    verdict: Verdict,
}

/// Whether the references can be judged at all.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    #[default]
    Clear,
    /// A kind is not known.
    Unknown,
    /// Something cluster-wide cannot be owned by something in a namespace.
    Absurd,
}

/// Deletes an object whose owners are gone; lets one go whose dependents are.
pub(super) async fn collect(server: &Arc<Server>, key: &Arc<str>) -> Outcome {
    let Some(entry) = server.log.get(key) else { return Outcome::Done };
    let item = Stored::read(&entry.value);
    let Some(own) = Own::at(server, key) else { return Outcome::Done };
    if item.leaves_with(FOREGROUND) {
        return release(server, &own, &item).await;
    }
    if item.deleting || item.owners.is_empty() {
        return Outcome::Done;
    }
    let references = judge(server, key, &item);
    for stranger in &references.strangers {
        report(server, &own, &item, stranger).await;
    }
    match references.verdict {
        Verdict::Unknown => return Outcome::Unknown,
        Verdict::Absurd => return Outcome::Done,
        Verdict::Clear => {}
    }
    if references.solid > 0 {
        let gone: Vec<String> = [references.dangling, references.waiting].concat();
        if gone.is_empty() {
            return Outcome::Done;
        }
        return outcome(own.amend(server, &item.uid, |object| strip(object, &gone)).await);
    }
    let has = |name: &str| item.finalizers.iter().any(|one| one == name);
    let dependents = dependents(server, &item.uid);
    let propagation = match () {
        () if !references.waiting.is_empty() && !dependents.is_empty() => {
            if dependents.iter().any(|one| is_waiting(server, one)) {
                // Perhaps a circle: nobody in it may block for ever.
                let changed = own.amend(server, &item.uid, unblock).await;
                if changed.is_err() {
                    return outcome(changed);
                }
            }
            Propagation::Foreground
        }
        () if has(ORPHAN) => Propagation::Orphan,
        () if has(FOREGROUND) => Propagation::Foreground,
        () => Propagation::Background,
    };
    outcome(own.remove(server, &item.uid, propagation).await)
}

/// Takes the owner out of its dependents, then lets it go.
pub(super) async fn orphan(server: &Arc<Server>, key: &Arc<str>) -> Outcome {
    let Some(entry) = server.log.get(key) else { return Outcome::Done };
    let item = Stored::read(&entry.value);
    let Some(own) = Own::at(server, key) else { return Outcome::Done };
    if !item.leaves_with(ORPHAN) {
        return Outcome::Done;
    }
    for dependent in dependents(server, &item.uid) {
        let Some(entry) = server.log.get(&dependent) else { continue };
        let uid = Stored::read(&entry.value).uid;
        let Some(own) = Own::at(server, &dependent) else { continue };
        let changed =
            own.amend(server, &uid, |object| strip(object, std::slice::from_ref(&item.uid))).await;
        if outcome(changed) != Outcome::Done {
            return Outcome::Later;
        }
    }
    outcome(own.amend(server, &item.uid, |object| unhold(object, ORPHAN)).await)
}

/// Lets an owner go once nothing blocks it.
async fn release(server: &Arc<Server>, own: &Own, item: &Stored) -> Outcome {
    let blocks = |key: &Arc<str>| {
        let Some(entry) = server.log.get(key) else { return false };
        let dependent = Stored::read(&entry.value);
        dependent.owners.iter().any(|owner| owner.uid == item.uid && owner.blocks())
    };
    // Each dependent was looked at when the wait began, and comes back when it changes.
    if dependents(server, &item.uid).iter().any(blocks) {
        return Outcome::Done;
    }
    outcome(own.amend(server, &item.uid, |object| unhold(object, FOREGROUND)).await)
}

fn dependents(server: &Server, uid: &str) -> Vec<Arc<str>> {
    server.upkeep.lock().graph.dependents(uid).cloned().collect()
}

fn is_waiting(server: &Server, key: &Arc<str>) -> bool {
    server.log.get(key).is_some_and(|entry| Stored::read(&entry.value).leaves_with(FOREGROUND))
}

/// Finds each owner where the reference says it is. The uid must be the same: another
/// object of the same name owns nothing.
fn judge(server: &Server, key: &str, item: &Stored) -> References {
    let (_, namespace, _) = split_key(key);
    let mut references = References::default();
    for owner in &item.owners {
        if is_stranger(server, owner, namespace) {
            references.strangers.push(owner.clone());
        }
        if owner.api_version == "v1" && owner.kind == "Event" {
            // Refused on every write; events go by themselves, and what an earlier version took
            // with such an owner must not go with it.
            references.solid = references.solid.saturating_add(1);
            continue;
        }
        let Some(kind) = server.kinds.named(&owner.api_version, &owner.kind) else {
            references.verdict = Verdict::Unknown;
            continue;
        };
        if namespace.is_empty() && kind.namespaced {
            references.verdict = Verdict::Absurd;
            return references;
        }
        let found = server.log.get(&place(&kind, namespace, owner));
        match found.map(|entry| Stored::read(&entry.value)).filter(|one| one.uid == owner.uid) {
            None => references.dangling.push(owner.uid.clone()),
            Some(one) if one.leaves_with(FOREGROUND) => references.waiting.push(owner.uid.clone()),
            Some(_) => references.solid = references.solid.saturating_add(1),
        }
    }
    references
}

fn place(kind: &Kind, namespace: &str, owner: &Owner) -> String {
    kind.key(Some(namespace).filter(|_| kind.namespaced), &owner.name)
}

/// Whether the owner is in a namespace that is not the dependent's.
fn is_stranger(server: &Server, owner: &Owner, namespace: &str) -> bool {
    let Some(place) = server.upkeep.lock().graph.place(&owner.uid) else { return false };
    let (_, elsewhere, _) = split_key(&place);
    !elsewhere.is_empty() && elsewhere != namespace
}

/// Tells the user why an object goes although its owner is there.
async fn report(server: &Arc<Server>, own: &Own, item: &Stored, owner: &Owner) {
    let namespace = own.namespace().unwrap_or_default();
    let Some(kind) = server.kinds.find("", "v1", "events") else { return };
    let now = time::format(server.world.now());
    let Owner { api_version, kind: owner_kind, name, uid, .. } = owner;
    let message = format!(
        "ownerRef [{api_version}/{owner_kind}, namespace: {namespace}, name: {name}, uid: {uid}] \
         does not exist in namespace {namespace:?}"
    );
    let mut involved = json!({
        "kind": own.kind().kind, "namespace": namespace, "name": own.name(), "uid": item.uid,
        "apiVersion": own.kind().api_version(),
    });
    if namespace.is_empty()
        && let Value::Object(map) = &mut involved
    {
        map.shift_remove("namespace");
    }
    let second = server.world.now().saturating_mul(1_000_000_000);
    let nanoseconds = second.saturating_add(server.world.random() % 1_000_000_000);
    let event_name = format!("{}.{nanoseconds:x}", own.name());
    let place = if namespace.is_empty() { "default" } else { namespace };
    let event = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": event_name, "namespace": place},
        "involvedObject": involved, "reason": "OwnerRefInvalidNamespace", "message": message,
        "source": {"component": "garbage-collector-controller"},
        "firstTimestamp": now, "lastTimestamp": now, "count": 1, "type": "Warning",
        "eventTime": null, "reportingComponent": "garbage-collector-controller",
        "reportingInstance": "",
    });
    // A report that cannot be written does not hold up what it reports on.
    let _ = Own::new(&kind, Some(place), &event_name).make(server, event).await;
}

/// Takes references to these uids out of an object.
fn strip(object: &mut Value, uids: &[String]) {
    let metadata = metadata_mut(object);
    let Some(Value::Array(owners)) = metadata.get_mut("ownerReferences") else { return };
    owners.retain(|owner| {
        let uid = owner.get("uid").and_then(Value::as_str).unwrap_or_default();
        !uids.iter().any(|one| one == uid)
    });
    if owners.is_empty() {
        metadata.shift_remove("ownerReferences");
    }
}

/// Makes an object block nobody.
fn unblock(object: &mut Value) {
    let owners = metadata_mut(object).get_mut("ownerReferences").and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten() {
        if owner.get("blockOwnerDeletion") == Some(&json!(true)) {
            owner["blockOwnerDeletion"] = json!(false);
        }
    }
}

fn unhold(object: &mut Value, finalizer: &str) {
    let metadata = metadata_mut(object);
    let Some(Value::Array(finalizers)) = metadata.get_mut("finalizers") else { return };
    finalizers.retain(|one| one != finalizer);
    if finalizers.is_empty() {
        metadata.shift_remove("finalizers");
    }
}

/// What is gone, or is not what it was, needs nothing more.
fn outcome(result: Result<(), Failure>) -> Outcome {
    match result {
        Err(failure) if failure.code != 404 => Outcome::Later,
        _ => Outcome::Done,
    }
}
