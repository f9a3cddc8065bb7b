//! What the reference lists, held against the code: pages that are made from it, and pages that are
//! written by hand and have to name everything there is.

use super::is_updating;
use crate::readme::repository;
use crate::registry::Served;
use crate::support::{Scratch, apron};
use regex::Regex;
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Compares a page that is made with the one that is there, or writes it.
#[track_caller]
fn assert_page(name: &str, made: &str) {
    let path = repository().join("docs/reference").join(name);
    if is_updating() {
        fs_err::write(&path, made).unwrap();
    }
    let found = fs_err::read_to_string(&path).unwrap_or_default();
    let differs = made.lines().zip(found.lines()).find(|(made, found)| made != found);
    assert!(
        made == found,
        "docs/reference/{name} is not what the code says ({differs:?}): \
         APRON_UPDATE=1 cargo test -p apron --test it manual::reference writes it anew"
    );
}

fn read_page(name: &str) -> String {
    fs_err::read_to_string(repository().join("docs").join(name)).unwrap()
}

/// Text in a cell of a table.
fn cell_text(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace('|', "\\|").replace('<', "&lt;").replace('*', "\\*").replace('[', "\\[")
}

const COMMANDS_HEAD: &str = "# Commands

Every command with its words, as `--help` of each prints it. Commands that print a result print it as
JSON with `--output json`, too. [Exit codes and variables](environment.md) are on a page of their own.
";

fn describe_command(scratch: &Scratch, words: &[String], page: &mut String) {
    let asked = words.iter().map(String::as_str).chain(["--help"]);
    let help = apron(scratch, asked).ok().stdout;
    let title = [&["apron".to_owned()], words].concat().join(" ");
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let _ = write!(page, "\n## {title}\n\n```text\n{}\n```\n", lines.join("\n").trim_end());
    let listed = lines.iter().skip_while(|line| **line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    for line in listed.filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
        let name = line.split_whitespace().next().unwrap();
        // What clap adds to commands with commands below them; `apron help` is ours.
        if name != "help" || words.is_empty() {
            describe_command(scratch, &[words, &[name.to_owned()]].concat(), page);
        }
    }
}

/// The page that lists every command.
pub(super) fn commands_page() -> String {
    let mut page = COMMANDS_HEAD.to_owned();
    describe_command(&Scratch::new(), &[], &mut page);
    page
}

#[test]
fn every_command_and_flag_is_in_the_reference() {
    let page = commands_page();
    assert!(page.contains("\n## apron registry user key\n"), "commands below commands are missing");
    assert_page("commands.md", &page);
}

const KINDS_HEAD: &str = "# Kinds and fields

The kinds of `pkg.crossplane.io`, as `apron crds` prints their definitions and the manager installs them. `apron crds
--group-suffix SUFFIX` prints the same kinds in a group of their own. What every object has (`apiVersion`, `kind`,
`metadata`) is left out, and so are the fields of a template's `spec`, which are Kubernetes' own; `[]` are the items of a
list, `{}` the values of a map.
";

fn describe_fields(schema: &Json, path: &str, page: &mut String) {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        if path.is_empty() && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
            continue;
        }
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let kind = field["type"].as_str().unwrap_or("any");
        let needed = if required.contains(&name.as_str()) { ", required" } else { "" };
        let usual = match &field["default"] {
            Json::Null => String::new(),
            default => format!(" Default: `{default}`."),
        };
        let allowed: Vec<String> = field["enum"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| format!("`{}`", one.as_str().unwrap_or_default()))
            .collect();
        let allowed = if allowed.is_empty() {
            String::new()
        } else {
            format!(" One of {}.", allowed.join(", "))
        };
        let about = cell_text(field["description"].as_str().unwrap_or_default());
        let _ = writeln!(page, "| `{path}` | {kind}{needed} | {about}{allowed}{usual} |");
        if path.ends_with("Template.spec") {
            continue;
        }
        describe_fields(field, &path, page);
        describe_fields(&field["items"], &format!("{path}[]"), page);
        describe_fields(&field["additionalProperties"], &format!("{path}{{}}"), page);
    }
}

