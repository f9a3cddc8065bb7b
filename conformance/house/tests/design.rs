//! Design notes (`docs/design`) name files, tests and targets of `make`. A note that names what is no
//! longer there misleads its readers, so each name is looked up in the tree.

#![expect(clippy::unwrap_used, reason = "a tree that cannot be read fails the test, as it should")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What each note has, in this order.
const SECTIONS: [&str; 5] =
    ["Context", "Decision", "Rejected", "How it is checked", "Where to look"];
/// Folders of the repository that notes name files of.
const FOLDERS: [&str; 6] = ["crates/", "conformance/", "docs/", "scripts/", "fuzz/", "examples/"];
/// Names of tests are sentences: no name of other functions in a note has as many words.
const TEST_WORDS_MIN: usize = 4;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What is there to be named.
struct Tree {
    root: PathBuf,
    functions: BTreeSet<String>,
    targets: BTreeSet<String>,
}

impl Tree {
    fn read() -> Self {
        let root = repository();
        let mut functions = BTreeSet::new();
        for folder in ["crates", "conformance"] {
            gather_functions(&root.join(folder), &mut functions);
        }
        let makefile = fs_err::read_to_string(root.join("Makefile")).unwrap();
        let targets = makefile.lines().filter_map(|line| line.split_once(':'));
        let targets = targets.map(|(name, _)| name.to_owned()).collect();
        Self { root, functions, targets }
    }

    /// Names in a text that nothing in the tree has.
    fn list_missing<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let is_missing = |name: &&str| {
            if let Some(target) = name.strip_prefix("make ") {
                !self.targets.contains(target)
            } else if FOLDERS.iter().any(|folder| name.starts_with(folder)) {
                !self.root.join(name).exists()
            } else {
                is_test_name(name) && !self.functions.contains(*name)
            }
        };
        code_spans(text).filter(is_missing).collect()
    }
}

fn gather_functions(directory: &Path, functions: &mut BTreeSet<String>) {
    for entry in fs_err::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            gather_functions(&path, functions);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs_err::read_to_string(&path).unwrap();
            let names = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
            functions.extend(names.map(str::to_owned));
        }
    }
}

/// What stands between backticks.
fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn is_test_name(name: &str) -> bool {
    let is_word = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_';
    name.chars().all(is_word) && name.split('_').count() >= TEST_WORDS_MIN
}

/// The notes by their file names.
fn notes() -> Vec<(String, String)> {
    let entries = fs_err::read_dir(repository().join("docs/design")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let named = paths.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), path));
    let notes = named.filter(|(name, _)| name.starts_with(|it: char| it.is_ascii_digit()));
    let mut notes: Vec<_> =
        notes.map(|(name, path)| (name, fs_err::read_to_string(path).unwrap())).collect();
    notes.sort();
    notes
}

#[test]
fn what_design_notes_and_the_map_name_is_in_the_tree() {
    let tree = Tree::read();
    let map = fs_err::read_to_string(repository().join("ARCHITECTURE.md")).unwrap();
    for (name, text) in notes().iter().chain([&("ARCHITECTURE.md".to_owned(), map)]) {
        let missing = tree.list_missing(text);
        assert!(missing.is_empty(), "{name} names what is not there: {missing:#?}");
    }
}

#[test]
fn each_design_note_has_its_sections_and_names_what_checks_it() {
    for (name, text) in notes() {
        let headings = text.lines().filter_map(|line| line.strip_prefix("## "));
        assert_eq!(headings.collect::<Vec<_>>(), SECTIONS, "{name}");
        let checked = text.split("\n## ").find(|it| it.starts_with(SECTIONS[3])).unwrap();
        let is_check = |span: &str| is_test_name(span) || span.starts_with("make ");
        assert!(code_spans(checked).any(is_check), "{name} names no test and no benchmark");
    }
}

#[test]
fn each_design_note_has_a_number_and_is_listed_wherever_readers_look() {
    let notes = notes();
    let lists = ["docs/design/index.md", "mkdocs.yml", "ARCHITECTURE.md"];
    let lists = lists.map(|it| (it, fs_err::read_to_string(repository().join(it)).unwrap()));
    for (at, (name, _)) in notes.iter().enumerate() {
        assert!(name.starts_with(&format!("{:04}-", at + 1)), "{name} is out of order");
        for (list, text) in &lists {
            assert!(text.contains(name.as_str()), "{list} does not list {name}");
        }
    }
}

#[test]
fn a_name_of_what_is_not_there_is_noticed() {
    let tree = Tree::read();
    let text = "`make test`, `crates/plan`, `a_name_of_what_is_not_there_is_noticed`, `step`; \
                `make believe`, `crates/plans`, `a_name_that_no_test_has`";
    let missing = ["make believe", "crates/plans", "a_name_that_no_test_has"];
    assert_eq!(tree.list_missing(text), missing);
}
