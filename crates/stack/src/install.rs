//! `install.yaml`: what runs a package, one Deployment.

use super::document::with_article;
use super::findings::StackFindings;
use super::rules;
use serde_json::Value as Json;
use yaml::{Node, Value};

/// Reads the Deployment. Container images may be missing; what else a Deployment lacks is for the
/// API server to say when it is made.
pub(crate) fn read_deployment(
    file: &str,
    node: &Node<'_>,
    findings: &mut StackFindings,
) -> Option<Json> {
    let text = |key: &str| node.get(key).and_then(Node::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let mut refuse = |at: yaml::Position, message: String, hint: &str| {
        findings.advise_at(&rules::INSTALL_INVALID, (file, at), message, hint);
    };
    if (api_version, kind) != ("apps/v1", "Deployment") {
        let at = node.entry("kind").map_or(node.position, |entry| entry.position);
        let message = format!("{kind:?} in {api_version:?} cannot run a package");
        refuse(at, message, "write a Deployment of apps/v1; nothing else is run");
        return None;
    }
    let spec = node.at(&["spec", "template", "spec"]).filter(|spec| is_mapping(spec));
    let Some(spec) = spec else {
        let at = node.get("spec").map_or(node.position, |spec| spec.position);
        refuse(at, "the Deployment has no spec.template.spec".to_owned(), "add the pod's template");
        return None;
    };
    let containers = spec.get("containers").map(Node::items).unwrap_or_default();
    if containers.is_empty() {
        let message = "the Deployment has no containers".to_owned();
        refuse(spec.position, message, "add a container with a name");
        return None;
    }
    let extra = spec.get("initContainers").map(Node::items).unwrap_or_default();
    let mut is_sound = true;
    for container in containers.iter().chain(extra) {
        if container.get("name").and_then(Node::as_str).is_none_or(str::is_empty) {
            let message = "a container has no name".to_owned();
            refuse(container.position, message, "give it a name");
            is_sound = false;
        }
        let image = container.get("image").filter(|image| !image.is_null());
        if let Some(image) = image.filter(|image| image.as_str().is_none()) {
            let message =
                format!("image must be a string, not {}", with_article(image.type_name()));
            refuse(image.position, message, "write a reference, or leave image out");
            is_sound = false;
        }
    }
    is_sound.then(|| node.to_json())
}

fn is_mapping(node: &Node<'_>) -> bool {
    matches!(node.value, Value::Mapping(_))
}
