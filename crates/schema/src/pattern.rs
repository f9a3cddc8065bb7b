//! Go's regular expressions on the `regex` crate
//!
//! Both engines are of one family (linear time, no back-references), but in Go `\d`, `\s`, `\w`
//! and `\b` are ASCII, a `[` inside a class is itself, and `\<` is a `<`. A pattern is rewritten
//! accordingly, and compiled when it is first needed: most are not.

use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Hir, HirKind};

/// A pattern as the schema spells it.
#[derive(Debug)]
pub(crate) struct Pattern {
    source: Box<str>,
    compiled: OnceLock<Option<Box<Regex>>>,
}

impl Pattern {
    pub(crate) fn new(source: &str) -> Self {
        Self { source: source.into(), compiled: OnceLock::new() }
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Whether some part of the text matches; a pattern that does not compile matches nothing.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let compiled = self.compiled.get_or_init(|| compile(&self.source).ok().map(Box::new));
        compiled.as_ref().is_some_and(|regex| regex.is_match(text))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Pattern {}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.source.hash(state);
    }
}

/// Compiles a Go pattern.
pub(crate) fn compile(source: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(&translate(source)).size_limit(64 << 20).build()
}

/// The most that repetitions within each other may come to; Go's limit.
const REPEATED_MAX: u32 = 1000;

/// Says why Go would not compile a pattern. Only its text is read: compiling takes long for some.
pub(crate) fn check(source: &str) -> Result<(), String> {
    let parsed = regex_syntax::Parser::new().parse(&translate(source));
    let pattern = parsed.map_err(|error| error.to_string())?;
    if repeats_within(&pattern, REPEATED_MAX) {
        return Ok(());
    }
    Err("invalid repeat count".to_owned())
}

/// Whether no part of a pattern is repeated more often.
fn repeats_within(pattern: &Hir, most: u32) -> bool {
    match pattern.kind() {
        HirKind::Repetition(repetition) => {
            let count = repetition.max.unwrap_or(repetition.min);
            count <= most && repeats_within(&repetition.sub, most / count.max(1))
        }
        HirKind::Capture(capture) => repeats_within(&capture.sub, most),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().all(|part| repeats_within(part, most))
        }
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => true,
    }
}

/// Rewrites a Go pattern so that it means the same here.
fn translate(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 16);
    let mut class = Class::Outside;
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, class) {
            ('\\', _) => {
                let Some(next) = chars.next() else {
                    out.push('\\');
                    break;
                };
                out.push_str(&escape(next, class != Class::Outside));
                class = class.after();
            }
            ('[', Class::Outside) => {
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                class = Class::First;
            }
            ('[', _) if chars.peek() == Some(&':') => {
                out.push('[');
                for c in chars.by_ref() {
                    out.push(c);
                    if c == ']' {
                        break;
                    }
                }
                class = Class::Inside;
            }
            (']', Class::First) => {
                out.push_str("\\]");
                class = Class::Inside;
            }
            (']', Class::Inside) => {
                out.push(']');
                class = Class::Outside;
            }
            ('[' | '&' | '~', Class::First | Class::Inside) => {
                out.push('\\');
                out.push(c);
                class = Class::Inside;
            }
            (c, _) => {
                out.push(c);
                class = class.after();
            }
        }
    }
    out
}

/// Where in a character class the reader is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Outside,
    First,
    Inside,
}

impl Class {
    fn after(self) -> Self {
        if self == Self::Outside { Self::Outside } else { Self::Inside }
    }
}

/// What stands for an escape, inside a class or outside.
fn escape(c: char, in_class: bool) -> String {
    let (set, negated) = match c {
        'd' | 'D' => ("0-9", c == 'D'),
        'w' | 'W' => ("0-9A-Za-z_", c == 'W'),
        's' | 'S' => ("\\t\\n\\f\\r ", c == 'S'),
        'b' | 'B' if !in_class => return format!("(?-u:\\{c})"),
        '<' | '>' => return c.to_string(),
        c => return format!("\\{c}"),
    };
    match (in_class, negated) {
        (true, false) => set.to_owned(),
        (false, false) => format!("[{set}]"),
        (_, true) => format!("[^{set}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        let check = |pattern: &str, text: &str, matches: bool| {
            assert_eq!(Pattern::new(pattern).matches(text), matches, "{pattern} on {text}");
        };
        check(r"^\d+$", "12", true);
        check(r"^\d+$", "१२", false);
        check(r"^[\w.-]+$", "a.b-c", true);
        check(r"^[\w]$", "é", false);
        check("^[[a]$", "[", true);
        check("^[]a]$", "]", true);
        check("^[[:alpha:]_]$", "_", true);
        check(r"^[^\s]+$", "a b", false);
        check(r"\<a", "<a", true);
        check("^[a&&b]$", "&", true);
        check("(", "(", false);
    }

    #[test]
    fn patterns_that_go_does_not_compile_are_refused() {
        for fine in ["^[a-z]{1,63}$", "(a{10}){100}", r"\pL+", "a*", "(?i)x", "[[:alpha:]]"] {
            assert_eq!(super::check(fine), Ok(()), "{fine}");
        }
        for refused in ["(", "(?=a)", r"(a)\1", "a{1001}", "(a{100}){100}", "[b-a]", "*"] {
            assert!(super::check(refused).is_err(), "{refused}");
        }
    }
}
