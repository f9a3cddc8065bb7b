//! What the server says about a field
//!
//! One [`FieldError`] is one cause of a 422. Its `Display` is the text of the real server, and
//! [`FieldError::cause`] is the entry of `Status.details.causes`.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::text;
use crate::object::shortened;

/// The class of a field error, and with it the cause's reason and the first words of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Something referred to does not exist.
    NotFound,
    /// A value is missing.
    Required,
    /// A value that must be unique is not.
    Duplicate,
    /// A value is malformed or out of range.
    Invalid,
    /// A value is not one of those listed.
    NotSupported,
    /// A value is not allowed here.
    Forbidden,
    /// A string is too long.
    TooLong,
    /// A list or map has too many entries.
    TooMany,
    /// A value has the wrong type.
    TypeInvalid,
    /// The server could not check.
    Internal,
}

impl ErrorKind {
    /// The machine-readable reason of the cause.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Internal => "InternalError",
        }
    }

    /// The words the text starts with.
    pub fn title(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Internal => "Internal error",
        }
    }

    /// Whether the offending value is part of the text.
    fn shows_value(self) -> bool {
        !matches!(self, Self::Required | Self::Forbidden | Self::TooLong | Self::Internal)
    }
}

/// The most faults of one kind that are looked for in one object. Somebody who has mended these
/// learns of the others; all of them could be as many as the object has values.
pub(crate) const ERRORS_MAX: usize = 1000;

/// One thing wrong with one field of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// Where, in Kubernetes' notation; `<nil>` for the object as a whole.
    pub path: String,
    /// What class of fault.
    pub kind: ErrorKind,
    /// The sentence after the value; may be empty.
    pub detail: String,
    /// The offending value; `None` where the text leaves it out.
    pub bad_value: Option<Value>,
    /// The value stands for a Go struct or pointer: shown as JSON, fields in their own order.
    field_order: bool,
}

impl FieldError {
    fn new(kind: ErrorKind, path: &Path, bad_value: Option<Value>, detail: String) -> Self {
        Self { path: path.to_string(), kind, detail, bad_value, field_order: false }
    }

    /// Shows the value as JSON, with the fields in their own order instead of sorted.
    #[must_use]
    pub(crate) fn with_field_order(mut self) -> Self {
        self.field_order = true;
        self
    }

    /// "Required value".
    pub fn required(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Required, path, None, detail.into())
    }

    /// "Invalid value".
    pub fn invalid(path: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, path, Some(value.into()), detail.into())
    }

    /// "Invalid value" for a value of the wrong type.
    pub fn type_invalid(path: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::TypeInvalid, path, Some(value.into()), detail.into())
    }

    /// "Duplicate value".
    pub fn duplicate(path: &Path, value: impl Into<Value>) -> Self {
        Self::new(ErrorKind::Duplicate, path, Some(value.into()), String::new())
    }

    /// "Forbidden".
    pub fn forbidden(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Forbidden, path, None, detail.into())
    }

    /// "Internal error".
    pub fn internal(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, path, None, detail.into())
    }

    /// "Unsupported value", with the values that are supported.
    pub fn not_supported<S: AsRef<str>>(
        path: &Path,
        value: impl Into<Value>,
        supported: impl IntoIterator<Item = S>,
    ) -> Self {
        let quoted: Vec<String> = supported.into_iter().map(|s| text::quote(s.as_ref())).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(ErrorKind::NotSupported, path, Some(value.into()), detail)
    }

    /// "Too long".
    pub fn too_long(path: &Path, length_max: i64) -> Self {
        let detail = match length_max {
            ..=-1 => "value is too long".to_owned(),
            1 => "may not be more than 1 byte".to_owned(),
            _ => format!("may not be more than {length_max} bytes"),
        };
        Self::new(ErrorKind::TooLong, path, None, detail)
    }

    /// "Too many".
    pub fn too_many(path: &Path, actual: usize, count_max: i64) -> Self {
        let detail = match count_max {
            ..=-1 => "has too many items".to_owned(),
            1 => "must have at most 1 item".to_owned(),
            _ => format!("must have at most {count_max} items"),
        };
        Self::new(ErrorKind::TooMany, path, Some(json!(actual)), detail)
    }

    /// The text without the path, as causes carry it.
    pub fn message(&self) -> String {
        let mut out = self.kind.title().to_owned();
        if let Some(value) = self.bad_value.as_ref().filter(|_| self.kind.shows_value()) {
            out.push_str(": ");
            match value {
                value if self.field_order => out.push_str(&text::json_in_order(value)),
                Value::String(s) => out.push_str(&text::quote(s)),
                Value::Number(n) => out.push_str(&text::Num::of(n).plain()),
                other => out.push_str(&text::json(other)),
            }
        }
        if !self.detail.is_empty() {
            out.push_str(": ");
            out.push_str(&self.detail);
        }
        out
    }

    /// The entry of `Status.details.causes`.
    pub fn cause(&self) -> Value {
        json!({ "reason": self.kind.reason(), "message": self.message(), "field": self.path })
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message())
    }
}

