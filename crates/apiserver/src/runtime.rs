//! What runs the pods of Deployments: the seam between objects that wish for pods and
//! something that has them.
//!
//! There are two ways ([`Hosting`]). Deployments become replica sets and Pods, as a cluster's
//! controllers make them (room `workload` decides), pods are given to Nodes, and the programs that
//! those stand for write their status. Or a [`Runtime`] says how many pods each Deployment has;
//! [`Simulated`] says that all is well at once, and tells in a condition of each Deployment and on
//! a Node that this is all it does.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::rest::Own;
use crate::{Options, Server};
use schema::object::time;

/// How many pods of a Deployment there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pods {
    /// All of them.
    pub total: u64,
    /// Those made from the present template.
    pub updated: u64,
    /// Those that answer.
    pub ready: u64,
    /// Those that have answered for long enough.
    pub available: u64,
}

/// Something that counts pods.
pub trait Runtime: std::fmt::Debug + Send + Sync {
    /// Takes in what a Deployment wishes now and says what there is. Called after each
    /// change of the Deployment, and after a restart for each; it must not wait.
    fn run(&self, deployment: &Value) -> Pods;

    /// Takes in that a Deployment is gone.
    fn stop(&self, namespace: &str, name: &str);

    /// What users are to know about all that it says: that nothing runs, say, and why.
    fn remark(&self) -> Option<&str> {
        None
    }
}

/// A runtime without pods: every wish is true as soon as it is uttered.
#[derive(Debug, Clone, Default)]
pub struct Simulated {
    /// Why nothing runs, and what would change it.
    pub remark: Option<String>,
}

impl Runtime for Simulated {
    fn run(&self, deployment: &Value) -> Pods {
        let number = |pointer: &str| deployment.pointer(pointer).and_then(Value::as_u64);
        let wished = number("/spec/replicas").unwrap_or(1);
        let paused = deployment.pointer("/spec/paused") == Some(&Value::Bool(true));
        if paused && number("/status/replicas").unwrap_or_default() == 0 {
            // A rollout that is paused before it has pods makes none, however many are wished for.
            return Pods::default();
        }
        Pods { total: wished, updated: wished, ready: wished, available: wished }
    }

    fn stop(&self, _namespace: &str, _name: &str) {}

    fn remark(&self) -> Option<&str> {
        self.remark.as_deref()
    }
}

/// How the pods of Deployments come about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hosting {
    /// They are only said to be there, and that is said, too.
    #[default]
    Simulated,
    /// They are only said to be there, without a word: for those who bring programs of their own
    /// that make Deployments available.
    Unannounced,
    /// They are made, and run by the nodes that register.
    Nodes,
}

/// What is said of everything that is only simulated.
const REMARK: &str = "nothing runs: pods are only simulated";

impl Hosting {
    /// Options of a server that has pods in this way.
    pub fn options(self) -> Options {
        match self {
            Self::Simulated => {
                let simulated = Simulated { remark: Some(REMARK.to_owned()) };
                Options { runtime: Some(Arc::new(simulated)), ..Options::default() }
            }
            Self::Unannounced => {
                let simulated = Simulated::default();
                Options { runtime: Some(Arc::new(simulated)), ..Options::default() }
            }
            Self::Nodes => Options { makes_pods: true, ..Options::default() },
        }
    }
}

impl std::fmt::Display for Hosting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Simulated => write!(f, "simulated ({REMARK})"),
            Self::Unannounced => f.write_str("simulated"),
            Self::Nodes => f.write_str("nodes (pods wait for a Node that runs them)"),
        }
    }
}

impl std::str::FromStr for Hosting {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "simulated" => Ok(Self::Simulated),
            "nodes" => Ok(Self::Nodes),
            _ => Err("say `simulated` or `nodes`"),
        }
    }
}

/// The Node of a control plane whose pods are only simulated.
const SIMULATED_NODE: &str = "apron";

/// Says on a Node that nothing runs, if that is so.
pub(crate) async fn furnish_node(server: &Arc<Server>) {
    let remark = server.options.runtime.as_ref().and_then(|runtime| runtime.remark());
    let Some(kind) = server.kinds.find("", "v1", "nodes") else { return };
    let node = Own::new(&kind, None, SIMULATED_NODE).by("apron");
    let Some(remark) = remark.filter(|_| !server.options.makes_pods) else { return };
    let object = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": SIMULATED_NODE, "labels": {"kubernetes.io/hostname": SIMULATED_NODE}},
        "spec": {"unschedulable": true},
    });
    forget_pods(server).await;
    // A Node that cannot be written holds up nothing: each Deployment says the same.
    let _ = node.found(server, object).await;
    let now = time::format(server.world.now());
    let uid = node.get(server).map(|node| schema::object::meta_text(&node, "uid").to_owned());
    let remark = remark.to_owned();
    let status = Own::new(&kind, None, SIMULATED_NODE).by("apron").sub("status");
    let written = status.amend(server, &uid.unwrap_or_default(), |node| {
        let said = json!({
            "type": "Ready", "status": "False", "reason": "Simulated", "message": remark,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        });
        schema::object::map_at(node, "status").insert("conditions".to_owned(), json!([said]));
    });
    let _ = written.await;
}

/// Removes pods that an earlier start made for nodes: nothing tells any more whether they run.
async fn forget_pods(server: &Arc<Server>) {
    let Some(kind) = server.kinds.find("", "v1", "pods") else { return };
    let Ok(snapshot) = server.log.list(&kind.prefix(None), None) else { return };
    for (key, entry) in &snapshot.entries {
        let Ok(pod) = crate::rest::open(&kind, entry) else { continue };
        let is_replica = workload::controller_uid(&pod).is_some();
        if is_replica && let Some(own) = Own::at(server, key) {
            let uid = schema::object::meta_text(&pod, "uid");
            let _ = own.remove(server, uid, crate::rest::Propagation::Background).await;
        }
    }
}
