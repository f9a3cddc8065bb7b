//! Strings and regular expressions.

use regex::Regex;

use super::super::meter::Meter;
use super::super::value::{Result, Text, Trouble, Val};
use super::{Kept, convert};

pub(super) fn call<'a>(
    name: &str,
    args: &[Val<'a>],
    kept: Kept<'a>,
    meter: &Meter,
) -> Result<Val<'a>> {
    let Some(Val::String(text)) = args.first() else { return Err(Trouble::overload()) };
    let rest = &args[1..];
    match (name, rest) {
        ("contains", [Val::String(part)]) => Ok(Val::Bool(text.contains(&**part))),
        ("startsWith", [Val::String(part)]) => Ok(Val::Bool(text.starts_with(&**part))),
        ("endsWith", [Val::String(part)]) => Ok(Val::Bool(text.ends_with(&**part))),
        ("matches" | "find" | "findAll", [Val::String(pattern), rest @ ..]) => {
            with_pattern(pattern, kept, meter, |pattern| found(name, pattern, text, rest, meter))
        }
        ("lowerAscii", []) => Ok(Val::text(text.to_ascii_lowercase())),
        ("upperAscii", []) => Ok(Val::text(text.to_ascii_uppercase())),
        ("trim", []) => Ok(Val::text(text.trim())),
        ("strings.quote", []) => Ok(Val::text(quoted(text))),
        ("charAt", [Val::Int(at)]) => char_at(text, *at),
        ("indexOf", [Val::String(part)]) => Ok(Val::Int(index_of(text, part, 0)?)),
        ("indexOf", [Val::String(part), Val::Int(from)]) => {
            Ok(Val::Int(index_of(text, part, *from)?))
        }
        ("lastIndexOf", [Val::String(part)]) => Ok(Val::Int(last_index_of(text, part, None)?)),
        ("lastIndexOf", [Val::String(part), Val::Int(from)]) => {
            Ok(Val::Int(last_index_of(text, part, Some(*from))?))
        }
        ("replace", [Val::String(from), Val::String(to)]) => {
            replaced(text, from, to, usize::MAX, meter)
        }
        ("replace", [Val::String(from), Val::String(to), Val::Int(count)]) => {
            replaced(text, from, to, usize::try_from(*count).unwrap_or(usize::MAX), meter)
        }
        ("split", [Val::String(by)]) => split(text, by, -1, meter),
        ("split", [Val::String(by), Val::Int(count)]) => split(text, by, *count, meter),
        ("substring", [Val::Int(from)]) => substring(text, *from, None),
        ("substring", [Val::Int(from), Val::Int(to)]) => substring(text, *from, Some(*to)),
        ("format", [list @ (Val::Items(..) | Val::List(_))]) => {
            format(text, &list.items(meter)?, meter).map(Val::text)
        }
        _ => Err(Trouble::overload()),
    }
}

/// A pattern, and how heavy it is: going through a text takes time by the size of both.
#[derive(Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    weight: usize,
}

/// The sizes patterns may have once compiled, and how heavy those are.
const SIZES: [(usize, usize); 3] = [(1 << 14, 1), (1 << 17, 8), (1 << 20, 64)];
/// What it takes to compile the lightest pattern, in steps; each heavier one as much more.
const COMPILE_STEPS: usize = 1000;

impl Pattern {
    /// Compiles a pattern. It is tried with little room first, because compiling takes time by
    /// the room there is.
    fn new(pattern: &str) -> std::result::Result<Self, String> {
        for (size, weight) in SIZES {
            match regex::RegexBuilder::new(pattern).size_limit(size).build() {
                Ok(regex) => return Ok(Self { regex, weight }),
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(_) => break,
            }
        }
        Err(format!("error parsing regexp: invalid pattern: `{pattern}`"))
    }
}

