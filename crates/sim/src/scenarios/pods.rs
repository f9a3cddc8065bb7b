//! What users do where Deployments become pods, and a node runs them.

use super::{
    RUNTIME_CONFIGS, Scenario, change, delete, image, install, installed, scenario, stocked,
    upgrade,
};
use crate::node::machine::NEVER_READY;
use crate::pack::Failure;
use crate::stage::Stage;
use http::Method;
use serde_json::json;
use std::time::Duration;

/// A provider is installed, and runs.
pub(super) const INSTALL: Scenario =
    Scenario { is_hosted: true, ..scenario!("pods-install", stocked, install) };

/// The next version takes over.
pub(super) const UPGRADE: Scenario =
    Scenario { is_hosted: true, ..scenario!("pods-upgrade", installed, upgrade) };

/// The next version runs and never becomes ready, so the one before comes back.
pub(super) const BAD_UPGRADE: Scenario =
    Scenario { is_hosted: true, ..scenario!("pods-bad-upgrade", warned, upgrade_badly) };

/// The next version is wanted while the node is cut off; its programs go on.
pub(super) const NODE_AWAY: Scenario =
    Scenario { is_hosted: true, ..scenario!("pods-node-away", installed, upgrade_unheard) };

/// A provider goes, and all that ran of it.
pub(super) const UNINSTALL: Scenario =
    Scenario { is_hosted: true, ..scenario!("pods-uninstall", installed, delete) };

/// How a provider is run that never becomes ready.
const BAD: &str = "bad";
/// How long the node is cut off: longer than a manager waits for anything.
const AWAY: Duration = Duration::from_secs(400);

/// A provider that runs, and a configuration under which the next one does not become ready.
async fn warned(stage: &mut Stage) -> Result<(), Failure> {
    installed(stage).await?;
    let container = json!({"name": "package-runtime", "args": [NEVER_READY]});
    let spec = json!({
        "selector": {}, "progressDeadlineSeconds": 60,
        "template": {"spec": {"containers": [container]}},
    });
    let config = json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "DeploymentRuntimeConfig",
        "metadata": {"name": BAD},
        "spec": {"deploymentTemplate": {"spec": spec}},
    });
    stage.ask(Method::POST, RUNTIME_CONFIGS, &config).await.map(|_| ())
}

async fn upgrade_badly(stage: &mut Stage) -> Result<(), Failure> {
    let spec = json!({"package": image("v1.1.0"), "runtimeConfigRef": {"name": BAD}});
    change(stage, "Provider", "nop", json!({"spec": spec})).await
}

async fn upgrade_unheard(stage: &mut Stage) -> Result<(), Failure> {
    stage.cut_node_off(AWAY);
    upgrade(stage).await?;
    stage.pass(AWAY).await
}
