//! Tabs between tokens, which YAML 1.2 forgives and go-yaml does not.
//!
//! A stray tab on an otherwise empty line is invisible, harmless to granit, and refused by every
//! Kubernetes tool. go-yaml refuses a tab wherever a key could start: at the start of a line and
//! after `- ` or `? `, outside braces and brackets. The same is looked for here, in the gaps
//! between scalars, and only in documents that have a tab at all.

use granit_parser::{ScalarStyle, Span};

use super::error::ParseError;
use super::tree::Position;

/// Reads the gaps between scalars as they come.
#[derive(Debug)]
pub(super) struct Tabs<'a> {
    source: &'a str,
    first_line: u32,
    /// The byte up to which everything was looked at; the end if there is nothing to look for.
    done: usize,
    /// Whether a key could start here.
    key_allowed: bool,
    /// Whether nothing but blanks followed a plain scalar, which could still go on.
    after_plain: bool,
    /// Braces and brackets open.
    flow: usize,
}

impl<'a> Tabs<'a> {
    pub(super) fn new(source: &'a str, first_line: u32) -> Self {
        let tabs = source.contains('\t');
        Self {
            source,
            first_line,
            done: if tabs { 0 } else { source.len() },
            key_allowed: true,
            after_plain: false,
            flow: 0,
        }
    }

    /// Looks at what stands before a scalar, and at the scalar's own line starts.
    pub(super) fn scalar(&mut self, style: ScalarStyle, span: &Span) -> Result<(), ParseError> {
        if self.done == self.source.len() {
            return Ok(());
        }
        let Some(range) = span.byte_range().filter(|range| range.end > self.done) else {
            return Ok(());
        };
        self.gap(range.start.max(self.done))?;
        if style == ScalarStyle::Plain && self.flow == 0 {
            let text = self.source.get(range.clone()).unwrap_or_default();
            if let Some(at) = text.find("\n\t") {
                return Err(self.error(range.start + at + 1));
            }
        }
        if !range.is_empty() {
            // A block scalar ends with its line, and the next line may start with a key.
            let block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
            self.key_allowed = block && self.source[..range.end].ends_with('\n');
            self.after_plain = style == ScalarStyle::Plain;
            self.done = range.end;
        }
        Ok(())
    }

    /// Looks at what stands behind the last scalar.
    pub(super) fn end(&mut self) -> Result<(), ParseError> {
        self.gap(self.source.len())
    }

    /// Looks at everything up to a byte; only marks, names and comments stand there.
    fn gap(&mut self, end: usize) -> Result<(), ParseError> {
        let start = self.done;
        let gap = self.source.as_bytes().get(start..end).unwrap_or_default();
        self.done = start.max(end);
        let mut comment = false;
        for (at, byte) in (start..).zip(gap) {
            match byte {
                b'\n' => (comment, self.key_allowed) = (false, true),
                _ if comment => {}
                b'\t' if self.refuses(at) => return Err(self.error(at)),
                b' ' | b'\t' | b'\r' => {}
                b'#' => comment = true,
                _ => self.mark(*byte, at),
            }
        }
        Ok(())
    }

    /// Whether a tab at that byte is one too many.
    fn refuses(&self, at: usize) -> bool {
        // Blanks behind a plain scalar count as part of it, unless they start the line.
        let starts_line = self.source[..at].ends_with('\n');
        self.key_allowed && self.flow == 0 && (starts_line || !self.after_plain)
    }

    /// Takes in a mark, or a letter of a name.
    fn mark(&mut self, byte: u8, at: usize) {
        self.after_plain = false;
        match byte {
            b'-' | b'?' => {
                let before = at.checked_sub(1).and_then(|at| self.source.as_bytes().get(at));
                let after = self.source.as_bytes().get(at + 1);
                // The last dash of `---` opens no entry.
                self.key_allowed =
                    before != Some(&b'-') && matches!(after, Some(b' ' | b'\t' | b'\n' | b'\r'));
            }
            b'[' | b'{' => self.flow += 1,
            b']' | b'}' => self.flow = self.flow.saturating_sub(1),
            _ => self.key_allowed = false,
        }
    }

    /// The error for the tab at a byte.
    fn error(&self, at: usize) -> ParseError {
        let before = &self.source[..at];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        ParseError::tab(Position {
            line: self.first_line.saturating_add(count(before.matches('\n').count())),
            column: count(before[line_start..].chars().count()).saturating_add(1),
        })
    }
}
