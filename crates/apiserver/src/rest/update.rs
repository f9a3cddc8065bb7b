//! PUT: an object's new form, and the rules that every change of an object follows.

use std::sync::Arc;

use serde_json::{Value, json};

use super::store::{self, Change};
use super::{Answer, Request, create, owner, present};
use crate::Server;
use crate::auth;
use crate::crd;
use crate::http::body;
use crate::http::status::Failure;
use crate::kind::{self, Kind};
use schema::object::field_error::FieldError;
use schema::object::{is_deleting, meta, meta_list, meta_text, metadata, metadata_mut};

/// Replaces an object by the one in the body.
pub(crate) async fn update(server: &Arc<Server>, request: &Request) -> Result<Answer, Failure> {
    let kind = &request.kind;
    let options = request.query.write_options("UpdateOptions", &request.agent)?;
    let decoded = body::decode(kind, &request.media, &request.body)?;
    let warnings = body::judge(kind, decoded.odd, options.validation)?;
    let mut object = decoded.object;
    create::place(request, &mut object)?;
    check_name(request, &object)?;
    let version = meta_text(&object, "resourceVersion").to_owned();
    let unsaid = version.is_empty() && !kind.unconditional && request.subresource() != "finalize";
    let changed = store::change(server, request, options.dry_run, |old| {
        if unsaid {
            return Err(unconditional(request));
        }
        check_uid(request, &object, &old)?;
        if !version.is_empty() && version != meta_text(&old, "resourceVersion") {
            return Err(Failure::stale(kind, request.name()));
        }
        let mut new = object.clone();
        fill(kind, &mut new);
        let new = owner::track(server, request, &options, Some(&old), new);
        Ok(advance(new))
    })
    .await
    .map_err(|failure| failure.warned(&warnings))?;
    let body = present::one(server, request, changed.object);
    Ok(Answer::Object { code: 200, body, warnings })
}

fn unconditional(request: &Request) -> Failure {
    let wrong = FieldError::invalid(
        "metadata.resourceVersion",
        &json!(0),
        "must be specified for an update",
    );
    Failure::invalid(&request.kind.plural, &request.kind.group, request.name(), &[wrong])
}

/// The name in the body must be the one in the URL, or missing.
pub(crate) fn check_name(request: &Request, object: &Value) -> Result<(), Failure> {
    let said = meta_text(object, "name");
    if said.is_empty() {
        return Err(Failure::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            request.name()
        )));
    }
    if said != request.name() {
        return Err(Failure::bad_request(format!(
            "the name of the object ({said}) does not match the name on the URL ({})",
            request.name()
        )));
    }
    Ok(())
}

/// A uid in the body is a precondition.
pub(crate) fn check_uid(request: &Request, object: &Value, old: &Value) -> Result<(), Failure> {
    let (said, real) = (meta_text(object, "uid"), meta_text(old, "uid"));
    if said.is_empty() || said == real {
        return Ok(());
    }
    let kind = &request.kind;
    let group = if kind.custom { format!("{}/", kind.group) } else { String::new() };
    let namespace = request.namespace().map(|name| format!("{name}/")).unwrap_or_default();
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{group}{}/{namespace}{}, \
         ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {said}, \
         UID in object meta: {real}",
        kind.plural,
        request.name()
    );
    Err(Failure::conflict(kind, request.name(), &why))
}

/// What a client wants an object to become; others have a say first.
pub(crate) fn advance(new: Value) -> Change {
    Change::Ask(new)
}

/// What an object becomes when a client wants it to be `new`: carries over what clients
/// may not change, fills in, checks, and notices when nothing is different.
pub(crate) fn settle(
    server: &Server,
    request: &Request,
    old: &Value,
    mut new: Value,
) -> Result<Change, Failure> {
    let kind = &request.kind;
    carry_over(old, &mut new);
    keep_other_half(kind, request.subresource(), old, &mut new);
    keep_given(kind, request.subresource(), old, &mut new);
    if !kind.custom {
        fill(kind, &mut new);
    }
    if request.subresource().is_empty() {
        crd::note_storage(kind, &mut new);
    }
    count_generation(kind, request.subresource(), old, &mut new);
    auth::escalate::check(server, request, &new, Some(old))?;
    let mut wrong = meta::check_update(&new, old);
    let definition = crd::is_definition(kind);
    let general = match kind.custom {
        true => meta::check_custom(&new, kind.names),
        false if definition => Vec::new(),
        false => meta::check(&new, kind.names),
    };
    wrong.extend(general.clone());
    if !kind.custom && !definition {
        // Upstream comes by here several times; clients see each cause that often.
        wrong.extend(general);
        wrong.extend(wrong.clone());
    }
    if kind.custom {
        wrong.extend(check_shape(request, &new, Some(old)));
    }
    if !(definition && request.subresource() == "status") {
        wrong.extend(check_content(kind, &new, Some(old)));
    }
    if !wrong.is_empty() {
        return Err(Failure::invalid_object(kind, request.name(), &wrong));
    }
    if may_go(kind, &new) {
        return Ok(Change::Remove(new));
    }
    apply::keep_times(old, &mut new);
    Ok(Change::Put(new))
}

