//! Scalars: which quotes a text needs, and where its lines are folded.

use std::fmt::Write as _;

use serde_json::Number;

use super::page::Page;
use crate::scalar;

/// Lines are folded at the first blank behind this column.
const WIDTH: usize = 80;

/// Keys up to this many bytes stand on one line with their values.
const SIMPLE_KEY_MAX: usize = 128;

/// Where a text stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Before a colon: it must not be folded.
    Key,
    /// Anywhere else.
    Value,
}

/// How a text is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// Writes a word that needs no quotes.
pub(super) fn word(page: &mut Page, word: &str) {
    plain(page, word, Place::Value);
}

/// A number as Go prints it once it has been through JSON: whole ones without a fraction.
pub(super) fn number(number: &Number) -> String {
    const UNSIGNED_END: f64 = 18_446_744_073_709_551_616.0;
    const SIGNED_START: f64 = -9_223_372_036_854_775_808.0;
    let Some(value) = number.as_f64().filter(|_| number.is_f64()) else {
        return number.to_string();
    };
    if value == 0.0 {
        return "0".to_owned();
    }
    if value.fract() == 0.0 && (SIGNED_START..UNSIGNED_END).contains(&value) {
        return value.to_string();
    }
    // The shortest digits that name the number, and where its point is.
    let text = number.to_string();
    let (sign, text) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let shift: i32 = exponent.parse().unwrap_or(0);
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0');
    let zeros = i32::try_from(all.len() - digits.len()).unwrap_or(0);
    let digits = digits.trim_end_matches('0');
    let exponent = i32::try_from(whole.len()).unwrap_or(0) - zeros - 1 + shift;
    // Go turns to exponents below 1e-4 and from 1e6 on, and writes them with sign and two digits.
    if (-4..6).contains(&exponent) {
        return value.to_string();
    }
    let (first, rest) = digits.split_at(digits.len().min(1));
    let point = if rest.is_empty() { "" } else { "." };
    let direction = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{first}{point}{rest}e{direction}{:02}", exponent.unsigned_abs())
}

/// Whether a key can stand before its colon on one line.
pub(super) fn is_simple_key(key: &str) -> bool {
    key.len() <= SIMPLE_KEY_MAX && !key.contains(is_break)
}

/// Writes a text, in the quotes it needs.
pub(super) fn string(page: &mut Page, text: &str, place: Place) {
    let outer = page.deeper_text();
    match style(text, place) {
        Style::Plain => plain(page, text, place),
        Style::Single => single(page, text, place),
        Style::Double => double(page, text, place),
        Style::Literal => literal(page, text),
    }
    page.back_to(outer);
}

fn style(text: &str, place: Place) -> Style {
    let allowed = Allowed::of(text);
    if text.contains('\n') {
        let block = allowed.block && place == Place::Value;
        return if block { Style::Literal } else { Style::Double };
    }
    if scalar::means_more_than_text(text) {
        return Style::Double;
    }
    match (allowed.plain, allowed.single) {
        (true, _) => Style::Plain,
        (false, true) => Style::Single,
        (false, false) => Style::Double,
    }
}

/// The styles in which a text would be read back as it is.
struct Allowed {
    plain: bool,
    single: bool,
    block: bool,
}

impl Allowed {
    fn of(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let at = |at: usize| chars.get(at).copied();
        let (first, last) = (at(0), chars.last().copied());
        let edge = |c: Option<char>| c.is_some_and(|c| c == ' ' || is_break(c));
        let pair = |a: fn(char) -> bool, b: fn(char) -> bool| {
            chars.windows(2).any(|pair| a(pair[0]) && b(pair[1]))
        };
        let special = chars.iter().any(|c| !is_printable(*c));
        let space_break = pair(|c| c == ' ', is_break);
        let break_space = pair(is_break, |c| c == ' ');
        let breaks = chars.iter().any(|c| is_break(*c));
        let marks = text.starts_with("---")
            || text.starts_with("...")
            || (0..chars.len()).any(|index| is_mark(&chars, index));
        Self {
            plain: !(edge(first)
                || edge(last)
                || breaks
                || special
                || space_break
                || break_space
                || marks),
            single: !(break_space || space_break || special),
            block: !(last == Some(' ') || space_break || special),
        }
    }
}

