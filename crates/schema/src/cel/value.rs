//! Values, as expressions see them.
//!
//! Objects and lists of the request stay where they are and are read through their schema as
//! an expression goes along; only what an expression makes is allocated.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Deref;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::library::semver::Semver;
use super::library::url::Url;
use super::library::{format, time};
use super::meter::Meter;
use crate::object::depth;
use crate::object::quantity::Quantity;
use crate::object::shortened;
use crate::{Flags, Kind, ListType, Node};

/// The longest sentence about what went wrong, in characters.
const TEXT_MAX: usize = 4096;

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The expression went wrong.
    Failed(String),
    /// It became too expensive.
    Cost,
}

impl Trouble {
    /// What went wrong. Values are part of it, and may be long; it is passed around often.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        match shortened(&text, TEXT_MAX) {
            Cow::Owned(short) => Self::Failed(short),
            Cow::Borrowed(_) => Self::Failed(text),
        }
    }

    pub(crate) fn overload() -> Self {
        Self::new("no such overload")
    }
}

pub(crate) type Result<T> = std::result::Result<T, Trouble>;

/// A string of the request or of the expression's making.
#[derive(Clone, Debug)]
pub(crate) enum Text<'a> {
    Borrowed(&'a str),
    Shared(Rc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self::Shared(text.into())
    }
}

/// A key of a map that an expression made; numbers are one another's equals.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Bool(bool),
    Number(i128),
    String(String),
}

/// How a part of the request is to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape<'a> {
    /// By a schema; `true` at the root of a resource, where its identity can be read.
    Typed(&'a Node, bool),
    /// The metadata of a resource, of which only names can be read.
    Meta,
    /// A string.
    Name,
    /// As it is.
    Plain,
}

#[derive(Clone, Debug)]
pub(crate) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'a>),
    Bytes(Rc<[u8]>),
    /// Nanoseconds since 1970.
    Timestamp(i128),
    /// Nanoseconds.
    Duration(i64),
    /// A list of the request, with its own schema.
    Items(&'a [Value], Shape<'a>),
    /// An object of the request.
    Object(&'a Map<String, Value>, Shape<'a>),
    List(Rc<Vec<Self>>),
    Map(Rc<BTreeMap<Key, (Self, Self)>>),
    Optional(Option<Rc<Self>>),
    Type(Rc<str>),
    Ip(IpAddr),
    Cidr(IpAddr, u8),
    Url(Rc<Url>),
    Quantity(Quantity),
    Semver(Rc<Semver>),
    Format(&'static format::Named),
}

