//! # Room `follow`: a catalog that is true to its registry
//!
//! A registry knows nothing of packages, and a catalog nothing of registries. This room knows both,
//! and is all there is between them: [`follow()`] reads what a registry has into a catalog, and
//! [`RegistryGate`] lets users of the registry ask it, each about what they may pull.
//!
//! ```text
//!   registry ─► event: something happened in this repository ─► compare ─► read ─► catalog
//!            ◄─ what does it have, what are its bytes ────────────┘
//! ```
//!
//! ## What it promises
//!
//! - **Levels, not events.** An event only says where to look. One that was missed, a process that was
//!   killed, a database that was made anew: the next comparison finds the difference, and there is one
//!   of everything at every start.
//! - **Nothing waits for it.** Pushes are acknowledged before anything of this happens.
//! - **At rest nothing is done.** Only what could not be read is tried again after a while.
//!
//! It prints nothing: the shell hears of [`Trouble`].

mod follower;
mod gate;

pub use follower::{Trouble, follow};
pub use gate::RegistryGate;
