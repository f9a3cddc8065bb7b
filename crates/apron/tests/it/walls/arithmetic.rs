//! Numbers that strangers give: chapters of the serving rooms, and of the rooms below them, that calculate
//! with them cannot do so unchecked. clippy holds the operations, `Instant + Duration` among them; this holds clippy to it.

use super::text;

const LINT: &str = "#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]";

/// Chapters of `apiserver` that see requests before anybody has bounded what is in them.
const CHAPTERS: [&str; 10] = [
    "admission",
    "auth",
    "crd",
    "discovery",
    "http",
    "kind",
    "openapi",
    "outbound",
    "rest",
    "upkeep",
];

/// Chapters of `registry` that see requests, or keep what they bring.
const REGISTRY: [&str; 7] = ["auth", "forwarded", "mirror", "query", "route", "storage", "v2"];

/// All of `journal`: what requests bring is counted there, and what disks give back.
const JOURNAL: [&str; 7] =
    ["acknowledged", "disk", "memory", "reserve", "sqlite", "state", "writer"];

/// All of `edge`: a listener sees connections before their first byte.
const EDGE: [&str; 7] =
    ["accept", "connection", "hands", "network", "open_files", "seats", "trust"];

/// Parts of the chapter `object` of `schema`; calendars and quantities are bounded by how they are written.
const PARTS: [&str; 9] =
    ["depth", "field_error", "findings", "lines", "meta", "name", "path", "selector", "strict"];

/// Declarations of modules that do not have the lint directly above them.
fn unheld(source: &str, modules: &[&str]) -> Vec<String> {
    let lines: Vec<&str> = source.lines().collect();
    let held = |module: &str| {
        let declares = |line: &str| {
            let name = line.strip_prefix("pub ").unwrap_or(line).strip_prefix("mod ");
            name.and_then(|name| name.strip_suffix(';')) == Some(module)
        };
        lines.windows(2).any(|pair| pair[0] == LINT && declares(pair[1]))
    };
    modules.iter().filter(|module| !held(module)).map(|module| (*module).to_owned()).collect()
}

#[test]
fn h2_what_strangers_give_is_calculated_with_checked_operations() {
    for (path, modules) in [
        ("crates/apiserver/src/lib.rs", &CHAPTERS[..]),
        ("crates/registry/src/lib.rs", &REGISTRY[..]),
        ("crates/edge/src/lib.rs", &EDGE[..]),
        ("crates/journal/src/lib.rs", &JOURNAL[..]),
        ("crates/catalog/src/lib.rs", &["http"]),
        ("crates/schema/src/object/mod.rs", &PARTS[..]),
        ("crates/apply/src/lib.rs", &["patch"]),
        ("crates/node/src/lib.rs", &["image", "logs"]),
        ("crates/wire/src/lib.rs", &["protobuf", "special", "table", "typed"]),
    ] {
        let missing = unheld(&text(path), modules);
        assert!(missing.is_empty(), "{path}: put `{LINT}` above {missing:?}");
    }
}

#[test]
fn a_chapter_without_the_lint_is_noticed() {
    let source = format!("{LINT}\npub mod rest;\nmod auth;\n");
    assert_eq!(unheld(&source, &["rest", "auth", "gone"]), ["auth", "gone"]);
}
