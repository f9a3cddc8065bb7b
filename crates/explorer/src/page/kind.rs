//! A kind: which packages bring it, what its objects look like.

use super::PageSite;
use super::described::DescribedKind;
use super::layout::{Frame, Section};
use super::parts::{copy_box, empty_state, origin_tag, type_tag};
use crate::icon;
use crate::link::{self, with_query};
use crate::tree::{
    Outline, SchemaField, TreePlace, draw_tree, filter_fields, find_field, list_top_fields,
    outline_fields,
};
use crate::words::{count_noun, short_digest};
use catalog::answer::{Definer, Definers, DefiningVersion, KindSummary};
use maud::{Markup, html};
use serde_json::Value as Json;

/// Packages that are named beside a kind.
const NAMED_MAX: usize = 50;

/// Everything a page of a kind is made of.
pub(crate) struct KindView<'page> {
    pub(crate) site: &'page PageSite,
    pub(crate) kind: KindSummary,
    pub(crate) definers: Definers,
    /// The version that is shown.
    pub(crate) version: String,
    /// Its schema, if it has one.
    pub(crate) schema: Option<Json>,
    /// Whether the document that defines it is kept.
    pub(crate) has_document: bool,
    /// What its author wrote beside it, in the first format.
    pub(crate) described: DescribedKind,
    /// An object of it, as YAML.
    pub(crate) sample: Option<String>,
    /// The package whose schema is shown, if one was asked for.
    pub(crate) package: String,
    /// Only fields with this text in their names.
    pub(crate) filter: String,
    /// Only what is below this field.
    pub(crate) at: String,
    /// The field to lead to.
    pub(crate) wanted: String,
}

/// The page at `/crd/NAME`.
pub(crate) fn kind_page(view: &KindView<'_>) -> String {
    let definition = &view.kind.definition;
    let title = format!("{} · {}", definition.kind, definition.group);
    let frame = Frame { site: view.site, title: &title, section: Section::Kinds, words: "" };
    frame.wrap_content(&html! {
        (view.draw_head())
        div class="two" {
            section aria-label="Schema" { (view.draw_schema()) }
            aside aria-label="Packages and example" {
                (view.draw_definers())
                @if let Some(sample) = &view.sample {
                    section class="panel" {
                        h2 { "Example" }
                        div class="inner" { (copy_box("example object", sample)) }
                    }
                }
                (view.draw_facts())
                (view.described.draw_panel())
            }
        }
    })
}

