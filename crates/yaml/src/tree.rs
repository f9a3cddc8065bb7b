//! One YAML document as a tree that remembers where everything stood.
//!
//! Strings borrow from the source text where the author wrote them plainly, so that reading a
//! large package allocates little. Values already follow the scalar rules Kubernetes tools use
//! (see [`super::scalar`]); positions are what a person's editor shows: lines and columns from 1.

use std::borrow::Cow;

/// A place in a text: line and column, both counted from 1, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

/// A value and where it starts.
#[derive(Clone, Debug, PartialEq)]
pub struct Node<'a> {
    /// What stands there.
    pub value: Value<'a>,
    /// Where it starts.
    pub position: Position,
}

/// What a YAML node means to Kubernetes tools: JSON's types, numbers kept apart.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// `null`, `~` or nothing.
    Null,
    /// A boolean, YAML 1.1 spellings included.
    Bool(bool),
    /// An integer that fits 64 bits, signed.
    Int(i64),
    /// A positive integer that only fits 64 bits unsigned.
    UInt(u64),
    /// Any other finite number.
    Float(f64),
    /// A string.
    String(Cow<'a, str>),
    /// A sequence.
    Sequence(Vec<Node<'a>>),
    /// A mapping, in the order written; keys are unique.
    Mapping(Vec<Entry<'a>>),
}

/// One `key: value` of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<'a> {
    /// The key, as the string JSON would have.
    pub key: Cow<'a, str>,
    /// Where the key starts.
    pub position: Position,
    /// The value.
    pub value: Node<'a>,
}

impl<'a> Node<'a> {
    /// The value under `key`, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// The entry under `key`, for those who also need the key's position.
    pub fn entry(&self, key: &str) -> Option<&Entry<'a>> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// The value at the end of a path of mapping keys.
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// The string, if this is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self.value {
            Value::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The items of a sequence; empty for anything else.
    pub fn items(&self) -> &[Self] {
        match &self.value {
            Value::Sequence(items) => items,
            _ => &[],
        }
    }

    /// The entries of a mapping; empty for anything else.
    pub fn entries(&self) -> &[Entry<'a>] {
        match &self.value {
            Value::Mapping(entries) => entries,
            _ => &[],
        }
    }

    /// Whether the value is null.
    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// The type's name, as error messages say it.
    pub fn type_name(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Int(_) | Value::UInt(_) => "integer",
            Value::Float(_) => "number",
            Value::String(_) => "string",
            Value::Sequence(_) => "sequence",
            Value::Mapping(_) => "mapping",
        }
    }

    /// The same value as JSON, positions forgotten.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Int(value) => Json::from(*value),
            Value::UInt(value) => Json::from(*value),
            Value::Float(value) => Json::from(*value),
            Value::String(text) => Json::String(text.clone().into_owned()),
            Value::Sequence(items) => Json::Array(items.iter().map(Self::to_json).collect()),
            Value::Mapping(entries) => Json::Object(
                entries
                    .iter()
                    .map(|entry| (entry.key.clone().into_owned(), entry.value.to_json()))
                    .collect(),
            ),
        }
    }
}
