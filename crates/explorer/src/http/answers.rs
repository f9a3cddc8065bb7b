//! From addresses to questions, and from answers to pages.

use super::no_page;
use super::route::Route;
use crate::link;
use crate::page::api::api_page;
use crate::page::changes::{ChangesView, changes_page};
use crate::page::described::DescribedKind;
use crate::page::filter::PackageFilter;
use crate::page::home::{CARDS, home_page};
use crate::page::kind::{KindView, kind_page};
use crate::page::package::{PackagePart, PackageView, package_page};
use crate::page::search::{kinds_page, search_page, search_suggestions};
use crate::page::{PageSite, group};
use ::http::StatusCode;
use catalog::answer::{DependencyGraph, Found, KindSummary, VersionDetail, VersionSummary};
use catalog::http::{Problem, Query};
use catalog::sample::sample_object;
use catalog::{Dependency, Index, KindReference, Question, Rights, ShelfQuestion};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Kinds on one page.
const KINDS: usize = 100;
/// Packages that are shown of those that words and filters find.
const FOUND_MAX: usize = 100;
/// The last page that is counted to.
const PAGE_MAX: usize = 100_000;
/// Dependencies that are looked up.
const NEIGHBOURS_MAX: usize = 100;
/// How far dependencies are followed.
const GRAPH_DEPTH: usize = 8;

/// A page, for an asker with these rights.
pub(super) fn answer_route(
    index: &Index,
    rights: &Rights,
    site: &PageSite,
    route: Route,
) -> Result<String, Problem> {
    let desk = Desk { index, rights, site };
    match route {
        Route::Home(query) => desk.answer_home(&query),
        Route::Search { words, query } => desk.answer_search(&words, &query),
        Route::Suggest(words) => Ok(search_suggestions(&words, &desk.look_for(&words)?)),
        Route::Kinds(query) => desk.answer_kinds(&query),
        Route::Package { repository, reference, query } => {
            desk.answer_package(&repository, reference, &query)
        }
        Route::Kind { name, version, query } => desk.answer_kind(&name, version, &query),
        Route::Group { name, query } => desk.answer_group(&name, &query),
        Route::Changes { repository, query } => desk.answer_changes(&repository, &query),
        Route::Api => Ok(api_page(site, &catalog::http::describe_routes())),
        Route::Asset(_) | Route::SignIn | Route::Plane(_) => Err(no_page()),
    }
}

/// The catalog, asked for one asker.
struct Desk<'call> {
    index: &'call Index,
    rights: &'call Rights,
    site: &'call PageSite,
}

