//! Pure rooms do not reach the world: their sources never name the ways out.
//!
//! Sources are read as text, formatted as rustfmt formats them. Names are looked for as they
//! stand and, in `use` declarations, as they unfold. clippy bans the same calls by meaning; this
//! needs no second build and also catches what is imported and not yet called.

use super::{PURE, root};
use std::path::Path;

/// Paths and names that lead out.
const WAYS_OUT: [&str; 12] = [
    "std::env",
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "std::os",
    "SystemTime",
    "Instant",
    "fs_err",
    "tokio",
    "reqwest",
    "rand",
];

/// Addresses as values: parsing one opens nothing.
const HARMLESS: [&str; 3] = ["std::net::IpAddr", "std::net::Ipv4Addr", "std::net::Ipv6Addr"];

/// Each line that names a way out, with its number.
fn ways_out(source: &str) -> Vec<(usize, String)> {
    let lines = code_lines(source);
    let mut found = Vec::new();
    let mut rest = lines.iter();
    while let Some((number, line)) = rest.next() {
        if !is_use(line) {
            found.extend(leads_out(line).then(|| (*number, line.trim().to_owned())));
            continue;
        }
        let mut declaration = (*line).to_owned();
        while !declaration.contains(';') {
            let Some((_, line)) = rest.next() else { break };
            declaration.push_str(line.trim());
        }
        let tree = declaration.split_once("use ").map_or("", |(_, tree)| tree);
        let tree = tree.split(';').next().unwrap_or_default().replace(' ', "");
        let paths = unfold("", &tree).into_iter();
        found.extend(paths.filter(|path| leads_out(path)).map(|path| (*number, path)));
    }
    found
}

fn is_use(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("use ") || (line.starts_with("pub") && line.contains(" use "))
}

/// The lines that are neither comments nor tests. A test item ends where a line closes it at the
/// indentation it began with, which is how rustfmt leaves things.
fn code_lines(source: &str) -> Vec<(usize, &str)> {
    let mut lines = (1..).zip(source.lines()).filter(|(_, line)| !is_comment(line));
    let mut kept = Vec::new();
    while let Some((number, line)) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            kept.push((number, line));
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let ends = |line: &str| {
            let here = line.strip_prefix(indent).is_some_and(|rest| !rest.starts_with(' '));
            here && (line.ends_with(';') || line.trim_end() == format!("{indent}}}"))
        };
        lines.by_ref().find(|(_, line)| ends(line));
    }
    kept
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// `a::{b, c::{d, e}}` as `a::b`, `a::c::d`, `a::c::e`, without new names and spaces.
fn unfold(prefix: &str, tree: &str) -> Vec<String> {
    let Some((head, rest)) = tree.split_once('{') else {
        return vec![format!("{prefix}{tree}")];
    };
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let (mut depth, mut start, mut paths) = (0_i32, 0, Vec::new());
    for (at, letter) in inner.char_indices().chain([(inner.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                paths.extend(unfold(&format!("{prefix}{head}"), &inner[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    paths
}

fn leads_out(code: &str) -> bool {
    let everything = code.ends_with("std::*") || code.ends_with("std::time::*");
    everything || WAYS_OUT.iter().any(|way| names(code, way))
}

/// Whether `way` stands in the code as a whole name, and not as a harmless one.
fn names(code: &str, way: &str) -> bool {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    code.match_indices(way).any(|(at, _)| {
        let whole = !code[..at].ends_with(is_name) && !code[at + way.len()..].starts_with(is_name);
        let harmless = HARMLESS.iter().any(|name| code[at..].starts_with(name));
        let of_crate = way.contains("::") || way.starts_with(char::is_uppercase);
        // A crate's name is also a word; it leads out where something is taken from it.
        let taken = of_crate || code[at + way.len()..].starts_with("::") || code == way;
        whole && taken && !harmless
    })
}

fn check_directory(directory: &Path, complaints: &mut Vec<String>) {
    for entry in fs_err::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            check_directory(&path, complaints);
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
            let source = fs_err::read_to_string(&path).unwrap();
            let found = ways_out(&source).into_iter();
            let place = path.strip_prefix(root()).unwrap().display();
            complaints.extend(found.map(|(line, what)| format!("{place}:{line}: {what}")));
        }
    }
}

#[test]
fn pure_rooms_never_name_the_world() {
    let mut complaints = Vec::new();
    for room in PURE {
        check_directory(&root().join("crates").join(room).join("src"), &mut complaints);
    }
    assert!(
        complaints.is_empty(),
        "pure rooms take what they need as values; these lines reach out instead:\n{}",
        complaints.join("\n")
    );
}

#[test]
fn every_way_out_is_noticed() {
    let check = |source: &str| assert_eq!(ways_out(source).len(), 1, "{source}");
    check("fn f() { std::fs::read(\"a\"); }");
    check("use std::fs;");
    check("use std::{fmt, fs};");
    check(
        "pub(crate) use std::{\n    fmt,\n    io::{self, Read},\n    time::{Duration, Instant},\n};",
    );
    check("    use std::env::var;");
    check("use std::net::TcpStream;");
    check("use std::net::{IpAddr, TcpStream};");
    check("let now = std::time::SystemTime::now();");
    check("use std::time::*;");
    check("use std::*;");
    check("std::thread::spawn(f);");
    check("std::process::exit(1);");
    check("let text = fs_err::read(path);");
    check("async fn f() { tokio::spawn(g()).await }");
    check("use tokio;");
    check("use reqwest::Client;");
    check("let n: u8 = rand::random();");
    check("#[cfg(test)]\nmod tests {\n    use std::fs;\n}\nuse std::fs;\n");
    check("#[cfg(test)]\nmod tests;\n\nuse std::fs;\n");
}

#[test]
fn tests_comments_and_addresses_are_let_be() {
    let check = |source: &str| assert_eq!(ways_out(source), [], "{source}");
    check("#[cfg(test)]\nmod tests {\n    fn f() {\n        std::fs::read(\"a\");\n    }\n}\n");
    check("#[cfg(test)]\nuse std::fs;\nfn f() {}\n");
    check("impl A {\n    #[cfg(test)]\n    fn f() {\n        std::env::args();\n    }\n}\n");
    check("/// Unlike std::fs, this does nothing.");
    check("use std::net::{IpAddr, Ipv4Addr};");
    check("host.parse::<std::net::Ipv6Addr>()");
    check("use std::time::Duration;");
    check("let InstantNoodles = my_rand::tokio_like();");
}
