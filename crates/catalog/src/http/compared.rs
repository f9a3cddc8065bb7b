//! What changed between two versions of a package, and what a package needs.

use super::answers::{Call, write_json};
use super::{Answer, Problem};
use crate::answer::{DependencyGraph, VersionSummary};
use serde_json::{Value as Json, json};
use xpkg::compare::{Change, Severity};

/// How far dependencies are followed, unless asked otherwise.
const DEPTH: usize = 4;
/// How far they can be followed.
const DEPTH_MAX: usize = 16;
/// Changes in one answer.
const CHANGES_MAX: usize = 10_000;

impl Call {
    pub(super) fn diff(&self) -> Result<Answer, Problem> {
        self.compare_versions(|_| true)
    }

    pub(super) fn breaking(&self) -> Result<Answer, Problem> {
        self.compare_versions(|change| change.severity == Severity::Breaking)
    }

    fn compare_versions(&self, is_told: impl Fn(&&Change) -> bool) -> Result<Answer, Problem> {
        let version = |name: &str| {
            let hint = "say from=VERSION and to=VERSION";
            let missing = || Problem::invalid(format!("it is not said what {name} is"), hint);
            self.query.get(name).ok_or_else(missing)
        };
        let (repository, from, to) = (self.part("repository"), version("from")?, version("to")?);
        let found = self.index.compare(repository, from, to, &self.rights)?;
        let found = found.ok_or_else(|| {
            Problem::unknown(format!("there are no packages {repository} {from} and {to}"))
        })?;
        let count = |severity| found.comparison.count(severity);
        let told: Vec<&Change> =
            found.comparison.changes.iter().filter(is_told).take(CHANGES_MAX).collect();
        write_json(&json!({
            "repository": repository,
            "from": name_version(&found.from),
            "to": name_version(&found.to),
            "breaking": count(Severity::Breaking),
            "warnings": count(Severity::Warning),
            "notes": count(Severity::Note),
            "changes": told,
        }))
    }

    pub(super) fn graph(&self) -> Result<Answer, Problem> {
        let (repository, reference) = (self.part("repository"), self.part("reference"));
        let depth = self.number("depth", DEPTH, DEPTH_MAX)?;
        let found = self.index.graph(repository, reference, depth, &self.rights)?;
        let unknown = || Problem::unknown(format!("there is no {repository} {reference}"));
        let graph = found.ok_or_else(unknown)?;
        match self.query.get("format") {
            None | Some("json") => write_json(&graph),
            Some("dot") => Ok(Answer {
                media: "text/vnd.graphviz",
                ..Answer::json(draw_dot(&graph).into_bytes())
            }),
            Some(other) => {
                let detail = format!("format={other} is no form of a graph");
                Err(Problem::invalid(detail, "ask for json or dot"))
            }
        }
    }
}

fn name_version(version: &VersionSummary) -> Json {
    json!({"digest": version.digest, "tags": version.tags})
}

/// A graph as Graphviz reads it. Texts are JSON strings, which are strings there, too.
fn draw_dot(graph: &DependencyGraph) -> String {
    let quoted = |text: &str| Json::from(text).to_string();
    let node = |repository: &str, tag: Option<&String>| {
        let label = tag.map_or_else(|| repository.to_owned(), |tag| format!("{repository}:{tag}"));
        format!("  {} [label={}];\n", quoted(repository), quoted(&label))
    };
    let nodes = graph.nodes.iter().map(|it| node(&it.repository, it.tag.as_ref()));
    let edges = graph.edges.iter().map(|it| {
        let label = quoted(&it.constraint);
        format!("  {} -> {} [label={label}];\n", quoted(&it.from), quoted(&it.to))
    });
    format!("digraph {{\n{}}}\n", nodes.chain(edges).collect::<String>())
}
