//! What the README and the documents print is what apron prints: digests, sizes and all. `crate::manual` types them.

mod named;
mod rows;
mod selected;

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
    let missing = missing_line(shown, printed);
    assert!(missing.is_none(), "`{}` does not print `{}`", shown.command, missing.unwrap());
}

/// The first line that is shown and was not printed.
pub(crate) fn missing_line<'a>(shown: &'a Shown, printed: &str) -> Option<&'a str> {
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
        if found.is_none() {
            return Some(line);
        }
        may_skip = false;
    }
    None
}

/// What is shown is checked, not read over: a figure, a word or a line that is not so is noticed.
#[test]
fn a_page_that_shows_what_is_not_so_is_noticed() {
    let page = "built mine\n  size    6.1 kB\n  digest  sha256:0f5e…\n";
    let printed = "built mine\n  size    6.1 kB\n  digest  sha256:0f5e78d3\n";
    let holds = |page: &str| {
        let lines = page.lines().map(str::to_owned).collect();
        let shown = Shown { command: "apron build".to_owned(), lines };
        std::panic::catch_unwind(|| assert_shown(&shown, printed)).is_ok()
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

/// Where a link of a document at the root leads, as far as it leads to a file.
#[test]
fn links_of_documents_at_the_root_lead_to_files() {
    let mut count = 0;
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "STYLE.md"] {
        let text = fs_err::read_to_string(repository().join(name)).unwrap();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://")) {
            let path = link.split('#').next().unwrap();
            assert!(repository().join(path).exists(), "{name}: nothing is at {link}");
            count += 1;
        }
    }
    assert!(count > 20, "only {count} links were found");
}
