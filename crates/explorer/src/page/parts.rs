//! Pieces that several pages are made of.

use crate::icon;
use crate::link;
use crate::words::{count_noun, last_part, short_digest, shorten};
use catalog::answer::{KindSummary, PackageSummary, State, VersionSummary};
use catalog::{Definition, Origin};
use maud::{Markup, html};

/// Characters of a description on a card.
const CARD_TEXT_MAX: usize = 200;
/// Packages that are named beside a kind.
const NAMED_MAX: usize = 3;

/// The type of a package, as a mark.
pub(super) fn type_tag(kind: &str) -> Markup {
    let class = match kind {
        "Provider" => "tag provider",
        "Configuration" => "tag configuration",
        "Function" => "tag function",
        _ => "tag",
    };
    html! { @if !kind.is_empty() { span class=(class) { (kind) } } }
}

/// A package in a list.
pub(super) fn package_card(package: &PackageSummary) -> Markup {
    let newest = &package.newest;
    let text = newest.package.description.as_deref().unwrap_or_default();
    html! {
        li class="card" {
            (icon::package_icon(&package.repository, None, false))
            div {
                h3 {
                    a href=(link::package_page(&package.repository, None)) {
                        (last_part(&package.repository))
                    }
                }
                p class="where mono" { (package.repository) }
                @if text.is_empty() {
                    p class="text faint" { "No description." }
                } @else {
                    p class="text" { (shorten(text, CARD_TEXT_MAX)) }
                }
                p class="meta" {
                    (type_tag(&newest.package.kind))
                    @if let Some(tag) = newest.tags.first() { span class="mono" { (tag) } }
                    @if newest.kinds > 0 { span { (count_noun(newest.kinds, "kind")) } }
                    @if !newest.package.permissions.is_empty() {
                        span class="tag warn" { "asks for permissions" }
                    }
                    (state_tag(newest))
                }
            }
        }
    }
}

/// What a version is called: its best tag, or its digest, shortened.
pub(super) fn version_label(version: &VersionSummary) -> String {
    version.tags.first().cloned().unwrap_or_else(|| short_digest(&version.digest))
}

/// What a version is asked for by.
pub(super) fn version_name(version: &VersionSummary) -> &str {
    version.tags.first().unwrap_or(&version.digest)
}

/// What a version's state is, if it is anything but read.
pub(super) fn state_tag(version: &VersionSummary) -> Markup {
    html! {
        @match version.state {
            State::Read if version.package.problem.is_some() => {
                span class="tag bad" { "cannot be installed" }
            }
            State::Read => {}
            State::Waiting => { span class="tag" { "being read" } }
            State::Incomplete => { span class="tag warn" { "incomplete" } }
            State::Broken => { span class="tag bad" { "broken" } }
        }
    }
}

/// Kinds with the packages that bring them.
pub(super) fn kind_table(kinds: &[KindSummary], caption: &str) -> Markup {
    html! {
        div class="panel scroll" tabindex="0" role="region" aria-label=(caption) {
            table {
                caption class="unseen" { (caption) }
                thead {
                    tr {
                        th scope="col" { "Kind" }
                        th scope="col" { "Name" }
                        th scope="col" { "Versions" }
                        th scope="col" { "Brought by" }
                    }
                }
                tbody {
                    @for kind in kinds {
                        tr {
                            td { (kind_link(&kind.definition)) (origin_tag(kind.definition.origin)) }
                            td class="mono" { (kind.definition.name) }
                            td { (version_tags(&kind.definition)) }
                            td { (bringers(&kind.packages)) }
                        }
                    }
                }
            }
        }
    }
}

fn bringers(packages: &[String]) -> Markup {
    html! {
        @for (at, name) in packages.iter().take(NAMED_MAX).enumerate() {
            @if at > 0 { ", " }
            a href=(link::package_page(name, None)) { (name) }
        }
        @if packages.len() > NAMED_MAX {
            " and " (count_noun(packages.len() - NAMED_MAX, "other"))
        }
    }
}

/// A link to a kind, by its name in documents.
pub(super) fn kind_link(definition: &Definition) -> Markup {
    html! { a class="strong" href=(link::kind_page(&definition.name, None)) { (definition.kind) } }
}

/// What brings a kind, if it is not simply defined.
pub(super) fn origin_tag(origin: Origin) -> Markup {
    let told = match origin {
        Origin::Crd => return html! {},
        Origin::Xrd => "composite",
        Origin::XrdClaim => "claim",
        Origin::Mrd => "to be activated",
        Origin::FunctionInput => "function input",
    };
    html! { " " span class="tag" { (told) } }
}

/// The versions of a kind, with what is to be known of each.
pub(super) fn version_tags(definition: &Definition) -> Markup {
    html! {
        @for version in &definition.versions {
            span class="version" {
                a class="mono" href=(link::kind_page(&definition.name, Some(&version.name))) {
                    (version.name)
                }
                @if version.storage && definition.versions.len() > 1 {
                    " " span class="tag" { "stored" }
                }
                @if version.deprecated { " " span class="tag warn" { "deprecated" } }
                @if !version.served { " " span class="tag" { "not served" } }
            }
            " "
        }
    }
}

/// A text to be copied.
pub(super) fn copy_box(label: &str, text: &str) -> Markup {
    html! {
        div class="copy" {
            pre tabindex="0" aria-label=(label) { code { (text) } }
            button type="button" class="button small" data-copy hidden aria-label={"Copy " (label)} { "copy" }
        }
    }
}

/// What stands where there is nothing.
pub(super) fn empty_state(heading: &str, text: &Markup) -> Markup {
    html! {
        div class="empty" {
            span class="emblem" { (icon::box_glyph()) }
            h2 { (heading) }
            p { (text) }
        }
    }
}

/// Links to the pages before and after this one.
pub(super) fn pager(before: Option<&str>, told: &str, after: Option<&str>) -> Markup {
    html! {
        @if before.is_some() || after.is_some() {
            nav class="pager" aria-label="Pages" {
                @if let Some(address) = before { a class="button" rel="prev" href=(address) { "Previous" } }
                span { (told) }
                @if let Some(address) = after { a class="button" rel="next" href=(address) { "Next" } }
            }
        }
    }
}