fn with_pattern<'a>(
    pattern: &str,
    kept: Kept<'a>,
    meter: &Meter,
    apply: impl Fn(&Pattern) -> Result<Val<'a>>,
) -> Result<Val<'a>> {
    let broken = |message: &String| Trouble::new(message.clone());
    // Kept for the constant it was made from.
    match kept.map(|kept| kept.get_or_init(|| Pattern::new(pattern))) {
        Some(Ok(known)) if known.regex.as_str() == pattern => apply(known),
        Some(Err(message)) => Err(broken(message)),
        _ => {
            meter.work(COMPILE_STEPS.saturating_add(pattern.len()))?;
            let made = Pattern::new(pattern);
            let weight = made.as_ref().map_or(SIZES[2].1, |made| made.weight);
            meter.work(COMPILE_STEPS.saturating_mul(weight))?;
            apply(&made.map_err(|message| broken(&message))?)
        }
    }
}

/// What a pattern finds in a text.
fn found<'a>(
    name: &str,
    pattern: &Pattern,
    text: &str,
    rest: &[Val<'a>],
    meter: &Meter,
) -> Result<Val<'a>> {
    meter.scan(text.len().saturating_mul(pattern.weight))?;
    let pattern = &pattern.regex;
    let count = match (name, rest) {
        ("matches", []) => return Ok(Val::Bool(pattern.is_match(text))),
        ("find", []) => {
            return Ok(Val::text(pattern.find(text).map_or("", |found| found.as_str())));
        }
        ("findAll", []) => usize::MAX,
        ("findAll", [Val::Int(count)]) => usize::try_from(*count).unwrap_or(usize::MAX),
        _ => return Err(Trouble::overload()),
    };
    let mut all = Vec::new();
    for one in pattern.find_iter(text).take(count) {
        meter.write(one.len())?;
        all.push(Val::text(one.as_str()));
    }
    Ok(Val::list(all))
}

/// The most bytes of a text that an expression makes; its cost would be spent soon after.
const TEXT_MAX: usize = 32 << 20;

/// A text with so many occurrences of another replaced. How long it becomes is known before it
/// is made: a long text in place of each letter of another does not fit anywhere.
fn replaced<'a>(text: &str, from: &str, to: &str, count: usize, meter: &Meter) -> Result<Val<'a>> {
    let times = text.matches(from).take(count).count();
    let added = to.len().saturating_sub(from.len()).saturating_mul(times);
    make(text.len().saturating_add(added), meter)?;
    Ok(Val::text(text.replacen(from, to, count)))
}

/// Pays for a text that is to be made.
fn make(bytes: usize, meter: &Meter) -> Result<()> {
    if bytes > TEXT_MAX {
        return Err(Trouble::Cost);
    }
    meter.write(bytes)
}

fn outside(at: i64) -> Trouble {
    Trouble::new(format!("index out of range: {at}"))
}

fn char_at<'a>(text: &str, at: i64) -> Result<Val<'a>> {
    let count = text.chars().count();
    let index = usize::try_from(at).ok().filter(|index| *index <= count);
    let index = index.ok_or_else(|| outside(at))?;
    Ok(Val::text(text.chars().nth(index).map(String::from).unwrap_or_default()))
}

