//! Walks over a value together with its schema.
//!
//! Five walks, one file each: [`validate`] (does the value fit), [`field_set`] (what does it
//! mention), [`merge`] (put a configuration over it), [`compare`] (what changed) and
//! [`remove`] (take paths out); and [`reconcile`], which walks a set instead of a value.
//!
//! All share two notions. A node's *atom* is narrowed by the value found there: a node that may
//! be anything is a list where a list stands ([`narrow`]). And a list item has an *identity*, the
//! path element that chooses it ([`identify`]), which is how items are matched across versions
//! of a list.

mod compare;
mod field_set;
mod merge;
mod reconcile;
mod remove;
mod validate;

use std::fmt;

use serde_json::Value;

pub(super) use compare::{Comparison, compare};
pub(super) use field_set::field_set;
pub(super) use merge::merge;
pub(super) use reconcile::reconcile;
pub(super) use remove::remove_items;
pub(super) use validate::{Duplicates, validate};

use super::fieldpath::PathElement;
use super::golang;
use super::types::{Atom, List, Map, Scalar, Schema};

/// The most things that do not fit. Each is told its whole way through the object.
const FAULTS_MAX: usize = 100;

/// What does not fit, or the first of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults(Vec<Fault>);

/// One thing that does not fit, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The path of the value, as conflicts print it.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

impl Faults {
    /// The faults, in the order they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Fault> {
        self.0.iter()
    }

    /// Whether everything fits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn push(&mut self, message: impl Into<String>) {
        if self.0.len() >= FAULTS_MAX {
            return;
        }
        self.0.push(Fault { path: String::new(), message: message.into() });
    }

    /// Prefixes what was found since there were `from` faults.
    fn prefix(&mut self, from: usize, element: &dyn fmt::Display) {
        for fault in self.0.iter_mut().skip(from) {
            fault.path = format!("{element}{}", fault.path);
        }
    }
}

impl<'a> IntoIterator for &'a Faults {
    type Item = &'a Fault;
    type IntoIter = std::slice::Iter<'a, Fault>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0.as_slice() {
            return only.fmt(f);
        }
        f.write_str("errors:")?;
        self.0.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
    }
}

impl std::error::Error for Faults {}

/// A field by name, printed as a path without building one.
struct Named<'a>(&'a str);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".{}", self.0)
    }
}

/// The shape a walk takes at a node.
#[derive(Debug, Clone, Copy)]
enum Shape<'s> {
    Map(&'s Map),
    Scalar(Scalar),
    List(&'s List),
    /// The schema declares nothing here.
    Nothing,
}

/// Which shapes of an atom remain open once the value is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Narrowed {
    map: bool,
    scalar: bool,
    list: bool,
}

/// Narrows an atom to the shape of a value; a null, an absent or a misfit value narrows nothing.
fn narrow(atom: &Atom, value: Option<&Value>) -> Narrowed {
    let open = Narrowed {
        map: atom.map.is_some(),
        scalar: atom.scalar.is_some(),
        list: atom.list.is_some(),
    };
    let none = Narrowed { map: false, scalar: false, list: false };
    match value {
        Some(Value::Number(_) | Value::String(_) | Value::Bool(_)) if open.scalar => {
            Narrowed { scalar: true, ..none }
        }
        Some(Value::Array(_)) if open.list => Narrowed { list: true, ..none },
        Some(Value::Object(_)) if open.map => Narrowed { map: true, ..none },
        _ => open,
    }
}

/// The shape to walk: of several open ones, map before scalar before list.
fn shape(atom: &Atom, narrowed: Narrowed) -> Shape<'_> {
    match atom {
        Atom { map: Some(map), .. } if narrowed.map => Shape::Map(map),
        Atom { scalar: Some(scalar), .. } if narrowed.scalar => Shape::Scalar(*scalar),
        Atom { list: Some(list), .. } if narrowed.list => Shape::List(list),
        _ => Shape::Nothing,
    }
}

/// The shape to walk for one value.
fn shape_of<'s>(atom: Option<&'s Atom>, value: Option<&Value>) -> Shape<'s> {
    atom.map_or(Shape::Nothing, |atom| shape(atom, narrow(atom, value)))
}

/// The path element that chooses an item of an associative list, or why it has none.
fn identify(schema: &Schema, list: &List, item: &Value) -> Result<PathElement, String> {
    if !list.associative {
        return Err("invalid indexing of non-associative list".to_owned());
    }
    if !list.keys.is_empty() {
        return identify_by_keys(schema, list, item);
    }
    match item {
        Value::Object(_) => {
            Err("associative list without keys has an element that's a map type".to_owned())
        }
        Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
        Value::Null => {
            Err("associative list without keys has an element that's an explicit null".to_owned())
        }
        scalar => Ok(PathElement::value(scalar.clone())),
    }
}

fn identify_by_keys(schema: &Schema, list: &List, item: &Value) -> Result<PathElement, String> {
    let map = match item {
        Value::Object(map) => map,
        Value::Null => {
            return Err("associative list with keys may not have a null element".to_owned());
        }
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let mut fields: Vec<(Box<str>, Value)> = Vec::with_capacity(list.keys.len());
    for key in &list.keys {
        if let Some(value) = map.get(&**key) {
            fields.push((key.clone(), value.clone()));
            continue;
        }
        let element = schema.resolve(list.element);
        let Some(structure) = element.and_then(|atom| atom.map.as_ref()) else {
            let reason = "associative list may not have non-map types";
            return Err(format!("couldn't find default value for {key}: {reason}"));
        };
        if let Some(default) = structure.field(key).and_then(|field| field.default.as_ref()) {
            fields.push((key.clone(), (**default).clone()));
        }
    }
    if fields.is_empty() {
        return Err(format!(
            "associative list with keys has an element that omits all key fields {} \
             (and doesn't have default values for any key fields)",
            golang::quote_list(&list.keys)
        ));
    }
    fields.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(PathElement::Key(fields.into()))
}

fn as_map(value: Option<&Value>) -> Option<&serde_json::Map<String, Value>> {
    value.and_then(Value::as_object)
}

fn as_list(value: Option<&Value>) -> Option<&Vec<Value>> {
    value.and_then(Value::as_array)
}
