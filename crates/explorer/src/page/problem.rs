//! What could not be shown.

use super::PageSite;
use super::layout::{Frame, Section};
use crate::icon;
use catalog::http::Problem;
use http::StatusCode;
use maud::html;

/// A page about a problem.
pub(crate) fn problem_page(site: &PageSite, problem: &Problem) -> String {
    let status = problem.status();
    let title = match status {
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::UNAUTHORIZED => "Sign in",
        StatusCode::TOO_MANY_REQUESTS => "Too many requests",
        status if status.is_client_error() => "That cannot be answered",
        _ => "Something is wrong here",
    };
    let frame = Frame { site, title, section: Section::Elsewhere, words: "" };
    frame.wrap_content(&html! {
        div class="empty" {
            span class="emblem" { (icon::warning_glyph()) }
            h1 { (title) }
            p { (sentence(problem.detail())) }
            p class="hint" { (sentence(problem.hint())) }
            p { a class="button" href="/" { "All packages" } }
        }
    })
}

/// A text as a sentence of its own.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}
