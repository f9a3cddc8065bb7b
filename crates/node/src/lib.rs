//! Pods run on this machine, without a container engine.
//!
//! ```text
//!   apron (host)                                    apron __node (namespaces of its own; PID 1 there)
//!    API server ◄── kubelet ──► image, pod, logs     sandbox ──► apron __pod: a pod's namespaces ──► programs
//!                      └── NodeHandle ◄── lines ──►     └── gateway: Services, DNS, the way out, probes
//! ```
//!
//! - [`protocol`]: what apron and its node tell each other, one JSON object a line.
//! - [`image`]: images pulled, checked and laid down as file systems; what an image wants to be run.
//! - [`pod`]: pure: a Pod's spec to containers, volumes, probes; what happened to a Pod's status.
//! - [`kubelet`]: an ordinary client of the API that makes what runs what the Pods say.
//! - [`logs`]: what programs print, kept in files within limits, read as kubectl asks.
//! - [`sandbox`]: namespaces, mounts, ids and processes.
//! - [`gateway`]: the network that pods see.
//!
//! The room refuses to know packages, commands, printing and the environment. Nothing of the host can be
//! reached from a pod but what the protocol names. Start with [`protocol`].

pub mod gateway;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod image;
pub mod kubelet;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod logs;
pub mod pod;
pub mod protocol;
mod removal;
pub mod sandbox;
