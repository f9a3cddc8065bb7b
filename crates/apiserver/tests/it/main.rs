//! What the real thing answers is the specification: the same questions to a real
//! kube-apiserver and to ours, and the answers compared.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on must stop")]

mod differential;
mod fuzz;
mod hook;
mod normal;
mod openapi;
mod peers;
mod policy;
mod probe;
mod workloads;
