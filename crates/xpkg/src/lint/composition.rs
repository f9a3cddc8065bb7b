//! What a Composition must have, and what it refers to.
//!
//! Whether the references lead anywhere is asked of the whole package, in [`super::whole`].

use super::findings::Findings;
use super::report::{Composition, Facts, TypeReference};
use super::rules;
use yaml::Node;

/// Checks the fields everything else hangs on, and reads the composite type and the functions.
pub(super) fn check(node: &Node<'_>, findings: &mut Findings<'_>) -> Facts {
    check_fields(node, findings);
    let composite_type = node.at(&["spec", "compositeTypeRef"]).and_then(|reference| {
        let text = |key| reference.get(key).and_then(Node::as_str).map(str::to_owned);
        let (api_version, kind) = (text("apiVersion")?, text("kind")?);
        Some(TypeReference { api_version, kind, position: reference.position })
    });
    // Functions only run in a pipeline; in the older mode the list is ignored. An absent mode
    // has meant a pipeline since the older mode was removed.
    let mode = node.at(&["spec", "mode"]).and_then(Node::as_str).unwrap_or("Pipeline");
    let steps = node.at(&["spec", "pipeline"]).filter(|_| mode == "Pipeline");
    let functions = steps.map(Node::items).unwrap_or_default().iter().filter_map(|step| {
        let name = step.at(&["functionRef", "name"])?;
        Some((name.as_str()?.to_owned(), name.position))
    });
    Facts::Composition(Composition { composite_type, functions: functions.collect() })
}

fn check_fields(node: &Node<'_>, findings: &mut Findings<'_>) {
    let spec = node.entry("spec").map_or(node.position, |entry| entry.position);
    for key in ["apiVersion", "kind"] {
        let path = ["spec", "compositeTypeRef", key];
        if node.at(&path).is_none_or(Node::is_null) {
            let message = format!("composition has no {}", path.join("."));
            let hint = "name the composite type it is for: its apiVersion and kind";
            findings.advise(&rules::COMPOSITION_INVALID, spec, message, hint);
        }
    }
    let mode = node.at(&["spec", "mode"]);
    if let Some(text) = mode.and_then(Node::as_str)
        && !["Pipeline", "Resources"].contains(&text)
    {
        let at = mode.map_or(spec, |mode| mode.position);
        let message = format!("mode {text:?} does not exist");
        findings.advise(&rules::COMPOSITION_INVALID, at, message, "write Pipeline");
    }
}