fn int(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn index_of(text: &str, part: &str, from: i64) -> Result<i64> {
    let start = usize::try_from(from).map_err(|_| outside(from))?;
    let Some(at) = byte_at(text, start) else {
        return if part.is_empty() { Ok(from) } else { Err(outside(from)) };
    };
    if part.is_empty() {
        return Ok(from);
    }
    Ok(text[at..].find(part).map_or(-1, |found| int(text[..at + found].chars().count())))
}

fn last_index_of(text: &str, part: &str, from: Option<i64>) -> Result<i64> {
    let count = text.chars().count();
    let limit = match from {
        Some(from) => usize::try_from(from)
            .ok()
            .filter(|at| *at < count.max(1))
            .ok_or_else(|| outside(from))?,
        None => count,
    };
    if part.is_empty() {
        return Ok(from.unwrap_or_else(|| int(count)));
    }
    let wide = part.chars().count();
    let end = byte_at(text, limit + wide).unwrap_or(text.len());
    Ok(text[..end].rfind(part).map_or(-1, |found| int(text[..found].chars().count())))
}

/// Where a character starts; the end counts as one.
fn byte_at(text: &str, at: usize) -> Option<usize> {
    text.char_indices().map(|(byte, _)| byte).chain([text.len()]).nth(at)
}

fn substring<'a>(text: &str, from: i64, to: Option<i64>) -> Result<Val<'a>> {
    let count = int(text.chars().count());
    let to = to.unwrap_or(count);
    if from < 0 || from > count {
        return Err(outside(from));
    }
    if to < 0 || to > count {
        return Err(outside(to));
    }
    if from > to {
        return Err(Trouble::new(format!("invalid substring range. start: {from}, end: {to}")));
    }
    let length = usize::try_from(to - from).unwrap_or_default();
    let skip = usize::try_from(from).unwrap_or_default();
    Ok(Val::text(text.chars().skip(skip).take(length).collect::<String>()))
}

fn split<'a>(text: &str, by: &str, count: i64, meter: &Meter) -> Result<Val<'a>> {
    // At most one part more than there are characters.
    meter.copy(text.matches(by).count())?;
    let parts: Vec<String> = match (count, by) {
        (0, _) => Vec::new(),
        (1.., "") => {
            let chars: Vec<char> = text.chars().collect();
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            let head = chars.len().min(count.saturating_sub(1));
            let mut parts: Vec<String> = chars[..head].iter().map(char::to_string).collect();
            if head < chars.len() {
                parts.push(chars[head..].iter().collect());
            }
            parts
        }
        (_, "") => text.chars().map(String::from).collect(),
        (1.., _) => {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            text.splitn(count, by).map(str::to_owned).collect()
        }
        _ => text.split(by).map(str::to_owned).collect(),
    };
    Ok(Val::list(parts.into_iter().map(Val::text).collect()))
}

/// A text with its quotes and everything that cannot be printed escaped.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// `printf`, as far as the language has it.
fn format(text: &str, args: &[Val<'_>], meter: &Meter) -> Result<String> {
    let mut out = String::new();
    let mut args = args.iter();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let (precision, after) = precision(after)?;
        let Some(verb) = after.chars().next() else {
            return Err(Trouble::new("unexpected end of string"));
        };
        let Some(arg) = args.next() else {
            let next = text.matches('%').count().saturating_sub(1);
            return Err(Trouble::new(format!("index {next} out of range")));
        };
        out.push_str(&verb_text(verb, precision, arg, meter).map_err(|trouble| match trouble {
            Trouble::Failed(why) => Trouble::new(format!("error during formatting: {why}")),
            Trouble::Cost => Trouble::Cost,
        })?);
        rest = &after[verb.len_utf8()..];
    }
    out.push_str(rest);
    Ok(out)
}

fn precision(text: &str) -> Result<(Option<usize>, &str)> {
    let Some(rest) = text.strip_prefix('.') else { return Ok((None, text)) };
    let count = rest.bytes().take_while(u8::is_ascii_digit).count();
    match rest[..count].parse::<usize>() {
        // More digits than a float has would only cost memory.
        Ok(digits) if digits <= 300 => Ok((Some(digits), &rest[count..])),
        _ => Err(Trouble::new("invalid precision")),
    }
}

fn verb_text(verb: char, precision: Option<usize>, arg: &Val<'_>, meter: &Meter) -> Result<String> {
    meter.write(arg.bytes())?;
    let unsupported = |what: &str| Trouble::new(format!("{what}, was given {}", arg.type_name()));
    Ok(match (verb, arg) {
        ('s', arg) => shown(arg, meter)?,
        ('d', Val::Int(n)) => n.to_string(),
        ('d', Val::Uint(n)) => n.to_string(),
        ('d', Val::Double(n)) if !n.is_finite() => shown(arg, meter)?,
        ('f', arg) => match float(arg) {
            Some(n) => format!("{n:.*}", precision.unwrap_or(6)),
            None => return Err(unsupported("fixed-point clause can only be used on doubles")),
        },
        ('e', arg) => match float(arg) {
            Some(n) => exponent(&format!("{n:.*e}", precision.unwrap_or(6))),
            None => return Err(unsupported("scientific clause can only be used on doubles")),
        },
        ('b', Val::Int(n)) => radix(*n, |n| format!("{n:b}")),
        ('b', Val::Uint(n)) => format!("{n:b}"),
        ('b', Val::Bool(value)) => u8::from(*value).to_string(),
        ('o', Val::Int(n)) => radix(*n, |n| format!("{n:o}")),
        ('o', Val::Uint(n)) => format!("{n:o}"),
        ('x', Val::Int(n)) => radix(*n, |n| format!("{n:x}")),
        ('X', Val::Int(n)) => radix(*n, |n| format!("{n:X}")),
        ('x', Val::Uint(n)) => format!("{n:x}"),
        ('X', Val::Uint(n)) => format!("{n:X}"),
        ('x' | 'X', Val::String(text)) => hex(text.as_bytes(), verb == 'X'),
        ('x' | 'X', Val::Bytes(bytes)) => hex(bytes, verb == 'X'),
        ('d' | 'b' | 'o' | 'x' | 'X', _) => {
            return Err(unsupported("decimal clause can only be used on integers"));
        }
        (other, _) => {
            return Err(Trouble::new(format!("unrecognized formatting clause \"{other}\"")));
        }
    })
}

#[expect(clippy::cast_precision_loss, reason = "printed with few digits")]
fn float(value: &Val<'_>) -> Option<f64> {
    match value {
        Val::Double(n) => Some(*n),
        Val::Int(n) => Some(*n as f64),
        Val::Uint(n) => Some(*n as f64),
        _ => None,
    }
}

fn radix(value: i64, digits: impl Fn(u64) -> String) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", digits(value.unsigned_abs()))
}