impl<'a> Val<'a> {
    /// A part of the request.
    pub(crate) fn read(value: &'a Value, shape: Shape<'a>) -> Result<Self> {
        match shape {
            Shape::Typed(node, root) => typed(value, node, root),
            Shape::Name => match value {
                Value::String(text) => Ok(Self::String(Text::Borrowed(text))),
                _ => Err(Trouble::new("invalid data, expected string")),
            },
            Shape::Meta => match value {
                Value::Object(map) => Ok(Self::Object(map, Shape::Meta)),
                _ => Err(Trouble::new(
                    "invalid data, expected a map for the provided schema with type=object",
                )),
            },
            Shape::Plain => Ok(match value {
                Value::Null => Self::Null,
                Value::Bool(b) => Self::Bool(*b),
                Value::Number(n) => match n.as_i64() {
                    Some(int) => Self::Int(int),
                    None => Self::Double(n.as_f64().unwrap_or_default()),
                },
                Value::String(text) => Self::String(Text::Borrowed(text)),
                Value::Array(items) => Self::Items(items, Shape::Plain),
                Value::Object(map) => Self::Object(map, Shape::Plain),
            }),
        }
    }

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::String(Text::from(text.into()))
    }

    pub(crate) fn list(items: Vec<Self>) -> Self {
        Self::List(Rc::new(items))
    }

    pub(crate) fn int(value: usize) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }

    pub(crate) fn some(value: Self) -> Self {
        Self::Optional(Some(Rc::new(value)))
    }

    pub(crate) fn type_name(&self) -> &str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Items(..) | Self::List(_) => "list",
            Self::Object(..) | Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Ip(_) => "net.IP",
            Self::Cidr(..) => "net.CIDR",
            Self::Url(_) => "kubernetes.URL",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
        }
    }

    /// How big it is, for what it costs to go through it.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::String(text) => text.chars().count(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Items(items, _) => items.len(),
            Self::Object(map, _) => map.len(),
            Self::List(items) => items.len(),
            Self::Map(map) => map.len(),
            Self::Optional(Some(inner)) => inner.size(),
            _ => 1,
        }
    }

    /// The elements of a list, copied.
    pub(crate) fn items(&self, meter: &Meter) -> Result<Vec<Self>> {
        match self {
            Self::Items(items, shape) => {
                meter.copy(items.len())?;
                items.iter().map(|item| Self::enter(item, element(*shape), meter)).collect()
            }
            Self::List(items) => {
                meter.copy(items.len())?;
                Ok(items.as_ref().clone())
            }
            _ => Err(Trouble::overload()),
        }
    }

    /// One element of a list, if it has so many.
    pub(crate) fn item(&self, at: usize, meter: &Meter) -> Result<Option<Self>> {
        match self {
            Self::Items(items, shape) => {
                items.get(at).map(|item| Self::enter(item, element(*shape), meter)).transpose()
            }
            Self::List(items) => Ok(items.get(at).cloned()),
            _ => Err(Trouble::overload()),
        }
    }

    /// A part of the request, read where an expression goes; texts with a format are parsed.
    fn enter(value: &'a Value, shape: Shape<'a>, meter: &Meter) -> Result<Self> {
        if let (Value::String(text), Shape::Typed(node, _)) = (value, shape)
            && node.checks.as_ref().is_some_and(|checks| checks.format.is_some())
        {
            meter.write(text.len())?;
        }
        Self::read(value, shape)
    }

    /// The keys of a map with their values.
    pub(crate) fn entries(&self, meter: &Meter) -> Result<Vec<(Self, Self)>> {
        match self {
            Self::Object(map, shape) => {
                meter.copy(map.len().saturating_mul(2))?;
                let mut entries = Vec::new();
                for (name, value) in *map {
                    let (key, shape) = match *shape {
                        Shape::Typed(node, root) if is_object(node, root) => {
                            let Some(below) = property(node, root, name) else { continue };
                            (super::escape(name).map_or(Text::Borrowed(name), Text::from), below)
                        }
                        Shape::Typed(node, _) => match node.additional_schema() {
                            Some(schema) => {
                                (Text::Borrowed(name.as_str()), Shape::Typed(schema, false))
                            }
                            None => continue,
                        },
                        other => (Text::Borrowed(name.as_str()), other),
                    };
                    meter.scan(name.len())?;
                    entries.push((Self::String(key), Self::enter(value, shape, meter)?));
                }
                entries.sort_by(|(a, _), (b, _)| a.compare(b).unwrap_or(Ordering::Equal));
                Ok(entries)
            }
            Self::Map(map) => {
                meter.copy(map.len().saturating_mul(2))?;
                Ok(map.values().cloned().collect())
            }
            _ => Err(Trouble::overload()),
        }
    }

    /// The value of a key, if the map has it.
    pub(crate) fn find(&self, key: &Self, meter: &Meter) -> Result<Option<Self>> {
        if let Self::String(name) = key {
            meter.scan(name.len())?;
        }
        match self {
            Self::Object(map, shape) => match key {
                Self::String(name) => find_field(map, *shape, name, meter),
                _ => Err(Trouble::overload()),
            },
            Self::Map(map) => Ok(key.key().and_then(|key| map.get(&key)).map(|(_, v)| v.clone())),
            _ => Err(Trouble::overload()),
        }
    }

    /// What it is as a key.
    pub(crate) fn key(&self) -> Option<Key> {
        match self {
            Self::Bool(b) => Some(Key::Bool(*b)),
            Self::Int(n) => Some(Key::Number(i128::from(*n))),
            Self::Uint(n) => Some(Key::Number(i128::from(*n))),
            #[expect(clippy::cast_possible_truncation, reason = "whole, and within bounds")]
            Self::Double(n) if n.fract() == 0.0 && n.abs() < 1e30 => Some(Key::Number(*n as i128)),
            Self::String(text) => Some(Key::String(text.to_string())),
            _ => None,
        }
    }

    /// Which of two comes first, if they can be compared.
    pub(crate) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::String(a), Self::String(b)) => Some((**a).cmp(b)),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            (Self::Timestamp(a), Self::Timestamp(b)) => Some(a.cmp(b)),
            (Self::Duration(a), Self::Duration(b)) => Some(a.cmp(b)),
            _ => self.compare_number(other),
        }
    }

    fn compare_number(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Double(a), _) => a.partial_cmp(&other.float()?),
            (_, Self::Double(b)) => self.float()?.partial_cmp(b),
            _ => Some(self.whole()?.cmp(&other.whole()?)),
        }
    }

    fn whole(&self) -> Option<i128> {
        match self {
            Self::Int(n) => Some(i128::from(*n)),
            Self::Uint(n) => Some(i128::from(*n)),
            _ => None,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "comparing with a double is inexact")]
    fn float(&self) -> Option<f64> {
        match self {
            Self::Int(n) => Some(*n as f64),
            Self::Uint(n) => Some(*n as f64),
            Self::Double(n) => Some(*n),
            _ => None,
        }
    }

    /// The same, for texts of any length.
    pub(crate) fn compare_within(&self, other: &Self, meter: &Meter) -> Result<Option<Ordering>> {
        meter.work(1)?;
        meter.scan(self.bytes().min(other.bytes()))?;
        Ok(self.compare(other))
    }

    /// How long its text is.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::String(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Url(url) => url.bytes(),
            Self::Semver(version) => version.bytes(),
            Self::Optional(Some(inner)) => inner.bytes(),
            _ => 0,
        }
    }

    /// Whether two are equal; values of different types are not.
    pub(crate) fn equals(&self, other: &Self, meter: &Meter) -> Result<bool> {
        meter.work(1)?;
        if self.bytes() == other.bytes() || matches!(self, Self::Semver(_)) {
            meter.scan(self.bytes())?;
        }
        match (self, other) {
            (Self::Null, Self::Null) => Ok(true),
            (Self::Type(a), Self::Type(b)) => Ok(a == b),
            (Self::Ip(a), Self::Ip(b)) => Ok(a == b),
            (Self::Cidr(a, n), Self::Cidr(b, m)) => Ok(a == b && n == m),
            (Self::Url(a), Self::Url(b)) => Ok(a == b),
            (Self::Quantity(a), Self::Quantity(b)) => Ok(a == b),
            (Self::Semver(a), Self::Semver(b)) => Ok(a.compare(b) == Ordering::Equal),
            (Self::Format(a), Self::Format(b)) => Ok(a.name == b.name),
            (Self::Optional(a), Self::Optional(b)) => match (a, b) {
                (None, None) => Ok(true),
                (Some(a), Some(b)) => a.equals(b, meter),
                _ => Ok(false),
            },
            (Self::Items(..) | Self::List(_), Self::Items(..) | Self::List(_)) => {
                self.equals_list(other, meter)
            }
            (Self::Object(..) | Self::Map(_), Self::Object(..) | Self::Map(_)) => {
                self.equals_map(other, meter)
            }
            _ => Ok(self.compare(other) == Some(Ordering::Equal)),
        }
    }

    fn equals_list(&self, other: &Self, meter: &Meter) -> Result<bool> {
        if self.size() != other.size() {
            return Ok(false);
        }
        // The order of sets and maps says nothing.
        if self.list_type().is_some() {
            let mine = self.items(meter)?;
            for at in 0..other.size() {
                let item = other.item(at, meter)?.unwrap_or(Self::Null);
                if !contains(&mine, &item, meter)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        for at in 0..self.size() {
            match (self.item(at, meter)?, other.item(at, meter)?) {
                (Some(a), Some(b)) if a.equals(&b, meter)? => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// The kind of a list of the request, if its order says nothing.
    pub(crate) fn list_type(&self) -> Option<&'a ListType> {
        let Self::Items(_, Shape::Typed(node, _)) = self else { return None };
        node.list.as_deref().filter(|kind| matches!(kind, ListType::Set | ListType::Map(_)))
    }

    fn equals_map(&self, other: &Self, meter: &Meter) -> Result<bool> {
        if self.size() != other.size() {
            return Ok(false);
        }
        for (key, value) in self.entries(meter)? {
            match other.find(&key, meter)? {
                Some(theirs) if value.equals(&theirs, meter)? => {}
                _ => return Ok(false),
            }
        }
        // Fields no schema knows are compared as they are.
        if let (Self::Object(a, Shape::Typed(node, _)), Self::Object(b, _)) = (self, other)
            && node.has(Flags::PRESERVE)
        {
            for (name, value) in a.iter().filter(|(name, _)| node.field(name).is_none()) {
                meter.work(depth::count(value))?;
                if b.get(name).is_some_and(|theirs| theirs != value) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Whether a list has an element.
pub(crate) fn contains(items: &[Val<'_>], wanted: &Val<'_>, meter: &Meter) -> Result<bool> {
    for item in items {
        if item.equals(wanted, meter)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn element(shape: Shape<'_>) -> Shape<'_> {
    match shape {
        Shape::Typed(node, _) => match &node.items {
            Some(items) => Shape::Typed(items, items.has(Flags::EMBEDDED)),
            None => Shape::Plain,
        },
        other => other,
    }
}

/// Whether fields of an object are named, as opposed to a map.
fn is_object(node: &Node, root: bool) -> bool {
    root || !node.properties.is_empty()
}

/// How a named field is to be read.
fn property<'a>(node: &'a Node, root: bool, name: &str) -> Option<Shape<'a>> {
    if root && !declares_identity(node) {
        match name {
            "apiVersion" | "kind" => return Some(Shape::Name),
            "metadata" => return Some(Shape::Meta),
            _ => {}
        }
    }
    let below = node.property(name)?;
    Some(Shape::Typed(below, below.has(Flags::EMBEDDED)))
}

/// Whether the schema of a resource itself says all that is known of every resource.
pub(crate) fn declares_identity(node: &Node) -> bool {
    let text = |node: &Node, name: &str| {
        node.property(name).is_some_and(|below| below.kind == Some(Kind::String))
    };
    text(node, "kind")
        && text(node, "apiVersion")
        && node.property("metadata").is_some_and(|meta| {
            meta.kind == Some(Kind::Object) && text(meta, "name") && text(meta, "generateName")
        })
}

fn find_field<'a>(
    map: &'a Map<String, Value>,
    shape: Shape<'a>,
    name: &str,
    meter: &Meter,
) -> Result<Option<Val<'a>>> {
    let read = |name: &str, shape| match map.get(name) {
        Some(value) => Val::enter(value, shape, meter).map(Some),
        None => Ok(None),
    };
    match shape {
        Shape::Typed(node, root) if is_object(node, root) => {
            let Some(name) = super::unescape(name) else { return Ok(None) };
            // A null is as good as nothing in a field with a name.
            if map.get(&name).is_none_or(Value::is_null) {
                return Ok(None);
            }
            match property(node, root, &name) {
                Some(below) => read(&name, below),
                None => Ok(None),
            }
        }
        Shape::Typed(node, _) => match node.additional_schema() {
            Some(schema) => read(name, Shape::Typed(schema, schema.has(Flags::EMBEDDED))),
            None => Ok(None),
        },
        Shape::Meta if !matches!(name, "name" | "generateName") => Ok(None),
        Shape::Meta | Shape::Name => read(name, Shape::Name),
        Shape::Plain => read(name, Shape::Plain),
    }
}

fn typed<'a>(value: &'a Value, node: &'a Node, root: bool) -> Result<Val<'a>> {
    if value.is_null() {
        if node.has(Flags::NULLABLE) {
            return Ok(Val::Null);
        }
        return Err(Trouble::new("invalid data, got null for schema with nullable=false"));
    }
    if node.has(Flags::INT_OR_STRING) {
        return match value {
            Value::String(text) => Ok(Val::String(Text::Borrowed(text))),
            Value::Number(n) if n.as_i64().is_some() => Ok(Val::Int(n.as_i64().unwrap_or(0))),
            _ => Err(Trouble::new(
                "invalid data, expected XIntOrString value to be either a string or integer",
            )),
        };
    }
    let root = root || node.has(Flags::EMBEDDED);
    match (node.kind, value) {
        (Some(Kind::Object), Value::Object(map)) => Ok(Val::Object(map, Shape::Typed(node, root))),
        (Some(Kind::Array), Value::Array(items)) => {
            Ok(Val::Items(items, Shape::Typed(node, false)))
        }
        (Some(Kind::String), Value::String(text)) => string(text, node),
        (Some(Kind::Number), Value::Number(n)) => Ok(Val::Double(n.as_f64().unwrap_or_default())),
        (Some(Kind::Integer), Value::Number(n)) => match whole(n) {
            Some(int) => Ok(Val::Int(int)),
            None => Err(Trouble::new("invalid data, expected int, got float64")),
        },
        (Some(Kind::Boolean), Value::Bool(b)) => Ok(Val::Bool(*b)),
        (None, _) if node.has(Flags::PRESERVE) => Val::read(value, Shape::Plain),
        (kind, _) => Err(Trouble::new(format!(
            "invalid data, expected {}",
            kind.map_or("a type", Kind::name)
        ))),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "whole, and within bounds")]
fn whole(number: &serde_json::Number) -> Option<i64> {
    let float = || number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 9e18).map(|n| n as i64);
    number.as_i64().or_else(float)
}

/// A string, in the form its format says.
fn string<'a>(text: &'a str, node: &Node) -> Result<Val<'a>> {
    let format = node.checks.as_ref().and_then(|checks| checks.format.as_ref());
    match format.map_or("", |format| format.name()) {
        "duration" => time::duration(text)
            .map(Val::Duration)
            .ok_or_else(|| Trouble::new(format!("Invalid duration {text}: unable to parse"))),
        "date" => time::timestamp(&format!("{text}T00:00:00Z"))
            .map(Val::Timestamp)
            .ok_or_else(|| Trouble::new(format!("Invalid date formatted string {text}"))),
        "date-time" => time::timestamp(text)
            .map(Val::Timestamp)
            .ok_or_else(|| Trouble::new(format!("Invalid date-time formatted string {text}"))),
        "byte" => {
            use base64::Engine as _;
            base64::engine::general_purpose::STANDARD
                .decode(text)
                .map(|bytes| Val::Bytes(bytes.into()))
                .map_err(|error| {
                    Trouble::new(format!("Invalid byte formatted string {text}: {error}"))
                })
        }
        _ => Ok(Val::String(Text::Borrowed(text))),
    }
}
