//! The question put to a webhook, and what its answer means.

use serde_json::{Map, Value, json};

use super::Action;
use super::config::Hook;
use crate::Server;
use crate::http::status::Failure;
use crate::kind::Kind;
use crate::outbound;

/// What a webhook said.
#[derive(Default)]
pub(super) struct Verdict {
    pub(super) denied: Option<Box<Failure>>,
    pub(super) patch: Option<Value>,
    pub(super) warnings: Vec<String>,
}

/// The `AdmissionReview` of a write, about its object as one of `kind`.
pub(super) fn request(action: &Action<'_>, kind: &Kind, uid: &str) -> Value {
    let own = &action.request.kind;
    let scale = action.is_scale();
    let group_kind = |kind: &Kind| {
        if scale {
            return json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
        }
        json!({"group": kind.group, "version": kind.version, "kind": kind.kind})
    };
    let group_resource = |kind: &Kind| json!({"group": kind.group, "version": kind.version, "resource": kind.plural});
    let mut out = Map::new();
    let mut set = |field: &str, value: Value| {
        out.insert(field.to_owned(), value);
    };
    set("uid", json!(uid));
    set("kind", group_kind(kind));
    set("resource", group_resource(kind));
    let subresource = action.request.target.subresource.as_deref().unwrap_or_default();
    if !subresource.is_empty() {
        set("subResource", json!(subresource));
    }
    set("requestKind", group_kind(own));
    set("requestResource", group_resource(own));
    if !subresource.is_empty() {
        set("requestSubResource", json!(subresource));
    }
    let name = action.name();
    if !name.is_empty() {
        set("name", json!(name));
    }
    let namespaces = own.group.is_empty() && own.kind == "Namespace";
    let namespace = match action.request.target.namespace.as_deref() {
        Some(namespace) => namespace,
        None if namespaces => name,
        None => "",
    };
    if !namespace.is_empty() {
        set("namespace", json!(namespace));
    }
    set("operation", json!(action.operation));
    set("userInfo", user(action));
    let shown = |object: &Option<Value>| match object {
        Some(object) => {
            let mut object = object.clone();
            if !scale {
                object["apiVersion"] = json!(kind.api_version());
            }
            object
        }
        None => Value::Null,
    };
    set("object", shown(&action.object));
    set("oldObject", shown(&action.old));
    set("dryRun", json!(action.dry_run));
    set("options", options(action));
    json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": out})
}

fn user(action: &Action<'_>) -> Value {
    let user = &action.request.user;
    let mut out = json!({"username": user.name});
    if !user.uid.is_empty() {
        out["uid"] = json!(user.uid);
    }
    if !user.groups.is_empty() {
        out["groups"] = json!(user.groups);
    }
    if !user.extra.is_empty() {
        out["extra"] = json!(user.extra);
    }
    out
}

/// The options of the request, as an object.
fn options(action: &Action<'_>) -> Value {
    let request = action.request;
    let kind = match action.operation {
        "CREATE" => "CreateOptions",
        "DELETE" => "DeleteOptions",
        _ => "UpdateOptions",
    };
    let mut out = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
    if action.operation == "DELETE" {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        for (field, value) in body.as_object().into_iter().flatten() {
            if !matches!(field.as_str(), "kind" | "apiVersion") {
                out[field] = value.clone();
            }
        }
        for field in ["propagationPolicy", "gracePeriodSeconds"] {
            let said = request.query.get(field);
            if !said.is_empty() {
                out[field] = said.parse::<i64>().map_or_else(|_| json!(said), |n| json!(n));
            }
        }
    }
    if action.dry_run {
        out["dryRun"] = json!(["All"]);
    }
    for field in ["fieldManager", "fieldValidation"] {
        let said = request.query.get(field);
        if !said.is_empty() && action.operation != "DELETE" {
            out[field] = json!(said);
        }
    }
    out
}

/// Asks, and reads the answer.
pub(super) async fn send(
    server: &Server,
    hook: &Hook,
    review: &Value,
    uid: &str,
    mutating: bool,
) -> Result<Verdict, String> {
    let query = format!("timeout={}s", hook.seconds);
    let outbound = server.world.outbound();
    let answer = outbound::review(outbound, &hook.client, review, hook.timeout(), &query)
        .await
        .map_err(|why| format!("failed to call webhook: {why}"))?;
    read(&answer, &hook.name, uid, mutating)
        .map_err(|why| format!("received invalid webhook response: {why}"))
}

fn read(answer: &Value, name: &str, uid: &str, mutating: bool) -> Result<Verdict, String> {
    let text = |value: &Value, field: &str| {
        value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (version, kind) = (text(answer, "apiVersion"), text(answer, "kind"));
    if version != "admission.k8s.io/v1" || kind != "AdmissionReview" {
        return Err(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {version}, Kind={kind}"
        ));
    }
    let Some(response) = answer.get("response").filter(|response| response.is_object()) else {
        return Err("webhook response was absent".to_owned());
    };
    let said = text(response, "uid");
    if said != uid {
        return Err(format!("expected response.uid={uid:?}, got {said:?}"));
    }
    let mut verdict = Verdict {
        warnings: response
            .get("warnings")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        ..Verdict::default()
    };
    let patch = text(response, "patch");
    let patch_type = response.get("patchType").and_then(Value::as_str);
    match (patch.is_empty(), patch_type) {
        (true, None) => {}
        (false, _) if !mutating => {
            return Err("validating webhook may not return response.patch".to_owned());
        }
        (_, Some(_)) if !mutating => {
            return Err("validating webhook may not return response.patchType".to_owned());
        }
        (false, None) => {
            return Err("webhook returned response.patch but not response.patchType".to_owned());
        }
        (true, Some(_)) => {
            return Err("webhook returned response.patchType but not response.patch".to_owned());
        }
        (false, Some("JSONPatch")) => {
            use base64::Engine as _;
            let bytes = base64::engine::general_purpose::STANDARD.decode(&patch);
            let bytes = bytes.map_err(|error| error.to_string())?;
            verdict.patch =
                Some(serde_json::from_slice(&bytes).map_err(|error| error.to_string())?);
        }
        (false, Some(other)) => {
            return Err(format!("invalid value of response.patchType {other:?}"));
        }
    }
    if response.get("allowed") != Some(&json!(true)) {
        verdict.denied = Some(Box::new(denied(name, response.get("status"))));
        verdict.patch = None;
    }
    Ok(verdict)
}

/// A refusal in the webhook's words.
fn denied(name: &str, status: Option<&Value>) -> Failure {
    let null = Value::Null;
    let status = status.unwrap_or(&null);
    let text = |field: &str| status.get(field).and_then(Value::as_str).unwrap_or_default();
    let by = format!("admission webhook {name:?} denied the request");
    let message = match (text("message"), text("reason")) {
        ("", "") => format!("{by} without explanation"),
        ("", reason) => format!("{by}: {reason}"),
        (message, _) => format!("{by}: {message}"),
    };
    let code = status.get("code").and_then(Value::as_u64).filter(|code| (400..600).contains(code));
    let code = code.and_then(|code| u16::try_from(code).ok()).unwrap_or(400);
    let mut failure = Failure::new(code, text("reason").to_owned(), message);
    failure.details = status.get("details").cloned().map(Box::new);
    failure
}
