//! What a Composition refers to.
//!
//! Whether the references lead anywhere is asked of the whole package, in [`super::whole`].

use super::report::{Composition, Facts, TypeReference};
use crate::yaml::Node;

/// Reads the composite type and the functions.
pub(super) fn check(node: &Node<'_>) -> Facts {
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
