//! # Room `apiserver`: the Kubernetes API for any kind
//!
//! Under construction; see the modules.

pub mod apply;
pub mod log;
pub mod schema;