impl Desk<'_> {
    fn answer_home(&self, query: &Query) -> Result<String, Problem> {
        let filter = PackageFilter::parse(query);
        let owned = |facet| filter.value(facet).map(str::to_owned);
        let offset = (page_number(query) - 1) * CARDS;
        let question = ShelfQuestion {
            kind: owned("type"),
            category: owned("category"),
            group: owned("group"),
            keyword: owned("keyword"),
            offset,
            limit: CARDS,
        };
        let found = self.index.shelf(&question, self.rights)?;
        let facets = self.index.facets(&filter.question("", CARDS), self.rights)?;
        Ok(home_page(self.site, &found, &facets, &filter, offset))
    }

    /// What is found by words; filters are about packages, and leave nothing else.
    fn answer_search(&self, words: &str, query: &Query) -> Result<String, Problem> {
        let filter = PackageFilter::parse(query);
        if words.is_empty() {
            return Ok(search_page(self.site, words, &filter, &[], &nothing_found()));
        }
        let question = filter.question(words, FOUND_MAX);
        let found = if filter.is_empty() {
            self.look_for(words)?
        } else {
            let packages = self.index.packages(&question, self.rights)?.items;
            Found { packages, ..nothing_found() }
        };
        let facets = self.index.facets(&question, self.rights)?;
        Ok(search_page(self.site, words, &filter, &facets, &found))
    }

    fn look_for(&self, words: &str) -> Result<Found, Problem> {
        if words.is_empty() {
            return Ok(nothing_found());
        }
        Ok(self.index.search(words, self.rights)?)
    }

    fn answer_kinds(&self, query: &Query) -> Result<String, Problem> {
        let words = query.get("q").unwrap_or_default();
        let question = Question {
            words: words.to_owned(),
            group: query.get("group").map(str::to_owned),
            cursor: query.get("cursor").map(str::to_owned),
            limit: KINDS,
            ..Question::default()
        };
        let page = self.index.kinds(&question, self.rights)?;
        Ok(kinds_page(self.site, words, question.group.as_deref(), &page))
    }

    fn answer_group(&self, name: &str, query: &Query) -> Result<String, Problem> {
        let question = Question {
            group: Some(name.to_owned()),
            cursor: query.get("cursor").map(str::to_owned),
            limit: KINDS,
            ..Question::default()
        };
        let page = self.index.kinds(&question, self.rights)?;
        if page.items.is_empty() && question.cursor.is_none() {
            return Err(unknown(format!("no package defines kinds of the group {name}")));
        }
        Ok(group::group_page(self.site, name, &page))
    }

    fn answer_package(
        &self,
        repository: &str,
        reference: Option<String>,
        query: &Query,
    ) -> Result<String, Problem> {
        let part = PackagePart::parse(query.get("view")).ok_or_else(no_page)?;
        let missing = || unknown(format!("there is no package {repository}"));
        let versions = self.index.versions(repository, self.rights)?.ok_or_else(missing)?;
        let detail = self.find_version(repository, reference.as_deref())?;
        let detail = detail.ok_or_else(|| {
            let named = reference.as_deref().unwrap_or_default();
            unknown(format!("there is no {repository} {named}"))
        })?;
        let digest = &detail.summary.digest;
        let definitions = self.index.definitions(repository, digest, self.rights)?;
        let dependents = self.index.dependents(repository, self.rights)?;
        Ok(package_page(&PackageView {
            site: self.site,
            definitions: definitions.unwrap_or_default(),
            dependents: dependents.unwrap_or_default(),
            seals: self.index.seals(repository, digest, self.rights)?.unwrap_or_default(),
            graph: match part {
                PackagePart::Needs => self.find_graph(&detail)?,
                _ => None,
            },
            neighbours: self.find_neighbours(&detail.summary.package.dependencies)?,
            detail,
            reference,
            versions,
            part,
            filter: query.get("filter").unwrap_or_default().to_owned(),
            page: page_number(query),
        }))
    }

    fn find_graph(&self, detail: &VersionDetail) -> Result<Option<DependencyGraph>, Problem> {
        let (repository, digest) = (&detail.repository, &detail.summary.digest);
        Ok(self.index.graph(repository, digest, GRAPH_DEPTH, self.rights)?)
    }

    /// Two versions of a package: those that are said, else the newest and the one before.
    fn answer_changes(&self, repository: &str, query: &Query) -> Result<String, Problem> {
        let missing = || unknown(format!("there is no package {repository}"));
        let versions = self.index.versions(repository, self.rights)?.ok_or_else(missing)?;
        let find = |named: &str| {
            let is_it =
                |it: &&VersionSummary| it.digest == named || it.tags.iter().any(|tag| tag == named);
            let found = versions.iter().find(is_it);
            found.ok_or_else(|| unknown(format!("there is no {repository} {named}")))
        };
        let to = match query.get("to") {
            Some(named) => find(named)?,
            None => versions.first().ok_or_else(missing)?,
        };
        let after = versions.iter().skip_while(|it| it.digest != to.digest).nth(1);
        let from = query.get("from").map(find).transpose()?.or(after);
        let comparison = match from {
            Some(from) => self.index.compare(repository, &from.digest, &to.digest, self.rights)?,
            None => None,
        };
        let site = self.site;
        Ok(changes_page(&ChangesView {
            site,
            repository,
            versions: &versions,
            from,
            to,
            comparison,
        }))
    }

    /// The version that is meant: the newest, if none is said.
    fn find_version(
        &self,
        repository: &str,
        reference: Option<&str>,
    ) -> Result<Option<VersionDetail>, Problem> {
        if let Some(reference) = reference {
            return Ok(self.index.version(repository, reference, self.rights)?);
        }
        let newest = self.index.package(repository, self.rights)?.map(|it| it.newest.digest);
        let newest = if newest.is_some() {
            newest
        } else {
            let versions = self.index.versions(repository, self.rights)?.unwrap_or_default();
            versions.into_iter().next().map(|version| version.digest)
        };
        let Some(digest) = newest else { return Ok(None) };
        Ok(self.index.version(repository, &digest, self.rights)?)
    }

    /// Repositories and kinds of this registry that dependencies mean. Repositories go by their whole
    /// names, as a control plane keeps them, or by their paths.
    fn find_neighbours(&self, needs: &[Dependency]) -> Result<BTreeMap<String, String>, Problem> {
        let mut found = BTreeMap::new();
        for dependency in needs.iter().take(NEIGHBOURS_MAX) {
            let named = dependency.package.as_str();
            if let Some(kind) = dependency.needed_kind() {
                let known = self.index.kind(&kind, self.rights)?;
                found.extend(known.map(|it| (named.to_owned(), it.definition.name)));
                continue;
            }
            let path = named.split_once('/').map_or(named, |(_, path)| path);
            for repository in [named, path] {
                if self.index.package(repository, self.rights)?.is_some() {
                    found.insert(named.to_owned(), repository.to_owned());
                    break;
                }
            }
        }
        Ok(found)
    }

    fn answer_kind(
        &self,
        name: &str,
        version: Option<String>,
        query: &Query,
    ) -> Result<String, Problem> {
        let reference = KindReference::parse(name).map_err(|error| {
            let hint = "write it as buckets.s3.example.org";
            Problem::new(StatusCode::BAD_REQUEST, error.to_string(), hint)
        })?;
        let kind = self.index.kind(&reference, self.rights)?;
        let kind = kind.ok_or_else(|| unknown(format!("no package defines {name}")))?;
        let version = version.or_else(|| usual_version(&kind)).unwrap_or_default();
        if kind.definition.version(&version).is_none() {
            return Err(unknown(format!("{} has no version {version}", kind.definition.name)));
        }
        let package = query.get("package").unwrap_or_default();
        let asked = Some(package).filter(|it| !it.is_empty());
        let schema = self.index.schema(&reference, &version, asked, self.rights)?;
        let schema: Option<Json> = schema.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let exact = KindReference { version: Some(version.clone()), ..reference };
        let document = self.index.document(&exact, asked, self.rights)?;
        let definers = self.index.definers(&exact, None, self.rights)?;
        let sample = schema.as_ref().map(|schema| {
            let group = &kind.definition.group;
            yaml::write::to_string(&sample_object(schema, group, &version, &kind.definition.kind))
        });
        let owned = |key| query.get(key).unwrap_or_default().to_owned();
        Ok(kind_page(&KindView {
            site: self.site,
            kind,
            definers,
            version,
            schema,
            has_document: document.is_some(),
            described: document.as_ref().map(DescribedKind::read).unwrap_or_default(),
            sample,
            package: package.to_owned(),
            filter: owned("filter"),
            at: owned("at"),
            wanted: owned("field"),
        }))
    }
}

