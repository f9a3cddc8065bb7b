//! The control plane: what is installed, how it is and what is in the way.

use super::PageSite;
use super::layout::{Frame, Section};
use super::parts::{empty_state, type_tag};
use crate::graph::{Graph, GraphEdge, GraphNode};
use crate::icon;
use crate::link;
use crate::plane::{PlaneEvent, PlanePackage, PlaneReport};
use crate::words::{count_noun, shorten};
use maud::{Markup, html};

/// Events on a page.
const EVENTS_MAX: usize = 50;
/// Characters of an event's sentence.
const MESSAGE_LENGTH_MAX: usize = 400;

/// The page at `/plane`.
pub(crate) fn plane_page(site: &PageSite, report: &PlaneReport) -> String {
    let frame = Frame { site, title: "Control plane", section: Section::Plane, words: "" };
    frame.wrap_content(&html! {
        div data-live { (draw_plane(report)) }
    })
}

fn draw_plane(report: &PlaneReport) -> Markup {
    let well = report.packages.iter().filter(|it| it.is_well).count();
    let total = report.packages.len();
    html! {
        div class="page-head" {
            h1 {
                @if total == 0 { "Nothing is installed" }
                @else { (well) " of " (count_noun(total, "package")) " healthy" }
            }
            p class="lead" role="status" {
                @if total == 0 { "A control plane without packages." }
                @else if well == total { "Everything is as it should be." }
                @else { (count_noun(total - well, "package")) " to look at." }
            }
        }
        @if total == 0 {
            (empty_state("Nothing is installed", &html! {
                "Install a package with " code { "apron install REFERENCE" } "."
            }))
        } @else {
            ul class="panel rows" { @for package in &report.packages { (draw_package(package)) } }
            section { h2 { "Who needs what" } (lock_graph(report).draw("Installed packages")) }
        }
        (draw_events(&report.events))
    }
}

fn dot_of(package: &PlanePackage) -> Markup {
    let class = match package.state.as_str() {
        _ if package.is_well => "dot good",
        "unhealthy" => "dot bad",
        _ => "dot wait",
    };
    html! { span class=(class) aria-hidden="true" {} }
}

fn draw_package(package: &PlanePackage) -> Markup {
    html! {
        li class="row" {
            (dot_of(package))
            div {
                a class="strong" href=(link::plane_package(&package.id)) { (package.name) }
                " " (type_tag(&package.kind))
            }
            span class="mono" { (package.version) }
            div {
                b { (package.state) }
                @if let Some(version) = &package.waiting { ", " (version) " waits to be activated" }
                @for message in &package.messages { p class="faint" { (message) } }
            }
        }
    }
}

/// What is installed and what needs what, as the Lock has it.
fn lock_graph(report: &PlaneReport) -> Graph {
    let node = |package: &PlanePackage| GraphNode {
        id: package.id.clone(),
        label: package.name.clone(),
        detail: format!("{} · {}", package.version, package.state),
        address: Some(link::plane_package(&package.id)),
        is_troubled: !package.is_well,
    };
    let mut graph = Graph { nodes: report.packages.iter().map(node).collect(), edges: Vec::new() };
    for package in &report.packages {
        for need in &package.needs {
            let to = need.installed.clone().unwrap_or_else(|| need.package.clone());
            if need.installed.is_none() && !graph.nodes.iter().any(|node| node.id == to) {
                graph.nodes.push(GraphNode {
                    id: to.clone(),
                    label: need.package.clone(),
                    detail: "not installed".to_owned(),
                    address: None,
                    is_troubled: true,
                });
            }
            let (from, label) = (package.id.clone(), need.constraints.clone());
            graph.edges.push(GraphEdge { from, to, label });
        }
    }
    graph
}

