//! Collecting findings about one document.

use super::rules::Rule;
use crate::diagnostic::{Diagnostic, Severity};
use yaml::Position;

/// So many findings about one document are told; whoever has mended them hears of the others.
const FINDINGS_MAX: usize = 500;

/// The findings about one document so far.
#[derive(Debug)]
pub(super) struct Findings<'f> {
    file: &'f str,
    list: Vec<Diagnostic>,
}

impl<'f> Findings<'f> {
    pub(super) fn new(file: &'f str) -> Self {
        Self { file, list: Vec::new() }
    }

    pub(super) fn into_list(self) -> Vec<Diagnostic> {
        self.list
    }

    /// Whether anything was found here.
    pub(super) fn mention(&self, at: Position) -> bool {
        self.list.iter().any(|one| (one.line, one.column) == (at.line, at.column))
    }

    /// Whether a rule found something here.
    pub(super) fn has_found(&self, rule: &Rule, at: Position) -> bool {
        let here = |one: &Diagnostic| (one.line, one.column) == (at.line, at.column);
        self.list.iter().any(|one| one.rule == rule.name && here(one))
    }

    /// How much a rule found.
    pub(super) fn count_of(&self, rule: &Rule) -> usize {
        self.list.iter().filter(|one| one.rule == rule.name).count()
    }

    /// Adds a finding that explains itself.
    pub(super) fn say(&mut self, rule: &Rule, at: Position, message: impl Into<String>) {
        self.push(finding(rule, self.file, at, message));
    }

    /// Adds a finding with advice.
    pub(super) fn advise(
        &mut self,
        rule: &Rule,
        at: Position,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.push(finding(rule, self.file, at, message).hint(hint));
    }

    /// An error is never left out for a warning.
    fn push(&mut self, finding: Diagnostic) {
        if self.list.len() < FINDINGS_MAX {
            self.list.push(finding);
        } else if finding.severity == Severity::Error
            && let Some(last) = self.list.last_mut()
            && last.severity == Severity::Warning
        {
            *last = finding;
        }
    }
}

/// A finding of the severity its rule has.
pub(super) fn finding(
    rule: &Rule,
    file: &str,
    at: Position,
    message: impl Into<String>,
) -> Diagnostic {
    match rule.severity {
        Severity::Error => Diagnostic::error(rule.name, file, at, message),
        Severity::Warning => Diagnostic::warning(rule.name, file, at, message),
    }
}
