//! `/scale`: how many, for whatever can be many.

use std::sync::Arc;

use serde_json::{Value, json};

use super::store::Change;
use super::{Answer, Request, owner, patch as patches, store, update};
use crate::Server;
use crate::admission;
use crate::http::body;
use crate::http::query::WriteOptions;
use crate::http::status::Failure;
use crate::kind::Scale;
use apply::patch as rules;
use schema::object::field_error::FieldError;
use schema::object::{map_at, meta_text, metadata, path};

/// The scale of an object.
pub(crate) async fn get(server: &Server, request: &Request) -> Result<Answer, Failure> {
    let entry = server
        .log
        .get(&request.key())
        .ok_or_else(|| Failure::not_found(&request.kind, request.name()))?;
    let _held = store::convert(server, &request.kind, Some(entry.clone())).await?;
    let object = store::open(&request.kind, &entry)?;
    Ok(Answer::ok(view(rule(request)?, &object)))
}

/// Sets the wished number from a whole `Scale`.
pub(crate) async fn put(server: &Arc<Server>, request: &Request) -> Result<Answer, Failure> {
    let options = request.query.write_options("UpdateOptions", &request.agent)?;
    let (wished, _) = body::parse(&request.kind, &request.media, &request.body)?;
    set(server, request, options, |_| Ok(wished.clone())).await
}

/// Sets the wished number from a patch of the `Scale`.
pub(crate) async fn patch(server: &Arc<Server>, request: &Request) -> Result<Answer, Failure> {
    let options = request.query.write_options("PatchOptions", &request.agent)?;
    let (patch, _) = patches::parse(request)?;
    set(server, request, options, |mut scale| {
        if request.media.starts_with("application/json-patch") {
            rules::json(&mut scale, &patch).map_err(|error| patches::inapplicable(&error))?;
        } else {
            rules::merge(&mut scale, &patch);
        }
        Ok(scale)
    })
    .await
}

async fn set(
    server: &Arc<Server>,
    request: &Request,
    options: WriteOptions,
    wish: impl Fn(Value) -> Result<Value, Failure>,
) -> Result<Answer, Failure> {
    let rule = rule(request)?;
    let changed = store::change(server, request, options.dry_run, |old| {
        let scale = wish(view(rule, &old))?;
        let version = meta_text(&scale, "resourceVersion");
        if !version.is_empty() && version != meta_text(&old, "resourceVersion") {
            return Err(Failure::stale(&request.kind, request.name()));
        }
        Ok(Change::AskScale(Box::new((scale, options.clone()))))
    })
    .await?;
    Ok(Answer::ok(view(rule, &changed.object)))
}

/// What an object becomes whose `Scale` a client wants to be `scale`, if the webhooks agree:
/// they are shown the `Scale`, not the object.
pub(super) async fn admit(
    server: &Server,
    request: &Request,
    old: &Value,
    (scale, options): (Value, WriteOptions),
) -> Result<Change, Failure> {
    let rule = rule(request)?;
    let mut plain = request.clone();
    plain.target.subresource = None;
    let settle = |scale: &Value| {
        let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
        if replicas < 0 {
            let why = "should be a non-negative integer";
            let wrong = FieldError::invalid(&rule.spec_path, &json!(replicas), why);
            return Err(Failure::invalid_object(&request.kind, request.name(), &[wrong]));
        }
        let mut new = old.clone();
        write(&mut new, &rule.spec_path, json!(replicas));
        let mut new = owner::track(server, request, &options, Some(old), new);
        forget_time(&mut new);
        update::settle(server, &plain, old, new)
    };
    let shown = |object: &Value| view(rule, object);
    admission::scale(server, request, (old, scale, options.dry_run), settle, shown).await
}

/// Upstream carries owners through the `Scale`, where the time of this entry is lost; entries
/// without a time come first.
fn forget_time(object: &mut Value) {
    let entries = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
    let Some(entries) = entries else { return };
    let scaled = |entry: &Value| entry.get("subresource") == Some(&json!("scale"));
    for entry in entries.iter_mut().filter(|entry| scaled(entry)) {
        if let Value::Object(map) = entry {
            map.shift_remove("time");
        }
    }
    entries.sort_by_key(|entry| (entry.get("operation") != Some(&json!("Apply")), !scaled(entry)));
}

fn rule(request: &Request) -> Result<&Scale, Failure> {
    request.kind.scale.as_ref().ok_or_else(|| {
        Failure::new(404, "NotFound", "the server could not find the requested resource")
    })
}

/// Writes a value at a simple path such as `.spec.replicas`.
fn write(object: &mut Value, at: &str, value: Value) {
    let mut names: Vec<&str> = at.split('.').filter(|name| !name.is_empty()).collect();
    let Some(last) = names.pop() else { return };
    let mut place = object;
    for name in names {
        map_at(place, name);
        let Some(next) = place.get_mut(name) else { return };
        place = next;
    }
    if let Value::Object(map) = place {
        map.insert(last.to_owned(), value);
    }
}

fn view(rule: &Scale, object: &Value) -> Value {
    let number =
        |at: &str| path::find(object, at).first().and_then(|value| value.as_i64()).unwrap_or(0);
    let kept = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];
    let metadata: serde_json::Map<String, Value> = kept
        .iter()
        .filter_map(|field| Some(((*field).to_owned(), metadata(object).get(*field)?.clone())))
        .collect();
    let mut status = json!({"replicas": number(&rule.status_path)});
    let selector = match &rule.selector_path {
        Some(at) => path::find(object, at).first().and_then(|v| v.as_str()).map(str::to_owned),
        None => object.pointer("/spec/selector/matchLabels").and_then(labels),
    };
    if let Some(selector) = selector {
        status["selector"] = json!(selector);
    }
    let replicas = number(&rule.spec_path);
    let spec = if replicas == 0 { json!({}) } else { json!({"replicas": replicas}) };
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": spec, "status": status,
    })
}

fn labels(map: &Value) -> Option<String> {
    let mut pairs: Vec<String> = map
        .as_object()?
        .iter()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.sort();
    Some(pairs.join(","))
}
