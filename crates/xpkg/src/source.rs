//! A package on disk: which files belong to it, and what each says.
//!
//! The shell walks the directory and hands over names and bytes; the rules are here. A file is
//! read into a [`SourceFile`]: the place of each document and what the checks had to say. Its
//! text is not kept, so that a package of any size is built in little memory.

use crate::Limits;
use crate::diagnostic::Diagnostic;
use crate::glob::Glob;
use crate::lint::rules::YAML_SYNTAX;
use crate::lint::{self, DocumentReport};
use oci::Digest;
use std::cmp::Ordering;
use std::ops::Range;
use yaml::Position;

/// Which files of a directory are taken. Paths are relative to the package root, separated
/// by `/`.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Where examples lie, if that is below the root; nothing there is part of the package.
    pub examples: Option<String>,
    /// What to leave out.
    pub ignore: Vec<Glob>,
}

impl Selection {
    /// Whether a regular file of this name and size is part of the package.
    pub fn takes(&self, path: &str, size: u64) -> bool {
        let example = self.examples.as_deref().is_some_and(|examples| lies_in(path, examples));
        is_yaml(path) && size > 0 && !example && !self.ignores(path)
    }

    /// Whether a pattern leaves this path out.
    pub fn ignores(&self, path: &str) -> bool {
        self.ignore.iter().any(|glob| glob.covers(path))
    }
}

/// Whether the name ends in `.yaml` or `.yml`, letter for letter.
pub fn is_yaml(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    matches!(name.rsplit_once('.'), Some((_, "yaml" | "yml")))
}

/// The order files come in: by directory level, as a walk meets them.
pub fn order(left: &str, right: &str) -> Ordering {
    left.split('/').cmp(right.split('/'))
}

fn lies_in(path: &str, directory: &str) -> bool {
    let rest = path.strip_prefix(directory.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.starts_with('/') || rest.is_empty())
}

/// One file of a package, read.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Its path relative to the package root.
    pub path: String,
    /// Address of its bytes, to notice when they change between reading and packing.
    pub digest: Digest,
    /// Its documents, in order.
    pub documents: Vec<SourceDocument>,
    /// What keeps the file from being read.
    pub diagnostics: Vec<Diagnostic>,
}

/// One document of a file.
#[derive(Clone, Debug)]
pub struct SourceDocument {
    /// Where its text stands in the file.
    pub range: Range<usize>,
    /// Whether the text ends its last line.
    pub ends_in_newline: bool,
    /// What the checks saw.
    pub report: DocumentReport,
}

impl SourceFile {
    /// Reads a file of the package.
    pub fn read(path: &str, bytes: &[u8], limits: &Limits) -> Self {
        let mut file = Self {
            path: path.to_owned(),
            digest: Digest::of(bytes),
            documents: Vec::new(),
            diagnostics: Vec::new(),
        };
        match std::str::from_utf8(bytes) {
            Ok(text) => file.read_text(text, limits),
            Err(error) => {
                let valid = &bytes[..error.valid_up_to()];
                let line = String::from_utf8_lossy(valid).matches('\n').count() + 1;
                let at = Position { line: u32::try_from(line).unwrap_or(u32::MAX), column: 1 };
                let finding =
                    Diagnostic::error(YAML_SYNTAX.name, path, at, "file is not UTF-8 text");
                file.diagnostics.push(finding.hint("save the file as UTF-8"));
            }
        }
        file
    }

    fn read_text(&mut self, text: &str, limits: &Limits) {
        for document in yaml::split::documents(text, &limits.yaml) {
            let document = match document {
                Ok(document) => document,
                Err(error) => {
                    let at = Position::default();
                    let finding =
                        Diagnostic::error(YAML_SYNTAX.name, &self.path, at, error.to_string());
                    self.diagnostics.push(finding);
                    return;
                }
            };
            match yaml::parse(document.text, document.line, &limits.yaml) {
                Ok(node) => {
                    let start = usize::try_from(document.offset).unwrap_or(usize::MAX);
                    let range = start..start + document.text.len();
                    let report = lint::document(&self.path, &node);
                    let ends_in_newline = document.text.ends_with('\n');
                    self.documents.push(SourceDocument { range, ends_in_newline, report });
                }
                Err(error) => self.diagnostics.push(syntax(&self.path, error)),
            }
        }
    }

    /// Everything the checks of single documents found.
    pub fn findings(&self) -> impl Iterator<Item = &Diagnostic> {
        let documents = self.documents.iter().flat_map(|document| &document.report.diagnostics);
        self.diagnostics.iter().chain(documents)
    }
}

/// A parse error as a finding.
pub(crate) fn syntax(file: &str, error: yaml::ParseError) -> Diagnostic {
    let finding = Diagnostic::error(YAML_SYNTAX.name, file, error.position, error.message);
    match error.hint {
        Some(hint) => finding.hint(hint),
        None => finding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_files_outside_of_examples_are_taken() {
        let ignore = vec![Glob::parse("test/*").unwrap()];
        let selection = Selection { examples: Some("examples".into()), ignore };
        let check = |path: &str, size: u64, expected: bool| {
            assert_eq!(selection.takes(path, size), expected, "{path}");
        };
        check("crossplane.yaml", 1, true);
        check("a/b.yml", 1, true);
        check("a/b.YAML", 1, false);
        check("a/b.json", 1, false);
        check("yaml", 1, false);
        check("empty.yaml", 0, false);
        check("examples/a.yaml", 1, false);
        check("examples-of-ours/a.yaml", 1, true);
        check("test/a.yaml", 1, false);
    }

    #[test]
    fn files_come_in_the_order_of_a_walk() {
        let mut paths = vec!["b.yaml", "a.yaml", "a/z.yaml", "a/b/c.yaml", "a-b.yaml"];
        paths.sort_by(|left, right| order(left, right));
        assert_eq!(paths, ["a/b/c.yaml", "a/z.yaml", "a-b.yaml", "a.yaml", "b.yaml"]);
    }
}
