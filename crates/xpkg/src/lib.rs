//! Room `xpkg`: the package format.

pub mod diagnostic;
pub mod yaml;
