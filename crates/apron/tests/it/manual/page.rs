//! A page, read as a reader who follows it: files to write and lines to type, in their order.

use crate::readme::Shown;

/// What a page has its reader do.
pub(super) enum PageStep {
    /// Write a file, by its path from where the reader began.
    Write { path: String, text: String },
    /// Type a line. The number is that of the page's line after it.
    Type { shown: Shown, after: usize },
}

/// The steps of a page. Blocks of other languages, and those without a title, are only looked at.
pub(super) fn page_steps(page: &str) -> Vec<PageStep> {
    let mut steps = Vec::new();
    let mut block: Option<Block> = None;
    for (number, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), &mut block) {
            (Some(opening), None) => block = Some(Block::open(opening)),
            (Some(_), Some(_)) => steps.extend(block.take().and_then(Block::into_file)),
            (None, Some(Block::Console)) => read_console(line, number, &mut steps),
            (None, Some(Block::File { text, .. })) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, Some(Block::Other) | None) => {}
        }
    }
    steps
}

/// A fenced block, by what it is for.
enum Block {
    Console,
    File { path: String, text: String },
    Other,
}

impl Block {
    fn open(words: &str) -> Self {
        let title = words.split_once("title=\"").and_then(|(_, rest)| rest.split('"').next());
        match title {
            Some(path) => Self::File { path: path.to_owned(), text: String::new() },
            None if words == "console" => Self::Console,
            None => Self::Other,
        }
    }

    fn into_file(self) -> Option<PageStep> {
        match self {
            Self::File { path, text } => Some(PageStep::Write { path, text }),
            Self::Console | Self::Other => None,
        }
    }
}

fn read_console(line: &str, number: usize, steps: &mut Vec<PageStep>) {
    let last = steps.last_mut();
    match (line.strip_prefix("$ "), last) {
        (Some(command), _) => {
            steps.push(PageStep::Type { shown: Shown::of(command), after: number + 1 });
        }
        (None, Some(PageStep::Type { shown, after }))
            if shown.lines.is_empty() && shown.command.ends_with('\\') =>
        {
            shown.command.truncate(shown.command.len() - 1);
            shown.command.push_str(line.trim_start_matches("> ").trim_start());
            *after = number + 1;
        }
        (None, Some(PageStep::Type { shown, .. })) => shown.lines.push(line.to_owned()),
        (None, _) => panic!("`{line}` comes before any command"),
    }
}

#[test]
fn a_page_is_read_in_the_order_of_its_steps() {
    let page = "A\n\n```yaml title=\"a/b.yaml\"\nx: 1\n```\n\n```console\n$ apron build \\\n> a\n\
                built\n$ apron lint\n```\n\n```json\n{}\n```\n";
    let steps = page_steps(page);
    assert_eq!(steps.len(), 3);
    let PageStep::Write { path, text } = &steps[0] else { panic!("a file comes first") };
    assert_eq!((path.as_str(), text.as_str()), ("a/b.yaml", "x: 1\n"));
    let PageStep::Type { shown, after } = &steps[1] else { panic!("then a line") };
    assert_eq!((shown.command.as_str(), *after), ("apron build a", 9));
    assert_eq!(shown.lines, ["built"]);
    let PageStep::Type { shown, .. } = &steps[2] else { panic!("and another") };
    assert_eq!(shown.command, "apron lint");
}
