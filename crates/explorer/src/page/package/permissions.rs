//! What a package asks for beyond the rights on its own kinds.

use super::PackageView;
use crate::icon;
use crate::link;
use crate::page::parts::{copy_box, empty_state, version_label, version_name};
use crate::words::{count_noun, last_part};
use catalog::Permission;
use catalog::answer::{State, VersionSummary};
use maud::{Markup, html};
use std::collections::BTreeSet;

/// Rules that are shown.
const RULES_MAX: usize = 200;

impl PackageView<'_> {
    pub(super) fn draw_permissions(&self) -> Markup {
        let now = &self.detail.summary;
        let asked = &now.package.permissions;
        let repository = &self.detail.repository;
        let changes = self.find_before().map(|before| RightsChanges::since(before, asked));
        html! {
            @if asked.is_empty() {
                (empty_state("Asks for nothing more", &html! {
                    "It gets rights on the kinds it brings, and on nothing else."
                }))
            } @else {
                section {
                    h2 { "Asks for" }
                    p class="lead" {
                        "These rights go beyond the kinds it brings. They are refused until an administrator allows them:"
                    }
                    @let command = format!("apron permissions allow {}", last_part(repository));
                    (copy_box("command that allows them", &command))
                    @if let Some(changes) = &changes { (changes.draw_verdict()) }
                }
                @let is_new = |rule: &Permission| changes.as_ref().is_some_and(|it| it.has_added(rule));
                (draw_rules(asked, "Rights it asks for", is_new))
            }
            @if let Some(changes) = &changes { (changes.draw_gone(repository, now)) }
        }
    }

    /// The version before this one that could be read.
    fn find_before(&self) -> Option<&VersionSummary> {
        let here = self.versions.iter().position(|it| it.digest == self.detail.summary.digest)?;
        self.versions.iter().skip(here + 1).find(|it| it.state == State::Read)
    }
}

/// What a version asks for that the one before did not, and the other way round.
struct RightsChanges<'page> {
    before: &'page VersionSummary,
    added: Vec<&'page Permission>,
    gone: Vec<&'page Permission>,
}

impl<'page> RightsChanges<'page> {
    fn since(before: &'page VersionSummary, asked: &'page [Permission]) -> Self {
        // As sets: a package may ask for as many rules as fit into its metadata.
        let rules_before: BTreeSet<&Permission> = before.package.permissions.iter().collect();
        let rules_now: BTreeSet<&Permission> = asked.iter().collect();
        Self {
            before,
            added: asked.iter().filter(|rule| !rules_before.contains(rule)).collect(),
            gone: rules_before.into_iter().filter(|rule| !rules_now.contains(rule)).collect(),
        }
    }

    fn has_added(&self, rule: &Permission) -> bool {
        self.added.contains(&rule)
    }

    fn draw_verdict(&self) -> Markup {
        let label = version_label(self.before);
        html! {
            div class=(if self.added.is_empty() { "note good" } else { "note warn" }) role="status" {
                @if self.added.is_empty() { (icon::check_glyph()) } @else { (icon::warning_glyph()) }
                p {
                    @if self.added.is_empty() { b { "Nothing more than " (label) "." } }
                    @else { b { (count_noun(self.added.len(), "rule")) " more than " (label) "." } }
                }
            }
        }
    }

    /// What is no longer asked for.
    fn draw_gone(&self, repository: &str, now: &VersionSummary) -> Markup {
        let address = link::changes_page(repository, version_name(self.before), version_name(now));
        html! {
            @if !self.gone.is_empty() {
                section {
                    h2 { "No longer asked for since " (version_label(self.before)) }
                    (draw_rules(self.gone.iter().copied(), "Rights it asked for before", |_| false))
                }
            }
            @if !(self.gone.is_empty() && self.added.is_empty()) {
                p { a href=(address) { "Everything that changed since " (version_label(self.before)) } }
            }
        }
    }
}

fn draw_rules<'rule>(
    rules: impl IntoIterator<Item = &'rule Permission>,
    label: &str,
    is_new: impl Fn(&Permission) -> bool,
) -> Markup {
    html! {
        div class="panel scroll" tabindex="0" role="region" aria-label=(label) {
            table {
                thead { tr { th scope="col" { "May" } th scope="col" { "What" } th scope="col" { "Of" } } }
                tbody { @for rule in rules.into_iter().take(RULES_MAX) { (draw_rule(rule, is_new(rule))) } }
            }
        }
    }
}

fn draw_rule(rule: &Permission, is_new: bool) -> Markup {
    let is_wide = |list: &[String]| list.iter().any(|it| it == "*");
    let groups: Vec<&str> =
        rule.api_groups.iter().map(|it| if it.is_empty() { "core" } else { it }).collect();
    let what: Vec<&str> =
        rule.resources.iter().chain(&rule.non_resource_urls).map(String::as_str).collect();
    html! {
        tr {
            td {
                (rule.verbs.join(", "))
                @if is_new { " " span class="tag warn" { "new" } }
                @if is_wide(&rule.verbs) { " " span class="tag bad" { "everything" } }
            }
            td class="mono" {
                (what.join(", "))
                @if !rule.resource_names.is_empty() { " named " (rule.resource_names.join(", ")) }
                @if is_wide(&rule.resources) { " " span class="tag bad" { "all kinds" } }
            }
            td class="mono" { (groups.join(", ")) }
        }
    }
}
