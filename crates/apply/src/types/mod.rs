//! What merging needs to know about a kind: where its lists and maps split.
//!
//! A schema here says nothing about formats or limits. Per node it says which of three shapes a
//! value may take (an [`Atom`]: scalar, list, map) and, for lists and maps, whether they are
//! owned as a whole (*atomic*) or by their parts. [`Schema::from_openapi`], [`Schema::from_crd`]
//! and [`Schema::from_components`] read that from `OpenAPI`; [`Schema::deduced`] is the answer for
//! a kind without schema: maps split, lists do not.
//!
//! Nodes live in one vector and refer to each other by number, so schemas may be recursive and a
//! thousand of them stay small.

mod openapi;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

/// The element types of one kind at one version.
#[derive(Debug, Clone)]
pub struct Schema {
    types: Vec<Atom>,
    root: TypeRef,
}

/// A node of a schema; [`TypeRef::NONE`] where nothing is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeRef(Option<u32>);

/// The shapes a value may take at a node.
#[derive(Debug, Clone, Default)]
pub struct Atom {
    /// Scalars allowed here.
    pub scalar: Option<Scalar>,
    /// Lists allowed here.
    pub list: Option<List>,
    /// Maps allowed here.
    pub map: Option<Map>,
}

/// Kinds of scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// An integer or a float.
    Numeric,
    /// A string.
    String,
    /// A boolean.
    Boolean,
    /// Any of them.
    Untyped,
}

/// A list.
#[derive(Debug, Clone)]
pub struct List {
    /// The type of its items.
    pub element: TypeRef,
    /// Whether items have identities of their own; else the list is atomic.
    pub associative: bool,
    /// The fields that identify an item; none for a set.
    pub keys: Vec<Box<str>>,
}

/// A map or structure.
#[derive(Debug, Clone)]
pub struct Map {
    /// Declared fields, sorted by name.
    fields: Vec<Field>,
    /// The type of undeclared fields; none if they are not allowed.
    pub element: TypeRef,
    /// Whether the map is owned as a whole.
    pub atomic: bool,
    /// Whether the map is free-form: no declared fields, and anything goes in the others.
    pub free: bool,
}

/// A declared field.
#[derive(Debug, Clone)]
pub struct Field {
    name: Box<str>,
    /// Its type.
    pub of: TypeRef,
    /// Its default, which counts when the field identifies a list item.
    pub default: Option<Box<Value>>,
}

impl TypeRef {
    /// Nothing is declared.
    pub const NONE: Self = Self(None);

    const fn at(index: u32) -> Self {
        Self(Some(index))
    }
}

impl Map {
    /// A declared field by name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        let at = self.fields.binary_search_by(|field| (*field.name).cmp(name)).ok()?;
        self.fields.get(at)
    }

    /// The type of a field, declared or not.
    pub fn type_of(&self, name: &str) -> TypeRef {
        self.field(name).map_or(self.element, |field| field.of)
    }
}

/// Nodes every schema starts with, so that scalars cost nothing.
const UNTYPED_ATOMIC: TypeRef = TypeRef::at(0);
const DEDUCED: TypeRef = TypeRef::at(1);
const NUMERIC: TypeRef = TypeRef::at(2);
const STRING: TypeRef = TypeRef::at(3);
const BOOLEAN: TypeRef = TypeRef::at(4);
const UNTYPED: TypeRef = TypeRef::at(5);

impl Schema {
    /// The schema of a kind that has none: granular maps, atomic lists.
    pub fn deduced() -> Arc<Self> {
        static DEDUCED_SCHEMA: OnceLock<Arc<Schema>> = OnceLock::new();
        let make = || Arc::new(Self { types: common(), root: DEDUCED });
        DEDUCED_SCHEMA.get_or_init(make).clone()
    }

    /// The type of the whole object.
    pub fn root(&self) -> TypeRef {
        self.root
    }

    /// The shapes allowed at a node.
    pub fn resolve(&self, of: TypeRef) -> Option<&Atom> {
        self.types.get(usize::try_from(of.0?).ok()?)
    }
}

fn common() -> Vec<Atom> {
    let any = |element, atomic| Atom {
        scalar: Some(Scalar::Untyped),
        list: Some(List { element: UNTYPED_ATOMIC, associative: false, keys: Vec::new() }),
        map: Some(Map { fields: Vec::new(), element, atomic, free: element == DEDUCED }),
    };
    let scalar = |scalar| Atom { scalar: Some(scalar), ..Atom::default() };
    vec![
        any(UNTYPED_ATOMIC, true),
        any(DEDUCED, false),
        scalar(Scalar::Numeric),
        scalar(Scalar::String),
        scalar(Scalar::Boolean),
        scalar(Scalar::Untyped),
    ]
}

/// A schema under construction.
struct Builder<'a> {
    types: Vec<Atom>,
    named: HashMap<&'a str, TypeRef>,
    components: &'a serde_json::Map<String, Value>,
    /// Types that are a copy of another with a different relationship, filled in at the end.
    copies: Vec<(usize, TypeRef, bool)>,
    /// Whether undeclared fields are kept everywhere.
    preserve: bool,
}
