//! Who wrote what: managed fields on every write, and server-side apply.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Request;
use crate::Server;
use crate::crd::convert::Source;
use crate::http::query::WriteOptions;
use crate::http::status::Failure;
use crate::kind::Kind;
use apply::fieldpath::{Path, Set};
use apply::types::Schema;
use apply::{self, ApplyContext, ApplyError, ConvertError, Converter, Timestamp};
use schema::object::{meta, metadata_mut};

/// Writes into `new` who owns its fields after a create, a replacement or a patch.
pub(crate) fn track(
    server: &Server,
    request: &Request,
    options: &WriteOptions,
    live: Option<&Value>,
    new: Value,
) -> Value {
    let api_version = request.kind.api_version();
    let reset = reset_fields(&request.kind, request.subresource());
    let versions = Versions { kinds: server.kinds.versions(&request.kind), request };
    let mut context = context(server, request, options, &api_version, reset.as_ref());
    context.converter = &versions;
    let blank = crate::kind::blank(&request.kind);
    apply::update(live.or(blank.as_ref()), &new, &context).unwrap_or_else(|_| {
        // As upstream: a write is never refused because its owners are unclear.
        let mut object = new;
        metadata_mut(&mut object).shift_remove("managedFields");
        object
    })
}

/// Writes into `new`, which nothing is kept of, who owns its fields.
pub(crate) fn track_new(
    server: &Server,
    request: &Request,
    options: &WriteOptions,
    new: Value,
) -> Value {
    track(server, request, options, None, new)
}

/// Writes into `new` what the server itself changed through a subresource.
pub(crate) fn track_own(server: &Server, kind: &Kind, live: &Value, new: Value) -> Value {
    let now = Timestamp(i64::try_from(server.world.now()).unwrap_or_default());
    let api_version = kind.api_version();
    let named = (api_version.as_str(), kind.kind.as_str());
    let mut context = ApplyContext::new("kube-apiserver", now, named, kind.shape.types());
    context.subresource = "status";
    apply::update(Some(live), &new, &context).unwrap_or(new)
}

/// The object after a configuration was applied to it, or to nothing.
pub(crate) fn applied(
    server: &Server,
    request: &Request,
    options: &WriteOptions,
    live: Option<&Value>,
    config: &Value,
) -> Result<Value, Failure> {
    let api_version = request.kind.api_version();
    let reset = reset_fields(&request.kind, request.subresource());
    let versions = Versions { kinds: server.kinds.versions(&request.kind), request };
    let mut context = context(server, request, options, &api_version, reset.as_ref());
    context.converter = &versions;
    let mut object = apply::apply(live, config, &context).map_err(|error| refusal(&error))?.object;
    if !request.kind.custom {
        meta::tidy(&mut object);
    }
    Ok(object)
}

fn context<'a>(
    server: &Server,
    request: &'a Request,
    options: &'a WriteOptions,
    api_version: &'a str,
    reset_fields: Option<&'a Set>,
) -> ApplyContext<'a> {
    let now = Timestamp(i64::try_from(server.world.now()).unwrap_or_default());
    let kind = &request.kind;
    let named = (api_version, kind.kind.as_str());
    let mut context = ApplyContext::new(&options.manager, now, named, kind.shape.types());
    context.force = options.force;
    context.subresource = request.subresource();
    context.reset_fields = reset_fields;
    context.reset_everywhere = context.subresource == "status";
    context
}

/// The versions of a custom kind. Without a webhook, an object is compared as it was written;
/// only its `apiVersion` changes.
struct Versions<'a> {
    kinds: Vec<Arc<Kind>>,
    request: &'a Request,
}

impl Versions<'_> {
    fn find(&self, api_version: &str) -> Option<&Kind> {
        self.kinds.iter().map(Arc::as_ref).find(|kind| kind.api_version() == api_version)
    }
}

impl Converter for Versions<'_> {
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        let missing = || ConvertError::NoSuchVersion { version: api_version.to_owned() };
        self.find(api_version).ok_or_else(missing)?;
        if let Some(conversion) = &self.request.kind.conversion {
            let source = Source::Object(object.to_string());
            if let Some(known) = conversion.known(&source, api_version) {
                return Ok(known.as_ref().clone());
            }
            // The write is tried again when it has been converted.
            self.request.missing.add(object, api_version);
        }
        let mut object = object.clone();
        object["apiVersion"] = json!(api_version);
        Ok(object)
    }

    fn schema(&self, api_version: &str) -> Option<&Schema> {
        self.find(api_version).map(|kind| kind.shape.types())
    }
}

/// What a write through this door cannot change, hence nobody comes to own.
fn reset_fields(kind: &Kind, subresource: &str) -> Option<Set> {
    let paths: &[&[&str]] = match (subresource, kind.custom) {
        ("" | "finalize", _) if kind.status => &[&["status"]],
        ("status", true) => &[&["metadata"], &["spec"]],
        ("status", false) => &[&["spec"], &["metadata", "labels"]],
        _ => return None,
    };
    Some(Set::of(paths.iter().map(|names| Path::fields(names.iter().copied()))))
}

fn refusal(error: &ApplyError) -> Failure {
    match error {
        ApplyError::WrongType { .. } | ApplyError::ManagedFieldsGiven => {
            Failure::bad_request(error.message())
        }
        ApplyError::Conflicts(conflicts) => {
            let causes: Vec<Value> = conflicts
                .shown()
                .iter()
                .map(|one| {
                    json!({
                        "reason": "FieldManagerConflict", "message": one.message(),
                        "field": one.path.to_string(),
                    })
                })
                .collect();
            let mut failure = Failure::new(409, "Conflict", error.message());
            failure.details = Some(Box::new(json!({"causes": causes})));
            failure
        }
        other => Failure::internal(other.message()),
    }
}
