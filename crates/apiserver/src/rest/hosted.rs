//! What is different about pods: they come with a token for their service account, are given to a
//! node, and are given time to end.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::store::{self, Change};
use super::{Answer, Request};
use crate::Server;
use crate::http::body;
use crate::http::status::Failure;
use crate::kind::Kind;
use crate::runtime::Hosting;
use crate::{upkeep, world};
use schema::object::field_error::FieldError;
use schema::object::{is_deleting, map_at, meta_text, metadata, metadata_mut, time};

fn is_pod(kind: &Kind) -> bool {
    kind.group.is_empty() && kind.kind == "Pod"
}

/// Gives a new pod what comes with its service account, where pods run. A pod without its account is
/// refused.
pub(super) async fn equip_pod(
    server: &Arc<Server>,
    request: &Request,
    object: &mut Value,
) -> Result<(), Failure> {
    if !server.options.runtime.makes_pods() || !is_pod(&request.kind) {
        return Ok(());
    }
    let namespace = request.namespace().unwrap_or_default();
    let name = workload::account::account_name(object).to_owned();
    let mut account = find_account(server, namespace, &name);
    if account.is_none() && name == workload::account::DEFAULT_ACCOUNT {
        // A namespace that has just been made has one before its first pod.
        Box::pin(upkeep::equip_namespace(server, namespace)).await;
        account = find_account(server, namespace, &name);
    }
    let Some(account) = account else {
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

fn find_account(server: &Server, namespace: &str, name: &str) -> Option<Value> {
    let kind = server.kinds.find("", "v1", "serviceaccounts")?;
    let entry = server.log.get(&kind.key(Some(namespace), name))?;
    store::open(&kind, &entry).ok()
}

/// What a deletion makes of a pod.
pub(super) enum Ending {
    /// The same as of everything else.
    Ordinary,
    /// It ends already, and this deletion does not make it shorter.
    AsBefore,
    /// It ends within the time that it says now.
    Within(Box<Value>),
    /// It is gone, and this is the last that is seen of it.
    Gone(Box<Value>),
}

/// How a pod ends that is deleted with this wish for its time. One that a node has is removed by what
/// runs it; nothing runs where pods are only simulated.
pub(super) fn end_pod(
    server: &Server,
    request: &Request,
    wished: Option<i64>,
    pod: &Value,
) -> Ending {
    let is_simulated = matches!(server.options.runtime, Hosting::Counted(_));
    if is_simulated || !is_pod(&request.kind) {
        return Ending::Ordinary;
    }
    if !is_deleting(pod) {
        let seconds = time_to_end(pod, wished);
        let mut marked = pod.clone();
        let metadata = metadata_mut(&mut marked);
        if let Some(generation) = metadata.get("generation").and_then(Value::as_i64) {
            metadata.insert("generation".to_owned(), json!(generation.saturating_add(1)));
        }
        return mark_ending(marked, server.world.now(), seconds);
    }
    let before = metadata(pod).get("deletionGracePeriodSeconds").and_then(Value::as_i64);
    match (before, wished) {
        (None | Some(0), _) => Ending::Ordinary,
        (Some(before), Some(wished)) if wished < before => {
            let told = time::parse(meta_text(pod, "deletionTimestamp")).unwrap_or_default();
            let began = told.saturating_sub(before.unsigned_abs());
            mark_ending(pod.clone(), began, wished.max(0))
        }
        _ => Ending::AsBefore,
    }
}

/// How many seconds a pod is given that is deleted for the first time.
fn time_to_end(pod: &Value, wished: Option<i64>) -> i64 {
    let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let is_over = ["Succeeded", "Failed"].contains(&text("/status/phase"));
    if is_over || text("/spec/nodeName").is_empty() {
        return 0;
    }
    let own = pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    match wished.or(own).unwrap_or(0) {
        // A negative time is a short one.
        seconds if seconds < 0 => 1,
        seconds => seconds,
    }
}

/// A pod that ends so many seconds after a moment, or then and there.
fn mark_ending(mut pod: Value, began: u64, seconds: i64) -> Ending {
    let until = time::format(began.saturating_add(seconds.unsigned_abs()));
    let metadata = metadata_mut(&mut pod);
    metadata.insert("deletionTimestamp".to_owned(), json!(until));
    metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(seconds));
    let is_held = metadata.get("finalizers").is_some_and(|list| *list != json!([]));
    if seconds == 0 && !is_held {
        return Ending::Gone(Box::new(pod));
    }
    Ending::Within(Box::new(pod))
}

/// `pods/NAME/binding`: gives a pod to a node.
pub(super) async fn bind(server: &Arc<Server>, request: &Request) -> Result<Answer, Failure> {
    let options = request.query.write_options("CreateOptions", &request.agent)?;
    let (binding, _) = body::parse(&request.kind, &request.media, &request.body)?;
    let text = |pointer: &str| binding.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if text("/metadata/name") != request.name() {
        return Err(Failure::bad_request("name in URL does not match name in Binding object"));
    }
    let (kind, node) = (text("/target/kind"), text("/target/name"));
    let mut wrong = Vec::new();
    if !["", "Node"].contains(&kind) {
        wrong.push(FieldError::not_supported("target.kind", kind, &["Node", "<empty>"]));
    }
    if node.is_empty() {
        wrong.push(FieldError::required("target.name", ""));
    }
    if !wrong.is_empty() {
        let all: Vec<String> = wrong.iter().map(FieldError::sentence).collect();
        return Err(Failure::internal(match &*all {
            [one] => one.clone(),
            all => format!("[{}]", all.join(", ")),
        }));
    }
    let uid = text("/metadata/uid");
    let added = metadata(&binding).get("annotations").and_then(Value::as_object);
    give_node(server, request, (uid, node), added, options.dry_run).await?;
    Ok(Answer::Object {
        code: 201,
        body: json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
        }),
        warnings: Vec::new(),
    })
}

