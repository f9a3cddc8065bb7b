//! DELETE: one object, or all that a selector names.

use std::sync::Arc;

use serde_json::{Value, json};

use super::hosted::Ending;
use super::store::{self, Change, Changed};
use super::{Answer, Request, hosted, list, own, present, update};
use crate::Server;
use crate::crd;
use crate::http::status::{self, Failure};
use crate::kind::shape::find_options_fault;
use crate::kind::{Kind, split_key};
use crate::log::Entry;
use schema::object::field_error::FieldError;
use schema::object::{
    is_deleting, json_type_name, map_at, meta_list, meta_text, metadata, metadata_mut, strict, time,
};

/// What becomes of the objects that the removed one owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

pub(crate) struct Options {
    dry_run: bool,
    propagation: Option<Propagation>,
    uid: String,
    version: String,
    /// How long a pod may take to end, in seconds.
    grace: Option<i64>,
}

impl Options {
    /// What the server itself wishes; an empty uid is any.
    pub(super) fn own(uid: &str, propagation: Propagation) -> Self {
        Self {
            dry_run: false,
            propagation: Some(propagation),
            uid: uid.to_owned(),
            version: String::new(),
            grace: None,
        }
    }
}

/// Removes one object, or marks it when finalizers hold it.
pub(crate) async fn delete(server: &Arc<Server>, request: &Request) -> Result<Answer, Failure> {
    let options = options(request)?;
    let changed = remove(server, request, &options).await?;
    // Two kinds show what was removed; the others only say so.
    let shown = request.kind.group.is_empty()
        && ["ServiceAccount", "Pod"].contains(&request.kind.kind.as_str());
    let body = if changed.removed && !shown {
        let uid = meta_text(&changed.object, "uid").to_owned();
        status::removed(&request.kind, request.name(), &uid)
    } else {
        present::one(server, request, changed.object)
    };
    Ok(Answer::ok(body))
}

