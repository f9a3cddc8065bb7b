//! RFC 6902: a list of operations, all of which apply or none.

use serde_json::Value;

/// Why a JSON patch did not apply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch itself is malformed.
    #[error("the patch is not a list of operations")]
    Malformed,
    /// An operation points where nothing is.
    #[error("there is nothing at {0:?}")]
    Missing(String),
    /// A test found something else.
    #[error("testing value {0} failed")]
    Test(String),
    /// Its copies come to more than an object may be.
    #[error("the copies are too big")]
    TooBig,
}

/// The most operations in one patch, as upstream's.
pub const OPERATIONS_MAX: usize = 10_000;
/// The most bytes that the copies of one patch may come to, as upstream's: a short patch must
/// not grow an object without bounds.
const COPIES_MAX: usize = 3 << 20;

/// Applies all operations of `patch` in order.
///
/// Where the standard and upstream's library differ, clients know the library: a replacement
/// of a member that is not there adds it, a copy of nothing is `null`, negative indices count
/// from the end, and the document as a whole can be replaced only.
pub fn apply(target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let operations = patch.as_array().ok_or(PatchError::Malformed)?;
    let mut copied = 0;
    for operation in operations {
        step(target, operation, &mut copied)?;
    }
    Ok(())
}

fn step(target: &mut Value, operation: &Value, copied: &mut usize) -> Result<(), PatchError> {
    let text =
        |field: &str| operation.get(field).and_then(Value::as_str).ok_or(PatchError::Malformed);
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    let path = text("path")?;
    match text("op")? {
        "add" => add(target, path, value()),
        "remove" => remove(target, path).map(drop),
        "replace" => replace(target, path, value()),
        "move" => {
            let moved = remove(target, text("from")?)?;
            add(target, path, moved)
        }
        "copy" => {
            let copy = get(target, text("from")?)?.cloned().unwrap_or(Value::Null);
            *copied += copy.to_string().len();
            if *copied > COPIES_MAX {
                return Err(PatchError::TooBig);
            }
            add(target, path, copy)
        }
        "test" => {
            let found = if path.is_empty() { Some(&*target) } else { get(target, path)? };
            let same = found.unwrap_or(&Value::Null) == &value();
            same.then_some(()).ok_or_else(|| PatchError::Test(path.to_owned()))
        }
        _ => Err(PatchError::Malformed),
    }
}

fn missing(path: &str) -> PatchError {
    PatchError::Missing(path.to_owned())
}

/// Splits a pointer into its parent and its last token, unescaped.
fn split(path: &str) -> Option<(&str, String)> {
    let (parent, last) = path.rsplit_once('/')?;
    Some((parent, last.replace("~1", "/").replace("~0", "~")))
}

/// The container a pointer ends in, and the last token.
fn container<'t>(target: &'t mut Value, path: &str) -> Result<(&'t mut Value, String), PatchError> {
    let (parent, last) = split(path).ok_or_else(|| missing(path))?;
    let found = target.pointer_mut(parent).filter(|found| found.is_object() || found.is_array());
    Ok((found.ok_or_else(|| missing(path))?, last))
}

/// An index into a list of this length; negative ones count from the end.
fn index(token: &str, length: usize) -> Option<usize> {
    let number = token.parse::<i64>().ok()?;
    let length = i64::try_from(length).ok()?;
    let at = if number < 0 { number + length } else { number };
    usize::try_from(at).ok().filter(|_| at < length)
}

fn get<'t>(target: &'t mut Value, path: &str) -> Result<Option<&'t Value>, PatchError> {
    let (container, last) = container(target, path)?;
    match container {
        Value::Array(items) => {
            let at = index(&last, items.len()).ok_or_else(|| missing(path))?;
            Ok(items.get(at))
        }
        other => Ok(other.get(&last)),
    }
}

fn add(target: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    let (container, last) = container(target, path)?;
    match container {
        Value::Object(map) => {
            map.insert(last, value);
        }
        Value::Array(items) => {
            let at = if last == "-" { Some(items.len()) } else { index(&last, items.len() + 1) };
            items.insert(at.ok_or_else(|| missing(path))?, value);
        }
        _ => return Err(missing(path)),
    }
    Ok(())
}

fn replace(target: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    if path.is_empty() {
        if !(value.is_object() || value.is_array()) {
            return Err(PatchError::Malformed);
        }
        *target = value;
        return Ok(());
    }
    let (container, last) = container(target, path)?;
    match container {
        Value::Object(map) => {
            map.insert(last, value);
        }
        Value::Array(items) => {
            let at = index(&last, items.len()).ok_or_else(|| missing(path))?;
            items[at] = value;
        }
        _ => return Err(missing(path)),
    }
    Ok(())
}

fn remove(target: &mut Value, path: &str) -> Result<Value, PatchError> {
    let (container, last) = container(target, path)?;
    match container {
        Value::Object(map) => map.shift_remove(&last).ok_or_else(|| missing(path)),
        Value::Array(items) => {
            let at = index(&last, items.len()).ok_or_else(|| missing(path))?;
            Ok(items.remove(at))
        }
        _ => Err(missing(path)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_apply() {
        let check = |patch: Value, expect: Value| {
            let mut target = json!({"a": {"b/c": 1}, "l": [1, 2]});
            let result = apply(&mut target, &patch).map(|()| target);
            assert_eq!(result.unwrap_or(Value::Null), expect, "{patch}");
        };
        check(
            json!([{"op": "add", "path": "/a/x", "value": 2}]),
            json!({"a": {"b/c": 1, "x": 2}, "l": [1, 2]}),
        );
        check(json!([{"op": "remove", "path": "/a/b~1c"}]), json!({"a": {}, "l": [1, 2]}));
        check(
            json!([{"op": "add", "path": "/l/-", "value": 3}]),
            json!({"a": {"b/c": 1}, "l": [1, 2, 3]}),
        );
        check(
            json!([{"op": "add", "path": "/l/0", "value": 3}]),
            json!({"a": {"b/c": 1}, "l": [3, 1, 2]}),
        );
        check(
            json!([{"op": "move", "from": "/l/0", "path": "/m"}]),
            json!({"a": {"b/c": 1}, "l": [2], "m": 1}),
        );
        check(json!([{"op": "test", "path": "/l/0", "value": 2}]), Value::Null);
        check(json!([{"op": "remove", "path": "/zz"}]), Value::Null);
        check(
            json!([{"op": "replace", "path": "/zz", "value": 1}]),
            json!({"a": {"b/c": 1}, "l": [1, 2], "zz": 1}),
        );
        check(json!([{"op": "replace", "path": "/zz/y", "value": 1}]), Value::Null);
        check(
            json!([{"op": "copy", "from": "/zz", "path": "/a"}]),
            json!({"a": null, "l": [1, 2]}),
        );
        check(json!([{"op": "remove", "path": "/l/-1"}]), json!({"a": {"b/c": 1}, "l": [1]}));
        check(json!([{"op": "add", "path": "", "value": {}}]), Value::Null);
    }

    #[test]
    fn copies_do_not_grow_without_bounds() {
        let mut target = json!({"a": ["x".repeat(1000)]});
        let double = json!({"op": "copy", "from": "/a", "path": "/a/-"});
        let patch = Value::Array(vec![double; 40]);
        assert_eq!(apply(&mut target, &patch), Err(PatchError::TooBig));
    }
}
