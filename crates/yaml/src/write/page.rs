//! What has been written, and what the next thing has to know about it.

/// Columns an indentation is wide.
const STEP: usize = 2;

/// A text under way.
#[derive(Debug)]
pub(super) struct Page {
    out: String,
    column: usize,
    /// The indentation of the collection under way; none outside of the first.
    indent: Option<usize>,
    /// Whether a blank, or a line's start, stands before what comes next.
    blank: bool,
    /// Whether the line holds nothing but indentation and marks.
    at_indent: bool,
}

impl Page {
    pub(super) fn new() -> Self {
        Self { out: String::new(), column: 0, indent: None, blank: true, at_indent: true }
    }

    /// The text, its last line ended.
    pub(super) fn finish(mut self) -> String {
        if self.column > 0 {
            self.break_line();
        }
        self.out
    }

    pub(super) fn column(&self) -> usize {
        self.column
    }

    pub(super) fn at_indent(&self) -> bool {
        self.at_indent
    }

    pub(super) fn indent(&self) -> Option<usize> {
        self.indent
    }

    /// Indents a collection; says where to go back to.
    pub(super) fn deeper(&mut self) -> Option<usize> {
        let outer = self.indent;
        self.indent = Some(outer.map_or(0, |indent| indent + STEP));
        outer
    }

    /// Indents the lines of a text; says where to go back to.
    pub(super) fn deeper_text(&mut self) -> Option<usize> {
        let outer = self.indent;
        self.indent = Some(outer.unwrap_or(0) + STEP);
        outer
    }

    pub(super) fn back_to(&mut self, outer: Option<usize>) {
        self.indent = outer;
    }

    /// Goes to where a line's content starts, on this line if that is still ahead.
    pub(super) fn line(&mut self) {
        let indent = self.indent.unwrap_or(0);
        let passed = self.column > indent || (self.column == indent && !self.blank);
        if !self.at_indent || passed {
            self.break_line();
        }
        while self.column < indent {
            self.put(' ');
        }
        (self.blank, self.at_indent) = (true, true);
    }

    /// Writes a mark such as `-`, after a blank if it needs one. `open` marks leave the line at
    /// its indentation.
    pub(super) fn mark(&mut self, mark: &str, spaced: bool, open: bool) {
        if spaced {
            self.space();
        }
        mark.chars().for_each(|c| self.put(c));
        self.blank = false;
        self.at_indent &= open;
    }

    /// A blank, if there is none.
    pub(super) fn space(&mut self) {
        if !self.blank {
            self.put(' ');
        }
    }

    pub(super) fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    pub(super) fn break_line(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    /// After a text: what comes next needs a blank, and more than indentation stands here.
    pub(super) fn written(&mut self) {
        (self.blank, self.at_indent) = (false, false);
    }

    /// After the head of a block of lines.
    pub(super) fn open_block(&mut self) {
        self.break_line();
        self.at_start();
    }

    /// Nothing stands on the line.
    pub(super) fn at_start(&mut self) {
        (self.blank, self.at_indent) = (true, true);
    }
}
