//! The kinds that a package brings, page by page.

use super::{PackagePart, PackageView};
use crate::icon;
use crate::link::{self, with_query};
use crate::page::parts::{empty_state, kind_link, origin_tag, pager, version_tags};
use crate::words::count_noun;
use catalog::Definition;
use maud::{Markup, html};

/// Kinds on one page.
const KINDS: usize = 100;

impl PackageView<'_> {
    pub(super) fn draw_kinds(&self) -> Markup {
        let wanted = self.filter.trim().to_lowercase();
        let fits = |it: &&Definition| {
            it.name.contains(&wanted) || it.kind.to_lowercase().contains(&wanted)
        };
        let fitting: Vec<&Definition> = self.definitions.iter().filter(fits).collect();
        let first = (self.page - 1).saturating_mul(KINDS);
        let shown = fitting.iter().copied().skip(first).take(KINDS);
        let address = |page: usize| {
            let base = link::package_page(&self.detail.repository, self.reference.as_deref());
            let page = if page > 1 { page.to_string() } else { String::new() };
            let part = PackagePart::Kinds.name();
            with_query(&base, &[("view", part), ("filter", &self.filter), ("page", &page)])
        };
        let before = (self.page > 1).then(|| address(self.page - 1));
        let after = (first + KINDS < fitting.len()).then(|| address(self.page + 1));
        html! {
            @if self.definitions.is_empty() {
                (empty_state("No kinds", &html! { "This package brings no kinds of its own." }))
            } @else {
                (self.draw_filter())
                p class="lead" role="status" {
                    (count_noun(fitting.len(), "kind"))
                    @if !wanted.is_empty() { " of " (self.definitions.len()) " fit" }
                }
                @if first < fitting.len() { (kind_rows(shown)) }
                (pager(before.as_deref(), &format!("page {}", self.page), after.as_deref()))
            }
        }
    }

    fn draw_filter(&self) -> Markup {
        let action = link::package_page(&self.detail.repository, self.reference.as_deref());
        html! {
            form class="filter" action=(action) method="get" {
                input type="hidden" name="view" value="kinds";
                label class="unseen" for="filter" { "Filter kinds" }
                (icon::search_glyph())
                input id="filter" name="filter" type="search" value=(self.filter) maxlength="200"
                    placeholder="Filter kinds" autocomplete="off" spellcheck="false";
                button type="submit" class="button" { "Filter" }
            }
        }
    }
}

/// Kinds of this package as a table.
pub(super) fn kind_rows<'kind>(kinds: impl Iterator<Item = &'kind Definition>) -> Markup {
    html! {
        div class="panel scroll" tabindex="0" role="region" aria-label="Kinds of this package" {
            table {
                thead {
                    tr {
                        th scope="col" { "Kind" }
                        th scope="col" { "Group" }
                        th scope="col" { "Versions" }
                        th scope="col" { "Scope" }
                    }
                }
                tbody {
                    @for kind in kinds {
                        tr {
                            td { (kind_link(kind)) (origin_tag(kind.origin)) }
                            td class="mono" { a class="quiet" href=(link::group_page(&kind.group)) { (kind.group) } }
                            td { (version_tags(kind)) }
                            td { (kind.scope) }
                        }
                    }
                }
            }
        }
    }
}
