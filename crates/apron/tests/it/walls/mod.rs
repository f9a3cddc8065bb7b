//! The walls of the house: who may import whom, which rooms cannot reach the world, and what we
//! let in from outside.
//!
//! All of it is read from the files that cargo itself goes by. `deny.toml` says the same of what
//! comes from outside to those who have cargo-deny; here nothing but cargo is needed.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test, as it should")]

mod arithmetic;
mod clippy;
mod edges;
mod graph;
mod licences;
mod profile;
mod purity;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// Rooms that compute and nothing else: no files, sockets, clock, environment or threads.
const PURE: [&str; 12] = [
    "api", "apply", "manual", "oci", "plan", "schema", "solver", "stack", "wire", "workload",
    "xpkg", "yaml",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: impl AsRef<Path>) -> String {
    fs_err::read_to_string(root().join(path)).unwrap()
}

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).current_dir(root()).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Every package that any platform, test or build script of ours could need.
fn packages() -> &'static [serde_json::Value] {
    static METADATA: LazyLock<serde_json::Value> = LazyLock::new(|| {
        let text = cargo(&["metadata", "--format-version", "1", "--locked"]);
        serde_json::from_str(&text).unwrap()
    });
    METADATA["packages"].as_array().unwrap()
}

/// The folder of a package, if it is one of our rooms.
fn room(package: &str) -> Option<&str> {
    match package {
        "apron" => Some("apron"),
        other => other.strip_prefix("apron-"),
    }
}

/// Names of what a package's code may import: everything but dependencies of its tests.
fn dependencies(package: &serde_json::Value) -> impl Iterator<Item = &str> {
    let all = package["dependencies"].as_array().unwrap().iter();
    all.filter(|dependency| dependency["kind"] != "dev")
        .map(|dependency| dependency["name"].as_str().unwrap())
}

/// The strings of an array `name = [ … ]` in a TOML file of ours: one entry per line, of which
/// the first string counts.
fn strings_of(toml: &str, name: &str) -> Vec<String> {
    let lines = toml.lines().skip_while(|line| *line != format!("{name} = [")).skip(1);
    let lines = lines.take_while(|line| *line != "]");
    lines.filter_map(|line| line.split('"').nth(1)).map(str::to_owned).collect()
}
