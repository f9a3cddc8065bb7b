//! The room with a real kernel: namespaces, real programs, real connections.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests may die like tests do"
)]

mod gateway;
mod sandbox;
