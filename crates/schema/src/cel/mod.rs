//! # Expressions: the language of rules and conditions
//!
//! Definitions carry rules about their objects, and webhooks conditions about requests, both
//! written in CEL. This module reads, checks and evaluates them: the language, its extensions
//! and the libraries of Kubernetes 1.36, in the words of upstream where something is wrong.
//!
//! ```text
//!  text ─► lex ─► parse ─► Program ─┬─► check  (types, at the creation of a definition)
//!                                   └─► eval   (values, on every write) ─► library
//! ```
//!
//! The existing crates do not bound what an expression may cost, do not know the types of a
//! schema and say other things than upstream when something is wrong; a small tree walker does.
//!
//! What an expression costs is counted as upstream counts it, and by what is really done besides
//! ([`meter`]); evaluation stops at a limit: no rule can burn time or memory without bound.

pub(crate) mod ast;
mod check;
mod eval;
mod lex;
mod library;
mod meter;
mod parse;
mod signature;
#[cfg(test)]
mod tests;
pub(crate) mod types;
pub(crate) mod value;

pub use types::{Object, Type};
pub use value::Trouble;

use value::{Shape, Val};

/// What one evaluation may cost; upstream's limit.
pub const CALL_LIMIT: u64 = 1_000_000;

/// An expression that was read.
#[derive(Debug)]
pub struct Program {
    expr: ast::Expr,
}

/// A value an expression can name; one that cannot be read is trouble only where it is named.
pub(crate) type Binding<'a> = (&'a str, value::Result<Val<'a>>);

/// What came of an evaluation, and what it cost.
pub struct Outcome<T> {
    /// The value, or why there is none.
    pub value: Result<T, Trouble>,
    /// The cost, as upstream counts it.
    pub cost: u64,
}

impl Program {
    /// Reads an expression, or says what is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        match parse::parse(text) {
            Ok(expr) => Ok(Self { expr }),
            Err(issue) => Err(shown(text, &[issue])),
        }
    }

    /// Reads and checks an expression in which these names mean something.
    pub fn checked(text: &str, names: &[(&str, Type)]) -> Result<(Self, Type), String> {
        let program = Self::read(text)?;
        match check::check(&program.expr, names) {
            Ok(kind) => Ok((program, kind)),
            Err(issues) => Err(shown(text, &issues)),
        }
    }

    /// Whether it uses a name.
    pub fn mentions(&self, name: &str) -> bool {
        self.expr.mentions(name)
    }

    /// Evaluates a condition about parts of a request, which have no schema.
    pub fn holds(&self, names: &[(&str, &serde_json::Value)], limit: u64) -> Outcome<bool> {
        let plain = |value| Val::read(value, Shape::Plain);
        let bound: Vec<Binding<'_>> =
            names.iter().map(|(name, value)| (*name, plain(*value))).collect();
        self.truth(&bound, limit)
    }

    /// Evaluates to a truth.
    pub(crate) fn truth(&self, names: &[Binding<'_>], limit: u64) -> Outcome<bool> {
        let mut eval = eval::Eval::new(names, limit);
        let value = match eval.run(&self.expr) {
            Ok(Val::Bool(truth)) => Ok(truth),
            Ok(_) => Err(Trouble::overload()),
            Err(trouble) => Err(trouble),
        };
        Outcome { value, cost: eval.cost() }
    }

    /// Evaluates to a text.
    pub(crate) fn text(&self, names: &[Binding<'_>], limit: u64) -> Outcome<String> {
        let mut eval = eval::Eval::new(names, limit);
        let value = match eval.run(&self.expr) {
            Ok(Val::String(text)) => Ok(text.to_string()),
            Ok(_) => Err(Trouble::overload()),
            Err(trouble) => Err(trouble),
        };
        Outcome { value, cost: eval.cost() }
    }
}

/// So much is shown of what is wrong with one expression: each issue repeats its line, so that all of
/// them could be much longer than the expression.
const SHOWN_MAX: usize = 64 << 10;

/// What is wrong, each with its place and line, as upstream shows it.
fn shown(text: &str, issues: &[lex::Issue]) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::new();
    for issue in issues {
        if out.len() > SHOWN_MAX {
            break;
        }
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&shown_at(&chars, issue));
    }
    out
}

fn shown_at(chars: &[char], issue: &lex::Issue) -> String {
    let at = issue.at.min(chars.len());
    let line = 1 + chars[..at].iter().filter(|c| **c == '\n').count();
    let start = chars[..at].iter().rposition(|c| *c == '\n').map_or(0, |newline| newline + 1);
    let end = chars[start..].iter().position(|c| *c == '\n').map_or(chars.len(), |n| start + n);
    let code: String = chars[start..end].iter().collect();
    let column = at - start;
    format!(
        "ERROR: <input>:{line}:{}: {}\n | {}\n | {}^",
        column + 1,
        issue.message,
        code.replace('\t', " "),
        ".".repeat(column)
    )
}

/// Whether a word of the language cannot be the name of a field.
fn is_reserved(word: &str) -> bool {
    matches!(word, "true" | "false" | "null" | "in") || parse::RESERVED.contains(&word)
}

/// The name of a field in expressions, if it can have one.
pub(crate) fn escape(name: &str) -> Option<String> {
    if is_reserved(name) {
        return Some(format!("__{name}__"));
    }
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("__") {
            out.push_str("__underscores__");
            rest = after;
            continue;
        }
        match c {
            '.' => out.push_str("__dot__"),
            '-' => out.push_str("__dash__"),
            '/' => out.push_str("__slash__"),
            c if c.is_ascii_alphanumeric() || c == '_' => out.push(c),
            _ => return None,
        }
        rest = &rest[c.len_utf8()..];
    }
    Some(out)
}

/// The field behind a name in an expression.
pub(crate) fn unescape(name: &str) -> Option<String> {
    if !name.contains("__") {
        return Some(name.to_owned());
    }
    if let Some(word) = name.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"))
        && is_reserved(word)
    {
        return Some(word.to_owned());
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while !rest.is_empty() {
        let Some(at) = rest.find("__") else {
            out.push_str(rest);
            break;
        };
        out.push_str(&rest[..at]);
        let after = &rest[at + 2..];
        let (word, left) = after.split_once("__")?;
        out.push_str(match word {
            "underscores" => "__",
            "dot" => ".",
            "dash" => "-",
            "slash" => "/",
            _ => return None,
        });
        rest = left;
    }
    Some(out)
}
