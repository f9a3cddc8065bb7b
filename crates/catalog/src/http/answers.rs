//! From addresses to questions, and from answers to JSON.

use super::query::Query;
use super::routes::Captured;
use super::{Answer, PREFIX, Problem, openapi};
use crate::answer::{Page, VersionDetail};
use crate::grammar::KindReference;
use crate::index::{Index, PAGE_LENGTH_MAX, Question, Rights};
use crate::sample::sample_object;
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;

/// How long a page is unless asked for another length.
const PAGE_LENGTH: usize = 100;
/// The longest text to look for.
const WORDS_SIZE_MAX: usize = 512;
/// The parameters that are facets of packages.
const FACETS: [&str; 4] = ["category", "keyword", "license", "capability"];

/// Who asks, what, and how much of it.
pub(super) struct Call {
    pub(super) index: Arc<Index>,
    pub(super) path: String,
    pub(super) captured: Captured,
    pub(super) query: Query,
    pub(super) rights: Rights,
}

impl Call {
    /// What stands in the path where a name is in braces.
    pub(super) fn part(&self, name: &str) -> &str {
        let found = self.captured.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    pub(super) fn document(_: &Self) -> Result<Answer, Problem> {
        write_json(&openapi::describe_routes())
    }

    pub(super) fn search(&self) -> Result<Answer, Problem> {
        let words = self.words()?;
        if words.trim().is_empty() {
            return Err(Problem::invalid("nothing to look for", "say what with ?q="));
        }
        write_json(&self.index.search(words, &self.rights)?)
    }

    pub(super) fn kinds(&self) -> Result<Answer, Problem> {
        let page = self.index.kinds(&self.question()?, &self.rights)?;
        self.page(&page)
    }

    pub(super) fn kind(&self) -> Result<Answer, Problem> {
        let kind = read_kind(self.part("crd"))?;
        if let Some(found) = self.index.kind(&kind, &self.rights)? {
            return write_json(&found);
        }
        let definers = self.index.definers(&kind, None, &self.rights)?;
        let problem = Problem::unknown(format!("no package defines {}", kind.bare()));
        Err(problem.suggesting(definers.suggestions))
    }

    pub(super) fn definers(&self) -> Result<Answer, Problem> {
        let mut kind = read_kind(self.part("crd"))?;
        if let Some(version) = self.query.get("version") {
            kind = read_kind(&format!("{}/{version}", kind.bare()))?;
        }
        let found = self.index.definers(&kind, self.query.get("cursor"), &self.rights)?;
        let next = found.next.as_deref().map(|cursor| self.next(cursor));
        Ok(Answer { next, ..write_json(&found)? })
    }

    pub(super) fn schema(&self) -> Result<Answer, Problem> {
        Ok(Answer::json(self.find_schema()?))
    }

    fn find_schema(&self) -> Result<Vec<u8>, Problem> {
        let (name, version) = (self.part("crd"), self.part("version"));
        let (kind, repository) = (read_kind(name)?, self.query.get("package"));
        let found = self.index.schema(&kind, version, repository, &self.rights)?;
        found.ok_or_else(|| Problem::unknown(format!("there is no schema of {name}/{version}")))
    }

    pub(super) fn sample(&self) -> Result<Answer, Problem> {
        let schema = serde_json::from_slice(&self.find_schema()?).map_err(|_| Problem::failed())?;
        let kind = read_kind(self.part("crd"))?;
        let unknown = || Problem::unknown(format!("no package defines {}", kind.bare()));
        let found = self.index.kind(&kind, &self.rights)?.ok_or_else(unknown)?.definition;
        let version = self.part("version");
        let mut sample = sample_object(&schema, &found.group, version, &found.kind);
        if found.scope == "Namespaced" {
            sample["metadata"]["namespace"] = json!("default");
        }
        write_json(&sample)
    }

    pub(super) fn raw(&self) -> Result<Answer, Problem> {
        let (name, version) = (self.part("crd"), self.part("version"));
        let kind = read_kind(&format!("{name}/{version}"))?;
        let found = self.index.document(&kind, self.query.get("package"), &self.rights)?;
        let unknown = || Problem::unknown(format!("no package defines {kind}"));
        write_json(&found.ok_or_else(unknown)?)
    }

    pub(super) fn groups(&self) -> Result<Answer, Problem> {
        let page = self.index.groups(&self.question()?, &self.rights)?;
        self.page(&page)
    }

    pub(super) fn group(&self) -> Result<Answer, Problem> {
        let group = self.part("group");
        let unknown = || Problem::unknown(format!("no package brings kinds of {group}"));
        write_json(&self.index.group(group, &self.rights)?.ok_or_else(unknown)?)
    }

    pub(super) fn packages(&self) -> Result<Answer, Problem> {
        let page = self.index.packages(&self.question()?, &self.rights)?;
        self.page(&page)
    }

    pub(super) fn facets(&self) -> Result<Answer, Problem> {
        write_json(&json!({"facets": self.index.facets(&self.question()?, &self.rights)?}))
    }

    pub(super) fn no_package(&self) -> Problem {
        Problem::unknown(format!("there is no package {}", self.part("repository")))
    }

    pub(super) fn package(&self) -> Result<Answer, Problem> {
        let found = self.index.package(self.part("repository"), &self.rights)?;
        write_json(&found.ok_or_else(|| self.no_package())?)
    }

    pub(super) fn versions(&self) -> Result<Answer, Problem> {
        let versions = self.index.versions(self.part("repository"), &self.rights)?;
        let versions = versions.ok_or_else(|| self.no_package())?;
        self.cut(versions, |version| version.digest.clone())
    }

    pub(super) fn version(&self) -> Result<Answer, Problem> {
        write_json(&self.find_version()?)
    }

    pub(super) fn definitions(&self) -> Result<Answer, Problem> {
        let digest = self.find_version()?.summary.digest;
        let all = self.index.definitions(self.part("repository"), &digest, &self.rights)?;
        let all = all.ok_or_else(|| self.no_package())?;
        self.cut(all, |definition| definition.name.clone())
    }

    pub(super) fn dependencies(&self) -> Result<Answer, Problem> {
        let version = self.find_version()?;
        write_json(&json!({"items": version.summary.package.dependencies, "next": null}))
    }

    pub(super) fn dependents(&self) -> Result<Answer, Problem> {
        let all = self.index.dependents(self.part("repository"), &self.rights)?;
        let all = all.ok_or_else(|| self.no_package())?;
        self.cut(all, |it| format!("{}@{}", it.repository, it.digest))
    }

    fn find_version(&self) -> Result<VersionDetail, Problem> {
        let (repository, reference) = (self.part("repository"), self.part("reference"));
        let found = self.index.version(repository, reference, &self.rights)?;
        found.ok_or_else(|| Problem::unknown(format!("there is no {repository} {reference}")))
    }

    fn words(&self) -> Result<&str, Problem> {
        let words = self.query.get("q").unwrap_or_default();
        if words.len() > WORDS_SIZE_MAX {
            let hint = format!("look for at most {WORDS_SIZE_MAX} bytes");
            return Err(Problem::invalid("that is too much to look for", hint));
        }
        Ok(words)
    }

    fn question(&self) -> Result<Question, Problem> {
        let owned = |key| self.query.get(key).map(str::to_owned);
        let facet = |name: &str| Some((name.to_owned(), self.query.get(name)?.to_owned()));
        Ok(Question {
            words: self.words()?.to_owned(),
            group: owned("group"),
            kind: owned("type"),
            facets: FACETS.into_iter().filter_map(facet).collect(),
            requires: owned("requires"),
            cursor: owned("cursor"),
            limit: self.limit()?,
        })
    }

    fn limit(&self) -> Result<usize, Problem> {
        self.number("limit", PAGE_LENGTH, PAGE_LENGTH_MAX)
    }

    /// A number in the query, or the usual one.
    pub(super) fn number(&self, name: &str, usual: usize, most: usize) -> Result<usize, Problem> {
        let Some(text) = self.query.get(name) else { return Ok(usual) };
        let number = text.parse().ok().filter(|it| (1..=most).contains(it));
        number.ok_or_else(|| {
            let hint = format!("give a number from 1 to {most}");
            Problem::invalid(format!("{name}={text} is out of bounds"), hint)
        })
    }

    fn next(&self, cursor: &str) -> String {
        self.query.at(&format!("{PREFIX}{}", self.path), cursor)
    }

    fn page<T: Serialize>(&self, page: &Page<T>) -> Result<Answer, Problem> {
        let next = page.next.as_deref().map(|cursor| self.next(cursor));
        Ok(Answer { next, ..write_json(page)? })
    }

    /// A page of a whole list; its cursor is the key of the last item.
    fn cut<T: Serialize>(
        &self,
        mut items: Vec<T>,
        key: impl Fn(&T) -> String,
    ) -> Result<Answer, Problem> {
        if let Some(cursor) = self.query.get("cursor") {
            let at = items.iter().position(|item| key(item) == cursor);
            let moved =
                || Problem::invalid("the list has changed meanwhile", "begin without cursor");
            items.drain(..=at.ok_or_else(moved)?);
        }
        let limit = self.limit()?;
        let last = limit.checked_sub(1).and_then(|last| items.get(last));
        let next = last.filter(|_| items.len() > limit).map(key);
        items.truncate(limit);
        self.page(&Page { items, next })
    }
}

pub(super) fn read_kind(text: &str) -> Result<KindReference, Problem> {
    KindReference::parse(text).map_err(|error| {
        let hint = "write it as buckets.s3.example.org, or with a version behind a slash";
        Problem::invalid(error.to_string(), hint)
    })
}

pub(super) fn write_json<T: Serialize>(value: &T) -> Result<Answer, Problem> {
    let body = serde_json::to_vec(value).map_err(|_| Problem::failed())?;
    Ok(Answer::json(body))
}
