//! One step of a path, its order and its texts.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::FieldsError;
use crate::golang::{self, Style};
use crate::value::{self, Numeric};

/// Chooses one child of a map or list.
#[derive(Debug, Clone)]
pub enum PathElement {
    /// A field of a map, by name.
    Field(Arc<str>),
    /// An item of a list of maps, by its key fields, sorted by name.
    Key(Arc<[(Box<str>, Value)]>),
    /// An item of a set, by its value.
    Value(Arc<Value>),
    /// An item of a list, by position.
    Index(i64),
    /// An item that has no identity: its keys are missing. It cannot be written.
    Unidentified,
}

impl PathElement {
    /// A field by name.
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// A list item by its key fields, in any order.
    pub fn key(fields: impl IntoIterator<Item = (String, Value)>) -> Self {
        let mut fields: Vec<(Box<str>, Value)> =
            fields.into_iter().map(|(name, value)| (name.into_boxed_str(), value)).collect();
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        Self::Key(fields.into())
    }

    /// A set item by its value.
    pub fn value(value: Value) -> Self {
        Self::Value(Arc::new(value))
    }

    /// The key this element has in `fieldsV1`; nothing for an unidentified item.
    pub fn to_key(&self) -> Option<String> {
        match self {
            Self::Field(name) => Some(["f:", name].concat()),
            Self::Key(fields) => {
                let mut out = String::from("k:{");
                for (i, (name, value)) in fields.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    golang::json_name(name, &mut out);
                    out.push(':');
                    golang::json(value, Style::Merge, &mut out);
                }
                out.push('}');
                Some(out)
            }
            Self::Value(value) => {
                let mut out = String::from("v:");
                golang::json(value, Style::Merge, &mut out);
                Some(out)
            }
            Self::Index(index) => Some(format!("i:{index}")),
            Self::Unidentified => None,
        }
    }

    /// Reads a key of `fieldsV1`; nothing for a kind of element this version does not know.
    pub fn from_key(key: &str) -> Result<Option<Self>, FieldsError> {
        let bytes = key.as_bytes();
        if bytes.len() < 2 {
            return Err(FieldsError::ShortKey { key: key.to_owned() });
        }
        if bytes[1] != b':' {
            return Err(FieldsError::NoColon { key: key.to_owned() });
        }
        let rest = key.get(2..).unwrap_or_default();
        let bad = || FieldsError::BadKey { key: key.to_owned() };
        match bytes[0] {
            b'f' => Ok(Some(Self::field(rest))),
            b'v' => Ok(Some(Self::value(read_value(rest).ok_or_else(bad)?))),
            b'k' => match read_value(rest).ok_or_else(bad)? {
                Value::Object(map) => Ok(Some(Self::key(map))),
                _ => Err(bad()),
            },
            b'i' => Ok(Some(Self::Index(rest.parse().map_err(|_| bad())?))),
            _ => Ok(None),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
            Self::Unidentified => 4,
        }
    }
}

/// Reads the first JSON value of a text; what follows it is ignored, as the server ignores it.
fn read_value(text: &str) -> Option<Value> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    Some(as_floats(values.next()?.ok()?))
}

/// Numbers read from a key are floats on the server, so large ones lose digits there too.
fn as_floats(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            #[expect(clippy::cast_possible_truncation, reason = "within 53 bits")]
            Some(float) if float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0 => {
                Value::from(float as i64)
            }
            Some(float) => Value::from(float),
            None => Value::Number(number),
        },
        Value::Array(items) => Value::Array(items.into_iter().map(as_floats).collect()),
        Value::Object(map) => {
            Value::Object(map.into_iter().map(|(key, value)| (key, as_floats(value))).collect())
        }
        other => other,
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => {
                if Arc::ptr_eq(a, b) {
                    Ordering::Equal
                } else {
                    a.cmp(b)
                }
            }
            (Self::Key(a), Self::Key(b)) => compare_keys(a, b),
            (Self::Value(a), Self::Value(b)) => value::compare(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }
}

fn compare_keys(a: &[(Box<str>, Value)], b: &[(Box<str>, Value)]) -> Ordering {
    let unequal = a
        .iter()
        .zip(b)
        .map(|((ka, va), (kb, vb))| ka.cmp(kb).then_with(|| value::compare(va, vb)))
        .find(|order| order.is_ne());
    unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", text(value))?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={}]", text(value)),
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Unidentified => f.write_str("{{invalid path element}}"),
        }
    }
}

/// A value inside a printed path.
fn text(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(bool) => out.push_str(if *bool { "true" } else { "false" }),
        Value::Number(number) => golang::plain_number(Numeric::of(number), &mut out),
        Value::String(string) => golang::quote(string, &mut out),
        Value::Array(items) => {
            out = format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(","));
        }
        Value::Object(map) => {
            for (key, value) in value::sorted(map) {
                out.push_str(key);
                out.push('=');
                out.push_str(&text(value));
            }
        }
    }
    out
}

/// The way from an object to one of its fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<PathElement>);

impl Path {
    /// A path of field names.
    pub fn fields<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(names.into_iter().map(PathElement::field).collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}
