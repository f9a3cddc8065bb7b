//! The manual in a terminal: topics, rows about conditions, and what a machine lacks.

use super::page_paths;
use crate::readme::repository;
use crate::support::{Scratch, apron, command};
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// Pages that are no topics: the way in, what is made from the code (`--help`, `apron crds`, the API's own
/// document), and tables that only those read who have the code before them.
const NO_TOPICS: [&str; 6] = [
    "index.md",
    "tutorial.md",
    "reference/commands.md",
    "reference/kinds.md",
    "reference/limits.md",
    "reference/rest.md",
];

#[test]
fn every_page_that_explains_something_is_a_topic() {
    let scratch = Scratch::new();
    let listed = apron(&scratch, ["help", "topics"]).ok().stdout;
    let mut explained = BTreeSet::new();
    for topic in listed.lines().skip(1).map(|line| line.split(' ').next().unwrap()) {
        let told = apron(&scratch, ["help", topic]).ok();
        let page = told.stderr.split("(page ").nth(1).and_then(|rest| rest.split(' ').next());
        explained.insert(page.unwrap_or_else(|| panic!("{topic}: {}", told.stderr)).to_owned());
        assert!(told.stdout.lines().count() > 4, "{topic}: {}", told.stdout);
    }
    let mut pages: BTreeSet<String> = page_paths()
        .iter()
        .map(|path| path.strip_prefix(repository().join("docs")).unwrap().display().to_string())
        .collect();
    for page in NO_TOPICS {
        assert!(pages.remove(page), "there is no page {page}");
    }
    // Notes on design are for those who read the code.
    pages.retain(|page| !page.starts_with("design/"));
    assert_eq!(explained, pages);
}

#[test]
fn help_is_about_commands_and_topics_and_says_where_to_look_otherwise() {
    let scratch = Scratch::new();
    let said = |words: &[&str]| apron(&scratch, words).ok().stdout;
    assert_eq!(said(&["help", "registry", "serve"]), said(&["registry", "serve", "--help"]));
    assert_eq!(said(&["help"]), said(&["--help"]));
    let codes = said(&["help", "exit-codes"]);
    assert!(codes.starts_with("Exit codes\n\n0\n    it was done;"), "{codes}");
    assert_eq!(apron(&scratch, ["help", "exit-codes", "--quiet"]).ok().stderr, "");
    let unknown = apron(&scratch, ["help", "nonsense"]).failed();
    assert!(unknown.contains("neither a command nor a topic `nonsense`"), "{unknown}");
    assert!(unknown.contains("apron help topics"), "{unknown}");
}

#[test]
fn hints_name_topics_that_there_are() {
    let listed = apron(&Scratch::new(), ["help", "topics"]).ok().stdout;
    let topics: BTreeSet<&str> =
        listed.lines().skip(1).map(|line| line.split(' ').next().unwrap()).collect();
    let named = super::reference::found_in(&["apron", "machine"], "`apron help ([a-z-]+)`");
    assert!(named.len() > 2, "{named:?}");
    for topic in named {
        assert!(topic == "topics" || topics.contains(topic.as_str()), "there is no topic {topic}");
    }
}

#[test]
fn without_words_apron_says_what_to_type_first() {
    let ran = apron(&Scratch::new(), [""; 0]);
    assert_eq!(ran.code, Some(2));
    let told = ran.all();
    let start = told.split("Start with:\n").nth(1).unwrap_or_else(|| panic!("{told}"));
    for line in ["  apron up ", "  apron init configuration my-platform", "  apron doctor "] {
        assert!(start.contains(line), "{told}");
    }
}

#[test]
fn a_reason_is_explained_as_the_manual_explains_it() {
    let scratch = Scratch::new();
    let told = apron(&scratch, ["explain-condition", "awaitingactivation"]).ok().stdout;
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], "reason AwaitingActivation");
    assert_eq!(lines[1], "  condition   `RuntimeActive`");
    assert!(lines[3].starts_with("  what to do  nothing, or make an object"), "{told}");
    let told = apron(&scratch, ["explain-condition", "Healthy", "-o", "json"]).ok().stdout;
    let told: Json = serde_json::from_str(&told).unwrap();
    assert_eq!(
        (&told[0]["name"], &told[0]["what"]),
        (&Json::from("Healthy"), &Json::from("condition"))
    );
    assert!(told[0]["itSays"].as_str().unwrap().contains("active revision"), "{told}");
    let unknown = apron(&scratch, ["explain-condition", "Activation"]).failed();
    assert!(unknown.contains("hint: perhaps AwaitingActivation is meant"), "{unknown}");
    let unknown = apron(&scratch, ["explain-condition", "Zzz"]).failed();
    assert!(unknown.contains("apron help conditions"), "{unknown}");
}

#[test]
fn the_doctor_names_what_is_missing_and_fails_where_nothing_can_work() {
    let scratch = Scratch::new();
    let look = |home: &str| {
        let mut doctor = command(&scratch);
        doctor.args(["doctor", "-o", "json"]).env("PATH", scratch.path());
        doctor.env("XDG_DATA_HOME", scratch.join(home));
        doctor.env("KUBECONFIG", scratch.join("kubeconfig"));
        crate::support::Ran::from(doctor.output().unwrap())
    };
    let ran = look("share").ok();
    let checks: Json = serde_json::from_str(&ran.stdout).unwrap();
    let find = |name: &str| {
        let all = checks.as_array().unwrap();
        all.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{name}: {checks}"))
    };
    for name in ["git", "kubectl", "container engine", "kubeconfig"] {
        assert_eq!(find(name)["verdict"], "missing", "{checks}");
        for field in ["hint", "neededFor"] {
            assert!(find(name)[field].as_str().is_some_and(|it| !it.is_empty()), "{checks}");
        }
    }
    for name in ["data directory", "temporary files"] {
        assert_eq!(find(name)["verdict"], "ready", "{checks}");
    }
    // Whether pods run is this machine's to say; either way there is an answer.
    assert!(["ready", "missing"].contains(&find("pods")["verdict"].as_str().unwrap()), "{checks}");
    assert!(!scratch.join("share").exists(), "the doctor makes nothing");
    scratch.write("file", "");
    let ran = look("file/share");
    assert_eq!(ran.code, Some(1));
    let error: Json = serde_json::from_str(ran.stderr.lines().last().unwrap()).unwrap();
    assert_eq!(error["error"]["message"], "apron cannot work here: data directory");
}