fn nothing_found() -> Found {
    let (packages, crds) = (Vec::new(), Vec::new());
    Found { packages, crds, fields: Vec::new(), suggestions: Vec::new() }
}

/// The version that is shown if none is said: what is stored, else what is served.
fn usual_version(kind: &KindSummary) -> Option<String> {
    let versions = &kind.definition.versions;
    let stored = versions.iter().find(|it| it.storage && it.served);
    let served = stored.or_else(|| versions.iter().find(|it| it.served));
    served.or_else(|| versions.first()).map(|version| version.name.clone())
}

fn page_number(query: &Query) -> usize {
    let said = query.get("page").and_then(|text| text.parse().ok());
    said.unwrap_or(1).clamp(1, PAGE_MAX)
}

fn unknown(what: String) -> Problem {
    let hint = "check the name, or sign in: what you may not read is not shown";
    Problem::new(StatusCode::NOT_FOUND, what, hint)
}

/// Pages about packages that this catalog has, by references to them.
pub(super) fn find_pages(index: &Index, references: &[String]) -> BTreeMap<String, String> {
    let rights = Rights::all();
    let page_of = |reference: &String| {
        let (repository, identifier) = split_reference(reference)?;
        let path = repository.split_once('/').map_or(repository, |(_, path)| path);
        let known = [repository, path].into_iter().find(|name| {
            index.version(name, identifier, &rights).is_ok_and(|found| found.is_some())
        })?;
        Some((reference.clone(), link::package_page(known, Some(identifier))))
    };
    references.iter().take(NEIGHBOURS_MAX).filter_map(page_of).collect()
}

/// A repository, and its tag or digest.
fn split_reference(reference: &str) -> Option<(&str, &str)> {
    let by_digest = reference.split_once('@');
    by_digest.or_else(|| reference.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')))
}