fn draw_events(events: &[PlaneEvent]) -> Markup {
    html! {
        @if !events.is_empty() {
            section {
                h2 { "Events" }
                div class="panel scroll" tabindex="0" role="region" aria-label="Events" {
                    table {
                        thead { tr { th scope="col" { "When" } th scope="col" { "Object" } th scope="col" { "What" } } }
                        tbody {
                            @for event in events.iter().take(EVENTS_MAX) {
                                tr {
                                    td class="mono" { (event.time) }
                                    td class="mono" { (event.object) }
                                    td {
                                        @if event.severity == "Warning" { span class="tag warn" { (event.reason) } }
                                        @else { span class="tag" { (event.reason) } }
                                        " " (shorten(&event.message, MESSAGE_LENGTH_MAX))
                                        @if event.count > 1 { " " small { "×" (event.count) } }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The page at `/plane/KIND/NAME`.
pub(crate) fn plane_package_page(site: &PageSite, report: &PlaneReport, package: &PlanePackage) -> String {
    let title = format!("{} · control plane", package.name);
    let frame = Frame { site, title: &title, section: Section::Plane, words: "" };
    let own = |event: &&PlaneEvent| event.object.rsplit(' ').next().is_some_and(|name| {
        name == package.name || package.revisions.iter().any(|it| it.name == name)
    });
    let events: Vec<PlaneEvent> = report.events.iter().filter(own).cloned().collect();
    frame.wrap_content(&html! {
        div data-live {
            div class="page-head" {
                p class="crumbs" { a href="/plane" { "Control plane" } }
                h1 { (package.name) }
                p class="meta" {
                    (type_tag(&package.kind))
                    (dot_of(package)) b { (package.state) }
                    span class="mono" { (package.package) }
                }
            }
            @for message in &package.messages {
                div class="note warn" { (icon::warning_glyph()) p { (message) } }
            }
            section { h2 { "Revisions" } (draw_revisions(package)) }
            section { h2 { "Needs" } (draw_needs(package)) }
            @if !package.needed_by.is_empty() {
                section {
                    h2 { "Needed by" }
                    ul class="plain" {
                        @for id in &package.needed_by { li { a href=(link::plane_package(id)) { (id) } } }
                    }
                }
            }
            (draw_events(&events))
        }
    })
}

fn draw_revisions(package: &PlanePackage) -> Markup {
    if package.revisions.is_empty() {
        return empty_state("None yet", &html! { "The package is being fetched." });
    }
    html! {
        div class="panel scroll" tabindex="0" role="region" aria-label="Revisions" {
            table {
                thead {
                    tr {
                        th scope="col" { "Number" } th scope="col" { "Version" } th scope="col" { "State" }
                        th scope="col" { "Objects" } th scope="col" { "Name" }
                    }
                }
                tbody {
                    @for revision in &package.revisions {
                        tr {
                            td { (revision.number) }
                            td class="mono" { (revision.version) }
                            td {
                                @if revision.state == "active" { span class="tag good" { "active" } }
                                @else { span class="tag" { (revision.state) } }
                            }
                            td { (revision.objects) }
                            td class="mono" { (revision.name) }
                        }
                    }
                }
            }
        }
    }
}

fn draw_needs(package: &PlanePackage) -> Markup {
    if package.needs.is_empty() {
        return empty_state("Nothing", &html! { "It stands on its own." });
    }
    html! {
        div class="panel scroll" tabindex="0" role="region" aria-label="What it needs" {
            table {
                thead { tr { th scope="col" { "Package" } th scope="col" { "Versions that will do" } th scope="col" { "There is" } } }
                tbody {
                    @for need in &package.needs {
                        tr {
                            td class="mono" { (need.package) }
                            td class="mono" { (need.constraints) }
                            td {
                                @match &need.installed {
                                    Some(id) => { a href=(link::plane_package(id)) { (id) } }
                                    None => { span class="tag bad" { "not installed" } }
                                }
                                @if need.installed.is_some() && !need.is_satisfied {
                                    " " span class="tag bad" { "does not fit" }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
