//! All kinds of an API group.

use super::PageSite;
use super::layout::{Frame, Section};
use super::parts::{empty_state, kind_table, pager};
use crate::link;
use crate::words::count_noun;
use catalog::answer::{KindSummary, Page};
use maud::html;
use std::collections::BTreeSet;

/// The page at `/group/NAME`.
pub(crate) fn group_page(site: &PageSite, group: &str, page: &Page<KindSummary>) -> String {
    let title = format!("{group} · group");
    let frame = Frame { site, title: &title, section: Section::Kinds, words: "" };
    let packages: BTreeSet<&String> = page.items.iter().flat_map(|kind| &kind.packages).collect();
    let after = page
        .next
        .as_deref()
        .map(|cursor| link::with_query(&link::group_page(group), &[("cursor", cursor)]));
    frame.wrap_content(&html! {
        div class="page-head" {
            p class="crumbs" { a href="/kinds" { "Kinds" } " / group" }
            h1 class="name" { (group) }
            p class="lead" {
                (count_noun(page.items.len(), "kind")) " of "
                (count_noun(packages.len(), "package"))
                @if after.is_some() { " on this page" }
            }
        }
        @if page.items.is_empty() {
            (empty_state("Nothing here", &html! {
                "No package defines kinds of this group, or none that you may read. "
                a href="/kinds" { "Show all kinds" } "."
            }))
        } @else {
            (kind_table(&page.items, "Kinds of this group"))
            (pager(None, "", after.as_deref()))
        }
    })
}
