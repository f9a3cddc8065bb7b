//! apron as a user meets it: the real binary, real registries, real peers.
//!
//! One test binary; each file is a chapter. `support` starts what the others need.

mod build;
mod guarded;
mod interchange;
mod registry;
mod support;
mod words;
