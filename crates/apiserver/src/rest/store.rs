//! Objects in and out of the log, and the loop that changes one.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::bounds::{encode, encode_bounded};
use super::splice::{self, Splice};
use super::{Answer, Request, present, scale};
use crate::Server;
use crate::admission;
use crate::crd::convert::{Held, Source};
use crate::http::negotiate::Form;
use crate::http::query::WriteOptions;
use crate::http::status::Failure;
use crate::kind::{Kind, event};
use crate::log::{Entry, Expect, Write, WriteError};
use schema::object::metadata_mut;

/// How often a change is tried again when others are faster.
const TRIES_MAX: usize = 64;

/// What becomes of an object.
pub(crate) enum Change {
    /// A client wants this; others have a say first.
    Ask(Value),
    /// A client wants the `Scale` to be this, with these options; others have a say first.
    AskScale(Box<(Value, WriteOptions)>),
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
    let object = parse(entry)?;
    let Some(conversion) = kind.conversion.as_ref().filter(|_| !is_at_home(kind, &object)) else {
        return Ok(unpack(kind, object, entry.version));
    };
    match conversion.known(&Source::Entry(entry.version), &kind.api_version()) {
        Some(known) => Ok(shown(kind, known.as_ref().clone(), entry.version)),
        // Only who did not have it converted, or did not hold what came of it, gets here.
        None => Err(Failure::internal("an object of another version was not converted")),
    }
}

/// Whether a stored object is in the version of `kind` already.
fn is_at_home(kind: &Kind, object: &Value) -> bool {
    object.get("apiVersion") == Some(&json!(kind.api_version()))
}

/// A converted object, with what its version knows.
fn shown(kind: &Kind, mut object: Value, version: u64) -> Value {
    kind.shape.prune(&mut object);
    set_version(&mut object, version);
    object
}

/// Has those entries converted that are in another version than `kind`, many at once. They can be
/// opened as long as the result is held.
pub(crate) async fn convert(
    server: &Server,
    kind: &Kind,
    entries: impl IntoIterator<Item = Entry>,
) -> Result<Held, Failure> {
    let Some(conversion) = &kind.conversion else { return Ok(Held::new()) };
    let target = kind.api_version();
    let (mut held, mut unknown) = (Held::new(), Vec::new());
    for entry in entries {
        let source = Source::Entry(entry.version);
        if let Some(known) = conversion.known(&source, &target) {
            held.push(known);
            continue;
        }
        // One that cannot be read costs nobody else's.
        let Ok(object) = parse(&entry) else { continue };
        if !is_at_home(kind, &object) {
            let object = completed(server, kind, object, entry.version);
            unknown.push((source, entry.value.len(), object));
        }
    }
    held.extend(conversion.convert_all(server, unknown, &target).await?);
    Ok(held)
}

/// A stored object with what its own version fills in.
fn completed(server: &Server, kind: &Kind, mut object: Value, version: u64) -> Value {
    let versions = server.kinds.versions(kind);
    if let Some(home) = versions.iter().find(|home| is_at_home(home, &object)) {
        home.shape.prune(&mut object);
        home.shape.default(&mut object);
    }
    set_version(&mut object, version);
    object
}

/// What is shown of an object that was, or would be, stored like this.
async fn reread(
    server: &Server,
    kind: &Kind,
    packed: Value,
    version: u64,
) -> Result<Value, Failure> {
    let Some(conversion) = kind.conversion.as_ref().filter(|_| !is_at_home(kind, &packed)) else {
        return Ok(unpack(kind, packed, version));
    };
    let object = completed(server, kind, packed, version);
    let converted = conversion.convert(server, vec![object], &kind.api_version()).await?;
    Ok(shown(kind, converted.into_iter().next().unwrap_or_default(), version))
}

/// An object as it is stored, converted if need be.
async fn stored(server: &Server, kind: &Kind, object: &Value) -> Result<Value, Failure> {
    let Some(conversion) = &kind.conversion else { return Ok(pack(kind, object)) };
    let wanted = storage(kind);
    let wanted = wanted.as_str().unwrap_or_default();
    let converted = conversion.convert(server, vec![object.clone()], wanted).await?;
    let mut object = converted.into_iter().next().unwrap_or_default();
    metadata_mut(&mut object).shift_remove("resourceVersion");
    Ok(object)
}

/// The version in which objects are stored.
pub(super) fn storage(kind: &Kind) -> Value {
    match kind.group.as_str() {
        _ if event::is_newer(kind) => json!("v1"),
        "" => json!(kind.storage_version),
        group => json!(format!("{group}/{}", kind.storage_version)),
    }
}

/// Has converted what the owners of fields in other versions were missing; says whether
/// anything was.
async fn convert_missing(
    server: &Server,
    request: &Request,
    held: &mut Held,
) -> Result<bool, Failure> {
    let missing = request.missing.take();
    let Some(conversion) = &request.kind.conversion else { return Ok(false) };
    for (object, version) in &missing {
        let source = Source::Object(object.to_string());
        let converted = conversion.convert(server, vec![object.clone()], version).await?;
        let converted = converted.into_iter().next().unwrap_or_default();
        held.push(conversion.remember(source, version, converted));
    }
    Ok(!missing.is_empty())
}

/// What reading a stored object fails with whose text makes no sense; upstream's word for it.
const UNREADABLE: &str = "StorageReadError";

/// Whether a stored object could not be read, as opposed to not being there or not converted.
pub(crate) fn is_unreadable(failure: &Failure) -> bool {
    failure.reason == UNREADABLE
}

