//! Objects in and out of the log, and the loop that changes one.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Answer, Request, present};
use crate::Server;
use crate::admission;
use crate::http::status::Failure;
use crate::kind::{Kind, event};
use crate::log::{Entry, Expect, Write, WriteError};
use crate::object::metadata_mut;

/// How often a change is tried again when others are faster.
const TRIES_MAX: usize = 64;

/// What becomes of an object.
pub(crate) enum Change {
    /// A client wants this; others have a say first.
    Ask(Value),
    /// Nothing changed: nothing is written.
    Keep,
    /// This is its new form.
    Put(Value),
    /// It goes; this is what is shown of it.
    Remove(Value),
}

/// What became of an object.
pub(crate) struct Changed {
    /// Its form now, or the last one.
    pub(crate) object: Value,
    /// Whether it is gone.
    pub(crate) removed: bool,
}

/// An entry of the log as an object of `kind`.
pub(crate) fn open(kind: &Kind, entry: &Entry) -> Result<Value, Failure> {
    Ok(unpack(kind, parse(entry)?, entry.version))
}

fn parse(entry: &Entry) -> Result<Value, Failure> {
    serde_json::from_slice(&entry.value).map_err(|error| {
        Failure::new(500, "InternalError", format!("a stored object is not JSON: {error}"))
    })
}

/// A stored form as an object of `kind`. A definition may have changed since it was written;
/// defaults are those of the version it is stored in.
fn unpack(kind: &Kind, mut object: Value, version: u64) -> Value {
    if kind.custom {
        let stored = kind.stored_shape.as_ref().unwrap_or(&kind.shape);
        stored.prune(&mut object);
        stored.default(&mut object);
        if kind.stored_shape.is_some() {
            kind.shape.prune(&mut object);
        }
    }
    if event::is_newer(kind) {
        event::to_newer(&mut object);
    }
    object["apiVersion"] = json!(kind.api_version());
    object["kind"] = json!(kind.kind);
    set_version(&mut object, version);
    object
}

/// Writes a version into an object.
pub(crate) fn set_version(object: &mut Value, version: u64) {
    metadata_mut(object).insert("resourceVersion".to_owned(), json!(version.to_string()));
}

/// An object as it is stored: in the storage version, without its own version.
pub(crate) fn close(kind: &Kind, object: &Value) -> Bytes {
    Bytes::from(pack(kind, object).to_string())
}

fn pack(kind: &Kind, object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(stored) = &kind.stored_shape {
        stored.prune(&mut object);
    }
    if event::is_newer(kind) {
        event::to_core(&mut object);
    }
    object["apiVersion"] = match kind.group.as_str() {
        _ if event::is_newer(kind) => json!("v1"),
        "" => json!(kind.storage_version),
        group => json!(format!("{group}/{}", kind.storage_version)),
    };
    metadata_mut(&mut object).shift_remove("resourceVersion");
    object
}

/// GET of one object.
pub(crate) fn get(server: &Server, request: &Request) -> Result<Answer, Failure> {
    let kind = &request.kind;
    let asked = request.query.get("resourceVersion");
    if !asked.is_empty() {
        let version = asked.parse::<u64>().map_err(|_| super::list::invalid_version(asked))?;
        if version > server.log.version() {
            return Err(Failure::too_large(version, server.log.version()));
        }
    }
    let entry =
        server.log.get(&request.key()).ok_or_else(|| Failure::not_found(kind, request.name()))?;
    Ok(Answer::ok(present::one(server, request, open(kind, &entry)?)))
}

/// Makes a new object; `taken` says what to answer when the name is.
pub(crate) async fn insert(
    server: &Server,
    kind: &Kind,
    key: String,
    object: &mut Value,
) -> Result<Result<(), Option<Entry>>, Failure> {
    let stored = pack(kind, object);
    let value = Some(Bytes::from(stored.to_string()));
    match server.log.write(Write { key, expect: Expect::Absent, value }).await {
        Ok(version) => {
            *object = unpack(kind, stored, version);
            Ok(Ok(()))
        }
        Err(WriteError::Conflict(found)) => Ok(Err(found)),
        Err(broken @ WriteError::Broken(_)) => Err(unavailable(&broken)),
    }
}

/// Changes one object: asks `decide` what its present form should become and writes that,
/// again and again until nobody was faster.
pub(crate) async fn change(
    server: &Server,
    request: &Request,
    dry_run: bool,
    decide: impl Fn(Value) -> Result<Change, Failure>,
) -> Result<Changed, Failure> {
    let (kind, key) = (&request.kind, request.key());
    for _ in 0..TRIES_MAX {
        let entry = server.log.get(&key).ok_or_else(|| Failure::not_found(kind, request.name()))?;
        let stored = parse(&entry)?;
        let old = unpack(kind, stored.clone(), entry.version);
        let change = match decide(old.clone())? {
            Change::Ask(new) => admission::update(server, request, &old, new, dry_run).await?,
            other => other,
        };
        let (mut object, packed) = match change {
            Change::Keep => return Ok(Changed { object: old, removed: false }),
            Change::Put(object) => {
                let packed = pack(kind, &object);
                if packed == stored {
                    return Ok(Changed { object: old, removed: false });
                }
                (object, Some(packed))
            }
            Change::Remove(object) | Change::Ask(object) => (object, None),
        };
        set_version(&mut object, entry.version);
        let removed = packed.is_none();
        let shown = |version: u64| match packed.clone() {
            Some(packed) => unpack(kind, packed, version),
            None => object.clone(),
        };
        if dry_run {
            return Ok(Changed { object: shown(entry.version), removed });
        }
        let value = packed.as_ref().map(|packed| Bytes::from(packed.to_string()));
        let write = Write { key: key.clone(), expect: Expect::Version(entry.version), value };
        match server.log.write(write).await {
            Ok(version) => return Ok(Changed { object: shown(version), removed }),
            Err(WriteError::Conflict(_)) => {}
            Err(broken @ WriteError::Broken(_)) => return Err(unavailable(&broken)),
        }
    }
    Err(Failure::stale(kind, request.name()))
}

fn unavailable(error: &WriteError) -> Failure {
    Failure::new(500, "InternalError", format!("Internal error occurred: {error}"))
}

/// The namespace an object is to be made in must be there and must stay.
pub(crate) fn check_namespace(
    server: &Arc<Server>,
    request: &Request,
    name: &str,
) -> Result<(), Failure> {
    let Some(namespace) = request.namespace() else { return Ok(()) };
    let Some(namespaces) = server.kinds.find("", "v1", "namespaces") else { return Ok(()) };
    let entry = server
        .log
        .get(&namespaces.key(None, namespace))
        .ok_or_else(|| Failure::not_found(&namespaces, namespace))?;
    if !crate::object::is_deleting(&open(&namespaces, &entry)?) {
        return Ok(());
    }
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    let mut failure = Failure::forbidden(&request.kind, name, &why);
    if let Some(details) = &mut failure.details {
        details["causes"] = json!([{
            "reason": "NamespaceTerminating",
            "message": format!("namespace {namespace} is being terminated"),
            "field": "metadata.namespace",
        }]);
    }
    Err(failure)
}
