//! What a package needs, and what that needs.

use super::contents::{path_of, path_of_kind};
use super::packages::choose;
use super::resolve::{meant_names, resolve_names};
use super::{Index, IndexError, Rights};
use crate::answer::{DependencyGraph, GraphEdge, GraphNode};
use crate::grammar::KindReference;
use crate::record::Dependency;
use crate::resolve::ResolveTerms;
use oci::{Repository, Rules};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Packages in one graph.
const NODES_MAX: usize = 500;
/// Packages that are named as bringing one kind.
const BRINGERS_MAX: usize = 20;
/// Kinds that are looked up for one graph; a need of all kinds of a group is one of each.
const LOOKUPS_MAX: usize = 2500;

impl Index {
    /// The packages that a version needs, as deep as asked for; none if it is not there. Each
    /// package is there once, in the newest version that the first dependency on it admits. What
    /// this catalog does not have, or the asker may not read, is there by name only. A kind that is
    /// needed is a node of its own, and leads to the packages that bring it.
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
    let mut walk = GraphWalk::default();
    walk.queue.push_back((repository.to_owned(), reference.to_owned(), 0));
    while let Some((name, wanted, level)) = walk.queue.pop_front() {
        if walk.nodes.contains_key(&name) || walk.nodes.len() >= NODES_MAX {
            continue;
        }
        let found = choose(database, &name, &wanted)?;
        let dependencies = found.as_ref().map(|it| it.package.dependencies.clone());
        walk.nodes.insert(
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
            walk.follow(database, &name, &dependency, level + 1)?;
        }
    }
    let GraphWalk { nodes, edges, .. } = walk;
    let edges = edges.into_iter().filter(|edge| nodes.contains_key(&edge.to)).collect();
    let root = repository.to_owned();
    Ok(DependencyGraph { root, nodes: nodes.into_values().collect(), edges })
}

/// A graph while it is walked.
#[derive(Default)]
struct GraphWalk {
    nodes: BTreeMap<String, GraphNode>,
    edges: BTreeSet<GraphEdge>,
    /// Repositories to be looked at, in which version, and how deep they are.
    queue: VecDeque<(String, String, usize)>,
    /// How many kinds were looked up.
    looked_up: usize,
}

impl GraphWalk {
    /// Notes what a package needs: another one, or a kind and the packages that bring it.
    fn follow(
        &mut self,
        database: &Connection,
        from: &str,
        dependency: &Dependency,
        level: usize,
    ) -> Result<(), IndexError> {
        if let Some(kind) = dependency.needed_kind() {
            let to = path_of_kind(&kind.to_string());
            self.link(from, &to, &dependency.version);
            return self.follow_kind(database, &kind, to, level);
        }
        let to = known_name(database, &dependency.package)?;
        self.link(from, &to, &dependency.version);
        self.queue.push_back((to, dependency.version.clone(), level));
        Ok(())
    }

    /// Notes the packages that bring a kind: the one, or those that a person chooses from.
    fn follow_kind(
        &mut self,
        database: &Connection,
        kind: &KindReference,
        id: String,
        level: usize,
    ) -> Result<(), IndexError> {
        if self.nodes.contains_key(&id) || self.nodes.len() >= NODES_MAX {
            return Ok(());
        }
        let left = LOOKUPS_MAX.saturating_sub(self.looked_up);
        let mut names = if left > 0 { meant_names(database, kind)? } else { Vec::new() };
        names.truncate(left);
        self.looked_up = self.looked_up.saturating_add(names.len().max(1));
        let found = resolve_names(database, kind, &names, &ResolveTerms::default())?;
        for candidate in found.candidates.into_iter().take(BRINGERS_MAX) {
            let Some(newest) = candidate.versions.into_iter().next() else { continue };
            self.link(&id, &candidate.repository, &newest.tag);
            self.queue.push_back((candidate.repository, newest.digest, level));
        }
        let node = GraphNode {
            repository: id.clone(),
            kind: "CustomResourceDefinition".to_owned(),
            tag: None,
            digest: None,
        };
        self.nodes.insert(id, node);
        Ok(())
    }

    fn link(&mut self, from: &str, to: &str, constraint: &str) {
        self.edges.insert(GraphEdge {
            from: from.to_owned(),
            to: to.to_owned(),
            constraint: constraint.to_owned(),
        });
    }
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