/// Removes what a list would show, and shows it.
pub(crate) async fn delete_collection(
    server: &Arc<Server>,
    request: &Request,
) -> Result<Answer, Failure> {
    let options = options(request)?;
    let listed = list::select(server, request).await?;
    let mut items = Vec::with_capacity(listed.items.len());
    for key in &listed.unreadable {
        let mut one = request.clone();
        one.target.name = Some(split_key(key).2.to_owned());
        remove_as(server, request, &one, &options).await?;
    }
    for item in listed.items {
        // What is shown is what was there before, as upstream does.
        let mut one = request.clone();
        one.target.name = Some(meta_text(&item, "name").to_owned());
        match remove_as(server, request, &one, &options).await {
            Ok(_) => items.push(item),
            Err(failure) if failure.code == 404 => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(Answer::ok(present::many(
        server,
        request,
        items,
        &json!({
            "resourceVersion": listed.version.to_string(),
        }),
    )))
}

/// Deletes every object of a kind; those that finalizers hold are only marked.
pub(super) async fn delete_all(
    server: &Arc<Server>,
    kind: &Arc<Kind>,
    namespace: Option<&str>,
) -> Vec<Failure> {
    let Ok(snapshot) = server.log.list(&kind.prefix(namespace), None) else { return Vec::new() };
    let mut failures = Vec::new();
    for (key, _) in &snapshot.entries {
        let (_, namespace, name) = split_key(key);
        let request = own::request(kind, Some(namespace).filter(|name| !name.is_empty()), name);
        match remove(server, &request, &Options::own("", Propagation::Background)).await {
            Err(failure) if failure.code != 404 => failures.push(failure),
            _ => {}
        }
    }
    failures
}

pub(super) async fn remove(
    server: &Arc<Server>,
    request: &Request,
    options: &Options,
) -> Result<Changed, Failure> {
    remove_as(server, request, request, options).await
}

/// Removes an object that was asked for by itself or, in `asked`, as one of a collection.
async fn remove_as(
    server: &Arc<Server>,
    asked: &Request,
    request: &Request,
    options: &Options,
) -> Result<Changed, Failure> {
    protect(request)?;
    if let Some(entry) = server.log.get(&request.key()) {
        let _held = store::convert(server, &request.kind, Some(entry.clone())).await?;
        let old = match store::open(&request.kind, &entry) {
            Err(failure) if store::is_unreadable(&failure) => {
                return discard(server, request, options, &entry).await;
            }
            opened => opened?,
        };
        check_preconditions(request, options, &old)?;
        crate::admission::delete(server, asked, &old, options.dry_run).await?;
    }
    store::change(server, request, options.dry_run, |mut object| {
        check_preconditions(request, options, &object)?;
        let before = metadata(&object).get("finalizers").cloned();
        hold(request, options, &mut object);
        let definition = request.kind.group == crd::GROUP && request.kind.kind == crd::KIND;
        if definition && !is_deleting(&object) {
            crd::mark_terminating(server, &mut object);
            return Ok(Change::Put(object));
        }
        match hosted::end_pod(server, request, options.grace, &object) {
            Ending::Ordinary => {}
            Ending::AsBefore => return Ok(Change::Keep),
            Ending::Within(marked) => return Ok(Change::Put(*marked)),
            Ending::Gone(marked) => return Ok(Change::Remove(*marked)),
        }
        let finalizers = meta_list(&object, "finalizers");
        let namespace = request.kind.kind == "Namespace" && request.kind.group.is_empty();
        if finalizers.is_empty() && !namespace {
            return Ok(Change::Remove(object));
        }
        if is_deleting(&object) {
            // Another wish about its dependents counts even now.
            let mut same = metadata(&object).get("finalizers") == before.as_ref();
            if definition && !metadata(&object).contains_key("deletionGracePeriodSeconds") {
                metadata_mut(&mut object).insert("deletionGracePeriodSeconds".into(), json!(0));
                same = false;
            }
            return Ok(if same { Change::Keep } else { Change::Put(object) });
        }
        mark(server, request, &mut object);
        if update::may_go(&request.kind, &object) {
            return Ok(Change::Remove(object));
        }
        Ok(Change::Put(object))
    })
    .await
}

/// Removes an object whose text cannot be read. No finalizer can hold it and no webhook be shown
/// it, since nobody knows what it was; who asks for a certain uid does not get it.
async fn discard(
    server: &Server,
    request: &Request,
    options: &Options,
    entry: &Entry,
) -> Result<Changed, Failure> {
    let kind = &request.kind;
    let mut object = json!({"kind": kind.kind, "apiVersion": kind.api_version(), "metadata": {
        "name": request.name(), "resourceVersion": entry.version.to_string(),
    }});
    if let Some(namespace) = request.namespace() {
        metadata_mut(&mut object).insert("namespace".to_owned(), json!(namespace));
    }
    check_preconditions(request, options, &object)?;
    if !options.dry_run {
        store::remove_text(server, request, entry).await?;
    }
    Ok(Changed { object, removed: true })
}

/// Namespaces that a cluster cannot be without.
fn protect(request: &Request) -> Result<(), Failure> {
    let kept = ["default", "kube-system", "kube-public"];
    if request.kind.kind == "Namespace"
        && request.kind.group.is_empty()
        && kept.contains(&request.name())
    {
        return Err(Failure::forbidden(
            &request.kind,
            request.name(),
            "this namespace may not be deleted",
        ));
    }
    Ok(())
}

fn check_preconditions(
    request: &Request,
    options: &Options,
    object: &Value,
) -> Result<(), Failure> {
    let kind = &request.kind;
    let fail = |why: String| {
        let mut failure = Failure::conflict(kind, request.name(), &why);
        failure.message = format!(
            "Operation cannot be fulfilled on {} {:?}: {why}",
            kind.qualified_kind(),
            request.name()
        );
        if let Some(details) = &mut failure.details {
            details["kind"] = json!(kind.kind);
        }
        failure
    };
    let uid = meta_text(object, "uid");
    if !options.uid.is_empty() && options.uid != uid {
        return Err(fail(format!(
            "the UID in the precondition ({}) does not match the UID in record ({uid}). The \
             object might have been deleted and then recreated",
            options.uid
        )));
    }
    let version = meta_text(object, "resourceVersion");
    if !options.version.is_empty() && options.version != version {
        return Err(fail(format!(
            "the ResourceVersion in the precondition ({}) does not match the ResourceVersion in \
             record ({version}). The object might have been modified",
            options.version
        )));
    }
    Ok(())
}

/// Adds or drops the finalizers by which the garbage collector knows what is wished.
fn hold(request: &Request, options: &Options, object: &mut Value) {
    let Some(propagation) = options.propagation else { return };
    let wished = match propagation {
        Propagation::Background => None,
        Propagation::Foreground => Some("foregroundDeletion"),
        Propagation::Orphan => Some("orphan"),
    };
    if request.kind.group.is_empty() && request.kind.kind == "Event" {
        return;
    }
    let mut finalizers: Vec<String> = meta_list(object, "finalizers")
        .into_iter()
        .filter(|one| !["foregroundDeletion", "orphan"].contains(one))
        .map(str::to_owned)
        .collect();
    finalizers.extend(wished.map(str::to_owned));
    if finalizers.is_empty() {
        metadata_mut(object).shift_remove("finalizers");
    } else {
        metadata_mut(object).insert("finalizers".to_owned(), json!(finalizers));
    }
}

/// Marks an object as being on its way out.
fn mark(server: &Server, request: &Request, object: &mut Value) {
    let now = time::format(server.world.now());
    let namespace = request.kind.kind == "Namespace" && request.kind.group.is_empty();
    let generation = metadata(object).get("generation").and_then(Value::as_i64);
    let metadata = metadata_mut(object);
    metadata.insert("deletionTimestamp".to_owned(), json!(now));
    if namespace {
        map_at(object, "status").insert("phase".to_owned(), json!("Terminating"));
        return;
    }
    metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(0));
    if let Some(generation) = generation {
        metadata.insert("generation".to_owned(), json!(generation.saturating_add(1)));
    }
}

/// Options from the body, or else from the query.
fn options(request: &Request) -> Result<Options, Failure> {
    let body = read_body(request)?;
    let query = request.query.write_options("DeleteOptions", &request.agent)?;
    let asked = request.query.number("gracePeriodSeconds")?;
    // A client that cannot say what to spare must not have it deleted.
    if let Some(fault) = find_options_fault(&body) {
        return Err(Failure::bad_request(fault));
    }
    let text = |pointer: &str| {
        body.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let mut wished = text("/propagationPolicy");
    if wished.is_empty() {
        request.query.get("propagationPolicy").clone_into(&mut wished);
    }
    let propagation = propagation(&wished, body.get("orphanDependents").and_then(Value::as_bool))?;
    Ok(Options {
        dry_run: is_dry(&body)? || query.dry_run,
        propagation,
        uid: text("/preconditions/uid"),
        version: text("/preconditions/resourceVersion"),
        grace: body.get("gracePeriodSeconds").and_then(Value::as_i64).or(asked),
    })
}

fn propagation(wished: &str, orphan: Option<bool>) -> Result<Option<Propagation>, Failure> {
    Ok(match (wished, orphan) {
        (policy @ ("Background" | "Foreground" | "Orphan"), Some(_)) => {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            let wrong = FieldError::invalid("propagationPolicy", &json!(policy), why);
            return Err(Failure::invalid_options("DeleteOptions", &[wrong]));
        }
        ("Background", _) | ("", Some(false)) => Some(Propagation::Background),
        ("Foreground", _) => Some(Propagation::Foreground),
        ("Orphan", _) | ("", Some(true)) => Some(Propagation::Orphan),
        ("", _) => None,
        (other, _) => {
            let allowed = ["Foreground", "Background", "Orphan", "nil"];
            let wrong = FieldError::not_supported("propagationPolicy", other, &allowed);
            return Err(Failure::invalid_options("DeleteOptions", &[wrong]));
        }
    })
}

/// The body, which says that it is options if it says what it is.
fn read_body(request: &Request) -> Result<Value, Failure> {
    if request.body.is_empty() {
        return Ok(Value::Null);
    }
    let unread = |why: String| {
        Failure::bad_request(format!("couldn't get version/kind; json parse error: {why}"))
    };
    let (body, _) = strict::parse(&request.body).map_err(|error| {
        let said = crate::http::syntax::complaint(&request.body);
        unread(said.unwrap_or_else(|| error.to_string()))
    })?;
    if !body.is_object() && !body.is_null() {
        let found = json_type_name(&body);
        return Err(unread(format!(
            "json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \
             \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
             \"json:\\\"kind,omitempty\\\"\" }}"
        )));
    }
    for field in ["apiVersion", "kind"] {
        if let Some(odd) = body.get(field).filter(|said| !said.is_null() && !said.is_string()) {
            let found = json_type_name(odd);
            return Err(unread(format!(
                "json: cannot unmarshal {found} into Go struct field .{field} of type string"
            )));
        }
    }
    let said = |field: &str| body.get(field).and_then(Value::as_str).unwrap_or_default();
    if !["", "DeleteOptions"].contains(&said("kind")) {
        let version = Some(said("apiVersion")).filter(|version| !version.is_empty());
        return Err(Failure::bad_request(format!(
            "no kind {:?} is registered for version {:?}",
            said("kind"),
            version.unwrap_or("meta.k8s.io/v1"),
        )));
    }
    Ok(body)
}

fn is_dry(body: &Value) -> Result<bool, Failure> {
    let wished =
        body.get("dryRun").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if wished.iter().any(|one| one != "All") {
        let wrong = FieldError {
            reason: "FieldValueNotSupported",
            field: "dryRun".to_owned(),
            message: format!("Unsupported value: {}: supported values: \"All\"", json!(wished)),
        };
        return Err(Failure::invalid_options("DeleteOptions", &[wrong]));
    }
    Ok(!wished.is_empty())
}
