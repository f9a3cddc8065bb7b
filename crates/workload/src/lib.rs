//! # Room `workload`: what becomes of Deployments
//!
//! A Deployment wishes for pods; a replica set keeps a number of them; a Service leads to those
//! that are ready. In a cluster the controller manager sees to it. Here its decisions are
//! functions: objects and the time in, actions out.
//!
//! ```text
//!  Deployment + its ReplicaSets ──► rollout::plan_rollout ──► make, scale, delete sets; status
//!  ReplicaSet + its Pods ─────────► replicas::plan_replicas ─► make, delete pods; status
//!  Service + the Pods it selects ─► endpoints::list_endpoints, slices::plan_slices ► addresses
//!  Pod + the Nodes ──────────────► nodes::choose_node ───────► a node, or why there is none
//!  Pod + its ServiceAccount ──────► account::equip_pod ──────► the pod with a token's volume
//!  Pod, and what it is to become ─► pod_spec, pod_update ────► what is wrong with it
//!  Pod or Node + what it uses ────► usage::pod_metrics ──────► what `kubectl top` reads
//!  Pod + the name of a container ─► containers::explain_missing_log ► why it has written nothing
//! ```
//!
//! Names, annotations, reasons and messages are upstream's, since tools read them. Only the
//! text of a template's hash is our own: upstream's is of a structure in Go's memory.
//!
//! Nothing is remembered between two looks: a crash after any of the actions is mended by the
//! next look at what is there.
//!
//! The room refuses to know servers, storage and what runs pods.

pub mod account;
mod condition;
pub mod containers;
pub mod endpoints;
pub mod nodes;
pub mod pod_spec;
pub mod pod_update;
mod reading;
pub mod replicas;
pub mod rollout;
pub mod slices;
mod template;
pub mod usage;

pub use reading::{controller_uid, is_pod_ready};
