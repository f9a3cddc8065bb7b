//! Credentials: what Secrets say about registries.
//!
//! A package's own secrets come first, then the one an image configuration names, then those of
//! the manager's service account. A secret that is not there is passed over, because what it is
//! for may be open to all; should the registry say no, it is named.

use crate::Hands;
use crate::cluster::{self, Which};
use api::meta::PermissionRequest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plan::authority::{ALLOWED_ROLE, Allowed, Place};
use plan::package::pull::Unavailable;
use plan::step::Target;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::Duration;
use store::auth::Keychain;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// The kind by which an API server is told of others.
const AGGREGATED: (&str, &str) = ("apiregistration.k8s.io/v1", "APIService");
/// How long a list of them is good for.
const AGGREGATED_AGE_MAX: Duration = Duration::from_secs(10);

/// Credentials, and what of them could not be had.
#[derive(Debug, Default)]
pub struct Access {
    /// What there is.
    pub keychain: Keychain,
    /// What there is not, in sentences.
    pub missing: Vec<String>,
}

/// The credentials in these secrets, and in those of the manager.
pub async fn access(hands: &Hands, secrets: &[String]) -> Result<Access, cluster::Error> {
    let mut access = Access::default();
    for name in secrets {
        hands.sought.note(name);
        match hands.cluster.get(&in_namespace(hands, "Secret", name)).await? {
            None => {
                let namespace = &hands.settings.namespace;
                access.missing.push(format!("there is no Secret {name} in namespace {namespace}"));
            }
            Some(secret) => access.add(name, &secret),
        }
    }
    for name in own(hands).await? {
        hands.sought.note(&name);
        if let Some(secret) = hands.cluster.get(&in_namespace(hands, "Secret", &name)).await? {
            access.add(&name, &secret);
        }
    }
    Ok(access)
}

/// The pull secrets of the manager's own account.
pub(crate) async fn own(hands: &Hands) -> Result<Vec<String>, cluster::Error> {
    let account = in_namespace(hands, "ServiceAccount", &hands.settings.service_account);
    let account = hands.cluster.get(&account).await?.unwrap_or_default();
    let secrets = account["imagePullSecrets"].as_array().cloned().unwrap_or_default();
    Ok(secrets.iter().filter_map(|one| Some(one["name"].as_str()?.to_owned())).collect())
}

/// What packages may bring and ask for by the settings alone.
pub(crate) async fn allowed_by_settings(hands: &Hands) -> Result<Allowed, cluster::Error> {
    Ok(Allowed {
        permissions: hands.settings.allowed.clone(),
        groups: hands.settings.allowed_groups.clone(),
        own_groups: vec![hands.settings.group(), hands.settings.stacks_group()],
        aggregated_groups: aggregated_groups(hands).await?,
        place: Place::Flags,
    })
}

/// Groups of aggregated API servers, as they were listed last.
#[derive(Clone, Default)]
pub(crate) struct AggregatedGroups(Arc<Mutex<Option<GroupList>>>);

/// Groups, and when they were listed.
#[derive(Debug)]
struct GroupList {
    at: Instant,
    groups: Vec<String>,
}

/// Groups that other API servers serve through this one. The API server has an object for each group
/// that it serves itself, too, and labels those. A user without the right to look cannot tell; the
/// manager has it. Every reconciler asks this of every object, and `APIService`s hardly ever change.
async fn aggregated_groups(hands: &Hands) -> Result<Vec<String>, cluster::Error> {
    if !hands.settings.is_aggregated {
        return Ok(Vec::new());
    }
    let mut listed = hands.aggregated.0.lock().await;
    if let Some(list) = listed.as_ref().filter(|list| list.at.elapsed() < AGGREGATED_AGE_MAX) {
        return Ok(list.groups.clone());
    }
    let which =
        Which { labels: Some("!kube-aggregator.kubernetes.io/automanaged"), ..Which::default() };
    let found = match hands.cluster.list(AGGREGATED.0, AGGREGATED.1, which).await {
        Err(cluster::Error::Refused(_)) => Vec::new(),
        found => found?,
    };
    let elsewhere = found.iter().filter(|one| !one["spec"]["service"].is_null());
    let groups = elsewhere.filter_map(|one| one["spec"]["group"].as_str());
    let groups: Vec<String> = groups.map(str::to_owned).collect();
    *listed = Some(GroupList { at: Instant::now(), groups: groups.clone() });
    Ok(groups)
}

/// What packages may bring and ask for: what the settings say, and the rules of the role that they
/// name. Where that role is not there, it allows nothing.
pub(crate) async fn allowed(hands: &Hands) -> Result<Allowed, cluster::Error> {
    let mut allowed = allowed_by_settings(hands).await?;
    let Some(name) = hands.settings.allowed_role.clone() else { return Ok(allowed) };
    let target = Target {
        api_version: cluster::RBAC.to_owned(),
        kind: cluster::ROLE.to_owned(),
        namespace: None,
        name: name.clone(),
    };
    let role = hands.cluster.get(&target).await?;
    let is_there = role.is_some();
    allowed.place = if name == ALLOWED_ROLE {
        Place::Gathered { is_there }
    } else {
        Place::Named { role: name, is_there }
    };
    let role = role.unwrap_or_default();
    let rules = role["rules"].as_array().into_iter().flatten();
    allowed.permissions.extend(rules.filter_map(|rule| PermissionRequest::from_json(rule).ok()));
    Ok(allowed)
}

/// The same for a package that asks for this: the role is only read if something is asked for.
pub(crate) async fn allowed_for(
    hands: &Hands,
    requests: &[PermissionRequest],
) -> Result<Allowed, cluster::Error> {
    if requests.is_empty() { allowed_by_settings(hands).await } else { allowed(hands).await }
}

fn in_namespace(hands: &Hands, kind: &str, name: &str) -> Target {
    Target {
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        namespace: Some(hands.settings.namespace.clone()),
        name: name.to_owned(),
    }
}

impl Access {
    fn add(&mut self, name: &str, secret: &Json) {
        if let Some(keychain) = read(secret) {
            self.keychain = std::mem::take(&mut self.keychain).or(keychain);
        } else {
            self.missing.push(format!("the Secret {name} has no credentials of a registry"));
        }
    }

    /// A failure, with what may be behind it.
    pub fn explain(&self, failure: impl Into<Unavailable>) -> Unavailable {
        let mut failure = failure.into();
        if !self.missing.is_empty() {
            failure.why = format!("{}; {}", failure.why, self.missing.join(", "));
        }
        failure
    }
}

/// Both forms that Kubernetes has: with `auths` around it, and the older one without.
fn read(secret: &Json) -> Option<Keychain> {
    let entry = |key: &str| STANDARD.decode(secret["data"][key].as_str()?).ok();
    if let Some(config) = entry(".dockerconfigjson") {
        return Keychain::from_json(&config).ok();
    }
    let hosts: Json = serde_json::from_slice(&entry(".dockercfg")?).ok()?;
    Keychain::from_json(json!({"auths": hosts}).to_string().as_bytes()).ok()
}
