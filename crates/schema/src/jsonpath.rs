//! JSON paths as printer columns and selectable fields use them
//!
//! The dialect is kubectl's: `.a.b`, `['key']`, indexes and slices, `*`, `..`, unions and
//! filters like `[?(@.type=="Ready")]`. A missing field is no result; an array operation on
//! something else is a failure.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::{Value, json};

use super::text::Num;

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

/// Why a path is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PathError(String);

/// A path that does not fit the value it is applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Misfit;

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Wildcard,
    Recursive,
    Slice {
        start: Option<i64>,
        end: End,
        step: Option<i64>,
    },
    Filter {
        left: Vec<Self>,
        right: Vec<Self>,
        operator: String,
    },
    Union(Vec<Vec<Self>>),
    Constant(Value),
    /// An identifier: there are none that mean something here.
    Unknown,
}

/// Where a slice ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Open,
    At(i64),
    /// One past a single index.
    After(i64),
}

impl JsonPath {
    /// Parses what stands between the braces of a template.
    pub fn parse(path: &str) -> Result<Self, PathError> {
        let mut parser = Parser { rest: path };
        Ok(Self { steps: parser.steps()? })
    }

    /// The first value at the path, if the path fits and there is one.
    pub fn first<'a>(&self, value: &'a Value) -> Option<Cow<'a, Value>> {
        walk(&self.steps, vec![Cow::Borrowed(value)]).ok()?.into_iter().next()
    }

    /// All values at the path; `None` if the path does not fit.
    pub fn all<'a>(&self, value: &'a Value) -> Option<Vec<Cow<'a, Value>>> {
        walk(&self.steps, vec![Cow::Borrowed(value)]).ok()
    }
}

struct Parser<'a> {
    rest: &'a str,
}

fn fail<T>(message: impl Into<String>) -> Result<T, PathError> {
    Err(PathError(message.into()))
}

