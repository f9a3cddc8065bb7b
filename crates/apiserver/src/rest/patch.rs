//! PATCH: a change described instead of a new form.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::create::Tracked;
use super::{Answer, Request, create, owner, present, store, update};
use crate::Server;
use crate::http::body;
use crate::http::query::WriteOptions;
use crate::http::status::Failure;
use crate::kind::shape;
use apply::patch::{self, strategic, strategic::StrategicError};
use schema::object::field_error::FieldError;
use schema::object::{lines, meta_text, strict};
use schema::text;

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Changes an object as the body says.
pub(crate) async fn patch(server: &Arc<Server>, request: &Request) -> Result<Answer, Failure> {
    if request.media == APPLY {
        return apply(server, request).await;
    }
    let options = request.query.write_options("PatchOptions", &request.agent)?;
    let (patch, duplicates) = parse(request)?;
    let warnings = Mutex::new(Vec::new());
    let changed = store::change(server, request, options.dry_run, |old| {
        let mut odd = duplicates.clone();
        let mut new = patched(request, &patch, &old, &mut odd)?;
        let said = judged(request, odd, &options)?;
        *warnings.lock().unwrap_or_else(PoisonError::into_inner) = said;
        create::place(request, &mut new)?;
        update::check_name(request, &new)?;
        let version = meta_text(&new, "resourceVersion");
        if !version.is_empty() && version != meta_text(&old, "resourceVersion") {
            return Err(Failure::stale(&request.kind, request.name()));
        }
        update::fill(&request.kind, &mut new);
        let new = owner::track(server, request, &options, Some(&old), new);
        Ok(update::advance(new))
    })
    .await;
    let warnings = warnings.into_inner().unwrap_or_default();
    let changed = changed.map_err(|failure| failure.warned(&warnings))?;
    let body = present::one(server, request, changed.object);
    Ok(Answer::Object { code: 200, body, warnings })
}

/// Server-side apply: what the client wants to be so, made so.
async fn apply(server: &Arc<Server>, request: &Request) -> Result<Answer, Failure> {
    let options = request.query.write_options("PatchOptions", &request.agent)?;
    if request.query.get("fieldManager").is_empty() {
        let wrong = FieldError::required("fieldManager", "is required for apply patch");
        return Err(Failure::invalid_options("PatchOptions", &[wrong]));
    }
    let (config, odd) = configuration(&request.body)?;
    let warnings = Mutex::new(Vec::new());
    // What is written twice matters only once the rest is in order.
    let judge = || -> Result<(), Failure> {
        let said = repeated(odd.clone(), &options)?;
        *warnings.lock().unwrap_or_else(PoisonError::into_inner) = said;
        Ok(())
    };
    let taken = || std::mem::take(&mut *warnings.lock().unwrap_or_else(PoisonError::into_inner));
    if server.log.get(&request.key()).is_none() {
        if request.subresource() == "status" {
            return Err(Failure::not_found(&request.kind, request.name()));
        }
        let mut object = owner::applied(server, request, &options, None, &config)?;
        judge()?;
        update::check_name(request, &object)?;
        if !request.kind.custom {
            body::prune(&request.kind, &mut object);
        }
        let object = create::insert(server, request, object, &options, Tracked::Yes).await;
        let object = object.map_err(|failure| failure.warned(&taken()))?;
        let body = present::one(server, request, object);
        return Ok(Answer::Object { code: 201, body, warnings: taken() });
    }
    let changed = store::change(server, request, options.dry_run, |old| {
        let mut new = owner::applied(server, request, &options, Some(&old), &config)?;
        judge()?;
        if !request.kind.custom {
            body::prune(&request.kind, &mut new);
        }
        create::place(request, &mut new)?;
        update::check_name(request, &new)?;
        let version = meta_text(&new, "resourceVersion");
        if !version.is_empty() && version != meta_text(&old, "resourceVersion") {
            return Err(Failure::stale(&request.kind, request.name()));
        }
        update::fill(&request.kind, &mut new);
        Ok(update::advance(new))
    })
    .await
    .map_err(|failure| failure.warned(&taken()))?;
    let body = present::one(server, request, changed.object);
    Ok(Answer::Object { code: 200, body, warnings: taken() })
}

/// What a client wants to be so, from a body in YAML, and what that says twice. Nearly everybody
/// sends JSON, which is YAML too and read faster as what it is.
fn configuration(text: &[u8]) -> Result<(Value, Option<String>), Failure> {
    let wrong = |why: String| Failure::bad_request(format!("error decoding YAML: {why}"));
    let json = text.trim_ascii_start().starts_with(b"{").then(|| strict::parse(text).ok());
    let (config, odd) = match json.flatten().filter(|(_, duplicates)| duplicates.is_empty()) {
        Some((config, _)) => (config, None),
        None => lines::parse(text)
            .map_err(|why| wrong(format!("error converting YAML to JSON: {why}")))?,
    };
    let found = match config {
        Value::Object(_) => return Ok((config, odd)),
        Value::Null => return Ok((Value::Object(serde_json::Map::new()), odd)),
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
    };
    Err(wrong(format!(
        "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go \
         value of type map[string]interface {{}}"
    )))
}