/// Whether a character means something to YAML where it stands.
fn is_mark(chars: &[char], at: usize) -> bool {
    let blank_next = chars.get(at + 1).is_none_or(|c| [' ', '\t'].contains(c));
    let blank_before = at.checked_sub(1).and_then(|at| chars.get(at));
    match chars[at] {
        '#' => blank_before.is_none_or(|c| [' ', '\t', '\0'].contains(c) || is_break(*c)),
        ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
        | '`' => at == 0,
        '?' | '-' => at == 0 && blank_next,
        ':' => blank_next,
        _ => false,
    }
}

/// Whether a character ends a line. Those that only YAML 1.1 knows are never written as they are.
fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r')
}

/// Whether a character may stand for itself. The original also writes U+2028 and U+2029, which
/// readers then take for line breaks and fold.
fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{fffd}')
        && !['\u{feff}', '\u{2028}', '\u{2029}'].contains(&c)
}

/// Writes a text as it is, folded.
fn plain(page: &mut Page, text: &str, place: Place) {
    page.space();
    let mut chars = text.chars().peekable();
    let mut after_space = false;
    while let Some(c) = chars.next() {
        let next_space = chars.peek() == Some(&' ');
        if c == ' ' && place == Place::Value && !after_space && page.column() > WIDTH && !next_space
        {
            page.line();
        } else {
            page.put(c);
        }
        after_space = c == ' ';
    }
    page.written();
}

/// Writes a text in single quotes, folded; a quote is written twice.
fn single(page: &mut Page, text: &str, place: Place) {
    page.mark("'", true, false);
    let mut after_space = false;
    let mut chars = text.chars().peekable();
    let mut first = true;
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        if c == ' ' {
            let inside = !first && next.is_some_and(|next| next != ' ');
            if place == Place::Value && !after_space && page.column() > WIDTH && inside {
                page.line();
            } else {
                page.put(c);
            }
        } else {
            if c == '\'' {
                page.put(c);
            }
            page.put(c);
        }
        (after_space, first) = (c == ' ', false);
    }
    page.mark("'", false, false);
    page.written();
}

/// Writes a text in double quotes, folded, with escapes for what cannot be shown.
fn double(page: &mut Page, text: &str, place: Place) {
    page.mark("\"", true, false);
    // The original looks at the start of the text wherever it is.
    let marked = text.starts_with('\u{feff}');
    let mut after_space = false;
    let mut chars = text.chars().peekable();
    let mut first = true;
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        let escaped = marked || !is_printable(c) || is_break(c) || ['"', '\\'].contains(&c);
        if escaped {
            escape(c).chars().for_each(|c| page.put(c));
        } else if c == ' ' {
            let inside = !first && next.is_some();
            if place == Place::Value && !after_space && page.column() > WIDTH && inside {
                page.line();
                if next == Some(' ') {
                    page.put('\\');
                }
            } else {
                page.put(c);
            }
        } else {
            page.put(c);
        }
        (after_space, first) = (c == ' ' && !escaped, false);
    }
    page.mark("\"", false, false);
    page.written();
}

fn escape(c: char) -> String {
    let short = match c {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ => {
            let code = u32::from(c);
            let mut out = String::new();
            let written = match code {
                0..=0xff => write!(out, "\\x{code:02X}"),
                0x100..=0xffff => write!(out, "\\u{code:04X}"),
                _ => write!(out, "\\U{code:08X}"),
            };
            debug_assert!(written.is_ok(), "writing into a string does not fail");
            return out;
        }
    };
    format!("\\{short}")
}

/// Writes a text of several lines as a block.
fn literal(page: &mut Page, text: &str) {
    page.mark("|", true, false);
    if text.starts_with(|c| c == ' ' || is_break(c)) {
        page.mark("2", false, false);
    }
    let mut backwards = text.chars().rev();
    match (backwards.next().is_some_and(is_break), backwards.next()) {
        (false, _) => page.mark("-", false, false),
        (true, None) => page.mark("+", false, false),
        (true, Some(before)) if is_break(before) => page.mark("+", false, false),
        (true, Some(_)) => {}
    }
    page.open_block();
    for line in text.split_inclusive('\n') {
        let content = line.strip_suffix('\n').unwrap_or(line);
        if !content.is_empty() {
            page.line();
            content.chars().for_each(|c| page.put(c));
        }
        if line.len() > content.len() {
            page.break_line();
            page.at_start();
        } else {
            page.written();
        }
    }
}
