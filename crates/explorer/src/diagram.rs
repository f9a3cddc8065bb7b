//! What needs what, as a picture and as the table that says the same.
//!
//! Nodes stand in columns: each behind everything that needs it. Within a column they stand near what
//! leads to them, which keeps most lines from crossing.

use crate::words::{count_noun, shorten};
use maud::{Markup, html};
use std::collections::{BTreeMap, BTreeSet};

/// Nodes in a picture; of more there is only the table.
const DRAWN_MAX: usize = 60;
/// Rows of the table.
const ROWS_MAX: usize = 300;
/// Characters of a name that fit into a box.
const LABEL_LENGTH_MAX: usize = 25;
/// Characters of the smaller line below.
const DETAIL_LENGTH_MAX: usize = 32;
const BOX_WIDTH: usize = 232;
const BOX_HEIGHT: usize = 54;
const COLUMN_WIDTH: usize = 308;
const ROW_HEIGHT: usize = 74;
const MARGIN: usize = 16;

/// How a node is, as its box shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NodeTone {
    #[default]
    Plain,
    /// The one that the picture is about.
    Chosen,
    Good,
    Waiting,
    Bad,
    /// It is only known by name.
    Absent,
}

/// A package in a diagram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiagramNode {
    /// What it is known by in edges.
    pub(crate) id: String,
    /// What it is called.
    pub(crate) label: String,
    /// A line below: its version, or its state.
    pub(crate) detail: String,
    /// Where it leads, if it leads somewhere.
    pub(crate) address: Option<String>,
    pub(crate) tone: NodeTone,
}

/// That one package needs another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DiagramEdge {
    /// The one that needs.
    pub(crate) from: String,
    /// The one that is needed.
    pub(crate) to: String,
    /// The versions that will do.
    pub(crate) label: String,
    /// Whether what is there will not do.
    pub(crate) is_broken: bool,
}

/// Packages, and what is between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Diagram {
    /// The packages, in the order in which they are told.
    pub(crate) nodes: Vec<DiagramNode>,
    /// What needs what.
    pub(crate) edges: Vec<DiagramEdge>,
}

/// Where a node stands.
#[derive(Clone, Copy)]
struct DiagramSpot {
    column: usize,
    row: usize,
}

