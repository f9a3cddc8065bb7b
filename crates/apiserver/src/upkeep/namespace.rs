//! The end of a namespace: everything in it goes first, then it does; and until then it
//! says what is left.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::Outcome;
use super::stored::Stored;
use crate::Server;
use crate::http::status::Failure;
use crate::kind::Kind;
use crate::rest::{Own, delete_all, open};
use schema::object::{is_deleting, map_at, meta_text, time};

/// The finalizer in `spec` that stands for the content.
const CONTENT: &str = "kubernetes";

/// What emptying a namespace came to.
#[derive(Default)]
struct Rest {
    /// How many objects are left, by resource.
    remaining: BTreeMap<String, usize>,
    /// How many of them each finalizer holds.
    held: BTreeMap<String, usize>,
    failures: Vec<Failure>,
}

/// Empties a namespace that is being deleted, and lets it go once nothing is left.
pub(super) async fn settle(server: &Arc<Server>, name: &str) -> Outcome {
    let Some(kind) = server.kinds.find("", "v1", "namespaces") else { return Outcome::Done };
    let Some(entry) = server.log.get(&kind.key(None, name)) else { return Outcome::Done };
    let Ok(object) = open(&kind, &entry) else { return Outcome::Done };
    let finalizers = object.pointer("/spec/finalizers").and_then(Value::as_array);
    if !is_deleting(&object) || finalizers.is_none_or(Vec::is_empty) {
        return Outcome::Done;
    }
    let (rest, told) = empty(server, name).await;
    let uid = meta_text(&object, "uid");
    let now = time::format(server.world.now());
    let conditions = conditions(if told { &rest } else { &EMPTY }, &rest.failures);
    let status = Own::new(&kind, None, name).sub("status");
    let said = status.amend(server, uid, |object| tell(object, &conditions, &now)).await;
    if said.is_err_and(|failure| failure.code != 404) || !rest.failures.is_empty() {
        return Outcome::Later;
    }
    if !rest.remaining.is_empty() {
        // Each object that goes brings us back.
        return Outcome::Done;
    }
    let finalize = Own::new(&kind, None, name).sub("finalize");
    match finalize.amend(server, uid, release).await {
        Err(failure) if failure.code != 404 => Outcome::Later,
        _ => Outcome::Done,
    }
}

/// Deletes everything in a namespace, pods first; says what is left, and whether users are
/// told so: upstream is silent while it waits for pods.
async fn empty(server: &Arc<Server>, name: &str) -> (Rest, bool) {
    let (pods, others): (Vec<_>, Vec<_>) = namespaced(server)
        .into_iter()
        .partition(|kind| kind.group.is_empty() && kind.plural == "pods");
    let mut rest = Rest::default();
    for kind in &pods {
        empty_of(server, kind, name, &mut rest).await;
    }
    if !rest.remaining.is_empty() {
        return (rest, false);
    }
    for kind in &others {
        empty_of(server, kind, name, &mut rest).await;
    }
    (rest, true)
}

async fn empty_of(server: &Arc<Server>, kind: &Arc<Kind>, name: &str, rest: &mut Rest) {
    rest.failures.extend(delete_all(server, kind, Some(name)).await);
    let Ok(left) = server.log.list(&kind.prefix(Some(name)), None) else { return };
    if left.entries.is_empty() {
        return;
    }
    rest.remaining.insert(format!("{}.{}", kind.plural, kind.group), left.entries.len());
    for (_, entry) in &left.entries {
        for finalizer in Stored::read(&entry.value).finalizers {
            let held = rest.held.entry(finalizer).or_default();
            *held = held.saturating_add(1);
        }
    }
}

/// Every kind that lives in namespaces, in one of its versions.
fn namespaced(server: &Server) -> Vec<Arc<Kind>> {
    let mut seen = BTreeSet::new();
    let kinds = server.kinds.all().into_iter().filter(|kind| kind.namespaced);
    kinds.filter(|kind| seen.insert(kind.resource())).collect()
}

static EMPTY: Rest =
    Rest { remaining: BTreeMap::new(), held: BTreeMap::new(), failures: Vec::new() };

/// A condition: type, status, reason, message.
type Condition = (&'static str, bool, &'static str, String);

fn conditions(rest: &Rest, failures: &[Failure]) -> [Condition; 5] {
    let listed = |map: &BTreeMap<String, usize>, word: &str| {
        let mut lines: Vec<String> = map
            .iter()
            .map(|(name, count)| format!("{name} {word} {count} resource instances"))
            .collect();
        lines.sort();
        lines.join(", ")
    };
    let mut failed: Vec<&str> = failures.iter().map(|failure| failure.message.as_str()).collect();
    failed.sort_unstable();
    let fine = |kind, reason, message: &str| (kind, false, reason, message.to_owned());
    [
        fine(
            "NamespaceDeletionDiscoveryFailure",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        fine(
            "NamespaceDeletionGroupVersionParsingFailure",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        if failed.is_empty() {
            fine(
                "NamespaceDeletionContentFailure",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            )
        } else {
            let message = format!(
                "Failed to delete all resource types, {} remaining: {}",
                failed.len(),
                failed.join(", ")
            );
            ("NamespaceDeletionContentFailure", true, "ContentDeletionFailed", message)
        },
        if rest.remaining.is_empty() {
            fine("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed")
        } else {
            let message =
                format!("Some resources are remaining: {}", listed(&rest.remaining, "has"));
            ("NamespaceContentRemaining", true, "SomeResourcesRemain", message)
        },
        if rest.held.is_empty() {
            fine(
                "NamespaceFinalizersRemaining",
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished",
            )
        } else {
            let message = format!(
                "Some content in the namespace has finalizers remaining: {}",
                listed(&rest.held, "in")
            );
            ("NamespaceFinalizersRemaining", true, "SomeFinalizersRemain", message)
        },
    ]
}

/// Writes the conditions into a namespace; times change only with the status.
fn tell(object: &mut Value, conditions: &[Condition], now: &str) {
    let slot = map_at(object, "status").entry("conditions").or_insert_with(|| json!([]));
    let Value::Array(list) = slot else { return };
    for (kind, status, reason, message) in conditions {
        let status = if *status { "True" } else { "False" };
        let mut new = json!({
            "type": kind, "status": status, "lastTransitionTime": now, "reason": reason,
            "message": message,
        });
        match list.iter_mut().find(|one| one.get("type") == Some(&json!(kind))) {
            Some(old) => {
                if old.get("status") == Some(&json!(status)) {
                    new["lastTransitionTime"] = old["lastTransitionTime"].clone();
                }
                *old = new;
            }
            None => list.push(new),
        }
    }
}

fn release(object: &mut Value) {
    let spec = map_at(object, "spec");
    let Some(Value::Array(finalizers)) = spec.get_mut("finalizers") else { return };
    finalizers.retain(|one| one != CONTENT);
    if finalizers.is_empty() {
        spec.shift_remove("finalizers");
    }
}
