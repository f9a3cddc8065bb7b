//! Circles of imports between the modules of a room.

use crate::Room;
use std::collections::{BTreeMap, BTreeSet};

/// The largest set of modules of a room that all reach each other by `crate::` paths. A module is
/// a file or folder directly below `src`.
pub fn largest(room: &Room) -> Vec<String> {
    let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in &room.files {
        let module = module_of(&file.path);
        let targets = edges.entry(module).or_default();
        targets.extend(file.imports.iter().map(String::as_str).filter(|name| *name != module));
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        edges.keys().map(|module| (*module, reach(&edges, module))).collect();
    let circle = |module: &str| -> Vec<String> {
        let others = reached[module].iter();
        let mutual =
            others.filter(|other| reached.get(*other).is_some_and(|back| back.contains(module)));
        mutual.map(|name| (*name).to_owned()).collect()
    };
    edges.keys().map(|module| circle(module)).max_by_key(Vec::len).unwrap_or_default()
}

fn module_of(path: &str) -> &str {
    let first = path.split('/').next().unwrap_or(path);
    first.strip_suffix(".rs").unwrap_or(first)
}

fn reach<'a>(edges: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&str> = edges.get(from).into_iter().flatten().copied().collect();
    while let Some(module) = open.pop() {
        if let Some((known, targets)) = edges.get_key_value(module)
            && seen.insert(*known)
        {
            open.extend(targets);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    #[test]
    fn a_circle_is_found_and_a_chain_is_none() {
        let file = |path: &str, text: &str| Source::parse(path.to_owned(), text);
        let chain =
            vec![file("a.rs", "use crate::b::B;\n"), file("b/mod.rs", "use crate::c::C;\n")];
        assert!(largest(&Room { files: chain }).is_empty());
        let circle = vec![
            file("a.rs", "use crate::b::B;\n"),
            file("b/mod.rs", "use crate::c::C;\n"),
            file("c.rs", "use crate::a::A;\n"),
            file("d.rs", "use crate::a::A;\n"),
        ];
        assert_eq!(largest(&Room { files: circle }), ["a", "b", "c"]);
    }
}
