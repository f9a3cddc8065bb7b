//! What a package asks for beyond the rights on its own kinds.

use super::PackageView;
use crate::page::parts::{copy_box, empty_state};
use crate::words::last_part;
use catalog::Permission;
use maud::{Markup, html};

/// Rules that are shown.
const RULES_MAX: usize = 200;

impl PackageView<'_> {
    pub(super) fn draw_permissions(&self) -> Markup {
        let asked = &self.detail.summary.package.permissions;
        if asked.is_empty() {
            return empty_state(
                "Asks for nothing more",
                &html! {
                    "It gets rights on the kinds it brings, and on nothing else."
                },
            );
        }
        let name = last_part(&self.detail.repository);
        html! {
            section {
                h2 { "Asks for" }
                p class="lead" {
                    "These rights go beyond the kinds it brings. They are refused until an administrator allows them:"
                }
                (copy_box("command that allows them", &format!("apron permissions allow {name}")))
            }
            div class="panel scroll" tabindex="0" role="region" aria-label="Rights it asks for" {
                table {
                    thead { tr { th scope="col" { "May" } th scope="col" { "What" } th scope="col" { "Of" } } }
                    tbody { @for rule in asked.iter().take(RULES_MAX) { (draw_rule(rule)) } }
                }
            }
        }
    }
}

fn draw_rule(rule: &Permission) -> Markup {
    let is_wide = |list: &[String]| list.iter().any(|it| it == "*");
    let groups: Vec<&str> =
        rule.api_groups.iter().map(|it| if it.is_empty() { "core" } else { it }).collect();
    let what: Vec<&str> =
        rule.resources.iter().chain(&rule.non_resource_urls).map(String::as_str).collect();
    html! {
        tr {
            td {
                (rule.verbs.join(", "))
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
