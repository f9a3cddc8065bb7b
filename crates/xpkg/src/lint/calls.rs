//! What in an object makes the API server call the package's own runtime.

use super::kinds::ObjectKind;

use serde_json::Value as Json;
use yaml::Node;

/// How the API server is made to call the package's runtime.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Calls {
    /// It is not.
    #[default]
    None,
    /// To convert resources between versions.
    Conversion,
    /// To admit changes; these are the webhooks, as written.
    Webhooks(Vec<Json>),
}

/// How an object of this kind makes the API server call.
pub(super) fn find(object: ObjectKind, node: &Node<'_>) -> Calls {
    match object {
        ObjectKind::CustomResourceDefinition | ObjectKind::ManagedResourceDefinition => {
            let strategy = node.at(&["spec", "conversion", "strategy"]);
            match strategy.and_then(Node::as_str) {
                Some("Webhook") => Calls::Conversion,
                _ => Calls::None,
            }
        }
        ObjectKind::ValidatingWebhookConfiguration | ObjectKind::MutatingWebhookConfiguration => {
            let webhooks = node.get("webhooks").map(Node::items).unwrap_or_default();
            Calls::Webhooks(webhooks.iter().map(Node::to_json).collect())
        }
        _ => Calls::None,
    }
}