fn ends_name(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

impl<'a> Parser<'a> {
    fn steps(&mut self) -> Result<Vec<Step>, PathError> {
        let mut steps = Vec::new();
        while !self.rest.is_empty() && !self.rest.starts_with('}') {
            if let Some(rest) = self.rest.strip_prefix("[?(") {
                self.rest = rest;
                steps.push(self.filter()?);
                continue;
            }
            if let Some(rest) = self.rest.strip_prefix("..") {
                if steps.last() == Some(&Step::Recursive) {
                    return fail("invalid multiple recursive descent");
                }
                self.rest = rest;
                steps.push(Step::Recursive);
                if rest.starts_with(|c: char| c == '_' || c.is_alphanumeric()) {
                    steps.push(self.field());
                }
                continue;
            }
            let Some(c) = self.rest.chars().next() else { break };
            match c {
                ' ' | '@' | '$' => self.rest = &self.rest[1..],
                '[' => self.array(&mut steps)?,
                '"' | '\'' => steps.push(self.quoted(c)?),
                '.' => {
                    self.rest = &self.rest[1..];
                    steps.push(self.field());
                }
                '+' | '-' => steps.push(self.number()?),
                c if c.is_numeric() => steps.push(self.number()?),
                c if c == '_' || c.is_alphabetic() => steps.push(self.identifier()),
                '\r' | '\n' => return fail("unclosed action"),
                c => {
                    return fail(format!(
                        "unrecognized character in action: U+{:04X} '{c}'",
                        u32::from(c)
                    ));
                }
            }
        }
        Ok(steps)
    }

    fn take(&mut self, end: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn field(&mut self) -> Step {
        let mut escaped = false;
        let end = self.rest.find(|c| {
            let ends = !escaped && ends_name(c);
            escaped = !escaped && c == '\\';
            ends
        });
        let name = self.take(end.unwrap_or(self.rest.len()));
        if name == "*" { Step::Wildcard } else { Step::Field(name.replace('\\', "")) }
    }

    fn identifier(&mut self) -> Step {
        match self.take(self.rest.find(ends_name).unwrap_or(self.rest.len())) {
            "true" => Step::Constant(json!(true)),
            "false" => Step::Constant(json!(false)),
            _ => Step::Unknown,
        }
    }

    fn number(&mut self) -> Result<Step, PathError> {
        let sign = usize::from(self.rest.starts_with(['+', '-']));
        let digits = self.rest[sign..].find(|c: char| c != '.' && !c.is_ascii_digit());
        let text = self.take(digits.map_or(self.rest.len(), |digits| digits + sign));
        if let Ok(int) = text.parse::<i64>() {
            return Ok(Step::Constant(json!(int)));
        }
        match text.parse::<f64>() {
            Ok(float) => Ok(Step::Constant(json!(float))),
            Err(_) => fail(format!("cannot parse number {text}")),
        }
    }

    fn quoted(&mut self, quote: char) -> Result<Step, PathError> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((i, c)) = chars.next() {
            match c {
                '\n' => break,
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, c)) => text.push(c),
                    None => break,
                },
                c if c == quote => {
                    self.rest = &self.rest[i + 1..];
                    return Ok(Step::Constant(Value::from(text)));
                }
                c => text.push(c),
            }
        }
        fail("unterminated quoted string")
    }

    fn array(&mut self, steps: &mut Vec<Step>) -> Result<(), PathError> {
        let end = self.rest.find([']', '\n']).filter(|end| self.rest[*end..].starts_with(']'));
        let Some(end) = end else { return fail("unterminated array") };
        let inner = &self.take(end + 1)[1..end];
        let inner = if inner == "*" { ":" } else { inner };
        if inner.contains(',') {
            let mut branches = Vec::new();
            for part in inner.split(',') {
                let mut branch = Vec::new();
                Parser { rest: &format!("[{}]", part.trim_matches(' ')) }.array(&mut branch)?;
                branches.push(branch);
            }
            steps.push(Step::Union(branches));
            return Ok(());
        }
        let key = inner.strip_prefix('\'').and_then(|key| key.strip_suffix('\''));
        if let Some(key) = key.filter(|key| !key.contains('\'')) {
            steps.extend(Parser { rest: &format!(".{key}") }.steps()?);
            return Ok(());
        }
        steps.push(slice(inner)?);
        Ok(())
    }

    fn filter(&mut self) -> Result<Step, PathError> {
        let mut quote = None;
        let mut closed = false;
        let mut previous = ' ';
        let mut end = None;
        for (i, c) in self.rest.char_indices() {
            match c {
                '\n' => return fail("unterminated filter"),
                '"' | '\'' if quote.is_none() => quote = Some(c),
                '"' | '\'' if previous != '\\' && quote == Some(c) => closed = true,
                ')' if quote.is_some() == closed => {
                    end = Some(i);
                    break;
                }
                _ => {}
            }
            previous = c;
        }
        let Some(end) = end else { return fail("unterminated filter") };
        let text = self.take(end);
        let Some(rest) = self.rest.strip_prefix(")]") else {
            return fail("unclosed array expect ]");
        };
        self.rest = rest;
        let parse = |text: &str| Parser { rest: text }.steps();
        let operators = ['!', '<', '>', '='];
        let start = text.find(operators).filter(|start| *start > 0);
        let split = start.and_then(|start| {
            let length = text[start..].find(|c| !operators.contains(&c))?;
            Some((&text[..start], &text[start..start + length], &text[start + length..]))
        });
        match split {
            None => Ok(Step::Filter {
                left: parse(text)?,
                right: Vec::new(),
                operator: "exists".into(),
            }),
            Some((left, operator, right)) => Ok(Step::Filter {
                left: parse(left)?,
                right: parse(right)?,
                operator: operator.into(),
            }),
        }
    }
}

/// `3`, `-1`, `1:`, `:2`, `0:4:2`.
fn slice(text: &str) -> Result<Step, PathError> {
    let invalid = || PathError(format!("invalid array index {text}"));
    let parts: Vec<&str> = text.split(':').collect();
    let number = |part: &str| match part {
        "" => Ok(None),
        part => part.parse::<i64>().map(Some).map_err(|_| invalid()),
    };
    match parts.as_slice() {
        [single] => {
            let index = number(single)?;
            Ok(Step::Slice { start: index, end: End::After(index.unwrap_or(0) + 1), step: None })
        }
        [start, end, rest @ ..] if rest.len() <= 1 => Ok(Step::Slice {
            start: number(start)?,
            end: number(end)?.map_or(End::Open, End::At),
            step: number(rest.first().unwrap_or(&""))?,
        }),
        _ => Err(invalid()),
    }
}

type Values<'a> = Vec<Cow<'a, Value>>;

fn walk<'a>(steps: &[Step], values: Values<'a>) -> Result<Values<'a>, Misfit> {
    steps.iter().try_fold(values, |values, step| apply(step, values))
}

