//! Static types.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What is known of a value before it exists.
#[derive(Clone, Debug)]
pub enum Type {
    /// Known when the value is.
    Dyn,
    /// `null`.
    Null,
    /// `bool`.
    Bool,
    /// `int`.
    Int,
    /// `uint`.
    Uint,
    /// `double`.
    Double,
    /// `string`.
    String,
    /// `bytes`.
    Bytes,
    /// `google.protobuf.Timestamp`.
    Timestamp,
    /// `google.protobuf.Duration`.
    Duration,
    /// A list, by its items.
    List(Arc<Self>),
    /// A map, by its keys and values.
    Map(Arc<Self>, Arc<Self>),
    /// An object with known fields.
    Object(Arc<Object>),
    /// An optional value.
    Optional(Arc<Self>),
    /// A type as a value.
    Meta(Arc<Self>),
    /// A type of a library, such as `kubernetes.Quantity`.
    Named(&'static str),
    /// Stands for any type in a signature.
    Param(char),
}

/// An object of which the fields are known.
#[derive(Debug)]
pub struct Object {
    /// Says which object of the schema it is: equal shapes elsewhere are other types.
    pub name: String,
    /// The fields by name.
    pub fields: BTreeMap<String, Type>,
}

impl Type {
    /// A list of these.
    pub fn list(of: Self) -> Self {
        Self::List(Arc::new(of))
    }

    /// A map from these to those.
    pub fn map(key: Self, value: Self) -> Self {
        Self::Map(Arc::new(key), Arc::new(value))
    }

    pub(crate) fn optional(of: Self) -> Self {
        Self::Optional(Arc::new(of))
    }

    /// Whether a value of this type can be null.
    fn takes_null(&self) -> bool {
        matches!(
            self,
            Self::Null | Self::Timestamp | Self::Duration | Self::Object(_) | Self::Named(_)
        )
    }

    /// Whether a value of type `other` fits here; binds parameters.
    pub(crate) fn accepts(&self, other: &Self, bound: &mut BTreeMap<char, Self>) -> bool {
        match (self, other) {
            (Self::Param(name), _) => {
                let Some(known) = bound.get(name).cloned() else {
                    bound.insert(*name, other.clone());
                    return true;
                };
                if known.accepts(other, &mut BTreeMap::new()) {
                    return true;
                }
                let wider = other.accepts(&known, &mut BTreeMap::new());
                if wider {
                    bound.insert(*name, other.clone());
                }
                wider
            }
            (Self::Dyn, _) | (_, Self::Dyn) => true,
            (Self::Null, to) | (to, Self::Null) => to.takes_null(),
            (Self::List(a), Self::List(b))
            | (Self::Optional(a), Self::Optional(b))
            | (Self::Meta(a), Self::Meta(b)) => a.accepts(b, bound),
            (Self::Map(k, v), Self::Map(l, w)) => k.accepts(l, bound) && v.accepts(w, bound),
            (Self::Object(a), Self::Object(b)) => a.name == b.name,
            (Self::Named(a), Self::Named(b)) => a == b,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// The type with its parameters filled in.
    pub(crate) fn filled(&self, bound: &BTreeMap<char, Self>) -> Self {
        match self {
            Self::Param(name) => bound.get(name).cloned().unwrap_or(Self::Dyn),
            Self::List(of) => Self::list(of.filled(bound)),
            Self::Optional(of) => Self::optional(of.filled(bound)),
            Self::Meta(of) => Self::Meta(Arc::new(of.filled(bound))),
            Self::Map(key, value) => Self::map(key.filled(bound), value.filled(bound)),
            other => other.clone(),
        }
    }

    /// Reads the notation of the signatures.
    pub(crate) fn parse(text: &'static str) -> Self {
        let (name, inner) = match text.split_once('(') {
            Some((name, rest)) => (name, rest.strip_suffix(')').unwrap_or(rest)),
            None => (text, ""),
        };
        match name {
            "dyn" => Self::Dyn,
            "null_type" => Self::Null,
            "bool" => Self::Bool,
            "int" => Self::Int,
            "uint" => Self::Uint,
            "double" => Self::Double,
            "string" => Self::String,
            "bytes" => Self::Bytes,
            "timestamp" => Self::Timestamp,
            "duration" => Self::Duration,
            "list" => Self::list(Self::parse(inner)),
            "optional" => Self::optional(Self::parse(inner)),
            "type" => Self::Meta(Arc::new(Self::parse(inner))),
            "map" => {
                let (key, value) = inner.split_once(',').unwrap_or((inner, "dyn"));
                Self::map(Self::parse(key), Self::parse(value))
            }
            "A" | "B" => Self::Param(name.chars().next().unwrap_or('A')),
            "ip" => Self::Named("net.IP"),
            "cidr" => Self::Named("net.CIDR"),
            "url" => Self::Named("kubernetes.URL"),
            "quantity" => Self::Named("kubernetes.Quantity"),
            "semver" => Self::Named("kubernetes.Semver"),
            "format" => Self::Named("kubernetes.NamedFormat"),
            other => Self::Named(other),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dyn => "dyn",
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Timestamp => "timestamp",
            Self::Duration => "duration",
            Self::List(of) => return write!(f, "list({of})"),
            Self::Map(key, value) => return write!(f, "map({key}, {value})"),
            Self::Object(object) => &object.name,
            Self::Optional(of) => return write!(f, "optional_type({of})"),
            Self::Meta(of) => return write!(f, "type({of})"),
            Self::Named(name) => name,
            Self::Param(name) => return write!(f, "{name}"),
        })
    }
}
