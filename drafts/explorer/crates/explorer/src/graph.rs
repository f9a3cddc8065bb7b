//! What needs what, as a picture and as the table that says the same.
//!
//! Nodes stand in columns: each behind everything that needs it. Within a column they stand near what
//! leads to them, which keeps most lines from crossing.

use crate::words::{count_noun, shorten};
use maud::{Markup, html};
use std::collections::{BTreeMap, BTreeSet};

/// Nodes in a picture; more are only in the table.
const DRAWN_MAX: usize = 60;
/// Characters of a label that fit a box.
const LABEL_LENGTH_MAX: usize = 27;
const BOX_WIDTH: usize = 232;
const BOX_HEIGHT: usize = 52;
const COLUMN_WIDTH: usize = 310;
const ROW_HEIGHT: usize = 72;
const MARGIN: usize = 10;

/// Something that needs, or is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphNode {
    /// What it is known by in edges.
    pub id: String,
    /// What it is called.
    pub label: String,
    /// A line below: its version, or its state.
    pub detail: String,
    /// Where it leads, if it leads somewhere.
    pub address: Option<String>,
    /// Whether something is wrong with it.
    pub is_troubled: bool,
}

/// That one needs another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GraphEdge {
    /// What needs.
    pub from: String,
    /// What is needed.
    pub to: String,
    /// Which versions will do.
    pub label: String,
}

/// Nodes and what is between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The nodes, in the order in which they are told.
    pub nodes: Vec<GraphNode>,
    /// What needs what.
    pub edges: Vec<GraphEdge>,
}

/// Where a node stands.
struct Spot {
    column: usize,
    row: usize,
}

impl Graph {
    /// The picture, and the table.
    pub(crate) fn draw(&self, caption: &str) -> Markup {
        html! {
            @if self.nodes.len() > 1 && self.nodes.len() <= DRAWN_MAX { (self.draw_picture(caption)) }
            (self.draw_table(caption))
        }
    }

    fn draw_picture(&self, caption: &str) -> Markup {
        let spots = self.place_nodes();
        let columns = spots.values().map(|spot| spot.column + 1).max().unwrap_or(1);
        let rows = spots.values().map(|spot| spot.row + 1).max().unwrap_or(1);
        let width = 2 * MARGIN + (columns - 1) * COLUMN_WIDTH + BOX_WIDTH;
        let height = 2 * MARGIN + (rows - 1) * ROW_HEIGHT + BOX_HEIGHT;
        let corner = |id: &str| {
            let spot = spots.get(id)?;
            Some((MARGIN + spot.column * COLUMN_WIDTH, MARGIN + spot.row * ROW_HEIGHT))
        };
        let told = format!("{caption}: {}, {}", count_noun(self.nodes.len(), "package"), count_noun(self.edges.len(), "dependency link"));
        html! {
            div class="graph panel scroll" tabindex="0" role="region" aria-label={(caption) ", as a picture"} {
                svg viewBox={"0 0 " (width) " " (height)} width=(width) height=(height) role="img" aria-label=(told) {
                    @for edge in &self.edges {
                        @if let (Some(from), Some(to)) = (corner(&edge.from), corner(&edge.to)) {
                            path class="wire" d=(wire_between(from, to));
                        }
                    }
                    @for node in &self.nodes {
                        @if let Some((x, y)) = corner(&node.id) { (draw_node(node, x, y)) }
                    }
                }
            }
        }
    }

