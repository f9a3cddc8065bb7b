//! Lists whose items have an identity: merged item by item, in an order that both sides
//! recognise.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use super::error::type_name;
use super::meta::{Field, Meta};
use super::{DIRECTIVE, ORDER, Object, Result, StrategicError, maps, without_directives};

/// Merges `patch` into `original`, or removes it from there.
pub(super) fn merge(
    original: Vec<Value>,
    patch: Vec<Value>,
    field: &Field<'_>,
    deletes: bool,
) -> Result<Vec<Value>> {
    merge_in(&mut Slots::of(original), patch, field, deletes)
}

/// The old list's room. Upstream merges in place and later takes its order from what is left
/// there, so that is part of the result: items that go make room, and new ones fill it.
struct Slots {
    room: Vec<Value>,
    used: usize,
}

impl Slots {
    fn of(room: Vec<Value>) -> Self {
        Self { used: room.len(), room }
    }

    fn items(&self) -> &[Value] {
        &self.room[..self.used]
    }

    /// Takes out the items that have one of these identities, in this order. In the room that each
    /// leaves stays what was last then, of which only the identity is ever looked at.
    fn forget(&mut self, key: &str, gone: &[Value]) {
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, item) in self.items().iter().enumerate() {
            if let Some(own) = item.get(key) {
                places.entry(own.to_string()).or_default().push(at);
            }
        }
        let mut items: Vec<Option<Value>> = self.room.drain(..self.used).map(Some).collect();
        let rest = std::mem::take(&mut self.room);
        let (mut last, mut left) = (items.len(), Vec::new());
        for at in gone.iter().filter_map(|value| places.remove(&value.to_string())).flatten() {
            while items[..last].last().is_some_and(Option::is_none) {
                last = last.saturating_sub(1);
            }
            left.push(trace(last.checked_sub(1).and_then(|last| items[last].as_ref()), key));
            items[at] = None;
        }
        self.room = items.into_iter().flatten().collect();
        self.used = self.room.len();
        self.room.extend(left.into_iter().rev());
        self.room.extend(rest);
    }
}

/// What stays of an item where only its identity matters.
fn trace(item: Option<&Value>, key: &str) -> Value {
    let Some(item) = item else { return Value::Null };
    match item.get(key) {
        Some(own) => Value::Object([(key.to_owned(), own.clone())].into_iter().collect()),
        None => item.clone(),
    }
}

fn merge_in(
    slots: &mut Slots,
    patch: Vec<Value>,
    field: &Field<'_>,
    deletes: bool,
) -> Result<Vec<Value>> {
    if slots.items().is_empty() && patch.is_empty() {
        return Ok(Vec::new());
    }
    if !holds_maps(slots.items(), &patch)? {
        let original = slots.items();
        if deletes {
            let gone = Places::of(&patch, "");
            let kept = original.iter().filter(|item| gone.find(item).is_none());
            return Ok(kept.cloned().collect());
        }
        let mut seen = HashSet::new();
        let merged = original.iter().chain(&patch).filter(|item| seen.insert(item.to_string()));
        return arrange(merged.cloned().collect(), &patch, original, field.key);
    }
    if field.key.is_empty() {
        return Err(no_key_known(field));
    }
    let (plain, replace) = obey(slots, patch, field.key)?;
    if replace {
        return merge_maps(&mut Slots::of(plain), &[], field);
    }
    merge_maps(slots, &plain, field)
}

fn no_key_known(field: &Field<'_>) -> StrategicError {
    let form = field.inside.form();
    StrategicError::Mismatch(format!("cannot merge lists without merge key for {form}"))
}

