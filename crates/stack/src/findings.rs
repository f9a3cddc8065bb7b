//! Collecting findings about all files of a package.

use xpkg::diagnostic::{Diagnostic, Severity};
use xpkg::lint::Rule;
use yaml::{Node, ParseError, Position};

/// So many findings are kept: a package with more is refused anyway.
const FINDINGS_MAX: usize = 2_000;
/// So much of a message is shown: API servers repeat the value they refuse.
const MESSAGE_CHARS_MAX: usize = 400;

/// The findings so far.
#[derive(Debug, Default)]
pub(crate) struct StackFindings {
    list: Vec<Diagnostic>,
}

impl StackFindings {
    /// Adds a finding with advice.
    pub(crate) fn advise_at(
        &mut self,
        rule: &Rule,
        (file, at): (&str, Position),
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        if self.list.len() >= FINDINGS_MAX && rule.severity == Severity::Warning {
            return;
        }
        if self.list.len() >= 2 * FINDINGS_MAX {
            return;
        }
        let message = shorten_message(message.into());
        let finding = match rule.severity {
            Severity::Error => Diagnostic::error(rule.name, file, at, message),
            Severity::Warning => Diagnostic::warning(rule.name, file, at, message),
        };
        self.list.push(finding.hint(hint));
    }

    /// Adds a document that cannot be read.
    pub(crate) fn add_syntax(&mut self, file: &str, error: ParseError) {
        let hint = error.hint.unwrap_or_else(|| "correct the YAML".to_owned());
        self.advise_at(&super::rules::YAML_SYNTAX, (file, error.position), error.message, hint);
    }

    /// All findings in reading order.
    pub(crate) fn into_sorted(mut self) -> Vec<Diagnostic> {
        xpkg::diagnostic::sort(&mut self.list);
        self.list
    }
}

fn shorten_message(message: String) -> String {
    match message.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
    }
}

/// The place of a field in the notation of API servers (`spec.versions[0].schema`), or of its
/// nearest ancestor that was written.
pub(crate) fn locate_field(root: &Node<'_>, path: &str) -> Position {
    let steps = split_path(path);
    let place = walk_steps(root, &steps);
    // API servers speak of a definition with one version as if that stood at the top, and of others
    // version by version; files may say either.
    let [first, field, rest @ ..] = steps.as_slice() else { return place };
    let own = match field.as_str() {
        "validation" => "schema",
        "subresources" | "additionalPrinterColumns" => field.as_str(),
        _ => return place,
    };
    if first != "spec" || root.at(&["spec", field]).is_some() {
        return place;
    }
    let inner = ["spec", "versions", "0", own].into_iter().map(str::to_owned);
    let steps: Vec<String> = inner.chain(rest.iter().cloned()).collect();
    walk_steps(root, &steps)
}

fn split_path(path: &str) -> Vec<String> {
    let mut steps = Vec::new();
    for part in path.split(['.', '[']) {
        // A key in brackets may have dots; the walk ends there, at its nearest ancestor.
        let step = part.trim_end_matches(']');
        if !step.is_empty() {
            steps.push(step.to_owned());
        }
    }
    steps
}

fn walk_steps(root: &Node<'_>, steps: &[String]) -> Position {
    let mut place = root.position;
    let mut node = root;
    for step in steps {
        let next = match step.parse::<usize>() {
            Ok(index) if !node.items().is_empty() => node.items().get(index),
            _ => node.get(step),
        };
        let Some(next) = next else { break };
        place = node.entry(step).map_or(next.position, |entry| entry.position);
        node = next;
    }
    place
}
