//! POST: a new object.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Answer, Request, hosted, owner, present, store, update};
use crate::Server;
use crate::admission;
use crate::auth;
use crate::http::body;
use crate::http::query::WriteOptions;
use crate::http::status::Failure;
use crate::kind::{self, Kind};
use crate::{crd, world};
use schema::object::field_error::FieldError;
use schema::object::{self, meta, meta_text, metadata_mut, time};

/// How often a generated name is tried again when it is taken.
const GENERATE_TRIES: usize = 8;
/// The longest base of a generated name; five characters follow.
const BASE_MAX: usize = 58;

/// Makes the object in the body.
pub(crate) async fn create(server: &Arc<Server>, request: &Request) -> Result<Answer, Failure> {
    let kind = &request.kind;
    let options = request.query.write_options("CreateOptions", &request.agent)?;
    let decoded = body::decode(kind, &request.media, &request.body)?;
    let warnings = body::judge(kind, decoded.odd, options.validation)?;
    let object = insert(server, request, decoded.object, &options, Tracked::No).await;
    let object = object.map_err(|failure| failure.warned(&warnings))?;
    let body = present::one(server, request, object);
    Ok(Answer::Object { code: 201, body, warnings })
}

/// Whether the owners of an object's fields are known already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tracked {
    /// An apply found them.
    Yes,
    /// They are to be found.
    No,
}

/// Makes `object` where the request points.
pub(crate) async fn insert(
    server: &Arc<Server>,
    request: &Request,
    mut object: Value,
    options: &WriteOptions,
    tracked: Tracked,
) -> Result<Value, Failure> {
    let kind = &request.kind;
    place(request, &mut object)?;
    store::check_namespace(server, request, meta_text(&object, "name"))?;
    if kind.terminating {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Failure::forbidden(kind, meta_text(&object, "name"), why));
    }
    let versioned = !meta_text(&object, "resourceVersion").is_empty();
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        metadata_mut(&mut object).shift_remove(field);
    }
    update::fill(kind, &mut object);
    auth::escalate::check(server, request, &object, None)?;
    if tracked == Tracked::No {
        object = owner::track(server, request, options, None, object);
    }
    hosted::equip_pod(server, request, &mut object).await?;
    object = admission::create(server, request, object, options.dry_run).await?;
    prepare(server, kind, &mut object);
    let generated = generate(server, &mut object);
    let wrong = check(request, &object);
    if !wrong.is_empty() {
        return Err(Failure::invalid_object(kind, meta_text(&object, "name"), &wrong));
    }
    if versioned {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(Failure::internal(message));
    }
    admission::created(server, request, &object, options.dry_run).await?;
    for _ in 0..GENERATE_TRIES {
        let name = meta_text(&object, "name").to_owned();
        let key = kind.key(request.namespace(), &name);
        if options.dry_run {
            return match server.log.get(&key) {
                None => Ok(object),
                Some(found) => Err(taken(kind, &name, Some(&found))),
            };
        }
        match store::insert(server, kind, key, &mut object).await? {
            Ok(()) => return Ok(object),
            Err(found) if !generated => return Err(taken(kind, &name, found.as_ref())),
            Err(_) => {
                metadata_mut(&mut object).shift_remove("name");
                generate(server, &mut object);
            }
        }
    }
    Err(taken(kind, meta_text(&object, "name"), None))
}

/// The namespace comes from the URL; a body that says another is refused.
pub(crate) fn place(request: &Request, object: &mut Value) -> Result<(), Failure> {
    let said = meta_text(object, "namespace").to_owned();
    match request.namespace() {
        Some(namespace) if said.is_empty() || said == namespace => {
            metadata_mut(object).insert("namespace".to_owned(), json!(namespace));
            Ok(())
        }
        None if said.is_empty() => Ok(()),
        _ => Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
    }
}

/// Sets what the server sets, drops what clients may not.
pub(crate) fn prepare(server: &Server, kind: &Kind, object: &mut Value) {
    let now = time::format(server.world.now());
    let metadata = metadata_mut(object);
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion"] {
        metadata.shift_remove(field);
    }
    metadata.insert("uid".to_owned(), json!(world::uid(server.world.as_ref())));
    metadata.insert("creationTimestamp".to_owned(), json!(now));
    if kind.generation || kind.custom {
        metadata.insert("generation".to_owned(), json!(1));
    }
    if kind.status
        && let Value::Object(map) = object
    {
        map.shift_remove("status");
    }
    kind::complete(kind, object);
    kind::prepare(kind, object);
    if kind.group.is_empty() && kind.kind == "Service" {
        let addresses = read_addresses(server, kind);
        let is_taken = |address: &str| addresses.iter().any(|one| one == address);
        kind::service::assign(object, || server.world.random(), is_taken);
    }
    if !kind.custom {
        crd::complete(kind, object);
    }
}

/// The addresses that services have.
fn read_addresses(server: &Server, kind: &Kind) -> Vec<String> {
    let Ok(snapshot) = server.log.list(&kind.prefix(None), None) else { return Vec::new() };
    let services = snapshot.entries.iter().filter_map(|(_, entry)| store::open(kind, entry).ok());
    let address = |service: Value| Some(service.pointer("/spec/clusterIP")?.as_str()?.to_owned());
    services.filter_map(address).collect()
}

/// Fills in the name from `generateName`; says whether it did.
fn generate(server: &Server, object: &mut Value) -> bool {
    let base = meta_text(object, "generateName").to_owned();
    if base.is_empty() || !meta_text(object, "name").is_empty() {
        return false;
    }
    let short: String = base.chars().take(BASE_MAX).collect();
    let name = format!("{short}{}", world::suffix(server.world.as_ref()));
    metadata_mut(object).insert("name".to_owned(), json!(name));
    true
}

fn check(request: &Request, object: &Value) -> Vec<FieldError> {
    let kind = &request.kind;
    let mut wrong = Vec::new();
    if !crd::is_definition(kind) && !kind.custom {
        wrong.extend(meta::check(object, kind.names));
    }
    if kind.custom {
        wrong.extend(meta::check_custom(object, kind.names));
        wrong.extend(update::check_shape(request, object, None));
    }
    wrong.extend(update::check_content(kind, object, None));
    wrong
}

fn taken(kind: &Kind, name: &str, found: Option<&crate::log::Entry>) -> Failure {
    let mut failure = Failure::already_exists(kind, name);
    let deleting = found
        .and_then(|entry| store::open(kind, entry).ok())
        .is_some_and(|object| object::is_deleting(&object));
    if deleting {
        failure.message = format!("object is being deleted: {}", failure.message);
    }
    failure
}
