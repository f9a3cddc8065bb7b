//! What a check has to say: one finding, with its place, its rule and what to do.
//!
//! Findings are values. They are collected, sorted and shown by whoever asked; nothing here
//! prints. A finding without a place (for example "no metadata at all") has line 0.

use serde::Serialize;
use yaml::Position;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The package must not be shipped like this.
    Error,
    /// Probably not what the author meant.
    Warning,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// The rule that speaks, e.g. `duplicate-object`; stable, for suppressions and documents.
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What is wrong, in a plain sentence without a final stop.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The file, relative to the package root; or `package.yaml` for a built package.
    pub file: String,
    /// Line, from 1; 0 when the finding is about the package as a whole.
    pub line: u32,
    /// Column, from 1; 0 when the finding is about the package as a whole.
    pub column: u32,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(rule: &'static str, file: &str, at: Position, message: impl Into<String>) -> Self {
        Self::new(rule, Severity::Error, file, at, message.into())
    }

    /// A warning at a place.
    pub fn warning(
        rule: &'static str,
        file: &str,
        at: Position,
        message: impl Into<String>,
    ) -> Self {
        Self::new(rule, Severity::Warning, file, at, message.into())
    }

    /// The same finding with advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// About how much memory it takes.
    pub(crate) fn size(&self) -> usize {
        let hint = self.hint.as_ref().map_or(0, String::len);
        size_of::<Self>() + self.message.len() + hint + self.file.len()
    }

    fn new(
        rule: &'static str,
        severity: Severity,
        file: &str,
        at: Position,
        message: String,
    ) -> Self {
        let (line, column) = (at.line, at.column);
        Self { rule, severity, message, hint: None, file: file.to_owned(), line, column }
    }
}

/// Puts findings in reading order: by file, line and column, then errors before warnings.
pub fn sort(diagnostics: &mut [Diagnostic]) {
    diagnostics.sort_by(|a, b| {
        let key = |one: &Diagnostic| (one.line, one.column, one.severity, one.rule);
        a.file.cmp(&b.file).then_with(|| key(a).cmp(&key(b)))
    });
}
