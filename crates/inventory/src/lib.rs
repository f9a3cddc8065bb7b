//! What is installed in a cluster, and how it is, as values.
//!
//! ```text
//!   API server ──► Cluster ──► Inventory ──► Installed ──► State, complaints, progress
//!                                   ├─ install objects ──► the Provider that each became, its record
//!                                   └─ Lock ──► who needs whom, why a package is there
//!                  definitions ──► what a package has there, and how many objects live by it
//!                  roles ──► what packages may ask for
//!                  pods ──► what is in the way of those that run a package, and which logs there are
//! ```
//!
//! [`Cluster`] asks and changes; each of its failures says which cluster and what to do. [`Inventory`] is what
//! was found at one moment, [`State`] the one word for how a package is, and its complaints are what is in the
//! way, in sentences. Commands and pages print these; neither finds out anything by itself.
//!
//! The room refuses to know commands, kubeconfigs, printing and the environment, and it decides nothing: it
//! tells what the package manager has written down. Start with [`Inventory::gather`].

mod cluster;
pub mod definitions;
mod forest;
mod history;
mod installed;
mod installs;
mod log_lines;
mod logged;
mod pods;
pub mod roles;
mod state;
mod versions;
mod why;

pub use cluster::{Cluster, Resource, lower};
pub use forest::{count_objects, revision_state};
pub use installed::{Installed, Inventory, Needed, Which, kind_named, reference, version};
pub use installs::{FoundObject, InstallObject, InstallShown, InstallWish, install_kind_named};
pub use log_lines::{LogLines, ReadPosition, split_time};
pub use logged::{LoggedContainer, PodAbsence};
pub use pods::{LogRun, LogTail, PodPlight, PodTrouble, RUNTIME_CONTAINER, RunEnd};
pub use state::State;
pub use why::{Explanation, NeedReason};
