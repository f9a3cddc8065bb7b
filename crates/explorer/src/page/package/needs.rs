//! What a package needs, and what needs it.

use super::PackageView;
use crate::diagram::{Diagram, DiagramEdge, DiagramNode, NodeTone};
use crate::link;
use crate::page::parts::{empty_state, type_tag};
use crate::words::{count_noun, last_part, short_digest};
use catalog::Dependency;
use catalog::answer::{DependencyGraph, Dependent, GraphEdge, GraphNode};
use maud::{Markup, html};
use std::collections::BTreeMap;

/// Packages that need this one, as many as are shown.
const DEPENDENTS_MAX: usize = 200;

/// A kind that a package needs, on the way to those that bring it.
fn draw_kind(node: &GraphNode, kind: &str, is_brought: bool) -> DiagramNode {
    let name = kind.split_once('/').map_or(kind, |(name, _)| name);
    DiagramNode {
        id: node.repository.clone(),
        label: name.split('.').next().unwrap_or(name).to_owned(),
        detail: if is_brought {
            "a kind".to_owned()
        } else {
            "a kind that nobody brings".to_owned()
        },
        address: (is_brought && !name.starts_with('*')).then(|| link::kind_page(name, None)),
        tone: if is_brought { NodeTone::Plain } else { NodeTone::Absent },
    }
}

impl PackageView<'_> {
    pub(super) fn draw_needs(&self) -> Markup {
        html! {
            section { h2 { "Depends on" } (self.draw_dependencies()) }
            @if let Some(graph) = self.graph.as_ref().filter(|graph| graph.edges.len() > 1) {
                section { h2 { "All that comes with it" } (Self::draw_graph(graph)) }
            }
            section { h2 { "Needed by" } (self.draw_dependents()) }
        }
    }

    fn draw_dependencies(&self) -> Markup {
        let needs = &self.detail.summary.package.dependencies;
        if needs.is_empty() {
            return empty_state("Nothing", &html! { "It stands on its own." });
        }
        html! {
            div class="panel scroll" tabindex="0" role="region" aria-label="What it needs" {
                table {
                    thead { tr { th scope="col" { "Package" } th scope="col" { "Type" } th scope="col" { "Versions" } } }
                    tbody {
                        @for dependency in needs {
                            tr {
                                td class="mono" {
                                    @match self.here(dependency) {
                                        Some(address) => { a href=(address) { (dependency.package) } }
                                        None => { (dependency.package) }
                                    }
                                }
                                td { (type_tag(&dependency.kind)) }
                                td class="mono" { (dependency.version) }
                            }
                        }
                    }
                }
            }
        }
    }

    /// What it needs, and what that needs, as far as this registry knows.
    fn draw_graph(graph: &DependencyGraph) -> Markup {
        let node = |node: &GraphNode| {
            if let Some(kind) = node.repository.strip_prefix("crd:") {
                let is_brought = graph.edges.iter().any(|edge| edge.from == node.repository);
                return draw_kind(node, kind, is_brought);
            }
            let is_known = node.digest.is_some();
            let named = node.tag.as_deref().or(node.digest.as_deref());
            DiagramNode {
                id: node.repository.clone(),
                label: last_part(&node.repository).to_owned(),
                detail: match &node.tag {
                    Some(tag) => tag.clone(),
                    None if is_known => "no tag".to_owned(),
                    None => "not in this registry".to_owned(),
                },
                address: is_known.then(|| link::package_page(&node.repository, named)),
                tone: match () {
                    () if node.repository == graph.root => NodeTone::Chosen,
                    () if is_known => NodeTone::Plain,
                    () => NodeTone::Absent,
                },
            }
        };
        let edge = |edge: &GraphEdge| DiagramEdge {
            from: edge.from.clone(),
            to: edge.to.clone(),
            label: edge.constraint.clone(),
            is_broken: false,
        };
        let nodes = graph.nodes.iter().map(node).collect();
        let edges = graph.edges.iter().map(edge).collect();
        Diagram { nodes, edges }.draw_both("Dependencies")
    }

    /// The page of the package or of the kind that a dependency means.
    fn here(&self, dependency: &Dependency) -> Option<String> {
        let name = self.neighbours.get(&dependency.package)?;
        Some(match dependency.needed_kind() {
            Some(kind) => link::kind_page(name, kind.version.as_deref()),
            None => link::package_page(name, None),
        })
    }

    fn draw_dependents(&self) -> Markup {
        if self.dependents.is_empty() {
            return empty_state(
                "Nothing that you may read",
                &html! {
                    "No package of this registry asks for it."
                },
            );
        }
        // Versions of one repository say mostly the same.
        let mut by_repository = BTreeMap::<&str, Vec<&Dependent>>::new();
        for one in &self.dependents {
            by_repository.entry(&one.repository).or_default().push(one);
        }
        html! {
            div class="panel scroll" tabindex="0" role="region" aria-label="What needs it" {
                table {
                    thead { tr { th scope="col" { "Package" } th scope="col" { "Newest that does" } th scope="col" { "Asks for" } } }
                    tbody {
                        @for (repository, all) in by_repository.iter().take(DEPENDENTS_MAX) {
                            @if let Some(first) = all.first() {
                                tr {
                                    td { a href=(link::package_page(repository, None)) { (repository) } }
                                    td class="mono" {
                                        (first.tags.first().cloned().unwrap_or_else(|| short_digest(&first.digest)))
                                        @if all.len() > 1 { " " small { (count_noun(all.len(), "version")) } }
                                    }
                                    td class="mono" { (first.dependency.version) }
                                }
                            }
                        }
                    }
                }
            }
            @if by_repository.len() > DEPENDENTS_MAX {
                p { "and " (count_noun(by_repository.len() - DEPENDENTS_MAX, "other package")) }
            }
        }
    }
}