/// Does what items with a directive say; answers with the others, and whether they replace
/// the old list.
fn obey(slots: &mut Slots, patch: Vec<Value>, key: &str) -> Result<(Vec<Value>, bool)> {
    let (mut plain, mut gone, mut replace) = (Vec::new(), Vec::new(), false);
    for item in patch {
        let map = as_map(&item)?;
        let Some(directive) = map.get(DIRECTIVE) else {
            plain.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let own = map.get(key).ok_or_else(|| StrategicError::no_key(map, key))?;
                gone.push(own.clone());
            }
            Some("replace") => replace = true,
            Some("merge") => {
                let why = "merging lists cannot yet be specified in the patch";
                return Err(StrategicError::Mismatch(why.to_owned()));
            }
            _ => return Err(StrategicError::unknown_directive(directive, map.clone())),
        }
    }
    if !gone.is_empty() {
        slots.forget(key, &gone);
    }
    Ok((plain, replace))
}

/// Merges maps with equal keys and appends the others.
fn merge_maps(slots: &mut Slots, patch: &[Value], field: &Field<'_>) -> Result<Vec<Value>> {
    let old = slots.items().to_vec();
    let mut merged = old.clone();
    let mut places = Places::of(&merged, field.key);
    for item in patch {
        let map = as_map(item)?;
        let value = map.get(field.key).ok_or_else(|| StrategicError::no_key(map, field.key))?;
        if let Some(at) = places.find_key(value) {
            let Value::Object(before) = std::mem::take(&mut merged[at]) else { continue };
            merged[at] = Value::Object(maps(before, map.clone(), field.inside)?);
        } else {
            places.add(value, merged.len());
            if let Some(free) = slots.room.get_mut(merged.len()) {
                *free = item.clone();
            }
            merged.push(item.clone());
        }
    }
    arrange(merged, patch, &old, field.key)
}

/// `$setElementOrder`: merges each such list and brings it into the wished order.
pub(super) fn order(original: &mut Object, patch: &mut Object, meta: Meta<'_>) -> Result<()> {
    let keys: Vec<String> = patch.keys().filter(|key| key.starts_with(ORDER)).cloned().collect();
    if keys.is_empty() {
        return Ok(());
    }
    let mut done = HashSet::new();
    for key in keys {
        let Some(wished) = patch.get_mut(&key).map(std::mem::take) else { continue };
        let Value::Array(wished) = wished else { return Err(StrategicError::not_a_list(&wished)) };
        let name = key[ORDER.len()..].strip_prefix('/').ok_or(StrategicError::ORDER_LIST)?;
        let (old, new) = (as_list(original.get(name))?, as_list(patch.get(name))?);
        let field = meta.list(name)?;
        let strategy = field.strategy()?;
        follows(new.unwrap_or_default(), &wished, field.key)?;
        let mut slots = Slots::of(old.unwrap_or_default().to_vec());
        let merged = match (old, new) {
            (None, None) => continue,
            (Some(old), None) => old.to_vec(),
            (None, Some(new)) => new.iter().cloned().filter_map(without_directives).collect(),
            (Some(_), Some(new)) if strategy == "merge" => {
                merge_in(&mut slots, new.to_vec(), &field, false)?
            }
            (Some(_), Some(new)) => new.to_vec(),
        };
        if holds_maps(&slots.room, new.unwrap_or_default())? && field.key.is_empty() {
            if !merged.is_empty() {
                return Err(no_key_known(&field));
            }
            if let Some(nameless) = wished.iter().chain(&slots.room).next() {
                return Err(StrategicError::no_key(as_map(nameless)?, ""));
            }
        }
        let arranged = arrange(merged, &wished, &slots.room, field.key)?;
        original.insert(name.to_owned(), Value::Array(arranged));
        done.insert(name.to_owned());
    }
    patch.retain(|key, _| !key.starts_with(ORDER) && !done.contains(key));
    Ok(())
}

