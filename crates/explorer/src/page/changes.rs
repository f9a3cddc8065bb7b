//! What changed between two versions of a package, breaking changes first.

use super::PageSite;
use super::layout::{Frame, Section};
use super::parts::{copy_box, empty_state, version_label, version_name};
use crate::icon;
use crate::link;
use crate::words::{count_noun, group_digits, last_part, shorten};
use catalog::VersionComparison;
use catalog::answer::VersionSummary;
use catalog::http::encode;
use maud::{Markup, html};
use xpkg::compare::{Change, Severity};

/// Changes on one page.
const CHANGES_MAX: usize = 250;
/// Versions that are offered.
const OFFERED_MAX: usize = 100;
/// Characters of one change's sentence.
const SENTENCE_LENGTH_MAX: usize = 300;

/// Two versions of a package.
pub(crate) struct ChangesView<'page> {
    pub(crate) site: &'page PageSite,
    pub(crate) repository: &'page str,
    pub(crate) versions: &'page [VersionSummary],
    /// The older version, if there is one to compare with.
    pub(crate) from: Option<&'page VersionSummary>,
    pub(crate) to: &'page VersionSummary,
    /// What is different; nothing if that cannot be told.
    pub(crate) comparison: Option<VersionComparison>,
}

/// The page at `/diff/REPOSITORY`.
pub(crate) fn changes_page(view: &ChangesView<'_>) -> String {
    let name = last_part(view.repository);
    let title = format!("What changed · {name}");
    let frame = Frame { site: view.site, title: &title, section: Section::Packages, words: "" };
    frame.wrap_content(&html! {
        div class="page-head" {
            p class="crumbs mono" { a href=(link::package_page(view.repository, None)) { (view.repository) } }
            h1 { "What changed in " (name) }
        }
        @match view.from {
            Some(from) => {
                (view.draw_choice(from))
                @match &view.comparison {
                    Some(found) => (view.draw_comparison(from, found)),
                    None => (empty_state("They cannot be compared", &html! {
                        "One of both was not read as a package."
                    })),
                }
            }
            None => (empty_state("Nothing to compare with", &html! {
                "There is only one version. "
                a href=(link::package_page(view.repository, None)) { "Look at it" } "."
            })),
        }
    })
}

impl ChangesView<'_> {
    /// The versions that are compared; others are chosen without a script.
    fn draw_choice(&self, from: &VersionSummary) -> Markup {
        let action = format!("/diff/{}", encode(self.repository));
        let choice = |name: &str, label: &str, chosen: &VersionSummary| {
            html! {
                label {
                    span { (label) }
                    select name=(name) {
                        @if !self.versions.iter().take(OFFERED_MAX).any(|it| it.digest == chosen.digest) {
                            option value=(version_name(chosen)) selected { (version_label(chosen)) }
                        }
                        @for version in self.versions.iter().take(OFFERED_MAX) {
                            option value=(version_name(version)) selected[version.digest == chosen.digest] {
                                (version_label(version))
                            }
                        }
                    }
                }
            }
        };
        html! {
            form class="choice" action=(action) method="get" {
                (choice("from", "From", from))
                (choice("to", "to", self.to))
                button type="submit" class="button" { "Compare" }
            }
        }
    }

    fn draw_comparison(&self, from: &VersionSummary, found: &VersionComparison) -> Markup {
        let comparison = &found.comparison;
        let counts =
            [Severity::Breaking, Severity::Warning, Severity::Note].map(|it| comparison.count(it));
        let total: usize = counts.iter().sum();
        if total == 0 {
            return empty_state(
                "Nothing changed",
                &html! { "Kinds, dependencies and permissions are the same." },
            );
        }
        let shown = &comparison.changes[..comparison.changes.len().min(CHANGES_MAX)];
        let unseen = total - shown.len();
        html! {
            (draw_verdict(counts))
            @for (severity, heading) in [
                (Severity::Breaking, "Breaking"),
                (Severity::Warning, "To know before an upgrade"),
                (Severity::Note, "Everything else"),
            ] {
                (draw_severity(severity, heading, comparison.count(severity), shown))
            }
            @if unseen > 0 { p class="lead" { "And " (count_noun(unseen, "other change")) "." } }
            (self.draw_more(from))
        }
    }

    fn draw_more(&self, from: &VersionSummary) -> Markup {
        let place = self.site.place_of(self.repository);
        let reference = |version: &VersionSummary| match version.tags.first() {
            Some(tag) => format!("{place}:{tag}"),
            None => format!("{place}@{}", version.digest),
        };
        let command = format!("apron diff {} {}", reference(from), reference(self.to));
        let pairs = [("from", version_name(from)), ("to", version_name(self.to))];
        let path = format!("/api/v1/packages/{}/-/diff", encode(self.repository));
        html! {
            section {
                h2 { "The same in a pipeline" }
                (copy_box("command that compares them", &command))
                p class="lead small-lead" {
                    "Its exit code tells whether something breaks. Or "
                    a href=(link::with_query(&path, &pairs)) { "as JSON" } "."
                }
            }
        }
    }
}

fn draw_verdict([breaking, warnings, notes]: [usize; 3]) -> Markup {
    let class = if breaking > 0 { "note bad" } else { "note good" };
    html! {
        div class=(class) role="status" {
            @if breaking > 0 { (icon::warning_glyph()) } @else { (icon::check_glyph()) }
            p {
                @if breaking > 0 {
                    b { (count_noun(breaking, "change")) " may break what works today." }
                } @else { b { "Nothing breaks." } }
                @if warnings > 0 { " " (count_noun(warnings, "warning")) "." }
                @if notes > 0 { " " (count_noun(notes, "note")) "." }
            }
        }
    }
}

/// Changes of one severity, those of one object together.
fn draw_severity(severity: Severity, heading: &str, count: usize, shown: &[Change]) -> Markup {
    let of_it: Vec<&Change> = shown.iter().filter(|it| it.severity == severity).collect();
    let class = match severity {
        Severity::Breaking => "changes bad",
        Severity::Warning => "changes warn",
        Severity::Note => "changes",
    };
    let groups = of_it.chunk_by(|one, other| one.object == other.object);
    html! {
        @if !of_it.is_empty() {
            section {
                h2 { (heading) " " small { (group_digits(count)) } }
                @for group in groups {
                    div class={"panel " (class)} {
                        (draw_subject(group))
                        ul { @for change in group { (draw_change(change)) } }
                    }
                }
            }
        }
    }
}

/// The object that changes are about.
fn draw_subject(group: &[&Change]) -> Markup {
    let object = group.first().and_then(|change| change.object.as_ref());
    html! {
        h3 {
            @match object {
                Some(object) if object.is_definition() => {
                    a class="mono" href=(link::kind_page(&object.name, None)) { (object.name) }
                }
                Some(object) => { span class="mono" { (object.name) } " " span class="tag" { (object.kind) } }
                None => { "The package itself" }
            }
        }
    }
}

fn draw_change(change: &Change) -> Markup {
    html! {
        li {
            @if !change.version.is_empty() { span class="tag" { (change.version) } " " }
            @if !change.path.is_empty() { code class="strong" { (shorten(&change.path, SENTENCE_LENGTH_MAX)) } " " }
            (shorten(&change.message, SENTENCE_LENGTH_MAX))
        }
    }
}
