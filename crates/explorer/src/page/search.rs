//! What is found by words, and all kinds by name.

use super::PageSite;
use super::layout::{Frame, Section};
use super::parts::{empty_state, kind_table, package_card, pager};
use crate::icon;
use crate::link::{self, with_query};
use crate::words::{count_noun, last_part};
use catalog::answer::{Found, KindSummary, Page};
use maud::{Markup, html};

/// Results of each sort among suggestions.
const SUGGESTED_MAX: usize = 6;

/// The page at `/search`.
pub(crate) fn search_page(site: &PageSite, words: &str, found: &Found) -> String {
    let title = if words.is_empty() { "Search".to_owned() } else { format!("{words} · search") };
    let frame = Frame { site, title: &title, section: Section::Elsewhere, words };
    let is_nothing = found.packages.is_empty() && found.crds.is_empty();
    frame.wrap_content(&html! {
        div class="page-head" {
            h1 { @if words.is_empty() { "Search" } @else { "Found for “" (words) "”" } }
            p class="lead" role="status" {
                @if words.is_empty() { "Say what to look for." }
                @else {
                    (count_noun(found.packages.len(), "package")) " and "
                    (count_noun(found.crds.len(), "kind"))
                }
            }
        }
        @if is_nothing && !words.is_empty() { (nothing_found(found)) }
        @if !found.packages.is_empty() {
            section {
                h2 { "Packages" }
                ul class="grid" { @for package in &found.packages { (package_card(package)) } }
            }
        }
        @if !found.crds.is_empty() {
            section { h2 { "Kinds" } (kind_table(&found.crds, "Kinds that were found")) }
        }
    })
}

fn nothing_found(found: &Found) -> Markup {
    html! {
        (empty_state("Nothing is found", &html! {
            @if found.suggestions.is_empty() {
                "Try fewer words, or the beginning of one."
            } @else {
                "Did you mean "
                @for (at, name) in found.suggestions.iter().enumerate() {
                    @if at > 0 { ", " }
                    a href=(link::kind_page(name, None)) { (name) }
                }
                "?"
            }
        }))
    }
}

/// A few results, as they are shown while words are being typed.
pub(crate) fn search_suggestions(words: &str, found: &Found) -> String {
    let kinds = found.crds.iter().take(SUGGESTED_MAX);
    let packages = found.packages.iter().take(SUGGESTED_MAX);
    let is_nothing = found.packages.is_empty() && found.crds.is_empty();
    let list = html! {
        ul {
            @for kind in kinds {
                li {
                    a href=(link::kind_page(&kind.definition.name, None)) {
                        span class="tag" { "kind" } b { (kind.definition.kind) }
                        small class="mono" { (kind.definition.name) }
                    }
                }
            }
            @for package in packages {
                li {
                    a href=(link::package_page(&package.repository, None)) {
                        span class="tag" { "package" } b { (last_part(&package.repository)) }
                        small class="mono" { (package.repository) }
                    }
                }
            }
            @if is_nothing { li class="none" { "Nothing is found." } }
            @else {
                li { a class="all" href=(link::search_page(words)) { "Everything for “" (words) "”" } }
            }
        }
    };
    list.into_string()
}

/// The page at `/kinds`.
pub(crate) fn kinds_page(
    site: &PageSite,
    words: &str,
    group: Option<&str>,
    page: &Page<KindSummary>,
) -> String {
    let frame = Frame { site, title: "Kinds", section: Section::Kinds, words: "" };
    let group = group.unwrap_or_default();
    let after = page
        .next
        .as_deref()
        .map(|cursor| with_query("/kinds", &[("q", words), ("group", group), ("cursor", cursor)]));
    frame.wrap_content(&html! {
        div class="page-head" {
            h1 { "Kinds" }
            p class="lead" { "Everything that packages of this registry define." }
        }
        form class="filter" action="/kinds" method="get" {
            label class="unseen" for="filter" { "Filter kinds" }
            (icon::search_glyph())
            input id="filter" name="q" type="search" value=(words) maxlength="200"
                placeholder="Filter by words" autocomplete="off" spellcheck="false";
            button type="submit" class="button" { "Filter" }
        }
        @if page.items.is_empty() {
            (empty_state("No kinds", &html! {
                @if words.is_empty() { "No package defines any yet." }
                @else { "No kind has these words. " a href="/kinds" { "Show all kinds" } "." }
            }))
        } @else {
            (kind_table(&page.items, "Kinds"))
            (pager(None, &count_noun(page.items.len(), "kind"), after.as_deref()))
        }
    })
}
