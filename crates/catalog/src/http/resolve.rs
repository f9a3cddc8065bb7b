//! `resolve`: from a constraint on a kind to packages.

use super::answers::{Call, read_kind, write_json};
use super::{Answer, Problem};
use crate::answer::{Resolution, ResolutionVerdict};
use crate::resolve::ResolveTerms;
use http::StatusCode;
use serde_json::{Value as Json, json};
use xpkg::constraint::Constraint;

impl Call {
    /// The packages to install for a kind. What a person has to decide is a problem that names the
    /// candidates; with `lenient` it is an answer as any other, and its verdict tells.
    pub(super) fn resolve(&self) -> Result<Answer, Problem> {
        let Some(text) = self.query.get("crd") else {
            let hint = "say which with ?crd=buckets.s3.example.org/v1";
            return Err(Problem::invalid("no kind to resolve", hint));
        };
        let kind = read_kind(text)?;
        let found = self.index.resolve(&kind, &self.terms()?, &self.rights)?;
        if self.flag("lenient")? {
            return write_json(&found);
        }
        match problem_of(&found) {
            Some(problem) => Err(tell_resolution(problem, &found)),
            None => write_json(&found),
        }
    }

    fn terms(&self) -> Result<ResolveTerms, Problem> {
        let owned = |key| self.query.get(key).map(str::to_owned);
        let constraint = self.query.get("constraint").map(Constraint::parse).transpose();
        let constraint = constraint.map_err(|error| {
            Problem::invalid(error.to_string(), "write it as in dependencies: >=v1.0.0, ^1.2")
        })?;
        Ok(ResolveTerms {
            kind: owned("type"),
            repository: owned("package"),
            constraint,
            has_prereleases: self.flag("prerelease")?,
        })
    }

    /// Whether a parameter is `true`.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.query.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => {
                let detail = format!("{name}={other} says neither yes nor no");
                Err(Problem::invalid(detail, "write true or false"))
            }
        }
    }
}

fn problem_of(found: &Resolution) -> Option<Problem> {
    let crd = &found.crd;
    match found.verdict {
        ResolutionVerdict::Resolved => None,
        ResolutionVerdict::Undefined => {
            Some(Problem::unknown(format!("no package defines {crd}")).sorted("crd-undefined"))
        }
        ResolutionVerdict::Unserved => {
            let hint = "`rejected` says why of each version; release one that serves it";
            let detail = format!("no version that can be installed serves {crd}");
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Some(Problem::new(status, detail, hint).sorted("crd-unserved"))
        }
        ResolutionVerdict::Ambiguous => {
            let names: Vec<&str> =
                found.candidates.iter().map(|it| it.repository.as_str()).collect();
            let detail = format!("several packages bring {crd}: {}", names.join(", "));
            let hint = format!(
                "choose one with &package={}, or depend on the package itself",
                names.first().copied().unwrap_or_default()
            );
            Some(Problem::new(StatusCode::CONFLICT, detail, hint).sorted("crd-ambiguous"))
        }
    }
}

/// The problem with everything that is known.
fn tell_resolution(problem: Problem, found: &Resolution) -> Problem {
    let Json::Object(members) = json!(found) else { return problem };
    members.into_iter().fold(problem, |problem, (name, value)| problem.with(&name, value))
}
