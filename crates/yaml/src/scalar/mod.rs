//! What a scalar means to Kubernetes tools.
//!
//! The rules are those of go-yaml v2, which `sigs.k8s.io/yaml` uses to turn YAML into JSON, and
//! they are followed where they are odd as well: `08` is the number 8 because it is no octal but
//! still a float, `1e400` is a string because it overflows, `0b-1` is -1. A reading of our own
//! would be tidier and wrong: the cluster decides, and it has decided.
//!
//! A scalar is resolved once and then used as a value ([`Scalar::into_value`]) or as a mapping
//! key ([`Scalar::into_key`]). The two differ: JSON has no infinite numbers, but a key `.inf` is
//! only a string; a key `1e6` is spelled `1e+06`, as Go prints it.

use std::borrow::Cow;

use super::tag::{decode_base64, is_timestamp};
use super::tree::Value;

/// What a scalar resolved to, before it is a value or a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar<'a> {
    /// Nothing.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer that fits 64 bits, signed.
    Int(i64),
    /// A positive integer that only fits 64 bits unsigned.
    UInt(u64),
    /// Any other number, infinities and not-a-number included.
    Float(f64),
    /// A string.
    String(Cow<'a, str>),
}

/// Whether the author quoted a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Written plainly: the text decides the type.
    Plain,
    /// Quoted, literal or folded: a string, unless a tag says otherwise.
    Quoted,
}

/// Why a scalar cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScalarError {
    /// The tag asks for a type the text does not have.
    #[error("`{text}` is not a {tag}")]
    Tag {
        /// The scalar's text.
        text: String,
        /// The tag, as `!!int`.
        tag: String,
    },
    /// A `!!binary` scalar is no base64, or does not hold UTF-8 text.
    #[error("the !!binary value is not base64 of UTF-8 text")]
    Binary,
    /// JSON, and so Kubernetes, has no such number.
    #[error("`{0}` is not a number JSON can carry")]
    NotFinite(&'static str),
    /// JSON keys are strings, and this kind of key has no agreed spelling.
    #[error("a mapping key cannot be {0}")]
    Key(&'static str),
}

/// The prefix of YAML's own tags.
const YAML_TAG: &str = "tag:yaml.org,2002:";

/// Resolves a scalar from its text, how it was written and its full tag, if it has one.
pub fn resolve<'a>(
    text: Cow<'a, str>,
    style: Style,
    tag: Option<&str>,
) -> Result<Scalar<'a>, ScalarError> {
    match (tag, style) {
        (None, Style::Quoted) => Ok(Scalar::String(text)),
        (None, Style::Plain) => Ok(plain(&text).unwrap_or(Scalar::String(text))),
        (Some(tag), _) => match tag.strip_prefix(YAML_TAG) {
            Some(name) => tagged(text, name),
            // Nobody gave other tags a meaning, `!` included: the text stays what it is.
            None => Ok(Scalar::String(text)),
        },
    }
}

impl<'a> Scalar<'a> {
    /// The scalar as a value of the tree.
    ///
    /// Whole floats become integers, because that is what arrives at the API server: Go writes
    /// `1.0` as `1` into JSON. Beyond 2^53 the float no longer names one integer and stays.
    pub fn into_value(self) -> Result<Value<'a>, ScalarError> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Int(value) => Value::Int(value),
            Self::UInt(value) => Value::UInt(value),
            Self::Float(value) if value.is_nan() => return Err(ScalarError::NotFinite(".nan")),
            Self::Float(value) if value.is_infinite() => {
                let name = if value > 0.0 { ".inf" } else { "-.inf" };
                return Err(ScalarError::NotFinite(name));
            }
            Self::Float(value) => whole(value).map_or(Value::Float(value), Value::Int),
            Self::String(text) => Value::String(text),
        })
    }

    /// The scalar as a mapping key, spelled as `sigs.k8s.io/yaml` spells it.
    pub fn into_key(self) -> Result<Cow<'a, str>, ScalarError> {
        Ok(match self {
            Self::Null => return Err(ScalarError::Key("null")),
            Self::Bool(true) => Cow::Borrowed("true"),
            Self::Bool(false) => Cow::Borrowed("false"),
            Self::Int(value) => Cow::Owned(value.to_string()),
            Self::UInt(_) => return Err(ScalarError::Key("an integer above 9223372036854775807")),
            Self::Float(value) => float_key(value),
            Self::String(text) => text,
        })
    }
}