/// The patch must name its items in the order in which it wishes them.
fn follows(patch: &[Value], wished: &[Value], key: &str) -> Result<()> {
    if patch.is_empty() || wished.is_empty() {
        return Ok(());
    }
    let mut left = Vec::new();
    for item in patch {
        let directive = if key.is_empty() { None } else { as_map(item)?.get(DIRECTIVE) };
        if directive.and_then(Value::as_str) != Some("delete") {
            left.push(item);
        }
    }
    let (mut next, mut wished_next) = (0_usize, 0_usize);
    while next < left.len() && wished_next < wished.len() {
        if left[next].get(DIRECTIVE).is_some() {
            next = next.saturating_add(1);
            continue;
        }
        if identity(left[next], key)? == identity(&wished[wished_next], key)? {
            next = next.saturating_add(1);
        }
        wished_next = wished_next.saturating_add(1);
    }
    if next == left.len() {
        return Ok(());
    }
    let show = |items: &[Value]| schema::text::plain(&Value::Array(items.to_vec()));
    Err(StrategicError::Mismatch(format!(
        "The order in patch list:\n{}\n doesn't match {ORDER} list:\n{}\n",
        show(patch),
        show(wished)
    )))
}

/// Items of the patch in the patch's order, the others in theirs, and both interleaved as
/// the old list had them, as far as that goes.
fn arrange(merged: Vec<Value>, wished: &[Value], old: &[Value], key: &str) -> Result<Vec<Value>> {
    let (by_wish, by_age) = (Places::of(wished, key), Places::of(old, key));
    if !key.is_empty() {
        let odd = wished.iter().position(|item| !item.is_object());
        for item in &merged {
            identity(item, key)?;
            if let Some(odd) = odd.filter(|odd| by_wish.find(item).is_none_or(|at| *odd < at)) {
                let why = format!("value for key {odd} is not a map");
                return Err(StrategicError::Mismatch(why));
            }
        }
        for item in wished.iter().chain(old) {
            identity(item, key)?;
        }
    }
    let (asked, kept): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| by_wish.find(item).is_some());
    let mut asked = sorted(asked, &by_wish).into_iter().peekable();
    let mut kept = sorted(kept, &by_age).into_iter().peekable();
    let mut out = Vec::new();
    while let (Some(theirs), Some(ours)) = (kept.peek(), asked.peek()) {
        let older = match (by_age.find(theirs), by_age.find(ours)) {
            (Some(theirs), Some(ours)) => theirs < ours,
            _ => false,
        };
        out.extend(if older { kept.next() } else { asked.next() });
    }
    out.extend(asked);
    out.extend(kept);
    Ok(out)
}

/// Sorts by place. An item without a place goes before what came before it, as upstream's
/// comparison has it.
fn sorted(items: Vec<Value>, places: &Places<'_>) -> Vec<Value> {
    let deletes = |item: &Value| item.get(DIRECTIVE) == Some(&Value::from("delete"));
    let (last, items): (Vec<Value>, Vec<Value>) =
        items.into_iter().partition(|item| !places.key.is_empty() && deletes(item));
    let mut rows: Vec<(Option<usize>, Value)> =
        items.into_iter().map(|item| (places.find(&item), item)).collect();
    if rows.iter().all(|(place, _)| place.is_some()) {
        rows.sort_by_key(|(place, _)| *place);
    } else {
        rows = inserted(rows);
    }
    rows.into_iter().map(|(_, item)| item).chain(last).collect()
}

/// Sorts by insertion, one after the other: without a place at the very front; with one behind
/// the last that does not come later, and before everything if there is none.
fn inserted(rows: Vec<(Option<usize>, Value)>) -> Vec<(Option<usize>, Value)> {
    let mut next = vec![None; rows.len()];
    let mut head = None;
    let mut placed: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (at, (place, _)) in rows.iter().enumerate() {
        let before = place
            .and_then(|place| placed.range(..=(place, usize::MAX)).next_back().map(|(_, at)| *at));
        match before {
            Some(before) => next[at] = next[before].replace(at),
            None => next[at] = head.replace(at),
        }
        if let Some(place) = place {
            placed.insert((*place, at), at);
        }
    }
    let mut rows: Vec<Option<(Option<usize>, Value)>> = rows.into_iter().map(Some).collect();
    let chain = std::iter::successors(head, |at| next[*at]);
    chain.filter_map(|at| rows[at].take()).collect()
}

/// Where the items of a list are, by identity.
struct Places<'k> {
    at: HashMap<String, usize>,
    key: &'k str,
}

