//! What changed between two objects?

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::validate::scalar_fault;
use super::{Faults, Named, Shape, as_list, as_map, identify, narrow, shape};
use crate::fieldpath::{PathElement, Set};
use crate::types::{List, Map, Schema, TypeRef};
use crate::value;

/// The fields that differ, by how.
#[derive(Debug, Clone, Default)]
pub(crate) struct Comparison {
    /// Only in the old object.
    pub(crate) removed: Set,
    /// In both, with another value.
    pub(crate) modified: Set,
    /// Only in the new object.
    pub(crate) added: Set,
}

impl Comparison {
    /// The comparison without some fields and everything below them.
    pub(crate) fn without(self, fields: &Set) -> Self {
        Self {
            removed: self.removed.recursive_difference(fields),
            modified: self.modified.recursive_difference(fields),
            added: self.added.recursive_difference(fields),
        }
    }

    fn add(&mut self, element: &dyn Fn() -> PathElement, mark: Mark, below: Self) {
        let marks = [mark.removed, mark.modified, mark.added];
        let sets = [below.removed, below.modified, below.added];
        let own = [&mut self.removed, &mut self.modified, &mut self.added];
        if marks.contains(&true) || sets.iter().any(|set| !set.is_bare()) {
            let element = element();
            for ((own, marked), below) in own.into_iter().zip(marks).zip(sets) {
                if marked {
                    own.insert_member(element.clone());
                }
                if !below.is_bare() {
                    own.merge_child(element.clone(), below);
                }
            }
        }
    }
}

/// How a node itself differs; a change of shape can do so in several ways at once.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    removed: bool,
    modified: bool,
    added: bool,
}

impl Mark {
    const NONE: Self = Self { removed: false, modified: false, added: false };
    const REMOVED: Self = Self { removed: true, ..Self::NONE };
    const MODIFIED: Self = Self { modified: true, ..Self::NONE };
    const ADDED: Self = Self { added: true, ..Self::NONE };

    fn and(self, other: Self) -> Self {
        Self {
            removed: self.removed || other.removed,
            modified: self.modified || other.modified,
            added: self.added || other.added,
        }
    }
}

/// Compares two objects of one schema.
pub(crate) fn compare(schema: &Schema, old: &Value, new: &Value) -> Result<Comparison, Faults> {
    let mut comparison = Comparison::default();
    let mut walk = Walk { schema, faults: Faults::default() };
    walk.node(schema.root(), Some(old), Some(new), &mut comparison);
    if walk.faults.is_empty() { Ok(comparison) } else { Err(walk.faults) }
}

struct Walk<'s> {
    schema: &'s Schema,
    faults: Faults,
}

type Side<'v> = Option<&'v Value>;

impl<'s> Walk<'s> {
    fn node(&mut self, of: TypeRef, old: Side<'_>, new: Side<'_>, below: &mut Comparison) -> Mark {
        let Some(atom) = self.schema.resolve(of) else {
            self.faults.push("schema error: invalid atom: inlined");
            return Mark::NONE;
        };
        let (was, is) = (narrow(atom, old), narrow(atom, new));
        let (mark, leaf) = if new.is_none() {
            self.shape(shape(atom, was), old, new, below)
        } else if old.is_none() || was == is {
            self.shape(shape(atom, is), old, new, below)
        } else {
            // The shape changed: what the old one held goes, what the new one holds comes.
            let (first, _) = self.shape(shape(atom, was), old, new, below);
            let (second, leaf) = self.shape(shape(atom, is), old, new, below);
            (first.and(second), leaf)
        };
        match (leaf, old, new) {
            (false, None, _) => mark.and(Mark::ADDED),
            (false, _, None) => mark.and(Mark::REMOVED),
            _ => mark,
        }
    }

    /// Walks one shape; answers how the node differs and whether it was treated as a leaf.
    fn shape(
        &mut self,
        shape: Shape<'s>,
        old: Side<'_>,
        new: Side<'_>,
        below: &mut Comparison,
    ) -> (Mark, bool) {
        match shape {
            Shape::Map(map) => {
                let (a, b) = (as_map(old), as_map(new));
                let empty = a.is_none_or(serde_json::Map::is_empty);
                if map.atomic || (empty && b.is_none_or(serde_json::Map::is_empty)) {
                    return (leaf(old, new), true);
                }
                self.maps(map, a, b, below);
                (Mark::NONE, false)
            }
            Shape::List(list) => {
                let (a, b) = (as_list(old), as_list(new));
                let empty = a.is_none_or(Vec::is_empty) && b.is_none_or(Vec::is_empty);
                if !list.associative || empty {
                    return (leaf(old, new), true);
                }
                self.lists(list, a, b, below);
                (Mark::NONE, false)
            }
            Shape::Scalar(scalar) => {
                let wrong = |side: Side<'_>, text| scalar_fault(scalar, side?, text);
                if let (Some(a), Some(b)) = (wrong(old, "lhs: "), wrong(new, "rhs: ")) {
                    self.faults.push(a);
                    self.faults.push(b);
                    return (Mark::NONE, false);
                }
                (leaf(old, new), true)
            }
            Shape::Nothing => {
                self.faults.push("schema error: invalid atom: inlined");
                (Mark::NONE, false)
            }
        }
    }

