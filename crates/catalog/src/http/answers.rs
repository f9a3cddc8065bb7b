//! From paths to questions, and from answers to JSON.

use super::query::{Query, decode};
use super::{Answer, PREFIX, Problem};
use crate::answer::{Page, VersionDetail};
use crate::grammar::KindReference;
use crate::index::{Index, PAGE_LENGTH_MAX, Question, Rights};
use serde::Serialize;
use serde_json::json;

/// How long a page is unless asked for another length.
const PAGE_LENGTH: usize = 100;
/// The longest text to look for.
const WORDS_SIZE_MAX: usize = 512;

/// Who asks, what, and how much of it.
pub(super) struct Call<'call> {
    pub(super) index: &'call Index,
    pub(super) path: &'call str,
    pub(super) query: &'call Query,
    pub(super) rights: &'call Rights,
}

pub(super) fn answer(
    index: &Index,
    path: &str,
    query: &Query,
    rights: &Rights,
) -> Result<Answer, Problem> {
    let parts: Vec<String> = path.split('/').filter(|it| !it.is_empty()).map(decode).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let call = Call { index, path, query, rights };
    match parts.as_slice() {
        ["search"] => call.search(),
        ["resolve"] => call.resolve(),
        ["crds"] => call.kinds(),
        ["crds", name] => call.kind(name),
        ["crds", name, "packages"] => call.definers(name),
        ["crds", name, "versions", version, "schema"] => call.schema(name, version),
        ["packages"] => call.packages(),
        ["packages", rest @ ..] => call.package(rest),
        _ => Err(Problem::path()),
    }
}

impl Call<'_> {
    fn search(&self) -> Result<Answer, Problem> {
        let words = self.words()?;
        if words.trim().is_empty() {
            return Err(Problem::invalid("nothing to look for", "say what with ?q="));
        }
        write_json(&self.index.search(words, self.rights)?)
    }

    fn kinds(&self) -> Result<Answer, Problem> {
        let page = self.index.kinds(&self.question()?, self.rights)?;
        self.page(&page)
    }

    fn kind(&self, name: &str) -> Result<Answer, Problem> {
        let kind = read_kind(name)?;
        if let Some(found) = self.index.kind(&kind, self.rights)? {
            return write_json(&found);
        }
        let definers = self.index.definers(&kind, None, self.rights)?;
        let problem = Problem::unknown(format!("no package defines {}", kind.bare()));
        Err(problem.suggesting(definers.suggestions))
    }

    fn definers(&self, name: &str) -> Result<Answer, Problem> {
        let mut kind = read_kind(name)?;
        if let Some(version) = self.query.get("version") {
            kind = read_kind(&format!("{}/{version}", kind.bare()))?;
        }
        let found = self.index.definers(&kind, self.query.get("cursor"), self.rights)?;
        let next = found.next.as_deref().map(|cursor| self.next(cursor));
        Ok(Answer { next, ..write_json(&found)? })
    }

    fn schema(&self, name: &str, version: &str) -> Result<Answer, Problem> {
        let (kind, repository) = (read_kind(name)?, self.query.get("package"));
        let found = self.index.schema(&kind, version, repository, self.rights)?;
        let missing = || Problem::unknown(format!("there is no schema of {name}/{version}"));
        Ok(Answer { body: found.ok_or_else(missing)?, next: None })
    }

    fn packages(&self) -> Result<Answer, Problem> {
        let page = self.index.packages(&self.question()?, self.rights)?;
        self.page(&page)
    }

    /// What belongs to a repository follows a `-`, which is no part of any name.
    fn package(&self, parts: &[&str]) -> Result<Answer, Problem> {
        let split = parts.iter().position(|part| *part == "-");
        let (name, rest) = parts.split_at(split.unwrap_or(parts.len()));
        let repository = name.join("/");
        let unknown = || Problem::unknown(format!("there is no package {repository}"));
        match rest.get(1..).unwrap_or_default() {
            [] if split.is_none() => {
                write_json(&self.index.package(&repository, self.rights)?.ok_or_else(unknown)?)
            }
            ["versions"] => {
                let versions = self.index.versions(&repository, self.rights)?;
                let versions = versions.ok_or_else(unknown)?;
                self.cut(versions, |version| version.digest.clone())
            }
            ["versions", reference] => write_json(&self.version(&repository, reference)?),
            ["versions", reference, "crds"] => {
                let version = self.version(&repository, reference)?;
                let digest = &version.summary.digest;
                let all = self.index.definitions(&repository, digest, self.rights)?;
                self.cut(all.ok_or_else(unknown)?, |definition| definition.name.clone())
            }
            ["versions", reference, "dependencies"] => {
                let version = self.version(&repository, reference)?;
                write_json(&json!({"items": version.summary.package.dependencies, "next": null}))
            }
            ["dependents"] => {
                let all = self.index.dependents(&repository, self.rights)?;
                self.cut(all.ok_or_else(unknown)?, |it| format!("{}@{}", it.repository, it.digest))
            }
            _ => Err(Problem::path()),
        }
    }

    fn version(&self, repository: &str, reference: &str) -> Result<VersionDetail, Problem> {
        let found = self.index.version(repository, reference, self.rights)?;
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
        Ok(Question {
            words: self.words()?.to_owned(),
            group: owned("group"),
            kind: owned("type"),
            cursor: owned("cursor"),
            limit: self.limit()?,
        })
    }

    fn limit(&self) -> Result<usize, Problem> {
        let Some(text) = self.query.get("limit") else { return Ok(PAGE_LENGTH) };
        let limit = text.parse().ok().filter(|it| (1..=PAGE_LENGTH_MAX).contains(it));
        limit.ok_or_else(|| {
            let hint = format!("give a number from 1 to {PAGE_LENGTH_MAX}");
            Problem::invalid(format!("limit={text} is no length of a page"), hint)
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
        let next = (items.len() > limit).then(|| key(&items[limit - 1]));
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
    Ok(Answer { body, next: None })
}
