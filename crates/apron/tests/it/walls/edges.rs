//! Who imports whom.

use super::{PURE, dependencies, packages, room};
use std::collections::BTreeSet;

/// Every edge between rooms. Adding one is a decision about the house, not a detail of a change.
const EDGES: [(&str, &str); 92] = [
    ("apiserver", "apply"),
    ("apiserver", "journal"),
    ("apiserver", "schema"),
    ("apiserver", "wire"),
    ("apiserver", "workload"),
    ("apiserver", "yaml"),
    ("apply", "schema"),
    ("apron", "api"),
    ("apron", "apiserver"),
    ("apron", "catalog"),
    ("apron", "controller"),
    ("apron", "edge"),
    ("apron", "embed"),
    ("apron", "explorer"),
    ("apron", "follow"),
    ("apron", "git"),
    ("apron", "ground"),
    ("apron", "inventory"),
    ("apron", "machine"),
    ("apron", "manual"),
    ("apron", "node"),
    ("apron", "oci"),
    ("apron", "registry"),
    ("apron", "stack"),
    ("apron", "store"),
    ("apron", "xpkg"),
    ("catalog", "api"),
    ("catalog", "oci"),
    ("catalog", "stack"),
    ("catalog", "store"),
    ("catalog", "xpkg"),
    ("catalog", "yaml"),
    ("controller", "api"),
    ("controller", "apply"),
    ("controller", "oci"),
    ("controller", "plan"),
    ("controller", "stack"),
    ("controller", "store"),
    ("controller", "xpkg"),
    ("controller", "yaml"),
    ("embed", "apiserver"),
    ("embed", "edge"),
    ("embed", "ground"),
    ("explorer", "catalog"),
    ("explorer", "oci"),
    ("explorer", "xpkg"),
    ("explorer", "yaml"),
    ("follow", "catalog"),
    ("follow", "oci"),
    ("follow", "registry"),
    ("follow", "store"),
    ("git", "oci"),
    ("ground", "xpkg"),
    ("inventory", "api"),
    ("inventory", "controller"),
    ("inventory", "ground"),
    ("inventory", "oci"),
    ("machine", "ground"),
    ("machine", "node"),
    ("machine", "oci"),
    ("machine", "store"),
    ("inventory", "xpkg"),
    ("node", "oci"),
    ("node", "store"),
    ("plan", "api"),
    ("plan", "oci"),
    ("plan", "solver"),
    ("plan", "xpkg"),
    ("registry", "oci"),
    ("registry", "store"),
    ("schema", "yaml"),
    ("sim", "api"),
    ("sim", "apiserver"),
    ("sim", "controller"),
    ("sim", "oci"),
    ("sim", "plan"),
    ("sim", "registry"),
    ("sim", "store"),
    ("sim", "xpkg"),
    ("solver", "oci"),
    ("solver", "xpkg"),
    ("stack", "oci"),
    ("stack", "schema"),
    ("stack", "xpkg"),
    ("stack", "yaml"),
    ("store", "oci"),
    ("wire", "schema"),
    ("workload", "schema"),
    ("xpkg", "api"),
    ("xpkg", "oci"),
    ("xpkg", "schema"),
    ("xpkg", "yaml"),
];

/// What pure rooms may use from outside: values and formats, nothing that acts. rayon runs pure
/// functions on all cores; it is the one crate here that starts threads.
const OUTSIDE: [&str; 16] = [
    "base64",
    "flate2",
    "granit-parser",
    "hex",
    "rayon",
    "regex",
    "regex-syntax",
    "resolvo",
    "ruzstd",
    "serde",
    "serde_json",
    "sha2",
    "spdx",
    "tar",
    "thiserror",
    "zlib-rs",
];

#[test]
fn rooms_import_exactly_what_the_plan_of_the_house_says() {
    let mut found = BTreeSet::new();
    for package in packages() {
        let Some(from) = room(package["name"].as_str().unwrap()) else { continue };
        found.extend(dependencies(package).filter_map(room).map(|to| (from, to)));
    }
    let planned = BTreeSet::from(EDGES);
    let new: Vec<_> = found.difference(&planned).collect();
    assert!(
        new.is_empty(),
        "rooms import others that the plan of the house does not let them: {new:?}; if that is \
         meant, add the edges here and to ARCHITECTURE.md in a commit of its own"
    );
    let gone: Vec<_> = planned.difference(&found).collect();
    assert!(gone.is_empty(), "rooms no longer import {gone:?}: take the edges off the list");
}

#[test]
fn pure_rooms_depend_on_nothing_that_acts() {
    for package in packages() {
        let Some(room) = room(package["name"].as_str().unwrap()) else { continue };
        if !PURE.contains(&room) {
            continue;
        }
        for dependency in dependencies(package) {
            assert!(
                super::room(dependency).is_some() || OUTSIDE.contains(&dependency),
                "room `{room}` is pure and depends on `{dependency}`; if that crate touches no \
                 files, network, clock or environment, put it on the list here"
            );
        }
    }
}