/// Gives a pod with this uid, or any, to a node, once.
pub(super) async fn give_node(
    server: &Arc<Server>,
    request: &Request,
    (uid, node): (&str, &str),
    annotations: Option<&Map<String, Value>>,
    dry_run: bool,
) -> Result<(), Failure> {
    let now = time::format(server.world.now());
    let refuse = |why: &str| {
        let mut failure = Failure::conflict(&request.kind, request.name(), why);
        failure.message = failure.message.replacen("on pods ", "on pods/binding ", 1);
        if let Some(details) = &mut failure.details {
            details["kind"] = json!("pods/binding");
        }
        failure
    };
    let bound = store::change(server, request, dry_run, |mut pod| {
        let name = meta_text(&pod, "name").to_owned();
        let real = meta_text(&pod, "uid");
        if !uid.is_empty() && uid != real {
            return Err(refuse(&format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {real}"
            )));
        }
        if is_deleting(&pod) {
            let why = format!("pod {name} is being deleted, cannot be assigned to a host");
            return Err(refuse(&why));
        }
        let spec = map_at(&mut pod, "spec");
        if let Some(there) =
            spec.get("nodeName").and_then(Value::as_str).filter(|it| !it.is_empty())
        {
            return Err(refuse(&format!("pod {name} is already assigned to node {there:?}")));
        }
        if spec.get("schedulingGates").is_some_and(|gates| *gates != json!([])) {
            let why = format!("pod {name} has non-empty .spec.schedulingGates");
            return Err(refuse(&why));
        }
        spec.insert("nodeName".to_owned(), json!(node));
        if let Some(annotations) = annotations {
            let slot = metadata_mut(&mut pod).entry("annotations").or_insert_with(|| json!({}));
            if let Value::Object(slot) = slot {
                slot.extend(annotations.clone());
            }
        }
        workload::nodes::note_schedule(map_at(&mut pod, "status"), None, &now);
        Ok(Change::Put(pod))
    });
    bound.await.map(|_| ())
}
