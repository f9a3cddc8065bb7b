//! What packages of the first format say of a kind for user interfaces: titles, texts, a picture, and
//! how a form for it should look. It stands in annotations of the definition.

use super::parts::copy_box;
use crate::icon;
use crate::words::shorten;
use maud::{Markup, html};
use serde_json::Value as Json;

/// What the annotations begin with.
const GROUP: &str = "packages.crossplane.io/";
/// Characters of a title that are shown.
const TITLE_LENGTH_MAX: usize = 120;
/// Characters of a text that are shown.
const TEXT_LENGTH_MAX: usize = 4000;
/// Characters of the hints for forms that are shown; the document has all of them.
const HINTS_LENGTH_MAX: usize = 16_000;

/// What is said of a kind; mostly nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DescribedKind {
    package_title: Option<String>,
    group_title: Option<String>,
    group_overview: Option<String>,
    title: Option<String>,
    title_plural: Option<String>,
    category: Option<String>,
    overview: Option<String>,
    icon: Option<String>,
    form_hints: Option<String>,
}

impl DescribedKind {
    /// Reads the annotations of a definition.
    pub(crate) fn read(document: &Json) -> Self {
        let annotations = &document["metadata"]["annotations"];
        let said = |name: &str| {
            let text = annotations[&format!("{GROUP}{name}")].as_str().map(str::trim);
            text.filter(|text| !text.is_empty())
        };
        let title = |name: &str| Some(shorten(said(name)?, TITLE_LENGTH_MAX));
        let text = |one: &str, other: &str| {
            Some(shorten(said(one).or_else(|| said(other))?, TEXT_LENGTH_MAX))
        };
        Self {
            package_title: title("package-title"),
            group_title: title("group-title"),
            group_overview: text("group-overview-short", "group-overview"),
            title: title("resource-title"),
            title_plural: title("resource-title-plural"),
            category: title("resource-category"),
            overview: text("resource-overview", "resource-overview-short"),
            icon: said("icon-data-uri").map(str::to_owned),
            form_hints: said("ui-schema").map(|hints| shorten(hints, HINTS_LENGTH_MAX)),
        }
    }

    /// The kind's picture, if it has one that is nothing but data.
    pub(crate) fn draw_icon(&self) -> Markup {
        let picture = self.icon.as_deref().and_then(icon::data_picture);
        html! { @if let Some(picture) = picture { (picture) " " } }
    }

    /// What the kind is called, and what it is.
    pub(crate) fn draw_lead(&self) -> Markup {
        html! {
            @if let Some(title) = &self.title { p class="lead" { b { (title) } } }
            @if let Some(text) = &self.overview { p class="lead said" { (text) } }
        }
    }

    /// Everything else.
    pub(crate) fn draw_panel(&self) -> Markup {
        let Self { package_title, group_title, title_plural, category, .. } = self;
        let facts = [
            ("package", package_title),
            ("group", group_title),
            ("plural", title_plural),
            ("category", category),
        ];
        let is_said = facts.iter().any(|(_, value)| value.is_some());
        html! {
            @if is_said || self.group_overview.is_some() || self.form_hints.is_some() {
                section class="panel" {
                    h2 { "As its author calls it" }
                    @if is_said {
                        dl {
                            @for (name, value) in facts {
                                @if let Some(value) = value { dt { (name) } dd { (value) } }
                            }
                        }
                    }
                    @if let Some(text) = &self.group_overview { p class="inner small-lead said" { (text) } }
                    @if let Some(hints) = &self.form_hints {
                        details class="inner" {
                            summary { "Hints for forms" }
                            (copy_box("hints for forms", hints))
                        }
                    }
                }
            }
        }
    }
}
