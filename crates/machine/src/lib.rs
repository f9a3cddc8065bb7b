//! This machine, as far as apron depends on it: the program itself, what it is linked to, and the programs
//! beside it.
//!
//! [`program`] makes an image of the program that runs. [`engine`] takes images out of the local container
//! engine.
//!
//! The room refuses to know commands, registries, clusters, printing and the environment: where programs and
//! files are looked for is for its callers to say. Start with [`program::write_own_image`].

pub mod engine;
pub mod program;
mod programs;