impl KindView<'_> {
    fn address(&self) -> String {
        link::kind_page(&self.kind.definition.name, Some(&self.version))
    }

    fn draw_head(&self) -> Markup {
        let definition = &self.kind.definition;
        html! {
            div class="page-head" {
                p class="crumbs" {
                    a href="/kinds" { "Kinds" } " / "
                    a href=(link::group_page(&definition.group)) { (definition.group) }
                }
                h1 { (self.described.draw_icon()) (definition.kind) (origin_tag(definition.origin)) }
                p class="mono lead" { (definition.name) " / " (self.version) }
                (self.described.draw_lead())
            }
            nav class="tabs" aria-label="Versions of this kind" {
                @for version in &definition.versions {
                    @let is_this = version.name == self.version;
                    a href=(link::kind_page(&definition.name, Some(&version.name)))
                        aria-current=[is_this.then_some("page")] {
                        (version.name)
                        @if version.storage { " " small { "stored" } }
                        @if version.deprecated { " " small { "deprecated" } }
                        @if !version.served { " " small { "not served" } }
                    }
                }
            }
            @if self.definers.ambiguous {
                div class="note warn" {
                    (icon::warning_glyph())
                    p { b { "Several packages bring it." } " Install one of them, not all." }
                }
            }
            @if !self.kind.installs {
                div class="note" {
                    (icon::box_glyph())
                    p { b { "It is the input of a function." } " Installing the function does not make it a kind of the cluster." }
                }
            }
        }
    }

    fn draw_schema(&self) -> Markup {
        let Some(schema) = &self.schema else {
            return empty_state(
                "No schema",
                &html! { "This version does not say what its objects look like." },
            );
        };
        let field = (!self.at.is_empty()).then(|| find_field(schema, &self.at)).flatten();
        let roots = match &field {
            Some(field) => field.list_fields(),
            None => list_top_fields(schema),
        };
        let is_filtered = !self.filter.trim().is_empty();
        let wanted = (!self.wanted.is_empty()).then_some(self.wanted.as_str());
        let outline = if is_filtered {
            filter_fields(&roots, &self.filter)
        } else {
            outline_fields(&roots, wanted)
        };
        html! {
            h2 class="unseen" { "Fields" }
            (self.draw_filter())
            @if let Some(field) = &field { (self.draw_trail(field)) }
            @if is_filtered { (self.draw_count(&outline)) }
            div class="panel fields" {
                @if roots.is_empty() || (is_filtered && outline.found == 0) {
                    p class="faint" { @if is_filtered { "No field has this in its name." } @else { "No fields." } }
                } @else {
                    @let address = self.address();
                    @let place = TreePlace { address: &address, package: &self.package, wanted };
                    (draw_tree(&roots, &outline, &place))
                }
            }
        }
    }

    fn draw_filter(&self) -> Markup {
        html! {
            form class="filter" action=(self.address()) method="get" {
                @if !self.package.is_empty() { input type="hidden" name="package" value=(self.package); }
                @if !self.at.is_empty() { input type="hidden" name="at" value=(self.at); }
                label class="unseen" for="filter" { "Filter fields" }
                (icon::search_glyph())
                input id="filter" name="filter" type="search" value=(self.filter) maxlength="200"
                    placeholder="Filter fields: region, forProvider.region" autocomplete="off" spellcheck="false";
                button type="submit" class="button" { "Filter" }
            }
        }
    }

    fn draw_count(&self, outline: &Outline) -> Markup {
        let pairs = [("package", self.package.as_str()), ("at", self.at.as_str())];
        html! {
            p class="lead" role="status" {
                @if outline.is_cut { "The first " }
                (count_noun(outline.found, "field")) " with “" (self.filter) "”. "
                a href=(with_query(&self.address(), &pairs)) { "Show all" }
            }
        }
    }

    /// The way from the top to the field whose fields are shown.
    fn draw_trail(&self, field: &SchemaField<'_>) -> Markup {
        let address = self.address();
        let ends = field.path.match_indices('.').map(|(at, _)| at).chain([field.path.len()]);
        let steps: Vec<&str> = ends.map(|end| field.path[..end].trim_end_matches("[]")).collect();
        html! {
            nav class="crumbs" aria-label="Path" {
                a href=(with_query(&address, &[("package", &self.package)])) { (self.kind.definition.kind) }
                @for (at, step) in steps.iter().enumerate() {
                    " / "
                    @let name = step.rsplit('.').next().unwrap_or(step);
                    @if at + 1 == steps.len() || name == "*" {
                        span class="mono" { (name) }
                    } @else {
                        a class="mono" href=(with_query(&address, &[("at", step), ("package", &self.package)])) { (name) }
                    }
                }
            }
        }
    }

    fn draw_definers(&self) -> Markup {
        html! {
            section class="panel" {
                h2 { "Brought by" }
                ul class="definers" {
                    @for definer in self.definers.packages.iter().take(NAMED_MAX) {
                        li {
                            a class="strong" href=(link::package_page(&definer.repository, None)) { (definer.repository) }
                            p class="meta" { (type_tag(&definer.kind)) span class="mono" { (span_of(definer)) } }
                            @if definer.versions.first().is_some_and(|it| it.needs_activation) {
                                p class="meta" { span class="tag warn" { "to be activated once installed" } }
                            }
                        }
                    }
                }
                @if self.definers.packages.is_empty() {
                    p class="inner faint" { "No package has this version." }
                }
            }
        }
    }

    fn draw_facts(&self) -> Markup {
        let definition = &self.kind.definition;
        let place = format!("/api/v1/crds/{}/versions/{}", definition.name, self.version);
        let pairs = [("package", self.package.as_str())];
        html! {
            section class="panel" {
                h2 { "Facts" }
                dl {
                    dt { "scope" } dd { (definition.scope) }
                    dt { "plural" } dd class="mono" { (definition.plural) }
                    dt { "singular" } dd class="mono" { (definition.singular) }
                    @if !definition.short_names.is_empty() {
                        dt { "short" } dd class="mono" { (definition.short_names.join(", ")) }
                    }
                    @if self.schema.is_some() || self.has_document {
                        dt { "raw" }
                        dd {
                            @if self.schema.is_some() {
                                a href=(with_query(&format!("{place}/schema"), &pairs)) { "schema" } " "
                            }
                            @if self.has_document {
                                a href=(with_query(&format!("{place}/raw"), &pairs)) { "definition" }
                            }
                            " as JSON"
                        }
                    }
                }
            }
        }
    }
}

/// From which version of a package to which it has the kind.
fn span_of(definer: &Definer) -> String {
    let label = |version: &DefiningVersion| {
        version.tags.first().cloned().unwrap_or_else(|| short_digest(&version.digest))
    };
    match definer.versions.as_slice() {
        [] => String::new(),
        [only] => label(only),
        [newest, .., oldest] => format!("{} – {}", label(oldest), label(newest)),
    }
}