/// What is wrong with an object of a custom kind; warns of what is forgiven.
pub(crate) fn check_shape(
    request: &Request,
    object: &Value,
    old: Option<&Value>,
) -> Vec<FieldError> {
    let status_only = request.subresource() == "status";
    let (wrong, forgiven) = request.kind.shape.check(object, old, status_only);
    for error in forgiven {
        request.warnings.add(error.to_string());
    }
    wrong.iter().map(FieldError::of).collect()
}

/// Fills in what the client left out.
pub(crate) fn fill(kind: &Kind, object: &mut Value) {
    kind::complete(kind, object);
    crd::complete(kind, object);
}

/// Whether nothing holds a deleted object any more.
pub(crate) fn may_go(kind: &Kind, object: &Value) -> bool {
    let held = kind.kind == "Namespace"
        && kind.group.is_empty()
        && object.pointer("/spec/finalizers").is_some_and(|list| *list != json!([]));
    // A pod that is given time to end is removed by what runs it.
    let grace = metadata(object).get("deletionGracePeriodSeconds").and_then(Value::as_i64);
    let ends = grace.is_some_and(|seconds| seconds > 0);
    is_deleting(object) && meta_list(object, "finalizers").is_empty() && !held && !ends
}

fn carry_over(old: &Value, new: &mut Value) {
    let before = metadata(old);
    let after = metadata_mut(new);
    for field in ["generation", "resourceVersion", "creationTimestamp"] {
        match before.get(field) {
            Some(value) => after.insert(field.to_owned(), value.clone()),
            None => after.shift_remove(field),
        };
    }
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if let (None, Some(value)) = (after.get(field), before.get(field)) {
            after.insert(field.to_owned(), value.clone());
        }
    }
}

/// A write to the object leaves its status alone, one to its status all the rest.
fn keep_other_half(kind: &Kind, subresource: &str, old: &Value, new: &mut Value) {
    if subresource != "finalize" && kind.kind == "Namespace" && kind.group.is_empty() {
        let spec = schema::object::map_at(new, "spec");
        match old.pointer("/spec/finalizers").cloned() {
            Some(finalizers) => spec.insert("finalizers".to_owned(), finalizers),
            None => spec.shift_remove("finalizers"),
        };
    }
    let Value::Object(map) = new else { return };
    match subresource {
        "" | "finalize" if kind.status => match old.get("status") {
            Some(status) => {
                map.insert("status".to_owned(), status.clone());
            }
            None => {
                map.shift_remove("status");
            }
        },
        "status" => {
            let status = map.shift_remove("status");
            let mut kept = old.clone();
            if let Value::Object(kept) = &mut kept {
                match status {
                    Some(status) => kept.insert("status".to_owned(), status),
                    None => kept.shift_remove("status"),
                };
            }
            if !kind.custom && kind.kind != "CustomResourceDefinition" {
                for field in ["annotations", "finalizers", "ownerReferences"] {
                    let said = metadata(new).get(field).cloned();
                    match said {
                        Some(value) => metadata_mut(&mut kept).insert(field.to_owned(), value),
                        None => metadata_mut(&mut kept).shift_remove(field),
                    };
                }
            }
            let owners = metadata(new).get("managedFields").cloned();
            match owners {
                Some(owners) => metadata_mut(&mut kept).insert("managedFields".to_owned(), owners),
                None => metadata_mut(&mut kept).shift_remove("managedFields"),
            };
            *new = kept;
        }
        _ => {}
    }
}

/// Keeps what the server gave an object when it was made, where its new form says nothing of it.
fn keep_given(kind: &Kind, subresource: &str, old: &Value, new: &mut Value) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Service") => kind::service::keep(old, new),
        ("", "Pod") if subresource.is_empty() => kind::keep_pod(old, new),
        _ => {}
    }
}

fn count_generation(kind: &Kind, subresource: &str, old: &Value, new: &mut Value) {
    if !(kind.generation || kind.custom) || (subresource == "status" && kind.status) {
        return;
    }
    let wish = |object: &Value| {
        let mut wish = object.clone();
        if let Value::Object(map) = &mut wish {
            map.shift_remove("metadata");
            if kind.status {
                map.shift_remove("status");
            }
        }
        wish
    };
    let annotated = kind.kind == "Deployment"
        && metadata(old).get("annotations") != metadata(new).get("annotations");
    if annotated || wish(old) != wish(new) {
        let before = metadata(old).get("generation").and_then(Value::as_i64).unwrap_or(0);
        metadata_mut(new).insert("generation".to_owned(), json!(before.saturating_add(1)));
    }
}

/// What is wrong with the object beyond its metadata.
pub(crate) fn check_content(kind: &Kind, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    if crd::is_definition(kind) {
        return schema::validate_crd(object, old).iter().map(FieldError::of).collect();
    }
    kind::check(kind, object, old)
}
