//! Values as Go prints them
//!
//! Error messages of the API server carry values in three of Go's notations: quoted strings
//! (`%q`), plain values (`%v`) and JSON as `encoding/json` writes it (sorted keys, `<`, `>` and
//! `&` escaped). Clients compare messages, so each is reproduced to the byte.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// A number as the server holds it after decoding: integers that fit 64 bits signed, or floats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Num {
    /// An integer literal within `i64`.
    Int(i64),
    /// Everything else.
    Float(f64),
}

impl Num {
    /// Classifies a JSON number.
    pub fn of(number: &Number) -> Self {
        match number.as_i64() {
            Some(int) => Self::Int(int),
            None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
        }
    }

    /// The nearest float.
    #[expect(clippy::cast_precision_loss, reason = "Go's float64(int64) rounds the same way")]
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Float(float) => float,
        }
    }

    /// As `%v` prints it.
    pub fn plain(self) -> String {
        match self {
            Self::Int(int) => int.to_string(),
            Self::Float(float) => self::float(float),
        }
    }
}

/// `%q`: a double-quoted Go string literal.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            ' '..='~' => out.push(c),
            c if c < ' ' || c == '\u{7f}' => _ = write!(out, "\\x{:02x}", u32::from(c)),
            c if printable(c) => out.push(c),
            c if u32::from(c) < 0x1_0000 => _ = write!(out, "\\u{:04x}", u32::from(c)),
            c => _ = write!(out, "\\U{:08x}", u32::from(c)),
        }
    }
    out.push('"');
    out
}

/// Whether Go prints a character beyond ASCII as itself.
fn printable(c: char) -> bool {
    if c.is_control() || c.is_whitespace() {
        return false;
    }
    // The standard library escapes what has no glyph; the leading letter keeps combining marks.
    let probe: String = ['a', c].into_iter().collect();
    !probe.escape_debug().to_string().contains("\\u")
}

/// `%v` of a float: shortest digits, with an exponent below 1e-4 and from 1e6 on.
pub fn float(value: f64) -> String {
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".to_owned() } else { "0".to_owned() };
    }
    if !value.is_finite() {
        let name = if value.is_nan() { "NaN" } else { "Inf" };
        let sign = if value.is_nan() || value > 0.0 { "+" } else { "-" };
        return if value.is_nan() { name.to_owned() } else { format!("{sign}{name}") };
    }
    let scientific = format!("{value:e}");
    let exponent = exponent_of(&scientific);
    if (-4..6).contains(&exponent) { format!("{value}") } else { with_exponent(&scientific, 2) }
}

/// A float as `encoding/json` writes it.
fn json_float(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        return with_exponent(&format!("{value:e}"), 1);
    }
    format!("{value}")
}

fn exponent_of(scientific: &str) -> i32 {
    scientific.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0)
}

/// `1.5e-7` with a signed exponent of at least `width` digits (`encoding/json` keeps two for
/// positive exponents and strips one zero from negative ones).
fn with_exponent(scientific: &str, width: usize) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    match exponent.strip_prefix('-') {
        Some(digits) => format!("{mantissa}e-{digits:0>width$}"),
        None => format!("{mantissa}e+{exponent:0>2}"),
    }
}

/// JSON as Go's `encoding/json` writes it: keys sorted, HTML characters escaped.
pub fn json(value: &Value) -> String {
    let mut out = String::new();
    write_json(&mut out, value, true);
    out
}

/// The same for a value that stands for a struct: keys in their own order.
pub fn json_in_order(value: &Value) -> String {
    let mut out = String::new();
    write_json(&mut out, value, false);
    out
}

fn write_json(out: &mut String, value: &Value, sorted: bool) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Number(n) => match Num::of(n) {
            Num::Int(int) => _ = write!(out, "{int}"),
            Num::Float(float) => out.push_str(&json_float(float)),
        },
        Value::String(s) => write_json_string(out, s),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_json(out, item, sorted);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            if sorted {
                keys.sort();
            }
            out.push('{');
            for (i, key) in keys.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_json_string(out, key);
                out.push(':');
                write_json(out, &map[key], sorted);
            }
            out.push('}');
        }
    }
}

fn write_json_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => _ = write!(out, "\\u{:04x}", u32::from(c)),
            c if c < ' ' => _ = write!(out, "\\u{:04x}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// `%v` of a decoded JSON value.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => Num::of(n).plain(),
        Value::String(s) => s.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            let entries: Vec<String> =
                entries.into_iter().map(|(key, value)| format!("{key}:{}", plain(value))).collect();
            format!("map[{}]", entries.join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn floats_are_printed_as_go_prints_them() {
        let check = |value: f64, plain: &str, json: &str| {
            assert_eq!(super::float(value), plain);
            assert_eq!(super::json_float(value), json);
        };
        check(1.5, "1.5", "1.5");
        check(1e20, "1e+20", "100000000000000000000");
        check(123_456_789.25, "1.2345678925e+08", "123456789.25");
        check(1e21, "1e+21", "1e+21");
        check(-2.5e-7, "-2.5e-07", "-2.5e-7");
        check(1e-5, "1e-05", "0.00001");
        check(1e100, "1e+100", "1e+100");
        check(3.0, "3", "3");
    }

    #[test]
    fn strings_are_quoted_as_go_quotes_them() {
        assert_eq!(super::quote("a\"\\\n\u{1}é\u{a0}"), r#""a\"\\\n\x01é\u00a0""#);
        assert_eq!(
            super::json(&json!({"b": "<&>", "a": [1, null]})),
            r#"{"a":[1,null],"b":"\u003c\u0026\u003e"}"#
        );
        assert_eq!(super::plain(&json!({"b": [1, "x"], "a": null})), "map[a:<nil> b:[1 x]]");
    }
}
