//! All versions of a package.

use super::{PackagePart, PackageView};
use crate::link::{self, with_query};
use crate::page::parts::{pager, state_tag, version_label, version_name};
use crate::words::{byte_size, group_digits, short_digest};
use maud::{Markup, html};

/// Versions on one page.
const VERSIONS: usize = 100;

impl PackageView<'_> {
    pub(super) fn draw_versions(&self) -> Markup {
        let repository = &self.detail.repository;
        let first = (self.page - 1).saturating_mul(VERSIONS);
        let base = link::package_page(repository, self.reference.as_deref());
        let address = |page: usize| {
            let page = if page > 1 { page.to_string() } else { String::new() };
            with_query(&base, &[("view", PackagePart::Versions.name()), ("page", &page)])
        };
        let before = (self.page > 1).then(|| address(self.page - 1));
        let after = (first + VERSIONS < self.versions.len()).then(|| address(self.page + 1));
        html! {
            div class="panel scroll" tabindex="0" role="region" aria-label="Versions" {
                table {
                    thead {
                        tr {
                            th scope="col" { "Version" }
                            th scope="col" { "Digest" }
                            th scope="col" { "Kinds" }
                            th scope="col" { "Size" }
                            th scope="col" { "Made" }
                            th scope="col" { "What changed" }
                        }
                    }
                    tbody {
                        @for (at, version) in self.versions.iter().enumerate().skip(first).take(VERSIONS) {
                            tr {
                                td {
                                    @if version.tags.is_empty() {
                                        a class="mono" href=(link::package_page(repository, Some(&version.digest))) { "untagged" }
                                    }
                                    @for (at, tag) in version.tags.iter().enumerate() {
                                        @if at > 0 { " " }
                                        a class="mono" href=(link::package_page(repository, Some(tag))) { (tag) }
                                    }
                                    " " (state_tag(version))
                                }
                                td class="mono" title=(version.digest) { (short_digest(&version.digest)) }
                                td { (group_digits(version.kinds)) }
                                td { @if version.package.size > 0 { (byte_size(version.package.size)) } }
                                td { (version.package.created.as_deref().unwrap_or_default()) }
                                td {
                                    @if let Some(before) = self.versions.get(at + 1) {
                                        a href=(link::changes_page(repository, version_name(before), version_name(version))) {
                                            "since " (version_label(before))
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            (pager(before.as_deref(), &format!("page {}", self.page), after.as_deref()))
        }
    }
}
