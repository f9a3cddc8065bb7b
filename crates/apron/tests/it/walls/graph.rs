//! What is built from outside: no crate twice, and some crates never.
//!
//! `cargo tree` is asked rather than `cargo metadata`, because the latter also lists optional
//! crates that no feature turns on.

use super::{cargo, strings_of, text};
use std::collections::{BTreeMap, BTreeSet};

/// Crates that may be built in more than one version, each with the reason.
const TWICE: [(&str, &str); 8] = [
    ("base64", "k8s-openapi is still on the older one"),
    ("foldhash", "the older hashbrown's"),
    ("getrandom", "resolvo's hasher uses the older one; ours is the newer"),
    ("hashbrown", "resolvo's graph uses the oldest, kube's informers the one after"),
    ("syn", "tracing's macros, which resolvo brings, are still on the older one"),
    ("synstructure", "the reader of certificates is still on the older one"),
    ("tower-http", "reqwest is still on the older one; kube's is the newer"),
    ("untrusted", "aws-lc-rs is still on the older one; rustls' is the newer"),
];

/// Crates that never enter the house. `deny.toml` says why.
const NEVER: [&str; 5] = ["native-tls", "openssl", "openssl-sys", "ring", "serde_yaml"];

/// Lines `name vVERSION …` of everything in the tree.
fn tree(arguments: &[&str]) -> Vec<(String, String)> {
    let common = ["tree", "--workspace", "--locked", "--prefix", "none"];
    let text = cargo(&[&common, arguments].concat());
    let lines = text.lines().map(|line| line.split(' ').map(str::to_owned));
    lines.filter_map(|mut words| Some((words.next()?, words.next()?))).collect()
}

fn repeated(tree: Vec<(String, String)>) -> BTreeMap<String, BTreeSet<String>> {
    let mut versions = BTreeMap::<String, BTreeSet<String>>::new();
    for (name, version) in tree {
        versions.entry(name).or_default().insert(version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    versions
}

#[test]
fn no_crate_is_built_in_two_versions_without_a_reason() {
    let linux = ["--edges", "normal,build", "--target", "x86_64-unknown-linux-gnu"];
    let repeated = repeated(tree(&linux));
    for (name, versions) in &repeated {
        assert!(
            TWICE.iter().any(|(known, _)| known == name),
            "`{name}` is built in the versions {versions:?}; bring them together, or put the \
             crate on the list here and in deny.toml with the reason"
        );
    }
    for (name, _) in TWICE {
        assert!(repeated.contains_key(name), "`{name}` is built once now: take it off the list");
    }
}

#[test]
fn two_versions_of_a_crate_are_noticed() {
    let line = |name: &str, version: &str| (name.to_owned(), version.to_owned());
    let tree = vec![line("syn", "v2.0.1"), line("serde", "v1.0.0"), line("syn", "v3.0.0")];
    assert_eq!(repeated(tree).into_keys().collect::<Vec<_>>(), ["syn"]);
}

#[test]
fn unwanted_crates_stay_out_on_every_platform() {
    for (name, version) in tree(&["--edges", "all", "--target", "all"]) {
        assert!(
            !NEVER.contains(&name.as_str()),
            "`{name} {version}` came in with some dependency; `cargo tree --target all -i {name}` \
             says which, and deny.toml why it must not"
        );
    }
    assert_eq!(strings_of(&text("deny.toml"), "deny"), NEVER);
}
