//! `apron manager install`, and the Helm chart that says the same.

use crate::kubectl::plane::{Ours, Real};
use crate::support::{Ran, Scratch, apron, command};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/apron")
}

/// The objects that would be applied, without the definitions.
fn objects(scratch: &Scratch) -> Vec<Json> {
    let printed = apron(scratch, ["manager", "install", "--dry-run", "-o", "json"]).ok().stdout;
    let list: Json = serde_json::from_str(&printed).unwrap();
    let all = list["items"].as_array().unwrap().clone();
    assert!(all.iter().any(|one| one["metadata"]["name"] == "providers.pkg.crossplane.io"));
    all.into_iter().filter(|one| one["kind"] != "CustomResourceDefinition").collect()
}

#[test]
fn the_manager_is_installed_alike_on_both_servers() {
    let scratch = Scratch::new();
    let ours = Ours::start(&scratch.join("ours"));
    let real = Real::start(&scratch.join("real"), &ours);
    let install = |kubeconfig: &Path| {
        let mut command = command(&scratch);
        command.env("KUBECONFIG", kubeconfig).args(["manager", "install", "-n", "planes"]);
        Ran::from(command.output().unwrap()).ok().stdout
    };
    let here = install(&ours.kubeconfig);
    assert!(here.starts_with("applied namespace/planes\n"), "{here}");
    assert!(here.ends_with("applied deployment/apron\n"), "{here}");
    assert_eq!(install(&real.kubeconfig), here);
    // It can be repeated.
    assert_eq!(install(&ours.kubeconfig), here);
    assert_eq!(install(&real.kubeconfig), here);
}

#[test]
fn the_chart_gives_the_rights_that_the_command_gives() {
    let scratch = Scratch::new();
    let role = objects(&scratch).into_iter().find(|one| one["kind"] == "ClusterRole").unwrap();
    let template = fs_err::read_to_string(chart().join("templates/clusterrole.yaml")).unwrap();
    let (_, rules) = template.split_once("\nrules:\n").unwrap();
    let rules = rules.replace("{{ .Values.groupSuffix }}", "crossplane.io");
    assert_eq!(rule_lines(&rules), rule_set(&role["rules"]));
}

/// Rules as sets of words: groups, resources and verbs.
type Rules = Vec<[BTreeSet<String>; 3]>;

fn rule_set(rules: &Json) -> Rules {
    let set = |value: &Json| -> BTreeSet<String> {
        value.as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()).collect()
    };
    let rules = rules.as_array().unwrap().iter();
    rules.map(|one| [set(&one["apiGroups"]), set(&one["resources"]), set(&one["verbs"])]).collect()
}

/// The template writes each list on a line.
fn rule_lines(text: &str) -> Rules {
    let list = |line: &str, key: &str| -> BTreeSet<String> {
        let line = line.trim_start_matches(['-', ' ']);
        let inner = line.strip_prefix(&format!("{key}: [")).unwrap().strip_suffix(']').unwrap();
        inner.split(", ").map(|word| word.trim_matches('"').to_owned()).collect()
    };
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let rule = |lines: &[&str]| {
        [list(lines[0], "apiGroups"), list(lines[1], "resources"), list(lines[2], "verbs")]
    };
    lines.chunks(3).map(rule).collect()
}

#[test]
fn every_value_of_the_chart_is_used_and_every_used_value_is_there() {
    let values = fs_err::read_to_string(chart().join("values.yaml")).unwrap();
    let values = paths(&values);
    let used = regex::Regex::new(r"\.Values\.([A-Za-z.]+)").unwrap();
    let mut found = BTreeSet::new();
    for entry in fs_err::read_dir(chart().join("templates")).unwrap() {
        let text = fs_err::read_to_string(entry.unwrap().path()).unwrap();
        found.extend(used.captures_iter(&text).map(|it| it[1].to_owned()));
    }
    let is_in = |path: &String, all: &BTreeSet<String>| {
        all.iter().any(|one| one == path || one.starts_with(&format!("{path}.")))
    };
    let missing: Vec<_> = found.iter().filter(|path| !is_in(path, &values)).collect();
    assert!(missing.is_empty(), "templates use values that are not there: {missing:?}");
    let has_user =
        |path: &String| found.iter().any(|one| one == path || path.starts_with(&format!("{one}.")));
    let unused: Vec<_> = values.iter().filter(|path| !has_user(path)).collect();
    assert!(unused.is_empty(), "nobody uses these values: {unused:?}");
}

/// The paths of all leaves of plain YAML with two spaces a level.
fn paths(text: &str) -> BTreeSet<String> {
    let (mut above, mut found) = (Vec::<String>::new(), BTreeSet::new());
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let depth = (line.len() - line.trim_start().len()) / 2;
        let (key, value) = line.trim().split_once(':').unwrap();
        above.truncate(depth);
        above.push(key.to_owned());
        if !value.trim().is_empty() {
            found.insert(above.join("."));
        }
    }
    found
}

#[test]
fn the_chart_has_the_version_of_the_program() {
    let text = fs_err::read_to_string(chart().join("Chart.yaml")).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert!(text.contains(&format!("\nappVersion: {version}\n")), "{text}");
}
