//! A version of a package.

mod kinds;
mod needs;
mod overview;
mod permissions;
mod versions;

use super::PageSite;
use super::layout::{Frame, Section};
use super::parts::{state_tag, type_tag, version_label, version_name};
use crate::icon;
use crate::link;
use crate::words::{byte_size, group_digits, last_part};
use catalog::Definition;
use catalog::answer::{
    DependencyGraph, Dependent, State, VersionDetail, VersionSeal, VersionSummary,
};
use maud::{Markup, html};
use std::collections::BTreeMap;

/// Versions that are offered beside the name.
const OFFERED_MAX: usize = 12;

/// Everything a page of a package is made of.
pub(crate) struct PackageView<'page> {
    pub(crate) site: &'page PageSite,
    pub(crate) detail: VersionDetail,
    /// How the version was named in the address.
    pub(crate) reference: Option<String>,
    pub(crate) versions: Vec<VersionSummary>,
    pub(crate) definitions: Vec<Definition>,
    pub(crate) dependents: Vec<Dependent>,
    /// Signatures and the like that are there.
    pub(crate) seals: Vec<VersionSeal>,
    /// What it needs, and what that needs.
    pub(crate) graph: Option<DependencyGraph>,
    /// Repositories and kinds of this registry, by what dependencies call them.
    pub(crate) neighbours: BTreeMap<String, String>,
    pub(crate) part: PackagePart,
    /// Only kinds with this text in their names.
    pub(crate) filter: String,
    /// The page of a list, from 1 on.
    pub(crate) page: usize,
}

/// A part of what there is to say about a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PackagePart {
    Overview,
    Readme,
    Kinds,
    Needs,
    Permissions,
    Versions,
}

impl PackagePart {
    /// The part that an address asks for.
    pub(crate) fn parse(text: Option<&str>) -> Option<Self> {
        match text.unwrap_or_default() {
            "" => Some(Self::Overview),
            "readme" => Some(Self::Readme),
            "kinds" => Some(Self::Kinds),
            "needs" => Some(Self::Needs),
            "permissions" => Some(Self::Permissions),
            "versions" => Some(Self::Versions),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Overview => "",
            Self::Readme => "readme",
            Self::Kinds => "kinds",
            Self::Needs => "needs",
            Self::Permissions => "permissions",
            Self::Versions => "versions",
        }
    }
}

/// The page at `/p/REPOSITORY`.
pub(crate) fn package_page(view: &PackageView<'_>) -> String {
    let name = last_part(&view.detail.repository);
    let title = match view.detail.summary.tags.first() {
        Some(tag) => format!("{name} {tag}"),
        None => name.to_owned(),
    };
    let frame = Frame { site: view.site, title: &title, section: Section::Packages, words: "" };
    frame.wrap_content(&html! {
        (view.draw_head())
        (view.draw_tabs())
        (view.draw_trouble())
        @match view.part {
            PackagePart::Overview => (view.draw_overview()),
            PackagePart::Readme => (view.draw_readme()),
            PackagePart::Kinds => (view.draw_kinds()),
            PackagePart::Needs => (view.draw_needs()),
            PackagePart::Permissions => (view.draw_permissions()),
            PackagePart::Versions => (view.draw_versions()),
        }
    })
}

impl PackageView<'_> {
    fn address(&self, part: PackagePart) -> String {
        link::package_view(&self.detail.repository, self.reference.as_deref(), part.name())
    }

    fn draw_head(&self) -> Markup {
        let VersionDetail { repository, summary, icon, .. } = &self.detail;
        let package = &summary.package;
        html! {
            div class="head" {
                (icon::package_icon(repository, icon.as_deref(), true))
                div {
                    p class="crumbs mono" { (repository) }
                    h1 { (last_part(repository)) }
                    @if let Some(text) = &package.description { p class="lead" { (text) } }
                    p class="meta" {
                        (type_tag(&package.kind))
                        @if let Some(license) = &package.license { span class="tag" { (license) } }
                        @if let Some(category) = &package.category { span class="tag" { (category) } }
                        (state_tag(summary))
                        @if package.size > 0 { span { (byte_size(package.size)) } }
                        @if !package.platforms.is_empty() { span { (package.platforms.join(", ")) } }
                    }
                }
                (self.draw_picker())
            }
        }
    }

    /// The versions to choose from, newest first.
    fn draw_picker(&self) -> Markup {
        let VersionDetail { repository, summary, .. } = &self.detail;
        let is_newest = self.versions.first().is_some_and(|it| it.digest == summary.digest);
        html! {
            details class="picker" {
                summary { span class="unseen" { "Version " } (version_label(summary)) @if is_newest { " " small { "newest" } } }
                ul {
                    @for version in self.versions.iter().take(OFFERED_MAX) {
                        @let is_this = version.digest == summary.digest;
                        @let named = version_name(version);
                        li {
                            a class="mono" aria-current=[is_this.then_some("page")]
                                href=(link::package_view(repository, Some(named), self.part.name())) {
                                (version_label(version))
                            }
                        }
                    }
                    @if self.versions.len() > OFFERED_MAX {
                        li { a href=(self.address(PackagePart::Versions)) { "all " (group_digits(self.versions.len())) } }
                    }
                }
            }
        }
    }

    fn draw_tabs(&self) -> Markup {
        let package = &self.detail.summary.package;
        let tabs = [
            (PackagePart::Overview, "Overview", 0),
            (PackagePart::Kinds, "Kinds", self.detail.summary.kinds),
            (
                PackagePart::Needs,
                "Dependencies",
                package.dependencies.len() + self.dependents.len(),
            ),
            (PackagePart::Permissions, "Permissions", package.permissions.len()),
            (PackagePart::Versions, "Versions", self.versions.len()),
        ];
        let current =
            if self.part == PackagePart::Readme { PackagePart::Overview } else { self.part };
        html! {
            nav class="tabs" aria-label="About this package" {
                @for (part, label, count) in tabs {
                    a href=(self.address(part)) aria-current=[(part == current).then_some("page")] {
                        (label) @if count > 0 { " " small { (group_digits(count)) } }
                    }
                }
            }
        }
    }

    /// What keeps the package from being read or installed.
    fn draw_trouble(&self) -> Markup {
        let summary = &self.detail.summary;
        let reason = summary.reason.as_deref().unwrap_or_default();
        let note = |class: &str, heading: &str, text: &str| {
            html! {
                div class={"note " (class)} {
                    (icon::warning_glyph())
                    p { b { (heading) } @if !text.is_empty() { " " (text) } }
                }
            }
        };
        match summary.state {
            State::Read => {
                let problem = summary.package.problem.as_deref();
                problem.map_or_else(Markup::default, |text| {
                    note("bad", "It cannot be installed as it is.", text)
                })
            }
            State::Waiting => note("", "It was pushed a moment ago, and is being read.", ""),
            State::Incomplete => note("warn", "A part of it is missing.", reason),
            State::Broken => note("bad", "It cannot be read.", reason),
        }
    }
}
