//! The control plane: what is installed, how it is, and what is in the way.

use super::PageSite;
use super::layout::{Frame, Section};
use super::parts::{copy_box, empty_state, type_tag};
use crate::diagram::{Diagram, DiagramEdge, DiagramNode, NodeTone};
use crate::icon;
use crate::link;
use crate::plane::{PlaneEvent, PlanePackage, PlaneReport};
use crate::words::{count_noun, short_digest, shorten};
use maud::{Markup, html};
use std::collections::{BTreeMap, BTreeSet};

/// Packages in the list.
const PACKAGES_MAX: usize = 300;
/// Sentences about one package in the list.
const SENTENCES_MAX: usize = 2;
/// Events on a page.
const EVENTS_MAX: usize = 50;
/// Revisions on a page.
const REVISIONS_MAX: usize = 50;
/// Characters of a sentence in the list.
const ROW_SENTENCE_LENGTH_MAX: usize = 240;
/// Characters of a sentence elsewhere.
const SENTENCE_LENGTH_MAX: usize = 600;

/// A control plane, and what the catalog beside it knows.
pub(crate) struct PlaneView<'page> {
    pub(crate) site: &'page PageSite,
    pub(crate) report: &'page PlaneReport,
    /// Pages of the catalog about packages that are installed, by the reference asked for.
    pub(crate) shelved: BTreeMap<String, String>,
}

/// The page at `/plane`.
pub(crate) fn plane_page(view: &PlaneView<'_>) -> String {
    let frame =
        Frame { site: view.site, title: "Control plane", section: Section::Plane, words: "" };
    frame.wrap_content(&live_area(&view.draw_plane()))
}

/// The page at `/plane/KIND/NAME`.
pub(crate) fn plane_package_page(view: &PlaneView<'_>, package: &PlanePackage) -> String {
    let title = format!("{} · control plane", package.name);
    let frame = Frame { site: view.site, title: &title, section: Section::Plane, words: "" };
    frame.wrap_content(&live_area(&view.draw_package(package)))
}

/// Content that the script replaces when something changed, and a place where that is announced.
fn live_area(content: &Markup) -> Markup {
    html! {
        p class="unseen" role="status" id="news" {}
        div data-live=(link::PLANE_NEWS) { (content) }
        noscript { p class="lead" { "Load the page again to see what changed since." } }
    }
}

impl PlaneView<'_> {
    fn draw_plane(&self) -> Markup {
        let packages = &self.report.packages;
        html! {
            (self.draw_plane_head())
            @if let Some(message) = &self.report.unresolved {
                div class="note bad" {
                    (icon::warning_glyph())
                    p { b { "Not every package has what it needs." } " " (shorten(message, SENTENCE_LENGTH_MAX)) }
                }
            }
            @if packages.is_empty() {
                (empty_state("Nothing is installed", &html! {
                    "Install a package with " code { "apron install REFERENCE" } "."
                }))
            } @else {
                section {
                    h2 class="unseen" { "Packages" }
                    ul class="panel rows" {
                        // What needs attention stands first.
                        @for package in troubled_first(packages) { (draw_row(package)) }
                    }
                    @if packages.len() > PACKAGES_MAX {
                        p class="lead" { "And " (count_noun(packages.len() - PACKAGES_MAX, "more package")) "; `apron status` tells of all." }
                    }
                }
                @if packages.iter().any(|package| !package.dependencies.is_empty()) {
                    section { h2 { "What needs what" } (lock_diagram(packages).draw_both("Installed packages")) }
                }
            }
            (draw_events(self.report.events.iter(), packages))
        }
    }

    fn draw_plane_head(&self) -> Markup {
        let packages = &self.report.packages;
        let (well, total) = (packages.iter().filter(|it| it.is_well).count(), packages.len());
        let under_way = packages.iter().filter(|it| tone_of(it) == NodeTone::Waiting).count();
        let troubled = total - well - under_way;
        html! {
            div class="page-head spread" {
                div {
                    p class="crumbs mono" { (self.report.place) }
                    h1 data-headline {
                        @if total == 0 { "A control plane without packages" }
                        @else { (well) " of " (count_noun(total, "package")) " healthy" }
                    }
                }
                p class="meta" {
                    @if troubled > 0 { span class="tag bad" { (troubled) " to look at" } }
                    @if under_way > 0 { span class="tag warn" { (under_way) " under way" } }
                    @if total > 0 && well == total { span class="tag good" { "all is well" } }
                    span class="tag live" hidden data-pulse { "live" }
                }
            }
        }
    }

    fn draw_package(&self, package: &PlanePackage) -> Markup {
        let names: BTreeSet<&str> = package
            .revisions
            .iter()
            .map(|it| it.name.as_str())
            .chain([package.name.as_str()])
            .collect();
        let events = self.report.events.iter().filter(|it| names.contains(it.name.as_str()));
        html! {
            div class="head" {
                (icon::package_icon(&package.name, None, true))
                div {
                    p class="crumbs" { a href="/plane" { "Control plane" } }
                    h1 { (package.name) }
                    p class="meta" {
                        (type_tag(package.kind))
                        (state_mark(package))
                        span class="mono" { (package.version) }
                        span class="tag live" hidden data-pulse { "live" }
                    }
                    p class="unseen" data-headline { (package.name) " is " (package.state) }
                }
            }
            div class="spacer" {}
            @for message in &package.messages {
                div class={"note " (if package.is_well { "warn" } else { "bad" })} {
                    (icon::warning_glyph())
                    p { (shorten(message, SENTENCE_LENGTH_MAX)) }
                }
            }
            @if let Some(remark) = &package.remark {
                div class="note" { p { (shorten(remark, SENTENCE_LENGTH_MAX)) } }
            }
            div class="two" {
                div {
                    section { h2 { "Revisions" } (draw_revisions(package)) }
                    section { h2 { "Needs" } (draw_needs(package)) }
                    (draw_users(package, &self.report.packages))
                    (draw_events(events, &[]))
                }
                aside aria-label="Facts and commands" { (self.draw_facts(package)) (draw_commands(package)) }
            }
        }
    }

    fn draw_facts(&self, package: &PlanePackage) -> Markup {
        html! {
            section class="panel" {
                h2 { "Facts" }
                dl {
                    dt { "asked for" }
                    dd class="mono" {
                        @match self.shelved.get(&package.package) {
                            Some(address) => { a href=(address) { (package.package) } }
                            None => { (package.package) }
                        }
                    }
                    dt { "state" } dd { (package.state) }
                    @if let Some(version) = &package.waiting {
                        dt { "waits to be activated" } dd class="mono" { (version) }
                    }
                    @if let Some(active) = package.revisions.iter().find(|it| it.state == "active") {
                        dt { "objects" } dd { (active.objects) }
                    }
                }
            }
        }
    }
}

