//! What is different about pods when something runs them: they come with a token for their
//! service account, and are given time to end.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Request;
use super::store;
use crate::Server;
use crate::http::status::Failure;
use crate::kind::Kind;
use crate::world;
use schema::object::{is_deleting, meta_text, metadata, metadata_mut, time};

/// Whether a pod is one that something here runs.
fn is_hosted(server: &Server, kind: &Kind) -> bool {
    server.options.makes_pods && kind.group.is_empty() && kind.kind == "Pod"
}

/// Gives a new pod what comes with its service account. A pod without its account is refused.
pub(super) fn equip_pod(
    server: &Arc<Server>,
    request: &Request,
    object: &mut Value,
) -> Result<(), Failure> {
    if !is_hosted(server, &request.kind) {
        return Ok(());
    }
    let namespace = request.namespace().unwrap_or_default();
    let name = workload::account::account_name(object).to_owned();
    let accounts = server.kinds.find("", "v1", "serviceaccounts");
    let found = accounts.and_then(|kind| {
        let entry = server.log.get(&kind.key(Some(namespace), &name))?;
        store::open(&kind, &entry).ok()
    });
    let Some(account) = found else {
        let pod = match meta_text(object, "name") {
            "" => meta_text(object, "generateName"),
            pod => pod,
        };
        let why = format!(
            "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
        );
        return Err(Failure::forbidden(&request.kind, pod, &why));
    };
    workload::account::equip_pod(object, &account, &world::suffix(server.world.as_ref()));
    Ok(())
}

/// How long a pod that is deleted may take to end; nothing, if it can go at once.
pub(super) fn grace_seconds(
    server: &Server,
    request: &Request,
    wished: Option<u64>,
    pod: &Value,
) -> Option<u64> {
    let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let is_over = ["Succeeded", "Failed"].contains(&text("/status/phase"));
    if !is_hosted(server, &request.kind) || text("/spec/nodeName").is_empty() || is_over {
        return None;
    }
    let own = pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_u64);
    wished.or(own).filter(|seconds| *seconds > 0)
}

/// Marks a pod as ending, and says whether that is news. A second deletion can only make the time
/// shorter.
pub(super) fn mark_ending(server: &Server, pod: &mut Value, seconds: u64) -> bool {
    let before = metadata(pod).get("deletionGracePeriodSeconds").and_then(Value::as_u64);
    if is_deleting(pod) && before.is_some_and(|before| before <= seconds) {
        return false;
    }
    let until = time::format(server.world.now().saturating_add(seconds));
    let generation = metadata(pod).get("generation").and_then(Value::as_i64);
    let is_first = !is_deleting(pod);
    let metadata = metadata_mut(pod);
    metadata.insert("deletionTimestamp".to_owned(), json!(until));
    metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(seconds));
    if let Some(generation) = generation.filter(|_| is_first) {
        metadata.insert("generation".to_owned(), json!(generation.saturating_add(1)));
    }
    true
}