    fn draw_table(&self, caption: &str) -> Markup {
        let named: BTreeMap<&str, &GraphNode> =
            self.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
        let cell = |id: &str| {
            let node = named.get(id).copied();
            let label = node.map_or(id, |node| node.label.as_str());
            html! {
                @match node.and_then(|node| node.address.as_deref()) {
                    Some(address) => { a href=(address) { (label) } }
                    None => { (label) }
                }
            }
        };
        html! {
            @if !self.edges.is_empty() {
                div class="panel scroll" tabindex="0" role="region" aria-label={(caption) ", as a table"} {
                    table {
                        thead {
                            tr {
                                th scope="col" { "Package" }
                                th scope="col" { "Needs" }
                                th scope="col" { "Versions that will do" }
                                th scope="col" { "There is" }
                            }
                        }
                        tbody {
                            @for edge in &self.edges {
                                tr {
                                    td { (cell(&edge.from)) }
                                    td { (cell(&edge.to)) }
                                    td class="mono" { (edge.label) }
                                    td { (named.get(edge.to.as_str()).map(|node| node.detail.as_str()).unwrap_or_default()) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// Columns by the longest way from what needs it, rows in the order of what leads there.
    fn place_nodes(&self) -> BTreeMap<&str, Spot> {
        let mut columns: BTreeMap<&str, usize> =
            self.nodes.iter().map(|node| (node.id.as_str(), 0)).collect();
        // A circle would go on for ever; a way is at most as long as there are nodes.
        for _ in 0..self.nodes.len() {
            let mut is_settled = true;
            for edge in &self.edges {
                let Some(before) = columns.get(edge.from.as_str()).copied() else { continue };
                let Some(column) = columns.get_mut(edge.to.as_str()) else { continue };
                if *column <= before && before + 1 < self.nodes.len() {
                    *column = before + 1;
                    is_settled = false;
                }
            }
            if is_settled {
                break;
            }
        }
        let used: BTreeSet<usize> = columns.values().copied().collect();
        let number: BTreeMap<usize, usize> = used.into_iter().zip(0..).collect();
        let mut rows = BTreeMap::<usize, usize>::new();
        let mut spots = BTreeMap::new();
        for id in self.nodes_in_order() {
            let Some(column) = columns.get(id).and_then(|column| number.get(column)) else { continue };
            let row = rows.entry(*column).or_default();
            spots.insert(id, Spot { column: *column, row: *row });
            *row += 1;
        }
        spots
    }

    /// Nodes as they are met when each is followed to what it needs.
    fn nodes_in_order(&self) -> Vec<&str> {
        let mut order: Vec<&str> = Vec::new();
        let mut seen = BTreeSet::new();
        let mut waiting: Vec<&str> = self.nodes.iter().rev().map(|node| node.id.as_str()).collect();
        while let Some(id) = waiting.pop() {
            if !seen.insert(id) {
                continue;
            }
            order.push(id);
            let next = self.edges.iter().rev().filter(|edge| edge.from == id);
            waiting.extend(next.map(|edge| edge.to.as_str()));
        }
        order
    }
}

/// A line from the right side of one box to the left side of another.
fn wire_between(from: (usize, usize), to: (usize, usize)) -> String {
    let (x1, y1) = (from.0 + BOX_WIDTH, from.1 + BOX_HEIGHT / 2);
    let (x2, y2) = (to.0, to.1 + BOX_HEIGHT / 2);
    let middle = usize::midpoint(x1, x2);
    format!("M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}")
}

fn draw_node(node: &GraphNode, x: usize, y: usize) -> Markup {
    let class = if node.is_troubled { "node troubled" } else { "node" };
    let inner = html! {
        rect x=(x) y=(y) width=(BOX_WIDTH) height=(BOX_HEIGHT) rx="10";
        text class="label" x=(x + 14) y=(y + 22) { (shorten(&node.label, LABEL_LENGTH_MAX)) }
        text class="detail" x=(x + 14) y=(y + 40) { (shorten(&node.detail, LABEL_LENGTH_MAX + 6)) }
    };
    html! {
        @match &node.address {
            Some(address) => { a class=(class) href=(address) { (inner) } }
            None => { g class=(class) { (inner) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &str)]) -> Graph {
        let ids: BTreeSet<&str> = edges.iter().flat_map(|(from, to)| [*from, *to]).collect();
        let node = |id: &&str| GraphNode {
            id: (*id).to_owned(),
            label: (*id).to_owned(),
            ..GraphNode::default()
        };
        let edge = |(from, to): &(&str, &str)| GraphEdge {
            from: (*from).to_owned(),
            to: (*to).to_owned(),
            label: ">=v1".to_owned(),
        };
        Graph { nodes: ids.iter().map(node).collect(), edges: edges.iter().map(edge).collect() }
    }

    #[test]
    fn what_is_needed_stands_behind_everything_that_needs_it() {
        let graph = graph(&[("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")]);
        let spots = graph.place_nodes();
        let columns: Vec<usize> = ["a", "b", "c", "d"].iter().map(|id| spots[id].column).collect();
        assert_eq!(columns, [0, 1, 2, 3]);
    }

    #[test]
    fn circles_and_nodes_that_are_not_there_end() {
        let drawn = graph(&[("a", "b"), ("b", "a")]).draw("Circle").into_string();
        assert!(drawn.contains("<svg") && drawn.matches("<tr>").count() == 3, "{drawn}");
        let mut lost = graph(&[("a", "b")]);
        lost.nodes.truncate(1);
        assert!(lost.draw("Lost").into_string().contains("<td>b</td>"));
    }

    #[test]
    fn the_table_says_what_the_picture_says() {
        let graph = graph(&[("a", "b"), ("a", "c")]);
        let drawn = graph.draw("Needs").into_string();
        assert_eq!(drawn.matches("class=\"wire\"").count(), 2);
        assert_eq!(drawn.matches("<td class=\"mono\">").count(), 2);
    }
}