fn hex(bytes: &[u8], upper: bool) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = if upper { write!(out, "{byte:02X}") } else { write!(out, "{byte:02x}") };
    }
    out
}

/// Go writes an exponent with a sign and at least two digits.
fn exponent(text: &str) -> String {
    let Some((digits, exponent)) = text.split_once('e') else { return text.to_owned() };
    let value: i32 = exponent.parse().unwrap_or(0);
    let sign = if value < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", value.abs())
}

/// What `%s` prints.
fn shown(value: &Val<'_>, meter: &Meter) -> Result<String> {
    meter.write(value.bytes())?;
    match value {
        Val::Items(..) | Val::List(_) => {
            let items = value.items(meter)?;
            let parts = items.iter().map(|item| shown(item, meter));
            let parts: Vec<String> = parts.collect::<Result<_>>()?;
            Ok(format!("[{}]", parts.join(", ")))
        }
        Val::Object(..) | Val::Map(_) => {
            let mut parts = Vec::new();
            for (key, value) in value.entries(meter)? {
                parts.push(format!("{}: {}", shown(&key, meter)?, shown(&value, meter)?));
            }
            parts.sort();
            Ok(format!("{{{}}}", parts.join(", ")))
        }
        Val::Bytes(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        other => convert::text(other).ok_or_else(|| {
            Trouble::new(format!(
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given {}",
                other.type_name()
            ))
        }),
    }
}

/// The texts of a list, joined.
pub(super) fn join<'a>(items: &[Val<'a>], by: &Text<'a>, meter: &Meter) -> Result<Val<'a>> {
    let bytes = items.iter().map(|item| item.bytes().saturating_add(by.len()));
    make(bytes.fold(0, usize::saturating_add), meter)?;
    let mut parts = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Val::String(text) => parts.push(&**text),
            _ => return Err(Trouble::overload()),
        }
    }
    Ok(Val::text(parts.join(by)))
}
