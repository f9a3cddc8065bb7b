//! Every command that a page names is there, with the flags that it is named with.

use super::repository;
use crate::support::{Scratch, apron};
use std::path::PathBuf;

/// Pages that people read before they type something.
fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md"]
            .iter()
            .map(|name| repository().join(name))
            .filter(|path| path.exists())
            .collect();
    pages.extend(crate::manual::page_paths());
    pages
}

/// What stands between backticks and begins with apron's name, on one line each, and such lines of
/// blocks that a reader copies into a shell of theirs.
fn named_commands(page: &str) -> Vec<String> {
    let mut outside = String::new();
    let (mut named, mut language) = (Vec::new(), None);
    for line in page.replace("\\\n", " ").lines() {
        language = match (line.trim_start().strip_prefix("```"), language) {
            (Some(opened), None) => Some(opened.to_owned()),
            (Some(_), Some(_)) => None,
            (None, Some(within)) => {
                let is_shell = within == "sh" && line.trim_start().starts_with("apron ");
                named.extend(is_shell.then(|| line.trim().to_owned()));
                Some(within)
            }
            (None, None) => {
                outside.push_str(line);
                outside.push(' ');
                None
            }
        };
    }
    let text = outside.split_whitespace().collect::<Vec<_>>().join(" ");
    let spans = text.split('`').skip(1).step_by(2);
    named.extend(spans.filter(|span| span.starts_with("apron ")).map(str::to_owned));
    named
}

/// The words of a command up to what the reader puts in, and its flags.
fn words_and_flags(span: &str) -> (Vec<&str>, Vec<&str>) {
    let line = span.split(['|', '&', ';', '#']).next().unwrap_or(span);
    let mut words = Vec::new();
    let all: Vec<&str> = line.split(' ').skip(1).filter(|word| !word.is_empty()).collect();
    for word in &all {
        let is_verb = word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        if !is_verb || word.starts_with('-') {
            break;
        }
        words.push(*word);
    }
    let flags = all.iter().filter(|word| word.starts_with("--") && word.len() > 2);
    let flags = flags.map(|word| word.split(['=', '\\']).next().unwrap_or(word));
    (words, flags.collect())
}

/// The help of the longest command that these words begin with; other words are its arguments.
fn help_of(scratch: &Scratch, words: &[&str]) -> Option<String> {
    (1..=words.len()).rev().find_map(|count| {
        let ran = apron(scratch, words[..count].iter().chain(&["--help"]));
        (ran.code == Some(0)).then(|| ran.all())
    })
}

#[test]
fn every_command_that_a_page_names_is_there_with_its_flags() {
    let scratch = Scratch::new();
    let mut count = 0;
    for page in pages() {
        let text = fs_err::read_to_string(&page).unwrap();
        let name = page.file_name().unwrap().to_string_lossy().into_owned();
        for span in named_commands(&text) {
            let (words, flags) = words_and_flags(&span);
            if words.is_empty() {
                continue;
            }
            count += 1;
            let help = help_of(&scratch, &words);
            let help = help.unwrap_or_else(|| panic!("{name}: `{span}`: there is no such command"));
            for flag in flags {
                let is_there = help.split_whitespace().any(|word| {
                    word.trim_matches(|it: char| !it.is_ascii_alphanumeric() && it != '-')
                        .split(['=', '[', ' '])
                        .next()
                        == Some(flag)
                });
                assert!(is_there, "{name}: `{span}`: {} has no {flag}", words.join(" "));
            }
        }
    }
    assert!(count > 40, "only {count} commands are named");
}

#[test]
fn a_command_that_is_not_there_is_noticed() {
    let scratch = Scratch::new();
    assert_eq!(words_and_flags("apron install REF --wait 2m"), (vec!["install"], vec!["--wait"]));
    assert_eq!(named_commands("see `apron\nup [DIR]` and `other`"), ["apron up [DIR]"]);
    let copied = "```sh\napron push \\\n  REF\n```\n```text\napron fly\n```\n";
    assert_eq!(named_commands(copied), ["apron push    REF"]);
    assert!(help_of(&scratch, &["fly"]).is_none());
    assert!(help_of(&scratch, &["registry", "serve"]).is_some());
}
