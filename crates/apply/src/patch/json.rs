//! RFC 6902: a list of operations, all of which apply or none.

use serde_json::Value;

use schema::object::depth;

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
    /// It would nest what is there deeper than anybody could read again.
    #[error("exceeded max depth: the patch nests {0:?} deeper than {DEPTH_MAX} levels")]
    TooDeep(String),
    /// It would move more of the object about than a patch may.
    #[error("the patch moves too much: add to the end of long lists, or replace them as a whole")]
    TooMuch,
}

impl PatchError {
    /// Whether a limit was met, rather than the patch being wrong in itself.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::TooBig | Self::TooDeep(_) | Self::TooMuch)
    }
}

/// The most operations in one patch, as upstream's.
pub const OPERATIONS_MAX: usize = 10_000;
/// The most bytes that the copies of one patch may come to, as upstream's: a short patch must
/// not grow an object without bounds.
const COPIES_MAX: usize = 3 << 20;
/// The deepest an object may be while it is patched: what the parser lets in.
const DEPTH_MAX: usize = 127;
/// The most entries of lists and maps that one patch may move or look at. Each operation at the
/// head of a long list moves all of it.
const WORK_MAX: usize = 1 << 24;

/// What the operations of one patch share.
#[derive(Debug, Default)]
pub struct Budget {
    /// Bytes that were copied.
    copied: usize,
    /// Entries that were moved or looked at.
    work: usize,
    /// At least as deep as the object is.
    depth: usize,
}

impl Budget {
    /// For operations on this object.
    pub fn of(target: &Value) -> Self {
        Self { depth: depth::measure(target), ..Self::default() }
    }

    fn spend(&mut self, entries: usize) -> Result<(), PatchError> {
        self.work = self.work.saturating_add(entries);
        if self.work > WORK_MAX { Err(PatchError::TooMuch) } else { Ok(()) }
    }

    /// Something so deep comes to lie below a path.
    fn nest(&mut self, path: &str, below: usize) -> Result<(), PatchError> {
        let depth = steps(path).saturating_add(below);
        if depth > DEPTH_MAX {
            return Err(PatchError::TooDeep(path.to_owned()));
        }
        self.depth = self.depth.max(depth);
        Ok(())
    }

    /// Something that was in the object comes to lie below a path. As long as it cannot become too
    /// deep, nobody has to look how deep anything is.
    fn nest_own(
        &mut self,
        (from, path): (&str, &str),
        value: &Value,
        rest: &Value,
    ) -> Result<(), PatchError> {
        let most = self.depth.saturating_sub(steps(from));
        if steps(path).saturating_add(most) <= DEPTH_MAX {
            return self.nest(path, most);
        }
        self.spend(depth::count(value).saturating_add(depth::count(rest)))?;
        self.depth = depth::measure(rest);
        self.nest(path, depth::measure(value))
    }
}

/// How many maps and lists a path leads through.
fn steps(path: &str) -> usize {
    path.bytes().filter(|byte| *byte == b'/').count()
}

/// Applies all operations of `patch` in order.
///
/// Where the standard and upstream's library differ, clients know the library: a replacement
/// of a member that is not there adds it, a copy of nothing is `null`, negative indices count
/// from the end, and the document as a whole can be replaced only.
pub fn apply(target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let operations = patch.as_array().ok_or(PatchError::Malformed)?;
    let mut budget = Budget::of(target);
    for operation in operations {
        step(target, operation, &mut budget)?;
    }
    Ok(())
}

