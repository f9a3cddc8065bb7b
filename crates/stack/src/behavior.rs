//! `behavior.yaml`: a package whose controller fills in templates.

use super::document::MappingFields;
use super::findings::StackFindings;
use super::rules;
use serde_json::Value as Json;
use yaml::Node;

const ENGINES: [&str; 2] = ["helm2", "kustomize"];

/// Reads what a templating controller is told.
pub(crate) fn read_behavior(
    file: &str,
    node: &Node<'_>,
    findings: &mut StackFindings,
) -> Option<Json> {
    let root = MappingFields { file, node, rule: &rules::BEHAVIOR_INVALID };
    root.report_unknown(&["crd", "engine", "source"], findings);
    let is_definition_named = check_definition(&root, findings);
    let is_engine_known = check_engine(&root, findings);
    let is_source_named = check_source(&root, findings);
    (is_definition_named && is_engine_known && is_source_named).then(|| node.to_json())
}

fn check_definition(root: &MappingFields<'_, '_>, findings: &mut StackFindings) -> bool {
    let Some(definition) = root.read_below("crd", findings) else {
        return refuse_field(
            root,
            "crd",
            "behavior names no crd",
            "add crd: {apiVersion, kind}",
            findings,
        );
    };
    definition.report_unknown(&["apiVersion", "kind"], findings);
    let is_there = |key| definition.node.get(key).and_then(Node::as_str).is_some();
    if is_there("apiVersion") && is_there("kind") {
        return true;
    }
    let message = "crd of the behavior has no apiVersion or no kind";
    refuse_field(root, "crd", message, "write both", findings)
}

fn check_engine(root: &MappingFields<'_, '_>, findings: &mut StackFindings) -> bool {
    let Some(engine) = root.read_below("engine", findings) else {
        let hint = "add engine: {type: helm2} or engine: {type: kustomize}";
        return refuse_field(root, "engine", "behavior names no engine", hint, findings);
    };
    engine.report_unknown(&["type", "controllerImage", "kustomize"], findings);
    engine.read_text("controllerImage", findings);
    let word = engine.read_text("type", findings).unwrap_or_default();
    if ENGINES.contains(&word.as_str()) {
        return true;
    }
    let message = format!("engine type {word:?} does not exist");
    let hint = format!("write one of {}", ENGINES.join(", "));
    refuse_field(&engine, "type", &message, &hint, findings)
}

fn check_source(root: &MappingFields<'_, '_>, findings: &mut StackFindings) -> bool {
    let hint =
        "add source: {path: /DIRECTORY} with the directory of the image that holds templates";
    let Some(source) = root.read_below("source", findings) else {
        return refuse_field(root, "source", "behavior has no source", hint, findings);
    };
    source.report_unknown(&["image", "path"], findings);
    source.read_text("image", findings);
    let path = source.read_text("path", findings).unwrap_or_default();
    // All of the image would be copied, the runtime's own files among it.
    if ["", "."].contains(&path.trim_end_matches('/')) || path.split('/').any(|part| part == "..") {
        let message = format!("source path {path:?} is not a directory of templates");
        return refuse_field(&source, "path", &message, hint, findings);
    }
    true
}

fn refuse_field(
    fields: &MappingFields<'_, '_>,
    key: &str,
    message: &str,
    hint: &str,
    findings: &mut StackFindings,
) -> bool {
    findings.advise_at(&rules::BEHAVIOR_INVALID, fields.place_of(key), message, hint);
    false
}
