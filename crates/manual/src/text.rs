//! Markdown as a terminal shows it, as far as the manual's pages use it.
//!
//! Paragraphs and items of lists are filled to a width; tables become a block for each row, because no terminal
//! is as wide as they are; code stands as it is, a little to the right. Links become their words, because a
//! terminal has no pages to lead to.

/// A line to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalLine {
    /// The title of what follows.
    Heading(String),
    /// The first line of a row of a table: what it is about.
    Term(String),
    /// Any other line.
    Text(String),
}

/// How far code and rows of tables stand to the right.
const INDENT: &str = "  ";

/// Sets a page for a terminal of this width.
pub fn render_page(source: &str, width: usize) -> Vec<TerminalLine> {
    let mut page = PageSetter { lines: Vec::new(), width, open: None, columns: Vec::new() };
    let mut is_code = false;
    for line in source.lines() {
        if line.trim_start().starts_with("```") {
            page.close_paragraph();
            is_code = !is_code;
        } else if is_code {
            page.lines
                .push(TerminalLine::Text(format!("{INDENT}{INDENT}{line}").trim_end().to_owned()));
        } else {
            page.take_line(line);
        }
    }
    page.close_paragraph();
    without_doubles(page.lines)
}

/// A page that is being set.
struct PageSetter {
    lines: Vec<TerminalLine>,
    width: usize,
    /// A paragraph whose end was not met yet.
    open: Option<OpenParagraph>,
    /// Headings of the table that is being read.
    columns: Vec<String>,
}

/// A paragraph, or an item of a list.
struct OpenParagraph {
    /// What stands before the first line.
    mark: String,
    /// Words between spaces.
    text: String,
}

impl PageSetter {
    fn take_line(&mut self, line: &str) {
        if let Some(cells) = row_cells(line) {
            self.close_paragraph();
            return self.take_row(&cells);
        }
        self.columns.clear();
        let words = line.trim();
        if words.is_empty() {
            self.close_paragraph();
            self.lines.push(TerminalLine::Text(String::new()));
        } else if let Some(title) = heading_text(words) {
            self.close_paragraph();
            self.lines.push(TerminalLine::Heading(plain_text(title)));
            self.lines.push(TerminalLine::Text(String::new()));
        } else if let Some(title) = admonition_title(words) {
            self.close_paragraph();
            self.lines.push(TerminalLine::Term(title));
        } else if let Some((mark, text)) = item_parts(words) {
            self.close_paragraph();
            let before = line.len() - line.trim_start().len();
            let mark = format!("{}{mark} ", " ".repeat(before));
            self.open = Some(OpenParagraph { mark, text: text.to_owned() });
        } else if let Some(open) = &mut self.open {
            open.text.push(' ');
            open.text.push_str(words);
        } else {
            self.open = Some(OpenParagraph { mark: String::new(), text: words.to_owned() });
        }
    }

    fn take_row(&mut self, cells: &[&str]) {
        let cells: Vec<String> = cells.iter().map(|cell| plain_text(cell)).collect();
        if self.columns.is_empty() {
            self.columns = cells;
            return;
        }
        if cells.iter().all(|cell| cell.bytes().all(|byte| b"-:".contains(&byte))) {
            return;
        }
        let columns = self.columns.clone();
        let mut pairs = columns.iter().zip(&cells);
        if let Some((_, term)) = pairs.next() {
            self.lines.push(TerminalLine::Term(term.clone()));
        }
        for (column, cell) in pairs.filter(|(_, cell)| !cell.is_empty()) {
            // With one column beside the first, its heading says nothing that the page does not.
            let is_named = columns.len() > 2 && !column.is_empty();
            let text = if is_named { format!("{column}: {cell}") } else { cell.clone() };
            self.fill_lines(&format!("{INDENT}{INDENT}"), &text);
        }
    }

    fn close_paragraph(&mut self) {
        let Some(OpenParagraph { mark, text }) = self.open.take() else { return };
        self.fill_lines(&mark, &plain_text(&text));
    }

    /// Breaks words into lines; those after the first stand below the words of the first.
    fn fill_lines(&mut self, mark: &str, text: &str) {
        let indent = " ".repeat(mark.chars().count());
        let mut line = mark.to_owned();
        let mut is_empty = true;
        for word in text.split_whitespace() {
            let length = line.chars().count() + 1 + word.chars().count();
            if !is_empty && length > self.width {
                self.lines.push(TerminalLine::Text(std::mem::replace(&mut line, indent.clone())));
                is_empty = true;
            }
            if !is_empty {
                line.push(' ');
            }
            line.push_str(word);
            is_empty = false;
        }
        self.lines.push(TerminalLine::Text(line));
    }
}

/// `## Title`.
fn heading_text(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches('#');
    (rest.len() < line.len()).then_some(rest)?.strip_prefix(' ')
}

/// `!!! warning "Title"`.
fn admonition_title(line: &str) -> Option<String> {
    let words = line.strip_prefix("!!! ")?;
    let title = words.split_once('"').map(|(_, rest)| rest.trim_end_matches('"'));
    Some(plain_text(title.unwrap_or(words)))
}