    fn maps<'v>(
        &mut self,
        map: &'s Map,
        old: Option<&'v serde_json::Map<String, Value>>,
        new: Option<&'v serde_json::Map<String, Value>>,
        out: &mut Comparison,
    ) {
        let most = [old, new].into_iter().flatten().map(serde_json::Map::len).max();
        if most.is_some_and(|most| most > value::SORTED_FROM) {
            let names = old.into_iter().chain(new).flat_map(serde_json::Map::keys);
            for name in names.collect::<BTreeSet<&String>>() {
                let twin = |side: Option<&'v serde_json::Map<String, Value>>| side?.get(name);
                self.field(map, name, twin(old), twin(new), out);
            }
            return;
        }
        for (name, value) in old.into_iter().flatten() {
            let twin = new.and_then(|new| new.get(name));
            self.field(map, name, Some(value), twin, out);
        }
        for (name, value) in new.into_iter().flatten() {
            if old.is_none_or(|old| !old.contains_key(name)) {
                self.field(map, name, None, Some(value), out);
            }
        }
    }

    fn field(
        &mut self,
        map: &'s Map,
        name: &str,
        old: Side<'_>,
        new: Side<'_>,
        out: &mut Comparison,
    ) {
        let mut below = Comparison::default();
        let from = self.faults.0.len();
        let mark = self.node(map.type_of(name), old, new, &mut below);
        self.faults.prefix(from, &Named(name));
        out.add(&|| PathElement::field(name), mark, below);
    }

    fn lists(
        &mut self,
        list: &'s List,
        old: Option<&Vec<Value>>,
        new: Option<&Vec<Value>>,
        out: &mut Comparison,
    ) {
        if let (Some(old), Some(new)) = (old, new)
            && old.len() == new.len()
            && old.iter().zip(new).all(|(old, new)| value::equal(old, new))
        {
            // Most lists did not change, and equality is cheaper than identities.
            return;
        }
        let mut pairs: BTreeMap<PathElement, Twins<'_>> = BTreeMap::new();
        for (i, item) in old.into_iter().flatten().enumerate() {
            if let Some(element) = self.identity(list, i, item) {
                pairs.entry(element).or_default().old.push(item);
            }
        }
        for (i, item) in new.into_iter().flatten().enumerate() {
            if let Some(element) = self.identity(list, i, item) {
                pairs.entry(element).or_default().new.push(item);
            }
        }
        for (element, twins) in pairs {
            let mut below = Comparison::default();
            let from = self.faults.0.len();
            let mark = self.twins(list, &twins, &mut below);
            self.faults.prefix(from, &element);
            out.add(&|| element.clone(), mark, below);
        }
    }

    fn identity(&mut self, list: &List, i: usize, item: &Value) -> Option<PathElement> {
        match identify(self.schema, list, item) {
            Ok(element) => Some(element),
            Err(reason) => {
                self.faults.push(format!("element {i}: {reason}"));
                None
            }
        }
    }

    /// Compares the items of one identity. Several of them are one leaf.
    fn twins(&mut self, list: &List, twins: &Twins<'_>, below: &mut Comparison) -> Mark {
        match (twins.old.as_slice(), twins.new.as_slice()) {
            ([], []) => Mark::NONE,
            (old @ ([] | [_]), new @ ([] | [_])) => {
                self.node(list.element, old.first().copied(), new.first().copied(), below)
            }
            (old @ [_, _, ..], new @ [_, _, ..]) => {
                let same = old.len() == new.len();
                let same = same && old.iter().zip(new).all(|(a, b)| value::equal(a, b));
                if same { Mark::NONE } else { Mark::MODIFIED }
            }
            ([_, _, ..], []) => Mark::REMOVED,
            ([_, _, ..], [new, ..]) => {
                self.node(list.element, None, Some(new), below).and(Mark::REMOVED)
            }
            ([], [_, _, ..]) => Mark::ADDED,
            ([old, ..], [_, _, ..]) => {
                self.node(list.element, Some(old), None, below).and(Mark::ADDED)
            }
        }
    }
}

#[derive(Debug, Default)]
struct Twins<'v> {
    old: Vec<&'v Value>,
    new: Vec<&'v Value>,
}

fn leaf(old: Side<'_>, new: Side<'_>) -> Mark {
    match (old, new) {
        (None, _) => Mark::ADDED,
        (_, None) => Mark::REMOVED,
        (Some(old), Some(new)) if value::equal(old, new) => Mark::NONE,
        _ => Mark::MODIFIED,
    }
}