fn parse(entry: &Entry) -> Result<Value, Failure> {
    let why = match serde_json::from_slice(&entry.value) {
        Ok(object @ Value::Object(_)) => return Ok(object),
        Ok(_) => "it is not an object".to_owned(),
        Err(error) => error.to_string(),
    };
    let message = format!("the stored object cannot be read: {why}; it can only be deleted");
    Err(Failure::new(500, UNREADABLE, message))
}

/// A stored form as an object of `kind`. A definition may have changed since it was written;
/// defaults are those of the version it is stored in.
fn unpack(kind: &Kind, mut object: Value, version: u64) -> Value {
    if kind.conversion.is_some() {
        // Only what is in this version already comes here.
        kind.shape.prune(&mut object);
        kind.shape.default(&mut object);
    } else if kind.custom {
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
    encode(&pack(kind, object))
}

fn pack(kind: &Kind, object: &Value) -> Value {
    let mut object = splice::ordered(object);
    if let Some(stored) = &kind.stored_shape {
        stored.prune(&mut object);
    }
    if event::is_newer(kind) {
        event::to_core(&mut object);
    }
    object["apiVersion"] = storage(kind);
    metadata_mut(&mut object).shift_remove("resourceVersion");
    object
}

/// GET of one object.
pub(crate) async fn get(server: &Server, request: &Request) -> Result<Answer, Failure> {
    let kind = &request.kind;
    let asked = request.query.get("resourceVersion");
    if !asked.is_empty() {
        let version = super::list::read_version(asked)?;
        if version > server.log.version() {
            return Err(Failure::too_large(version, server.log.version()));
        }
    }
    let entry =
        server.log.get(&request.key()).ok_or_else(|| Failure::not_found(kind, request.name()))?;
    if let Some(splice) = Splice::new(kind).filter(|_| request.form == Form::Object) {
        let mut text = Vec::with_capacity(entry.value.len().saturating_add(64));
        if splice.object(&entry, &mut text).is_some() {
            text.push(b'\n');
            return Ok(Answer::text(text));
        }
    }
    let _held = convert(server, kind, Some(entry.clone())).await?;
    Ok(Answer::ok(present::one(server, request, open(kind, &entry)?)))
}

/// Makes a new object; `taken` says what to answer when the name is.
pub(crate) async fn insert(
    server: &Server,
    kind: &Kind,
    key: String,
    object: &mut Value,
) -> Result<Result<(), Option<Entry>>, Failure> {
    let stored = stored(server, kind, object).await?;
    let value = Some(encode_bounded(kind, &stored, None)?);
    match server.log.write(Write { key, expect: Expect::Absent, value }).await {
        Ok(version) => {
            *object = reread(server, kind, stored, version).await?;
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
    let mut held = Held::new();
    for _ in 0..TRIES_MAX {
        let entry = server.log.get(&key).ok_or_else(|| Failure::not_found(kind, request.name()))?;
        let stored = parse(&entry)?;
        held.extend(convert(server, kind, Some(entry.clone())).await?);
        let old = open(kind, &entry)?;
        let decided = decide(old.clone());
        if convert_missing(server, request, &mut held).await? {
            continue;
        }
        let decided = decided?;
        // What the server itself notes of an object is small.
        let own = matches!(decided, Change::Put(_));
        let change = match decided {
            Change::Ask(new) => admission::update(server, request, &old, new, dry_run).await?,
            Change::AskScale(wish) => scale::admit(server, request, &old, *wish).await?,
            other => other,
        };
        let (mut object, packed) = match change {
            Change::Keep | Change::AskScale(_) => {
                return Ok(Changed { object: old, removed: false });
            }
            Change::Put(object) => {
                let packed = self::stored(server, kind, &object).await?;
                if packed == stored {
                    return Ok(Changed { object: old, removed: false });
                }
                let before = (&stored, entry.value.len());
                let text = if own {
                    encode(&packed)
                } else {
                    encode_bounded(kind, &packed, Some(before))?
                };
                (object, Some((packed, text)))
            }
            Change::Remove(object) | Change::Ask(object) => (object, None),
        };
        set_version(&mut object, entry.version);
        let removed = packed.is_none();
        if dry_run {
            let object = match packed {
                Some((packed, _)) => reread(server, kind, packed, entry.version).await?,
                None => object,
            };
            return Ok(Changed { object, removed });
        }
        let value = packed.as_ref().map(|(_, text)| text.clone());
        let write = Write { key: key.clone(), expect: Expect::Version(entry.version), value };
        match server.log.write(write).await {
            Ok(version) => {
                let object = match packed {
                    Some((packed, _)) => reread(server, kind, packed, version).await?,
                    None => object,
                };
                return Ok(Changed { object, removed });
            }
            Err(WriteError::Conflict(_)) => {}
            Err(broken @ WriteError::Broken(_)) => return Err(unavailable(&broken)),
        }
    }
    Err(Failure::stale(kind, request.name()))
}

/// Removes what is stored, if it is still what was looked at.
pub(super) async fn remove_text(
    server: &Server,
    request: &Request,
    entry: &Entry,
) -> Result<(), Failure> {
    let expect = Expect::Version(entry.version);
    match server.log.write(Write { key: request.key(), expect, value: None }).await {
        Ok(_) => Ok(()),
        Err(WriteError::Conflict(_)) => Err(Failure::stale(&request.kind, request.name())),
        Err(broken @ WriteError::Broken(_)) => Err(unavailable(&broken)),
    }
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
    if !schema::object::is_deleting(&open(&namespaces, &entry)?) {
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