/// What to type to learn or do more; pages only read.
fn draw_commands(package: &PlanePackage) -> Markup {
    let mut commands =
        vec![format!("apron status {}", package.id), format!("apron why {}", package.id)];
    if package.waiting.is_some() || package.state == "inactive" {
        commands.insert(0, format!("apron activate {}", package.id));
    }
    html! {
        section class="panel" {
            h2 { "Type" }
            div class="ways plain-ways" {
                @for command in &commands { (copy_box(command, command)) }
            }
        }
    }
}

fn troubled_first(packages: &[PlanePackage]) -> impl Iterator<Item = &PlanePackage> {
    let well = packages.iter().filter(|it| it.is_well);
    packages.iter().filter(|it| !it.is_well).chain(well).take(PACKAGES_MAX)
}

fn tone_of(package: &PlanePackage) -> NodeTone {
    match package.state {
        _ if package.is_well => NodeTone::Good,
        "unhealthy" => NodeTone::Bad,
        _ => NodeTone::Waiting,
    }
}

/// A state as a dot with its word: colour alone says nothing.
fn state_mark(package: &PlanePackage) -> Markup {
    let class = match tone_of(package) {
        NodeTone::Good => "dot good",
        NodeTone::Bad => "dot bad",
        _ => "dot wait",
    };
    html! { span class="state" { span class=(class) aria-hidden="true" {} (package.state) } }
}

fn draw_row(package: &PlanePackage) -> Markup {
    html! {
        li class="row" {
            div class="who" {
                a class="strong" href=(link::plane_package(&package.id)) { (package.name) }
                " " (type_tag(package.kind))
            }
            span class="mono" { (version_of(&package.version)) }
            div class="how" {
                (state_mark(package))
                @for message in package.messages.iter().take(SENTENCES_MAX) {
                    p { (shorten(message, ROW_SENTENCE_LENGTH_MAX)) }
                }
                @if let Some(remark) = &package.remark {
                    p { (shorten(remark, ROW_SENTENCE_LENGTH_MAX)) }
                }
            }
        }
    }
}

fn version_of(version: &str) -> String {
    if version.starts_with("sha256:") { short_digest(version) } else { version.to_owned() }
}

