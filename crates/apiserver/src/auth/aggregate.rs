//! Roles that gather other roles: their rules are the union of those whose labels they
//! select, kept so by the server.
//!
//! This is done before a write is answered. A process that dies in between does it when it
//! starts again; two that do it at once go on until nothing changes any more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::policy::{GROUP, Role};
use super::rule::Rule;
use crate::Server;
use crate::rest::Own;
use schema::object::selector::Labels;

const MANAGER: &str = "clusterrole-aggregation-controller";
/// Roles may gather roles that gather; those that gather each other never come to an end.
const ROUNDS_MAX: usize = 64;

/// Up to which version everything has been gathered.
#[derive(Debug, Default)]
pub struct Gathered(AtomicU64);

/// Gathers, if anything changed since the last time.
pub(crate) async fn settle(server: &Arc<Server>) {
    let done = &server.access.gathered.0;
    let policy = &server.access.policy;
    if done.load(Ordering::Acquire) >= policy.gathered(&server.log) {
        return;
    }
    let Some(kind) = server.kinds.find(GROUP, "v1", "clusterroles") else { return };
    for _ in 0..ROUNDS_MAX {
        let (version, all) = policy.cluster_roles(&server.log);
        let mut changed = false;
        for (name, role) in &all {
            let Some(selectors) = &role.gathers else { continue };
            let rules = gather(name, selectors, &all);
            if rules == role.rules {
                continue;
            }
            changed = true;
            let mut config = json!({
                "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": name},
            });
            if !rules.is_empty() {
                config["rules"] = rules.iter().map(Rule::write).collect();
            }
            // A role that went meanwhile has nothing to gather.
            let _ = Own::new(&kind, None, name).by(MANAGER).apply(server, &config).await;
        }
        if !changed {
            done.fetch_max(version, Ordering::AcqRel);
            return;
        }
    }
    done.fetch_max(policy.gathered(&server.log), Ordering::AcqRel);
}

/// The rules of all roles that are selected, each once.
fn gather(own: &str, selectors: &[Value], all: &BTreeMap<String, Arc<Role>>) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for selector in selectors {
        let Some(labels) = Labels::of_selector(selector) else { continue };
        let selected = |(name, role): &(&String, &Arc<Role>)| {
            name.as_str() != own && labels.matches(Some(&role.labels))
        };
        for (_, role) in all.iter().filter(selected) {
            for rule in &role.rules {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    rules
}
