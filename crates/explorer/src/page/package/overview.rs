//! What stands first about a package: its text, what it brings, how to install it.

use super::kinds::kind_rows;
use super::{PackagePart, PackageView};
use crate::install::InstallWays;
use crate::markdown::{leads_elsewhere, render_markdown};
use crate::page::parts::{copy_box, empty_state};
use crate::words::{byte_size, count_noun, short_digest, shorten};
use catalog::answer::State;
use maud::{Markup, html};
use std::collections::BTreeMap;

/// Bytes of a README that stand on the overview; the rest is on a page of its own.
const README_SIZE_MAX: usize = 24 << 10;
/// Characters of an annotation, and of its name, that are shown.
const ANNOTATION_LENGTH_MAX: usize = 200;
/// Kinds on the overview.
const KINDS_MAX: usize = 8;

impl PackageView<'_> {
    pub(super) fn draw_overview(&self) -> Markup {
        html! {
            div class="two" {
                div {
                    @if !self.definitions.is_empty() {
                        section {
                            h2 { "Kinds" }
                            (kind_rows(self.definitions.iter().take(KINDS_MAX)))
                            @if self.definitions.len() > KINDS_MAX {
                                p { a href=(self.address(PackagePart::Kinds)) {
                                    "All " (count_noun(self.definitions.len(), "kind"))
                                } }
                            }
                        }
                    }
                    (self.draw_text(README_SIZE_MAX))
                    (self.draw_image())
                }
                aside aria-label="Install and facts" {
                    (self.draw_install())
                    (self.draw_facts())
                    (self.draw_seals())
                }
            }
        }
    }

    pub(super) fn draw_readme(&self) -> Markup {
        self.draw_text(usize::MAX)
    }

    fn draw_text(&self, limit: usize) -> Markup {
        let Some(readme) = self.detail.readme.as_deref() else {
            return html! {
                @if self.definitions.is_empty() && self.detail.summary.state == State::Read {
                    (empty_state("No README", &html! {
                        "Its author can add one with the annotation " code { "meta.crossplane.io/readme" } "."
                    }))
                }
            };
        };
        let (text, is_all) = render_markdown(readme, limit);
        html! {
            section {
                h2 { "README" }
                div class="panel prose" { (text) }
                @if !is_all { p { a href=(self.address(PackagePart::Readme)) { "The whole README" } } }
            }
        }
    }

    fn draw_install(&self) -> Markup {
        let summary = &self.detail.summary;
        if summary.state != State::Read {
            return html! {};
        }
        let place = self.site.place_of(&self.detail.repository);
        let tag = summary.tags.first().map(String::as_str);
        let ways = InstallWays::of(&summary.package, &place, tag, &summary.digest);
        let shown = [
            ("apron", ways.apron.as_deref()),
            ("kubectl", Some(ways.kubectl.as_str())),
            ("YAML", Some(ways.document.as_str())),
            ("by digest", Some(ways.pinned.as_str())),
        ];
        let shown = shown.iter().filter_map(|(label, text)| Some((*label, (*text)?)));
        html! {
            section class="panel" {
                h2 { "Install" }
                div class="ways" {
                    @for (at, (label, text)) in shown.enumerate() {
                        details name="install" open[at == 0] {
                            summary { (label) }
                            (copy_box(&format!("{label} command"), text))
                        }
                    }
                }
            }
        }
    }

    /// What is kept beside the package; apart from what its author says, and with what it is worth.
    fn draw_seals(&self) -> Markup {
        if self.detail.summary.state != State::Read {
            return html! {};
        }
        html! {
            section class="panel" {
                h2 { "Signatures" }
                @if self.seals.is_empty() {
                    p class="inner faint small-lead" { "None under the tags that cosign uses." }
                } @else {
                    dl {
                        @for seal in &self.seals {
                            dt { (seal.kind) }
                            dd class="mono" title=(seal.digest) { (short_digest(&seal.digest)) }
                        }
                    }
                    p class="inner faint small-lead" { "Present, not verified: a control plane verifies with the keys of its image configuration." }
                }
            }
        }
    }

    /// The image that the package is: its layers, and what its manifest says.
    fn draw_image(&self) -> Markup {
        let package = &self.detail.summary.package;
        let annotations = |all: &BTreeMap<String, String>| {
            html! {
                @for (key, value) in all {
                    div class="mono" { (shorten(key, ANNOTATION_LENGTH_MAX)) " = " (shorten(value, ANNOTATION_LENGTH_MAX)) }
                }
            }
        };
        if package.layers.is_empty() {
            return html! {};
        }
        html! {
            section {
                h2 { "Image " small { (count_noun(package.layers.len(), "layer")) } }
                div class="panel scroll" tabindex="0" role="region" aria-label="Layers of the image" {
                    table {
                        thead {
                            tr {
                                th scope="col" { "Layer" }
                                th scope="col" { "Size" }
                                th scope="col" { "Media type" }
                                th scope="col" { "Annotations" }
                            }
                        }
                        tbody {
                            @for layer in &package.layers {
                                tr {
                                    td class="mono" title=(layer.digest) { (short_digest(&layer.digest)) }
                                    td { (byte_size(layer.size)) }
                                    td class="mono" { (shorten(&layer.media_type, ANNOTATION_LENGTH_MAX)) }
                                    td { (annotations(&layer.annotations)) }
                                }
                            }
                        }
                    }
                }
                @if !package.annotations.is_empty() {
                    h3 { "Annotations of the manifest" }
                    div class="panel inner said" { (annotations(&package.annotations)) }
                }
            }
        }
    }

    fn draw_facts(&self) -> Markup {
        let summary = &self.detail.summary;
        let package = &summary.package;
        let text = |name: &str, value: Option<&str>| {
            html! { @if let Some(value) = value { dt { (name) } dd { (value) } } }
        };
        html! {
            section class="panel" {
                h2 { "Facts" }
                dl {
                    dt { "digest" }
                    dd class="mono" title=(summary.digest) { (short_digest(&summary.digest)) }
                    @if summary.tags.len() > 1 { dt { "tags" } dd class="mono" { (summary.tags.join(", ")) } }
                    (text("made", package.created.as_deref()))
                    (text("crossplane", package.crossplane.as_deref()))
                    @if let Some(source) = &package.source {
                        dt { "source" }
                        dd {
                            @if leads_elsewhere(source) {
                                a href=(source) rel="nofollow noopener noreferrer ugc" { (source) }
                            } @else { (source) }
                        }
                    }
                    (text("maintainer", package.maintainer.as_deref()))
                    (text("metadata", Some(&package.dialect).filter(|it| !it.is_empty()).map(String::as_str)))
                    @if !package.capabilities.is_empty() {
                        dt { "capabilities" } dd { (package.capabilities.join(", ")) }
                    }
                    @if !package.keywords.is_empty() {
                        dt { "keywords" } dd { (package.keywords.join(", ")) }
                    }
                }
            }
        }
    }
}
