//! What is different about pods: they come with a token for their service account, are given to a
//! node, and are given time to end.

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

use super::bounds::encode_bounded;
use super::store::{self, Change};
use super::{Answer, Request};
use crate::Server;
use crate::http::query::FieldValidation;
use crate::http::status::Failure;
use crate::http::{body, negotiate, protobuf};
use crate::kind::{Kind, LazyShape, shape};
use crate::runtime::Hosting;
use crate::{upkeep, world};
use schema::object::field_error::FieldError;
use schema::object::name::{self, NameRule};
use schema::object::{
    is_deleting, json_type_name, map_at, meta, meta_text, metadata, metadata_mut, time,
};

/// The longest time that a pod is given to end, in seconds: as many as an `i32` holds. A time that
/// lies further ahead has a year that clients cannot read.
const GRACE_MAX: i64 = 0x7fff_ffff;

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

/// Why there is no connection into a pod: what `pods/NAME/exec` and its like are answered.
pub(super) fn refuse_connection(server: &Server, request: &Request) -> Failure {
    if server.log.get(&request.key()).is_none() {
        return Failure::not_found(&request.kind, request.name());
    }
    let part = request.subresource();
    let what = match part {
        "exec" => "no command can be run in a pod",
        "attach" => "no terminal can be attached to a pod's program",
        _ => "no port of a pod can be forwarded",
    };
    let why = format!(
        "this server does not serve pods/{part}: {what}; kubectl logs {} shows what its programs \
         write",
        request.name()
    );
    Failure::new(501, "NotImplemented", why).with(json!({}))
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
    let wished = wished.map(bound_grace);
    let now = server.world.now();
    if !is_deleting(pod) {
        let seconds = time_to_end(server, pod, wished);
        let mut marked = pod.clone();
        let metadata = metadata_mut(&mut marked);
        if let Some(generation) = metadata.get("generation").and_then(Value::as_i64) {
            metadata.insert("generation".to_owned(), json!(generation.saturating_add(1)));
        }
        return mark_ending(marked, now.saturating_add(seconds.unsigned_abs()), seconds);
    }
    let before = metadata(pod).get("deletionGracePeriodSeconds").and_then(Value::as_i64);
    match (before, wished) {
        (None | Some(0), _) => Ending::Ordinary,
        (Some(_), _) if is_node_gone(server, pod) => mark_ending(pod.clone(), now, 0),
        (Some(before), Some(wished)) if wished < before => {
            let told = time::parse(meta_text(pod, "deletionTimestamp"));
            let began = told.map_or(now, |told| told.saturating_sub(before.unsigned_abs()));
            let until = began.saturating_add(wished.unsigned_abs());
            if until > now {
                return mark_ending(pod.clone(), until, wished);
            }
            // The whole of the shorter time is over: what is left is the shortest there is.
            mark_ending(pod.clone(), now, wished.min(1))
        }
        _ => Ending::AsBefore,
    }
}

/// How many seconds a pod is given that is deleted for the first time.
fn time_to_end(server: &Server, pod: &Value, wished: Option<i64>) -> i64 {
    let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let is_over = ["Succeeded", "Failed"].contains(&text("/status/phase"));
    if is_over || text("/spec/nodeName").is_empty() || is_node_gone(server, pod) {
        return 0;
    }
    let own = pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    bound_grace(wished.or(own).unwrap_or(0))
}

/// A time to end within its bounds. A negative time is a short one.
fn bound_grace(seconds: i64) -> i64 {
    if seconds < 0 { 1 } else { seconds.min(GRACE_MAX) }
}

/// Whether a pod was given to a node that is not there. No kubelet ends such a pod; upstream's
/// controller manager collects it, and the server itself does not.
fn is_node_gone(server: &Server, pod: &Value) -> bool {
    let node = pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
    if node.is_empty() || !server.options.runtime.makes_pods() {
        return false;
    }
    let nodes = server.kinds.find("", "v1", "nodes");
    nodes.is_some_and(|nodes| server.log.get(&nodes.key(None, node)).is_none())
}

