//! # Room `apply`: server-side apply and patches
//!
//! Several writers share one object. Each states only what it cares about; the server remembers
//! who stated what, in `metadata.managedFields`, and refuses a writer who would overwrite what
//! another stated. This room is that memory and that judgement, as pure functions: the time
//! is a parameter, nothing is read or stored.
//!
//! ```text
//!   config ──validate──► field_set ─────────────► what the manager owns now
//!      │                                               │
//!      └──► merge over live ──► prune ──► compare with live ──► others lose it, or conflict
//!                                 ▲
//!             what it owned before, and nobody owns now
//! ```
//!
//! - [`apply`] is the whole of `application/apply-patch+yaml`.
//! - [`update`] is for every other write: it only computes who owns what.
//! - [`keep_times`] comes last, when defaults and admission are done: a write that changed
//!   nothing but times changes nothing.
//!
//! Its chapters: [`types`] (what merging knows of a schema), [`fieldpath`] (paths and sets),
//! `typed` (walks over values with their schema), [`managed`] (entries), `owner` (the judgement),
//! `last_applied` (the bridge from client-side apply). Where the server's behaviour is odd, it is
//! odd here in the same way, because clients were built on it; the tests replay sequences
//! recorded from the server's own code.
//!
//! [`patch`] holds the other ways to change an object: JSON Patch, JSON Merge Patch and strategic
//! merge patch, which reads how lists are merged from the description of a kind.
//!
//! The room refuses to know servers, storage, requests and which kinds there are. What it leaves to
//! its caller: decoding and the coercion of metadata (for custom
//! resources that drops an empty `managedFields` list, which here means *reset*), defaulting,
//! pruning, admission, and the choice of [`ApplyContext::reset_fields`].

mod convert;
mod error;
pub mod fieldpath;
mod golang;
mod last_applied;
pub mod managed;
mod manager;
mod owner;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod patch;
#[cfg(test)]
mod tests;
mod time;
mod typed;
pub mod types;
mod value;

use std::borrow::Cow;

use serde_json::{Map, Value, json};

pub use convert::{ConvertError, Converter, OneVersion, SameShape};
pub use error::{ApplyError, Conflict, Conflicts, OwnershipError, UpdateError};
pub use manager::{MANAGER_LENGTH_MAX, ManagerFault, validate_manager};
pub use time::Timestamp;
pub use typed::{Fault, Faults};

use fieldpath::Set;
use managed::{Entry, ManagedFields, Operation, RawEntry, clear, raw_entries};
use owner::OnConflict;
use typed::{Duplicates, validate};
use types::Schema;

/// The manager of everything that was there before the first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Everything about a write but the objects.
#[derive(Clone, Copy)]
pub struct ApplyContext<'a> {
    /// Who writes; empty means `unknown`.
    pub manager: &'a str,
    /// Whether an apply takes fields from their owners.
    pub force: bool,
    /// The time of the write.
    pub now: Timestamp,
    /// The version of the request, of the live object and of the result.
    pub api_version: &'a str,
    /// The kind of the request.
    pub kind: &'a str,
    /// The subresource written through; empty for the object itself.
    pub subresource: &'a str,
    /// The element types at this version.
    pub schema: &'a Schema,
    /// Fields this endpoint resets, hence nobody comes to own through it.
    pub reset_fields: Option<&'a Set>,
    /// Whether they are reset in every version, not in the request's alone.
    pub reset_everywhere: bool,
    /// The other versions of the kind.
    pub converter: &'a dyn Converter,
}

impl<'a> ApplyContext<'a> {
    /// A write to a kind with one version, unforced, through the object itself.
    pub fn new(
        manager: &'a str,
        now: Timestamp,
        (api_version, kind): (&'a str, &'a str),
        schema: &'a Schema,
    ) -> Self {
        Self {
            manager,
            force: false,
            now,
            api_version,
            kind,
            subresource: "",
            schema,
            reset_fields: None,
            reset_everywhere: false,
            converter: &OneVersion,
        }
    }

    fn blank(&self) -> Value {
        json!({"apiVersion": self.api_version, "kind": self.kind})
    }

    fn entry(&self, manager: &str, operation: Operation) -> Entry {
        Entry {
            manager: if manager.is_empty() { "unknown" } else { manager }.to_owned(),
            operation,
            api_version: self.api_version.to_owned(),
            time: Some(self.now),
            subresource: self.subresource.to_owned(),
            fields: Set::default(),
        }
    }
}

