//! What is wrong with one field, in Kubernetes' words.

use serde_json::{Value, json};

/// One thing wrong with an object.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// `FieldValueInvalid` and its kin.
    pub reason: &'static str,
    /// Which field, as a path.
    pub field: String,
    /// What is wrong, without the path.
    pub message: String,
}

impl FieldError {
    /// A value that is not allowed.
    pub fn invalid(field: &str, value: &Value, detail: &str) -> Self {
        Self {
            reason: "FieldValueInvalid",
            field: field.to_owned(),
            message: format!("Invalid value: {}: {detail}", quote(value)),
        }
    }

    /// A value that must be there.
    pub fn required(field: &str, detail: &str) -> Self {
        let message = match detail {
            "" => "Required value".to_owned(),
            _ => format!("Required value: {detail}"),
        };
        Self { reason: "FieldValueRequired", field: field.to_owned(), message }
    }

    /// Something that may not be done.
    pub fn forbidden(field: &str, detail: &str) -> Self {
        Self {
            reason: "FieldValueForbidden",
            field: field.to_owned(),
            message: format!("Forbidden: {detail}"),
        }
    }

    /// A value outside a list.
    pub fn not_supported(field: &str, value: &str, allowed: &[&str]) -> Self {
        let allowed: Vec<String> = allowed.iter().map(|one| format!("{one:?}")).collect();
        Self {
            reason: "FieldValueNotSupported",
            field: field.to_owned(),
            message: format!(
                "Unsupported value: {value:?}: supported values: {}",
                allowed.join(", ")
            ),
        }
    }

    /// A fault that a schema found.
    pub fn of(fault: &crate::FieldError) -> Self {
        let cause = fault.cause();
        let text = |field: &str| cause[field].as_str().unwrap_or_default().to_owned();
        Self { reason: fault.kind.reason(), field: text("field"), message: text("message") }
    }

    /// As one of `details.causes`.
    pub fn cause(&self) -> Value {
        json!({"reason": self.reason, "message": self.message, "field": self.field})
    }

    /// Path and message, as in the sentence.
    pub fn sentence(&self) -> String {
        format!("{}: {}", self.field, self.message)
    }
}

fn quote(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        other => other.to_string(),
    }
}
