//! JSON as YAML, laid out and quoted as `sigs.k8s.io/yaml` does it.
//!
//! The API server answers in YAML to those who ask for it, and what it says then is what the real
//! one says, byte for byte: keys in a natural order (`a2` before `a10`), text folded at eighty
//! columns, quotes only where the text would mean something else or nothing at all. The reader's
//! own rules ([`crate::scalar`]) decide what would mean something else, so what is written here is
//! read back as it was.
//!
//! ```text
//! Value ── order (keys) ── layout (here) ── text (which quotes, where to fold) ──▶ String
//! ```
//!
//! The tree is walked recursively: it has been read, and so bounded, by someone before.

mod order;
mod page;
mod text;

use serde_json::{Map, Value};

use page::Page;
use text::Place;

/// A value as one YAML document, which ends with a line break.
pub fn to_string(value: &Value) -> String {
    let mut page = Page::new();
    node(&mut page, value, false);
    page.finish()
}

/// Writes a value where the page is; `in_mapping` says that it follows a key.
fn node(page: &mut Page, value: &Value, in_mapping: bool) {
    match value {
        Value::Null => text::word(page, "null"),
        Value::Bool(true) => text::word(page, "true"),
        Value::Bool(false) => text::word(page, "false"),
        Value::Number(number) => text::word(page, &text::number(number)),
        Value::String(string) => text::string(page, string, Place::Value),
        Value::Array(items) if items.is_empty() => page.mark("[]", true, false),
        Value::Object(map) if map.is_empty() => page.mark("{}", true, false),
        Value::Array(items) => sequence(page, items, in_mapping),
        Value::Object(map) => mapping(page, map),
    }
}

fn sequence(page: &mut Page, items: &[Value], in_mapping: bool) {
    // Items stand below their key, not to the right of it, unless they start on its line.
    let outer = if in_mapping && !page.at_indent() { page.indent() } else { page.deeper() };
    for item in items {
        page.line();
        page.mark("-", true, true);
        node(page, item, false);
    }
    page.back_to(outer);
}

fn mapping(page: &mut Page, map: &Map<String, Value>) {
    let outer = page.deeper();
    for (key, value) in order::entries(map) {
        page.line();
        if text::is_simple_key(key) {
            text::string(page, key, Place::Key);
            page.mark(":", false, false);
        } else {
            page.mark("?", true, true);
            text::string(page, key, Place::Value);
            page.line();
            page.mark(":", true, true);
        }
        node(page, value, true);
    }
    page.back_to(outer);
}

#[cfg(test)]
mod tests;