/// The integer a float names exactly, if it does.
fn whole(value: f64) -> Option<i64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
    (value.fract() == 0.0 && value.abs() <= EXACT_MAX).then_some(value as i64)
}

/// Go's `FormatFloat(value, 'g', -1, 32)`, with YAML's words for what is no number.
fn float_key(value: f64) -> Cow<'static, str> {
    #[expect(clippy::cast_possible_truncation, reason = "the original keeps 32 bits of a key")]
    let single = value as f32;
    if single.is_nan() {
        return Cow::Borrowed(".nan");
    }
    if single.is_infinite() {
        return Cow::Borrowed(if single > 0.0 { ".inf" } else { "-.inf" });
    }
    let scientific = format!("{single:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // Go turns to exponents below 1e-4 and from 1e6 on, and writes them with sign and two digits.
    Cow::Owned(if (-4..6).contains(&exponent) {
        single.to_string()
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
    })
}

/// A scalar with one of YAML's own tags; `name` is what follows `!!`.
fn tagged<'a>(text: Cow<'a, str>, name: &str) -> Result<Scalar<'a>, ScalarError> {
    let mismatch =
        |text: Cow<'a, str>| ScalarError::Tag { text: text.into_owned(), tag: format!("!!{name}") };
    match name {
        "binary" => decode_base64(&text)
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .map(|text| Scalar::String(Cow::Owned(text)))
            .ok_or(ScalarError::Binary),
        "timestamp" if is_timestamp(&text) => Ok(Scalar::String(text)),
        "timestamp" => Err(mismatch(text)),
        "bool" | "int" | "float" | "null" => match (name, plain(&text)) {
            ("bool", Some(value @ Scalar::Bool(_)))
            | ("int", Some(value @ (Scalar::Int(_) | Scalar::UInt(_))))
            | ("float", Some(value @ Scalar::Float(_)))
            | ("null", Some(value @ Scalar::Null)) => Ok(value),
            #[expect(clippy::cast_precision_loss, reason = "asked for by the tag")]
            ("float", Some(Scalar::Int(value))) => Ok(Scalar::Float(value as f64)),
            _ => Err(mismatch(text)),
        },
        _ => Ok(Scalar::String(text)),
    }
}

/// Whether a plain text would be read as something other than that text, here or by older readers:
/// then it must be quoted to stay text.
pub(crate) fn means_more_than_text(text: &str) -> bool {
    let sexagesimal =
        || text.starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c)) && is_base_60(text);
    text == "<<" || plain(text).is_some() || is_timestamp(text) || sexagesimal()
}

/// Whether a plain scalar is text, and not a number or a word with a meaning.
pub(crate) fn is_text(text: &str) -> bool {
    plain(text).is_none()
}

/// `[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?`, a number in YAML 1.1 that nobody reads any more.
fn is_base_60(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    let is_part = |part: &str| match part.as_bytes() {
        [tens, ones] => (b'0'..=b'5').contains(tens) && ones.is_ascii_digit(),
        [ones] => ones.is_ascii_digit(),
        _ => false,
    };
    let starts = first.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    let rest = whole.contains(':') && parts.all(is_part);
    starts && rest && is_digits(first) && is_digits(fraction)
}

/// What a plain scalar means, if not the string it is.
fn plain(text: &str) -> Option<Scalar<'static>> {
    // The first character is enough to know that most scalars are strings.
    match text.bytes().next() {
        None => Some(Scalar::Null),
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~') => {
            word(text)
        }
        Some(b'.') => match text {
            ".nan" | ".NaN" | ".NAN" => Some(Scalar::Float(f64::NAN)),
            ".inf" | ".Inf" | ".INF" => Some(Scalar::Float(f64::INFINITY)),
            _ => point_float(text),
        },
        Some(b'+' | b'-' | b'0'..=b'9') => match text {
            "+.inf" | "+.Inf" | "+.INF" => Some(Scalar::Float(f64::INFINITY)),
            "-.inf" | "-.Inf" | "-.INF" => Some(Scalar::Float(f64::NEG_INFINITY)),
            _ => number(text),
        },
        Some(_) => None,
    }
}

