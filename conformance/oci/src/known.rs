//! Lists of known failures: a peer's shortcomings, each with its reason.

use crate::report::Report;
use std::collections::BTreeMap;

/// Check ids with the reason why each fails, read from a file: one `id reason` to a line, `#`
/// begins a comment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownFailures(BTreeMap<String, String>);

impl KnownFailures {
    /// Reads the list; the error names the line. Every line needs an id that exists and a reason.
    pub fn parse(text: &str) -> Result<Self, String> {
        let ids: Vec<&str> = crate::checks().iter().map(|check| check.id).collect();
        let mut known = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let at = number + 1;
            let (id, reason) = line
                .split_once(char::is_whitespace)
                .ok_or_else(|| format!("line {at}: '{line}' has no reason"))?;
            if !ids.contains(&id) {
                return Err(format!("line {at}: no check is called '{id}'"));
            }
            if known.insert(id.to_owned(), reason.trim().to_owned()).is_some() {
                return Err(format!("line {at}: '{id}' is listed twice"));
            }
        }
        Ok(Self(known))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is known to fail.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where the report and the list differ: a sentence for each unexpected failure and each
    /// unexpected pass. Checks that were not selected are not missed.
    pub fn surprises(&self, report: &Report) -> Vec<String> {
        let mut surprises = Vec::new();
        for finding in &report.findings {
            let id = finding.check.id;
            match (finding.passed(), self.0.get(id)) {
                (true, Some(reason)) => surprises
                    .push(format!("PASS {id}: it is listed as a known failure ({reason})\n")),
                (false, None) => surprises.push(crate::report::to_text(finding)),
                _ => {}
            }
        }
        surprises
    }
}

#[cfg(test)]
mod tests {
    use super::KnownFailures;
    use crate::check::Outcome;
    use crate::report::{Finding, Report};
    use std::time::Duration;

    #[test]
    fn a_list_must_be_exact() {
        let known = KnownFailures::parse("# why\n\nbase.get  it has no base\n").unwrap();
        assert_eq!((known.len(), known.is_empty()), (1, false));
        for wrong in ["base.get", "no.such.check reason", "base.get a\nbase.get b"] {
            assert!(KnownFailures::parse(wrong).is_err(), "{wrong}");
        }

        let check = *crate::checks().iter().find(|check| check.id == "base.get").unwrap();
        let report = |outcome| Report {
            base_url: String::new(),
            seed: 0,
            findings: vec![Finding { check, outcome, elapsed: Duration::ZERO }],
            not_applicable: Vec::new(),
        };
        let fail = Outcome::Fail {
            request: "GET /v2/".into(),
            expected: "status 200".into(),
            got: "HTTP/1.1 404".into(),
        };
        assert_eq!(known.surprises(&report(fail.clone())), Vec::<String>::new());
        assert!(known.surprises(&report(Outcome::Pass))[0].starts_with("PASS base.get"));
        let none = KnownFailures::default();
        assert!(none.surprises(&report(Outcome::Pass)).is_empty());
        let text = &none.surprises(&report(fail))[0];
        for part in ["FAIL base.get", "GET /v2/", "status 200", "HTTP/1.1 404"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