/// What is installed and what needs what, as the Lock has it.
fn lock_diagram(packages: &[PlanePackage]) -> Diagram {
    let node = |package: &PlanePackage| DiagramNode {
        id: package.id.clone(),
        label: package.name.clone(),
        detail: format!("{} · {}", version_of(&package.version), package.state),
        address: Some(link::plane_package(&package.id)),
        tone: tone_of(package),
    };
    let mut diagram = Diagram { nodes: packages.iter().map(node).collect(), edges: Vec::new() };
    let mut known: BTreeSet<String> = packages.iter().map(|it| it.id.clone()).collect();
    for package in packages {
        for need in &package.dependencies {
            let to = need.installed.clone().unwrap_or_else(|| need.package.clone());
            if known.insert(to.clone()) {
                diagram.nodes.push(DiagramNode {
                    id: to.clone(),
                    label: need.package.clone(),
                    detail: "not installed".to_owned(),
                    address: None,
                    tone: NodeTone::Absent,
                });
            }
            diagram.edges.push(DiagramEdge {
                from: package.id.clone(),
                to,
                label: need.constraints.clone(),
                is_broken: need.installed.is_some() && !need.satisfied,
            });
        }
    }
    diagram
}

fn draw_revisions(package: &PlanePackage) -> Markup {
    if package.revisions.is_empty() {
        return empty_state("None yet", &html! { "No version of it was fetched so far." });
    }
    html! {
        div class="panel scroll" tabindex="0" role="region" aria-label="Revisions" {
            table {
                thead {
                    tr {
                        th scope="col" { "Number" }
                        th scope="col" { "Version" }
                        th scope="col" { "State" }
                        th scope="col" { "Objects" }
                        th scope="col" { "Name" }
                    }
                }
                tbody {
                    @for revision in package.revisions.iter().take(REVISIONS_MAX) {
                        tr {
                            td { (revision.number) }
                            td class="mono" { (version_of(&revision.version)) }
                            td {
                                @match revision.state.as_str() {
                                    "active" => { span class="tag good" { "active" } }
                                    "not installed" => { span class="tag bad" { "not installed" } }
                                    state => { span class="tag" { (state) } }
                                }
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
    if package.dependencies.is_empty() {
        return html! { p class="lead" { "Nothing: it stands on its own." } };
    }
    html! {
        div class="panel scroll" tabindex="0" role="region" aria-label="What it needs" {
            table {
                thead {
                    tr {
                        th scope="col" { "Package" }
                        th scope="col" { "Versions that will do" }
                        th scope="col" { "There is" }
                    }
                }
                tbody {
                    @for need in &package.dependencies {
                        tr {
                            td class="mono" { (need.package) }
                            td class="mono" { (need.constraints) }
                            td {
                                @match &need.installed {
                                    Some(id) => {
                                        a href=(link::plane_package(id)) { (id) }
                                        @if let Some(version) = &need.version { " " span class="mono" { (version_of(version)) } }
                                        @if !need.satisfied { " " span class="tag bad" { "does not fit" } }
                                    }
                                    None => { span class="tag bad" { "not installed" } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn draw_users(package: &PlanePackage, all: &[PlanePackage]) -> Markup {
    let users = all.iter().filter(|it| package.needed_by.contains(&it.id));
    html! {
        @if !package.needed_by.is_empty() {
            section {
                h2 { "Needed by" }
                ul class="panel rows" { @for user in users { (draw_row(user)) } }
            }
        }
    }
}

/// Events; names of packages lead to them.
fn draw_events<'event>(
    events: impl Iterator<Item = &'event PlaneEvent>,
    packages: &[PlanePackage],
) -> Markup {
    let events: Vec<&PlaneEvent> = events.take(EVENTS_MAX).collect();
    let page_of = |event: &PlaneEvent| {
        let mut all = packages.iter();
        let package = all.find(|it| it.name == event.name && it.kind == event.kind);
        package.map(|package| link::plane_package(&package.id))
    };
    html! {
        @if !events.is_empty() {
            section {
                h2 { "Events" }
                div class="panel scroll" tabindex="0" role="region" aria-label="Events" {
                    table class="events" {
                        thead { tr { th scope="col" { "When" } th scope="col" { "Object" } th scope="col" { "What" } } }
                        tbody {
                            @for event in events {
                                tr {
                                    td { time datetime=(event.time) { (plain_time(&event.time)) } }
                                    td {
                                        small { (event.kind) } br;
                                        @match page_of(event) {
                                            Some(address) => { a href=(address) { (event.name) } }
                                            None => { (event.name) }
                                        }
                                    }
                                    td {
                                        span class=(if event.is_warning { "tag warn" } else { "tag" }) { (event.reason) }
                                        " " (shorten(&event.message, SENTENCE_LENGTH_MAX))
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

/// A time as people read it: `2026-11-18 10:42:11`.
fn plain_time(time: &str) -> String {
    let whole = time.split(['.', 'Z']).next().unwrap_or(time);
    whole.replacen('T', " ", 1)
}
