//! What is around every page.

use super::PageSite;
use crate::assets::{page_script, style_sheet, tab_mark};
use crate::icon;
use maud::{DOCTYPE, Markup, html};

/// Where in the explorer a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Packages,
    Kinds,
    Plane,
    Api,
    Elsewhere,
}

/// What is around a page's content.
pub(crate) struct Frame<'page> {
    pub(crate) site: &'page PageSite,
    pub(crate) title: &'page str,
    pub(crate) section: Section,
    /// What is being looked for.
    pub(crate) words: &'page str,
}

impl Frame<'_> {
    /// A whole page around some content.
    pub(crate) fn wrap_content(&self, content: &Markup) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                (self.draw_head())
                body {
                    a class="skip" href="#content" { "to the content" }
                    (self.draw_bar())
                    main id="content" tabindex="-1" { (content) }
                    (self.draw_foot())
                }
            }
        };
        page.into_string()
    }

    fn draw_head(&self) -> Markup {
        html! {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="robots" content="noindex";
                title { (self.title) " · apron" }
                link rel="stylesheet" href=(style_sheet().address());
                link rel="icon" type="image/svg+xml" href=(tab_mark().address());
                script src=(page_script().address()) {}
            }
        }
    }

    fn draw_bar(&self) -> Markup {
        let current = |section| (self.section == section).then_some("page");
        html! {
            header class="bar" {
                div {
                    a class="brand" href="/" aria-label="apron, the first page" { (icon::brand_mark()) span { "apron" } }
                    nav aria-label="Main" {
                        @if self.site.has_catalog {
                            a href="/" aria-current=[current(Section::Packages)] { "Packages" }
                            a href="/kinds" aria-current=[current(Section::Kinds)] { "Kinds" }
                        }
                        @if self.site.has_plane {
                            a href="/plane" aria-current=[current(Section::Plane)] { "Control plane" }
                        }
                        @if self.site.has_catalog {
                            a href="/api" aria-current=[current(Section::Api)] { "API" }
                        }
                    }
                    @if self.site.has_catalog { (self.draw_find()) } @else { span class="gap" {} }
                    button type="button" class="theme" id="theme" hidden aria-label="Light or dark" {
                        (icon::theme_glyph())
                    }
                }
            }
        }
    }

    fn draw_find(&self) -> Markup {
        html! {
            form class="find" action="/search" method="get" role="search" {
                label class="unseen" for="find" { "Search packages, kinds and fields" }
                (icon::search_glyph())
                input id="find" name="q" type="search" value=(self.words) maxlength="200"
                    placeholder="Search packages, kinds, fields" autocomplete="off" spellcheck="false";
                kbd aria-hidden="true" { "/" }
            }
        }
    }

    fn draw_foot(&self) -> Markup {
        html! {
            footer class="foot" {
                div {
                    span { "apron explorer" }
                    @if self.site.has_catalog { span { "You see what you may pull." } }
                    @else { span { "You see what the kubeconfig may read." } }
                    @if self.site.knows_users && !self.site.is_signed_in { a href="/sign-in" rel="nofollow" { "Sign in" } }
                }
            }
        }
    }
}
