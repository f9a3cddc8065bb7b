//! What changed since another version, breaking changes first.

use super::{PackagePart, PackageView};
use crate::link;
use crate::page::parts::{copy_box, empty_state};
use crate::words::{count_noun, short_digest};
use catalog::answer::VersionSummary;
use maud::{Markup, html};
use xpkg::compare::{Change, Comparison, Severity};

/// Changes on one page.
const CHANGES_MAX: usize = 250;
/// Versions that are offered to compare with.
const OFFERED_MAX: usize = 100;

/// A comparison with another version.
pub(crate) struct Changes {
    /// The other version.
    pub(crate) from: VersionSummary,
    /// What is different; nothing if that cannot be told.
    pub(crate) comparison: Option<Comparison>,
    /// Kinds that differ and were not compared, for there are too many.
    pub(crate) left_out: usize,
}

/// What a version is called.
pub(super) fn version_label(version: &VersionSummary) -> String {
    version.tags.first().cloned().unwrap_or_else(|| short_digest(&version.digest))
}

impl PackageView<'_> {
    pub(super) fn draw_changes(&self) -> Markup {
        let Some(changes) = &self.changes else {
            return empty_state("Nothing to compare with", &html! { "There is no older version." });
        };
        html! {
            (self.draw_choice(&changes.from))
            @match &changes.comparison {
                Some(comparison) => (self.draw_comparison(changes, comparison)),
                None => (empty_state("They cannot be compared", &html! {
                    "One of both cannot be read as a package."
                })),
            }
        }
    }

    /// Which versions are compared; another is chosen without a script.
    fn draw_choice(&self, from: &VersionSummary) -> Markup {
        let summary = &self.detail.summary;
        let action = format!("/diff/{}", link::package_page(&self.detail.repository, None).trim_start_matches("/p/"));
        let choice = |name: &str, label: &str, chosen: &VersionSummary| {
            html! {
                label {
                    span { (label) }
                    select name=(name) {
                        @for version in self.versions.iter().take(OFFERED_MAX) {
                            @let named = version.tags.first().unwrap_or(&version.digest);
                            option value=(named) selected[version.digest == chosen.digest] { (version_label(version)) }
                        }
                    }
                }
            }
        };
        html! {
            form class="choice" action=(action) method="get" {
                (choice("from", "From", from))
                (choice("to", "to", summary))
                button type="submit" class="button" { "Compare" }
            }
        }
    }

    fn draw_comparison(&self, changes: &Changes, comparison: &Comparison) -> Markup {
        let counts = [Severity::Breaking, Severity::Warning, Severity::Note].map(|it| comparison.count(it));
        let total: usize = counts.iter().sum();
        if total == 0 && changes.left_out == 0 {
            return empty_state("Nothing changed", &html! {
                "Kinds, dependencies and permissions are the same."
            });
        }
        let place = self.site.place_of(&self.detail.repository);
        let reference = |version: &VersionSummary| match version.tags.first() {
            Some(tag) => format!("{place}:{tag}"),
            None => format!("{place}@{}", version.digest),
        };
        let command =
            format!("apron diff {} {}", reference(&changes.from), reference(&self.detail.summary));
        html! {
            p class="meta verdict" role="status" {
                @if counts[0] > 0 { span class="tag bad" { (counts[0]) " breaking" } }
                @else { span class="tag good" { "nothing breaks" } }
                @if counts[1] > 0 { span class="tag warn" { (count_noun(counts[1], "warning")) } }
                @if counts[2] > 0 { span class="tag" { (count_noun(counts[2], "note")) } }
            }
            ul class="changes" {
                @for change in comparison.changes.iter().take(CHANGES_MAX) { (draw_change(change)) }
            }
            @let unseen = total.saturating_sub(comparison.changes.len().min(CHANGES_MAX));
            @if unseen > 0 || changes.left_out > 0 {
                p class="lead" {
                    @if unseen > 0 { "And " (count_noun(unseen, "other change")) ". " }
                    @if changes.left_out > 0 {
                        (count_noun(changes.left_out, "kind")) " more differ and are not compared on this page. "
                    }
                    "This tells all:"
                }
            }
            (copy_box("command that compares them", &command))
        }
    }

    /// The part that tells of changes, as an address.
    pub(super) fn changes_address(&self) -> String {
        self.address(PackagePart::Changes)
    }
}

fn draw_change(change: &Change) -> Markup {
    let (class, word) = match change.severity {
        Severity::Breaking => ("bad", "breaking"),
        Severity::Warning => ("warn", "warning"),
        Severity::Note => ("", "note"),
    };
    html! {
        li class={"change " (class)} {
            span class={"tag " (class)} { (word) }
            p {
                @if let Some(object) = &change.object {
                    a class="mono" href=(link::kind_page(&object.name, None)) { (object.name) } " "
                }
                @if !change.version.is_empty() { span class="mono" { (change.version) } " " }
                @if !change.path.is_empty() { b class="mono" { (change.path) } " " }
                (change.message)
            }
        }
    }
}
