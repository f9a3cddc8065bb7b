//! # Strategic merge patch: merging that knows what lists are
//!
//! A merge patch replaces lists as a whole. This one merges those whose items have an
//! identity (a *merge key*, such as a container's name), and lets the patch say more than
//! "set this":
//!
//! | in the patch | means |
//! |---|---|
//! | `f: null` | remove `f` |
//! | `$patch: replace` in a map | this map instead of the old one |
//! | `$patch: delete` in a map | an empty map; in a list's item: remove the item |
//! | `$patch: replace` in a list's item | the other items instead of the old list |
//! | `$retainKeys: [a, b]` | remove every other field of the old map |
//! | `$deleteFromPrimitiveList/f: [x]` | remove `x` from the list `f` |
//! | `$setElementOrder/f: [x, y]` | bring the items of `f` into this order |
//!
//! Which lists are merged, and by what, is told by the descriptions of the built-in kinds
//! ([`meta`]); custom kinds have no such marks, and do not take these patches.

mod error;
mod list;
mod meta;

use std::collections::HashSet;

use serde_json::{Map, Value};

pub use error::StrategicError;
pub use meta::Meta;

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const ORDER: &str = "$setElementOrder";

type Object = Map<String, Value>;
type Result<T> = std::result::Result<T, StrategicError>;

/// `original` with `patch` merged into it.
pub fn strategic(original: Object, patch: Object, meta: Meta<'_>) -> Result<Object> {
    maps(original, patch, meta)
}

fn maps(mut original: Object, mut patch: Object, meta: Meta<'_>) -> Result<Object> {
    if let Some(directive) = patch.shift_remove(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => Ok(patch),
            Some("delete") => Ok(Object::new()),
            _ => {
                patch.insert(DIRECTIVE.to_owned(), directive.clone());
                Err(StrategicError::unknown_directive(&directive, patch))
            }
        };
    }
    retain(&mut original, &mut patch)?;
    list::order(&mut original, &mut patch, meta)?;
    // What goes does so at once: taking one field out of a map moves all that come after it.
    let mut gone = HashSet::new();
    for (key, value) in patch {
        field(&mut original, &key, value, meta, &mut gone)?;
    }
    if !gone.is_empty() {
        original.retain(|key, _| !gone.contains(key));
    }
    Ok(original)
}

/// Merges one field of a patch, or notes that it goes.
fn field(
    original: &mut Object,
    key: &str,
    value: Value,
    meta: Meta<'_>,
    gone: &mut HashSet<String>,
) -> Result<()> {
    let (name, deletes) = match key.strip_prefix(DELETE_FROM) {
        Some(rest) => (rest.strip_prefix('/').ok_or(StrategicError::DELETION_LIST)?, true),
        None => (key, false),
    };
    if value.is_null() {
        gone.insert(name.to_owned());
        return Ok(());
    }
    if gone.remove(name) {
        original.insert(name.to_owned(), Value::Null);
    }
    let Some(slot) = original.get_mut(name).filter(|old| same_type(old, &value)) else {
        if !deletes {
            take(original, name, value, gone);
        } else if original.get(name).is_some_and(Value::is_null) {
            gone.insert(name.to_owned());
        }
        return Ok(());
    };
    let old = std::mem::take(slot);
    *slot = match (old, value) {
        (Value::Object(old), Value::Object(new)) => {
            let field = meta.field(name)?;
            let replaces = field.strategy()? == "replace";
            Value::Object(if replaces { new } else { maps(old, new, field.inside)? })
        }
        (Value::Array(old), Value::Array(new)) => {
            let field = meta.list(name)?;
            let merges = deletes || field.strategy()? == "merge";
            Value::Array(if merges { list::merge(old, new, &field, deletes)? } else { new })
        }
        (_, new) => new,
    };
    Ok(())
}

/// Sets a field that has nothing to merge with.
fn take(original: &mut Object, name: &str, mut value: Value, gone: &mut HashSet<String>) {
    drop_nulls(&mut value);
    match without_directives(value) {
        Some(value) => {
            original.insert(name.to_owned(), value);
        }
        None => {
            gone.insert(name.to_owned());
        }
    }
}

/// Removes what a patch does not wish to keep.
fn retain(original: &mut Object, patch: &mut Object) -> Result<()> {
    let Some(keys) = patch.shift_remove(RETAIN) else { return Ok(()) };
    let Value::Array(keys) = keys else { return Err(StrategicError::RETAIN_KEYS) };
    let keys: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let kept = |key: &str| keys.contains(key);
    let special = |key: &str| key.starts_with(DELETE_FROM) || key.starts_with(ORDER);
    if patch.iter().any(|(key, value)| !value.is_null() && !special(key) && !kept(key)) {
        return Err(StrategicError::RETAIN_KEYS);
    }
    original.retain(|key, _| kept(key));
    Ok(())
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// A value as it may be stored; nothing when it was a directive itself.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => Some(Value::Object(
            map.into_iter()
                .filter_map(|(key, value)| Some((key, without_directives(value)?)))
                .collect(),
        )),
        Value::Array(items) => Some(items.into_iter().filter_map(without_directives).collect()),
        other => Some(other),
    }
}

/// Whether two values are of one type, where integers and other numbers are two.
fn same_type(a: &Value, b: &Value) -> bool {
    error::type_name(a) == error::type_name(b)
}
