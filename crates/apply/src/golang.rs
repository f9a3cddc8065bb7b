//! Text exactly as the server's own language prints it.
//!
//! Set items and list keys are JSON inside `fieldsV1` keys, conflicts print paths with quoted
//! strings, and type errors print whole values. Clients and tests compare those texts, so this
//! page writes them byte for byte: `%v`, `%#v`, `%q` and compact JSON.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::value::{Numeric, sorted};

/// Two encoders write JSON on the server, and differ in corners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// The merge library's, for path elements.
    Merge,
    /// The standard library's, for whole objects.
    Standard,
}

/// Compact JSON with sorted keys.
pub(super) fn json(value: &Value, style: Style, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(bool) => out.push_str(if *bool { "true" } else { "false" }),
        Value::Number(number) => json_number(Numeric::of(number), style, out),
        Value::String(string) => json_string(string, style, out),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                json(item, style, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (i, (key, item)) in sorted(map).into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                json_string(key, style, out);
                out.push(':');
                json(item, style, out);
            }
            out.push('}');
        }
    }
}

/// A JSON string with its quotes, safe inside HTML.
pub(super) fn json_string(string: &str, style: Style, out: &mut String) {
    out.push('"');
    for c in string.chars() {
        match c {
            '\u{8}' if style == Style::Standard => out.push_str("\\b"),
            '\u{c}' if style == Style::Standard => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => hex(out, "\\u", c, 4),
            c => json_char(c, out),
        }
    }
    out.push('"');
}

/// A JSON string as names of key fields are written: not safe inside HTML.
pub(super) fn json_name(string: &str, out: &mut String) {
    out.push('"');
    string.chars().for_each(|c| json_char(c, out));
    out.push('"');
}

fn json_char(c: char, out: &mut String) {
    match c {
        '"' | '\\' => {
            out.push('\\');
            out.push(c);
        }
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\0'..='\u{1f}' => hex(out, "\\u", c, 4),
        c => out.push(c),
    }
}

fn json_number(number: Numeric, style: Style, out: &mut String) {
    match number {
        Numeric::Int(int) => put(out, format_args!("{int}")),
        Numeric::Float(float) => {
            let size = float.abs();
            if size == 0.0 || (1e-6..1e21).contains(&size) {
                put(out, format_args!("{float}"));
                return;
            }
            let from = out.len();
            exponent(float, out);
            if style == Style::Standard && out[from..].contains("e-0") {
                let short = out[from..].replace("e-0", "e-");
                out.replace_range(from.., &short);
            }
        }
    }
}

/// A float as `%v` prints it.
fn plain_float(float: f64, out: &mut String) {
    let size = float.abs();
    if size != 0.0 && !(1e-4..1e21).contains(&size) {
        exponent(float, out);
    } else {
        put(out, format_args!("{float}"));
    }
}

/// Scientific notation with a signed exponent of at least two digits.
fn exponent(float: f64, out: &mut String) {
    let text = format!("{float:e}");
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = power.strip_prefix('-').map_or(('+', power), |digits| ('-', digits));
    put(out, format_args!("{mantissa}e{sign}{digits:0>2}"));
}

/// `%q`: a quoted string.
pub(super) fn quote(string: &str, out: &mut String) {
    out.push('"');
    for c in string.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            c if printable(c) => out.push(c),
            c if u32::from(c) < 0x80 => hex(out, "\\x", c, 2),
            c if u32::from(c) < 0x1_0000 => hex(out, "\\u", c, 4),
            c => hex(out, "\\U", c, 8),
        }
    }
    out.push('"');
}

/// `%q` of a list of strings.
pub(super) fn quote_list(strings: &[Box<str>]) -> String {
    let mut out = String::from("[");
    for (i, string) in strings.iter().enumerate() {
        if i > 0 {
            out.push(' ');
        }
        quote(string, &mut out);
    }
    out.push(']');
    out
}

/// Whether a character prints: letters, marks, numbers, punctuation, symbols and the plain space.
///
/// The standard library knows the table only through its debug escapes, which also escape
/// combining marks; those print.
pub(super) fn printable(c: char) -> bool {
    match c {
        ' '..='~' => true,
        '\0'..='\u{a0}' | '\u{ad}' => false,
        c if c.is_whitespace() || c.is_control() => false,
        c => c.is_alphanumeric() || !matches!(c.escape_debug().next(), Some('\\')) || mark(c),
    }
}