fn apply<'a>(step: &Step, values: Values<'a>) -> Result<Values<'a>, Misfit> {
    match step {
        Step::Unknown => Err(Misfit),
        Step::Constant(value) => Ok(values.iter().map(|_| Cow::Owned(value.clone())).collect()),
        Step::Field(name) => {
            Ok(values.into_iter().filter_map(|value| field(value, name)).collect())
        }
        Step::Wildcard => Ok(values.into_iter().flat_map(children).collect()),
        Step::Recursive => Ok(values.into_iter().flat_map(descendants).collect()),
        Step::Slice { start, end, step } => {
            let mut out = Vec::new();
            for value in values.into_iter().filter(|value| !value.is_null()) {
                let items = elements(value).ok_or(Misfit)?;
                match pick(items, *start, *end, *step)? {
                    Some(items) => out.extend(items),
                    None => return Ok(out),
                }
            }
            Ok(out)
        }
        Step::Filter { left, right, operator } => {
            let mut out = Vec::new();
            for value in values {
                for item in elements(value).ok_or(Misfit)? {
                    if passes(&item, left, right, operator)? {
                        out.push(item);
                    }
                }
            }
            Ok(out)
        }
        Step::Union(branches) => {
            let mut out = Vec::new();
            for branch in branches {
                out.extend(walk(branch, values.clone())?);
            }
            Ok(out)
        }
    }
}

fn field<'a>(value: Cow<'a, Value>, name: &str) -> Option<Cow<'a, Value>> {
    match value {
        Cow::Borrowed(value) => value.as_object()?.get(name).map(Cow::Borrowed),
        Cow::Owned(value) => value.as_object()?.get(name).cloned().map(Cow::Owned),
    }
}

fn elements(value: Cow<'_, Value>) -> Option<Values<'_>> {
    match value {
        Cow::Borrowed(value) => Some(value.as_array()?.iter().map(Cow::Borrowed).collect()),
        Cow::Owned(Value::Array(items)) => Some(items.into_iter().map(Cow::Owned).collect()),
        Cow::Owned(_) => None,
    }
}

/// The entries of a map in order of name, or the elements of a list.
fn children(value: Cow<'_, Value>) -> Values<'_> {
    if let Cow::Borrowed(Value::Object(map)) = value {
        let mut entries: Vec<_> = map.iter().collect();
        entries.sort_by_key(|(name, _)| *name);
        return entries.into_iter().map(|(_, value)| Cow::Borrowed(value)).collect();
    }
    elements(value).unwrap_or_default()
}

fn descendants(value: Cow<'_, Value>) -> Values<'_> {
    let below = children(value.clone());
    if below.is_empty() {
        return Vec::new();
    }
    let mut out = vec![value];
    out.extend(below.into_iter().flat_map(descendants));
    out
}

/// The elements a slice selects; `None` for a slice of nothing, which ends the evaluation.
fn pick(
    items: Values<'_>,
    start: Option<i64>,
    end: End,
    step: Option<i64>,
) -> Result<Option<Values<'_>>, Misfit> {
    let length = i64::try_from(items.len()).map_err(|_| Misfit)?;
    let from_end = |index: i64| if index < 0 { index + length } else { index };
    let start = from_end(start.unwrap_or(0));
    let end = match end {
        End::Open | End::After(0) => length,
        End::At(end) | End::After(end) => from_end(end),
    };
    if start == end {
        return Ok(None);
    }
    let step = match step {
        None => 1,
        Some(step) => usize::try_from(step).ok().filter(|step| *step > 0).ok_or(Misfit)?,
    };
    if start < 0 || start >= length || end < 0 || end > length || start > end {
        return Err(Misfit);
    }
    let skip = usize::try_from(start).map_err(|_| Misfit)?;
    let take = usize::try_from(end - start).map_err(|_| Misfit)?;
    Ok(Some(items.into_iter().skip(skip).take(take).step_by(step).collect()))
}

fn passes(item: &Value, left: &[Step], right: &[Step], operator: &str) -> Result<bool, Misfit> {
    let lefts = walk(left, vec![Cow::Borrowed(item)]);
    if operator == "exists" {
        return Ok(lefts.is_ok_and(|lefts| !lefts.is_empty()));
    }
    let lefts = lefts?;
    let left = match lefts.as_slice() {
        [] => return Ok(false),
        [left] => left,
        _ => return Err(Misfit),
    };
    let rights = walk(right, vec![Cow::Borrowed(item)])?;
    let right = match rights.as_slice() {
        [] => return Ok(false),
        [right] => right,
        _ => return Err(Misfit),
    };
    let ordered = !left.is_boolean();
    let order = compare(left, right).ok_or(Misfit)?;
    match operator {
        "==" => Ok(order == Ordering::Equal),
        "!=" => Ok(order != Ordering::Equal),
        "<" if ordered => Ok(order == Ordering::Less),
        "<=" if ordered => Ok(order != Ordering::Greater),
        ">" if ordered => Ok(order == Ordering::Greater),
        ">=" if ordered => Ok(order != Ordering::Less),
        _ => Err(Misfit),
    }
}

/// The order of two scalars of one type.
fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => match (Num::of(left), Num::of(right)) {
            (Num::Int(left), Num::Int(right)) => Some(left.cmp(&right)),
            (Num::Float(left), Num::Float(right)) => left.partial_cmp(&right),
            _ => None,
        },
        _ => None,
    }
}