#[test]
fn every_kind_and_field_is_in_the_reference() {
    let printed = apron(&Scratch::new(), ["crds", "--output", "json"]).ok().stdout;
    let list: Json = serde_json::from_str(&printed).unwrap();
    let all = list["items"].as_array().or_else(|| list.as_array()).unwrap();
    let (own, held): (Vec<&Json>, Vec<&Json>) =
        all.iter().partition(|one| one["spec"]["group"] == "pkg.crossplane.io");
    let mut page = KINDS_HEAD.to_owned();
    for definition in own {
        let spec = &definition["spec"];
        let versions = spec["versions"].as_array().unwrap();
        let names: Vec<&str> = versions.iter().filter_map(|it| it["name"].as_str()).collect();
        let stored = versions.iter().find(|it| it["storage"] == true).unwrap();
        let schema = &stored["schema"]["openAPIV3Schema"];
        let _ = write!(
            page,
            "\n## {}\n\n`{}`, {}; {}. {}\n\n| field | type | |\n|---|---|---|\n",
            spec["names"]["kind"].as_str().unwrap(),
            definition["metadata"]["name"].as_str().unwrap(),
            names.join(", "),
            if spec["scope"] == "Cluster" { "of the cluster" } else { "of a namespace" },
            cell_text(schema["description"].as_str().unwrap_or_default()),
        );
        describe_fields(schema, "", &mut page);
    }
    let (first, held): (Vec<&Json>, Vec<&Json>) =
        held.into_iter().partition(|one| one["spec"]["group"] == "packages.crossplane.io");
    let names = |all: &[&Json]| -> String {
        let name = |one: &&Json| format!("`{}`", one["metadata"]["name"].as_str().unwrap());
        all.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let _ = write!(
        page,
        "\n## Kinds of the first package system\n\nDeprecated, and left out with `--packages-v1=false`; \
        [packages of the first format](../how-to/first-format.md) are installed by them: {}.\n\
        \n## Kinds that packages bring\n\nDefinitions of Crossplane's other groups, so that objects of packages \
        can be held where its core is not installed: {}.\n",
        names(&first),
        names(&held),
    );
    assert_page("kinds.md", &page);
}

const REST_HEAD: &str = "# REST API

The addresses of a registry's catalog, from the document that it serves itself (`/api/v1/openapi.json`). All are read
with GET, with the credentials of the registry, and answer with what their reader may pull. [The catalog](../catalog.md)
explains what they are for. Beside them a registry serves the OCI distribution API below `/v2/`, `/metrics`, and the
explorer at `/`.

";

#[test]
fn every_address_is_in_the_reference() {
    let served = Served::start(&Scratch::new());
    let (status, text) = served.get("/api/v1/openapi.json");
    assert_eq!(status, 200, "{text}");
    let body = &text[text.find('{').unwrap()..];
    let document: Json = serde_json::from_str(body).unwrap();
    let mut page = format!("{REST_HEAD}| address | parameters | answer |\n|---|---|---|\n");
    for (path, methods) in document["paths"].as_object().unwrap() {
        let route = &methods["get"];
        let parameters = route["parameters"].as_array().into_iter().flatten();
        let asked = parameters.filter(|one| one["in"] == "query");
        let asked: Vec<String> =
            asked.filter_map(|one| Some(format!("`{}`", one["name"].as_str()?))).collect();
        let about = cell_text(route["summary"].as_str().unwrap_or_default());
        let _ = writeln!(page, "| `{path}` | {} | {about} |", asked.join(", "));
    }
    assert_page("rest.md", &page);
}

/// The sources of a room, without its tests.
fn room_sources(directory: &Path, found: &mut Vec<(PathBuf, String)>) {
    let tests = Regex::new(r"#\[cfg\(test\)\]\nmod \w+ \{").unwrap();
    for entry in fs_err::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_test = name.contains("tests") || name.contains("testing") || name == "suite.rs";
        if path.is_dir() && name != "tests" {
            room_sources(&path, found);
        } else if name.ends_with(".rs") && !is_test {
            let text = fs_err::read_to_string(&path).unwrap();
            let text = tests.split(&text).next().unwrap().to_owned();
            found.push((path, text));
        }
    }
    found.sort();
}

