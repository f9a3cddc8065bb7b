//! What runs the pods of Deployments: the seam between objects that wish for pods and
//! something that has them.
//!
//! The server keeps a Deployment's status true to what its [`Runtime`] says. [`Simulated`]
//! says that all is well at once, which is what a control plane without machines needs, and that
//! this is all it does ([`Runtime::remark`]); a runtime that starts processes says what became of
//! them, and calls [`crate::Server::look_again`] whenever that changes.

use serde_json::Value;

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

/// Something that runs pods.
pub trait Runtime: std::fmt::Debug + Send + Sync {
    /// Takes in what a Deployment wishes now and says what there is. Called after each
    /// change of the Deployment, and after a restart for each; it must not wait.
    fn run(&self, deployment: &Value) -> Pods;

    /// Takes in that a Deployment is gone.
    fn stop(&self, namespace: &str, name: &str);

    /// What users are to know of every Deployment that is called available although nothing of it
    /// runs; none where pods are what they are said to be.
    fn remark(&self) -> Option<&str> {
        None
    }
}

/// What is said of everything that is only simulated.
const NOTHING_RUNS: &str = "nothing runs here: pods are only simulated";

/// A runtime without pods: every wish is true as soon as it is uttered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Simulated;

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
        Some(NOTHING_RUNS)
    }
}
