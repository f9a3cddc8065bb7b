//! The catalog's HTTP API, as its own `OpenAPI` document describes it.

use super::PageSite;
use super::layout::{Frame, Section};
use super::parts::copy_box;
use maud::{Markup, html};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Where the document is served.
const DOCUMENT: &str = "/api/v1/openapi.json";
/// What all addresses begin with.
const PREFIX: &str = "/api/v1/";

/// An operation: its path and what the document says of it.
type Operation<'document> = (&'document str, &'document Json);

/// The page at `/api`.
pub(crate) fn api_page(site: &PageSite, document: &Json) -> String {
    let frame = Frame { site, title: "API", section: Section::Api, words: "" };
    let none = serde_json::Map::new();
    let paths = document["paths"].as_object().unwrap_or(&none);
    let operations = paths.iter().map(|(path, it)| (path.as_str(), &it["get"]));
    let mut groups = BTreeMap::<&str, Vec<Operation<'_>>>::new();
    for (path, operation) in operations {
        let below = path.strip_prefix(PREFIX).unwrap_or(path);
        let first = below.split('/').next().unwrap_or_default();
        let is_alone = !matches!(first, "crds" | "groups" | "packages");
        groups.entry(if is_alone { "catalog" } else { first }).or_default().push((path, operation));
    }
    frame.wrap_content(&html! {
        div class="page-head" {
            h1 { "API" }
            p class="lead" {
                "Everything on these pages as JSON: " (paths.len()) " addresses, read only, "
                "with the rights of the asker. "
                a href=(DOCUMENT) { "The OpenAPI document" } " says the same to programs."
            }
        }
        (copy_box("first question to the API", &format!("curl http://{}/api/v1/search?q=bucket", site.host)))
        nav class="facets spacer" aria-label="Parts of the API" {
            ul { @for name in groups.keys() { li { a class="facet" href={"#" (name)} { (heading_of(name)) } } } }
        }
        @for (name, operations) in &groups {
            section id=(name) {
                h2 { (heading_of(name)) }
                @for (path, operation) in operations { (draw_operation(path, operation)) }
            }
        }
    })
}

fn heading_of(group: &str) -> &'static str {
    match group {
        "crds" => "Kinds",
        "groups" => "API groups",
        "packages" => "Packages",
        _ => "The catalog",
    }
}

fn draw_operation(path: &str, operation: &Json) -> Markup {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let empty = Vec::new();
    let parameters = operation["parameters"].as_array().unwrap_or(&empty);
    let is_required = parameters.iter().any(|it| it["required"] == true);
    html! {
        div class="panel operation" {
            p class="mono" {
                span class="tag good" { "GET" } " "
                @if is_required { (path) } @else { a href=(path) { (path) } }
            }
            p class="about" { (text(&operation["summary"])) }
            @if !parameters.is_empty() {
                dl {
                    @for parameter in parameters {
                        dt class="mono" {
                            (text(&parameter["name"]))
                            @if parameter["required"] == true { " " span class="req" { "required" } }
                        }
                        dd {
                            (text(&parameter["description"]))
                            @if parameter["in"] == "path" { " " small { "in the path" } }
                        }
                    }
                }
            }
        }
    }
}
