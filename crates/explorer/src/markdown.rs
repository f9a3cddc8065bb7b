//! Markdown of strangers as HTML.
//!
//! HTML in it is dropped, pictures become their descriptions (fetching one would tell its server of
//! each reader), and links lead to other places only by `http`, `https` and `mailto`. What comes
//! out has no attribute that the text decides but the address of such a link.

use maud::{Markup, PreEscaped};
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// How deep elements are nested; what is deeper has no element of its own.
const NESTING_MAX: usize = 40;
/// Levels that headings of a text are below those of the page.
const LEVELS_BELOW: usize = 2;
/// What a link says to browsers of where it leads.
const RELATION: &str = "nofollow noopener noreferrer ugc";

/// A text as HTML; with a limit, as much of it as fits, and whether that was all.
pub(crate) fn render_markdown(text: &str, limit: usize) -> (Markup, bool) {
    let end = (0..=limit.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    let shown = &text[..end.unwrap_or_default()];
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = MarkdownWriter::default();
    for event in Parser::new_ext(shown, options) {
        writer.take_event(event);
    }
    while let Some(end) = writer.open.pop() {
        writer.html.push_str(end);
    }
    (PreEscaped(writer.html), shown.len() == text.len())
}

#[derive(Default)]
struct MarkdownWriter {
    html: String,
    /// Ends of elements that are open.
    open: Vec<&'static str>,
    /// Whether cells are those of a table's head.
    in_head: bool,
    /// Ends of elements that were not opened for being too deep.
    skipped: usize,
}

impl MarkdownWriter {
    fn take_event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start_tag(&tag),
            Event::End(end) => self.end_tag(end),
            Event::Text(text) => self.write_text(&text),
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.html.push_str("<code>");
                self.write_text(&text);
                self.html.push_str("</code>");
            }
            Event::SoftBreak => self.html.push('\n'),
            Event::HardBreak => self.html.push_str("<br>"),
            Event::Rule => self.html.push_str("<hr>"),
            Event::TaskListMarker(is_done) => {
                self.html.push_str(if is_done { "☑ " } else { "☐ " });
            }
            Event::Html(_) | Event::InlineHtml(_) | Event::FootnoteReference(_) => {}
        }
    }

    fn start_tag(&mut self, tag: &Tag<'_>) {
        if self.open.len() >= NESTING_MAX {
            self.skipped += 1;
            return;
        }
        let (start, end) = match tag {
            Tag::Paragraph => ("<p>", "</p>"),
            Tag::Heading { level, .. } => heading_of(*level),
            Tag::BlockQuote(_) => ("<blockquote>", "</blockquote>"),
            Tag::CodeBlock(_) => ("<pre tabindex=\"0\"><code>", "</code></pre>"),
            Tag::List(None) => ("<ul>", "</ul>"),
            Tag::List(Some(_)) => ("<ol>", "</ol>"),
            Tag::Item => ("<li>", "</li>"),
            Tag::Table(_) => {
                ("<div class=\"scroll\" tabindex=\"0\"><table>", "</tbody></table></div>")
            }
            Tag::TableHead => {
                self.in_head = true;
                ("<thead><tr>", "</tr></thead><tbody>")
            }
            Tag::TableRow => ("<tr>", "</tr>"),
            Tag::TableCell if self.in_head => ("<th scope=\"col\">", "</th>"),
            Tag::TableCell => ("<td>", "</td>"),
            Tag::Emphasis => ("<em>", "</em>"),
            Tag::Strong => ("<strong>", "</strong>"),
            Tag::Strikethrough => ("<del>", "</del>"),
            Tag::Link { dest_url, .. } => return self.start_link(dest_url),
            Tag::Image { .. } => {
                ("<span class=\"absent\" title=\"pictures are not loaded\">", "</span>")
            }
            _ => ("", ""),
        };
        self.html.push_str(start);
        self.open.push(end);
    }

    fn start_link(&mut self, address: &str) {
        if !leads_elsewhere(address) {
            self.open.push("");
            return;
        }
        self.html.push_str("<a href=\"");
        self.write_text(address);
        self.html.push_str("\" rel=\"");
        self.html.push_str(RELATION);
        self.html.push_str("\">");
        self.open.push("</a>");
    }

    fn end_tag(&mut self, end: TagEnd) {
        if self.skipped > 0 {
            self.skipped -= 1;
            return;
        }
        if matches!(end, TagEnd::TableHead) {
            self.in_head = false;
        }
        self.html.push_str(self.open.pop().unwrap_or_default());
    }

    fn write_text(&mut self, text: &str) {
        for letter in text.chars() {
            match letter {
                '&' => self.html.push_str("&amp;"),
                '<' => self.html.push_str("&lt;"),
                '>' => self.html.push_str("&gt;"),
                '"' => self.html.push_str("&quot;"),
                '\'' => self.html.push_str("&#39;"),
                letter => self.html.push(letter),
            }
        }
    }
}