/// Combining marks: escaped by `escape_debug` for being invisible alone, yet printable.
fn mark(c: char) -> bool {
    matches!(u32::from(c), 0x300..=0x36f | 0x483..=0x489 | 0x591..=0x5bd | 0x610..=0x61a
        | 0x64b..=0x65f | 0x900..=0xdff | 0xe31..=0xe4e | 0x1ab0..=0x1aff | 0x1dc0..=0x1dff
        | 0x20d0..=0x20f0 | 0x302a..=0x302f | 0x3099..=0x309a | 0xfe00..=0xfe0f
        | 0xfe20..=0xfe2f | 0xe_0100..=0xe_01ef)
}

/// `%v` of a value wrapped the way the merge library wraps it.
pub(super) fn wrapped(value: &Value) -> String {
    let mut out = String::from("&{");
    plain(value, &mut out);
    out.push('}');
    out
}

/// `%#v` of a value wrapped the way the merge library wraps it.
pub(super) fn wrapped_verbose(value: &Value) -> String {
    let mut out = String::from("&value.valueUnstructured{Value:");
    verbose(value, &mut out);
    out.push('}');
    out
}

/// `%T`: the name of a value's type.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) => match Numeric::of(number) {
            Numeric::Int(_) => "int64",
            Numeric::Float(_) => "float64",
        },
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn plain(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(bool) => put(out, format_args!("{bool}")),
        Value::Number(number) => plain_number(Numeric::of(number), out),
        Value::String(string) => out.push_str(string),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(' ');
                }
                plain(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push_str("map[");
            for (i, (key, item)) in sorted(map).into_iter().enumerate() {
                if i > 0 {
                    out.push(' ');
                }
                put(out, format_args!("{key}:"));
                plain(item, out);
            }
            out.push(']');
        }
    }
}

/// `%v` of a number.
pub(super) fn plain_number(number: Numeric, out: &mut String) {
    match number {
        Numeric::Int(int) => put(out, format_args!("{int}")),
        Numeric::Float(float) => plain_float(float, out),
    }
}

fn verbose(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("interface {}(nil)"),
        Value::String(string) => quote(string, out),
        Value::Array(items) => {
            out.push_str("[]interface {}{");
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                verbose(item, out);
            }
            out.push('}');
        }
        Value::Object(map) => verbose_map(map, out),
        scalar => plain(scalar, out),
    }
}

fn verbose_map(map: &Map<String, Value>, out: &mut String) {
    out.push_str("map[string]interface {}{");
    for (i, (key, item)) in sorted(map).into_iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        quote(key, out);
        out.push(':');
        verbose(item, out);
    }
    out.push('}');
}

fn hex(out: &mut String, prefix: &str, c: char, width: usize) {
    put(out, format_args!("{prefix}{:0width$x}", u32::from(c)));
}

/// Writing to a string cannot fail, so the answer carries nothing.
fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(value: &Value, as_json: &str, as_plain: &str, as_verbose: &str) {
        let mut out = String::new();
        json(value, Style::Merge, &mut out);
        assert_eq!(out, as_json);
        assert_eq!(wrapped(value), format!("&{{{as_plain}}}"));
        let verbose = format!("&value.valueUnstructured{{Value:{as_verbose}}}");
        assert_eq!(wrapped_verbose(value), verbose);
    }

    #[test]
    fn encoders_differ_in_corners() {
        let value = json!([1e-7, "\u{8}\u{c}"]);
        let check = |style, want| {
            let mut out = String::new();
            json(&value, style, &mut out);
            assert_eq!(out, want);
        };
        check(Style::Merge, r#"[1e-07,"\u0008\u000c"]"#);
        check(Style::Standard, r#"[1e-7,"\b\f"]"#);
    }

    #[test]
    fn values_print_as_the_server_prints_them() {
        check(&json!(1.0), "1", "1", "1");
        check(&json!(1e21), "1e+21", "1e+21", "1e+21");
        check(&json!(1e-7), "1e-07", "1e-07", "1e-07");
        check(&json!(0.00001), "0.00001", "1e-05", "1e-05");
        check(
            &json!("a<\"\n\u{1}é"),
            r#""a\u003c\"\n\u0001é""#,
            "a<\"\n\u{1}é",
            r#""a<\"\n\x01é""#,
        );
        check(
            &json!({"b": [1, "x", null], "a": true}),
            r#"{"a":true,"b":[1,"x",null]}"#,
            "map[a:true b:[1 x <nil>]]",
            r#"map[string]interface {}{"a":true, "b":[]interface {}{1, "x", interface {}(nil)}}"#,
        );
    }
}
