//! Room `xpkg`: the package format.

pub mod constraint;
pub mod diagnostic;
pub mod label;
pub mod lint;
pub mod version;
pub mod yaml;
