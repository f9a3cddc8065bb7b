//! A request's options, from its query string.

use std::num::{IntErrorKind, ParseIntError};

use serde_json::json;

use super::status::Failure;
use super::target::percent_decode;
use schema::object::field_error::FieldError;

/// The query string as pairs.
#[derive(Debug, Clone, Default)]
pub struct Query(Vec<(String, String)>);

/// What to do about fields nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drop them.
    Ignore,
    /// Drop them and say so.
    Warn,
    /// Refuse the request.
    Strict,
}

/// Options of writes.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// Whether nothing is to be stored.
    pub dry_run: bool,
    /// What to do about unknown fields.
    pub validation: FieldValidation,
    /// Who writes.
    pub manager: String,
    /// Whether conflicts with other appliers are to be won.
    pub force: bool,
}

impl Query {
    /// Takes `a=b&c=d` apart.
    pub fn parse(text: &str) -> Self {
        let decode = |text: &str| percent_decode(&text.replace('+', " "));
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(key, value)| (decode(key), decode(value)))
                .collect(),
        )
    }

    /// The first value of `key`; nothing is the same as empty.
    pub fn get(&self, key: &str) -> &str {
        self.0.iter().find(|(name, _)| name == key).map_or("", |(_, value)| value)
    }

    /// All values of `key`.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Whether `key` is there and does not say no.
    pub fn flag(&self, key: &str) -> bool {
        self.0.iter().any(|(name, value)| name == key && value != "false" && value != "0")
    }

    /// A whole number of 64 bits with a sign, as Go reads one; nothing where none is given.
    ///
    /// Strangers write these: whoever calculates with one bounds it first.
    pub fn number(&self, key: &str) -> Result<Option<i64>, Failure> {
        match self.get(key) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|error| {
                Failure::bad_request(format!("strconv.ParseInt: parsing {}", unread(text, &error)))
            }),
        }
    }

    /// Options of a write, checked. `options` is the name used in messages.
    pub fn write_options(&self, options: &str, agent: &str) -> Result<WriteOptions, Failure> {
        let mut wrong = Vec::new();
        let dry: Vec<&str> = self.all("dryRun").filter(|value| !value.is_empty()).collect();
        if dry.iter().any(|value| *value != "All") {
            let shown: Vec<_> = dry.iter().map(|one| json!(one)).collect();
            wrong.push(FieldError {
                reason: "FieldValueNotSupported",
                field: "dryRun".to_owned(),
                message: format!(
                    "Unsupported value: {}: supported values: \"All\"",
                    serde_json::Value::Array(shown)
                ),
            });
        }
        let validation = match self.get("fieldValidation") {
            "Ignore" => FieldValidation::Ignore,
            "" | "Warn" => FieldValidation::Warn,
            "Strict" => FieldValidation::Strict,
            other => {
                let allowed = ["", "Ignore", "Strict", "Warn"];
                wrong.push(FieldError::not_supported("fieldValidation", other, &allowed));
                FieldValidation::Warn
            }
        };
        let manager = self.get("fieldManager");
        if manager.len() > 128 {
            wrong.push(FieldError {
                reason: "FieldValueTooLong",
                field: "fieldManager".to_owned(),
                message: "Too long: may not be more than 128 bytes".to_owned(),
            });
        }
        if let Some((at, _)) = manager.char_indices().find(|(_, c)| c.is_control()) {
            let detail = format!("invalid character {manager:?} (at position {at})");
            wrong.push(FieldError::invalid("fieldManager", &json!(manager), &detail));
        }
        if !wrong.is_empty() {
            return Err(Failure::invalid_options(options, &wrong));
        }
        let manager = match manager {
            "" => agent.split('/').next().unwrap_or_default().chars().take(128).collect(),
            named => named.to_owned(),
        };
        Ok(WriteOptions {
            dry_run: !dry.is_empty(),
            validation,
            manager,
            force: self.flag("force"),
        })
    }
}

/// What Go says of a text that is not the number it should be.
pub fn unread(text: &str, error: &ParseIntError) -> String {
    let why = match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
        _ => "invalid syntax",
    };
    format!("{text:?}: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h2_numbers_are_read_as_go_reads_them() {
        let read = |text: &str| {
            let number = Query::parse(&format!("n={text}")).number("n");
            number.map_err(|failure| (failure.code, failure.message))
        };
        assert_eq!(Query::parse("").number("n"), Ok(None));
        assert_eq!(read("42"), Ok(Some(42)));
        assert_eq!(read("-9223372036854775808"), Ok(Some(i64::MIN)));
        let wrong = |text: &str, why: &str| {
            Err((400, format!("strconv.ParseInt: parsing {text:?}: {why}")))
        };
        for text in ["9223372036854775808", "18446744073709551615", "-9223372036854775809"] {
            assert_eq!(read(text), wrong(text, "value out of range"));
        }
        for text in ["x", "1.5", "1e3", "0x10", "-"] {
            assert_eq!(read(text), wrong(text, "invalid syntax"));
        }
    }
}
