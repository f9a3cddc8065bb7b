//! Brings a stored set up to date with a schema that changed under it.
//!
//! A list or map that became atomic is owned as a whole by everybody who owned a part of it. The
//! other direction is left alone.

use super::{Shape, shape};
use crate::fieldpath::{PathElement, Set};
use crate::types::{Schema, TypeRef};

/// The set as the schema wants it; nothing if it is right already.
pub(crate) fn reconcile(schema: &Schema, set: &Set) -> Option<Set> {
    let mut walk = Walk { schema, path: Vec::new(), whole: Set::default() };
    walk.node(schema.root(), Some(set), false);
    if walk.whole.is_empty() {
        return None;
    }
    Some(set.recursive_difference(&walk.whole).union(&walk.whole))
}

struct Walk<'s> {
    schema: &'s Schema,
    path: Vec<PathElement>,
    /// The nodes that are to be owned as a whole.
    whole: Set,
}

impl Walk<'_> {
    /// `atomic`: the set owns the node and nothing below it.
    fn node(&mut self, of: TypeRef, set: Option<&Set>, atomic: bool) {
        let Some(atom) = self.schema.resolve(of) else { return };
        let open = super::narrow(atom, None);
        match shape(atom, open) {
            Shape::Map(map) if map.free => {}
            Shape::Map(map) if map.atomic && !atomic => {
                if set.is_some_and(|set| !set.is_empty()) {
                    self.whole.insert(&self.path);
                }
            }
            Shape::Map(map) => {
                let of = |element: &PathElement| match element {
                    PathElement::Field(name) => map.type_of(name),
                    _ => map.element,
                };
                self.below(set, of);
            }
            Shape::List(list) if !list.associative && !atomic => self.whole.insert(&self.path),
            Shape::List(list) => self.below(set, |_| list.element),
            Shape::Scalar(_) | Shape::Nothing => {}
        }
    }

    fn below(&mut self, set: Option<&Set>, of: impl Fn(&PathElement) -> TypeRef) {
        let Some(set) = set else { return };
        for (element, child) in set.children() {
            self.path.push(element.clone());
            self.node(of(element), Some(child), false);
            self.path.pop();
        }
        for element in set.members() {
            if set.child(element).is_none() {
                self.path.push(element.clone());
                self.node(of(element), None, true);
                self.path.pop();
            }
        }
    }
}
