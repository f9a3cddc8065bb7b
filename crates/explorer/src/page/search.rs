//! What is found by words, and all kinds by name.

use super::PageSite;
use super::filter::PackageFilter;
use super::layout::{Frame, Section};
use super::parts::{empty_state, kind_table, package_card, pager};
use crate::icon;
use crate::link::{self, with_query};
use crate::words::{count_noun, last_part, shorten};
use catalog::answer::{Facet, FieldMatch, Found, KindSummary, Page};
use maud::{Markup, html};

/// Results of each sort among suggestions.
const SUGGESTED_MAX: usize = 6;
/// Fields on a page.
const FIELDS_MAX: usize = 100;
/// Characters of what a field says about itself.
const FIELD_TEXT_MAX: usize = 160;

/// The page at `/search`.
pub(crate) fn search_page(
    site: &PageSite,
    words: &str,
    filter: &PackageFilter,
    facets: &[Facet],
    found: &Found,
) -> String {
    let title = if words.is_empty() { "Search".to_owned() } else { format!("{words} · search") };
    let frame = Frame { site, title: &title, section: Section::Elsewhere, words };
    let is_nothing = is_empty(found);
    frame.wrap_content(&html! {
        div class="page-head" {
            h1 { @if words.is_empty() { "Search" } @else { "Found for “" (words) "”" } }
            p class="lead" role="status" {
                @if words.is_empty() { "Say what to look for." }
                @else {
                    (count_noun(found.packages.len(), "package")) ", "
                    (count_noun(found.crds.len(), "kind")) " and "
                    (count_noun(found.fields.len(), "field"))
                }
            }
        }
        @if !facets.is_empty() || !filter.is_empty() {
            (filter.draw_facets(facets, "/search", &[("q", words)]))
        }
        @if is_nothing && !words.is_empty() {
            @if filter.is_empty() { (nothing_found(found)) } @else { (nothing_fits(words)) }
        }
        @if !found.packages.is_empty() {
            section {
                h2 { "Packages" }
                ul class="grid" { @for package in &found.packages { (package_card(package)) } }
            }
        }
        @if !found.crds.is_empty() {
            section { h2 { "Kinds" } (kind_table(&found.crds, "Kinds that were found")) }
        }
        @if !found.fields.is_empty() {
            section { h2 { "Fields" } (field_table(&found.fields)) }
        }
    })
}

fn is_empty(found: &Found) -> bool {
    found.packages.is_empty() && found.crds.is_empty() && found.fields.is_empty()
}

/// Fields, each with a link to its place in the schema.
fn field_table(fields: &[FieldMatch]) -> Markup {
    html! {
        div class="panel scroll" tabindex="0" role="region" aria-label="Fields that were found" {
            table {
                thead {
                    tr {
                        th scope="col" { "Field" }
                        th scope="col" { "Of" }
                        th scope="col" { "Type" }
                        th scope="col" { "What it is" }
                    }
                }
                tbody {
                    @for field in fields.iter().take(FIELDS_MAX) {
                        tr {
                            td class="mono" { a class="strong" href=(link::field_page(field)) { (field.path) } }
                            td { (field.kind) " " small class="mono" { (field.crd) } }
                            td class="mono" { (field.kind_of_value) }
                            td { (shorten(field.description.as_deref().unwrap_or_default(), FIELD_TEXT_MAX)) }
                        }
                    }
                }
            }
        }
    }
}

fn nothing_fits(words: &str) -> Markup {
    empty_state(
        "Nothing fits",
        &html! {
            "No package has these words and all of this. "
            a href=(link::search_page(words)) { "Show everything with these words" } "."
        },
    )
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
    let fields = found.fields.iter().take(SUGGESTED_MAX);
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
            @for field in fields {
                li {
                    a href=(link::field_page(field)) {
                        span class="tag" { "field" } b { (field.path) }
                        small class="mono" { (field.crd) }
                    }
                }
            }
            @if is_empty(found) { li class="none" { "Nothing is found." } }
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