impl Diagram {
    /// The picture, and the table.
    pub(crate) fn draw_both(&self, caption: &str) -> Markup {
        html! {
            @if self.nodes.len() > 1 && self.nodes.len() <= DRAWN_MAX { (self.draw_picture(caption)) }
            @else if self.nodes.len() > DRAWN_MAX {
                p class="lead" { (count_noun(self.nodes.len(), "package")) " are too many for a picture; the table has them." }
            }
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
        let links = self.edges.len();
        let told = format!(
            "{caption}: {} and {links} dependencies; the table below says the same",
            count_noun(self.nodes.len(), "package")
        );
        html! {
            div class="graph panel scroll" tabindex="0" role="region" aria-label={(caption) ", as a picture"} {
                svg viewBox={"0 0 " (width) " " (height)} width=(width) height=(height) role="group" aria-label=(told) {
                    @for edge in &self.edges {
                        @if let (Some(from), Some(to)) = (corner(&edge.from), corner(&edge.to)) {
                            path class=(if edge.is_broken { "wire broken" } else { "wire" }) d=(wire_between(from, to));
                        }
                    }
                    @for node in &self.nodes {
                        @if let Some(place) = corner(&node.id) { (draw_node(node, place)) }
                    }
                }
            }
        }
    }

    fn draw_table(&self, caption: &str) -> Markup {
        let named: BTreeMap<&str, &DiagramNode> =
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
                            @for edge in self.edges.iter().take(ROWS_MAX) {
                                tr {
                                    td { (cell(&edge.from)) }
                                    td { (cell(&edge.to)) }
                                    td class="mono" { (edge.label) }
                                    td {
                                        (named.get(edge.to.as_str()).map(|node| node.detail.as_str()).unwrap_or_default())
                                        @if edge.is_broken { " " span class="tag bad" { "does not fit" } }
                                    }
                                }
                            }
                        }
                    }
                }
                @if self.edges.len() > ROWS_MAX {
                    p class="lead" { "And " (count_noun(self.edges.len() - ROWS_MAX, "more row")) "." }
                }
            }
        }
    }

    /// Columns by the longest way from what needs it, rows in the order of what leads there.
    fn place_nodes(&self) -> BTreeMap<&str, DiagramSpot> {
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
            let column = columns.get(id).and_then(|column| number.get(column)).copied();
            let Some(column) = column else { continue };
            let row = rows.entry(column).or_default();
            spots.insert(id, DiagramSpot { column, row: *row });
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

fn draw_node(node: &DiagramNode, (x, y): (usize, usize)) -> Markup {
    let class = match node.tone {
        NodeTone::Plain => "node",
        NodeTone::Chosen => "node chosen",
        NodeTone::Good => "node good",
        NodeTone::Waiting => "node waiting",
        NodeTone::Bad => "node bad",
        NodeTone::Absent => "node absent-node",
    };
    let inner = html! {
        rect x=(x) y=(y) width=(BOX_WIDTH) height=(BOX_HEIGHT) rx="10" {}
        text class="label" x=(x + 14) y=(y + 23) { (shorten(&node.label, LABEL_LENGTH_MAX)) }
        text class="detail" x=(x + 14) y=(y + 41) { (shorten(&node.detail, DETAIL_LENGTH_MAX)) }
    };
    html! {
        @match &node.address {
            Some(address) => { a class=(class) href=(address) aria-label={"package " (node.label) ", " (node.detail)} { (inner) } }
            None => { g class=(class) { (inner) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagram(edges: &[(&str, &str)]) -> Diagram {
        let ids: BTreeSet<&str> = edges.iter().flat_map(|(from, to)| [*from, *to]).collect();
        let node = |id: &&str| DiagramNode {
            id: (*id).to_owned(),
            label: (*id).to_owned(),
            ..DiagramNode::default()
        };
        let edge = |(from, to): &(&str, &str)| DiagramEdge {
            from: (*from).to_owned(),
            to: (*to).to_owned(),
            label: ">=v1".to_owned(),
            is_broken: false,
        };
        Diagram { nodes: ids.iter().map(node).collect(), edges: edges.iter().map(edge).collect() }
    }

    #[test]
    fn what_is_needed_stands_behind_everything_that_needs_it() {
        let diagram = diagram(&[("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")]);
        let spots = diagram.place_nodes();
        let columns: Vec<usize> = ["a", "b", "c", "d"].iter().map(|id| spots[id].column).collect();
        assert_eq!(columns, [0, 1, 2, 3]);
    }

    #[test]
    fn circles_and_nodes_that_are_not_there_end() {
        let drawn = diagram(&[("a", "b"), ("b", "a")]).draw_both("Circle").into_string();
        assert!(drawn.contains("<svg") && drawn.matches("<tr>").count() == 3, "{drawn}");
        let mut lost = diagram(&[("a", "b")]);
        lost.nodes.truncate(1);
        assert!(lost.draw_both("Lost").into_string().contains("<td>b</td>"));
    }

    #[test]
    fn the_table_says_what_the_picture_says() {
        let drawn = diagram(&[("a", "b"), ("a", "c")]).draw_both("Needs").into_string();
        assert_eq!(drawn.matches("class=\"wire\"").count(), 2);
        assert_eq!(drawn.matches("<td class=\"mono\">").count(), 2);
    }

    #[test]
    fn thousands_of_packages_make_no_large_page() {
        let names: Vec<String> = (0..3000).map(|number| format!("team/p{number}")).collect();
        let edges: Vec<(&str, &str)> =
            names.iter().skip(1).map(|name| (names[0].as_str(), name.as_str())).collect();
        let drawn = diagram(&edges).draw_both("Needs").into_string();
        assert!(drawn.len() < 90_000 && !drawn.contains("<svg"), "{}", drawn.len());
    }
}