/// `- text`, `1. text`.
fn item_parts(line: &str) -> Option<(&str, &str)> {
    let (mark, text) = line.split_once(' ')?;
    let number = mark.strip_suffix('.');
    let is_number =
        number.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()));
    (mark == "-" || is_number).then_some((mark, text))
}

/// The cells of a table's row; `\|` is a letter of a cell.
pub(crate) fn row_cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.strip_prefix('|')?.trim_end().strip_suffix('|')?;
    let mut cells = Vec::new();
    let mut start = 0;
    for (at, _) in inner.match_indices('|') {
        if !inner[..at].ends_with('\\') {
            cells.push(inner[start..at].trim());
            start = at + 1;
        }
    }
    cells.push(inner[start..].trim());
    Some(cells)
}

/// Text without the marks of Markdown: links are their words, and images are left out.
pub(crate) fn plain_text(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    // What stands between backticks is code's, and every mark in it a letter.
    for (position, part) in text.split('`').enumerate() {
        if position > 0 {
            plain.push('`');
        }
        if position % 2 == 1 {
            plain.push_str(
                &part.replace("\\|", "|").replace('[', CODE_OPENS).replace(']', CODE_CLOSES),
            );
        } else {
            let part = part.replace("\\|", "|").replace("\\*", STAR).replace('*', "");
            plain.push_str(&part.replace("\\[", CODE_OPENS).replace("&lt;", "<"));
        }
    }
    let plain = without_links(&plain).replace(STAR, "*");
    plain.replace(CODE_OPENS, "[").replace(CODE_CLOSES, "]")
}

/// Brackets that belong to no link, while links are looked for.
const CODE_OPENS: &str = "\u{1}";
const CODE_CLOSES: &str = "\u{2}";
/// An asterisk that marks nothing.
const STAR: &str = "\u{3}";

/// `[words](address)` as `words`; pages have no addresses with brackets in them.
fn without_links(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(middle) = rest.find("](") {
        let Some(end) = rest[middle..].find(')').map(|at| middle + at) else { break };
        let Some(start) = rest[..middle].rfind('[') else {
            plain.push_str(&rest[..end]);
            rest = &rest[end..];
            continue;
        };
        let is_image = rest[..start].ends_with('!');
        plain.push_str(rest[..start].trim_end_matches('!'));
        if !is_image {
            plain.push_str(&rest[start + 1..middle]);
        }
        rest = &rest[end + 1..];
    }
    plain.push_str(rest);
    plain
}

/// One empty line in place of several, and none at the ends.
fn without_doubles(lines: Vec<TerminalLine>) -> Vec<TerminalLine> {
    let is_empty =
        |line: &TerminalLine| matches!(line, TerminalLine::Text(text) if text.is_empty());
    let mut kept: Vec<TerminalLine> = Vec::with_capacity(lines.len());
    for line in lines {
        if !is_empty(&line) || kept.last().is_some_and(|last| !is_empty(last)) {
            kept.push(line);
        }
    }
    while kept.last().is_some_and(is_empty) {
        kept.pop();
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topics::TOPICS;

    fn printed(source: &str) -> String {
        let lines = render_page(source, 40).into_iter().map(|line| match line {
            TerminalLine::Heading(text) => format!("= {text}"),
            TerminalLine::Term(text) => format!("* {text}"),
            TerminalLine::Text(text) => text,
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn paragraphs_and_items_are_filled() {
        let page = "# A [page](a.md)\n\nWords that are **longer** than one line of\nthis width, and `code`.\n\n\
                    1. The first one, which is longer than a line as well.\n2. The second.\n   It goes on.\n";
        let expected = "= A page\n\nWords that are longer than one line of\nthis width, and `code`.\n\n\
                        1. The first one, which is longer than a\n   line as well.\n2. The second. It goes on.";
        assert_eq!(printed(page), expected);
    }

    #[test]
    fn rows_of_tables_become_blocks_and_code_stands_as_it_is() {
        let page = "| code | meaning | then |\n|---|---|---|\n| `a\\|b` | one | |\n| 2 | two | more |\n\n\
                    ```sh\napron up   # here\n```\n\n| name | value |\n|---|---|\n| x | what it is |\n";
        let expected = "* `a|b`\n    meaning: one\n* 2\n    meaning: two\n    then: more\n\n    apron up   # here\n\n\
                        * x\n    what it is";
        assert_eq!(printed(page), expected);
    }

    #[test]
    fn images_go_and_brackets_that_are_no_links_stay() {
        assert_eq!(
            plain_text("![a picture](a.png) b [c] and `d[](e)`, \\[x]"),
            " b [c] and `d[](e)`, [x]"
        );
        assert_eq!(plain_text("a](b) [c](d)"), "a](b) c");
    }

    #[test]
    fn no_topic_shows_marks_of_markdown() {
        for topic in TOPICS {
            // Wide enough that no code is broken: what stands between backticks may have any mark.
            for line in render_page(topic.source(), usize::MAX) {
                let (TerminalLine::Heading(text)
                | TerminalLine::Term(text)
                | TerminalLine::Text(text)) = line;
                let words: String = text.split('`').step_by(2).collect();
                let has_marks =
                    words.contains("](") || words.contains("**") || text.starts_with('#');
                assert!(text.starts_with("    ") || !has_marks, "{}: {text}", topic.name);
            }
        }
    }
}