impl std::error::Error for FieldError {}

/// Several errors in one line, as the message of a 422 lists them: a single one as it is, more
/// in brackets, repetitions once.
pub fn summary(errors: &[FieldError]) -> String {
    let mut seen = HashSet::new();
    let lines = errors.iter().map(ToString::to_string);
    let mut lines: Vec<String> = lines.filter(|line| seen.insert(line.clone())).collect();
    if lines.len() == 1 { lines.swap_remove(0) } else { format!("[{}]", lines.join(", ")) }
}

/// A path to a field, grown one step at a time. Steps are shared and become text only where
/// something is wrong: texts of all paths of an object are much longer than the object.
#[derive(Clone, Debug, Default)]
pub struct Path(Trail);

#[derive(Clone, Debug, Default)]
enum Trail {
    #[default]
    Nil,
    Untold,
    Grown(Arc<Step>),
}

#[derive(Debug)]
struct Step {
    parent: Path,
    name: Box<str>,
    /// In brackets, rather than behind a dot.
    bracketed: bool,
}

/// The longest name of a field that a path shows; whoever writes longer ones knows which.
pub(crate) const NAME_MAX: usize = 512;

impl Path {
    /// No path at all; prints as `<nil>`.
    pub const NIL: Self = Self(Trail::Nil);

    /// A path that is never printed, nor are those below it: steps of it cost nothing. A sound
    /// object is walked along this path; only a faulty one is walked again to name its fields.
    pub(crate) const UNTOLD: Self = Self(Trail::Untold);

    /// A path of one name.
    pub fn new(name: &str) -> Self {
        Self::NIL.child(name)
    }

    /// A named field below this one.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        self.step(name, false)
    }

    /// An element of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        if matches!(self.0, Trail::Untold) {
            return Self::UNTOLD;
        }
        self.key(&index.to_string())
    }

    /// An entry of this map.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.step(key, true)
    }

    fn step(&self, name: &str, bracketed: bool) -> Self {
        if matches!(self.0, Trail::Untold) {
            return Self::UNTOLD;
        }
        let name = shortened(name, NAME_MAX).into();
        Self(Trail::Grown(Arc::new(Step { parent: self.clone(), name, bracketed })))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = match &self.0 {
            Trail::Nil => return f.write_str("<nil>"),
            Trail::Untold => return Ok(()),
            Trail::Grown(step) => step,
        };
        let is_first = matches!(step.parent.0, Trail::Nil);
        if !is_first {
            step.parent.fmt(f)?;
        }
        match (step.bracketed, is_first) {
            (true, _) => write!(f, "[{}]", step.name),
            (false, false) => write!(f, ".{}", step.name),
            (false, true) => f.write_str(&step.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_the_server() {
        let path = Path::new("spec").child("replicas");
        let check = |error: FieldError, text: &str| assert_eq!(error.to_string(), text);
        check(FieldError::required(&path, ""), "spec.replicas: Required value");
        check(
            FieldError::not_supported(&path, "x", ["a", "b"]),
            r#"spec.replicas: Unsupported value: "x": supported values: "a", "b""#,
        );
        check(
            FieldError::too_long(&path, 3),
            "spec.replicas: Too long: may not be more than 3 bytes",
        );
        check(
            FieldError::too_many(&path.index(0), 4, 1),
            "spec.replicas[0]: Too many: 4: must have at most 1 item",
        );
        check(FieldError::invalid(&Path::NIL, Value::Null, "x"), "<nil>: Invalid value: null: x");
        assert_eq!(
            FieldError::duplicate(&path.key("k"), json!({"a": 1})).cause(),
            json!({"reason": "FieldValueDuplicate", "message": r#"Duplicate value: {"a":1}"#, "field": "spec.replicas[k]"})
        );
    }
}
