//! What a run found, for people and for programs.

use crate::check::{Check, Level, Outcome};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// The end of one check.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What was checked.
    pub check: Check,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub elapsed: Duration,
}

impl Finding {
    /// Whether the registry did what was demanded.
    pub fn passed(&self) -> bool {
        self.outcome == Outcome::Pass
    }
}

/// Everything that a run found.
#[derive(Debug, Clone)]
pub struct Report {
    /// The registry.
    pub base_url: String,
    /// With which the same names and bytes can be made again.
    pub seed: u64,
    /// In the order of the list of checks.
    pub findings: Vec<Finding>,
    /// Checks that this registry cannot be asked: those of authentication where no credentials
    /// were given, those of tokens where it asks for a password.
    pub not_applicable: Vec<Check>,
}

/// Counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Checks that passed.
    pub passed: usize,
    /// Checks that failed.
    pub failed: usize,
}

impl Report {
    /// Counts over all findings.
    pub fn summary(&self) -> Summary {
        count(self.findings.iter())
    }

    /// Counts for each endpoint.
    pub fn by_endpoint(&self) -> BTreeMap<&'static str, Summary> {
        let mut endpoints: BTreeMap<&'static str, Summary> = BTreeMap::new();
        for finding in &self.findings {
            add(endpoints.entry(finding.check.endpoint).or_default(), finding);
        }
        endpoints
    }

    /// The findings that failed.
    pub fn failures(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| !finding.passed())
    }

    /// The whole report as JSON.
    pub fn to_json(&self) -> Value {
        let total = self.summary();
        let endpoints = self.by_endpoint().into_iter().map(|(endpoint, summary)| {
            let counts = json!({"passed": summary.passed, "failed": summary.failed});
            (endpoint.to_owned(), counts)
        });
        json!({
            "target": self.base_url,
            "seed": self.seed,
            "summary": {"passed": total.passed, "failed": total.failed},
            "endpoints": Value::Object(endpoints.collect()),
            "notApplicable": self.not_applicable.iter().map(|check| check.id).collect::<Vec<_>>(),
            "checks": self.findings.iter().map(to_json).collect::<Vec<_>>(),
        })
    }

    /// The whole report as text: every failure in full, then the counts.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for finding in self.failures() {
            let _ = writeln!(text, "{}", to_text(finding));
        }
        for (endpoint, summary) in self.by_endpoint() {
            let Summary { passed, failed } = summary;
            let _ = writeln!(text, "{endpoint:<8} {passed:>4} passed {failed:>4} failed");
        }
        for level in [Level::Must, Level::Should, Level::Dev] {
            let of_level = self.findings.iter().filter(|finding| finding.check.level == level);
            let Summary { passed, failed } = count(of_level);
            let _ = writeln!(text, "{:<8} {passed:>4} passed {failed:>4} failed", level.name());
        }
        let Summary { passed, failed } = self.summary();
        let _ = writeln!(text, "{:<8} {passed:>4} passed {failed:>4} failed", "all");
        if !self.not_applicable.is_empty() {
            let _ = writeln!(
                text,
                "{} checks of authentication cannot be asked of this registry as it is",
                self.not_applicable.len()
            );
        }
        let _ = write!(text, "{} (seed {})", self.base_url, self.seed);
        text
    }
}

fn add(summary: &mut Summary, finding: &Finding) {
    if finding.passed() {
        summary.passed += 1;
    } else {
        summary.failed += 1;
    }
}

fn count<'f>(findings: impl Iterator<Item = &'f Finding>) -> Summary {
    findings.fold(Summary::default(), |mut summary, finding| {
        add(&mut summary, finding);
        summary
    })
}

fn to_json(finding: &Finding) -> Value {
    let Check { id, endpoint, level, spec } = finding.check;
    let mut value = json!({
        "id": id, "endpoint": endpoint, "level": level.name(), "spec": spec,
        "outcome": if finding.passed() { "pass" } else { "fail" },
        "milliseconds": u64::try_from(finding.elapsed.as_millis()).unwrap_or(u64::MAX),
    });
    if let Outcome::Fail { request, expected, got } = &finding.outcome {
        value["request"] = json!(request);
        value["expected"] = json!(expected);
        value["got"] = json!(got);
    }
    value
}

/// A failure in full; a pass in one line.
pub(crate) fn to_text(finding: &Finding) -> String {
    let Check { id, endpoint, level, spec } = finding.check;
    let Outcome::Fail { request, expected, got } = &finding.outcome else {
        return format!("pass {id}");
    };
    let level = level.name();
    let indent = |text: &str| text.replace('\n', "\n            ");
    format!(
        "FAIL {id} ({level}, {endpoint})\n  spec:     {spec}\n  request:  {}\n  expected: {}\n  got:      {}\n",
        indent(request),
        indent(expected),
        indent(got)
    )
}
