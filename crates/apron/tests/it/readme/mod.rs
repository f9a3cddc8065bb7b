//! What the README and the documents print is what apron prints: digests, sizes and all.

mod named;
mod rows;
mod selected;
pub(crate) mod typed;

use crate::support::{Scratch, apron};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A command of a document and the lines that it prints there.
pub(crate) struct Shown {
    pub(crate) command: String,
    pub(crate) lines: Vec<String>,
}

/// The commands of a page in their order: those of console blocks with what they print, and those
/// of indented blocks, of which nothing is shown.
fn commands(page: &str) -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    let (mut is_console, mut is_fenced, mut was_blank) = (false, false, true);
    for line in page.lines() {
        if let Some(language) = line.strip_prefix("```") {
            is_console = language == "console";
            is_fenced = !is_fenced;
        } else if is_console && is_fenced {
            match (line.strip_prefix("$ "), found.last_mut()) {
                (Some(command), _) => found.push(Shown::of(command)),
                (None, Some(last)) => last.lines.push(line.to_owned()),
                (None, None) => panic!("`{line}` comes before any command"),
            }
        } else if let Some(command) = line.strip_prefix("    ").filter(|_| !is_fenced && was_blank)
        {
            found.push(Shown::of(command));
            continue;
        }
        was_blank = line.is_empty();
    }
    found
}

impl Shown {
    pub(crate) fn of(command: &str) -> Self {
        Self { command: command.to_owned(), lines: Vec::new() }
    }
}

/// Whether a line is what a document shows: `…` stands for the rest of a word, or for any lines.
fn fits(shown: &str, printed: &str) -> bool {
    let mut rest = printed;
    let pieces: Vec<&str> = shown.split('…').collect();
    for (position, piece) in pieces.iter().enumerate() {
        let found =
            if position == 0 { rest.starts_with(piece).then_some(0) } else { rest.find(piece) };
        let Some(at) = found else { return false };
        if position > 0 && rest[..at].contains(char::is_whitespace) {
            return false;
        }
        rest = &rest[at + piece.len()..];
    }
    rest.is_empty() || shown.ends_with('…')
}

/// Holds what was printed against what is shown, line by line.
#[track_caller]
pub(crate) fn assert_shown(shown: &Shown, printed: &str) {
    let mut printed = printed.lines();
    let mut may_skip = false;
    for line in shown.lines.iter().map(|line| line.trim_end()).filter(|line| !line.is_empty()) {
        if line.trim() == "…" {
            may_skip = true;
            continue;
        }
        let found = if may_skip {
            printed.find(|one| fits(line, one))
        } else {
            printed.by_ref().find(|one| !one.is_empty()).filter(|one| fits(line, one))
        };
        assert!(found.is_some(), "`{}` does not print `{line}`", shown.command);
        may_skip = false;
    }
}

/// A package with the mistakes that the README shows.
const MISTAKES: &str = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  \
    name: mine\nspec:\n  crossplane:\n    version: \">=v1.14.0-0\"\n  dependsOn:\n  \
    - provider: example.org/p:v1.0.0\n    version: v1.0.0\n  - provider: example.org/q\n    \
    version: v2.0.0\n  # meant differently\n  dependson: []\n";

/// What is shown is checked, not read over: a figure, a word or a line that is not so is noticed.
#[test]
fn a_page_that_shows_what_is_not_so_is_noticed() {
    let page =
        "```console\n$ apron build\nbuilt mine\n  size    6.1 kB\n  digest  sha256:0f5e…\n```\n";
    let printed = "built mine\n  size    6.1 kB\n  digest  sha256:0f5e78d3\n";
    let holds = |page: &str| {
        let shown = commands(page);
        std::panic::catch_unwind(|| assert_shown(&shown[0], printed)).is_ok()
    };
    assert!(holds(page));
    for (right, wrong) in [("6.1", "6.2"), ("0f5e", "0f5f"), ("built", "made"), ("size", "sizes")] {
        assert!(!holds(&page.replace(right, wrong)), "{wrong}");
    }
    assert!(!holds(&page.replace("…\n", "…\nmore\n")));
}

#[test]
fn revisions_of_the_example_are_named_as_the_readme_shows_them() {
    let readme = fs_err::read_to_string(repository().join("README.md")).unwrap();
    let scratch = Scratch::new();
    let found = Command::new("find")
        .arg(repository().join("examples/platform"))
        .args(["-name", "crossplane.yaml"])
        .output()
        .unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    let mut count = 0;
    for path in found.lines().map(Path::new) {
        let root = path.parent().unwrap().to_str().unwrap();
        let built = apron(&scratch, ["build", root, "-o", "p.xpkg", "--output", "json"]).ok();
        let built: serde_json::Value = serde_json::from_str(&built.stdout).unwrap();
        let (name, digest) = (built["name"].as_str().unwrap(), built["digest"].as_str().unwrap());
        let hex = digest.trim_start_matches("sha256:");
        assert!(readme.contains(&format!("{name}-{} v0.1.0: active", &hex[..12])), "{name} {hex}");
        count += 1;
    }
    assert_eq!(count, 3);
}

/// Every digest that a document prints is one that a test above has seen: documents that show none
/// need no test.
#[test]
fn digests_are_shown_where_they_are_checked_and_nowhere_else() {
    let mut pages: Vec<PathBuf> =
        ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]
            .iter()
            .map(|name| repository().join(name))
            .collect();
    pages.extend(crate::manual::page_paths());
    for page in pages.iter().filter(|page| page.extension().is_some_and(|it| it == "md")) {
        let text = fs_err::read_to_string(page).unwrap();
        let hex = |word: &&str| word.len() >= 6 && word.bytes().all(|it| it.is_ascii_hexdigit());
        let digests = text.split("sha256:").skip(1).filter_map(|rest| {
            rest.split(|it: char| !it.is_ascii_alphanumeric()).next().filter(hex)
        });
        assert_eq!(digests.count(), 0, "{} shows a digest that nothing checks", page.display());
    }
}
