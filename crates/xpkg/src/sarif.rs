//! Findings as SARIF 2.1.0, which code hosts show beside the lines they are about.

use crate::diagnostic::{Diagnostic, Severity};
use crate::lint::Rule;
use serde_json::{Value, json};

/// A SARIF log of one run.
pub fn to_sarif<'r>(findings: &[Diagnostic], rules: impl IntoIterator<Item = &'r Rule>) -> Value {
    let rules: Vec<Value> = rules
        .into_iter()
        .map(|rule| {
            json!({
                "id": rule.name,
                "shortDescription": {"text": rule.description},
                "defaultConfiguration": {"level": level(rule.severity)},
            })
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "apron",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "results": findings.iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

fn result(finding: &Diagnostic) -> Value {
    let text = match &finding.hint {
        Some(hint) => format!("{} ({hint})", finding.message),
        None => finding.message.clone(),
    };
    let mut location = json!({"artifactLocation": {"uri": finding.file}});
    if finding.line > 0 {
        location["region"] = json!({"startLine": finding.line, "startColumn": finding.column});
    }
    json!({
        "ruleId": finding.rule,
        "level": level(finding.severity),
        "message": {"text": text},
        "locations": [{"physicalLocation": location}],
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}