impl std::fmt::Debug for ApplyContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApplyContext")
            .field("manager", &self.manager)
            .field("force", &self.force)
            .field("now", &self.now)
            .field("api_version", &self.api_version)
            .field("kind", &self.kind)
            .field("subresource", &self.subresource)
            .finish_non_exhaustive()
    }
}

/// The result of an apply.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The object to store, with its managed fields.
    pub object: Value,
    /// Whether anything but times differs from the live object.
    pub changed: bool,
}

/// Applies a configuration to an object, or to nothing if it does not exist yet.
pub fn apply(
    live: Option<&Value>,
    config: &Value,
    context: &ApplyContext<'_>,
) -> Result<Applied, ApplyError> {
    let blank;
    let before = if let Some(live) = live {
        live
    } else {
        blank = context.blank();
        &blank
    };
    let managed = ManagedFields::of(before).map_err(ApplyError::Managed)?;
    let bare = without_managed_fields(before);
    check_type(config, context)?;
    let (new, after) = apply_bridged(&bare, config, &managed, context)?;
    let mut changed = live.is_none() || new.is_some();
    let mut object = new.unwrap_or_else(|| bare.into_owned());
    if context.manager == last_applied::KUBECTL {
        changed |= last_applied::refresh(&mut object, config);
    }
    after.write(&mut object).map_err(ApplyError::Encode)?;
    let (old, new) = (entries(before), entries(&object));
    let kept = |entry| old.iter().any(|old| same_but_time(old, entry));
    changed |= old.len() != new.len() || !new.iter().all(kept);
    Ok(Applied { object, changed })
}

/// Computes the owners after a create (`live` is nothing), a replacement or a patch that is not
/// an apply, and answers with the new object carrying them.
///
/// On an error the server stores the object without managed fields.
pub fn update(
    live: Option<&Value>,
    new: &Value,
    context: &ApplyContext<'_>,
) -> Result<Value, UpdateError> {
    let blank;
    let live = if let Some(live) = live {
        live
    } else {
        blank = context.blank();
        &blank
    };
    let managed = managed_before(live, new, context);
    let mut new = new.clone();
    clear(&mut new);
    let uid = live.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
    if managed.is_empty() && !uid.is_empty() {
        // Nobody was tracked so far; tracking starts with the first apply.
        return Ok(new);
    }
    let live = without_managed_fields(live);
    let mut managed = update_owners(&live, &new, managed, context.manager, context)?;
    managed.cap();
    managed.write(&mut new).map_err(UpdateError::Encode)?;
    Ok(new)
}

/// Undoes changes of times in an object's managed fields if nothing else changed, so that a
/// write without effect is not stored. To be called when defaults and admission are done.
pub fn keep_times(old: &Value, new: &mut Value) {
    let (before, after) = (entries(old), entries(new));
    let same = before.len() == after.len()
        && before != after
        && before.iter().zip(after).all(|(a, b)| same_but_time(a, b));
    if same
        && without_managed_fields(old) == without_managed_fields(new)
        && let Some(list) = new.pointer_mut("/metadata/managedFields")
    {
        *list = Value::Array(before.to_vec());
    }
}

fn without_managed_fields(object: &Value) -> Cow<'_, Value> {
    if object.pointer("/metadata/managedFields").is_none() {
        return Cow::Borrowed(object);
    }
    // Managed fields are often the bigger half of an object, so they are not even copied.
    let copy = |map: &Map<String, Value>, but: &str| -> Map<String, Value> {
        let mut out = Map::with_capacity(map.len());
        let kept = map.iter().filter(|(name, _)| *name != but);
        out.extend(kept.map(|(name, value)| (name.clone(), value.clone())));
        out
    };
    let (Some(map), Some(metadata)) = (object.as_object(), object["metadata"].as_object()) else {
        return Cow::Borrowed(object);
    };
    let mut bare = copy(map, "metadata");
    bare.insert("metadata".to_owned(), Value::Object(copy(metadata, "managedFields")));
    Cow::Owned(Value::Object(bare))
}

fn entries(object: &Value) -> &[Value] {
    let list = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// Whether two entries differ in nothing but time.
fn same_but_time(a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return a == b };
    let timeless = |map: &Map<String, Value>| map.len() - usize::from(map.contains_key("time"));
    timeless(a) == timeless(b)
        && a.iter().all(|(name, value)| name == "time" || b.get(name) == Some(value))
}

