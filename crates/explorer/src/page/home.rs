//! Home: one search, all packages, and how many there are of what.

use super::PageSite;
use super::filter::PackageFilter;
use super::layout::{Frame, Section};
use super::parts::{empty_state, package_card, pager};
use crate::icon;
use crate::words::{count_noun, group_digits};
use catalog::Shelf;
use catalog::answer::{Facet, FacetValue};
use maud::{Markup, html};

/// Packages on one page.
pub(crate) const CARDS: usize = 24;

/// The page at `/`.
pub(crate) fn home_page(
    site: &PageSite,
    shelf: &Shelf,
    facets: &[Facet],
    filter: &PackageFilter,
    offset: usize,
) -> String {
    let frame = Frame { site, title: "Packages", section: Section::Packages, words: "" };
    let is_whole = filter.is_empty() && offset == 0;
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
            (filter.draw_facets(&with_all_values(shelf, facets), "/", &[]))
            (draw_shelf(shelf, filter, offset))
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

/// Types and categories with what choosing another one of them would give.
fn with_all_values(shelf: &Shelf, facets: &[Facet]) -> Vec<Facet> {
    let facet = |name: &str, values: &[(String, usize)]| {
        let value = |(value, packages): &(String, usize)| FacetValue {
            value: value.clone(),
            packages: *packages,
        };
        Facet { name: name.to_owned(), values: values.iter().map(value).collect() }
    };
    let whole = [facet("type", &shelf.types), facet("category", &shelf.categories)];
    whole.into_iter().chain(facets.iter().cloned()).collect()
}

fn draw_shelf(shelf: &Shelf, filter: &PackageFilter, offset: usize) -> Markup {
    let page = offset / CARDS + 1;
    let link = |page: usize| {
        let page = if page > 1 { page.to_string() } else { String::new() };
        filter.address("/", &[("page", &page)])
    };
    let before = (page > 1).then(|| link(page - 1));
    let after = (offset + CARDS < shelf.fitting).then(|| link(page + 1));
    let (first, last) = (offset + 1, offset + shelf.packages.len());
    let told = format!("{first}–{last} of {}", count_noun(shelf.fitting, "package"));
    html! {
        @if shelf.packages.is_empty() {
            (empty_state("Nothing fits", &html! {
                "No package has all of this. " a href="/" { "Show all packages" } "."
            }))
        } @else {
            h2 class="unseen" { "Packages" }
            ul class="grid" { @for package in &shelf.packages { (package_card(package)) } }
            (pager(before.as_deref(), &told, after.as_deref()))
        }
    }
}
