//! What every command of the shell stands on: how it fails, how it is stopped, and files.
//!
//! A [`failure::Failure`] cannot be made without advice. [`interrupt`] notices that a command is to stop, so
//! that it ends soon and leaves nothing half done. [`directory`] walks a package's directory and tells what it
//! does not follow; [`private`] writes files that only their owner can read.
//!
//! The room refuses to know commands, registries, clusters, the terminal and the environment: it prints
//! nothing, and what it finds is told by its callers. Start with [`failure`].

pub mod directory;
pub mod failure;
pub mod interrupt;
pub mod private;
pub mod words;