/// The owners an update starts from: the request's, unless it has none or they are damaged.
fn managed_before(live: &Value, new: &Value, context: &ApplyContext<'_>) -> ManagedFields {
    let of_live = || ManagedFields::of(live).unwrap_or_default();
    if !context.subresource.is_empty() {
        return of_live();
    }
    let Some(given) = raw_entries(new) else { return of_live() };
    match given.as_slice() {
        [] => return ManagedFields::default(),
        [only] if RawEntry::is_blank(only) => return ManagedFields::default(),
        _ => {}
    }
    ManagedFields::decode(&given).ok().filter(|given| !given.is_empty()).unwrap_or_else(of_live)
}

/// Applies, and for kubectl applies again by force if all conflicts are left-overs of
/// client-side apply.
fn apply_bridged(
    live: &Value,
    config: &Value,
    managed: &ManagedFields,
    context: &ApplyContext<'_>,
) -> Result<owner::Outcome, ApplyError> {
    let on_conflict = if context.force { OnConflict::Take } else { OnConflict::Refuse };
    let outcome = apply_tracked(live, config, managed, on_conflict, context);
    let Err(ApplyError::Conflicts(conflicts)) = outcome else { return outcome };
    if context.manager != last_applied::KUBECTL {
        return Err(ApplyError::Conflicts(conflicts));
    }
    let Some(allowed) = last_applied::still_as_applied(live, context) else {
        return Err(ApplyError::Conflicts(conflicts));
    };
    if conflicts.paths().difference(&allowed).is_empty() {
        return apply_tracked(live, config, managed, OnConflict::Take, context);
    }
    let real = conflicts.0.into_iter().filter(|conflict| !allowed.has(&conflict.path.0));
    Err(ApplyError::Conflicts(Conflicts(real.collect())))
}

/// Applies; what an object held before anybody was tracked is attributed first.
fn apply_tracked(
    live: &Value,
    config: &Value,
    managed: &ManagedFields,
    on_conflict: OnConflict,
    context: &ApplyContext<'_>,
) -> Result<owner::Outcome, ApplyError> {
    let mut managed = managed.clone();
    if managed.is_empty() {
        managed = update_owners(&context.blank(), live, managed, BEFORE_FIRST_APPLY, context)
            .map_err(ApplyError::FirstApply)?;
        managed.cap();
    }
    if raw_entries(config).is_some() {
        return Err(ApplyError::ManagedFieldsGiven);
    }
    validate(context.schema, config, Duplicates::Refused)
        .map_err(|source| ApplyError::Config { object: describe(config), source })?;
    validate(context.schema, live, Duplicates::Allowed)
        .map_err(|source| ApplyError::Live { object: describe(live), source })?;
    let applier = context.entry(context.manager, Operation::Apply);
    context.own_apply(live, config, managed, applier, on_conflict)
}

fn update_owners(
    live: &Value,
    new: &Value,
    managed: ManagedFields,
    writer: &str,
    context: &ApplyContext<'_>,
) -> Result<ManagedFields, UpdateError> {
    validate(context.schema, new, Duplicates::Allowed)
        .map_err(|source| UpdateError::New { object: describe(new), source })?;
    validate(context.schema, live, Duplicates::Allowed)
        .map_err(|source| UpdateError::Live { object: describe(live), source })?;
    let writer = context.entry(writer, Operation::Update);
    context
        .own_update(live, new, managed, writer)
        .map_err(|source| UpdateError::Ownership { object: describe(new), source })
}

fn check_type(config: &Value, context: &ApplyContext<'_>) -> Result<(), ApplyError> {
    if text(config, "apiVersion") == context.api_version && text(config, "kind") == context.kind {
        return Ok(());
    }
    Err(ApplyError::WrongType { found: group_version_kind(config) })
}

/// `namespace/name; group/version, Kind=kind`.
fn describe(object: &Value) -> String {
    let of = |name: &str| {
        object.get("metadata").and_then(|metadata| metadata.get(name)?.as_str()).unwrap_or_default()
    };
    format!("{}/{}; {}", of("namespace"), of("name"), group_version_kind(object))
}

fn group_version_kind(object: &Value) -> String {
    let (version, kind) = (text(object, "apiVersion"), text(object, "kind"));
    match version.split_once('/') {
        Some((_, rest)) if rest.contains('/') => "/, Kind=".to_owned(),
        Some((group, version)) => format!("{group}/{version}, Kind={kind}"),
        None => format!("/{version}, Kind={kind}"),
    }
}

fn text<'v>(object: &'v Value, name: &str) -> &'v str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}