/// The words YAML 1.1 reserves; only these capitalisations count.
fn word(text: &str) -> Option<Scalar<'static>> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Some(Scalar::Bool(true))
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Some(Scalar::Bool(false))
        }
        "~" | "null" | "Null" | "NULL" => Some(Scalar::Null),
        _ => None,
    }
}

/// A scalar that starts with a digit or a sign: integer first, then float.
fn number(text: &str) -> Option<Scalar<'static>> {
    // Dates, addresses and image digests start with digits too; most stop being numbers early.
    if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte)) {
        return None;
    }
    let text: Cow<'_, str> =
        if text.contains('_') { Cow::Owned(text.replace('_', "")) } else { Cow::Borrowed(text) };
    integer(&text).or_else(|| float(&text)).or_else(|| {
        // Left over from the original's own binary branch, which takes a sign after the prefix.
        let digits = text.strip_prefix("0b")?;
        i64::from_str_radix(digits, 2).ok().map(Scalar::Int)
    })
}

/// Go's `ParseInt` and `ParseUint` with base 0.
fn integer(text: &str) -> Option<Scalar<'static>> {
    let (sign, digits) = match text.as_bytes().first()? {
        sign @ (b'+' | b'-') => (Some(*sign), &text[1..]),
        _ => (None, text),
    };
    let magnitude = magnitude(digits)?;
    match sign {
        // `0 - magnitude` reaches the smallest integer, which has no positive counterpart.
        Some(b'-') => 0_i64.checked_sub_unsigned(magnitude).map(Scalar::Int),
        _ => match (i64::try_from(magnitude), sign) {
            (Ok(value), _) => Some(Scalar::Int(value)),
            (Err(_), None) => Some(Scalar::UInt(magnitude)),
            (Err(_), Some(_)) => None,
        },
    }
}

/// An unsigned integer with the prefixes Go knows, `0` alone meaning octal.
fn magnitude(text: &str) -> Option<u64> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (&text[2..], 16),
        [b'0', b'o' | b'O', _, ..] => (&text[2..], 8),
        [b'0', b'b' | b'B', _, ..] => (&text[2..], 2),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    // The standard parser takes a second sign, Go does not.
    if !digits.as_bytes().first()?.is_ascii_alphanumeric() {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

/// A decimal float with optional sign; overflow makes it a string.
fn float(text: &str) -> Option<Scalar<'static>> {
    if !float_shape(text.as_bytes()) {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    value.is_finite().then_some(Scalar::Float(value))
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn float_shape(text: &[u8]) -> bool {
    fn digits(text: &[u8]) -> usize {
        text.iter().take_while(|byte| byte.is_ascii_digit()).count()
    }
    fn unsigned(text: &[u8]) -> &[u8] {
        match text {
            [b'+' | b'-', rest @ ..] => rest,
            _ => text,
        }
    }
    let text = unsigned(text);
    let before = digits(text);
    let mut rest = &text[before..];
    if let [b'.', fraction @ ..] = rest {
        let after = digits(fraction);
        if before + after == 0 {
            return false;
        }
        rest = &fraction[after..];
    } else if before == 0 {
        return false;
    }
    match rest {
        [] => true,
        [b'e' | b'E', exponent @ ..] => {
            let exponent = unsigned(exponent);
            !exponent.is_empty() && digits(exponent) == exponent.len()
        }
        _ => false,
    }
}

/// A float that starts with its point. Here `_` may only stand between digits, unlike elsewhere.
fn point_float(text: &str) -> Option<Scalar<'static>> {
    if !text.contains('_') {
        return float(text);
    }
    let bytes = text.as_bytes();
    let digit_at =
        |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let between_digits = bytes.iter().enumerate().all(|(at, byte)| {
        *byte != b'_' || (digit_at(at.checked_sub(1)) && digit_at(at.checked_add(1)))
    });
    if between_digits { float(&text.replace('_', "")) } else { None }
}

#[cfg(test)]
mod tests;