/// What becomes of keys that are set twice: warnings, a refusal, or nothing.
fn repeated(odd: Option<String>, options: &WriteOptions) -> Result<Vec<String>, Failure> {
    use crate::http::query::FieldValidation::{Ignore, Strict, Warn};
    match (odd, options.validation) {
        (None, _) | (_, Ignore) => Ok(Vec::new()),
        (Some(odd), Warn) => Ok(lines::warnings(odd)),
        (Some(odd), Strict) => Err(Failure::bad_request(format!(
            "error strict decoding YAML: error converting YAML to JSON: {odd}"
        ))),
    }
}

/// The body, if its type is one we take.
pub(crate) fn parse(request: &Request) -> Result<(Value, Vec<String>), Failure> {
    let strategic = request.media == STRATEGIC;
    if ![JSON, MERGE].contains(&request.media.as_str()) && (request.kind.custom || !strategic) {
        return Err(if request.kind.custom {
            Failure::unknown_format(&[JSON, MERGE, APPLY])
        } else {
            Failure::unsupported_media()
        });
    }
    let (patch, duplicates) = strict::parse(&request.body).map_err(|error| {
        let said = crate::http::syntax::complaint(&request.body);
        let said = said.unwrap_or_else(|| error.to_string());
        Failure::bad_request(if strategic { said } else { format!("error decoding patch: {said}") })
    })?;
    let count = patch.as_array().map_or(0, Vec::len);
    if request.media == JSON && count > patch::OPERATIONS_MAX {
        return Err(Failure::new(
            413,
            "RequestEntityTooLarge",
            format!(
                "Request entity too large: The allowed maximum operations in a JSON patch is {}, \
                 got {count}",
                patch::OPERATIONS_MAX
            ),
        ));
    }
    let duplicates = duplicates.iter().map(|path| format!("duplicate field {path:?}")).collect();
    Ok((patch, duplicates))
}

/// The object with the patch applied, brought back into shape.
fn patched(
    request: &Request,
    patch: &Value,
    old: &Value,
    odd: &mut Vec<String>,
) -> Result<Value, Failure> {
    let mut new = old.clone();
    if request.media == JSON {
        patch::json(&mut new, patch).map_err(|error| match error {
            patch::PatchError::Malformed if !patch.is_array() => Failure::bad_request(
                "error decoding patch: json: cannot unmarshal object into Go value of type \
                 []handlers.jsonPatchOp",
            ),
            other => inapplicable(&other),
        })?;
    } else if request.media == STRATEGIC {
        new = merged(request, patch, new)?;
    } else {
        if !patch.is_object() {
            return Err(Failure::bad_request("error decoding patch: not an object"));
        }
        patch::merge(&mut new, patch);
    }
    if let Some(fault) = shape::fault(&request.kind, &new) {
        let wrong = FieldError::invalid("patch", &Value::String(new.to_string()), &fault);
        return Err(Failure::invalid("", "", "", &[wrong]));
    }
    // Custom kinds name what was dropped in an order of their own.
    let written = (!request.kind.custom).then(|| new.clone());
    let unknown = body::prune(&request.kind, &mut new);
    odd.extend(body::dropped(&request.kind, unknown, || written.unwrap_or_default()));
    Ok(new)
}

/// What a client is told of a JSON patch that does not apply: as upstream nothing, but for limits,
/// which only this server has.
pub(super) fn inapplicable(error: &patch::PatchError) -> Failure {
    let mut failure = Failure::patch_rejected();
    if error.is_limit() {
        failure.message = format!("{}: {error}", failure.message);
    }
    failure
}

/// The object with a strategic merge patch applied.
fn merged(request: &Request, patch: &Value, old: Value) -> Result<Value, Failure> {
    let Value::Object(patch) = patch else {
        let found = match patch {
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Bool(_) => "bool",
            _ => "number",
        };
        return Err(Failure::bad_request(format!(
            "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        )));
    };
    let Value::Object(old) = old else { return Ok(old) };
    let meta = shape::merging(&request.kind.api_version(), &request.kind.kind);
    strategic::strategic(old, patch.clone(), meta).map(Value::Object).map_err(|error| match error {
        StrategicError::Malformed(why) => Failure::bad_request(why),
        StrategicError::ListOfLists => Failure::patch_rejected(),
        StrategicError::Mismatch(why) => Failure::internal(why),
    })
}

/// Unknown fields in a patched object are refused as a patch, not as an object.
fn judged(
    request: &Request,
    odd: Vec<String>,
    options: &WriteOptions,
) -> Result<Vec<String>, Failure> {
    use crate::http::query::FieldValidation::Strict;
    if options.validation == Strict && !odd.is_empty() && request.media == STRATEGIC {
        let patch = serde_json::from_slice(&request.body).unwrap_or_default();
        let why = format!("strict decoding error: {}", odd.join(", "));
        let wrong = FieldError::invalid("patch", &Value::String(text::plain(&patch)), &why);
        return Err(Failure::invalid("", "", "", &[wrong]));
    }
    if options.validation == Strict && !odd.is_empty() {
        let wrong = FieldError::invalid(
            "patch",
            &Value::String(format!(
                "(\n\"\"\"\n{}\n\"\"\"\n)",
                String::from_utf8_lossy(&request.body)
            )),
            &format!("strict decoding error: {}", odd.join(", ")),
        );
        return Err(Failure::invalid(
            &request.kind.kind,
            &request.kind.group,
            request.name(),
            &[wrong],
        ));
    }
    body::judge(&request.kind, odd, options.validation)
}
