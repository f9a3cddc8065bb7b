//! What in an object makes the API server call somebody: whom, and about what.

use super::kinds::ObjectKind;

use serde_json::Value as Json;
use std::collections::BTreeSet;
use yaml::Node;

/// Kinds by group and plural.
pub type Kinds = BTreeSet<(String, String)>;

/// Kinds of others that webhooks of a package are listed with; an administrator reads no more.
const INTERCEPTED_MAX: usize = 1000;
/// Every kind and every part of it, as webhooks' rules write that. It stands for the kinds beyond the
/// limit: a list that were cut there would pass them off as never asked for.
const EVERYTHING: (&str, &str) = ("*", "*/*");

/// How the API server is made to call somebody.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Calls {
    /// It is not.
    #[default]
    None,
    /// The package's runtime, to convert resources between versions; this is the client
    /// configuration, as written.
    Conversion(Json),
    /// The package's runtime, to admit changes; these are the webhooks, as written.
    Webhooks(Vec<Json>),
    /// Another Service, to convert composite resources: packages that define those run nothing.
    /// This is the client configuration, as written.
    Elsewhere(Json),
}

impl Calls {
    /// Whether it is the package's runtime that is called.
    pub fn is_own(&self) -> bool {
        matches!(self, Self::Conversion(_) | Self::Webhooks(_))
    }

    /// Addresses that are called instead of a Service.
    pub fn addresses(&self) -> Vec<String> {
        let clients: Vec<&Json> = match self {
            Self::None => Vec::new(),
            Self::Conversion(client) | Self::Elsewhere(client) => vec![client],
            Self::Webhooks(webhooks) => webhooks.iter().map(|it| &it["clientConfig"]).collect(),
        };
        let urls = clients.into_iter().map(|client| &client["url"]).filter(|url| !url.is_null());
        urls.map(|url| url.as_str().map_or_else(|| url.to_string(), str::to_owned)).collect()
    }

    /// Kinds that webhooks are called about and that are not among those that are brought, by group
    /// and resource as the webhooks' rules write them. A rule for everything in a group is about
    /// more than what is brought. Of too many kinds the last stands for all that follow.
    pub fn intercepted(&self, brought: &Kinds) -> Kinds {
        let Self::Webhooks(webhooks) = self else { return Kinds::new() };
        let rules = webhooks.iter().filter_map(|webhook| webhook["rules"].as_array()).flatten();
        let mut found = Kinds::new();
        for rule in rules {
            let resources = texts(&rule["resources"]);
            for group in texts(&rule["apiGroups"]) {
                for resource in &resources {
                    let kind = resource.split('/').next().unwrap_or_default();
                    if brought.contains(&(group.to_owned(), kind.to_owned())) {
                        continue;
                    }
                    let intercepted = (group.to_owned(), (*resource).to_owned());
                    if found.len() >= INTERCEPTED_MAX && !found.contains(&intercepted) {
                        found.insert((EVERYTHING.0.to_owned(), EVERYTHING.1.to_owned()));
                        return found;
                    }
                    found.insert(intercepted);
                }
            }
        }
        found
    }
}

/// The different texts of a list.
fn texts(list: &Json) -> BTreeSet<&str> {
    list.as_array().into_iter().flatten().filter_map(Json::as_str).collect()
}

/// How an object of this kind makes the API server call.
pub(super) fn find(object: ObjectKind, node: &Node<'_>) -> Calls {
    let conversion = || {
        let strategy = node.at(&["spec", "conversion", "strategy"]);
        let client = node.at(&["spec", "conversion", "webhook", "clientConfig"]);
        let is_called = strategy.and_then(Node::as_str) == Some("Webhook");
        is_called.then(|| client.map(Node::to_json).unwrap_or_default())
    };
    match object {
        ObjectKind::CustomResourceDefinition | ObjectKind::ManagedResourceDefinition => {
            conversion().map_or(Calls::None, Calls::Conversion)
        }
        ObjectKind::CompositeResourceDefinition => {
            conversion().map_or(Calls::None, Calls::Elsewhere)
        }
        ObjectKind::ValidatingWebhookConfiguration | ObjectKind::MutatingWebhookConfiguration => {
            let webhooks = node.get("webhooks").map(Node::items).unwrap_or_default();
            Calls::Webhooks(webhooks.iter().map(Node::to_json).collect())
        }
        _ => Calls::None,
    }
}
