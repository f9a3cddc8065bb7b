//! This machine, as far as apron depends on it: the program itself, what it is linked to, the programs beside
//! it, and what is missing for what.
//!
//! [`program`] makes an image of the program that runs. [`engine`] takes images out of the local container
//! engine. [`doctor`] looks for everything that some command needs of a machine, and says which command that is
//! and what to do where it is missing.
//!
//! The room refuses to know commands, registries, clusters, printing and the environment: where programs and
//! files are looked for is for its callers to say. Start with [`doctor::examine_machine`].

pub mod doctor;
pub mod engine;
pub mod program;
mod programs;
