//! One file of source: its lines, functions, types and comments.

/// Words that point at nobody in particular.
const PRONOUNS: [&str; 12] = [
    "who",
    "whom",
    "whoever",
    "whose",
    "somebody",
    "someone",
    "nobody",
    "anybody",
    "everybody",
    "whatever",
    "something",
    "nothing",
];

/// Names that a trait or a custom of the language gives.
const CUSTOMARY: [&str; 27] = [
    "new",
    "fmt",
    "from",
    "default",
    "drop",
    "clone",
    "eq",
    "cmp",
    "hash",
    "next",
    "deref",
    "main",
    "len",
    "get",
    "into",
    "source",
    "visit",
    "index",
    "poll",
    "write",
    "flush",
    "read",
    "call",
    "serialize",
    "deserialize",
    "parse",
    "run",
];

/// A file as the table counts it.
pub struct Source {
    /// Path below `src`.
    pub path: String,
    /// Lines without tests.
    pub lines: usize,
    /// Lines that are comments.
    pub comments: usize,
    /// Comment lines with an indefinite pronoun.
    pub pronouns: usize,
    /// Items that are `pub` without restriction.
    pub public: usize,
    /// Functions, nested ones and methods included.
    pub functions: Vec<Function>,
    /// Names of structs, enums, traits and type aliases.
    pub types: Vec<String>,
    /// First segments of paths that begin with `crate::`.
    pub imports: Vec<String>,
}

/// A function.
pub struct Function {
    /// The name.
    pub name: String,
    /// Lines from `fn` to the closing brace.
    pub lines: usize,
}

impl Function {
    /// Whether the author chose the name.
    pub fn is_counted(&self) -> bool {
        !CUSTOMARY.contains(&self.name.as_str())
    }

    /// Whether the name is one word.
    pub fn is_one_word(&self) -> bool {
        !self.name.trim_matches('_').contains('_')
    }
}

impl Source {
    /// Takes a file apart.
    pub fn parse(path: String, text: &str) -> Self {
        let all: Vec<&str> = text.lines().collect();
        let lines = without_tests(&all);
        let comments: Vec<&str> = lines.iter().filter_map(|line| comment_text(line)).collect();
        let code = lines.iter().filter(|line| comment_text(line).is_none());
        let code: Vec<&str> = code.copied().collect();
        Self {
            path,
            lines: lines.len(),
            comments: comments.len(),
            pronouns: comments.iter().filter(|text| has_pronoun(text)).count(),
            public: code.iter().filter(|line| line.trim_start().starts_with("pub ")).count(),
            functions: find_functions(&lines),
            types: code.iter().filter_map(|line| type_name(line)).collect(),
            imports: code.iter().flat_map(|line| crate_paths(line)).collect(),
        }
    }
}

/// Names of modules that are files of their own and only compiled for tests.
pub fn test_modules(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines.windows(2).filter(|pair| pair[0].trim() == "#[cfg(test)]");
    let names = pairs.filter_map(|pair| pair[1].trim().strip_prefix("mod ")?.strip_suffix(';'));
    names.map(str::to_owned).collect()
}

/// The lines of a file without modules behind `cfg(test)`.
fn without_tests<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let mut kept = Vec::new();
    let mut index = 0;
    while index < lines.len() {
        let is_test = lines[index].trim() == "#[cfg(test)]";
        let module = lines.get(index + 1).is_some_and(|line| line.trim().starts_with("mod "));
        if is_test && module {
            index = end_of_item(lines, index + 1) + 1;
        } else {
            kept.push(lines[index]);
            index += 1;
        }
    }
    kept
}

/// The last line of the item that begins at a line: rustfmt closes it at the same indentation.
fn end_of_item(lines: &[&str], start: usize) -> usize {
    let indentation = indentation_of(lines[start]);
    if lines[start].trim_end().ends_with([';', '}']) {
        return start;
    }
    let closes = |line: &&str| {
        indentation_of(line) == indentation
            && (line.trim_start().starts_with('}') || line.trim_end().ends_with(';'))
    };
    let rest = lines.iter().skip(start + 1);
    rest.take_while(|line| !closes(line)).count() + start + 1
}

fn indentation_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn comment_text(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("//").map(|text| text.trim_start_matches(['/', '!']))
}

fn has_pronoun(text: &str) -> bool {
    let mut words = text.split(|one: char| !one.is_alphanumeric() && one != '\'');
    words.any(|word| PRONOUNS.contains(&word.to_lowercase().as_str()))
}

fn find_functions(lines: &[&str]) -> Vec<Function> {
    let mut functions = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if let Some(name) = function_name(line) {
            let end = end_of_item(lines, index).min(lines.len() - 1);
            functions.push(Function { name, lines: end - index + 1 });
        }
    }
    functions
}

fn function_name(line: &str) -> Option<String> {
    let mut words = line.trim_start().split(' ').peekable();
    while let Some(word) = words.next() {
        match word {
            "fn" => {
                let rest = words.next()?;
                return Some(identifier(rest)).filter(|name| !name.is_empty());
            }
            "pub" | "async" | "const" | "default" => {}
            word if word.starts_with("pub(") => {}
            // `pub(in crate::a)` is two words.
            word if word.ends_with(')') && word.starts_with("crate") => {}
            _ => return None,
        }
    }
    None
}

fn type_name(line: &str) -> Option<String> {
    let text = line.trim_start();
    let text = match text.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ").map_or(rest, |(_, item)| item),
        Some(rest) => rest.trim_start(),
        None => text,
    };
    let keyword =
        ["struct ", "enum ", "trait ", "type "].into_iter().find(|one| text.starts_with(one))?;
    Some(identifier(&text[keyword.len()..]))
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|one| one.is_alphanumeric() || *one == '_').collect()
}

fn crate_paths(line: &str) -> Vec<String> {
    let parts = line.split("crate::").skip(1);
    let names = parts.flat_map(|rest| match rest.strip_prefix('{') {
        Some(list) => list.split(',').map(|part| identifier(part.trim())).collect(),
        None => vec![identifier(rest)],
    });
    names.filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
//! Whoever reads this file.

use crate::step::Target;
use crate::{lock, rbac::Roles};

/// A value.
pub struct Plan {
    steps: Vec<Step>,
}

impl Plan {
    pub(crate) fn carry_out(
        &self,
    ) -> bool {
        true
    }

    fn settle(&self) -> bool { false }
}

struct Step;

#[cfg(test)]
mod tests {
    fn left_out() {}
}
";

    #[test]
    fn a_file_is_taken_apart() {
        let source = Source::parse("plan.rs".to_owned(), TEXT);
        let functions: Vec<_> =
            source.functions.iter().map(|one| (&*one.name, one.lines)).collect();
        assert_eq!(functions, [("carry_out", 5), ("settle", 1)]);
        assert_eq!(source.types, ["Plan", "Step"]);
        assert_eq!(source.imports, ["step", "lock", "rbac"]);
        assert_eq!((source.comments, source.pronouns, source.public), (2, 1, 1));
        assert_eq!(source.lines, 22);
    }

    #[test]
    fn names_of_one_word_are_told_from_those_of_several() {
        let named = |name: &str| Function { name: name.to_owned(), lines: 1 };
        assert!(named("settle").is_one_word() && !named("settle_package").is_one_word());
        assert!(!named("fmt").is_counted());
    }
}
