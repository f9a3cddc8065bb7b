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
}

/// Applies all operations of `patch` in order.
pub fn apply(target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let operations = patch.as_array().ok_or(PatchError::Malformed)?;
    for operation in operations {
        step(target, operation)?;
    }
    Ok(())
}

fn step(target: &mut Value, operation: &Value) -> Result<(), PatchError> {
    let text =
        |field: &str| operation.get(field).and_then(Value::as_str).ok_or(PatchError::Malformed);
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    let path = text("path")?;
    match text("op")? {
        "add" => add(target, path, value()),
        "remove" => remove(target, path).map(drop),
        "replace" => {
            let slot = target.pointer_mut(path).ok_or_else(|| missing(path))?;
            *slot = value();
            Ok(())
        }
        "move" => {
            let moved = remove(target, text("from")?)?;
            add(target, path, moved)
        }
        "copy" => {
            let from = text("from")?;
            let copied = target.pointer(from).cloned().ok_or_else(|| missing(from))?;
            add(target, path, copied)
        }
        "test" => match target.pointer(path) {
            Some(found) if *found == value() => Ok(()),
            None if value().is_null() => Ok(()),
            _ => Err(PatchError::Test(path.to_owned())),
        },
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

fn add(target: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    if path.is_empty() {
        *target = value;
        return Ok(());
    }
    let (parent, last) = split(path).ok_or_else(|| missing(path))?;
    match target.pointer_mut(parent) {
        Some(Value::Object(map)) => {
            map.insert(last, value);
            Ok(())
        }
        Some(Value::Array(items)) => {
            let at = if last == "-" { Some(items.len()) } else { last.parse().ok() };
            let at = at.filter(|at| *at <= items.len()).ok_or_else(|| missing(path))?;
            items.insert(at, value);
            Ok(())
        }
        _ => Err(missing(path)),
    }
}

fn remove(target: &mut Value, path: &str) -> Result<Value, PatchError> {
    let (parent, last) = split(path).ok_or_else(|| missing(path))?;
    match target.pointer_mut(parent) {
        Some(Value::Object(map)) => map.shift_remove(&last).ok_or_else(|| missing(path)),
        Some(Value::Array(items)) => {
            let at = last.parse().ok().filter(|at| *at < items.len());
            at.map(|at: usize| items.remove(at)).ok_or_else(|| missing(path))
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
        check(json!([{"op": "replace", "path": "/zz", "value": 1}]), Value::Null);
    }
}
