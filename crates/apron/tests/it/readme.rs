//! What the README and the documents print is what apron prints: digests, sizes and all.

use crate::support::{Registry, Scratch, apron, command};
use std::path::{Path, PathBuf};
use std::process::Command;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A command of a document and the lines that it prints there.
struct Shown {
    command: String,
    lines: Vec<String>,
}

/// The console blocks of a document, each as commands and what they print.
fn blocks(document: &str) -> Vec<Vec<Shown>> {
    let mut all = Vec::new();
    for block in document.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let mut shown: Vec<Shown> = Vec::new();
        for line in block.lines() {
            match (line.strip_prefix("$ "), shown.last_mut()) {
                (Some(command), _) => {
                    shown.push(Shown { command: command.to_owned(), lines: Vec::new() });
                }
                (None, Some(last)) => last.lines.push(line.to_owned()),
                (None, None) => panic!("`{line}` comes before any command"),
            }
        }
        all.push(shown);
    }
    all
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
fn assert_shown(shown: &Shown, printed: &str) {
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

#[test]
fn a_first_package_is_as_the_readme_shows_it() {
    let readme = fs_err::read_to_string(repository().join("README.md")).unwrap();
    let blocks = blocks(&readme);
    let story = blocks.iter().find(|block| block[0].command.starts_with("apron init")).unwrap();
    let (scratch, registry) = (Scratch::new(), Registry::start());
    let mut place = scratch.path().to_owned();
    for shown in story {
        let words = shown.command.replace("registry.example.org", &registry.address);
        let (words, next) = words.split_once(" && cd ").unwrap_or((&words, ""));
        let words: Vec<&str> = words.split(' ').skip(1).collect();
        let ran = command(&scratch).current_dir(&place).args(words).output().unwrap();
        assert!(ran.status.success(), "{}: {ran:?}", shown.command);
        let printed = String::from_utf8(ran.stdout).unwrap();
        assert_shown(shown, &printed.replace(&registry.address, "registry.example.org"));
        place = place.join(next);
    }
}

#[test]
fn mistakes_are_told_as_the_readme_shows_them() {
    let readme = fs_err::read_to_string(repository().join("README.md")).unwrap();
    let blocks = blocks(&readme);
    let story = blocks.iter().find(|block| block[0].command == "apron lint").unwrap();
    let scratch = Scratch::new();
    let meta = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: mine\nspec:\n";
    let spec = "  crossplane:\n    version: \">=v1.14.0-0\"\n  dependsOn:\n  - provider: example.org/p:v1.0.0\n    version: v1.0.0\n  - provider: example.org/q\n    version: v2.0.0\n  # meant differently\n  dependson: []\n";
    scratch.write("crossplane.yaml", format!("{meta}{spec}"));
    assert_shown(&story[0], &apron(&scratch, ["lint"]).failed());
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
    pages.extend(fs_err::read_dir(repository().join("docs")).unwrap().map(|it| it.unwrap().path()));
    for page in pages.iter().filter(|page| page.extension().is_some_and(|it| it == "md")) {
        let text = fs_err::read_to_string(page).unwrap();
        let hex = |word: &&str| word.len() >= 6 && word.bytes().all(|it| it.is_ascii_hexdigit());
        let digests = text.split("sha256:").skip(1).filter_map(|rest| {
            rest.split(|it: char| !it.is_ascii_alphanumeric()).next().filter(hex)
        });
        assert_eq!(digests.count(), 0, "{} shows a digest that nothing checks", page.display());
    }
}
