//! Paths of fields in a definition, as rules and selectable fields spell them.

use serde_json::Value;

use super::super::error::Path;
use super::super::structural::{below, properties};

/// Follows a path of fields through a schema.
pub(super) fn field_path<'a>(
    json_path: &str,
    schema: &'a Value,
    brackets: bool,
) -> Result<(Path, Option<&'a Value>), String> {
    let mut path = Path::NIL;
    let mut schema = Some(schema);
    let mut tokens = tokens(json_path).into_iter();
    while let Some(token) = tokens.next() {
        let end = || "unexpected end of JSON path".to_owned();
        let name = match token {
            "." => tokens.next().ok_or_else(end)?.to_owned(),
            "[" if !brackets => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let quoted = tokens.next().ok_or_else(end)?;
                let inner = quoted.strip_prefix('\'').and_then(|inner| inner.strip_suffix('\''));
                let inner = inner.filter(|_| quoted.len() >= 2);
                let inner = inner
                    .ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                match tokens.next().ok_or_else(end)? {
                    "]" => inner.replace("\\'", "'"),
                    other => return Err(format!("expected ] but got {other}")),
                }
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        let invalid = || "does not refer to a valid field".to_owned();
        let here = schema.ok_or_else(invalid)?;
        if properties(here).is_empty() {
            here.get("additionalProperties").filter(|a| !a.is_null()).ok_or_else(invalid)?;
            path = path.key(&name);
            schema = below(here, "additionalProperties");
        } else {
            path = path.child(&name);
            schema = Some(here.get("properties").and_then(|p| p.get(&name)).ok_or_else(invalid)?);
        }
    }
    Ok((path, schema))
}

/// Dots, brackets, and what is between them; a quoted string is one token.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = if rest.starts_with('\'') {
            let bytes = rest.as_bytes();
            (1..bytes.len()).find(|i| bytes[*i] == b'\'' && bytes[i - 1] != b'\\').map(|i| i + 1)
        } else {
            rest.find(['.', '[', ']']).map(|i| i.max(1))
        };
        let (token, after) = rest.split_at(end.unwrap_or(rest.len()));
        tokens.push(token);
        rest = after;
    }
    tokens
}
