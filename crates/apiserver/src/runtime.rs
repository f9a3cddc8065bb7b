//! What becomes of the pods of Deployments: the seam between objects that wish for pods and
//! something that has them.
//!
//! There are two ways ([`Hosting`]). Deployments become replica sets and Pods, as a cluster's
//! controllers make them (room `workload` decides); pods are given to Nodes, and the programs that
//! those stand for write their status, hold their logs ([`PodLogs`]) and count what they use ([`UsageMeter`]). Or a [`Runtime`] says how many
//! pods each Deployment has, and calls [`crate::Server::look_again`] whenever that changes.
//! [`Simulated`] says that all is well at once, which is what a control plane without machines needs,
//! and that this is all it does ([`Runtime::remark`]).

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde_json::Value;
pub use workload::usage::{MeasuredUsage, UsageReading};

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

/// How the pods of Deployments come about.
#[derive(Debug, Clone, Default)]
pub enum Hosting {
    /// They do not: Deployments and Pods are left to controllers outside.
    #[default]
    Unattended,
    /// Something counts them; there are no Pods.
    Counted(Arc<dyn Runtime>),
    /// Replica sets and Pods are made, and given to the nodes that are ready.
    Pods,
}

impl Hosting {
    /// Deployments are available at once, and say that nothing runs.
    pub fn simulated() -> Self {
        Self::Counted(Arc::new(Simulated))
    }

    /// Whether Pods are made.
    pub(crate) fn makes_pods(&self) -> bool {
        matches!(self, Self::Pods)
    }

    /// What counts pods, where there are none.
    pub(crate) fn counter(&self) -> Option<&Arc<dyn Runtime>> {
        match self {
            Self::Counted(runtime) => Some(runtime),
            Self::Unattended | Self::Pods => None,
        }
    }
}

/// From where on a log is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogStart {
    /// From what was written so many seconds ago.
    SecondsAgo(u64),
    /// From this moment, in seconds since 1970.
    At(u64),
}

/// Which of a program's outputs are told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogOutput {
    /// Both.
    #[default]
    All,
    /// What it wrote to standard output.
    Stdout,
    /// What it wrote to standard error.
    Stderr,
}

/// What is asked of a container's log. The container is one of the pod's, and has been started, or, for
/// an earlier one, has ended before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// The container's name.
    pub container: String,
    /// Whether to go on with what is written from now on, until the container ends.
    pub follow: bool,
    /// Whether the container before the present one is meant.
    pub previous: bool,
    /// From where on.
    pub start: Option<LogStart>,
    /// Whether each line begins with its time.
    pub timestamps: bool,
    /// Only so many lines from the end.
    pub tail_lines: Option<u64>,
    /// Only so many bytes.
    pub limit_bytes: Option<u64>,
    /// Of which output.
    pub output: LogOutput,
}

/// A log, piece by piece; an error ends it.
pub type LogPieces = BoxStream<'static, std::io::Result<Bytes>>;

/// Something that has the logs of containers.
pub trait PodLogs: std::fmt::Debug + Send + Sync {
    /// The log of a container of this Pod (the whole object), or why there is none.
    fn open_log(&self, pod: &Value, query: LogQuery) -> BoxFuture<'_, Result<LogPieces, String>>;
}

/// Something that counts what pods and nodes use. It answers at once, with what it knows.
pub trait UsageMeter: std::fmt::Debug + Send + Sync {
    /// What the pod with this uid uses; nothing as long as that is not known of each container.
    fn read_pod(&self, uid: &str) -> Option<UsageReading>;

    /// What a node uses.
    fn read_node(&self, name: &str) -> Option<UsageReading>;
}
