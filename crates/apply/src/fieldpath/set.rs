//! Sets of paths and their algebra.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Path, PathElement};
use crate::types::{Schema, TypeRef};

/// A set of paths, kept as a sorted tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Set {
    members: Vec<PathElement>,
    children: Vec<(PathElement, Arc<Self>)>,
}

impl Set {
    /// A set of the given paths.
    pub fn of(paths: impl IntoIterator<Item = Path>) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert(&path.0);
        }
        set
    }

    /// Adds one path. Its parents are not added; the empty path is ignored.
    pub fn insert(&mut self, path: &[PathElement]) {
        match path {
            [] => {}
            [last] => self.insert_member(last.clone()),
            [first, rest @ ..] => {
                let at = match self.find_child(first) {
                    Ok(at) => at,
                    Err(at) => {
                        self.children.insert(at, (first.clone(), Arc::default()));
                        at
                    }
                };
                Arc::make_mut(&mut self.children[at].1).insert(rest);
            }
        }
    }

    /// Adds a path of one element.
    pub(crate) fn insert_member(&mut self, element: PathElement) {
        if self.members.last().is_none_or(|last| *last < element) {
            self.members.push(element);
        } else if let Err(at) = self.members.binary_search(&element) {
            self.members.insert(at, element);
        }
    }

    /// Puts a subtree below an element, replacing what was there; an empty one is ignored.
    pub(crate) fn insert_child(&mut self, element: PathElement, set: Self) {
        if set.is_bare() {
            return;
        }
        if self.children.last().is_none_or(|(last, _)| *last < element) {
            self.children.push((element, Arc::new(set)));
            return;
        }
        match self.find_child(&element) {
            Ok(at) => self.children[at].1 = Arc::new(set),
            Err(at) => self.children.insert(at, (element, Arc::new(set))),
        }
    }

    /// Merges a subtree below an element.
    pub(crate) fn merge_child(&mut self, element: PathElement, set: Self) {
        match self.find_child(&element) {
            Ok(at) => {
                let union = self.children[at].1.union(&set);
                self.children[at].1 = Arc::new(union);
            }
            Err(_) => self.insert_child(element, set),
        }
    }

    fn find_child(&self, element: &PathElement) -> Result<usize, usize> {
        self.children.binary_search_by(|(own, _)| own.cmp(element))
    }

    /// The paths of one element that belong to the set.
    pub fn members(&self) -> &[PathElement] {
        &self.members
    }

    /// The subtrees, in order.
    pub fn children(&self) -> impl Iterator<Item = (&PathElement, &Self)> {
        self.children.iter().map(|(element, set)| (element, &**set))
    }

    /// The subtree below one element.
    pub fn child(&self, element: &PathElement) -> Option<&Self> {
        self.find_child(element).ok().map(|at| &*self.children[at].1)
    }

    /// Whether a path of one element belongs to the set.
    pub fn has_member(&self, element: &PathElement) -> bool {
        self.members.binary_search(element).is_ok()
    }

    /// Whether a path belongs to the set.
    pub fn has(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.has_member(last),
            [first, rest @ ..] => self.child(first).is_some_and(|child| child.has(rest)),
        }
    }

    /// Whether no path belongs to the set.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.iter().all(|(_, child)| child.is_empty())
    }

    /// Whether the tree has no nodes at all.
    pub(crate) fn is_bare(&self) -> bool {
        self.members.is_empty() && self.children.is_empty()
    }

    /// How many paths belong to the set.
    pub fn len(&self) -> usize {
        self.members.len() + self.children.iter().map(|(_, child)| child.len()).sum::<usize>()
    }

    /// Every path, parents before children's subtrees.
    pub fn paths(&self) -> Vec<Path> {
        let mut out = Vec::new();
        self.collect(&mut Vec::new(), &mut out);
        out
    }

    fn collect(&self, prefix: &mut Vec<PathElement>, out: &mut Vec<Path>) {
        for member in &self.members {
            let mut path = prefix.clone();
            path.push(member.clone());
            out.push(Path(path));
        }
        for (element, child) in &self.children {
            prefix.push(element.clone());
            child.collect(prefix, out);
            prefix.pop();
        }
    }

    /// Whether every path of this set belongs to the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.members.iter().all(|member| other.has_member(member))
            && self.children.iter().all(|(element, child)| {
                child.is_empty() || other.child(element).is_some_and(|twin| child.is_subset(twin))
            })
    }

    /// The paths of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let members = merge_sorted(&self.members, &other.members, Ord::cmp, |pair| match pair {
            Pair::Left(own) | Pair::Both(own, _) => Some(own.clone()),
            Pair::Right(other) => Some(other.clone()),
        });
        let children = merge_sorted(&self.children, &other.children, by_element, |pair| {
            Some(match pair {
                Pair::Left(own) => own.clone(),
                Pair::Right(other) => other.clone(),
                Pair::Both((element, a), (_, b)) => (element.clone(), Arc::new(a.union(b))),
            })
        });
        Self { members, children }
    }

    /// The paths of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let members = merge_sorted(&self.members, &other.members, Ord::cmp, |pair| match pair {
            Pair::Both(own, _) => Some(own.clone()),
            Pair::Left(_) | Pair::Right(_) => None,
        });
        let children = merge_sorted(&self.children, &other.children, by_element, |pair| {
            let Pair::Both((element, a), (_, b)) = pair else { return None };
            let both = a.intersection(b);
            (!both.is_empty()).then(|| (element.clone(), Arc::new(both)))
        });
        Self { members, children }
    }

    /// The paths of this set that do not belong to the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let children =
            merge_sorted(&self.children, &other.children, by_element, |pair| match pair {
                Pair::Left(own) => Some(own.clone()),
                Pair::Right(_) => None,
                Pair::Both((element, a), (_, b)) => {
                    let rest = a.difference(b);
                    (!rest.is_empty()).then(|| (element.clone(), Arc::new(rest)))
                }
            });
        Self { members: self.members_without(other), children }
    }

    /// The paths of this set neither in the other nor below one of its members.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        let children =
            merge_sorted(&self.children, &other.children, by_element, |pair| match pair {
                Pair::Right(_) => None,
                Pair::Left((element, _)) | Pair::Both((element, _), _)
                    if other.has_member(element) =>
                {
                    None
                }
                Pair::Left(own) => Some(own.clone()),
                Pair::Both((element, a), (_, b)) => {
                    let rest = a.recursive_difference(b);
                    (!rest.is_empty()).then(|| (element.clone(), Arc::new(rest)))
                }
            });
        Self { members: self.members_without(other), children }
    }

    fn members_without(&self, other: &Self) -> Vec<PathElement> {
        merge_sorted(&self.members, &other.members, Ord::cmp, |pair| match pair {
            Pair::Left(own) => Some(own.clone()),
            Pair::Right(_) | Pair::Both(..) => None,
        })
    }

    /// The members that are nobody's parent.
    #[must_use]
    pub fn leaves(&self) -> Self {
        let own = |member: &&PathElement| self.find_child(member).is_err();
        Self {
            members: self.members.iter().filter(own).cloned().collect(),
            children: (self.children.iter())
                .map(|(element, child)| (element.clone(), Arc::new(child.leaves())))
                .collect(),
        }
    }

    /// This set plus every declared field on the way to a member.
    ///
    /// Applied sets leave out the structures that merely hold what was applied; removal has to
    /// see them.
    #[must_use]
    pub(crate) fn with_named_fields(&self, schema: &Schema, of: TypeRef) -> Self {
        let atom = schema.resolve(of);
        let map = atom.and_then(|atom| atom.map.as_ref());
        let list = atom.and_then(|atom| atom.list.as_ref());
        let mut set = Self { members: self.members.clone(), children: Vec::new() };
        set.children.reserve(self.children.len());
        for (element, child) in &self.children {
            let mut of = TypeRef::NONE;
            match (element, map, list) {
                (PathElement::Field(name), Some(map), _) => {
                    of = map.type_of(name);
                    if map.field(name).is_some() {
                        set.insert_member(element.clone());
                    }
                }
                (PathElement::Key(_), _, Some(list)) => of = list.element,
                _ => {}
            }
            set.children.push((element.clone(), Arc::new(child.with_named_fields(schema, of))));
        }
        set
    }
}

