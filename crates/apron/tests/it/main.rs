//! apron as a user meets it: the real binary, real registries, real peers.
//!
//! One test binary; each file is a chapter. `support` starts what the others need.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test that called them")]

mod build;
mod hostile;
mod interchange;
mod interrupt;
mod support;
mod walls;
mod words;