impl<'k> Places<'k> {
    fn of(items: &[Value], key: &'k str) -> Self {
        let mut places = Self { at: HashMap::new(), key };
        for (at, item) in items.iter().enumerate() {
            let own = if key.is_empty() { Some(item) } else { item.get(key) };
            if let Some(own) = own {
                places.add(own, at);
            }
        }
        places
    }

    fn add(&mut self, identity: &Value, at: usize) {
        self.at.entry(identity.to_string()).or_insert(at);
    }

    fn find(&self, item: &Value) -> Option<usize> {
        self.find_key(if self.key.is_empty() { item } else { item.get(self.key)? })
    }

    fn find_key(&self, identity: &Value) -> Option<usize> {
        self.at.get(&identity.to_string()).copied()
    }
}

/// What tells an item from the others.
fn identity<'v>(item: &'v Value, key: &str) -> Result<&'v Value> {
    if key.is_empty() {
        return Ok(item);
    }
    let map = as_map(item)?;
    map.get(key).ok_or_else(|| StrategicError::no_key(map, key))
}

fn as_map(value: &Value) -> Result<&Object> {
    value.as_object().ok_or_else(|| StrategicError::not_a_map(value))
}

fn as_list(value: Option<&Value>) -> Result<Option<&[Value]>> {
    match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(StrategicError::not_a_list(other)),
    }
}

/// Whether the items are maps; all of them must be of one type, and none a list.
fn holds_maps(original: &[Value], patch: &[Value]) -> Result<bool> {
    let mut all = original.iter().chain(patch);
    let Some(first) = all.next() else {
        let why = "no elements in any of the given slices";
        return Err(StrategicError::Mismatch(why.to_owned()));
    };
    if first.is_array() {
        return Err(StrategicError::ListOfLists);
    }
    if all.any(|item| type_name(item) != type_name(first)) || first.is_null() {
        let show = |items: &[Value]| schema::text::plain(&Value::Array(items.to_vec()));
        return Err(StrategicError::Mismatch(format!(
            "list element types are not identical: [{} {}]",
            show(original),
            show(patch)
        )));
    }
    Ok(first.is_object())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What upstream does, item by item.
    fn insert_slowly(mut rows: Vec<(Option<usize>, Value)>) -> Vec<(Option<usize>, Value)> {
        let goes_before = |a: Option<usize>, b: Option<usize>| match (a, b) {
            (Some(a), Some(b)) => a < b,
            _ => true,
        };
        for end in 1..rows.len() {
            let mut at = end;
            while at > 0 && goes_before(rows[at].0, rows[at - 1].0) {
                rows.swap(at, at - 1);
                at -= 1;
            }
        }
        rows
    }

    fn forget_slowly(slots: &mut Slots, key: &str, value: &Value) {
        while let Some(at) = slots.items().iter().position(|item| item.get(key) == Some(value)) {
            let kept = slots.room[slots.used - 1].clone();
            slots.room[at..slots.used].rotate_left(1);
            slots.used -= 1;
            slots.room[slots.used] = kept;
        }
    }

    proptest::proptest! {
        #[test]
        fn rows_are_sorted_as_upstream_sorts_them(
            places in proptest::collection::vec(proptest::option::of(0..6_usize), 0..12)
        ) {
            let rows: Vec<_> =
                places.into_iter().enumerate().map(|(at, place)| (place, json!(at))).collect();
            proptest::prop_assert_eq!(inserted(rows.clone()), insert_slowly(rows));
        }

        #[test]
        fn items_go_as_upstream_lets_them_go(
            names in proptest::collection::vec(0..6, 0..12),
            gone in proptest::collection::vec(0..6, 0..8),
        ) {
            let room: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
            let gone: Vec<Value> = gone.into_iter().map(Value::from).collect();
            let (mut fast, mut slow) = (Slots::of(room.clone()), Slots::of(room));
            fast.forget("name", &gone);
            for value in &gone {
                forget_slowly(&mut slow, "name", value);
            }
            proptest::prop_assert_eq!((fast.used, fast.room), (slow.used, slow.room));
        }
    }
}