fn sources_of(room: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    room_sources(&repository().join("crates").join(room).join("src"), &mut found);
    found
}

/// Everything that a pattern finds in the sources of rooms.
pub(super) fn found_in(rooms: &[&str], pattern: &str) -> BTreeSet<String> {
    let pattern = Regex::new(pattern).unwrap();
    let all = rooms.iter().flat_map(|room| sources_of(room));
    let texts: Vec<String> = all.map(|(_, text)| text).collect();
    let found = texts.iter().flat_map(|text| pattern.captures_iter(text));
    found.map(|one| one[1].to_owned()).collect()
}

/// A limit's value as people write it, as far as it is a plain one.
fn readable_value(source: &str) -> String {
    let source = source.split_whitespace().collect::<Vec<_>>().join(" ");
    let seconds = Regex::new(r"^Duration::from_secs\(([0-9 *_]+)\)$").unwrap();
    let millis = Regex::new(r"^Duration::from_millis\(([0-9_]+)\)$").unwrap();
    let shifted = Regex::new(r"^([0-9]+) << (10|20|30)$").unwrap();
    if let Some(found) = seconds.captures(&source) {
        let product: u64 = found[1]
            .split('*')
            .map(|it| it.trim().replace('_', "").parse::<u64>().unwrap())
            .product();
        return format!("{product} s");
    }
    if let Some(found) = millis.captures(&source) {
        return format!("{} ms", &found[1]);
    }
    if let Some(found) = shifted.captures(&source) {
        let unit = match &found[2] {
            "10" => "KiB",
            "20" => "MiB",
            _ => "GiB",
        };
        return format!("{} {unit}", &found[1]);
    }
    if source.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') {
        return source.replace('_', ",");
    }
    format!("`{source}`")
}

const LIMITS_HEAD: &str = "# Limits by name