/// Applies one operation.
pub fn step(target: &mut Value, operation: &Value, budget: &mut Budget) -> Result<(), PatchError> {
    let text =
        |field: &str| operation.get(field).and_then(Value::as_str).ok_or(PatchError::Malformed);
    let given = operation.get("value").unwrap_or(&Value::Null);
    let path = text("path")?;
    match text("op")? {
        "add" => {
            budget.nest(path, depth::measure(given))?;
            add(target, path, given.clone(), budget)
        }
        "remove" => remove(target, path, budget).map(drop),
        "replace" => {
            budget.nest(path, depth::measure(given))?;
            replace(target, path, given.clone())
        }
        "move" => {
            let from = text("from")?;
            let moved = remove(target, from, budget)?;
            budget.nest_own((from, path), &moved, target)?;
            add(target, path, moved, budget)
        }
        "copy" => {
            let from = text("from")?;
            let copy = get(target, from)?.cloned().unwrap_or(Value::Null);
            budget.copied = budget.copied.saturating_add(copy.to_string().len());
            if budget.copied > COPIES_MAX {
                return Err(PatchError::TooBig);
            }
            budget.nest_own((from, path), &copy, target)?;
            add(target, path, copy, budget)
        }
        "test" => {
            let found = if path.is_empty() { Some(&*target) } else { get(target, path)? };
            let same = found.unwrap_or(&Value::Null) == given;
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
    let at = if number < 0 { number.checked_add(length)? } else { number };
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

fn add(
    target: &mut Value,
    path: &str,
    value: Value,
    budget: &mut Budget,
) -> Result<(), PatchError> {
    let (container, last) = container(target, path)?;
    match container {
        Value::Object(map) => {
            map.insert(last, value);
        }
        Value::Array(items) => {
            let length = items.len();
            let at =
                if last == "-" { Some(length) } else { index(&last, length.saturating_add(1)) };
            let at = at.ok_or_else(|| missing(path))?;
            budget.spend(length.saturating_sub(at))?;
            items.insert(at, value);
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

fn remove(target: &mut Value, path: &str, budget: &mut Budget) -> Result<Value, PatchError> {
    let (container, last) = container(target, path)?;
    match container {
        Value::Object(map) => {
            budget.spend(map.len())?;
            map.shift_remove(&last).ok_or_else(|| missing(path))
        }
        Value::Array(items) => {
            let at = index(&last, items.len()).ok_or_else(|| missing(path))?;
            budget.spend(items.len().saturating_sub(at))?;
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

    fn nested(depth: usize) -> Value {
        (1..depth).fold(json!({}), |inner, _| json!({"a": inner}))
    }

    /// H3: operations nested what was there until the stack was spent.
    #[test]
    fn h3_no_operation_nests_deeper_than_the_parser_reads() {
        let path = |steps: usize| "/a".repeat(steps);
        let add =
            |steps, depth| json!([{"op": "add", "path": path(steps), "value": nested(depth)}]);
        let wrap = json!([
            {"op": "move", "from": "/a", "path": "/b"},
            {"op": "add", "path": "/a", "value": nested(40)},
            {"op": "move", "from": "/b", "path": path(40)},
        ]);
        let mut target = json!({"a": nested(100)});
        let check = |target: &mut Value, patch: &Value| {
            let refused = matches!(apply(target, patch), Err(PatchError::TooDeep(_)));
            assert!(refused, "{patch}");
            assert!(depth::measure(target) <= DEPTH_MAX);
        };
        check(&mut target.clone(), &wrap);
        check(&mut target.clone(), &add(101, 27));
        assert_eq!(apply(&mut target.clone(), &add(101, 26)), Ok(()));
        let replace = json!([{"op": "replace", "path": "", "value": nested(128)}]);
        check(&mut target.clone(), &replace);
        // Each copy holds the one before it.
        let copy = json!({"op": "copy", "from": "/a", "path": path(20)});
        check(&mut target, &Value::Array(vec![copy; 50]));
    }

    /// What a patch moves is looked at only when it could become too deep, so that moving
    /// something big about costs nothing.
    #[test]
    fn moves_cost_what_they_move_and_not_what_is_moved() {
        let mut target = json!({"a": vec![1; 50_000], "b": {}});
        let patch: Vec<Value> = (0..OPERATIONS_MAX)
            .map(|at| {
                let (from, path) = if at % 2 == 0 { ("/a", "/b/a") } else { ("/b/a", "/a") };
                json!({"op": "move", "from": from, "path": path})
            })
            .collect();
        let mut budget = Budget::of(&target);
        for operation in &patch {
            assert_eq!(step(&mut target, operation, &mut budget), Ok(()));
        }
        assert!(budget.work < WORK_MAX / 2, "{}", budget.work);
    }

    /// L10: each operation at the head of a long list moves all of it.
    #[test]
    fn l10_what_operations_move_about_is_bounded() {
        let run = |length: usize, operation: Value| {
            let mut target = json!({"l": vec![0; length]});
            let patch = Value::Array(vec![operation; OPERATIONS_MAX]);
            apply(&mut target, &patch)
        };
        let head = json!({"op": "add", "path": "/l/0", "value": 1});
        let end = json!({"op": "add", "path": "/l/-", "value": 1});
        let shift = json!({"op": "remove", "path": "/l/0"});
        assert_eq!(run(100_000, head.clone()), Err(PatchError::TooMuch));
        assert_eq!(run(100_000, shift), Err(PatchError::TooMuch));
        assert_eq!(run(100_000, end), Ok(()));
        let mut short = json!({"l": vec![0; 1000]});
        assert_eq!(apply(&mut short, &Value::Array(vec![head; 1000])), Ok(()));
    }
}
