//! What granit reads and go-yaml refuses.
//!
//! granit follows YAML 1.2 and forgives a little more. A package that builds here and is refused
//! by the cluster helps nobody, so these texts are refused here as well, with a reason. Each rule
//! looks only where it can apply, to cost nothing on the texts everybody writes.

use granit_parser::{ScalarStyle, Span, YamlVersion};

use super::error::{ParseError, ParseErrorKind};
use super::tree::Position;

/// Characters that end a line in YAML 1.1 and do not in YAML 1.2.
const OTHER_BREAKS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];

/// Whether the text has line breaks only YAML 1.1 knows.
pub(super) fn has_other_breaks(text: &str) -> bool {
    !text.is_ascii() && text.contains(OTHER_BREAKS)
}

/// Refuses a scalar that another reader would end, or fold, at one of those line breaks.
pub(super) fn check_breaks(
    text: &str,
    style: ScalarStyle,
    position: Position,
) -> Result<(), ParseError> {
    let quoted = matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted);
    let found = if quoted { text.find('\u{85}') } else { text.find(OTHER_BREAKS) };
    let Some(found) = found.and_then(|at| text[at..].chars().next()) else {
        return Ok(());
    };
    let message = format!(
        "the text contains the character U+{:04X}, which ends the line for Kubernetes tools",
        u32::from(found)
    );
    Err(syntax(position, message).hint("remove it, or write it as an escape in double quotes"))
}

/// Refuses escapes, tabs and colons that older and newer readers take differently.
pub(super) fn check_scalar(
    source: &str,
    text: &str,
    style: ScalarStyle,
    span: &Span,
    position: Position,
) -> Result<(), ParseError> {
    let tab = || text.trim_start_matches('\n').starts_with('\t');
    match style {
        ScalarStyle::DoubleQuoted => {
            check_escapes(span.slice(source).unwrap_or_default(), position)
        }
        ScalarStyle::Plain => check_colon(source, span, position),
        ScalarStyle::Literal | ScalarStyle::Folded if tab() => {
            check_block_tab(source, span, position)
        }
        _ => Ok(()),
    }
}

/// `{key:}` names the key `key:` in YAML 1.1, and the key `key` in YAML 1.2.
fn check_colon(source: &str, span: &Span, position: Position) -> Result<(), ParseError> {
    let end = span.end.byte_offset().unwrap_or(source.len());
    if span.is_empty() {
        return Ok(());
    }
    match source.as_bytes().get(end..end + 2) {
        Some([b':', b',' | b']' | b'}']) => {
            let message = "the colon is read as part of the key by Kubernetes tools";
            Err(syntax(position, message).hint("put a space after the colon"))
        }
        _ => Ok(()),
    }
}

/// `\/` and pairs of surrogates came with YAML 1.2, for JSON's sake.
fn check_escapes(source: &str, position: Position) -> Result<(), ParseError> {
    let mut rest = source;
    while let Some(at) = rest.find('\\') {
        let escape = &rest[at + 1..];
        let surrogate = is_surrogate(escape);
        if escape.starts_with('/') || surrogate {
            let shown: String = escape.chars().take(if surrogate { 5 } else { 1 }).collect();
            let message = format!("the escape `\\{shown}` is unknown to Kubernetes tools");
            return Err(syntax(position, message).hint("write the character itself"));
        }
        // Past the escaped character, which may be a backslash itself.
        let mut escaped = escape.chars();
        escaped.next();
        rest = escaped.as_str();
    }
    Ok(())
}

/// Whether an escape like `ud83d` names half a character.
fn is_surrogate(escape: &str) -> bool {
    let code = escape.get(1..5).and_then(|code| u32::from_str_radix(code, 16).ok());
    escape.starts_with('u') && code.is_some_and(|code| (0xd800..0xe000).contains(&code))
}

/// A block scalar whose first line starts with a tab needs to say where its text begins.
fn check_block_tab(source: &str, span: &Span, position: Position) -> Result<(), ParseError> {
    // The span may start at the header or behind it; the header is the last one up to its text.
    let start = span.start.byte_offset().unwrap_or_default();
    let before = source.get(..=start).unwrap_or_default().trim_end();
    let header = before.rsplit(['|', '>']).next().unwrap_or_default();
    if header.contains(|c: char| c.is_ascii_digit()) {
        return Ok(());
    }
    Err(ParseError::tab(position))
}

/// Moves an error about a tab to the tab, which the grammar noticed just before or behind it.
pub(super) fn point_at_tab(mut error: ParseError, source: &str, first_line: u32) -> ParseError {
    if error.kind != ParseErrorKind::Tab {
        return error;
    }
    let skipped = error.position.line.saturating_sub(first_line);
    let nearby = source.lines().skip(skipped as usize).take(2);
    let tab = (0..).zip(nearby).find_map(|(down, text)| {
        let indentation = text.chars().take_while(|c| matches!(c, ' ' | '\t'));
        (1..).zip(indentation).find(|(_, c)| *c == '\t').map(|(column, _)| (down, column))
    });
    if let Some((down, column)) = tab {
        let line = error.position.line.saturating_add(down);
        error.position = Position { line, column };
    }
    error
}

/// Refuses a document that declares another version than the one everybody reads.
pub(super) fn check_version(
    version: Option<YamlVersion>,
    position: Position,
) -> Result<(), ParseError> {
    match version {
        None | Some(YamlVersion { major: 1, minor: 1 }) => Ok(()),
        Some(YamlVersion { major, minor }) => {
            let message = format!("Kubernetes tools read YAML 1.1, not YAML {major}.{minor}");
            Err(syntax(position, message).hint("remove the %YAML line"))
        }
    }
}

/// Refuses directives other than `%YAML` and `%TAG`; they can only stand before a document.
pub(super) fn check_directives(source: &str, first_line: u32) -> Result<(), ParseError> {
    let mut line = first_line;
    for text in source.lines() {
        let directive = text.starts_with('%');
        if !directive && !text.is_empty() && !text.starts_with('#') {
            break;
        }
        if directive && !text.starts_with("%YAML") && !text.starts_with("%TAG") {
            let message = "only the directives %YAML and %TAG are known";
            return Err(syntax(Position { line, column: 1 }, message));
        }
        line = line.saturating_add(1);
    }
    Ok(())
}

/// Refuses names of anchors that go-yaml cannot read.
pub(super) fn check_anchor(name: &str, position: Position) -> Result<(), ParseError> {
    if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)) {
        return Ok(());
    }
    let message = format!("Kubernetes tools cannot read the name of the anchor `{name}`");
    Err(syntax(position, message).hint("use letters, digits, `-` and `_` only"))
}

fn syntax(position: Position, message: impl Into<String>) -> ParseError {
    ParseError::new(ParseErrorKind::Syntax, position, message)
}