Everything that input can inflate has a limit, and meeting one is an error that says so. These are the names that the
code has for them, by room ([the rooms](../explanation/testing.md#rooms)). Limits of `apron registry serve` that can be
set are flags: [apron registry serve](commands.md#apron-registry-serve).
";

#[test]
fn every_limit_is_in_the_reference() {
    let constant = Regex::new(
        r"(?m)((?:^ *///.*\n)+)(?: *#\[[^\n]*\n)* *(?:pub(?:\([a-z]+\))? )?const ([A-Z_]+_(?:MAX|MIN)): [^=]+ = ([^;]+);",
    );
    let constant = constant.unwrap();
    let mut page = LIMITS_HEAD.to_owned();
    for room in [
        "api",
        "oci",
        "yaml",
        "xpkg",
        "stack",
        "solver",
        "plan",
        "store",
        "git",
        "registry",
        "catalog",
        "follow",
        "explorer",
        "schema",
        "apply",
        "wire",
        "workload",
        "journal",
        "node",
        "apiserver",
        "controller",
        "edge",
        "embed",
        "ground",
        "apron",
    ] {
        let mut rows = String::new();
        for (_, text) in sources_of(room) {
            for found in constant.captures_iter(&text) {
                let about: Vec<&str> =
                    found[1].lines().map(|it| it.trim().trim_start_matches("///").trim()).collect();
                let _ = writeln!(
                    rows,
                    "| `{}` | {} | {} |",
                    &found[2],
                    readable_value(&found[3]),
                    cell_text(&about.join(" "))
                );
            }
        }
        if !rows.is_empty() {
            let _ = write!(page, "\n## {room}\n\n| name | value | |\n|---|---|---|\n{rows}");
        }
    }
    page.push_str(&package_limits());
    assert_page("limits.md", &page);
}

/// What reading a package may come to, as the rooms' own values say it.
fn package_limits() -> String {
    let mut text = "\n## Of one package\n\nWhat reading one package may come to: `xpkg::Limits`, with those of its layers and \
        documents.\n\n| name | value |\n|---|---|\n".to_owned();
    let mut path: Vec<String> = Vec::new();
    for line in format!("{:#?}", xpkg::Limits::default()).lines().skip(1).map(str::trim) {
        match line.trim_end_matches(',').split_once(": ") {
            Some((name, value)) if value.ends_with('{') => path.push(name.to_owned()),
            Some((name, value)) => {
                let name = [path.as_slice(), &[name.to_owned()]].concat().join(".");
                let _ = writeln!(text, "| `{name}` | {} |", with_commas(value));
            }
            None => {
                path.pop();
            }
        }
    }
    text
}

fn with_commas(digits: &str) -> String {
    let groups: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    groups.iter().map(|it| String::from_utf8_lossy(it)).collect::<Vec<_>>().join(",")
}

/// The first cells of a table's rows below a heading.
fn first_cells(page: &str, heading: &str) -> BTreeSet<String> {
    let lines = page.lines().skip_while(|line| *line != heading).skip(1);
    let lines = lines.take_while(|line| !line.starts_with("## "));
    let cells = lines.filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    cells.map(str::to_owned).collect()
}

#[test]
fn every_condition_reason_and_event_has_its_cause_and_remedy() {
    let page = read_page("reference/conditions.md");
    let source = fs_err::read_to_string(repository().join("crates/api/src/condition.rs")).unwrap();
    let (types, reasons) = source.split_once("pub mod reasons").unwrap();
    let constant = Regex::new(r#"pub const \w+: &str = "(\w+)""#).unwrap();
    let names = |text: &str| -> BTreeSet<String> {
        constant.captures_iter(text).map(|one| one[1].to_owned()).collect()
    };
    assert_eq!(first_cells(&page, "## Conditions"), names(types));
    assert_eq!(first_cells(&page, "## Reasons"), names(reasons));
    let told = r#"(?:event\((?:world, )?(?:true|false), |tell\(|reason: |reason\) = \(true, )"([A-Z]\w+)""#;
    let mut events = found_in(&["plan", "controller"], told);
    events.retain(|name| !names(reasons).contains(name));
    assert_eq!(first_cells(&page, "## Events"), events);
}

#[test]
fn every_variable_is_in_the_reference() {
    let commands = commands_page();
    let flags = Regex::new(r"\[env: (\w+)=").unwrap();
    let mut variables: BTreeSet<String> =
        flags.captures_iter(&commands).map(|one| one[1].to_owned()).collect();
    let settings = sources_of("apron").into_iter().find(|(path, _)| path.ends_with("settings.rs"));
    let read = Regex::new(r#"(?:path|either|variable)\("(\w+)"\)"#).unwrap();
    let settings = settings.unwrap().1;
    variables.extend(read.captures_iter(&settings).map(|one| one[1].to_uppercase()));
    // Those that libraries read: terminals' and the directory for temporary files.
    variables.extend(["NO_COLOR", "CLICOLOR", "TERM", "TMPDIR"].map(str::to_owned));
    let page = read_page("reference/environment.md");
    assert_eq!(first_cells(&page, "## Variables"), variables);
}

#[test]
fn every_metric_is_explained() {
    let named = found_in(
        &["controller", "registry"],
        r#"(?:"|TYPE )(apron_[a-z_]+?(?:total|depth|leader))"#,
    );
    let page = read_page("how-to/monitor.md");
    let rows = first_cells(&page, "## Every number");
    let rows: BTreeSet<String> =
        rows.iter().map(|row| row.split('{').next().unwrap().to_owned()).collect();
    assert_eq!(rows, named);
    // Alerts are about numbers that there are.
    let asked = Regex::new(r"apron_[a-z_]+").unwrap();
    let asked: BTreeSet<String> = asked.find_iter(&page).map(|it| it.as_str().to_owned()).collect();
    assert!(asked.is_subset(&named), "{asked:?}");
}

#[test]
fn a_limit_is_written_as_people_read_it() {
    for (source, expected) in [
        ("4 << 20", "4 MiB"),
        ("10_000", "10,000"),
        ("Duration::from_secs(24 * 3600)", "86400 s"),
        ("Duration::from_millis(50)", "50 ms"),
        ("3 << 19", "`3 << 19`"),
    ] {
        assert_eq!(readable_value(source), expected);
    }
    assert_eq!(with_commas("209715200"), "209,715,200");
}