type Child = (PathElement, Arc<Set>);

fn by_element(a: &Child, b: &Child) -> Ordering {
    a.0.cmp(&b.0)
}

enum Pair<'a, T> {
    Left(&'a T),
    Right(&'a T),
    Both(&'a T, &'a T),
}

/// Walks two sorted lists at once and keeps what `keep` answers.
fn merge_sorted<T>(
    a: &[T],
    b: &[T],
    compare: impl Fn(&T, &T) -> Ordering,
    mut keep: impl FnMut(Pair<'_, T>) -> Option<T>,
) -> Vec<T> {
    let (mut i, mut j) = (0, 0);
    let mut out = Vec::new();
    loop {
        let pair = match (a.get(i), b.get(j)) {
            (None, None) => return out,
            (Some(left), None) => Pair::Left(left),
            (None, Some(right)) => Pair::Right(right),
            (Some(left), Some(right)) => match compare(left, right) {
                Ordering::Less => Pair::Left(left),
                Ordering::Greater => Pair::Right(right),
                Ordering::Equal => Pair::Both(left, right),
            },
        };
        i += usize::from(!matches!(pair, Pair::Right(_)));
        j += usize::from(!matches!(pair, Pair::Left(_)));
        out.extend(keep(pair));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn set(fields: &Value) -> Set {
        Set::from_fields(fields).unwrap()
    }

    #[test]
    fn operations_treat_parents_and_children_apart() {
        let a = set(&json!({"f:a": {".": {}, "f:b": {}, "f:c": {}}, "f:d": {}}));
        let b = set(&json!({"f:a": {"f:b": {}}, "f:e": {}}));
        let parent = set(&json!({"f:a": {}}));
        let check = |set: Set, fields: Value| assert_eq!(set.to_fields().unwrap(), fields);
        check(a.union(&b), json!({"f:a": {".": {}, "f:b": {}, "f:c": {}}, "f:d": {}, "f:e": {}}));
        check(a.intersection(&b), json!({"f:a": {"f:b": {}}}));
        check(a.difference(&b), json!({"f:a": {".": {}, "f:c": {}}, "f:d": {}}));
        check(a.difference(&parent), json!({"f:a": {"f:b": {}, "f:c": {}}, "f:d": {}}));
        check(a.recursive_difference(&parent), json!({"f:d": {}}));
        check(a.recursive_difference(&b), json!({"f:a": {".": {}, "f:c": {}}, "f:d": {}}));
        check(a.leaves(), json!({"f:a": {"f:b": {}, "f:c": {}}, "f:d": {}}));
        assert_eq!(a.len(), 4);
        assert!(set(&json!({"f:a": {"f:b": {}}})).is_subset(&a));
        assert!(!b.is_subset(&a));
        assert!(a.has(&Path::fields(["a", "b"]).0) && !b.has(&Path::fields(["a"]).0));
    }
}
