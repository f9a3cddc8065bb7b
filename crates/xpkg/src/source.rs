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

/// Where a package's metadata is, relative to its root.
pub const METADATA_FILE: &str = "crossplane.yaml";

/// A package directory, read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sources<'a> {
    /// Files of the package.
    pub files: &'a [SourceFile],
    /// Files of its examples.
    pub examples: &'a [SourceFile],
    /// What could have been part of the package or its examples, and was not taken.
    pub skipped: &'a [SkippedFile],
    /// The file that has to hold the metadata; any, if there is none.
    pub metadata: Option<&'a str>,
}

/// A file or directory that was met and not taken, though nothing asked to leave it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedFile {
    /// Its path relative to the package root.
    pub path: String,
    /// Why it was not taken.
    pub why: SkipReason,
}

/// Why something was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// A link to a file, and links are not followed.
    Link,
    /// A link to a directory.
    LinkToDirectory,
    /// A link to a file outside of the directories that links may lead to.
    LinkOutside,
    /// A link to nothing, or to no regular file.
    LinkBroken,
    /// A directory below more others than are walked.
    TooDeep,
    /// A name that cannot be written in a package.
    NotUtf8,
    /// A socket, pipe or device.
    NotRegular,
}

/// Which files of a directory are taken. Paths are relative to the package root, separated
/// by `/`.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Where examples lie, if that is below the root; nothing there is part of the package.
    pub examples: Option<String>,
    /// Other directories below the root whose files are no part of the package.
    pub apart: Vec<String>,
    /// What to leave out.
    pub ignore: Vec<Glob>,
}

impl Selection {
    /// Whether a regular file of this name and size is part of the package.
    pub fn takes(&self, path: &str, size: u64) -> bool {
        is_yaml(path) && size > 0 && self.reaches(path)
    }

    /// Whether a file or directory of this name would be looked at.
    pub fn reaches(&self, path: &str) -> bool {
        let mut apart = self.apart.iter().chain(&self.examples);
        !apart.any(|directory| lies_in(path, directory)) && !self.ignores(path)
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
    /// Nodes of its documents.
    nodes: usize,
    text_bytes: usize,
}

/// Reads the files of a package, whose documents count together.
#[derive(Debug)]
pub struct Reading<'a> {
    limits: &'a Limits,
    total: yaml::Total,
    /// Whether what was read is too much already.
    is_over: bool,
}

impl<'a> Reading<'a> {
    /// Begins with a package.
    pub fn new(limits: &'a Limits) -> Self {
        Self { limits, total: limits.total(), is_over: false }
    }

    /// Takes the next file, which was read by itself.
    pub fn take(&mut self, mut file: SourceFile) -> SourceFile {
        self.total.add_plain(file.nodes, file.text_bytes);
        self.check(&mut file);
        file
    }

    /// Reads the next file. Once it is too much, nothing more is read: the package is refused.
    pub fn read(&mut self, path: &str, bytes: &[u8]) -> SourceFile {
        let mut file = SourceFile::new(path, bytes);
        if !self.is_over {
            self.is_over = !file.read_bytes(bytes, self.limits, Some(&mut self.total));
            self.check(&mut file);
        }
        file
    }

    fn check(&mut self, file: &mut SourceFile) {
        if self.total.is_exceeded() && !self.is_over {
            self.is_over = true;
            let limit = self.limits.package_nodes_max;
            let message =
                format!("the package has more nodes than the limit of {limit} (package_nodes_max)");
            let at = Position::default();
            let finding = Diagnostic::error(YAML_SYNTAX.name, &file.path, at, message);
            file.diagnostics.push(finding.hint("split the package into several"));
        }
    }
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
    fn new(path: &str, bytes: &[u8]) -> Self {
        Self {
            path: path.to_owned(),
            digest: Digest::of(bytes),
            documents: Vec::new(),
            diagnostics: Vec::new(),
            nodes: 0,
            text_bytes: bytes.len(),
        }
    }

    /// Reads a file of the package by itself, on any core; nothing if what it says depends on other
    /// files, because documents with anchors and aliases count together ([`Reading`]).
    pub fn read_plain(path: &str, bytes: &[u8], limits: &Limits) -> Option<Self> {
        let mut file = Self::new(path, bytes);
        file.read_bytes(bytes, limits, None).then_some(file)
    }

    fn read_bytes(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        total: Option<&mut yaml::Total>,
    ) -> bool {
        match std::str::from_utf8(bytes) {
            Ok(text) => return self.read_text(text, limits, total),
            Err(error) => {
                let valid = &bytes[..error.valid_up_to()];
                let line = String::from_utf8_lossy(valid).matches('\n').count() + 1;
                let at = Position { line: u32::try_from(line).unwrap_or(u32::MAX), column: 1 };
                let finding =
                    Diagnostic::error(YAML_SYNTAX.name, &self.path, at, "file is not UTF-8 text");
                self.diagnostics.push(finding.hint("save the file as UTF-8"));
            }
        }
        true
    }

    /// Reads all documents. Stops, and says so, at one with anchors or aliases if there is nothing to
    /// count them with, and at one that is too much for what there is.
    fn read_text(
        &mut self,
        text: &str,
        limits: &Limits,
        mut total: Option<&mut yaml::Total>,
    ) -> bool {
        for document in yaml::split::documents(text, &limits.yaml) {
            let document = match document {
                Ok(document) => document,
                Err(error) => {
                    let at = Position::default();
                    let finding =
                        Diagnostic::error(YAML_SYNTAX.name, &self.path, at, error.to_string());
                    self.diagnostics.push(finding);
                    return true;
                }
            };
            let options = yaml::Options::default();
            let (text, line) = (document.text, document.line);
            let parsed = match total.as_deref_mut() {
                Some(total) => yaml::parse_counted(text, line, &limits.yaml, options, total)
                    .map(|node| Some((node, 0))),
                None => yaml::parse_plain(text, line, &limits.yaml, options),
            };
            match parsed {
                Ok(Some((node, nodes))) => {
                    self.nodes += nodes;
                    self.keep(&document, &node);
                }
                Ok(None) => return false,
                Err(error) => {
                    let is_over = error.is_of_stream();
                    self.diagnostics.push(syntax(&self.path, error));
                    if is_over {
                        return false;
                    }
                }
            }
        }
        true
    }

    fn keep(&mut self, document: &yaml::RawDocumentRef<'_>, node: &yaml::Node<'_>) {
        let start = usize::try_from(document.offset).unwrap_or(usize::MAX);
        let range = start..start.saturating_add(document.text.len());
        let report = lint::document(&self.path, node);
        let ends_in_newline = document.text.ends_with('\n');
        self.documents.push(SourceDocument { range, ends_in_newline, report });
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
        let apart = vec!["icons".to_owned()];
        let selection = Selection { examples: Some("examples".into()), apart, ignore };
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
        check("icons/a.yaml", 1, false);
    }

    #[test]
    fn files_come_in_the_order_of_a_walk() {
        let mut paths = vec!["b.yaml", "a.yaml", "a/z.yaml", "a/b/c.yaml", "a-b.yaml"];
        paths.sort_by(|left, right| order(left, right));
        assert_eq!(paths, ["a/b/c.yaml", "a/z.yaml", "a-b.yaml", "a.yaml", "b.yaml"]);
    }
}
