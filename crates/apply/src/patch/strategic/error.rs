//! Why a strategic merge patch does not apply, in the words that clients show.

use serde_json::{Map, Value};

use schema::text::{Num, plain};

/// Why a patch does not apply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrategicError {
    /// A directive is malformed.
    #[error("{0}")]
    Malformed(&'static str),
    /// A list of lists is to be merged.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// The patch and the object do not fit each other.
    #[error("{0}")]
    Mismatch(String),
}

impl StrategicError {
    pub(super) const DELETION_LIST: Self =
        Self::Malformed("invalid patch format of primitive list");
    pub(super) const RETAIN_KEYS: Self = Self::Malformed("invalid patch format of retainKeys");
    pub(super) const ORDER_LIST: Self =
        Self::Malformed("invalid patch format of setElementOrder list");

    pub(super) fn unknown_directive(directive: &Value, map: Map<String, Value>) -> Self {
        let shown = match directive {
            Value::String(text) => text.clone(),
            Value::Null => "%!s(<nil>)".to_owned(),
            Value::Bool(_) | Value::Number(_) => {
                format!("%!s({}={})", type_name(directive), plain(directive))
            }
            other => plain(other),
        };
        let map = plain(&Value::Object(map));
        Self::Mismatch(format!("unknown patch type: {shown} in map: {map}"))
    }

    pub(super) fn no_key(map: &Map<String, Value>, key: &str) -> Self {
        let map = plain(&Value::Object(map.clone()));
        Self::Mismatch(format!("map: {map} does not contain declared merge key: {key}"))
    }

    pub(super) fn not_a_map(found: &Value) -> Self {
        Self::wrong_type("map[string]interface {}", found)
    }

    pub(super) fn not_a_list(found: &Value) -> Self {
        Self::wrong_type("[]interface {}", found)
    }

    fn wrong_type(expected: &str, found: &Value) -> Self {
        let found = match found {
            Value::Null => "%!s(<nil>)",
            other => type_name(other),
        };
        Self::Mismatch(format!("expected a {expected}, but received a {found}"))
    }
}

/// The name of a value's type on the server.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(number) => match Num::of(number) {
            Num::Int(_) => "int64",
            Num::Float(_) => "float64",
        },
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
