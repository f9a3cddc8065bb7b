//! What a package needs, and what that needs.

use super::contents::path_of;
use super::packages::choose;
use super::{Index, IndexError, Rights};
use crate::answer::{DependencyGraph, GraphEdge, GraphNode};
use oci::{Repository, Rules};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Packages in one graph.
const NODES_MAX: usize = 500;

impl Index {
    /// The packages that a version needs, as deep as asked for; none if it is not there. Each
    /// package is there once, in the newest version that the first dependency on it admits. What
    /// this catalog does not have, or the asker may not read, is there by name only.
    pub fn graph(
        &self,
        repository: &str,
        reference: &str,
        depth: usize,
        rights: &Rights,
    ) -> Result<Option<DependencyGraph>, IndexError> {
        self.ask(rights, |database| {
            if choose(database, repository, reference)?.is_none() {
                return Ok(None);
            }
            walk_graph(database, repository, reference, depth).map(Some)
        })
    }
}

fn walk_graph(
    database: &Connection,
    repository: &str,
    reference: &str,
    depth: usize,
) -> Result<DependencyGraph, IndexError> {
    let (mut nodes, mut edges) = (BTreeMap::new(), BTreeSet::new());
    let mut queue = VecDeque::from([(repository.to_owned(), reference.to_owned(), 0)]);
    while let Some((name, wanted, level)) = queue.pop_front() {
        if nodes.contains_key(&name) || nodes.len() >= NODES_MAX {
            continue;
        }
        let found = choose(database, &name, &wanted)?;
        let dependencies = found.as_ref().map(|it| it.package.dependencies.clone());
        nodes.insert(
            name.clone(),
            GraphNode {
                repository: name.clone(),
                kind: found.as_ref().map(|it| it.package.kind.clone()).unwrap_or_default(),
                tag: found.as_ref().and_then(|it| it.tags.first().cloned()),
                digest: found.map(|it| it.digest),
            },
        );
        if level == depth {
            continue;
        }
        for dependency in dependencies.unwrap_or_default() {
            let to = known_name(database, &dependency.package)?;
            edges.insert(GraphEdge {
                from: name.clone(),
                to: to.clone(),
                constraint: dependency.version.clone(),
            });
            queue.push_back((to, dependency.version, level + 1));
        }
    }
    let edges = edges.into_iter().filter(|edge| nodes.contains_key(&edge.to)).collect();
    let root = repository.to_owned();
    Ok(DependencyGraph { root, nodes: nodes.into_values().collect(), edges })
}

/// How this catalog calls a package: with its registry or by its path, or as it is written if there is
/// none by either.
fn known_name(database: &Connection, package: &str) -> Result<String, IndexError> {
    let whole = Repository::parse(package, &Rules::weak()).map(|it| it.to_string());
    for name in whole.ok().into_iter().chain([path_of(package)]) {
        let sql = "SELECT 1 FROM repository WHERE name = ?1 AND readable(name)";
        if database.prepare_cached(sql)?.exists([&name])? {
            return Ok(name);
        }
    }
    Ok(package.to_owned())
}
