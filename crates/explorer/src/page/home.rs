//! Home: one search, all packages, and how many there are of what.

use super::PageSite;
use super::layout::{Frame, Section};
use super::parts::{empty_state, package_card, pager};
use crate::icon;
use crate::link::with_query;
use crate::words::{count_noun, group_digits};
use catalog::{Shelf, ShelfQuestion};
use maud::{Markup, html};

/// Packages on one page.
pub(crate) const CARDS: usize = 24;
/// Categories that are offered.
const CATEGORIES_MAX: usize = 12;

/// The page at `/`.
pub(crate) fn home_page(site: &PageSite, shelf: &Shelf, question: &ShelfQuestion) -> String {
    let frame = Frame { site, title: "Packages", section: Section::Packages, words: "" };
    let is_whole = question.kind.is_none() && question.category.is_none() && question.offset == 0;
    frame.wrap_content(&html! {
        div class=(if is_whole { "hero" } else { "hero low" }) {
            h1 { "Which package brings this kind?" }
            p { "Every package in this registry, and every kind it defines." }
            form action="/search" method="get" role="search" class="large-find" {
                label class="unseen" for="look" { "Look for a package or a kind" }
                (icon::search_glyph())
                input id="look" name="q" type="search" maxlength="200" autocomplete="off" spellcheck="false"
                    placeholder="bucket, provider-aws, buckets.s3.example.org …";
                button type="submit" class="button primary" { "Search" }
            }
            p class="counts" {
                span { b { (group_digits(shelf.package_count)) } " packages" }
                span { b { (group_digits(shelf.version_count)) } " versions" }
                span { b { (group_digits(shelf.kind_count)) } " kinds" }
            }
        }
        @if shelf.package_count == 0 {
            (nothing_yet(site))
        } @else {
            (draw_facets(shelf, question))
            (draw_shelf(shelf, question))
        }
    })
}

fn nothing_yet(site: &PageSite) -> Markup {
    empty_state(
        "No packages yet",
        &html! {
            "Push one with " code { "apron push " (site.host) "/team/package:v1.0.0" }
            ", or sign in to see those that are not for everybody."
        },
    )
}

fn address(kind: Option<&str>, category: Option<&str>, page: usize) -> String {
    let page = if page > 1 { page.to_string() } else { String::new() };
    let (kind, category) = (kind.unwrap_or_default(), category.unwrap_or_default());
    with_query("/", &[("type", kind), ("category", category), ("page", &page)])
}

fn draw_facets(shelf: &Shelf, question: &ShelfQuestion) -> Markup {
    let (kind, category) = (question.kind.as_deref(), question.category.as_deref());
    let facet = |address: String, label: &str, count: Option<usize>, is_chosen: bool| {
        html! {
            li {
                a class="facet" href=(address) aria-current=[is_chosen.then_some("true")] {
                    (label) @if let Some(count) = count { " " small { (group_digits(count)) } }
                }
            }
        }
    };
    html! {
        nav class="facets" aria-label="Filters" {
            ul {
                (facet(address(None, category, 1), "All types", None, kind.is_none()))
                @for (name, count) in &shelf.types {
                    @let is_chosen = kind.is_some_and(|kind| kind.eq_ignore_ascii_case(name));
                    (facet(address(Some(name), category, 1), name, Some(*count), is_chosen))
                }
            }
            @if !shelf.categories.is_empty() {
                ul {
                    (facet(address(kind, None, 1), "All categories", None, category.is_none()))
                    @for (name, count) in shelf.categories.iter().take(CATEGORIES_MAX) {
                        (facet(address(kind, Some(name), 1), name, Some(*count), category == Some(name)))
                    }
                }
            }
        }
    }
}

fn draw_shelf(shelf: &Shelf, question: &ShelfQuestion) -> Markup {
    let page = question.offset / CARDS + 1;
    let link = |page| address(question.kind.as_deref(), question.category.as_deref(), page);
    let before = (page > 1).then(|| link(page - 1));
    let after = (question.offset + CARDS < shelf.fitting).then(|| link(page + 1));
    let (first, last) = (question.offset + 1, question.offset + shelf.packages.len());
    let told = format!("{first}–{last} of {}", count_noun(shelf.fitting, "package"));
    html! {
        @if shelf.packages.is_empty() {
            (empty_state("Nothing fits", &html! {
                "No package is of this type and category. " a href="/" { "Show all packages" } "."
            }))
        } @else {
            h2 class="unseen" { "Packages" }
            ul class="grid" { @for package in &shelf.packages { (package_card(package)) } }
            (pager(before.as_deref(), &told, after.as_deref()))
        }
    }
}
