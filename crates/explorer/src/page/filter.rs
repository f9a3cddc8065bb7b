//! What narrows a list of packages, and the links that do.

use crate::link::with_query;
use crate::words::{group_digits, shorten};
use catalog::Question;
use catalog::answer::Facet;
use catalog::http::Query;
use maud::{Markup, html};

/// Values of one facet that are offered.
const OFFERED_MAX: usize = 12;
/// Characters of a value that are shown.
const VALUE_LENGTH_MAX: usize = 60;

/// What packages have to have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PackageFilter {
    /// Name of the facet and value, in this order: type, category, group, keyword.
    wanted: Vec<(&'static str, String)>,
}

/// Facets that can be chosen, with the words for all of its values.
const FACETS: [(&str, &str); 4] = [
    ("type", "All types"),
    ("category", "All categories"),
    ("group", "All groups"),
    ("keyword", "All keywords"),
];

impl PackageFilter {
    /// What an address asks for.
    pub(crate) fn parse(query: &Query) -> Self {
        let wanted =
            FACETS.iter().filter_map(|(name, _)| Some((*name, query.get(name)?.to_owned())));
        Self { wanted: wanted.collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// The value that is asked for.
    pub(crate) fn value(&self, facet: &str) -> Option<&str> {
        self.wanted.iter().find(|(name, _)| *name == facet).map(|(_, value)| value.as_str())
    }

    /// The question about packages that have all of it.
    pub(crate) fn question(&self, words: &str, limit: usize) -> Question {
        let owned = |facet| self.value(facet).map(str::to_owned);
        let facet = |name: &str| Some((name.to_owned(), self.value(name)?.to_owned()));
        Question {
            words: words.to_owned(),
            group: owned("group"),
            kind: owned("type"),
            facets: ["category", "keyword"].into_iter().filter_map(facet).collect(),
            limit,
            ..Question::default()
        }
    }

    /// The address of a list that is narrowed so; what else is asked there comes first.
    pub(crate) fn address(&self, path: &str, others: &[(&str, &str)]) -> String {
        let wanted = self.wanted.iter().map(|(name, value)| (*name, value.as_str()));
        let pairs: Vec<(&str, &str)> = others.iter().copied().chain(wanted).collect();
        with_query(path, &pairs)
    }

    /// The same with another value of a facet, or with any.
    fn with(&self, facet: &'static str, value: Option<&str>) -> Self {
        let others = self.wanted.iter().filter(|(name, _)| *name != facet).cloned();
        Self { wanted: others.chain(value.map(|value| (facet, value.to_owned()))).collect() }
    }

    /// Links that narrow a list, or widen it again.
    pub(crate) fn draw_facets(
        &self,
        facets: &[Facet],
        path: &str,
        others: &[(&str, &str)],
    ) -> Markup {
        let rows = FACETS.iter().filter_map(|(name, all)| {
            let values = facets.iter().find(|facet| facet.name == *name);
            let values = values.map(|facet| facet.values.as_slice()).unwrap_or_default();
            let chosen = self.value(name);
            (chosen.is_some() || !values.is_empty()).then_some((*name, *all, values, chosen))
        });
        let link = |to: Self, label: &str, count: Option<usize>, is_chosen: bool| {
            html! {
                li {
                    a class="facet" href=(to.address(path, others)) aria-current=[is_chosen.then_some("true")] {
                        (shorten(label, VALUE_LENGTH_MAX))
                        @if let Some(count) = count { " " small { (group_digits(count)) } }
                    }
                }
            }
        };
        html! {
            nav class="facets" aria-label="Filters" {
                @for (name, all, values, chosen) in rows {
                    ul aria-label=(name) {
                        (link(self.with(name, None), all, None, chosen.is_none()))
                        @for value in values.iter().take(OFFERED_MAX) {
                            @let is_chosen = chosen.is_some_and(|it| it.eq_ignore_ascii_case(&value.value));
                            (link(self.with(name, Some(value.value.as_str())), value.value.as_str(), Some(value.packages), is_chosen))
                        }
                        @if let Some(chosen) = chosen.filter(|it| !values.iter().take(OFFERED_MAX).any(|value| it.eq_ignore_ascii_case(&value.value))) {
                            (link(self.clone(), chosen, None, true))
                        }
                    }
                }
            }
        }
    }
}
