//! JSON letter for letter as Go's encoder writes it, so that tools that encode a document again
//! leave its digest as it is.

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};
use std::io::{self, Write};

/// Writes a value as Go would: `<`, `>`, `&` and two line separators are escaped.
pub(crate) fn to_vec(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = Vec::with_capacity(1024);
    value.serialize(&mut Serializer::with_formatter(&mut bytes, GoFormatter))?;
    Ok(bytes)
}

struct GoFormatter;

impl Formatter for GoFormatter {
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let is_escaped = |it: char| matches!(it, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
        for piece in fragment.split_inclusive(is_escaped) {
            let plain = piece.trim_end_matches(is_escaped);
            CompactFormatter.write_string_fragment(writer, plain)?;
            for escaped in piece[plain.len()..].chars() {
                write!(writer, "\\u{:04x}", u32::from(escaped))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_go_escapes_is_escaped() {
        let text = "a && b <c>\u{2028}\u{2029}\"\\\u{1}é";
        let written = String::from_utf8(super::to_vec(&text).unwrap()).unwrap();
        let expected = r#""a \u0026\u0026 b \u003cc\u003e\u2028\u2029\"\\\u0001é""#;
        assert_eq!(written, expected);
        assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
    }
}