fn heading_of(level: HeadingLevel) -> (&'static str, &'static str) {
    match level as usize + LEVELS_BELOW {
        3 => ("<h3>", "</h3>"),
        4 => ("<h4>", "</h4>"),
        5 => ("<h5>", "</h5>"),
        _ => ("<h6>", "</h6>"),
    }
}

/// Whether an address leads to another place, in a way that runs nothing.
pub(crate) fn leads_elsewhere(address: &str) -> bool {
    let lower = address.to_ascii_lowercase();
    let is_plain = address.chars().all(|letter| !letter.is_control() && !letter.is_whitespace());
    is_plain && ["https://", "http://", "mailto:"].iter().any(|start| lower.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> String {
        render_markdown(text, usize::MAX).0.into_string()
    }

    #[test]
    fn ordinary_texts_look_as_meant() {
        assert_eq!(
            rendered("# A\n\nb *c* **d** `e`"),
            "<h3>A</h3><p>b <em>c</em> <strong>d</strong> <code>e</code></p>"
        );
        assert_eq!(rendered("- a\n- b"), "<ul><li>a</li><li>b</li></ul>");
        assert_eq!(
            rendered("```yaml\na: <b>\n```"),
            "<pre tabindex=\"0\"><code>a: &lt;b&gt;\n</code></pre>"
        );
        let table = rendered("|a|b|\n|-|-|\n|1|2|");
        assert!(table.contains("<thead><tr><th scope=\"col\">a</th>"), "{table}");
        assert!(table.ends_with("<tr><td>1</td><td>2</td></tr></tbody></table></div>"), "{table}");
        let link = rendered("[x](https://example.org/?a=1&b=2)");
        assert!(link.contains("href=\"https://example.org/?a=1&amp;b=2\""), "{link}");
    }

    #[test]
    fn texts_of_strangers_bring_no_html_scripts_or_pictures() {
        for text in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "<iframe src=\"https://evil.example.org\"></iframe>",
            "![x](https://evil.example.org/pixel.png)",
            "![x](javascript:alert(1))",
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "[x](data:text/html;base64,PHNjcmlwdD4=)",
            "[x](vbscript:x)",
            "[x](//evil.example.org)",
            "<https://example.org/\"onmouseover=alert(1)>",
            "[x](https://example.org/\"onmouseover=\"alert(1))",
            "`<script>`",
            "```\"><script>\nalert(1)\n```",
            "<svg/onload=alert(1)>",
            "<style>body{display:none}</style>",
            "<a href=\"javascript:alert(1)\">x</a>",
            "|<script>|\n|-|\n|<img onerror=x>|",
        ] {
            let html = rendered(text).to_lowercase();
            for bad in [
                "<script",
                "<img",
                "<iframe",
                "<svg",
                "<style",
                "src=",
                "href=\"javascript",
                "href=\"data",
                "href=\"vbscript",
                "href=\"//",
            ] {
                assert!(!html.contains(bad), "{text} becomes {html}");
            }
            let is_attribute = html.contains("\"onmouseover") || html.contains("\" onmouseover");
            assert!(!is_attribute, "{text} becomes {html}");
        }
    }

    #[test]
    fn a_text_that_is_nested_or_long_without_end_ends() {
        let deep = rendered(&"> ".repeat(5000));
        assert!(deep.matches("<blockquote>").count() <= NESTING_MAX);
        assert_eq!(deep.matches("<blockquote>").count(), deep.matches("</blockquote>").count());
        let (html, is_all) = render_markdown(&"ä".repeat(1000), 101);
        assert!(!is_all && html.into_string().chars().filter(|it| *it == 'ä').count() == 50);
    }
}