/// A pod that has so many seconds to end, until a moment, or ends then and there.
fn mark_ending(mut pod: Value, until: u64, seconds: i64) -> Ending {
    let until = time::format(until);
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
    let (binding, warnings) = read_binding(request, options.validation)?;
    let text = |pointer: &str| binding.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if text("/metadata/name") != request.name() {
        return Err(Failure::bad_request("name in URL does not match name in Binding object"));
    }
    let node = text("/target/name");
    check_target(request.name(), text("/target/kind"), node)?;
    let uid = text("/metadata/uid");
    let added = metadata(&binding).get("annotations").and_then(Value::as_object);
    let given = give_node(server, request, (uid, node), added, options.dry_run).await;
    given.map_err(|failure| failure.warned(&warnings))?;
    Ok(Answer::Object {
        code: 201,
        body: json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
        }),
        warnings,
    })
}

/// The binding in a body, and what the client is to be warned of.
fn read_binding(
    request: &Request,
    validation: FieldValidation,
) -> Result<(Value, Vec<String>), Failure> {
    if request.media == protobuf::MEDIA {
        return Err(Failure::unknown_format(&["application/json", negotiate::YAML]));
    }
    let kind = binding_kind(&request.kind);
    let decoded = body::decode(&kind, &request.media, &request.body)?;
    if let Some(fault) = find_binding_fault(&request.kind, &decoded.object) {
        let why = format!("Binding in version \"v1\" cannot be handled as a Binding: {fault}");
        return Err(Failure::bad_request(why));
    }
    let warnings = body::judge(&kind, decoded.odd, validation)?;
    Ok((decoded.object, warnings))
}

/// The kind of what `pods/NAME/binding` takes. It is never stored, and nothing describes its shape.
fn binding_kind(pods: &Kind) -> Kind {
    static SHAPE: LazyLock<LazyShape> =
        LazyLock::new(|| LazyShape::builtin("v1".to_owned(), "Binding".to_owned()));
    Kind { kind: "Binding".to_owned(), shape: SHAPE.clone(), ..pods.clone() }
}

/// The first value of a binding that is not of the type its field has. Its metadata is that of
/// every kind.
fn find_binding_fault(pods: &Kind, binding: &Value) -> Option<String> {
    if let Some(fault) = shape::fault(pods, &json!({"metadata": metadata(binding)})) {
        return Some(fault);
    }
    let target = binding.get("target").filter(|target| !target.is_null())?;
    if !target.is_object() {
        return Some(type_fault(target, "Binding.target", "v1.ObjectReference"));
    }
    ["kind", "name"].iter().find_map(|field| {
        let value = target.get(*field)?;
        let is_text = value.is_null() || value.is_string();
        (!is_text).then(|| type_fault(value, &format!("ObjectReference.target.{field}"), "string"))
    })
}

/// What Go's decoder says of a value that is not of the type its field has.
fn type_fault(value: &Value, field: &str, expected: &str) -> String {
    let found = json_type_name(value);
    format!("json: cannot unmarshal {found} into Go struct field {field} of type {expected}")
}

/// The target of a binding is a Node, by a name that a Node can have.
fn check_target(pod: &str, kind: &str, node: &str) -> Result<(), Failure> {
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
    // Upstream takes any text.
    let faults = name::check(NameRule::Subdomain, node);
    let wrong: Vec<FieldError> = faults
        .iter()
        .map(|fault| FieldError::invalid("target.name", &json!(node), fault))
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(Failure::invalid("Binding", "", pod, &wrong)) }
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
        if let Some(added) = annotations.filter(|added| !added.is_empty()) {
            add_annotations(request, &mut pod, added)?;
        }
        workload::nodes::note_schedule(map_at(&mut pod, "status"), None, &now);
        Ok(Change::Put(pod))
    });
    bound.await.map(|_| ())
}

/// Adds the annotations of a binding to its pod, within the bounds of what clients write.
fn add_annotations(
    request: &Request,
    pod: &mut Value,
    added: &Map<String, Value>,
) -> Result<(), Failure> {
    let before = pod.clone();
    let slot = metadata_mut(pod).entry("annotations").or_insert_with(|| json!({}));
    if let Value::Object(slot) = slot {
        // Go reads a null as an empty text.
        let text = |value: &Value| json!(value.as_str().unwrap_or_default());
        slot.extend(added.iter().map(|(name, value)| (name.clone(), text(value))));
    }
    let mut wrong = meta::check(pod, request.kind.names);
    wrong.retain(|fault| fault.field == "metadata.annotations");
    if !wrong.is_empty() {
        return Err(Failure::invalid_object(&request.kind, request.name(), &wrong));
    }
    let size = schema::object::text(&before).len();
    encode_bounded(&request.kind, pod, Some((&before, size)))?;
    Ok(())
}
