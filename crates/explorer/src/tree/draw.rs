//! A tree of fields as nested lists.

use super::describe::{describe_rules, describe_type, describe_values};
use super::{Outline, SchemaField, TEXT_LENGTH_MAX};
use crate::link::with_query;
use crate::words::{count_noun, shorten};
use maud::{Markup, html};

/// The page a tree is on.
pub(crate) struct TreePlace<'page> {
    /// The page's address, without a query.
    pub(crate) address: &'page str,
    /// The package whose schema it is, if it is not the newest.
    pub(crate) package: &'page str,
    /// The field that is looked for.
    pub(crate) wanted: Option<&'page str>,
}

/// Fields, each with those below it as far as the outline has them.
pub(crate) fn draw_tree(
    roots: &[SchemaField<'_>],
    outline: &Outline,
    place: &TreePlace<'_>,
) -> Markup {
    html! {
        ul class="tree" {
            @for field in roots.iter().filter(|field| outline.shows(field)) {
                (draw_field(field, outline, place))
            }
        }
    }
}

impl Outline {
    fn shows(&self, field: &SchemaField<'_>) -> bool {
        self.kept.as_ref().is_none_or(|kept| kept.contains(&field.path))
    }
}

fn draw_field(field: &SchemaField<'_>, outline: &Outline, place: &TreePlace<'_>) -> Markup {
    let path = field.path.as_str();
    let below = field.list_fields();
    let is_unfolded = outline.unfolded.contains(path);
    let is_wanted = place.wanted == Some(path);
    html! {
        li id=(path) class=[is_wanted.then_some("wanted")] {
            a class="anchor" href={"#" (path)} aria-label={"link to " (path)} { "#" }
            @if is_unfolded {
                details open[outline.open.contains(path)] {
                    summary { (draw_row(field)) }
                    (draw_text(field))
                    ul {
                        @for field in below.iter().filter(|field| outline.shows(field)) {
                            (draw_field(field, outline, place))
                        }
                    }
                }
            } @else {
                div class="leaf" { (draw_row(field)) (draw_text(field)) }
                @if !below.is_empty() {
                    @let pairs = [("at", path), ("package", place.package)];
                    a class="unfold" href=(with_query(place.address, &pairs)) {
                        (count_noun(below.len(), "field")) " below " (field.name)
                    }
                }
            }
        }
    }
}

fn draw_row(field: &SchemaField<'_>) -> Markup {
    let values = describe_values(field.schema);
    html! {
        b { (field.name) }
        span class="ty" {
            (describe_type(field.schema))
            @for value in &values { " · " (value) }
        }
        @if field.is_required { span class="req" { "required" } }
    }
}

fn draw_text(field: &SchemaField<'_>) -> Markup {
    let text = field.schema["description"].as_str().unwrap_or_default().trim();
    html! {
        @if !text.is_empty() { p { (shorten(text, TEXT_LENGTH_MAX)) } }
        @for rule in describe_rules(field.schema) { p class="rule" { (rule) } }
    }
}
